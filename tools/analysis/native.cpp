// SPDX-License-Identifier: Apache-2.0
// The analysis as a Python module; tools/tide_tools/analysis/native.pyi documents it. It reads documents and returns
// immutable results. Other Python threads can run while bounds are computed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <set>
#include <stdexcept>

#include "analysis/link.h"
#include "analysis/system.h"
#include "analysis/trials.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tide::analysis {
namespace {

// ---- reading ---- A document is a dictionary with the members of Description (model.h) or LinkSystem (link.h), with
// the same default values. An executor has either `threads` on dedicated cores, or `lanes`. A callback of a LinkSystem
// is on the client unless its `executor` names a host executor.

[[noreturn]] void refuse(const std::vector<std::string> &errors) {
  std::string text;
  for (const std::string &error : errors) text += (text.empty() ? "" : "\n") + error;
  throw std::invalid_argument(text);
}

// Reads the members of one dictionary and collects errors, each with the name of the entry. A member that nothing has
// read is an error.
class Fields {
 public:
  Fields(nb::handle entry, std::string where, std::vector<std::string> &errors)
      : where_(std::move(where)), errors_(errors) {
    if (nb::isinstance<nb::dict>(entry)) {
      members_ = nb::borrow<nb::dict>(entry);
    } else {
      error("must be an object");
    }
    std::string name;
    if (nb::object given = members_.get("name", nb::none()); text_of(given, name))
      where_ = where_.substr(0, where_.find(" number")) + " '" + name + "'";
  }

  Fields(const Fields &) = delete;
  Fields &operator=(const Fields &) = delete;

  ~Fields() {
    for (const auto &[name, value] : members_) {
      std::string text;
      if (!text_of(name, text)) {
        error("has a name that is no text");
      } else if (!taken_.contains(text)) {
        error("'" + text + "' is unknown");
      }
    }
  }

  void error(const std::string &what) { errors_.push_back(where_ + ": " + what); }

  bool has(const char *name) const { return members_.contains(name); }

  void take(const char *name, std::string &target) {
    if (const nb::object value = member(name); value && !text_of(value, target)) wrong(name, "a string");
  }

  void take(const char *name, bool &target) {
    const nb::object value = member(name);
    if (value && !PyBool_Check(value.ptr())) return wrong(name, "true or false");
    if (value) target = value.ptr() == Py_True;
  }

  void take(const char *name, int64_t &target) {
    const nb::object value = member(name);
    if (!value) return;
    int overflow = 0;
    if (!PyLong_Check(value.ptr()) || PyBool_Check(value.ptr())) return wrong(name, "an integer");
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) return error("'" + std::string(name) + "' is too large");
    target = number;
  }

  // An absent member and None both mean that there is no value.
  void take(const char *name, std::optional<int64_t> &target) {
    if (const nb::object value = member(name); value && !value.is_none()) take(name, target.emplace());
  }

  template <class Choice, size_t count>
  void take(const char *name, Choice &target, const std::array<const char *, count> &texts) {
    std::string text = texts[static_cast<size_t>(target)], known;
    take(name, text);
    for (size_t index = 0; index < count; ++index) {
      if (text == texts[index]) {
        target = static_cast<Choice>(index);
        return;
      }
      known += std::string(index > 0 ? ", " : "") + '"' + texts[index] + '"';
    }
    error("'" + std::string(name) + "' must be one of " + known);
  }

  template <class Handle> void one(const char *name, Handle handle) {
    const nb::object value = member(name);
    if (!value) return;
    Fields inner(value, name, errors_);
    handle(inner);
  }

