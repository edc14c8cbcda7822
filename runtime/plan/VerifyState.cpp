//===- VerifyState.cpp - Parameters, gradients, optimizer state -----------===//
#include "runtime/plan/Verifier.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace mega {
namespace {

std::string_view regionName(const plan::Plan &plan, const Place &place) {
  return text(plan.regions()->Get(place.region)->name());
}

/// Intervals of regions with an owner each.
class Claims {
public:
  explicit Claims(const plan::Plan &plan) : plan(plan) {}

  Status claim(const Place &place, int64_t bytes, std::string owner) {
    const auto key = std::pair(place.region, place.offset);
    auto next = owners.lower_bound(key);
    if (next != owners.end() && next->first.first == place.region &&
        next->first.second < place.offset + bytes) {
      return overlap(owner, place, next->second.second);
    }
    if (next != owners.begin()) {
      const auto &[start, end] = *std::prev(next);
      if (start.first == place.region && end.first > place.offset) {
        return overlap(owner, place, end.second);
      }
    }
    owners.emplace(key, std::pair(place.offset + bytes, std::move(owner)));
    return Status::ok();
  }

private:
  Status overlap(const std::string &owner, const Place &place,
                 const std::string &other) const {
    return badInput("{} at byte {} of region {} overlaps {}", owner,
                    place.offset, regionName(plan, place), other);
  }

  const plan::Plan &plan;

  std::map<std::pair<uint32_t, int64_t>, std::pair<int64_t, std::string>>
      owners;
};

Place placeOf(const plan::Buffer &buffer) {
  return {buffer.region(), buffer.offset()};
}

Status claimCounters(const plan::Plan &plan, Claims &claims) {
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    MEGA_RETURN_IF_ERROR(claims.claim(
        placeOf(*term.sum()), 8,
        fmt::format("the sum of loss term {}", text(term.name()))));
    MEGA_RETURN_IF_ERROR(claims.claim(
        placeOf(*term.count()), 8,
        fmt::format("the count of loss term {}", text(term.name()))));
  }
  if (const plan::Buffer *sum = plan.gradient_square_sum()) {
    MEGA_RETURN_IF_ERROR(
        claims.claim(placeOf(*sum), 8, "the square sum of the gradients"));
  }
  return Status::ok();
}

Status claimInputs(const plan::Plan &plan) {
  Claims claims(plan);
  uint64_t most = 1;
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    most =
        std::max<uint64_t>(most, plan.entry_points()->Get(e)->micro_batches());
  }
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const plan::Input &input = *plan.inputs()->Get(i);
    const plan::Buffer &buffer = *input.buffer();
    for (uint64_t m = 0; m < most; ++m) {
      Place place = placeOf(buffer);
      place.offset += static_cast<int64_t>(m) * buffer.per_micro_batch();
      MEGA_RETURN_IF_ERROR(claims.claim(
          place, bufferType(buffer).extentBytes(),
          fmt::format("input {} of micro-batch {}", text(input.name()), m)));
    }
  }
  return Status::ok();
}

Status claimState(const VerifierContext &context) {
  Claims claims(context.plan);
  for (const LogicalParameter &parameter : context.parameters) {
    const int64_t bytes = parameter.elements * byteSize(DataType::F32);
    MEGA_RETURN_IF_ERROR(claims.claim(parameter.weight, bytes,
                                      "the weight of " + parameter.name));
    MEGA_RETURN_IF_ERROR(claims.claim(parameter.gradient, bytes,
                                      "the gradient of " + parameter.name));
    if (parameter.compute) {
      MEGA_RETURN_IF_ERROR(claims.claim(
          *parameter.compute, parameter.elements * byteSize(DataType::BF16),
          "the compute copy of " + parameter.name));
    }
  }
  MEGA_RETURN_IF_ERROR(claimCounters(context.plan, claims));
  Claims ranges(context.plan);
  for (size_t i = 0; i < context.ranges.size(); ++i) {
    const OptimizerRange &range = context.ranges[i];
    for (const auto &[what, place, bytes] :
         {std::tuple("weights", range.weight, range.bytes),
          std::tuple("gradients", range.gradient, range.bytes),
          std::tuple("moments", range.moment, range.stateBytes),
          std::tuple("variances", range.variance, range.stateBytes)}) {
      MEGA_RETURN_IF_ERROR(ranges.claim(
          place, bytes, fmt::format("the {} of optimizer range {}", what, i)));
    }
  }
  return claimCounters(context.plan, ranges);
}

