// A small GPT-2 with dropout: 6 layers, hidden 64, 8 heads of 8, ffn 256, vocabulary 257, tied head, dropout 0.1.
!ids = tensor<?x?xi32>      !x = tensor<?x?x64xf32>    !f = tensor<?x?x256xf32>   !h = tensor<?x?x8x8xf32>
!v = tensor<64xf32>         !b = tensor<256xf32>       !m = tensor<64x64xf32>     !up = tensor<256x64xf32>
!down = tensor<64x256xf32>  !wte = tensor<257x64xf32>  !wpe = tensor<128x64xf32>  !z = tensor<?x?x257xf32>

tfm.shared @wte =" wte.weight" init(normal, 0.02) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %wpe = tfm.param "wpe.weight" init(normal, 0.02) : !wpe
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %s = tfm.add_positions %e, %wpe : !x, !wpe -> !x
  %y = tfm.dropout "embd" %s p(0.1) : !x
  tfm.yield %y : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "ln_1.weight" init(ones) : !v                            %c1 = tfm.param "ln_1.bias" init(zeros) : !v
  %wq = tfm.param "attn.q.weight" init(normal, 0.02) : !m                  %bq = tfm.param "attn.q.bias" init(zeros) : !v
  %wk = tfm.param "attn.k.weight" init(normal, 0.02) : !m                  %bk = tfm.param "attn.k.bias" init(zeros) : !v
  %wv = tfm.param "attn.v.weight" init(normal, 0.02) : !m                  %bv = tfm.param "attn.v.bias" init(zeros) : !v
  %wo = tfm.param "attn.o.weight" init(normal, 0.005773502691896258) : !m  %bo = tfm.param "attn.o.bias" init(zeros) : !v
  %n = tfm.layer_norm %x, %g1, %c1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !m -> !x   %q1 = tfm.add_bias %q0, %bq : !x, !v   %q = tfm.split_heads %q1 : !x -> !h
  %k0 = tfm.linear %n, %wk : !x, !m -> !x   %k1 = tfm.add_bias %k0, %bk : !x, !v   %k = tfm.split_heads %k1 : !x -> !h
  %v0 = tfm.linear %n, %wv : !x, !m -> !x   %v1 = tfm.add_bias %v0, %bv : !x, !v   %v = tfm.split_heads %v1 : !x -> !h
  %a0 = tfm.attention %q, %k, %v causal scale(0.35355339059327379) dropout("probs", 0.1) : !h, !h   %a = tfm.merge_heads %a0 : !h -> !x
  %o0 = tfm.linear %a, %wo : !x, !m -> !x   %o1 = tfm.add_bias %o0, %bo : !x, !v
  %o = tfm.dropout "attn" %o1 p(0.1) : !x   %y = tfm.add %x, %o : !x

  %g2 = tfm.param "ln_2.weight" init(ones) : !v                                 %c2 = tfm.param "ln_2.bias" init(zeros) : !v
  %wu = tfm.param "mlp.fc.weight" init(normal, 0.02) : !up                      %bu = tfm.param "mlp.fc.bias" init(zeros) : !b
  %wd = tfm.param "mlp.proj.weight" init(normal, 0.005773502691896258) : !down  %bd = tfm.param "mlp.proj.bias" init(zeros) : !v
  %n2 = tfm.layer_norm %y, %g2, %c2 epsilon(1.0e-5) : !x, !v
  %u0 = tfm.linear %n2, %wu : !x, !up -> !f   %u1 = tfm.add_bias %u0, %bu : !f, !b   %u = tfm.gelu %u1 tanh : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x   %d1 = tfm.add_bias %d0, %bd : !x, !v
  %d = tfm.dropout "mlp" %d1 p(0.1) : !x   %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}

tfm.block @head(%x: !x, %labels: !ids) -> tensor<f32> {
  %g = tfm.param "ln_f.weight" init(ones) : !v   %c = tfm.param "ln_f.bias" init(zeros) : !v
  %n = tfm.layer_norm %x, %g, %c epsilon(1.0e-5) : !x, !v
  %wte = tfm.use @wte : !wte
  %z = tfm.linear %n, %wte : !x, !wte -> !z
  %s = tfm.cross_entropy %z, %labels ignore(-100) : !z, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @gpt2_tiny_dropout max_sequence(128) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 6(%x) prefix "h" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
