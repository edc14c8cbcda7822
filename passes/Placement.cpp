#include "passes/Placement.h"

#include <map>
#include <set>

namespace mega {
namespace {

/// Applications in the order in which the programs of one kind run them.
class Walk {
public:
  Walk(const char *suffix, bool backward, std::span<const std::string> blocks)
      : suffix(suffix), backward(backward), blocks(blocks) {}

  Status program(const plan::PlanT &stage, const plan::ProgramT &program) {
    for (const plan::Call &call : program.calls) {
      const std::string &function = stage.functions[call.function()]->name;
      if (!function.ends_with(suffix)) {
        // What a loss term records is no application.
        continue;
      }
      const std::string block =
          function.substr(0, function.size() - suffix.size());
      for (uint32_t i = 0; i < call.count(); ++i) {
        const uint32_t run = call.reverse() != 0 ? call.count() - 1 - i : i;
        MEGA_RETURN_IF_ERROR_CONTEXT(
            application(uint64_t{call.first_application()} + run, block),
            "stage {}: {}", stage.stage, program.name);
      }
    }
    return Status::ok();
  }

  Status end() const {
    return next == blocks.size()
               ? Status::ok()
               : makeError(Code::Internal,
                           "application {} of block {} is on no stage ({})",
                           expected(), blocks[expected()], suffix);
  }

private:
  uint64_t expected() const {
    return backward ? blocks.size() - 1 - next : next;
  }

  Status application(uint64_t number, const std::string &block) {
    if (next == blocks.size() || number != expected() ||
        block != blocks[expected()]) {
      return makeError(
          Code::Internal, "it runs application {} of block {}, expected {}",
          number, block,
          next == blocks.size()
              ? std::string("none")
              : fmt::format("{} of block {}", expected(), blocks[expected()]));
    }
    ++next;
    return Status::ok();
  }

  const std::string suffix;
  const bool backward;
  const std::span<const std::string> blocks;
  uint64_t next = 0;
};

/// The programs of a kind that an entry point runs, by part.
using Programs =
    std::map<uint32_t, std::pair<const plan::PlanT *, const plan::ProgramT *>>;

Programs programsOf(const plan::PlanT &whole, const std::string &entryName,
                    plan::ActionKind kind) {
  Programs programs;
  for (const auto &stage : whole.stages) {
    for (const auto &entry : stage->entry_points) {
      if (entry->name != entryName) {
        continue;
      }
      std::set<uint32_t> seen;
      for (const plan::Action &action : entry->stages.front()->actions) {
        if (seen.insert(action.program()).second) {
          const plan::ProgramT &program = *stage->programs[action.program()];
          if (program.kind == kind) {
            programs.emplace(program.part, std::pair(stage.get(), &program));
          }
        }
      }
    }
  }
  return programs;
}

} // namespace

Status verifyPlacement(const plan::PlanT &whole,
                       std::span<const std::string> blocks) {
  const auto walk = [&](const char *entry, plan::ActionKind kind,
                        const char *suffix) {
    const Programs programs = programsOf(whole, entry, kind);
    const bool backward = kind == plan::ActionKind::Backward;
    Walk all(suffix, backward, blocks);
    const auto visit = [&](const auto &each) {
      return all.program(*each.second.first, *each.second.second);
    };
    if (backward) {
      for (auto it = programs.rbegin(); it != programs.rend(); ++it) {
        MEGA_RETURN_IF_ERROR(visit(*it));
      }
    } else {
      for (const auto &each : programs) {
        MEGA_RETURN_IF_ERROR(visit(each));
      }
    }
    return all.end();
  };
  MEGA_RETURN_IF_ERROR(walk("train", plan::ActionKind::Forward, ".forward"));
  MEGA_RETURN_IF_ERROR(walk("train", plan::ActionKind::Backward, ".backward"));
  return walk("eval", plan::ActionKind::Forward, ".eval");
}

} // namespace mega
