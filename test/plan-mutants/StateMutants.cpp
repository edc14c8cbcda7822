//===- StateMutants.cpp - Regions, parameters, inputs, the loss -----------===//
#include "runtime/plan/Layout.h"
#include "test/plan-mutants/Mutants.h"

#include <limits>

namespace mega {
namespace {

void addParameter(const plan::PlanT &plan, size_t i, MutantList &list) {
  const plan::ParameterT &p = *plan.parameters[i];
  const std::string site = fmt::format("parameter {}, {}", i, p.name);
  const auto edit = [&](std::string kind,
                        std::function<void(plan::ParameterT &)> change) {
    list.add(std::move(kind), site,
             [i, change = std::move(change)](plan::PlanT &m) {
               change(*m.parameters[i]);
             });
  };
  const auto at = static_cast<int64_t>(i);
  list.add("parameter-dropped", site, [=](plan::PlanT &m) {
    m.parameter_count -=
        m.parameters[i]->count *
        static_cast<uint64_t>(bufferType(*m.parameters[i]->weight).elements());
    m.parameters.erase(m.parameters.begin() + at);
  });
  list.add("parameter-name-twice", site, [=](plan::PlanT &m) {
    const auto &other = *m.parameters[(i + 1) % m.parameters.size()];
    m.parameters[i]->prefix = other.prefix;
    m.parameters[i]->name = other.name;
    m.parameters[i]->first_index = other.first_index;
    m.parameters[i]->index_step = other.index_step;
  });
  edit("parameter-no-name", [](auto &m) { m.name = ""; });
  edit("parameter-decay", [](auto &m) { m.decay = !m.decay; });
  edit("parameter-shape", [](auto &m) { m.shape.push_back(2); });
  if (p.shape.size() == 2 && p.shape[0] != p.shape[1]) {
    edit("parameter-transposed",
         [](auto &m) { std::swap(m.shape[0], m.shape[1]); });
  }
  edit("parameter-initializer",
       [](auto &m) { m.initializer = static_cast<plan::Initializer>(9); });
  edit("parameter-value",
       [](auto &m) { m.value = std::numeric_limits<double>::infinity(); });
  edit("parameter-once-more", [](auto &m) { ++m.count; });
  list.add("parameter-once-more-counted", site, [=](plan::PlanT &m) {
    if (m.parameters[i]->prefix.empty()) {
      m.parameters[i]->prefix = "more";
    }
    ++m.parameters[i]->count;
    m.parameter_count +=
        static_cast<uint64_t>(bufferType(*m.parameters[i]->weight).elements());
  });
  if (p.count > 1) {
    list.add("parameter-once-less", site, [=](plan::PlanT &m) {
      --m.parameters[i]->count;
      m.parameter_count -= static_cast<uint64_t>(
          bufferType(*m.parameters[i]->weight).elements());
    });
    edit("parameter-no-step", [](auto &m) { m.index_step = 0; });
  }
  if (p.weight->per_instance() != 0) {
    edit("parameter-instance", [](auto &m) { ++m.first_instance; });
    if (p.count > 1) {
      edit("parameter-stride", [](auto &m) {
        m.weight->mutate_per_instance(m.weight->per_instance() - 4);
      });
    }
  }
  edit("weight-moved",
       [](auto &m) { m.weight->mutate_offset(m.weight->offset() + 4); });
  edit("gradient-moved",
       [](auto &m) { m.gradient->mutate_offset(m.gradient->offset() + 4); });
  edit("weight-region",
       [](auto &m) { m.weight->mutate_region(m.gradient->region()); });
  edit("weight-and-gradient-swapped",
       [](auto &m) { std::swap(m.weight, m.gradient); });
  edit("weight-missing", [](auto &m) { m.weight.reset(); });
  edit("gradient-missing", [](auto &m) { m.gradient.reset(); });
  edit("weight-type", [](auto &m) {
    m.weight->mutate_data_type(static_cast<uint8_t>(DataType::BF16));
  });
  for (size_t j = i + 1; j < plan.parameters.size(); ++j) {
    const plan::ParameterT &q = *plan.parameters[j];
    if (!sameType(*p.weight, *q.weight) || p.count != q.count ||
        p.weight->offset() == q.weight->offset()) {
      continue;
    }
    list.add("weights-exchanged", fmt::format("{} and {}", site, j),
             [=](plan::PlanT &m) {
               std::swap(m.parameters[i]->weight, m.parameters[j]->weight);
             });
    list.add("gradients-exchanged", fmt::format("{} and {}", site, j),
             [=](plan::PlanT &m) {
               std::swap(m.parameters[i]->gradient, m.parameters[j]->gradient);
             });
    break;
  }
  if (p.compute) {
    edit("copy-missing", [](auto &m) { m.compute.reset(); });
    edit("copy-moved",
         [](auto &m) { m.compute->mutate_offset(m.compute->offset() + 2); });
  } else {
    edit("copy-invented", [](auto &m) {
      m.compute = std::make_unique<plan::Buffer>(*m.weight);
      m.compute->mutate_data_type(static_cast<uint8_t>(DataType::BF16));
    });
  }
}

bool isRead(const plan::PlanT &plan, const plan::Buffer &input) {
  for (const auto &program : plan.programs) {
    for (const plan::Buffer &argument : program->arguments) {
      if (argument.region() == input.region() &&
          argument.offset() == input.offset()) {
        return true;
      }
    }
  }
  return false;
}

void addInputs(const plan::PlanT &plan, MutantList &list) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto edit = [&](std::string kind,
                          std::function<void(plan::InputT &)> change) {
      list.add(std::move(kind), "input " + plan.inputs[i]->name,
               [i, change = std::move(change)](plan::PlanT &m) {
                 change(*m.inputs[i]);
               });
    };
    edit("input-limit-more", [](auto &m) { ++m.limit; });
    edit("input-limit-less", [](auto &m) { --m.limit; });
    edit("input-limit-0", [](auto &m) { m.limit = 0; });
    // One that no program of a stage reads may be anywhere.
    if (isRead(plan, *plan.inputs[i]->buffer)) {
      edit("input-moved",
           [](auto &m) { m.buffer->mutate_offset(m.buffer->offset() + 4); });
    }
    edit("input-region", [](auto &m) { m.buffer->mutate_region(0); });
    edit("input-missing", [](auto &m) { m.buffer.reset(); });
    edit("input-type", [](auto &m) {
      m.buffer->mutate_data_type(static_cast<uint8_t>(DataType::I64));
    });
    edit("input-dimension", [](auto &m) {
      m.buffer->mutable_dims()->Mutate(1, m.buffer->dims()->Get(1) - 1);
    });
    if (plan.entry_points[0]->micro_batches > 1) {
      edit("input-stride", [](auto &m) {
        m.buffer->mutate_per_micro_batch(m.buffer->per_micro_batch() - 4);
      });
    }
    const size_t other = (i + 1) % plan.inputs.size();
    edit("input-name-twice",
         [name = plan.inputs[other]->name](auto &m) { m.name = name; });
    edit("input-overlap", [buffer = *plan.inputs[other]->buffer](auto &m) {
      m.buffer->mutate_offset(buffer.offset());
    });
    list.add("input-dropped", plan.inputs[i]->name, [=](plan::PlanT &m) {
      m.inputs.erase(m.inputs.begin() + static_cast<int64_t>(i));
    });
  }
  list.flush();
}

