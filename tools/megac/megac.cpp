//===- megac.cpp - The compiler's command line ----------------------------===//
#include "passes/Compile.h"
#include "runtime/core/Files.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Report.h"
#include "tools/report/PlanReport.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace mega;

static cl::OptionCategory category("megac options");

static cl::opt<std::string> input(cl::Positional, cl::desc("MODEL.mlir"),
                                  cl::Required, cl::cat(category));
static cl::opt<std::string> output("o", cl::value_desc("PLAN.mega"),
                                   cl::desc("output (MODEL.mega); - is stdout"),
                                   cl::cat(category));
static cl::opt<int64_t>
    sequence("seq-length", cl::value_desc("S"), cl::init(0),
             cl::desc("sequence length (the model's max_sequence)"),
             cl::cat(category));
static cl::opt<int64_t> microBatch("micro-batch-size", cl::value_desc("B"),
                                   cl::init(1),
                                   cl::desc("rows of a micro-batch (1)"),
                                   cl::cat(category));
static cl::opt<int64_t>
    globalBatch("global-batch-size", cl::value_desc("G"), cl::init(0),
                cl::desc("rows of a step (4 micro-batches for each stage)"),
                cl::cat(category));
static cl::opt<int64_t> tensorParallel(
    "tp", cl::value_desc("N"), cl::init(1),
    cl::desc("tensor-parallel degree: ranks that share every layer (1)"),
    cl::cat(category));
static cl::opt<int64_t> contextParallel(
    "cp", cl::value_desc("N"), cl::init(1),
    cl::desc("context-parallel degree: ranks that share every sequence (1)"),
    cl::cat(category));
static cl::opt<std::string> contextMethod(
    "cp-method", cl::value_desc("NAME"),
    cl::desc("ring, gather or all-to-all: how attention sees the keys of other "
             "ranks (what waits least)"),
    cl::cat(category));
static cl::opt<int64_t> dataParallel(
    "dp", cl::value_desc("N"), cl::init(1),
    cl::desc("data-parallel degree: replicas that share the batch (1)"),
    cl::cat(category));
static cl::opt<int64_t> pipelineParallel(
    "pp", cl::value_desc("N"), cl::init(1),
    cl::desc("pipeline-parallel degree: stages, each with some layers (1)"),
    cl::cat(category));
static cl::opt<int64_t> chunks("vpp", cl::value_desc("N"), cl::init(1),
                               cl::desc("parts of the model on each stage (1)"),
                               cl::cat(category));
static cl::opt<std::string>
    schedule("schedule", cl::value_desc("NAME"),
             cl::desc("1f1b, gpipe, interleaved or zero-bubble (1f1b; "
                      "interleaved if --vpp is above 1)"),
             cl::cat(category));
static cl::opt<std::string>
    stages("stages", cl::value_desc("PARTS"),
           cl::desc("layers of every part, as in \"E 3L | 4L | 3L H\" "
                    "(balanced)"),
           cl::cat(category));
static cl::opt<bool> sequenceParallel(
    "sp", cl::desc("cut activations between layers along the sequence over tp"),
    cl::cat(category));
static cl::opt<bool> forbidImplicitReshard(
    "forbid-implicit-reshard",
    cl::desc("refuse a model that moves data over tp where no dist.constrain "
             "asks for it"),
    cl::cat(category));
static cl::opt<int64_t>
    zero("zero", cl::value_desc("0|1"), cl::init(0),
         cl::desc("1: every replica keeps a piece of the optimizer state (0)"),
         cl::cat(category));
static cl::opt<bool> packed("packed",
                            cl::desc("keep the documents of a row apart"),
                            cl::cat(category));
namespace {
enum class Precision { Fp32, Bf16 };
enum class Recompute { None, Selective, Full };
} // namespace
static cl::opt<Precision> precision(
    "precision", cl::desc("what is computed in (fp32):"),
    cl::values(clEnumValN(Precision::Fp32, "fp32", "everything in f32"),
               clEnumValN(Precision::Bf16, "bf16",
                          "activations and matrices in bf16; master weights, "
                          "gradients and optimizer state in f32")),
    cl::init(Precision::Fp32), cl::cat(category));
static cl::opt<Recompute>
    recompute("recompute",
              cl::desc("what the backward of a layer computes again (none):"),
              cl::values(clEnumValN(Recompute::None, "none", "nothing"),
                         clEnumValN(Recompute::Selective, "selective",
                                    "all but matrix products and attention"),
                         clEnumValN(Recompute::Full, "full",
                                    "everything, from the layer's input")),
              cl::init(Recompute::None), cl::cat(category));
