//===- PackPlan.cpp - A plan as a flatbuffer, equal parts stored once -----===//
//
// The stages of a pipeline are much alike: layers that several run are the same
// function. Tables and vectors that are equal, byte for byte, are one in the
// file; a plan of one stage is written as flatbuffers writes it.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PackPlan.h"

#include <map>
#include <string>

namespace mega {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;

class Packer {
public:
  explicit Packer(FlatBufferBuilder &builder) : builder(builder) {}

  Offset<plan::Plan> pack(const plan::PlanT &plan);

private:
  /// The table, made once for all that are equal to it.
  template <typename TableT>
  Offset<typename TableT::TableType> table(const TableT &object) {
    using Table = typename TableT::TableType;
    FlatBufferBuilder alone;
    alone.Finish(Table::Pack(alone, &object));
    std::string key(reinterpret_cast<const char *>(alone.GetBufferPointer()),
                    alone.GetSize());
    auto &known = tables[typeid(Table).hash_code()];
    const auto it = known.find(key);
    if (it != known.end()) {
      return Offset<Table>(it->second);
    }
    const Offset<Table> offset = Table::Pack(builder, &object);
    known.emplace(std::move(key), offset.o);
    return offset;
  }

  template <typename TableT>
  Offset<Vector<Offset<typename TableT::TableType>>>
  tableVector(const std::vector<std::unique_ptr<TableT>> &objects) {
    std::vector<Offset<typename TableT::TableType>> offsets;
    std::string key;
    for (const auto &object : objects) {
      offsets.push_back(table(*object));
      key.append(reinterpret_cast<const char *>(&offsets.back().o),
                 sizeof(offsets.back().o));
    }
    return once<Vector<Offset<typename TableT::TableType>>>(
        std::move(key), typeid(TableT).hash_code(), objects.empty(),
        [&] { return builder.CreateVector(offsets); });
  }

  template <typename Struct>
  Offset<Vector<const Struct *>>
  structVector(const std::vector<Struct> &structs) {
    std::string key(reinterpret_cast<const char *>(structs.data()),
                    structs.size() * sizeof(Struct));
    return once<Vector<const Struct *>>(
        std::move(key), typeid(Struct).hash_code(), structs.empty(),
        [&] { return builder.CreateVectorOfStructs(structs); });
  }

  Offset<Vector<Offset<flatbuffers::String>>>
  stringVector(const std::vector<std::string> &strings) {
    std::vector<Offset<flatbuffers::String>> offsets;
    std::string key;
    for (const std::string &text : strings) {
      offsets.push_back(builder.CreateSharedString(text));
      key += text;
      key += '\0';
    }
    return once<Vector<Offset<flatbuffers::String>>>(
        std::move(key), typeid(std::string).hash_code(), strings.empty(),
        [&] { return builder.CreateVector(offsets); });
  }

  Offset<flatbuffers::String> string(const std::string &text) {
    return text.empty() ? Offset<flatbuffers::String>()
                        : builder.CreateSharedString(text);
  }

  /// What `make` makes, once for all of one kind and key; nothing if `empty`.
  template <typename Made, typename Make>
  Offset<Made> once(std::string key, size_t kind, bool empty, Make &&make) {
    if (empty) {
      return {};
    }
    auto &known = vectors[kind];
    const auto it = known.find(key);
    if (it != known.end()) {
      return Offset<Made>(it->second);
    }
    const Offset<Made> offset = make();
    known.emplace(std::move(key), offset.o);
    return offset;
  }

  FlatBufferBuilder &builder;
  std::map<size_t, std::map<std::string, flatbuffers::uoffset_t>> tables;
  std::map<size_t, std::map<std::string, flatbuffers::uoffset_t>> vectors;
};

Offset<plan::Plan> Packer::pack(const plan::PlanT &plan) {
  std::vector<Offset<plan::Plan>> stages;
  for (const auto &stage : plan.stages) {
    stages.push_back(pack(*stage));
  }
  const auto compiler = string(plan.compiler);
  const auto options = string(plan.options);
  const auto model = string(plan.model);
  const auto source = string(plan.source);
  const auto mesh = structVector(plan.mesh);
  const auto regions = tableVector(plan.regions);
  const auto layouts = structVector(plan.layouts);
  const auto groups = structVector(plan.groups);
  const auto locations = stringVector(plan.locations);
  const auto functions = tableVector(plan.functions);
  const auto programs = tableVector(plan.programs);
  const auto entryPoints = tableVector(plan.entry_points);
  const auto parameters = tableVector(plan.parameters);
  const auto inputs = tableVector(plan.inputs);
  const auto lossTerms = tableVector(plan.loss_terms);
  const auto stagePlans = stages.empty() ? Offset<Vector<Offset<plan::Plan>>>()
                                         : builder.CreateVector(stages);
  plan::PlanBuilder out(builder);
  out.add_version(plan.version);
  out.add_schema(plan.schema);
  out.add_compiler(compiler);
  out.add_options(options);
  out.add_model(model);
  out.add_mesh(mesh);
  out.add_micro_batch_size(plan.micro_batch_size);
  out.add_global_batch_size(plan.global_batch_size);
  out.add_sequence_length(plan.sequence_length);
  out.add_vocabulary(plan.vocabulary);
  out.add_ignore_label(plan.ignore_label);
  out.add_regions(regions);
  out.add_layouts(layouts);
  out.add_groups(groups);
  out.add_locations(locations);
  out.add_functions(functions);
  out.add_programs(programs);
  out.add_entry_points(entryPoints);
  out.add_parameters(parameters);
  out.add_inputs(inputs);
  out.add_loss_terms(lossTerms);
  out.add_gradient_square_sum(plan.gradient_square_sum.get());
  out.add_parameter_count(plan.parameter_count);
  out.add_flops_per_step(plan.flops_per_step);
  out.add_reserve_bytes(plan.reserve_bytes);
  out.add_source(source);
  out.add_stages(stagePlans);
  out.add_stage(plan.stage);
  out.add_packed(plan.packed);
  out.add_sequence_order(plan.sequence_order);
  return out.Finish();
}

} // namespace

Offset<plan::Plan> packShared(FlatBufferBuilder &builder,
                              const plan::PlanT &plan) {
  return Packer(builder).pack(plan);
}

} // namespace mega
