//===- FunctionLowering.cpp -----------------------------------------------===//
#include "passes/FunctionLowering.h"

#include "passes/Buffers.h"
#include "runtime/plan/Packer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;
using tfm::ExecInteger;
using tfm::ExecOperand;

namespace {

exec::BufferType bufferType(Value value) {
  return exec::BufferType::get(cast<RankedTensorType>(value.getType()));
}

exec::BufferType bufferType(MLIRContext *context, BufferType plain,
                            dist::LayoutAttr layout = {}) {
  Builder builder(context);
  Type element;
  switch (plain.type) {
  case DataType::F32:
    element = builder.getF32Type();
    break;
  case DataType::BF16:
    element = builder.getBF16Type();
    break;
  case DataType::F64:
    element = builder.getF64Type();
    break;
  case DataType::I32:
    element = builder.getI32Type();
    break;
  case DataType::I64:
    element = builder.getI64Type();
    break;
  }
  return exec::BufferType::get(context,
                               ArrayRef<int64_t>(plain.dims.data(), plain.rank),
                               element, plain.rowStride, layout);
}

/// Lowers one function. Data numbers of `buffers` stand for values; views of
/// one another have the same number.
class FunctionLowering : public tfm::ExecContext {
public:
  FunctionLowering(tfm::FunctionOp function, ModuleState &state)
      : function(function), state(state) {
    localize();
  }

  LogicalResult run(OpBuilder &builder);

  // ExecContext
  void launch(Kernel kernel, ArrayRef<ExecOperand> operands,
              ArrayRef<ExecInteger> integers, ArrayRef<double> floats) override;
  const Mesh &mesh() override { return state.mesh(); }
  RankedTensorType wholeType(Value value) override {
    return wholeTypes.lookup(value);
  }
  int64_t groupOf(ArrayRef<mega::Axis> axes) override {
    return state.groupOf(axes);
  }
  void alias(Value result, Value operand) override;
  void onto(Value result, Value operand) override {
    accumulations.push_back({dataOf(operand), dataOf(result)});
  }
  void accumulateInto(Value gradient, Attribute target) override {
    gradientTargets.push_back({gradient, target});
  }
  void record(Value value, StringRef name) override {
    records.push_back({value, name.str()});
  }

private:
  /// An operand after recording: data it reads or writes, side by side or
  /// stacked, or memory of its own.
  struct Operand {
    ExecOperand::Kind kind;
    SmallVector<int, 3> data;
    exec::BufferType type;
    StateAddress address;
  };
  struct Launch {
    Kernel kernel;
    SmallVector<Operand> operands;
    SmallVector<int64_t> integers;
    /// Triples: number of the integer, axis, factor.
    SmallVector<int64_t> terms;
    SmallVector<double> floats;
    Location loc;
  };

  void localize();
  LogicalResult recordBody();
  /// Whether the result of the same number takes over an argument's memory.
  bool isTakenOver(int64_t argument);
  int dataOf(Value value);
  int newData(exec::BufferType type);
  void useState(Value value, const StateAddress &address);
  void useSaved(ArrayRef<BlockArgument> arguments);
  LogicalResult placeGradients();
  void computeLifetimes();
  void copy(int64_t before, int source, exec::BufferType sourceType, int target,
            exec::BufferType targetType);
  void placeColumns();
  bool isSideBySide(ArrayRef<int> numbers);
  int64_t placeSideBySide(size_t index, size_t position);
  void placeSaved();
  void placeResults();
  void placeCounters();
  void shareInPlace();
  int64_t bytesOf(int root) const {
    const Buffers::Root &r = buffers.root(root);
    return r.rows * r.rowSize * r.elementBytes;
  }
  bool isReadByWeight(size_t slot);
  std::pair<int64_t, int64_t> launchesOf(int root) const;
  int savedUnder(const Launch &launch, size_t position) const;
  int64_t overSaved(int64_t launch, int root);
  void placeInFrame();
  LogicalResult emit(OpBuilder &builder);
  Value rootValue(OpBuilder &builder, int root);
  Value bufferOf(OpBuilder &builder, int data, exec::BufferType type);
  FailureOr<Value> rowsOf(OpBuilder &builder, const Launch &launch,
                          const Operand &operand);

