#include "test/plan-mutants/Mutants.h"

#include <algorithm>
#include <map>

namespace mega {
namespace {

BufferType typeOf(const plan::Buffer &buffer) { return bufferType(buffer); }

int64_t endOf(const plan::Buffer &buffer, int64_t instance, int64_t frame,
              int64_t slot, int64_t microBatch) {
  return buffer.offset() + instance * buffer.per_instance() +
         frame * buffer.per_frame() + slot * buffer.per_slot() +
         microBatch * buffer.per_micro_batch() + typeOf(buffer).extentBytes();
}

} // namespace

void MutantList::flush() {
  std::map<std::string, std::vector<Mutant *>> kinds;
  for (Mutant &mutant : pending) {
    kinds[mutant.kind].push_back(&mutant);
  }
  for (auto &[kind, mutants] : kinds) {
    const size_t count = std::min(mutants.size(), kMaxSites);
    for (size_t i = 0; i < count; ++i) {
      all.push_back(std::move(*mutants[i * mutants.size() / count]));
    }
  }
  pending.clear();
}

std::vector<Mutant> mutantsOf(const plan::PlanT &plan) {
  MutantList list;
  addLaunchMutants(plan, list);
  addBufferMutants(plan, list);
  addLayoutMutants(plan, list);
  addProgramMutants(plan, list);
  addScheduleMutants(plan, list);
  addStateMutants(plan, list);
  return list.take();
}

LaunchView::LaunchView(const plan::FunctionT &function, size_t index)
    : function(&function), launch(&function.launches[index]),
      spec(&kernelSpec(static_cast<Kernel>(launch->kernel()))) {}

int64_t LaunchView::integer(std::string_view name) const {
  const auto it = std::find(spec->integers.begin(), spec->integers.end(), name);
  return function->integers[launch->first_integer() +
                            static_cast<size_t>(it - spec->integers.begin())];
}

Access LaunchView::access(size_t operand) const {
  return resolvedAccess(
      *spec, static_cast<int>(operand),
      std::span(function->integers).subspan(launch->first_integer()));
}

bool LaunchView::reads(size_t operand) const {
  return access(operand) == Access::Read ||
         access(operand) == Access::ReadWrite;
}

bool LaunchView::writes(size_t operand) const {
  return access(operand) != Access::Read;
}

bool LaunchView::updates() const {
  for (size_t i = 0; i < operands(); ++i) {
    if (access(i) == Access::ReadWrite) {
      return true;
    }
    for (size_t j = 0; j < operands() && access(i) == Access::Write; ++j) {
      if (access(j) == Access::Read && sameBuffer(buffer(i), buffer(j))) {
        return true;
      }
    }
  }
  return false;
}

std::string LaunchView::text(size_t index) const {
  return fmt::format("{} launch {}, {}", function->name, index, spec->name);
}

bool sharesBytes(const plan::Buffer &a, const plan::Buffer &b) {
  return a.space() == b.space() && a.region() == b.region() &&
         overlap(Box::of(typeOf(a), a.offset()),
                 Box::of(typeOf(b), b.offset()));
}

bool sameType(const plan::Buffer &a, const plan::Buffer &b) {
  return typeOf(a) == typeOf(b);
}

bool sameBuffer(const plan::Buffer &a, const plan::Buffer &b) {
  return sameType(a, b) && a.space() == b.space() && a.region() == b.region() &&
         a.offset() == b.offset();
}

plan::Part partOf(const plan::PlanT &plan, const plan::Buffer &buffer) {
  return plan.regions[buffer.region()]->part;
}

bool repeats(const plan::PlanT &plan, size_t function) {
  for (const auto &program : plan.programs) {
    for (const plan::Call &call : program->calls) {
      if (call.function() == function && call.count() > 1) {
        return true;
      }
    }
  }
  return false;
}

bool isAttention(Kernel kernel) {
  return kernel == Kernel::Attention || kernel == Kernel::AttentionGrad ||
         kernel == Kernel::PackedAttention ||
         kernel == Kernel::PackedAttentionGrad || isRing(kernel);
}

bool dropsOut(const plan::FunctionT &function) {
  for (size_t l = 0; l < function.launches.size(); ++l) {
    const LaunchView view(function, l);
    const double *floats = function.floats.data() + view.launch->first_float();
    const bool alone = view.spec->kernel == Kernel::Dropout ||
                       view.spec->kernel == Kernel::DropoutAt;
    if ((alone && floats[0] > 0) ||
        (isAttention(view.spec->kernel) && floats[1] > 0)) {
      return true;
    }
  }
  return false;
}

int64_t usedEnd(const plan::PlanT &plan, uint32_t region) {
  int64_t end = 0;
  const auto use = [&](const plan::Buffer &buffer, int64_t instance,
                       int64_t frame, int64_t slot, int64_t microBatch) {
    if (buffer.space() == 0 && buffer.region() == region) {
      end = std::max(end, endOf(buffer, instance, frame, slot, microBatch));
    }
  };
  for (size_t p = 0; p < plan.programs.size(); ++p) {
    int64_t slot = 0;
    int64_t microBatch = 0;
    for (const auto &entry : plan.entry_points) {
      for (const plan::Action &action : entry->stages[0]->actions) {
        if (action.program() == p) {
          slot = std::max<int64_t>(slot, plan.regions[region]->part ==
                                                 plan::Part::Boundary
                                             ? action.buffer()
                                             : action.slot());
          microBatch = std::max<int64_t>(microBatch, action.micro_batch());
        }
      }
    }
    for (const plan::Buffer &argument : plan.programs[p]->arguments) {
      use(argument, 0, 0, slot, microBatch);
    }
    for (const plan::Call &call : plan.programs[p]->calls) {
      for (const plan::Buffer &buffer :
           plan.functions[call.function()]->buffers) {
        use(buffer, int64_t{call.first_instance()} + call.count() - 1,
            int64_t{call.first_frame()} + call.count() - 1, slot, microBatch);
      }
    }
  }
  for (const auto &parameter : plan.parameters) {
    for (const auto *buffer :
         {parameter->weight.get(), parameter->gradient.get(),
          parameter->compute.get()}) {
      if (buffer) {
        use(*buffer, int64_t{parameter->first_instance} + parameter->count - 1,
            0, 0, 0);
      }
    }
  }
  for (const auto &input : plan.inputs) {
    use(*input->buffer, 0, 0, 0, plan.entry_points[0]->micro_batches - 1);
  }
  return end;
}

} // namespace mega
