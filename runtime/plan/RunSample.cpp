#include "runtime/plan/RunSample.h"

#include "runtime/plan/CallEffects.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace mega {
namespace {

/// Executed at the beginning and at the end of a stack: the first run differs
/// from the second in what it finds, the last from those before in what
/// follows.
constexpr uint32_t kAtBegin = 3;
constexpr uint32_t kAtEnd = 2;

bool isStack(const plan::Call &call) {
  return call.count() > kAtBegin + kAtEnd;
}

} // namespace

class SampleBuilder {
public:
  explicit SampleBuilder(const plan::Plan &plan) : plan(plan) {}

  /// False if the stacks of the plan are not alike.
  bool build(RunSample &sample) {
    collect();
    if (ranges.empty() || !rangesAreApart() || !findCells() ||
        !cellsAreApart() || !slotsAreApart() || !checkOthers() ||
        !checkParameters()) {
      return false;
    }
    for (const auto &[first, count] : ranges) {
      std::set<uint32_t> &runs = stand[count];
      for (uint32_t i = 0; i < kAtBegin; ++i) {
        runs.insert(i);
      }
      for (uint32_t i = 0; i < kAtEnd; ++i) {
        runs.insert(count - 1 - i);
      }
    }
    for (const auto &[count, runs] : stand) {
      sample.executed[count].assign(runs.begin(), runs.end());
    }
    sample.cells = std::move(cells);
    return true;
  }

private:
  using Range = std::pair<uint32_t, uint32_t>; // first application, count

  struct CallTouch {
    Touch touch;
    uint32_t count;
    bool ofStack;
  };

  void collect() {
    for (uint32_t p = 0; p < length(plan.programs()); ++p) {
      const plan::Program &program = *plan.programs()->Get(p);
      const auto calls = elements(program.calls());
      const bool runs = isRun(program.kind());
      for (uint32_t c = 0; c < calls.size(); ++c) {
        const bool stack = runs && isStack(calls[c]);
        const Range range = {calls[c].first_application(), calls[c].count()};
        if (runs) {
          allRanges.insert(range);
        }
        if (stack) {
          ranges.insert(range);
        }
        const uint32_t launches =
            length(plan.functions()->Get(calls[c].function())->launches());
        for (uint32_t l = 0; l < launches; ++l) {
          for (Touch &touch : touchesOf(plan, p, c, l)) {
            if (!isScratch(partOf(plan, touch.space.region))) {
              (runs ? ofRuns : ofOthers)
                  .push_back({touch, calls[c].count(), stack});
            }
          }
        }
      }
    }
  }

  /// Applications of a stack are run in no other division.
  bool rangesAreApart() const {
    uint64_t end = 0;
    for (const auto &[first, count] : allRanges) {
      if (first < end) {
        return false;
      }
      end = uint64_t{first} + count;
    }
    return true;
  }

  bool findCells() {
    for (const CallTouch &each : ofRuns) {
      const Touch &touch = each.touch;
      if (!each.ofStack || touch.perRun == 0) {
        continue;
      }
      const RunSample::Cells own = {touch.space.region, touch.box.begin,
                                    touch.perRun, each.count, touch.box.end()};
      if (own.stride < 0 || touch.space.perMicroBatch != 0 || !merge(own)) {
        return false;
      }
      perSlot[own.region].insert(touch.space.perSlot);
    }
    return true;
  }

  /// All cells of a slot come before those of the next.
  bool slotsAreApart() const {
    return std::all_of(cells.begin(), cells.end(), [&](const auto &own) {
      const std::set<int64_t> &strides = perSlot.at(own.region);
      return std::all_of(strides.begin(), strides.end(), [&](int64_t stride) {
        return stride == 0 || stride >= own.last() - own.begin;
      });
    });
  }

  /// Into the cells of the same runs, or new ones.
  bool merge(const RunSample::Cells &own) {
    for (RunSample::Cells &known : cells) {
      if (known.region != own.region || known.stride != own.stride ||
          known.count != own.count) {
        continue;
      }
      const int64_t begin = std::min(known.begin, own.begin);
      const int64_t end = std::max(known.end, own.end);
      if (end - begin <= own.stride) {
        known.begin = begin;
        known.end = end;
        return true;
      }
    }
    cells.push_back(own);
    return own.end - own.begin <= own.stride;
  }

  bool cellsAreApart() const {
    for (size_t i = 0; i < cells.size(); ++i) {
      for (size_t j = i + 1; j < cells.size(); ++j) {
        if (cells[i].region == cells[j].region &&
            cells[i].begin < cells[j].last() &&
            cells[j].begin < cells[i].last()) {
          return false;
        }
      }
    }
    return true;
  }

