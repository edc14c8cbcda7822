//===- FuzzMlir.cpp - Models ----------------------------------------------===//
//
// The whole compiler on any text, in all precisions and degrees of
// recomputation by its length. A model is compiled or rejected; a plan that
// does not verify (Code::Internal) is a fault of the compiler.
//
// The compiler is not instrumented (CMakeLists.txt), so libFuzzer cannot tell
// inputs worth keeping. Mutations start from the files of the corpus instead,
// and work on lines and words, so that many of them still parse.
//
//===----------------------------------------------------------------------===//
#include "passes/Compile.h"

#include "llvm/ADT/StringExtras.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

using namespace mega;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace {

std::vector<std::string> seeds;

constexpr std::array kNumbers = {"0",
                                 "1",
                                 "2",
                                 "3",
                                 "-1",
                                 "44",
                                 "257",
                                 "2147483648",
                                 "1e30",
                                 "0.5",
                                 "4611686018427387904",
                                 "?",
                                 "16",
                                 "9223372036854775807"};

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// A run of letters and digits, or anything else of one character.
std::vector<std::string> wordsOf(const std::string &line) {
  std::vector<std::string> words;
  bool open = false;
  for (char c : line) {
    const bool word = llvm::isAlnum(c) || c == '_' || c == '.' || c == '%';
    if (word && open) {
      words.back() += c;
    } else {
      words.emplace_back(1, c);
    }
    open = word;
  }
  return words;
}

class Mutation {
public:
  explicit Mutation(unsigned seed) : random(seed) {}

  std::string run() {
    std::vector<std::string> lines = linesOf(one(seeds));
    for (size_t i = 0, count = 1 + below(4); i < count; ++i) {
      step(lines);
    }
    std::string text;
    for (const std::string &line : lines) {
      text += line + "\n";
    }
    return text;
  }

private:
  size_t below(size_t count) { return random() % std::max<size_t>(count, 1); }
  std::string &one(std::vector<std::string> &of) {
    return of[below(of.size())];
  }

  void step(std::vector<std::string> &lines) {
    if (lines.empty()) {
      return;
    }
    const size_t at = below(lines.size());
    switch (below(8)) {
    case 0:
      lines.erase(lines.begin() + static_cast<int64_t>(at));
      return;
    case 1:
      lines.insert(lines.begin() + static_cast<int64_t>(below(lines.size())),
                   std::string(lines[at]));
      return;
    case 2:
      std::swap(lines[at], one(lines));
      return;
    case 3: {
      std::vector<std::string> others = linesOf(one(seeds));
      lines[at] = one(others);
      return;
    }
    default:
      changeWord(lines[at], one(lines));
    }
  }

  void changeWord(std::string &line, const std::string &other) {
    std::vector<std::string> words = wordsOf(line);
    std::vector<std::string> others = wordsOf(other);
    if (words.empty() || others.empty()) {
      return;
    }
    std::string &word = one(words);
    const bool number = llvm::isDigit(word.front());
    switch (below(4)) {
    case 0:
      word.clear();
      break;
    case 1:
      word = one(others);
      break;
    case 2:
      std::swap(word, one(words));
      break;
    default:
      word = number ? kNumbers[below(kNumbers.size())] : word + word;
    }
    line.clear();
    for (const std::string &part : words) {
      line += part;
    }
  }

  std::mt19937 random;
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  for (int i = 1; i < *argc; ++i) {
    std::error_code ignored;
    for (const auto &file :
         std::filesystem::directory_iterator((*argv)[i], ignored)) {
      std::ostringstream text;
      text << std::ifstream(file.path()).rdbuf();
      seeds.push_back(text.str());
    }
  }
  if (seeds.empty()) {
    seeds.emplace_back("module {}\n");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  const std::string text = Mutation(seed).run();
  size = std::min(text.size(), most);
  std::memcpy(data, text.data(), size);
  // Bytes as well, in one of eight.
  return seed % 8 == 0 ? LLVMFuzzerMutate(data, size, most) : size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  CompileRequest request;
  request.options.sequence = 16;
  request.options.precision = size % 2 == 0 ? "fp32" : "bf16";
  request.options.recompute =
      std::array{"none", "selective", "full"}[size / 2 % 3];
  auto model = llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(reinterpret_cast<const char *>(data), size),
      "model.mlir");
  const auto plan = compile(std::move(model), request);
  if (!plan.isOk() && plan.status().code() != Code::Failed) {
    // Standard error is closed: a person reruns the input.
    std::abort();
  }
  return 0;
}
