#include "runtime/plan/ShardingRule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

namespace mega {
namespace {

using Tensor = ShardingRule::Tensor;
using Role = ShardingRule::Role;

int dimOf(const Tensor &tensor, char factor) {
  const size_t at = tensor.factors.find(factor);
  return at == std::string::npos ? -1 : static_cast<int>(at);
}

Tensor parseTensor(std::string_view text) {
  Tensor tensor;
  for (char c : text) {
    switch (c) {
    case ' ':
      break;
    case '*':
      tensor.role = Role::Linear;
      break;
    case '+':
      tensor.role = Role::Additive;
      break;
    case '=':
      tensor.role = Role::Inactive;
      break;
    case '~':
      tensor.role = Role::Any;
      break;
    case '^':
      tensor.reduction = Reduction::Max;
      break;
    default:
      assert((ShardingRule::isWhole(c) || (c >= 'a' && c <= 'z')) &&
             "not a factor");
      tensor.factors += c;
    }
  }
  assert(tensor.factors.size() <= static_cast<size_t>(Layout::kMaxRank));
  return tensor;
}

std::vector<Tensor> parseList(std::string_view text) {
  std::vector<Tensor> tensors;
  while (true) {
    const size_t comma = text.find(',');
    tensors.push_back(parseTensor(text.substr(0, comma)));
    if (comma == std::string_view::npos) {
      return tensors;
    }
    text.remove_prefix(comma + 1);
  }
}

/// `operand 2` or `result 0`.
std::string tensorName(const ShardingRule &rule, size_t index) {
  return index < rule.operands.size()
             ? fmt::format("operand {}", index)
             : fmt::format("result {}", index - rule.operands.size());
}

/// One axis of an op: the factor it cuts, and the tensor that shows it.
struct Mapping {
  char factor = 0;
  size_t tensor = 0;
};

class AxisCheck {
public:
  AxisCheck(const ShardingRule &rule, std::span<const Layout> operands,
            std::span<const Layout> results, Axis axis)
      : rule(rule), axis(axis) {
    for (size_t i = 0; i < operands.size(); ++i) {
      tensors.push_back(&rule.operands[i]);
      layouts.push_back(&operands[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      tensors.push_back(&rule.results[i]);
      layouts.push_back(&results[i]);
    }
  }

  /// The factor the axis cuts, if it cuts one.
  StatusOr<std::optional<Mapping>> mapping() const {
    std::optional<Mapping> found;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i]->role == Role::Any || state(i) != State::Shard) {
        continue;
      }
      const int dim = layouts[i]->shardedDim(axis);
      const char factor = tensors[i]->factors[static_cast<size_t>(dim)];
      if (ShardingRule::isWhole(factor)) {
        return badInput("dimension {} of {} must be whole, but {} shards it",
                        dim, tensorName(rule, i), name(axis));
      }
      if (found && found->factor != factor) {
        return badInput("{} shards dimension {} of {} and dimension {} of {}, "
                        "which do not belong together",
                        name(axis), layouts[found->tensor]->shardedDim(axis),
                        tensorName(rule, found->tensor), dim,
                        tensorName(rule, i));
      }
      found = found.value_or(Mapping{factor, i});
    }
    return found;
  }

  Status mapped(const Mapping &mapping) const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i]->role == Role::Any) {
        continue;
      }
      const int dim = dimOf(*tensors[i], mapping.factor);
      if (dim >= 0) {
        MEGA_RETURN_IF_ERROR(cutAlike(mapping, i, dim));
        continue;
      }
      const bool isOperand = i < rule.operands.size();
      const State wanted = isOperand ? State::Replicated : State::Partial;
      const bool inactive = tensors[i]->role == Role::Inactive;
      if (state(i) != wanted &&
          !(isOperand && inactive && state(i) == State::Invariant)) {
        return badInput("{} shards dimension {} of {}, so {} must be {} over "
                        "it, not {}",
                        name(axis), layouts[mapping.tensor]->shardedDim(axis),
                        tensorName(rule, mapping.tensor), tensorName(rule, i),
                        name(wanted), name(state(i)));
      }
      if (!isOperand && layouts[i]->reduction != tensors[i]->reduction) {
        return badInput("{} is partial by {} over {}, expected {}",
                        tensorName(rule, i), name(layouts[i]->reduction),
                        name(axis), name(tensors[i]->reduction));
      }
    }
    return Status::ok();
  }

  /// The state of results of an axis that cuts nothing.
  StatusOr<State> unmapped() const {
    std::optional<size_t> first;
    std::optional<size_t> partial;
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      if (tensors[i]->role == Role::Any) {
        continue;
      }
      if (state(i) == State::Partial) {
        partial = partial.value_or(i);
        continue;
      }
      if (tensors[i]->role == Role::Inactive) {
        continue;
      }
      if (first && state(*first) != state(i)) {
        return badInput("{} is {} over {} and {} {}: invariant and replicated "
                        "values do not mix",
                        tensorName(rule, *first), name(state(*first)),
                        name(axis), tensorName(rule, i), name(state(i)));
      }
      first = first.value_or(i);
    }
    if (!partial) {
      return first ? state(*first) : State::Invariant;
    }
    return unmappedPartial(*partial, first);
  }

  State state(size_t tensor) const { return layouts[tensor]->state(axis); }

