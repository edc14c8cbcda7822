#include "test/runtime/cpu/Conformance.h"

#include "runtime/plan/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace mega {
namespace {
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGap{0x5A}, kPoison{0xFF};

double load(DataType type, const std::byte *from) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return static_cast<double>(value);
  };
  switch (type) {
  case DataType::F32:
    return as(float{});
  case DataType::F64:
    return as(double{});
  case DataType::I32:
    return as(int32_t{});
  case DataType::I64:
    return as(int64_t{});
  case DataType::BF16:
    return as(BFloat16{});
  }
  std::abort();
}

void store(DataType type, double value, std::byte *to) {
  const auto as = [&]<typename T>(T typed) {
    std::memcpy(to, &typed, sizeof typed);
  };
  switch (type) {
  case DataType::F32:
    return as(static_cast<float>(value));
  case DataType::F64:
    return as(value);
  case DataType::I32:
    return as(static_cast<int32_t>(value));
  case DataType::I64:
    return as(static_cast<int64_t>(value));
  case DataType::BF16:
    return as(BFloat16(static_cast<float>(value)));
  }
  std::abort();
}

/// visit(index, byte offset) for every element.
template <typename Visit> void forElements(const BufferType &t, Visit visit) {
  for (int64_t row = 0; row < t.rows(); ++row) {
    for (int64_t i = 0; i < t.rowSize(); ++i) {
      visit(row * t.rowSize() + i, (row * t.rowStride + i) * byteSize(t.type));
    }
  }
}

using Contents = std::map<Buffer *, std::vector<std::byte>>;

/// Fills the elements of `buffer` with NaN.
void poison(Buffer &buffer) {
  const std::vector<bool> element = buffer.elementBytes();
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i]) {
      buffer.bytes[i] = kPoison;
    }
  }
}
} // namespace

Buffer::Buffer(DataType type, std::initializer_list<int64_t> shape, int64_t gap)
    : type_(type, shape) {
  type_.rowStride += gap;
  bytes.resize(static_cast<size_t>(type_.extentBytes()) + kGuardBytes, kGap);
  set(Values(type_.elements(), 0.0));
}

Buffer Buffer::random(std::initializer_list<int64_t> shape, unsigned seed,
                      int64_t gap, double spread, DataType type) {
  Buffer buffer(type, shape, gap);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, spread);
  Values values(buffer.type().elements());
  std::generate(values.begin(), values.end(),
                [&] { return normal(generator); });
  buffer.set(values);
  return buffer;
}

Buffer Buffer::ids(std::initializer_list<int64_t> shape,
                   const std::vector<int> &ids) {
  Buffer buffer(DataType::I32, shape);
  buffer.set(Values(ids.begin(), ids.end()));
  return buffer;
}

Buffer::Values Buffer::values() const {
  Values values(type_.elements());
  forElements(type_, [&](int64_t index, int64_t offset) {
    values[index] = load(type_.type, bytes.data() + offset);
  });
  return values;
}

void Buffer::set(const Values &values) {
  ASSERT_EQ(static_cast<int64_t>(values.size()), type_.elements());
  forElements(type_, [&](int64_t index, int64_t offset) {
    store(type_.type, values[index], bytes.data() + offset);
  });
}

std::vector<bool> Buffer::elementBytes() const {
  std::vector<bool> element(bytes.size(), false);
  forElements(type_, [&](int64_t, int64_t offset) {
    for (int64_t i = 0; i < byteSize(type_.type); ++i) {
      element[offset + i] = true;
    }
  });
  return element;
}

void Conformance::launch(Kernel kernel, const std::vector<Buffer *> &operands,
                         const std::vector<int64_t> &integers,
                         const std::vector<double> &floats) {
  const KernelSpec &spec = kernelSpec(kernel);
  std::vector<BufferType> types;
  for (Buffer *buffer : operands) {
    types.push_back(buffer->type());
  }
  const Status status = checkLaunch(kernel, {types, integers, floats});
  ASSERT_TRUE(status.isOk()) << status.message();

  // A buffer that stands for two operands is used in place.
  std::map<Buffer *, bool> read, written, scratch;
  for (size_t i = 0; i < operands.size(); ++i) {
    Buffer *buffer = operands[i];
    const Access access = resolvedAccess(spec, static_cast<int>(i), integers);
    read[buffer] |= access == Access::Read || access == Access::ReadWrite;
    written[buffer] |= access != Access::Read;
    scratch[buffer] |= access == Access::Scratch;
  }
  Contents before, first;
  for (auto &[buffer, isRead] : read) {
    if (!isRead) {
      poison(*buffer);
    }
    before[buffer] = buffer->bytes;
  }
  for (int threads : GetParam().device->threadCounts()) {
    std::vector<View> views;
    for (auto &[buffer, bytes] : before) {
      buffer->bytes = bytes;
    }
    for (Buffer *buffer : operands) {
      views.push_back(buffer->view());
    }
    GetParam().device->run(kernel, threads, scalars, application, firstSample,
                           {views, integers, floats});
    for (auto &[buffer, bytes] : before) {
      const std::vector<bool> element = buffer->elementBytes();
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (!(element[i] && written[buffer]) && buffer->bytes[i] != bytes[i]) {
          FAIL() << spec.name << " changed byte " << i << " of a "
                 << toString(buffer->type())
                 << " outside of what it may write, with " << threads
                 << " threads";
        }
      }
      if (!scratch[buffer]) {
        EXPECT_TRUE(first.try_emplace(buffer, buffer->bytes).first->second ==
                    buffer->bytes)
            << spec.name << " gives other bits with " << threads << " threads";
      }
    }
  }
}

void expectClose(const Buffer &actual, const reference::Values &expected,
                 double roundings, double scale) {
  const reference::Values values = actual.values();
  ASSERT_EQ(values.size(), expected.size());
  double largest = scale, worst = 0;
  for (double value : expected) {
    largest = std::max(largest, std::abs(value));
  }
  const bool narrow = actual.type().type == DataType::BF16;
  const double unit = 0x1p-24 * largest;
  size_t where = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double stored = narrow ? 0x1p-8 * (std::abs(expected[i]) + unit) : 0;
    const double error =
        std::max(0.0, std::abs(values[i] - expected[i]) - stored);
    // What is not a number is never close.
    if (!(error <= worst) || std::isnan(values[i])) {
      worst = std::isnan(values[i]) ? values[i] : error;
      where = i;
      if (std::isnan(worst)) {
        break;
      }
    }
  }
  EXPECT_LE(worst, roundings * (narrow ? 1 + 0x1p-8 : 1) * unit)
      << "element " << where << " of " << values.size() << " is "
      << values[where] << ", expected " << expected[where] << "; "
      << worst / unit << " roundings of " << largest;
}

std::vector<Target> testTargets(std::initializer_list<DataType> types) {
  std::vector<Target> targets;
  for (TestDevice *device : testDevices()) {
    for (DataType type : types) {
      targets.push_back({device, type});
    }
  }
  return targets;
}

} // namespace mega