  /// Other touches meet no cells, or, outside of micro-batches, all but for
  /// boundaries.
  bool checkOthers() {
    for (const CallTouch &each : ofRuns) {
      const Touch &touch = each.touch;
      if (each.ofStack && touch.perRun != 0) {
        continue;
      }
      if (meets(each)) {
        return false;
      }
    }
    for (const CallTouch &each : ofOthers) {
      if (!meets(each)) {
        continue;
      }
      if (!each.touch.box.isInterval() || each.touch.perRun != 0) {
        return false;
      }
      for (const RunSample::Cells &own : cells) {
        if (own.region == each.touch.space.region) {
          standAround(own, each.touch.box.begin);
          standAround(own, each.touch.box.end());
        }
      }
    }
    return true;
  }

  bool meets(const CallTouch &each) const {
    const Touch &touch = each.touch;
    const int64_t far = touch.perRun * (int64_t{each.count} - 1);
    const int64_t begin = touch.box.begin + std::min<int64_t>(far, 0);
    const int64_t end = touch.box.end() + std::max<int64_t>(far, 0);
    return std::any_of(cells.begin(), cells.end(),
                       [&](const RunSample::Cells &own) {
                         return own.region == touch.space.region &&
                                begin < own.last() && own.begin < end;
                       });
  }

  /// The cells before, at and after a boundary are executed.
  void standAround(const RunSample::Cells &own, int64_t boundary) {
    if (boundary <= own.begin || boundary >= own.last()) {
      return;
    }
    const int64_t cell = (boundary - own.begin) / own.stride;
    for (int64_t i = std::max<int64_t>(cell - 1, 0);
         i <= std::min(cell + 1, int64_t{own.count} - 1); ++i) {
      stand[own.count].insert(static_cast<uint32_t>(i));
    }
  }

  bool checkParameters() {
    for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
      const plan::Parameter &parameter = *plan.parameters()->Get(i);
      for (const plan::Buffer *buffer :
           {parameter.weight(), parameter.gradient(), parameter.compute()}) {
        if (buffer && !checkEntry(parameter, *buffer)) {
          return false;
        }
      }
    }
    return true;
  }

  bool checkEntry(const plan::Parameter &parameter,
                  const plan::Buffer &buffer) {
    const int64_t begin =
        buffer.offset() +
        int64_t{parameter.first_instance()} * buffer.per_instance();
    const int64_t bytes = bufferType(buffer).extentBytes();
    const int64_t last =
        begin + (int64_t{parameter.count()} - 1) * buffer.per_instance();
    for (const RunSample::Cells &own : cells) {
      if (own.region != buffer.region() || begin >= own.last() ||
          last + bytes <= own.begin) {
        continue;
      }
      if (parameter.count() > 1 && buffer.per_instance() != own.stride) {
        return false;
      }
      // From the begin of a cell on, also where the cells begin later.
      const int64_t into =
          ((begin - own.begin) % own.stride + own.stride) % own.stride;
      if (into + bytes > own.stride) {
        return false;
      }
      standAround(own, begin);
      standAround(own, last + bytes);
    }
    return true;
  }

  const plan::Plan &plan;
  /// Of stacks.
  std::set<Range> ranges;
  std::set<Range> allRanges;
  std::vector<CallTouch> ofRuns;
  std::vector<CallTouch> ofOthers;
  std::vector<RunSample::Cells> cells;
  /// Of what lies in cells, by region.
  std::map<uint32_t, std::set<int64_t>> perSlot;
  std::map<uint32_t, std::set<uint32_t>> stand;
};

RunSample::RunSample(const plan::Plan &plan) {
  RunSample sample;
  if (SampleBuilder(plan).build(sample)) {
    *this = std::move(sample);
  }
}

std::vector<uint32_t> RunSample::runsOf(const plan::Call &call,
                                        plan::ActionKind kind) const {
  std::vector<uint32_t> runs;
  const auto it = executed.find(call.count());
  if (isRun(kind) && it != executed.end()) {
    runs = it->second;
  } else {
    runs.resize(call.count());
    std::iota(runs.begin(), runs.end(), 0U);
  }
  if (call.reverse()) {
    std::reverse(runs.begin(), runs.end());
  }
  return runs;
}

bool RunSample::isLeftOut(uint32_t region, int64_t byte) const {
  return std::any_of(cells.begin(), cells.end(), [&](const Cells &own) {
    if (own.region != region || byte < own.begin || byte >= own.last()) {
      return false;
    }
    const std::vector<uint32_t> &runs = executed.at(own.count);
    return !std::binary_search(
        runs.begin(), runs.end(),
        static_cast<uint32_t>((byte - own.begin) / own.stride));
  });
}

} // namespace mega
