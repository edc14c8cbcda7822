//===- Conformance.h - One kernel suite for every device --------*- C++ -*-===//
//
// The tests of this folder are parametrised by device and compare it with
// test/runtime/reference. `launch` does more than launch: it checks the
// operands against the kernel table, runs on 1, 2 and 5 threads and expects
// the same bits, and expects that nothing but the written elements changes
// (not the operands that are only read, not the gaps between rows).
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
  /// f32 with normally distributed elements of the given spread.
  static Buffer random(std::initializer_list<int64_t> shape, unsigned seed,
                       int64_t gap = 0, double spread = 1);
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

/// A test with its device and what changes from step to step.
class Conformance : public testing::TestWithParam<TestDevice *> {
protected:
  StepScalars scalars;
  int64_t application = 0;
  int64_t firstSample = 0;

  void launch(Kernel kernel, std::initializer_list<Buffer *> operands,
              std::initializer_list<int64_t> integers = {},
              std::initializer_list<double> floats = {});
};

/// Expects |actual - expected| <= roundings * 2^-24 * max |expected|:
/// `roundings` is about how many roundings an element goes through, counted in
/// units of the largest element, or of `scale` where cancellation may leave
/// less than the terms that are added.
void expectClose(const Buffer &actual, const reference::Values &expected,
                 double roundings, double scale = 0);

/// Test listings name the device, not its address.
inline void PrintTo(TestDevice *device, std::ostream *out) {
  *out << device->name();
}

/// The devices this binary was linked with.
std::vector<TestDevice *> testDevices();

/// Instantiates a fixture for every device.
#define MEGA_FOR_EVERY_DEVICE(Fixture)                                         \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Devices, Fixture, testing::ValuesIn(testDevices()),                      \
      [](const auto &info) { return info.param->name(); })

} // namespace mega

#endif // MEGA_TEST_RUNTIME_CPU_CONFORMANCE_H
