#include "runtime/comm/GlooMessages.h"

#include <algorithm>
#include <cassert>
#include <exception>

namespace mega::gloocomm {

Status World::fail(const Status &cause, bool found) {
  if (failure.set(cause)) {
    {
      const std::scoped_lock lock(mutex);
      for (gloo::transport::UnboundBuffer *buffer : waiting) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
      }
      changed.notify_all();
    }
    if (found && options.onFailure) {
      options.onFailure(cause);
    }
  }
  return failure.status();
}

Status World::failLost(const Status &cause) {
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, options.rootCauseWait,
                     [&] { return failure.failed(); });
  }
  return fail(cause, true);
}

void World::begin(const Group &newGroup, uint64_t newNumber,
                  const Operation &newOperation) {
  const std::scoped_lock lock(mutex);
  group = &newGroup;
  number = newNumber;
  operation = newOperation;
}

void World::end() {
  const std::scoped_lock lock(mutex);
  if (failure.failed()) {
    if (failedIn.empty()) {
      failedIn = describeCurrent();
    }
  } else {
    waitsFor = -1;
  }
  group = nullptr;
}

RankActivity World::activity() {
  const std::scoped_lock lock(mutex);
  return {waitsFor, failedIn.empty() ? describeCurrent() : failedIn};
}

std::string World::describeCurrent() const {
  return group == nullptr
             ? std::string()
             : fmt::format("{} (number {} of group \"{}\")",
                           describe(operation, *group), number, group->name);
}

uint64_t slotOf(int group, Channel channel, uint64_t number, int64_t bytes) {
  assert(bytes <= kMaxMessageBytes && group < (1 << kGroupBits));
  return (static_cast<uint64_t>(group) << 52) |
         (static_cast<uint64_t>(channel) << 49) | ((number & 0x7FFF) << 34) |
         static_cast<uint64_t>(bytes);
}

/// Without Gloo's source location in front.
static std::string plain(const std::exception &error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

void Messages::send(int peer, uint64_t slot, const void *data, int64_t bytes) {
  post(peer, slot, const_cast<void *>(data), bytes, true);
}

void Messages::receive(int peer, uint64_t slot, void *data, int64_t bytes) {
  post(peer, slot, data, bytes, false);
}

void Messages::post(int peer, uint64_t slot, void *data, int64_t bytes,
                    bool isSend) {
  if (bytes == 0 || !reason.empty()) {
    return;
  }
  try {
    messages.push_back(
        {world.context->createUnboundBuffer(data, bytes), peer, isSend});
    gloo::transport::UnboundBuffer &buffer = *messages.back().buffer;
    if (isSend) {
      buffer.send(peer, slot);
    } else {
      buffer.recv(peer, slot);
    }
  } catch (const std::exception &error) {
    reason = plain(error);
    peers = {peer};
  }
}

Messages::Result Messages::wait(Clock::time_point deadline) {
  if (!reason.empty()) {
    return Result::Lost;
  }
  for (Message &message : messages) {
    const Result result = wait(message, deadline);
    if (result != Result::Done) {
      return result;
    }
  }
  return Result::Done;
}

Messages::Result Messages::wait(Message &message, Clock::time_point deadline) {
  {
    const std::scoped_lock lock(world.mutex);
    if (world.failure.failed()) {
      return Result::Aborted;
    }
    world.waiting.push_back(message.buffer.get());
    world.waitsFor = message.peer;
  }
  // Gloo counts whole milliseconds, and reads 0 as well as any other limit.
  const auto left = std::max(
      std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()),
      std::chrono::milliseconds(0));
  Result result = Result::Done;
  try {
    message.done = message.isSend ? message.buffer->waitSend(nullptr, left)
                                  : message.buffer->waitRecv(nullptr, left);
    result = message.done ? Result::Done : Result::Aborted;
  } catch (const std::exception &error) {
    result = Clock::now() >= deadline ? Result::TimedOut : Result::Lost;
    reason = plain(error);
    peers = {message.peer};
  }
  {
    const std::scoped_lock lock(world.mutex);
    std::erase(world.waiting, message.buffer.get());
  }
  if (result == Result::TimedOut) {
    blameUndone();
  }
  return result;
}

void Messages::blameUndone() {
  peers.clear();
  for (Message &message : messages) {
    if (!message.done && !message.isSend) {
      try {
        // Gloo has closed all connections after a time limit: what has not
        // arrived throws at once.
        message.done =
            message.buffer->waitRecv(nullptr, std::chrono::milliseconds(0));
      } catch (const std::exception &) {
        peers.push_back(message.peer);
      }
    }
  }
  if (peers.empty()) { // Only sends are left.
    for (const Message &message : messages) {
      if (!message.done) {
        peers.push_back(message.peer);
      }
    }
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
}

} // namespace mega::gloocomm