  // `kind` is the kind of an entry, as errors call it. If this dictionary is not the whole document, errors also name
  // its own entry.
  template <class Handle> void each(const char *name, const std::string &kind, Handle handle) {
    const nb::object value = member(name);
    if (!value) return;
    if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value)) return wrong(name, "a list");
    size_t number = 0;
    for (const nb::handle entry : nb::borrow<nb::sequence>(value)) {
      Fields inner(entry, (where_ == "system" ? "" : where_ + ", ") + kind + " number " + std::to_string(++number),
                   errors_);
      handle(inner);
    }
  }

  // Reads a list of numbers or strings.
  template <class Value> void list(const char *name, std::vector<Value> &target, const char *expected) {
    const nb::object value = member(name);
    if (!value) return;
    if (!nb::try_cast(value, target)) error("'" + std::string(name) + "' must be " + expected);
  }

 private:
  nb::object member(const char *name) {
    taken_.insert(name);
    return has(name) ? nb::object(members_[name]) : nb::object();
  }

  void wrong(const char *name, const char *expected) { error("'" + std::string(name) + "' must be " + expected); }

  static bool text_of(nb::handle value, std::string &text) {
    Py_ssize_t length = 0;
    const char *bytes = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &length) : nullptr;
    PyErr_Clear();
    if (bytes != nullptr) text.assign(bytes, static_cast<size_t>(length));
    return bytes != nullptr;
  }

  nb::dict members_;
  std::set<std::string> taken_;
  std::string where_;
  std::vector<std::string> &errors_;
};

Description description_of(const nb::dict &document) {
  Description read;
  std::vector<std::string> errors;
  {
    Fields system(document, "system", errors);
    system.each("executors", "executor", [&read](Fields &of) {
      ExecutorEntry &executor = read.executors.emplace_back();
      of.take("name", executor.name);
      std::string policy;
      of.take("policy", policy);
      if (const auto known = policy_of(policy)) {
        executor.policy = *known;
      } else {
        of.error("'policy' must be \"priority\", \"default\", \"wait_set\", \"fifo\" or \"any_order\"");
      }
      if (of.has("threads") && of.has("lanes")) of.error("has both 'threads' and 'lanes'");
      time_ns threads = 0;
      of.take("threads", threads);
      if (threads < 0 || threads > static_cast<time_ns>(kMostLanes)) {
        of.error("'threads' must be from 1 to " + std::to_string(kMostLanes));
      } else {
        executor.lanes.resize(static_cast<size_t>(threads));
      }
      of.take("core", executor.core);
      of.take("thread_priority", executor.thread_priority);
      of.each("lanes", "lane", [&executor](Fields &one) {
        Lane &lane = executor.lanes.emplace_back(Lane{0, 0, {}});
        one.take("budget_ns", lane.budget_ns);
        one.take("period_ns", lane.period_ns);
      });
    });
    system.each("groups", "group", [&read](Fields &of) {
      GroupEntry &group = read.groups.emplace_back();
      of.take("name", group.name);
      of.take("executor", group.executor);
    });
    system.each("chains", "chain", [&read](Fields &of) {
      ChainEntry &chain = read.chains.emplace_back();
      of.take("name", chain.name);
      of.take("executor", chain.executor);
      if (!of.has("priority")) of.error("'priority' is missing");
      of.take("priority", chain.priority);
      of.take("period_ns", chain.period_ns);
      of.take("deadline_ns", chain.deadline_ns);
      of.take("jitter_ns", chain.jitter_ns);
      of.take("timer", chain.timer);
      of.each("callbacks", "callback", [&chain](Fields &one) {
        CallbackEntry &callback = chain.callbacks.emplace_back();
        one.take("name", callback.name);
        one.take("execution_ns", callback.execution_ns);
        one.take("least_ns", callback.least_ns);
        one.take("group", callback.group);
        one.take("priority", callback.priority);
      });
    });
    system.each("paths", "path", [&read](Fields &of) {
      PathEntry &path = read.paths.emplace_back();
      of.take("name", path.name);
      of.take("deadline_ns", path.deadline_ns);
      of.list("segments", path.segments, "names of chains");
      of.list("delays_ns", path.delays_ns, "integers");
    });
  }
  if (!errors.empty()) refuse(errors);
  return read;
}

