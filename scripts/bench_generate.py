"""The transformers side of scripts/bench generate: the same model folder, prompts and measure as tests/engine/bench_generate.cpp."""
import argparse
import time

import torch
from transformers import LlamaForCausalLM
from transformers.utils import logging

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--prompt", type=int, default=32)
parser.add_argument("--new", type=int, default=128)
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()
torch.set_num_threads(args.threads)
logging.set_verbosity_error()
logging.disable_progress_bar()
model = LlamaForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
ids = torch.tensor([[(i * 37 + row * 101) % 7000 + 3 for i in range(args.prompt)] for row in range(args.batch)])


def seconds(count):
    start = time.perf_counter()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=count, eos_token_id=None, pad_token_id=0)
    assert out.shape[1] == args.prompt + count
    return time.perf_counter() - start


best = 0
with torch.inference_mode():
    seconds(4)
    for _ in range(args.rounds):
        best = max(best, args.batch * (args.new - 1) / (seconds(args.new) - seconds(1)))
print(f"{best:.0f} tokens/s")