  tfm::FunctionOp function;
  ModuleState &state;
  Location current = function.getLoc();
  Buffers buffers;
  llvm::DenseMap<Value, RankedTensorType> wholeTypes;
  llvm::DenseMap<Value, int> dataNumbers;
  std::vector<Launch> launches;
  std::vector<exec::BufferType> dataTypes;
  /// Fixed roots: argument number or state address.
  std::map<int, int64_t> argumentRoots;
  std::map<int, StateAddress> stateRoots;
  /// Data that were copied to lie side by side, and where they do: the next
  /// launch that reads them so needs no copies.
  std::map<std::vector<int>, SmallVector<int, 3>> copiesSideBySide;
  SmallVector<std::pair<int, int>> accumulations;
  SmallVector<std::pair<Value, Attribute>> gradientTargets;
  SmallVector<std::pair<Value, std::string>> records;
  SmallVector<std::pair<int, exec::BufferType>> savedData;
  std::map<int, Value> rootValues;
  llvm::DenseMap<std::pair<int, Type>, Value> slices;
  std::map<int, int64_t> frameOffsets;
  /// What the functions before this one saved.
  std::vector<FrameSlot> savedBefore;
  /// Those that lie in a root.
  std::map<int, SmallVector<size_t>> slotsOfRoot;
  OpBuilder *prelude = nullptr;
};

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

/// From here on types are what one rank holds.
void FunctionLowering::localize() {
  const auto local = [&](Value value) {
    const RankedTensorType whole = tfm::tensor(value);
    wholeTypes[value] = whole;
    value.setType(dist::localType(whole, state.mesh()));
  };
  const auto localAll = [&](ArrayRef<Type> types) {
    return llvm::map_to_vector(types, [&](Type type) -> Type {
      return dist::localType(cast<RankedTensorType>(type), state.mesh());
    });
  };
  llvm::for_each(function.getBody().getArguments(), local);
  for (Operation &op : function.getBody().front()) {
    llvm::for_each(op.getResults(), local);
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), localAll(function.getArgumentTypes()),
      localAll(function.getResultTypes())));
}

int FunctionLowering::newData(exec::BufferType type) {
  const BufferType plain = type.plain();
  const int number =
      buffers.addData(plain.rows(), plain.rowSize(), byteSize(plain.type));
  dataTypes.push_back(type);
  return number;
}

int FunctionLowering::dataOf(Value value) {
  const auto it = dataNumbers.find(value);
  if (it != dataNumbers.end()) {
    return it->second;
  }
  const int number = newData(bufferType(value));
  dataNumbers[value] = number;
  // Rotation tables appear while ops state their launches.
  if (auto table = value.getDefiningOp<tfm::RopeTableOp>()) {
    useState(value, state.ropeTable(table));
  }
  return number;
}

/// `value` is in a state region from before the first launch.
void FunctionLowering::useState(Value value, const StateAddress &address) {
  const int number = dataOf(value);
  buffers.defineAt(number, Buffers::kBefore);
  buffers.data(number).lastUse = Buffers::kForever;
  const int root = buffers.data(number).root;
  buffers.root(root).fixed = true;
  stateRoots[root] = address;
}

/// Saved values are in the frame, some as columns of one buffer.
void FunctionLowering::useSaved(ArrayRef<BlockArgument> arguments) {
  std::map<size_t, SmallVector<size_t>> byBuffer;
  for (auto [index, slot] : llvm::enumerate(savedBefore)) {
    byBuffer[slot.buffer].push_back(index);
  }
  for (const auto &[buffer, members] : byBuffer) {
    const FrameSlot &first = savedBefore[members.front()];
    StateAddress address{"saved", first.offset, 0};
    if (members.size() > 1) {
      address.offset = first.bufferOffset;
      const BufferType plain = first.type.plain();
      const int packed = buffers.addPackedRoot(plain.rows(), plain.rowStride,
                                               byteSize(plain.type));
      for (size_t index : members) {
        buffers.place(dataOf(arguments[index]), packed,
                      (savedBefore[index].offset - first.bufferOffset) /
                          byteSize(plain.type));
      }
    }
    for (size_t index : members) {
      useState(arguments[index], address);
      dataTypes[dataOf(arguments[index])] = savedBefore[index].type;
    }
    slotsOfRoot[buffers.data(dataOf(arguments[members.front()])).root] =
        members;
  }
}

void FunctionLowering::alias(Value result, Value operand) {
  dataNumbers[result] = dataOf(operand);
}