static cl::opt<std::string>
    dumpDirectory("dump-ir", cl::value_desc("DIR"),
                  cl::desc("write the IR after every phase there"),
                  cl::cat(category));
static cl::opt<std::string> reportFile(
    "report", cl::ValueOptional, cl::value_desc("FILE.html"),
    cl::desc("print stages, memory and communication, or write a page "
             "with the timeline too"),
    cl::cat(category));

static int fail(const Status &status) {
  llvm::errs() << "megac: error: " << status.message() << "\n";
  return static_cast<int>(status.code());
}

/// Flushes standard output: 0, or the exit code of a failed write. Left to the
/// stream's destructor, a full disk would be an internal error.
static int finishOutput() {
  llvm::outs().flush();
  if (!llvm::outs().has_error()) {
    return 0;
  }
  const std::string reason = llvm::outs().error().message();
  llvm::outs().clear_error();
  return fail(ioError("cannot write to standard output: {}", reason));
}

static Status checkSchedule();
/// A whole file or none.
static Status writeFile(const std::string &path,
                        std::span<const std::byte> bytes) {
  MEGA_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  MEGA_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

/// What --report asks for, of a plan that is in `path`; `-` is standard output.
static Status writeReport(std::span<const std::byte> bytes,
                          const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan,
                        loadPlan({bytes.begin(), bytes.end()}));
  if (!reportFile.empty()) {
    const std::string page = renderHtml(planReport(plan));
    return writeFile(reportFile, std::as_bytes(std::span(page)));
  }
  // Text would end up in the plan.
  if (path != "-") {
    llvm::outs() << report(plan.root()) << "plan              " << path << ", "
                 << withThousands(bytes.size()) << " bytes, " << plan.hash()
                 << "\n";
  }
  return Status::ok();
}

static Status checkDegrees() {
  constexpr int64_t kMaxRanks = 1 << 20;
  int64_t ranks = 1;
  for (const auto &[flag, value] :
       {std::pair("--tp", int64_t{tensorParallel}),
        std::pair("--cp", int64_t{contextParallel}),
        std::pair("--dp", int64_t{dataParallel}),
        std::pair("--pp", int64_t{pipelineParallel}),
        std::pair("--vpp", int64_t{chunks})}) {
    if (value < 1 || value > kMaxRanks) {
      return makeError(Code::Failed, "{} {} is not between 1 and {}", flag,
                       value, kMaxRanks);
    }
    ranks = std::min(ranks * value, int64_t{kMaxRanks} * kMaxRanks);
  }
  ranks /= chunks;
  if (ranks > kMaxRanks) {
    return makeError(Code::Failed,
                     "--tp {} times --cp {} times --dp {} times --pp {} makes "
                     "{} ranks, at most {} are supported",
                     int64_t{tensorParallel}, int64_t{contextParallel},
                     int64_t{dataParallel}, int64_t{pipelineParallel}, ranks,
                     kMaxRanks);
  }
  if (pipelineParallel == 1) {
    for (const auto &[flag, given] :
         {std::pair("--vpp", chunks > 1),
          std::pair("--schedule", !schedule.empty()),
          std::pair("--stages", !stages.empty())}) {
      if (given) {
        return makeError(Code::Failed,
                         "{} is about the stages of a pipeline, and --pp is 1; "
                         "give --pp 2 or more, or leave {} out",
                         flag, flag);
      }
    }
  }
  if (stages.getNumOccurrences() > 0 && stages.empty()) {
    return makeError(Code::Failed, "--stages names no parts; write them as in "
                                   "\"E 3L | 3L H\", or leave it out");
  }
  return checkSchedule();
}

/// Whether the parts of a stage take turns.
static bool isInterleaved() {
  return schedule.empty() ? chunks > 1 : schedule == "interleaved";
}

static Status checkSchedule() {
  if (!schedule.empty() && schedule != "1f1b" && schedule != "gpipe" &&
      schedule != "interleaved" && schedule != "zero-bubble") {
    return makeError(Code::Failed,
                     "--schedule {} is not known (legal: 1f1b, gpipe, "
                     "interleaved, zero-bubble)",
                     std::string(schedule));
  }
  if (schedule == "zero-bubble") {
    return chunks <= 2
               ? Status::ok()
               : makeError(Code::Failed,
                           "--schedule zero-bubble has one part on each stage, "
                           "or two in a V, and --vpp is {} (legal: 1, 2)",
                           int64_t{chunks});
  }
  if (chunks > 1 && !isInterleaved()) {
    return makeError(Code::Failed,
                     "--schedule {} has one part on each stage, and --vpp is "
                     "{}; leave --vpp out, or give --schedule interleaved",
                     std::string(schedule), int64_t{chunks});
  }
  if (chunks == 1 && isInterleaved()) {
    return makeError(Code::Failed,
                     "--schedule interleaved takes turns between the parts of "
                     "a stage, and --vpp is 1; give --vpp 2 or more");
  }
  return Status::ok();
}

