"""Runs the Python that `celloom-engine code` writes, in the framework that it is written for, and records or compares what it gives.

    venv/bin/python check_code.py --to pytorch   --engine build/release/bin/celloom-engine --cases tests/fixtures/code [--record]
    venv/bin/python check_code.py --to mindspore …

Weights and inputs follow from their names, so that every framework sees the same; NAME.safetensors holds them and, as "pytorch.OUTPUT" and
"mindspore.OUTPUT", the results, which the test code_outputs holds the engine to. Record with PyTorch first. outputs.json says of which text
(SHA-256) the recorded results are. Needs numpy and the framework alone.
"""
import argparse
import hashlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

TOLERANCE = 1e-5  # of the largest number in the output


def read_st(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    kinds = {"F32": np.float32, "I64": np.int64, "BOOL": np.bool_}
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = np.frombuffer(data[8 + size + begin:8 + size + end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return out


def write_st(path, tensors):
    kinds = {"float32": "F32", "int64": "I64", "bool": "BOOL"}
    header, body = {}, b""
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        header[name] = {"dtype": kinds[value.dtype.name], "shape": list(value.shape), "data_offsets": [len(body), len(body) + value.nbytes]}
        body += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def random_of(name):
    return np.random.RandomState(zlib.crc32(name.encode()))


def weight(path, shape):
    """Small enough that layers do not saturate, none of them zero."""
    draw = random_of("weight " + path).standard_normal(shape)
    if path.endswith("running_var"):
        return (1 + 0.3 * np.abs(draw)).astype(np.float32)
    if len(shape) == 1:
        return ((0 if path.endswith("bias") or path.endswith("running_mean") else 1) + 0.2 * draw).astype(np.float32)
    fan_in = int(np.prod(shape[1:])) if len(shape) != 3 else shape[2]
    return (draw / np.sqrt(fan_in)).astype(np.float32)


def input_of(case, name, spec):
    random = random_of("input %s %s" % (case, name))
    shape = tuple(spec["shape"])
    if spec["kind"].startswith("ids:"):
        return random.randint(0, int(spec["kind"][4:]), shape).astype(np.int64)
    if spec["kind"] == "bool":
        value = random.rand(*shape) < 0.7
        value[..., 0] = True  # no query sees nothing
        return value
    return random.standard_normal(shape).astype(np.float32)


class PyTorch:
    name = "pytorch"

    def __init__(self):
        import torch
        self.torch = torch
        torch.set_num_threads(1)

    def run(self, network, inputs):
        """Fills the network by name and calls it; gives the weights by path, and the outputs in order."""
        torch = self.torch
        weights = {path: weight(path, tuple(value.shape)) for path, value in network.state_dict().items() if not path.endswith("num_batches_tracked")}
        network.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
        network.eval()
        with torch.no_grad():
            out = network(*[torch.from_numpy(np.array(v)) for v in inputs])
        return weights, [o.numpy() for o in (out if isinstance(out, (tuple, list)) else [out])]


class MindSpore:
    name = "mindspore"

    def __init__(self):
        os.environ.setdefault("GLOG_v", "3")
        import mindspore as ms
        self.ms = ms

    def run(self, network, inputs):
        """MindSpore says gamma, beta, embedding_table, moving_mean and moving_variance; everything else is the path."""
        ms = self.ms
        norms = {path for path, cell in network.cells_and_names() if isinstance(cell, (ms.nn.LayerNorm, ms.nn.BatchNorm2d))}
        tables = {path for path, cell in network.cells_and_names() if isinstance(cell, ms.nn.Embedding)}
        say = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
        weights = {}
        for parameter in network.get_parameters():
            owner, _, last = parameter.name.rpartition(".")
            if owner in norms:
                last = say[last]
            if owner in tables:
                last = "weight"
            path = owner + "." + last if owner else last
            weights[path] = weight(path, tuple(parameter.shape))
            parameter.set_data(ms.Tensor(weights[path]))
        network.set_train(False)
        out = network(*[ms.Tensor(v) for v in inputs])
        return weights, [o.asnumpy() for o in (out if isinstance(out, (tuple, list)) else [out])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", choices=["pytorch", "mindspore"], required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only")
    options = parser.parse_args()
    framework = PyTorch() if options.to == "pytorch" else MindSpore()
    summary_path = os.path.join(options.cases, "outputs.json")
    summary = json.load(open(summary_path)) if os.path.exists(summary_path) else {}
    failures = 0
    for case in json.load(open(os.path.join(options.cases, "cases.json"))):
        name = case["name"]
        if options.only and options.only != name:
            continue
        model = os.path.join(options.cases, case["model"]) if case["model"].endswith(".json") else case["model"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network_%s.py" % name)
            command = [options.engine, "code", model, "--to", options.to, "--out", path, "--json"]
            for key, value in case["set"].items():
                command += ["--set", "%s=%s" % (key, value)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print("%-28s %s" % (name, done.stderr.strip()))
                failures += 1
                continue
            spec = importlib.util.spec_from_file_location("network_" + name, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            network = getattr(module, json.loads(done.stdout)["class"])()
            digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
        inputs = {k: input_of(name, k, v) for k, v in case["inputs"].items()}
        weights, results = framework.run(network, list(inputs.values()))
        record_path = os.path.join(options.cases, name + ".safetensors")
        held = read_st(record_path) if os.path.exists(record_path) else {}
        outputs = {"%s.%d" % (options.to, i): np.array(r, np.float32) for i, r in enumerate(results)}
        worst = 0.0
        for key, value in outputs.items():
            number = key.rsplit(".", 1)[1]
            for other in (options.to, "pytorch", "mindspore"):
                if other + "." + number in held and not (options.record and other == options.to):
                    expected = held[other + "." + number]
                    scale = max(1.0, float(np.abs(expected).max()))
                    worst = max(worst, float(np.abs(value - expected).max()) / scale if value.shape == expected.shape else np.inf)
        isnan = any(not np.isfinite(v).all() for v in outputs.values())
        is_good = worst <= TOLERANCE and not isnan
        failures += not is_good
        print("%-28s %3d weights, outputs %s, largest difference %.2e%s" % (name, len(weights), [list(r.shape) for r in results], worst, "" if is_good else "  FAILED"))
        if options.record:
            kept = {k: v for k, v in held.items() if not k.startswith(options.to + ".")}
            kept.update(outputs)
            kept.update({"weights." + k: v for k, v in weights.items()})
            kept.update({"inputs." + k: v for k, v in inputs.items()})
            write_st(record_path, kept)
            summary.setdefault(name, {})[options.to] = digest
    if options.record:
        with open(summary_path, "w") as f:
            json.dump(summary, f, indent=1, sort_keys=True)
            f.write("\n")
    return 1 if failures else 0


sys.exit(main())
