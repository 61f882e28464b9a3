from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, size: int = 6):
        super().__init__()
        blocks = []
        for i in range(size // 2):
            blocks.append(nn.Linear(size, size, bias=False))
        self.blocks = nn.ModuleList(blocks)
        self.act = nn.GELU()

    def forward(self, x):
        # x: [B, size]
        for block in self.blocks:
            x = block(x)
        return F.softmax(self.act(x) * 0.5, dim=-1)
