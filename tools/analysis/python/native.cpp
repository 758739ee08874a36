// SPDX-License-Identifier: Apache-2.0
// The analysis as a module of Python (tools/tide/analysis/native.pyi is its manual): descriptions in, results out that
// nobody can change. The interpreter is free for other threads while bounds are computed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "analysis/link/file.h"
#include "analysis/link/frames.h"
#include "analysis/model/system_file.h"
#include "analysis/python/json_of.h"
#include "analysis/system/compare.h"
#include "analysis/system/end_to_end.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tide::analysis {
namespace {

using Share = std::pair<std::string, time_ns>;  // a chain or a reason, and what it accounts for

struct NamedBreakdown {
  Breakdown parts;
  std::vector<Share> interference_ns;
};

// tools/analysis/system/confirmed.h, with names.
struct ShortfallAnswer {
  std::string kind, executor, chain, part, part_chain;
  Shortfall whole;
};

struct ChainAnswer {
  std::string chain, executor, analysis, holds_for;
  std::optional<time_ns> response_ns;
  time_ns deadline_ns = 0;
  bool met = false, guaranteed = false;
  std::optional<NamedBreakdown> breakdown;
  std::vector<std::pair<std::string, std::string>> depends_on;
  std::optional<ShortfallAnswer> why;
};

struct PathAnswer {
  std::string path;
  std::optional<time_ns> response_ns;
  time_ns deadline_ns = 0;
  bool met = false, guaranteed = false;
  std::vector<std::pair<std::string, std::optional<time_ns>>> segments;
  std::optional<ShortfallAnswer> why;
};

struct ExecutorsAnswer {
  bool guaranteed = false, settled = false;
  std::vector<ChainAnswer> chains;
  std::vector<PathAnswer> paths;
};

struct LinkChainAnswer {
  std::string chain;
  std::optional<time_ns> response_ns;
  time_ns deadline_ns = 0;
  bool met = false, hidden = false;
  std::optional<std::string> reason, root;
  time_ns reached_ns = 0, limit_ns = 0;
  time_ns lateness_ns = 0;
  StreamUse up, down;
  // The name of a part and its time; whose it is, if anybody's. reached_parts: of the root, without a bound.
  std::vector<std::pair<Share, std::string>> parts, reached_parts;
  std::vector<std::string> depends_on;
};

struct LinkAnswer {
  bool met = false;
  std::vector<LinkChainAnswer> chains;
  std::vector<Assumption> assumptions;
};

[[noreturn]] void refuse(const std::vector<std::string> &errors) {
  std::string text;
  for (const std::string &error : errors) text += (text.empty() ? "" : "\n") + error;
  throw std::invalid_argument(text);
}

std::vector<Share> named(const Executor &executor, const std::vector<time_ns> &by_chain) {
  std::vector<Share> shares;
  for (size_t other = 0; other < by_chain.size(); ++other) {
    if (by_chain[other] != 0) shares.emplace_back(executor.chains()[other].name, by_chain[other]);
  }
  return shares;
}

void answer(const Executor &executor, std::string_view analysis, const Result &result,
            std::vector<ChainAnswer> &answers) {
  for (size_t index = 0; index < executor.chains().size(); ++index) {
    const Chain &chain = executor.chains()[index];
    const ChainResult &found = result.chains[index];
    ChainAnswer &one = answers.emplace_back();
    one.chain = chain.name;
    one.executor = executor.name();
    one.analysis = found.analysis.empty() ? analysis : found.analysis;
    one.holds_for = name_of(found.proved_for);
    one.response_ns = found.response_ns;
    one.deadline_ns = chain.deadline_ns;
    one.met = found.met;
    one.guaranteed = found.guaranteed;
    if (found.response_ns) one.breakdown = {found.breakdown, named(executor, found.breakdown.interference_ns)};
    for (const Dependence &other : found.depends_on) {
      one.depends_on.emplace_back(executor.chains()[other.chain].name,
                                  other.reason == Reason::interference ? "interference" : "blocking");
    }
  }
}

std::optional<ShortfallAnswer> named(const System &system, const std::optional<Shortfall> &why) {
  if (!why) return std::nullopt;
  const Executor &executor = system.executors()[why->executor];
  return ShortfallAnswer{name_of(why->kind),
                         executor.name(),
                         executor.chains()[why->chain].name,
                         std::string(why->part),
                         why->part_chain ? executor.chains()[*why->part_chain].name : "",
                         *why};
}

System built(Json document) {
  SystemFile file = read_system(std::move(document));
  if (!file.errors.empty()) refuse(file.errors);
  Built result = System::build(file.description);
  if (!result.system) refuse(result.errors);
  return std::move(*result.system);
}

ExecutorsAnswer bound_executors(Json document, const Options &options) {
  const System system = built(std::move(document));
  const SystemResult result = analyse_system(system, options);
  ExecutorsAnswer answers{result.guaranteed, result.settled, {}, {}};
  for (size_t index = 0; index < system.executors().size(); ++index) {
    const Result &found = result.executors[index];
    answer(system.executors()[index], found.analysis->name, found, answers.chains);
    const size_t first = answers.chains.size() - found.chains.size();
    for (size_t chain = 0; chain < found.chains.size(); ++chain)
      answers.chains[first + chain].why = named(system, result.why[index][chain]);
  }
  for (size_t index = 0; index < system.paths().size(); ++index) {
    const Path &path = system.paths()[index];
    const PathResult &found = result.paths[index];
    PathAnswer &one = answers.paths.emplace_back(PathAnswer{
        path.name, found.response_ns, path.deadline_ns, found.met, found.guaranteed, {}, named(system, found.why)});
    for (size_t segment = 0; segment < path.segments.size(); ++segment) {
      const Place &place = path.segments[segment];
      one.segments.emplace_back(system.executors()[place.executor].chains()[place.chain].name,
                                found.segments_ns[segment]);
    }
  }
  return answers;
}

std::vector<ChainAnswer> compare_executors(Json document, const Options &options) {
  const System system = built(std::move(document));
  std::vector<ChainAnswer> answers;
  for (const Executor &executor : system.executors()) {
    for (const auto &[analysis, result] : compare(executor, options)) answer(executor, analysis, result, answers);
  }
  return answers;
}

std::vector<std::pair<Share, std::string>> named(const LinkSystem &system, const LinkParts &parts) {
  std::vector<std::pair<Share, std::string>> named;
  const auto add_part = [&named](const char *kind, time_ns value_ns, const std::string &chain = {}) {
    if (value_ns != 0) named.push_back({{kind, value_ns}, chain});
  };
  const auto add_shares = [&](const char *kind, const std::vector<time_ns> &by_chain) {
    for (size_t other = 0; other < by_chain.size(); ++other) add_part(kind, by_chain[other], system.chains[other].name);
  };
  add_part("jitter", parts.jitter_ns);
  add_part("execution", parts.execution_ns);
  add_part("line", parts.line_ns);
  add_part("host", parts.host_ns);
  add_shares("client_interference", parts.client_interference_ns);
  add_shares("line_interference", parts.line_interference_ns);
  add_part("client_blocking", parts.client_blocking_ns);
  add_part("new_data", parts.new_data_ns);
  add_part("lock_blocking", parts.lock_blocking_ns);
  add_part("line_blocking", parts.line_blocking_ns);
  add_part("control", parts.control_ns);
  add_part("window", parts.window_ns);
  add_part("interrupts", parts.interrupts_ns);
  add_part("host_wait", parts.host_wait_ns);
  add_part("losses", parts.losses_ns);
  return named;
}

LinkChainAnswer answer(const LinkSystem &system, const LinkResult &found, size_t index) {
  LinkChainAnswer one;
  one.chain = system.chains[index].name;
  one.response_ns = found.response_ns;
  one.deadline_ns = system.chains[index].deadline_ns;
  one.met = found.met;
  one.hidden = found.hidden;
  for (const size_t other : found.depends_on) one.depends_on.push_back(system.chains[other].name);
  if (found.response_ns) {
    one.lateness_ns = found.parts.lateness_ns;
    one.up = found.up;
    one.down = found.down;
    one.parts = named(system, found.parts);
    return one;
  }
  one.reason = found.reason;
  one.root = system.chains[found.root].name;
  one.reached_ns = found.reached_ns;
  one.limit_ns = found.limit_ns;
  one.reached_parts = named(system, found.reached_parts);
  return one;
}

LinkAnswer bound_link(Json document) {
  const LinkFile file = read_link_system(std::move(document));
  if (!file.errors.empty()) refuse(file.errors);
  const LinkResults results = bound_link(file.system);
  LinkAnswer answers{results.met, {}, results.assumptions};
  for (size_t index = 0; index < results.chains.size(); ++index)
    answers.chains.push_back(answer(file.system, results.chains[index], index));
  return answers;
}

template <class Value>
nb::tuple tuple_of(const std::vector<Value> &values) {
  nb::list list;
  for (const Value &value : values) list.append(nb::cast(value));
  return nb::tuple(list);
}

// A property that shows a vector as a tuple.
template <class Owner, class Value>
auto as_tuple(std::vector<Value> Owner::*member) {
  return [member](const Owner &owner) { return tuple_of(owner.*member); };
}

nb::tuple parts_of(const std::vector<std::pair<Share, std::string>> &parts) {
  nb::list list;
  for (const auto &[part, chain] : parts) {
    list.append(
        nb::make_tuple(part.first, part.second, chain.empty() ? nb::object(nb::none()) : nb::object(nb::cast(chain))));
  }
  return nb::tuple(list);
}

// Shares of the window as the demand is divided, and what the last callback needs behind it.
nb::tuple window_parts_of(const ChainAnswer &answer) {
  if (!answer.breakdown) return nb::make_tuple();
  __extension__ typedef __int128 Wide;
  const Breakdown &whole = answer.breakdown->parts;
  nb::list list;
  time_ns rest_ns = whole.window_ns;
  const auto add_part = [&](const char *kind, time_ns value_ns, const nb::object &chain) {
    if (value_ns == 0 || whole.demand_ns == 0) return;
    const auto share_ns = static_cast<time_ns>(Wide{value_ns} * whole.window_ns / whole.demand_ns);
    rest_ns -= share_ns;
    list.append(nb::make_tuple(kind, share_ns, chain));
  };
  add_part("precedence", whole.precedence_ns, nb::none());
  add_part("own", whole.own_ns, nb::none());
  for (const auto &[chain, value_ns] : answer.breakdown->interference_ns)
    add_part("interference", value_ns, nb::cast(chain));
  add_part("blocking", whole.blocking_ns, nb::none());
  add_part("groups", whole.groups_ns, nb::none());
  list.append(nb::make_tuple("last_callback", rest_ns + whole.finish_ns, nb::none()));
  return nb::tuple(list);
}

Options options_of(bool refine, bool joint, bool cap_running, bool sharpen) {
  Options options;
  options.refine = refine;
  options.joint = joint;
  options.cap_running = cap_running;
  options.sharpen = sharpen;
  return options;
}

void bind_results(nb::module_ &module) {
  auto breakdown = nb::class_<NamedBreakdown>(module, "Breakdown");
  breakdown.def_prop_ro("interference_ns", as_tuple(&NamedBreakdown::interference_ns));
  const auto time = [&breakdown](const char *name, time_ns Breakdown::*member) {
    breakdown.def_prop_ro(name, [member](const NamedBreakdown &self) { return self.parts.*member; });
  };
  time("precedence_ns", &Breakdown::precedence_ns);
  time("own_ns", &Breakdown::own_ns);
  time("blocking_ns", &Breakdown::blocking_ns);
  time("groups_ns", &Breakdown::groups_ns);
  time("demand_ns", &Breakdown::demand_ns);
  time("window_ns", &Breakdown::window_ns);
  time("finish_ns", &Breakdown::finish_ns);
  auto shortfall = nb::class_<ShortfallAnswer>(module, "Shortfall");
  shortfall.def_ro("kind", &ShortfallAnswer::kind)
      .def_ro("executor", &ShortfallAnswer::executor)
      .def_ro("chain", &ShortfallAnswer::chain)
      .def_prop_ro("part", [](const ShortfallAnswer &self) {
        return nb::make_tuple(self.part, self.whole.part_ns,
                              self.part_chain.empty() ? nb::object(nb::none()) : nb::object(nb::cast(self.part_chain)));
      });
  const auto figure = [&shortfall](const char *name, int64_t Shortfall::*member) {
    shortfall.def_prop_ro(name, [member](const ShortfallAnswer &self) { return self.whole.*member; });
  };
  figure("reached_ns", &Shortfall::reached_ns);
  figure("limit_ns", &Shortfall::limit_ns);
  figure("asked_permille", &Shortfall::asked_permille);
  figure("given_permille", &Shortfall::given_permille);
  nb::class_<ChainAnswer>(module, "ChainAnswer")
      .def_ro("chain", &ChainAnswer::chain)
      .def_ro("executor", &ChainAnswer::executor)
      .def_ro("analysis", &ChainAnswer::analysis)
      .def_ro("holds_for", &ChainAnswer::holds_for)
      .def_ro("response_ns", &ChainAnswer::response_ns)
      .def_ro("deadline_ns", &ChainAnswer::deadline_ns)
      .def_ro("met", &ChainAnswer::met)
      .def_ro("guaranteed", &ChainAnswer::guaranteed)
      .def_ro("breakdown", &ChainAnswer::breakdown)
      .def_prop_ro("parts", window_parts_of)
      .def_prop_ro("depends_on", as_tuple(&ChainAnswer::depends_on))
      .def_ro("why", &ChainAnswer::why);
  nb::class_<PathAnswer>(module, "PathAnswer")
      .def_ro("path", &PathAnswer::path)
      .def_ro("response_ns", &PathAnswer::response_ns)
      .def_ro("deadline_ns", &PathAnswer::deadline_ns)
      .def_ro("met", &PathAnswer::met)
      .def_ro("guaranteed", &PathAnswer::guaranteed)
      .def_prop_ro("segments", as_tuple(&PathAnswer::segments))
      .def_ro("why", &PathAnswer::why);
  nb::class_<ExecutorsAnswer>(module, "ExecutorsAnswer")
      .def_ro("guaranteed", &ExecutorsAnswer::guaranteed)
      .def_ro("settled", &ExecutorsAnswer::settled)
      .def_prop_ro("chains", as_tuple(&ExecutorsAnswer::chains))
      .def_prop_ro("paths", as_tuple(&ExecutorsAnswer::paths));
  nb::class_<LinkChainAnswer>(module, "LinkChainAnswer")
      .def_ro("chain", &LinkChainAnswer::chain)
      .def_ro("response_ns", &LinkChainAnswer::response_ns)
      .def_ro("deadline_ns", &LinkChainAnswer::deadline_ns)
      .def_ro("met", &LinkChainAnswer::met)
      .def_ro("hidden", &LinkChainAnswer::hidden)
      .def_ro("reason", &LinkChainAnswer::reason)
      .def_ro("lateness_ns", &LinkChainAnswer::lateness_ns)
      .def_ro("root", &LinkChainAnswer::root)
      .def_ro("reached_ns", &LinkChainAnswer::reached_ns)
      .def_ro("limit_ns", &LinkChainAnswer::limit_ns)
      .def_prop_ro("up", [](const LinkChainAnswer &self) { return nb::make_tuple(self.up.instances, self.up.frames); })
      .def_prop_ro("down",
                   [](const LinkChainAnswer &self) { return nb::make_tuple(self.down.instances, self.down.frames); })
      .def_prop_ro("reached_parts", [](const LinkChainAnswer &self) { return parts_of(self.reached_parts); })
      .def_prop_ro("parts", [](const LinkChainAnswer &self) { return parts_of(self.parts); })
      .def_prop_ro("depends_on", as_tuple(&LinkChainAnswer::depends_on));
  nb::class_<Assumption>(module, "Assumption")
      .def_ro("id", &Assumption::id)
      .def_ro("text", &Assumption::text)
      .def_prop_ro("values", as_tuple(&Assumption::values));
  nb::class_<LinkAnswer>(module, "LinkAnswer")
      .def_ro("met", &LinkAnswer::met)
      .def_prop_ro("chains", as_tuple(&LinkAnswer::chains))
      .def_prop_ro("assumptions", as_tuple(&LinkAnswer::assumptions));
}

}  // namespace
}  // namespace tide::analysis

