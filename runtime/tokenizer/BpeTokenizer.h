//===- BpeTokenizer.h - tokenizer.json of the BPE kinds ---------*- C++ -*-===//
//
// The files of the `tokenizers` library whose model is BPE: byte-level ones
// (GPT-2; Llama 3, Qwen, DeepSeek) and those like sentencepiece (Llama 2). Ids
// are the library's, with `add_special_tokens=False`; that is why the
// post_processor is not read. Whatever else in the file changes ids is either
// supported or refused by name.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_BPETOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_BPETOKENIZER_H

#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/BpeModel.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace mega {

class BpeTokenizer final : public Tokenizer {
public:
  /// `json` is the content of the file, which may be hostile: work and memory
  /// grow with its size only. Code::BadInput naming the key.
  static StatusOr<BpeTokenizer> parse(std::string_view json);

  std::string_view kind() const override { return "bpe"; }
  int64_t vocabulary() const override { return vocabulary_; }
  Status encode(std::string_view text,
                std::vector<int32_t> &ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> findToken(std::string_view token) const override;
  std::string token(int32_t id) const override;
  std::optional<int32_t> endOfDocument() const override;
  std::vector<std::string> specialTokens() const override;

private:
  Status addTokens(std::vector<AddedToken> tokens);
  /// A piece of normalized text with no added token in it.
  Status encodePiece(std::string_view text, bool first,
                     std::vector<int32_t> &ids) const;

  Normalizer normalizer;
  PreTokenizer preTokenizer;
  BpeModel model;
  AddedTokenSet rawTokens;
  AddedTokenSet normalizedTokens;
  std::unordered_map<int32_t, AddedToken> addedById;
  int64_t vocabulary_ = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_BPETOKENIZER_H
