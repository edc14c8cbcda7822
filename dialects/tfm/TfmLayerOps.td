//===- TfmLayerOps.td - What a layer computes -----------------------------===//
#ifndef MEGA_DIALECTS_TFM_TFMLAYEROPS
#define MEGA_DIALECTS_TFM_TFMLAYEROPS

include "dialects/tfm/TfmDialect.td"

def Tfm_EmbeddingOp : Tfm_LayerOp<"embedding", [
    DeclareOpInterfaceMethods<IndexesByIds>]> {
  let summary = "Rows of a table, by token id";
  let description = [{
    `result[b, s] = table[ids[b, s]]`. The loader has checked that every id is a row
    of the table.

    **Constraints**
    - (E1) the result is `[batch, sequence, hidden]` of ids and table.

    ```mlir
    func.func @f(%t: tensor<?x?xi32>, %w: tensor<257x64xf32>) {
      %e = tfm.embedding %t, %w : tensor<?x?xi32>, tensor<257x64xf32> -> tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "=bs, *vh -> bsh";
  let arguments = (ins Tfm_Ids:$ids, Tfm_Matrix:$table);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = [{
    $ids `,` $table attr-dict `:` type($ids) `,` type($table) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tfm_AddPositionsOp : Tfm_LayerOp<"add_positions", [
    DeclareOpInterfaceMethods<IndexesByIds>]> {
  let summary = "Adds a learned vector per position";
  let description = [{
    `result[b, s] = x[b, s] + table[s]`: positions count from 0 in every row. With
    `at` it is `table[positions[b, s]]`: the place of a token in its document.

    **Constraints**
    - (P1) the table is `[max_sequence, hidden]` with at least as many rows as
      the sequence.
    - (P2) the positions, if any, are `[batch, sequence]` of x.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>, %w: tensor<128x64xf32>) {
      %y = tfm.add_positions %x, %w : tensor<?x?x64xf32>, tensor<128x64xf32> -> tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Activation:$x, Tfm_Matrix:$table,
                       Optional<Tfm_Ids>:$positions);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = [{
    $x `,` $table (`at` $positions^)? attr-dict `:` type($x) `,` type($table)
    (`,` type($positions)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tfm_LayerNormOp : Tfm_ExpandedLayerOp<"layer_norm", [
    AllTypesMatch<["x", "result"]>, AllTypesMatch<["gamma", "beta"]>]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, statistics in f32
    (Ba, Kiros, Hinton, 2016).

    **Constraints**
    - (N1) gamma has the extent of the last dimension.
    - (N2) epsilon is positive.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>, %g: tensor<64xf32>) {
      %y = tfm.layer_norm %x, %g, %g epsilon(1.0e-5) : tensor<?x?x64xf32>, tensor<64xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsF, F, F -> bsF";
  let arguments = (ins Tfm_Activation:$x, Tfm_Vector:$gamma, Tfm_Vector:$beta,
                       F64Attr:$epsilon);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = [{
    $x `,` $gamma `,` $beta `epsilon` `(` custom<Float>($epsilon) `)` attr-dict
    `:` type($x) `,` type($gamma)
  }];
  let hasVerifier = 1;
}

def Tfm_RmsNormOp : Tfm_ExpandedLayerOp<"rms_norm", [
    AllTypesMatch<["x", "result"]>]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    `x / sqrt(mean(x^2) + epsilon) * (offset + gamma)` (Zhang and Sennrich,
    2019); of `[batch, sequence, heads, dim]` per head (query and key norms).
    The offset is 0 unless given; Gemma's is 1.

    **Constraints**
    - (N1) gamma has the extent of the last dimension.
    - (N2) epsilon is positive.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>, %g: tensor<64xf32>) {
      %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : tensor<?x?x64xf32>, tensor<64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Float:$x, Tfm_Vector:$gamma, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tfm_Float:$result);
  let assemblyFormat = [{
    $x `,` $gamma `epsilon` `(` custom<Float>($epsilon) `)`
    (`offset` `(` custom<Float>($offset)^ `)`)? attr-dict
    `:` type($x) `,` type($gamma)
  }];
  let hasVerifier = 1;
}

def Tfm_LinearOp : Tfm_LayerOp<"linear"> {
  let summary = "x times the transpose of a weight";
  let description = [{
    `result[b, s, o] = sum over i of x[b, s, i] * weight[o, i]`. No bias:
    tfm.add_bias is its own op, because a bias follows the reduction of a
    row-parallel linear. Linears of one `group` in a block read the same x and
    become one GEMM.

    **Constraints**
    - (L1) the last dimension of x is the weight's second.
    - (L2) the last dimension of the result is the weight's first.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>, %w: tensor<96x64xf32>) {
      %y = tfm.linear %x, %w : tensor<?x?x64xf32>, tensor<96x64xf32> -> tensor<?x?x96xf32>
      return
    }
    ```
  }];
  let shardingRule = "*bsi, *oi -> bso";
  let arguments = (ins Tfm_Activation:$x, Tfm_Matrix:$weight,
                       OptionalAttr<I64Attr>:$group);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = [{
    $x `,` $weight (`group` `(` $group^ `)`)? attr-dict
    `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tfm_AddBiasOp : Tfm_LayerOp<"add_bias", [AllTypesMatch<["x", "result"]>]> {
  let summary = "Adds a vector to every row";
  let description = [{
    `result[b, s, i] = x[b, s, i] + bias[i]`.

    **Constraints**
    - (A1) the bias has the extent of the last dimension of x.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>, %b: tensor<64xf32>) {
      %y = tfm.add_bias %x, %b : tensor<?x?x64xf32>, tensor<64xf32>
      return
    }
    ```
  }];
  let shardingRule = "+bso, +o -> bso";
  let arguments = (ins Tfm_Activation:$x, Tfm_Vector:$bias);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat =
    "$x `,` $bias attr-dict `:` type($x) `,` type($bias)";
  let hasVerifier = 1;
}

