#include "runtime/train/RankWorld.h"

#include "runtime/plan/PlanLayouts.h"
#include "runtime/train/Seats.h"

namespace mega {
namespace {

class ThreadWorld final : public RankWorld {
public:
  Status open(const plan::Plan &plan, std::chrono::milliseconds timeLimit) {
    CommunicatorOptions options;
    options.timeLimit = timeLimit;
    world =
        InProcessWorld::create(static_cast<int>(meshOf(plan).ranks()), options);
    MEGA_ASSIGN_OR_RETURN(seats, takeAllSeats(plan, *world));
    return Status::ok();
  }
  RankFailure fail(const RankFailure &mine) override {
    world->abort(mine.status());
    return mine;
  }

private:
  std::unique_ptr<InProcessWorld> world;
};

} // namespace

StatusOr<std::unique_ptr<RankWorld>>
RankWorld::ofThreads(const plan::Plan &plan,
                     std::chrono::milliseconds timeLimit) {
  auto world = std::make_unique<ThreadWorld>();
  MEGA_RETURN_IF_ERROR(world->open(plan, timeLimit));
  return std::unique_ptr<RankWorld>(std::move(world));
}

} // namespace mega