void addLoss(const plan::PlanT &plan, MutantList &list) {
  for (size_t i = 0; i < plan.loss_terms.size(); ++i) {
    const auto edit = [&](std::string kind,
                          std::function<void(plan::LossTermT &)> change) {
      list.add(std::move(kind), "loss term " + plan.loss_terms[i]->name,
               [i, change = std::move(change)](plan::PlanT &m) {
                 change(*m.loss_terms[i]);
               });
    };
    edit("loss-weight", [](auto &m) { m.weight *= 2; });
    edit("loss-weight-nan", [](auto &m) { m.weight = 0.0 / 0.0; });
    edit("loss-sum-moved",
         [](auto &m) { m.sum->mutate_offset(m.sum->offset() + 8); });
    edit("loss-count-moved",
         [](auto &m) { m.count->mutate_offset(m.count->offset() + 8); });
    edit("loss-sum-over-count",
         [](auto &m) { m.sum->mutate_offset(m.count->offset()); });
    edit("loss-count-over-sum",
         [](auto &m) { m.count->mutate_offset(m.sum->offset()); });
    edit("loss-sum-missing", [](auto &m) { m.sum.reset(); });
    edit("loss-count-type", [](auto &m) {
      m.count->mutate_data_type(static_cast<uint8_t>(DataType::F64));
    });
    edit("loss-no-name", [](auto &m) { m.name = ""; });
  }
  list.add("no-loss", "all", [](plan::PlanT &m) { m.loss_terms.clear(); });
  list.add("norm-missing", "gradient_square_sum",
           [](plan::PlanT &m) { m.gradient_square_sum.reset(); });
  list.add("norm-moved", "gradient_square_sum", [](plan::PlanT &m) {
    m.gradient_square_sum->mutate_offset(m.gradient_square_sum->offset() + 8);
  });
  list.add("norm-over-loss", "gradient_square_sum", [](plan::PlanT &m) {
    m.gradient_square_sum->mutate_offset(m.loss_terms[0]->sum->offset());
  });
  list.flush();
}

