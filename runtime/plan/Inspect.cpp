//===- Inspect.cpp - A plan as text ---------------------------------------===//
#include "runtime/plan/Inspect.h"

#include "runtime/plan/Communication.h"
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/LogicalParameters.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/Report.h"
#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/StageMap.h"
#include "runtime/plan/StepTimes.h"

#include <iterator>
#include <map>

namespace mega {
namespace {

using Out = std::back_insert_iterator<std::string>;

/// What becomes of the tokens of a row, if not simply all of it.
std::string sequenceText(const plan::Plan &plan) {
  std::string text = plan.packed() ? "; documents are kept apart" : "";
  if (meshOf(plan).size(Axis::Cp) > 1) {
    text +=
        fmt::format("; rows are {} over cp",
                    name(static_cast<SequenceOrder>(plan.sequence_order())));
  }
  return text;
}

std::string address(const plan::Plan &plan, const plan::Buffer &buffer) {
  if (buffer.space() == static_cast<uint8_t>(plan::Space::Argument)) {
    return buffer.offset() == 0
               ? fmt::format("%{}", buffer.region())
               : fmt::format("%{}[{}]", buffer.region(), buffer.offset());
  }
  std::string inside = std::to_string(buffer.offset());
  for (const auto &[stride, letter] :
       {std::pair(buffer.per_instance(), 'i'),
        std::pair(buffer.per_slot(), 's'), std::pair(buffer.per_frame(), 'f'),
        std::pair(buffer.per_micro_batch(), 'm')}) {
    if (stride != 0) {
      inside += fmt::format(" + {}{}", stride, letter);
    }
  }
  if (buffer.per_piece() != 0) {
    std::string over;
    for (const Axis axis : pieceAxes(plan, buffer)) {
      over += over.empty() ? "" : " x ";
      over += name(axis);
    }
    inside += fmt::format(" + {}*{}", buffer.per_piece(), over);
  }
  return fmt::format(
      "{}[{}]", text(plan.regions()->Get(buffer.region())->name()), inside);
}

void printIdentity(Out out, const LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.root();
  fmt::format_to(out, "plan        {}\n", text(plan.model()));
  fmt::format_to(out, "hash        {}\n", loaded.hash());
  fmt::format_to(out, "size        {} ({} bytes)\n",
                 humanBytes(loaded.bytes().size()), loaded.bytes().size());
  fmt::format_to(out, "format      version {}, schema {:016x}\n",
                 plan.version(), plan.schema());
  fmt::format_to(out, "compiler    {}\n", text(plan.compiler()));
  fmt::format_to(out, "options     {}\n", text(plan.options()));
  const std::string mesh = meshText(plan);
  fmt::format_to(out, "mesh        {}\n", mesh.empty() ? "one rank" : mesh);
  fmt::format_to(out,
                 "batch       {} sequences per step, {} per micro-batch, {} "
                 "tokens each, vocabulary {}\n",
                 plan.global_batch_size(), plan.micro_batch_size(),
                 plan.sequence_length(), plan.vocabulary());
  std::string_view separator = "inputs      ";
  for (const plan::Input *input : *stagePlan(plan, 0).inputs()) {
    fmt::format_to(out, "{}{}{}", separator, text(input->name()),
                   input->limit() == kNoLimit
                       ? ""
                       : fmt::format(" (below {})", input->limit()));
    separator = ", ";
  }
  fmt::format_to(out, "{}\n", sequenceText(plan));
  fmt::format_to(out, "work        {:.4g} GFLOP per step\n\n",
                 static_cast<double>(plan.flops_per_step()) * 1e-9);
}

void printMemory(Out out, const plan::Plan &plan) {
  const uint64_t total = allocatedBytes(plan);
  fmt::format_to(out, "memory: {} ({} bytes), and {} in reserve\n",
                 humanBytes(total), total, humanBytes(plan.reserve_bytes()));
  for (const auto &[part, bytes] : allocatedByPart(plan)) {
    fmt::format_to(out, "  {:<20}{:>16}{:>12}{:>7.1f}%\n",
                   plan::EnumNamePart(part), bytes, humanBytes(bytes),
                   percent(bytes, total));
    for (uint32_t i = 0; i < length(plan.regions()); ++i) {
      const plan::Region &region = *plan.regions()->Get(i);
      if (region.part() == part) {
        const uint64_t own = allocatedBytes(region);
        fmt::format_to(
            out, "    {:<18}{:>16}{:>12}{:>7.1f}%{}\n", text(region.name()),
            own, humanBytes(own), percent(own, total),
            region.copies() > 1 ? fmt::format("  {} copies", region.copies())
                                : "");
      }
    }
  }
}

void printCommunication(Out out, const plan::Plan &plan) {
  if (length(plan.groups()) == 0) {
    return;
  }
  fmt::format_to(out, "\ncommunication of a rank, per step (mean sizes)\n");
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    for (const CommunicationTotal &total : communicationOf(plan, entry)) {
      fmt::format_to(out, "  {:<6} {:<9} {:<15} {:<8} {:>8} x {:>14} bytes\n",
                     text(entry.name()), plan::EnumNameActionKind(total.phase),
                     total.name(), total.axes, total.count,
                     total.bytes / std::max<uint64_t>(total.count, 1));
    }
  }
}

void printParameters(Out out, const plan::Plan &plan) {
  fmt::format_to(out, "\nparameters: {} ({})\n", plan.parameter_count(),
                 humanCount(plan.parameter_count()));
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    std::string shape;
    for (uint64_t extent : elements(parameter.shape())) {
      shape += fmt::format("{}{}", shape.empty() ? "" : "x", extent);
    }
    std::string initial = plan::EnumNameInitializer(parameter.initializer());
    if (parameter.initializer() == plan::Initializer::Normal ||
        parameter.initializer() == plan::Initializer::Constant) {
      initial += fmt::format("({})", parameter.value());
    }
    const std::string first = logicalName(parameter, 0);
    const std::string names =
        parameter.count() == 1
            ? first
            : fmt::format("{} .. {}", first,
                          logicalName(parameter, parameter.count() - 1));
    const Layout layout = layoutOf(plan, *parameter.weight());
    fmt::format_to(out, "  {:<48} {:>14}  {}{}{}\n", names, shape, initial,
                   parameter.decay() ? "  decay" : "",
                   layout.isInvariant() ? ""
                                        : fmt::format("  <{}>", layout.str()));
  }
}

