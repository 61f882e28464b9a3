#!/usr/bin/env python3
"""Folders that Celloom exports, opened by other programs: their logits are written to tests/fixtures/exports, which a test holds ours to.

    python3 tests/oracle/check_exports.py --engine build/release/bin/celloom-engine [--out tests/fixtures/exports] [--here]

Makes a virtual environment of its own from requirements-torch.txt (--here: uses this interpreter's torch and transformers instead) and, for
each fixture below, lets celloom-engine export it to a scratch folder. Llama and InternLM3 folders are then opened by transformers' own
classes, the others by models.py beside this file. Exits 1 where a name is missing, unexpected or mis-shaped, or where the logits differ from the engine's
by more than 5e-5. One file a fixture: input_ids, logits; summary.json says who opened what.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
TRANSFORMERS = ["internlm3", "llama/llama3_tied", "llama/dynamic", "llama/linear"]
PLAIN = ["baichuan_7b", "baichuan_13b", "baichuan2_7b", "baichuan2_13b", "internlm", "internlm2", "internlm2_bias",
         "internlm3_qkvbias"]  # transformers refuses an InternLM3 whose q, k, v have biases and whose output has none
TOLERANCE = 5e-5


def in_own_environment():
    """Runs this script again inside a new virtual environment."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = str(pathlib.Path(scratch) / "bin/python")
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", str(HERE / "requirements-torch.txt")], check=True)
        return subprocess.run([python, *sys.argv, "--here"]).returncode


def open_in_transformers(folder):
    from transformers import AutoModelForCausalLM
    model, loading = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, trust_remote_code=False,
                                                          attn_implementation="eager")
    problems = {key: sorted(map(str, value)) for key, value in loading.items() if value}
    return model.eval(), f"transformers {type(model).__name__}", problems, lambda ids: model(ids).logits


def open_plainly(folder):
    from safetensors.torch import load_file
    from models import CausalLM, Cfg
    model = CausalLM(Cfg(json.loads((folder / "config.json").read_text(encoding="utf-8"))))
    result = model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    problems = {key: list(value) for key, value in (("missing_keys", result.missing_keys), ("unexpected_keys", result.unexpected_keys)) if value}
    return model.eval(), "models.py " + model.fam, problems, lambda ids: model(input_ids=ids)["logits"]


def check(name, opener, engine, out):
    import torch
    from safetensors.torch import load_file, save_file
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "exported"
        subprocess.run([engine, "export-model", str(FIXTURES / name), "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
        model, opened_by, problems, logits_of = opener(folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        ids = torch.randint(3, config["vocab_size"], (1, 16), generator=torch.Generator().manual_seed(11))
        with torch.no_grad():
            logits = logits_of(ids).float()
        save_file({"input_ids": ids}, f"{scratch}/inputs.safetensors")
        subprocess.run([engine, "forward", "--model", str(folder), "--inputs", f"{scratch}/inputs.safetensors", "--out",
                        f"{scratch}/outputs.safetensors"], check=True, stdout=subprocess.DEVNULL)
        ours = load_file(f"{scratch}/outputs.safetensors")["logits"]
    difference = (ours - logits).abs().max().item()
    print(f"{name:20s} {opened_by:36s} largest difference {difference:.1e}, largest logit {logits.abs().max():.2f}", problems or "")
    save_file({"input_ids": ids, "logits": logits.contiguous()}, out / (name.replace("/", "_") + ".safetensors"))
    return difference <= TOLERANCE and not problems, {"opened_by": opened_by, "largest_difference": difference, "config": config}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=FIXTURES / "exports")
    parser.add_argument("--here", action="store_true", help="this interpreter has torch, transformers and safetensors")
    arguments = parser.parse_args()
    if not arguments.here:
        return in_own_environment()
    import torch
    import transformers
    arguments.out.mkdir(parents=True, exist_ok=True)
    summary = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "tolerance": TOLERANCE, "folders": {}}
    is_good = True
    for names, opener in ((TRANSFORMERS, open_in_transformers), (PLAIN, open_plainly)):
        for name in names:
            passed, row = check(name, opener, arguments.engine, arguments.out)
            is_good = is_good and passed
            summary["folders"][name] = row
    (arguments.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
