#include "runtime/checkpoint/Safetensors.h"

#include "runtime/checkpoint/SafetensorsHeader.h"

#include <algorithm>
#include <cstring>

namespace mega {

StatusOr<int64_t> tensorBytes(const TensorInfo &info) {
  int64_t bytes = byteSize(info.type);
  for (int64_t extent : info.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) {
      return badInput("tensor {} has an extent of {}: its size is no number "
                      "below 2^63",
                      info.name, extent);
    }
  }
  return bytes;
}

StatusOr<SafetensorsWriter>
SafetensorsWriter::create(const std::string &path,
                          std::vector<TensorInfo> tensors,
                          const std::map<std::string, std::string> &metadata) {
  std::ranges::sort(tensors, [](const TensorInfo &a, const TensorInfo &b) {
    const int64_t sizeA = byteSize(a.type);
    const int64_t sizeB = byteSize(b.type);
    return sizeA != sizeB ? sizeA > sizeB : a.name < b.name;
  });
  SafetensorsWriter writer;
  writer.order = std::move(tensors);
  auto header = safetensors::formatHeader(writer.order, metadata);
  if (!header.isOk()) {
    return std::move(header).takeStatus().withContext(path);
  }
  MEGA_ASSIGN_OR_RETURN(writer.file, AtomicFile::create(path));
  const uint64_t length = header->size();
  MEGA_RETURN_IF_ERROR(writer.file.write(std::as_bytes(std::span(&length, 1))));
  MEGA_RETURN_IF_ERROR(writer.file.write(*header));
  if (!writer.order.empty()) {
    writer.missing = *tensorBytes(writer.order.front());
    writer.skipComplete();
  }
  return writer;
}

void SafetensorsWriter::skipComplete() {
  while (missing == 0 && current < order.size()) {
    ++current;
    missing = current < order.size() ? *tensorBytes(order[current]) : 0;
  }
}

Status SafetensorsWriter::append(std::string_view name,
                                 std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return Status::ok();
  }
  if (current == order.size() || order[current].name != name) {
    return makeError(Code::Internal, "{}: tensor {} appended, but {} is due",
                     file.path(), name,
                     current == order.size() ? "nothing" : order[current].name);
  }
  if (std::ssize(bytes) > missing) {
    return makeError(Code::Internal,
                     "{}: {} bytes appended to tensor {}, which lacks {}",
                     file.path(), bytes.size(), name, missing);
  }
  missing -= std::ssize(bytes);
  skipComplete();
  return file.write(bytes);
}

Status SafetensorsWriter::finish() {
  if (current < order.size()) {
    return makeError(Code::Internal, "{}: tensor {} lacks {} bytes",
                     file.path(), order[current].name, missing);
  }
  return file.commit();
}

StatusOr<SafetensorsReader> SafetensorsReader::open(const std::string &path) {
  SafetensorsReader reader;
  MEGA_ASSIGN_OR_RETURN(reader.file, MappedFile::open(path));
  const auto bytes = reader.file.bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) {
    return badInput("{}: {} bytes are too few for a safetensors file", path,
                    bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto rest = bytes.subspan(sizeof(length));
  if (length > rest.size() || length > safetensors::kMaximumHeaderBytes) {
    return badInput("{}: a header of {} bytes does not fit: {} follow, and at "
                    "most {} are allowed; the file is damaged or no "
                    "safetensors file",
                    path, length, rest.size(),
                    safetensors::kMaximumHeaderBytes);
  }
  const std::string_view text(reinterpret_cast<const char *>(rest.data()),
                              length);
  const auto data = rest.subspan(length);
  auto parsed = safetensors::parseHeader(text, std::ssize(data));
  if (!parsed.isOk()) {
    return std::move(parsed).takeStatus().withContext(path);
  }
  reader.metadata_ = std::move(parsed->metadata);
  for (safetensors::Entry &entry : parsed->entries) {
    reader.tensors_.push_back(
        {std::move(entry.info),
         data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return reader;
}

const SafetensorsReader::Tensor *
SafetensorsReader::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(tensors_, name, {}, &TensorInfo::name);
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

} // namespace mega
