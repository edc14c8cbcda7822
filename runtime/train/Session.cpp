#include "runtime/train/Session.h"

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/core/Files.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
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
                                                   int threads, uint64_t seed) {
  std::unique_ptr<Session> session(new Session());
  session->plan = &loaded.root();
  session->pool =
      std::make_unique<ThreadPool>(threads == 0 ? usableProcessors() : threads);
  warmUpGemm(*session->pool);
  MEGA_ASSIGN_OR_RETURN(session->executor_,
                        Executor::create(loaded, cpuKernel, *session->pool));
  const auto find = [](std::optional<uint32_t> found, std::string_view what,
                       uint32_t &number) {
    number = found.value_or(0);
    return found ? Status::ok()
                 : badInput("the plan has no {}; compile it with this megac",
                            what);
  };
  Executor &executor = *session->executor_;
  MEGA_RETURN_IF_ERROR(find(executor.findEntryPoint("train"),
                            "entry point train", session->train_));
  MEGA_RETURN_IF_ERROR(find(executor.findEntryPoint("eval"), "entry point eval",
                            session->eval_));
  MEGA_RETURN_IF_ERROR(
      find(executor.findInput("tokens"), "input tokens", session->tokens_));
  MEGA_RETURN_IF_ERROR(
      find(executor.findInput("labels"), "input labels", session->labels_));
  session->totals.resize(length(session->plan->loss_terms()));
  executor.initializeWeights(seed);
  StepScalars scalars;
  scalars.seed = seed;
  executor.runSetup(scalars);
  return session;
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
  options.vocabulary =
      static_cast<int64_t>(std::min(plan->inputs()->Get(tokens_)->limit(),
                                    plan->inputs()->Get(labels_)->limit()));
  options.seed = seed;
  options.ignoreToken = ignoreToken;
  options.once = once;
  return BatchLoader::open(source, options);
}

Status Session::fillAt(const BatchLoader &loader, int64_t step, uint64_t at) {
  for (int64_t m = 0; m < microBatches(); ++m) {
    const View tokens =
        executor_->inputOf(tokens_, static_cast<uint32_t>(m), at);
    const View labels =
        executor_->inputOf(labels_, static_cast<uint32_t>(m), at);
    const auto memory = [](const View &view) {
      return std::span(view.as<int32_t>(),
                       static_cast<size_t>(view.elements()));
    };
    MEGA_RETURN_IF_ERROR(
        loader.fill(step, m, /*dpRank=*/0,
                    {.tokens = memory(tokens), .labels = memory(labels)}));
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
  EvaluationProgress progress(steps);
  for (int64_t step = 0; step < steps; ++step) {
    MEGA_RETURN_IF_ERROR(fill(loader, step));
    executor_->runStep(eval_, scalars, loader.firstRow(step, 0, 0));
    for (uint32_t term = 0; term < totals.size(); ++term) {
      totals[term].sum += executor_->lossSum(term);
      totals[term].count += executor_->lossCount(term);
    }
    progress.update(step + 1);
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

Status dumpTensors(const Executor &executor, const DumpRequest &request) {
  const bool gradients = request.what == DumpRequest::What::Gradients;
  std::map<std::string, View> views;
  std::vector<TensorInfo> tensors;
  for (const ParameterState &parameter : executor.parameters()) {
    const View &view = gradients ? parameter.gradient : parameter.weight;
    views[parameter.info.name] = view;
    tensors.push_back({parameter.info.name, view.type, parameter.info.shape});
  }
  MEGA_ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::create(dumpPath(request), std::move(tensors)));
  for (const TensorInfo &info : std::vector<TensorInfo>(writer.tensors())) {
    const View &view = views[info.name];
    MEGA_RETURN_IF_ERROR(writer.append(
        info.name, {view.data, static_cast<size_t>(view.extentBytes())}));
  }
  return writer.finish();
}

Status loadWeights(Executor &executor, const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                        SafetensorsReader::open(path));
  // All of them before the first is copied.
  for (const ParameterState &parameter : executor.parameters()) {
    const auto *tensor = reader.find(parameter.info.name);
    if (tensor == nullptr) {
      return badInput("{} has no tensor {}", path, parameter.info.name);
    }
    if (tensor->type != parameter.weight.type ||
        tensor->shape != parameter.info.shape) {
      return badInput("{}: tensor {} is {} [{}], the plan wants {} [{}]", path,
                      parameter.info.name, name(tensor->type),
                      fmt::join(tensor->shape, ", "),
                      name(parameter.weight.type),
                      fmt::join(parameter.info.shape, ", "));
    }
  }
  for (const ParameterState &parameter : executor.parameters()) {
    const auto &bytes = reader.find(parameter.info.name)->bytes;
    std::memcpy(parameter.weight.data, bytes.data(), bytes.size());
  }
  // The copies that forward and backward read are made in the setup, which
  // draws no random numbers.
  executor.runSetup(StepScalars{});
  return Status::ok();
}

} // namespace mega