void printFunctions(Out out, const plan::Plan &plan) {
  for (uint32_t f = 0; f < length(plan.functions()); ++f) {
    const plan::Function &function = *plan.functions()->Get(f);
    std::string arguments;
    const auto types = elements(function.arguments());
    for (size_t i = 0; i < types.size(); ++i) {
      arguments += fmt::format("{}%{}: {}", i == 0 ? "" : ", ", i,
                               toString(bufferType(types[i])));
    }
    fmt::format_to(out, "\nfunction {}({})  {:.4g} GFLOP\n",
                   text(function.name()), arguments,
                   static_cast<double>(function.flops()) * 1e-9);
    for (const plan::Launch &launch : elements(function.launches())) {
      fmt::format_to(out, "  {}\n", launchText(plan, function, launch));
    }
  }
}

void printPrograms(Out out, const plan::Plan &plan) {
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    const plan::Program &program = *plan.programs()->Get(p);
    fmt::format_to(out, "\nprogram {} ({}{})\n", text(program.name()),
                   plan::EnumNameActionKind(program.kind()),
                   isPerMicroBatch(program.kind()) &&
                           meshOf(plan).size(Axis::Pp) > 1
                       ? fmt::format(" of part {}", program.part())
                       : "");
    for (const plan::Call &call : elements(program.calls())) {
      const plan::Function &function = *plan.functions()->Get(call.function());
      std::string arguments;
      for (uint32_t i = 0; i < length(function.arguments()); ++i) {
        arguments += fmt::format(
            "{}{}", i == 0 ? "" : ", ",
            address(plan,
                    elements(program.arguments())[call.first_argument() + i]));
      }
      fmt::format_to(out, "  {}({})", text(function.name()), arguments);
      if (call.count() > 1) {
        fmt::format_to(out, " x{}{}", call.count(),
                       call.reverse() ? " reverse" : "");
      }
      fmt::format_to(out, " application {} instance {} frame {}\n",
                     call.first_application(), call.first_instance(),
                     call.first_frame());
    }
  }
}

