#!/usr/bin/env python3
"""Writes tests/fixtures/generation.json: what transformers' logits processors leave to be drawn from, its greedy generation from a batch of
left-padded prompts, and the sliding-window perplexity of a token sequence.

    python tests/oracle/make_generation.py tests/fixtures

Made with transformers 5.24.0 and torch 2.11.0; the model is tests/fixtures/llama/linear.
"""
import json
import pathlib
import sys

import torch
from transformers import LlamaForCausalLM, LogitsProcessorList
from transformers.generation.logits_process import (MinNewTokensLengthLogitsProcessor, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
                                                    TopKLogitsWarper, TopPLogitsWarper)

CASES = [
    dict(),
    dict(temperature=0.5),
    dict(temperature=2.5),
    dict(top_k=5),
    dict(top_k=4, ties=True),
    dict(top_p=0.6),
    dict(top_p=0.05),
    dict(repetition_penalty=1.4),
    dict(repetition_penalty=0.7),
    dict(temperature=0.7, top_k=8, top_p=0.9, repetition_penalty=1.2),
    dict(temperature=1.8, top_k=20, top_p=0.5, repetition_penalty=1.1, min_new_tokens=2),
]


def sampling_case(number, case):
    torch.manual_seed(100 + number)
    scores = 1.5 * torch.randn(1, 40)
    if case.get("ties"):
        scores = scores.round()  # top-k keeps what equals the k-th
    prompt, end_ids = [3, 7, 7, 21, 0], [int(scores.argmax()), 2]
    steps = LogitsProcessorList()  # in the order in which generate() makes them
    if "repetition_penalty" in case:
        steps.append(RepetitionPenaltyLogitsProcessor(case["repetition_penalty"]))
    if "min_new_tokens" in case:
        steps.append(MinNewTokensLengthLogitsProcessor(len(prompt), case["min_new_tokens"], end_ids, device="cpu"))
    if "temperature" in case:
        steps.append(TemperatureLogitsWarper(case["temperature"]))
    if "top_k" in case:
        steps.append(TopKLogitsWarper(case["top_k"]))
    if "top_p" in case:
        steps.append(TopPLogitsWarper(case["top_p"]))
    left = steps(torch.tensor([prompt]), scores.clone())
    probabilities = torch.softmax(left.double(), -1)[0]
    return dict(case, prompt=prompt, end_ids=end_ids, scores=scores[0].tolist(), probabilities=probabilities.tolist())


def greedy(model):
    torch.manual_seed(7)
    prompts = [torch.randint(3, 96, (n,)) for n in (5, 11, 17)]
    longest = max(len(p) for p in prompts)
    ids = torch.stack([torch.nn.functional.pad(p, (longest - len(p), 0)) for p in prompts])
    mask = torch.stack([torch.nn.functional.pad(torch.ones_like(p), (longest - len(p), 0)) for p in prompts])
    plain = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=20, eos_token_id=None, pad_token_id=0)
    late = lambda row: next(t for i, t in enumerate(row) if i >= 5 and t not in row[:i])  # not among the first tokens
    ends = [late(plain[0, longest:].tolist()), late(plain[2, longest:].tolist())]
    common = dict(do_sample=False, max_new_tokens=20, eos_token_id=ends, pad_token_id=0)
    out = []
    for keys in (dict(), dict(repetition_penalty=1.3), dict(min_new_tokens=12)):
        rows = []
        for row, prompt in zip(model.generate(ids, attention_mask=mask, **common, **keys)[:, longest:].tolist(), prompts):
            # the pads of generate() alone: the penalty counts them as seen, so each row is made by itself there
            if keys.get("repetition_penalty"):
                row = model.generate(prompt[None], **common, **keys)[0, len(prompt):].tolist()
            stop = next((i for i, t in enumerate(row) if t in ends), len(row))
            rows.append(row[:stop])
        out.append(dict(keys, ids=rows))
    return dict(prompts=[p.tolist() for p in prompts], end_ids=ends, cases=out)


def perplexity(model):
    torch.manual_seed(9)
    ids = torch.randint(3, 96, (1, 101))
    out = []
    for window, stride in ((20, 10), (24, 7), (200, 100)):
        nll, count, previous = 0.0, 0, 0
        for begin in range(0, ids.size(1), stride):  # the recipe of transformers' documentation, with sums in place of means
            end = min(begin + window, ids.size(1))
            piece, labels = ids[:, begin:end], ids[:, begin:end].clone()
            labels[:, : previous - begin] = -100
            logits = model(piece).logits[0, :-1].double()
            losses = torch.nn.functional.cross_entropy(logits, labels[0, 1:], ignore_index=-100, reduction="none")
            nll += losses.sum().item()
            count += int((labels[0, 1:] != -100).sum())
            previous = end
            if end == ids.size(1):
                break
        out.append(dict(window=window, stride=stride, nll=nll, tokens=count))
    return dict(ids=ids[0].tolist(), cases=out)


def main():
    root = pathlib.Path(sys.argv[1])
    model = LlamaForCausalLM.from_pretrained(root / "llama" / "linear").eval()
    with torch.no_grad():
        out = dict(sampling=[sampling_case(i, case) for i, case in enumerate(CASES)], greedy=greedy(model), perplexity=perplexity(model))
    (root / "generation.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