void FunctionLowering::launch(Kernel kernel, ArrayRef<ExecOperand> operands,
                              ArrayRef<ExecInteger> integers,
                              ArrayRef<double> floats) {
  Launch launch{kernel, {}, {}, {}, SmallVector<double>(floats), current};
  for (auto [index, integer] : llvm::enumerate(integers)) {
    launch.integers.push_back(integer.value);
    for (const ExecInteger::Term &term : integer.terms) {
      launch.terms.append({static_cast<int64_t>(index),
                           static_cast<int64_t>(term.axis), term.factor});
    }
  }
  for (const ExecOperand &operand : operands) {
    Operand lowered{operand.kind, {}, {}, {}};
    switch (operand.kind) {
    case ExecOperand::Kind::Value:
    case ExecOperand::Kind::Columns:
    case ExecOperand::Kind::Rows:
      for (Value value : operand.values) {
        lowered.data.push_back(dataOf(value));
        buffers.data(lowered.data.back()).contiguous |= isConversion(kernel);
      }
      if (lowered.data.size() == 1) {
        lowered.kind = ExecOperand::Kind::Value;
      }
      lowered.type = bufferType(operand.values.front());
      break;
    case ExecOperand::Kind::Scratch:
      lowered.type =
          bufferType(function.getContext(), operand.type, operand.layout);
      lowered.data.push_back(newData(lowered.type));
      lowered.kind = ExecOperand::Kind::Value;
      break;
    case ExecOperand::Kind::State:
      lowered.type =
          bufferType(function.getContext(), operand.type, operand.layout);
      lowered.address = {operand.name.str(),
                         operand.offset * byteSize(operand.type.type), 0,
                         operand.cutOver};
      break;
    case ExecOperand::Kind::Counter:
      lowered.type =
          bufferType(function.getContext(), operand.type, operand.layout);
      lowered.address = state.counter(operand.name, lowered.type);
      lowered.kind = ExecOperand::Kind::State;
      break;
    }
    launch.operands.push_back(std::move(lowered));
  }
  launches.push_back(std::move(launch));
}

LogicalResult FunctionLowering::recordBody() {
  Block &body = function.getBody().front();
  const auto saved = static_cast<int64_t>(function.getSavedArguments());
  const int64_t inputs = static_cast<int64_t>(body.getNumArguments()) - saved;
  for (int64_t i = 0; i < inputs; ++i) {
    const int number = dataOf(body.getArgument(i));
    buffers.defineAt(number, Buffers::kBefore);
    buffers.root(buffers.data(number).root).fixed = true;
    argumentRoots[buffers.data(number).root] = i;
  }
  if (saved > 0) {
    const auto &frame = state.frames[function.getBlock()->str()];
    savedBefore = frame;
    if (static_cast<int64_t>(frame.size()) != saved) {
      return function.emitError()
             << "reads " << saved << " saved values but its "
             << (function.getSymName().ends_with(".weight") ? "backward"
                                                            : "forward")
             << " keeps " << frame.size();
    }
    useSaved(body.getArguments().take_back(saved));
  }
  SmallVector<Operation *> ops;
  for (Operation &op : body) {
    ops.push_back(&op);
  }
  for (Operation *op : ops) {
    current = op->getLoc();
    if (isa<tfm::ReturnOp>(op)) {
      continue;
    }
    if (auto param = dyn_cast<tfm::ParamOp>(op)) {
      auto address =
          state.weight(op, function.getBlock().value_or(""), param.getName());
      if (failed(address)) {
        return failure();
      }
      useState(param.getResult(), *address);
      continue;
    }
    if (auto counter = dyn_cast<tfm::ReadCounterOp>(op)) {
      useState(
          counter.getResult(),
          state.counter(counter.getCounter(), bufferType(counter.getResult())));
      continue;
    }
    if (auto shared = dyn_cast<tfm::UseOp>(op)) {
      auto address = state.weight(op, "", shared.getSymbol());
      if (failed(address)) {
        return failure();
      }
      useState(shared.getResult(), *address);
      continue;
    }
    auto lowerable = dyn_cast<tfm::LowerToExec>(op);
    if (!lowerable) {
      return op->emitError() << "has no lowering (LowerToExec)";
    }
    if (failed(lowerable.lowerToExec(*this))) {
      return failure();
    }
  }
  current = function.getLoc();
  return success();
}

//===----------------------------------------------------------------------===//
// Placing
//===----------------------------------------------------------------------===//

/// Weight gradients lie where they accumulate; their kernels add.
LogicalResult FunctionLowering::placeGradients() {
  for (auto [gradient, target] : gradientTargets) {
    const auto symbol = dyn_cast<FlatSymbolRefAttr>(target);
    const StringRef name =
        symbol ? symbol.getValue() : cast<StringAttr>(target).getValue();
    auto address = state.gradient(
        gradient.getDefiningOp() ? gradient.getDefiningOp() : function,
        symbol ? "" : function.getBlock().value_or(""), name);
    if (failed(address)) {
      return failure();
    }
    const int number = dataOf(gradient);
    bool accumulates = false;
    for (const Launch &launch : launches) {
      const KernelSpec &spec = kernelSpec(launch.kernel);
      for (auto [index, operand] : llvm::enumerate(launch.operands)) {
        if (llvm::is_contained(operand.data, number) &&
            resolvedAccess(spec, static_cast<int>(index),
                           {launch.integers.data(), launch.integers.size()}) ==
                Access::ReadWrite) {
          accumulates = true;
        }
      }
    }
    const int root = buffers.data(number).root;
    if (accumulates && !buffers.root(root).fixed) {
      buffers.root(root).fixed = true;
      stateRoots[root] = *address;
      continue;
    }
    // Computed elsewhere: add it once it is there.
    Launch add{Kernel::Accumulate, {}, {}, {}, {}, gradient.getLoc()};
    const exec::BufferType type = bufferType(gradient);
    add.operands.push_back({ExecOperand::Kind::Value, {number}, type, {}});
    add.operands.push_back({ExecOperand::Kind::State, {}, type, *address});
    launches.push_back(std::move(add));
  }
  return success();
}

