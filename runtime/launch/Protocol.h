//===- Protocol.h - What the ranks and the rendezvous say -------*- C++ -*-===//
//
//   a rank says            the server says
//
//   hello {Hello}          welcome                 all are there
//                          refuse code, message    the run cannot start
//   set key, value
//   get key                value key, value        once it is set
//   report {RankFailure}   failure {RankFailure}   the root cause, to all
//   ping {RankState}       pong {RankState}        where rank 0 is
//   state {RankState}      probe                   where are you?
//   bye                    end                     all have said bye
//
// Whoever hears nothing for the heartbeat limit takes the other side for lost.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_PROTOCOL_H
#define MEGA_RUNTIME_LAUNCH_PROTOCOL_H

#include "runtime/launch/RankFailure.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace mega {

/// What a rank says of itself, and what all ranks have to agree on.
struct Hello {
  int protocol = 1;
  int rank = 0;
  int worldSize = 1;
  /// Of the plan file, as text.
  std::string planHash;
  std::string version = MEGA_VERSION;
  /// The instruction set that kernels choose: another one, other bits.
  std::string instructionSet;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, protocol, rank, worldSize, planHash,
                                   version, instructionSet)

inline nlohmann::json toJson(const RankFailure &failure) {
  return {{"rank", failure.rank},      {"stage", failure.stage},
          {"step", failure.step},      {"action", failure.action},
          {"code", int(failure.code)}, {"message", failure.message}};
}

inline nlohmann::json toJson(const RankState &state) {
  return {{"stage", state.stage},
          {"step", state.step},
          {"action", state.action},
          {"waitsFor", state.waitsFor},
          {"operation", state.operation}};
}

/// The text at `key`, or none.
inline std::string textAt(const nlohmann::json &message, const char *key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

inline int64_t numberAt(const nlohmann::json &message, const char *key,
                        int64_t otherwise) {
  const auto found = message.find(key);
  return found != message.end() && found->is_number_integer()
             ? found->get<int64_t>()
             : otherwise;
}

inline RankState stateFrom(const nlohmann::json &json) {
  return {static_cast<int>(numberAt(json, "stage", -1)),
          numberAt(json, "step", -1), numberAt(json, "action", -1),
          static_cast<int>(numberAt(json, "waitsFor", -1)),
          textAt(json, "operation")};
}

/// Wrong fields become their defaults: a failure is never lost.
inline RankFailure failureFrom(const nlohmann::json &json) {
  const auto code = static_cast<int>(numberAt(json, "code", 0));
  return {static_cast<int>(numberAt(json, "rank", -1)),
          static_cast<int>(numberAt(json, "stage", -1)),
          numberAt(json, "step", -1),
          numberAt(json, "action", -1),
          code == 0 ? Code::Failed : Code(code),
          textAt(json, "message")};
}

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_PROTOCOL_H
