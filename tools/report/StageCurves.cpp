#include "tools/report/StageCurves.h"

#include "runtime/plan/StepExecution.h"

#include <algorithm>
#include <map>

namespace mega {
namespace {

/// What one slot of saved frames, and one buffer between stages, take.
struct Strides {
  uint64_t slot = 0;
  uint64_t buffer = 0;
};

Strides stridesOf(const plan::Plan &stage) {
  // By region, the largest: all that use slots of a pool move alike.
  std::map<uint32_t, uint64_t> perSlot;
  const auto look = [&](const plan::Buffer &buffer) {
    if (buffer.space() == static_cast<uint8_t>(plan::Space::Region)) {
      uint64_t &most = perSlot[buffer.region()];
      most = std::max(most, static_cast<uint64_t>(buffer.per_slot()));
    }
  };
  for (uint32_t f = 0; f < length(stage.functions()); ++f) {
    for (const plan::Buffer &buffer :
         elements(stage.functions()->Get(f)->buffers())) {
      look(buffer);
    }
  }
  for (uint32_t p = 0; p < length(stage.programs()); ++p) {
    for (const plan::Buffer &buffer :
         elements(stage.programs()->Get(p)->arguments())) {
      look(buffer);
    }
  }
  Strides strides;
  for (uint32_t r = 0; r < length(stage.regions()); ++r) {
    const plan::Region &region = *stage.regions()->Get(r);
    // Without a stride there is one slot, the region itself.
    const uint64_t stride =
        perSlot[r] == 0 ? allocatedBytes(region) : perSlot[r];
    if (region.part() == plan::Part::Pool) {
      strides.slot += stride;
    } else if (region.part() == plan::Part::Boundary) {
      strides.buffer += stride;
    }
  }
  return strides;
}

uint64_t constantBytes(const plan::Plan &stage) {
  uint64_t bytes = 0;
  for (uint32_t r = 0; r < length(stage.regions()); ++r) {
    const plan::Region &region = *stage.regions()->Get(r);
    if (region.part() != plan::Part::Pool &&
        region.part() != plan::Part::Boundary) {
      bytes += allocatedBytes(region);
    }
  }
  return bytes;
}

/// Whether a program reads or writes a buffer between stages.
bool touchesBoundary(const plan::Plan &stage, const plan::Program &program) {
  const auto arguments = elements(program.arguments());
  return std::any_of(arguments.begin(), arguments.end(), [&](const auto &each) {
    return stage.regions()->Get(each.region())->part() == plan::Part::Boundary;
  });
}

/// What becomes alive when an action begins, and dead when it ends.
class Lives {
public:
  explicit Lives(const plan::Plan &stage)
      : stage(stage), actions(trainActions(stage)), strides(stridesOf(stage)),
        born(actions.size(), 0), dead(actions.size(), 0) {
    addSlots();
    addBuffers();
  }

  std::vector<std::pair<float, float>>
  over(std::span<const ActionTime> times) const {
    const uint64_t constant = constantBytes(stage);
    std::vector<std::pair<float, float>> points = {
        {0.0F, static_cast<float>(constant)}};
    uint64_t alive = constant;
    const auto add = [&](double time, uint64_t more, uint64_t less) {
      if (more != less) {
        alive = alive + more - less;
        points.emplace_back(static_cast<float>(time),
                            static_cast<float>(alive));
      }
    };
    for (size_t i = 0; i < actions.size(); ++i) {
      add(times[i].begin, born[i], 0);
      add(times[i].end, 0, dead[i]);
    }
    return points;
  }

private:
  const plan::Program &programOf(const plan::Action &action) const {
    return *stage.programs()->Get(action.program());
  }

  void addSlots() {
    std::map<uint32_t, size_t> readers;
    // Backwards, so that a slot's last reader is known at its forward.
    for (size_t i = actions.size(); i-- > 0;) {
      const plan::ActionKind kind = programOf(actions[i]).kind();
      if (isGradient(kind)) {
        readers.try_emplace(actions[i].slot(), i);
      } else if (kind == plan::ActionKind::Forward) {
        if (const auto it = readers.find(actions[i].slot());
            it != readers.end()) {
          born[i] += strides.slot;
          dead[it->second] += strides.slot;
          readers.erase(it);
        }
      }
    }
  }

  void addBuffers() {
    struct Life {
      size_t first;
      size_t last;
    };
    std::map<uint32_t, Life> lives;
    const auto end = [&](const Life &life) {
      born[life.first] += strides.buffer;
      dead[life.last] += strides.buffer;
    };
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!touchesBoundary(stage, programOf(actions[i]))) {
        continue;
      }
      const auto [it, fresh] =
          lives.try_emplace(actions[i].buffer(), Life{i, i});
      if (!fresh && isAnother(it->second.last, i)) {
        end(it->second);
        it->second = {i, i};
      }
      it->second.last = i;
    }
    for (const auto &[buffer, life] : lives) {
      end(life);
    }
  }

  /// Whether what action `next` finds in its buffer is not what `last` left in
  /// it, the one before that touched it.
  bool isAnother(size_t last, size_t next) const {
    const Kernel before = transferOf(stage, actions[last].program()).kernel;
    const Kernel after = transferOf(stage, actions[next].program()).kernel;
    const bool runs = isRun(programOf(actions[last]).kind()) &&
                      isRun(programOf(actions[next]).kind());
    // A part hands its result to the next one if that is on the same stage.
    const bool handedOver =
        programOf(actions[last]).kind() == programOf(actions[next]).kind() &&
        actions[last].micro_batch() == actions[next].micro_batch();
    return after == Kernel::ReceiveStart || before == Kernel::SendWait ||
           (runs && !handedOver);
  }

  const plan::Plan &stage;
  const std::span<const plan::Action> actions;
  const Strides strides;
  /// By action.
  std::vector<uint64_t> born;
  std::vector<uint64_t> dead;
};

} // namespace

std::vector<ReportBar> barsOf(const plan::Plan &stage,
                              std::span<const ActionTime> times,
                              std::span<const uint16_t> chunks) {
  std::vector<ReportBar> bars;
  const auto actions = trainActions(stage);
  for (size_t i = 0; i < actions.size(); ++i) {
    const plan::Program &program = *stage.programs()->Get(actions[i].program());
    if (isRun(program.kind())) {
      const auto work = static_cast<uint8_t>(workOf(program.kind()));
      bars.push_back({static_cast<float>(times[i].begin),
                      static_cast<float>(times[i].end), work,
                      chunks[program.part()], actions[i].micro_batch()});
    }
  }
  return bars;
}

std::vector<std::pair<float, float>>
memoryOf(const plan::Plan &stage, std::span<const ActionTime> times) {
  return Lives(stage).over(times);
}

} // namespace mega
