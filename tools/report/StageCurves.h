//===- StageCurves.h - What a stage does and holds over time ----*- C++ -*-===//
#ifndef MEGA_TOOLS_REPORT_STAGECURVES_H
#define MEGA_TOOLS_REPORT_STAGECURVES_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/StepTimes.h"
#include "tools/report/HtmlReport.h"

#include <span>
#include <utility>
#include <vector>

namespace mega {

/// A bar for every forward and backward of the training step. `times` are those
/// of its actions, `chunks` the chunk of every part of the model.
std::vector<ReportBar> barsOf(const plan::Plan &stage,
                              std::span<const ActionTime> times,
                              std::span<const uint16_t> chunks);

/// Memory of a rank that holds something, as (time, bytes): what lives as long
/// as the plan, saved frames from a forward to the backward that reads them,
/// and buffers between stages from the first to the last action that touches
/// what is in them.
std::vector<std::pair<float, float>>
memoryOf(const plan::Plan &stage, std::span<const ActionTime> times);

} // namespace mega

#endif // MEGA_TOOLS_REPORT_STAGECURVES_H
