#include "runtime/data/DatasetMeta.h"

#include "runtime/core/BoundedJson.h"

#include <unistd.h>
#include <xxhash.h>

namespace mega {

namespace {

constexpr int kVersion = 1;
constexpr size_t kMostBytes = 4096;

std::string metaPath(const IndexedDataset &dataset) {
  return dataset.prefix() + ".meta";
}

/// What must agree, in the order of the file.
nlohmann::ordered_json identity(const IndexedDataset &dataset) {
  const auto bytes = dataset.indexBytes();
  return {{"version", kVersion},
          {"type", name(dataset.type())},
          {"tokens", dataset.tokens()},
          {"sequences", dataset.sequences()},
          {"documents", dataset.documents()},
          {"bin_bytes", dataset.tokens() * byteSize(dataset.type())},
          {"idx_bytes", bytes.size()},
          {"idx_xxh3",
           fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()))}};
}

} // namespace

DatasetMeta DatasetMeta::scan(const IndexedDataset &dataset) {
  if (dataset.tokens() == 0) {
    return {};
  }
  const auto [low, high] = dataset.tokenRange();
  return {low, high};
}

StatusOr<std::optional<DatasetMeta>>
DatasetMeta::load(const IndexedDataset &dataset) {
  const std::string path = metaPath(dataset);
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return std::optional<DatasetMeta>();
  }
  const auto refuse = [&](const std::string &what) {
    return badInput("{}: {}; make it again with mega-data index {}, or delete "
                    "it",
                    path, what, dataset.prefix());
  };
  std::string text;
  MEGA_RETURN_IF_ERROR(readInPieces(path, [&](std::string_view piece) {
    text += piece;
    return text.size() <= kMostBytes ? Status::ok() : refuse("too long");
  }));
  auto parsed = parseBoundedJson(text, 2);
  if (!parsed.isOk()) {
    return refuse(parsed.status().message());
  }
  const Json json = std::move(parsed).take();
  if (!json.is_object()) {
    return refuse(fmt::format("it is {}, expected an object", shortJson(json)));
  }
  const auto get = [&](const std::string &key) {
    const auto found = json.find(key);
    return found == json.end() ? Json() : *found;
  };
  const auto expected = identity(dataset);
  for (const auto &[key, value] : expected.items()) {
    if (const Json found = get(key); found != Json(value)) {
      return refuse(fmt::format("it does not belong to {} and {}: {} is {}, "
                                "theirs is {}",
                                dataset.binPath(), dataset.indexPath(), key,
                                shortJson(found), shortJson(Json(value))));
    }
  }
  DatasetMeta meta;
  for (const auto &[key, value] : {std::pair{"lowest_token", &meta.lowest},
                                   std::pair{"highest_token", &meta.highest}}) {
    const Json found = get(key);
    if (!found.is_number_integer()) {
      return refuse(fmt::format("{} is {}, expected a whole number", key,
                                shortJson(found)));
    }
    *value = found.get<int64_t>();
  }
  return std::optional(meta);
}

Status DatasetMeta::write(const IndexedDataset &dataset) const {
  nlohmann::ordered_json json = identity(dataset);
  json["lowest_token"] = lowest;
  json["highest_token"] = highest;
  MEGA_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(metaPath(dataset)));
  MEGA_RETURN_IF_ERROR(file.write(json.dump() + "\n"));
  return file.commit();
}

} // namespace mega
