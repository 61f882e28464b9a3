"""Steps of PyTorch's optimizers on a matrix and a vector, for tests/engine/tst_optimizers.cpp.

Lion is not in PyTorch: it is computed here from its paper's pseudocode (arXiv:2302.06675, algorithm 2).
Result: fixtures/optimizers/torch.json
"""
import json
import os

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIX = os.environ.get("ORACLE_FIXTURES", os.path.join(ROOT, "fixtures"))
STEPS, LR, DECAY = 6, 0.05, 0.1
EPS = torch.finfo(torch.float32).eps  # what Adafactor takes for float32 weights
SHAPES = {"matrix": (3, 5), "vector": (4,)}


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                c = beta1 * m + (1 - beta1) * p.grad
                p.copy_(p - group["lr"] * (torch.sign(c) + group["weight_decay"] * p))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


CASES = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=DECAY),
    "Adam": lambda p: torch.optim.Adam(p, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=DECAY),
    "SGD": lambda p: torch.optim.SGD(p, lr=LR, weight_decay=DECAY),
    "SGD, momentum, dampening": lambda p: torch.optim.SGD(p, lr=LR, momentum=0.9, dampening=0.3, weight_decay=DECAY),
    "SGD, Nesterov": lambda p: torch.optim.SGD(p, lr=LR, momentum=0.9, nesterov=True, weight_decay=DECAY),
    "Lion": lambda p: Lion(p, lr=LR, betas=(0.9, 0.99), weight_decay=DECAY),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=LR, eps=(EPS, 1e-3), weight_decay=DECAY),
    "Adafactor, other settings": lambda p: torch.optim.Adafactor(p, lr=0.7, beta2_decay=-0.5, eps=(EPS, 1e-2), d=1.5, weight_decay=DECAY),
    "RMSProp": lambda p: torch.optim.RMSprop(p, lr=LR, alpha=0.9, eps=1e-8, weight_decay=DECAY),
    "RMSProp, centred": lambda p: torch.optim.RMSprop(p, lr=LR, alpha=0.9, eps=1e-8, weight_decay=DECAY, centered=True),
    "RMSProp, centred, momentum": lambda p: torch.optim.RMSprop(p, lr=LR, alpha=0.9, eps=1e-8, weight_decay=DECAY, centered=True, momentum=0.5),
}


def main():
    generator = torch.Generator().manual_seed(5)
    draw = lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(torch.float32)
    start = {name: draw(shape) for name, shape in SHAPES.items()}
    gradients = [{name: draw(shape) * 10 ** (-step) for name, shape in SHAPES.items()} for step in range(STEPS)]  # sizes differ a lot
    flat = lambda tensors: {name: [float(x) for x in t.detach().flatten()] for name, t in tensors.items()}
    out = {"torch": torch.__version__, "shapes": SHAPES, "start": flat(start), "gradients": [flat(g) for g in gradients], "after": {}}
    for name, make in CASES.items():
        weights = {key: value.double().clone().requires_grad_() for key, value in start.items()}  # in float64: the reference's own rounding is none
        optimizer = make(list(weights.values()))
        steps = []
        for gradient in gradients:
            for key, weight in weights.items():
                weight.grad = gradient[key].double()
            optimizer.step()
            steps.append(flat(weights))
        out["after"][name] = steps
    os.makedirs(os.path.join(FIX, "optimizers"), exist_ok=True)
    with open(os.path.join(FIX, "optimizers", "torch.json"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
