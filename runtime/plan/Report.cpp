#include "runtime/plan/Report.h"

#include "runtime/plan/AttentionWork.h"
#include "runtime/plan/Communication.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/StageMap.h"
#include "runtime/plan/StepTimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace mega {

std::string withThousands(uint64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3) {
    text.insert(static_cast<size_t>(i), ",");
  }
  return text;
}

std::string humanBytes(uint64_t bytes) {
  constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::map<plan::Part, uint64_t> allocatedByPart(const plan::Plan &plan) {
  std::map<plan::Part, uint64_t> parts;
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    const plan::Region &region = *plan.regions()->Get(i);
    parts[region.part()] += allocatedBytes(region);
  }
  return parts;
}

double percent(uint64_t bytes, uint64_t total) {
  return total == 0
             ? 0.0
             : 100.0 * static_cast<double>(bytes) / static_cast<double>(total);
}

std::string partName(plan::Part part) {
  std::string name = plan::EnumNamePart(part);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

int64_t largestStage(const plan::Plan &plan) {
  int64_t largest = 0;
  for (int64_t s = 1; s < stageCount(plan); ++s) {
    if (allocatedBytes(stagePlan(plan, s)) >
        allocatedBytes(stagePlan(plan, largest))) {
      largest = s;
    }
  }
  return largest;
}

uint64_t modelFlops(const plan::Plan &plan) {
  uint64_t flops = 0;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    for (const plan::Action &action : trainActions(stage)) {
      const plan::Program *program = stage.programs()->Get(action.program());
      if (program->kind() != plan::ActionKind::Forward) {
        continue;
      }
      for (const plan::Call &call : elements<plan::Call>(program->calls())) {
        flops +=
            3 * stage.functions()->Get(call.function())->flops() * call.count();
      }
    }
  }
  // Functions count what one rank computes.
  const Mesh mesh = meshOf(plan);
  return flops * static_cast<uint64_t>(mesh.ranks() / mesh.size(Axis::Pp));
}

namespace {

/// What a rank of cp has of a row, and to how much it attends.
void reportContext(const plan::Plan &plan, std::string &out) {
  const int64_t ranks = meshOf(plan).size(Axis::Cp);
  const AttentionWork work = attentionWork(plan);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "sequence          {} tokens of a rank, {}\n",
                 withThousands(plan.sequence_length() / ranks),
                 name(static_cast<SequenceOrder>(plan.sequence_order())));
  if (work.method == KeysOfOthers::None) {
    return;
  }
  fmt::format_to(
      to, "attention         {}; {} query-key pairs of a rank, {}\n",
      name(work.method), withThousands(*std::ranges::max_element(work.pairs)),
      static_cast<SequenceOrder>(plan.sequence_order()) ==
              SequenceOrder::Balanced
          ? "if rows are one document"
          : fmt::format("at most {:.3f} of the mean", work.imbalance()));
}

/// Stages by parts of the memory. Neighbours with equal ones share a line.
void reportStageMemory(const plan::Plan &plan, std::string &out) {
  auto to = std::back_inserter(out);
  std::set<plan::Part> parts;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    for (const auto &[part, bytes] : allocatedByPart(stagePlan(plan, s))) {
      parts.insert(part);
    }
  }
  fmt::format_to(to, "memory of a rank, by stage\n  {:<8}", "stage");
  for (const plan::Part part : parts) {
    fmt::format_to(to, "{:>13}", partName(part));
  }
  fmt::format_to(to, "{:>13}\n", "planned");
  for (int64_t s = 0; s < stageCount(plan);) {
    auto bytes = allocatedByPart(stagePlan(plan, s));
    int64_t last = s;
    while (last + 1 < stageCount(plan) &&
           allocatedByPart(stagePlan(plan, last + 1)) == bytes) {
      ++last;
    }
    fmt::format_to(to, "  {:<8}",
                   s == last ? std::to_string(s)
                             : fmt::format("{}-{}", s, last));
    for (const plan::Part part : parts) {
      fmt::format_to(to, "{:>13}", humanBytes(bytes[part]));
    }
    fmt::format_to(to, "{:>13}\n",
                   humanBytes(allocatedBytes(stagePlan(plan, s))));
    s = last + 1;
  }
}

