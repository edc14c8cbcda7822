"""GPT-2 and Llama written straight from the math, in plain PyTorch; and training.

The oracle answers one question: what should a training run compute? It shares
no code with the project and no modules with a model library, so a mistake has
to be made twice to go unseen. `selfcheck.py` proves it against transformers.

Parameters are a dictionary from our logical names ("h.0.attn.q.weight", linear
weights [out, in]) to tensors, as `megart train --dump weights@0=DIR` writes
them. Precision is that of the parameters: float32 or float64. Other families
are taken from transformers (families.py) and trained by the same loop.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Gpt2:
    layers: int
    heads: int
    epsilon: float = 1e-5


@dataclasses.dataclass(frozen=True)
class Llama:
    layers: int
    heads: int
    kv_heads: int
    base: float
    epsilon: float = 1e-5


# What a checkpoint does not say about the models in examples/; every size that
# it does say is read off the parameters.
MODELS = {
    "gpt2-tiny": Gpt2(layers=6, heads=8),
    "gpt2-124m": Gpt2(layers=12, heads=12),
    "long-8k": Gpt2(layers=2, heads=4),
    "llama-tiny": Llama(layers=6, heads=8, kv_heads=2, base=10000.0),
    "llama3-8b": Llama(layers=32, heads=32, kv_heads=8, base=500000.0),
}


def layer_norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + epsilon) * weight + bias


def rms_norm(x, weight, epsilon):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def gelu_tanh(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + torch.tanh(inner))


def split_heads(x, heads):
    """[batch, sequence, heads * head_dim] -> [batch, heads, sequence, head_dim]"""
    batch, sequence, width = x.shape
    return x.reshape(batch, sequence, heads, width // heads).transpose(1, 2)


def rope(x, base):
    """Rotates dimension i of a head together with i + head_dim / 2 (half split).

    Angles are computed in float64 whatever the precision of x."""
    sequence, head_dim = x.shape[-2:]
    half = head_dim // 2
    exponents = torch.arange(half, dtype=torch.float64) * 2 / head_dim
    positions = torch.arange(sequence, dtype=torch.float64)
    angles = positions[:, None] / base**exponents
    cos, sin = torch.cos(angles).to(x.dtype), torch.sin(angles).to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v):
    """Causal attention; query head i reads key/value head i // (heads / kv_heads)."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    out = scores.masked_fill(future, -math.inf).softmax(-1) @ v
    batch, heads, sequence, head_dim = out.shape
    return out.transpose(1, 2).reshape(batch, sequence, heads * head_dim)


def gpt2_logits(model, p, tokens):
    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for layer in range(model.layers):

        def norm(y, name):
            name = f"h.{layer}.{name}"
            return layer_norm(y, p[f"{name}.weight"], p[f"{name}.bias"], model.epsilon)

        def linear(y, name):
            name = f"h.{layer}.{name}"
            return y @ p[f"{name}.weight"].T + p[f"{name}.bias"]

        n = norm(x, "ln_1")
        q, k, v = (split_heads(linear(n, f"attn.{i}"), model.heads) for i in "qkv")
        x = x + linear(attention(q, k, v), "attn.o")
        x = x + linear(gelu_tanh(linear(norm(x, "ln_2"), "mlp.fc")), "mlp.proj")
    x = layer_norm(x, p["ln_f.weight"], p["ln_f.bias"], model.epsilon)
    return x @ p["wte.weight"].T


def llama_logits(model, p, tokens):
    x = p["model.embed_tokens.weight"][tokens]
    for layer in range(model.layers):

        def weight(name):
            return p[f"model.layers.{layer}.{name}.weight"]

        def linear(y, name):
            return y @ weight(name).T

        n = rms_norm(x, weight("input_layernorm"), model.epsilon)
        q = rope(split_heads(linear(n, "self_attn.q_proj"), model.heads), model.base)
        k = rope(split_heads(linear(n, "self_attn.k_proj"), model.kv_heads), model.base)
        v = split_heads(linear(n, "self_attn.v_proj"), model.kv_heads)
        x = x + linear(attention(q, k, v), "self_attn.o_proj")
        n = rms_norm(x, weight("post_attention_layernorm"), model.epsilon)
        gate, up = linear(n, "mlp.gate_proj"), linear(n, "mlp.up_proj")
        x = x + linear(gate * torch.sigmoid(gate) * up, "mlp.down_proj")
    x = rms_norm(x, p["model.norm.weight"], model.epsilon)
    return x @ p["lm_head.weight"].T


def logits(model, p, tokens):
    """[batch, sequence, vocabulary] of tokens [batch, sequence]."""
    if isinstance(model, Gpt2):
        return gpt2_logits(model, p, tokens)
    if isinstance(model, Llama):
        return llama_logits(model, p, tokens)
    return model.logits(p, tokens)


def loss_sum(model, p, tokens, labels, ignore=-100):
    """Sum of the cross entropies of all labels but the ignored ones.

    Labels are the next tokens already: nothing is shifted here."""
    z = logits(model, p, tokens)
    return F.cross_entropy(
        z.flatten(0, 1), labels.flatten(), ignore_index=ignore, reduction="sum"
    )


def learning_rate(step, settings):
    """Rate of step 1, 2, ...: linear warm-up, then the schedule."""
    lr, low = settings["lr"], settings["min_lr"]
    warmup, total = settings["warmup_steps"], settings["steps"]
    if step <= warmup:
        return lr * step / warmup
    done = (step - warmup) / (total - warmup)
    if settings["lr_schedule"] == "cosine":
        return low + 0.5 * (lr - low) * (1.0 + math.cos(math.pi * done))
    if settings["lr_schedule"] == "linear":
        return lr + (low - lr) * done
    assert settings["lr_schedule"] == "constant"
    return lr


def decayed(name, parameter):
    return parameter.dim() >= 2 and not name.endswith(".bias")


def train(model, weights, batches, settings):
    """Yields (step, loss, gradient norm before clipping, gradients).

    `batches` holds per step (tokens, labels), each [global batch, sequence].
    The loss is sum / count over the global batch; micro-batches only bound the
    memory, they change no value but for rounding. Gradients are those of that
    loss before clipping, and live until the next step."""
    p = {n: w.clone().requires_grad_() for n, w in weights.items()}
    groups = [
        {"params": [w for n, w in p.items() if decayed(n, w) == decay],
         "weight_decay": settings["weight_decay"] if decay else 0.0}
        for decay in (True, False)
    ]
    optimizer = torch.optim.AdamW(
        groups, lr=0.0, betas=tuple(settings["betas"]), eps=settings["epsilon"]
    )
    size = settings["micro_batch_size"]
    for step, (tokens, labels) in enumerate(batches, 1):
        optimizer.zero_grad(set_to_none=True)
        count = int((labels != -100).sum())
        total = 0.0
        for first in range(0, len(tokens), size):
            rows = slice(first, first + size)
            part = loss_sum(model, p, tokens[rows], labels[rows])
            (part / count).backward()
            total += part.item()
        gradients = {n: w.grad.clone() for n, w in p.items()}
        # Scales every gradient by min(1, clip / (norm + 1e-6)).
        norm = torch.nn.utils.clip_grad_norm_(p.values(), settings["clip"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings)
        yield step, total / count, norm.item(), gradients
        optimizer.step()