/// First writes and last reads, in launches; in-place rights.
void FunctionLowering::computeLifetimes() {
  for (int i = 0; i < buffers.dataCount(); ++i) {
    Buffers::Data &data = buffers.data(i);
    if (!buffers.rootOf(i).fixed || argumentRoots.count(data.root)) {
      data.lastUse = Buffers::kBefore;
    }
  }
  for (auto [index, launch] : llvm::enumerate(launches)) {
    const auto time = static_cast<int64_t>(index);
    const KernelSpec &spec = kernelSpec(launch.kernel);
    for (auto [position, operand] : llvm::enumerate(launch.operands)) {
      for (int number : operand.data) {
        buffers.defineAt(number, time);
        buffers.useAt(number, time);
      }
      if (!worksInPlace(spec, launch.integers)) {
        continue;
      }
      for (int source : {spec.operands[position].inPlaceOf,
                         spec.operands[position].alsoInPlaceOf}) {
        if (source >= 0 && operand.data.size() == 1 &&
            launch.operands[source].data.size() == 1) {
          buffers.allowInPlace(launch.operands[source].data[0],
                               operand.data[0]);
        }
      }
    }
  }
  for (auto [operand, result] : accumulations) {
    buffers.allowInPlace(operand, result);
    buffers.useAt(operand, buffers.data(result).def);
  }
  for (const auto &[root, argument] : argumentRoots) {
    if (!isTakenOver(argument)) {
      for (int number : buffers.root(root).members) {
        buffers.data(number).lastUse = Buffers::kForever;
      }
    }
  }
  for (auto &[number, type] : savedData) {
    buffers.data(number).lastUse = Buffers::kForever;
    buffers.data(number).saved = true;
  }
  auto terminator = cast<tfm::ReturnOp>(function.getBody().front().back());
  const auto saved = static_cast<int64_t>(function.getSavedResults());
  for (Value value : terminator.getValues().drop_back(saved)) {
    buffers.data(dataOf(value)).lastUse = Buffers::kForever;
  }
}

/// Inserts a copy in front of launch `before`.
void FunctionLowering::copy(int64_t before, int source,
                            exec::BufferType sourceType, int target,
                            exec::BufferType targetType) {
  Launch launch{Kernel::Copy, {}, {}, {}, {}, function.getLoc()};
  launch.operands.push_back(
      {ExecOperand::Kind::Value, {source}, sourceType, {}});
  launch.operands.push_back(
      {ExecOperand::Kind::Value, {target}, targetType, {}});
  launches.insert(launches.begin() + before, std::move(launch));
}

/// What is saved and not made here (an argument) is copied into the frame.
void FunctionLowering::placeSaved() {
  auto terminator = cast<tfm::ReturnOp>(function.getBody().front().back());
  const auto count = static_cast<int64_t>(function.getSavedResults());
  for (Value value : terminator.getValues().take_back(count)) {
    int number = dataOf(value);
    if (buffers.rootOf(number).fixed) {
      const int target = newData(bufferType(value));
      copy(0, number, bufferType(value), target, bufferType(value));
      number = target;
    }
    savedData.push_back({number, bufferType(value)});
  }
}

/// Values that a kernel wants side by side become columns of one buffer; one
/// that cannot is copied.
void FunctionLowering::placeColumns() {
  for (size_t index = 0; index < launches.size(); ++index) {
    for (size_t position = 0; position < launches[index].operands.size();
         ++position) {
      Operand &operand = launches[index].operands[position];
      if (operand.kind != ExecOperand::Kind::Columns) {
        continue;
      }
      if (!isSideBySide(operand.data)) {
        index += placeSideBySide(index, position);
      }
    }
  }
}

bool FunctionLowering::isSideBySide(ArrayRef<int> numbers) {
  int64_t column = 0;
  for (int number : numbers) {
    if (buffers.data(number).root != buffers.data(numbers.front()).root ||
        buffers.data(number).column != column) {
      return false;
    }
    column += buffers.data(number).width;
  }
  return column == buffers.rootOf(numbers.front()).rowSize;
}

