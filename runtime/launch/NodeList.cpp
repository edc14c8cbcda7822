// Slurm's compressed lists of hosts (man scontrol, "show hostnames").
#include "runtime/launch/Launcher.h"

#include <charconv>

namespace mega {
namespace {

constexpr size_t kMostNames = 65536;

Status malformed(std::string_view list, std::string_view why) {
  return usageError("node list \"{}\": {}", list, why);
}

StatusOr<uint64_t> number(std::string_view digits, std::string_view list) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return malformed(list, fmt::format("\"{}\" is not a number", digits));
  }
  return value;
}

/// `001-003,7` -> 001 002 003 7: as many digits as the start has.
StatusOr<std::vector<std::string>> expandRanges(std::string_view ranges,
                                                std::string_view list) {
  std::vector<std::string> result;
  while (true) {
    const size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last =
        dash == std::string_view::npos ? first : range.substr(dash + 1);
    MEGA_ASSIGN_OR_RETURN(const uint64_t begin, number(first, list));
    MEGA_ASSIGN_OR_RETURN(const uint64_t end, number(last, list));
    if (end < begin || end - begin >= kMostNames) {
      return malformed(list, fmt::format("{} is no range", range));
    }
    for (uint64_t i = begin; i <= end; ++i) {
      result.push_back(fmt::format("{:0{}}", i, first.size()));
    }
    if (comma == std::string_view::npos) {
      return result;
    }
    ranges.remove_prefix(comma + 1);
  }
}

/// One name, which may hold brackets.
StatusOr<std::vector<std::string>> expandName(std::string_view name,
                                              std::string_view list) {
  std::vector<std::string> result = {""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    const std::string_view plain = name.substr(0, open);
    std::vector<std::string> parts = {std::string(plain)};
    name.remove_prefix(plain.size());
    if (!name.empty()) {
      const size_t close = name.find(']');
      if (close == std::string_view::npos) {
        return malformed(list, "a [ without its ]");
      }
      MEGA_ASSIGN_OR_RETURN(parts,
                            expandRanges(name.substr(1, close - 1), list));
      for (std::string &part : parts) {
        part.insert(0, plain);
      }
      name.remove_prefix(close + 1);
    }
    if (result.size() * parts.size() > kMostNames) {
      return malformed(list, fmt::format("more than {} names", kMostNames));
    }
    std::vector<std::string> longer;
    for (const std::string &head : result) {
      for (const std::string &part : parts) {
        longer.push_back(head + part);
      }
    }
    result = std::move(longer);
  }
  return result;
}

} // namespace

StatusOr<std::vector<std::string>> expandNodeList(std::string_view list) {
  std::vector<std::string> result;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth < 0 || depth > 1 || (i == list.size() && depth != 0)) {
      return malformed(list, "brackets do not match");
    }
    if (c != ',' || depth > 0) {
      continue;
    }
    if (i == begin) {
      return malformed(list, "an empty name");
    }
    MEGA_ASSIGN_OR_RETURN(std::vector<std::string> names,
                          expandName(list.substr(begin, i - begin), list));
    result.insert(result.end(), names.begin(), names.end());
    if (result.size() > kMostNames) {
      return malformed(list, fmt::format("more than {} names", kMostNames));
    }
    begin = i + 1;
  }
  return result;
}

} // namespace mega
