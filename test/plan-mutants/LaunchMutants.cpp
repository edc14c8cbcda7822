//===- LaunchMutants.cpp - Launches, operands, attributes -----------------===//
#include "test/plan-mutants/Mutants.h"

#include <algorithm>
#include <optional>

namespace mega {
namespace {

using Edit = std::function<void(plan::FunctionT &)>;

/// Of the function number `f`.
std::function<void(plan::PlanT &)> in(size_t f, Edit edit) {
  return [f, edit = std::move(edit)](plan::PlanT &plan) {
    edit(*plan.functions[f]);
  };
}

/// Appends the `count` values from `first` on, with `value` at `number`, and
/// says where: a launch's own operands or attributes, and another one.
template <typename T>
uint32_t appendOther(std::vector<T> &values, size_t first, size_t count,
                     size_t number, T value) {
  const auto fresh = static_cast<uint32_t>(values.size());
  for (size_t i = 0; i < count; ++i) {
    values.push_back(i == number ? value : values[first + i]);
  }
  return fresh;
}

Edit operandEdit(size_t l, size_t operand, uint16_t buffer) {
  return [=](plan::FunctionT &f) {
    plan::Launch &launch = f.launches[l];
    launch.mutate_first_operand(appendOther(f.operands, launch.first_operand(),
                                            LaunchView(f, l).operands(),
                                            operand, buffer));
  };
}

Edit integerEdit(size_t l, size_t number, int64_t value) {
  return [=](plan::FunctionT &f) {
    plan::Launch &launch = f.launches[l];
    launch.mutate_first_integer(
        appendOther(f.integers, launch.first_integer(),
                    LaunchView(f, l).spec->integers.size(), number, value));
  };
}

Edit floatEdit(size_t l, size_t number, double value) {
  return [=](plan::FunctionT &f) {
    plan::Launch &launch = f.launches[l];
    launch.mutate_first_float(appendOther(f.floats, launch.first_float(),
                                          LaunchView(f, l).spec->floats.size(),
                                          number, value));
  };
}

/// Source and target of a copy hold the same.
bool copies(const plan::FunctionT &f, const plan::Buffer &a,
            const plan::Buffer &b) {
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    if ((view.spec->kernel == Kernel::Copy ||
         view.spec->kernel == Kernel::Cast) &&
        ((sameBuffer(view.buffer(0), a) && sameBuffer(view.buffer(1), b)) ||
         (sameBuffer(view.buffer(0), b) && sameBuffer(view.buffer(1), a)))) {
      return true;
    }
  }
  return false;
}

/// Two arguments that a call gives the same buffer.
bool aliases(const plan::PlanT &plan, size_t function, const plan::Buffer &a,
             const plan::Buffer &b) {
  if (a.space() == 0 || b.space() == 0) {
    return false;
  }
  for (const auto &program : plan.programs) {
    for (const plan::Call &call : program->calls) {
      const auto argument = [&](const plan::Buffer &buffer) {
        return program->arguments[call.first_argument() + buffer.region()];
      };
      if (call.function() == function && sameBuffer(argument(a), argument(b))) {
        return true;
      }
    }
  }
  return false;
}

/// Whether what launch `l` writes to `operand` is read: in this function before
/// it is overwritten or, unless it is scratch, after it.
bool isLive(const plan::PlanT &plan, const plan::FunctionT &f, size_t l,
            size_t operand) {
  const plan::Buffer &written = LaunchView(f, l).buffer(operand);
  for (size_t next = l + 1; next < f.launches.size(); ++next) {
    const LaunchView view(f, next);
    bool overwritten = false;
    for (size_t i = 0; i < view.operands(); ++i) {
      if (!sharesBytes(view.buffer(i), written)) {
        continue;
      }
      if (view.reads(i)) {
        return true;
      }
      overwritten = true;
    }
    if (overwritten) {
      return false;
    }
  }
  return written.space() != 0 || partOf(plan, written) != plan::Part::Scratch;
}

/// What `second` reads and `first` makes anew.
bool feeds(const LaunchView &first, const LaunchView &second) {
  for (size_t i = 0; i < first.operands(); ++i) {
    for (size_t j = 0; j < second.operands(); ++j) {
      if (first.writes(i) && first.access(i) != Access::Scratch &&
          second.access(j) == Access::Read &&
          sharesBytes(first.buffer(i), second.buffer(j))) {
        return true;
      }
    }
  }
  return false;
}

bool commutes(Kernel a, Kernel b) {
  const auto linear = [](Kernel k) {
    return k == Kernel::Scale || k == Kernel::Dropout ||
           k == Kernel::DropoutAt || k == Kernel::Add;
  };
  return linear(a) && linear(b);
}

void addStructure(const plan::FunctionT &f, size_t number, MutantList &list) {
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    const auto at = static_cast<int64_t>(l);
    list.add("drop-launch", view.text(l), in(number, [=](auto &m) {
               m.launches.erase(m.launches.begin() + at);
             }));
    if (view.updates()) {
      list.add("repeat-launch", view.text(l), in(number, [=](auto &m) {
                 m.launches.insert(m.launches.begin() + at, m.launches[l]);
               }));
    }
    if (l + 1 < f.launches.size()) {
      const LaunchView next(f, l + 1);
      if (feeds(view, next) &&
          !commutes(view.spec->kernel, next.spec->kernel)) {
        list.add("swap-launches", view.text(l), in(number, [=](auto &m) {
                   std::swap(m.launches[l], m.launches[l + 1]);
                 }));
      }
    }
    for (int k = 0; k < kKernelCount; ++k) {
      const KernelSpec &other = kernelSpec(static_cast<Kernel>(k));
      const bool keeps =
          (view.spec->kernel == Kernel::Copy ||
           view.spec->kernel == Kernel::Cast) &&
          (other.kernel == Kernel::Cast || other.kernel == Kernel::Copy);
      if (other.kernel == view.spec->kernel || keeps ||
          other.operands.size() != view.operands() ||
          other.integers.size() != view.spec->integers.size() ||
          other.floats.size() != view.spec->floats.size()) {
        continue;
      }
      list.add("other-kernel",
               fmt::format("{} as {}", view.text(l), other.name),
               in(number, [=](auto &m) {
                 m.launches[l].mutate_kernel(static_cast<uint16_t>(k));
               }));
    }
  }
}

