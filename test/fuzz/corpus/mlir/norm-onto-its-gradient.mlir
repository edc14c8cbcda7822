// A small Llama: 6 layers, hidden 64, 8 heads and 2 key/value heads of 12, ffn 136, vocabulary 257, untied head.
!ids = tensor<?x?xi32>    !x = tensor<?x?x64xf32>     !f = tensor<?x?x136xf32>   !z = tensor<?x?x257xf32>
!q = tensor<?x?x96xf32>   !h = tensor<?x?x8x12xf32>   !p = tensor<?x?x24xf32>    !kv = tensor<?x?x2x12xf32>
!v = tensor<64xf32>       !wq = tensor<96x64xf32>     !wkv = tensor<24x64xf32>   !wo = tensor<64x96xf32>
!up = tensor<136x64xf32>  !down = tensor<64x136xf32>  !wte = tensor<257x64xf32>

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
  %wo = tfm.param "self_attn.o_proj.weight" init(normal, 0.005773502691896258) : !wo
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !wq -> !q    %q1 = tfm.split_heads %q0 : !q -> !h   %q = tfm.rope %q1 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, !wkv -> !p   %k1 = tfm.split_heads %k0 : !p -> !kv  %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, !wkv -> !p   %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.2886751345948129) : !h, !kv   %a = tfm.merge_heads %a0 : !h -> !q
  %o = tfm.linear %a, %wo : !q, !wo -> !x     %y = tfm.add %x, %o : !x

  %g2 = tfm.param "post_attention_layernorm.weight" init(ones) : !v
  %wg = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : !up
  %wu = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : !up
  %wd = tfm.param "mlp.down_proj.weight" init(normal, 0.005773502691896258) : !down
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-5) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, !up -> !f   %up = tfm.linear %n2, %wu : !x, !up -> !f   %u = tfm.gated silu %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, !down -> !x     %z = tfm.add %y, %n2 : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "model.norm.weight" init(ones) : !v
  %w = tfm.param "lm_head.weight" init(normal, 0.02) : !wte
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, !v
  %z = tfm.linear %n, %w : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s  : tensor<f32>
}

tfm.model @llama_tiny max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 6(%x) prefix "model.layers" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
