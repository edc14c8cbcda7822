//===- HtmlReport.h - A page that shows a plan ------------------*- C++ -*-===//
//
// One HTML page about a compiled plan: what was asked for, the timeline of the
// step on each pipeline stage, memory over time and by part, and tables. It
// holds all it needs (styles, script, data) and fetches nothing, so it can be
// mailed and opened offline.
//
// Where things are: this folder's report.html is the page, report.css how it
// looks, and charts.js and report.js draw and move. CMake joins them into one
// string that is part of the program.
//
// Text comes from models and is escaped; bars and curves go into the page as
// base64 of little-endian arrays, 20 characters for each bar.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TOOLS_REPORT_HTMLREPORT_H
#define MEGA_TOOLS_REPORT_HTMLREPORT_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mega {

/// What a stage does from `begin` to `end`, in units of time.
struct ReportBar {
  float begin;
  float end;
  /// 0 forward, 1 backward, 2 weight gradient.
  uint8_t work;
  uint16_t chunk;
  uint32_t microBatch;
};

/// A row of the charts.
struct ReportStage {
  /// `stage 3`.
  std::string name;
  /// `layers 9-11`, or whatever else stands beside the name.
  std::string layers;
  /// Ascending, without overlap.
  std::vector<ReportBar> bars;
  /// (time, bytes), ascending: so many bytes from that time to the next one's.
  std::vector<std::pair<float, float>> memory;
  /// (name, bytes) of what the memory of one of its ranks is made of.
  std::vector<std::pair<std::string, uint64_t>> memoryParts;
};

struct ReportTable {
  std::string title;
  std::vector<std::string> columns;
  /// Each as long as `columns`.
  std::vector<std::vector<std::string>> rows;
};

struct HtmlReportData {
  std::string title;
  /// (name, value): model, mesh, batch, ...
  std::vector<std::pair<std::string, std::string>> facts;
  /// Idle time of all stages by the time of all stages: 0 to 1.
  double bubbleFraction = 0;
  /// Length of the step, finite.
  double total = 0;
  /// `ms`, or what else times are in.
  std::string timeUnit;
  /// Stages of the plan; 0: as many as there are rows.
  size_t stageCount = 0;
  std::vector<ReportStage> stages;
  std::vector<ReportTable> tables;
};

/// Sections without content are left out. The same data gives the same bytes.
std::string renderHtml(const HtmlReportData &data);

} // namespace mega

#endif // MEGA_TOOLS_REPORT_HTMLREPORT_H