void printSchedules(Out out, const plan::Plan &plan) {
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    fmt::format_to(out, "\nentry point {}: {} micro-batches\n",
                   text(entry.name()), entry.micro_batches());
    const plan::Stage &stage = *entry.stages()->Get(0);
    fmt::format_to(out, "  stage {}: {} actions: {}\n", plan.stage(),
                   length(stage.actions()), scheduleText(plan, stage));
  }
  fmt::format_to(out, "\nloss\n");
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    fmt::format_to(out, "  {}: {} * {} / {}\n", text(term.name()),
                   term.weight(), address(plan, *term.sum()),
                   address(plan, *term.count()));
  }
}

struct Section {
  const char *name;
  void (*print)(Out out, const plan::Plan &plan);
};
constexpr Section kSections[] = {
    {"memory", printMemory},         {"communication", printCommunication},
    {"parameters", printParameters}, {"functions", printFunctions},
    {"programs", printPrograms},     {"schedule", printSchedules},
};

/// Stage after stage. A section that was printed for an earlier stage is named
/// and not repeated: stages of one kind differ in a few numbers only.
void printStages(Out out, const plan::Plan &plan) {
  const std::vector<PartPlacement> parts = partPlacements(plan);
  fmt::format_to(out, "schedule    {}\nstages      {}\n", scheduleName(plan),
                 stageCount(plan));
  std::map<std::string, int64_t> printed;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    fmt::format_to(out, "\nstage {}: {}\n", s, stageContent(parts, s));
    for (const Section &section : kSections) {
      std::string own;
      section.print(Out(own), stage);
      const auto [it, fresh] = printed.try_emplace(own, s);
      if (fresh) {
        fmt::format_to(out, "{}", own);
      } else if (!own.empty()) {
        fmt::format_to(out, "\n{}: as of stage {}\n", section.name, it->second);
      }
    }
  }
}

} // namespace

std::string humanCount(uint64_t count) {
  constexpr const char *kUnits[] = {"", " K", " M", " G", " T"};
  auto value = static_cast<double>(count);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? std::to_string(count)
                   : fmt::format("{:.1f}{}", value, kUnits[unit]);
}

std::string launchText(const plan::Plan &plan, const plan::Function &function,
                       const plan::Launch &launch) {
  const KernelSpec &spec = kernelSpec(static_cast<Kernel>(launch.kernel()));
  std::string line = fmt::format("{}(", spec.name);
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const plan::Buffer &buffer = elements(function.buffers())[elements(
        function.operands())[launch.first_operand() + i]];
    line += (i == 0 ? "" : ", ") + address(plan, buffer);
  }
  std::string attributes;
  for (size_t i = 0; i < spec.integers.size(); ++i) {
    const uint32_t index = launch.first_integer() + static_cast<uint32_t>(i);
    attributes += fmt::format(" {}", elements(function.integers())[index]);
    for (const plan::CoordinateTerm &term : elements(function.terms())) {
      if (term.integer() == index) {
        attributes += fmt::format("+{}*{}", term.coefficient(),
                                  name(static_cast<Axis>(term.axis())));
      }
    }
  }
  for (size_t i = 0; i < spec.floats.size(); ++i) {
    attributes += fmt::format(
        " {}", elements(function.floats())[launch.first_float() + i]);
  }
  return line + (attributes.empty() ? "" : ";" + attributes) + ")";
}

std::string scheduleText(const plan::Plan &plan, const plan::Stage &stage) {
  std::string line;
  const auto actions = elements(stage.actions());
  for (size_t i = 0; i < actions.size();) {
    size_t end = i;
    while (end < actions.size() &&
           actions[end].program() == actions[i].program()) {
      ++end;
    }
    line += line.empty() ? "" : ", ";
    line += text(plan.programs()->Get(actions[i].program())->name());
    if (end - i > 1) {
      line += fmt::format(" x{}", end - i);
    }
    i = end;
    // A schedule of thousands of actions is told by its start.
    if (line.size() > 400 && i < actions.size()) {
      return line + fmt::format(", ... {} more", actions.size() - i);
    }
  }
  return line;
}

std::string inspectText(const LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.root();
  std::string all;
  const Out out(all);
  printIdentity(out, loaded);
  if (stageCount(plan) > 1) {
    printStages(out, plan);
    return all;
  }
  for (const Section &section : kSections) {
    section.print(out, plan);
  }
  return all;
}

} // namespace mega
