//===- ValueExecution.cpp - A step over values ----------------------------===//
#include "runtime/plan/ValueExecution.h"

#include "runtime/plan/PlanLayouts.h"

#include <algorithm>
#include <array>

namespace mega {
namespace {

/// First words of hashes, apart from any kernel's number and Values.cpp's.
enum Tag : uint64_t { kParameter = 1 << 21, kInput };

bool isIdentity(Kernel kernel) {
  return kernel == Kernel::Copy || kernel == Kernel::Cast;
}

} // namespace

Value inputValue(uint32_t input, bool allMicroBatches) {
  return hashValue(
      std::array{uint64_t{kInput}, uint64_t{input}, uint64_t{allMicroBatches}});
}

Value parameterValue(std::string_view name) {
  std::vector<uint64_t> words = {kParameter};
  for (const char c : name) {
    words.push_back(static_cast<unsigned char>(c));
  }
  return hashValue(words);
}

StatusOr<ValueExecution> ValueExecution::begin(const VerifierContext &context,
                                               const plan::EntryPoint &entry) {
  const plan::Plan &plan = context.plan;
  ValueExecution execution(context, entry);
  execution.load();
  const Observer nobody = [](const auto &, const auto &, const auto &) {
    return Status::ok();
  };
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    if (plan.programs()->Get(p)->kind() == plan::ActionKind::Setup) {
      MEGA_RETURN_IF_ERROR(
          execution.run(plan::Action(p, 0, 0, 0), true, nullptr, nobody));
    }
  }
  return execution;
}

/// Parameters, and the copies of them that V13 proves to be made.
void ValueExecution::load() {
  for (const LogicalParameter &parameter : parameters) {
    const plan::Parameter &entry = *plan.parameters()->Get(parameter.entry);
    const Value value = parameterValue(parameter.name);
    rowsOf[value] = static_cast<int64_t>(entry.shape()->Get(0));
    const auto write = [&](const plan::Buffer &buffer, const Place &place) {
      const BufferType type = bufferType(buffer);
      memory.write(place.region, Box::of(type, place.offset), type, value,
                   {buffer.layout(), type});
    };
    write(*entry.weight(), parameter.weight);
    if (parameter.compute) {
      write(*entry.compute(), *parameter.compute);
    }
  }
}

Status ValueExecution::run(const plan::Action &action, bool keepDropout,
                           Tape *tape, const Observer &observer) {
  const uint32_t program = action.program();
  const plan::Program &p = *plan.programs()->Get(program);
  const auto calls = elements(p.calls());
  std::vector<uint32_t> scratch;
  for (uint32_t r = 0; r < length(plan.regions()); ++r) {
    if (isScratch(partOf(plan, r))) {
      scratch.push_back(r);
    }
  }
  for (uint32_t c = 0; c < calls.size(); ++c) {
    const plan::Call &call = calls[c];
    const size_t launches =
        length(plan.functions()->Get(call.function())->launches());
    std::vector<std::vector<Touch>> touches;
    touches.reserve(launches);
    for (uint32_t l = 0; l < launches; ++l) {
      touches.push_back(touchesOf(plan, program, c, l));
      for (Touch &touch : touches.back()) {
        const bool between =
            partOf(plan, touch.space.region) == plan::Part::Boundary;
        touch.box = touch.box.shifted(
            touch.space.perSlot * (between ? action.buffer() : action.slot()));
      }
    }
    for (const uint32_t number : sample.runsOf(call, p.kind())) {
      for (const std::vector<Touch> &operands : touches) {
        MEGA_RETURN_IF_ERROR(launch(operands, call, number, p.kind(),
                                    keepDropout, tape, observer));
      }
      for (uint32_t region : scratch) {
        memory.clear(region);
      }
    }
  }
  return Status::ok();
}

