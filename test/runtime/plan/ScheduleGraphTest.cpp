#include "runtime/plan/ScheduleGraph.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace mega;

namespace {

/// Whether the request is legal.
bool expectProved(const PipelineRequest &request) {
  auto schedule = makeSchedule(request);
  if (!schedule.isOk()) {
    return false;
  }
  const Status status = verifySchedule(eventsOf(request, *schedule, 4096));
  EXPECT_TRUE(status.isOk())
      << "kind " << static_cast<int>(request.kind) << ", P " << request.stages
      << ", V " << request.chunks << ", M " << request.microBatches << ", N "
      << request.groupSize << ", train " << request.train << ": "
      << status.message();
  return true;
}

} // namespace

TEST(ScheduleGraph, EverySolvedScheduleIsProved) {
  int legal = 0;
  for (ScheduleKind kind :
       {ScheduleKind::GPipe, ScheduleKind::OneForwardOneBackward,
        ScheduleKind::Interleaved, ScheduleKind::ZeroBubble}) {
    for (int64_t stages : {1, 2, 3, 4, 8}) {
      for (int64_t chunks : {1, 2, 4}) {
        for (int64_t microBatches : {1, 2, 3, 5, 8, 16}) {
          for (bool train : {true, false}) {
            legal +=
                expectProved({kind, stages, chunks, microBatches, 0, train});
          }
        }
      }
    }
  }
  // GPipe and 1F1B with one chunk, zero-bubble with one or two, interleaved
  // forwards with more than one: all sizes. Of interleaved training those where
  // P <= M and P divides M, 14 of 30.
  EXPECT_EQ(legal, 30 * (2 + 2 + 4 + 2) + 2 * 14);
}

TEST(ScheduleGraph, GroupsOfAnySizeAreProved) {
  for (int64_t stages : {1, 2, 3, 4}) {
    for (int64_t groupSize = 1; groupSize <= 33; ++groupSize) {
      expectProved({ScheduleKind::Interleaved, stages, 2, 33, groupSize});
      expectProved({ScheduleKind::Interleaved, stages, 3, 33, groupSize});
      expectProved(
          {ScheduleKind::Interleaved, stages, 3, 33, groupSize, false});
    }
  }
}

// Far from anything quadratic: tens of milliseconds each.
TEST(ScheduleGraph, ManyStagesAndMicroBatches) {
  EXPECT_TRUE(expectProved({ScheduleKind::OneForwardOneBackward, 64, 1, 512}));
  EXPECT_TRUE(expectProved({ScheduleKind::Interleaved, 64, 2, 512}));
  EXPECT_TRUE(expectProved({ScheduleKind::ZeroBubble, 64, 2, 512}));
}

//===----------------------------------------------------------------------===//
// Bad schedules
//===----------------------------------------------------------------------===//

namespace {

using Kind = ScheduleEvent::Kind;
using Events = std::vector<ScheduleEvent>;

/// 1F1B, or another kind, over 2 stages.
ScheduleGraphInput
twoStages(ScheduleKind kind = ScheduleKind::OneForwardOneBackward) {
  const PipelineRequest request{kind, 2, 1, 4};
  auto schedule = makeSchedule(request);
  EXPECT_TRUE(schedule.isOk());
  return eventsOf(request, *schedule, 4096);
}

int32_t find(const Events &events, Kind kind, Work work, int32_t part,
             int32_t microBatch) {
  for (size_t i = 0; i < events.size(); ++i) {
    const ScheduleEvent &event = events[i];
    if (event.kind == kind && event.work == work && event.part == part &&
        event.microBatch == microBatch) {
      return static_cast<int32_t>(i);
    }
  }
  ADD_FAILURE() << "no such event";
  return 0;
}

/// Moves events of one stage; waits keep naming what they waited for.
void permute(Events &events, const std::vector<int32_t> &order) {
  std::vector<int32_t> moved(events.size(), -1);
  Events result;
  for (int32_t from : order) {
    moved[from] = static_cast<int32_t>(result.size());
    result.push_back(events[from]);
  }
  for (ScheduleEvent &event : result) {
    if (event.kind == Kind::Wait) {
      event.event = moved[event.event];
    }
  }
  events = std::move(result);
}

std::vector<int32_t> identity(const Events &events) {
  std::vector<int32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void move(Events &events, int32_t from, int32_t to) {
  std::vector<int32_t> order = identity(events);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  permute(events, order);
}

/// An operation is removed with its wait.
void remove(Events &events, int32_t index) {
  std::vector<int32_t> order = identity(events);
  std::erase_if(order, [&](int32_t i) {
    return i == index ||
           (events[i].kind == Kind::Wait && events[i].event == index);
  });
  permute(events, order);
}

int32_t waitOf(const Events &events, int32_t operation) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == Kind::Wait && events[i].event == operation) {
      return static_cast<int32_t>(i);
    }
  }
  ADD_FAILURE() << "nothing waits";
  return 0;
}

