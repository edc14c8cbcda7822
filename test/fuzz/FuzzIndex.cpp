//===- FuzzIndex.cpp - Index files of datasets ----------------------------===//
//
// The first two bytes are the size of the .bin file, the rest is the .idx file.
// Whatever open() accepts is read through, as a training run does.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/IndexedDataset.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

using namespace mega;

namespace {

std::string prefix;

void removeFiles() {
  std::filesystem::remove_all(std::filesystem::path(prefix).parent_path());
}

void write(const std::string &path, const void *data, size_t size) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size ||
      std::fclose(file) != 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  std::string name = "/tmp/mega-fuzz-XXXXXX";
  if (!mkdtemp(name.data())) {
    std::perror("mkdtemp");
    std::exit(1);
  }
  prefix = name + "/data";
  std::atexit(removeFiles);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) {
    return 0;
  }
  uint16_t binBytes = 0;
  std::memcpy(&binBytes, data, 2);
  std::vector<uint8_t> tokens(binBytes % 4096);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<uint8_t>(i * 37);
  }
  write(prefix + ".idx", data + 2, size - 2);
  write(prefix + ".bin", tokens.data(), tokens.size());
  const auto dataset = IndexedDataset::open(prefix);
  if (!dataset.isOk()) {
    if (dataset.status().code() != Code::BadInput) {
      std::abort();
    }
    return 0;
  }
  int64_t last = 0;
  for (int64_t d = 0; d <= dataset->documents(); ++d) {
    const int64_t start = dataset->documentStart(d);
    if (start < last || start > dataset->tokens()) {
      std::abort();
    }
    last = start;
  }
  if (last != dataset->tokens()) {
    std::abort();
  }
  if (dataset->tokens() > 0) {
    std::vector<int32_t> ids(static_cast<size_t>(dataset->tokens()));
    dataset->read(0, ids);
    const auto [least, most] = dataset->tokenRange();
    const Status inside = dataset->checkVocabulary(1 << 20);
    if (inside.isOk() != (least >= 0 && most < (1 << 20))) {
      std::abort();
    }
    const int64_t document = dataset->documentOf(dataset->tokens() - 1);
    if (document < 0 || document >= dataset->documents()) {
      std::abort();
    }
  }
  return 0;
}
