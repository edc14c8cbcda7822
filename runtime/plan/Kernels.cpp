//===- Kernels.cpp - The kernel table -------------------------------------===//
#include "runtime/plan/Kernels.h"

#include "runtime/plan/KernelChecks.h"

#include <algorithm>
#include <array>

namespace mega {
namespace {

constexpr Access kRead = Access::Read;
constexpr Access kWrite = Access::Write;
constexpr Access kReadWrite = Access::ReadWrite;
constexpr Access kAccumulate = Access::WriteOrAccumulate;
constexpr Access kScratch = Access::Scratch;

// T is the element type of a launch's activations and matrices, f32 or bf16.
// Parameters of norms, biases, statistics, accumulated gradients and scratch
// are f32 whatever T is; sums, exponentials and statistics are taken in f32,
// and a result is rounded to T once.
const std::array<KernelSpec, kKernelCount> kSpecs = {{
    // c (+)= op(a) * op(b), op transposing the row matrix when its flag is 1.
    // c is T or, for a gradient that accumulates, f32.
    {Kernel::Gemm,
     "gemm",
     {{"a", kRead}, {"b", kRead}, {"c", kAccumulate}},
     {"transpose_a", "transpose_b", "accumulate"},
     {},
     checks::gemm},

    // out[t] = table[ids[t] - first_row], or 0 if that row is not here: the
    // table has rows first_row onwards of `rows`, the rest of it is padding.
    {Kernel::Embedding,
     "embedding",
     {{"ids", kRead}, {"table", kRead}, {"out", kWrite}},
     {"first_row", "rows"},
     {},
     checks::embedding},
    // grad_table[ids[t] - first_row] += grad_out[t], tokens in order, where
    // that row is here.
    {Kernel::EmbeddingGrad,
     "embedding_grad",
     {{"ids", kRead}, {"grad_out", kRead}, {"grad_table", kReadWrite}},
     {"first_row", "rows"},
     {},
     checks::embeddingGrad},
    // out[b, s] = x[b, s] + table[first_position + s].
    {Kernel::AddPositions,
     "add_positions",
     {{"x", kRead}, {"table", kRead}, {"out", kWrite, 0}},
     {"first_position"},
     {},
     checks::addPositions},
    // grad_table[first_position + s] += sum over b of grad_out[b, s].
    {Kernel::PositionsGrad,
     "positions_grad",
     {{"grad_out", kRead}, {"grad_table", kReadWrite}},
     {"first_position"},
     {},
     checks::positionsGrad},

    // Per row: y = (x - mean) * rstd * gamma + beta.
    {Kernel::LayerNorm,
     "layer_norm",
     {{"x", kRead},
      {"gamma", kRead},
      {"beta", kRead},
      {"y", kWrite},
      {"mean", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon"},
     checks::layerNorm},
    // grad_x (+)= ...; grad_gamma += sum grad_y * xhat; grad_beta += sum
    // grad_y.
    {Kernel::LayerNormGrad,
     "layer_norm_grad",
     {{"grad_y", kRead},
      {"x", kRead},
      {"gamma", kRead},
      {"mean", kRead},
      {"rstd", kRead},
      {"grad_x", kAccumulate},
      {"grad_gamma", kReadWrite},
      {"grad_beta", kReadWrite}},
     {"accumulate"},
     {},
     checks::layerNormGrad},
    // Over the last dimension: y = x * rstd * (weight_offset + gamma).
    {Kernel::RmsNorm,
     "rms_norm",
     {{"x", kRead}, {"gamma", kRead}, {"y", kWrite}, {"rstd", kWrite}},
     {},
     {"epsilon", "weight_offset"},
     checks::rmsNorm},
    {Kernel::RmsNormGrad,
     "rms_norm_grad",
     {{"grad_y", kRead},
      {"x", kRead},
      {"gamma", kRead},
      {"rstd", kRead},
      {"grad_x", kAccumulate},
      {"grad_gamma", kReadWrite}},
     {"accumulate"},
     {"weight_offset"},
     checks::rmsNormGrad},
    // sum = a + b, then layer_norm of sum.
    {Kernel::AddLayerNorm,
     "add_layer_norm",
     {{"a", kRead},
      {"b", kRead},
      {"gamma", kRead},
      {"beta", kRead},
      {"sum", kWrite, 0, 1},
      {"y", kWrite},
      {"mean", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon"},
     checks::addLayerNorm},
    // sum = a + b, then rms_norm of sum.
    {Kernel::AddRmsNorm,
     "add_rms_norm",
     {{"a", kRead},
      {"b", kRead},
      {"gamma", kRead},
      {"sum", kWrite, 0, 1},
      {"y", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon", "weight_offset"},
     checks::addRmsNorm},

    // y = x + bias on every row.
    {Kernel::AddBias,
     "add_bias",
     {{"x", kRead}, {"bias", kRead}, {"y", kWrite, 0}},
     {},
     {},
     checks::addBias},
    // grad_bias += sum over rows of grad_y.
    {Kernel::BiasGrad,
     "bias_grad",
     {{"grad_y", kRead}, {"grad_bias", kReadWrite}},
     {},
     {},
     checks::biasGrad},
    // z = x + bias (kept for the backward); y = gelu(z).
    {Kernel::BiasGelu,
     "bias_gelu",
     {{"x", kRead}, {"bias", kRead}, {"z", kWrite, 0}, {"y", kWrite}},
     {"kind"},
     {},
     checks::biasGelu},
    {Kernel::Gelu,
     "gelu",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"kind"},
     {},
     checks::gelu},
    // grad_x = grad_y * gelu'(x).
    {Kernel::GeluGrad,
     "gelu_grad",
     {{"grad_y", kRead}, {"x", kRead}, {"grad_x", kWrite, 0, 1}},
     {"kind"},
     {},
     checks::geluGrad},
    // y = x * sigmoid(x).
    {Kernel::Silu,
     "silu",
     {{"x", kRead}, {"y", kWrite, 0}},
     {},
     {},
     checks::unary},
    {Kernel::SiluGrad,
     "silu_grad",
     {{"grad_y", kRead}, {"x", kRead}, {"grad_x", kWrite, 0, 1}},
     {},
     {},
     checks::binary},
    // y = act(gate) * up.
    {Kernel::Gated,
     "gated",
     {{"gate", kRead}, {"up", kRead}, {"y", kWrite, 0, 1}},
     {"kind"},
     {},
     checks::gated},
    {Kernel::GatedGrad,
     "gated_grad",
     {{"grad_y", kRead},
      {"gate", kRead},
      {"up", kRead},
      {"grad_gate", kWrite, 0, 1},
      {"grad_up", kWrite, 0, 2}},
     {"kind"},
     {},
     checks::gatedGrad},
    {Kernel::Add,
     "add",
     {{"a", kRead}, {"b", kRead}, {"y", kWrite, 0, 1}},
     {},
     {},
     checks::binary},
    // y = select(keep, x / (1 - p), 0); its own transpose. `key` is the hash
    // of block and dropout name; the counter is (global sample, first_position
    // + position, first_feature + feature): runtime/plan/Philox.h.
    {Kernel::Dropout,
     "dropout",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"key", "first_position", "first_feature"},
     {"p"},
     checks::dropout},

    // table[s, i] = attention_factor * cos, table[s, D/2 + i] =
    // attention_factor * sin of s * f(i), f from runtime/plan/
    // RopeFrequencies.h, which says what `scaling` and the numbers are.
    {Kernel::RopeTable,
     "rope_table",
     {{"table", kWrite}},
     {"scaling"},
     {"base", "factor", "low_frequency", "high_frequency", "original_positions",
      "beta_fast", "beta_slow", "attention_factor"},
     checks::ropeTable},
    // Rotates pairs (i, i + D/2) by the table's angle at the row's position,
    // backwards when inverse is 1: the transpose, with the table's factor.
    {Kernel::Rope,
     "rope",
     {{"x", kRead}, {"table", kRead}, {"y", kWrite, 0}},
     {"inverse"},
     {},
     checks::rope},
    // out = dropout(softmax(z + mask)) v, z = scale * q k^T or, with a softcap
    // c > 0, c * tanh(scale * q k^T / c), never materialising S x S; lse[b*H +
    // h, s] = log-sum-exp of the row of z. Key j is visible to query i iff
    // (!causal or j <= i) and (window == 0 or i - window < j). To dropout the
    // heads of q are first_head onwards.
    {Kernel::Attention,
     "attention",
     {{"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"out", kWrite},
      {"lse", kWrite}},
     {"causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::attention},
    // `delta` [B*H, S] holds the row sums of grad_out * out.
    {Kernel::AttentionGrad,
     "attention_grad",
     {{"grad_out", kRead},
      {"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"out", kRead},
      {"lse", kRead},
      {"grad_q", kWrite},
      {"grad_k", kWrite},
      {"grad_v", kWrite},
      {"delta", kScratch}},
     {"causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::attentionGrad},

    // Per token over the rows of w: max = max z, sum = sum exp(z - max),
    // target = z[label - first_row] if that row is here, else 0; z = x w^T or,
    // with a softcap c > 0, c * tanh(x w^T / c), is only ever a tile in
    // `scratch` (headScratch). Tokens whose label is `ignore` have target 0.
    // Of `rows` rows w has those from first_row on; what follows them in w is
    // padding and takes part in nothing. Where all is padding max is minus
    // infinity, sum and target are 0.
    {Kernel::HeadStats,
     "head_stats",
     {{"x", kRead},
      {"w", kRead},
      {"labels", kRead},
      {"max", kWrite},
      {"sum", kWrite},
      {"target", kWrite},
      {"scratch", kScratch}},
     {"ignore", "first_row", "rows"},
     {"softcap"},
     checks::headStats},
    // sum_out = sum * exp(max_local - max_global).
    {Kernel::HeadRescale,
     "head_rescale",
     {{"sum", kRead},
      {"max_local", kRead},
      {"max_global", kRead},
      {"sum_out", kWrite, 0}},
     {},
     {},
     checks::statistics},
    // loss = sum over tokens with a label other than `ignore` of
    // log(sum) + max - target.
    {Kernel::HeadLoss,
     "head_loss",
     {{"max", kRead},
      {"sum", kRead},
      {"target", kRead},
      {"labels", kRead},
      {"loss", kWrite}},
     {"ignore"},
     {},
     checks::headLoss},
    // grad_sum = seed / sum, grad_target = -seed; both 0 where ignored.
    {Kernel::HeadLossGrad,
     "head_loss_grad",
     {{"seed", kRead},
      {"sum", kRead},
      {"labels", kRead},
      {"grad_sum", kWrite},
      {"grad_target", kWrite}},
     {"ignore"},
     {},
     checks::headLossGrad},
    // grad_sum_out = grad_sum * exp(max_local - max_global).
    {Kernel::HeadRescaleGrad,
     "head_rescale_grad",
     {{"grad_sum", kRead},
      {"max_local", kRead},
      {"max_global", kRead},
      {"grad_sum_out", kWrite, 0}},
     {},
     {},
     checks::statistics},
    // grad_z = grad_sum * exp(z - max) + grad_target * onehot(label), times
    // 1 - (z / c)^2 with a softcap c; z is recomputed by tiles in `scratch`
    // (headGradScratch); grad_x = grad_z w; grad_w += grad_z^T x. Padding adds
    // nothing to either.
    {Kernel::HeadStatsGrad,
     "head_stats_grad",
     {{"x", kRead},
      {"w", kRead},
      {"labels", kRead},
      {"max", kRead},
      {"grad_sum", kRead},
      {"grad_target", kRead},
      {"grad_x", kWrite},
      {"grad_w", kReadWrite},
      {"scratch", kScratch}},
     {"ignore", "first_row", "rows"},
     {"softcap"},
     checks::headStatsGrad},
    // count (+)= number of labels other than `ignore`.
    {Kernel::CountValid,
     "count_valid",
     {{"labels", kRead}, {"count", kAccumulate}},
     {"ignore", "accumulate"},
     {},
     checks::countValid},
    // seed = weight / max(count, 1).
    {Kernel::LossSeed,
     "loss_seed",
     {{"count", kRead}, {"seed", kWrite}},
     {},
     {"weight"},
     checks::lossSeed},

    {Kernel::Zero, "zero", {{"target", kWrite}}, {}, {}, checks::zero},
    {Kernel::Copy,
     "copy",
     {{"source", kRead}, {"target", kWrite}},
     {},
     {},
     checks::copy},
    // target += source; element types may differ (a widening sum).
    {Kernel::Accumulate,
     "accumulate",
     {{"source", kRead}, {"target", kReadWrite}},
     {},
     {},
     checks::accumulate},

    // total (+)= sum of squares, in f64 and in an order of its own.
    {Kernel::SumSquares,
     "sum_squares",
     {{"x", kRead}, {"total", kAccumulate}},
     {"accumulate"},
     {},
     checks::sumSquares},
    // scale = min(1, clip / (sqrt(total) + 1e-6)); 1 when clip is 0.
    {Kernel::ClipScale,
     "clip_scale",
     {{"total", kRead}, {"scale", kWrite}},
     {},
     {},
     checks::clipScale},
    // Decoupled weight decay (Loshchilov and Hutter, 2019) on scale * grad;
    // lr, betas, epsilon, decay and step come from the run.
    {Kernel::AdamW,
     "adamw",
     {{"weight", kReadWrite},
      {"grad", kRead},
      {"moment", kReadWrite},
      {"variance", kReadWrite},
      {"scale", kRead}},
     {"decay"},
     {},
     checks::adamW},

    // target = source in the other float type, rounded to nearest, ties to
    // even; a NaN stays one.
    {Kernel::Cast,
     "cast",
     {{"source", kRead}, {"target", kWrite}},
     {},
     {},
     checks::cast},
    // y = factor * x.
    {Kernel::Scale,
     "scale",
     {{"x", kRead}, {"y", kWrite, 0}},
     {},
     {"factor"},
     checks::scale},

    // y = the reduction over the group's ranks of x, in their order.
    // `reduction` is a Reduction: sum, max or min.
    {Kernel::AllReduce,
     "all_reduce",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"group", "reduction"},
     {},
     checks::allReduce},
    // Pieces along dimension `dim` follow each other in the order of the
    // group's ranks or, with `zigzag` 1, are two runs each: SequenceOrder.h.
    //
    // y = the pieces x of the group's ranks, together. In place, x is the
    // rank's piece of y.
    {Kernel::AllGather,
     "all_gather",
     {{"x", kRead}, {"y", kWrite, 0}, {"scratch", kScratch}},
     {"group", "dim", "zigzag"},
     {},
     checks::allGather},
    // y = the rank's piece along dimension `dim` of the sum over the group of
    // x. In place, y is the rank's piece of x; the rest of x is undefined then.
    {Kernel::ReduceScatter,
     "reduce_scatter",
     {{"x", kRead}, {"y", kWrite, 0}, {"scratch", kScratch}},
     {"group", "dim", "zigzag"},
     {},
     checks::reduceScatter},
    // y = the piece of x along dimension `dim` that belongs to the rank's place
    // in the group.
    {Kernel::Slice,
     "slice",
     {{"x", kRead}, {"y", kWrite}},
     {"group", "dim", "zigzag"},
     {},
     checks::slice},
    // Summands of x: with dim -1, x on the group's first rank and zeros on the
    // others; else x, a piece along dimension `dim`, between zeros.
    {Kernel::ToPartial,
     "to_partial",
     {{"x", kRead}, {"y", kWrite}},
     {"group", "dim", "zigzag"},
     {},
     checks::toPartial},
    // Starts to send x to the rank `shift` places further in the group, which
    // starts to receive it. x stays as it is until send_wait. The k-th send
    // between two ranks of a group meets the k-th receive.
    {Kernel::SendStart,
     "send_start",
     {{"x", kRead}},
     {"group", "shift"},
     {},
     checks::transfer},
    // Waits until the send of x that was started is done.
    {Kernel::SendWait,
     "send_wait",
     {{"x", kRead}},
     {"group", "shift"},
     {},
     checks::transfer},
    // Starts to receive y from the rank `shift` places further in the group. y
    // is undefined until receive_wait.
    {Kernel::ReceiveStart,
     "receive_start",
     {{"y", kWrite}},
     {"group", "shift"},
     {},
     checks::transfer},
    // Waits until the receive of y that was started is done.
    {Kernel::ReceiveWait,
     "receive_wait",
     {{"y", kWrite}},
     {"group", "shift"},
     {},
     checks::transfer},
    // y = the sum of x over the group, whose members are stages. In place.
    {Kernel::SumStages,
     "sum_stages",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"group"},
     {},
     checks::sumStages},

    // out[b, s] = x[b, s] + table[positions[b, s]].
    {Kernel::AddPositionsAt,
     "add_positions_at",
     {{"x", kRead}, {"table", kRead}, {"positions", kRead}, {"out", kWrite, 0}},
     {},
     {},
     checks::addPositionsAt},
    // grad_table[positions[b, s]] += grad_out[b, s], tokens in order.
    {Kernel::PositionsGradAt,
     "positions_grad_at",
     {{"positions", kRead}, {"grad_out", kRead}, {"grad_table", kReadWrite}},
     {},
     {},
     checks::positionsGradAt},
    // rope, each row by the table's angle at its own position.
    {Kernel::RopeAt,
     "rope_at",
     {{"x", kRead}, {"table", kRead}, {"positions", kRead}, {"y", kWrite, 0}},
     {"inverse"},
     {},
     checks::ropeAt},
    // attention between places in documents, of which queries and keys may
    // have different ones and numbers. Key j is visible to query i iff their
    // segments are equal and, with their positions p, (!causal or p[j] <= p[i])
    // and (window == 0 or p[i] - p[j] < window). Blocks without a visible pair
    // are skipped. A query that sees no key has the output 0 and the lse minus
    // infinity. To dropout queries and keys are numbered by segment + position,
    // which are their places in the row where a segment has the number of its
    // first token.
    {Kernel::PackedAttention,
     "packed_attention",
     {{"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"q_positions", kRead},
      {"q_segments", kRead},
      {"k_positions", kRead},
      {"k_segments", kRead},
      {"out", kWrite},
      {"lse", kWrite}},
     {"causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::packedAttention},
    {Kernel::PackedAttentionGrad,
     "packed_attention_grad",
     {{"grad_out", kRead},
      {"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"q_positions", kRead},
      {"q_segments", kRead},
      {"k_positions", kRead},
      {"k_segments", kRead},
      {"out", kRead},
      {"lse", kRead},
      {"grad_q", kWrite},
      {"grad_k", kWrite},
      {"grad_v", kWrite},
      {"delta", kScratch}},
     {"causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::packedAttentionGrad},

    // dropout, each row by its own position in the counter: segment + position.
    {Kernel::DropoutAt,
     "dropout_at",
     {{"x", kRead},
      {"positions", kRead},
      {"segments", kRead},
      {"y", kWrite, 0}},
     {"key", "first_feature"},
     {"p"},
     checks::dropoutAt},

    // packed_attention with the keys of all ranks of the group: k and v are the
    // rank's piece of them, k_positions and k_segments those of the whole rows,
    // in the order of the whole. `order` is a SequenceOrder and says which rows
    // a piece has, of keys and of queries (RingSteps.h says who sends what).
    // `exchange` holds what is sent and received (ringScratch), `sums` what is
    // not rounded yet (ringSums).
    {Kernel::RingAttention,
     "ring_attention",
     {{"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"q_positions", kRead},
      {"q_segments", kRead},
      {"k_positions", kRead},
      {"k_segments", kRead},
      {"out", kWrite},
      {"lse", kWrite},
      {"exchange", kScratch},
      {"sums", kScratch}},
     {"group", "order", "causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::ringAttention},
    // grad_k and grad_v are complete: the sums over the queries of all ranks
    // that see the rank's keys. Scratch as there, and ringGradSums.
    {Kernel::RingAttentionGrad,
     "ring_attention_grad",
     {{"grad_out", kRead},
      {"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"q_positions", kRead},
      {"q_segments", kRead},
      {"k_positions", kRead},
      {"k_segments", kRead},
      {"out", kRead},
      {"lse", kRead},
      {"grad_q", kWrite},
      {"grad_k", kWrite},
      {"grad_v", kWrite},
      {"exchange", kScratch},
      {"sums", kScratch}},
     {"group", "order", "causal", "window", "dropout_key", "first_head"},
     {"scale", "dropout", "softcap"},
     checks::ringAttentionGrad},
    // x is the rank's piece along dimension `from_dim`, y along `to_dim`, of
    // one tensor. Never in place.
    {Kernel::AllToAll,
     "all_to_all",
     {{"x", kRead}, {"y", kWrite}, {"scratch", kScratch}},
     {"group", "from_dim", "to_dim", "from_zigzag", "to_zigzag"},
     {},
     checks::allToAll},
}};

} // namespace

const KernelSpec &kernelSpec(Kernel kernel) {
  return kSpecs[static_cast<size_t>(kernel)];
}

std::optional<Kernel> findKernel(std::string_view name) {
  for (const KernelSpec &spec : kSpecs) {
    if (spec.name == name) {
      return spec.kernel;
    }
  }
  return std::nullopt;
}

Status checkLaunch(Kernel kernel, const LaunchSignature &signature) {
  const KernelSpec &spec = kernelSpec(kernel);
  if (signature.operands.size() != spec.operands.size() ||
      signature.integers.size() != spec.integers.size() ||
      signature.floats.size() != spec.floats.size()) {
    return badInput("{} takes {} operands, {} integers and {} floats, not {}, "
                    "{} and {}",
                    spec.name, spec.operands.size(), spec.integers.size(),
                    spec.floats.size(), signature.operands.size(),
                    signature.integers.size(), signature.floats.size());
  }
  MEGA_RETURN_IF_ERROR_CONTEXT(spec.check(signature), "{}", spec.name);
  return Status::ok();
}

size_t integerIndex(const KernelSpec &spec, std::string_view name) {
  return static_cast<size_t>(
      std::find(spec.integers.begin(), spec.integers.end(), name) -
      spec.integers.begin());
}

Access resolvedAccess(const KernelSpec &spec, int index,
                      std::span<const int64_t> integers) {
  const Access access = spec.operands[index].access;
  if (access != Access::WriteOrAccumulate) {
    return access;
  }
  return integers[integerIndex(spec, "accumulate")] ? Access::ReadWrite
                                                    : Access::Write;
}

HeadTile headTile(int64_t tokens, int64_t vocabulary) {
  // 2 MiB of f32 at the most: stays in a second-level cache, and is large
  // enough for GEMM to run at full speed on either dimension.
  return {std::min<int64_t>(tokens, 512), std::min<int64_t>(vocabulary, 1024)};
}

bool worksInPlace(const KernelSpec &spec, std::span<const int64_t> integers) {
  const size_t zigzag = integerIndex(spec, "zigzag");
  return zigzag == spec.integers.size() || integers[zigzag] == 0;
}

/// Elements to pack the pieces of `whole` in, 0 where they are contiguous.
static int64_t packed(const BufferType &whole, int64_t dim, bool zigzag) {
  int64_t outer = 1;
  for (int64_t i = 0; i < dim; ++i) {
    outer *= whole.dims[static_cast<size_t>(i)];
  }
  return outer == 1 && !zigzag ? 0 : whole.elements();
}

int64_t collectiveScratch(const BufferType &whole, int64_t dim, bool zigzag) {
  return std::max<int64_t>(packed(whole, dim, zigzag), 1);
}

int64_t allToAllScratch(const BufferType &x, const BufferType &y,
                        int64_t fromDim, int64_t toDim, bool fromZigzag,
                        bool toZigzag) {
  return std::max<int64_t>(
      packed(x, toDim, toZigzag) + packed(y, fromDim, fromZigzag), 1);
}

int64_t ringScratch(const BufferType &k, int64_t ranks) {
  // Keys and values: the own ones, those in use and those that arrive.
  return ranks == 1 ? 1 : 3 * 2 * k.elements();
}

/// One number for each row and head of `q`.
static int64_t statisticsOf(const BufferType &q) {
  return q.elements() / q.dims[3];
}

int64_t ringSums(const BufferType &q) {
  return statisticsOf(q) + (q.type == DataType::F32 ? 0 : q.elements());
}

int64_t ringGradSums(const BufferType &q, const BufferType &k, int64_t ranks) {
  // Of keys and values: those being summed, sent and received.
  const int64_t exchanged = ranks == 1 ? 0 : 3 * 2 * k.elements();
  const int64_t unrounded =
      q.type == DataType::F32 ? 0 : q.elements() + 2 * k.elements();
  return statisticsOf(q) + exchanged + unrounded;
}

int64_t headScratch(int64_t tokens, int64_t vocabulary) {
  const HeadTile tile = headTile(tokens, vocabulary);
  return tile.tokens * tile.columns;
}

int64_t headGradScratch(int64_t tokens, int64_t vocabulary, int64_t hidden,
                        DataType type) {
  const int64_t sums =
      type == DataType::F32 ? 0 : headTile(tokens, vocabulary).tokens * hidden;
  return headScratch(tokens, vocabulary) + sums;
}

} // namespace mega
