#include "runtime/plan/StageMap.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace mega {
namespace {

bool sameAddress(const plan::Buffer *left, const plan::Buffer &right) {
  return left && right.space() == static_cast<uint8_t>(plan::Space::Region) &&
         left->region() == right.region() && left->offset() == right.offset();
}

bool reads(const plan::Function &function, const plan::Parameter &parameter) {
  const auto buffers = elements(function.buffers());
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const plan::Buffer &buffer) {
                       return sameAddress(parameter.weight(), buffer) ||
                              sameAddress(parameter.compute(), buffer);
                     });
}

/// Layers by the list they are in.
using Layers = std::map<std::string_view, std::set<uint32_t>>;

/// Those that a call runs: of which lists it reads parameters, at which places.
Layers layersOf(const plan::Plan &stage, const plan::Call &call) {
  const plan::Function &function = *stage.functions()->Get(call.function());
  const uint64_t end = uint64_t{call.first_instance()} + call.count();
  Layers layers;
  for (uint32_t i = 0; i < length(stage.parameters()); ++i) {
    const plan::Parameter &parameter = *stage.parameters()->Get(i);
    const uint64_t held = parameter.first_instance();
    const uint64_t first = std::max<uint64_t>(held, call.first_instance());
    const uint64_t last = std::min<uint64_t>(held + parameter.count(), end);
    if (text(parameter.prefix()).empty() || first >= last ||
        !reads(function, parameter)) {
      continue;
    }
    for (uint64_t instance = first; instance < last; ++instance) {
      layers[text(parameter.prefix())].insert(
          parameter.first_index() +
          static_cast<uint32_t>(instance - held) * parameter.index_step());
    }
  }
  return layers;
}

/// `layers 0-2, 5`.
std::string rangesText(const std::string &name, const std::set<uint32_t> &set) {
  std::string ranges;
  for (auto it = set.begin(); it != set.end();) {
    const uint32_t first = *it;
    uint32_t last = first;
    for (++it; it != set.end() && *it == last + 1; ++it) {
      last = *it;
    }
    ranges += ranges.empty() ? "" : ", ";
    ranges += first == last ? std::to_string(first)
                            : fmt::format("{}-{}", first, last);
  }
  return fmt::format(
      "{} {}", name == "layers" && set.size() == 1 ? "layer" : name, ranges);
}

/// What a program of the model runs, in order. Layers of one list are joined.
std::string contentOf(const plan::Plan &stage, const plan::Program &program,
                      bool severalLists) {
  constexpr std::string_view kForward = ".forward";
  std::vector<std::string> names;
  std::map<std::string, std::set<uint32_t>> layers;
  const auto once = [&](const std::string &name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const plan::Call &call : elements(program.calls())) {
    const Layers own = layersOf(stage, call);
    for (const auto &[prefix, indices] : own) {
      const std::string list = severalLists ? std::string(prefix) : "layers";
      once(list);
      layers[list].insert(indices.begin(), indices.end());
    }
    std::string_view name =
        text(stage.functions()->Get(call.function())->name());
    if (own.empty() && name.ends_with(kForward)) {
      name.remove_suffix(kForward.size());
      once(std::string(name));
    }
  }
  std::string content;
  for (const std::string &name : names) {
    const auto list = layers.find(name);
    content += content.empty() ? "" : ", ";
    content += list == layers.end() ? name : rangesText(name, list->second);
  }
  return content;
}

bool hasSeveralLists(const plan::Plan &plan) {
  std::set<std::string_view> prefixes;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    for (uint32_t i = 0; i < length(stage.parameters()); ++i) {
      prefixes.insert(text(stage.parameters()->Get(i)->prefix()));
    }
  }
  prefixes.erase("");
  return prefixes.size() > 1;
}

/// The forwards of the training step, by part.
std::map<uint32_t, const plan::Program *> forwardsOf(const plan::Plan &stage) {
  std::map<uint32_t, const plan::Program *> forwards;
  const plan::EntryPoint &train = *stage.entry_points()->Get(0);
  for (const plan::Action &action :
       elements(train.stages()->Get(0)->actions())) {
    const plan::Program *program = stage.programs()->Get(action.program());
    if (program->kind() == plan::ActionKind::Forward) {
      forwards.try_emplace(program->part(), program);
    }
  }
  return forwards;
}

} // namespace

std::vector<PartPlacement> partPlacements(const plan::Plan &plan) {
  const bool severalLists = hasSeveralLists(plan);
  std::map<uint32_t, PartPlacement> parts;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    int64_t chunk = 0;
    for (const auto &[part, program] : forwardsOf(stage)) {
      parts[part] = {s, chunk++, contentOf(stage, *program, severalLists)};
    }
  }
  std::vector<PartPlacement> list;
  list.reserve(parts.size());
  for (auto &[part, placement] : parts) {
    list.push_back(std::move(placement));
  }
  return list;
}

std::string stageContent(const std::vector<PartPlacement> &parts,
                         int64_t stage) {
  std::string content;
  for (const PartPlacement &part : parts) {
    if (part.stage == stage) {
      content += (part.chunk == 0 ? "" : " | ") + part.content;
    }
  }
  return content;
}

int64_t chunkCount(const std::vector<PartPlacement> &parts) {
  int64_t chunks = 0;
  for (const PartPlacement &part : parts) {
    chunks = std::max(chunks, part.chunk + 1);
  }
  return chunks;
}

std::string scheduleName(const plan::Plan &plan) {
  if (stageCount(plan) == 1) {
    return "one stage";
  }
  constexpr std::string_view kFlag = "--schedule ";
  std::string_view options = text(plan.options());
  if (const size_t at = options.find(kFlag); at != std::string_view::npos) {
    options.remove_prefix(at + kFlag.size());
    return std::string(options.substr(0, options.find(' ')));
  }
  return chunkCount(partPlacements(plan)) > 1 ? "interleaved" : "1f1b";
}

} // namespace mega