/// Returns how many launches were inserted in front of launch `index`.
int64_t FunctionLowering::placeSideBySide(size_t index, size_t position) {
  SmallVector<int, 3> numbers = launches[index].operands[position].data;
  const std::vector<int> values(numbers.begin(), numbers.end());
  if (const auto it = copiesSideBySide.find(values);
      it != copiesSideBySide.end()) {
    launches[index].operands[position].data = it->second;
    computeLifetimes();
    return 0;
  }
  int64_t width = 0;
  for (int number : numbers) {
    width += buffers.data(number).width;
  }
  const Buffers::Root first = buffers.rootOf(numbers.front());
  const int packed =
      buffers.addPackedRoot(first.rows, width, first.elementBytes);
  const KernelSpec &spec = kernelSpec(launches[index].kernel);
  const bool reads = spec.operands[position].access == Access::Read;
  int64_t column = 0;
  int64_t before = 0;
  for (int &number : numbers) {
    const int64_t next = column + buffers.data(number).width;
    if (!buffers.place(number, packed, column)) {
      // It has a place already: move the data, before or after the launch.
      const exec::BufferType type = dataTypes[number];
      const int moved = newData(type);
      const auto time = static_cast<int64_t>(index) + before;
      if (reads) {
        copy(time, number, type, moved, type);
        ++before;
      } else {
        copy(time + 1, moved, type, number, type);
      }
      buffers.place(moved, packed, column);
      number = moved;
    }
    column = next;
  }
  launches[index + before].operands[position].data = numbers;
  if (before > 0) {
    copiesSideBySide[values] = numbers;
  }
  computeLifetimes();
  return before;
}

bool FunctionLowering::isTakenOver(int64_t argument) {
  const int64_t results = function.getNumResults() -
                          static_cast<int64_t>(function.getSavedResults());
  return argument < results && function.getArgumentTypes()[argument] ==
                                   function.getResultTypes()[argument];
}

/// Result i takes over the memory of argument i where types agree, and has an
/// argument of its own elsewhere; a result that cannot be computed there is
/// copied at the end.
void FunctionLowering::placeResults() {
  auto terminator = cast<tfm::ReturnOp>(function.getBody().front().back());
  Block &body = function.getBody().front();
  const int64_t inputs = static_cast<int64_t>(body.getNumArguments()) -
                         static_cast<int64_t>(function.getSavedArguments());
  int64_t next = inputs;
  const auto results = terminator.getValues().drop_back(
      static_cast<int64_t>(function.getSavedResults()));
  for (auto [index, value] : llvm::enumerate(results)) {
    const exec::BufferType type = bufferType(value);
    int root = -1;
    if (static_cast<int64_t>(index) < inputs &&
        isTakenOver(static_cast<int64_t>(index))) {
      root = buffers.data(dataOf(body.getArgument(index))).root;
    } else {
      const BufferType plain = type.plain();
      root = buffers.addPackedRoot(plain.rows(), plain.rowSize(),
                                   byteSize(plain.type));
      buffers.root(root).fixed = true;
      argumentRoots[root] = next++;
    }
    const int number = dataOf(value);
    if (buffers.data(number).root == root) {
      continue;
    }
    if (buffers.place(number, root, 0)) {
      continue;
    }
    const int target = newData(type);
    const auto end = static_cast<int64_t>(launches.size());
    copy(end, number, type, target, type);
    buffers.useAt(number, end);
    buffers.defineAt(target, end);
    buffers.data(target).lastUse = Buffers::kForever;
    // Written by the last launch: after every other use of the memory.
    const int own = buffers.data(target).root;
    buffers.root(root).members.push_back(target);
    buffers.root(own).members.clear();
    buffers.data(target).root = root;
  }
}

void FunctionLowering::placeCounters() {
  for (auto &[value, name] : records) {
    const exec::BufferType type = bufferType(value);
    const StateAddress address = state.counter(name, type);
    const int number = dataOf(value);
    const int root = buffers.data(number).root;
    if (buffers.isFree(number) && !buffers.isSaved(root)) {
      buffers.root(root).fixed = true;
      stateRoots[root] = address;
      continue;
    }
    const int target = newData(type);
    const auto end = static_cast<int64_t>(launches.size());
    copy(end, number, type, target, type);
    buffers.useAt(number, end);
    buffers.defineAt(target, end);
    buffers.root(buffers.data(target).root).fixed = true;
    stateRoots[buffers.data(target).root] = address;
  }
}

