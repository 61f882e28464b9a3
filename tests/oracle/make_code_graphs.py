"""Writes the graphs of tests/fixtures/code: together with the families' small presets they use every cell that the frameworks have.

    python3 make_code_graphs.py OUT
"""
import json
import os
import sys

OUT = sys.argv[1]
CASES = []


def graph(name, hyper, inputs, cells, wires, composites=None, outputs=None):
    def port(text):
        ident, shape = text.split(":", 1)
        shape, _, dtype = shape.partition("]")
        entry = {"name": ident}
        dims = [d.strip() for d in shape.strip().lstrip("[").split(",") if d.strip()]
        if dims:
            entry["shape"] = dims
        if dtype.strip():
            entry["dtype"] = dtype.strip()
        return entry

    def body(title, hyper, inputs, cells, wires, outputs):
        return {
            "name": title,
            "hyper": [{"name": k, "value": v} for k, v in hyper.items()],
            "inputs": [port(i) for i in inputs],
            "outputs": [port(o) for o in outputs],
            "cells": [dict({"name": c[0], "type": c[1]}, **({"params": c[2]} if len(c) > 2 and c[2] else {}), **({"repeat": c[3]} if len(c) > 3 else {}))
                      for c in cells],
            "wires": wires,
        }

    doc = {"format": "celloom-cells", "schema": 1, "main": body(name, hyper, inputs, cells, wires, outputs or ["out:"])}
    if composites:
        doc["composites"] = {k: body(k, *v) for k, v in composites.items()}
    with open(os.path.join(OUT, name + ".cells.json"), "w", encoding="utf-8") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


def case(name, inputs, model=None, overrides=None):
    """inputs: name -> (shape, kind); kind: normal, image, ids:N, bool."""
    CASES.append({"name": name, "model": model or name + ".cells.json", "set": overrides or {},
                  "inputs": {k: {"shape": list(s), "kind": kind} for k, (s, kind) in inputs.items()}})


small = {"vocab": 96, "hidden": 32, "layers": 2, "heads": 4, "intermediate": 48}
ids = {"input_ids": ((2, 11), "ids:96")}
case("baichuan_rotary", ids, "baichuan-tiny", small)
case("baichuan_alibi", ids, "baichuan-tiny-alibi", {**small, "hidden": 48, "heads": 6})
case("baichuan_grouped", ids, "baichuan-tiny-gqa", {**small, "kv_heads": 2})
case("baichuan2_normalised_head", ids, "baichuan2-tiny", small)
case("internlm_biases", ids, "internlm-tiny", small)
case("internlm2_packed_groups", ids, "internlm2-tiny", {**small, "kv_heads": 2, "max_positions": 8})
case("internlm3_head_size", ids, "internlm3-tiny", {**small, "kv_heads": 2})
case("transformer_llama", ids, "transformer-tiny", {**small, "kv_heads": 2})

graph("tied_positions", {"hidden": 16, "vocab": 40, "heads": 2}, ["ids: [B, T] int64"],
      [("embedding", "Embedding", {"vocab_size": "vocab", "embedding_size": "hidden", "shares_weight": True, "padding_idx": 0}),
       ("linear", "RotaryEmbedding", {"num_heads": "heads", "head_dim": "hidden / heads", "scaling": "linear", "factor": 4}),
       ("dynamic", "RotaryEmbedding", {"num_heads": "heads", "head_dim": "hidden / heads", "scaling": "dynamic", "factor": 2, "max_positions": 6}),
       ("llama3", "RotaryEmbedding", {"num_heads": "heads", "head_dim": "hidden / heads", "scaling": "llama3", "factor": 8, "max_positions": 64}),
       ("attention", "Attention", {"num_heads": "heads", "num_kv_heads": "heads", "head_dim": "hidden / heads", "causal": False, "dropout": 0.1}),
       ("norm", "LayerNorm", {"dim": "hidden"}),
       ("act", "GELU", {"approximate": "tanh"}),
       ("drop", "Dropout", {"p": 0.2}),
       ("skip", "Residual", {"scale": 0.5}),
       ("head", "LMHead", {"hidden_size": "hidden", "vocab_size": "vocab", "kind": "tied"})],
      ["ids -> embedding.ids", "embedding.out -> linear.x", "embedding.out -> dynamic.x", "embedding.out -> llama3.x", "linear.out -> attention.q",
       "dynamic.out -> attention.k", "llama3.out -> attention.v", "attention.out -> norm.x", "norm.out -> act.x", "act.out -> drop.x",
       "embedding.out -> skip.x", "drop.out -> skip.branch", "skip.out -> head.x", "embedding.weight -> head.weight", "head.logits -> out"])
