#include "runtime/comm/Operation.h"

namespace mega {

std::string_view name(OperationKind kind) {
  constexpr std::string_view names[] = {
      "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
      "broadcast",  "barrier",        "send",       "receive"};
  return names[static_cast<int>(kind)];
}

std::string describe(const Operation &operation, const Group &group) {
  const std::string_view kind = name(operation.kind);
  const std::string data =
      fmt::format("{} x {}", operation.count, name(operation.type));
  const auto root = [&] { return group.ranks[operation.root]; };
  switch (operation.kind) {
  case OperationKind::AllReduce:
  case OperationKind::ReduceScatter:
    return fmt::format("{}({} of {})", kind, name(operation.reduction), data);
  case OperationKind::AllGather:
  case OperationKind::AllToAll:
    return fmt::format("{}({})", kind, data);
  case OperationKind::Broadcast:
  case OperationKind::Receive:
    return fmt::format("{}({} from rank {})", kind, data, root());
  case OperationKind::Send:
    return fmt::format("{}({} to rank {})", kind, data, root());
  case OperationKind::Barrier:
    break;
  }
  return fmt::format("{}()", kind);
}

Status mismatch(const Group &group, uint64_t number, int rankA,
                const Operation &a, int rankB, const Operation &b) {
  return makeError(Code::Internal,
                   "group \"{}\": operation {} differs: rank {} calls {}, "
                   "rank {} calls {}",
                   group.name, number, group.ranks[rankA], describe(a, group),
                   group.ranks[rankB], describe(b, group));
}

static double seconds(std::chrono::milliseconds limit) {
  return std::chrono::duration<double>(limit).count();
}

Status missing(const Group &group, uint64_t number, const Operation &operation,
               std::span<const int> groupRanks,
               std::chrono::milliseconds limit) {
  std::vector<int> ranks;
  for (const int rank : groupRanks) {
    ranks.push_back(group.ranks[rank]);
  }
  return makeError(Code::Unavailable,
                   "group \"{}\": operation {}, {}: {} {} not come within {} s",
                   group.name, number, describe(operation, group),
                   listRanks(ranks), ranks.size() == 1 ? "has" : "have",
                   seconds(limit));
}

Status unmet(const Group &group, uint64_t number, const Operation &operation,
             std::chrono::milliseconds limit) {
  return makeError(
      Code::Unavailable, "group \"{}\": transfer {}, {}: rank {} {} {} s",
      group.name, number, describe(operation, group),
      group.ranks[operation.root],
      operation.kind == OperationKind::Send ? "has not received within"
                                            : "has not sent within",
      seconds(limit));
}

std::string listRanks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

Status copy(const Status &status) {
  return status.isOk() ? Status::ok() : Status(status.code(), status.message());
}

} // namespace mega