void addOperands(const plan::PlanT &plan, size_t number, MutantList &list) {
  const plan::FunctionT &f = *plan.functions[number];
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    for (size_t i = 0; i < view.operands(); ++i) {
      if (view.access(i) == Access::Scratch ||
          (view.access(i) == Access::Write && !isLive(plan, f, l, i))) {
        continue;
      }
      int found = 0;
      for (size_t b = 0; b < f.buffers.size() && found < 2; ++b) {
        const plan::Buffer &other = f.buffers[b];
        if (!sameType(other, view.buffer(i)) ||
            sameBuffer(other, view.buffer(i)) ||
            copies(f, other, view.buffer(i)) ||
            aliases(plan, number, other, view.buffer(i))) {
          continue;
        }
        ++found;
        list.add("other-operand",
                 fmt::format("{}, {} from buffer {}", view.text(l),
                             view.spec->operands[i].name, b),
                 in(number, operandEdit(l, i, static_cast<uint16_t>(b))));
      }
      for (size_t j = i + 1; j < view.operands(); ++j) {
        const Kernel kernel = view.spec->kernel;
        const bool symmetric =
            kernel == Kernel::Add ||
            ((kernel == Kernel::AddLayerNorm || kernel == Kernel::AddRmsNorm) &&
             i == 0 && j == 1);
        if (view.access(i) != Access::Read || view.access(j) != Access::Read ||
            symmetric || !sameType(view.buffer(i), view.buffer(j)) ||
            sameBuffer(view.buffer(i), view.buffer(j)) ||
            copies(f, view.buffer(i), view.buffer(j)) ||
            aliases(plan, number, view.buffer(i), view.buffer(j))) {
          continue;
        }
        const auto a = static_cast<uint16_t>(view.indexOf(i));
        const auto b = static_cast<uint16_t>(view.indexOf(j));
        list.add("swap-operands",
                 fmt::format("{}, {} and {}", view.text(l),
                             view.spec->operands[i].name,
                             view.spec->operands[j].name),
                 in(number, [=](plan::FunctionT &m) {
                   operandEdit(l, i, b)(m);
                   operandEdit(l, j, a)(m);
                 }));
      }
    }
  }
}

void addAttributes(const plan::FunctionT &f, size_t number, MutantList &list) {
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    // Read by every forward and backward alike: another model.
    if (view.spec->kernel == Kernel::RopeTable) {
      continue;
    }
    const bool attention = isAttention(view.spec->kernel);
    for (size_t i = 0; i < view.spec->integers.size(); ++i) {
      const std::string_view name = view.spec->integers[i];
      if (attention && (name == "dropout_key" || name == "first_head") &&
          !dropsOut(f)) {
        continue;
      }
      const int64_t old = f.integers[view.launch->first_integer() + i];
      const bool flag = name != "window" && name != "ignore" &&
                        name != "rows" && name != "dropout_key" &&
                        name != "key" && !name.starts_with("first_");
      list.add("integer", fmt::format("{}, {}", view.text(l), name),
               in(number, integerEdit(l, i, flag ? (old == 0) : old + 1)));
      list.add("integer-range", fmt::format("{}, {}", view.text(l), name),
               in(number, integerEdit(l, i, flag ? 7 : -(int64_t{1} << 50))));
    }
    for (size_t i = 0; i < view.spec->floats.size(); ++i) {
      const double old = f.floats[view.launch->first_float() + i];
      const std::string site =
          fmt::format("{}, {}", view.text(l), view.spec->floats[i]);
      list.add(
          "float", site,
          in(number, floatEdit(l, i, old == 0.25 ? 0.5 : old * 0.5 + 0.125)));
      list.add("not-a-number", site, in(number, floatEdit(l, i, 0.0 / 0.0)));
    }
  }
}

void addRanges(const plan::FunctionT &f, size_t number, MutantList &list) {
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const std::string site = LaunchView(f, l).text(l);
    list.add("launch-out-of-range", site + ", kernel",
             in(number, [=](auto &m) { m.launches[l].mutate_kernel(60000); }));
    list.add(
        "launch-out-of-range", site + ", location",
        in(number, [=](auto &m) { m.launches[l].mutate_location(1 << 30); }));
    list.add("launch-out-of-range", site + ", operands",
             in(number, [=](auto &m) {
               m.launches[l].mutate_first_operand(
                   static_cast<uint32_t>(m.operands.size()));
             }));
    list.add("launch-out-of-range", site + ", reserved",
             in(number, [=](auto &m) { m.launches[l].mutate_reserved(1); }));
    list.add(
        "launch-out-of-range", site + ", buffer",
        in(number, operandEdit(l, 0, static_cast<uint16_t>(f.buffers.size()))));
  }
}

} // namespace

void addLaunchMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t f = 0; f < plan.functions.size(); ++f) {
    addStructure(*plan.functions[f], f, list);
    addOperands(plan, f, list);
    addAttributes(*plan.functions[f], f, list);
    addRanges(*plan.functions[f], f, list);
    list.flush();
  }
}

} // namespace mega
