#include "passes/Partition.h"

#include <algorithm>
#include <array>
#include <map>

namespace mega {
namespace {

struct KindName {
  const char *one;
  const char *many;
};

KindName nameOf(char kind) {
  switch (kind) {
  case 'E':
    return {"embedding", "embeddings"};
  case 'L':
    return {"layer", "layers"};
  default:
    return {"head", "heads"};
  }
}

std::string counted(int64_t count, char kind) {
  const KindName name = nameOf(kind);
  return fmt::format("{} {}", count, count == 1 ? name.one : name.many);
}

/// Neighbouring units of one kind.
struct Run {
  char kind;
  int64_t count;
};

std::vector<Run> runsOf(std::span<const PartitionUnit> units) {
  std::vector<Run> runs;
  for (const PartitionUnit &unit : units) {
    if (runs.empty() || runs.back().kind != unit.kind) {
      runs.push_back({unit.kind, 0});
    }
    ++runs.back().count;
  }
  return runs;
}

} // namespace

std::string describe(std::span<const PartitionUnit> units) {
  std::string out;
  for (const Run &run : runsOf(units)) {
    out += (out.empty() ? "" : ", ") + counted(run.count, run.kind);
  }
  return out;
}

namespace {

class StagesParser {
public:
  StagesParser(std::string_view text, std::span<const PartitionUnit> units)
      : text(text), units(units) {}

  StatusOr<std::vector<int64_t>> parse() {
    while (true) {
      skipSpaces();
      if (position < text.size() && text[position] != '|') {
        MEGA_RETURN_IF_ERROR(token());
        continue;
      }
      MEGA_RETURN_IF_ERROR(endPart());
      if (position == text.size()) {
        return begin;
      }
      ++position;
    }
  }

private:
  void skipSpaces() {
    while (position < text.size() && text[position] == ' ') {
      ++position;
    }
  }

  Status endPart() {
    if (placed == begin.back()) {
      return usageError("part {} is empty", part());
    }
    begin.push_back(placed);
    partCounts.clear();
    return Status::ok();
  }

  Status token() {
    const size_t start = position;
    int64_t count = 0;
    while (position < text.size() && isDigit(text[position])) {
      // No model has as many units as this keeps apart.
      count = std::min<int64_t>(count * 10 + (text[position++] - '0'), 1 << 30);
    }
    const bool bare = position == start;
    const char kind = position < text.size() ? text[position] : '\0';
    if (kind != 'E' && kind != 'L' && kind != 'H') {
      const size_t end = text.find_first_of(" |", start);
      return usageError("unknown token '{}' at character {} (a part is written "
                        "as E, H, L or a count of these as in 3L)",
                        text.substr(start, end - start), start + 1);
    }
    ++position;
    if (!bare && count == 0) {
      return usageError("'0{}' at character {} places nothing", kind,
                        start + 1);
    }
    return place(bare ? 1 : count, kind);
  }

  Status place(int64_t count, char kind) {
    partCounts[kind] += count;
    allCounts[kind] += count;
    const int64_t inModel = std::count_if(
        units.begin(), units.end(),
        [&](const PartitionUnit &unit) { return unit.kind == kind; });
    if (allCounts[kind] > inModel) {
      return makeError(Code::Failed, "part {} has {}: {} of {}", part(),
                       counted(partCounts[kind], kind), allCounts[kind],
                       inModel);
    }
    for (const PartitionUnit &unit : units.subspan(placed, count)) {
      if (unit.kind != kind) {
        return makeError(Code::Failed,
                         "part {} has {} where the model has {} (in order: {})",
                         part(), kind, unit.kind, describe(units));
      }
    }
    placed += count;
    return Status::ok();
  }

  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  int64_t part() const { return static_cast<int64_t>(begin.size()) - 1; }

  const std::string_view text;
  const std::span<const PartitionUnit> units;
  size_t position = 0;
  int64_t placed = 0;
  std::vector<int64_t> begin = {0};
  std::map<char, int64_t> partCounts, allCounts;
};

} // namespace

StatusOr<std::vector<int64_t>> parseStages(std::string_view text,
                                           std::span<const PartitionUnit> units,
                                           int64_t parts) {
  MEGA_ASSIGN_OR_RETURN(std::vector<int64_t> begin,
                        StagesParser(text, units).parse());
  const auto written = static_cast<int64_t>(begin.size()) - 1;
  if (written != parts) {
    return makeError(
        Code::Failed, "{} written, {} (stages x chunks) are needed",
        written == 1 ? "1 part is" : fmt::format("{} parts are", written),
        parts);
  }
  if (begin.back() != static_cast<int64_t>(units.size())) {
    return makeError(Code::Failed,
                     "the parts hold {} of the {} units of the model; without "
                     "a part: {}",
                     begin.back(), units.size(),
                     describe(units.subspan(begin.back())));
  }
  return begin;
}

} // namespace mega
