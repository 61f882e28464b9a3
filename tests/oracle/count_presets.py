#!/usr/bin/env python3
"""Counts the parameters of every preset with other programs' models, on the meta device: nothing is allocated.

    python tests/oracle/count_presets.py > tests/fixtures/preset_totals.json

Llama and InternLM3 are transformers' own classes; Baichuan, InternLM and InternLM2 are models.py beside this file. The sizes are those of
the published config.json files (for the tiny presets: as models/families/presets.cpp says).
"""
import json
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from models import CausalLM, Cfg

# vocabulary, hidden, layers, heads, key/value heads, intermediate
TINY, TINY_GROUPED = (4096, 256, 4, 4, 4, 688), (4096, 256, 4, 4, 2, 688)
BAICHUAN = {  # sizes, ALiBi, normalised head
    "baichuan-tiny": (TINY, False, False),
    "baichuan-tiny-alibi": (TINY, True, False),
    "baichuan-110m": ((16000, 768, 12, 12, 12, 2048), False, False),
    "baichuan-7b": ((64000, 4096, 32, 32, 32, 11008), False, False),
    "baichuan-13b": ((64000, 5120, 40, 40, 40, 13696), True, False),
    "baichuan2-tiny": (TINY, False, True),
    "baichuan2-7b": ((125696, 4096, 32, 32, 32, 11008), False, True),
    "baichuan2-13b": ((125696, 5120, 40, 40, 40, 13696), True, True),
}
INTERNLM = {  # sizes, biases
    "internlm-tiny": (TINY, True),
    "internlm-7b": ((103168, 4096, 32, 32, 32, 11008), True),
    "internlm-20b": ((103168, 5120, 60, 40, 40, 13824), False),
}
INTERNLM2 = {
    "internlm2-tiny": TINY_GROUPED,
    "internlm2-1.8b": (92544, 2048, 24, 16, 8, 8192),
    "internlm2-7b": (92544, 4096, 32, 32, 8, 14336),
    "internlm2-20b": (92544, 6144, 48, 48, 8, 16384),
    "internlm2.5-20b": (92544, 6144, 48, 48, 8, 16384),
}
INTERNLM3 = {"internlm3-tiny": (TINY_GROUPED, 32), "internlm3-8b": ((128512, 4096, 48, 32, 2, 10240), 128)}
LLAMA = {  # sizes, tied
    "transformer-tiny": (TINY_GROUPED, True),
    "llama2-7b": ((32000, 4096, 32, 32, 32, 11008), False),
    "llama3.1-8b": ((128256, 4096, 32, 32, 8, 14336), False),
    "llama3.2-1b": ((128256, 2048, 16, 32, 8, 8192), True),
}


def sizes(s):
    return dict(vocab_size=s[0], hidden_size=s[1], num_hidden_layers=s[2], num_attention_heads=s[3], num_key_value_heads=s[4],
                intermediate_size=s[5])


def plain(architecture, s, **more):
    config = Cfg(architectures=[architecture], pad_token_id=0, rms_norm_eps=1e-6, max_position_embeddings=4096, **sizes(s), **more)
    with torch.device("meta"):
        model = CausalLM(config)
    return sum(p.numel() for p in model.parameters())


def published(model_type, s, **more):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **sizes(s), **more))
    return sum(p.numel() for p in model.parameters())  # a tied matrix counts once


def main():
    out = {}
    for name, (s, alibi, head) in BAICHUAN.items():
        out[name] = plain("BaichuanForCausalLM", s, position_embedding="alibi" if alibi else "rope", norm_head=head)
    for name, (s, bias) in INTERNLM.items():
        out[name] = plain("InternLMForCausalLM", s, bias=bias)
    for name, s in INTERNLM2.items():
        out[name] = plain("InternLM2ForCausalLM", s, bias=False)
    for name, (s, head) in INTERNLM3.items():
        out[name] = published("internlm3", s, head_dim=head, qkv_bias=False, bias=False)
    for name, (s, tied) in LLAMA.items():
        out[name] = published("llama", s, tie_word_embeddings=tied)
    json.dump({"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "parameters": out}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
