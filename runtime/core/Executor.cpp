//===- Executor.cpp - Executes a plan on one rank -------------------------===//
#include "runtime/core/Executor.h"

#include "runtime/core/ThreadPool.h"

namespace mega {

void Executor::runLaunch(const Launch &launch, uint32_t run,
                         const plan::Action &action,
                         const KernelContext &context) {
  for (uint32_t i = 0; i < launch.operandCount; ++i) {
    const Operand &operand = operands[launch.firstOperand + i];
    std::byte *data = operand.base + run * operand.perRun +
                      action.slot() * operand.perSlot +
                      action.buffer() * operand.perBuffer +
                      action.micro_batch() * operand.perMicroBatch;
    if (operand.copies > 1) {
      data += static_cast<int64_t>(steps % operand.copies) * operand.perCopy;
    }
    views[i] = View(operand.type, data);
  }
  launch.function(context, {std::span(views).first(launch.operandCount),
                            launch.integers, launch.floats});
}

Status Executor::runProgram(const plan::Action &action,
                            KernelContext &context) {
  const uint32_t program = action.program();
  for (uint32_t c = 0; c < programs[program].callCount; ++c) {
    const Call &call = calls[programs[program].firstCall + c];
    for (uint32_t i = 0; i < call.count; ++i) {
      const uint32_t run = call.reverse ? call.count - 1 - i : i;
      context.application = int64_t{call.firstApplication} + run;
      for (uint32_t l = 0; l < call.launchCount; ++l) {
        runLaunch(launches[call.firstLaunch + l], run, action, context);
        if (!groups.failure.isOk()) [[unlikely]] {
          return makeError(groups.failure.code(), "{}: {}",
                           describeLaunch(plan_, {program, c, l, 0}),
                           groups.failure.message());
        }
      }
    }
  }
  return Status::ok();
}

Status Executor::runSetup(const StepScalars &scalars) {
  KernelContext context{pool, scalars, 0, 0, &groups};
  for (uint32_t p = 0; p < programs.size(); ++p) {
    if (plan_.programs()->Get(p)->kind() == plan::ActionKind::Setup) {
      MEGA_RETURN_IF_ERROR(runProgram(plan::Action(p, 0, 0, 0), context));
    }
  }
  return Status::ok();
}

std::optional<uint32_t> Executor::findEntryPoint(std::string_view name) const {
  for (uint32_t i = 0; i < length(plan_.entry_points()); ++i) {
    if (text(plan_.entry_points()->Get(i)->name()) == name) {
      return i;
    }
  }
  return std::nullopt;
}

Status Executor::runStep(uint32_t entryPoint, const StepScalars &scalars,
                         int64_t firstSample) {
  const plan::EntryPoint &entry = *plan_.entry_points()->Get(entryPoint);
  KernelContext context{pool, scalars, 0, 0, &groups};
  const auto actions = elements(entry.stages()->Get(0)->actions());
  ActionLog *const log =
      actionLog && actionLog->entryPoint() == entryPoint ? actionLog : nullptr;
  const auto intervals =
      log ? log->beginStep() : std::span<ActionLog::Interval>();
  for (size_t a = 0; a < actions.size(); ++a) {
    if (log) [[unlikely]] {
      intervals[a].begin = ActionLog::now();
    }
    action.store(static_cast<int64_t>(a), std::memory_order_relaxed);
    const plan::Action &each = actions[a];
    context.firstSample =
        firstSample + samplesBefore + each.micro_batch() * samplesPerMicroBatch;
    MEGA_RETURN_IF_ERROR(runProgram(each, context));
    if (log) [[unlikely]] {
      intervals[a].end = ActionLog::now();
    }
  }
  if (log) {
    log->endStep();
  }
  action.store(-1, std::memory_order_relaxed);
  ++steps;
  return Status::ok();
}

std::optional<uint32_t> Executor::findInput(std::string_view name) const {
  for (uint32_t i = 0; i < length(plan_.inputs()); ++i) {
    if (text(plan_.inputs()->Get(i)->name()) == name) {
      return i;
    }
  }
  return std::nullopt;
}

View Executor::inputOf(uint32_t input, uint32_t microBatch,
                       uint64_t step) const {
  const plan::Buffer &buffer = *plan_.inputs()->Get(input)->buffer();
  const uint32_t copies = plan_.regions()->Get(buffer.region())->copies();
  return View(
      bufferType(buffer),
      memory_.region(buffer.region(), static_cast<uint32_t>(step % copies)) +
          buffer.offset() + microBatch * buffer.per_micro_batch());
}

double Executor::loss() const {
  double loss = 0;
  for (uint32_t i = 0; i < lossSums.size(); ++i) {
    if (const int64_t count = lossCount(i); count > 0) {
      loss += plan_.loss_terms()->Get(i)->weight() * lossSum(i) /
              static_cast<double>(count);
    }
  }
  return loss;
}

double Executor::gradientSquareSum() const {
  return squareSum.data ? *squareSum.as<double>() : 0;
}

} // namespace mega