/// Interleaved, micro-batches go through in groups of as many as stages.
static Status checkGroups(int64_t total, int64_t together) {
  const int64_t microBatches = total / together;
  if (!isInterleaved() || microBatches % pipelineParallel == 0) {
    return Status::ok();
  }
  const int64_t below =
      microBatches / pipelineParallel * pipelineParallel * together;
  const int64_t above = below + pipelineParallel * together;
  return makeError(Code::Failed,
                   "--vpp {} takes micro-batches through {} stages in groups "
                   "of {}, and --global-batch-size {} makes {} of them "
                   "(nearest: {}{})",
                   int64_t{chunks}, int64_t{pipelineParallel},
                   int64_t{pipelineParallel}, total, microBatches,
                   below == 0 ? "" : fmt::format("{}, ", below), above);
}

static Status checkParallelism() {
  if (sequenceParallel && tensorParallel == 1) {
    return makeError(Code::Failed, "--sp cuts the sequence over --tp, which is "
                                   "1; give --tp 2 or more, or leave --sp out");
  }
  if (!contextMethod.empty() && contextMethod != "ring" &&
      contextMethod != "gather" && contextMethod != "all-to-all") {
    return makeError(Code::Failed,
                     "--cp-method {} is not known (legal: ring, gather, "
                     "all-to-all)",
                     std::string(contextMethod));
  }
  if (!contextMethod.empty() && contextParallel == 1) {
    return makeError(Code::Failed,
                     "--cp-method is about sequences over --cp, which is 1; "
                     "give --cp 2 or more, or leave --cp-method out");
  }
  if (zero < 0 || zero > 1) {
    return makeError(Code::Failed, "--zero {} is neither 0 nor 1",
                     int64_t{zero});
  }
  return Status::ok();
}