/// Results over operands wherever kernels and lifetimes allow it.
void FunctionLowering::shareInPlace() {
  for (size_t index = 0; index < launches.size(); ++index) {
    const KernelSpec &spec = kernelSpec(launches[index].kernel);
    if (!worksInPlace(spec, launches[index].integers)) {
      continue;
    }
    for (size_t position = 0; position < launches[index].operands.size();
         ++position) {
      const Operand &operand = launches[index].operands[position];
      // Saved over what was saved, it needs no room in the frame.
      if (operand.data.size() == 1 &&
          buffers.data(operand.data.front()).saved &&
          overSaved(static_cast<int64_t>(index),
                    buffers.data(operand.data.front()).root) >= 0) {
        continue;
      }
      for (int source : {spec.operands[position].inPlaceOf,
                         spec.operands[position].alsoInPlaceOf}) {
        if (source < 0 || operand.data.size() != 1 ||
            launches[index].operands[source].data.size() != 1) {
          continue;
        }
        if (buffers.share(launches[index].operands[source].data[0],
                          operand.data[0])) {
          break;
        }
      }
    }
  }
  // Where the operand lives on, the result starts from a copy of it. From the
  // last launch to the first, so that numbers of launches stay valid.
  SmallVector<std::pair<int, int>> copied;
  for (auto [operand, result] : accumulations) {
    if (!buffers.share(operand, result)) {
      copied.push_back({operand, result});
    }
  }
  llvm::sort(copied, [&](auto a, auto b) {
    return buffers.data(a.second).def > buffers.data(b.second).def;
  });
  for (auto [operand, result] : copied) {
    copy(buffers.data(result).def, operand, dataTypes[operand], result,
         dataTypes[result]);
  }
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

/// Whether the weight reads a saved value.
bool FunctionLowering::isReadByWeight(size_t slot) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<tfm::FunctionOp>(
      function,
      StringAttr::get(function.getContext(), *function.getBlock() + ".weight"));
  if (!weight) {
    return false;
  }
  const int64_t first = weight.getBody().getNumArguments() -
                        static_cast<int64_t>(weight.getSavedArguments());
  return !weight.getBody()
              .getArgument(static_cast<unsigned>(first + slot))
              .use_empty();
}

/// The first and the last launch that touches what is in a root.
std::pair<int64_t, int64_t> FunctionLowering::launchesOf(int root) const {
  std::pair<int64_t, int64_t> range = {Buffers::kForever, Buffers::kBefore};
  for (auto [index, launch] : llvm::enumerate(launches)) {
    const bool touches =
        llvm::any_of(launch.operands, [&](const Operand &operand) {
          return llvm::any_of(operand.data, [&](int number) {
            return buffers.data(number).root == root;
          });
        });
    if (touches) {
      range.first = std::min(range.first, static_cast<int64_t>(index));
      range.second = static_cast<int64_t>(index);
    }
  }
  return range;
}

/// The saved buffer that what an operand of a launch writes may lie on, column
/// by column; -1: none.
int FunctionLowering::savedUnder(const Launch &launch, size_t position) const {
  const OperandSpec &spec = kernelSpec(launch.kernel).operands[position];
  if (!worksInPlace(kernelSpec(launch.kernel), launch.integers)) {
    return -1;
  }
  const Buffers::Data &written =
      buffers.data(launch.operands[position].data.front());
  for (int source : {spec.inPlaceOf, spec.alsoInPlaceOf}) {
    if (source < 0 || launch.operands[source].data.size() != 1) {
      continue;
    }
    const Buffers::Data &read =
        buffers.data(launch.operands[source].data.front());
    if (slotsOfRoot.count(read.root) != 0 && read.column == written.column &&
        buffers.root(read.root).rowSize == buffers.root(written.root).rowSize) {
      return read.root;
    }
  }
  return -1;
}

/// The offset of a saved buffer that a launch reads for the last time and may
/// overwrite with all that is in `root`; -1 if there is none.
int64_t FunctionLowering::overSaved(int64_t launch, int root) {
  const Launch &writer = launches[static_cast<size_t>(launch)];
  std::optional<int> under;
  size_t written = 0;
  for (auto [position, operand] : llvm::enumerate(writer.operands)) {
    if (operand.data.size() != 1 ||
        buffers.data(operand.data.front()).root != root) {
      continue;
    }
    const int saved = savedUnder(writer, position);
    if (saved < 0 || under.value_or(saved) != saved) {
      return -1;
    }
    under = saved;
    ++written;
  }
  if (!under || written != buffers.root(root).members.size() ||
      launchesOf(*under).second != launch) {
    return -1;
  }
  const SmallVector<size_t> &slots = slotsOfRoot.at(*under);
  // All of the buffer, not one value's columns of it.
  const FrameSlot &first = savedBefore[slots.front()];
  return first.bufferBytes == bytesOf(root) &&
                 llvm::none_of(
                     slots, [&](size_t slot) { return isReadByWeight(slot); })
             ? first.bufferOffset
             : -1;
}

