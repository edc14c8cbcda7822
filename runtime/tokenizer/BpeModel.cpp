#include "runtime/tokenizer/BpeModel.h"

#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Utf8.h"

#include <queue>

namespace mega {

StatusOr<BpeModel> BpeModel::parse(const Json &json) {
  const Fields fields(json, "model");
  MEGA_RETURN_IF_ERROR(
      fields.only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                   "end_of_word_suffix", "fuse_unk", "byte_fallback",
                   "ignore_merges", "vocab", "merges"}));
  // Files of GPT-2's time have no type.
  MEGA_ASSIGN_OR_RETURN(const std::string type, fields.string("type"));
  if (!type.empty() && type != "BPE") {
    return badInput("model.type {} is not supported (supported: BPE); a "
                    "Unigram model is supported as sentencepiece's "
                    "tokenizer.model",
                    shortJson(fields.get("type")));
  }
  const Json &dropout = fields.get("dropout");
  if (!dropout.is_null() && dropout != 0) {
    return badInput("model.dropout is {}: ids would be random; set it to null",
                    shortJson(dropout));
  }
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    MEGA_ASSIGN_OR_RETURN(const std::string affix, fields.string(key));
    if (!affix.empty()) {
      return badInput("{} {} is not supported (supported: null and \"\")",
                      fields.where(key), shortJson(fields.get(key)));
    }
  }
  BpeModel model;
  MEGA_ASSIGN_OR_RETURN(model.fuseUnknown, fields.boolean("fuse_unk", false));
  MEGA_ASSIGN_OR_RETURN(model.byteFallback_,
                        fields.boolean("byte_fallback", false));
  MEGA_ASSIGN_OR_RETURN(model.ignoreMerges,
                        fields.boolean("ignore_merges", false));
  MEGA_RETURN_IF_ERROR(model.parseVocabulary(fields.get("vocab")));
  MEGA_RETURN_IF_ERROR(model.parseMerges(fields.get("merges")));
  if (fields.has("unk_token")) {
    MEGA_ASSIGN_OR_RETURN(const std::string unknown,
                          fields.string("unk_token"));
    model.unknown = model.find(unknown);
    if (!model.unknown) {
      return badInput("model.unk_token {} is not in model.vocab",
                      shortJson(fields.get("unk_token")));
    }
  }
  return model;
}

Status BpeModel::parseVocabulary(const Json &json) {
  if (!json.is_object() || json.empty()) {
    return badInput("model.vocab is {}, expected an object of tokens and ids",
                    shortJson(json));
  }
  ids.reserve(json.size());
  tokens.reserve(json.size());
  for (const auto &[token, value] : json.items()) {
    MEGA_ASSIGN_OR_RETURN(
        const int32_t id,
        Fields::toId(value, fmt::format("model.vocab.{}", token)));
    const auto at = ids.emplace(token, id).first;
    if (const auto [other, added] = tokens.emplace(id, &at->first); !added) {
      return badInput("model.vocab: {} and {} both have id {}",
                      shortJson(*other->second), shortJson(token), id);
    }
    vocabulary_ = std::max(vocabulary_, int64_t{id} + 1);
  }
  return Status::ok();
}

Status BpeModel::parseMerges(const Json &json) {
  if (!json.is_array()) {
    return badInput("model.merges is {}, expected a list", shortJson(json));
  }
  merges.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const Json &merge = json[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
        merge[1].is_string()) {
      MEGA_RETURN_IF_ERROR(addMerge(merge[0].get_ref<const std::string &>(),
                                    merge[1].get_ref<const std::string &>(),
                                    i));
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos ||
        text.find(' ', space + 1) != std::string::npos) {
      return badInput("model.merges[{}] is {}, expected \"a b\" or [\"a\", "
                      "\"b\"]",
                      i, shortJson(merge));
    }
    MEGA_RETURN_IF_ERROR(
        addMerge(text.substr(0, space), text.substr(space + 1), i));
  }
  return Status::ok();
}

Status BpeModel::addMerge(const std::string &left, const std::string &right,
                          size_t rank) {
  const std::string both = left + right;
  for (const std::string *token : {&left, &right, &both}) {
    if (!ids.contains(*token)) {
      return badInput("model.merges[{}]: {} is not in model.vocab", rank,
                      shortJson(*token));
    }
  }
  merges[pair(ids[left], ids[right])] = {static_cast<int32_t>(rank), ids[both]};
  return Status::ok();
}

std::optional<int32_t> BpeModel::find(std::string_view token) const {
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

const std::string *BpeModel::token(int32_t id) const {
  const auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : found->second;
}

Status BpeModel::encode(std::string_view word,
                        std::vector<int32_t> &out) const {
  if (ignoreMerges) {
    if (const auto whole = find(word)) {
      out.push_back(*whole);
      return Status::ok();
    }
  }
  thread_local std::vector<Symbol> symbols;
  symbols.clear();
  MEGA_RETURN_IF_ERROR(toSymbols(word, symbols));
  merge(symbols);
  for (const Symbol &symbol : symbols) {
    if (!symbol.gone) {
      out.push_back(symbol.id);
    }
  }
  return Status::ok();
}

Status BpeModel::toSymbols(std::string_view word,
                           std::vector<Symbol> &symbols) const {
  const auto add = [&](int32_t id) {
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  };
  // Whether the symbols end in an unknown one that further ones join. A byte
  // fallback in between does not end it.
  bool pending = false;
  for (size_t at = 0; at < word.size();) {
    const std::string_view character =
        word.substr(at, characterBytes(word, at));
    at += character.size();
    if (const auto id = find(character)) {
      if (std::exchange(pending, false)) {
        add(*unknown);
      }
      add(*id);
      continue;
    }
    if (byteFallback_) {
      std::vector<int32_t> bytes;
      for (const unsigned char byte : character) {
        if (const auto id = find(fmt::format("<0x{:02X}>", byte))) {
          bytes.push_back(*id);
        }
      }
      if (bytes.size() == character.size()) {
        std::ranges::for_each(bytes, add);
        continue;
      }
    }
    if (!unknown) {
      return badInput("the tokenizer has no token for {}, and no unk_token",
                      shortJson(std::string(character)));
    }
    if (pending && !fuseUnknown) {
      add(*unknown);
    }
    pending = true;
  }
  if (pending) {
    add(*unknown);
  }
  if (!symbols.empty()) {
    symbols.back().next = -1;
  }
  return Status::ok();
}

void BpeModel::merge(std::vector<Symbol> &symbols) const {
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t id;
    bool operator<(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  // Kept, so that a short word allocates nothing; empty between words.
  thread_local std::priority_queue<Candidate> queue;
  const auto propose = [&](int32_t left, int32_t right) {
    const auto found = merges.find(pair(symbols[left].id, symbols[right].id));
    if (found != merges.end()) {
      queue.push({found->second.rank, left, found->second.id});
    }
  };
  for (int32_t i = 1; i < std::ssize(symbols); ++i) {
    propose(i - 1, i);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol &left = symbols[best.at];
    if (left.gone || left.next < 0) {
      continue;
    }
    Symbol &right = symbols[left.next];
    // The pair may have changed since it was proposed.
    const auto found = merges.find(pair(left.id, right.id));
    if (found == merges.end() || found->second.id != best.id) {
      continue;
    }
    left.id = best.id;
    left.next = right.next;
    right.gone = true;
    if (left.next >= 0) {
      symbols[left.next].previous = best.at;
      propose(best.at, left.next);
    }
    if (left.previous >= 0) {
      propose(left.previous, best.at);
    }
  }
}

} // namespace mega
