#include "runtime/tokenizer/SentencePieceTokenizer.h"

#include "runtime/tokenizer/Utf8.h"

#include <sentencepiece_processor.h>

namespace mega {

SentencePieceTokenizer::SentencePieceTokenizer()
    : processor(std::make_unique<sentencepiece::SentencePieceProcessor>()) {}
SentencePieceTokenizer::SentencePieceTokenizer(
    SentencePieceTokenizer &&) noexcept = default;
SentencePieceTokenizer &
SentencePieceTokenizer::operator=(SentencePieceTokenizer &&) noexcept = default;
SentencePieceTokenizer::~SentencePieceTokenizer() = default;

StatusOr<SentencePieceTokenizer>
SentencePieceTokenizer::parse(std::string_view model) {
  SentencePieceTokenizer tokenizer;
  const auto status = tokenizer.processor->LoadFromSerializedProto(
      {model.data(), model.size()});
  if (!status.ok() || tokenizer.processor->GetPieceSize() == 0) {
    return badInput("neither a tokenizer.json nor a sentencepiece model: {}",
                    status.ok() ? "no pieces" : status.ToString());
  }
  return tokenizer;
}

int64_t SentencePieceTokenizer::vocabulary() const {
  return processor->GetPieceSize();
}

Status SentencePieceTokenizer::encode(std::string_view text,
                                      std::vector<int32_t> &ids) const {
  // The library would replace what is no character.
  MEGA_RETURN_IF_ERROR(checkUtf8(text));
  std::vector<int> encoded;
  const auto status = processor->Encode({text.data(), text.size()}, &encoded);
  if (!status.ok()) {
    return badInput("sentencepiece: {}", status.ToString());
  }
  ids.insert(ids.end(), encoded.begin(), encoded.end());
  return Status::ok();
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int> known;
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocabulary()) {
      known.push_back(id);
    }
  }
  std::string text;
  return processor->Decode(known, &text).ok() ? text : std::string();
}

std::optional<int32_t>
SentencePieceTokenizer::findToken(std::string_view token) const {
  const int id = processor->PieceToId({token.data(), token.size()});
  // What is unknown has the id of <unk>.
  return this->token(id) == token ? std::optional<int32_t>(id) : std::nullopt;
}

std::string SentencePieceTokenizer::token(int32_t id) const {
  return id >= 0 && id < vocabulary() ? processor->IdToPiece(id) : "";
}

std::optional<int32_t> SentencePieceTokenizer::endOfDocument() const {
  for (const std::string_view usual :
       {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    if (const auto id = findToken(usual)) {
      return id;
    }
  }
  const int id = processor->eos_id();
  return id >= 0 ? std::optional<int32_t>(id) : std::nullopt;
}

std::vector<std::string> SentencePieceTokenizer::specialTokens() const {
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < vocabulary(); ++id) {
    if (processor->IsControl(id)) {
      tokens.push_back(token(id));
    }
  }
  return tokens;
}

} // namespace mega