StatusOr<Value> ValueExecution::readInput(const Touch &touch, const Box &box,
                                          plan::ActionKind kind) const {
  const auto read = [&](uint32_t input, bool all) -> StatusOr<Value> {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        spreads.checkInput(bufferOf(plan, touch.site),
                           *plan.inputs()->Get(input)->buffer()),
        "{}", describe(plan, touch.site));
    return inputValue(input, all);
  };
  const uint32_t batches = entry.micro_batches();
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const plan::Buffer &buffer = *plan.inputs()->Get(i)->buffer();
    const int64_t bytes = bufferType(buffer).extentBytes();
    const int64_t stride = buffer.per_micro_batch();
    if (buffer.region() != touch.space.region || buffer.offset() != box.begin ||
        touch.space.perSlot != 0 || !box.isInterval() ||
        touch.type.type != DataType::I32) {
      continue;
    }
    if (kind == plan::ActionKind::Prologue) {
      if (touch.space.perMicroBatch == 0 && box.width == bytes * batches &&
          (batches == 1 || stride == bytes)) {
        return read(i, true);
      }
    } else if (box.width == bytes &&
               (batches == 1 || touch.space.perMicroBatch == stride)) {
      return read(i, false);
    }
  }
  return badInput("{} reads {} bytes at byte {} of region {}, {} bytes on for "
                  "each micro-batch: these are not {} of any input",
                  describe(plan, touch.site), box.end() - box.begin, box.begin,
                  text(plan.regions()->Get(touch.space.region)->name()),
                  touch.space.perMicroBatch,
                  kind == plan::ActionKind::Prologue ? "all micro-batches"
                                                     : "the micro-batch");
}

StatusOr<ReadValue> ValueExecution::read(const Touch &touch, const Box &box,
                                         plan::ActionKind kind) {
  if (partOf(plan, touch.space.region) != plan::Part::Input) {
    auto value = memory.read(touch.space.region, box, touch.type);
    if (!value.isOk()) {
      return std::move(value).takeStatus().withContext(
          describe(plan, touch.site));
    }
    MEGA_RETURN_IF_ERROR_CONTEXT(
        spreads.checkRead(bufferOf(plan, touch.site), *value), "{}",
        describe(plan, touch.site));
    for (const ReadValue::Part &part : value->parts) {
      if (!part.written && isRun(kind)) {
        return badInput("{} reads byte {} of region {}, which belongs to no "
                        "parameter and which nothing wrote",
                        describe(plan, touch.site), part.box.begin,
                        text(plan.regions()->Get(touch.space.region)->name()));
      }
    }
    return value;
  }
  MEGA_ASSIGN_OR_RETURN(const Value value, readInput(touch, box, kind));
  ReadValue result;
  result.value = value;
  return result;
}

StatusOr<Value> ValueExecution::valueAt(const Place &place,
                                        const BufferType &type) {
  MEGA_ASSIGN_OR_RETURN(
      ReadValue value,
      memory.read(place.region, Box::of(type, place.offset), type));
  return value.value;
}

/// A copy, or another type, of several values side by side keeps them apart,
/// and what nothing wrote stays unwritten.
void ValueExecution::move(const Touch &target, const Box &box,
                          const BufferType &sourceType, const Box &sourceBox,
                          const ReadValue &source) {
  const Spread spread{bufferOf(plan, target.site).layout(), target.type};
  const auto written = [](const auto &part) { return part.written; };
  if (std::none_of(source.parts.begin(), source.parts.end(), written)) {
    return;
  }
  const bool apart =
      box.isInterval() && sourceBox.isInterval() && source.parts.size() > 1 &&
      std::all_of(source.parts.begin(), source.parts.end(),
                  [](const auto &p) { return p.box.isInterval(); });
  if (!apart) {
    memory.write(target.space.region, box, target.type, source.value, spread);
    return;
  }
  const int64_t from = byteSize(sourceType.type);
  const int64_t to = byteSize(target.type.type);
  for (const ReadValue::Part &part : source.parts) {
    if (!part.written) {
      continue;
    }
    const int64_t begin =
        box.begin + (part.box.begin - sourceBox.begin) / from * to;
    const int64_t elements = part.box.width / from;
    // Of whole rows if it is, so that its blocks are called as they were.
    const int64_t columns = part.block.column == 0 && part.block.rows > 0
                                ? part.block.columns
                                : elements;
    memory.write(target.space.region,
                 Box::interval(begin, begin + elements * to),
                 BufferType(target.type.type, {elements / columns, columns}),
                 part.value, spreads.moved(part.spread, spread));
  }
}

