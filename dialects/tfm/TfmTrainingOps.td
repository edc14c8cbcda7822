//===- TfmTrainingOps.td - What Differentiate and FuseKernels build -------===//
#ifndef MEGA_DIALECTS_TFM_TFMTRAININGOPS
#define MEGA_DIALECTS_TFM_TFMTRAININGOPS

include "dialects/dist/DistAttrs.td"
include "dialects/tfm/TfmDialect.td"

//===----------------------------------------------------------------------===//
// Forward variants that also yield what their backward needs.
//===----------------------------------------------------------------------===//

def Tfm_LayerNormStatsOp : Tfm_LayerOp<"layer_norm_stats", [
    AllTypesMatch<["x", "result"]>, AllTypesMatch<["gamma", "beta"]>,
    AllTypesMatch<["mean", "rstd"]>]> {
  let summary = "tfm.layer_norm with its row statistics";
  let description = [{
    Also yields the mean and `1 / sqrt(variance + epsilon)` of every row, which
    tfm.layer_norm_grad reads.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %g: tensor<64xf32>) {
      %y, %m, %r = tfm.layer_norm_stats %x, %g, %g epsilon(1.0e-5)
        : tensor<2x8x64xf32>, tensor<64xf32> -> tensor<2x8xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsF, F, F -> bsF, bs, bs";
  let arguments = (ins Tfm_Activation:$x, Tfm_Vector:$gamma, Tfm_Vector:$beta,
                       F64Attr:$epsilon);
  let results = (outs Tfm_Activation:$result, Tfm_Statistics:$mean,
                      Tfm_Statistics:$rstd);
  let assemblyFormat = [{
    $x `,` $gamma `,` $beta `epsilon` `(` custom<Float>($epsilon) `)` attr-dict
    `:` type($x) `,` type($gamma) `->` type($mean)
  }];
}

def Tfm_RmsNormStatsOp : Tfm_LayerOp<"rms_norm_stats", [
    AllTypesMatch<["x", "result"]>]> {
  let summary = "tfm.rms_norm with its reciprocal norms";
  let description = [{
    Also yields `1 / sqrt(mean(x^2) + epsilon)` of every row; of a tensor with heads
    `[batch, sequence, heads]`. Read by tfm.rms_norm_grad.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %g: tensor<64xf32>) {
      %y, %r = tfm.rms_norm_stats %x, %g epsilon(1.0e-5)
        : tensor<2x8x64xf32>, tensor<64xf32> -> tensor<2x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Float:$x, Tfm_Vector:$gamma, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tfm_Float:$result, Tfm_Statistics:$rstd);
  let assemblyFormat = [{
    $x `,` $gamma `epsilon` `(` custom<Float>($epsilon) `)`
    (`offset` `(` custom<Float>($offset)^ `)`)? attr-dict
    `:` type($x) `,` type($gamma) `->` type($rstd)
  }];
}

def Tfm_AddLayerNormOp : Tfm_MathOp<"add_layer_norm", [
    AllTypesMatch<["lhs", "rhs", "sum", "result"]>,
    AllTypesMatch<["gamma", "beta"]>, AllTypesMatch<["mean", "rstd"]>]> {
  let summary = "tfm.add and tfm.layer_norm_stats in one pass over memory";
  let description = [{
    `sum = lhs + rhs`, which stays the residual stream, and its norm. Made by
    FuseKernels.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %g: tensor<64xf32>) {
      %s, %y, %m, %r = tfm.add_layer_norm %x, %x, %g, %g epsilon(1.0e-5)
        : tensor<2x8x64xf32>, tensor<64xf32> -> tensor<2x8xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsF, bsF, F, F -> bsF, bsF, bs, bs";
  let arguments = (ins Tfm_Activation:$lhs, Tfm_Activation:$rhs,
                       Tfm_Vector:$gamma, Tfm_Vector:$beta, F64Attr:$epsilon);
  let results = (outs Tfm_Activation:$sum, Tfm_Activation:$result,
                      Tfm_Statistics:$mean, Tfm_Statistics:$rstd);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $gamma `,` $beta `epsilon` `(` custom<Float>($epsilon) `)`
    attr-dict `:` type($lhs) `,` type($gamma) `->` type($mean)
  }];
}

def Tfm_AddRmsNormOp : Tfm_MathOp<"add_rms_norm", [
    AllTypesMatch<["lhs", "rhs", "sum", "result"]>]> {
  let summary = "tfm.add and tfm.rms_norm_stats in one pass over memory";
  let description = [{
    `sum = lhs + rhs`, which stays the residual stream, and its norm. Made by
    FuseKernels.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %g: tensor<64xf32>) {
      %s, %y, %r = tfm.add_rms_norm %x, %x, %g epsilon(1.0e-5)
        : tensor<2x8x64xf32>, tensor<64xf32> -> tensor<2x8xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsF, bsF, F -> bsF, bsF, bs";
  let arguments = (ins Tfm_Activation:$lhs, Tfm_Activation:$rhs,
                       Tfm_Vector:$gamma, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tfm_Activation:$sum, Tfm_Activation:$result,
                      Tfm_Statistics:$rstd);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $gamma `epsilon` `(` custom<Float>($epsilon) `)`
    (`offset` `(` custom<Float>($offset)^ `)`)? attr-dict
    `:` type($lhs) `,` type($gamma) `->` type($rstd)
  }];
}

def Tfm_BiasGeluOp : Tfm_MathOp<"bias_gelu", [
    AllTypesMatch<["x", "sum", "result"]>]> {
  let summary = "tfm.add_bias and tfm.gelu in one pass over memory";
  let description = [{
    `sum = x + bias`, which the backward of gelu needs, and `result = gelu(sum)`.
    Made by FuseKernels.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %b: tensor<64xf32>) {
      %z, %y = tfm.bias_gelu %x, %b tanh : tensor<2x8x64xf32>, tensor<64xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsf, f -> bsf, bsf";
  let arguments = (ins Tfm_Activation:$x, Tfm_Vector:$bias,
                       Tfm_GeluKindAttr:$kind);
  let results = (outs Tfm_Activation:$sum, Tfm_Activation:$result);
  let assemblyFormat =
    "$x `,` $bias $kind attr-dict `:` type($x) `,` type($bias)";
}

def Tfm_GroupedLinearOp : Tfm_MathOp<"grouped_linear", [
    SameVariadicOperandSize]> {
  let summary = "Several linears of one input as one GEMM";
  let description = [{
    The weights are neighbours in memory (ShardState) and the results column
    slices of one buffer.

    **Constraints**
    - (G1) as many results as weights, each as in tfm.linear.

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %q: tensor<96x64xf32>, %k: tensor<24x64xf32>) {
      %a, %b = tfm.grouped_linear %x, (%q, %k)
        : tensor<2x8x64xf32>, tensor<96x64xf32>, tensor<24x64xf32>
        -> tensor<2x8x96xf32>, tensor<2x8x24xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Activation:$x, Variadic<Tfm_Matrix>:$weights);
  let results = (outs Variadic<Tfm_Activation>:$results);
  let assemblyFormat = [{
    $x `,` `(` $weights `)` attr-dict `:` type($x) `,` type($weights) `->`
    type($results)
  }];
  let hasVerifier = 1;
}

def Tfm_AttentionStatsOp : Tfm_LayerOp<"attention_stats", [
    AttrSizedOperandSegments, AllTypesMatch<["q", "result"]>, AllTypesMatch<["k", "v"]>]> {
  let summary = "tfm.attention with the log-sum-exp of every row";
  let description = [{
    `lse[b, h, s]` is the log-sum-exp of row s of the scaled, masked scores: all that tfm.attention_grad needs to recompute a probability.

    ```mlir
    func.func @f(%q: tensor<2x8x4x16xf32>) {
      %y, %l = tfm.attention_stats %q, %q, %q causal scale(0.25)
        : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32> -> tensor<2x4x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Heads:$q, Tfm_Heads:$k, Tfm_Heads:$v,
                       Optional<Tfm_Ids>:$q_positions,
                       Optional<Tfm_Ids>:$q_segments,
                       Optional<Tfm_Ids>:$k_positions,
                       Optional<Tfm_Ids>:$k_segments,
                       UnitAttr:$ring, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       F64Attr:$scale,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       OptionalAttr<StrAttr>:$dropout,
                       OptionalAttr<F64Attr>:$p, OptionalAttr<I64Attr>:$key);
  let results = (outs Tfm_Heads:$result, Tfm_Statistics:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`at` $q_positions^ `in` $q_segments
    `,` $k_positions `in` $k_segments)? (`ring` $ring^)?
    (`causal` $causal^)? (`window` `(` $window^ `)`)?
    `scale` `(` custom<Float>($scale) `)`
    (`softcap` `(` custom<Float>($softcap)^ `)`)?
    custom<NamedDropout>($dropout, $p)
    (`key` `(` $key^ `)`)? attr-dict `:` type($q) `,` type($k)
    (`,` type($q_positions)^ `,` type($q_segments)
    `,` type($k_positions) `,` type($k_segments))? `->` type($lse)
  }];
}

//===----------------------------------------------------------------------===//
// Gradients. A weight gradient adds to its accumulator: its only use is a
// tfm.accumulate_gradient, which names it.
//===----------------------------------------------------------------------===//

class Tfm_GradOp<string mnemonic, string summary_, list<Trait> traits = []>
    : Tfm_MathOp<mnemonic, traits> {
  let summary = summary_;
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_EmbeddingGradOp : Tfm_GradOp<"embedding_grad",
    "Gradient of an embedding table"> {
  let description = [{
    `grad_table[ids[b, s]] += grad[b, s]`, tokens in order, so that a token that
    occurs twice gets the same bits in every run. Rows no token names stay as they
    are.
  }];
  let shardingRule = "=bs, *bsh -> vh";
  let arguments = (ins Tfm_Ids:$ids, Tfm_Activation:$grad);
  let results = (outs Tfm_Matrix:$grad_table);
}

def Tfm_PositionsGradOp : Tfm_GradOp<"positions_grad",
    "Gradient of a position table"> {
  let description = [{
    `grad_table[s] += sum over b of grad[b, s]`; rows from the sequence length on
    stay as they are. With positions `grad_table[positions[b, s]] += grad[b, s]`,
    tokens in order.
  }];
  let arguments = (ins Tfm_Activation:$grad, Optional<Tfm_Ids>:$positions);
  let results = (outs Tfm_Matrix:$grad_table);
}

def Tfm_LayerNormGradOp : Tfm_GradOp<"layer_norm_grad",
    "Gradient of tfm.layer_norm; adds to `onto` when given"> {
  let description = [{
    With `n = (x - mean) * rstd` and `g = grad * gamma`, per row:

    `grad_x = rstd * (g - mean(g) - n * mean(g * n))`, plus `onto`;
    `grad_gamma += sum over rows of grad * n`;
    `grad_beta += sum over rows of grad`.

    The means are over the last dimension. `onto` is how the gradient of a
    residual stream passes a norm without a tfm.add.
  }];
  let arguments = (ins Tfm_Activation:$grad, Tfm_Activation:$x,
                       Tfm_Vector:$gamma, Tfm_Statistics:$mean,
                       Tfm_Statistics:$rstd, Optional<Tfm_Activation>:$onto);
  let results = (outs Tfm_Activation:$grad_x, Tfm_Vector:$grad_gamma,
                      Tfm_Vector:$grad_beta);
}

def Tfm_RmsNormGradOp : Tfm_GradOp<"rms_norm_grad",
    "Gradient of tfm.rms_norm; adds to `onto` when given"> {
  let description = [{
    With `n = x * rstd` and `g = grad * (offset + gamma)`, per row (per head of a
    tensor with heads):

    `grad_x = rstd * (g - n * mean(g * n))`, plus `onto`;
    `grad_gamma += sum over rows of grad * n`.
  }];
  let arguments = (ins Tfm_Float:$grad, Tfm_Float:$x, Tfm_Vector:$gamma,
                       Tfm_Statistics:$rstd, Optional<Tfm_Float>:$onto,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tfm_Float:$grad_x, Tfm_Vector:$grad_gamma);
}

def Tfm_LinearInputGradOp : Tfm_MathOp<"linear_input_grad", [
    AttrSizedOperandSegments]> {
  let summary = "Gradient of x of one linear, or of a group of them";
  let description = [{
    `grad_x = sum over the group of grad weight`, plus `onto` when given: one
    GEMM, because the weights of a group are neighbours in memory and their
    gradients columns of one buffer.
  }];
  let arguments = (ins Variadic<Tfm_Activation>:$grads,
                       Variadic<Tfm_Matrix>:$weights,
                       Optional<Tfm_Activation>:$onto,
                       OptionalAttr<I64Attr>:$group);
  let results = (outs Tfm_Activation:$grad_x);
  let assemblyFormat = [{
    `(` $grads `)` `,` `(` $weights `)` (`onto` $onto^)?
    (`group` `(` $group^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Tfm_LinearWeightGradOp : Tfm_MathOp<"linear_weight_grad"> {
  let summary = "Gradients of the weights of one linear, or of a group of them";
  let description = [{
    `grad_weight += grad^T x` for each gradient, batch and sequence being the
    contracted dimension: one GEMM for a group.
  }];
  let arguments = (ins Tfm_Activation:$x, Variadic<Tfm_Activation>:$grads,
                       OptionalAttr<I64Attr>:$group);
  let results = (outs Variadic<Tfm_Matrix>:$grad_weights);
  let assemblyFormat = [{
    $x `,` `(` $grads `)` (`group` `(` $group^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Tfm_BiasGradOp : Tfm_GradOp<"bias_grad", "Gradient of a bias"> {
  let description = [{
    `grad_bias += sum over batch and sequence of grad`.
  }];
  let shardingRule = "*bso -> o";
  let arguments = (ins Tfm_Activation:$grad);
  let results = (outs Tfm_Vector:$grad_bias);
}

def Tfm_GeluGradOp : Tfm_MathOp<"gelu_grad", [
    AllTypesMatch<["grad", "x", "result"]>]> {
  let summary = "Gradient of tfm.gelu";
  let description = [{
    `grad * gelu'(x)`, where `gelu'(x) = Phi(x) + x * phi(x)` for `erf`, and the
    derivative of the tanh form for `tanh`.
  }];
  let shardingRule = "*bsf, bsf -> bsf";
  let arguments = (ins Tfm_Activation:$grad, Tfm_Activation:$x,
                       Tfm_GeluKindAttr:$kind);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$grad `,` $x $kind attr-dict `:` type($grad)";
}

def Tfm_SiluGradOp : Tfm_MathOp<"silu_grad", [
    AllTypesMatch<["grad", "x", "result"]>]> {
  let summary = "Gradient of tfm.silu";
  let description = [{
    `grad * s * (1 + x * (1 - s))` with `s = sigmoid(x)`.
  }];
  let shardingRule = "*bsf, bsf -> bsf";
  let arguments = (ins Tfm_Activation:$grad, Tfm_Activation:$x);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$grad `,` $x attr-dict `:` type($grad)";
}

def Tfm_GatedGradOp : Tfm_MathOp<"gated_grad", [
    AllTypesMatch<["grad", "gate", "up", "grad_gate", "grad_up"]>]> {
  let summary = "Gradients of tfm.gated";
  let description = [{
    `grad_gate = grad * up * act'(gate)`, `grad_up = grad * act(gate)`.
  }];
  let shardingRule = "*bsf, bsf, bsf -> bsf, bsf";
  let arguments = (ins Tfm_GateKindAttr:$kind, Tfm_Activation:$grad,
                       Tfm_Activation:$gate, Tfm_Activation:$up);
  let results = (outs Tfm_Activation:$grad_gate, Tfm_Activation:$grad_up);
  let assemblyFormat = "$kind $grad `,` $gate `,` $up attr-dict `:` type($grad)";
}

def Tfm_AttentionGradOp : Tfm_MathOp<"attention_grad", [
    AttrSizedOperandSegments, AllTypesMatch<["grad", "q", "out", "grad_q"]>,
    AllTypesMatch<["k", "v"]>, AllTypesMatch<["grad_k", "grad_v"]>,
    AllShapesMatch<["k", "grad_k"]>, AllElementTypesMatch<["k", "grad_k"]>]> {
  let summary = "Gradients of tfm.attention";
  let description = [{
    Per head, with `P = exp(scale * q k^T - lse)` recomputed block by block and
    `D` the row sums of `grad * out`:

    `grad_v = P^T grad`; `dS = P * (grad v^T - D)`;
    `grad_q = scale * dS k`; `grad_k = scale * dS^T q`; with a soft cap dS passes
    the derivative of the tanh.

    Key and value gradients are summed over the query heads that share the
    head. With dropout the mask of the forward is drawn again and applied to
    the `P` of `grad_v` and to `grad v^T`.
  }];
  let arguments = (ins Tfm_Heads:$grad, Tfm_Heads:$q, Tfm_Heads:$k,
                       Tfm_Heads:$v, Tfm_Heads:$out, Tfm_Statistics:$lse,
                       Optional<Tfm_Ids>:$q_positions,
                       Optional<Tfm_Ids>:$q_segments,
                       Optional<Tfm_Ids>:$k_positions,
                       Optional<Tfm_Ids>:$k_segments,
                       UnitAttr:$ring, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       F64Attr:$scale,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       OptionalAttr<StrAttr>:$dropout,
                       OptionalAttr<F64Attr>:$p, OptionalAttr<I64Attr>:$key);
  let results = (outs Tfm_Heads:$grad_q, Tfm_Heads:$grad_k, Tfm_Heads:$grad_v);
  let assemblyFormat = [{
    $grad `,` $q `,` $k `,` $v `,` $out `,` $lse
    (`at` $q_positions^ `in` $q_segments `,` $k_positions `in` $k_segments)?
    (`ring` $ring^)? (`causal` $causal^)?
    (`window` `(` $window^ `)`)? `scale` `(` custom<Float>($scale) `)`
    (`softcap` `(` custom<Float>($softcap)^ `)`)?
    custom<NamedDropout>($dropout, $p) (`key` `(` $key^ `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($lse)
    (`,` type($q_positions)^ `,` type($q_segments)
    `,` type($k_positions) `,` type($k_segments))? `->` type($grad_k)
  }];
}

def Tfm_HeadLossGradOp : Tfm_GradOp<"head_loss_grad",
    "Gradients of the sum and the target logit", [
    AllTypesMatch<["sum", "grad_sum", "grad_target"]>]> {
  let description = [{
    Of `log(sum) + max - target`, times the loss seed (weight / count):
    `grad_sum = seed / sum`, `grad_target = -seed`, both exactly 0 where the label
    is `ignore`.
  }];
  let shardingRule = "*, bs, =bs -> bs, bs";
  let arguments = (ins Tfm_Scalar:$seed, Tfm_Statistics:$sum, Tfm_Ids:$labels,
                       I64Attr:$ignore);
  let results = (outs Tfm_Statistics:$grad_sum, Tfm_Statistics:$grad_target);
}

def Tfm_HeadRescaleGradOp : Tfm_GradOp<"head_rescale_grad",
    "Gradient of the sum of tfm.head_rescale", [
    AllTypesMatch<["grad", "result"]>,
    AllShapesMatch<["grad", "max_local", "max_global"]>]> {
  let description = [{
    `result = grad * exp(max_local - max_global)`; no gradient flows to the maxima,
    which only shift exponents.
  }];
  let shardingRule = "*bs, ~bs, =bs -> bs";
  let arguments = (ins Tfm_Statistics:$grad, Tfm_Statistics:$max_local,
                       Tfm_Statistics:$max_global);
  let results = (outs Tfm_Statistics:$result);
}

def Tfm_HeadStatsGradOp : Tfm_GradOp<"head_stats_grad",
    "Gradients of hidden states and head weight; logits recomputed by tiles"> {
  let description = [{
    With `z = x weight^T`, recomputed tile by tile:

    `grad_z = grad_sum * exp(z - max) + grad_target * onehot(label)`;
    `grad_x = grad_z weight`; `grad_weight += grad_z^T x`. With a soft cap c,
    z is `c * tanh(x weight^T / c)` and its gradient passes `1 - (z / c)^2`.
  }];
  let shardingRule = "bsI, vI, =bs, ~bs, +bs, +bs -> bsI, vI";
  let arguments = (ins Tfm_Activation:$x, Tfm_Matrix:$weight, Tfm_Ids:$labels,
                       Tfm_Statistics:$max, Tfm_Statistics:$grad_sum,
                       Tfm_Statistics:$grad_target, I64Attr:$ignore,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs Tfm_Activation:$grad_x, Tfm_Matrix:$grad_weight);
}

def Tfm_AccumulateGradientOp : Tfm_Op<"accumulate_gradient", [
    DeclareOpInterfaceMethods<LowerToExec>]> {
  let summary = "Adds to the gradient of a parameter";
  let description = [{
    `target` is a parameter of the function's block, or a tfm.shared when it is
    a symbol.

    ```mlir
    func.func @f(%g: tensor<64xf32>) {
      tfm.accumulate_gradient %g into "ln_1.weight" : tensor<64xf32>
      tfm.accumulate_gradient %g into @wte : tensor<64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Float:$gradient,
                       AnyAttrOf<[StrAttr, FlatSymbolRefAttr]>:$target);
  let assemblyFormat =
    "$gradient `into` custom<Target>($target) attr-dict `:` type($gradient)";
}

//===----------------------------------------------------------------------===//
// Functions and state
//===----------------------------------------------------------------------===//

def Tfm_FunctionOp : Tfm_Op<"function", [
    FunctionOpInterface, IsolatedFromAbove, SingleBlock]> {
  let summary = "What a program of the plan calls";
  let description = [{
    The forward, backward and eval functions of a block, and those of the step.
    The last `saved` results of a forward function are kept in the block's frame
    until the backward function of the same block, whose last `saved` arguments
    they are.

    **Constraints**
    - (F1) the terminator returns the result types of the signature.
    - (F2) 0 <= saved <= results (forward) or arguments (backward).

    ```mlir
    tfm.function @twice.eval(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
      %y = tfm.add %x, %x : tensor<2x8x8xf32>
      tfm.return %y : tensor<2x8x8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<StrAttr>:$block,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$saved_results,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$saved_arguments);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Tfm_ReturnOp : Tfm_Op<"return", [Pure, Terminator, HasParent<"FunctionOp">]> {
  let summary = "Ends a tfm.function";
  let description = "The results, then what the function saves for its backward.";
  let arguments = (ins Variadic<Tfm_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Tfm_BucketOp : Tfm_Op<"bucket", [
    Symbol, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "Parameters kept, reduced and updated together";
  let description = [{
    One contiguous run of `elements` in each of the state regions: parameters,
    gradients, moments, variances. Members start at multiples of 64 elements
    (256 bytes), except inside a group of linears, whose weights follow each
    other so that they form one matrix. Padding is zero and stays zero.

    With `compute(bf16, 0)` forward and backward read a copy of that element
    type, which starts at that element of the region `weights`; the copy is made
    from the parameters after initialisation and after every optimizer step.

    ```mlir
    tfm.bucket @decayed decay elements(32768) at(0) compute(bf16, 0) {
    }
    ```

    Sizes and offsets are those of one rank. With `pieces(4)` moments and
    variances hold one of 4 equal pieces, that of the rank's coordinate on dp.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$decay,
                       I64Attr:$elements, I64Attr:$offset,
                       OptionalAttr<TypeAttr>:$compute,
                       OptionalAttr<I64Attr>:$compute_offset,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$pieces);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`decay` $decay^)? `elements` `(` $elements `)`
    `at` `(` $offset `)` (`compute` `(` $compute^ `,` $compute_offset `)`)?
    (`pieces` `(` $pieces^ `)`)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The element of region `weights` that copies element `stored` of
    /// `parameters`; only with a compute type.
    int64_t toCompute(int64_t stored) {
      return stored - static_cast<int64_t>(getOffset()) +
             static_cast<int64_t>(*getComputeOffset());
    }
  }];
}

def Tfm_MemberOp : Tfm_Op<"member", [HasParent<"BucketOp">]> {
  let summary = "A parameter in a bucket";
  let description = [{
    `block` is empty for a tfm.shared, whose symbol is then `name`. Offsets and
    strides are in elements from the start of the state regions; instance i is
    at offset + i * stride. Its logical names: for each prefix a triple (first
    index, first instance, count) in `runs`.

    ```mlir
    tfm.bucket @decayed decay elements(24576) at(0) {
      tfm.member "layer" "attn.q.weight" at(0) stride(4096) instances(6)
        logical "attn.q.weight" init(ones) prefixes ["h"] runs [0, 0, 6]
        : tensor<64x64xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$block, StrAttr:$name, I64Attr:$offset,
                       I64Attr:$stride, I64Attr:$instances, StrAttr:$logical,
                       Tfm_InitializerKind:$initializer, F64Attr:$value,
                       StrArrayAttr:$prefixes, DenseI64ArrayAttr:$runs,
                       TypeAttrOf<Tfm_Float>:$type);
  let assemblyFormat = [{
    $block $name `at` `(` $offset `)` `stride` `(` $stride `)`
    `instances` `(` $instances `)` `logical` $logical
    custom<Init>($initializer, $value) `prefixes` $prefixes `runs` $runs
    attr-dict `:` $type
  }];
}

// The step's own functions work on buckets and counters.
class Tfm_StepOp<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, [DeclareOpInterfaceMethods<LowerToExec>] # traits>;

def Tfm_BucketGradientOp : Tfm_StepOp<"bucket_gradient", [Pure]> {
  let summary = "The gradient of a bucket";
  let description = [{
    All its members' gradients as one vector, padding included, which is zero
    and so changes no norm. Its layout is the dual of that of the parameters:
    cut where they are (the vector is then what all ranks hold), partial where
    they are replicated.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let results = (outs TensorRankOf<[F32], [1]>:$result);
  let assemblyFormat = "$bucket attr-dict `:` type($result)";
}

def Tfm_StoreGradientOp : Tfm_StepOp<"store_gradient"> {
  let summary = "States that a bucket's gradient is now this";
  let description = [{
    Ends a chain of conversions from the tfm.bucket_gradient of the same bucket,
    which work in its memory. From here on tfm.bucket_gradient has that layout.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket,
                       TensorRankOf<[F32], [1]>:$gradient);
  let assemblyFormat = "$bucket `,` $gradient attr-dict `:` type($gradient)";
}

def Tfm_ZeroGradientOp : Tfm_StepOp<"zero_gradient"> {
  let summary = "Sets the gradient of a bucket to zero";
  let description = "Done in the prologue: micro-batches then only add.";
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let assemblyFormat = "$bucket attr-dict";
}

def Tfm_SumSquaresOp : Tfm_StepOp<"sum_squares", [
    Pure, AttrSizedOperandSegments]> {
  let summary = "Sum of squares over several gradients, in f64";
  let description = [{
    The square of the global gradient norm, over all parameters, before
    clipping. With `onto` it is added to a sum of the same layout, whose memory
    it takes over.

    **Constraints**
    - (SS1) gradients are invariant or cut on every axis, all alike; the result,
      and what it is added to, is partial over the axes that cut them.
  }];
  let arguments = (ins Variadic<TensorRankOf<[F32], [1]>>:$gradients,
                       Optional<Tfm_SquareSum>:$onto);
  let results = (outs Tfm_SquareSum:$result);
  let assemblyFormat = [{
    $gradients (`onto` $onto^ `:` type($onto))? attr-dict
    `:` type($gradients) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tfm_ClipScaleOp : Tfm_StepOp<"clip_scale", [Pure]> {
  let summary = "Factor that brings the gradient norm down to the clip";
  let description = [{
    `min(1, clip / (sqrt(square_sum) + 1e-6))`. The clip is given when the run
    starts (`--clip`); 0 means a factor of 1.
  }];
  let arguments = (ins Tfm_SquareSum:$square_sum);
  let results = (outs Tfm_Scalar:$result);
  let assemblyFormat =
    "$square_sum attr-dict `:` type($square_sum) `->` type($result)";
}

def Tfm_AdamWOp : Tfm_StepOp<"adamw"> {
  let summary = "One AdamW step on a bucket";
  let description = [{
    Decoupled weight decay (Loshchilov and Hutter, 2019). With `g = scale *
    gradient`, for every element:

    `m = b1 m + (1 - b1) g`; `v = b2 v + (1 - b2) g^2`;
    `w = w - lr * (m' / (sqrt(v') + epsilon) + decay * w)`

    where `m' = m / (1 - b1^step)` and `v' = v / (1 - b2^step)`. The rate, betas,
    epsilon, decay and step are the run's; `decay` is 0 for a bucket without it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket,
                       TensorRankOf<[F32], [1]>:$gradient, Tfm_Scalar:$scale);
  let assemblyFormat =
    "$bucket `,` $gradient `,` $scale attr-dict `:` type($gradient) `,` type($scale)";
}

def Tfm_GatherWeightsOp : Tfm_StepOp<"gather_weights"> {
  let summary = "Gathers the pieces of a bucket's parameters over dp";
  let description = [{
    After the optimizer updated one piece per replica, laid out as `from` says:
    an all_gather in place, of the copy to compute with if the bucket has one,
    else of the parameters.

    **Constraints**
    - (GW1) the bucket has more than one piece.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Dist_LayoutAttr:$layout);
  let assemblyFormat = "$bucket `from` $layout attr-dict";
}

def Tfm_ReadCounterOp : Tfm_StepOp<"read_counter", [Pure]> {
  let summary = "A counter's value";
  let description = "What tfm.record kept, in the layout of what it kept.";
  let arguments = (ins StrAttr:$counter);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$counter attr-dict `:` type($result)";
}

def Tfm_SumStagesOp : Tfm_StepOp<"sum_stages", [
    Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "The sum of a value over the stages of a pipeline";
  let description = [{
    Every stage has a summand of its own; layouts say nothing of it, because a
    stage is a place and no axis of tensors. With `tie` over the first and the
    last stage, which share a tied parameter.
  }];
  let arguments = (ins Tfm_Tensor:$value, UnitAttr:$tie);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$value (`tie` $tie^)? attr-dict `:` type($value)";
}

def Tfm_RoundWeightsOp : Tfm_StepOp<"round_weights"> {
  let summary = "Makes the copy of a bucket's parameters to compute with";
  let description = [{
    Rounds the parameters of a bucket with a compute type to it, nearest even:
    the rank's piece, if the layout cuts them over dp.

    **Constraints**
    - (RW1) the bucket has a compute type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket, Dist_LayoutAttr:$layout);
  let assemblyFormat = "$bucket `in` $layout attr-dict";
}

def Tfm_RecordOp : Tfm_StepOp<"record"> {
  let summary = "Keeps a value in a counter";
  let description = [{
    Counters are named scalars that live through a step: loss sums, counts,
    seeds, the square sum of gradients. With `add` the value is added.
  }];
  let arguments = (ins StrAttr:$counter, Tfm_Tensor:$value, UnitAttr:$add);
  let assemblyFormat =
    "$counter `,` $value (`add` $add^)? attr-dict `:` type($value)";
}

def Tfm_ZeroCounterOp : Tfm_StepOp<"zero_counter"> {
  let summary = "Sets a counter to zero";
  let description = "Done in the prologue, for counters that tfm.record adds to.";
  let arguments = (ins StrAttr:$counter);
  let assemblyFormat = "$counter attr-dict";
}

def Tfm_LossSeedOp : Tfm_StepOp<"loss_seed", [Pure]> {
  let summary = "weight / count: where the backward starts";
  let description = [{
    The gradient of the loss with respect to a sum of this term. A count of zero
    counts as one, so that a batch without labels gives zeros and no NaN.
  }];
  let arguments = (ins Tfm_Count:$count, F64Attr:$weight);
  let results = (outs Tfm_Scalar:$result);
  let assemblyFormat = [{
    $count `weight` `(` custom<Float>($weight) `)` attr-dict `:` type($count)
    `->` type($result)
  }];
}

#endif
