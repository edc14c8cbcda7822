//===- BufferMutants.cpp - Addresses and types in functions ---------------===//
#include "test/plan-mutants/Mutants.h"

#include <algorithm>

namespace mega {
namespace {

using Edit = std::function<void(plan::Buffer &)>;

class Buffers {
public:
  Buffers(const plan::PlanT &plan, size_t number, MutantList &list)
      : plan(plan), number(number), f(*plan.functions[number]), list(list) {}

  void add() {
    for (size_t b = 0; b < f.buffers.size(); ++b) {
      if (isUsed(b)) {
        addTypes(b);
        addAddresses(b);
      }
    }
    addClobbers();
    for (size_t a = 0; a < f.arguments.size(); ++a) {
      addArgument(a);
    }
    list.flush();
  }

private:
  bool isUsed(size_t b) const {
    for (size_t l = 0; l < f.launches.size(); ++l) {
      const LaunchView view(f, l);
      for (size_t i = 0; i < view.operands(); ++i) {
        if (view.indexOf(i) == b && view.access(i) != Access::Scratch) {
          return true;
        }
      }
    }
    return false;
  }

  /// Somebody else reads or writes it: another function, or who reads the
  /// plan's tables.
  bool isShared(const plan::Buffer &buffer) const {
    if (buffer.space() != 0 || partOf(plan, buffer) == plan::Part::Scratch) {
      return false;
    }
    for (size_t other = 0; other < plan.functions.size(); ++other) {
      for (const plan::Buffer &b : plan.functions[other]->buffers) {
        if (other != number && sharesBytes(b, buffer)) {
          return true;
        }
      }
    }
    for (const auto &parameter : plan.parameters) {
      for (const auto *b : {parameter->weight.get(), parameter->gradient.get(),
                            parameter->compute.get()}) {
        if (b && sharesBytes(*b, buffer)) {
          return true;
        }
      }
    }
    return false;
  }

  std::string site(size_t b) const {
    const plan::Buffer &buffer = f.buffers[b];
    return fmt::format(
        "{} buffer {}, {} at {}", f.name, b, toString(bufferType(buffer)),
        buffer.space() == 0 ? plan.regions[buffer.region()]->name
                            : fmt::format("argument {}", buffer.region()));
  }

  void edit(std::string kind, size_t b, Edit change) {
    list.add(std::move(kind), site(b),
             [n = number, b, change = std::move(change)](plan::PlanT &m) {
               change(m.functions[n]->buffers[b]);
             });
  }

  void addTypes(size_t b) {
    const plan::Buffer &buffer = f.buffers[b];
    const auto other = static_cast<uint8_t>(buffer.data_type() == 0 ? 1 : 0);
    edit("data-type", b, [=](auto &m) { m.mutate_data_type(other); });
    edit("unknown-data-type", b, [](auto &m) { m.mutate_data_type(77); });
    edit("unknown-space", b, [](auto &m) { m.mutate_space(9); });
    edit("layout-out-of-range", b, [](auto &m) { m.mutate_layout(200); });
    for (int d = 0; d < buffer.rank(); ++d) {
      const int64_t extent = buffer.dims()->Get(d);
      if (extent > 1) {
        edit(fmt::format("smaller-dimension-{}", d), b,
             [=](auto &m) { m.mutable_dims()->Mutate(d, extent - 1); });
      }
      edit(fmt::format("negative-dimension-{}", d), b,
           [=](auto &m) { m.mutable_dims()->Mutate(d, -extent); });
    }
    if (isShared(buffer) && bufferType(buffer).rows() > 1) {
      edit("row-stride", b,
           [](auto &m) { m.mutate_row_stride(m.row_stride() + 1); });
    }
    edit("row-stride-too-small", b,
         [](auto &m) { m.mutate_row_stride(bufferType(m).rowSize() - 1); });
  }

  /// Made here and converted into what lies on it: it may be made elsewhere.
  bool isConverted(size_t b) const {
    bool made = false, converted = false;
    for (size_t l = 0; l < f.launches.size(); ++l) {
      const LaunchView view(f, l);
      for (size_t i = 0; i < view.operands(); ++i) {
        made |= view.indexOf(i) == b && view.access(i) == Access::Write &&
                !isConversion(view.spec->kernel);
      }
      converted |= isConversion(view.spec->kernel) && view.indexOf(0) == b &&
                   sharesBytes(view.buffer(0), view.buffer(1));
    }
    return made && converted;
  }

