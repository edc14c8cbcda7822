//===- Kernels.h - The list of kernels --------------------------*- C++ -*-===//
//
// What the compiler may launch and every device implements: one table, shared
// by LowerToExec, PlanMemory, the plan loader, the verifier and the devices.
// A kernel's operands are buffers (Shape.h); its attributes are integers and
// floats. `check` is the only statement of its shape rules.
//
// Adding a kernel: an enumerator here, a row in Kernels.cpp, its check in
// KernelChecks.h, a file per device, a double-precision reference in
// test/runtime/reference.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_KERNELS_H
#define MEGA_RUNTIME_PLAN_KERNELS_H

#include "runtime/plan/Shape.h"
#include "runtime/plan/Status.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mega {

/// Numeric values are part of the plan format; append only.
enum class Kernel : uint16_t {
  // Linear algebra
  Gemm = 0,
  // Embeddings
  Embedding,
  EmbeddingGrad,
  AddPositions,
  PositionsGrad,
  // Norms
  LayerNorm,
  LayerNormGrad,
  RmsNorm,
  RmsNormGrad,
  AddLayerNorm,
  AddRmsNorm,
  // Element-wise
  AddBias,
  BiasGrad,
  BiasGelu,
  Gelu,
  GeluGrad,
  Silu,
  SiluGrad,
  Gated,
  GatedGrad,
  Add,
  Dropout,
  // Attention
  RopeTable,
  Rope,
  Attention,
  AttentionGrad,
  // Output head and cross entropy
  HeadStats,
  HeadRescale,
  HeadLoss,
  HeadLossGrad,
  HeadRescaleGrad,
  HeadStatsGrad,
  CountValid,
  LossSeed,
  // Buffers
  Zero,
  Copy,
  Accumulate,
  // Optimizer
  SumSquares,
  ClipScale,
  AdamW,
  // Element types and factors
  Cast,
  Scale,
  // Between ranks
  AllReduce,
  AllGather,
  ReduceScatter,
  Slice,
  ToPartial,
  // Between stages
  SendStart,
  SendWait,
  ReceiveStart,
  ReceiveWait,
  SumStages,
  // Of packed sequences: places in documents are operands
  AddPositionsAt,
  PositionsGradAt,
  RopeAt,
  PackedAttention,
  PackedAttentionGrad,
  DropoutAt,
  // Of sequences cut over ranks
  RingAttention,
  RingAttentionGrad,
  // Between ranks, from one dimension to another
  AllToAll,
};
inline constexpr int kKernelCount = static_cast<int>(Kernel::AllToAll) + 1;
/// Whether the kernel is a collective operation on one tensor.
constexpr bool isCollective(Kernel kernel) {
  return kernel == Kernel::AllReduce || kernel == Kernel::AllGather ||
         kernel == Kernel::ReduceScatter || kernel == Kernel::AllToAll;
}
/// Whether the kernel is a conversion between layouts: it keeps the value of
/// the whole tensor. Its integer "group" is one of Plan.groups.
constexpr bool isConversion(Kernel kernel) {
  return isCollective(kernel) || kernel == Kernel::Slice ||
         kernel == Kernel::ToPartial;
}

/// Whether the kernel computes with what the other ranks of its group have: its
/// integer "group" is one of Plan.groups (RingSteps.h says who sends what).
constexpr bool isRing(Kernel kernel) {
  return kernel == Kernel::RingAttention || kernel == Kernel::RingAttentionGrad;
}

/// Whether the kernel exchanges data with ranks of other stages, which have
/// other values.
constexpr bool isBetweenStages(Kernel kernel) {
  return kernel >= Kernel::SendStart && kernel <= Kernel::SumStages;
}

/// Whether the kernel's first integer is a group.
constexpr bool hasGroup(Kernel kernel) {
  return isConversion(kernel) || isRing(kernel) || isBetweenStages(kernel);
}

/// How a kernel touches an operand.
enum class Access : uint8_t {
  Read,
  /// Every element is written; what was there before does not matter.
  Write,
  /// Every element is read and written (gradient accumulation).
  ReadWrite,
  /// `Write` when the integer attribute "accumulate" is 0, else `ReadWrite`.
  WriteOrAccumulate,
  /// Contents are undefined before and after.
  Scratch,
};