/// Of a kernel that takes elements of an input as rows of a table.
Status ValueExecution::checkIds(const std::vector<Touch> &touches,
                                const ValueLaunch &launch) {
  size_t ids = 0;
  // Operand 1 in all of them; cut, the kernel has the rows of all of it.
  int64_t rows = launch.types.size() > 1 ? launch.types[1].dims[0] : 0;
  bool isParameter = true;
  switch (launch.kernel) {
  case Kernel::Embedding:
    rows = launch.integer("rows");
    break;
  case Kernel::HeadStats:
    ids = 2;
    rows = launch.integer("rows");
    break;
  case Kernel::AddPositionsAt:
    ids = 2;
    break;
  case Kernel::RopeAt:
    ids = 2;
    isParameter = false;
    break;
  default:
    return Status::ok();
  }
  const Touch &touch = touches[ids];
  if (isParameter && rows != rowsOfParameter(launch.before[1])) {
    return badInput(
        "{} indexes {} rows, its table {}", describe(plan, touch.site), rows,
        rowsOfParameter(launch.before[1]) == 0
            ? "is no parameter"
            : fmt::format("has {}", rowsOfParameter(launch.before[1])));
  }
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    if (launch.before[touch.site.operand] != inputValue(i, false)) {
      continue;
    }
    const plan::Input &input = *plan.inputs()->Get(i);
    int64_t &fewest = rowsByInput.try_emplace(i, rows).first->second;
    fewest = std::min(fewest, rows);
    if (input.limit() > static_cast<uint64_t>(rows)) {
      return badInput("{} indexes {} rows by input {}, whose ids are below {}",
                      describe(plan, touch.site), rows, text(input.name()),
                      input.limit());
    }
    return Status::ok();
  }
  return badInput("{} are ids of no input", describe(plan, touch.site));
}

Status ValueExecution::checkAttributes(const Site &site,
                                       const ValueLaunch &launch) const {
  const auto &names = kernelSpec(launch.kernel).integers;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "ignore" && launch.integers[i] != plan.ignore_label()) {
      return badInput("{} ignores label {}, the plan {}", describe(plan, site),
                      launch.integers[i], plan.ignore_label());
    }
  }
  return Status::ok();
}

/// What a launch between stages sends, or what it has for results.
Status ValueExecution::between(const Touch &touch, const ReadValue &read,
                               std::vector<Value> &results) {
  const StageMessage mine = {read.value, touch.type,
                             layoutOf(plan, bufferOf(plan, touch.site))};
  if (touch.kernel == Kernel::SendStart) {
    exchange.sent.push_back(mine);
  }
  if (touch.kernel != Kernel::ReceiveWait &&
      touch.kernel != Kernel::SumStages) {
    return Status::ok();
  }
  if (exchange.received.empty()) {
    return badInput("nothing comes from another stage");
  }
  const StageMessage message = exchange.received.front();
  exchange.received.erase(exchange.received.begin());
  if (message.type != mine.type || message.layout != mine.layout) {
    return badInput("the other stage has {} with layout [{}], this one {} with "
                    "layout [{}]",
                    toString(message.type), message.layout.str(),
                    toString(mine.type), mine.layout.str());
  }
  results.back() = message.value;
  return Status::ok();
}

StatusOr<std::vector<StageMessage>>
ValueExecution::contributions(uint32_t program) {
  std::vector<StageMessage> messages;
  const auto calls = elements(plan.programs()->Get(program)->calls());
  for (uint32_t c = 0; c < calls.size(); ++c) {
    const uint32_t launches =
        length(plan.functions()->Get(calls[c].function())->launches());
    for (uint32_t l = 0; l < launches; ++l) {
      const std::vector<Touch> touches = touchesOf(plan, program, c, l);
      if (touches[0].kernel != Kernel::SumStages || calls[c].count() != 1) {
        return badInput("{} is in a program that sums over stages, expected "
                        "nothing else in it, once",
                        describeLaunch(plan, touches[0].site));
      }
      MEGA_ASSIGN_OR_RETURN(const ReadValue value,
                            memory.read(touches[0].space.region, touches[0].box,
                                        touches[0].type));
      messages.push_back({value.value, touches[0].type,
                          layoutOf(plan, bufferOf(plan, touches[0].site))});
    }
  }
  return messages;
}

