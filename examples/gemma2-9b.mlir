// Gemma 2 9B: 42 layers, hidden 3584, 16 heads and 8 key/value heads of 256, ffn 14336, vocabulary 256000, tied head, window 4096 in every other layer, soft caps 50 and 30.
!ids = tensor<?x?xi32>        !x = tensor<?x?x3584xf32>       !f = tensor<?x?x14336xf32>      !z = tensor<?x?x256000xf32>
!q = tensor<?x?x4096xf32>     !h = tensor<?x?x16x256xf32>     !p = tensor<?x?x2048xf32>       !kv = tensor<?x?x8x256xf32>
!v = tensor<3584xf32>         !wq = tensor<4096x3584xf32>     !wkv = tensor<2048x3584xf32>    !wo = tensor<3584x4096xf32>
!up = tensor<14336x3584xf32>  !down = tensor<3584x14336xf32>  !wte = tensor<256000x3584xf32>

tfm.shared @wte = "model.embed_tokens.weight" init(normal, 0.02) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %y = tfm.scale %e factor(59.86651818838306) : !x
  tfm.yield %y : !x
}

tfm.block @sliding(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(zeros) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.02) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.02) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.002182178902359924) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal window(4096) scale(0.0625) softcap(50.0) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o0 = tfm.linear %a, %wo : !q, !wo -> !x
  %g2 = tfm.param "post_attention_layernorm.weight" init(zeros) : !v
  %o = tfm.rms_norm %o0, %g2 epsilon(1.0e-6) offset(1.0) : !x, !v   %y = tfm.add %x, %o : !x

  %g3 = tfm.param "pre_feedforward_layernorm.weight" init(zeros) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.002182178902359924) : !down
  %n2 = tfm.rms_norm %y, %g3 epsilon(1.0e-6) offset(1.0) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated gelu_tanh %gate, %up : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x
  %g4 = tfm.param "post_feedforward_layernorm.weight" init(zeros) : !v
  %d = tfm.rms_norm %d0, %g4 epsilon(1.0e-6) offset(1.0) : !x, !v   %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @full(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(zeros) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.02) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.02) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.002182178902359924) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h    %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv   %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.0625) softcap(50.0) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o0 = tfm.linear %a, %wo : !q, !wo -> !x
  %g2 = tfm.param "post_attention_layernorm.weight" init(zeros) : !v
  %o = tfm.rms_norm %o0, %g2 epsilon(1.0e-6) offset(1.0) : !x, !v   %y = tfm.add %x, %o : !x

  %g3 = tfm.param "pre_feedforward_layernorm.weight" init(zeros) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.002182178902359924) : !down
  %n2 = tfm.rms_norm %y, %g3 epsilon(1.0e-6) offset(1.0) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated gelu_tanh %gate, %up : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x
  %g4 = tfm.param "post_feedforward_layernorm.weight" init(zeros) : !v
  %d = tfm.rms_norm %d0, %g4 epsilon(1.0e-6) offset(1.0) : !x, !v   %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(zeros) : !v
  %w = tfm.use @wte : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(1.0) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) softcap(30.0) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @gemma2_9b max_sequence(8192) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat [@sliding, @full] times 42(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
