//===- LayoutMutants.cpp - Layouts, groups, integers of a rank ------------===//
#include "runtime/plan/KernelSharding.h"
#include "runtime/plan/PlanLayouts.h"
#include "test/plan-mutants/Mutants.h"

#include <algorithm>

namespace mega {
namespace {

Mesh meshOf(const plan::PlanT &plan) {
  Mesh mesh;
  for (const plan::Axis &axis : plan.mesh) {
    mesh.sizes[axis.name()] = axis.size();
  }
  return mesh;
}

/// Axes with more than one rank.
std::vector<uint8_t> axesOf(const Mesh &mesh) {
  std::vector<uint8_t> axes;
  for (uint8_t axis = 0; axis < kAxisCount; ++axis) {
    if (mesh.sizes[axis] > 1) {
      axes.push_back(axis);
    }
  }
  return axes;
}

/// Layouts of the plan that a buffer could have instead. One that differs in
/// what is invariant and what is replicated says the same of a launch.
std::vector<uint8_t> othersOf(const plan::PlanT &plan, const Mesh &mesh,
                              const plan::Buffer &buffer) {
  std::vector<uint8_t> others;
  for (size_t i = 0; i < plan.layouts.size(); ++i) {
    const Layout layout = layoutOf(plan.layouts[i]);
    if ((layout.rank == 0 || layout.rank == buffer.rank()) &&
        whole(layout, mesh) !=
            whole(layoutOf(plan.layouts[buffer.layout()]), mesh)) {
      others.push_back(static_cast<uint8_t>(i));
    }
  }
  return others;
}

/// Read or written by a launch that looks at its layout.
bool isLaidOut(const plan::FunctionT &f, size_t b) {
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    for (size_t i = 0; i < view.operands(); ++i) {
      if (view.indexOf(i) == b && view.access(i) != Access::Scratch &&
          view.spec->kernel != Kernel::Zero) {
        return true;
      }
    }
  }
  return false;
}

void addBuffers(const plan::PlanT &plan, size_t number, MutantList &list) {
  const Mesh mesh = meshOf(plan);
  const plan::FunctionT &f = *plan.functions[number];
  for (size_t b = 0; b < f.buffers.size(); ++b) {
    const plan::Buffer &buffer = f.buffers[b];
    const auto add = [&](std::string kind, std::string what, auto edit) {
      list.add(std::move(kind),
               fmt::format("{} buffer {}, {}", f.name, b, what),
               [number, b, edit](plan::PlanT &p) {
                 edit(p.functions[number]->buffers[b]);
               });
    };
    if (isLaidOut(f, b)) {
      for (const uint8_t other : othersOf(plan, mesh, buffer)) {
        add("layout", fmt::format("layout {}", other),
            [other](plan::Buffer &m) { m.mutate_layout(other); });
      }
    }
    add("layout-range", "layout 255",
        [](plan::Buffer &m) { m.mutate_layout(255); });
    add("buffer-reserved", "reserved",
        [](plan::Buffer &m) { m.mutable_reserved()->Mutate(3, 1); });
    add("buffer-axis", "axis", [](plan::Buffer &m) {
      m.mutate_axes(static_cast<uint8_t>(m.axes() + 1));
    });
    add("per-piece", "per_piece",
        [](plan::Buffer &m) { m.mutate_per_piece(m.per_piece() + 8); });
  }
}

void addTerms(const plan::PlanT &plan, size_t number, MutantList &list) {
  const plan::FunctionT &f = *plan.functions[number];
  const std::vector<uint8_t> axes = axesOf(meshOf(plan));
  for (size_t t = 0; t < f.terms.size(); ++t) {
    const auto add = [&](std::string kind, auto edit) {
      list.add(std::move(kind), fmt::format("{} term {}", f.name, t),
               [number, t, edit](plan::PlanT &p) {
                 edit(p.functions[number]->terms[t]);
               });
    };
    list.add("drop-term", fmt::format("{} term {}", f.name, t),
             [=](plan::PlanT &p) {
               auto &terms = p.functions[number]->terms;
               terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(t));
             });
    add("term-coefficient", [](plan::CoordinateTerm &m) {
      m.mutate_coefficient(m.coefficient() + 1);
    });
    add("term-integer",
        [](plan::CoordinateTerm &m) { m.mutate_integer(m.integer() + 1); });
    add("term-range", [](plan::CoordinateTerm &m) {
      m.mutate_coefficient(-m.coefficient());
    });
    for (const uint8_t axis : axes) {
      if (axis != f.terms[t].axis()) {
        list.add("term-axis",
                 fmt::format("{} term {}, axis {}", f.name, t, axis),
                 [number, t, axis](plan::PlanT &p) {
                   p.functions[number]->terms[t].mutate_axis(axis);
                 });
      }
    }
  }
  // Integers of launches that depend on no rank.
  for (uint32_t i = 0; i < f.integers.size(); ++i) {
    const bool depends =
        std::any_of(f.terms.begin(), f.terms.end(),
                    [&](const auto &term) { return term.integer() == i; });
    if (!depends) {
      // Axis tp, of one rank too.
      const uint8_t axis = axes.empty() ? uint8_t{0} : axes.front();
      list.add("add-term", fmt::format("{} integer {}", f.name, i),
               [=](plan::PlanT &p) {
                 plan::CoordinateTerm term;
                 term.mutate_integer(i);
                 term.mutate_axis(axis);
                 term.mutate_coefficient(1);
                 p.functions[number]->terms.push_back(term);
               });
    }
  }
}

