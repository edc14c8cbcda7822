// A small Gemma: 4 layers, hidden 48, 4 heads and 1 key/value head of 32, ffn 148, vocabulary 257, tied head.
!ids = tensor<?x?xi32>    !x = tensor<?x?x48xf32>     !f = tensor<?x?x148xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x128xf32>  !h = tensor<?x?x4x32xf32>   !p = tensor<?x?x32xf32>    !kv = tensor<?x?x1x32xf32>
!v = tensor<48xf32>       !wq = tensor<128x48xf32>    !wkv = tensor<32x48xf32>   !wo = tensor<48x128xf32>
!up = tensor<148x48xf32>  !down = tensor<48x148xf32>  !wte = tensor<257x48xf32>

tfm.shared @wte = "model.embed_tokens.weight" init(normal, 0.02) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %y = tfm.scale %e factor(6.928203230275509) : !x
  tfm.yield %y : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(normal, 0.1) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.12) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.12) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.0070710678118654745) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.17677669529663687) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o = tfm.linear %a, %wo : !q, !wo -> !x     %y = tfm.add %x, %o : !x

  %g2 = tfm.param "post_attention_layernorm.weight" init(normal, 0.1) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.3) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.0070710678118654745) : !down
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-6) offset(1.0) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated gelu_tanh %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, !down -> !x     %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(normal, 0.1) : !v
  %w = tfm.use @wte : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(1.0) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @gemma_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 4(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
