// After their first launches, conversions allocate nothing, on any thread.
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "test/runtime/comm/Ranks.h"
#include "test/runtime/telemetry/CountedNew.h"

using namespace mega;

namespace {

constexpr int kRanks = 3;

/// One of each, in both orders of the pieces.
class Launches {
public:
  Launches(const KernelContext &ctx) : ctx(ctx) {}

  void operator()() {
    for (const int64_t zigzag : {0, 1}) {
      launch(Kernel::AllGather, {x, whole, packed}, {0, 1, zigzag});
      launch(Kernel::ReduceScatter, {whole, x, packed}, {0, 1, zigzag});
      launch(Kernel::ToPartial, {x, whole}, {0, 1, zigzag});
      launch(Kernel::Slice, {whole, x}, {0, 1, zigzag});
      launch(Kernel::AllToAll, {x, y, packed}, {0, 1, 2, zigzag, zigzag});
    }
  }

private:
  void launch(Kernel kernel, std::initializer_list<View> views,
              std::initializer_list<int64_t> integers) {
    cpuKernel(kernel)(ctx, {views, integers, {}});
  }

  static constexpr int64_t kPiece = 2 * 40 * 30 * 5;
  const KernelContext &ctx;
  std::vector<float> data = std::vector<float>(2 * kPiece);
  std::vector<float> all = std::vector<float>(kRanks * kPiece);
  std::vector<float> scratch = std::vector<float>(kRanks * kPiece);
  const View x{{DataType::F32, {2, 40, 30, 5}}, data.data()};
  const View y{{DataType::F32, {2, 120, 10, 5}}, data.data() + kPiece};
  const View whole{{DataType::F32, {2, 120, 30, 5}}, all.data()};
  const View packed{{DataType::F32, {kRanks * kPiece}}, scratch.data()};
};

} // namespace

TEST(ConversionsSteadyState, AllocateNothing) {
  test::runRanks(test::Backend::InProcess, kRanks, [](test::RankContext &ctx) {
    ThreadPool pool(2);
    const StepScalars scalars;
    const GroupMember members[] = {{&ctx[0], ctx.rank, kRanks}};
    RankGroups groups{members, Status::ok()};
    const KernelContext kernelContext{pool, scalars, 0, 0, &groups};
    Launches launches(kernelContext);
    launches();
    launches();
    // Every rank has warmed up, then every rank is done.
    EXPECT_OK(ctx[0].barrier());
    const int64_t before = test::allocations();
    EXPECT_OK(ctx[0].barrier());
    for (int i = 0; i < 5; ++i) {
      launches();
    }
    EXPECT_OK(ctx[0].barrier());
    const int64_t after = test::allocations();
    EXPECT_OK(ctx[0].barrier());
    EXPECT_EQ(after - before, 0);
    EXPECT_TRUE(groups.failure.isOk()) << groups.failure.message();
  });
}
