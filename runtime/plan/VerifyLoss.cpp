//===- VerifyLoss.cpp - Sums and counts of the loss -----------------------===//
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/Verifier.h"

namespace mega {
namespace {

/// How the programs of an entry point touch one counter.
struct Uses {
  int forwardAdds = 0;
  int others = 0;
};

StatusOr<Uses> usesOf(const VerifierContext &context,
                      const plan::EntryPoint &entry,
                      const plan::Buffer &counter) {
  Uses uses;
  for (uint32_t p : programsOf(entry)) {
    const plan::ActionKind kind = context.plan.programs()->Get(p)->kind();
    MEGA_RETURN_IF_ERROR(forEachTouch(
        context.effects[p], &CallEffects::writes,
        [&](const Touch &touch, const Box &box, uint32_t) {
          const Box place =
              Box::interval(counter.offset(), counter.offset() + 8);
          if (touch.space.region != counter.region() || !overlap(box, place)) {
            return Status::ok();
          }
          if (kind == plan::ActionKind::Prologue) {
            ++uses.others;
          } else if (kind == plan::ActionKind::Forward &&
                     touch.access == Access::ReadWrite) {
            ++uses.forwardAdds;
          } else if (kind != plan::ActionKind::Finish || !touch.inPlace ||
                     (touch.kernel != Kernel::AllReduce &&
                      touch.kernel != Kernel::SumStages)) {
            return badInput("{} overwrites it: a prologue sets it, a forward "
                            "adds to it, a finish reduces it in place",
                            describe(context.plan, touch.site));
          }
          return Status::ok();
        }));
  }
  return uses;
}

} // namespace

Status verifyLossTerms(const VerifierContext &context,
                       const plan::EntryPoint &entry) {
  for (uint32_t i = 0; i < length(context.plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *context.plan.loss_terms()->Get(i);
    const std::string_view termName = text(term.name());
    auto sum = usesOf(context, entry, *term.sum());
    if (!sum.isOk()) {
      return std::move(sum).takeStatus().withContext(
          fmt::format("sum of loss term {}", termName));
    }
    // Of several stages one does; which of them, values show (V16).
    const bool several = meshOf(context.plan).size(Axis::Pp) > 1;
    if (sum->forwardAdds != 1 && !(several && sum->forwardAdds == 0)) {
      return badInput("each micro-batch adds {} times to the sum of loss term "
                      "{}, expected once",
                      sum->forwardAdds, termName);
    }
    auto count = usesOf(context, entry, *term.count());
    if (!count.isOk()) {
      return std::move(count).takeStatus().withContext(
          fmt::format("count of loss term {}", termName));
    }
    if (count->forwardAdds + count->others == 0) {
      return badInput("nothing computes the count of loss term {}", termName);
    }
  }
  return Status::ok();
}

} // namespace mega
