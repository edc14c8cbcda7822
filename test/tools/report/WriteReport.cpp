// write-report OUT STAGES MICRO-BATCHES [CHUNKS [SPLIT [TITLE]]]: a report with
// a plausible timeline, for tests of the page. Forward takes 1 ms for each
// chunk, backward 2; a stage takes what is ready, backward first. With SPLIT 1
// the second half of a backward is shown as its weight gradient.

#include "tools/report/HtmlReport.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <vector>

using namespace mega;

namespace {

constexpr float kState = 18e9F;
constexpr float kFrame = 700e6F;

/// Runs M micro-batches through P * V parts, part p on stage p % P.
class Simulation {
public:
  Simulation(int stages, int chunks, int microBatches)
      : stages(stages), parts(stages * chunks), microBatches(microBatches),
        forward(parts), backward(parts), freeAt(stages), alive(stages),
        out(stages) {}

  std::vector<ReportStage> run() {
    for (int stage = 0; stage < stages; ++stage) {
      out[stage].memory.emplace_back(0.0F, kState);
    }
    for (now = 0; backward[0].size() < static_cast<size_t>(microBatches);
         ++now) {
      for (int stage = 0; stage < stages; ++stage) {
        if (freeAt[stage] <= now) {
          start(stage);
        }
      }
    }
    return std::move(out);
  }

  int end() const { return *std::max_element(freeAt.begin(), freeAt.end()); }

private:
  using Ends = std::vector<int>;

  bool has(const Ends &ends, size_t microBatch) const {
    return microBatch < ends.size() && ends[microBatch] <= now;
  }

  void start(int stage) {
    for (int part = stage; part < parts; part += stages) {
      const size_t next = backward[part].size();
      if (has(forward[part], next) &&
          (part + 1 == parts || has(backward[part + 1], next))) {
        add(stage, part, 1, 2, backward[part]);
        return;
      }
    }
    for (int part = stage + parts - stages; part >= 0; part -= stages) {
      const size_t next = forward[part].size();
      const bool limited = part < stages && alive[stage] >= parts - stage;
      if (next < static_cast<size_t>(microBatches) && !limited &&
          (part == 0 || has(forward[part - 1], next))) {
        add(stage, part, 0, 1, forward[part]);
        return;
      }
    }
  }

  void add(int stage, int part, uint8_t work, int length, Ends &ends) {
    const auto begin = static_cast<float>(now);
    const auto end = static_cast<float>(now + length);
    out[stage].bars.push_back({begin, end, work,
                               static_cast<uint16_t>(part / stages),
                               static_cast<uint32_t>(ends.size())});
    ends.push_back(now + length);
    freeAt[stage] = now + length;
    alive[stage] += work == 0 ? 1 : -1;
    out[stage].memory.emplace_back(
        work == 0 ? begin : end,
        kState + kFrame * static_cast<float>(alive[stage]));
  }

  const int stages, parts, microBatches;
  int now = 0;
  /// By part, when each micro-batch was done.
  std::vector<Ends> forward, backward;
  std::vector<int> freeAt, alive;
  std::vector<ReportStage> out;
};

/// -1 if it is none.
int numberOf(std::string_view text) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

void splitBackwards(ReportStage &stage) {
  std::vector<ReportBar> bars;
  for (ReportBar bar : stage.bars) {
    if (bar.work == 1) {
      const float middle = (bar.begin + bar.end) / 2;
      bars.push_back({bar.begin, middle, 1, bar.chunk, bar.microBatch});
      bar.begin = middle;
      bar.work = 2;
    }
    bars.push_back(bar);
  }
  stage.bars = std::move(bars);
}

/// Names, layers and parts of the memory.
void describe(ReportStage &stage, int index, int stages) {
  const bool first = index == 0;
  const bool last = index + 1 == stages;
  stage.name = fmt::format("stage {}", index);
  stage.layers = fmt::format("{}3L{}", first ? "E " : "", last ? " H" : "");
  float peak = 0;
  for (const auto &[time, bytes] : stage.memory) {
    peak = std::max(peak, bytes);
  }
  stage.memoryParts = {{"state", static_cast<uint64_t>(kState)},
                       {"pool", static_cast<uint64_t>(peak - kState)},
                       {"boundary", 201326592},
                       {"carry", 100663296},
                       {"scratch", 1610612736},
                       {"input", 262144}};
}

HtmlReportData makeReport(int stages, int microBatches, int chunks) {
  HtmlReportData data;
  Simulation simulation(stages, chunks, microBatches);
  data.stages = simulation.run();
  data.total = simulation.end();
  data.timeUnit = "ms";
  data.bubbleFraction = 1 - 3.0 * chunks * microBatches / data.total;
  data.facts = {
      {"parameters", "174,600,544,256 (650.4 GiB as f32)"},
      {"mesh", fmt::format("tp 8, dp 4, pp {}", stages)},
      {"ranks", std::to_string(32 * stages)},
      {"schedule",
       chunks > 1 ? fmt::format("interleaved, vpp {}", chunks) : "1f1b"},
      {"batch", fmt::format("{} = {} micro-batches of 1 on 4 replicas",
                            4 * microBatches, microBatches)},
      {"sequence length", "2048"},
      {"precision", "bf16"}};
  data.tables = {
      {"Communication of a rank, per step",
       {"phase", "collective", "axes", "count", "bytes", "sent"},
       {{"forward", "all_gather", "tp", "6,144", "154,618,822,656",
         "126.0 GiB"},
        {"forward", "send", "pp", "512", "2,147,483,648", "2 GiB"},
        {"backward", "all_gather", "tp", "9,216", "231,928,233,984",
         "189.0 GiB"},
        {"finish", "all_reduce", "dp", "2", "1,364,066,752", "1.906 GiB"}}}};
  for (int i = 0; i < stages; ++i) {
    describe(data.stages[i], i, stages);
  }
  return data;
}

} // namespace

int main(int argc, char **argv) {
  const int stages = argc > 3 ? numberOf(argv[2]) : -1;
  const int microBatches = argc > 3 ? numberOf(argv[3]) : -1;
  const int chunks = argc > 4 ? numberOf(argv[4]) : 1;
  if (stages < 1 || microBatches < 1 || chunks < 1) {
    std::fprintf(stderr, "usage: write-report OUT STAGES MICRO-BATCHES [CHUNKS "
                         "[SPLIT [TITLE]]]\n");
    return 2;
  }
  HtmlReportData data = makeReport(stages, microBatches, chunks);
  data.title = argc > 6 ? argv[6] : "gpt3_175b";
  data.facts.insert(data.facts.begin(), {"model", data.title});
  if (argc > 5 && std::string_view(argv[5]) == "1") {
    std::for_each(data.stages.begin(), data.stages.end(), splitBackwards);
  }
  std::ofstream file(argv[1], std::ios::binary);
  file << renderHtml(data);
  return file.flush() ? 0 : 74;
}