NB_MODULE(native, module) {
  using namespace tide::analysis;
  nb::set_leak_warnings(false);  // results may live as long as the interpreter, which then frees none of them
  bind_results(module);
  module.def(
      "bound_executors",
      [](const nb::dict &document, bool refine, bool joint, bool cap_running, bool sharpen) {
        Json json = json_of(document);
        const nb::gil_scoped_release release;
        return bound_executors(std::move(json), options_of(refine, joint, cap_running, sharpen));
      },
      "document"_a, nb::kw_only(), "refine"_a = false, "joint"_a = false, "cap_running"_a = false, "sharpen"_a = false);
  module.def(
      "compare_executors",
      [](const nb::dict &document, bool refine, bool joint, bool cap_running) {
        Json json = json_of(document);
        std::vector<ChainAnswer> answers;
        {
          const nb::gil_scoped_release release;
          answers = compare_executors(std::move(json), options_of(refine, joint, cap_running, false));
        }
        return tuple_of(answers);
      },
      "document"_a, nb::kw_only(), "refine"_a = false, "joint"_a = false, "cap_running"_a = false);
  module.def(
      "frames",
      [](int64_t mtu_bytes, bool to_agent, int64_t payload_bytes) {
        Line line;
        line.mtu_bytes = mtu_bytes;
        return message(line, to_agent ? Direction::up : Direction::down, payload_bytes).frames;
      },
      "mtu_bytes"_a, "to_agent"_a, "payload_bytes"_a);
  module.def(
      "bound_link",
      [](const nb::dict &document) {
        Json json = json_of(document);
        const nb::gil_scoped_release release;
        return bound_link(std::move(json));
      },
      "document"_a);
}
