//===- ScheduleMutants.cpp - Programs, calls, actions ---------------------===//
#include "test/plan-mutants/Mutants.h"

#include <algorithm>
#include <set>

namespace mega {
namespace {

bool isPipeline(const plan::PlanT &plan) {
  return std::any_of(plan.programs.begin(), plan.programs.end(),
                     [](const auto &program) {
                       return program->kind == plan::ActionKind::Transfer;
                     });
}

bool usesInstance(const plan::FunctionT &f) {
  return std::any_of(f.buffers.begin(), f.buffers.end(),
                     [](const auto &b) { return b.per_instance() != 0; });
}
bool usesFrame(const plan::FunctionT &f) {
  return std::any_of(f.buffers.begin(), f.buffers.end(),
                     [](const auto &b) { return b.per_frame() != 0; });
}

/// The same again leaves what it left: it reads nothing that it changes.
bool isIdempotent(const plan::FunctionT &f) {
  std::set<uint32_t> read;
  std::set<uint32_t> written;
  for (size_t l = 0; l < f.launches.size(); ++l) {
    const LaunchView view(f, l);
    for (size_t i = 0; i < view.operands(); ++i) {
      const plan::Buffer &buffer = view.buffer(i);
      if (buffer.space() == 0 && view.access(i) == Access::ReadWrite) {
        return false;
      }
      if (buffer.space() != 0 && view.reads(i) &&
          written.count(buffer.region()) == 0) {
        read.insert(buffer.region());
      }
    }
    for (size_t i = 0; i < view.operands(); ++i) {
      const plan::Buffer &buffer = view.buffer(i);
      if (buffer.space() != 0 && view.writes(i)) {
        if (read.count(buffer.region()) != 0) {
          return false;
        }
        written.insert(buffer.region());
      }
    }
  }
  return true;
}

/// But for the name: a forward that saves nothing is its own evaluation.
bool computesTheSame(const plan::FunctionT &a, const plan::FunctionT &b) {
  if (a.launches.size() != b.launches.size()) {
    return false;
  }
  for (size_t l = 0; l < a.launches.size(); ++l) {
    const LaunchView one(a, l);
    const LaunchView other(b, l);
    const auto same = [](const auto &x, size_t i, const auto &y, size_t j,
                         size_t count) {
      return std::equal(x.begin() + static_cast<int64_t>(i),
                        x.begin() + static_cast<int64_t>(i + count),
                        y.begin() + static_cast<int64_t>(j));
    };
    if (one.spec != other.spec ||
        !same(a.integers, one.launch->first_integer(), b.integers,
              other.launch->first_integer(), one.spec->integers.size()) ||
        !same(a.floats, one.launch->first_float(), b.floats,
              other.launch->first_float(), one.spec->floats.size())) {
      return false;
    }
    for (size_t i = 0; i < one.operands(); ++i) {
      if (!sameBuffer(one.buffer(i), other.buffer(i))) {
        return false;
      }
    }
  }
  return true;
}

/// The function gets other buffers with arguments from one place earlier.
bool argumentsDiffer(const plan::ProgramT &program, const plan::Call &call,
                     const plan::FunctionT &function) {
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const size_t at = call.first_argument() + i;
    if (!sameBuffer(program.arguments[at], program.arguments[at - 1])) {
      return true;
    }
  }
  return false;
}

void addCall(const plan::PlanT &plan, size_t p, size_t c, MutantList &list) {
  const plan::ProgramT &program = *plan.programs[p];
  const plan::Call &call = program.calls[c];
  const plan::FunctionT &function = *plan.functions[call.function()];
  const auto edit = [&](std::string kind,
                        std::function<void(plan::Call &)> change) {
    list.add(std::move(kind),
             fmt::format("{} call {} of {}", program.name, c, function.name),
             [p, c, change = std::move(change)](plan::PlanT &m) {
               change(m.programs[p]->calls[c]);
             });
  };
  const bool computes = isRun(program.kind);
  edit("call-count-0", [](auto &m) { m.mutate_count(0); });
  edit("call-count-huge", [](auto &m) { m.mutate_count(1 << 20); });
  edit("reverse-out-of-range", [](auto &m) { m.mutate_reverse(2); });
  edit("function-out-of-range", [](auto &m) { m.mutate_function(10000); });
  edit("arguments-out-of-range",
       [](auto &m) { m.mutate_first_argument(1000); });
  if (computes) {
    if (!isIdempotent(function) || usesInstance(function) ||
        usesFrame(function)) {
      edit("call-once-more", [](auto &m) { m.mutate_count(m.count() + 1); });
    }
    if (call.count() > 1) {
      edit("call-once-less", [](auto &m) { m.mutate_count(m.count() - 1); });
    }
    // Gradients of different weights may come in any order.
    if (call.count() > 1 && program.kind != plan::ActionKind::Weight) {
      edit("reverse", [](auto &m) { m.mutate_reverse(1 - m.reverse()); });
    }
    if (dropsOut(function)) {
      edit("application", [](auto &m) {
        m.mutate_first_application(m.first_application() + 1);
      });
    }
    if (usesInstance(function)) {
      edit("instance",
           [](auto &m) { m.mutate_first_instance(m.first_instance() + 1); });
    }
    if (usesFrame(function)) {
      edit("frame", [](auto &m) { m.mutate_first_frame(m.first_frame() + 1); });
      if (call.count() > 1) {
        edit("frame-shifted", [](auto &m) {
          m.mutate_count(m.count() - 1);
          m.mutate_first_frame(1);
        });
      }
    }
    if (call.first_argument() > 0 && argumentsDiffer(program, call, function)) {
      edit("first-argument",
           [](auto &m) { m.mutate_first_argument(m.first_argument() - 1); });
    }
  }
  for (size_t f = 0; f < plan.functions.size(); ++f) {
    if (!computesTheSame(function, *plan.functions[f])) {
      list.add("other-function",
               fmt::format("{} call {} of {} as {}", program.name, c,
                           function.name, plan.functions[f]->name),
               [=](plan::PlanT &m) {
                 m.programs[p]->calls[c].mutate_function(
                     static_cast<uint32_t>(f));
               });
    }
  }
}

/// Whether a launch of a called function touches argument `a`; what nobody
/// touches may be anything.
bool isTouched(const plan::PlanT &plan, const plan::ProgramT &program,
               size_t a) {
  return std::any_of(
      program.calls.begin(), program.calls.end(), [&](const plan::Call &call) {
        const plan::FunctionT &function = *plan.functions[call.function()];
        return std::any_of(
            function.buffers.begin(), function.buffers.end(),
            [&](const plan::Buffer &buffer) {
              return buffer.space() ==
                         static_cast<uint8_t>(plan::Space::Argument) &&
                     call.first_argument() + buffer.region() == a;
            });
      });
}

void addArguments(const plan::PlanT &plan, size_t p, MutantList &list) {
  const plan::ProgramT &program = *plan.programs[p];
  const bool several = plan.entry_points[0]->micro_batches > 1;
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    if (!isTouched(plan, program, a)) {
      continue;
    }
    const plan::Buffer &argument = program.arguments[a];
    const auto edit = [&](std::string kind,
                          std::function<void(plan::Buffer &)> change) {
      list.add(std::move(kind), fmt::format("{} argument {}", program.name, a),
               [p, a, change = std::move(change)](plan::PlanT &m) {
                 change(m.programs[p]->arguments[a]);
               });
    };
    const int64_t size = byteSize(static_cast<DataType>(argument.data_type()));
    edit("call-argument-moved",
         [=](auto &m) { m.mutate_offset(m.offset() + size); });
    edit("call-argument-beyond", [end = regionEnd(plan, argument.region())](
                                     auto &m) { m.mutate_offset(end); });
    edit("call-argument-region", [n = plan.regions.size()](auto &m) {
      m.mutate_region((m.region() + 1) % static_cast<uint32_t>(n));
    });
    edit("call-argument-space", [](auto &m) { m.mutate_space(1); });
    edit("call-argument-instance", [](auto &m) { m.mutate_per_instance(64); });
    if (several && argument.per_micro_batch() != 0) {
      edit("one-micro-batch", [](auto &m) { m.mutate_per_micro_batch(0); });
      edit("micro-batch-stride", [=](auto &m) {
        m.mutate_per_micro_batch(m.per_micro_batch() - size);
      });
    }
    for (size_t b = a + 1; b < program.arguments.size(); ++b) {
      if (sameType(argument, program.arguments[b]) &&
          !sameBuffer(argument, program.arguments[b])) {
        list.add("swap-arguments",
                 fmt::format("{} {} and {}", program.name, a, b),
                 [=](plan::PlanT &m) {
                   std::swap(m.programs[p]->arguments[a],
                             m.programs[p]->arguments[b]);
                 });
      }
    }
  }
}

