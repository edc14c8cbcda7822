#include "passes/ContextParallel.h"

#include "dialects/tfm/Tfm.h"

#include <numeric>

using namespace mlir;

namespace mega {
namespace {

/// Sequences are never padded: every rank has the same number of chunks, with
/// --sp cut further over tp.
LogicalResult checkSequence(tfm::InputOp input, const Mesh &mesh, bool zigzag,
                            bool sequenceParallel) {
  const int64_t cp = mesh.size(Axis::Cp);
  const int64_t length = tfm::tensor(input.getResult()).getDimSize(1);
  const int64_t chunks = zigzag ? 2 * cp : cp;
  // What of a rank --sp cuts over tp.
  const int64_t pieces = sequenceParallel ? cp * mesh.tp() : cp;
  const int64_t unit = std::max<int64_t>(1, std::lcm(chunks, pieces));
  if (length % unit == 0) {
    return success();
  }
  const int64_t below = length / unit * unit;
  InFlightDiagnostic error = input.emitError();
  error << "--cp " << cp << " cuts sequences of " << length << " into "
        << chunks << " chunks";
  if (zigzag) {
    error << " (two for each rank, so that a causal mask gives all the same "
             "work)";
  }
  if (unit != chunks) {
    error << ", and --sp what a rank has of it over --tp " << mesh.tp();
  }
  error << ": the length must be a multiple of " << unit << " (nearest: ";
  if (below > 0) {
    error << below << ", ";
  }
  return error << below + unit << ")";
}

/// Query and key/value heads of one rank before they are traded.
struct Heads {
  int64_t query, key;

  Heads(tfm::AttentionOp op, const Mesh &mesh)
      : query(tfm::tensor(op.getQ()).getDimSize(2) / mesh.tp()),
        key(std::max<int64_t>(1, tfm::tensor(op.getK()).getDimSize(2) /
                                     mesh.tp())) {}

  bool divideBy(int64_t cp) const { return query % cp == 0 && key % cp == 0; }
};

LogicalResult checkHeads(tfm::AttentionOp op, const Mesh &mesh) {
  const Heads heads(op, mesh);
  if (heads.divideBy(mesh.size(Axis::Cp))) {
    return success();
  }
  InFlightDiagnostic error = op.emitError();
  error << "--cp-method all-to-all cuts heads over --cp " << mesh.size(Axis::Cp)
        << ", which does not divide the " << heads.query << " query and "
        << heads.key << " key/value heads";
  if (mesh.tp() > 1) {
    error << " that --tp " << mesh.tp() << " leaves a rank";
  }
  error << " (legal --cp:";
  for (int64_t cp = 1; cp <= heads.key; ++cp) {
    if (heads.divideBy(cp)) {
      error << (cp == 1 ? " " : ", ") << cp;
    }
  }
  return error << "); use --cp-method ring or gather";
}

/// How long ranks wait for data of one attention, forward and backward, in
/// bytes. A ring sends while it computes: a rank can do about kFlopsPerSentByte
/// operations while a byte is on its way (a GPU of 1 PFLOP/s on links of 450
/// GB/s).
double waitOf(tfm::AttentionOp op, const Mesh &mesh, bool zigzag,
              CpMethod method) {
  constexpr double kFlopsPerSentByte = 2200;
  const auto q = tfm::tensor(op.getQ());
  const auto cp = static_cast<double>(mesh.size(Axis::Cp));
  const Heads heads(op, mesh);
  const double rows = static_cast<double>(q.getDimSize(0)) /
                      static_cast<double>(mesh.size(Axis::Dp)) *
                      static_cast<double>(q.getDimSize(1)) / cp;
  const auto dim = static_cast<double>(q.getDimSize(3));
  const double element = q.getElementTypeBitWidth() / 8.0;
  // Of queries, and of keys and values, that a rank has.
  const double query = rows * static_cast<double>(heads.query) * dim * element;
  const double keys = 2 * rows * static_cast<double>(heads.key) * dim * element;
  switch (method) {
  case CpMethod::None:
    return 0;
  case CpMethod::Gather:
    // Gathered twice, and the gradients scattered.
    return 3 * keys * (cp - 1);
  case CpMethod::AllToAll:
    // To and fro, and the gradients.
    return 2 * (2 * query + keys) * (cp - 1) / cp;
  case CpMethod::Ring: {
    // Twice the keys, and once f32 gradients. Of a causal zigzag ranks before
    // the owner need both chunks, ranks after it the first.
    const double needed = zigzag ? 0.75 : 1;
    const double sent = needed * (cp - 1) * (2 * keys + keys * 4 / element);
    const double flops = op.getCost().flops * 3.5 /
                         static_cast<double>(mesh.ranks()) *
                         static_cast<double>(mesh.size(Axis::Pp));
    // The rank's own keys come first.
    return std::max(0.0, sent - flops * (cp - 1) / cp / kFlopsPerSentByte);
  }
  }
  llvm_unreachable("every method has a cost");
}

} // namespace

FailureOr<ContextParallel> chooseContextParallel(ModuleOp module,
                                                 const Mesh &mesh,
                                                 bool sequenceParallel,
                                                 StringRef method) {
  ContextParallel result;
  if (mesh.size(Axis::Cp) == 1) {
    return result;
  }
  SmallVector<tfm::AttentionOp> attentions;
  module.walk([&](tfm::AttentionOp op) { attentions.push_back(op); });
  result.zigzag =
      !module->hasAttr(tfm::kPackedAttrName) &&
      llvm::all_of(attentions, [](auto op) { return op.getCausal(); });
  for (auto model : module.getOps<tfm::ModelOp>()) {
    for (auto input : model.getBody().front().getOps<tfm::InputOp>()) {
      if (failed(checkSequence(input, mesh, result.zigzag, sequenceParallel))) {
        return failure();
      }
    }
  }
  std::optional<CpMethod> asked;
  if (!method.empty()) {
    asked = llvm::StringSwitch<CpMethod>(method)
                .Case("ring", CpMethod::Ring)
                .Case("gather", CpMethod::Gather)
                .Case("all-to-all", CpMethod::AllToAll)
                .Default(CpMethod::None);
    if (*asked == CpMethod::None) {
      module.emitError() << "--cp-method " << method
                         << " is none of ring, gather and all-to-all";
      return failure();
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (CpMethod each : {CpMethod::Ring, CpMethod::AllToAll, CpMethod::Gather}) {
    const bool legal =
        each != CpMethod::AllToAll || llvm::all_of(attentions, [&](auto op) {
          return Heads(op, mesh).divideBy(mesh.size(Axis::Cp));
        });
    double wait = 0;
    for (tfm::AttentionOp op : attentions) {
      wait += waitOf(op, mesh, result.zigzag, each);
    }
    if (legal && wait < least) {
      least = wait;
      result.method = each;
    }
  }
  if (asked) {
    result.method = *asked;
  }
  if (result.method == CpMethod::AllToAll) {
    for (tfm::AttentionOp op : attentions) {
      if (failed(checkHeads(op, mesh))) {
        return failure();
      }
    }
  }
  return result;
}

} // namespace mega