private:
  /// A tensor that carries the factor is cut like the one that shows it.
  Status cutAlike(const Mapping &mapping, size_t i, int dim) const {
    const Layout &shown = *layouts[mapping.tensor];
    const int shownDim = shown.shardedDim(axis);
    if (layouts[i]->shardedDim(axis) != dim) {
      return badInput("{} shards dimension {} of {} but not dimension {} of "
                      "{}, which belongs to it (it is {})",
                      name(axis), shownDim, tensorName(rule, mapping.tensor),
                      dim, tensorName(rule, i), name(state(i)));
    }
    const Layout::Dimension &a = shown.dims[static_cast<size_t>(shownDim)];
    const Layout::Dimension &b = layouts[i]->dims[static_cast<size_t>(dim)];
    // A nested factor has further, minor axes.
    const int common = std::min(a.count, b.count);
    const bool same =
        a.zigzag == b.zigzag && (a.count == b.count || rule.outer != 0) &&
        std::equal(a.axes.begin(), a.axes.begin() + common, b.axes.begin());
    if (!same) {
      return badInput("dimension {} of {} and dimension {} of {} belong "
                      "together but list different axes or orders",
                      shownDim, tensorName(rule, mapping.tensor), dim,
                      tensorName(rule, i));
    }
    return Status::ok();
  }

  StatusOr<State> unmappedPartial(size_t partial,
                                  std::optional<size_t> other) const {
    const Tensor &tensor = *tensors[partial];
    if (layouts[partial]->reduction != Reduction::Sum) {
      return badInput("{} is partial by {} over {}: reduce it first",
                      tensorName(rule, partial),
                      name(layouts[partial]->reduction), name(axis));
    }
    if (tensor.role != Role::Linear && tensor.role != Role::Additive) {
      return badInput("{} is partial over {} and the op is not linear in it: "
                      "reduce it first",
                      tensorName(rule, partial), name(axis));
    }
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      if (i == partial || tensors[i]->role == Role::Any ||
          tensors[i]->role == Role::Inactive) {
        continue;
      }
      const bool together =
          tensor.role == Role::Additive && tensors[i]->role == Role::Additive;
      const State wanted = together ? State::Partial : State::Replicated;
      if (state(i) != wanted) {
        return badInput("{} is partial over {}, so {} must be {}, not {}",
                        tensorName(rule, partial), name(axis),
                        tensorName(rule, i), name(wanted), name(state(i)));
      }
    }
    return State::Partial;
  }

  const ShardingRule &rule;
  Axis axis;
  std::vector<const Tensor *> tensors;
  std::vector<const Layout *> layouts;
};

constexpr Axis axisOf(int index) { return static_cast<Axis>(index); }

Status checkRanks(const std::vector<Tensor> &tensors,
                  std::span<const Layout> layouts) {
  assert(tensors.size() == layouts.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    MEGA_RETURN_IF_ERROR(
        layouts[i].verify(static_cast<int>(tensors[i].factors.size())));
  }
  return Status::ok();
}

} // namespace

ShardingRule ShardingRule::parse(std::string_view notation) {
  const size_t arrow = notation.find("->");
  assert(arrow != std::string_view::npos);
  ShardingRule rule;
  if (const size_t bar = notation.find('|'); bar != std::string_view::npos) {
    // `| h in k`
    const std::string_view nested = notation.substr(bar);
    assert(nested.size() == 8 && nested.substr(3, 4) == " in ");
    rule.inner = nested[2];
    rule.outer = nested[7];
    notation = notation.substr(0, bar);
  }
  rule.operands = parseList(notation.substr(0, arrow));
  rule.results = parseList(notation.substr(arrow + 2));
  return rule;
}

