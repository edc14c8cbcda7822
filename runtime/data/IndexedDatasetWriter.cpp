#include "runtime/data/IndexedDatasetWriter.h"

#include "runtime/data/DatasetMeta.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace mega {

namespace {

/// Megatron's threshold; not 65536.
constexpr int64_t kU16Vocabulary = 65500;

template <typename T> std::string_view rawBytes(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof(T)};
}

} // namespace

StatusOr<IndexedDatasetWriter>
IndexedDatasetWriter::create(const std::string &prefix, int64_t vocabulary) {
  IndexedDatasetWriter writer;
  writer.prefix = prefix;
  writer.vocabulary = vocabulary;
  writer.type_ = vocabulary < kU16Vocabulary ? TokenType::U16 : TokenType::I32;
  MEGA_ASSIGN_OR_RETURN(writer.bin, AtomicFile::create(prefix + ".bin"));
  MEGA_ASSIGN_OR_RETURN(writer.index, AtomicFile::create(prefix + ".idx"));
  return writer;
}

Status IndexedDatasetWriter::append(std::span<const int32_t> tokens) {
  const auto outside = std::ranges::find_if(
      tokens, [&](int32_t id) { return id < 0 || id >= vocabulary; });
  if (outside != tokens.end()) {
    return badInput("{}: token {} of document {} (both from 0) is {}, outside "
                    "the vocabulary of {}",
                    bin.path(), open + (outside - tokens.begin()), documents(),
                    *outside, vocabulary);
  }
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  if (tokens.size() > kMost - static_cast<size_t>(open)) {
    return badInput("{}: document {} has more than {} tokens, the most the "
                    "format holds: split it",
                    bin.path(), documents(), kMost);
  }
  for (const int32_t id : tokens) {
    lowest = std::min(lowest, id);
    highest = std::max(highest, id);
  }
  open += static_cast<int32_t>(tokens.size());
  tokens_ += static_cast<int64_t>(tokens.size());
  if (type_ == TokenType::I32) {
    return bin.write(std::as_bytes(tokens));
  }
  std::array<uint16_t, 4096> narrow;
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min(tokens.size(), narrow.size()));
    std::ranges::transform(chunk, narrow.begin(), [](int32_t id) {
      return static_cast<uint16_t>(id);
    });
    MEGA_RETURN_IF_ERROR(
        bin.write(std::as_bytes(std::span(narrow).first(chunk.size()))));
    tokens = tokens.subspan(chunk.size());
  }
  return Status::ok();
}

void IndexedDatasetWriter::endDocument() {
  lengths.push_back(std::exchange(open, 0));
}

Status IndexedDatasetWriter::finish() {
  if (open > 0) {
    endDocument();
  }
  MEGA_RETURN_IF_ERROR(writeIndex());
  MEGA_RETURN_IF_ERROR(index.sync());
  const std::string meta = prefix + ".meta";
  if (::unlink(meta.c_str()) != 0 && errno != ENOENT) {
    return osError("remove", meta);
  }
  MEGA_RETURN_IF_ERROR(bin.commit());
  Status status = index.commit();
  if (!status.isOk()) {
    // A .bin without its index is no dataset.
    ::unlink(bin.path().c_str());
    return status;
  }
  MEGA_ASSIGN_OR_RETURN(const IndexedDataset dataset,
                        IndexedDataset::open(prefix));
  return (tokens_ > 0 ? DatasetMeta{lowest, highest} : DatasetMeta())
      .write(dataset);
}

Status IndexedDatasetWriter::writeIndex() {
  const auto count = static_cast<uint64_t>(lengths.size());
  const auto write = [&](const auto &value) {
    return index.write(rawBytes(value));
  };
  MEGA_RETURN_IF_ERROR(index.write(kIndexMagic));
  MEGA_RETURN_IF_ERROR(write(kIndexVersion));
  MEGA_RETURN_IF_ERROR(write(type_));
  MEGA_RETURN_IF_ERROR(write(count));
  MEGA_RETURN_IF_ERROR(write(count + 1));
  MEGA_RETURN_IF_ERROR(index.write(std::as_bytes(std::span(lengths))));
  int64_t offset = 0;
  for (int32_t length : lengths) {
    MEGA_RETURN_IF_ERROR(write(offset));
    offset += length * byteSize(type_);
  }
  for (uint64_t document = 0; document <= count; ++document) {
    MEGA_RETURN_IF_ERROR(write(document));
  }
  return Status::ok();
}

} // namespace mega
