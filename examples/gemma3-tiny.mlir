// A small Gemma 3: 7 layers, hidden 40, 4 heads and 2 key/value heads of 28, ffn 132, vocabulary 257, tied head, window 20 in five of six layers, positions of the sixth stretched 8 times.
!ids = tensor<?x?xi32>    !x = tensor<?x?x40xf32>     !f = tensor<?x?x132xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x112xf32>  !h = tensor<?x?x4x28xf32>   !p = tensor<?x?x56xf32>    !kv = tensor<?x?x2x28xf32>
!v = tensor<40xf32>       !wq = tensor<112x40xf32>    !wkv = tensor<56x40xf32>   !wo = tensor<40x112xf32>
!up = tensor<132x40xf32>  !down = tensor<40x132xf32>  !wte = tensor<257x40xf32>  !hd = tensor<28xf32>

tfm.shared @wte = "model.embed_tokens.weight" init(normal, 0.05) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %y = tfm.scale %e factor(6.324555320336759) : !x
  tfm.yield %y : !x
}

tfm.block @sliding(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(normal, 0.1) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.1) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.1) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.1) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.1) : !wo
  %gq = tfm.param "self_attn.q_norm.weight" init(normal, 0.1) : !hd
  %gk = tfm.param "self_attn.k_norm.weight" init(normal, 0.1) : !hd
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q                             %q1 = tfm.split_heads %q0 : !q -> !h
  %q2 = tfm.rms_norm %q1, %gq epsilon(1.0e-6) offset(1.0) : !h, !hd    %q = tfm.rope %q2 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p                            %k1 = tfm.split_heads %k0 : !p -> !kv
  %k2 = tfm.rms_norm %k1, %gk epsilon(1.0e-6) offset(1.0) : !kv, !hd   %k = tfm.rope %k2 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p                            %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal window(20) scale(0.2041241452319315) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
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
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.1) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.1) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.1) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.1) : !wo
  %gq = tfm.param "self_attn.q_norm.weight" init(normal, 0.1) : !hd
  %gk = tfm.param "self_attn.k_norm.weight" init(normal, 0.1) : !hd
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) offset(1.0) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q                             %q1 = tfm.split_heads %q0 : !q -> !h
  %q2 = tfm.rms_norm %q1, %gq epsilon(1.0e-6) offset(1.0) : !h, !hd    %q = tfm.rope %q2 base(1000000.0) scaling <linear, factor(8.0)> : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p                            %k1 = tfm.split_heads %k0 : !p -> !kv
  %k2 = tfm.rms_norm %k1, %gk epsilon(1.0e-6) offset(1.0) : !kv, !hd   %k = tfm.rope %k2 base(1000000.0) scaling <linear, factor(8.0)> : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p                            %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.2041241452319315) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
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

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(normal, 0.1) : !v
  %w = tfm.use @wte : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(1.0) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @gemma3_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat [@sliding x5, @full] times 7(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
