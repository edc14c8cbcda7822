#include "runtime/tokenizer/Normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

namespace mega {

namespace {

constexpr size_t kMostSteps = 16;

/// The flags of a Unicode normal form; 0 if `type` is none.
int unicodeForm(std::string_view type) {
  if (type == "NFC") {
    return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  }
  if (type == "NFD") {
    return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  }
  if (type == "NFKC") {
    return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
  }
  if (type == "NFKD") {
    return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

Status toForm(std::string &text, int form) {
  utf8proc_uint8_t *mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(
      mapped, &std::free);
  if (size < 0) {
    return badInput("cannot normalize the text: {}", utf8proc_errmsg(size));
  }
  text.assign(reinterpret_cast<const char *>(mapped),
              static_cast<size_t>(size));
  return Status::ok();
}

} // namespace

StatusOr<Normalizer> Normalizer::parse(const Json &json) {
  Normalizer normalizer;
  if (!json.is_null()) {
    MEGA_RETURN_IF_ERROR(normalizer.add(json, "normalizer"));
  }
  return normalizer;
}

Status Normalizer::add(const Json &json, const std::string &where) {
  const Fields fields(json, where);
  if (!json.is_object()) {
    return fields.only({});
  }
  MEGA_ASSIGN_OR_RETURN(const std::string type, fields.string("type"));
  if (type == "Sequence") {
    MEGA_RETURN_IF_ERROR(fields.only({"type", "normalizers"}));
    const Json &list = fields.get("normalizers");
    if (!list.is_array()) {
      return badInput("{} is {}, expected a list", fields.where("normalizers"),
                      shortJson(list));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      MEGA_RETURN_IF_ERROR(
          add(list[i], fmt::format("{}.normalizers[{}]", where, i)));
    }
    return Status::ok();
  }
  Step step;
  step.form = unicodeForm(type);
  if (step.form != 0) {
    MEGA_RETURN_IF_ERROR(fields.only({"type"}));
  } else if (type == "Prepend") {
    MEGA_RETURN_IF_ERROR(fields.only({"type", "prepend"}));
    step.kind = Kind::Prepend;
    MEGA_ASSIGN_OR_RETURN(step.to, fields.string("prepend"));
  } else if (type == "Replace") {
    MEGA_RETURN_IF_ERROR(fields.only({"type", "pattern", "content"}));
    step.kind = Kind::Replace;
    const Fields pattern(fields.get("pattern"), fields.where("pattern"));
    MEGA_RETURN_IF_ERROR(pattern.only({"String"}));
    MEGA_ASSIGN_OR_RETURN(step.from, pattern.string("String"));
    MEGA_ASSIGN_OR_RETURN(step.to, fields.string("content"));
    if (step.from.empty()) {
      return badInput("{} is empty", pattern.where("String"));
    }
  } else {
    return badInput("{} {} is not supported (supported: NFC, NFD, NFKC, NFKD, "
                    "Prepend, Replace, Sequence)",
                    fields.where("type"), shortJson(fields.get("type")));
  }
  if (steps.size() == kMostSteps) {
    return badInput("{}: more than {} normalizers", where, kMostSteps);
  }
  steps.push_back(std::move(step));
  return Status::ok();
}

Status Normalizer::apply(std::string &text) const {
  // The compatibility forms make eleven bytes of one at most.
  const size_t most = 4096 + 16 * text.size();
  for (const Step &step : steps) {
    switch (step.kind) {
    case Kind::Unicode:
      MEGA_RETURN_IF_ERROR(toForm(text, step.form));
      break;
    case Kind::Prepend:
      if (!text.empty()) {
        text.insert(0, step.to);
      }
      break;
    case Kind::Replace: {
      std::string replaced;
      size_t from = 0;
      for (size_t found;
           replaced.size() <= most &&
           (found = text.find(step.from, from)) != std::string::npos;
           from = found + step.from.size()) {
        replaced.append(text, from, found - from);
        replaced += step.to;
      }
      replaced.append(text, from);
      text = std::move(replaced);
      break;
    }
    }
    if (text.size() > most) {
      return badInput("the normalizer makes more than {} bytes of a text",
                      most);
    }
  }
  return Status::ok();
}

} // namespace mega
