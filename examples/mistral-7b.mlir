// Mistral 7B v0.1: 32 layers, hidden 4096, 32 heads and 8 key/value heads of 128, ffn 14336, vocabulary 32000, untied head, window 4096.
!ids = tensor<?x?xi32>        !x = tensor<?x?x4096xf32>       !f = tensor<?x?x14336xf32>     !z = tensor<?x?x32000xf32>
!q = tensor<?x?x4096xf32>     !h = tensor<?x?x32x128xf32>     !p = tensor<?x?x1024xf32>      !kv = tensor<?x?x8x128xf32>
!v = tensor<4096xf32>         !wq = tensor<4096x4096xf32>     !wkv = tensor<1024x4096xf32>   !wo = tensor<4096x4096xf32>
!up = tensor<14336x4096xf32>  !down = tensor<4096x14336xf32>  !wte = tensor<32000x4096xf32>

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.param "model.embed_tokens.weight" init(normal, 0.02) : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  tfm.yield %e : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(ones) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.02) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.02) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.0025) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal window(4096) scale(0.08838834764831843) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o = tfm.linear %a, %wo : !q, !wo -> !x     %y = tfm.add %x, %o : !x

  %g2 = tfm.param "post_attention_layernorm.weight" init(ones) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.0025) : !down
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-5) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated silu %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, !down -> !x     %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(ones) : !v
  %w = tfm.param "lm_head.weight" init(normal, 0.02) : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @mistral_7b max_sequence(32768) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 32(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
