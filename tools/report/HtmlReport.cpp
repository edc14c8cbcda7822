#include "tools/report/HtmlReport.h"

#include "runtime/plan/Report.h"
#include "tools/report/HtmlTemplate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cctype>
#include <cstring>
#include <iterator>
#include <map>
#include <string_view>

namespace mega {
namespace {

/// How many colours report.css has for parts of memory.
constexpr size_t kPartColours = 10;

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "abcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 |
              (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

/// Appends one field of all items, and zeros up to a multiple of four bytes.
template <typename Items, typename Get>
void addColumn(std::string &bytes, const Items &items, Get get) {
  static_assert(std::endian::native == std::endian::little,
                "the page reads little-endian arrays");
  for (const auto &item : items) {
    const auto value = get(item);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  bytes.resize((bytes.size() + 3) / 4 * 4, '\0');
}

/// In the format of zlib (RFC 1950).
std::string deflated(const std::string &bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  [[maybe_unused]] const int result =
      compress2(reinterpret_cast<Bytef *>(out.data()), &size,
                reinterpret_cast<const Bytef *>(bytes.data()), bytes.size(),
                Z_DEFAULT_COMPRESSION);
  // The output has room and the level exists; memory alone could fail.
  assert(result == Z_OK);
  out.resize(size);
  return out;
}

/// The numbers that the scripts draw, as JSON. No text from outside.
std::string chartData(const HtmlReportData &data) {
  std::string columns;
  std::string stages;
  for (const ReportStage &stage : data.stages) {
    const auto bars = [&](auto field) {
      addColumn(columns, stage.bars,
                [&](const ReportBar &bar) { return bar.*field; });
    };
    bars(&ReportBar::begin);
    bars(&ReportBar::end);
    bars(&ReportBar::work);
    bars(&ReportBar::chunk);
    bars(&ReportBar::microBatch);
    using Point = std::pair<float, float>;
    for (const auto field : {&Point::first, &Point::second}) {
      addColumn(columns, stage.memory,
                [&](const Point &point) { return point.*field; });
    }
    fmt::format_to(std::back_inserter(stages),
                   "{}{{\"bars\":{},\"points\":{}}}", stages.empty() ? "" : ",",
                   stage.bars.size(), stage.memory.size());
  }
  return fmt::format("{{\"total\":{},\"stages\":[{}],\"columns\":\"{}\"}}",
                     data.total, stages, base64(deflated(columns)));
}

std::string facts(const HtmlReportData &data) {
  std::string out;
  for (const auto &[name, value] : data.facts) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name),
                       escape(value));
  }
  return out;
}

/// The label of a chart's row; `detail` stands beside the name.
std::string label(const char *kind, size_t index, const ReportStage &stage,
                  const std::string &detail) {
  return fmt::format("<div class=\"{0}\" data-stage=\"{1}\" title=\"{2} {3}\">"
                     "<b>{2}</b> <span>{3}</span></div>\n",
                     kind, index, escape(stage.name), escape(detail));
}

std::string stageRows(const HtmlReportData &data) {
  std::string out;
  for (size_t i = 0; i < data.stages.size(); ++i) {
    out += label("stage-row", i, data.stages[i], data.stages[i].layers);
  }
  return out;
}

std::string memoryRows(const HtmlReportData &data) {
  std::string out;
  for (size_t i = 0; i < data.stages.size(); ++i) {
    float peak = 0;
    for (const auto &[time, bytes] : data.stages[i].memory) {
      peak = std::max(peak, bytes);
    }
    out += label("memory-row", i, data.stages[i],
                 humanBytes(static_cast<uint64_t>(peak)));
  }
  return out;
}

uint64_t totalOf(const ReportStage &stage) {
  uint64_t total = 0;
  for (const auto &[name, bytes] : stage.memoryParts) {
    total += bytes;
  }
  return total;
}

struct MemoryParts {
  std::string legend;
  /// For each stage a bar, as long as its share of the largest.
  std::string rows;
};

MemoryParts memoryParts(const HtmlReportData &data) {
  std::map<std::string_view, size_t> colours;
  MemoryParts out;
  uint64_t largest = 0;
  for (const ReportStage &stage : data.stages) {
    largest = std::max(largest, totalOf(stage));
    for (const auto &[name, bytes] : stage.memoryParts) {
      const size_t colour = colours.size() % kPartColours;
      if (colours.try_emplace(name, colour).second) {
        out.legend += fmt::format("<span><i class=\"part-{}\"></i>{}</span>\n",
                                  colour, escape(name));
      }
    }
  }
  for (const ReportStage &stage : data.stages) {
    const uint64_t total = totalOf(stage);
    out.rows += fmt::format("<div class=\"parts-row\"><b>{}</b><div>",
                            escape(stage.name));
    for (const auto &[name, bytes] : stage.memoryParts) {
      out.rows +=
          fmt::format("<i class=\"part-{}\" style=\"width:{:.4f}%\" "
                      "title=\"{}: {} ({:.1f}%)\"></i>",
                      colours[name], percent(bytes, largest), escape(name),
                      humanBytes(bytes), percent(bytes, total));
    }
    out.rows += fmt::format("</div><span>{}</span></div>\n", humanBytes(total));
  }
  return out;
}

/// Whether all cells of a column begin with a digit or are empty.
bool isNumeric(const ReportTable &table, size_t column) {
  return std::all_of(
      table.rows.begin(), table.rows.end(), [&](const auto &row) {
        return row[column].empty() ||
               std::isdigit(static_cast<unsigned char>(row[column][0])) != 0;
      });
}

std::string tables(const HtmlReportData &data) {
  std::string out;
  for (const ReportTable &table : data.tables) {
    const auto row = [&](const char *tag,
                         const std::vector<std::string> &cells) {
      assert(cells.size() == table.columns.size());
      out += "<tr>";
      for (size_t i = 0; i < cells.size(); ++i) {
        out += fmt::format("<{0}{1}>{2}</{0}>", tag,
                           isNumeric(table, i) ? " class=\"number\"" : "",
                           escape(cells[i]));
      }
      out += "</tr>\n";
    };
    out += fmt::format("<section><h2>{}</h2>\n<div class=\"table\"><table>\n"
                       "<thead>",
                       escape(table.title));
    row("th", table.columns);
    out += "</thead><tbody>\n";
    for (const auto &cells : table.rows) {
      row("td", cells);
    }
    out += "</tbody></table></div></section>\n";
  }
  return out;
}

/// The attribute that leaves out a section, unless some stage has content.
template <typename Field>
const char *hidden(const HtmlReportData &data, Field field) {
  const bool any =
      std::any_of(data.stages.begin(), data.stages.end(),
                  [&](const auto &stage) { return !(stage.*field).empty(); });
  return any ? "" : "hidden";
}

/// `page` with each {{name}} replaced by its value; values are not looked at.
std::string fill(std::string_view page,
                 const std::map<std::string_view, std::string> &values) {
  std::string out;
  while (true) {
    const size_t begin = page.find("{{");
    out += page.substr(0, begin);
    if (begin == std::string_view::npos) {
      return out;
    }
    const size_t end = page.find("}}", begin);
    out += values.at(page.substr(begin + 2, end - begin - 2));
    page.remove_prefix(end + 2);
  }
}

} // namespace

std::string renderHtml(const HtmlReportData &data) {
  const MemoryParts parts = memoryParts(data);
  return fill(
      kHtmlTemplate,
      {{"title", escape(data.title)},
       {"bubble", fmt::format("{:.1f}%", 100 * data.bubbleFraction)},
       {"total", fmt::format("{:.5g}", data.total)},
       {"unit", escape(data.timeUnit)},
       {"stages", std::to_string(data.stageCount == 0 ? data.stages.size()
                                                      : data.stageCount)},
       {"facts", facts(data)},
       {"timelineHidden", hidden(data, &ReportStage::bars)},
       {"stageRows", stageRows(data)},
       {"memoryHidden", hidden(data, &ReportStage::memory)},
       {"memoryRows", memoryRows(data)},
       {"partsHidden", hidden(data, &ReportStage::memoryParts)},
       {"partNames", parts.legend},
       {"partsSize", data.stages.size() > 16 ? "many" : ""},
       {"partsRows", parts.rows},
       {"tables", tables(data)},
       {"data", chartData(data)}});
}

} // namespace mega
