"""Writes fixtures/cells: what PyTorch computes for the catalogue's cells, with gradients, to hold the engine to.

    python make_cells.py [folder]          # torch of requirements-torch.txt, and safetensors

cells.json lists the cases: type, parameters, ports; cells.safetensors holds for case N "N.in.I", "N.weight.NAME", "N.out.I", "N.cotangent.I" and the
gradients of sum(out * cotangent) as "N.grad.in.I" and "N.grad.weight.NAME"; "N.after.NAME" are buffers after the pass, "N.auxiliary" what the
cell adds to the loss. Inputs are numbers of float32, everything is computed in float64 and rounded to float32 once.
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

cases, tensors = [], {}
generator = torch.Generator().manual_seed(11)


def normal(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float32).double()


def positive(*shape):
    return (normal(*shape).float().abs() + 0.5).double()


def case(name, kind, params, inputs, compute, weights=None, buffers=None, training=False, auxiliary=False):
    """`compute(*inputs, **weights)` gives a tensor or several; with `auxiliary` the last one is what the cell adds to the loss."""
    number = len(cases)
    weights, buffers = weights or {}, buffers or {}
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    learned = {n: w.clone().requires_grad_(True) for n, w in weights.items()}
    kept = {n: b.clone() for n, b in buffers.items()}
    out = compute(*leaves, **learned, **kept)
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    if auxiliary:
        tensors[f"{number}.auxiliary"] = out.pop().detach().float().reshape(1)
    total = 0
    for i, y in enumerate(out):
        cotangent = normal(*y.shape)
        total = total + (y * cotangent).sum()
        tensors[f"{number}.out.{i}"] = y.detach().float().contiguous()
        tensors[f"{number}.cotangent.{i}"] = cotangent.float()
    total.backward()
    for i, (given, leaf) in enumerate(zip(inputs, leaves)):
        tensors[f"{number}.in.{i}"] = given.float() if given.is_floating_point() else given
        if leaf.grad is not None:
            tensors[f"{number}.grad.in.{i}"] = leaf.grad.float()
    for n, w in weights.items():
        tensors[f"{number}.weight.{n}"] = w.float()
        tensors[f"{number}.grad.weight.{n}"] = learned[n].grad.float()
    for n, b in buffers.items():
        tensors[f"{number}.weight.{n}"] = b.float()
        tensors[f"{number}.after.{n}"] = kept[n].float()
    cases.append({"name": name, "type": kind, "params": params, "inputs": len(inputs), "outputs": len(out),
                  "weights": list(weights) + list(buffers), "training": training})


def images():
    def conv(name, x, weight, bias=None, params=None, **options):
        out, inside, high, wide = weight
        group = options.get("groups", 1)
        given = {"in_channels": inside * group, "out_channels": out, "kernel_size": f"{high},{wide}", "group": group, "has_bias": bool(bias), **params}
        weights = {"weight": normal(out, inside, high, wide)} | ({"bias": normal(out)} if bias else {})
        case(name, "Conv2d", given, [normal(*x)], lambda x, weight, bias=None: F.conv2d(x, weight, bias, **options), weights)

    conv("Conv2d", (2, 3, 5, 6), (4, 3, 3, 3), params={})
    conv("Conv2d with bias, stride and padding", (2, 2, 6, 7), (3, 2, 3, 2), True, {"stride": "2,1", "padding": "1,0"}, stride=(2, 1), padding=(1, 0))
    conv("Conv2d dilated", (1, 2, 8, 8), (2, 2, 3, 3), True, {"dilation": "2", "padding": "2"}, dilation=2, padding=2)
    conv("Conv2d in groups", (2, 4, 5, 5), (6, 2, 3, 3), True, {}, groups=2)
    conv("Conv2d depthwise", (2, 3, 5, 5), (3, 1, 3, 3), False, {"padding": "1"}, groups=3, padding=1)
    conv("Conv2d same", (1, 2, 5, 6), (2, 2, 3, 2), True, {"pad_mode": "same"}, padding="same")
    case("Conv2d padded on one side", "Conv2d",
         {"in_channels": 2, "out_channels": 2, "kernel_size": "3", "stride": "2", "padding": "0,1,1,0"}, [normal(1, 2, 6, 6)],
         lambda x, weight: F.conv2d(F.pad(x, (1, 0, 0, 1)), weight, stride=2), {"weight": normal(2, 2, 3, 3)})

    def norm(name, training):
        case(name, "BatchNorm2d", {"num_features": 3, "momentum": 0.9, "eps": 1e-5}, [normal(2, 3, 4, 3) * 2 + 1],
             lambda x, weight, bias, running_mean, running_var: F.batch_norm(x, running_mean, running_var, weight, bias, training, 0.1, 1e-5),
             {"weight": normal(3), "bias": normal(3)}, {"running_mean": normal(3), "running_var": positive(3)}, training)

    norm("BatchNorm2d training", True)
    norm("BatchNorm2d evaluating", False)
    pools = [("", {"kernel_size": "2"}, dict(kernel_size=2)),
             (" overlapping, padded", {"kernel_size": "3", "stride": "2", "padding": "1"}, dict(kernel_size=3, stride=2, padding=1)),
             (" of two sides, rounded up", {"kernel_size": "2,3", "stride": "2", "padding": "1,0", "ceil_mode": True},
              dict(kernel_size=(2, 3), stride=2, padding=(1, 0), ceil_mode=True))]
    for name, params, options in pools:
        case("MaxPool2d" + name, "MaxPool2d", params, [normal(2, 2, 5, 6)], lambda x, o=options: F.max_pool2d(x, **o))
        case("AvgPool2d" + name, "AvgPool2d", params, [normal(2, 2, 5, 6)], lambda x, o=options: F.avg_pool2d(x, **o))
    case("AvgPool2d without its padding", "AvgPool2d", {"kernel_size": "3", "stride": "2", "padding": "1", "ceil_mode": True, "count_include_pad": False},
         [normal(1, 2, 6, 5)], lambda x: F.avg_pool2d(x, 3, 2, 1, True, False))


def elementwise():
    x = (2, 3, 5)
    for name, function in {"SiLU": F.silu, "ReLU": F.relu, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid}.items():
        case(name, name, {}, [normal(*x)], function)
    for kind in ("none", "tanh"):
        case(f"GELU {kind}", "GELU", {"approximate": kind}, [normal(*x)], lambda x, k=kind: F.gelu(x, approximate=k))
    for axis in (-1, 0):
        case(f"Softmax {axis}", "Softmax", {"axis": axis}, [normal(*x)], lambda x, a=axis: F.softmax(x, a))
    case("LayerNorm", "LayerNorm", {"dim": 5, "eps": 1e-5}, [normal(*x)], lambda x, weight, bias: F.layer_norm(x, (5,), weight, bias, 1e-5),
         {"weight": normal(5), "bias": normal(5)})
    case("RMSNorm", "RMSNorm", {"dim": 5, "eps": 1e-6}, [normal(*x)], lambda x, weight: F.rms_norm(x, (5,), weight, 1e-6), {"weight": normal(5)})
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((1,), (2, 3))]
    pairs = {"Add": torch.add, "Subtract": torch.subtract, "Multiply": torch.multiply, "Divide": torch.divide}
    for kind, function in pairs.items():
        for a, b in shapes:
            case(f"{kind} {list(a)} {list(b)}", kind, {}, [normal(*a), positive(*b)], function)
    case("Residual", "Residual", {"scale": 0.5}, [normal(*x), normal(*x)], lambda x, y: x + 0.5 * y)
    names = {n: getattr(torch, n) for n in ("exp", "log", "sqrt", "abs", "sin", "cos", "tanh", "sigmoid", "relu", "where")}
    for formula, inputs in {"in0 / (1 + exp(-in0))": 1, "where(in0 > in1, in0 ** 2, -in1 ** 3 + 0.5)": 2, "log(in0 + 2) * sqrt(in1) - in0 ** -in1 / 2 ** in0": 2,
                            "maximum(in0, in1 * 0.8) + minimum(in1, 1) * relu(sin(in0) - cos(in1))": 2, "-abs(tanh(in0) - sigmoid(in1)) ** 1.5": 2,
                            "2 * 3 - in0 / (in1 - -4) * 1e-1": 2}.items():
        def compute(*given, formula=formula):
            scalar = lambda v: v if torch.is_tensor(v) else torch.tensor(float(v), dtype=torch.float64)
            own = names | {"maximum": lambda a, b: torch.maximum(scalar(a), scalar(b)), "minimum": lambda a, b: torch.minimum(scalar(a), scalar(b))}
            return eval(formula, {"__builtins__": {}}, own | {f"in{i}": g for i, g in enumerate(given)})
        case("Expression " + formula, "Expression", {"formula": formula, "inputs": inputs}, [positive(2, 3), positive(3)][:inputs], compute)


def shapes():
    case("Reshape", "Reshape", {"shape": "0, -1, 2, 3"}, [normal(2, 4, 6)], lambda x: x.reshape(2, 4, 2, 3))
    case("Flatten", "Flatten", {}, [normal(2, 3, 2, 2)], lambda x: torch.flatten(x, 1))
    case("Transpose", "Transpose", {"perm": "0, 3, 1, 2"}, [normal(2, 3, 2, 2)], lambda x: x.permute(0, 3, 1, 2))
    slices = [({"axis": 1, "begin": 1, "end": 4}, lambda x: x[:, 1:4]), ({"axis": 1, "begin": -3}, lambda x: x[:, -3:]),
              ({"axis": -1, "begin": 1, "end": -1, "step": 2}, lambda x: x[..., 1:-1:2]), ({"axis": 1, "kind": "index", "begin": -1}, lambda x: x[:, -1])]
    for params, function in slices:
        case(f"Slice {params}", "Slice", params, [normal(2, 6, 7)], function)
    case("Concat", "Concat", {"inputs": 2, "axis": 1}, [normal(2, 1, 3), normal(2, 2, 3)], lambda a, b: torch.cat([a, b], 1))
    case("Split", "Split", {"sizes": "1,3", "axis": 1}, [normal(2, 4, 3)], lambda x: torch.split(x, [1, 3], 1))
    for kind, function in {"ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax}.items():
        for axis, keep in (((-1,), False), ((0, 2), True), ((1,), False)):
            case(f"{kind} {axis}", kind, {"axis": ",".join(map(str, axis)), "keep_dims": keep}, [normal(2, 3, 4)],
                 lambda x, f=function, a=axis, k=keep: f(x, a, keepdim=k))
    case("ReduceMax of equal numbers", "ReduceMax", {"axis": "1"}, [torch.tensor([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]]).double()], lambda x: torch.amax(x, 1))
    case("MatMul", "MatMul", {}, [normal(2, 3, 4), normal(4, 5)], torch.matmul)
    case("MatMul transposed", "MatMul", {"transpose_a": True, "transpose_b": True}, [normal(2, 1, 4, 3), normal(3, 5, 4)],
         lambda a, b: a.transpose(-1, -2) @ b.transpose(-1, -2))
    case("Branch", "Branch", {}, [torch.tensor([0.5, -1.0, 0.0]).double(), normal(3, 2, 2), normal(3, 2, 2)],
         lambda c, a, b: torch.where(c.reshape(3, 1, 1) > 0, a, b))


def layers():
    case("Dense", "Dense", {"in_channels": 4, "out_channels": 3, "has_bias": True}, [normal(2, 3, 4)],
         lambda x, weight, bias: F.linear(x, weight, bias), {"weight": normal(3, 4), "bias": normal(3)})
    case("Embedding", "Embedding", {"vocab_size": 5, "embedding_size": 3, "padding_idx": 1}, [torch.tensor([[0, 1, 4], [1, 2, 2]])],
         lambda ids, weight: F.embedding(ids, weight, 1), {"weight": normal(5, 3)})

    def attention(name, heads, kv_heads, causal, keys):
        def compute(q, k, v):
            parts = [t.unflatten(-1, (n, 3)).transpose(1, 2) for t, n in ((q, heads), (k, kv_heads), (v, kv_heads))]
            return F.scaled_dot_product_attention(*parts, is_causal=causal, enable_gqa=True).transpose(1, 2).flatten(2)
        case(name, "Attention", {"num_heads": heads, "num_kv_heads": kv_heads, "head_dim": 3, "causal": causal},
             [normal(2, 4, heads * 3), normal(2, keys, kv_heads * 3), normal(2, keys, kv_heads * 3)], compute)

    attention("Attention causal", 2, 2, True, 4)
    attention("Attention cross, grouped", 4, 2, False, 3)

    def experts(name, kind, count, top, renormalise):
        """Mixtral's block (Jiang et al., arXiv:2401.04088) and the load-balancing loss of its published implementation, for one layer."""
        def compute(x, router, up, down, gate=None):
            rows = x.flatten(0, -2)
            probabilities = torch.softmax(rows @ router.T, -1)
            share, chosen = torch.topk(probabilities, top, -1)
            if renormalise:
                share = share / share.sum(-1, keepdim=True)
            out = torch.zeros_like(rows)
            for n in range(rows.shape[0]):
                total = 0
                for k in range(top):
                    e = chosen[n, k]
                    inside = F.silu(gate[e] @ rows[n]) * (up[e] @ rows[n]) if gate is not None else F.gelu(up[e] @ rows[n])
                    total = total + share[n, k] * (down[e] @ inside)
                out[n] = total
            sent = F.one_hot(chosen, count).double().mean(0)  # [K, E]
            balance = count * (sent * probabilities.mean(0)).sum() * 0.05
            return out.reshape(x.shape), balance
        weights = {"router": normal(count, 4), "up": normal(count, 6, 4), "down": normal(count, 4, 6)} | ({"gate": normal(count, 6, 4)} if kind == "swiglu" else {})
        case(name, "MixtureOfExperts",
             {"hidden_size": 4, "intermediate_size": 6, "num_experts": count, "top_k": top, "kind": kind, "renormalise": renormalise, "balance": 0.05},
             [normal(2, 5, 4)], compute, weights, training=True, auxiliary=True)

    experts("MixtureOfExperts, two of four", "swiglu", 4, 2, True)
    experts("MixtureOfExperts, one of three, as it is (Switch)", "gelu", 3, 1, False)


images()
elementwise()
shapes()
layers()
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "fixtures" / "cells")
folder.mkdir(parents=True, exist_ok=True)
(folder / "cells.json").write_text(json.dumps({"torch": torch.__version__, "cases": cases}, indent=1) + "\n")
save_file(tensors, folder / "cells.safetensors")