System system_of(const nb::dict &document) {
  Built built = System::build(description_of(document));
  if (!built.system) refuse(built.errors);
  return std::move(*built.system);
}

int place_of(const LinkSystem &system, const std::string &executor) {
  if (executor == system.client.name) return kOnClient;
  for (size_t index = 0; index < system.hosts.size(); ++index) {
    if (executor == system.hosts[index].name) return static_cast<int>(index);
  }
  return kOnClient - 1;
}

void read_callback(Fields &of, const LinkSystem &system, LinkCallback &callback) {
  of.take("name", callback.name);
  of.take("execution_ns", callback.execution_ns);
  of.take("least_ns", callback.least_ns);
  of.take("payload_bytes", callback.payload_bytes);
  of.take("hop_ns", callback.hop_ns);
  of.take("shared", callback.shared);
  of.take("message", callback.message);
  of.take("repeats", callback.repeats);
  of.take("group", callback.group);
  of.take("readers", callback.readers);
  std::string executor = system.client.name;
  of.take("executor", executor);
  callback.place = place_of(system, executor);
  if (callback.place < kOnClient) of.error("there is no executor '" + executor + "'");
  of.each("sections", "section", [&callback](Fields &one) {
    CriticalSection &section = callback.sections.emplace_back();
    one.take("lock", section.lock);
    one.take("section_ns", section.section_ns);
  });
}

LinkSystem link_system_of(const nb::dict &document) {
  LinkSystem read;
  std::vector<std::string> errors;
  {
    Fields system(document, "system", errors);
    system.one("client", [&client = read.client](Fields &of) {
      of.take("name", client.name);
      of.take("policy", client.policy, std::array{"tide", "lanes", "batch"});
      of.take("send", client.send, std::array{"asynchronous", "stock", "blocking"});
      of.take("waits_for_new_data", client.waits_for_new_data);
      of.take("fixed_costs", client.fixed_costs);
      of.take("submit_ns", client.submit_ns);
      of.take("process_ns", client.process_ns);
      of.take("dispatch_ns", client.dispatch_ns);
      of.take("interrupt_receive_ns", client.interrupt_receive_ns);
      of.take("interrupt_complete_ns", client.interrupt_complete_ns);
      of.take("processors", client.processors);
      of.each("loads", "load", [&client](Fields &one) {
        ClientLoad &load = client.loads.emplace_back();
        one.take("execution_ns", load.execution_ns);
        one.take("period_ns", load.period_ns);
        one.take("masks", load.masks);
        one.take("payload_bytes", load.payload_bytes);
        one.take("late_ns", load.late_ns);
      });
    });
    system.one("line", [&line = read.line](Fields &of) {
      of.take("baud", line.baud);
      of.take("usb", line.usb);
      of.take("mtu_bytes", line.mtu_bytes);
      of.take("quantum_bytes", line.quantum_bytes);
      of.take("escaped_bytes", line.escaped_bytes);
      of.take("exact_sizes", line.exact_sizes);
      of.take("agent_least_ns", line.agent_least_ns);
      of.take("agent_ns", line.agent_ns);
      of.take("turn_ns", line.turn_ns);
      of.take("return_ns", line.return_ns);
      of.take("host_hop_ns", line.host_hop_ns);
      of.list("shorter_agent_ns", line.shorter_agent_ns, "integers");
      of.list("shorter_return_ns", line.shorter_return_ns, "integers");
      of.take("rtps_mbit_per_s", line.rtps_mbit_per_s);
      of.take("rtps_datagram_bytes", line.rtps_datagram_bytes);
      of.take("rtps_queued", line.rtps_queued);
      of.take("rtps_acknowledge_ns", line.rtps_acknowledge_ns);
      of.take("rtps_heartbeat_ns", line.rtps_heartbeat_ns);
    });
    system.one("protocol", [&protocol = read.protocol](Fields &of) {
      of.take("acknowledges", protocol.acknowledges, std::array{"always", "asked"});
      of.take("heartbeat_delay_ns", protocol.client.delay_ns);
      of.take("heartbeat_floor_ns", protocol.client.floor_ns);
      of.take("heartbeat_period_ns", protocol.client.period_ns);
      of.take("agent_heartbeat_delay_ns", protocol.agent.delay_ns);
      of.take("agent_heartbeat_floor_ns", protocol.agent.floor_ns);
      of.take("agent_heartbeat_period_ns", protocol.agent.period_ns);
      of.take("losses", protocol.losses);
      of.take("window", protocol.window);
      of.take("silence_ns", protocol.silence_ns);
    });
    system.each("hosts", "host", [&read](Fields &of) {
      HostExecutor &host = read.hosts.emplace_back();
      of.take("name", host.name);
      of.take("lanes", host.lanes);
      of.take("own_cores", host.own_cores);
    });
    system.each("chains", "chain", [&read](Fields &of) {
      LinkChain &chain = read.chains.emplace_back();
      of.take("name", chain.name);
      of.take("priority", chain.priority);
      of.take("period_ns", chain.period_ns);
      of.take("deadline_ns", chain.deadline_ns);
      of.take("jitter_ns", chain.jitter_ns);
      of.take("response_ns", chain.response_ns);
      of.take("uplink_reliable", chain.uplink_reliable);
      of.take("downlink_reliable", chain.downlink_reliable);
      of.take("hold", chain.hold);
      of.take("sporadic", chain.sporadic);
      of.take("repaired", chain.repaired);
      of.take("shares_level", chain.shares_level);
      of.take("band", chain.band);
      of.take("alone", chain.alone);
      of.list("shorter_away_ns", chain.shorter_away_ns, "integers");
      of.each("callbacks", "callback", [&](Fields &one) { read_callback(one, read, chain.callbacks.emplace_back()); });
    });
  }
  if (errors.empty()) errors = check(read);
  if (!errors.empty()) refuse(errors);
  return read;
}