/// A forward saves side by side. A backward saves where it has read for the
/// last time what its weight does not read, or behind.
void FunctionLowering::placeInFrame() {
  SmallVector<int> roots;
  for (auto &[number, type] : savedData) {
    const int root = buffers.data(number).root;
    if (!llvm::is_contained(roots, root)) {
      roots.push_back(root);
    }
  }
  if (savedBefore.empty()) {
    int64_t end = 0;
    for (int root : roots) {
      frameOffsets[root] = end;
      end +=
          static_cast<int64_t>(llvm::alignTo(bytesOf(root), kBufferAlignment));
    }
    return;
  }
  if (roots.empty()) {
    return;
  }
  std::map<int64_t, PackItem> before;
  Block &body = function.getBody().front();
  const size_t inputs = body.getNumArguments() - savedBefore.size();
  for (auto [index, slot] : llvm::enumerate(savedBefore)) {
    const int root =
        buffers.data(dataOf(body.getArgument(inputs + index))).root;
    const int64_t last =
        isReadByWeight(index) ? Buffers::kForever : launchesOf(root).second;
    PackItem &item =
        before
            .try_emplace(slot.bufferOffset,
                         PackItem{slot.bufferBytes, Buffers::kBefore,
                                  Buffers::kBefore, slot.bufferOffset})
            .first->second;
    item.last = std::max(item.last, last);
  }
  std::vector<PackItem> items;
  for (int root : roots) {
    const int64_t first = launchesOf(root).first;
    const int64_t over = overSaved(first, root);
    items.push_back({bytesOf(root), first, Buffers::kForever, over});
    if (over >= 0) {
      before.at(over).last = first - 1;
    }
  }
  for (const auto &[offset, item] : before) {
    items.push_back(item);
  }
  const Packing packing = pack(items, kBufferAlignment);
  for (auto [index, root] : llvm::enumerate(roots)) {
    frameOffsets[root] = packing.offsets[index];
  }
}

//===----------------------------------------------------------------------===//
// Writing out
//===----------------------------------------------------------------------===//

/// The buffer of a whole root.
Value FunctionLowering::rootValue(OpBuilder &builder, int root) {
  Value &value = rootValues[root];
  if (value) {
    return value;
  }
  const Buffers::Root &r = buffers.root(root);
  // The type of a member of full width, or plain rows.
  exec::BufferType type;
  for (int member : r.members) {
    if (buffers.data(member).width == r.rowSize) {
      type = dataTypes[member];
      break;
    }
  }
  if (!type) {
    const exec::BufferType member = dataTypes[r.members.front()];
    const int rowDims = member.plain().rowDims();
    SmallVector<int64_t> shape(member.getShape().take_front(rowDims));
    shape.push_back(r.rowSize);
    dist::LayoutAttr layout = member.getLayout();
    if (layout) {
      // Heads are cut as their features are.
      const auto dims = llvm::to_vector(llvm::seq(0, rowDims + 1));
      layout = dist::LayoutAttr::get(builder.getContext(),
                                     layout.getLayout().select(dims));
    }
    type = exec::BufferType::get(builder.getContext(), shape,
                                 member.getElementType(), r.rowSize, layout);
  }
  const Location loc = function.getLoc();
  if (const auto it = argumentRoots.find(root); it != argumentRoots.end()) {
    value = exec::ArgumentOp::create(*prelude, loc, type, it->second);
  } else if (const auto it = stateRoots.find(root); it != stateRoots.end()) {
    if (it->second.region == "saved") {
      value = exec::AllocOp::create(
          *prelude, loc, type,
          exec::SpaceAttr::get(builder.getContext(), exec::Space::Saved),
          builder.getI64IntegerAttr(it->second.offset));
    } else {
      value = stateBuffer(*prelude, loc, type, it->second);
    }
  } else if (const auto it = frameOffsets.find(root);
             it != frameOffsets.end()) {
    value = exec::AllocOp::create(
        *prelude, loc, type,
        exec::SpaceAttr::get(builder.getContext(), exec::Space::Saved),
        builder.getI64IntegerAttr(it->second));
  } else {
    value = exec::AllocOp::create(
        *prelude, loc, type,
        exec::SpaceAttr::get(builder.getContext(), exec::Space::Scratch),
        IntegerAttr());
  }
  return value;
}

Value FunctionLowering::bufferOf(OpBuilder &builder, int number,
                                 exec::BufferType type) {
  const Buffers::Data &data = buffers.data(number);
  Value root = rootValue(builder, data.root);
  const auto rootType = cast<exec::BufferType>(root.getType());
  // Rows keep the stride of the buffer they lie in.
  const exec::BufferType wanted = exec::BufferType::get(
      builder.getContext(), type.getShape(), type.getElementType(),
      rootType.getRowStride(), type.getLayout());
  if (wanted == rootType && data.column == 0) {
    return root;
  }
  Value &slice = slices[{number, wanted}];
  if (!slice) {
    slice = exec::SliceOp::create(*prelude, function.getLoc(), wanted, root,
                                  data.column);
  }
  return slice;
}