  void addAddresses(size_t b) {
    const plan::Buffer &buffer = f.buffers[b];
    edit("region-out-of-range", b, [](auto &m) { m.mutate_region(1000); });
    if (buffer.space() != 0) {
      edit("argument-end", b,
           [](auto &m) { m.mutate_offset(bufferType(m).extentBytes()); });
      return;
    }
    const int64_t size = byteSize(static_cast<DataType>(buffer.data_type()));
    edit("negative-offset", b, [=](auto &m) { m.mutate_offset(-size); });
    edit("beyond-region", b, [end = regionEnd(plan, buffer.region())](auto &m) {
      m.mutate_offset(end);
    });
    if (size > 1) {
      edit("unaligned", b, [](auto &m) { m.mutate_offset(m.offset() + 1); });
    }
    if (isShared(buffer) && !isConverted(b)) {
      edit("moved", b, [=](auto &m) { m.mutate_offset(m.offset() + size); });
      if (buffer.offset() >= 256) {
        edit("moved-back", b,
             [](auto &m) { m.mutate_offset(m.offset() - 256); });
      }
      const auto regions = static_cast<uint32_t>(plan.regions.size());
      edit("other-region", b,
           [=](auto &m) { m.mutate_region((m.region() + 1) % regions); });
    }
    if (repeats(plan, number)) {
      if (buffer.per_instance() != 0) {
        edit("no-instance", b, [](auto &m) { m.mutate_per_instance(0); });
        edit("instance-stride", b,
             [=](auto &m) { m.mutate_per_instance(m.per_instance() - size); });
      }
      if (buffer.per_frame() != 0) {
        edit("no-frame", b, [](auto &m) { m.mutate_per_frame(0); });
        edit("frame-too-small", b,
             [](auto &m) { m.mutate_per_frame(m.per_frame() - 256); });
      }
    }
  }

  /// A result is put where a value lies that is still needed.
  void addClobbers() {
    for (size_t l = 0; l < f.launches.size(); ++l) {
      const LaunchView view(f, l);
      for (size_t i = 0; i < view.operands(); ++i) {
        if (view.access(i) == Access::Write && view.buffer(i).space() == 0 &&
            partOf(plan, view.buffer(i)) == plan::Part::Scratch) {
          addClobber(l, i);
        }
      }
    }
  }

  void addClobber(size_t l, size_t i) {
    const LaunchView view(f, l);
    for (size_t before = 0; before < l; ++before) {
      const LaunchView writer(f, before);
      for (size_t w = 0; w < writer.operands(); ++w) {
        if (writer.access(w) != Access::Write ||
            writer.buffer(w).space() != 0 ||
            writer.buffer(w).region() != view.buffer(i).region() ||
            !isAlive(writer.buffer(w), before, l) ||
            sharesBytes(writer.buffer(w), view.buffer(i))) {
          continue;
        }
        list.add("clobber",
                 fmt::format("{}, {} over {} of launch {}", view.text(l),
                             view.spec->operands[i].name,
                             writer.spec->operands[w].name, before),
                 [n = number, b = view.indexOf(i),
                  offset = writer.buffer(w).offset()](plan::PlanT &m) {
                   m.functions[n]->buffers[b].mutate_offset(offset);
                 });
        return;
      }
    }
  }

  /// Written at `from`, not since until `now`, and read after `now`.
  bool isAlive(const plan::Buffer &buffer, size_t from, size_t now) const {
    for (size_t l = from + 1; l < f.launches.size(); ++l) {
      const LaunchView view(f, l);
      for (size_t i = 0; i < view.operands(); ++i) {
        if (!sharesBytes(view.buffer(i), buffer)) {
          continue;
        }
        if (view.writes(i)) {
          return false;
        }
        if (l > now) {
          return true;
        }
      }
    }
    return false;
  }

  void addArgument(size_t a) {
    const auto change = [&](std::string kind, Edit change) {
      list.add(std::move(kind), fmt::format("{} argument {}", f.name, a),
               [n = number, a, change = std::move(change)](plan::PlanT &m) {
                 change(m.functions[n]->arguments[a]);
               });
    };
    change("argument-number", [](auto &m) { m.mutate_region(50); });
    change("argument-address", [](auto &m) { m.mutate_offset(64); });
    change("argument-space", [](auto &m) { m.mutate_space(0); });
    change("argument-type", [](auto &m) {
      m.mutate_data_type(static_cast<uint8_t>(m.data_type() == 0 ? 1 : 0));
    });
  }

  const plan::PlanT &plan;
  const size_t number;
  const plan::FunctionT &f;
  MutantList &list;
};

} // namespace

void addBufferMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t f = 0; f < plan.functions.size(); ++f) {
    Buffers(plan, f, list).add();
  }
}

} // namespace mega
