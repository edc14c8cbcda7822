//===- Executor.h - Executes a plan on one rank -----------------*- C++ -*-===//
//
// The interpreter: schedule -> programs -> calls -> launches. Everything is
// allocated and resolved in create(), also what depends on the rank; after that
// a step walks arrays, computes addresses by multiplication and calls kernels.
// It allocates nothing, makes no system call beside those of communicators, and
// fails only if one of these does.
//
//   auto executor = Executor::create(plan, cpuKernel, pool, rank).take();
//   executor->initializeWeights(seed);
//   executor->runSetup(scalars);
//   for each step:
//     fill executor->input(i, m) for every input and micro-batch
//     executor->runStep(train, scalars, firstSample);
//     read executor->loss(), gradientSquareSum()
//
// Inputs are buffered as often as the plan says (Region.copies): while step n
// runs, another thread may fill inputOf(i, m, n + ahead) for ahead = 1 ..
// copies - 1. It has to know n from before the step began. Otherwise an
// executor belongs to one thread at a time. It keeps references to the plan and
// the pool.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_EXECUTOR_H
#define MEGA_RUNTIME_CORE_EXECUTOR_H

#include "runtime/core/ActionLog.h"
#include "runtime/core/Kernel.h"
#include "runtime/core/Memory.h"
#include "runtime/plan/LogicalParameters.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/TensorPiece.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace mega {

class ThreadPool;

using KernelLookup = KernelFunction (*)(Kernel);

/// A logical parameter and what a rank has of it. The views stay valid as long
/// as the executor.
struct ParameterState {
  LogicalParameter info;
  /// Of the whole parameter.
  TensorPiece piece;
  /// The piece.
  View weight;
  /// The elements of the piece that this rank updates: all, unless ranks share
  /// the work (OptimizerRange).
  FlatRange owned;
  /// Vectors of the owned elements; after a training step the gradient of the
  /// global batch. Moment and variance are without data in a plan for eval
  /// only.
  View gradient;
  View moment;
  View variance;
};

/// Which rank of the plan's mesh an executor is.
struct RankContext {
  int64_t rank = 0;
  /// Its ends of the plan's groups; they outlive the executor.
  std::span<const GroupMember> members = {};
};

/// What a rank does right now, for whoever asks from another thread.
struct RankPosition {
  int64_t stage = 0;
  /// Number of the action in its entry point; -1 outside of a step.
  int64_t action = -1;
};

class Executor {
public:
  /// `plan` was loaded and, unless megac made it a moment ago, verified
  /// (Verifier.h). Code::Unavailable if the memory is not there;
  /// Code::Internal if `kernels` lacks one.
  static StatusOr<std::unique_ptr<Executor>>
  create(const LoadedPlan &plan, KernelLookup kernels, ThreadPool &pool,
         RankContext rank = {},
         std::optional<uint64_t> available = availableMemory());

  /// Initial values of every parameter, a function of seed, name and element
  /// (InitialValues.h); moments and variances become 0.
  void initializeWeights(uint64_t seed);
  /// The setup programs: constants. Once, before the first step. Fails as a
  /// step does.
  Status runSetup(const StepScalars &scalars);

  /// Number of the entry point called `name`.
  std::optional<uint32_t> findEntryPoint(std::string_view name) const;
  /// Executes the entry point's actions and moves on to the next copy of the
  /// inputs. With B rows of a micro-batch on each of DP replicas, row 0 of
  /// micro-batch m on replica d is sample firstSample + (m * DP + d) * B. Fails
  /// if a communicator does, with program, function, launch and source line in
  /// front; position() stays at the action. An executor that has failed is of
  /// no further use.
  Status runStep(uint32_t entryPoint, const StepScalars &scalars,
                 int64_t firstSample);

  /// Writes down when actions run, until it is null. Between steps.
  void setActionLog(ActionLog *log) { actionLog = log; }

