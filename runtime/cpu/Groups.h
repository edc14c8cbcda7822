//===- Groups.h - What kernels between ranks share --------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_CPU_GROUPS_H
#define MEGA_RUNTIME_CPU_GROUPS_H

#include "runtime/core/Kernel.h"

#include <cassert>
#include <utility>

namespace mega {

/// The rank's end of the group that the first integer names.
inline const GroupMember &memberOf(const KernelContext &ctx,
                                   const KernelArguments &args) {
  assert(ctx.groups && "a plan with kernels between ranks has groups");
  return ctx.groups->members[static_cast<size_t>(args.integers[0])];
}

/// Keeps the first failure: what follows it are its consequences.
inline void keep(const KernelContext &ctx, Status status) {
  if (ctx.groups->failure.isOk()) {
    ctx.groups->failure = std::move(status);
  }
}

} // namespace mega

#endif // MEGA_RUNTIME_CPU_GROUPS_H
