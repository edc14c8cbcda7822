// GPT-3 175B: 96 layers, hidden 12288, 96 heads of 128, ffn 49152, vocabulary 51200, tied head, no dropout.
!ids = tensor<?x?xi32>           !x = tensor<?x?x12288xf32>      !f = tensor<?x?x49152xf32>     !h = tensor<?x?x96x128xf32>
!v = tensor<12288xf32>           !b = tensor<49152xf32>          !m = tensor<12288x12288xf32>   !up = tensor<49152x12288xf32>
!down = tensor<12288x49152xf32>  !wte = tensor<51200x12288xf32>  !wpe = tensor<2048x12288xf32>  !z = tensor<?x?x51200xf32>

tfm.shared @wte = "wte.weight" init(normal, 0.02) : !wte

tfm.block @embed(%t: !ids) -> !x {
  %wte = tfm.use @wte : !wte
  %wpe = tfm.param "wpe.weight" init(normal, 0.02) : !wpe
  %e = tfm.embedding %t, %wte : !ids, !wte -> !x
  %y = tfm.add_positions %e, %wpe : !x, !wpe -> !x
  tfm.yield %y : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "ln_1.weight" init(ones) : !v                             %c1 = tfm.param "ln_1.bias" init(zeros) : !v
  %wq = tfm.param "attn.q.weight" init(normal, 0.02) : !m                   %bq = tfm.param "attn.q.bias" init(zeros) : !v
  %wk = tfm.param "attn.k.weight" init(normal, 0.02) : !m                   %bk = tfm.param "attn.k.bias" init(zeros) : !v
  %wv = tfm.param "attn.v.weight" init(normal, 0.02) : !m                   %bv = tfm.param "attn.v.bias" init(zeros) : !v
  %wo = tfm.param "attn.o.weight" init(normal, 0.0014433756729740645) : !m  %bo = tfm.param "attn.o.bias" init(zeros) : !v
  %n = tfm.layer_norm %x, %g1, %c1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, !m -> !x   %q1 = tfm.add_bias %q0, %bq : !x, !v   %q = tfm.split_heads %q1 : !x -> !h
  %k0 = tfm.linear %n, %wk : !x, !m -> !x   %k1 = tfm.add_bias %k0, %bk : !x, !v   %k = tfm.split_heads %k1 : !x -> !h
  %v0 = tfm.linear %n, %wv : !x, !m -> !x   %v1 = tfm.add_bias %v0, %bv : !x, !v   %v = tfm.split_heads %v1 : !x -> !h
  %a0 = tfm.attention %q, %k, %v causal scale(0.08838834764831843) : !h, !h   %a = tfm.merge_heads %a0 : !h -> !x
  %o0 = tfm.linear %a, %wo : !x, !m -> !x   %o = tfm.add_bias %o0, %bo : !x, !v   %y = tfm.add %x, %o : !x

  %g2 = tfm.param "ln_2.weight" init(ones) : !v                                  %c2 = tfm.param "ln_2.bias" init(zeros) : !v
  %wu = tfm.param "mlp.fc.weight" init(normal, 0.02) : !up                       %bu = tfm.param "mlp.fc.bias" init(zeros) : !b
  %wd = tfm.param "mlp.proj.weight" init(normal, 0.0014433756729740645) : !down  %bd = tfm.param "mlp.proj.bias" init(zeros) : !v
  %n2 = tfm.layer_norm %y, %g2, %c2 epsilon(1.0e-5) : !x, !v
  %u0 = tfm.linear %n2, %wu : !x, !up -> !f   %u1 = tfm.add_bias %u0, %bu : !f, !b   %u = tfm.gelu %u1 tanh : !f
  %d0 = tfm.linear %u, %wd : !f, !down -> !x   %d = tfm.add_bias %d0, %bd : !x, !v   %z = tfm.add %y, %d : !x
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

tfm.model @gpt3_175b max_sequence(2048) {
  %tokens = tfm.input "tokens" : !ids
  %labels = tfm.input "labels" : !ids
  %x = tfm.call @embed(%tokens) : (!ids) -> !x
  %y = tfm.repeat @layer times 96(%x) prefix "h" : !x
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  tfm.loss_term "lm", %sum, %count : tensor<f32>, tensor<i64>
}
