"""Checks families.py against the examples, without megac.

    python3 test/golden/check_families.py [MODEL...]

For each model, with random weights drawn as its example says:

 - parameters have the same names and shapes as the example's;
 - one training step in float32 and bfloat16 is about as far from float64 as
   rounding explains, so float64 did reach every part of it;
 - a sliding window shows token i exactly the tokens (i - W, i];
 - the golden values notice: with one setting changed, some gradient of the first
   step is off by five times what compare.py allows.

oracle.py and transformers' Llama must agree to float64's precision.
"""

import sys

import torch

import compare
import example
import families
import oracle

LENGTH = 64

# Settings that one might forget or get wrong by one.
UNSCALED = {"rope_scaling": None}
CHANGES = {
    "llama3-tiny": {
        "no scaling": UNSCALED,
        "no blend": {"rope_scaling": {**families.LLAMA3, "high_freq_factor": 1.001}},
        "another base": {"rope_theta": 490000.0},
    },
    "llama-yarn-tiny": {
        "no scaling": UNSCALED,
        "no attention factor": {"rope_scaling": {**families.YARN, "attention_factor": 1.0}},
        "default betas": {"rope_scaling": {**families.YARN, "beta_fast": 32.0,
                                           "beta_slow": 1.0}},
    },
    "mistral-tiny": {
        "window + 1": {"sliding_window": 25},
        "window - 1": {"sliding_window": 23},
        "no window": {"sliding_window": None},
    },
    "qwen2-tiny": {"epsilon": {"rms_norm_eps": 1e-5}},
    "qwen3-tiny": {"another base": {"rope_theta": 980000.0}},
    "gemma-tiny": {"exact gelu": {"hidden_act": "gelu"}},
    "gemma2-tiny": {
        "window + 1": {"sliding_window": 25},
        "full first": {"layer_types": families.alternating(6, 2)[1:]},
        "no attention cap": {"attn_logit_softcapping": None},
        "no final cap": {"final_logit_softcapping": None},
        "scale 1/sqrt(dim)": {"query_pre_attn_scalar": 24},
        "exact gelu": {"hidden_activation": "gelu"},
    },
    "gemma3-tiny": {
        "window + 1": {"sliding_window": 21},
        "full every fifth": {"layer_types": families.alternating(7, 5)},
        "no full layer": {"layer_types": ["sliding_attention"] * 7},
        "exact gelu": {"hidden_activation": "gelu"},
        "one base": {"rope_local_base_freq": 1e6},
        "no scaling": UNSCALED,
        "scale 1/sqrt(dim)": {"query_pre_attn_scalar": 28},
    },
}


def first_step(model, weights, batch):
    """(loss, gradients) of a mean over one batch, in the precision of `weights`."""
    p = {n: w.clone().requires_grad_() for n, w in weights.items()}
    tokens, labels = batch
    loss = oracle.loss_sum(model, p, tokens, labels) / labels.numel()
    loss.backward()
    return loss.item(), {n: w.grad.double() for n, w in p.items()}


def largest_error(got, want):
    """On the scale of the largest entry, as compare.py judges float32."""
    return max(((got[n] - g).abs().max() / g.abs().max()).item()
               for n, g in want.items())


def norm_error(got, want):
    """In the Euclidean norm, as compare.py judges bfloat16."""
    return max(((got[n] - g).norm() / g.norm()).item() for n, g in want.items())


def visible(name):
    """Which tokens reach the output of position LENGTH - 1 through one layer."""
    weights = {n: w.double() for n, w in example.initial_weights(name).items()}
    model = families.Family(name, layer_types=["sliding_attention"],
                            num_hidden_layers=1)
    names = model.shapes()
    weights = {n: w for n, w in weights.items() if n in names}
    table = weights["model.embed_tokens.weight"].requires_grad_()
    # Every token once, so that its row's gradient is that of its position. The
    # output is one that ties do not let in through the head.
    tokens = torch.arange(LENGTH)[None]
    z = model.logits(weights, tokens)[0, -1, LENGTH:].sum()
    (gradient,) = torch.autograd.grad(z, table)
    return [i for i in range(LENGTH) if gradient[i].abs().max() > 0]


def check(name):
    torch.manual_seed(7)
    tokens = torch.randint(257, (2, LENGTH + 1))
    batch = tokens[:, :-1], tokens[:, 1:]
    single = example.initial_weights(name)
    double = {n: w.double() for n, w in single.items()}
    failures = []

    model = families.Family(name)
    want = {n: shape for n, (shape, _) in example.parameters(name).items()}
    if model.shapes() != want:
        return [f"names or shapes differ: {set(model.shapes().items()) ^ set(want.items())}"]
    loss, truth = first_step(model, double, batch)

    if name in oracle.MODELS:
        other, gradients = first_step(oracle.MODELS[name], double, batch)
        error = max(abs(other / loss - 1), largest_error(gradients, truth))
        print(f"{name}: oracle.py {error:.1e}")
        if not error < 1e-12:
            failures.append("oracle.py and transformers differ")

    loss32, gradients = first_step(families.Family(name, torch.float32), single, batch)
    error32 = largest_error(gradients, truth)
    loss16, gradients = first_step(families.Family(name, torch.bfloat16), single, batch)
    error16 = norm_error(gradients, truth)
    print(f"{name}: float32 loss {abs(loss32 / loss - 1):.1e} gradients {error32:.1e}, "
          f"bfloat16 loss {abs(loss16 / loss - 1):.1e} gradients {error16:.1e}")
    if not error32 < compare.BOUNDS["fp32"].gradient / 10:
        failures.append("float32 is further from float64 than rounding explains")
    if not error16 < compare.BOUNDS["bf16"].gradient:
        failures.append("bfloat16 is further from float64 than compare.py allows")

    window = getattr(model.module.config, "sliding_window", None)
    if window:
        seen = visible(name)
        print(f"{name}: window {window} shows position {LENGTH - 1} the tokens "
              f"{seen[0]} to {seen[-1]}")
        if seen != list(range(LENGTH - window, LENGTH)):
            failures.append(f"a window of {window} shows {len(seen)} tokens")

    for change, settings in CHANGES.get(name, {}).items():
        _, gradients = first_step(families.Family(name, **settings), double, batch)
        error = largest_error(gradients, truth)
        print(f"{name}: {change}: gradients differ by {error:.1e}")
        if not error > 5 * compare.BOUNDS["fp32"].gradient:
            failures.append(f"golden values would not notice: {change}")
    return failures


def main():
    torch.set_num_threads(1)
    failed = False
    for name in sys.argv[1:] or families.FAMILIES:
        for failure in check(name):
            print(f"{name}: WRONG: {failure}")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