void addConversions(const plan::PlanT &plan, size_t number, MutantList &list) {
  const plan::FunctionT &f = *plan.functions[number];
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    if (!isConversion(view.spec->kernel) && !isRing(view.spec->kernel)) {
      continue;
    }
    if (isConversion(view.spec->kernel)) {
      list.add("drop-conversion", view.text(l), [=](plan::PlanT &p) {
        auto &launches = p.functions[number]->launches;
        launches.erase(launches.begin() + static_cast<std::ptrdiff_t>(l));
      });
    }
    // In place, so that the second sums what is a sum already. To gather twice
    // is right.
    const bool sums = view.spec->kernel == Kernel::AllReduce ||
                      view.spec->kernel == Kernel::ReduceScatter;
    if (sums && sharesBytes(view.buffer(0), view.buffer(1))) {
      list.add("repeat-conversion", view.text(l), [=](plan::PlanT &p) {
        auto &launches = p.functions[number]->launches;
        launches.insert(launches.begin() + static_cast<std::ptrdiff_t>(l),
                        launches[l]);
      });
    }
    const uint32_t group = view.launch->first_integer();
    for (int64_t other = 0; other <= static_cast<int64_t>(plan.groups.size());
         ++other) {
      if (other != f.integers[group]) {
        list.add(isRing(view.spec->kernel) ? "group-of-ring"
                                           : "group-of-conversion",
                 fmt::format("{}, group {}", view.text(l), other),
                 [=](plan::PlanT &p) {
                   p.functions[number]->integers[group] = other;
                 });
      }
    }
  }
}

void addTables(const plan::PlanT &plan, MutantList &list) {
  const std::vector<uint8_t> axes = axesOf(meshOf(plan));
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const plan::Group &group = plan.groups[i];
    const auto add = [&](std::string kind, std::string what, auto edit) {
      list.add(std::move(kind), fmt::format("group {}, {}", i, what),
               [i, edit](plan::PlanT &p) { edit(p.groups[i]); });
    };
    for (const uint8_t axis : axes) {
      if (axis != group.axes()->Get(0)) {
        add("group-axis", fmt::format("axis {}", axis),
            [axis](plan::Group &m) { m.mutable_axes()->Mutate(0, axis); });
      }
    }
    add("group-range", "no axes", [](plan::Group &m) { m.mutate_count(0); });
    add("group-range", "axis 9",
        [](plan::Group &m) { m.mutable_axes()->Mutate(0, 9); });
  }
  for (size_t i = 0; i < plan.layouts.size(); ++i) {
    const auto add = [&](std::string what, auto edit) {
      list.add("layout-damaged", fmt::format("layout {}, {}", i, what),
               [i, edit](plan::PlanT &p) { edit(p.layouts[i]); });
    };
    add("reserved",
        [](plan::Layout &m) { m.mutable_reserved()->Mutate(0, 1); });
    add("zigzag", [](plan::Layout &m) {
      m.mutate_zigzag(static_cast<uint8_t>(m.zigzag() ^ 2));
    });
    add("rank", [](plan::Layout &m) {
      m.mutate_rank(static_cast<uint8_t>(m.rank() == 0 ? 4 : 0));
    });
    add("replicated", [](plan::Layout &m) { m.mutate_replicated(0x80); });
    add("partial over pp",
        [](plan::Layout &m) { m.mutate_partial(bit(Axis::Pp)); });
    add("reduction", [](plan::Layout &m) { m.mutate_reduction(77); });
    add("axes", [](plan::Layout &m) {
      m.mutable_dims()->GetMutablePointer(0)->mutate_count(6);
    });
    add("padding", [](plan::Layout &m) {
      m.mutable_dims()->GetMutablePointer(3)->mutate_padded(8);
    });
  }
  const Mesh mesh = meshOf(plan);
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    if (plan.layouts.empty()) {
      break;
    }
    for (const uint8_t other :
         othersOf(plan, mesh, *plan.parameters[i]->weight)) {
      list.add("layout-of-parameter",
               fmt::format("parameter {}, layout {}", i, other),
               [=](plan::PlanT &p) {
                 p.parameters[i]->weight->mutate_layout(other);
               });
    }
  }
}

} // namespace

void addLayoutMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t f = 0; f < plan.functions.size(); ++f) {
    addBuffers(plan, f, list);
    addTerms(plan, f, list);
    addConversions(plan, f, list);
    list.flush();
  }
  addTables(plan, list);
  list.flush();
}

} // namespace mega
