//===- BoundedJson.h - JSON of untrusted files ------------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_CORE_BOUNDEDJSON_H
#define MEGA_RUNTIME_CORE_BOUNDEDJSON_H

#include "runtime/plan/Status.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace mega {

using Json = nlohmann::json;

/// Parses JSON whose brackets nest at most `depth` deep. Code::BadInput for
/// anything else. Never throws; time and memory grow with the text only.
StatusOr<Json> parseBoundedJson(std::string_view text, int depth);

/// A value for a message, cut to a line.
std::string shortJson(const Json &value);

} // namespace mega

#endif // MEGA_RUNTIME_CORE_BOUNDEDJSON_H
