//===- JsonFields.h - Objects of tokenizer.json, read strictly --*- C++ -*-===//
//
// Every key that is read has a type, and a key nobody reads is refused: it
// might change ids. Messages name the place (`model.merges[3]`).
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_JSONFIELDS_H
#define MEGA_RUNTIME_TOKENIZER_JSONFIELDS_H

#include "runtime/core/BoundedJson.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace mega {

class Fields {
public:
  /// Keeps a reference to `json`.
  Fields(const Json &json, std::string where)
      : json(json), where_(std::move(where)) {}

  const std::string &where() const { return where_; }
  std::string where(std::string_view key) const {
    return where_.empty() ? std::string(key)
                          : fmt::format("{}.{}", where_, key);
  }

  Status only(std::initializer_list<std::string_view> keys) const {
    if (!json.is_object()) {
      return badInput("{} is {}, expected an object", where_, shortJson(json));
    }
    for (const auto &[key, value] : json.items()) {
      if (std::ranges::find(keys, key) == keys.end()) {
        return badInput("{} is not supported (supported keys: {})", where(key),
                        fmt::join(keys, ", "));
      }
    }
    return Status::ok();
  }

  bool has(std::string_view key) const {
    const auto found = json.find(key);
    return found != json.end() && !found->is_null();
  }
  /// The value, or null.
  const Json &get(std::string_view key) const {
    static const Json null;
    const auto found = json.find(key);
    return found == json.end() ? null : *found;
  }

  StatusOr<bool> boolean(std::string_view key, bool otherwise) const {
    if (!has(key)) {
      return otherwise;
    }
    if (!get(key).is_boolean()) {
      return badInput("{} is {}, expected true or false", where(key),
                      shortJson(get(key)));
    }
    return get(key).get<bool>();
  }

  /// An absent or null string is empty.
  StatusOr<std::string> string(std::string_view key) const {
    if (!has(key)) {
      return std::string();
    }
    if (!get(key).is_string()) {
      return badInput("{} is {}, expected a string", where(key),
                      shortJson(get(key)));
    }
    return get(key).get<std::string>();
  }

  StatusOr<int32_t> id(std::string_view key) const {
    return toId(get(key), where(key));
  }

  static StatusOr<int32_t> toId(const Json &value, std::string_view where) {
    // One less than the largest, so that a vocabulary fits as well.
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max() - 1;
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
      return badInput("{} is {}, expected an id from 0 to {}", where,
                      shortJson(value), kMost);
    }
    return static_cast<int32_t>(value.get<uint64_t>());
  }

private:
  const Json &json;
  std::string where_;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_JSONFIELDS_H