Status ValueExecution::checkDropout(const Site &site,
                                    const ValueLaunch &launch) {
  if (dropoutOf(launch) == 0) {
    return Status::ok();
  }
  const bool alone =
      launch.kernel == Kernel::Dropout || launch.kernel == Kernel::DropoutAt;
  const int64_t key = launch.integer(alone ? "key" : "dropout_key");
  return drops.emplace(key, launch.application).second
             ? Status::ok()
             : badInput("{} drops out by key {} in application {}, as another "
                        "launch of this forward does",
                        describe(plan, site), key, launch.application);
}

Status ValueExecution::launch(const std::vector<Touch> &touches,
                              const plan::Call &call, uint32_t run,
                              plan::ActionKind kind, bool keepDropout,
                              Tape *tape, const Observer &observer) {
  const Site &site = touches.front().site;
  const plan::Function &function = *plan.functions()->Get(call.function());
  const plan::Launch &launch = elements(function.launches())[site.launch];
  const KernelSpec &spec = kernelSpec(touches.front().kernel);
  ValueLaunch values;
  values.kernel = spec.kernel;
  values.application = int64_t{call.first_application()} + run;
  const auto integers =
      elements(function.integers())
          .subspan(launch.first_integer(), spec.integers.size());
  const auto floats = elements(function.floats())
                          .subspan(launch.first_float(), spec.floats.size());
  values.integers.assign(integers.begin(), integers.end());
  values.floats.assign(floats.begin(), floats.end());
  MEGA_RETURN_IF_ERROR(checkAttributes(site, values));

  std::vector<ReadValue> reads(touches.size());
  for (size_t i = 0; i < touches.size(); ++i) {
    const Touch &touch = touches[i];
    values.types.push_back(touch.type);
    if (touch.isRead()) {
      MEGA_ASSIGN_OR_RETURN(
          reads[i], read(touch, touch.box.shifted(touch.perRun * run), kind));
    }
    values.before.push_back(reads[i].value);
  }
  if (kind == plan::ActionKind::Forward) {
    if (keepDropout) {
      MEGA_RETURN_IF_ERROR(checkDropout(site, values));
    }
    if (firstStep) {
      MEGA_RETURN_IF_ERROR(checkIds(touches, values));
    }
  }
  if (!keepDropout) {
    values = withoutDropout(std::move(values));
  }
  const std::vector<Layout> layouts = layoutsOf(plan, site);
  MEGA_RETURN_IF_ERROR_CONTEXT(shards.check(values, layouts), "{}",
                               describe(plan, site));
  std::vector<Value> results = resultsOf(values);
  if (isBetweenStages(spec.kernel)) {
    MEGA_RETURN_IF_ERROR_CONTEXT(between(touches.front(), reads[0], results),
                                 "{}", describe(plan, site));
  }
  shards.record(values, results, layouts);
  MEGA_RETURN_IF_ERROR(observer(site, values, results));
  if (tape) {
    for (const ReadValue &value : reads) {
      tape->record(value);
    }
    tape->record(values, results);
  }
  for (size_t i = 0; i < touches.size(); ++i) {
    const Touch &touch = touches[i];
    if (!touch.isWritten() || spec.kernel == Kernel::ReceiveStart) {
      continue;
    }
    const Box box = touch.box.shifted(touch.perRun * run);
    if (isIdentity(spec.kernel)) {
      move(touch, box, touches[0].type,
           touches[0].box.shifted(touches[0].perRun * run), reads[0]);
      continue;
    }
    const Value old =
        touch.access == Access::ReadWrite ? reads[i].value : Value{0};
    memory.write(touch.space.region, box, touch.type, sum(old, results[i]),
                 {bufferOf(plan, touch.site).layout(), touch.type});
  }
  return Status::ok();
}

} // namespace mega
