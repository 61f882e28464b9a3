import torch
from torch import nn


def split_groups(x, sizes, groups, axis=-1):
    """A dimension is `groups` equal groups in a row; each piece gathers itst of every group."""
    axis = axis % x.dim()


# celloom: {"name":"arithmetic"}
class Arithmetic(nn.Module):
    def __init__(self, n=6, m=4):
        super().__init__()
        self.n = n

    def forward(self, x, y):
        # x: [B, n, m]
        # y: [B, n, m]
        # -> sums
        # -> products
        # -> odd
        scores = torch.matmul(x, y.transpose(-1, -2))
        gram = torch.matmul(x.transpose(-1, -2), y)
        difference = x - y
        rows = difference[:, 1:-1]
        odd = rows[..., 1::2]
        thin = difference[..., :4, :]
        cut_out0, cut_out1 = torch.split(x, [2, self.n - 2], 1)
        stack = torch.cat((cut_out0, thin, cut_out1), -2)
        total = torch.sum(stack, self(1, 2), True)
        largest = torch.amax(scores, -1, True)
        scaled = largest * total
        shifted = scaled + groups_out1
        swapped = gram.permute(0, 2, 1)
        joined = torch.flatten(swapped, 1, 2)
        return shifted, joined, odd
