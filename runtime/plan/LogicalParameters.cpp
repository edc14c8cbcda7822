//===- LogicalParameters.cpp - A plan's parameters, one by one ------------===//
#include "runtime/plan/LogicalParameters.h"

#include "runtime/plan/Kernels.h"
#include "runtime/plan/PlanLayouts.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace mega {
namespace {

Place instanceOf(const plan::Buffer &buffer, uint64_t instance) {
  return {buffer.region(), buffer.offset() + static_cast<int64_t>(instance) *
                                                 buffer.per_instance()};
}

auto key(const Place &place) { return std::tuple(place.region, place.offset); }

/// Calls `visit(site, place, address, type, launch integers)` for every launch
/// of `kernel` in every program, once per run; `place`, `address` (the buffer
/// that says where it is: the call's argument if it is one) and `type` take an
/// operand.
template <typename Visit>
void forEachLaunch(const plan::Plan &plan, Kernel kernel, Visit visit) {
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    const plan::Program &program = *plan.programs()->Get(p);
    const auto calls = elements(program.calls());
    for (uint32_t c = 0; c < calls.size(); ++c) {
      const plan::Function &function =
          *plan.functions()->Get(calls[c].function());
      const auto buffers = elements(function.buffers());
      const auto operands = elements(function.operands());
      const auto launches = elements(function.launches());
      for (uint32_t l = 0; l < launches.size(); ++l) {
        if (launches[l].kernel() != static_cast<uint16_t>(kernel)) {
          continue;
        }
        const auto buffer = [&](uint32_t operand) -> const plan::Buffer & {
          return buffers[operands[launches[l].first_operand() + operand]];
        };
        for (uint32_t run = 0; run < calls[c].count(); ++run) {
          visit(
              Site{p, c, l, 0},
              [&](uint32_t operand) {
                return placeOf(program, calls[c], buffer(operand), run);
              },
              [&](uint32_t operand) -> const plan::Buffer & {
                return addressOf(program, calls[c], buffer(operand));
              },
              [&](uint32_t operand) { return bufferType(buffer(operand)); },
              elements(function.integers())
                  .subspan(launches[l].first_integer()));
        }
      }
    }
  }
}

/// Of a vector that lies at `buffer`, if `pieceBytes` are what a rank touches.
int64_t wholeBytes(const plan::Plan &plan, const plan::Buffer &buffer,
                   int64_t pieceBytes) {
  return pieceBytes * meshOf(plan).size(pieceAxes(plan, buffer));
}

} // namespace

const plan::Buffer &addressOf(const plan::Program &program,
                              const plan::Call &call,
                              const plan::Buffer &buffer) {
  return buffer.space() == static_cast<uint8_t>(plan::Space::Argument)
             ? elements(
                   program.arguments())[call.first_argument() + buffer.region()]
             : buffer;
}

Place placeOf(const plan::Program &program, const plan::Call &call,
              const plan::Buffer &buffer, uint32_t run) {
  if (buffer.space() == static_cast<uint8_t>(plan::Space::Argument)) {
    const plan::Buffer &argument = addressOf(program, call, buffer);
    return {argument.region(), argument.offset() + buffer.offset()};
  }
  const auto instance = static_cast<int64_t>(call.first_instance()) + run;
  const auto frame = static_cast<int64_t>(call.first_frame()) + run;
  return {buffer.region(), buffer.offset() + instance * buffer.per_instance() +
                               frame * buffer.per_frame()};
}

/// Makes `name` that of the `k`-th, in the memory it has.
static void writeName(const plan::Parameter &parameter, uint32_t k,
                      std::string &name) {
  name = text(parameter.prefix());
  if (!name.empty()) {
    std::array<char, 10> digits{};
    const auto [end, error] =
        std::to_chars(digits.data(), digits.data() + digits.size(),
                      parameter.first_index() + k * parameter.index_step());
    name += '.';
    name.append(digits.data(), end);
    name += '.';
  }
  name += text(parameter.name());
}

std::string logicalName(const plan::Parameter &parameter, uint32_t k) {
  std::string name;
  writeName(parameter, k, name);
  return name;
}

