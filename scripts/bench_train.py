"""The PyTorch side of scripts/bench: the same model, batch and measure as tests/engine/bench_train.cpp, eager, as one would write it."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--preset", default="baichuan-tiny")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--o2", action="store_true")
args = parser.parse_args()
torch.set_num_threads(args.threads)
V, D, L, H, I = {"baichuan-tiny": (4096, 256, 4, 4, 688), "baichuan-110m": (16000, 768, 12, 12, 2048)}[args.preset]
HD = D // H


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        return F.rms_norm(x, (D,), self.weight, 1e-6)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = Norm(), Norm()
        self.W_pack, self.o_proj = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.gate, self.up, self.down = nn.Linear(D, I, bias=False), nn.Linear(D, I, bias=False), nn.Linear(I, D, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = (p.transpose(1, 2) for p in self.W_pack(self.n1(x)).view(b, t, 3, H, HD).unbind(2))
        rotate = lambda y: y * cos + torch.cat((-y[..., HD // 2:], y[..., :HD // 2]), -1) * sin
        q, k = rotate(q).to(v.dtype), rotate(k).to(v.dtype)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(a.transpose(1, 2).reshape(b, t, D))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, D, padding_idx=0)
        self.layers = nn.ModuleList(Layer() for _ in range(L))
        self.norm, self.head = Norm(), nn.Linear(D, V, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        angle = torch.outer(torch.arange(ids.shape[1]).float(), 1e4 ** (-torch.arange(0, HD, 2).float() / HD))
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos(), angle.sin()
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


torch.manual_seed(0)
model = Model()
ids = torch.randint(3, V, (args.batch, args.length))
seconds = []
for step in range(args.steps + 2):
    start = time.perf_counter()
    model.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=args.o2):
        logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, V).float(), ids[:, 1:].reshape(-1))
    loss.backward()
    if step >= 2:
        seconds.append(time.perf_counter() - start)
typical = sorted(seconds)[len(seconds) // 6]
print(f"{args.batch * args.length / typical:.0f} tokens/s, {typical * 1e3:.1f} ms a step, loss {loss.item():.4f}")