/// Of a rank of one stage.
void reportMemory(const plan::Plan &plan, const std::string &title,
                  std::string &out) {
  auto to = std::back_inserter(out);
  const uint64_t total = allocatedBytes(plan);
  fmt::format_to(to, "{:<34}{:>16}{:>13}{:>8}\n", title, "bytes", "", "share");
  const auto line = [&](const std::string &name, uint64_t bytes) {
    fmt::format_to(to, "  {:<32}{:>16}{:>13}{:>7.1f}%\n", name,
                   withThousands(bytes), humanBytes(bytes),
                   percent(bytes, total));
  };
  for (const auto &[part, bytes] : allocatedByPart(plan)) {
    const std::string name = partName(part);
    line(name, bytes);
    for (const plan::Region *region : *plan.regions()) {
      if (region->part() == part && region->name()->str() != name) {
        line("  " + region->name()->str() +
                 (region->copies() > 1 ? fmt::format(" (x{})", region->copies())
                                       : ""),
             allocatedBytes(*region));
      }
    }
  }
  line("planned", total);
  fmt::format_to(to, "  {:<32}{:>16}{:>13}\n", "beside it, at most (reserve)",
                 withThousands(plan.reserve_bytes()),
                 humanBytes(plan.reserve_bytes()));
}

/// Scratch of the kernels whose naive form would be quadratic or hold logits.
void reportScratch(const plan::Plan &plan, std::set<std::string> &seen,
                   std::string &out) {
  auto to = std::back_inserter(out);
  for (const plan::Function *function : *plan.functions()) {
    for (const plan::Launch &launch :
         elements<plan::Launch>(function->launches())) {
      const KernelSpec &spec = kernelSpec(static_cast<Kernel>(launch.kernel()));
      for (size_t i = 0; i < spec.operands.size(); ++i) {
        const bool statistics = (spec.kernel == Kernel::Attention ||
                                 spec.kernel == Kernel::PackedAttention ||
                                 spec.kernel == Kernel::RingAttention) &&
                                spec.operands[i].name == "lse";
        if (spec.operands[i].access != Access::Scratch && !statistics) {
          continue;
        }
        const BufferType type = bufferType(elements<plan::Buffer>(
            function->buffers())[function->operands()->Get(
            launch.first_operand() + i)]);
        const std::string name =
            fmt::format("{} {}", spec.name, spec.operands[i].name);
        if (!seen.insert(name).second) {
          continue;
        }
        fmt::format_to(to, "  {:<32}{:>16}{:>13}", name,
                       withThousands(type.extentBytes()),
                       humanBytes(type.extentBytes()));
        if (spec.kernel == Kernel::HeadStats ||
            spec.kernel == Kernel::HeadStatsGrad) {
          const uint64_t full = uint64_t{plan.micro_batch_size()} *
                                plan.sequence_length() * plan.vocabulary() * 4;
          fmt::format_to(to, "   (full logits: {})", humanBytes(full));
        }
        out += '\n';
      }
    }
  }
}

void reportCommunication(const std::vector<CommunicationTotal> &totals,
                         const std::string &whose, std::string &out) {
  if (totals.empty()) {
    return;
  }
  auto to = std::back_inserter(out);
  fmt::format_to(to, "communication of a rank{}, per step\n", whose);
  fmt::format_to(to, "  {:<10}{:<16}{:<9}{:>9}{:>23}{:>13}{:>13}\n", "phase",
                 "collective", "axes", "count", "bytes", "", "sent");
  const auto line = [&](std::string_view phase, std::string_view collective,
                        std::string_view axes, uint64_t count, uint64_t bytes,
                        uint64_t sent) {
    fmt::format_to(to, "  {:<10}{:<16}{:<9}{:>9}{:>23}{:>13}{:>13}\n", phase,
                   collective, axes, withThousands(count), withThousands(bytes),
                   humanBytes(bytes), humanBytes(sent));
  };
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t sent = 0;
  for (const CommunicationTotal &total : totals) {
    line(total.phaseName(), total.name(), total.axes, total.count, total.bytes,
         total.sentBytes());
    count += total.count;
    bytes += total.bytes;
    sent += total.sentBytes();
  }
  line("all", "", "", count, bytes, sent);
}