case("tied_positions", {"ids": ((2, 9), "ids:40")})

graph("masked_cross_attention", {"width": 24, "heads": 3}, ["query: [B, T, width]", "memory: [B, S, width]", "mask: [B, T, S] bool"],
      [("norm", "LayerNorm", {"dim": "width", "eps": 1e-6}), ("q", "Dense", {"in_channels": "width", "out_channels": "width", "has_bias": True}),
       ("k", "Dense", {"in_channels": "width", "out_channels": "width / 3"}), ("v", "Dense", {"in_channels": "width", "out_channels": "width / 3"}),
       ("attend", "Attention", {"num_heads": "heads", "num_kv_heads": 1, "head_dim": "width / heads", "causal": False, "position": "alibi"}),
       ("gate", "Dense", {"in_channels": "2 * width", "out_channels": "width"}), ("both", "Concat"), ("open", "Sigmoid"), ("gated", "Multiply"),
       ("sum", "Add")],
      ["query -> norm.x", "norm.out -> q.x", "memory -> k.x", "memory -> v.x", "q.out -> attend.q", "k.out -> attend.k", "v.out -> attend.v",
       "mask -> attend.mask", "query -> both.in0", "attend.out -> both.in1", "both.out -> gate.x", "gate.out -> open.x", "open.out -> gated.a",
       "attend.out -> gated.b", "query -> sum.a", "gated.out -> sum.b", "sum.out -> out"])
case("masked_cross_attention", {"query": ((2, 5, 24), "normal"), "memory": ((2, 7, 24), "normal"), "mask": ((2, 5, 7), "bool")})

graph("multi_task", {"size": 12, "classes": 5}, ["x: [B, size]"],
      [("trunk", "Block", {"size": "size"}, "3"), ("halves", "Split", {"sizes": "size / 2, size / 2"}), ("classes", "Dense", {"in_channels": "size / 2", "out_channels": "classes"}),
       ("probabilities", "Softmax"), ("value", "Dense", {"in_channels": "size / 2", "out_channels": 1, "has_bias": True}), ("squashed", "Tanh")],
      ["x -> trunk.x", "trunk.out -> halves.x", "halves.out0 -> classes.x", "halves.out1 -> value.x", "classes.out -> probabilities.x", "value.out -> squashed.x",
       "probabilities.out -> class_scores", "squashed.out -> value_estimate"],
      {"Block": ({"size": 8, "inner": "roundUp(size * 8 / 3, 4)"}, ["x: [B, size]"],
                 [("up", "Dense", {"in_channels": "size", "out_channels": "inner"}), ("act", "ReLU"), ("down", "Dense", {"in_channels": "inner", "out_channels": "size"}),
                  ("skip", "Residual")],
                 ["x -> up.x", "up.out -> act.x", "act.out -> down.x", "x -> skip.x", "down.out -> skip.branch", "skip.out -> out"], ["out: [B, size]"])},
      ["class_scores: [B, classes]", "value_estimate: [B, 1]"])
case("multi_task", {"x": ((4, 12), "normal")})