ShardingRule ShardingRule::joined() const {
  ShardingRule rule = *this;
  if (outer != 0) {
    for (std::vector<Tensor> *tensors : {&rule.operands, &rule.results}) {
      for (Tensor &tensor : *tensors) {
        std::replace(tensor.factors.begin(), tensor.factors.end(), outer,
                     inner);
      }
    }
  }
  return rule;
}

ShardingRule ShardingRule::on(Axis axis, std::span<const Layout> operandLayouts,
                              std::span<const Layout> resultLayouts) const {
  const auto cutsOuter = [&](const std::vector<Tensor> &tensors,
                             std::span<const Layout> layouts) {
    for (size_t i = 0; i < layouts.size(); ++i) {
      const int dim = layouts[i].shardedDim(axis);
      if (dim >= 0 && tensors[i].factors[static_cast<size_t>(dim)] == outer) {
        return true;
      }
    }
    return false;
  };
  return outer != 0 && (cutsOuter(operands, operandLayouts) ||
                        cutsOuter(results, resultLayouts))
             ? joined()
             : *this;
}

Status checkNesting(const ShardingRule &rule, std::span<const Layout> operands,
                    std::span<const int64_t> extents) {
  if (rule.outer == 0) {
    return Status::ok();
  }
  for (int a = 0; a < kAxisCount; ++a) {
    bool inner = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int dim = operands[i].shardedDim(axisOf(a));
      inner |= dim >= 0 &&
               rule.operands[i].factors[static_cast<size_t>(dim)] == rule.inner;
    }
    for (size_t i = 0; inner && i < operands.size(); ++i) {
      if (extents[i] > 1 && operands[i].shardedDim(axisOf(a)) < 0) {
        return badInput("{} cuts the groups of {} but not operand {}, of which "
                        "a rank has {} groups; it may have one",
                        name(axisOf(a)), rule.inner, i, extents[i]);
      }
    }
  }
  return Status::ok();
}

Status checkSharding(const ShardingRule &rule, std::span<const Layout> operands,
                     std::span<const Layout> results) {
  MEGA_RETURN_IF_ERROR(checkRanks(rule.operands, operands));
  MEGA_RETURN_IF_ERROR(checkRanks(rule.results, results));
  for (int a = 0; a < kAxisCount; ++a) {
    const ShardingRule here = rule.on(axisOf(a), operands, results);
    const AxisCheck check(here, operands, results, axisOf(a));
    MEGA_ASSIGN_OR_RETURN(const std::optional<Mapping> mapping,
                          check.mapping());
    if (mapping) {
      MEGA_RETURN_IF_ERROR(check.mapped(*mapping));
      continue;
    }
    MEGA_ASSIGN_OR_RETURN(const State wanted, check.unmapped());
    for (size_t i = 0; i < results.size(); ++i) {
      const State found = check.state(rule.operands.size() + i);
      if (found != wanted) {
        return badInput("result {} is {} over {}, expected {}", i, name(found),
                        name(axisOf(a)), name(wanted));
      }
    }
  }
  return Status::ok();
}

StatusOr<std::vector<Layout>> inferSharding(const ShardingRule &rule,
                                            std::span<const Layout> operands) {
  MEGA_RETURN_IF_ERROR(checkRanks(rule.operands, operands));
  std::vector<Layout> results(rule.results.size());
  for (int a = 0; a < kAxisCount; ++a) {
    const Axis axis = axisOf(a);
    const auto mask = static_cast<uint8_t>(1u << a);
    const ShardingRule here = rule.on(axis, operands, {});
    const AxisCheck check(here, operands, {}, axis);
    MEGA_ASSIGN_OR_RETURN(const std::optional<Mapping> mapping,
                          check.mapping());
    State unmapped = State::Invariant;
    if (!mapping) {
      MEGA_ASSIGN_OR_RETURN(unmapped, check.unmapped());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor &tensor = here.results[i];
      const int dim = mapping ? dimOf(tensor, mapping->factor) : -1;
      if (dim >= 0) {
        // The whole list of the dimension at once, in its order.
        const Layout &shown = operands[mapping->tensor];
        results[i].rank = static_cast<uint8_t>(tensor.factors.size());
        results[i].dims[static_cast<size_t>(dim)] =
            shown.dims[static_cast<size_t>(shown.shardedDim(axis))];
      } else if (mapping || unmapped == State::Partial) {
        results[i].partial |= mask;
        results[i].reduction = mapping ? tensor.reduction : Reduction::Sum;
      } else if (unmapped == State::Replicated) {
        results[i].replicated |= mask;
      }
    }
  }
  MEGA_RETURN_IF_ERROR(checkSharding(rule, operands, results));
  return results;
}

} // namespace mega
