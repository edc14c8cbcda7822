#include "runtime/data/DescribeDataset.h"

#include "runtime/tokenizer/ByteTokenizer.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace mega {

namespace {

/// As a string literal, so that nothing in the data reaches the terminal raw.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 32 || byte > 126) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string documentLengths(const IndexedDataset &dataset) {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (int64_t i = 0; i < dataset.documents(); ++i) {
    const int64_t length =
        dataset.documentStart(i + 1) - dataset.documentStart(i);
    least = std::min(least, length);
    most = std::max(most, length);
  }
  return fmt::format("{} to {} tokens, {:.1f} on average", least, most,
                     static_cast<double>(dataset.tokens()) /
                         static_cast<double>(dataset.documents()));
}

} // namespace

std::string describeDataset(const IndexedDataset &dataset, int64_t firstTokens,
                            const Tokenizer *tokenizer) {
  std::string text;
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<14}{}\n", name, value);
  };
  line("token type", name(dataset.type()));
  line("documents", fmt::to_string(dataset.documents()));
  line("sequences", fmt::to_string(dataset.sequences()));
  line("tokens", fmt::to_string(dataset.tokens()));
  if (dataset.documents() > 0) {
    line("lengths", documentLengths(dataset));
  }
  if (dataset.tokens() == 0) {
    return text;
  }
  const auto [low, high] = dataset.tokenRange();
  line("token ids", fmt::format("{} to {}", low, high));

  std::string ids;
  std::vector<int32_t> first;
  for (int64_t i = 0; i < std::min(firstTokens, dataset.tokens()); ++i) {
    const int64_t token = dataset.token(i);
    ids += fmt::format("{}{}", i ? " " : "", token);
    first.push_back(static_cast<int32_t>(token));
  }
  line("first tokens", ids);
  if (tokenizer != nullptr) {
    line("as text", quoted(tokenizer->decode(first)));
    if (low < 0 || high >= tokenizer->vocabulary()) {
      line("", fmt::format("not of this tokenizer: its ids are 0 to {}",
                           tokenizer->vocabulary() - 1));
    }
  } else if (low >= 0 && high < ByteTokenizer::kVocabulary) {
    line("as bytes", quoted(ByteTokenizer().decode(first)));
  }
  return text;
}

} // namespace mega
