//===- GlooMessages.h - Messages over Gloo's buffers ------------*- C++ -*-===//
//
// Private to the Gloo implementation. Gloo matches a send with a receive of the
// same slot, a 64-bit number, and ends the process if a message is longer than
// the receive posted for it. So the length is part of our slots: messages of
// different lengths never meet, and the headers tell why.
//
//   | group 12 | channel 3 | number 15 | bytes 34 |
//
// Gloo throws; nothing thrown leaves these classes.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_GLOOMESSAGES_H
#define MEGA_RUNTIME_COMM_GLOOMESSAGES_H

#include "runtime/comm/Failure.h"
#include "runtime/comm/GlooWorld.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mega::gloocomm {

using Clock = std::chrono::steady_clock;

/// A full mesh of connections and the state of the ranks' world.
struct World {
  GlooOptions options;
  Failure failure;
  std::shared_ptr<gloo::Context> context;

  /// Sets the root cause unless there is one, wakes whoever waits, and returns
  /// the root cause. `found`: by this rank.
  Status fail(const Status &cause, bool found);
  /// fail(), after giving a better root cause time to arrive.
  Status failLost(const Status &cause);

  std::mutex mutex;
  std::condition_variable changed;
  /// Buffers that a thread waits for.
  std::vector<gloo::transport::UnboundBuffer *> waiting;

  /// An operation of a group begins. It has to end while the group is there.
  void begin(const Group &group, uint64_t number, const Operation &operation);
  /// Keeps what activity() says if the world has failed.
  void end();
  RankActivity activity();
  /// The peer of the message that is waited for, or -1.
  int waitsFor = -1;

private:
  std::string describeCurrent() const;
  const Group *group = nullptr;
  uint64_t number = 0;
  Operation operation;
  std::string failedIn;
};

enum class Channel : uint8_t {
  Headers,
  First,
  Second,
  SenderHeader,
  ReceiverHeader,
  TransferData,
};

inline constexpr int kGroupBits = 12;
inline constexpr int64_t kMaxMessageBytes = (int64_t(1) << 34) - 1;
uint64_t slotOf(int group, Channel channel, uint64_t number, int64_t bytes);

/// Messages that are posted together and waited for together, with one peer
/// each. Destroyed, they no longer use the memory they were given.
class Messages {
public:
  explicit Messages(World &world) : world(world) {}

  /// `peer` is a rank of the world. Empty messages are dropped on both sides.
  /// Errors of posting show in wait().
  void send(int peer, uint64_t slot, const void *data, int64_t bytes);
  void receive(int peer, uint64_t slot, void *data, int64_t bytes);

  enum class Result { Done, TimedOut, Aborted, Lost };
  /// Until all are done. On TimedOut and Lost, `peers` are the ranks of the
  /// world that are to blame; `reason` is Gloo's, of Lost.
  Result wait(Clock::time_point deadline);
  std::vector<int> peers;
  std::string reason;

private:
  struct Message {
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    int peer;
    bool isSend;
    bool done = false;
  };
  void post(int peer, uint64_t slot, void *data, int64_t bytes, bool isSend);
  Result wait(Message &message, Clock::time_point deadline);
  void blameUndone();

  World &world;
  std::vector<Message> messages;
};

} // namespace mega::gloocomm

#endif // MEGA_RUNTIME_COMM_GLOOMESSAGES_H
