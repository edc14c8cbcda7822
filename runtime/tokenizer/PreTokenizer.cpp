#include "runtime/tokenizer/PreTokenizer.h"

#include "runtime/tokenizer/ByteLevel.h"
#include "runtime/tokenizer/Utf8.h"

namespace mega {

namespace {

constexpr size_t kMostSteps = 16;

/// What ByteLevel cuts by with use_regex: GPT-2's pattern.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

StatusOr<std::shared_ptr<const Regex>> compile(std::string_view pattern,
                                               const std::string &where) {
  auto regex = Regex::compile(pattern);
  if (!regex.isOk()) {
    return std::move(regex).takeStatus().withContext(where);
  }
  return std::make_shared<const Regex>(std::move(regex).take());
}

} // namespace

StatusOr<PreTokenizer> PreTokenizer::parse(const Json &json) {
  PreTokenizer result;
  if (!json.is_null()) {
    MEGA_RETURN_IF_ERROR(result.add(json, "pre_tokenizer"));
  }
  for (size_t i = 0; i + 1 < result.steps.size(); ++i) {
    if (result.steps[i].kind == Step::Kind::ByteLevel) {
      return badInput("pre_tokenizer: ByteLevel is supported as the last step "
                      "only");
    }
  }
  return result;
}

bool PreTokenizer::byteLevel() const {
  return !steps.empty() && steps.back().kind == Step::Kind::ByteLevel;
}

Status PreTokenizer::add(const Json &json, const std::string &where) {
  const Fields fields(json, where);
  if (!json.is_object()) {
    return fields.only({});
  }
  MEGA_ASSIGN_OR_RETURN(const std::string type, fields.string("type"));
  if (type == "Sequence") {
    MEGA_RETURN_IF_ERROR(fields.only({"type", "pretokenizers"}));
    const Json &list = fields.get("pretokenizers");
    if (!list.is_array()) {
      return badInput("{} is {}, expected a list",
                      fields.where("pretokenizers"), shortJson(list));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      MEGA_RETURN_IF_ERROR(
          add(list[i], fmt::format("{}.pretokenizers[{}]", where, i)));
    }
    return Status::ok();
  }
  if (steps.size() == kMostSteps) {
    return badInput("{}: more than {} pre-tokenizers", where, kMostSteps);
  }
  Step step;
  if (type == "ByteLevel") {
    MEGA_ASSIGN_OR_RETURN(step, parseByteLevel(fields));
  } else if (type == "Split") {
    MEGA_ASSIGN_OR_RETURN(step, parseSplit(fields));
  } else if (type == "Digits") {
    MEGA_ASSIGN_OR_RETURN(step, parseDigits(fields));
  } else if (type == "Metaspace") {
    MEGA_ASSIGN_OR_RETURN(step, parseMetaspace(fields));
  } else {
    return badInput("{} {} is not supported (supported: ByteLevel, Split, "
                    "Digits, Metaspace, Sequence)",
                    fields.where("type"), shortJson(fields.get("type")));
  }
  steps.push_back(std::move(step));
  return Status::ok();
}

StatusOr<PreTokenizer::Step>
PreTokenizer::parseByteLevel(const Fields &fields) {
  // trim_offsets moves offsets only.
  MEGA_RETURN_IF_ERROR(
      fields.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  Step step;
  step.kind = Step::Kind::ByteLevel;
  MEGA_ASSIGN_OR_RETURN(step.addPrefixSpace,
                        fields.boolean("add_prefix_space", true));
  MEGA_ASSIGN_OR_RETURN(const bool useRegex, fields.boolean("use_regex", true));
  if (useRegex) {
    MEGA_ASSIGN_OR_RETURN(step.regex, compile(kGpt2Pattern, fields.where()));
  }
  return step;
}

StatusOr<PreTokenizer::Step> PreTokenizer::parseSplit(const Fields &fields) {
  MEGA_RETURN_IF_ERROR(fields.only({"type", "pattern", "behavior", "invert"}));
  Step step;
  const Fields pattern(fields.get("pattern"), fields.where("pattern"));
  MEGA_RETURN_IF_ERROR(pattern.only({"Regex", "String"}));
  MEGA_ASSIGN_OR_RETURN(const std::string regex, pattern.string("Regex"));
  MEGA_ASSIGN_OR_RETURN(const std::string text, pattern.string("String"));
  if (regex.empty() == text.empty()) {
    return badInput("{} is {}, expected {{\"Regex\": ...}} or {{\"String\": "
                    "...}}",
                    pattern.where(), shortJson(fields.get("pattern")));
  }
  MEGA_ASSIGN_OR_RETURN(
      step.regex,
      compile(regex.empty() ? quotePattern(text) : regex, pattern.where()));
  MEGA_ASSIGN_OR_RETURN(const std::string behavior, fields.string("behavior"));
  if (behavior != "Isolated" && behavior != "Removed") {
    return badInput("{} {} is not supported (supported: Isolated, Removed)",
                    fields.where("behavior"),
                    shortJson(fields.get("behavior")));
  }
  step.remove = behavior == "Removed";
  MEGA_ASSIGN_OR_RETURN(step.invert, fields.boolean("invert", false));
  return step;
}

StatusOr<PreTokenizer::Step> PreTokenizer::parseDigits(const Fields &fields) {
  MEGA_RETURN_IF_ERROR(fields.only({"type", "individual_digits"}));
  Step step;
  MEGA_ASSIGN_OR_RETURN(const bool single,
                        fields.boolean("individual_digits", false));
  MEGA_ASSIGN_OR_RETURN(
      step.regex, compile(single ? R"(\p{N})" : R"(\p{N}+)", fields.where()));
  return step;
}

StatusOr<PreTokenizer::Step>
PreTokenizer::parseMetaspace(const Fields &fields) {
  MEGA_RETURN_IF_ERROR(fields.only({"type", "replacement", "add_prefix_space",
                                    "prepend_scheme", "split", "str_rep"}));
  Step step;
  step.kind = Step::Kind::Metaspace;
  MEGA_ASSIGN_OR_RETURN(step.replacement, fields.string("replacement"));
  if (step.replacement.empty() ||
      characterBytes(step.replacement, 0) != step.replacement.size()) {
    return badInput("{} is {}, expected one character",
                    fields.where("replacement"),
                    shortJson(fields.get("replacement")));
  }
  MEGA_ASSIGN_OR_RETURN(const std::string strRep, fields.string("str_rep"));
  if (!strRep.empty() && strRep != step.replacement) {
    return badInput("{} is not {}, the same as {}", fields.where("str_rep"),
                    step.replacement, fields.where("replacement"));
  }
  MEGA_ASSIGN_OR_RETURN(const bool addPrefixSpace,
                        fields.boolean("add_prefix_space", true));
  MEGA_ASSIGN_OR_RETURN(const std::string scheme,
                        fields.string("prepend_scheme"));
  if (scheme == "first") {
    step.prepend = Step::Prepend::First;
  } else if (scheme == "never" || (scheme.empty() && !addPrefixSpace)) {
    step.prepend = Step::Prepend::Never;
  } else if (!scheme.empty() && scheme != "always") {
    return badInput("{} {} is not supported (supported: always, first, never)",
                    fields.where("prepend_scheme"), scheme);
  }
  if (!addPrefixSpace && step.prepend != Step::Prepend::Never) {
    return badInput("{} false contradicts {} {}",
                    fields.where("add_prefix_space"),
                    fields.where("prepend_scheme"), scheme);
  }
  MEGA_ASSIGN_OR_RETURN(step.split, fields.boolean("split", true));
  return step;
}

Status PreTokenizer::apply(Words &words) const {
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::Kind::Split:
      MEGA_RETURN_IF_ERROR(split(step, words));
      break;
    case Step::Kind::ByteLevel:
      MEGA_RETURN_IF_ERROR(toByteLevel(step, words));
      break;
    case Step::Kind::Metaspace:
      toMetaspace(step, words);
      break;
    }
  }
  return Status::ok();
}