void addRegions(const plan::PlanT &plan, MutantList &list) {
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const std::string &name = plan.regions[r]->name;
    const int64_t end = usedEnd(plan, static_cast<uint32_t>(r));
    const auto edit = [&](std::string kind,
                          std::function<void(plan::RegionT &)> change) {
      list.add(std::move(kind), "region " + name,
               [r, change = std::move(change)](plan::PlanT &m) {
                 change(*m.regions[r]);
               });
    };
    if (end > 0) {
      edit("region-too-small",
           [=](auto &m) { m.bytes = static_cast<uint64_t>(end - 1); });
      edit("region-one-unit-too-small", [=](auto &m) {
        m.bytes = static_cast<uint64_t>((end - 1) / kRegionAlignment *
                                        kRegionAlignment);
      });
      edit("region-empty", [](auto &m) { m.bytes = 0; });
    }
    edit("region-huge", [](auto &m) { m.bytes = uint64_t{1} << 60; });
    edit("region-part", [](auto &m) { m.part = static_cast<plan::Part>(77); });
    edit("region-copies", [](auto &m) { m.copies = 9; });
    edit("region-no-copy", [](auto &m) { m.copies = 0; });
    edit("region-name-twice",
         [other = (r + 1) % plan.regions.size(), &plan](auto &m) {
           m.name = plan.regions[other]->name;
         });
  }
  list.flush();
}

void addIdentity(MutantList &list) {
  const auto edit = [&](std::string field,
                        std::function<void(plan::PlanT &)> change) {
    list.add("identity", std::move(field), std::move(change));
  };
  edit("micro_batch_size", [](auto &m) { ++m.micro_batch_size; });
  edit("global_batch_size", [](auto &m) { ++m.global_batch_size; });
  edit("sequence_length", [](auto &m) { --m.sequence_length; });
  edit("vocabulary", [](auto &m) { --m.vocabulary; });
  edit("ignore_label", [](auto &m) { ++m.ignore_label; });
  edit("parameter_count", [](auto &m) { ++m.parameter_count; });
  edit("reserve_bytes", [](auto &m) { m.reserve_bytes = ~uint64_t{0}; });
  edit("model", [](auto &m) { m.model = "two words"; });
  edit("mesh", [](auto &m) {
    const uint8_t reserved[3] = {};
    m.mesh.push_back(plan::Axis(static_cast<uint8_t>(mega::Axis::Dp),
                                flatbuffers::span<const uint8_t, 3>(reserved),
                                2));
  });
  list.flush();
}

} // namespace

void addStateMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    addParameter(plan, i, list);
  }
  list.flush();
  addInputs(plan, list);
  addLoss(plan, list);
  addRegions(plan, list);
  addIdentity(list);
}

} // namespace mega