graph("image_classifier", {"channels": 8, "classes": 10}, ["image: [B, 3, 16, 16]"],
      [("conv1", "Conv2d", {"in_channels": 3, "out_channels": "channels", "kernel_size": "3", "padding": "1", "has_bias": True}), ("norm1", "BatchNorm2d", {"num_features": "channels"}),
       ("act1", "ReLU"), ("pool1", "MaxPool2d", {"kernel_size": "2"}),
       ("conv2", "Conv2d", {"in_channels": "channels", "out_channels": "2 * channels", "kernel_size": "3, 5", "stride": "2", "pad_mode": "same", "group": 2}),
       ("norm2", "BatchNorm2d", {"num_features": "2 * channels", "eps": 1e-3, "momentum": 0.8}), ("act2", "SiLU"),
       ("conv3", "Conv2d", {"in_channels": "2 * channels", "out_channels": "channels", "kernel_size": "2", "padding": "1, 0, 2, 1", "dilation": "2"}),
       ("pool2", "AvgPool2d", {"kernel_size": "2, 3", "stride": "1", "padding": "1", "count_include_pad": False}),
       ("pool3", "MaxPool2d", {"kernel_size": "3", "stride": "2", "padding": "1"}), ("flat", "Flatten"), ("head", "Dense", {"in_channels": "6 * channels", "out_channels": "classes", "has_bias": True})],
      ["image -> conv1.x", "conv1.out -> norm1.x", "norm1.out -> act1.x", "act1.out -> pool1.x", "pool1.out -> conv2.x", "conv2.out -> norm2.x", "norm2.out -> act2.x",
       "act2.out -> conv3.x", "conv3.out -> pool2.x", "pool2.out -> pool3.x", "pool3.out -> flat.x", "flat.out -> head.x", "head.out -> logits"], None,
      ["logits: [B, classes]"])
case("image_classifier", {"image": ((2, 3, 16, 16), "normal")})

graph("vision_text_fusion", {"width": 16, "heads": 2, "patch": 4, "vocab": 50}, ["image: [B, 3, 8, 12]", "ids: [B, T] int64"],
      [("patches", "Conv2d", {"in_channels": 3, "out_channels": "width", "kernel_size": "patch", "stride": "patch"}), ("rows", "Reshape", {"shape": "0, width, -1"}),
       ("tokens", "Transpose", {"perm": "0, 2, 1"}), ("class_token", "Parameter", {"shape": "1, width"}), ("seen", "Concat", {"axis": 1}),
       ("positions", "Parameter", {"shape": "7, width", "init": "zeros"}), ("placed", "Add"), ("words", "Embedding", {"vocab_size": "vocab", "embedding_size": "width"}),
       ("attend", "Attention", {"num_heads": "heads", "num_kv_heads": "heads", "head_dim": "width / heads", "causal": False}), ("joined", "Residual"),
       ("first", "Slice", {"axis": 1, "kind": "index"}), ("pooled", "ReduceMean", {"axis": "1"}), ("gate", "Dense", {"in_channels": "width", "out_channels": "width"}),
       ("mixed", "Expression", {"formula": "sigmoid(in0) * in1 + (1 - sigmoid(in0)) * in2", "inputs": 3})],
      ["image -> patches.x", "patches.out -> rows.x", "rows.out -> tokens.x", "image -> class_token.like", "class_token.out -> seen.in0", "tokens.out -> seen.in1",
       "seen.out -> placed.a", "positions.out -> placed.b", "ids -> words.ids", "words.out -> attend.q", "placed.out -> attend.k", "placed.out -> attend.v",
       "words.out -> joined.x", "attend.out -> joined.branch", "placed.out -> first.x", "joined.out -> pooled.x", "pooled.out -> gate.x", "gate.out -> mixed.in0",
       "first.out -> mixed.in1", "pooled.out -> mixed.in2", "mixed.out -> out"])
case("vision_text_fusion", {"image": ((2, 3, 8, 12), "normal"), "ids": ((2, 5), "ids:50")})

graph("experts", {"hidden": 12}, ["x: [B, T, hidden]"],
      [("gated", "MixtureOfExperts", {"hidden_size": "hidden", "intermediate_size": "2 * hidden", "num_experts": 4}),
       ("skip", "Residual"), ("plain", "MixtureOfExperts", {"hidden_size": "hidden", "intermediate_size": "hidden", "num_experts": 3, "top_k": 1, "kind": "gelu", "renormalise": False})],
      ["x -> gated.x", "x -> skip.x", "gated.out -> skip.branch", "skip.out -> plain.x", "plain.out -> out"])
