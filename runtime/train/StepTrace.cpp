#include "runtime/train/StepTrace.h"

#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/StepExecution.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <tuple>

namespace mega {
namespace {

/// With quotes.
std::string jsonText(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

/// Trace times are microseconds; three digits more are nanoseconds.
std::string microseconds(int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

enum class Arrow : uint8_t { None, Begins, Ends };

/// What the events of an action have in common in all steps.
struct ActionEvent {
  /// `"name":..,"cat":..,"ph":"X","pid":..,"tid":..`
  std::string head;
  /// The end of the arguments, after the step.
  std::string tail;
  std::string thread;
  Arrow arrow = Arrow::None;
  /// The same on both sides.
  std::string arrowName;
};

/// The events of one rank.
class RankEvents {
public:
  RankEvents(const Executor &executor, uint32_t entryPoint)
      : executor(executor), plan(executor.plan()) {
    threads.emplace_back("compute");
    for (const plan::Action &action : elements(plan.entry_points()
                                                   ->Get(entryPoint)
                                                   ->stages()
                                                   ->Get(0)
                                                   ->actions())) {
      addAction(action);
    }
  }

  /// Names of the process and its threads.
  void writeNames(std::string &out) const {
    const int64_t rank = executor.rank();
    const int64_t stages = executor.mesh().size(Axis::Pp);
    const std::string stage =
        stages == 1 ? "" : fmt::format(" (stage {})", plan.stage());
    writeName(out, "process_name", 0, fmt::format("rank {}{}", rank, stage));
    writeOrder(out, "process_sort_index", 0, rank);
    for (size_t t = 0; t < threads.size(); ++t) {
      writeName(out, "thread_name", t, threads[t]);
      writeOrder(out, "thread_sort_index", t, static_cast<int64_t>(t));
    }
  }

  /// Of step number `step`, from 1.
  void writeStep(std::string &out, size_t step,
                 std::span<const ActionLog::Interval> intervals) const {
    auto to = std::back_inserter(out);
    for (size_t i = 0; i < events.size(); ++i) {
      const auto [begin, end] = intervals[i];
      const ActionEvent &event = events[i];
      fmt::format_to(
          to, "{{{},\"ts\":{},\"dur\":{},\"args\":{{\"step\":{}{}}}}},\n",
          event.head, microseconds(begin), microseconds(end - begin), step,
          event.tail);
      if (event.arrow == Arrow::None) {
        continue;
      }
      // Inside of its action, which is how viewers find it.
      const bool begins = event.arrow == Arrow::Begins;
      fmt::format_to(
          to,
          "{{\"name\":\"transfer\",\"cat\":\"transfer\",\"ph\":\"{}\",{}"
          "\"id\":\"{}:{}\",{},\"ts\":{}}},\n",
          begins ? "s" : "f", begins ? "" : "\"bp\":\"e\",", step,
          event.arrowName, event.thread,
          microseconds(begins ? begin : std::max(begin, end - 1)));
    }
  }

private:
  void writeName(std::string &out, const char *what, size_t thread,
                 const std::string &name) const {
    fmt::format_to(std::back_inserter(out),
                   "{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{},\"tid\":{},"
                   "\"args\":{{\"name\":{}}}}},\n",
                   what, executor.rank(), thread, jsonText(name));
  }
  void writeOrder(std::string &out, const char *what, size_t thread,
                  int64_t order) const {
    fmt::format_to(std::back_inserter(out),
                   "{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{},\"tid\":{},"
                   "\"args\":{{\"sort_index\":{}}}}},\n",
                   what, executor.rank(), thread, order);
  }

  void addAction(const plan::Action &action) {
    const plan::Program &program = *plan.programs()->Get(action.program());
    std::string category = plan::EnumNameActionKind(program.kind());
    category[0] = static_cast<char>(
        std::tolower(static_cast<unsigned char>(category[0])));
    const bool transfers = program.kind() == plan::ActionKind::Transfer;
    ActionEvent event;
    size_t thread = 0;
    if (transfers) {
      thread = addTransfer(action, event);
    }
    event.thread =
        fmt::format("\"pid\":{},\"tid\":{}", executor.rank(), thread);
    event.head =
        fmt::format("\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",{}",
                    jsonText(text(program.name())), category, event.thread);
    if (isRun(program.kind())) {
      event.tail = fmt::format(
          ",\"micro_batch\":{},\"part\":{},\"slot\":{},\"buffer\":{}",
          action.micro_batch(), program.part(), action.slot(), action.buffer());
    } else if (transfers) {
      event.tail =
          fmt::format(",\"micro_batch\":{},\"part\":{},\"buffer\":{}",
                      action.micro_batch(), program.part(), action.buffer());
    }
    events.push_back(std::move(event));
  }

  /// Sets the arrow of a transfer; the thread it belongs to.
  size_t addTransfer(const plan::Action &action, ActionEvent &event) {
    const StageTransfer transfer = transferOf(plan, action.program());
    const bool sends = transfer.kernel == Kernel::SendStart ||
                       transfer.kernel == Kernel::SendWait;
    const bool starts = transfer.kernel == Kernel::SendStart ||
                        transfer.kernel == Kernel::ReceiveStart;
    const int64_t peer = peerOf(transfer);
    const std::tuple channel(sends, transfer.group, peer);
    if (starts) {
      const std::string name = fmt::format(
          "{}:{}-{}:{}", transfer.group, sends ? executor.rank() : peer,
          sends ? peer : executor.rank(), started[channel]++);
      if (sends) {
        event.arrow = Arrow::Begins;
        event.arrowName = name;
      } else {
        awaited[{transfer.group, peer, action.buffer()}].push_back(name);
      }
    } else if (!sends) {
      auto &names = awaited[{transfer.group, peer, action.buffer()}];
      if (!names.empty()) {
        event.arrow = Arrow::Ends;
        event.arrowName = std::move(names.front());
        names.pop_front();
      }
    }
    const auto [it, fresh] =
        threadOf.try_emplace({sends, peer}, threads.size());
    if (fresh) {
      threads.push_back(
          fmt::format("{} rank {}", sends ? "send to" : "receive from", peer));
    }
    return it->second;
  }

  int64_t peerOf(const StageTransfer &transfer) const {
    const plan::Group &group =
        elements(plan.groups())[static_cast<size_t>(transfer.group)];
    const int64_t rank = executor.rank();
    const auto members = membersOf(group, executor.mesh(), rank);
    const auto size = static_cast<int64_t>(members.size());
    const int64_t place = placeIn(group, executor.mesh(), rank).place;
    return members[static_cast<size_t>(
        ((place + transfer.shift) % size + size) % size)];
  }

  const Executor &executor;
  const plan::Plan &plan;
  std::vector<std::string> threads;
  /// By direction and peer.
  std::map<std::pair<bool, int64_t>, size_t> threadOf;
  /// By direction, group and peer: transfers so far.
  std::map<std::tuple<bool, int64_t, int64_t>, int64_t> started;
  /// By group, peer and buffer: arrows of receives that are not awaited yet.
  std::map<std::tuple<int64_t, int64_t, uint32_t>, std::deque<std::string>>
      awaited;
  std::vector<ActionEvent> events;
};

} // namespace

StepTrace::StepTrace(LocalRanks &ranks, uint32_t entryPoint, size_t steps)
    : ranks(ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    Executor &executor = ranks.executor(i);
    const plan::EntryPoint &entry =
        *executor.plan().entry_points()->Get(entryPoint);
    logs.push_back(std::make_unique<ActionLog>(
        entryPoint, length(entry.stages()->Get(0)->actions()), steps));
    executor.setActionLog(logs.back().get());
  }
}

StepTrace::~StepTrace() {
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks.executor(i).setActionLog(nullptr);
  }
}

Status StepTrace::write(AtomicFile &file) const {
  MEGA_RETURN_IF_ERROR(file.write(std::string_view("[\n")));
  for (size_t i = 0; i < logs.size(); ++i) {
    const ActionLog &log = *logs[i];
    const RankEvents events(ranks.executor(i), log.entryPoint());
    std::string out;
    events.writeNames(out);
    MEGA_RETURN_IF_ERROR(file.write(out));
    for (size_t step = 0; step < log.steps(); ++step) {
      out.clear();
      events.writeStep(out, step + 1, log.step(step));
      MEGA_RETURN_IF_ERROR(file.write(out));
    }
  }
  // Every event ends with a comma: JSON wants one more after the last.
  return file.write(
      fmt::format("{{\"name\":\"clock\",\"ph\":\"M\",\"pid\":{},\"args\":"
                  "{{\"name\":\"steady_clock\"}}}}\n]\n",
                  ranks.first().rank()));
}

StepTimes StepTrace::lastStep() const {
  constexpr double kSeconds = 1e-9;
  std::map<int64_t, std::span<const ActionLog::Interval>> stages;
  int64_t start = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < logs.size(); ++i) {
    const auto last = logs[i]->last();
    if (stages.try_emplace(ranks.executor(i).plan().stage(), last).second) {
      start = std::min(start, last.front().begin);
    }
  }
  StepTimes times;
  for (const auto &[stage, last] : stages) {
    std::vector<ActionTime> &own = times.stages.emplace_back();
    for (const auto &[begin, end] : last) {
      own.push_back({static_cast<double>(begin - start) * kSeconds,
                     static_cast<double>(end - start) * kSeconds});
    }
    times.total = std::max(times.total, own.back().end);
  }
  return times;
}

std::string pathOfRank(const std::string &path, int64_t rank) {
  const std::filesystem::path whole(path);
  std::filesystem::path own = whole;
  own.replace_filename(fmt::format("{}.rank{}{}", whole.stem().string(), rank,
                                   whole.extension().string()));
  return own.string();
}

} // namespace mega
