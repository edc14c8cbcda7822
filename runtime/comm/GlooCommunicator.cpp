#include "runtime/comm/GlooCommunicator.h"

#include "runtime/comm/Bytes.h"
#include "runtime/comm/Reduce.h"
#include "runtime/plan/Philox.h"

#include <algorithm>

namespace mega::gloocomm {
namespace {

/// Up to here every member sums everything itself: one exchange, not two.
constexpr int64_t kSmallBytes = 16384;

bool isSmall(const Operation &operation) {
  return operation.blockBytes() <= kSmallBytes;
}

} // namespace

GlooCommunicator::GlooCommunicator(std::shared_ptr<World> world, Group group,
                                   int rank, int groupId)
    : Communicator(std::move(group), rank), world(std::move(world)),
      groupId(groupId), groupHash(hashName(this->group().name + "\n" +
                                           listRanks(this->group().ranks))),
      sent(size()), received(size()) {}

void GlooCommunicator::abort(const Status &cause) {
  (void)world->fail(cause, false);
}

Header GlooCommunicator::headerOf(const Operation &operation,
                                  uint64_t number) const {
  return {number,         groupHash,      operation.count,    operation.root,
          operation.kind, operation.type, operation.reduction};
}

std::byte *GlooCommunicator::scratch(int64_t bytes) {
  if (bytes > scratchBytes) {
    scratchMemory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratchBytes = bytes;
  }
  return scratchMemory.get();
}

std::pair<int64_t, int64_t> GlooCommunicator::slice(int64_t count,
                                                    int member) const {
  const int64_t part = count / size();
  const int64_t rest = count % size();
  const int64_t begin = part * member + std::min<int64_t>(member, rest);
  return {begin, begin + part + (member < rest ? 1 : 0)};
}

Status GlooCommunicator::checkBytes(const Operation &operation) const {
  return operation.blockBytes() <= kMaxMessageBytes
             ? Status::ok()
             : makeError(Code::Internal,
                         "group \"{}\": {}: {} bytes of the {} that a message "
                         "can have",
                         group().name, describe(operation, group()),
                         operation.blockBytes(), kMaxMessageBytes);
}

Status GlooCommunicator::run(const Operation &operation) {
  MEGA_RETURN_IF_ERROR(checkBytes(operation));
  if (world->failure.failed()) {
    return world->failure.status();
  }
  ++number;
  world->begin(group(), number, operation);
  Status status = runMessages(operation);
  world->end();
  return status;
}

Status GlooCommunicator::runMessages(const Operation &operation) {
  const Clock::time_point deadline = Clock::now() + world->options.timeLimit;
  const Header mine = headerOf(operation, number);
  std::vector<Header> headers(size(), mine);
  Messages headerMessages(*world);
  Messages dataMessages(*world);
  const uint64_t headerSlot = slot(Channel::Headers, sizeof(Header));
  for (int member = 0; member < size(); ++member) {
    if (member != rank()) {
      headerMessages.receive(worldRank(member), headerSlot, &headers[member],
                             sizeof(Header));
    }
  }
  for (int member = 0; member < size(); ++member) {
    if (member != rank()) {
      headerMessages.send(worldRank(member), headerSlot, &mine, sizeof(Header));
    }
  }
  postFirst(operation, dataMessages);
  Messages::Result result = headerMessages.wait(deadline);
  if (result != Messages::Result::Done) {
    return explain(operation, number, headerMessages, result);
  }
  MEGA_RETURN_IF_ERROR(compareHeaders(operation, headers));
  result = dataMessages.wait(deadline);
  if (result != Messages::Result::Done) {
    return explain(operation, number, dataMessages, result);
  }
  reduceFirst(operation);
  Messages second(*world);
  postSecond(operation, second);
  result = second.wait(deadline);
  return result == Messages::Result::Done
             ? Status::ok()
             : explain(operation, number, second, result);
}

void GlooCommunicator::postFirst(const Operation &operation,
                                 Messages &messages) {
  const int64_t block = operation.blockBytes();
  const int64_t element = byteSize(operation.type);
  const auto [begin, end] = slice(operation.count, rank());
  const bool small = isSmall(operation);
  if (operation.kind == OperationKind::ReduceScatter ||
      operation.kind == OperationKind::AllReduce) {
    scratch(size() * block);
  }
  const auto exchange = [&](int member, const void *out, int64_t outBytes,
                            void *in, int64_t inBytes) {
    messages.receive(worldRank(member), slot(Channel::First, inBytes), in,
                     inBytes);
    messages.send(worldRank(member), slot(Channel::First, outBytes), out,
                  outBytes);
  };
  for (int step = 1; step < size(); ++step) {
    const int member = (rank() + step) % size();
    switch (operation.kind) {
    case OperationKind::AllReduce:
      if (small) {
        exchange(member, operation.send, block, scratch(0) + member * block,
                 block);
      } else {
        const auto [theirBegin, theirEnd] = slice(operation.count, member);
        const int64_t mineBytes = (end - begin) * element;
        exchange(member, at(operation.send, theirBegin * element),
                 (theirEnd - theirBegin) * element,
                 scratch(0) + member * mineBytes, mineBytes);
      }
      break;
    case OperationKind::ReduceScatter:
      exchange(member, at(operation.send, member * block), block,
               scratch(0) + member * block, block);
      break;
    case OperationKind::AllGather:
      exchange(member, operation.send, block,
               at(operation.receive, member * block), block);
      break;
    case OperationKind::AllToAll:
      exchange(member, at(operation.send, member * block), block,
               at(operation.receive, member * block), block);
      break;
    case OperationKind::Broadcast:
      if (rank() == operation.root) {
        messages.send(worldRank(member), slot(Channel::First, block),
                      operation.send, block);
      } else if (member == operation.root) {
        messages.receive(worldRank(member), slot(Channel::First, block),
                         operation.receive, block);
      }
      break;
    default:
      break;
    }
  }
}

void GlooCommunicator::reduceFirst(const Operation &operation) {
  const int64_t block = operation.blockBytes();
  const int64_t element = byteSize(operation.type);
  const auto combine = [&](int64_t begin, int64_t end, void *output) {
    const int64_t bytes = (end - begin) * element;
    std::vector<const void *> sources(size());
    for (int member = 0; member < size(); ++member) {
      sources[member] = scratch(0) + member * bytes;
    }
    sources[rank()] = at(operation.send, begin * element);
    reduce(sources, {&output, 1}, end - begin, operation.type,
           operation.reduction);
  };
  switch (operation.kind) {
  case OperationKind::AllReduce:
    if (isSmall(operation)) {
      combine(0, operation.count, operation.receive);
    } else {
      const auto [begin, end] = slice(operation.count, rank());
      combine(begin, end, at(operation.receive, begin * element));
    }
    break;
  case OperationKind::ReduceScatter:
    combine(rank() * operation.count, (rank() + 1) * operation.count,
            operation.receive);
    break;
  case OperationKind::AllGather:
    copyBytes(at(operation.receive, rank() * block), operation.send, block);
    break;
  case OperationKind::AllToAll:
    copyBytes(at(operation.receive, rank() * block),
              at(operation.send, rank() * block), block);
    break;
  default:
    break;
  }
}

void GlooCommunicator::postSecond(const Operation &operation,
                                  Messages &messages) {
  if (operation.kind != OperationKind::AllReduce || isSmall(operation)) {
    return;
  }
  const int64_t element = byteSize(operation.type);
  const auto [begin, end] = slice(operation.count, rank());
  for (int step = 1; step < size(); ++step) {
    const int member = (rank() + step) % size();
    const auto [theirBegin, theirEnd] = slice(operation.count, member);
    const int64_t inBytes = (theirEnd - theirBegin) * element;
    const int64_t outBytes = (end - begin) * element;
    messages.receive(worldRank(member), slot(Channel::Second, inBytes),
                     at(operation.receive, theirBegin * element), inBytes);
    messages.send(worldRank(member), slot(Channel::Second, outBytes),
                  at(operation.receive, begin * element), outBytes);
  }
}

Status GlooCommunicator::compareHeaders(const Operation &operation,
                                        const std::vector<Header> &headers) {
  // All members see the same headers, and so name the same pair.
  for (int member = 1; member < size(); ++member) {
    const Header &first = headers[0];
    const Header &other = headers[member];
    if (other.group != first.group) {
      return world->fail(
          makeError(Code::Internal,
                    "group \"{}\" of rank {} is another group on rank {}: "
                    "every rank creates all groups in the same order",
                    group().name, worldRank(rank()),
                    worldRank(headers[0].group == groupHash ? member : 0)),
          true);
    }
    if (!first.operation().matches(other.operation())) {
      return world->fail(mismatch(group(), number, 0, first.operation(), member,
                                  other.operation()),
                         true);
    }
  }
  return Status::ok();
}

Status GlooCommunicator::explain(const Operation &operation, uint64_t number,
                                 const Messages &messages,
                                 Messages::Result result) {
  std::vector<int> members;
  for (int member = 0; member < size(); ++member) {
    if (std::find(messages.peers.begin(), messages.peers.end(),
                  worldRank(member)) != messages.peers.end()) {
      members.push_back(member);
    }
  }
  const bool transfer = operation.kind == OperationKind::Send ||
                        operation.kind == OperationKind::Receive;
  switch (result) {
  case Messages::Result::TimedOut:
    return world->fail(
        transfer ? unmet(group(), number, operation, world->options.timeLimit)
                 : missing(group(), number, operation, members,
                           world->options.timeLimit),
        true);
  case Messages::Result::Lost:
    return world->failLost(makeError(
        Code::Unavailable,
        "group \"{}\": {} {}, {}: rank {} has lost the connection to {} ({})",
        group().name, transfer ? "transfer" : "operation", number,
        describe(operation, group()), worldRank(rank()),
        listRanks(messages.peers), messages.reason));
  case Messages::Result::Aborted:
  case Messages::Result::Done:
    break;
  }
  return world->failure.status();
}

StatusOr<Transfer> GlooCommunicator::post(const Operation &operation) {
  MEGA_RETURN_IF_ERROR(checkBytes(operation));
  if (world->failure.failed()) {
    return world->failure.status();
  }
  if (posted.size() >=
      static_cast<size_t>(std::max(world->options.maxTransfers, 0))) {
    return makeError(Code::Internal,
                     "group \"{}\": rank {} has {} transfers posted and none "
                     "waited for, the most there may be",
                     group().name, worldRank(rank()), posted.size());
  }
  const bool isSend = operation.kind == OperationKind::Send;
  const int peer = worldRank(operation.root);
  auto record = std::make_unique<Posted>(*world);
  record->operation = operation;
  record->number = ++(isSend ? sent : received)[operation.root];
  record->mine = headerOf(operation, record->number);
  const auto slot = [&](Channel channel, int64_t bytes) {
    return slotOf(groupId, channel, record->number, bytes);
  };
  const int64_t bytes = operation.blockBytes();
  const uint64_t fromSender = slot(Channel::SenderHeader, sizeof(Header));
  const uint64_t fromReceiver = slot(Channel::ReceiverHeader, sizeof(Header));
  record->headers.receive(peer, isSend ? fromReceiver : fromSender,
                          &record->theirs, sizeof(Header));
  record->headers.send(peer, isSend ? fromSender : fromReceiver, &record->mine,
                       sizeof(Header));
  if (isSend) {
    record->data.send(peer, slot(Channel::TransferData, bytes), operation.send,
                      bytes);
  } else {
    record->data.receive(peer, slot(Channel::TransferData, bytes),
                         operation.receive, bytes);
  }
  posted.emplace(nextTransfer, std::move(record));
  return Transfer{nextTransfer++, 0};
}

Status GlooCommunicator::wait(Transfer transfer) {
  const auto found = posted.find(transfer.index);
  if (found == posted.end()) {
    return makeError(Code::Internal,
                     "group \"{}\": rank {} waits for a transfer that it has "
                     "not posted, or twice",
                     group().name, worldRank(rank()));
  }
  const std::unique_ptr<Posted> record = std::move(found->second);
  posted.erase(found);
  world->begin(group(), record->number, record->operation);
  Status status = waitMessages(*record);
  world->end();
  return status;
}

Status GlooCommunicator::waitMessages(Posted &record) {
  const Clock::time_point deadline = Clock::now() + world->options.timeLimit;
  Messages::Result result = record.headers.wait(deadline);
  if (result != Messages::Result::Done) {
    return explain(record.operation, record.number, record.headers, result);
  }
  const Operation &mine = record.operation;
  const Operation theirs = record.theirs.operation();
  if (mine.count != theirs.count || mine.type != theirs.type) {
    const bool isFirst = rank() < mine.root;
    return world->fail(
        isFirst
            ? mismatch(group(), record.number, rank(), mine, mine.root, theirs)
            : mismatch(group(), record.number, mine.root, theirs, rank(), mine),
        true);
  }
  result = record.data.wait(deadline);
  return result == Messages::Result::Done
             ? Status::ok()
             : explain(mine, record.number, record.data, result);
}

} // namespace mega::gloocomm
