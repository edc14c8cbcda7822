#include "tools/report/PlanReport.h"

#include "runtime/plan/Communication.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/Report.h"
#include "runtime/plan/StageMap.h"
#include "tools/report/StageCurves.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mega {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string batchText(const plan::Plan &plan) {
  const auto replicas = meshOf(plan).size(Axis::Dp);
  return fmt::format("{} = {} micro-batches of {}{}", plan.global_batch_size(),
                     stagePlan(plan, 0).entry_points()->Get(0)->micro_batches(),
                     plan.micro_batch_size(),
                     replicas == 1 ? ""
                                   : fmt::format(" on {} replicas", replicas));
}

Facts factsOf(const LoadedPlan &loaded, const std::string &unit) {
  const plan::Plan &plan = loaded.root();
  const std::string mesh = meshText(plan);
  const uint64_t parameters = plan.parameter_count();
  const int64_t largest = largestStage(plan);
  const int64_t chunks = chunkCount(partPlacements(plan));
  std::string schedule = scheduleName(plan);
  if (chunks > 1) {
    schedule += fmt::format(", {} chunks on each stage", chunks);
  }
  return {
      {"model", std::string(text(plan.model()))},
      {"parameters", fmt::format("{} ({} as f32)", withThousands(parameters),
                                 humanBytes(parameters * 4))},
      {"ranks", fmt::format("{}{}", meshOf(plan).ranks(),
                            mesh.empty() ? "" : ": " + mesh)},
      {"schedule", schedule},
      {"batch", batchText(plan)},
      {"sequence length", std::to_string(plan.sequence_length())},
      {"work of a step", fmt::format("{:.4g} FLOPs of the model",
                                     static_cast<double>(modelFlops(plan)))},
      {"memory of a rank",
       humanBytes(allocatedBytes(stagePlan(plan, largest))) +
           (stageCount(plan) == 1
                ? ""
                : fmt::format(" at most, on stage {}", largest))},
      {"times", unit},
      {"options", std::string(text(plan.options()))},
      {"plan", fmt::format("{} bytes, {}", withThousands(loaded.bytes().size()),
                           loaded.hash())},
  };
}

/// Without bars and memory over time.
ReportStage describedStage(const plan::Plan &plan, int64_t stage,
                           const std::vector<PartPlacement> &parts) {
  ReportStage described;
  described.name = fmt::format("stage {}", stage);
  described.layers = stageContent(parts, stage);
  for (const auto &[part, bytes] : allocatedByPart(stagePlan(plan, stage))) {
    described.memoryParts.emplace_back(partName(part), bytes);
  }
  return described;
}

/// By number of the part.
std::vector<uint16_t> chunksOf(const std::vector<PartPlacement> &parts) {
  std::vector<uint16_t> chunks;
  chunks.reserve(parts.size());
  for (const PartPlacement &part : parts) {
    chunks.push_back(static_cast<uint16_t>(part.chunk));
  }
  return chunks;
}

ReportTable memoryTable(const plan::Plan &plan,
                        const std::vector<PartPlacement> &parts) {
  std::set<plan::Part> columns;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    for (const auto &[part, bytes] : allocatedByPart(stagePlan(plan, s))) {
      columns.insert(part);
    }
  }
  ReportTable table{"Memory of a rank, in bytes", {"stage", "holds"}, {}};
  for (const plan::Part part : columns) {
    table.columns.push_back(partName(part));
  }
  table.columns.emplace_back("planned");
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    auto bytes = allocatedByPart(stagePlan(plan, s));
    std::vector<std::string> row = {std::to_string(s), stageContent(parts, s)};
    for (const plan::Part part : columns) {
      row.push_back(withThousands(bytes[part]));
    }
    row.push_back(withThousands(allocatedBytes(stagePlan(plan, s))));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable communicationTable(const plan::Plan &plan) {
  ReportTable table{
      "Communication of a rank, per step",
      {"stages", "phase", "collective", "axes", "count", "bytes", "", "sent"},
      {}};
  for (const auto &[first, last, totals] : communicationByStage(plan, 0)) {
    const std::string stages = first == last
                                   ? std::to_string(first)
                                   : fmt::format("{}-{}", first, last);
    for (const CommunicationTotal &total : totals) {
      table.rows.push_back(
          {stages, total.phaseName(), std::string(total.name()), total.axes,
           withThousands(total.count), withThousands(total.bytes),
           humanBytes(total.bytes), humanBytes(total.sentBytes())});
    }
  }
  return table;
}

