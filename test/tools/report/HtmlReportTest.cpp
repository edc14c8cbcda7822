#include "tools/report/HtmlReport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>

using namespace mega;
using testing::HasSubstr;
using testing::Not;

namespace {

HtmlReportData small() {
  HtmlReportData data;
  data.title = "tiny";
  data.facts = {{"model", "tiny"}};
  data.bubbleFraction = 0.25;
  data.total = 4;
  data.timeUnit = "ms";
  data.stages = {{"stage 0", "E 2L", {{0, 1, 0, 0, 7}}, {}, {}},
                 {"stage 1", "2L H", {{1, 2, 0, 0, 7}}, {}, {}}};
  return data;
}

size_t occurrences(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

/// The columns of a page.
std::string inflated(const std::string &page) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "abcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::string_view kBegin = "\"columns\":\"";
  size_t at = page.find(kBegin) + kBegin.size();
  std::string packed;
  for (uint32_t group = 0, bits = 0; page[at] != '"' && page[at] != '='; ++at) {
    group = group << 6 | static_cast<uint32_t>(kDigits.find(page[at]));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      packed += static_cast<char>(group >> bits);
    }
  }
  std::string bytes(4096, '\0');
  uLongf size = bytes.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef *>(bytes.data()), &size,
                       reinterpret_cast<const Bytef *>(packed.data()),
                       packed.size()),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

} // namespace

TEST(HtmlReport, HasARowForEachStage) {
  const std::string page = renderHtml(small());
  EXPECT_EQ(occurrences(page, "class=\"stage-row\""), 2U);
  EXPECT_THAT(page, HasSubstr("data-stage=\"1\" title=\"stage 1 2L H\""));
  EXPECT_THAT(page, HasSubstr("25.0%"));
  EXPECT_EQ(page, renderHtml(small()));
}

TEST(HtmlReport, HoldsColumnsDeflatedInBase64) {
  const std::string page = renderHtml(small());
  EXPECT_THAT(page,
              HasSubstr("\"stages\":[{\"bars\":1,\"points\":0},{\"bars\":1"));
  const std::string bytes = inflated(page);
  // begin, end, work and chunk, micro-batch of the first stage's one bar.
  const std::array<uint32_t, 5> words = {0, std::bit_cast<uint32_t>(1.0F), 0, 0,
                                         7};
  ASSERT_GE(bytes.size(), sizeof(words));
  EXPECT_EQ(std::memcmp(bytes.data(), words.data(), sizeof(words)), 0);
}

TEST(HtmlReport, LeavesOutWhatIsEmpty) {
  HtmlReportData data = small();
  EXPECT_THAT(renderHtml(data), HasSubstr("id=\"memory\" hidden"));
  EXPECT_THAT(renderHtml(data), HasSubstr("id=\"parts\" hidden"));
  data.stages[1].memory = {{0, 1024}};
  data.stages[1].memoryParts = {{"state", 1024}};
  EXPECT_THAT(renderHtml(data), Not(HasSubstr("id=\"memory\" hidden")));
  EXPECT_THAT(renderHtml(data), Not(HasSubstr("id=\"parts\" hidden")));
  EXPECT_THAT(renderHtml({}), HasSubstr("id=\"timeline\" hidden"));
}

TEST(HtmlReport, EscapesAllText) {
  const std::string evil = "</script><b a='\"'>&{{data}}";
  HtmlReportData data = small();
  data.title = data.timeUnit = evil;
  data.facts = {{evil, evil}};
  data.tables = {{evil, {evil}, {{evil}}}};
  for (ReportStage &stage : data.stages) {
    stage.name = stage.layers = evil;
    stage.memory = {{0, 1024}};
    stage.memoryParts = {{evil, 1024}};
  }
  const std::string page = renderHtml(data);
  EXPECT_THAT(page, Not(HasSubstr("<b a=")));
  EXPECT_THAT(page, HasSubstr("<h1>&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;"
                              "&amp;{{data}}</h1>"));
  EXPECT_EQ(occurrences(page, "</script>"),
            occurrences(renderHtml(small()), "</script>"));
}

TEST(HtmlReport, AlignsColumnsOfNumbers) {
  HtmlReportData data = small();
  data.tables = {{"t", {"axis", "bytes"}, {{"tp", "12 KiB"}, {"dp", ""}}}};
  const std::string page = renderHtml(data);
  EXPECT_THAT(page, HasSubstr("<tr><th>axis</th><th class=\"number\">bytes"));
  EXPECT_THAT(page, HasSubstr("<tr><td>tp</td><td class=\"number\">12 KiB"));
}

TEST(HtmlReport, IsSmallForManyBars) {
  HtmlReportData data = small();
  data.stages.assign(64, {"stage", "3L", {}, {}, {}});
  for (ReportStage &stage : data.stages) {
    for (uint32_t i = 0; i < 1024; ++i) {
      const auto time = static_cast<float>(i);
      stage.bars.push_back({time, time + 1, 1, 1, i / 2});
      stage.memory.emplace_back(time, 1e9F + time);
    }
  }
  EXPECT_LE(renderHtml(data).size(), 5'000'000U);
}

TEST(HtmlReport, RefersToNothingOutside) {
  const std::string page = renderHtml(small());
  for (const char *reference : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}