/// Schedule, and what each stage holds.
void reportStages(const plan::Plan &plan, std::string &out) {
  auto to = std::back_inserter(out);
  const std::vector<PartPlacement> parts = partPlacements(plan);
  const int64_t chunks = chunkCount(parts);
  fmt::format_to(to, "stages            {}{}, {}: idle {:.1f}% of the time\n",
                 stageCount(plan),
                 chunks == 1 ? "" : fmt::format(" with {} chunks each", chunks),
                 scheduleName(plan),
                 100 * idleFraction(plan, plannedTimes(plan)));
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    fmt::format_to(to, "  {:<16}{}\n", stagesText(s, s),
                   stageContent(parts, s));
  }
}

void reportAllMemory(const plan::Plan &plan, std::string &out) {
  if (stageCount(plan) == 1) {
    reportMemory(plan, "memory of a rank", out);
    return;
  }
  const int64_t largest = largestStage(plan);
  reportStageMemory(plan, out);
  reportMemory(stagePlan(plan, largest),
               fmt::format("largest: a rank of stage {}", largest), out);
}

} // namespace

std::string report(const plan::Plan &plan) {
  std::string out;
  auto to = std::back_inserter(out);
  const plan::EntryPoint *train = stagePlan(plan, 0).entry_points()->Get(0);
  fmt::format_to(to, "model             {}\n", text(plan.model()));
  fmt::format_to(to, "parameters        {} ({} as f32)\n",
                 withThousands(plan.parameter_count()),
                 humanBytes(plan.parameter_count() * 4));
  fmt::format_to(to, "sequence length   {}\n", plan.sequence_length());
  const Mesh mesh = meshOf(plan);
  if (mesh.ranks() > 1) {
    fmt::format_to(to, "ranks             {}: {}\n", mesh.ranks(),
                   meshText(plan));
  }
  const int64_t replicas = mesh.size(Axis::Dp);
  fmt::format_to(to, "batch             {} = {} micro-batches of {}{}\n",
                 plan.global_batch_size(), train->micro_batches(),
                 plan.micro_batch_size(),
                 replicas == 1 ? "" : fmt::format(" on {} replicas", replicas));
  if (mesh.size(Axis::Cp) > 1) {
    reportContext(plan, out);
  }
  const uint64_t tokens =
      uint64_t{plan.global_batch_size()} * plan.sequence_length();
  fmt::format_to(to, "tokens of a step  {}\n", withThousands(tokens));
  const auto flops = static_cast<double>(modelFlops(plan));
  fmt::format_to(to,
                 "FLOPs of a step   {:.6e} ({:.6e} per token), executed "
                 "{:.6e}{}\n",
                 flops, flops / static_cast<double>(tokens),
                 static_cast<double>(plan.flops_per_step()),
                 mesh.ranks() == 1       ? ""
                 : stageCount(plan) == 1 ? " by each rank"
                                         : " by a rank of each stage");
  if (stageCount(plan) > 1) {
    reportStages(plan, out);
  }
  reportAllMemory(plan, out);
  for (const auto &[first, last, totals] : communicationByStage(plan, 0)) {
    reportCommunication(
        totals, stageCount(plan) == 1 ? "" : " of " + stagesText(first, last),
        out);
  }
  fmt::format_to(to, "scratch inside kernels\n");
  std::set<std::string> seen;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    reportScratch(stagePlan(plan, s), seen, out);
  }
  return out;
}

} // namespace mega
