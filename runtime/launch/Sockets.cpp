#include "runtime/launch/Sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace mega {
namespace {

constexpr std::string_view kGreeting = "MEGARDV1";
constexpr size_t kMaxMessage = size_t(16) << 20;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

StatusOr<Addresses> resolve(const Endpoint &endpoint, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo *result = nullptr;
  const int error =
      ::getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(),
                    std::to_string(endpoint.port).c_str(), &hints, &result);
  if (error != 0) {
    return makeError(Code::Unavailable, "cannot resolve {}: {}",
                     describe(endpoint), ::gai_strerror(error));
  }
  return Addresses(result, &::freeaddrinfo);
}

bool isLoopback(const addrinfo &address) {
  if (address.ai_family == AF_INET) {
    const auto *in = reinterpret_cast<const sockaddr_in *>(address.ai_addr);
    return ntohl(in->sin_addr.s_addr) >> 24 == 127;
  }
  const auto *in6 = reinterpret_cast<const sockaddr_in6 *>(address.ai_addr);
  return address.ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

Descriptor newSocket(const addrinfo &address) {
  return Descriptor(::socket(address.ai_family,
                             address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             address.ai_protocol));
}

using GetName = int (*)(int, sockaddr *, socklen_t *);
std::pair<std::string, int> nameOf(const Descriptor &socket, GetName get) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  auto *address = reinterpret_cast<sockaddr *>(&storage);
  std::array<char, NI_MAXHOST> host = {};
  std::array<char, NI_MAXSERV> port = {};
  if (get(socket.get(), address, &length) != 0 ||
      ::getnameinfo(address, length, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {"", 0};
  }
  std::string text = host.data();
  // An IPv4 peer of a socket that listens to both.
  constexpr std::string_view mapped = "::ffff:";
  if (text.starts_with(mapped) && text.find('.') != std::string::npos) {
    text.erase(0, mapped.size());
  }
  return {text, std::atoi(port.data())};
}

/// Zero, or the errno of a connection attempt of at most `limit`.
int tryConnect(const Descriptor &socket, const addrinfo &address,
               std::chrono::milliseconds limit) {
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd wait = {socket.get(), POLLOUT, 0};
  if (::poll(&wait, 1, static_cast<int>(limit.count())) <= 0) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

} // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) {
    ::close(value_);
  }
}

StatusOr<Descriptor> listenOn(const Endpoint &endpoint) {
  MEGA_ASSIGN_OR_RETURN(Addresses addresses, resolve(endpoint, 0));
  if (!isLoopback(*addresses)) {
    // The name may be a service's, not this host's: listen to all.
    Endpoint any = {addresses->ai_family == AF_INET6 ? "::" : "0.0.0.0",
                    endpoint.port};
    MEGA_ASSIGN_OR_RETURN(addresses, resolve(any, AI_PASSIVE));
  }
  Descriptor socket = newSocket(*addresses);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!socket ||
      ::bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int error = errno;
    return makeError(
        Code::Unavailable, "cannot listen on {}: {}{}", describe(endpoint),
        std::strerror(error),
        error == EADDRINUSE
            ? "; another process uses the port: end it, or give a free one "
              "with --rendezvous HOST:PORT"
            : "");
  }
  return socket;
}

StatusOr<Descriptor> connectTo(const Endpoint &endpoint,
                               std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limit;
  std::string reason;
  while (true) {
    auto addresses = resolve(endpoint, 0);
    if (!addresses.isOk()) {
      reason = addresses.status().message();
    }
    for (const addrinfo *each = addresses.isOk() ? (*addresses).get() : nullptr;
         each != nullptr; each = each->ai_next) {
      Descriptor socket = newSocket(*each);
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      const int error = tryConnect(
          socket, *each, std::max(left, std::chrono::milliseconds(1)));
      if (error == 0) {
        return socket;
      }
      reason = std::strerror(error);
    }
    if (Clock::now() >= deadline) {
      return makeError(Code::Unavailable,
                       "cannot reach rank 0 at {} within {} s: {}; is rank 0 "
                       "running, and the port open?",
                       describe(endpoint),
                       std::chrono::duration<double>(limit).count(), reason);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int portOf(const Descriptor &socket) {
  return nameOf(socket, &::getsockname).second;
}
std::string localAddress(const Descriptor &socket) {
  return nameOf(socket, &::getsockname).first;
}
std::string peerAddress(const Descriptor &socket) {
  return nameOf(socket, &::getpeername).first;
}

Connection::Connection(Descriptor given)
    : socket(std::move(given)), out(kGreeting) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
}

void Connection::send(const Message &message) {
  const std::vector<uint8_t> bytes = Message::to_cbor(message);
  for (int shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>((bytes.size() >> shift) & 0xFF);
  }
  out.append(bytes.begin(), bytes.end());
}

bool Connection::write() {
  while (!out.empty()) {
    const ssize_t count =
        ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (count > 0) {
      out.erase(0, static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      reason = std::strerror(errno);
      return false;
    }
  }
  return true;
}

bool Connection::read() {
  std::array<char, 16384> piece;
  while (true) {
    const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count > 0) {
      in.append(piece.data(), static_cast<size_t>(count));
      if (!parse()) {
        return false;
      }
    } else if (count == 0) {
      reason = "closed by the other side";
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      reason = std::strerror(errno);
      return false;
    }
  }
}

bool Connection::parse() {
  if (!greeted) {
    if (in.substr(0, kGreeting.size()) != kGreeting.substr(0, in.size())) {
      reason = "the other side is no rendezvous of megart";
      return false;
    }
    if (in.size() < kGreeting.size()) {
      return true;
    }
    in.erase(0, kGreeting.size());
    greeted = true;
  }
  while (in.size() >= 4) {
    size_t length = 0;
    for (int i = 3; i >= 0; --i) {
      length = length << 8 | static_cast<uint8_t>(in[i]);
    }
    if (length > kMaxMessage) {
      reason = fmt::format("a message of {} bytes", length);
      return false;
    }
    if (in.size() < 4 + length) {
      return true;
    }
    Message message =
        Message::from_cbor(in.begin() + 4, in.begin() + 4 + length,
                           /*strict=*/true, /*allow_exceptions=*/false);
    in.erase(0, 4 + length);
    if (!message.is_object()) {
      reason = "a message that is no CBOR object";
      return false;
    }
    messages.push_back(std::move(message));
  }
  return true;
}

bool Connection::next(Message &message) {
  if (messages.empty()) {
    return false;
  }
  message = std::move(messages.front());
  messages.erase(messages.begin());
  return true;
}

void Connection::finish() { ::shutdown(socket.get(), SHUT_WR); }

} // namespace mega
