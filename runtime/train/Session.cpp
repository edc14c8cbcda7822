#include "runtime/train/Session.h"

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/core/Files.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/DataInputs.h"
#include "runtime/telemetry/Progress.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace mega {

int usableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return 1;
  }
  return std::max(1, CPU_COUNT(&set));
}

StatusOr<std::unique_ptr<Session>> Session::create(const LoadedPlan &loaded,
                                                   RankWorld &world,
                                                   int threads, uint64_t seed) {
  std::unique_ptr<Session> session(new Session());
  // Batches and terms are those of any stage.
  session->plan = &stagePlan(loaded.root(), 0);
  LocalRankOptions options;
  options.seats = world.takeSeats();
  options.threads = threads;
  options.kernels = cpuKernel;
  options.fail = [&world](const RankFailure &mine) { return world.fail(mine); };
  MEGA_ASSIGN_OR_RETURN(session->ranks_,
                        LocalRanks::create(loaded, std::move(options)));
  session->tensors_ = std::make_unique<WholeTensors>(
      loaded.root(), *session->ranks_, world.everyone());
  const auto find = [](std::optional<uint32_t> found, std::string_view what,
                       uint32_t &number) {
    number = found.value_or(0);
    return found ? Status::ok()
                 : badInput("the plan has no {}; compile it with this megac",
                            what);
  };
  Executor &executor = session->executor();
  MEGA_RETURN_IF_ERROR(find(executor.findEntryPoint("train"),
                            "entry point train", session->train_));
  MEGA_RETURN_IF_ERROR(find(executor.findEntryPoint("eval"), "entry point eval",
                            session->eval_));
  MEGA_RETURN_IF_ERROR(
      find(executor.findInput(kTokensInput), "input tokens", session->tokens_));
  MEGA_RETURN_IF_ERROR(
      find(executor.findInput(kLabelsInput), "input labels", session->labels_));
  session->positions_ = executor.findInput(kPositionsInput);
  session->segments_ = executor.findInput(kSegmentsInput);
  MEGA_RETURN_IF_ERROR(session->checkInputs());
  world.setState([ranks = session->ranks_.get()] { return ranks->state(); });
  session->totals.resize(length(session->plan->loss_terms()));
  StepScalars scalars;
  scalars.seed = seed;
  MEGA_RETURN_IF_ERROR(session->ranks_->run([&](Executor &rank) {
    rank.initializeWeights(seed);
    return rank.runSetup(scalars);
  }));
  return session;
}

/// The loader can fill all of them: places in documents are below the sequence
/// length.
Status Session::checkInputs() const {
  for (const plan::Input *input : *plan->inputs()) {
    const std::string_view name = text(input->name());
    if (!isDataInput(name)) {
      return badInput("the plan has an input {}, and the data loader has none",
                      name);
    }
    if (!isTokenInput(name) && input->limit() < plan->sequence_length()) {
      return badInput("elements of input {} are below {}, and those of a "
                      "sequence of {} tokens may be up to {}; compile the plan "
                      "with this megac",
                      name, input->limit(), plan->sequence_length(),
                      plan->sequence_length() - 1);
    }
  }
  return Status::ok();
}

int64_t Session::microBatches() const {
  return plan->entry_points()->Get(train_)->micro_batches();
}

StatusOr<BatchLoader> Session::openData(const DataSource &source, uint64_t seed,
                                        std::optional<int64_t> ignoreToken,
                                        bool once) const {
  BatchLoaderOptions options;
  options.sequenceLength = plan->sequence_length();
  options.microBatchSize = plan->micro_batch_size();
  options.globalBatchSize = plan->global_batch_size();
  options.dataParallel = ranks_->mesh().size(Axis::Dp);
  options.packed = plan->packed();
  options.contextParallel = ranks_->mesh().size(Axis::Cp);
  options.order = static_cast<SequenceOrder>(plan->sequence_order());
  options.vocabulary =
      static_cast<int64_t>(std::min(plan->inputs()->Get(tokens_)->limit(),
                                    plan->inputs()->Get(labels_)->limit()));
  options.seed = seed;
  options.ignoreToken = ignoreToken;
  options.once = once;
  return BatchLoader::open(source, options);
}

Status Session::fillAt(const BatchLoader &loader, int64_t step, uint64_t at) {
  const auto memory = [](const View &view) {
    return std::span(view.as<int32_t>(), static_cast<size_t>(view.elements()));
  };
  const auto optional = [&](const Executor &rank, std::optional<uint32_t> input,
                            uint32_t microBatch) {
    return input ? memory(rank.inputOf(*input, microBatch, at))
                 : std::span<int32_t>();
  };
  for (size_t i = 0; i < ranks_->size(); ++i) {
    const Executor &rank = ranks_->executor(i);
    const int64_t replica = rank.mesh().coordinate(rank.rank(), Axis::Dp);
    const int64_t part = rank.mesh().coordinate(rank.rank(), Axis::Cp);
    for (uint32_t m = 0; m < microBatches(); ++m) {
      MEGA_RETURN_IF_ERROR(
          loader.fill(step, m, replica, part,
                      {.tokens = memory(rank.inputOf(tokens_, m, at)),
                       .labels = memory(rank.inputOf(labels_, m, at)),
                       .positions = optional(rank, positions_, m),
                       .segments = optional(rank, segments_, m)}));
    }
  }
  return Status::ok();
}

