#include "runtime/comm/Communicator.h"

#include <cstring>

namespace mega {
namespace {

bool isTransfer(OperationKind kind) {
  return kind == OperationKind::Send || kind == OperationKind::Receive;
}

bool isReduction(OperationKind kind) {
  return kind == OperationKind::AllReduce ||
         kind == OperationKind::ReduceScatter;
}

} // namespace

Status Communicator::check(const Operation &operation) const {
  const auto refuse = [&](std::string_view why) {
    return makeError(Code::Internal, "group \"{}\": rank {} calls {}: {}",
                     group_.name, group_.ranks[rank_], name(operation.kind),
                     why);
  };
  if (operation.root < 0 || operation.root >= size()) {
    return refuse(fmt::format("group rank {} is not in 0 .. {}", operation.root,
                              size() - 1));
  }
  if (isTransfer(operation.kind) && operation.root == rank_) {
    return refuse("a rank cannot exchange data with itself");
  }
  constexpr int64_t kMaxBytes = int64_t(1) << 40;
  if (operation.count < 0 || operation.count > kMaxBytes / 8 / size()) {
    return refuse(fmt::format("count {} is not in 0 .. {}", operation.count,
                              kMaxBytes / 8 / size()));
  }
  if (isReduction(operation.kind) && operation.reduction == Reduction::Or &&
      isFloat(operation.type)) {
    return refuse(fmt::format("{} has no `or`, only i32 and i64 have",
                              name(operation.type)));
  }
  return Status::ok();
}

Status Communicator::checkedRun(const Operation &operation) {
  MEGA_RETURN_IF_ERROR(check(operation));
  return run(operation);
}

StatusOr<Transfer> Communicator::checkedPost(const Operation &operation) {
  MEGA_RETURN_IF_ERROR(check(operation));
  return post(operation);
}

Status Communicator::allReduce(const void *send, void *receive, int64_t count,
                               DataType type, Reduction reduction) {
  return checkedRun({.kind = OperationKind::AllReduce,
                     .type = type,
                     .reduction = reduction,
                     .count = count,
                     .send = send,
                     .receive = receive});
}

Status Communicator::reduceScatter(const void *send, void *receive,
                                   int64_t count, DataType type,
                                   Reduction reduction) {
  return checkedRun({.kind = OperationKind::ReduceScatter,
                     .type = type,
                     .reduction = reduction,
                     .count = count,
                     .send = send,
                     .receive = receive});
}

Status Communicator::allGather(const void *send, void *receive, int64_t count,
                               DataType type) {
  return checkedRun({.kind = OperationKind::AllGather,
                     .type = type,
                     .count = count,
                     .send = send,
                     .receive = receive});
}

Status Communicator::allToAll(const void *send, void *receive, int64_t count,
                              DataType type) {
  return checkedRun({.kind = OperationKind::AllToAll,
                     .type = type,
                     .count = count,
                     .send = send,
                     .receive = receive});
}

Status Communicator::broadcast(void *data, int64_t count, DataType type,
                               int root) {
  return checkedRun({.kind = OperationKind::Broadcast,
                     .type = type,
                     .root = root,
                     .count = count,
                     .send = data,
                     .receive = data});
}

Status Communicator::barrier() {
  return checkedRun({.kind = OperationKind::Barrier});
}

StatusOr<Transfer> Communicator::postSend(const void *data, int64_t count,
                                          DataType type, int peer) {
  return checkedPost({.kind = OperationKind::Send,
                      .type = type,
                      .root = peer,
                      .count = count,
                      .send = data});
}

StatusOr<Transfer> Communicator::postReceive(void *data, int64_t count,
                                             DataType type, int peer) {
  return checkedPost({.kind = OperationKind::Receive,
                      .type = type,
                      .root = peer,
                      .count = count,
                      .receive = data});
}

} // namespace mega
