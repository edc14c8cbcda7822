//===- TemporaryDirectory.h - A folder for one test -------------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_TEMPORARYDIRECTORY_H
#define MEGA_TEST_RUNTIME_TEMPORARYDIRECTORY_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace mega::test {

/// Made empty, removed with its content at the end of the test.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name =
        (std::filesystem::temp_directory_path() / "mega-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }

  std::string file(std::string_view name) const {
    return path + "/" + std::string(name);
  }
  /// Number of entries.
  int count() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(path), {}));
  }

  std::string path;
};

inline void writeFile(const std::string &path, std::string_view content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_TEMPORARYDIRECTORY_H
