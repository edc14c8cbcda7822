// A small Gemma 2: 5 layers, hidden 52, 6 heads and 3 key/value heads of 24, ffn 140, vocabulary 257, tied head, window 24 in every other layer, soft caps 5 and 3.
!ids = tensor<?x?xi32>    !x = tensor<?x?x52xf32>     !f = tensor<?x?x140xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x144xf32>  !h = tensor<?x?x6x24xf32>   !p = tensor<?x?x72xf32>    !kv = tensor<?x?x3x24xf32>
!v = tensor<52xf32>       !wq = tensor<144x52xf32>    !wkv = tensor<72x52xf32>   !wo = tensor<52x144xf32>
!up = tensor<140x52xf32>  !down = tensor<52x140xf32>  !wte = tensor<257x52xf32>

tfm.shared @wte = "model.embed_tokens.weight" init(normal, 0.2) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %y = tfm.scale %e factor(7.211102550927978) : !x
  tfm.yield %y : !x
}

tfm.block @sliding(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(normal, 0.1) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.2) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.2) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.1) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.1) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal window(24) scale(0.22360679774997896) softcap(5.0) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o0 = tfm.linear %a, %wo : !q, !wo -> !x
  %g2 = tfm.param "post_attention_layernorm.weight" init(normal, 0.1) : !v
  %o = tfm.rms_norm %o0, %g2 epsilon(1.0e-6) offset(1.0) : !x, !v   %y = tfm.add %x, %o : !x

  %g3 = tfm.param "pre_feedforward_layernorm.weight" init(normal, 0.1) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.3) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.1) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.1) : !down
  %n2 = tfm.rms_norm %y, %g3 epsilon(1.0e-6) offset(1.0) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated gelu_tanh %gate, %up : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x
  %g4 = tfm.param "post_feedforward_layernorm.weight" init(normal, 0.1) : !v
  %d = tfm.rms_norm %d0, %g4 epsilon(1.0e-6) offset(1.0) : !x, !v   %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}
tfm.block @full(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(normal, 0.1) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.2) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.2) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.1) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.1) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.22360679774997896) softcap(5.0) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o0 = tfm.linear %a, %wo : !q, !wo -> !x
  %g2 = tfm.param "post_attenti‘‘ “ž†š‘norm.weight" init(normal, 0.1) : !v
  %o = tfm.rms_norm %o0, %g2 epsilon(1.0e-6) offset(1.0) : !x, !v   %y = tfm.add %x, %o : !x

  %g3 = tfm.param "pre_feedforward_layernorm.weight" init(normal, 0.1) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.3) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.1) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.1) : !down
  %n2 = tfm.rms_norm %y, %g3 epsilon(1.0e-6) offset(1.0) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated gelu_tanh %gate, %up : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x
  %g4 = tfm.param "post_feedforward_layernorm.weight" init(normal, 0.1) : !v
  %d = tfm.rms_norm %d0, %g4 epsilon(1.0e-6) offset(1.0) : !x, !v   %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(normal, 0.1) : !v
  %w = tfm.use @wte : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(1.0) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) softcap(3.0) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @gemma2_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat [@sliding, @full] times 5(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