/// The range that holds the weight from its first byte.
const OptimizerRange *rangeOf(const VerifierContext &context,
                              const LogicalParameter &parameter) {
  const auto after = std::upper_bound(
      context.ranges.begin(), context.ranges.end(), parameter.weight,
      [](const Place &place, const OptimizerRange &range) {
        return std::pair(place.region, place.offset) <
               std::pair(range.weight.region, range.weight.offset);
      });
  if (after == context.ranges.begin()) {
    return nullptr;
  }
  const OptimizerRange &range = *std::prev(after);
  return range.weight.region == parameter.weight.region &&
                 parameter.weight.offset < range.weight.offset + range.bytes
             ? &range
             : nullptr;
}

Status verifyRange(const VerifierContext &context,
                   const LogicalParameter &parameter) {
  const OptimizerRange *range = rangeOf(context, parameter);
  if (!range) {
    return badInput("no adamw launch updates parameter {}", parameter.name);
  }
  const int64_t inside = parameter.weight.offset - range->weight.offset;
  const int64_t bytes = parameter.elements * byteSize(DataType::F32);
  if (inside + bytes > range->bytes) {
    return badInput("adamw updates only {} of {} bytes of parameter {}",
                    range->bytes - inside, bytes, parameter.name);
  }
  const Place gradient{range->gradient.region, range->gradient.offset + inside};
  if (gradient != parameter.gradient) {
    return badInput("adamw takes the gradient of parameter {} from byte {} of "
                    "region {}, it is at byte {} of region {}",
                    parameter.name, gradient.offset,
                    regionName(context.plan, gradient),
                    parameter.gradient.offset,
                    regionName(context.plan, parameter.gradient));
  }
  if (range->decay != parameter.decay) {
    return badInput("adamw updates parameter {} with decay {}, its own is {}",
                    parameter.name, range->decay, parameter.decay);
  }
  return Status::ok();
}

/// Bytes with a role, by region.
struct Roles {
  std::map<uint32_t, ByteSet> weights;
  std::map<uint32_t, ByteSet> optimizer;
  std::map<uint32_t, ByteSet> gradients;
  std::map<uint32_t, ByteSet> copies;

  explicit Roles(const VerifierContext &context) {
    const auto add = [](auto &sets, const Place &place, int64_t bytes) {
      sets[place.region].add(Box::interval(place.offset, place.offset + bytes));
    };
    for (const LogicalParameter &parameter : context.parameters) {
      const int64_t bytes = parameter.elements * byteSize(DataType::F32);
      add(weights, parameter.weight, bytes);
      add(gradients, parameter.gradient, bytes);
      if (parameter.compute) {
        add(copies, *parameter.compute,
            parameter.elements * byteSize(DataType::BF16));
      }
    }
    for (const OptimizerRange &range : context.ranges) {
      add(weights, range.weight, range.bytes);
      add(gradients, range.gradient, range.bytes);
      add(optimizer, range.moment, range.stateBytes);
      add(optimizer, range.variance, range.stateBytes);
    }
  }

  static bool touches(const std::map<uint32_t, ByteSet> &sets,
                      const Touch &touch, const Box &box) {
    const auto it = sets.find(touch.space.region);
    return it != sets.end() && it->second.overlaps(box);
  }
};

