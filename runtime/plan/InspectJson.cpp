//===- InspectJson.cpp - A plan as JSON -----------------------------------===//
#include "runtime/plan/Communication.h"
#include "runtime/plan/Inspect.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/StageMap.h"

#include <nlohmann/json.hpp>

namespace mega {
namespace {

using Json = nlohmann::ordered_json;

Json bufferJson(const plan::Plan &plan, const plan::Buffer &buffer) {
  Json json = {{"type", toString(bufferType(buffer))}};
  if (buffer.space() == static_cast<uint8_t>(plan::Space::Argument)) {
    json["argument"] = buffer.region();
  } else {
    json["region"] = text(plan.regions()->Get(buffer.region())->name());
  }
  json["offset"] = buffer.offset();
  for (const auto &[what, stride] :
       {std::pair("per_instance", buffer.per_instance()),
        std::pair("per_slot", buffer.per_slot()),
        std::pair("per_frame", buffer.per_frame()),
        std::pair("per_micro_batch", buffer.per_micro_batch())}) {
    if (stride != 0) {
      json[what] = stride;
    }
  }
  return json;
}

Json memoryJson(const plan::Plan &plan) {
  Json regions = Json::array();
  Json parts = Json::object();
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    const plan::Region &region = *plan.regions()->Get(i);
    const char *part = plan::EnumNamePart(region.part());
    regions.push_back({{"name", text(region.name())},
                       {"part", part},
                       {"bytes", region.bytes()},
                       {"copies", region.copies()},
                       {"allocated", allocatedBytes(region)}});
    parts[part] = parts.value(part, uint64_t{0}) + allocatedBytes(region);
  }
  return {{"bytes", allocatedBytes(plan)},
          {"reserve", plan.reserve_bytes()},
          {"parts", parts},
          {"regions", regions}};
}

Json parametersJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    const auto shape = elements(parameter.shape());
    all.push_back(
        {{"prefix", text(parameter.prefix())},
         {"name", text(parameter.name())},
         {"first_index", parameter.first_index()},
         {"index_step", parameter.index_step()},
         {"count", parameter.count()},
         {"shape", std::vector<uint64_t>(shape.begin(), shape.end())},
         {"initializer", plan::EnumNameInitializer(parameter.initializer())},
         {"value", parameter.value()},
         {"decay", parameter.decay()},
         {"weight", bufferJson(plan, *parameter.weight())},
         {"gradient", bufferJson(plan, *parameter.gradient())}});
  }
  return all;
}

Json launchJson(const plan::Plan &plan, const plan::Function &function,
                const plan::Launch &launch) {
  const KernelSpec &spec = kernelSpec(static_cast<Kernel>(launch.kernel()));
  Json json = {{"kernel", spec.name},
               {"location", text(plan.locations()->Get(launch.location()))}};
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    json["operands"][std::string(spec.operands[i].name)] =
        elements(function.operands())[launch.first_operand() + i];
  }
  for (size_t i = 0; i < spec.integers.size(); ++i) {
    json["integers"][std::string(spec.integers[i])] =
        elements(function.integers())[launch.first_integer() + i];
  }
  for (size_t i = 0; i < spec.floats.size(); ++i) {
    json["floats"][std::string(spec.floats[i])] =
        elements(function.floats())[launch.first_float() + i];
  }
  return json;
}

Json functionsJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t f = 0; f < length(plan.functions()); ++f) {
    const plan::Function &function = *plan.functions()->Get(f);
    Json json = {{"name", text(function.name())},
                 {"flops", function.flops()},
                 {"arguments", Json::array()},
                 {"buffers", Json::array()},
                 {"launches", Json::array()}};
    for (const plan::Buffer &buffer : elements(function.arguments())) {
      json["arguments"].push_back(toString(bufferType(buffer)));
    }
    for (const plan::Buffer &buffer : elements(function.buffers())) {
      json["buffers"].push_back(bufferJson(plan, buffer));
    }
    for (const plan::Launch &launch : elements(function.launches())) {
      json["launches"].push_back(launchJson(plan, function, launch));
    }
    all.push_back(std::move(json));
  }
  return all;
}