void expectRefused(const ScheduleGraphInput &input,
                   const std::vector<std::string> &parts) {
  const Status status = verifySchedule(input);
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(status.code(), Code::BadInput);
  for (const std::string &part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "expected: " << part << "\nin: " << status.message();
  }
}

/// No later than before `to`.
void moveWait(Events &events, int32_t send, int32_t to) {
  if (const int32_t wait = waitOf(events, send); to < wait) {
    move(events, wait, to);
  }
}

/// Behind the next run and what that sends.
int32_t afterNextRun(const Events &events, int32_t index) {
  const auto count = static_cast<int32_t>(events.size());
  for (++index; index < count && events[index].kind != Kind::Run;) {
    ++index;
  }
  return std::min(index + 2, count - 1);
}

} // namespace

TEST(ScheduleGraph, MissingReceive) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  remove(events, find(events, Kind::Receive, Work::Forward, 0, 3));
  expectRefused(input, {"send of activation of part 0, micro-batch 3",
                        "stage 1 has no receive for it"});
  for (int32_t m = 0; m < 3; ++m) {
    remove(events, find(events, Kind::Receive, Work::Forward, 0, m));
  }
  expectRefused(input, {"send of activation of part 0, micro-batch 0",
                        "stage 1 has no receive for it"});
}

TEST(ScheduleGraph, ReceiveOfAnotherMicroBatch) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  remove(events, find(events, Kind::Receive, Work::Forward, 0, 1));
  expectRefused(input, {"operation 1 of communicator 2 does not match",
                        "send of activation of part 0, micro-batch 1",
                        "receive of activation of part 0, micro-batch 2",
                        "they move different values"});
}

TEST(ScheduleGraph, DifferentSizes) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  events[find(events, Kind::Receive, Work::Forward, 0, 2)].bytes = 1024;
  expectRefused(input, {"they move 4096 and 1024 bytes"});
}

// In the steady state each of two neighbours sends before it receives.
TEST(ScheduleGraph, SendsThatBlockDeadlock) {
  ScheduleGraphInput input = twoStages();
  for (Events &events : input.events) {
    // Receives are posted as late as they can be, too.
    for (int32_t i = static_cast<int32_t>(events.size()) - 1; i >= 0; --i) {
      if (events[i].kind == Kind::Receive) {
        move(events, i, waitOf(events, i) - 1);
      }
    }
  }
  EXPECT_TRUE(verifySchedule(input).isOk()) << verifySchedule(input).message();
  for (Events &events : input.events) {
    for (int32_t i = 0; i < static_cast<int32_t>(events.size()); ++i) {
      if (events[i].kind == Kind::Send) {
        moveWait(events, i, i + 1);
      }
    }
  }
  expectRefused(input,
                {"deadlocks", "stage 0", "stage 1",
                 "ends only once its other side starts", "is issued after"});
}

// Waiting right after the next run is too early where the receiver posts its
// Receive only after something that the sender has yet to run.
TEST(ScheduleGraph, SomeSendsNeedLaterWaits) {
  for (const PipelineRequest &request :
       std::vector<PipelineRequest>{{ScheduleKind::Interleaved, 2, 2, 16, 16},
                                    {ScheduleKind::ZeroBubble, 2, 2, 5}}) {
    auto schedule = makeSchedule(request);
    ASSERT_TRUE(schedule.isOk());
    ScheduleGraphInput input = eventsOf(request, *schedule, 64);
    EXPECT_TRUE(verifySchedule(input).isOk());
    for (Events &events : input.events) {
      for (int32_t i = 0; i < static_cast<int32_t>(events.size()); ++i) {
        if (events[i].kind == Kind::Send) {
          moveWait(events, i, afterNextRun(events, i));
        }
      }
    }
    expectRefused(input, {"deadlocks"});
  }
}

TEST(ScheduleGraph, OppositeDirectionsOnOneCommunicator) {
  ScheduleGraphInput input = twoStages();
  for (Events &events : input.events) {
    for (ScheduleEvent &event : events) {
      if (event.communicator >= 0) {
        event.communicator = 0;
        event.queue = 0;
      }
    }
  }
  expectRefused(input, {"of communicator 0 does not match"});
}

