//===- Safetensors.h - Named tensors in one file ----------------*- C++ -*-===//
//
// The Hugging Face safetensors format, little endian:
//
//   u64     n, bytes of the header
//   n bytes JSON: {"__metadata__": {"format": "pt", ...},
//                  "name": {"dtype": "F32", "shape": [2, 3],
//                           "data_offsets": [begin, end]}, ...}
//           padded with spaces so that the data starts at a multiple of 8
//   ...     tensor bytes; offsets count from here, without holes or overlap
//
// Supported element types: F32, BF16, F64, I32, I64 (DataType). Files are
// untrusted: the reader refuses whatever the format does not allow, with
// Code::BadInput, the path and both values.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define MEGA_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/core/Files.h"
#include "runtime/plan/DataType.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

struct TensorInfo {
  std::string name;
  DataType type = DataType::F32;
  std::vector<int64_t> shape;

  friend bool operator==(const TensorInfo &, const TensorInfo &) = default;
};

/// Bytes of the tensor; Code::BadInput if an extent is negative or the product
/// exceeds 2^63.
StatusOr<int64_t> tensorBytes(const TensorInfo &info);

/// Streams tensors to a file that appears whole in finish(), or not at all.
/// Identical tensors give identical bytes. Move-only, one thread.
class SafetensorsWriter {
public:
  /// Writes the header. Data is laid out by element size, largest first, and
  /// then by name, so every tensor is aligned to its elements. Code::BadInput
  /// for duplicate, empty or reserved names, names that are not UTF-8 and
  /// impossible shapes; Code::Io if the file cannot be created.
  static StatusOr<SafetensorsWriter>
  create(const std::string &path, std::vector<TensorInfo> tensors,
         const std::map<std::string, std::string> &metadata = {});

  /// The order in which append() wants the tensors.
  const std::vector<TensorInfo> &tensors() const { return order; }

  /// Appends bytes of tensor `name`: all of them, or in pieces that follow each
  /// other. Code::Internal if another tensor is due or it is complete.
  Status append(std::string_view name, std::span<const std::byte> bytes);

  /// Code::Internal if tensors are missing; Code::Io.
  Status finish();

private:
  /// Moves `current` past complete tensors, empty ones included.
  void skipComplete();

  AtomicFile file;
  std::vector<TensorInfo> order;
  /// The tensor that is due, and what is missing of it.
  size_t current = 0;
  int64_t missing = 0;
};

/// A file mapped for the life of the object. All const members may be called
/// from any thread.
class SafetensorsReader {
public:
  struct Tensor : TensorInfo {
    /// In the mapped file; aligned to one byte only.
    std::span<const std::byte> bytes;
  };

  static StatusOr<SafetensorsReader> open(const std::string &path);

  /// Sorted by name.
  const std::vector<Tensor> &tensors() const { return tensors_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }
  const std::string &path() const { return file.path(); }
  /// Null if there is none of this name. Lives as long as the reader.
  const Tensor *find(std::string_view name) const;

private:
  MappedFile file;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

} // namespace mega

#endif // MEGA_RUNTIME_CHECKPOINT_SAFETENSORS_H
