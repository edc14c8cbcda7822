// Meeting, differing and failing, with ranks that are threads.
#include "runtime/launch/Rendezvous.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

using namespace mega;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

namespace {

Hello hello(int rank, int worldSize) {
  Hello result;
  result.rank = rank;
  result.worldSize = worldSize;
  result.planHash = "abc123";
  result.instructionSet = "AVX2";
  return result;
}

std::unique_ptr<RendezvousServer> startServer(int worldSize,
                                              RendezvousLimits limits = {}) {
  auto server =
      RendezvousServer::start({"127.0.0.1", 0}, hello(0, worldSize), limits);
  EXPECT_TRUE(server.isOk()) << server.status().message();
  return std::move(server).take();
}

/// Joins as `hellos`, all at once, and hands each result to `body`.
void joinAll(
    int port, const std::vector<Hello> &hellos,
    const std::function<void(int, StatusOr<std::unique_ptr<Rendezvous>>)> &body,
    RendezvousLimits limits = {}) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < hellos.size(); ++i) {
    threads.emplace_back([&, i] {
      body(static_cast<int>(i),
           Rendezvous::join({"127.0.0.1", port}, hellos[i], limits));
    });
  }
}

TEST(Rendezvous, AllMeetShareKeysAndLeave) {
  const auto server = startServer(4);
  std::vector<Hello> hellos;
  for (int rank : {3, 1, 0, 2}) {
    hellos.push_back(hello(rank, 4));
  }
  std::atomic<int> left{0};
  joinAll(server->port(), hellos, [&](int i, auto joined) {
    ASSERT_TRUE(joined.isOk()) << joined.status().message();
    Rendezvous &ranks = **joined;
    ranks.setFailureCallback([](const RankFailure &failure) {
      ADD_FAILURE() << failure.describe();
    });
    const int rank = hellos[i].rank;
    EXPECT_EQ(ranks.localAddress(), "127.0.0.1");
    // Any bytes; read before or after they are set.
    const std::string binary("\0\xff value ", 9);
    EXPECT_TRUE(ranks.store()
                    .set("k" + std::to_string(rank), binary + char('0' + rank))
                    .isOk());
    for (int other = 0; other < 4; ++other) {
      auto value = ranks.store().get("k" + std::to_string(other), 10s);
      ASSERT_TRUE(value.isOk()) << value.status().message();
      EXPECT_EQ(*value, binary + char('0' + other));
    }
    const auto missing = ranks.store().get("never", 1ms);
    EXPECT_THAT(missing.status().message(), HasSubstr("\"never\""));
    EXPECT_TRUE(ranks.leave().isOk());
    ++left;
  });
  EXPECT_EQ(left, 4);
}

TEST(Rendezvous, WhoDiffersInWhat) {
  struct Case {
    std::function<void(Hello &)> change;
    std::string ours, theirs;
  };
  const std::vector<Case> cases = {
      {[](Hello &h) { h.planHash = "def456"; }, "abc123", "def456"},
      {[](Hello &h) { h.version = "9.9"; }, MEGA_VERSION, "9.9"},
      {[](Hello &h) { h.worldSize = 5; }, "has 3", "a world of 5"},
      {[](Hello &h) { h.instructionSet = "AVX3"; }, "AVX2", "AVX3"},
      {[](Hello &h) { h.protocol = 7; }, "has 1", "protocol 7"}};
  for (const Case &each : cases) {
    const auto server = startServer(3);
    std::vector<Hello> hellos = {hello(0, 3), hello(1, 3), hello(2, 3)};
    each.change(hellos[2]);
    joinAll(server->port(), hellos, [&](int, auto joined) {
      ASSERT_FALSE(joined.isOk());
      EXPECT_EQ(joined.status().code(), Code::BadInput);
      EXPECT_THAT(joined.status().message(),
                  AllOf(HasSubstr("rank 2 has"), HasSubstr("rank 0 has"),
                        HasSubstr(each.ours), HasSubstr(each.theirs)));
    });
  }
}

TEST(Rendezvous, TwoProcessesOfOneRank) {
  const auto server = startServer(3);
  joinAll(server->port(), {hello(0, 3), hello(1, 3), hello(1, 3)},
          [&](int, auto joined) {
            ASSERT_FALSE(joined.isOk());
            EXPECT_THAT(joined.status().message(),
                        HasSubstr("two processes are rank 1"));
          });
}

TEST(Rendezvous, ARankOutsideOfTheWorld) {
  const auto server = startServer(2);
  joinAll(server->port(), {hello(0, 2), hello(2, 2)}, [&](int, auto joined) {
    ASSERT_FALSE(joined.isOk());
    EXPECT_THAT(joined.status().message(), HasSubstr("rank 2 (from 127.0.0.1) "
                                                     "is not in 0 .. 1"));
  });
}

