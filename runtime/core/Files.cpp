#include "runtime/core/Files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mega {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

/// Closes on every path; AtomicFile closes by hand to see close's error.
class Descriptor {
public:
  explicit Descriptor(int value) : value(value) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (value >= 0) {
      ::close(value);
    }
  }
  const int value;
};

Status syncDirectoryOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0 ? "/"
                                             : path.substr(0, slash);
  const Descriptor handle(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory and say EINVAL.
  if (handle.value < 0 || (::fsync(handle.value) != 0 && errno != EINVAL)) {
    return osError("sync", directory);
  }
  return Status::ok();
}

} // namespace

Status osError(std::string_view verb, const std::string &path) {
  const int reason = errno;
  return ioError("cannot {} {}: {}", verb, path, std::strerror(reason));
}

StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: a pipe must be refused below, not waited for.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.value < 0 || ::fstat(file.value, &info) != 0) {
    return osError("open", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return ioError("cannot open {}: not a regular file", path);
  }
  MappedFile mapped;
  mapped.path_ = path;
  if (info.st_size == 0) {
    return mapped;
  }
  void *address = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ,
                         MAP_PRIVATE, file.value, 0);
  if (address == MAP_FAILED) {
    return osError("map", path);
  }
  mapped.data = static_cast<const std::byte *>(address);
  mapped.size = static_cast<size_t>(info.st_size);
  return mapped;
}

MappedFile::~MappedFile() {
  if (data) {
    ::munmap(const_cast<std::byte *>(data), size);
  }
}

StatusOr<AtomicFile> AtomicFile::create(std::string path) {
  AtomicFile file;
  file.path_ = std::move(path);
  // A rename would replace a device, such as /dev/null, by a file; of a
  // directory it says so itself.
  struct stat info = {};
  if (::stat(file.path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
      !S_ISDIR(info.st_mode)) {
    return ioError("cannot replace {}: not a regular file", file.path_);
  }
  std::string temporary = fmt::format("{}.tmp-{}", file.path_, ::getpid());
  file.descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.descriptor < 0) {
    return osError("create", temporary);
  }
  file.temporary = std::move(temporary);
  file.buffer.reserve(kBufferBytes);
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  if (!temporary.empty()) {
    ::unlink(temporary.c_str());
  }
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer.size() + bytes.size() > kBufferBytes) {
    MEGA_RETURN_IF_ERROR(flush());
    if (bytes.size() > kBufferBytes) {
      return writeFully(descriptor, bytes, temporary);
    }
  }
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
  return Status::ok();
}

Status AtomicFile::flush() {
  MEGA_RETURN_IF_ERROR(writeFully(descriptor, buffer, temporary));
  buffer.clear();
  return Status::ok();
}

Status AtomicFile::sync() {
  MEGA_RETURN_IF_ERROR(flush());
  return ::fsync(descriptor) == 0 ? Status::ok() : osError("sync", temporary);
}

Status AtomicFile::commit() {
  assert(!temporary.empty() && "commit() only once");
  MEGA_RETURN_IF_ERROR(sync());
  if (::close(std::exchange(descriptor, -1)) != 0) {
    return osError("close", temporary);
  }
  if (::rename(temporary.c_str(), path_.c_str()) != 0) {
    return osError("replace", path_);
  }
  temporary.clear();
  return syncDirectoryOf(path_);
}

Status readInPieces(const std::string &path,
                    const std::function<Status(std::string_view)> &consume) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value < 0) {
    return osError("open", path);
  }
  return readInPieces(file.value, path, consume);
}

Status readInPieces(int descriptor, const std::string &path,
                    const std::function<Status(std::string_view)> &consume) {
  std::string buffer(kBufferBytes, '\0');
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) {
      return Status::ok();
    }
    if (count > 0) {
      MEGA_RETURN_IF_ERROR(
          consume({buffer.data(), static_cast<size_t>(count)}));
    } else if (errno != EINTR) {
      return osError("read", path);
    }
  }
}

StatusOr<std::string> readWholeFile(const std::string &path) {
  std::string content;
  MEGA_RETURN_IF_ERROR(readInPieces(path, [&](std::string_view piece) {
    content += piece;
    return Status::ok();
  }));
  return content;
}

Status writeFully(int descriptor, std::span<const std::byte> bytes,
                  const std::string &path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      return osError("write", path);
    }
    bytes = bytes.subspan(count > 0 ? static_cast<size_t>(count) : 0);
  }
  return Status::ok();
}

} // namespace mega
