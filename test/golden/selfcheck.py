"""Proves the oracle against transformers: same logits, same gradients.

    pip install torch 'transformers>=4.45'
    python3 test/golden/selfcheck.py

Random weights, biases and norms included, so that every term counts; some
labels ignored. Everything is in float64, where two right answers agree to
about 1e-15 and any slip shows. Exits 1 when one does not agree.

transformers' Llama casts to float32 in its norms, its softmax and its rotary
angles, whatever the model's precision. So it is checked twice: as it is, to
float32's precision, and with these casts turned into float64, to float64's.
"""

import sys

import torch
import torch.nn.functional as F
import transformers
from transformers.models.llama import modeling_llama

import oracle

# No size is a power of two, a square, or equal to another one by accident.
HIDDEN, FFN, VOCABULARY, SEQUENCE = 60, 136, 257, 37


def gpt2():
    model = oracle.Gpt2(layers=3, heads=5)
    hf = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=50, n_embd=HIDDEN, n_inner=FFN,
        n_layer=model.layers, n_head=model.heads, attn_implementation="eager",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))

    def logical(tensors):
        """Conv1D holds [in, out]; c_attn holds q, k and v side by side."""
        renamed = {}
        for name, tensor in tensors.items():
            name = name.removeprefix("transformer.")
            if ".attn.c_attn." in name:
                for part, piece in zip("qkv", tensor.chunk(3, -1)):
                    renamed[name.replace("c_attn", part)] = piece.t()
            elif ".c_proj." in name or ".c_fc." in name:
                name = name.replace("attn.c_proj", "attn.o").replace("mlp.c_", "mlp.")
                renamed[name] = tensor.t()
            else:
                renamed[name] = tensor
        return renamed

    return model, hf, logical


def llama():
    model = oracle.Llama(layers=3, heads=6, kv_heads=2, base=500000.0)
    hf = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=FFN,
        num_hidden_layers=model.layers, num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads, head_dim=14, rms_norm_eps=model.epsilon,
        rope_theta=model.base, tie_word_embeddings=False, attn_implementation="eager"))
    return model, hf, dict


class Float64Torch:
    """The torch module, but for the meaning of `torch.float32`."""

    def __getattr__(self, name):
        return torch.float64 if name == "float32" else getattr(torch, name)


def llama_float64():
    model, hf, logical = llama()
    modeling_llama.torch = Float64Torch()
    head_dim = hf.config.head_dim

    def angles(x, position_ids):
        exponents = torch.arange(0, head_dim, 2).double() / head_dim
        half = position_ids[..., None].double() / model.base**exponents
        both = torch.cat([half, half], -1)
        return both.cos(), both.sin()

    hf.model.rotary_emb.forward = angles
    return model, hf, logical


def relative(got, want):
    return ((got - want).abs().max() / want.abs().max()).item()


def check(name, build, bound):
    torch.manual_seed(1234)
    model, hf, logical = build()
    hf = hf.double().eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    tokens = torch.randint(VOCABULARY, (3, SEQUENCE))
    labels = torch.randint(VOCABULARY, (3, SEQUENCE))
    labels[0, 5:20] = -100

    z = hf(input_ids=tokens, use_cache=False).logits.double()
    want = F.cross_entropy(z.flatten(0, 1), labels.flatten(), reduction="sum")
    want.backward()

    weights = logical({n: w.detach().clone() for n, w in hf.named_parameters()})
    grads = logical({n: w.grad for n, w in hf.named_parameters()})
    p = {n: w.clone().requires_grad_() for n, w in weights.items()}
    got = oracle.loss_sum(model, p, tokens, labels)
    got.backward()

    # A key bias adds the same to all scores of a row: its gradient is zero up
    # to rounding, so it is compared on the scale of the query bias.
    def difference(n):
        scale = grads[n.replace(".k.bias", ".q.bias")].abs().max()
        return ((p[n].grad - grads[n]).abs().max() / scale).item()

    logits = relative(oracle.logits(model, p, tokens).detach(), z.detach())
    loss = relative(got.detach(), want.detach())
    worst = max(p, key=difference)
    right = max(logits, loss, difference(worst)) <= bound
    print(f"{name}: logits {logits:.1e}, loss {loss:.1e}, {len(p)} gradients "
          f"{difference(worst):.1e} ({worst}), bound {bound:.0e}: "
          f"{'agrees' if right else 'DIFFERS'}")
    return right


if __name__ == "__main__":
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    results = [
        check("gpt2", gpt2, 1e-12),
        check("llama", llama, 1e-5),
        check("llama, casts in float64", llama_float64, 1e-12),
    ]
    sys.exit(0 if all(results) else 1)
