//===- PlanReport.h - The page about a plan ---------------------*- C++ -*-===//
#ifndef MEGA_TOOLS_REPORT_PLANREPORT_H
#define MEGA_TOOLS_REPORT_PLANREPORT_H

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/StepTimes.h"
#include "tools/report/HtmlReport.h"

namespace mega {

/// What `megac --report=FILE.html` shows: the training step as planned, with
/// times in units of the longest forward. The plan is verified.
HtmlReportData planReport(const LoadedPlan &plan);

/// What `megart train --timeline` shows: two rows for each stage, the step as
/// planned and as it was measured. `measured` is in seconds; the plan is drawn
/// as if it ran forwards and backwards at the mean rate of all stages.
HtmlReportData measuredReport(const LoadedPlan &plan,
                              const StepTimes &measured);

} // namespace mega

#endif // MEGA_TOOLS_REPORT_PLANREPORT_H
