//===- ScheduleGraph.cpp - No event waits for itself ----------------------===//
#include "runtime/plan/ScheduleGraph.h"

#include "runtime/plan/CycleSearch.h"
#include "runtime/plan/ScheduleChecks.h"

#include <algorithm>

namespace mega {
namespace schedule {
namespace {

using Kind = ScheduleEvent::Kind;

/// Why a node comes after another.
enum class Why : uint8_t { Itself, Issue, Queue, Communicator, Peer, Wait };

/// Two nodes per event, its start and its end, and one per rendezvous.
class EventGraph {
public:
  explicit EventGraph(const ScheduleGraphInput &input);

  void addEvents();
  void addRendezvous(const Rendezvous &rendezvous);
  Status check() const;

private:
  int32_t startOf(const EventPlace &place) const {
    return 2 * (bases[place.stage] + place.index);
  }
  int32_t endOf(const EventPlace &place) const { return startOf(place) + 1; }
  void add(int32_t from, int32_t to, Why why) {
    edges.push_back({from, to, static_cast<uint8_t>(why)});
  }
  template <typename Has, typename Key>
  void addChains(int32_t stage, Why why, Has has, Key key);
  void addIssueOrder(int32_t stage);

  EventPlace placeOf(int32_t node) const;
  static std::string reason(Why why, const ScheduleEvent &event);
  std::string describe(const std::vector<GraphEdge> &cycle) const;

  const ScheduleGraphInput &input;
  /// Per stage: events of all stages before it.
  std::vector<int32_t> bases;
  /// Without those of rendezvous, and with them.
  int32_t eventNodes = 0;
  int32_t nodes = 0;
  std::vector<GraphEdge> edges;
};

EventGraph::EventGraph(const ScheduleGraphInput &input) : input(input) {
  int32_t events = 0;
  for (const auto &list : input.events) {
    bases.push_back(events);
    events += static_cast<int32_t>(list.size());
  }
  eventNodes = nodes = 2 * events;
}

/// The host goes on when a Run or a Wait has ended, and after all else at once.
void EventGraph::addIssueOrder(int32_t stage) {
  const auto &events = input.events[stage];
  int32_t blocking = -1;
  for (int32_t i = 0; i < static_cast<int32_t>(events.size()); ++i) {
    const EventPlace place{stage, i};
    add(startOf(place), endOf(place), Why::Itself);
    if (blocking >= 0) {
      add(endOf({stage, blocking}), startOf(place), Why::Issue);
    }
    if (events[i].kind == Kind::Wait) {
      add(endOf({stage, events[i].event}), endOf(place), Why::Wait);
    }
    if (!isOperation(events[i])) {
      blocking = i;
    }
  }
}

/// Events of one key run one after the other.
template <typename Has, typename Key>
void EventGraph::addChains(int32_t stage, Why why, Has has, Key key) {
  const auto &events = input.events[stage];
  std::vector<std::pair<int32_t, int32_t>> keyed;
  for (int32_t i = 0; i < static_cast<int32_t>(events.size()); ++i) {
    if (has(events[i])) {
      keyed.emplace_back(key(events[i]), i);
    }
  }
  std::sort(keyed.begin(), keyed.end());
  for (size_t i = 1; i < keyed.size(); ++i) {
    if (keyed[i - 1].first == keyed[i].first) {
      add(endOf({stage, keyed[i - 1].second}),
          startOf({stage, keyed[i].second}), why);
    }
  }
}

void EventGraph::addEvents() {
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    addIssueOrder(stage);
    addChains(
        stage, Why::Queue,
        [](const ScheduleEvent &event) { return event.kind != Kind::Wait; },
        [](const ScheduleEvent &event) {
          return event.kind == Kind::Run ? -1 : event.queue;
        });
    addChains(stage, Why::Communicator, isOperation,
              [](const ScheduleEvent &event) { return event.communicator; });
  }
}

/// All sides start before any ends.
void EventGraph::addRendezvous(const Rendezvous &rendezvous) {
  size_t member = 0;
  for (size_t end : rendezvous.ends) {
    const int32_t meeting = nodes++;
    for (; member < end; ++member) {
      const EventPlace &place = rendezvous.members[member];
      add(startOf(place), meeting, Why::Peer);
      add(meeting, endOf(place), Why::Peer);
    }
  }
}

EventPlace EventGraph::placeOf(int32_t node) const {
  const auto stage = std::upper_bound(bases.begin(), bases.end(), node / 2) -
                     bases.begin() - 1;
  return {static_cast<int32_t>(stage), node / 2 - bases[stage]};
}

std::string EventGraph::reason(Why why, const ScheduleEvent &event) {
  switch (why) {
  case Why::Issue:
    return "is issued after";
  case Why::Queue:
    return fmt::format("runs on queue {} after", event.queue);
  case Why::Communicator:
    return fmt::format("runs on communicator {} after", event.communicator);
  case Why::Peer:
    return "ends only once its other side starts";
  case Why::Wait:
  case Why::Itself:
    break;
  }
  return "waits for";
}

std::string EventGraph::describe(const std::vector<GraphEdge> &cycle) const {
  constexpr int kShown = 20;
  std::string lines;
  int count = 0;
  for (const GraphEdge &edge : cycle) {
    const auto why = static_cast<Why>(edge.label);
    // Of a rendezvous only the side that waits is told.
    if (why == Why::Itself || edge.to >= eventNodes) {
      continue;
    }
    if (++count > kShown) {
      continue;
    }
    const EventPlace place = placeOf(edge.to);
    lines += fmt::format("\n  {} {}", eventName(input, place),
                         reason(why, at(input, place)));
  }
  return count > kShown
             ? fmt::format("{}\n  and {} more", lines, count - kShown)
             : lines;
}

Status EventGraph::check() const {
  const std::vector<GraphEdge> cycle = findCycle(nodes, edges);
  if (cycle.empty()) {
    return Status::ok();
  }
  return badInput("the schedule deadlocks, each of these waits for the next "
                  "and the last for the first:{}",
                  describe(cycle));
}

} // namespace

Status checkDeadlock(const ScheduleGraphInput &input,
                     const Rendezvous &rendezvous) {
  EventGraph graph(input);
  graph.addEvents();
  graph.addRendezvous(rendezvous);
  return graph.check();
}

} // namespace schedule

Status verifySchedule(const ScheduleGraphInput &input) {
  MEGA_RETURN_IF_ERROR(schedule::checkFields(input));
  MEGA_RETURN_IF_ERROR(schedule::checkRuns(input));
  MEGA_RETURN_IF_ERROR(schedule::checkWaits(input));
  MEGA_RETURN_IF_ERROR(schedule::checkSlots(input));
  MEGA_ASSIGN_OR_RETURN(const schedule::Rendezvous rendezvous,
                        schedule::matchOperations(input));
  MEGA_RETURN_IF_ERROR(schedule::checkBuffers(input));
  return schedule::checkDeadlock(input, rendezvous);
}

} // namespace mega
