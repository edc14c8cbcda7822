"""The models of Hugging Face's transformers that the examples are to agree with.

One configuration per example. Parameters have the same names and shapes on both
sides, so nothing is mapped: `check_families.py` proves it. Attention is eager,
the only kind that computes soft caps; there is no cache and no dropout.

transformers casts to float32 in its norms, its softmax and its rotary tables,
whatever the model's precision. To be the truth, a float64 run must not:
`float32_means` gives the name another meaning while a model is built and run.
"""

import contextlib

import torch
import transformers

SIZES = "hidden_size intermediate_size num_hidden_layers num_attention_heads " \
        "num_key_value_heads head_dim".split()


def config(kind, sizes, **settings):
    """Settings that every family has are written out, not left to defaults."""
    settings = {
        "vocab_size": 257, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "tie_word_embeddings": False, "use_cache": False,
        "attention_dropout": 0.0, "attention_bias": False,
        "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
        **dict(zip(SIZES, sizes)), **settings,
    }
    return getattr(transformers, kind)(**settings)


def alternating(layers, period):
    """One layer of full attention after every period - 1 sliding ones."""
    return ["sliding_attention" if (i + 1) % period else "full_attention"
            for i in range(layers)]


# The first Gemma reads `hidden_act`, the later ones `hidden_activation`.
GEMMA = {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
         "tie_word_embeddings": True}
GEMMA2 = {"query_pre_attn_scalar": 20, "attn_logit_softcapping": 5.0,
          "final_logit_softcapping": 3.0, "sliding_window": 24,
          "layer_types": alternating(5, 2)}
GEMMA3 = {"query_pre_attn_scalar": 24, "attn_logit_softcapping": None,
          "final_logit_softcapping": None, "sliding_window": 20,
          "layer_types": alternating(7, 6), "rope_theta": 1e6,
          "rope_local_base_freq": 10000.0,
          "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0, "beta_slow": 0.5,
        "original_max_position_embeddings": 32}

# name: (class of the configuration, sizes in the order of SIZES, settings)
FAMILIES = {
    "llama-tiny": ("LlamaConfig", (64, 136, 6, 8, 2, 12), {"rms_norm_eps": 1e-5}),
    "llama3-tiny": ("LlamaConfig", (72, 164, 4, 4, 2, 40), {
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": LLAMA3,
        "max_position_embeddings": 256}),
    "llama-yarn-tiny": ("LlamaConfig", (52, 140, 3, 6, 3, 36), {
        "rms_norm_eps": 1e-5, "rope_scaling": YARN}),
    "mistral-tiny": ("MistralConfig", (56, 148, 5, 6, 2, 20), {
        "rms_norm_eps": 1e-5, "sliding_window": 24}),
    "qwen2-tiny": ("Qwen2Config", (60, 164, 4, 6, 2, 14), {
        "rope_theta": 1e6, "tie_word_embeddings": True, "use_sliding_window": False}),
    "qwen3-tiny": ("Qwen3Config", (44, 124, 4, 6, 2, 16), {
        "rope_theta": 1e6, "use_sliding_window": False}),
    "gemma-tiny": ("GemmaConfig", (48, 148, 4, 4, 1, 32), GEMMA),
    "gemma2-tiny": ("Gemma2Config", (52, 140, 5, 6, 3, 24), {**GEMMA, **GEMMA2}),
    "gemma3-tiny": ("Gemma3TextConfig", (40, 132, 7, 4, 2, 28), {**GEMMA, **GEMMA3}),
}


@contextlib.contextmanager
def float32_means(dtype):
    """While it lasts, what asks for float32 by name or by default gets `dtype`."""
    saved = torch.float32, torch.Tensor.float, torch.get_default_dtype()
    torch.float32 = torch.float = dtype
    torch.Tensor.float = lambda tensor: tensor.to(dtype)
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.float32 = torch.float = saved[0]
        torch.Tensor.float = saved[1]
        torch.set_default_dtype(saved[2])


class Family:
    """A model of transformers, as a function of its parameters.

    float64 and float32 are meant throughout. bfloat16 is the usual mixed
    precision: float32 parameters, rounded for every use; bfloat16 activations;
    norms, softmax and rotary tables in float32 inside, as transformers does."""

    def __init__(self, name, dtype=torch.float64, **changes):
        kind, sizes, settings = FAMILIES[name]
        self.dtype = dtype
        self.casts = torch.float64 if dtype == torch.float64 else torch.float32
        with float32_means(self.casts):
            # `dtype` for parameters only: rotary tables keep `casts`.
            self.module = transformers.AutoModelForCausalLM.from_config(
                config(kind, sizes, **{**settings, **changes}),
                attn_implementation="eager", dtype=dtype)

    def shapes(self):
        return {n: tuple(w.shape) for n, w in self.module.named_parameters()}

    def logits(self, p, tokens):
        p = {name: w.to(self.dtype) for name, w in p.items()}
        with float32_means(self.casts):
            z = torch.func.functional_call(
                self.module, p, kwargs={"input_ids": tokens}, tie_weights=True).logits
        return z.to(self.casts)