Status verifyWrite(const VerifierContext &context, const Roles &roles,
                   plan::ActionKind kind, const Touch &touch, const Box &box) {
  const bool finish = kind == plan::ActionKind::Finish;
  const bool adamw = touch.kernel == Kernel::AdamW && finish;
  // Pieces of parameters and of their copies.
  const bool gathers =
      touch.kernel == Kernel::AllGather && finish && touch.inPlace;
  if (Roles::touches(roles.weights, touch, box) && !gathers &&
      !(adamw && touch.site.operand == 0)) {
    return badInput("{} writes parameters, which only adamw in a finish may",
                    describe(context.plan, touch.site));
  }
  if (touch.kernel == Kernel::SumStages && !touch.inPlace) {
    return badInput("{} leaves the sum elsewhere, expected in place of its "
                    "summand",
                    describe(context.plan, touch.site));
  }
  if (Roles::touches(roles.optimizer, touch, box) && !adamw) {
    return badInput("{} writes moments or variances, which only adamw in a "
                    "finish may",
                    describe(context.plan, touch.site));
  }
  const bool rounds = touch.kernel == Kernel::Cast &&
                      (kind == plan::ActionKind::Setup || finish);
  if (Roles::touches(roles.copies, touch, box) && !rounds && !gathers) {
    return badInput("{} writes compute copies of parameters, which only cast "
                    "in a setup or finish may",
                    describe(context.plan, touch.site));
  }
  if (!Roles::touches(roles.gradients, touch, box)) {
    return Status::ok();
  }
  const bool zeroes =
      kind == plan::ActionKind::Prologue && touch.kernel == Kernel::Zero;
  const bool adds = isGradient(kind) && touch.access == Access::ReadWrite;
  const bool reduces =
      (isCollective(touch.kernel) || touch.kernel == Kernel::SumStages) &&
      finish && touch.inPlace;
  if (!zeroes && !adds && !reduces) {
    return badInput("{} overwrites gradients: a prologue zeroes them, a "
                    "backward adds to them, a finish reduces them in place",
                    describe(context.plan, touch.site));
  }
  return Status::ok();
}

Status verifyRead(const VerifierContext &context, const Roles &roles,
                  plan::ActionKind kind, const Touch &touch, const Box &box) {
  if (Roles::touches(roles.optimizer, touch, box) &&
      touch.kernel != Kernel::AdamW) {
    return badInput("{} reads moments or variances, which only adamw may",
                    describe(context.plan, touch.site));
  }
  const bool finish =
      kind == plan::ActionKind::Finish &&
      (touch.kernel == Kernel::SumSquares || touch.kernel == Kernel::AdamW ||
       isCollective(touch.kernel) || touch.kernel == Kernel::SumStages);
  if (touch.access == Access::Read && !finish &&
      Roles::touches(roles.gradients, touch, box)) {
    return badInput("{} reads gradients before they are complete",
                    describe(context.plan, touch.site));
  }
  return Status::ok();
}

/// The gradients a step handled, by region.
class GradientSteps {
public:
  explicit GradientSteps(const VerifierContext &context)
      : context(context), roles(context) {}

  Status prologue(uint32_t program) {
    return forEachTouch(context.effects[program], &CallEffects::writes,
                        [&](const Touch &touch, const Box &box, uint32_t) {
                          return once(zeroed, touch, box, "zeroes");
                        });
  }

  Status backward(uint32_t program) {
    return forEachTouch(context.effects[program], &CallEffects::writes,
                        [&](const Touch &touch, const Box &box, uint32_t) {
                          accumulated[touch.space.region].add(box);
                          return Status::ok();
                        });
  }

  Status finish(uint32_t program) {
    return forEachTouch(
        context.effects[program], &CallEffects::reads,
        [&](const Touch &touch, const Box &box, uint32_t) {
          if (touch.kernel == Kernel::SumStages) {
            return once(summed, touch, box, "sums over stages");
          }
          if (touch.kernel == Kernel::SumSquares && touch.site.operand == 0) {
            return once(normed, touch, box, "adds to the norm");
          }
          if (touch.kernel != Kernel::AdamW || touch.site.operand != 1) {
            return Status::ok();
          }
          if (!normed[touch.space.region].covers(box) &&
              !isSummed(touch, box)) {
            return badInput("{} applies gradients that the norm does not hold "
                            "yet",
                            describe(context.plan, touch.site));
          }
          return once(applied, touch, box, "applies");
        });
  }

  Status complete() {
    for (const LogicalParameter &parameter : context.parameters) {
      const Box box =
          Box::interval(parameter.gradient.offset,
                        parameter.gradient.offset + parameter.elements * 4);
      for (auto &[what, sets] :
           {std::pair("zeroed at the start of the step", &zeroed),
            std::pair("computed by any backward", &accumulated),
            std::pair("part of the gradient norm", &normed),
            std::pair("applied by adamw", &applied)}) {
        if (sets == &normed && isCountedElsewhere(parameter)) {
          continue;
        }
        if (!(*sets)[parameter.gradient.region].covers(box)) {
          return badInput("the gradient of parameter {} is not {}",
                          parameter.name, what);
        }
      }
    }
    return Status::ok();
  }

private:
  using Sets = std::map<uint32_t, ByteSet>;

