"""Seeds of the fuzzers' corpora: small files of each format, right ones and nearly right ones. Writes tests/fuzz/corpus; what a fuzzer found
lies there too, under the name that libFuzzer gave it. Needs PyTorch (tests/oracle/requirements-torch.txt)."""
import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict

import torch

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(target, name, content):
    os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
    with open(os.path.join(CORPUS, target, name), "wb") as f:
        f.write(content)


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def saved(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(tag, dims, kind, content):
    return field(1, field(1, tag) + field(2, b"".join(b"\x08" + varint(d) for d in dims) + field(2, kind) + field(3, content)))


one = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
put("safetensors", "one", safetensors({"x": one}, bytes(16)))
put("safetensors", "two", safetensors({"__metadata__": {"format": "pt"}, "x": one, "y": {"dtype": "U8", "shape": [], "data_offsets": [16, 17]}}, bytes(17)))
put("safetensors", "empty", safetensors({}))
put("safetensors", "zero", safetensors({"x": {"dtype": "BF16", "shape": [0, 7], "data_offsets": [0, 0]}}))

base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
kinds = {
    "plain": {"w": base},
    "ordered": OrderedDict(a=base.t(), b=base[1:, 1::2], c=base),
    "parameter": {"w": torch.nn.Parameter(base)},
    "training": {"state_dict": {"w": base}, "epoch": 3, "rate": 0.5, "name": "x", "none": None, "list": [1, (2, 3)]},
    "unsigned": {"w": torch.zeros(2, dtype=torch.uint16)},
}
for name, value in kinds.items():
    for protocol in (2, 4):
        archive = saved(value, pickle_protocol=protocol)
        put("torch", f"{name}-{protocol}", archive)
        # The pickle target has one storage "0" of 16 bytes.
        with zipfile.ZipFile(io.BytesIO(archive)) as z:
            put("pickle", f"{name}-{protocol}", z.read(next(n for n in z.namelist() if n.endswith("data.pkl"))))
with zipfile.ZipFile(io.BytesIO(saved({"w": torch.ones(2, 2), "v": torch.ones(2, 2).t()}))) as z:
    put("pickle", "fits", z.read(next(n for n in z.namelist() if n.endswith("data.pkl"))))
put("pickle", "system", b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.")
put("pickle", "itself", b"\x80\x02]q\x00h\x00a.")
put("pickle", "values", pickle.dumps([1, -1, 2**40, 1.5, "x", b"y", None, True, (1,), {"a": []}], 4))
put("torch", "legacy", saved({"w": base}, _use_new_zipfile_serialization=False))
compressed = io.BytesIO()
with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("a/data.pkl", bytes(100))
put("torch", "compressed", compressed.getvalue())

put("ckpt", "one", record(b"w", [2, 2], b"Float32", bytes(16)))
put("ckpt", "pieces", record(b"w", [2, 2], b"Float32", bytes(8)) * 2 + record(b"s", [0], b"Int64", bytes(8)))
put("ckpt", "packed", field(1, field(1, b"w") + field(2, field(1, b"\x02\x02") + field(2, b"Float16") + field(3, bytes(8)))))
put("ckpt", "text", field(1, field(1, b"t") + field(2, field(2, b"str") + field(3, b"abcd"))) + record(b"w", [1], b"Bool", b"\x01"))
put("ckpt", "rows", record(b"w", [1 << 63], b"Float32", bytes(16)))
