//===- Sockets.h - Connections of the rendezvous ----------------*- C++ -*-===//
//
// TCP with messages. Both sides first send eight bytes that name the protocol,
// so that neither mistakes a stranger for a rank. Then each message is its
// length (four bytes, least significant first) and CBOR. Errors are
// Code::Unavailable and name host and port.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_SOCKETS_H
#define MEGA_RUNTIME_LAUNCH_SOCKETS_H

#include "runtime/launch/Launcher.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace mega {

/// Owns a file descriptor.
class Descriptor {
public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor &&other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

private:
  int value_;
};

/// Listens on `endpoint.port` (0: any), of the loopback device if the host is
/// of it, else of all. A busy port is an error that says what to do.
StatusOr<Descriptor> listenOn(const Endpoint &endpoint);
/// Tries again until `limit`, as rank 0 may not be there yet.
StatusOr<Descriptor> connectTo(const Endpoint &endpoint,
                               std::chrono::milliseconds limit);
int portOf(const Descriptor &socket);
/// The numeric address of this, or of the other, end.
std::string localAddress(const Descriptor &socket);
std::string peerAddress(const Descriptor &socket);

/// A non-blocking connection and what is on its way in and out. Not
/// thread-safe.
class Connection {
public:
  using Message = nlohmann::json;
  explicit Connection(Descriptor socket);

  int descriptor() const { return socket.get(); }
  const Descriptor &owner() const { return socket; }
  bool wantsToWrite() const { return !out.empty(); }
  void send(const Message &message);
  /// Write and read what goes without waiting. False: the connection is lost,
  /// or the other side does not speak our protocol.
  bool write();
  bool read();
  /// Takes the next whole message.
  bool next(Message &message);
  /// Says that nothing more will be sent.
  void finish();
  /// Why read() or write() was false.
  std::string reason;

private:
  bool parse();
  Descriptor socket;
  std::string in, out;
  bool greeted = false;
  std::vector<Message> messages;
};

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_SOCKETS_H
