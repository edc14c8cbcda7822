//===- SentencePieceTokenizer.h - tokenizer.model ---------------*- C++ -*-===//
//
// Models of the sentencepiece library, by that library. Its ids for a text are
// those of `encode` in Python: no <s> or </s> is added. The file is trusted as
// far as the library checks it.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_SENTENCEPIECETOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_SENTENCEPIECETOKENIZER_H

#include "runtime/tokenizer/Tokenizer.h"

#include <memory>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace mega {

class SentencePieceTokenizer final : public Tokenizer {
public:
  /// `model` is the content of the file. Code::BadInput if it is no model.
  static StatusOr<SentencePieceTokenizer> parse(std::string_view model);

  SentencePieceTokenizer(SentencePieceTokenizer &&) noexcept;
  SentencePieceTokenizer &operator=(SentencePieceTokenizer &&) noexcept;
  ~SentencePieceTokenizer() override;

  std::string_view kind() const override { return "sentencepiece"; }
  int64_t vocabulary() const override;
  Status encode(std::string_view text,
                std::vector<int32_t> &ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> findToken(std::string_view token) const override;
  std::string token(int32_t id) const override;
  std::optional<int32_t> endOfDocument() const override;
  std::vector<std::string> specialTokens() const override;

private:
  SentencePieceTokenizer();

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_SENTENCEPIECETOKENIZER_H
