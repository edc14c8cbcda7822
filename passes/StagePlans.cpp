#include "passes/StagePlans.h"

#include "passes/Applications.h"
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/LogicalParameters.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

using namespace mlir;

namespace mega {
namespace {

/// The chunk of a program of a stage: the number at the end of its name.
int64_t chunkIn(const plan::ProgramT &program) {
  const size_t dot = program.name.rfind('.');
  const std::string last = program.name.substr(dot + 1);
  return last.find_first_not_of("0123456789") == std::string::npos
             ? std::stoll(last)
             : 0;
}

/// One list of groups for all stages: ranks of different stages create their
/// communicators in the same order.
class GroupList {
public:
  void adopt(plan::PlanT &stage) {
    std::vector<int64_t> numbers;
    numbers.reserve(stage.groups.size());
    for (size_t i = 0; i < stage.groups.size(); ++i) {
      numbers.push_back(numberOf(stage.groups[i], i));
    }
    for (const auto &function : stage.functions) {
      for (const plan::Launch &launch : function->launches) {
        const auto kernel = static_cast<Kernel>(launch.kernel());
        if (hasGroup(kernel)) {
          int64_t &group = function->integers[launch.first_integer()];
          group = numbers[static_cast<size_t>(group)];
        }
      }
    }
  }

