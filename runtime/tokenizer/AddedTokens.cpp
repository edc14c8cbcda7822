#include "runtime/tokenizer/AddedTokens.h"

#include "runtime/tokenizer/Utf8.h"

#include <utf8proc.h>

#include <set>
#include <string_view>

namespace mega {

namespace {

utf8proc_int32_t characterAt(std::string_view text, size_t at) {
  utf8proc_int32_t character = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + at,
                   static_cast<utf8proc_ssize_t>(text.size() - at), &character);
  return character;
}

/// Where the character before `at` begins.
size_t before(std::string_view text, size_t at) {
  --at;
  while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) {
    --at;
  }
  return at;
}

bool isWord(utf8proc_int32_t character) {
  if (character == 0x200c || character == 0x200d) {
    return true;
  }
  switch (utf8proc_category(character)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    // Letters in circles are alphabetic symbols.
    return (character >= 0x24b6 && character <= 0x24e9) ||
           (character >= 0x1f130 && character <= 0x1f149) ||
           (character >= 0x1f150 && character <= 0x1f169) ||
           (character >= 0x1f170 && character <= 0x1f189);
  }
}

bool isSpace(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return true;
  default:
    return (character >= 0x09 && character <= 0x0d) || character == 0x85;
  }
}

} // namespace

StatusOr<std::vector<AddedToken>> parseAddedTokens(const Json &json) {
  std::vector<AddedToken> tokens;
  if (json.is_null()) {
    return tokens;
  }
  if (!json.is_array()) {
    return badInput("added_tokens is {}, expected a list", shortJson(json));
  }
  std::set<std::string, std::less<>> contents;
  std::set<int32_t> ids;
  for (size_t i = 0; i < json.size(); ++i) {
    const Fields fields(json[i], fmt::format("added_tokens[{}]", i));
    MEGA_RETURN_IF_ERROR(fields.only({"id", "content", "special", "normalized",
                                      "single_word", "lstrip", "rstrip"}));
    AddedToken token;
    MEGA_ASSIGN_OR_RETURN(token.id, fields.id("id"));
    MEGA_ASSIGN_OR_RETURN(token.content, fields.string("content"));
    MEGA_ASSIGN_OR_RETURN(token.special, fields.boolean("special", false));
    MEGA_ASSIGN_OR_RETURN(token.normalized,
                          fields.boolean("normalized", !token.special));
    MEGA_ASSIGN_OR_RETURN(token.singleWord,
                          fields.boolean("single_word", false));
    MEGA_ASSIGN_OR_RETURN(token.lstrip, fields.boolean("lstrip", false));
    MEGA_ASSIGN_OR_RETURN(token.rstrip, fields.boolean("rstrip", false));
    if (token.content.empty()) {
      return badInput("{} is empty", fields.where("content"));
    }
    if (!contents.insert(token.content).second ||
        !ids.insert(token.id).second) {
      return badInput("{}: token {} or id {} is there twice", fields.where(),
                      shortJson(fields.get("content")), token.id);
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddedTokenSet::add(AddedToken token, std::string spelling) {
  auto &list = entries[static_cast<unsigned char>(spelling[0])];
  const auto at = std::ranges::find_if(list, [&](const Entry &entry) {
    return entry.spelling.size() < spelling.size();
  });
  list.insert(at, Entry{std::move(token), std::move(spelling)});
  empty = false;
}

const AddedTokenSet::Entry *AddedTokenSet::find(std::string_view text,
                                                size_t at) const {
  for (const Entry &entry : entries[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(entry.spelling)) {
      return &entry;
    }
  }
  return nullptr;
}

std::vector<AddedTokenSet::Piece>
AddedTokenSet::split(std::string_view text) const {
  std::vector<Piece> pieces;
  if (text.empty()) {
    return pieces;
  }
  size_t done = 0;
  for (size_t at = 0; !empty && at < text.size();) {
    const Entry *entry = find(text, at);
    if (entry == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + entry->spelling.size();
    at = end;
    const AddedToken &token = entry->token;
    if (token.singleWord &&
        ((begin > 0 && isWord(characterAt(text, before(text, begin)))) ||
         (end < text.size() && isWord(characterAt(text, end))))) {
      continue;
    }
    while (token.lstrip && begin > done &&
           isSpace(characterAt(text, before(text, begin)))) {
      begin = before(text, begin);
    }
    while (token.rstrip && end < text.size() &&
           isSpace(characterAt(text, end))) {
      end += characterBytes(text, end);
    }
    if (done < begin) {
      pieces.push_back({done, begin, std::nullopt});
    }
    pieces.push_back({begin, end, token.id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) {
    pieces.push_back({done, text.size(), std::nullopt});
  }
  return pieces;
}

} // namespace mega
