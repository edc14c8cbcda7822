//===- VerifyCopies.cpp - Copies of parameters to compute with ------------===//
#include "runtime/plan/Verifier.h"

#include <algorithm>
#include <map>

namespace mega {
namespace {

std::string placeText(const plan::Plan &plan, const Place &place) {
  return fmt::format("byte {} of region {}", place.offset,
                     text(plan.regions()->Get(place.region)->name()));
}

/// Finds the one launch that copies all of `parameter` in `programs`.
Status findCopy(const VerifierContext &context,
                const LogicalParameter &parameter,
                const std::vector<uint32_t> &programs, std::string_view when,
                const CopyRange *&found) {
  const Place &copy = *parameter.compute;
  const int64_t bytes = parameter.elements * byteSize(DataType::BF16);
  found = nullptr;
  for (const CopyRange &range : context.copies) {
    if (range.target.region != copy.region ||
        range.target.offset >= copy.offset + bytes ||
        copy.offset >= range.target.offset + range.targetBytes ||
        std::find(programs.begin(), programs.end(), range.site.program) ==
            programs.end()) {
      continue;
    }
    const int64_t inside = copy.offset - range.target.offset;
    if (inside < 0 || inside + bytes > range.targetBytes) {
      return badInput("{} copies only a part of parameter {}",
                      describe(context.plan, range.site), parameter.name);
    }
    const Place source{range.source.region,
                       range.source.offset + inside / byteSize(DataType::BF16) *
                                                 byteSize(DataType::F32)};
    if (source != parameter.weight) {
      return badInput("{} makes the copy of parameter {} from {}, it is at {}",
                      describe(context.plan, range.site), parameter.name,
                      placeText(context.plan, source),
                      placeText(context.plan, parameter.weight));
    }
    if (found) {
      return badInput("{} makes the copy of parameter {} a second time",
                      describe(context.plan, range.site), parameter.name);
    }
    found = &range;
  }
  if (!found) {
    return badInput("the copy of parameter {} at {} is not made {}",
                    parameter.name, placeText(context.plan, copy), when);
  }
  return Status::ok();
}

/// Programs of a kind, of the whole plan or of one entry point.
std::vector<uint32_t> ofKind(const plan::Plan &plan,
                             const std::vector<uint32_t> &programs,
                             plan::ActionKind kind) {
  std::vector<uint32_t> found;
  for (uint32_t p : programs) {
    if (plan.programs()->Get(p)->kind() == kind) {
      found.push_back(p);
    }
  }
  return found;
}

auto order(const Site &site) {
  return std::tuple(site.program, site.call, site.launch);
}

} // namespace

/// What is made of a parameter's weight is its declared copy.
static Status verifyDeclared(const VerifierContext &context,
                             const CopyRange &range) {
  const int64_t elements = range.targetBytes / byteSize(DataType::BF16);
  for (const LogicalParameter &parameter : context.parameters) {
    const int64_t inside = (parameter.weight.offset - range.source.offset) /
                           byteSize(DataType::F32);
    if (parameter.weight.region != range.source.region || inside < 0 ||
        inside >= elements) {
      continue;
    }
    const Place copy{range.target.region,
                     range.target.offset + inside * byteSize(DataType::BF16)};
    if (!parameter.compute || *parameter.compute != copy) {
      return badInput("{} makes a copy of parameter {} at {}, which the "
                      "parameter does not name",
                      describe(context.plan, range.site), parameter.name,
                      placeText(context.plan, copy));
    }
  }
  return Status::ok();
}

Status verifySetupCopies(const VerifierContext &context) {
  for (const CopyRange &range : context.copies) {
    MEGA_RETURN_IF_ERROR(verifyDeclared(context, range));
  }
  std::vector<uint32_t> all(length(context.plan.programs()));
  for (uint32_t p = 0; p < all.size(); ++p) {
    all[p] = p;
  }
  const std::vector<uint32_t> setup =
      ofKind(context.plan, all, plan::ActionKind::Setup);
  for (const LogicalParameter &parameter : context.parameters) {
    const CopyRange *copy = nullptr;
    if (parameter.compute) {
      MEGA_RETURN_IF_ERROR(
          findCopy(context, parameter, setup, "in the setup", copy));
    }
  }
  return Status::ok();
}

Status verifyStepCopies(const VerifierContext &context,
                        const plan::EntryPoint &entry) {
  if (!isTraining(context, entry)) {
    return Status::ok();
  }
  const std::vector<uint32_t> finish =
      ofKind(context.plan, programsOf(entry), plan::ActionKind::Finish);
  for (const LogicalParameter &parameter : context.parameters) {
    if (!parameter.compute) {
      continue;
    }
    const CopyRange *copy = nullptr;
    MEGA_RETURN_IF_ERROR(
        findCopy(context, parameter, finish, "after the optimizer step", copy));
    for (const OptimizerRange &range : context.ranges) {
      const bool updates =
          range.weight.region == parameter.weight.region &&
          range.weight.offset <= parameter.weight.offset &&
          parameter.weight.offset < range.weight.offset + range.bytes;
      // Finish programs are not ordered here: a copy in another one may run
      // first.
      if (updates && (copy->site.program != range.site.program ||
                      order(copy->site) < order(range.site))) {
        return badInput("{} makes the copy of parameter {} before {} updates "
                        "it",
                        describe(context.plan, copy->site), parameter.name,
                        describe(context.plan, range.site));
      }
    }
  }
  return Status::ok();
}

} // namespace mega