  std::vector<plan::Group> groups;

private:
  int64_t numberOf(const plan::Group &group, size_t number) {
    constexpr size_t kFirst = kStageGroups;
    if (number < kFirst) {
      if (number == groups.size()) {
        groups.push_back(group);
      }
      return static_cast<int64_t>(number);
    }
    for (size_t i = kFirst; i < groups.size(); ++i) {
      if (std::memcmp(&groups[i], &group, sizeof(group)) == 0) {
        return static_cast<int64_t>(i);
      }
    }
    groups.push_back(group);
    return static_cast<int64_t>(groups.size()) - 1;
  }
};

/// What the whole says of itself, from its stages.
void describeWhole(plan::PlanT &whole) {
  const plan::PlanT &first = *whole.stages.front();
  whole.mesh = first.mesh;
  whole.groups = first.groups;
  whole.model = first.model;
  whole.compiler = first.compiler;
  whole.micro_batch_size = first.micro_batch_size;
  whole.global_batch_size = first.global_batch_size;
  whole.sequence_length = first.sequence_length;
  whole.packed = first.packed;
  whole.sequence_order = first.sequence_order;
  whole.reserve_bytes = first.reserve_bytes;
  whole.ignore_label = first.ignore_label;
  std::set<std::string> shared;
  for (const auto &stage : whole.stages) {
    whole.flops_per_step += stage->flops_per_step;
    for (const auto &parameter : stage->parameters) {
      uint64_t elements = parameter->count;
      for (const uint64_t extent : parameter->shape) {
        elements *= extent;
      }
      // A tied one is on two stages.
      if (!parameter->prefix.empty() || shared.insert(parameter->name).second) {
        whole.parameter_count += elements;
      }
    }
  }
}

/// Stages know the limits of their own tables; those of all hold for everyone.
void unifyInputs(plan::PlanT &whole) {
  std::map<std::string, uint64_t> limits;
  for (const auto &stage : whole.stages) {
    for (const auto &input : stage->inputs) {
      auto &limit = limits.try_emplace(input->name, input->limit).first->second;
      limit = std::min(limit, input->limit);
    }
  }
  for (const auto &[name, limit] : limits) {
    if (isTokenInput(name)) {
      whole.vocabulary =
          std::max(whole.vocabulary, static_cast<uint32_t>(limit));
    }
  }
  for (const auto &stage : whole.stages) {
    for (const auto &input : stage->inputs) {
      input->limit = limits[input->name];
    }
    stage->vocabulary = whole.vocabulary;
  }
}

} // namespace

StatusOr<StagePlans> StagePlans::create(tfm::ModelOp model,
                                        const CompileOptions &options) {
  StagePlans plans;
  MEGA_ASSIGN_OR_RETURN(
      plans.request,
      pipelineRequest(model->getParentOfType<ModuleOp>(), options.pp,
                      options.vpp, options.schedule, options.microBatches));
  const llvm::SmallVector<PartitionUnit> units = partitionUnits(model);
  const Applications applications(model);
  for (ApplicationRun run : applications.runs()) {
    plans.blocks.insert(plans.blocks.end(), static_cast<size_t>(run.count),
                        run.block.getSymName().str());
    for (int64_t i = 0; i < run.count; ++i) {
      plans.layers[{run.prefix, run.index + i}] = run.application + i;
    }
  }
  auto parts = partitionOf(units, partCount(plans.request), options.stages);
  if (!parts.isOk()) {
    return makeError(Code::Failed, "--pp {}{}{}: {}", options.pp,
                     options.vpp > 1 ? fmt::format(" --vpp {}", options.vpp)
                                     : "",
                     options.stages.empty()
                         ? ""
                         : fmt::format(" --stages \"{}\"", options.stages),
                     parts.status().message());
  }
  plans.begin = std::move(*parts);
  PipelineRequest evaluation = plans.request;
  evaluation.train = false;
  auto train = makeSchedule(plans.request);
  if (!train.isOk()) {
    return makeError(Code::Failed, "{}", train.status().message());
  }
  plans.train = std::move(*train);
  MEGA_ASSIGN_OR_RETURN(plans.eval, makeSchedule(evaluation));
  return plans;
}

int64_t StagePlans::firstOf(int64_t stage, int64_t chunk) const {
  return begin[static_cast<size_t>(partOf(request, stage, chunk))];
}

std::string StagePlans::kindOf(int64_t stage) const {
  std::string kind = stage == 0                    ? "first"
                     : stage == request.stages - 1 ? "last"
                                                   : "middle";
  for (int64_t chunk = 0; chunk < request.chunks; ++chunk) {
    const int64_t part = partOf(request, stage, chunk);
    kind += " |";
    for (int64_t i = begin[static_cast<size_t>(part)];
         i < begin[static_cast<size_t>(part + 1)]; ++i) {
      kind += " " + blocks[static_cast<size_t>(i)];
    }
    for (const int64_t next : {part - 1, part + 1}) {
      if (next >= 0 && next < partCount(request)) {
        kind += fmt::format(" {}",
                            (stageOf(request, next) - stage + request.stages) %
                                request.stages);
      }
    }
  }
  return kind;
}

plan::PlanT StagePlans::restage(const plan::PlanT &compiled, int64_t other,
                                int64_t stage) const {
  plan::PlanT plan(compiled);
  plan.stage = static_cast<uint32_t>(stage);
  const auto shiftOf = [&](int64_t chunk) {
    return static_cast<uint32_t>(firstOf(stage, chunk) - firstOf(other, chunk));
  };
  for (const auto &program : plan.programs) {
    if (!isPerMicroBatch(program->kind)) {
      continue;
    }
    const int64_t chunk = chunkIn(*program);
    program->part += static_cast<uint32_t>(partOf(request, stage, chunk) -
                                           partOf(request, other, chunk));
    if (program->kind != plan::ActionKind::Transfer) {
      for (plan::Call &call : program->calls) {
        call.mutate_first_application(call.first_application() +
                                      shiftOf(chunk));
      }
    }
  }
  for (const auto &parameter : plan.parameters) {
    if (!parameter->prefix.empty()) {
      const int64_t application = layers.at(
          {parameter->prefix, static_cast<int64_t>(parameter->first_index)});
      const auto part = std::distance(
          begin.begin(),
          std::upper_bound(begin.begin(), begin.end(), application));
      parameter->first_index += shiftOf(chunkOf(request, part - 1));
    }
  }
  const auto at = static_cast<size_t>(stage);
  const auto from = static_cast<size_t>(other);
  for (const auto &region : plan.regions) {
    const auto resize = [&](int32_t own, int32_t theirs) {
      region->bytes = region->bytes /
                      static_cast<uint64_t>(std::max(theirs, 1)) *
                      static_cast<uint64_t>(std::max(own, 1));
    };
    if (region->part == plan::Part::Pool) {
      resize(train.slots[at], train.slots[from]);
    } else if (region->part == plan::Part::Boundary) {
      resize(std::max(train.buffers[at], eval.buffers[at]),
             std::max(train.buffers[from], eval.buffers[from]));
    }
  }
  setSchedule(plan, stage);
  return plan;
}

/// The actions of micro-batches between those of the step as a whole.
void StagePlans::setSchedule(plan::PlanT &plan, int64_t stage) const {
  std::map<std::string, uint32_t> numbers;
  for (uint32_t p = 0; p < plan.programs.size(); ++p) {
    numbers[plan.programs[p]->name] = p;
  }
  for (const auto &entry : plan.entry_points) {
    std::vector<plan::Action> &actions = entry->stages.front()->actions;
    std::vector<plan::Action> all;
    const auto ofModel = [&](const plan::Action &action) {
      return isPerMicroBatch(plan.programs[action.program()]->kind);
    };
    const auto first = std::find_if(actions.begin(), actions.end(), ofModel);
    const auto last = std::find_if(actions.rbegin(), actions.rend(), ofModel);
    all.assign(actions.begin(), first);
    const bool trains = entry->name == "train";
    PipelineRequest own = request;
    own.train = trains;
    for (const ScheduleAction &action :
         (trains ? train : eval).stages[static_cast<size_t>(stage)]) {
      all.emplace_back(numbers.at(programName(own, action)),
                       static_cast<uint32_t>(action.microBatch),
                       static_cast<uint32_t>(std::max(action.slot, 0)),
                       static_cast<uint32_t>(std::max(action.buffer, 0)));
    }
    all.insert(all.end(), last.base(), actions.end());
    actions = std::move(all);
  }
}

FailureOr<plan::PlanT> StagePlans::assemble(
    const std::function<FailureOr<plan::PlanT>(int64_t)> &compileStage) const {
  plan::PlanT whole;
  std::map<std::string, int64_t> compiled;
  for (int64_t s = 0; s < request.stages; ++s) {
    const auto [it, fresh] = compiled.try_emplace(kindOf(s), s);
    if (fresh) {
      auto plan = compileStage(s);
      if (failed(plan)) {
        return failure();
      }
      plan->stage = static_cast<uint32_t>(s);
      whole.stages.push_back(std::make_unique<plan::PlanT>(std::move(*plan)));
    } else {
      whole.stages.push_back(std::make_unique<plan::PlanT>(restage(
          *whole.stages[static_cast<size_t>(it->second)], it->second, s)));
    }
  }
  GroupList groups;
  for (const auto &stage : whole.stages) {
    groups.adopt(*stage);
  }
  for (const auto &stage : whole.stages) {
    stage->groups = groups.groups;
  }
  unifyInputs(whole);
  describeWhole(whole);
  return whole;
}

} // namespace mega
