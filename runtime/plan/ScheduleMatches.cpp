//===- ScheduleMatches.cpp - Which operations meet ------------------------===//
#include "runtime/plan/ScheduleChecks.h"

#include <algorithm>
#include <tuple>

namespace mega::schedule {
namespace {

using Kind = ScheduleEvent::Kind;

/// An operation and those that it may meet: of the same communicator and pair
/// of stages. Collectives are no pair's.
struct Operation {
  int32_t communicator;
  int32_t low;
  int32_t high;
  EventPlace place;

  auto group() const { return std::tie(communicator, low, high); }
  auto side() const { return std::tie(communicator, low, high, place.stage); }
};

/// By communicator, pair and stage; in issue order.
std::vector<Operation> sortedOperations(const ScheduleGraphInput &input) {
  std::vector<Operation> operations;
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    const auto count = static_cast<int32_t>(input.events[stage].size());
    for (int32_t i = 0; i < count; ++i) {
      const ScheduleEvent &event = input.events[stage][i];
      if (isOperation(event)) {
        const bool pair = isTransfer(event);
        operations.push_back({event.communicator,
                              pair ? std::min(stage, event.peer) : -1,
                              pair ? std::max(stage, event.peer) : -1,
                              {stage, i}});
      }
    }
  }
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation &a, const Operation &b) {
                     return a.side() < b.side();
                   });
  return operations;
}

/// The operations of one stage in a group.
using Side = std::span<const Operation>;

std::vector<Side> sidesOf(std::span<const Operation> group) {
  std::vector<Side> sides;
  for (size_t begin = 0; begin < group.size();) {
    size_t end = begin;
    while (end < group.size() && group[end].side() == group[begin].side()) {
      ++end;
    }
    sides.push_back(group.subspan(begin, end - begin));
    begin = end;
  }
  return sides;
}

/// What keeps a send and a receive, or the reverse, from meeting.
std::string mismatch(const ScheduleEvent &a, const ScheduleEvent &b) {
  if (a.kind == b.kind) {
    return fmt::format("both {}", a.kind == Kind::Send ? "send" : "receive");
  }
  if (std::tie(a.work, a.part, a.microBatch) !=
      std::tie(b.work, b.part, b.microBatch)) {
    return "they move different values";
  }
  if (a.bytes != b.bytes) {
    return fmt::format("they move {} and {} bytes", a.bytes, b.bytes);
  }
  return {};
}

class Matcher {
public:
  explicit Matcher(const ScheduleGraphInput &input) : input(input) {}

  Status match(std::span<const Operation> group);
  Rendezvous take() { return std::move(rendezvous); }

private:
  Status checkPair(const Side &a, const Side &b) const;
  Status missing(const Side &more, size_t k, int32_t stage) const;

  const ScheduleGraphInput &input;
  Rendezvous rendezvous;
};

Status Matcher::missing(const Side &more, size_t k, int32_t stage) const {
  const ScheduleEvent &event = at(input, more[k].place);
  return badInput("{}: stage {} has no {} for it, operation {} of "
                  "communicator {}",
                  eventName(input, more[k].place), stage,
                  event.kind == Kind::Send      ? "receive"
                  : event.kind == Kind::Receive ? "send"
                                                : "collective",
                  k, event.communicator);
}

Status Matcher::checkPair(const Side &a, const Side &b) const {
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    const ScheduleEvent &first = at(input, a[k].place);
    const ScheduleEvent &second = at(input, b[k].place);
    if (!isTransfer(first)) {
      continue;
    }
    if (const std::string wrong = mismatch(first, second); !wrong.empty()) {
      return badInput("operation {} of communicator {} does not match: {} and "
                      "{}: {}",
                      k, first.communicator, eventName(input, a[k].place),
                      eventName(input, b[k].place), wrong);
    }
  }
  if (a.size() > b.size()) {
    return missing(a, b.size(), b.front().place.stage);
  }
  if (b.size() > a.size()) {
    return missing(b, a.size(), a.front().place.stage);
  }
  return Status::ok();
}

Status Matcher::match(std::span<const Operation> group) {
  const std::vector<Side> sides = sidesOf(group);
  const Side &first = sides.front();
  if (const ScheduleEvent &event = at(input, first.front().place);
      sides.size() == 1 && isTransfer(event)) {
    return missing(first, 0, event.peer);
  }
  for (size_t i = 1; i < sides.size(); ++i) {
    MEGA_RETURN_IF_ERROR(checkPair(first, sides[i]));
  }
  for (size_t k = 0; k < first.size(); ++k) {
    for (const Side &side : sides) {
      rendezvous.members.push_back(side[k].place);
    }
    rendezvous.ends.push_back(rendezvous.members.size());
  }
  return Status::ok();
}

} // namespace

StatusOr<Rendezvous> matchOperations(const ScheduleGraphInput &input) {
  const std::vector<Operation> operations = sortedOperations(input);
  const std::span<const Operation> all(operations);
  Matcher matcher(input);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end].group() == all[begin].group()) {
      ++end;
    }
    MEGA_RETURN_IF_ERROR(matcher.match(all.subspan(begin, end - begin)));
    begin = end;
  }
  return matcher.take();
}

} // namespace mega::schedule
