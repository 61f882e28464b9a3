#!/usr/bin/env python3
"""Compares celloom-engine's logits with a plain PyTorch implementation (models.py beside this file) on the same folder.

    python tests/oracle/compare_logits.py --engine build/release/bin/celloom-engine --model EXPORTED_FOLDER

Needs torch, safetensors and numpy (a throw-away virtual environment will do). EXPORTED_FOLDER holds config.json and
model.safetensors, as `celloom-engine export-model` writes them. Prints the largest difference; exits 1 above the tolerance.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

from models import CausalLM, Cfg


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.model)
    config = Cfg(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    model = CausalLM(config)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    model.eval()

    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(3, config["vocab_size"], (2, arguments.length), generator=generator)
    with torch.no_grad():
        expected = model(input_ids=ids, labels=ids)
    with tempfile.TemporaryDirectory() as scratch:
        inputs, outputs = f"{scratch}/inputs.safetensors", f"{scratch}/outputs.safetensors"
        save_file({"input_ids": ids, "labels": ids.clone()}, inputs)
        subprocess.run([arguments.engine, "forward", "--model", str(folder), "--inputs", inputs, "--out", outputs], check=True)
        got = load_file(outputs)
    logits = (got["logits"] - expected["logits"]).abs().max().item()
    loss = abs(got["loss"].item() - expected["loss"].item())
    print(f"largest logit difference {logits:.2e} (largest logit {expected['logits'].abs().max():.2f}), loss {got['loss'].item():.6f}, difference {loss:.2e}")
    return 0 if logits <= arguments.tolerance and loss <= arguments.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
