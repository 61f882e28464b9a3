"""Outputs of PyTorch's modules that composites of the standard library equal, for tests/engine/tst_library_cells.cpp.

Each case has its inputs, the module's tensors under the names that the composite's weights have, the output and, as a second check of the
same derivation, the gradient of sum(out²)/2 at the first input. float32 weights, computed in float64, results in float32.
Result: fixtures/library/NAME.safetensors
"""
import torch
from common import outdir, save_st
from torch import nn

B, T, S, D, H, F = 2, 5, 7, 16, 4, 24


def attention(prefix, module):
    """nn.MultiheadAttention keeps q, k and v as one matrix where their sizes agree."""
    out = {}
    if module.in_proj_weight is not None:
        parts = module.in_proj_weight.chunk(3)
    else:
        parts = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    for name, weight, bias in zip("qkv", parts, biases):
        out[f"{prefix}{name}_proj.weight"] = weight
        if bias is not None:
            out[f"{prefix}{name}_proj.bias"] = bias
    out[f"{prefix}o_proj.weight"] = module.out_proj.weight
    if module.out_proj.bias is not None:
        out[f"{prefix}o_proj.bias"] = module.out_proj.bias
    return out


def plain(prefix, module):
    return {f"{prefix}.{name}": value for name, value in module.named_parameters()}


def feed_forward(layer):
    return {**plain("feed_forward.up_proj", layer.linear1), **plain("feed_forward.down_proj", layer.linear2)}


def encoder_layer(activation, norm_first, causal):
    layer = nn.TransformerEncoderLayer(D, H, F, 0.0, activation, batch_first=True, norm_first=norm_first)
    weights = {**attention("attention.attention.", layer.self_attn), **plain("norm1", layer.norm1), **plain("norm2", layer.norm2), **feed_forward(layer)}
    mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64) if causal else None
    return layer, weights, lambda x: layer(x, src_mask=mask)


def decoder_layer():
    layer = nn.TransformerDecoderLayer(D, H, F, 0.0, "gelu", batch_first=True, norm_first=True)
    weights = {**attention("attention.attention.", layer.self_attn), **attention("cross_attention.attention.", layer.multihead_attn), **feed_forward(layer)}
    for name in ("norm1", "norm2", "norm3"):
        weights.update(plain(name, getattr(layer, name)))
    mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    return layer, weights, lambda x, context: layer(x, context, tgt_mask=mask)


def multi_head(**options):
    layer = nn.MultiheadAttention(D, H, batch_first=True, **options)
    return layer, attention("", layer), lambda query, key, value: layer(query, key, value, need_weights=False)[0]


def cross():
    layer = nn.MultiheadAttention(D, H, batch_first=True, kdim=12, vdim=12)
    return layer, attention("attention.", layer), lambda query, context: layer(query, context, context, need_weights=False)[0]


def write(name, made, shapes):
    layer, weights, call = made
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in layer.parameters():  # norms and biases too: a term that is left out must show
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    tensors = {"weights." + key: value.detach().float() for key, value in weights.items()}
    layer.double().train()  # train: not the fused path of inference; dropout is 0
    inputs = {key: torch.randn(shape, generator=generator) for key, shape in shapes.items()}
    given = [value.double().requires_grad_() for value in inputs.values()]
    out = call(*given)
    (out.square().sum() / 2).backward()
    tensors.update({"inputs." + key: value for key, value in inputs.items()})
    tensors["out"] = out.float()
    tensors["gradient"] = given[0].grad.float()
    save_st(f"{outdir('library')}/{name}.safetensors", tensors)


x, context = (B, T, D), (B, S, D)
write("MultiHeadAttention", multi_head(), {"query": x, "key": context, "value": context})
write("MultiHeadAttention-no-bias-other-sizes", multi_head(bias=False, kdim=12, vdim=20), {"query": x, "key": (B, S, 12), "value": (B, S, 20)})
write("CrossAttention", cross(), {"query": x, "context": (B, S, 12)})
write("TransformerBlock", encoder_layer("gelu", True, False), {"x": x})
write("TransformerBlock-causal", encoder_layer("gelu", True, True), {"x": x})
write("PostNormTransformerBlock", encoder_layer("relu", False, False), {"x": x})
write("PostNormTransformerBlock-causal", encoder_layer("relu", False, True), {"x": x})
write("TransformerDecoderBlock", decoder_layer(), {"x": x, "context": context})