case("experts", {"x": ((2, 6, 12), "normal")})

graph("branches", {"size": 6}, ["x: [B, size]"],
      [("judge", "Dense", {"in_channels": "size", "out_channels": 1}), ("deep", "Dense", {"in_channels": "size", "out_channels": "size", "has_bias": True}), ("bent", "Tanh"),
       ("choice", "Branch"), ("ratio", "Divide"), ("steady", "Expression", {"formula": "where(in0 > 0.5, maximum(in0, 1), exp(-in0 ** 2) + abs(in0))"})],
      ["x -> judge.x", "x -> deep.x", "deep.out -> bent.x", "judge.out -> choice.condition", "bent.out -> choice.when_true", "x -> choice.when_false", "x -> steady.in0",
       "choice.out -> ratio.a", "steady.out -> ratio.b", "ratio.out -> out"])
case("branches", {"x": ((7, 6), "normal")})

graph("arithmetic", {"n": 6, "m": 4}, ["x: [B, n, m]", "y: [B, n, m]"],
      [("scores", "MatMul", {"transpose_b": True}), ("gram", "MatMul", {"transpose_a": True}), ("difference", "Subtract"), ("rows", "Slice", {"axis": 1, "begin": 1, "end": -1}),
       ("odd", "Slice", {"axis": -1, "begin": 1, "step": 2}), ("thin", "Slice", {"axis": -2, "end": 4}), ("cut", "Split", {"sizes": "2, n - 2", "axis": 1}), ("groups", "Split", {"sizes": "1, 1", "groups": 2}),
       ("stack", "Concat", {"inputs": 3, "axis": -2}), ("total", "ReduceSum", {"axis": "1, 2", "keep_dims": True}), ("largest", "ReduceMax", {"axis": "-1", "keep_dims": True}), ("scaled", "Multiply"),
       ("shifted", "Add"), ("swapped", "Transpose", {"perm": "0, 2, 1"}), ("joined", "Flatten", {"start_dim": 1, "end_dim": 2})],
      ["x -> scores.a", "y -> scores.b", "x -> gram.a", "y -> gram.b", "x -> difference.a", "y -> difference.b", "difference.out -> rows.x", "rows.out -> odd.x",
       "difference.out -> thin.x", "x -> cut.x", "y -> groups.x", "cut.out0 -> stack.in0", "thin.out -> stack.in1", "cut.out1 -> stack.in2", "stack.out -> total.x",
       "scores.out -> largest.x", "largest.out -> scaled.a", "total.out -> scaled.b", "scaled.out -> shifted.a", "groups.out1 -> shifted.b", "gram.out -> swapped.x",
       "swapped.out -> joined.x", "shifted.out -> sums", "joined.out -> products", "odd.out -> odd"], None, ["sums:", "products:", "odd:"])
case("arithmetic", {"x": ((3, 6, 4), "normal"), "y": ((3, 6, 4), "normal")})

graph("typed_cells", {"n": 6}, ["x: [B, T, n]"],
      [("gate", "Script", {"inputs": "x: [B, T, n]", "outputs": "out: [B, T, n]", "weights": "kernel: [n, n]; bias: [n]",
                           "code": "def construct(self, x):\n    y = ops.matmul(x, self.kernel) + self.bias\n    return x * ops.sigmoid(y)\n"}),
       ("scale", "Script", {"inputs": "x: [B, T, n]", "outputs": "out: [B, T, n]; mean: [B, T, 1]", "weights": "gain: [n]",
                            "code": "import mindspore.ops as ops\n\nclass Scale(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.eps = 1e-5\n\n"
                                    "    def construct(self, x):\n        mean = torch.mean(x, -1, True)\n        return (x - mean) * self.gain + self.eps, mean\n"})],
      ["x -> gate.x", "gate.out -> scale.x", "scale.out -> out", "scale.mean -> mean"], None, ["out:", "mean:"])
case("typed_cells", {"x": ((2, 3, 6), "normal")})

with open(os.path.join(OUT, "cases.json"), "w", encoding="utf-8") as f:
    json.dump(CASES, f, indent=1)
    f.write("\n")