/// Parameters or gradients whose rows follow each other, as one matrix.
FailureOr<Value> FunctionLowering::rowsOf(OpBuilder &builder,
                                          const Launch &launch,
                                          const Operand &operand) {
  const auto first = stateRoots.find(buffers.data(operand.data.front()).root);
  if (first == stateRoots.end()) {
    return emitError(launch.loc) << "a stacked operand is no parameter";
  }
  int64_t rows = 0;
  int64_t next = first->second.offset;
  exec::BufferType type;
  for (int number : operand.data) {
    type = dataTypes[number];
    const auto it = stateRoots.find(buffers.data(number).root);
    if (it == stateRoots.end() || it->second.offset != next ||
        it->second.region != first->second.region) {
      return emitError(launch.loc)
             << "weights of a group are no neighbours in memory";
    }
    rows += type.getShape()[0];
    next += type.bytes();
  }
  const exec::BufferType stacked = exec::BufferType::get(
      builder.getContext(), {rows, type.getShape()[1]}, type.getElementType(),
      type.getShape()[1], type.getLayout());
  return stateBuffer(*prelude, launch.loc, stacked, first->second);
}

LogicalResult FunctionLowering::emit(OpBuilder &builder) {
  placeInFrame();
  std::vector<FrameSlot> slots = savedBefore;
  std::map<int, size_t> numbers;
  for (auto &[number, type] : savedData) {
    const int root = buffers.data(number).root;
    const size_t frameBuffer =
        numbers.try_emplace(root, savedBefore.size() + numbers.size())
            .first->second;
    const Buffers::Root &r = buffers.root(root);
    slots.push_back(
        {frameOffsets[root] + buffers.data(number).column * r.elementBytes,
         exec::BufferType::get(builder.getContext(), type.getShape(),
                               type.getElementType(), r.rowSize,
                               type.getLayout()),
         frameBuffer, frameOffsets[root], bytesOf(root)});
  }
  int64_t frame = 0;
  for (const FrameSlot &slot : slots) {
    frame = std::max(
        frame, static_cast<int64_t>(llvm::alignTo(
                   slot.bufferOffset + slot.bufferBytes, kBufferAlignment)));
  }
  double flops = 0;
  function.walk([&](tfm::Cost op) { flops += op.getCost().flops; });
  auto lowered = exec::FunctionOp::create(
      builder, function.getLoc(), function.getSymName(),
      function.getBlockAttr(),
      savedData.empty() ? IntegerAttr() : builder.getI64IntegerAttr(frame),
      IntegerAttr(),
      flops == 0 ? IntegerAttr()
                 : builder.getI64IntegerAttr(static_cast<int64_t>(flops)));
  if (!savedData.empty()) {
    state.frames[function.getBlock()->str()] = std::move(slots);
  }
  Block *body = &lowered.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  // Buffers are named at the top, launches follow.
  auto marker = exec::LaunchOp::create(
      inner, function.getLoc(), "zero", ValueRange(), DenseI64ArrayAttr(),
      DenseF64ArrayAttr(), DenseI64ArrayAttr());
  OpBuilder top(marker);
  prelude = &top;
  // Name every argument, used or not: the caller supplies them all.
  SmallVector<std::pair<int64_t, int>> arguments;
  for (auto [root, number] : argumentRoots) {
    arguments.push_back({number, root});
  }
  llvm::sort(arguments);
  for (auto [number, root] : arguments) {
    rootValue(inner, root);
  }
  for (const Launch &launch : launches) {
    SmallVector<Value> operands;
    for (const Operand &operand : launch.operands) {
      switch (operand.kind) {
      case ExecOperand::Kind::State:
        operands.push_back(
            stateBuffer(top, launch.loc, operand.type, operand.address));
        break;
      case ExecOperand::Kind::Rows: {
        auto stacked = rowsOf(inner, launch, operand);
        if (failed(stacked)) {
          return failure();
        }
        operands.push_back(*stacked);
        break;
      }
      case ExecOperand::Kind::Columns:
        operands.push_back(
            rootValue(inner, buffers.data(operand.data.front()).root));
        break;
      default:
        operands.push_back(bufferOf(inner, operand.data.front(), operand.type));
        break;
      }
    }
    exec::LaunchOp::create(
        inner, launch.loc,
        builder.getStringAttr(StringRef(kernelSpec(launch.kernel).name.data(),
                                        kernelSpec(launch.kernel).name.size())),
        operands,
        launch.integers.empty() ? DenseI64ArrayAttr()
                                : builder.getDenseI64ArrayAttr(launch.integers),
        launch.floats.empty() ? DenseF64ArrayAttr()
                              : builder.getDenseF64ArrayAttr(launch.floats),
        launch.terms.empty() ? DenseI64ArrayAttr()
                             : builder.getDenseI64ArrayAttr(launch.terms));
  }
  marker.erase();
  return success();
}

LogicalResult FunctionLowering::run(OpBuilder &builder) {
  if (failed(recordBody()) || failed(placeGradients())) {
    return failure();
  }
  placeSaved();
  computeLifetimes();
  placeColumns();
  placeCounters();
  placeResults();
  shareInPlace();
  return emit(builder);
}

} // namespace

LogicalResult mega::lowerFunction(OpBuilder &builder, tfm::FunctionOp function,
                                  ModuleState &state) {
  return FunctionLowering(function, state).run(builder);
}
