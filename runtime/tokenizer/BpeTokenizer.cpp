#include "runtime/tokenizer/BpeTokenizer.h"

#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Utf8.h"

#include <charconv>

namespace mega {

namespace {

/// The file nests seven deep: added_tokens, sequences of sequences.
constexpr int kDepth = 32;

/// Options that change what an encoding gives, beside the text's ids.
Status checkOptions(const Fields &fields) {
  if (fields.has("truncation")) {
    return badInput("truncation {} is not supported: texts would lose their "
                    "end; set it to null",
                    shortJson(fields.get("truncation")));
  }
  const Json &padding = fields.get("padding");
  if (!padding.is_null() &&
      (!padding.is_object() ||
       padding.value("strategy", Json()) != Json("BatchLongest"))) {
    return badInput("padding {} is not supported: texts would get ids they do "
                    "not have; set it to null",
                    shortJson(padding));
  }
  return Status::ok();
}

/// `<0x0A>` as the byte it stands for.
std::optional<char> byteToken(std::string_view token) {
  uint8_t byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  const char *end = token.data() + 5;
  const auto parsed = std::from_chars(token.data() + 3, end, byte, 16);
  return parsed.ec == std::errc() && parsed.ptr == end
             ? std::optional(static_cast<char>(byte))
             : std::nullopt;
}

} // namespace

StatusOr<BpeTokenizer> BpeTokenizer::parse(std::string_view json) {
  MEGA_ASSIGN_OR_RETURN(const Json root, parseBoundedJson(json, kDepth));
  const Fields fields(root, "");
  if (!root.is_object()) {
    return badInput("the file is {}, expected an object", shortJson(root));
  }
  MEGA_RETURN_IF_ERROR(fields.only(
      {"version", "truncation", "padding", "added_tokens", "normalizer",
       "pre_tokenizer", "post_processor", "decoder", "model"}));
  if (!fields.has("model")) {
    return badInput("no model: not a tokenizer.json");
  }
  MEGA_RETURN_IF_ERROR(checkOptions(fields));
  BpeTokenizer result;
  MEGA_ASSIGN_OR_RETURN(result.model, BpeModel::parse(fields.get("model")));
  MEGA_ASSIGN_OR_RETURN(result.normalizer,
                        Normalizer::parse(fields.get("normalizer")));
  MEGA_ASSIGN_OR_RETURN(result.preTokenizer,
                        PreTokenizer::parse(fields.get("pre_tokenizer")));
  MEGA_ASSIGN_OR_RETURN(std::vector<AddedToken> tokens,
                        parseAddedTokens(fields.get("added_tokens")));
  result.vocabulary_ = result.model.vocabulary();
  MEGA_RETURN_IF_ERROR(result.addTokens(std::move(tokens)));
  return result;
}

Status BpeTokenizer::addTokens(std::vector<AddedToken> tokens) {
  for (AddedToken &token : tokens) {
    const auto known = model.find(token.content);
    const std::string *other = model.token(token.id);
    if (known ? *known != token.id : other != nullptr) {
      return badInput("added_tokens: {} has id {}, but in model.vocab {}",
                      shortJson(token.content), token.id,
                      known ? fmt::format("it has {}", *known)
                            : fmt::format("that is {}", shortJson(*other)));
    }
    vocabulary_ = std::max(vocabulary_, int64_t{token.id} + 1);
    addedById.emplace(token.id, token);
    if (!token.normalized) {
      rawTokens.add(token, token.content);
      continue;
    }
    std::string spelling = token.content;
    MEGA_RETURN_IF_ERROR(normalizer.apply(spelling));
    if (!spelling.empty()) {
      normalizedTokens.add(std::move(token), std::move(spelling));
    }
  }
  return Status::ok();
}

Status BpeTokenizer::encode(std::string_view text,
                            std::vector<int32_t> &ids) const {
  MEGA_RETURN_IF_ERROR(checkUtf8(text));
  for (const auto &piece : rawTokens.split(text)) {
    if (piece.id) {
      ids.push_back(*piece.id);
      continue;
    }
    std::string normal(text.substr(piece.begin, piece.end - piece.begin));
    MEGA_RETURN_IF_ERROR(normalizer.apply(normal));
    for (const auto &part : normalizedTokens.split(normal)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      MEGA_RETURN_IF_ERROR(encodePiece(
          std::string_view(normal).substr(part.begin, part.end - part.begin),
          piece.begin == 0 && part.begin == 0, ids));
    }
  }
  return Status::ok();
}

Status BpeTokenizer::encodePiece(std::string_view text, bool first,
                                 std::vector<int32_t> &ids) const {
  Words words{std::string(text), {{0, text.size()}}, first};
  MEGA_RETURN_IF_ERROR(preTokenizer.apply(words));
  const std::string_view all = words.text;
  for (const auto &[begin, end] : words.spans) {
    MEGA_RETURN_IF_ERROR(model.encode(all.substr(begin, end - begin), ids));
  }
  return Status::ok();
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids) const {
  constexpr std::string_view kSpace = "\u2581";
  std::string text;
  for (const int32_t id : ids) {
    const std::string *found = model.token(id);
    if (const auto added = addedById.find(id); added != addedById.end()) {
      text += added->second.content;
    } else if (found == nullptr) {
      continue;
    } else if (preTokenizer.byteLevel()) {
      text += fromByteLevel(*found);
    } else if (const auto byte = byteToken(*found);
               byte && model.byteFallback()) {
      text += *byte;
    } else {
      std::string_view rest = *found;
      for (size_t space; (space = rest.find(kSpace)) != std::string_view::npos;
           rest.remove_prefix(space + kSpace.size())) {
        text += rest.substr(0, space);
        text += ' ';
      }
      text += rest;
    }
  }
  return text;
}

std::optional<int32_t> BpeTokenizer::findToken(std::string_view token) const {
  for (const auto &[id, added] : addedById) {
    if (added.content == token) {
      return id;
    }
  }
  return model.find(token);
}

std::string BpeTokenizer::token(int32_t id) const {
  if (const auto added = addedById.find(id); added != addedById.end()) {
    return added->second.content;
  }
  const std::string *found = model.token(id);
  return found == nullptr ? "" : *found;
}

std::optional<int32_t> BpeTokenizer::endOfDocument() const {
  for (const std::string_view usual :
       {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    if (const auto id = findToken(usual)) {
      return id;
    }
  }
  return std::nullopt;
}

std::vector<std::string> BpeTokenizer::specialTokens() const {
  std::vector<std::string> tokens;
  tokens.reserve(addedById.size());
  for (const auto &[id, added] : addedById) {
    tokens.push_back(added.content);
  }
  std::ranges::sort(tokens);
  return tokens;
}

} // namespace mega