TEST(ScheduleGraph, CommunicatorsInOppositeOrdersOnOneQueue) {
  ScheduleGraphInput input = twoStages();
  for (int32_t stage = 0; stage < 2; ++stage) {
    Events &events = input.events[stage];
    for (int32_t i : {0, 1}) {
      ScheduleEvent event{Kind::Collective};
      event.communicator = 10 + (i + stage) % 2;
      event.queue = 7;
      events.push_back(event);
    }
  }
  expectRefused(input, {"deadlocks", "runs on queue 7 after",
                        "collective on communicator 10",
                        "collective on communicator 11"});
  for (Events &events : input.events) {
    events.back().queue = 8;
  }
  EXPECT_TRUE(verifySchedule(input).isOk());
}

TEST(ScheduleGraph, OneCommunicatorIsSerialOnAnyQueues) {
  // Transfers of one pair match, but one stage issues a collective of the same
  // communicator before, the other after them.
  ScheduleGraphInput input = twoStages();
  ScheduleEvent event{Kind::Collective};
  event.communicator = 2;
  event.queue = 9;
  input.events[0].push_back(event);
  Events &events = input.events[1];
  std::vector<int32_t> order = identity(events);
  events.push_back(event);
  order.insert(order.begin(), static_cast<int32_t>(events.size()) - 1);
  permute(events, order);
  expectRefused(input, {"deadlocks", "runs on communicator 2 after"});
}

TEST(ScheduleGraph, MissingCollective) {
  ScheduleGraphInput input = twoStages();
  ScheduleEvent event{Kind::Collective};
  event.communicator = 9;
  input.events[0].push_back(event);
  input.events[1].push_back(event);
  input.events[1].push_back(event);
  expectRefused(input, {"stage 1", "collective on communicator 9",
                        "stage 0 has no collective for it"});
}

TEST(ScheduleGraph, WaitBeforeItsRecord) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  const int32_t receive = find(events, Kind::Receive, Work::Backward, 1, 1);
  move(events, waitOf(events, receive), receive);
  expectRefused(input, {"stage 0", "waits for what was not started"});
}

TEST(ScheduleGraph, WaitsOnce) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  const int32_t send = find(events, Kind::Send, Work::Forward, 0, 1);
  const int32_t wait = waitOf(events, send);
  events.push_back(events[wait]);
  expectRefused(input, {fmt::format("event {} has waited for it", wait)});
  events.pop_back();
  std::vector<int32_t> order = identity(events);
  order.erase(order.begin() + wait);
  permute(events, order);
  expectRefused(input, {"send of activation of part 0, micro-batch 1",
                        "nothing waits for it"});
}

TEST(ScheduleGraph, SlotOverwritten) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  events[find(events, Kind::Run, Work::Forward, 0, 1)].slot = 0;
  expectRefused(input,
                {"forward of part 0, micro-batch 1: writes slot 0, which "
                 "holds what forward of part 0, micro-batch 0 saved"});
}

TEST(ScheduleGraph, SlotOfAnotherMicroBatch) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  events[find(events, Kind::Run, Work::Backward, 0, 0)].slot = 1;
  expectRefused(input,
                {"backward of part 0, micro-batch 0: reads slot 1, which "
                 "holds what forward of part 0, micro-batch 1 saved"});
}

TEST(ScheduleGraph, SlotFreedBeforeTheWeightRun) {
  ScheduleGraphInput input = twoStages(ScheduleKind::ZeroBubble);
  // As if backward were the last to read: the next forward takes its slot.
  Events &events = input.events[0];
  const int32_t weight = find(events, Kind::Run, Work::Weight, 0, 0);
  const int32_t forward = find(events, Kind::Run, Work::Forward, 0, 3);
  ASSERT_LT(find(events, Kind::Run, Work::Backward, 0, 0), forward);
  events[forward].slot = events[weight].slot;
  move(events, weight, static_cast<int32_t>(events.size()) - 1);
  expectRefused(input, {"forward of part 0, micro-batch", "writes slot"});
}

TEST(ScheduleGraph, BufferOverwrittenWhileBeingSent) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  const int32_t send = find(events, Kind::Send, Work::Forward, 0, 0);
  const int32_t next = find(events, Kind::Run, Work::Forward, 0, 1);
  ASSERT_LT(next, waitOf(events, send));
  events[next].buffer = events[send].buffer;
  expectRefused(input,
                {"forward of part 0, micro-batch 1: writes buffer",
                 "is still sending activation of part 0, micro-batch 0"});
}

TEST(ScheduleGraph, ReceivesIntoWhatIsYetToBeRead) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  const int32_t first = find(events, Kind::Receive, Work::Forward, 0, 0);
  const int32_t second = find(events, Kind::Receive, Work::Forward, 0, 1);
  events[second].buffer = events[first].buffer;
  move(events, second, waitOf(events, first));
  expectRefused(input, {"receive of activation of part 0, micro-batch 1: "
                        "receives into buffer",
                        "which"});
}

