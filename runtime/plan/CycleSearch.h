//===- CycleSearch.h - Whether a graph has a cycle, and a short one -*- C++
//-*-//
#ifndef MEGA_RUNTIME_PLAN_CYCLESEARCH_H
#define MEGA_RUNTIME_PLAN_CYCLESEARCH_H

#include <cstdint>
#include <span>
#include <vector>

namespace mega {

/// `to` comes after `from`; `label` is the caller's.
struct GraphEdge {
  int32_t from;
  int32_t to;
  uint8_t label;
};

/// Empty if there is none. Otherwise its edges, against their direction: each
/// begins where the one before it ends, `cycle[i].from == cycle[i + 1].to`. No
/// shorter one goes through the same first node. Linear in nodes and edges;
/// nodes are numbered from 0.
std::vector<GraphEdge> findCycle(int32_t nodes,
                                 std::span<const GraphEdge> edges);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_CYCLESEARCH_H
