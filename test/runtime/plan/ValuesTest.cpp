#include "runtime/plan/Values.h"

#include "runtime/plan/KernelValues.h"

#include <gtest/gtest.h>

#include <array>

using namespace mega;

namespace {

BufferType strided(DataType type, int64_t rows, int64_t columns,
                   int64_t stride) {
  BufferType result(type, {rows, columns});
  result.rowStride = stride;
  return result;
}

Value name(uint64_t number) { return hashValue(std::array{number}); }

/// Writes `value` as rows of 12 at `offset`, reads columns 4 to 8 of them.
Value middle(DataType type, int64_t stride, int64_t offset, Value value) {
  ValueMemory memory;
  const BufferType whole = strided(type, 5, 12, stride);
  memory.write(0, Box::of(whole, offset), whole, value);
  const BufferType part = strided(type, 5, 4, stride);
  auto read = memory.read(0, Box::of(part, offset + 4 * byteSize(type)), part);
  return read->value;
}

} // namespace

TEST(Values, SumsDoNotDependOnOrder) {
  EXPECT_EQ(sum(sum(name(1), name(2)), name(3)),
            sum(name(3), sum(name(2), name(1))));
  EXPECT_NE(sum(name(1), name(1)), name(1));
  EXPECT_EQ(sum(name(1), 0), name(1));
}

TEST(Values, AWholeReadIsWhatWasWritten) {
  ValueMemory memory;
  const BufferType type(DataType::F32, {5, 12});
  memory.write(0, Box::of(type, 64), type, name(1));
  EXPECT_EQ(memory.read(0, Box::of(type, 64), type)->value, name(1));
  EXPECT_NE(memory.read(1, Box::of(type, 64), type)->value, name(1));
  EXPECT_FALSE(memory.read(0, Box::of(type, 0), type)->parts[0].written);
  memory.clear(0);
  EXPECT_FALSE(memory.read(0, Box::of(type, 64), type)->parts[0].written);
}

TEST(Values, SlicesDoNotDependOnWhereTheyLie) {
  const Value slice = middle(DataType::F32, 12, 0, name(1));
  EXPECT_EQ(slice, middle(DataType::F32, 17, 256, name(1)));
  EXPECT_EQ(slice, middle(DataType::BF16, 12, 64, name(1)));
  EXPECT_NE(slice, middle(DataType::F32, 12, 0, name(2)));
  EXPECT_NE(slice, name(1));
  EXPECT_EQ(middle(DataType::F32, 12, 0, 0), 0u);
}

TEST(Values, ColumnsSideBySideAreOneConcatenation) {
  const auto joined = [](int64_t stride, std::array<uint64_t, 3> order) {
    ValueMemory memory;
    // Something older lies below.
    const BufferType old(DataType::F32, {5 * stride});
    memory.write(0, Box::of(old, 0), old, name(9));
    for (uint64_t i : order) {
      const BufferType part = strided(DataType::F32, 5, 4, stride);
      memory.write(0, Box::of(part, static_cast<int64_t>(i) * 16), part,
                   name(i));
    }
    const BufferType whole = strided(DataType::F32, 5, 12, stride);
    return memory.read(0, Box::of(whole, 0), whole)->value;
  };
  EXPECT_EQ(joined(12, {0, 1, 2}), joined(20, {2, 0, 1}));
  EXPECT_NE(joined(12, {0, 1, 2}), joined(12, {0, 1, 1}));
}

TEST(Values, ALaterWriteHidesPartOfAnEarlierOne) {
  ValueMemory memory;
  const BufferType whole(DataType::F32, {6, 4});
  const BufferType rows(DataType::F32, {2, 4});
  memory.write(0, Box::of(whole, 0), whole, name(1));
  memory.write(0, Box::of(rows, 32), rows, name(2));
  EXPECT_EQ(memory.read(0, Box::of(rows, 32), rows)->value, name(2));
  const auto read = memory.read(0, Box::of(whole, 0), whole);
  ASSERT_EQ(read->parts.size(), 3u);
  EXPECT_EQ(read->parts[0].value, sliceOf(name(1), {0, 0, 2, 4}));
  EXPECT_EQ(read->parts[1].value, name(2));
  EXPECT_EQ(read->parts[2].value, sliceOf(name(1), {4, 0, 2, 4}));
}

TEST(KernelValues, FusedKernelsAreWhatTheyFuse) {
  const BufferType x(DataType::F32, {2, 3, 5});
  const BufferType v(DataType::F32, {5});
  const BufferType s(DataType::F32, {2, 3});
  ValueLaunch fused;
  fused.kernel = Kernel::AddLayerNorm;
  fused.types = {x, x, v, v, x, x, s, s};
  fused.before = {name(1), name(2), name(3), name(4), 0, 0, 0, 0};
  fused.floats = {1e-5};
  ValueLaunch norm;
  norm.kernel = Kernel::LayerNorm;
  norm.types = {x, v, v, x, s, s};
  norm.before = {sum(name(1), name(2)), name(3), name(4), 0, 0, 0};
  norm.floats = {1e-5};
  const auto one = resultsOf(fused);
  const auto other = resultsOf(norm);
  EXPECT_EQ(one[4], sum(name(1), name(2)));
  EXPECT_EQ(one[5], other[3]);
  EXPECT_EQ(one[7], other[5]);
  norm.floats = {1e-6};
  EXPECT_NE(one[5], resultsOf(norm)[3]);
}

TEST(Tape, DifferentiatesAGemmAndWhatItIsAddedTo) {
  const BufferType x(DataType::F32, {6, 5});
  const BufferType w(DataType::F32, {5, 5});
  const auto gemm = [&](Value a, Value b, int64_t ta, int64_t tb,
                        const BufferType &ty, const BufferType &tz) {
    ValueLaunch launch;
    launch.kernel = Kernel::Gemm;
    launch.types = {ty, tz, x};
    launch.integers = {ta, tb, 0};
    launch.before = {a, b, 0};
    return launch;
  };
  Tape tape;
  const ValueLaunch forward = gemm(name(1), name(2), 0, 1, x, w);
  const Value y = resultsOf(forward)[2];
  tape.record(forward, resultsOf(forward));
  ValueLaunch add;
  add.kernel = Kernel::Add;
  add.types = {x, x, x};
  add.before = {name(1), y, 0};
  tape.record(add, resultsOf(add));
  tape.seed(resultsOf(add)[2], name(7));
  ASSERT_TRUE(tape.differentiate().isOk());
  EXPECT_EQ(tape.derivative(name(1)),
            sum(name(7), resultsOf(gemm(name(7), name(2), 0, 0, x, w))[2]));
  EXPECT_EQ(tape.derivative(name(2)),
            resultsOf(gemm(name(7), name(1), 1, 0, x, x))[2]);
  EXPECT_EQ(tape.derivative(name(3)), 0u);
}

TEST(Tape, SaysWhatHasNoDerivative) {
  const BufferType x(DataType::F32, {6, 5});
  Tape tape;
  ValueLaunch launch;
  launch.kernel = Kernel::SiluGrad;
  launch.types = {x, x, x};
  launch.before = {name(1), name(2), 0};
  tape.record(launch, resultsOf(launch));
  tape.seed(resultsOf(launch)[2], name(7));
  EXPECT_EQ(tape.differentiate().message(),
            "a forward needs the derivative of silu_grad, which has none");
}