TEST(ScheduleGraph, RunsBeforeItsOperandHasArrived) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  const int32_t wait =
      waitOf(events, find(events, Kind::Receive, Work::Forward, 0, 0));
  move(events, wait, wait + 1);
  expectRefused(input,
                {"forward of part 1, micro-batch 0: needs activation of part "
                 "0, micro-batch 0 in buffer",
                 "is still receiving activation of part 0, micro-batch 0"});
}

TEST(ScheduleGraph, SendsWhatItDoesNotHold) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  const int32_t send = find(events, Kind::Send, Work::Forward, 0, 0);
  move(events, send, find(events, Kind::Run, Work::Forward, 0, 0));
  expectRefused(input, {"send of activation of part 0, micro-batch 0: needs",
                        "which is empty"});
}

TEST(ScheduleGraph, MicroBatchTwice) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  events[find(events, Kind::Run, Work::Forward, 0, 3)].microBatch = 2;
  expectRefused(input,
                {"forward of part 0, micro-batch 2: runs a second time"});
}

TEST(ScheduleGraph, ForwardOnTheWrongStage) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[0];
  events[find(events, Kind::Run, Work::Forward, 0, 3)].part = 1;
  expectRefused(input, {"stage 0, event", "forward of part 1, micro-batch 3: "
                                          "its part is on stage 1"});
}

TEST(ScheduleGraph, BackwardBeforeForward) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  move(events, find(events, Kind::Run, Work::Backward, 1, 0),
       find(events, Kind::Run, Work::Forward, 1, 0));
  expectRefused(input, {"backward of part 1, micro-batch 0: runs before its "
                        "forward"});
}

TEST(ScheduleGraph, WeightBeforeBackward) {
  ScheduleGraphInput input = twoStages(ScheduleKind::ZeroBubble);
  Events &events = input.events[1];
  move(events, find(events, Kind::Run, Work::Weight, 1, 0),
       find(events, Kind::Run, Work::Backward, 1, 0));
  expectRefused(input, {"weight of part 1, micro-batch 0: runs before its "
                        "backward"});
}

TEST(ScheduleGraph, MissingBackward) {
  ScheduleGraphInput input = twoStages();
  Events &events = input.events[1];
  remove(events, find(events, Kind::Run, Work::Backward, 1, 3));
  expectRefused(input,
                {"stage 1: backward of part 1, micro-batch 3 does not run"});
}

TEST(ScheduleGraph, RunsThatTheScheduleDoesNotHave) {
  ScheduleGraphInput input = twoStages(ScheduleKind::ZeroBubble);
  input.splitsWeight = false;
  expectRefused(input, {"weight of part 0", "has no such runs"});
  input.train = false;
  expectRefused(input, {"backward of part 0", "has no such runs"});
}

TEST(ScheduleGraph, NumbersOutOfRange) {
  const auto with = [](auto change) {
    ScheduleGraphInput input = twoStages();
    change(input);
    return input;
  };
  const auto change = [&](Kind kind, auto field, int32_t value) {
    return with([&](ScheduleGraphInput &input) {
      Events &events = input.events[1];
      const int32_t part = kind == Kind::Receive ? 0 : 1;
      events[find(events, kind, Work::Forward, part, 0)].*field = value;
    });
  };
  using E = ScheduleEvent;
  expectRefused(with([](auto &input) { input.stages = 3; }), {"2 stages"});
  expectRefused(with([](auto &input) { input.microBatches = 1 << 30; }),
                {"cannot run 2 parts for 1073741824 micro-batches"});
  expectRefused(with([](auto &input) { input.stageOfPart[1] = 2; }),
                {"part 1 is on stage 2 of 2"});
  expectRefused(change(Kind::Run, &E::part, 2), {"there are 2 parts"});
  expectRefused(change(Kind::Run, &E::microBatch, -1), {"4 micro-batches"});
  expectRefused(change(Kind::Run, &E::slot, 1 << 30), {"slot 1073741824"});
  expectRefused(change(Kind::Run, &E::slot, -1), {"has no slot"});
  expectRefused(change(Kind::Run, &E::buffer, -1), {"has no buffer"});
  expectRefused(change(Kind::Receive, &E::buffer, -1), {"has buffer -1"});
  expectRefused(change(Kind::Receive, &E::peer, 1), {"has stage 1 of 2"});
  expectRefused(change(Kind::Receive, &E::communicator, -1),
                {"has communicator -1"});
}