// ---- bounding ----

using Share = std::pair<std::string, time_ns>;  // a chain or a term of the demand, and its share of the bound

struct NamedBreakdown {
  Breakdown parts;
  std::vector<Share> interference_ns;
};

// A Shortfall with names instead of indexes.
struct ShortfallAnswer {
  std::string kind, executor, chain, part, part_chain;
  Shortfall whole;
};

struct ChainAnswer {
  std::string chain, executor, analysis, holds_for;
  std::optional<time_ns> response_ns;
  time_ns deadline_ns = 0;
  time_ns last_ns = 0;       // execution time of the last callback
  bool shares_core = false;  // more urgent threads may preempt its executor
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
  std::vector<std::pair<time_ns, int64_t>> shorter;
  int64_t up_frames = 0, down_frames = 0;
  // Name and time of a part, and the chain to which it belongs (may be empty). reached_parts: without a bound, the
  // parts of the root chain's response.
  std::vector<std::pair<Share, std::string>> parts, reached_parts;
  std::vector<std::string> depends_on;
};

struct LinkAnswer {
  bool met = false;
  std::vector<LinkChainAnswer> chains;
  std::vector<Assumption> assumptions;
};

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
    one.last_ns = chain.last_ns;
    one.shares_core = executor.core >= 0;
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