static int run() {
  CompileRequest request;
  const int64_t defaultMicroBatches =
      4 * std::max<int64_t>(pipelineParallel, 1);
  constexpr int64_t kMaxRows = 1 << 20;
  const int64_t rows = microBatch;
  if (rows < 1 || rows > kMaxRows) {
    return fail(makeError(Code::Failed,
                          "--micro-batch-size {} is not between 1 and {}", rows,
                          kMaxRows));
  }
  // Left out they have a default; a zero that was written is a mistake.
  if (globalBatch.getNumOccurrences() > 0 && globalBatch < 1) {
    return fail(makeError(Code::Failed,
                          "--global-batch-size {} is not positive",
                          int64_t{globalBatch}));
  }
  if (sequence.getNumOccurrences() > 0 && sequence < 1) {
    return fail(makeError(Code::Failed, "--seq-length {} is not positive",
                          int64_t{sequence}));
  }
  for (const auto check : {checkDegrees, checkParallelism}) {
    if (const Status status = check(); !status.isOk()) {
      return fail(status);
    }
  }
  // One micro-batch of all replicas.
  const int64_t together = rows * dataParallel;
  const int64_t total =
      globalBatch == 0 ? together * defaultMicroBatches : int64_t{globalBatch};
  if (total % together != 0) {
    const int64_t below = total / together * together;
    return fail(makeError(
        Code::Failed,
        "--global-batch-size {} is not a multiple of --micro-batch-size {}{} "
        "(nearest: {}{})",
        total, rows,
        dataParallel == 1
            ? ""
            : fmt::format(" times --dp {}", int64_t{dataParallel}),
        below == 0 ? "" : fmt::format("{}, ", below), below + together));
  }
  constexpr int64_t kMaxMicroBatches = 1 << 20;
  if (total / together > kMaxMicroBatches) {
    return fail(makeError(Code::Failed,
                          "--global-batch-size {} makes {} micro-batches, at "
                          "most {} are supported",
                          total, total / together, kMaxMicroBatches));
  }
  if (const Status status = checkGroups(total, together); !status.isOk()) {
    return fail(status);
  }
  const std::string precisionName =
      precision == Precision::Bf16 ? "bf16" : "fp32";
  const std::string recomputeName = recompute == Recompute::Full ? "full"
                                    : recompute == Recompute::Selective
                                        ? "selective"
                                        : "none";
  request.options = {.sequence = sequence,
                     .microBatch = rows,
                     .microBatches = total / together,
                     .precision = precisionName,
                     .recompute = recomputeName,
                     .packed = packed,
                     .tp = tensorParallel,
                     .cp = contextParallel,
                     .dp = dataParallel,
                     .cpMethod = contextMethod,
                     .sequenceParallel = sequenceParallel,
                     .forbidImplicitReshard = forbidImplicitReshard,
                     .zero = zero,
                     .pp = pipelineParallel,
                     .vpp = chunks,
                     .schedule = schedule,
                     .stages = stages};
  request.flags =
      fmt::format("--micro-batch-size {} --global-batch-size {}", rows, total);
  if (sequence != 0) {
    request.flags += fmt::format(" --seq-length {}", int64_t{sequence});
  }
  if (packed) {
    request.flags += " --packed";
  }
  if (precision != Precision::Fp32) {
    request.flags += " --precision " + precisionName;
  }
  if (recompute != Recompute::None) {
    request.flags += " --recompute " + recomputeName;
  }
  if (tensorParallel != 1) {
    request.flags += fmt::format(" --tp {}", int64_t{tensorParallel});
  }
  if (contextParallel != 1) {
    request.flags += fmt::format(" --cp {}", int64_t{contextParallel});
  }
  if (!contextMethod.empty()) {
    request.flags += " --cp-method " + std::string(contextMethod);
  }
  if (dataParallel != 1) {
    request.flags += fmt::format(" --dp {}", int64_t{dataParallel});
  }
  if (pipelineParallel != 1) {
    request.flags += fmt::format(" --pp {}", int64_t{pipelineParallel});
  }
  if (chunks != 1) {
    request.flags += fmt::format(" --vpp {}", int64_t{chunks});
  }
  if (!schedule.empty()) {
    request.flags += " --schedule " + std::string(schedule);
  }
  if (!stages.empty()) {
    request.flags += fmt::format(" --stages \"{}\"", std::string(stages));
  }
  if (sequenceParallel) {
    request.flags += " --sp";
  }
  if (forbidImplicitReshard) {
    request.flags += " --forbid-implicit-reshard";
  }
  if (zero != 0) {
    request.flags += fmt::format(" --zero {}", int64_t{zero});
  }
  request.dumpDirectory = dumpDirectory;

  auto model = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!model) {
    return fail(ioError("cannot read {}: {}", std::string(input),
                        model.getError().message()));
  }
  auto bytes = compile(std::move(*model), request);
  if (!bytes.isOk()) {
    return fail(bytes.status());
  }
  std::string path = output;
  if (path.empty()) {
    llvm::SmallString<128> derived(input == "-" ? std::string("model")
                                                : std::string(input));
    llvm::sys::path::replace_extension(derived, "mega");
    path = derived.str().str();
  }
  if (path == "-") {
    llvm::outs().write(reinterpret_cast<const char *>(bytes->data()),
                       bytes->size());
  } else if (const Status status = writeFile(path, *bytes); !status.isOk()) {
    return fail(status);
  }
  if (reportFile.getNumOccurrences() > 0) {
    if (const Status status = writeReport(*bytes, path); !status.isOk()) {
      return fail(status);
    }
  }
  return finishOutput();
}

int main(int argc, char **argv) {
  llvm::setBugReportMsg("");
  llvm::InitLLVM init(argc, argv);
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    llvm::errs() << "megac: internal error: " << reason << "\n";
    std::_Exit(static_cast<int>(Code::Internal));
  });
  cl::HideUnrelatedOptions(category);
  // It lists what --help lists.
  cl::getRegisteredOptions()["help-list"]->setHiddenFlag(cl::ReallyHidden);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "megac " MEGA_VERSION ", plan format " << kPlanVersion << ", LLVM "
       << LLVM_VERSION_STRING << "\n";
  });
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Compiles a Transformer into one proved plan.\n\n"
          "  megac examples/gpt2-tiny.mlir --micro-batch-size 4 --report\n"
          "  megac model.mlir --tp 4 --sp --cp 2 --pp 4 --zero 1 "
          "--report=a.html\n\n"
          "Exit codes: 0 ok, 1 model or configuration rejected, 2 wrong "
          "usage,\n"
          "70 internal error, 74 input/output error.\n",
          &stream)) {
    llvm::errs() << errors;
    return static_cast<int>(Code::Usage);
  }
  return run();
}