struct OperandSpec {
  std::string_view name;
  Access access;
  /// The operand may share its storage, element for element, with this
  /// earlier operand that it replaces (-1: never), unless the integer "zigzag"
  /// is 1: a piece is no interval of the whole then.
  int inPlaceOf = -1;
  int alsoInPlaceOf = -1;
};

/// One launch without its buffers: types of the operands and the attributes,
/// in the order of the spec.
struct LaunchSignature {
  std::span<const BufferType> operands;
  std::span<const int64_t> integers;
  std::span<const double> floats;
};

struct KernelSpec {
  Kernel kernel;
  std::string_view name;
  std::vector<OperandSpec> operands;
  std::vector<std::string_view> integers;
  std::vector<std::string_view> floats;
  /// Shape, type and attribute rules beyond the number of operands.
  Status (*check)(const LaunchSignature &);
};

/// The row of `kernel`; valid for every enumerator.
const KernelSpec &kernelSpec(Kernel kernel);
/// The kernel called `name`, or nothing.
std::optional<Kernel> findKernel(std::string_view name);
/// Checks operand count, attribute counts and the kernel's own rules.
Status checkLaunch(Kernel kernel, const LaunchSignature &signature);

/// Where the kernel has the integer called `name`; integers.size() if nowhere.
size_t integerIndex(const KernelSpec &spec, std::string_view name);

/// `access` of operand `index`, with WriteOrAccumulate resolved.
Access resolvedAccess(const KernelSpec &spec, int index,
                      std::span<const int64_t> integers);
/// Whether the integers of a launch let it work in place where its spec does.
bool worksInPlace(const KernelSpec &spec, std::span<const int64_t> integers);

//===----------------------------------------------------------------------===//
// Scratch sizes: functions of the problem alone, so that compiler and device
// agree on them.
//===----------------------------------------------------------------------===//

/// The head works on tiles of logits, [headTokens, headColumns], in f32.
struct HeadTile {
  int64_t tokens;
  int64_t columns;
};
/// The tile for `tokens` rows and `vocabulary` columns.
HeadTile headTile(int64_t tokens, int64_t vocabulary);
/// f32 elements of the scratch of head_stats: a tile.
int64_t headScratch(int64_t tokens, int64_t vocabulary);
/// f32 elements of the scratch of head_stats_grad: a tile and, unless `type`
/// (of the activations) is f32 itself, the sums over tiles of grad_x in f32.
int64_t headGradScratch(int64_t tokens, int64_t vocabulary, int64_t hidden,
                        DataType type);

/// Elements, of the data's own type, in which a collective over dimension `dim`
/// of `whole` packs its pieces: 1 where they are contiguous already, as those
/// of a zigzag never are.
int64_t collectiveScratch(const BufferType &whole, int64_t dim, bool zigzag);

/// The same for all_to_all between the pieces `x` and `y`: what it sends, cut
/// along `toDim`, and behind it what it receives, cut along `fromDim`, each of
/// the elements of a piece unless contiguous; 1 if both are.
int64_t allToAllScratch(const BufferType &x, const BufferType &y,
                        int64_t fromDim, int64_t toDim, bool fromZigzag,
                        bool toZigzag);

/// Elements, of the data's own type, in which ring_attention and its gradient
/// send and receive keys and values like `k`, a rank's piece of `ranks`: 1
/// where there is nobody to send to.
int64_t ringScratch(const BufferType &k, int64_t ranks);
/// f32 elements of ring_attention: a sum for each row of `q` and head and,
/// unless q is f32 itself, the output before it is rounded.
int64_t ringSums(const BufferType &q);
/// f32 elements of ring_attention_grad: the row sums of grad_out * out, what is
/// sent and received of gradients and, unless q is f32 itself, all gradients
/// before they are rounded.
int64_t ringGradSums(const BufferType &q, const BufferType &k, int64_t ranks);

/// Blocks of a bf16 head meet as f32 in a thread's scratch, which bounds them.
inline constexpr int64_t kMaxBf16HeadDim = 512;

enum class GeluKind : int64_t { Tanh = 0, Erf = 1 };
/// Activation of the gate in `Gated`.
enum class GateKind : int64_t { Silu = 0, GeluTanh = 1, GeluErf = 2 };

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_KERNELS_H