  /// Number of the input called `name`.
  std::optional<uint32_t> findInput(std::string_view name) const;
  /// Where the next step (or the one `ahead` steps later) expects an input.
  View input(uint32_t input, uint32_t microBatch, uint32_t ahead = 0) const {
    return inputOf(input, microBatch, steps + ahead);
  }
  /// Where step number `step` of this executor expects an input; does not
  /// depend on which step runs, so any thread may ask.
  View inputOf(uint32_t input, uint32_t microBatch, uint64_t step) const;
  /// Steps done, of any entry point: the number of the next one.
  uint64_t stepsDone() const { return steps; }
  /// How many steps can be filled: 1 + the largest `ahead`.
  uint32_t inputCopies() const { return inputCopies_; }

  /// Of the last step, over all its micro-batches; terms as in the plan.
  double lossSum(uint32_t term) const { return *lossSums[term].as<double>(); }
  int64_t lossCount(uint32_t term) const {
    return *lossCounts[term].as<int64_t>();
  }
  /// The sum over terms of weight * sum / count; a term without labels is 0.
  double loss() const;
  /// Square of the gradient norm before clipping; 0 in a plan without it.
  double gradientSquareSum() const;

  const std::vector<ParameterState> &parameters() const { return parameters_; }
  const Memory &memory() const { return memory_; }
  /// Of this rank's stage.
  const plan::Plan &plan() const { return plan_; }
  const Mesh &mesh() const { return mesh_; }
  /// Number of this rank in the mesh.
  int64_t rank() const { return rank_; }
  /// From any thread.
  RankPosition position() const {
    return {stage, action.load(std::memory_order_relaxed)};
  }

private:
  struct Operand {
    BufferType type;
    std::byte *base;
    int64_t perRun;
    int64_t perSlot;
    /// Between stages, in place of perSlot.
    int64_t perBuffer;
    int64_t perMicroBatch;
    /// Rotating regions: bytes between copies, and how many.
    int64_t perCopy;
    uint32_t copies;
  };
  struct Launch {
    KernelFunction function;
    uint32_t firstOperand;
    uint32_t operandCount;
    std::span<const int64_t> integers;
    std::span<const double> floats;
  };
  struct Call {
    uint32_t firstLaunch;
    uint32_t launchCount;
    uint32_t count;
    uint32_t firstApplication;
    bool reverse;
  };
  struct Program {
    uint32_t firstCall;
    uint32_t callCount;
  };

  Executor(const plan::Plan &plan, Memory memory, ThreadPool &pool,
           RankContext rank);
  Status resolve(KernelLookup kernels);
  Status resolveCall(const plan::Program &program, const plan::Call &call,
                     KernelLookup kernels);
  Operand resolveOperand(const plan::Program &program, const plan::Call &call,
                         const plan::Buffer &buffer) const;
  /// Integers of a function on this rank.
  std::span<const int64_t> integersOf(uint32_t function);
  /// What the rank's coordinate adds to the address of a buffer.
  int64_t offsetOnRank(const plan::Buffer &buffer) const;
  void resolveState();
  ParameterState
  resolveParameter(LogicalParameter info,
                   const std::vector<OptimizerRange> &ranges) const;
  View viewAt(const plan::Buffer *buffer) const;
  Status runProgram(const plan::Action &action, KernelContext &context);
  void runLaunch(const Launch &launch, uint32_t run, const plan::Action &action,
                 const KernelContext &context);

  const plan::Plan &plan_;
  Memory memory_;
  ThreadPool &pool;
  const Mesh mesh_;
  const int64_t rank_;
  const int64_t stage;
  RankGroups groups;
  /// Where a function's integers depend on the rank, its copy of them.
  std::vector<std::vector<int64_t>> integers;
  std::vector<Program> programs;
  std::vector<Call> calls;
  std::vector<Launch> launches;
  std::vector<Operand> operands;
  /// Operands of the launch in progress.
  std::vector<View> views;
  std::vector<View> lossSums;
  std::vector<View> lossCounts;
  View squareSum;
  std::vector<ParameterState> parameters_;
  /// Steps done: which copy of a rotating region is current.
  uint64_t steps = 0;
  uint32_t inputCopies_ = 1;
  /// Of all replicas together, and those of replicas before this one.
  int64_t samplesPerMicroBatch = 1;
  int64_t samplesBefore = 0;
  std::atomic<int64_t> action{-1};
  ActionLog *actionLog = nullptr;
};

} // namespace mega

#endif // MEGA_RUNTIME_CORE_EXECUTOR_H
