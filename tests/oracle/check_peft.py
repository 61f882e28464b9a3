"""Loads an adapter that Celloom saved into PEFT and compares the logits with the engine's.

    python check_peft.py BASE ADAPTER INPUTS LOGITS [TOLERANCE]

BASE is a folder of a Baichuan or InternLM model (tests/fixtures), ADAPTER a run's `adapter` folder, INPUTS what
`celloom-engine forward --model BASE --adapter ADAPTER --inputs INPUTS --out LOGITS` read, LOGITS what it wrote.
Prints the largest difference, beside and merged; ends with 1 where it is above the tolerance.
"""
import json
import sys

from common import load_st
import peft
import torch
from models import CausalLM, Cfg
from peft import PeftModel


def main(base, adapter, inputs, logits, tolerance=2e-4):
    model = CausalLM(Cfg(json.load(open(f"{base}/config.json"))))
    model.load_state_dict(load_st(f"{base}/model.safetensors"))
    ids = load_st(inputs)["input_ids"]
    engine = load_st(logits)["logits"]
    with torch.no_grad():
        plain = model(input_ids=ids)["logits"].clone()
        adapted = PeftModel.from_pretrained(model, adapter).eval()
        beside = (adapted(input_ids=ids)["logits"] - engine).abs().max().item()
        merged = (adapted.merge_and_unload()(input_ids=ids)["logits"] - engine).abs().max().item()
    changed = (plain - engine).abs().max().item()
    print(f"peft {peft.__version__}: largest logit difference {beside:.3g} beside the base, {merged:.3g} merged; the adapter changed {changed:.3g}")
    return 0 if max(beside, merged) < float(tolerance) < changed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