Status PreTokenizer::split(const Step &step, Words &words) {
  std::vector<std::pair<size_t, size_t>> cut;
  for (const auto &[begin, end] : words.spans) {
    const size_t base = begin;
    size_t previous = 0;
    const auto keep = [&](size_t from, size_t to, bool matched) {
      if (from < to && !(step.remove && matched != step.invert)) {
        cut.emplace_back(base + from, base + to);
      }
    };
    MEGA_RETURN_IF_ERROR(step.regex->forEachMatch(
        std::string_view(words.text).substr(begin, end - begin),
        [&](size_t from, size_t to) {
          keep(previous, from, false);
          keep(from, to, true);
          previous = to;
        }));
    keep(previous, end - begin, false);
  }
  words.spans = std::move(cut);
  return Status::ok();
}

Status PreTokenizer::toByteLevel(const Step &step, Words &words) {
  if (step.addPrefixSpace) {
    Words prefixed;
    for (const auto &[begin, end] : words.spans) {
      const size_t start = prefixed.text.size();
      if (words.text[begin] != ' ') {
        prefixed.text += ' ';
      }
      prefixed.text.append(words.text, begin, end - begin);
      prefixed.spans.emplace_back(start, prefixed.text.size());
    }
    words = std::move(prefixed);
  }
  if (step.regex) {
    MEGA_RETURN_IF_ERROR(split(step, words));
  }
  std::string mapped;
  mapped.reserve(words.text.size() + words.text.size() / 4);
  for (auto &[begin, end] : words.spans) {
    const size_t start = mapped.size();
    for (size_t at = begin; at < end; ++at) {
      mapped += byteLevelCharacter(static_cast<unsigned char>(words.text[at]));
    }
    begin = start;
    end = mapped.size();
  }
  words.text = std::move(mapped);
  return Status::ok();
}

void PreTokenizer::toMetaspace(const Step &step, Words &words) {
  std::string rewritten;
  std::vector<std::pair<size_t, size_t>> cut;
  for (const auto &[begin, end] : words.spans) {
    size_t start = rewritten.size();
    const std::string_view word =
        std::string_view(words.text).substr(begin, end - begin);
    const bool begins =
        word.starts_with(' ') || word.starts_with(step.replacement);
    const bool prepend =
        step.prepend == Step::Prepend::Always ||
        (step.prepend == Step::Prepend::First && words.first && begin == 0);
    if (prepend && !begins) {
      rewritten += step.replacement;
    }
    for (size_t at = 0; at < word.size();) {
      const size_t size = characterBytes(word, at);
      const std::string_view character = word.substr(at, size);
      const bool space = character == " " || character == step.replacement;
      // Each begins a word.
      if (space && step.split && rewritten.size() > start) {
        cut.emplace_back(start, rewritten.size());
        start = rewritten.size();
      }
      rewritten += space ? std::string_view(step.replacement) : character;
      at += size;
    }
    if (rewritten.size() > start) {
      cut.emplace_back(start, rewritten.size());
    }
  }
  words.text = std::move(rewritten);
  words.spans = std::move(cut);
}

} // namespace mega
