//===- ScheduleMemory.cpp - What is in buffers and slots, when ------------===//
//
// Runs are over when the next event is issued, and transfers use their buffer
// from their own event to their Wait: the order of issue is enough.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ScheduleChecks.h"

namespace mega::schedule {
namespace {

using Kind = ScheduleEvent::Kind;

struct Value {
  Work work;
  int32_t part;
  int32_t microBatch;
  bool operator==(const Value &) const = default;
};

std::string text(const Value &value) {
  return valueName(value.work, value.part, value.microBatch);
}

struct Buffer {
  enum class State : uint8_t { Free, Receiving, Full, Sending };
  State state = State::Free;
  Value value = {};
};

/// "is being sent ...", what a buffer is at the moment.
std::string text(const Buffer &buffer) {
  switch (buffer.state) {
  case Buffer::State::Free:
    return "is empty";
  case Buffer::State::Receiving:
    return fmt::format("is still receiving {}", text(buffer.value));
  case Buffer::State::Full:
    return fmt::format("holds {}", text(buffer.value));
  case Buffer::State::Sending:
    break;
  }
  return fmt::format("is still sending {}", text(buffer.value));
}

/// The buffers of one stage. Every step says what is wrong, if anything.
class BufferStates {
public:
  BufferStates(const ScheduleGraphInput &input, int32_t stage)
      : input(input), events(input.events[stage]), buffers(events.size()) {}

  std::string step(const ScheduleEvent &event);
  std::string leftOver() const;

private:
  std::string run(const ScheduleEvent &event);
  std::string take(int32_t number, const Value &value);
  bool isPart(int32_t part) const { return part >= 0 && part < input.parts; }

  const ScheduleGraphInput &input;
  const std::vector<ScheduleEvent> &events;
  std::vector<Buffer> buffers;
};

std::string BufferStates::take(int32_t number, const Value &value) {
  const Buffer &buffer = buffers[number];
  if (buffer.state == Buffer::State::Full && buffer.value == value) {
    return {};
  }
  return fmt::format("needs {} in buffer {}, which {}", text(value), number,
                     text(buffer));
}

std::string BufferStates::run(const ScheduleEvent &event) {
  const int32_t along = event.work == Work::Forward ? 1 : -1;
  const bool moves = event.work != Work::Weight;
  const bool hasOperand = moves && isPart(event.part - along);
  const bool hasResult = moves && isPart(event.part + along);
  if (event.buffer < 0) {
    return hasOperand || hasResult ? "has no buffer" : "";
  }
  if (!moves) {
    return fmt::format("needs no buffer, has {}", event.buffer);
  }
  Buffer &buffer = buffers[event.buffer];
  if (hasOperand) {
    const Value operand{event.work, event.part - along, event.microBatch};
    if (std::string wrong = take(event.buffer, operand); !wrong.empty()) {
      return wrong;
    }
  } else if (buffer.state != Buffer::State::Free) {
    return fmt::format("writes buffer {}, which {}", event.buffer,
                       text(buffer));
  }
  buffer.state = hasResult ? Buffer::State::Full : Buffer::State::Free;
  buffer.value = {event.work, event.part, event.microBatch};
  return {};
}

std::string BufferStates::step(const ScheduleEvent &event) {
  const Value value{event.work, event.part, event.microBatch};
  switch (event.kind) {
  case Kind::Run:
    return run(event);
  case Kind::Receive:
    if (Buffer &buffer = buffers[event.buffer];
        buffer.state != Buffer::State::Free) {
      return fmt::format("receives into buffer {}, which {}", event.buffer,
                         text(buffer));
    }
    buffers[event.buffer] = {Buffer::State::Receiving, value};
    return {};
  case Kind::Send:
    if (std::string wrong = take(event.buffer, value); !wrong.empty()) {
      return wrong;
    }
    buffers[event.buffer].state = Buffer::State::Sending;
    return {};
  case Kind::Wait:
    if (const ScheduleEvent &transfer = events[event.event];
        isTransfer(transfer)) {
      buffers[transfer.buffer].state = transfer.kind == Kind::Send
                                           ? Buffer::State::Free
                                           : Buffer::State::Full;
    }
    return {};
  case Kind::Collective:
    break;
  }
  return {};
}

std::string BufferStates::leftOver() const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].state != Buffer::State::Free) {
      return fmt::format("at the end buffer {} {}, which nothing reads", i,
                         text(buffers[i]));
    }
  }
  return {};
}

/// The slots of one stage, by the forward whose frame is in them.
class SlotStates {
public:
  SlotStates(const ScheduleGraphInput &input, int32_t stage)
      : last(input.splitsWeight ? Work::Weight : Work::Backward),
        frames(input.events[stage].size(), kEmpty) {}

  std::string step(const ScheduleEvent &event) {
    if (event.slot < 0) {
      return "has no slot";
    }
    Value &frame = frames[event.slot];
    const Value saved{Work::Forward, event.part, event.microBatch};
    if (event.work == Work::Forward ? frame != kEmpty : frame != saved) {
      return fmt::format("{} slot {}, which {}",
                         event.work == Work::Forward ? "writes" : "reads",
                         event.slot, text(frame));
    }
    frame = event.work == last ? kEmpty : saved;
    return {};
  }

private:
  static constexpr Value kEmpty{Work::Forward, -1, -1};

  static std::string text(const Value &frame) {
    return frame == kEmpty ? "is empty"
                           : fmt::format("holds what {} saved",
                                         runName(Work::Forward, frame.part,
                                                 frame.microBatch));
  }

  const Work last;
  std::vector<Value> frames;
};

} // namespace

Status checkBuffers(const ScheduleGraphInput &input) {
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    BufferStates buffers(input, stage);
    const auto count = static_cast<int32_t>(input.events[stage].size());
    for (int32_t i = 0; i < count; ++i) {
      if (const std::string wrong = buffers.step(input.events[stage][i]);
          !wrong.empty()) {
        return badInput("{}: {}", eventName(input, {stage, i}), wrong);
      }
    }
    if (const std::string wrong = buffers.leftOver(); !wrong.empty()) {
      return badInput("stage {}: {}", stage, wrong);
    }
  }
  return Status::ok();
}

Status checkSlots(const ScheduleGraphInput &input) {
  for (int32_t stage = 0; input.train && stage < input.stages; ++stage) {
    SlotStates slots(input, stage);
    const auto count = static_cast<int32_t>(input.events[stage].size());
    for (int32_t i = 0; i < count; ++i) {
      const ScheduleEvent &event = input.events[stage][i];
      if (event.kind != Kind::Run) {
        continue;
      }
      if (const std::string wrong = slots.step(event); !wrong.empty()) {
        return badInput("{}: {}", eventName(input, {stage, i}), wrong);
      }
    }
  }
  return Status::ok();
}

} // namespace mega::schedule