StatusOr<EvalResult> Session::evaluate(const BatchLoader &loader,
                                       const StepScalars &scalars,
                                       int64_t steps) {
  if (steps == 0 || steps > loader.stepsPerPass()) {
    steps = loader.stepsPerPass();
  }
  std::fill(totals.begin(), totals.end(), TermTotal{});
  std::optional<EvaluationProgress> progress;
  if (isRoot()) {
    progress.emplace(steps);
  }
  for (int64_t step = 0; step < steps; ++step) {
    MEGA_RETURN_IF_ERROR(fill(loader, step));
    MEGA_RETURN_IF_ERROR(runStep(eval_, scalars, loader.firstRow(step, 0, 0)));
    for (uint32_t term = 0; term < totals.size(); ++term) {
      totals[term].sum += executor().lossSum(term);
      totals[term].count += executor().lossCount(term);
    }
    if (progress) {
      progress->update(step + 1);
    }
  }
  EvalResult result;
  for (uint32_t term = 0; term < totals.size(); ++term) {
    const TermTotal &total = totals[term];
    result.loss += plan->loss_terms()->Get(term)->weight() * total.sum /
                   static_cast<double>(std::max<int64_t>(total.count, 1));
    result.tokens = std::max(result.tokens, total.count);
  }
  result.loss = withoutNanSign(result.loss);
  return result;
}

namespace {
std::string dumpPath(const DumpRequest &request) {
  return request.directory + (request.what == DumpRequest::What::Gradients
                                  ? "/gradients.safetensors"
                                  : "/weights.safetensors");
}
} // namespace

Status prepareDump(const DumpRequest &request) {
  std::error_code error;
  std::filesystem::create_directories(request.directory, error);
  if (error) {
    return ioError("cannot create {}: {}", request.directory, error.message());
  }
  // Not committed: leaves no file, and an older one as it is.
  MEGA_ASSIGN_OR_RETURN(const AtomicFile file,
                        AtomicFile::create(dumpPath(request)));
  return Status::ok();
}

Status Session::dumpTensors(const DumpRequest &request) {
  const ParameterPart part = request.what == DumpRequest::What::Gradients
                                 ? ParameterPart::Gradient
                                 : ParameterPart::Weight;
  const std::vector<WholeTensor> &parameters = tensors_->tensors();
  std::vector<TensorInfo> tensors;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const LogicalParameter &info = parameters[i].info;
    numbers[info.name] = i;
    tensors.push_back({info.name, DataType::F32, info.shape});
  }
  std::optional<SafetensorsWriter> writer;
  if (isRoot()) {
    MEGA_ASSIGN_OR_RETURN(writer, SafetensorsWriter::create(
                                      dumpPath(request), std::move(tensors)));
  }
  // All processes gather in one order; by name is that of the file.
  for (const auto &[name, number] : numbers) {
    MEGA_ASSIGN_OR_RETURN(const std::span<const float> whole,
                          tensors_->gather(number, part));
    if (writer) {
      MEGA_RETURN_IF_ERROR(writer->append(name, std::as_bytes(whole)));
    }
  }
  return writer ? writer->finish() : Status::ok();
}

Status Session::loadWeights(const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                        SafetensorsReader::open(path));
  const std::vector<WholeTensor> &parameters = tensors_->tensors();
  // All of them before the first is copied.
  for (const WholeTensor &parameter : parameters) {
    const LogicalParameter &info = parameter.info;
    const auto *tensor = reader.find(info.name);
    if (tensor == nullptr) {
      return badInput("{} has no tensor {}", path, info.name);
    }
    if (tensor->type != DataType::F32 || tensor->shape != info.shape) {
      return badInput("{}: tensor {} is {} [{}], the plan wants {} [{}]", path,
                      info.name, name(tensor->type),
                      fmt::join(tensor->shape, ", "), name(DataType::F32),
                      fmt::join(info.shape, ", "));
    }
  }
  std::vector<float> whole;
  for (size_t i = 0; i < parameters.size(); ++i) {
    // The file does not align its tensors.
    const auto bytes = reader.find(parameters[i].info.name)->bytes;
    whole.resize(bytes.size() / sizeof(float));
    std::memcpy(whole.data(), bytes.data(), bytes.size());
    tensors_->cut(i, ParameterPart::Weight, whole);
  }
  // The copies that forward and backward read are made in the setup, which
  // draws no random numbers.
  return ranks_->run(
      [](Executor &rank) { return rank.runSetup(StepScalars{}); });
}

} // namespace mega