/// All but the rows of the stages.
HtmlReportData pageOf(const LoadedPlan &loaded, const StepTimes &times,
                      const std::string &unit, const std::string &unitText) {
  const plan::Plan &plan = loaded.root();
  const std::vector<PartPlacement> parts = partPlacements(plan);
  HtmlReportData page;
  page.title = std::string(text(plan.model()));
  page.facts = factsOf(loaded, unitText);
  page.bubbleFraction = idleFraction(plan, times);
  page.total = times.total;
  page.timeUnit = unit;
  page.tables.push_back(memoryTable(plan, parts));
  if (ReportTable table = communicationTable(plan); !table.rows.empty()) {
    page.tables.push_back(std::move(table));
  }
  return page;
}

StepTimes scaled(StepTimes times, double factor) {
  for (auto &stage : times.stages) {
    for (ActionTime &action : stage) {
      action.begin *= factor;
      action.end *= factor;
    }
  }
  times.total *= factor;
  return times;
}

double allBusyTime(const plan::Plan &plan, const StepTimes &times) {
  double busy = 0;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    busy += busyTime(plan, times, s);
  }
  return busy;
}

} // namespace

HtmlReportData planReport(const LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.root();
  const StepTimes times = plannedTimes(plan);
  const std::vector<PartPlacement> parts = partPlacements(plan);
  HtmlReportData page =
      pageOf(loaded, times, "relative",
             "planned: by FLOPs, in units of the longest forward; transfers "
             "and the optimizer take none");
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    const auto &own = times.stages[static_cast<size_t>(s)];
    ReportStage row = describedStage(plan, s, parts);
    row.bars = barsOf(stage, own, chunksOf(parts));
    row.memory = memoryOf(stage, own);
    page.stages.push_back(std::move(row));
  }
  return page;
}

HtmlReportData measuredReport(const LoadedPlan &loaded,
                              const StepTimes &measuredSeconds) {
  constexpr double kMilliseconds = 1000;
  const plan::Plan &plan = loaded.root();
  const StepTimes measured = scaled(measuredSeconds, kMilliseconds);
  const StepTimes relative = plannedTimes(plan);
  const double busy = allBusyTime(plan, relative);
  const StepTimes planned =
      scaled(relative, busy > 0 ? allBusyTime(plan, measured) / busy : 0);
  const std::vector<PartPlacement> parts = partPlacements(plan);
  HtmlReportData page =
      pageOf(loaded, measured, "ms",
             "measured, and planned at the mean rate of all forwards and "
             "backwards");
  page.stageCount = static_cast<size_t>(stageCount(plan));
  page.facts.emplace_back("planned bubble",
                          fmt::format("{:.1f}%, {:.5g} ms for a step",
                                      100 * idleFraction(plan, planned),
                                      planned.total));
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    for (const auto &[how, times] :
         {std::pair("planned", &planned), std::pair("measured", &measured)}) {
      const auto &own = times->stages[static_cast<size_t>(s)];
      ReportStage row;
      row.name = fmt::format("stage {}", s);
      row.layers = how;
      row.bars = barsOf(stage, own, chunksOf(parts));
      row.memory = memoryOf(stage, own);
      page.stages.push_back(std::move(row));
    }
  }
  return page;
}

} // namespace mega