std::map<std::string, std::set<size_t>>
repeatedNames(std::span<const plan::Plan *const> plans) {
  const auto forEach = [&](auto visit) {
    std::string name;
    for (size_t p = 0; p < plans.size(); ++p) {
      for (uint32_t i = 0; plans[p] && i < length(plans[p]->parameters());
           ++i) {
        const plan::Parameter &parameter = *plans[p]->parameters()->Get(i);
        for (uint32_t k = 0; k < parameter.count(); ++k) {
          writeName(parameter, k, name);
          visit(XXH3_64bits(name.data(), name.size()), name, p);
        }
      }
    }
  };
  std::vector<uint64_t> hashes;
  forEach([&](uint64_t hash, const std::string &, size_t) {
    hashes.push_back(hash);
  });
  std::ranges::sort(hashes);
  std::set<uint64_t> twice;
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i] == hashes[i - 1]) {
      twice.insert(hashes[i]);
    }
  }
  std::map<std::string, std::set<size_t>> places;
  if (!twice.empty()) {
    forEach([&](uint64_t hash, const std::string &name, size_t p) {
      if (twice.contains(hash)) {
        places[name].insert(p);
      }
    });
  }
  return places;
}

std::vector<OptimizerRange> optimizerRanges(const plan::Plan &plan) {
  std::vector<OptimizerRange> ranges;
  forEachLaunch(plan, Kernel::AdamW,
                [&](const Site &site, auto place, auto address, auto type,
                    auto integers) {
                  OptimizerRange range;
                  range.site = site;
                  range.weight = place(0);
                  range.gradient = place(1);
                  range.moment = place(2);
                  range.variance = place(3);
                  range.decay = integers.front() != 0;
                  range.pieceBytes = type(0).extentBytes();
                  range.axes = pieceAxes(plan, address(0));
                  range.bytes = wholeBytes(plan, address(0), range.pieceBytes);
                  range.stateBytes =
                      wholeBytes(plan, address(2), range.pieceBytes);
                  ranges.push_back(range);
                });
  std::sort(ranges.begin(), ranges.end(), [](const auto &a, const auto &b) {
    return key(a.weight) < key(b.weight);
  });
  return ranges;
}

FlatRange ownedElements(const LogicalParameter &parameter,
                        const OptimizerRange &range, int64_t place) {
  if (!range.isShared()) {
    return {0, parameter.elements};
  }
  const auto element = [&](int64_t piece) {
    return std::clamp<int64_t>((piece * range.pieceBytes - parameter.inRange) /
                                   byteSize(DataType::F32),
                               0, parameter.elements);
  };
  return {element(place), element(place + 1)};
}

std::vector<CopyRange> copyRanges(const plan::Plan &plan) {
  std::vector<CopyRange> ranges;
  forEachLaunch(
      plan, Kernel::Cast,
      [&](const Site &site, auto place, auto address, auto type, auto) {
        const BufferType target = type(1);
        if (type(0).type == DataType::F32 && target.type == DataType::BF16 &&
            type(0).isContiguous() && target.isContiguous() &&
            partOf(plan, place(1).region) == plan::Part::State) {
          ranges.push_back(
              {site, place(0), place(1),
               wholeBytes(plan, address(1), target.extentBytes())});
        }
      });
  return ranges;
}

std::vector<LogicalParameter> logicalParameters(const plan::Plan &plan) {
  return logicalParameters(plan, RunSample());
}

std::vector<LogicalParameter> logicalParameters(const plan::Plan &plan,
                                                const RunSample &sample) {
  const std::vector<OptimizerRange> ranges = optimizerRanges(plan);
  std::vector<LogicalParameter> all;
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    for (uint32_t k = 0; k < parameter.count(); ++k) {
      const uint64_t instance = uint64_t{parameter.first_instance()} + k;
      LogicalParameter one;
      one.weight = instanceOf(*parameter.weight(), instance);
      one.gradient = instanceOf(*parameter.gradient(), instance);
      // Weights may have no cells: a stack that computes with copies reads
      // them.
      if (sample.isLeftOut(one.gradient.region, one.gradient.offset)) {
        continue;
      }
      one.name = logicalName(parameter, k);
      one.entry = i;
      const auto shape = elements(parameter.shape());
      one.shape.assign(shape.begin(), shape.end());
      one.layout = layoutOf(plan, *parameter.weight());
      one.elements = bufferType(*parameter.weight()).elements();
      one.initializer = parameter.initializer();
      one.value = parameter.value();
      one.decay = parameter.decay();
      if (parameter.compute()) {
        one.compute = instanceOf(*parameter.compute(), instance);
      }

      auto after =
          std::upper_bound(ranges.begin(), ranges.end(), one.weight,
                           [](const Place &place, const OptimizerRange &range) {
                             return key(place) < key(range.weight);
                           });
      if (after != ranges.begin()) {
        const OptimizerRange &range = *std::prev(after);
        const int64_t inside = one.weight.offset - range.weight.offset;
        if (range.weight.region == one.weight.region &&
            inside + one.elements * 4 <= range.bytes) {
          one.range = static_cast<uint32_t>(&range - ranges.data());
          one.inRange = inside;
        }
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

} // namespace mega