/// One touches what the other writes, in run 0.
bool depend(const plan::FunctionT &a, const plan::FunctionT &b) {
  for (size_t i = 0; i < a.launches.size(); ++i) {
    for (size_t j = 0; j < b.launches.size(); ++j) {
      const LaunchView first(a, i), second(b, j);
      for (size_t x = 0; x < first.operands(); ++x) {
        for (size_t y = 0; y < second.operands(); ++y) {
          if ((first.writes(x) || second.writes(y)) &&
              sharesBytes(first.buffer(x), second.buffer(y))) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

} // namespace

void addProgramMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t p = 0; p < plan.programs.size(); ++p) {
    const plan::ProgramT &program = *plan.programs[p];
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const std::string site =
          fmt::format("{} call {} of {}", program.name, c,
                      plan.functions[program.calls[c].function()]->name);
      const auto at = static_cast<int64_t>(c);
      list.add("drop-call", site, [=](plan::PlanT &m) {
        m.programs[p]->calls.erase(m.programs[p]->calls.begin() + at);
      });
      // A prologue or a setup may run twice and leave the same.
      if (isRun(program.kind) || program.kind == plan::ActionKind::Finish) {
        if (!isIdempotent(*plan.functions[program.calls[c].function()])) {
          list.add("repeat-call", site, [=](plan::PlanT &m) {
            auto &calls = m.programs[p]->calls;
            calls.insert(calls.begin() + at, calls[c]);
          });
        }
        // Gradients of different weights may come in any order.
        if (c + 1 < program.calls.size() &&
            program.kind != plan::ActionKind::Weight &&
            (program.kind != plan::ActionKind::Finish ||
             depend(*plan.functions[program.calls[c].function()],
                    *plan.functions[program.calls[c + 1].function()]))) {
          list.add("swap-calls", site, [=](plan::PlanT &m) {
            std::swap(m.programs[p]->calls[c], m.programs[p]->calls[c + 1]);
          });
        }
      }
      addCall(plan, p, c, list);
    }
    addArguments(plan, p, list);
    for (int kind = 0; kind <= 5; ++kind) {
      if (kind != static_cast<int>(program.kind)) {
        list.add("program-kind", fmt::format("{} as {}", program.name, kind),
                 [=](plan::PlanT &m) {
                   m.programs[p]->kind = static_cast<plan::ActionKind>(kind);
                 });
      }
    }
    list.add("program-name-twice", program.name, [=](plan::PlanT &m) {
      m.programs[p]->name = m.programs[(p + 1) % m.programs.size()]->name;
    });
    list.flush();
  }
}

void addScheduleMutants(const plan::PlanT &plan, MutantList &list) {
  for (size_t e = 0; e < plan.entry_points.size(); ++e) {
    const plan::EntryPointT &entry = *plan.entry_points[e];
    const auto &actions = entry.stages[0]->actions;
    const auto edit =
        [&](std::string kind, std::string site,
            std::function<void(std::vector<plan::Action> &)> change) {
          list.add(std::move(kind), entry.name + " " + site,
                   [e, change = std::move(change)](plan::PlanT &m) {
                     change(m.entry_points[e]->stages[0]->actions);
                   });
        };
    for (size_t i = 0; i < actions.size(); ++i) {
      const plan::Action action = actions[i];
      const plan::ProgramT &program = *plan.programs[action.program()];
      const std::string site = fmt::format("action {}, {}({})", i, program.name,
                                           action.micro_batch());
      const auto at = static_cast<int64_t>(i);
      edit("drop-action", site, [=](auto &m) { m.erase(m.begin() + at); });
      edit("repeat-action", site,
           [=](auto &m) { m.insert(m.begin() + at, m[i]); });
      edit("run-again-at-the-end", site, [=](auto &m) { m.push_back(m[i]); });
      // Micro-batches are independent, but for the slot they may share. What a
      // pipeline does between its runs has some freedom.
      if (i + 1 < actions.size() && !isPipeline(plan) &&
          actions[i + 1].program() != action.program() &&
          (actions[i + 1].micro_batch() == action.micro_batch() ||
           actions[i + 1].slot() == action.slot())) {
        edit("swap-actions", site, [=](auto &m) { std::swap(m[i], m[i + 1]); });
      }
      if (isRun(program.kind)) {
        edit("micro-batch-out-of-range", site,
             [=](auto &m) { m[i].mutate_micro_batch(entry.micro_batches); });
        if (entry.micro_batches > 1) {
          edit("other-micro-batch", site, [=](auto &m) {
            m[i].mutate_micro_batch((action.micro_batch() + 1) %
                                    entry.micro_batches);
          });
        }
        if (isGradient(program.kind) || entry.name == "train") {
          edit("other-slot", site,
               [=](auto &m) { m[i].mutate_slot(action.slot() + 1); });
        }
      }
      edit("other-buffer", site,
           [=](auto &m) { m[i].mutate_buffer(action.buffer() + 1); });
      edit("program-out-of-range", site,
           [=](auto &m) { m[i].mutate_program(1000); });
      for (size_t p = 0; p < plan.programs.size(); ++p) {
        if (p != action.program()) {
          edit("other-program", site + " as " + plan.programs[p]->name,
               [=](auto &m) { m[i].mutate_program(static_cast<uint32_t>(p)); });
        }
      }
    }
    edit("no-actions", "", [](auto &m) { m.clear(); });
    const auto change = [&](std::string kind,
                            std::function<void(plan::PlanT &)> apply) {
      list.add(std::move(kind), entry.name, std::move(apply));
    };
    change("micro-batch-more",
           [=](auto &m) { ++m.entry_points[e]->micro_batches; });
    change("micro-batch-less",
           [=](auto &m) { --m.entry_points[e]->micro_batches; });
    change("no-stage", [=](auto &m) { m.entry_points[e]->stages.clear(); });
    change("entry-name-twice", [=](auto &m) {
      m.entry_points[e]->name =
          m.entry_points[(e + 1) % m.entry_points.size()]->name;
    });
    list.flush();
  }
  list.add("entry-names-swapped", "train and eval", [](plan::PlanT &m) {
    std::swap(m.entry_points[0]->name, m.entry_points[1]->name);
  });
  list.flush();
}

} // namespace mega