ExecutorsAnswer bound_executors(const System &system, const Options &options) {
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

std::vector<ChainAnswer> compare_executors(const System &system, const Options &options) {
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
  add_part("own", parts.own_ns);
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
    for (const Shorter &each : found.shorter) one.shorter.emplace_back(each.response_ns, each.instances);
    one.up_frames = found.up_frames;
    one.down_frames = found.down_frames;
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

LinkAnswer answer(const LinkSystem &system) {
  const LinkResults results = bound_link(system);
  LinkAnswer answers{results.met, {}, results.assumptions};
  for (size_t index = 0; index < results.chains.size(); ++index)
    answers.chains.push_back(answer(system, results.chains[index], index));
  return answers;
}

// ---- random sets ----

// Counts for each analysis how many of the random chain sets it finds schedulable. Analyses for arbitrary deadlines get
// the same sets with doubled deadlines.
struct Judge {
  const Analysis *analysis = nullptr;
  Options options;
  std::string name;
  int64_t met = 0;
};

// only_safe: only the four safe analyses, which stop as soon as the verdict is known. Otherwise each analysis in three
// forms: published, safe, and tight.
std::vector<Judge> judges_of(bool only_safe) {
  Options verdict, refined, tight;
  verdict.only_verdict = true;
  refined.refine = refined.joint = true;
  tight = refined;
  tight.cap_running = true;
  std::vector<Judge> judges;
  for (const char *number : {"1", "2", "3", "4"}) {
    const std::string theorem = std::string("theorem") + number;
    judges.push_back({find_analysis(theorem + "-safe"), only_safe ? verdict : refined, theorem + "-safe"});
    if (only_safe) continue;
    judges.push_back({find_analysis(theorem + "-published"), verdict, theorem + "-published"});
    judges.push_back({find_analysis(theorem + "-safe"), tight, theorem + "-tight"});
  }
  return judges;
}

void judge_sets(Recipe recipe, uint64_t first, uint64_t count, std::vector<Judge> &judges) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    recipe.deadline_periods = 1;
    const Executor constrained = generate(recipe, seed);
    recipe.deadline_periods = 2;
    const Executor arbitrary = generate(recipe, seed);
    for (Judge &judge : judges) {
      const Executor &executor = judge.analysis->deadlines == Deadlines::constrained ? constrained : arbitrary;
      judge.met += analyse(*judge.analysis, executor, judge.options).met ? 1 : 0;
    }
  }
}

Recipe recipe_of(const nb::dict &entry) {
  Recipe recipe;
  std::vector<std::string> errors;
  const auto number = [&](const char *name, double &target) {
    if (!entry.contains(name)) return;
    if (!nb::try_cast(entry[name], target) || !(target > 0 && target <= 1000))
      errors.push_back("'" + std::string(name) + "' must be above 0, and at most 1000");
  };
  number("utilisation", recipe.utilisation);
  number("most_utilisation", recipe.most_utilisation);
  nb::dict rest;
  for (const auto &[name, value] : entry) {
    if (!name.equal(nb::str("utilisation")) && !name.equal(nb::str("most_utilisation"))) rest[name] = value;
  }
  {
    Fields of(rest, "recipe", errors);
    const auto whole = [&of](const char *name, int64_t value, int64_t most) {
      of.take(name, value);
      if (value < 1 || value > most) of.error("'" + std::string(name) + "' must be from 1 to " + std::to_string(most));
      return value;
    };
    constexpr time_ns kMsNs = 1'000'000;
    recipe.lanes = static_cast<size_t>(whole("threads", 4, kMostLanes));
    recipe.chains = static_cast<size_t>(whole("chains", 5, kMostCallbacks));
    recipe.callbacks = static_cast<size_t>(whole("callbacks", 10, kMostCallbacks));
    recipe.shortest_period_ns = whole("shortest_ms", 50, 1'000'000) * kMsNs;
    recipe.longest_period_ns = whole("longest_ms", 1000, 1'000'000) * kMsNs;
    of.take("periods", recipe.periods, std::array{"uniform", "log_uniform"});
    of.take("priorities", recipe.priorities, std::array{"rate_monotonic", "random"});
    of.take("shares", recipe.shares, std::array{"uunifast", "dirichlet_rescale"});
    if (recipe.shortest_period_ns > recipe.longest_period_ns) of.error("shortest_ms is more than longest_ms");
  }
  if (!errors.empty()) refuse(errors);
  return recipe;
}

// ---- results as objects of Python ----

