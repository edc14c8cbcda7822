module {
  tfm.block @embed(%arg0: tensor<?x?xi32>) -> tensor<?x?x64xf32> {
    %model.embed_tokens.weight = tfm.param "model.embed_tokens.weight" init(normal, 0.02) : tensor<257x64xf32>
    %0 = tfm.embedding %arg0, %model.embed_tokens.weight : tensor<?x?xi32>, tensor<257x64xf32> -> tensor<?x?x64xf32>
    tfm.yield %0 : tensor<?x?x64xf32>
  }
  tfm.block @layer(%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?xi32>, %arg2: tensor<?x?xi32>) -> tensor<?x?x64xf32> {
    %input_layernorm.weight = tfm.param "input_layernorm.weight" init(ones) : tensor<64xf32>
    %self_attn.q_proj.weight = tfm.param "self_attn.q_proj.weight" init(normal, 0.02) : tensor<96x64xf32>
    %self_attn.k_proj.weight = tfm.param "self_attn.k_proj.weight" init(normal, 0.02) : tensor<24x64xf32>
    %self_attn.v_proj.weight = tfm.param "self_attn.v_proj.weight" init(normal, 0.02) : tensor<24x64xf32>
    %self_attn.o_proj.weight = tfm.param "self_attn.o_proj.weight" init(normal, 0.005773502691896258) : tensor<64x96xf32>
    %0 = tfm.rms_norm %arg0, %input_layernorm.weight epsilon(1.0e-05) : tensor<?x?x64xf32>, tensor<64xf32>
    %1 = tfm.linear %0, %self_attn.q_proj.weight : tensor<?x?x64xf32>, tensor<96x64xf32> -> tensor<?x?x96xf32>
    %2 = tfm.split_heads %1 : tensor<?x?x96xf32> -> tensor<?x?x8x12xf32>
    %3 = tfm.rope %2 at %arg1 base(10000.0) : tensor<?x?x8x12xf32>, tensor<?x?xi32>
    %4 = tfm.linear %0, %self_attn.k_proj.weight : tensor<?x?x64xf32>, tensor<24x64xf32> -> tensor<?x?x24xf32>
    %5 = tfm.split_heads %4 : tensor<?x?x24xf32> -> tensor<?x?x2x12xf32>
    %6 = tfm.rope %5 at %arg1 base(10000.0) : tensor<?x?x2x12xf32>, tensor<?x?xi32>
    %7 = tfm.linear %0, %self_attn.v_proj.weight : tensor<?x?x64xf32>, tensor<24x64xf32> -> tensor<?x?x24xf32>
    %8 = tfm.split_heads %7 : tensor<?x?x24xf32> -> tensor<?x?x2x12xf32>
    %9 = tfm.attention %3, %6, %8 at %arg1 in %arg2, %arg1 in %arg2 causal scale(0.2886751345948129)  : tensor<?x?x8x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x?xi32>
    %10 = tfm.merge_heads %9 : tensor<?x?x8x12xf32> -> tensor<?x?x96xf32>
    %11 = tfm.linear %10, %self_attn.o_proj.weight : tensor<?x?x96xf32>, tensor<64x96xf32> -> tensor<?x?x64xf32>
    %12 = tfm.add %arg0, %11 : tensor<?x?x64xf32>
    %post_attention_layernorm.weight = tfm.param "post_attention_layernorm.weight" init(ones) : tensor<64xf32>
    %mlp.gate_proj.weight = tfm.param "mlp.gate_proj.weight" init(normal, 0.02) : tensor<136x64xf32>
    %mlp.up_proj.weight = tfm.param "mlp.up_proj.weight" init(normal, 0.02) : tensor<136x64xf32>
    %mlp.down_proj.weight = tfm.param "mlp.down_proj.weight" init(normal, 0.005773502691896258) : tensor<64x136xf32>
    %13 = tfm.rms_norm %12, %post_attention_layernorm.weight epsilon(1.0e-05) : tensor<?x?x64xf32>, tensor<64xf32>
    %14 = tfm.linear %13, %mlp.gate_proj.weight : tensor<?x?x64xf32>, tensor<136x64xf32> -> tensor<?x?x136xf32>
    %15 = tfm.linear %13, %mlp.up_proj.weight : tensor<?x?x64xf32>, tensor<136x64xf32> -> tensor<?x?x136xf32>
    %16 = tfm.gated  silu %14, %15 : tensor<?x?x136xf32>
    %17 = tfm.linear %16, %mlp.down_proj.weight : tensor<?x?x136xf32>, tensor<64x136xf32> -> tensor<?x?x64xf32>
    %18 = tfm.add %12, %17 : tensor<?x?x64xf32>
    tfm.yield %18 : tensor<?x?x64xf32>
  }
  tfm.block @head(%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?xi32>) -> tensor<f32> {
    %model.norm.weight = tfm.param "model.norm.weight" init(ones) : tensor<64xf32>
    %lm_head.weight = tfm.param "lm_head.weight" init(normal, 0.02) : tensor<257x64xf32>
    %0 = tfm.rms_norm %arg0, %model.norm.weight epsilon(1.0e-05) : tensor<?x?x64xf32>, tensor<64xf32>
    %1 = tfm.linear %0, %lm_head.weight : tensor<?x?x64xf32>, tensor<257x64xf32> -> tensor<?x?x257xf32>
    %2 = tfm.cross_entropy %1, %arg1 ignore(-100) : tensor<?x?x257xf32>, tensor<?x?xi32> -> tensor<f32>
    tfm.yield %2 : tensor<f32>
  }
  tfm.model @llama_tiny max_sequence(128) {
    %tokens = tfm.input "tokens" : tensor<?x?xi32>
    %labels = tfm.input "labels" : tensor<?x?xi32>
    %positions = tfm.input "positions" : tensor<?x?xi32>
    %segment_ids = tfm.input "segment_ids" : tensor<?x?xi32>
    %0 = tfm.call @embed(%tokens) : (tensor<?x?xi32>) -> tensor<?x?x64xf32>
    %1 = tfm.repeat @layer times 6(%0) with (%positions, %segment_ids) prefix "model.layers" : tensor<?x?x64xf32> with tensor<?x?xi32>, tensor<?x?xi32>
    %2 = tfm.call @head(%1, %labels) : (tensor<?x?x64xf32>, tensor<?x?xi32>) -> tensor<f32>
    %3 = tfm.count_valid %labels ignore(-100) : tensor<?x?xi32> -> tensor<i64>
    tfm.loss_term "lm", %2, %3 : tensor<f32>, tensor<i64>
  }
}