Json programsJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    const plan::Program &program = *plan.programs()->Get(p);
    Json calls = Json::array();
    for (const plan::Call &call : elements(program.calls())) {
      const plan::Function &function = *plan.functions()->Get(call.function());
      Json arguments = Json::array();
      for (uint32_t i = 0; i < length(function.arguments()); ++i) {
        arguments.push_back(bufferJson(
            plan, elements(program.arguments())[call.first_argument() + i]));
      }
      calls.push_back({{"function", text(function.name())},
                       {"count", call.count()},
                       {"first_application", call.first_application()},
                       {"first_instance", call.first_instance()},
                       {"first_frame", call.first_frame()},
                       {"reverse", call.reverse() != 0},
                       {"arguments", std::move(arguments)}});
    }
    all.push_back({{"name", text(program.name())},
                   {"kind", plan::EnumNameActionKind(program.kind())},
                   {"part", program.part()},
                   {"calls", std::move(calls)}});
  }
  return all;
}

Json entryPointsJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    Json stages = Json::array();
    for (uint32_t s = 0; s < length(entry.stages()); ++s) {
      const plan::Stage &stage = *entry.stages()->Get(s);
      stages.push_back({{"actions", length(stage.actions())},
                        {"schedule", scheduleText(plan, stage)}});
    }
    all.push_back({{"name", text(entry.name())},
                   {"micro_batches", entry.micro_batches()},
                   {"stages", std::move(stages)}});
  }
  return all;
}

Json lossJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    all.push_back({{"name", text(term.name())},
                   {"weight", term.weight()},
                   {"sum", bufferJson(plan, *term.sum())},
                   {"count", bufferJson(plan, *term.count())}});
  }
  return all;
}

Json communicationJson(const plan::Plan &plan) {
  Json all = Json::array();
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    for (const CommunicationTotal &total : communicationOf(plan, entry)) {
      all.push_back({{"entry_point", text(entry.name())},
                     {"phase", plan::EnumNameActionKind(total.phase)},
                     {"collective", total.name()},
                     {"axes", total.axes},
                     {"ranks", total.size},
                     {"count", total.count},
                     {"bytes", total.bytes},
                     {"sent_bytes", total.sentBytes()}});
    }
  }
  return all;
}

/// What is executed: of the plan, or of each of its stages.
void addExecution(Json &json, const plan::Plan &plan) {
  json["flops_per_step"] = plan.flops_per_step();
  json["memory"] = memoryJson(plan);
  json["communication"] = communicationJson(plan);
  json["parameter_count"] = plan.parameter_count();
  json["parameters"] = parametersJson(plan);
  json["functions"] = functionsJson(plan);
  json["programs"] = programsJson(plan);
  json["entry_points"] = entryPointsJson(plan);
  json["loss_terms"] = lossJson(plan);
}

Json stagesJson(const plan::Plan &plan) {
  const std::vector<PartPlacement> parts = partPlacements(plan);
  Json all = Json::array();
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    Json stage = {{"stage", s}, {"holds", stageContent(parts, s)}};
    addExecution(stage, stagePlan(plan, s));
    all.push_back(std::move(stage));
  }
  return all;
}

} // namespace

std::string inspectJson(const LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.root();
  Json mesh = Json::object();
  for (const plan::Axis &axis : elements(plan.mesh())) {
    mesh[std::string(name(static_cast<Axis>(axis.name())))] = axis.size();
  }
  Json inputs = Json::array();
  for (const plan::Input *input : *stagePlan(plan, 0).inputs()) {
    inputs.push_back(
        {{"name", text(input->name())}, {"limit", input->limit()}});
  }
  Json json = {{"model", text(plan.model())},
               {"hash", loaded.hash()},
               {"bytes", loaded.bytes().size()},
               {"version", plan.version()},
               {"schema", fmt::format("{:016x}", plan.schema())},
               {"compiler", text(plan.compiler())},
               {"options", text(plan.options())},
               {"mesh", std::move(mesh)},
               {"micro_batch_size", plan.micro_batch_size()},
               {"global_batch_size", plan.global_batch_size()},
               {"sequence_length", plan.sequence_length()},
               {"vocabulary", plan.vocabulary()},
               {"packed", plan.packed()},
               {"sequence_order",
                name(static_cast<SequenceOrder>(plan.sequence_order()))},
               {"inputs", std::move(inputs)}};
  if (stageCount(plan) == 1) {
    addExecution(json, plan);
  } else {
    json["flops_per_step"] = plan.flops_per_step();
    json["parameter_count"] = plan.parameter_count();
    json["schedule"] = scheduleName(plan);
    json["stages"] = stagesJson(plan);
  }
  // Text from a file may be no UTF-8: shown with replacement characters.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace mega