template <class Value> nb::tuple tuple_of(const std::vector<Value> &values) {
  nb::list list;
  for (const Value &value : values) list.append(nb::cast(value));
  return nb::tuple(list);
}

// A read-only property that returns a vector as a tuple.
template <class Owner, class Value> auto as_tuple(std::vector<Value> Owner::*member) {
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

// Divides the window in proportion to the parts of its demand. The remainder of the rounding is added to the last
// callback. On a core with more urgent threads, what exceeds the demand is their part.
nb::tuple window_parts_of(const ChainAnswer &answer) {
  if (!answer.breakdown) return nb::make_tuple();
  __extension__ typedef __int128 Wide;
  const Breakdown &whole = answer.breakdown->parts;
  nb::list list;
  time_ns rest_ns = whole.window_ns;
  const time_ns exceeding_ns = rest_ns + whole.finish_ns - whole.demand_ns - answer.last_ns;
  const bool is_preempted = answer.shares_core && exceeding_ns >= 0;
  const auto add_part = [&](const char *kind, time_ns value_ns, const nb::object &chain) {
    if (value_ns == 0 || whole.demand_ns == 0) return;
    const auto share_ns =
        is_preempted ? value_ns : static_cast<time_ns>(Wide{value_ns} * whole.window_ns / whole.demand_ns);
    rest_ns -= share_ns;
    list.append(nb::make_tuple(kind, share_ns, chain));
  };
  add_part("precedence", whole.precedence_ns, nb::none());
  add_part("own", whole.own_ns, nb::none());
  for (const auto &[chain, value_ns] : answer.breakdown->interference_ns)
    add_part("interference", value_ns, nb::cast(chain));
  add_part("blocking", whole.blocking_ns, nb::none());
  add_part("groups", whole.groups_ns, nb::none());
  if (is_preempted && exceeding_ns > 0) {
    list.append(nb::make_tuple("preemption", exceeding_ns, nb::none()));
    rest_ns -= exceeding_ns;
  }
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
      .def_prop_ro("shorter", as_tuple(&LinkChainAnswer::shorter))
      .def_prop_ro("frames",
                   [](const LinkChainAnswer &self) { return nb::make_tuple(self.up_frames, self.down_frames); })
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
  nb::set_leak_warnings(false);  // nanobind would report results that are still alive when the interpreter ends
  bind_results(module);
  module.def(
      "bound_executors",
      [](const nb::dict &document, bool refine, bool joint, bool cap_running, bool sharpen) {
        const System system = system_of(document);
        const nb::gil_scoped_release release;
        return bound_executors(system, options_of(refine, joint, cap_running, sharpen));
      },
      "document"_a, nb::kw_only(), "refine"_a = false, "joint"_a = false, "cap_running"_a = false, "sharpen"_a = false);
  module.def(
      "compare_executors",
      [](const nb::dict &document, bool refine, bool joint, bool cap_running) {
        const System system = system_of(document);
        std::vector<ChainAnswer> answers;
        {
          const nb::gil_scoped_release release;
          answers = compare_executors(system, options_of(refine, joint, cap_running, false));
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
        const LinkSystem system = link_system_of(document);
        const nb::gil_scoped_release release;
        return answer(system);
      },
      "document"_a);
  module.def(
      "judge_random_sets",
      [](const nb::dict &recipe, int64_t first, int64_t count, bool only_safe) {
        const Recipe read = recipe_of(recipe);
        if (first < 0 || count < 1) refuse({"'first' must not be negative, and 'count' at least 1"});
        std::vector<Judge> judges = judges_of(only_safe);
        {
          const nb::gil_scoped_release release;
          judge_sets(read, static_cast<uint64_t>(first), static_cast<uint64_t>(count), judges);
        }
        nb::dict met;
        for (const Judge &judge : judges) met[judge.name.c_str()] = judge.met;
        return met;
      },
      "recipe"_a, nb::kw_only(), "first"_a, "count"_a, "only_safe"_a = false);
}
