//===- TfmDialect.td - Transformers ---------------------------------------===//
#ifndef MEGA_DIALECTS_TFM_TFMDIALECT
#define MEGA_DIALECTS_TFM_TFMDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/tfm/TfmInterfaces.td"

def Tfm_Dialect : Dialect {
  let name = "tfm";
  let cppNamespace = "::mega::tfm";
  let summary = "Transformers: parameters, blocks, layers, losses.";
  let description = [{
    A model is rolled: a block is a function compiled once and applied many
    times. Tensors are `[batch, sequence, ...]` with `?` for the first two until
    BindShapes binds them; shapes are global; a type's encoding is its layout
    (dialect `dist`). Weights are `[out, in]`.
  }];
  let dependentDialects = ["::mega::dist::DistDialect"];
  let useDefaultAttributePrinterParser = 1;
}

class Tfm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tfm_Dialect, mnemonic, traits>;

// A float tensor, a float vector or matrix, token ids, statistics, scalars.
def Tfm_Tensor : RankedTensorOf<[F32, BF16, F64, I32, I64]>;
def Tfm_Float : RankedTensorOf<[F32, BF16]>;
def Tfm_Activation : TensorRankOf<[F32, BF16], [3]>;
def Tfm_Heads : TensorRankOf<[F32, BF16], [4]>;
def Tfm_Vector : TensorRankOf<[F32, BF16], [1]>;
def Tfm_Matrix : TensorRankOf<[F32, BF16], [2]>;
def Tfm_Ids : TensorRankOf<[I32], [2]>;
// One f32 per row, or per row and head.
def Tfm_Statistics : TensorRankOf<[F32], [2, 3]>;
def Tfm_Scalar : TensorRankOf<[F32], [0]>;
def Tfm_Count : TensorRankOf<[I64], [0]>;
def Tfm_SquareSum : TensorRankOf<[F64], [0]>;

// An op that computes: pure, with a cost, a lowering and a sharding rule. The
// rule is in the notation of runtime/plan/ShardingRule.h; without one, because it
// depends on the operands, the op's .cpp has getShardingRule().
class Tfm_MathOp<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<Cost>,
                        DeclareOpInterfaceMethods<LowerToExec>,
                        DeclareOpInterfaceMethods<Sharded>] # traits> {
  string shardingRule = "";
  let extraClassDefinition = !if(!empty(shardingRule), "",
    "::mega::ShardingRule $cppClass::getShardingRule() {\n" #
    "  return ::mega::ShardingRule::parse(\"" # shardingRule # "\");\n}\n");
}

// One that can stand in a model: it also has a gradient.
class Tfm_LayerOp<string mnemonic, list<Trait> traits = []>
    : Tfm_MathOp<mnemonic,
                 [DeclareOpInterfaceMethods<Differentiable>] # traits>;

// One with a variant that also yields what the backward needs.
class Tfm_ExpandedLayerOp<string mnemonic, list<Trait> traits = []>
    : Tfm_MathOp<mnemonic, [DeclareOpInterfaceMethods<
          Differentiable, ["expandForTraining"]>] # traits>;

def Tfm_InitializerKind : I32EnumAttr<"Initializer", "initial value", [
    I32EnumAttrCase<"Zeros", 0, "zeros">,
    I32EnumAttrCase<"Ones", 1, "ones">,
    I32EnumAttrCase<"Normal", 2, "normal">,
    I32EnumAttrCase<"Constant", 3, "constant">]> {
  let cppNamespace = "::mega::tfm";
}

def Tfm_GeluKind : I32EnumAttr<"GeluKind", "form of gelu", [
    I32EnumAttrCase<"Tanh", 0, "tanh">,
    I32EnumAttrCase<"Erf", 1, "erf">]> {
  let cppNamespace = "::mega::tfm";
  let genSpecializedAttr = 0;
}
def Tfm_GeluKindAttr : EnumAttr<Tfm_Dialect, Tfm_GeluKind, "gelu_kind">;

def Tfm_GateKind : I32EnumAttr<"GateKind", "activation of a gate", [
    I32EnumAttrCase<"Silu", 0, "silu">,
    I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
    I32EnumAttrCase<"GeluErf", 2, "gelu_erf">]> {
  let cppNamespace = "::mega::tfm";
  let genSpecializedAttr = 0;
}
def Tfm_GateKindAttr : EnumAttr<Tfm_Dialect, Tfm_GateKind, "gate_kind">;

def Tfm_Recompute : I32EnumAttr<"Recompute", "what a backward computes again", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Selective", 1, "selective">,
    I32EnumAttrCase<"Full", 2, "full">]> {
  let cppNamespace = "::mega::tfm";
  let genSpecializedAttr = 0;
}
def Tfm_RecomputeAttr : EnumAttr<Tfm_Dialect, Tfm_Recompute, "recompute"> {
  let assemblyFormat = "`<` $value `>`";
}

// The numbers are those of runtime/plan/RopeFrequencies.h.
def Tfm_RopeScalingKind : I32EnumAttr<"RopeScalingKind", "rope scaling", [
    I32EnumAttrCase<"Linear", 1, "linear">,
    I32EnumAttrCase<"Llama3", 2, "llama3">,
    I32EnumAttrCase<"Yarn", 3, "yarn">]> {
  let cppNamespace = "::mega::tfm";
  let genSpecializedAttr = 0;
}

def Tfm_RopeScalingAttr : AttrDef<Tfm_Dialect, "RopeScaling"> {
  let mnemonic = "rope_scaling";
  let summary = "How rotary frequencies are stretched for longer sequences";
  let description = [{
    With `f` the frequency of a pair, `original` the positions the model was
    first trained on and `n` the rotations it makes within them:

    - `<linear, factor(s)>`: `f / s` (Chen et al., 2023);
    - `<llama3, factor(s), low(a), high(b), original(p)>`: f where `n > b`,
      `f / s` where `n < a`, blended between (Llama 3.1);
    - `<yarn, factor(s), original(p), beta_fast(b), beta_slow(a),
      attention(t)>`: f above b rotations, `f / s` below a, a linear ramp over
      the pairs between; cosines and sines are multiplied by t, usually
      `0.1 ln(s) + 1` (Peng et al., 2023).

    **Constraints**
    - (RS1) every number of the kind is given, and no other.
    - (RS2) factor is at least 1, the others are positive, low is below high
      and beta_slow below beta_fast.

    ```mlir
    func.func @f(%x: tensor<?x?x4x16xf32>) {
      %y = tfm.rope %x base(500000.0) scaling <llama3, factor(8.0), low(1.0), high(4.0), original(8192.0)> : tensor<?x?x4x16xf32>
      return
    }
    ```
  }];
  let parameters = (ins "::mega::tfm::RopeScalingKind":$kind,
                        "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$low,
                        "::mlir::FloatAttr":$high,
                        "::mlir::FloatAttr":$original,
                        "::mlir::FloatAttr":$beta_fast,
                        "::mlir::FloatAttr":$beta_slow,
                        "::mlir::FloatAttr":$attention);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
