#!/usr/bin/env python3
"""Writes tests/fixtures/llama: small Llama models with random weights, made, run and saved by transformers.

    python tests/oracle/make_llama.py tests/fixtures/llama

Made with transformers 5.24.0 and torch 2.11.0. One folder a variant: config.json and model.safetensors as save_pretrained writes them,
and expected.safetensors with input_ids, logits, and input_ids_long, logits_long (longer than max_position_embeddings).
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

VARIANTS = {
    "llama3_tied": dict(tie_word_embeddings=True, head_dim=12, attention_bias=True, mlp_bias=True,
                        rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
                                         "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
    "dynamic": dict(rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}),
    "linear": dict(num_key_value_heads=4, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
}


def main():
    root = pathlib.Path(sys.argv[1])
    for number, (name, keys) in enumerate(VARIANTS.items()):
        torch.manual_seed(number)
        sizes = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=24, rms_norm_eps=1e-5, initializer_range=0.2)
        model = LlamaForCausalLM(LlamaConfig(**(sizes | keys))).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # norms and biases too
                if parameter.dim() == 1:
                    parameter.add_(0.1 * torch.randn(parameter.shape))
            ids, long = torch.randint(0, 96, (2, 20)), torch.randint(0, 96, (1, 40))
            out = {"input_ids": ids, "logits": model(ids).logits, "input_ids_long": long, "logits_long": model(long).logits}
        model.save_pretrained(root / name)
        (root / name / "generation_config.json").unlink(missing_ok=True)
        save_file({key: value.contiguous() for key, value in out.items()}, root / name / "expected.safetensors")


if __name__ == "__main__":
    main()
