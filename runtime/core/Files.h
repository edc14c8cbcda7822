//===- Files.h - Reading and replacing whole files --------------*- C++ -*-===//
//
// Thin owners of POSIX files. Every error is Code::Io, names the path and ends
// with the operating system's reason: `cannot open a/b.bin: No such file or
// directory`. The classes are move-only and thread-compatible; a MappedFile may
// be read by any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_FILES_H
#define MEGA_RUNTIME_CORE_FILES_H

#include "runtime/plan/Status.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

/// `cannot <verb> <path>: <reason>` for the current value of errno.
Status osError(std::string_view verb, const std::string &path);

/// A regular file mapped read-only for the life of the object. Its pages are
/// read on first touch. Another process that truncates the file meanwhile ends
/// this one with SIGBUS; our own writers replace files and never truncate them.
class MappedFile {
public:
  static StatusOr<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { swap(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  /// Stays valid when the object moves.
  std::span<const std::byte> bytes() const { return {data, size}; }
  const std::string &path() const { return path_; }

private:
  void swap(MappedFile &other) noexcept {
    std::swap(data, other.data);
    std::swap(size, other.size);
    std::swap(path_, other.path_);
  }

  const std::byte *data = nullptr;
  size_t size = 0;
  std::string path_;
};

/// A file that appears whole or not at all: written under the temporary name
/// `<path>.tmp-<pid>` in the same directory, then flushed to disk and renamed.
/// Destroyed before commit(), it removes the temporary and leaves whatever
/// `path` held before. A `path` that is a directory, a device or a pipe is
/// refused.
class AtomicFile {
public:
  static StatusOr<AtomicFile> create(std::string path);

  AtomicFile() = default;
  AtomicFile(AtomicFile &&other) noexcept { swap(other); }
  AtomicFile &operator=(AtomicFile &&other) noexcept {
    swap(other);
    return *this;
  }
  ~AtomicFile();

  /// Appends, through a buffer of 256 KiB. After an error only destruction is
  /// useful.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) {
    return write(std::as_bytes(std::span(text)));
  }
  /// Everything written so far is on the disk, still under the temporary name.
  Status sync();
  /// sync(), then gives the file its name and makes the name durable. At most
  /// once.
  Status commit();

  const std::string &path() const { return path_; }

private:
  void swap(AtomicFile &other) noexcept {
    std::swap(descriptor, other.descriptor);
    std::swap(path_, other.path_);
    std::swap(temporary, other.temporary);
    std::swap(buffer, other.buffer);
  }
  Status flush();

  int descriptor = -1;
  std::string path_;
  /// Empty once renamed.
  std::string temporary;
  std::vector<std::byte> buffer;
};

/// Hands the content of a file to `consume` in pieces of at most 256 KiB, until
/// the end or the first error. Pipes and devices work as well. A piece lives
/// for the call only.
Status readInPieces(const std::string &path,
                    const std::function<Status(std::string_view)> &consume);
/// The same for a descriptor, which stays open; `path` is for the message.
Status readInPieces(int descriptor, const std::string &path,
                    const std::function<Status(std::string_view)> &consume);

/// The whole content of a file, pipes and devices included.
StatusOr<std::string> readWholeFile(const std::string &path);

/// write(2) until all bytes are out, over interruptions and short writes.
/// `path` is for the message only. Allocates nothing on success.
Status writeFully(int descriptor, std::span<const std::byte> bytes,
                  const std::string &path);

} // namespace mega

#endif // MEGA_RUNTIME_CORE_FILES_H
