// A small Qwen 2: 4 layers, hidden 60, 6 heads and 2 key/value heads of 14, ffn 164, vocabulary 257, tied head, biases of q, k and v.
!ids = tensor<?x?xi32>    !x = tensor<?x?x60xf32>     !f = tensor<?x?x164xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x84xf32>   !h = tensor<?x?x6x14xf32>   !p = tensor<?x?x28xf32>    !kv = tensor<?x?x2x14xf32>
!v = tensor<60xf32>       !wq = tensor<84x60xf32>     !wkv = tensor<28x60xf32>   !wo = tensor<60x84xf32>
!up = tensor<164x60xf32>  !down = tensor<60x164xf32>  !wte = tensor<257x60xf32>  !bq = tensor<84xf32>
!bkv = tensor<28xf32>

tfm.shared @wte = "model.embed_tokens.weight" init(normal, 0.1) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  tfm.yield %e : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "input_layernorm.weight" init(ones) : !v
  %wq = tfm.param "self_attn.q_proj.weight" init(normal, 0.12) : !wq
  %wk = tfm.param "self_attn.k_proj.weight" init(normal, 0.12) : !wkv
  %wv = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : !wkv
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.0070710678118654745) : !wo
  %bq = tfm.param "self_attn.q_proj.bias" init(normal, 0.02) : !bq
  %bk = tfm.param "self_attn.k_proj.bias" init(normal, 0.02) : !bkv
  %bv = tfm.param "self_attn.v_proj.bias" init(normal, 0.02) : !bkv
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-6) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.add_bias %q0, %bq : !q, !bq
  %q2 = tfm.split_heads %q1 : !q -> !h        %q = tfm.rope %q2 base(1000000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.add_bias %k0, %bk : !p, !bkv
  %k2 = tfm.split_heads %k1 : !p -> !kv       %k = tfm.rope %k2 base(1000000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v1 = tfm.add_bias %v0, %bv : !p, !bkv
  %v = tfm.split_heads %v1 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.2672612419124244) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o = tfm.linear %a, %wo : !q, !wo -> !x     %y = tfm.add %x, %o : !x

  %g2 = tfm.param "post_attention_layernorm.weight" init(ones) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.0070710678118654745) : !down
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-6) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated silu %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, !down -> !x     %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(ones) : !v
  %w = tfm.use @wte : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-6) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @qwen2_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 4(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