TEST(Rendezvous, MissingRanksAreNamed) {
  RendezvousLimits limits;
  limits.join = 300ms;
  const auto server = startServer(5, limits);
  joinAll(
      server->port(), {hello(0, 5), hello(2, 5)},
      [&](int, auto joined) {
        ASSERT_FALSE(joined.isOk());
        EXPECT_EQ(joined.status().code(), Code::Unavailable);
        EXPECT_THAT(joined.status().message(),
                    HasSubstr("ranks 1, 3 and 4 of 5 have not joined"));
      },
      limits);
}

TEST(Rendezvous, NobodyListens) {
  int port = 0;
  {
    const auto server = startServer(1);
    port = server->port();
  }
  RendezvousLimits limits;
  limits.join = 200ms;
  const auto joined =
      Rendezvous::join({"127.0.0.1", port}, hello(1, 2), limits);
  ASSERT_FALSE(joined.isOk());
  EXPECT_EQ(joined.status().code(), Code::Unavailable);
  EXPECT_THAT(joined.status().message(),
              AllOf(HasSubstr("127.0.0.1:" + std::to_string(port)),
                    HasSubstr("within 0.2 s"), HasSubstr("refused")));
}

TEST(Rendezvous, RanksMayComeBeforeTheServer) {
  int port = 0;
  {
    const auto server = startServer(1);
    port = server->port();
  }
  std::jthread early([&] {
    const auto joined = Rendezvous::join({"127.0.0.1", port}, hello(1, 2));
    ASSERT_TRUE(joined.isOk()) << joined.status().message();
    EXPECT_TRUE((*joined)->leave().isOk());
  });
  const auto server =
      RendezvousServer::start({"127.0.0.1", port}, hello(0, 2)).take();
  const auto joined = Rendezvous::join({"127.0.0.1", port}, hello(0, 2));
  ASSERT_TRUE(joined.isOk()) << joined.status().message();
  EXPECT_TRUE((*joined)->leave().isOk());
}

TEST(Rendezvous, ABusyPortIsNamedWithAdvice) {
  const auto server = startServer(1);
  const auto second =
      RendezvousServer::start({"127.0.0.1", server->port()}, hello(0, 1));
  ASSERT_FALSE(second.isOk());
  EXPECT_EQ(second.status().code(), Code::Unavailable);
  EXPECT_THAT(second.status().message(),
              AllOf(HasSubstr("127.0.0.1:" + std::to_string(server->port())),
                    HasSubstr("Address already in use"),
                    HasSubstr("--rendezvous HOST:PORT")));
}

TEST(Rendezvous, StrangersDoNotDisturb) {
  const auto server = startServer(1);
  std::vector<int> sockets;
  for (const std::string_view text :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"),
        std::string_view("MEGARDV1\xff\xff\xff\xff"),
        std::string_view("MEGARDV1\x01\0\0\0\xa0", 13), std::string_view()}) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr *>(&address),
                        sizeof(address)),
              0);
    ASSERT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    sockets.push_back(socket);
  }
  const auto joined =
      Rendezvous::join({"127.0.0.1", server->port()}, hello(0, 1));
  ASSERT_TRUE(joined.isOk()) << joined.status().message();
  EXPECT_TRUE((*joined)->leave().isOk());
  for (const int socket : sockets) {
    ::close(socket);
  }
}

TEST(FailureChannel, TheFirstReportIsEveryonesRootCause) {
  const auto server = startServer(3);
  std::latch announced(3);
  joinAll(server->port(), {hello(0, 3), hello(1, 3), hello(2, 3)},
          [&](int rank, auto joined) {
            ASSERT_TRUE(joined.isOk()) << joined.status().message();
            Rendezvous &ranks = **joined;
            std::string heard;
            ranks.setFailureCallback([&](const RankFailure &failure) {
              heard = failure.describe();
              announced.count_down();
            });
            const std::string wanted =
                "rank 1 (stage 2, step 17, action 5): loss is not finite";
            if (rank == 1) {
              const RankFailure cause = ranks.report(
                  {1, 2, 17, 5, Code::Failed, "loss is not finite"});
              EXPECT_EQ(cause.describe(), wanted);
            }
            announced.wait();
            EXPECT_EQ(heard, wanted);
            // A consequence does not replace it.
            const RankFailure later =
                ranks.report({rank, -1, -1, -1, Code::Internal, "aborted"});
            EXPECT_EQ(later.describe(), wanted);
            EXPECT_EQ(later.code, Code::Failed);
            EXPECT_EQ(ranks.leave().message(), wanted);
            EXPECT_FALSE(ranks.store().set("k", "v").isOk());
          });
}

TEST(FailureChannel, ARankThatGoesWithoutLeavingIsLost) {
  const auto server = startServer(2);
  joinAll(server->port(), {hello(0, 2), hello(1, 2)},
          [&](int rank, auto joined) {
            ASSERT_TRUE(joined.isOk()) << joined.status().message();
            if (rank == 1) {
              return; // Destroys it.
            }
            const Status status = (*joined)->leave();
            EXPECT_EQ(status.code(), Code::Unavailable);
            EXPECT_THAT(status.message(), HasSubstr("rank 1: its connection is "
                                                    "lost"));
          });
}

} // namespace
