#include "runtime/plan/Kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace mega;

TEST(Kernels, TableIsInEnumeratorOrderWithUniqueNames) {
  std::set<std::string_view> names;
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    EXPECT_EQ(static_cast<int>(spec.kernel), i);
    EXPECT_NE(spec.check, nullptr) << spec.name;
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(findKernel(spec.name), spec.kernel);
  }
  EXPECT_FALSE(findKernel("no_such_kernel"));
}

TEST(Kernels, InPlaceNamesAnEarlierOperandThatIsRead) {
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    for (size_t j = 0; j < spec.operands.size(); ++j) {
      for (int source :
           {spec.operands[j].inPlaceOf, spec.operands[j].alsoInPlaceOf}) {
        if (source >= 0) {
          EXPECT_LT(source, static_cast<int>(j)) << spec.name;
          EXPECT_EQ(spec.operands[source].access, Access::Read) << spec.name;
        }
      }
    }
  }
}

TEST(Kernels, AccumulatingOperandsHaveTheAttribute) {
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    for (const OperandSpec &operand : spec.operands) {
      if (operand.access == Access::WriteOrAccumulate) {
        EXPECT_THAT(spec.integers,
                    testing::Contains(std::string_view("accumulate")))
            << spec.name;
      }
    }
  }
}

TEST(Kernels, GemmRefusesMismatchedContraction) {
  const BufferType operands[] = {{DataType::F32, {2, 3, 5}},
                                 {DataType::F32, {7, 4}},
                                 {DataType::F32, {2, 3, 7}}};
  const int64_t integers[] = {0, 1, 0};
  const Status status = checkLaunch(Kernel::Gemm, {operands, integers, {}});
  EXPECT_EQ(status.message(), "gemm: a contracts 5 elements but b 4");
}

TEST(Kernels, GemmTakesColumnSlices) {
  BufferType slice{DataType::F32, {2, 3, 7}};
  slice.rowStride = 21;
  const BufferType operands[] = {
      {DataType::F32, {2, 3, 5}}, {DataType::F32, {7, 5}}, slice};
  const int64_t integers[] = {0, 1, 0};
  EXPECT_TRUE(checkLaunch(Kernel::Gemm, {operands, integers, {}}).isOk());
}