  /// A gradient that the last stage adds to the first one's is in the norm
  /// there.
  bool isSummed(const Touch &touch, const Box &box) {
    return context.plan.stage() > 0 && summed[touch.space.region].covers(box);
  }
  bool isCountedElsewhere(const LogicalParameter &parameter) {
    return context.plan.stage() > 0 &&
           summed[parameter.gradient.region].covers(Box::interval(
               parameter.gradient.offset,
               parameter.gradient.offset + parameter.elements * 4));
  }

  Status once(Sets &sets, const Touch &touch, const Box &box,
              std::string_view does) {
    if (!Roles::touches(roles.gradients, touch, box)) {
      return Status::ok();
    }
    if (sets[touch.space.region].overlaps(box)) {
      return badInput("{} {} gradients a second time in one step",
                      describe(context.plan, touch.site), does);
    }
    sets[touch.space.region].add(box);
    return Status::ok();
  }

  const VerifierContext &context;
  const Roles roles;
  Sets zeroed;
  Sets accumulated;
  Sets normed;
  Sets applied;
  /// Over stages that share them.
  Sets summed;
};

} // namespace

Status verifyState(const VerifierContext &context) {
  MEGA_RETURN_IF_ERROR(claimState(context));
  MEGA_RETURN_IF_ERROR(claimInputs(context.plan));
  const Roles roles(context);
  for (uint32_t p = 0; p < context.effects.size(); ++p) {
    const plan::ActionKind kind = context.plan.programs()->Get(p)->kind();
    MEGA_RETURN_IF_ERROR(
        forEachTouch(context.effects[p], &CallEffects::writes,
                     [&](const Touch &touch, const Box &box, uint32_t) {
                       return verifyWrite(context, roles, kind, touch, box);
                     }));
    MEGA_RETURN_IF_ERROR(
        forEachTouch(context.effects[p], &CallEffects::reads,
                     [&](const Touch &touch, const Box &box, uint32_t) {
                       return verifyRead(context, roles, kind, touch, box);
                     }));
  }
  return Status::ok();
}

/// What trains is left alone by what does not.
static Status verifyUntouched(const VerifierContext &context,
                              const plan::EntryPoint &entry) {
  const Roles roles(context);
  for (uint32_t p : programsOf(entry)) {
    MEGA_RETURN_IF_ERROR(forEachTouch(
        context.effects[p], &CallEffects::writes,
        [&](const Touch &touch, const Box &box, uint32_t) {
          return Roles::touches(roles.gradients, touch, box)
                     ? badInput("{} writes gradients, in an entry point that "
                                "does not train",
                                describe(context.plan, touch.site))
                     : Status::ok();
        }));
  }
  return Status::ok();
}

Status verifyUpdates(const VerifierContext &context,
                     const plan::EntryPoint &entry) {
  if (!isTraining(context, entry)) {
    return verifyUntouched(context, entry);
  }
  for (const LogicalParameter &parameter : context.parameters) {
    MEGA_RETURN_IF_ERROR(verifyRange(context, parameter));
  }
  if (!context.plan.gradient_square_sum()) {
    return badInput("the plan trains but names no gradient_square_sum");
  }
  GradientSteps steps(context);
  for (uint32_t p : programsOf(entry)) {
    switch (context.plan.programs()->Get(p)->kind()) {
    case plan::ActionKind::Prologue:
      MEGA_RETURN_IF_ERROR(steps.prologue(p));
      break;
    case plan::ActionKind::Backward:
    case plan::ActionKind::Weight:
      MEGA_RETURN_IF_ERROR(steps.backward(p));
      break;
    case plan::ActionKind::Finish:
      MEGA_RETURN_IF_ERROR(steps.finish(p));
      break;
    case plan::ActionKind::Setup:
    case plan::ActionKind::Forward:
    case plan::ActionKind::Transfer:
      break;
    }
  }
  return steps.complete();
}

} // namespace mega