def Tfm_GeluOp : Tfm_LayerOp<"gelu", [AllTypesMatch<["x", "result"]>]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `x * Phi(x)`, exactly (`erf`) or by tanh (Hendrycks and Gimpel, 2016).

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.gelu %x tanh : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsf -> bsf";
  let arguments = (ins Tfm_Activation:$x, Tfm_GeluKindAttr:$kind);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$x $kind attr-dict `:` type($x)";
}

def Tfm_SiluOp : Tfm_LayerOp<"silu", [AllTypesMatch<["x", "result"]>]> {
  let summary = "Sigmoid linear unit";
  let description = [{
    `x * sigmoid(x)`.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.silu %x : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsf -> bsf";
  let arguments = (ins Tfm_Activation:$x);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Tfm_GatedOp : Tfm_LayerOp<"gated", [AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "Gated product: activation(gate) * up";
  let description = [{
    SwiGLU (`silu`) and GeGLU (`gelu_tanh`, `gelu_erf`) (Shazeer, 2020).

    ```mlir
    func.func @f(%g: tensor<?x?x64xf32>) {
      %y = tfm.gated silu %g, %g : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsf, *bsf -> bsf";
  let arguments = (ins Tfm_GateKindAttr:$kind, Tfm_Activation:$gate,
                       Tfm_Activation:$up);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$kind $gate `,` $up attr-dict `:` type($gate)";
}

def Tfm_AddOp : Tfm_LayerOp<"add", [
    Commutative, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "Sum of two tensors";
  let description = [{
    Element by element; of one shape. The residual sum, and what joins the gradients
    of a value with several uses.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.add %x, %x : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Float:$lhs, Tfm_Float:$rhs);
  let results = (outs Tfm_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}

def Tfm_ScaleOp : Tfm_LayerOp<"scale", [AllTypesMatch<["x", "result"]>]> {
  let summary = "A tensor times a constant";
  let description = [{
    `factor * x`. Gemma multiplies embeddings by the square root of the hidden
    size. AssignPrecision rounds the factor to the type it multiplies in.

    **Constraints**
    - (S1) the factor is finite and not 0.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.scale %x factor(8.0) : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "*bsh -> bsh";
  let arguments = (ins Tfm_Activation:$x, F64Attr:$factor);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat =
    "$x `factor` `(` custom<Float>($factor) `)` attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Tfm_DropoutOp : Tfm_LayerOp<"dropout", [
    AttrSizedOperandSegments, AllTypesMatch<["x", "result"]>, DeclareOpInterfaceMethods<Randomized>]> {
  let summary = "Zeroes elements at random and scales the others";
  let description = [{
    Kept elements are divided by 1 - p. The mask is a function of seed, step,
    block, `name`, application and the element's global index, so it is the
    same in every layout and needs no memory. In eval it is the identity. Rows of
    tokens that are not in order need `at %positions in %segments`: then a token's
    place in its row is the sum of both.

    **Constraints**
    - (D1) 0 <= p < 1.
    - (D2) names are unique in a block (two dropouts of one name would use one
      mask).
    - (D3) positions and segments are both given, or neither, and are
      `[batch, sequence]` of x.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.dropout "attn" %x p(0.1) : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Tfm_Activation:$x,
                       Optional<Tfm_Ids>:$positions,
                       Optional<Tfm_Ids>:$segments, F64Attr:$p,
                       OptionalAttr<I64Attr>:$key);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = [{
    $name $x (`at` $positions^ `in` $segments)? `p` `(` custom<Float>($p) `)`
    (`key` `(` $key^ `)`)? attr-dict `:` type($x)
    (`,` type($positions)^ `,` type($segments))?
  }];
  let hasVerifier = 1;
}

def Tfm_SplitHeadsOp : Tfm_LayerOp<"split_heads"> {
  let summary = "[batch, sequence, heads*dim] as [batch, sequence, heads, dim]";
  let description = [{
    No data moves.

    **Constraints**
    - (H1) heads times dim is the last dimension of x.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = tfm.split_heads %x : tensor<?x?x64xf32> -> tensor<?x?x4x16xf32>
      return
    }
    ```
  }];
  let shardingRule = "*bsh -> bshD";
  let arguments = (ins Tfm_Activation:$x);
  let results = (outs Tfm_Heads:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Tfm_MergeHeadsOp : Tfm_LayerOp<"merge_heads"> {
  let summary = "[batch, sequence, heads, dim] as [batch, sequence, heads*dim]";
  let description = [{
    No data moves.

    **Constraints**
    - (H1) heads times dim is the last dimension of the result.

    ```mlir
    func.func @f(%x: tensor<?x?x4x16xf32>) {
      %y = tfm.merge_heads %x : tensor<?x?x4x16xf32> -> tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let shardingRule = "*bshD -> bsh";
  let arguments = (ins Tfm_Heads:$x);
  let results = (outs Tfm_Activation:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Tfm_RopeTableOp : Tfm_Op<"rope_table", [
    Pure, DeclareOpInterfaceMethods<LowerToExec>]> {
  let summary = "Cosines and sines of rotary positions";
  let description = [{
    A constant of the plan, computed once before the first step:
    `[positions, head_dim]`, cosines then sines of `position * base^(-2i/dim)`,
    the frequencies scaled as #tfm.rope_scaling says.

    ```mlir
    %t = tfm.rope_table base(10000.0) : tensor<128x16xf32>
    ```
  }];
  let arguments = (ins F64Attr:$base,
                       OptionalAttr<Tfm_RopeScalingAttr>:$scaling);
  let results = (outs Tfm_Matrix:$result);
  let assemblyFormat = [{
    `base` `(` custom<Float>($base) `)` (`scaling` $scaling^)? attr-dict `:`
    type($result)
  }];
  let extraClassDeclaration = [{
    /// What the kernel rope_table takes.
    int64_t kernelInteger();
    ::llvm::SmallVector<double> kernelFloats();
  }];
}

def Tfm_RopeOp : Tfm_LayerOp<"rope", [
    AllTypesMatch<["x", "result"]>,
    DeclareOpInterfaceMethods<IndexesByIds>]> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates the pairs (i, i + dim/2) of every head by the angle of its position
    (Su et al., 2021; the pairing of Hugging Face). `inverse` is the transpose:
    it rotates back. `scaling` stretches the frequencies for sequences longer
    than a model was first trained on, see #tfm.rope_scaling. Positions count from
    0 in every row, or are given with `at`: the place of a token in its document.

    **Constraints**
    - (R1) the head dimension is even.
    - (R2) the base is positive.
    - (R3) the positions, if any, are `[batch, sequence]` of x.

    ```mlir
    func.func @f(%x: tensor<?x?x4x16xf32>) {
      %y = tfm.rope %x base(10000.0) : tensor<?x?x4x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Heads:$x, Optional<Tfm_Ids>:$positions,
                       F64Attr:$base,
                       OptionalAttr<Tfm_RopeScalingAttr>:$scaling,
                       UnitAttr:$inverse);
  let results = (outs Tfm_Heads:$result);
  let assemblyFormat = [{
    $x (`at` $positions^)? `base` `(` custom<Float>($base) `)`
    (`scaling` $scaling^)? (`inverse` $inverse^)? attr-dict `:` type($x)
    (`,` type($positions)^)?
  }];
  let hasVerifier = 1;
}

def Tfm_AttentionOp : Tfm_ExpandedLayerOp<"attention", [
    AttrSizedOperandSegments,
    AllTypesMatch<["q", "result"]>, AllTypesMatch<["k", "v"]>,
    DeclareOpInterfaceMethods<Randomized>]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `softmax(scale * q k^T + mask) v` per head; query head h reads key/value
    head h * kv / heads. The sequence-by-sequence matrix never exists (Dao et
    al., 2022). With `window(w)` a query sees itself and the w - 1 keys before.
    With `softcap(c)` scores are `c * tanh(scale * q k^T / c)` before the mask
    (Gemma 2). Dropout, on the probabilities, carries a name as in tfm.dropout.

    With `at %qp in %qs, %kp in %ks`, positions and segments of queries and of
    keys, a row holds several documents: query i sees key j only if their segments
    are equal; `causal` and the window compare positions, not places in the row.
    Queries may then be cut along the sequence while keys are whole, or, with
    `ring`, be cut like them: then every rank meets the keys of all others in
    turn, and only the places of keys are whole (Liu, Zaharia, Abbeel, 2023).

    **Constraints**
    - (A1) q, k and v agree in batch, sequence and head dimension, and the
      key/value heads divide the query heads.
    - (A2) the window, if any, is positive.
    - (A3) 0 <= p < 1.
    - (A4) the soft cap, if any, is positive.
    - (A5) positions and segments of queries and keys are all given, or none, and
      are `[batch, sequence]` of q and k.
    - (A6) a ring has places.

    ```mlir
    func.func @f(%q: tensor<?x?x8x16xf32>, %k: tensor<?x?x2x16xf32>) {
      %y = tfm.attention %q, %k, %k causal scale(0.25) : tensor<?x?x8x16xf32>, tensor<?x?x2x16xf32>
      return
    }
    func.func @packed(%q: tensor<?x?x8x16xf32>, %p: tensor<?x?xi32>, %s: tensor<?x?xi32>) {
      %y = tfm.attention %q, %q, %q at %p in %s, %p in %s causal scale(0.25)
        : tensor<?x?x8x16xf32>, tensor<?x?x8x16xf32>, tensor<?x?xi32>, tensor<?x?xi32>,
          tensor<?x?xi32>, tensor<?x?xi32>
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
  let results = (outs Tfm_Heads:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`at` $q_positions^ `in` $q_segments
    `,` $k_positions `in` $k_segments)? (`ring` $ring^)?
    (`causal` $causal^)? (`window` `(` $window^ `)`)?
    `scale` `(` custom<Float>($scale) `)`
    (`softcap` `(` custom<Float>($softcap)^ `)`)?
    custom<NamedDropout>($dropout, $p)
    (`key` `(` $key^ `)`)? attr-dict `:` type($q) `,` type($k)
    (`,` type($q_positions)^ `,` type($q_segments)
    `,` type($k_positions) `,` type($k_segments))?
  }];
  let hasVerifier = 1;
}

def Tfm_CrossEntropyOp : Tfm_Op<"cross_entropy", [Pure]> {
  let summary = "Sum over tokens of the negative log-likelihood";
  let description = [{
    Tokens whose label is `ignore` contribute exactly nothing. With `softcap(c)`
    it is that of `c * tanh(logits / c)` (Gemma 2). FuseSemantics joins it with
    the tfm.linear that makes the logits, so that they never exist as a whole.

    **Constraints**
    - (X1) logits and labels agree in batch and sequence.
    - (X2) the logits come from a tfm.linear and have no other use.
    - (X3) the soft cap, if any, is positive.

    ```mlir
    func.func @f(%z: tensor<?x?x257xf32>, %l: tensor<?x?xi32>) {
      %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<?x?x257xf32>, tensor<?x?xi32> -> tensor<f32>
      return
    }
    ```
  }];
  let arguments = (ins Tfm_Activation:$logits, Tfm_Ids:$labels, I64Attr:$ignore,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs Tfm_Scalar:$result);
  let assemblyFormat = [{
    $logits `,` $labels `ignore` `(` $ignore `)`
    (`softcap` `(` custom<Float>($softcap)^ `)`)? attr-dict
    `:` type($logits) `,` type($labels) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The fused head: three steps, so that the shard phase can put its collectives
// between them.
//===----------------------------------------------------------------------===//

def Tfm_HeadStatsOp : Tfm_LayerOp<"head_stats", [
    AllShapesMatch<["max", "sum", "target"]>,
    DeclareOpInterfaceMethods<IndexesByIds>]> {
  let summary = "Statistics of the logits x w^T per token";
  let description = [{
    The maximum, the sum of exponentials relative to it and the logit of the
    label, over the rows of w on this rank, of `c * tanh(x w^T / c)` with
    `softcap(c)`. The logits only exist as a tile. The maximum is inactive (no gradient flows through it).

    ```mlir
    func.func @f(%x: tensor<2x8x64xf32>, %w: tensor<257x64xf32>, %l: tensor<2x8xi32>) {
      %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100)
        : tensor<2x8x64xf32>, tensor<257x64xf32>, tensor<2x8xi32>
        -> tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
      return
    }
    ```
  }];
  let shardingRule = "bsI, vI, =bs -> ^bs, bs, bs";
  let arguments = (ins Tfm_Activation:$x, Tfm_Matrix:$weight, Tfm_Ids:$labels,
                       I64Attr:$ignore,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs Tfm_Statistics:$max, Tfm_Statistics:$sum,
                      Tfm_Statistics:$target);
  let assemblyFormat = [{
    $x `,` $weight `,` $labels `ignore` `(` $ignore `)`
    (`softcap` `(` custom<Float>($softcap)^ `)`)? attr-dict
    `:` type($x) `,` type($weight) `,` type($labels) `->` type($max) `,`
    type($sum) `,` type($target)
  }];
}

def Tfm_HeadRescaleOp : Tfm_LayerOp<"head_rescale", [
    AllTypesMatch<["sum", "result"]>,
    AllShapesMatch<["sum", "max_local", "max_global"]>]> {
  let summary = "A sum of exponentials relative to another maximum";
  let description = [{
    `sum * exp(max_local - max_global)`.

    ```mlir
    func.func @f(%s: tensor<2x8xf32>) {
      %r = tfm.head_rescale %s, %s, %s : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
      return
    }
    ```
  }];
  let shardingRule = "*bs, ~bs, =bs -> bs";
  let arguments = (ins Tfm_Statistics:$sum, Tfm_Statistics:$max_local,
                       Tfm_Statistics:$max_global);
  let results = (outs Tfm_Statistics:$result);
  let assemblyFormat =
    "$sum `,` $max_local `,` $max_global attr-dict `:` type($sum) `,` "
    "type($max_local) `,` type($max_global)";
  let hasFolder = 1;
}

def Tfm_HeadLossOp : Tfm_LayerOp<"head_loss", [
    AllTypesMatch<["max", "sum", "target"]>]> {
  let summary = "Sum over valid tokens of log(sum) + max - target";
  let description = [{
    The cross entropy, from the statistics of tfm.head_stats. Tokens whose label is
    `ignore` contribute exactly nothing.

    ```mlir
    func.func @f(%s: tensor<2x8xf32>, %l: tensor<2x8xi32>) {
      %r = tfm.head_loss %s, %s, %s, %l ignore(-100) : tensor<2x8xf32>, tensor<2x8xi32> -> tensor<f32>
      return
    }
    ```
  }];
  let shardingRule = "=bs, bs, bs, =bs -> ";
  let arguments = (ins Tfm_Statistics:$max, Tfm_Statistics:$sum,
                       Tfm_Statistics:$target, Tfm_Ids:$labels,
                       I64Attr:$ignore);
  let results = (outs Tfm_Scalar:$result);
  let assemblyFormat = [{
    $max `,` $sum `,` $target `,` $labels `ignore` `(` $ignore `)` attr-dict
    `:` type($max) `,` type($labels) `->` type($result)
  }];
}

#endif
