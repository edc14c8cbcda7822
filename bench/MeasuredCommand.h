//===- MeasuredCommand.h - What a command costs -----------------*- C++ -*-===//
//
// Runs a command and waits for it. Its processor time and peak memory are what
// wait4 says of it. Instructions in user space, which depend on nothing else
// that the machine does, are counted by the processor's own counter; where the
// kernel or a virtual machine does not lend it, valgrind counts them in a run
// of its own, which takes 25 times as long.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_BENCH_MEASUREDCOMMAND_H
#define MEGA_BENCH_MEASUREDCOMMAND_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mega {

enum class InstructionCounter { Hardware, Valgrind, None };

/// The best one that this machine has.
InstructionCounter findInstructionCounter();

struct CommandCost {
  std::optional<uint64_t> instructions;
  double processorSeconds = 0;
  int64_t peakBytes = 0;
};

/// `command` is a path and its arguments. An error if it does not end with exit
/// code 0; what it writes goes where this process writes.
StatusOr<CommandCost> measure(const std::vector<std::string> &command,
                              InstructionCounter counter);

} // namespace mega

#endif // MEGA_BENCH_MEASUREDCOMMAND_H
