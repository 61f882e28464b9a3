"""Checkpoints in the formats of other programs: what torch.save and mindspore.save_checkpoint write. Two environments, one half each:

    python gen_checkpoints.py torch        # requirements-torch.txt
    python gen_checkpoints.py mindspore    # requirements-mindspore.txt

Reads the models under tests/fixtures; writes tests/fixtures/checkpoints.
"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIX = os.environ.get("ORACLE_FIXTURES", os.path.join(ROOT, "fixtures"))
OUT = os.path.join(FIX, "checkpoints")


def write_torch():
    from collections import OrderedDict

    import torch
    from safetensors.torch import load_file, save_file

    os.makedirs(OUT, exist_ok=True)
    path = lambda name: os.path.join(OUT, name)
    weights = load_file(os.path.join(FIX, "baichuan_7b", "model.safetensors"))
    torch.save({k: v.to(torch.bfloat16) for k, v in weights.items()}, path("baichuan_7b.bf16.bin"))

    # A tied model as transformers saves it: two names over one storage.
    tied = load_file(os.path.join(FIX, "llama", "llama3_tied", "model.safetensors"))
    tied["lm_head.weight"] = tied["model.embed_tokens.weight"]
    torch.save(OrderedDict(tied), path("llama3_tied.f32.bin"))

    # Shards with an index.
    packed = load_file(os.path.join(FIX, "internlm2", "model.safetensors"))
    shards = [{}, {}]
    index = {"metadata": {"total_size": 0}, "weight_map": {}}
    for i, (name, tensor) in enumerate(sorted(packed.items())):
        shards[i % 2][name] = tensor.to(torch.float16)
        index["weight_map"][name] = f"pytorch_model-{i % 2 + 1:05}-of-00002.bin"
        index["metadata"]["total_size"] += 2 * tensor.numel()
    os.makedirs(path("internlm2.f16"), exist_ok=True)
    for i, shard in enumerate(shards):
        torch.save(shard, path(f"internlm2.f16/pytorch_model-{i + 1:05}-of-00002.bin"))
    with open(path("internlm2.f16/pytorch_model.bin.index.json"), "w") as f:
        json.dump(index, f, indent=2)

    # Everything that a state dict may hold, and the same values contiguous.
    base = torch.arange(60, dtype=torch.float32).reshape(5, 12) / 7
    module = torch.nn.Linear(3, 2)
    torch.nn.init.normal_(module.weight, generator=torch.Generator().manual_seed(1))
    all_kinds = OrderedDict(module.state_dict())
    all_kinds["transposed"] = base.t()
    all_kinds["sliced"] = base[1:4, 2:11:3]
    all_kinds["tied"] = base
    all_kinds["scalar"] = torch.tensor(2.5, dtype=torch.float64)
    all_kinds["empty"] = torch.zeros(0, 7)
    all_kinds["parameter"] = torch.nn.Parameter(base[0].clone())
    all_kinds["名字"] = torch.ones(2)
    for kind in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
                 "uint16", "uint32", "uint64"):
        all_kinds["t." + kind] = torch.tensor([0, 1, 1, 0, 1]).to(getattr(torch, kind))
    save_file({k: v.detach().contiguous().clone() for k, v in all_kinds.items()}, path("all_kinds.safetensors"))
    torch.save(all_kinds, path("all_kinds.bin"))
    torch.save(all_kinds, path("all_kinds.protocol4.bin"), pickle_protocol=4)
    torch.save({"epoch": 3, "state_dict": module.state_dict(), "note": "x"}, path("training.bin"))
    torch.save({"w": base}, path("legacy.bin"), _use_new_zipfile_serialization=False)
    torch.save({"w": torch.ones(1).expand(1000)}, path("expanded.bin"))
    torch.save(module, path("whole_module.bin"))


def mindformers_name(name):
    """HF to MindFormers, as its convert_weight.py maps them."""
    for old, new in (("embed_tokens.weight", "tok_embeddings.embedding_weight"), (".self_attn.q_proj.", ".attention.wq."),
                     (".self_attn.k_proj.", ".attention.wk."), (".self_attn.v_proj.", ".attention.wv."),
                     (".self_attn.o_proj.", ".attention.wo."), (".mlp.gate_proj.", ".feed_forward.w1."),
                     (".mlp.down_proj.", ".feed_forward.w2."), (".mlp.up_proj.", ".feed_forward.w3."),
                     (".input_layernorm.", ".attention_norm."), (".post_attention_layernorm.", ".ffn_norm."),
                     (".norm.", ".norm_out.")):
        name = name.replace(old, new)
    return name


def write_mindspore():
    import mindspore as ms
    import numpy as np
    from mindspore.train import serialization
    from safetensors.numpy import load_file

    os.makedirs(OUT, exist_ok=True)
    path = lambda name: os.path.join(OUT, name)

    def save(tensors, name, **kwargs):
        if os.path.exists(path(name)):
            os.remove(path(name))
        ms.save_checkpoint([{"name": k, "data": v} for k, v in tensors.items()], path(name), **kwargs)
        os.chmod(path(name), 0o644)

    tensors = {}
    for name, value in load_file(os.path.join(FIX, "baichuan_7b", "model.safetensors")).items():
        if "W_pack" in name:
            for part, rows in zip(("wq", "wk", "wv"), np.split(value, 3)):
                tensors[name.replace(".self_attn.W_pack", ".attention." + part)] = ms.Tensor(rows, ms.float16)
        else:
            tensors[mindformers_name(name)] = ms.Tensor(value, ms.float16)
    save(tensors, "baichuan_7b.f16.ckpt")

    tensors = {}
    for name, value in load_file(os.path.join(FIX, "internlm2", "model.safetensors")).items():
        for old, new in (("tok_embeddings.weight", "tok_embeddings.embedding_weight"), ("wqkv", "w"), (".norm.", ".norm_out."),
                         ("output", "lm_head")):
            name = name.replace(old, new)
        tensors[name] = ms.Tensor(value, ms.float32).astype(ms.bfloat16)
    save(tensors, "internlm2.bf16.ckpt")

    kinds = {"t." + kind: ms.Tensor(np.array([0, 1, 1, 0, 1]), getattr(ms, kind if kind != "bool" else "bool_"))
             for kind in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64")}
    kinds["t.bfloat16"] = ms.Tensor(np.array([0, 1, 1, 0, 1], np.float32)).astype(ms.bfloat16)
    kinds["scalar"] = ms.Tensor(2.5, ms.float64)
    kinds["名字"] = ms.Tensor(np.ones((2, 1), np.float32))
    save(kinds, "all_kinds.ckpt", crc_check=True)

    serialization.SLICE_SIZE = 1  # KiB instead of 512 MiB, so that a small tensor is split as a large one is
    rows = np.arange(1200, dtype=np.float32).reshape(300, 4)
    save({"a": ms.Tensor(np.full((2, 2), 3, np.float32)), "split": ms.Tensor(rows), "z": ms.Tensor(rows[0])}, "split.ckpt")


if __name__ == "__main__":
    {"torch": write_torch, "mindspore": write_mindspore}[sys.argv[1]]()
