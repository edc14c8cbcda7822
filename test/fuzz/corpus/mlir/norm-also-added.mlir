// A small Llama with YaRN: 3 layers, hidden 52, 6 heads and 3 key/value heads of 36, ffn 140, vocabulary 257, untied head, positions stretched 4 times from 32.
!ids = tensor<?x?xi32>    !x = tensor<?x?x52xf32>     !f = tensor<?x?x140xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x216xf32>  !h = tensor<?x?x6x36xf32>   !p = tensor<?x?x108xf32>   !kv = tensor<?x?x3x36xf32>
!v = tensor<52xf32>       !wq = tensor<216x52xf32>    !wkv = tensor<108x52xf32>  !wo = tensor<52x216xf32>
!up = tensor<140x52xf32>  !down = tensor<52x140xf32>  !wte = tensor<257x52xf32>

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.param "model.embed_tokens.weight" init(normal, 0.1) : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  tfm.yield %e : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(ones) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.12) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.12) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.008164965809277261) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h
  %q = tfm.rope %q1 base(10000.0) scaling <yarn, factor(4.0), original(32), beta_fast(2.0), beta_slow(0.5), attention(1.138629436111989)> : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv
  %k = tfm.rope %k1 base(10000.0) scaling <yarn, factor(4.0), original(32), beta_fast(2.0), beta_slow(0.5), attention(1.138629436111989)> : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.16666666666666666) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o = tfm.linear %a, %wo : !q, !wo -> !x     %y = tfm.add %x, %o : !x

  %g2 = tfm.param "post_attention_layernorm.weight" init(ones) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.008164965809277261) : !down
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-5) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated silu %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, !down -> !x     %z = tfm.add %y, %n : !x
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

tfm.model @llama_yarn_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 3(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
