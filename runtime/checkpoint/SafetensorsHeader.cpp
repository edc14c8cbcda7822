#include "runtime/checkpoint/SafetensorsHeader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

namespace mega::safetensors {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";

/// In the order of DataType.
constexpr std::array<std::string_view, kDataTypeCount> kTypeNames = {
    "F32", "BF16", "F64", "I32", "I64"};

/// Watches the parser for what the finished tree no longer shows or should
/// never have to hold: a key that appears twice, and deep nesting.
class Watch {
public:
  bool operator()(int depth, Json::parse_event_t event, Json &value) {
    // {"name": {"shape": [ is three deep.
    if (depth > 3) {
      deep = true;
      return false;
    }
    if (event == Json::parse_event_t::object_start) {
      if (depth < static_cast<int>(keys.size())) {
        keys[depth].clear();
      }
    } else if (event == Json::parse_event_t::key) {
      const auto &key = value.get_ref<const std::string &>();
      if (!keys[depth - 1].insert(key).second && !duplicate) {
        duplicate = key;
      }
    }
    return true;
  }

  std::optional<std::string> duplicate;
  bool deep = false;

private:
  /// Keys so far of the object that is open at each depth.
  std::array<std::set<std::string>, 3> keys;
};

StatusOr<Json> parseJson(std::string_view text) {
  Watch watch;
  Json json;
  try {
    json = Json::parse(text, std::ref(watch));
  } catch (const Json::exception &error) {
    return badInput("the header is not valid JSON: {}", error.what());
  }
  if (watch.deep) {
    return badInput("the header is nested deeper than a tensor's shape");
  }
  if (watch.duplicate) {
    return badInput("the header holds the key {} twice", *watch.duplicate);
  }
  return json;
}

/// Non-negative, below 2^63.
std::optional<int64_t> toSize(const Json &json) {
  if (!json.is_number_unsigned() ||
      json.get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<int64_t>(json.get<uint64_t>());
}

std::optional<std::vector<int64_t>> toSizes(const Json &json) {
  if (!json.is_array()) {
    return std::nullopt;
  }
  std::vector<int64_t> sizes;
  for (const Json &element : json) {
    const auto size = toSize(element);
    if (!size) {
      return std::nullopt;
    }
    sizes.push_back(*size);
  }
  return sizes;
}

StatusOr<Entry> parseEntry(const std::string &name, const Json &json,
                           int64_t dataBytes) {
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
      !json.contains("shape") || !json.contains("data_offsets")) {
    return badInput("tensor {} has not exactly dtype, shape and data_offsets",
                    name);
  }
  Entry entry;
  entry.info.name = name;

  const Json &type = json["dtype"];
  const auto found = std::ranges::find(
      kTypeNames, type.is_string() ? type.get_ref<const std::string &>() : "");
  if (found == kTypeNames.end()) {
    return badInput("tensor {} has dtype {}, expected {}", name,
                    type.dump(-1, ' ', false, Json::error_handler_t::replace),
                    fmt::join(kTypeNames, ", "));
  }
  entry.info.type = static_cast<DataType>(found - kTypeNames.begin());

  auto shape = toSizes(json["shape"]);
  if (!shape) {
    return badInput("tensor {} has no valid shape: expected an array of sizes",
                    name);
  }
  entry.info.shape = std::move(*shape);

  const auto offsets = toSizes(json["data_offsets"]);
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] ||
      (*offsets)[1] > dataBytes) {
    return badInput("tensor {} has no valid data_offsets: expected [begin, "
                    "end] with begin <= end <= {}",
                    name, dataBytes);
  }
  entry.begin = (*offsets)[0];
  entry.end = (*offsets)[1];

  MEGA_ASSIGN_OR_RETURN(const int64_t bytes, tensorBytes(entry.info));
  if (bytes != entry.end - entry.begin) {
    return badInput("tensor {} has {} bytes at [{}, {}), but its shape and "
                    "dtype {} make {}",
                    name, entry.end - entry.begin, entry.begin, entry.end,
                    *found, bytes);
  }
  return entry;
}

/// Tensors cover the data section without hole or overlap.
Status checkCover(const std::vector<Entry> &entries, int64_t dataBytes) {
  std::vector<const Entry *> sorted;
  sorted.reserve(entries.size());
  for (const Entry &entry : entries) {
    sorted.push_back(&entry);
  }
  std::ranges::sort(sorted, [](const Entry *a, const Entry *b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t end = 0;
  for (const Entry *entry : sorted) {
    if (entry->begin != end) {
      return badInput("tensor {} begins at byte {} of the data, expected {}: "
                      "a hole or an overlap",
                      entry->info.name, entry->begin, end);
    }
    end = entry->end;
  }
  if (end != dataBytes) {
    return badInput("the tensors end at byte {} of the data, which has {}: the "
                    "file is damaged or cut short",
                    end, dataBytes);
  }
  return Status::ok();
}

} // namespace

StatusOr<std::string>
formatHeader(const std::vector<TensorInfo> &tensors,
             const std::map<std::string, std::string> &metadata) {
  Json header = Json::object();
  header[kMetadata] = metadata;
  header[kMetadata]["format"] = "pt";
  int64_t offset = 0;
  for (const TensorInfo &info : tensors) {
    if (info.name.empty() || header.contains(info.name)) {
      return badInput("{} tensor name '{}'",
                      info.name.empty()        ? "an empty"
                      : info.name == kMetadata ? "a reserved"
                                               : "a duplicate",
                      info.name);
    }
    MEGA_ASSIGN_OR_RETURN(const int64_t bytes, tensorBytes(info));
    int64_t end = 0;
    if (__builtin_add_overflow(offset, bytes, &end)) {
      return badInput("tensor {} ends beyond 2^63 bytes", info.name);
    }
    header[info.name] = {{"dtype", kTypeNames[static_cast<int>(info.type)]},
                         {"shape", info.shape},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception &error) {
    return badInput("a tensor name is not UTF-8: {}", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaximumHeaderBytes) {
    return badInput("a header of {} bytes, at most {} are allowed", text.size(),
                    kMaximumHeaderBytes);
  }
  return text;
}

StatusOr<Header> parseHeader(std::string_view text, int64_t dataBytes) {
  if (!text.starts_with('{')) {
    return badInput("the header does not begin with {{: no safetensors file");
  }
  MEGA_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  Header header;
  for (const auto &[name, value] : json.items()) {
    if (name != kMetadata) {
      MEGA_ASSIGN_OR_RETURN(Entry entry, parseEntry(name, value, dataBytes));
      header.entries.push_back(std::move(entry));
      continue;
    }
    if (!value.is_object()) {
      return badInput("{} is no object of strings", kMetadata);
    }
    for (const auto &[key, element] : value.items()) {
      if (!element.is_string()) {
        return badInput("{} {} is no string", kMetadata, key);
      }
      header.metadata.emplace(key, element.get<std::string>());
    }
  }
  MEGA_RETURN_IF_ERROR(checkCover(header.entries, dataBytes));
  return header;
}

} // namespace mega::safetensors
