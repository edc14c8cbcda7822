//===- Conformance.h - One kernel suite for every device --------*- C++ -*-===//
//
// The tests of this folder are parametrised by device and by T, the element
// type of activations and matrices, and compare a device with
// test/runtime/reference on the same inputs. `launch` does more than launch: it
// checks the operands against the kernel table, runs on 1, 2 and 5 threads and
// expects the same bits, and expects that nothing but the written elements
// changes (not the operands that are only read, not the gaps between rows).
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_CPU_CONFORMANCE_H
#define MEGA_TEST_RUNTIME_CPU_CONFORMANCE_H

#include "runtime/core/Kernel.h"
#include "test/runtime/reference/Reference.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace mega {

/// A device as the tests see it: it runs a kernel on host memory.
class TestDevice {
public:
  virtual ~TestDevice() = default;
  virtual std::string name() const = 0;
  /// Thread counts whose results must be the same bits.
  virtual std::vector<int> threadCounts() const = 0;
  virtual void run(Kernel kernel, int threads, const StepScalars &scalars,
                   int64_t application, int64_t firstSample,
                   const KernelArguments &args) = 0;
};

/// Host memory of a buffer, with guard bytes behind it.
class Buffer {
public:
  using Values = reference::Values;

  /// Rows are `gap` elements apart. Elements start as 0.
  Buffer(DataType type, std::initializer_list<int64_t> shape, int64_t gap = 0);
  /// Normally distributed elements of the given spread.
  static Buffer random(std::initializer_list<int64_t> shape, unsigned seed,
                       int64_t gap = 0, double spread = 1,
                       DataType type = DataType::F32);
  /// i32.
  static Buffer ids(std::initializer_list<int64_t> shape,
                    const std::vector<int> &ids);
  static Buffer zeros(std::initializer_list<int64_t> shape, int64_t gap = 0) {
    return Buffer(DataType::F32, shape, gap);
  }

  const BufferType &type() const { return type_; }
  View view() { return View(type_, bytes.data()); }
  /// The elements, without gaps, row after row.
  Values values() const;
  void set(const Values &values);

  /// True for the bytes that belong to an element.
  std::vector<bool> elementBytes() const;
  std::vector<std::byte> bytes;

private:
  BufferType type_;
};

/// Where a test runs, and its T.
struct Target {
  TestDevice *device;
  DataType type;
};

/// A test with its target and what changes from step to step.
class Conformance : public testing::TestWithParam<Target> {
protected:
  /// Buffers of type T; those that are always f32 come from Buffer.
  Buffer random(std::initializer_list<int64_t> shape, unsigned seed,
                int64_t gap = 0, double spread = 1) const {
    return Buffer::random(shape, seed, gap, spread, GetParam().type);
  }
  Buffer zeros(std::initializer_list<int64_t> shape, int64_t gap = 0) const {
    return Buffer(GetParam().type, shape, gap);
  }

  StepScalars scalars;
  int64_t application = 0;
  int64_t firstSample = 0;

  void launch(Kernel kernel, const std::vector<Buffer *> &operands,
              const std::vector<int64_t> &integers = {},
              const std::vector<double> &floats = {});
};

/// Expects |actual - expected| <= roundings * 2^-24 * max |expected|:
/// `roundings` is about how many roundings an element goes through, counted in
/// units of the largest element, or of `scale` where cancellation may leave
/// less than the terms that are added. A bf16 result may in addition be off by
/// the one rounding that stores it: 2^-8 of itself.
void expectClose(const Buffer &actual, const reference::Values &expected,
                 double roundings, double scale = 0);

/// Test listings name the device, not its address.
inline void PrintTo(const Target &target, std::ostream *out) {
  *out << target.device->name() << '_' << name(target.type);
}

/// The devices this binary was linked with.
std::vector<TestDevice *> testDevices();

/// All devices with each of `types`.
std::vector<Target> testTargets(std::initializer_list<DataType> types);

#define MEGA_FOR_TARGETS(Fixture, ...)                                         \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Devices, Fixture, testing::ValuesIn(testTargets({__VA_ARGS__})),         \
      [](const auto &info) { return testing::PrintToString(info.param); })

/// Instantiates a fixture whose kernels know f32 only for every device.
#define MEGA_FOR_EVERY_DEVICE(Fixture) MEGA_FOR_TARGETS(Fixture, DataType::F32)
/// Instantiates a fixture for every device and every T.
#define MEGA_FOR_EVERY_DEVICE_AND_TYPE(Fixture)                                \
  MEGA_FOR_TARGETS(Fixture, DataType::F32, DataType::BF16)

} // namespace mega

#endif // MEGA_TEST_RUNTIME_CPU_CONFORMANCE_H
