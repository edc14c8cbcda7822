#include "runtime/plan/CycleSearch.h"

#include <algorithm>

namespace mega {
namespace {

/// The edges at every node: `numbers[first[n]]` up to `numbers[first[n + 1]]`.
class EdgesByNode {
public:
  EdgesByNode(int32_t nodes, std::span<const GraphEdge> edges,
              int32_t GraphEdge::*end)
      : first(static_cast<size_t>(nodes) + 1, 0), numbers(edges.size()) {
    for (const GraphEdge &edge : edges) {
      ++first[edge.*end + 1];
    }
    for (int32_t node = 0; node < nodes; ++node) {
      first[node + 1] += first[node];
    }
    std::vector<int32_t> next(first.begin(), first.end() - 1);
    for (size_t i = 0; i < edges.size(); ++i) {
      numbers[next[edges[i].*end]++] = static_cast<int32_t>(i);
    }
  }

  std::span<const int32_t> at(int32_t node) const {
    return std::span(numbers).subspan(first[node],
                                      first[node + 1] - first[node]);
  }

private:
  std::vector<int32_t> first;
  std::vector<int32_t> numbers;
};

/// Per node: how many edges into it come from nodes that are on a cycle or
/// after one. None of any node if there is no cycle.
std::vector<int32_t> blockedBy(int32_t nodes,
                               std::span<const GraphEdge> edges) {
  const EdgesByNode out(nodes, edges, &GraphEdge::from);
  std::vector<int32_t> blocked(nodes, 0);
  for (const GraphEdge &edge : edges) {
    ++blocked[edge.to];
  }
  std::vector<int32_t> ready;
  for (int32_t node = 0; node < nodes; ++node) {
    if (blocked[node] == 0) {
      ready.push_back(node);
    }
  }
  while (!ready.empty()) {
    const int32_t node = ready.back();
    ready.pop_back();
    for (int32_t i : out.at(node)) {
      if (--blocked[edges[i].to] == 0) {
        ready.push_back(edges[i].to);
      }
    }
  }
  return blocked;
}

/// Every blocked node has an edge from one: following those ends in a circle.
int32_t onCycle(int32_t node, const std::vector<int32_t> &blocked,
                std::span<const GraphEdge> edges, const EdgesByNode &in) {
  std::vector<bool> seen(blocked.size(), false);
  while (!seen[node]) {
    seen[node] = true;
    for (int32_t i : in.at(node)) {
      if (blocked[edges[i].from] > 0) {
        node = edges[i].from;
        break;
      }
    }
  }
  return node;
}

/// Breadth first, against the edges, from a node of a cycle back to it.
std::vector<GraphEdge> cycleThrough(int32_t start,
                                    const std::vector<int32_t> &blocked,
                                    std::span<const GraphEdge> edges,
                                    const EdgesByNode &in) {
  constexpr int32_t kUnseen = -1;
  // By node: the edge by which it was reached.
  std::vector<int32_t> reached(blocked.size(), kUnseen);
  std::vector<int32_t> queue = {start};
  for (size_t head = 0; reached[start] == kUnseen; ++head) {
    for (int32_t i : in.at(queue[head])) {
      const int32_t from = edges[i].from;
      if (blocked[from] > 0 && reached[from] == kUnseen) {
        reached[from] = i;
        queue.push_back(from);
      }
    }
  }
  std::vector<GraphEdge> cycle;
  int32_t node = start;
  do {
    cycle.push_back(edges[reached[node]]);
    node = cycle.back().to;
  } while (node != start);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

} // namespace

std::vector<GraphEdge> findCycle(int32_t nodes,
                                 std::span<const GraphEdge> edges) {
  const std::vector<int32_t> blocked = blockedBy(nodes, edges);
  const auto any = std::find_if(blocked.begin(), blocked.end(),
                                [](int32_t count) { return count > 0; });
  if (any == blocked.end()) {
    return {};
  }
  const EdgesByNode in(nodes, edges, &GraphEdge::to);
  const auto first = static_cast<int32_t>(any - blocked.begin());
  return cycleThrough(onCycle(first, blocked, edges, in), blocked, edges, in);
}

} // namespace mega
