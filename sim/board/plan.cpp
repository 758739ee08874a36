// SPDX-License-Identifier: Apache-2.0
#include "sim/board/plan.h"

#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace tide::sim {
namespace {

[[noreturn]] void refuse(const std::string &name, const std::string &value) {
  throw std::invalid_argument("'" + name + "' does not take '" + value + "'");
}

std::string trim(const std::string &text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

template <typename Number> Number number(const std::string &name, const std::string &value, Number least, Number most) {
  Number result{};
  const char *end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, result);
  if (error != std::errc() || rest != end || !(result >= least && result <= most)) refuse(name, value);
  return result;
}

// Visits the settings of a plan or of one of its entries: either sets the one with the given name, or writes all of
// them.
class Settings {
 public:
  Settings(const std::string &name, const std::string &value) : name_(&name), value_(value) {}
  Settings(std::string before, std::string equals, std::string after)
      : before_(std::move(before)), equals_(std::move(equals)), after_(std::move(after)) {}
  std::string written() const { return written_; }
  void require_found() const {
    if (!found_) throw std::invalid_argument("there is no '" + *name_ + "' in a plan");
  }

  // A time in microseconds, with up to three decimals. If `least` allows -1, this value means that there is no time.
  void time(const char *name, Time &place, Time least = 0) {
    const auto text = [&place] {
      if (place < 0) return std::to_string(place);
      const std::string decimals = std::to_string(kMicrosecond + place % kMicrosecond).substr(1);
      return std::to_string(place / kMicrosecond) + (decimals == "000" ? "" : "." + decimals);
    };
    if (!visit(name, text)) return;
    const std::string whole = value_.substr(0, value_.find('.'));
    std::string decimals = whole.size() == value_.size() ? "0" : value_.substr(whole.size() + 1);
    if (decimals.empty() || decimals.size() > 3) refuse(name, value_);
    decimals.resize(3, '0');
    const auto count = sim::number<Time>(name, whole, std::min<Time>(least, 0), 1'000'000'000'000);
    const auto more = sim::number<Time>(name, decimals, 0, 999);
    if (count < 0 ? more > 0 : count * kMicrosecond + more < least * kMicrosecond) refuse(name, value_);
    place = count < 0 ? count : count * kMicrosecond + more;
  }
  template <typename Number> void number(const char *name, Number &place, Number least, Number most) {
    const auto text = [&place] {
      std::ostringstream out;
      out.precision(17);
      out << place;
      return out.str();
    };
    if (visit(name, text)) place = sim::number<Number>(name, value_, least, most);
  }
  void flag(const char *name, bool &place) { choice(name, place, std::array<const char *, 2>{"false", "true"}); }
  void text(const char *name, std::string &place) {
    if (visit(name, [&place] { return place; })) place = text_of(name, value_);
  }
  // A text that may be empty, which is written as "-".
  void optional(const char *name, std::string &place) {
    if (visit(name, [&place] { return place.empty() ? "-" : place; }))
      place = value_ == "-" ? "" : text_of(name, value_);
  }
  template <typename Choice, size_t kCount>
  void choice(const char *name, Choice &place, const std::array<const char *, kCount> &texts) {
    if (!visit(name, [&] { return texts[static_cast<size_t>(place)]; })) return;
    const auto found = std::find(texts.begin(), texts.end(), value_);
    if (found == texts.end()) refuse(name, value_);
    place = static_cast<Choice>(found - texts.begin());
  }
  void numbers(const char *name, std::vector<unsigned> &place, unsigned least, unsigned most) {
    const auto text = [&place] {
      std::vector<std::string> parts;
      for (const unsigned one : place) parts.push_back(std::to_string(one));
      return joined(parts);
    };
    if (!visit(name, text)) return;
    place.clear();
    for (const std::string &part : split(value_)) place.push_back(sim::number(name, part, least, most));
  }
  void texts(const char *name, std::vector<std::string> &place) {
    if (!visit(name, [&place] { return joined(place); })) return;
    place.clear();
    for (const std::string &part : split(value_)) place.push_back(text_of(name, part));
  }

 private:
  bool is_set(const char *name) const { return name_ != nullptr && *name_ == name; }
  // Returns true if the value of this setting is to be changed. `text` returns the written form of the value; it is
  // called only when settings are written.
  template <typename Text> bool visit(const char *name, const Text &text) {
    if (name_ == nullptr) written_ += before_ + name + equals_ + text() + after_;
    found_ = found_ || is_set(name);
    return is_set(name);
  }
  static std::string text_of(const char *name, const std::string &value) {
    if (value.empty() || value.find_first_of("\"\\ \t=") != std::string::npos) refuse(name, value);
    return value;
  }
  static std::string joined(const std::vector<std::string> &parts) {
    std::string text;
    for (const std::string &one : parts) text += (text.empty() ? "" : ",") + one;
    return text;
  }
  static std::vector<std::string> split(const std::string &value) {
    std::vector<std::string> parts;
    std::istringstream input(value);
    for (std::string part; std::getline(input, part, ',');) parts.push_back(part);
    return parts;
  }

  const std::string *name_ = nullptr;
  std::string value_, before_, equals_, after_, written_;
  bool found_ = false;
};

constexpr std::array<const char *, 3> kPolicies = {"tide", "batch", "readyset"};
constexpr std::array<const char *, 4> kSends = {"asynchronous", "stock", "blocking", "answered"};
constexpr std::array<const char *, 2> kDraws = {"together", "independent"};
constexpr std::array<const char *, 2> kAcknowledges = {"always", "asked"};
constexpr std::array<const char *, 2> kLatencyFrom = {"expiry", "start"};
constexpr std::array<const char *, 3> kHostPolicies = {"any", "tide", "readyset"};
constexpr std::array<const char *, 4> kCarries = {"topic", "request", "reply", "local"};

void visit(Settings &settings, CallbackPlan &callback) {
  settings.text("name", callback.name);
  settings.text("on", callback.on);
  settings.time("execution_us", callback.execution);
  settings.time("sleep_us", callback.sleep);
  settings.number("level", callback.level, 0u, 126u);
  settings.number("group", callback.group, 0u, 100'000u);
  settings.time("least_us", callback.least, -1);
  settings.number("priority", callback.priority, 0u, 65'535u);
  settings.flag("reentrant", callback.reentrant);
  settings.numbers("locks", callback.locks, 0, 1'000'000'000u);
  settings.flag("reliable", callback.reliable);
  settings.flag("joins", callback.joins);
  settings.time("period_us", callback.period);
  settings.time("phase_us", callback.phase);
  settings.time("jitter_us", callback.jitter);
  settings.number("burst", callback.burst, 0u, 16u);
  settings.time("budget_us", callback.budget);
  settings.time("budget_period_us", callback.budget_period);
}

void visit(Settings &settings, ExecutorPlan &executor) {
  settings.text("name", executor.name);
  settings.number("lanes", executor.lanes, 1u, 64u);
  settings.choice("policy", executor.policy, kHostPolicies);
  settings.time("dispatch_us", executor.dispatch);
  settings.time("budget_us", executor.budget);
  settings.time("budget_period_us", executor.budget_period);
  settings.flag("anywhere", executor.anywhere);
  settings.number("core", executor.core, 0u, 65'535u);
  settings.number("thread_priority", executor.thread_priority, 0u, 99u);
}

void visit(Settings &settings, MessagePlan &message) {
  settings.text("name", message.name);
  settings.text("from", message.from);
  settings.texts("to", message.to);
  settings.numbers("hops_us", message.hops_us, 0, 4'000'000'000u);
  settings.choice("carry", message.carry, kCarries);
  settings.optional("request", message.request);
  settings.number<uint32_t>("bytes", message.bytes, 0, 16'000'000);
  settings.flag("reliable", message.reliable);
  settings.flag("hold", message.hold);
  settings.flag("escaped", message.escaped);
  settings.number("every", message.every, 1u, 1'000'000u);
  settings.number<uint32_t>("depth", message.depth, 0, 255);
}

void visit(Settings &settings, LoadPlan &load) {
  settings.text("name", load.name);
  settings.text("on", load.on);
  settings.time("execution_us", load.execution);
  settings.time("period_us", load.period, 1);
  settings.time("phase_us", load.phase);
  settings.flag("masks", load.masks);
  settings.flag("sleeps", load.sleeps);
  settings.flag("asks", load.asks);
}

void visit(Settings &settings, PathPlan &path) {
  settings.text("name", path.name);
  settings.texts("callbacks", path.callbacks);
  settings.optional("until", path.until);
  settings.time("deadline_us", path.deadline);
  settings.number("level", path.level, 0u, 126u);
}

void visit(Settings &settings, ChainPlan &chain) {
  settings.text("name", chain.name);
  settings.number("level", chain.level, 0u, 126u);
  settings.time("period_us", chain.period, 1);
  settings.time("phase_us", chain.phase);
  settings.time("jitter_us", chain.jitter);
  settings.time("deadline_us", chain.deadline);
  settings.number<uint32_t>("payload_bytes", chain.payload_bytes, 0, 65500);
  settings.number<uint32_t>("reply_bytes", chain.reply_bytes, 0, 65500);
  settings.time("sample_us", chain.sample);
  settings.time("host_us", chain.host);
  settings.time("act_us", chain.act);
  settings.flag("reliable", chain.reliable);
  settings.flag("reply_reliable", chain.reply_reliable);
  settings.number("group", chain.group, 0u, 8u);
  settings.number<uint32_t>("local_depth", chain.local_depth, 0, 16);
  settings.time("budget_us", chain.budget);
  settings.time("budget_period_us", chain.budget_period);
  settings.flag("hold", chain.hold);
}

void visit_faults(Settings &settings, const std::string &way, Faults &faults) {
  settings.number((way + "_loss").c_str(), faults.loss, 0.0, 1.0);
  settings.number((way + "_duplication").c_str(), faults.duplication, 0.0, 1.0);
  settings.number((way + "_corruption").c_str(), faults.corruption, 0.0, 1.0);
  settings.number((way + "_delay").c_str(), faults.delay, 0.0, 1.0);
  settings.time((way + "_delay_maximum_us").c_str(), faults.delay_maximum);
}

void visit(Settings &settings, Plan &plan) {
  settings.text("system", plan.system);
  settings.number<uint64_t>("seed", plan.seed, 0, UINT64_MAX);
  settings.choice("policy", plan.policy, kPolicies);
  settings.choice("send", plan.send, kSends);
  settings.number("lanes", plan.lanes, 1u, 64u);
  settings.numbers("bands", plan.bands, 0, 255);
  settings.number("lanes_a_band", plan.lanes_a_band, 1u, 4u);
  settings.flag("only_first", plan.only_first);
  settings.number<uint32_t>("periods", plan.periods, 1, 1000000);
  settings.time("horizon_us", plan.horizon);
  settings.number<uint64_t>("baud", plan.baud, 0, 1000000000);
  settings.time("agent_least_us", plan.agent_least);
  settings.time("agent_most_us", plan.agent_most);
  settings.time("return_least_us", plan.return_least);
  settings.time("return_most_us", plan.return_most);
  settings.time("delay_slot_us", plan.delay_slot);
  settings.numbers("agent_slots_us", plan.agent_slots_us, 0, 1'000'000'000u);
  settings.numbers("return_slots_us", plan.return_slots_us, 0, 1'000'000'000u);
  settings.choice("agent_acknowledges", plan.agent_acknowledges, kAcknowledges);
  settings.time("agent_heartbeat_delay_us", plan.agent_heartbeat_delay, -1);
  settings.number<uint32_t>("mtu", plan.mtu, 68, 65535);
  settings.number("rtps_mbit", plan.rtps_mbit, 0u, 100'000u);
  settings.number("rtps_queued", plan.rtps_queued, 1u, 1000u);
  settings.number("rtps_readers", plan.rtps_readers, 0u, 64u);
  settings.number("rtps_history", plan.rtps_history, 1u, 255u);
  settings.number("rtps_matches", plan.rtps_matches, 0u, 65'535u);
  settings.number("rtps_frames", plan.rtps_frames, 0u, 255u);
  settings.number<uint32_t>("rtps_sample_bytes", plan.rtps_sample_bytes, 0, 65'000);
  settings.number<uint32_t>("rtps_datagram", plan.rtps_datagram, 768, 65'507);
  settings.time("budget_us", plan.budget);
  settings.time("budget_period_us", plan.budget_period);
  settings.flag("lock_ceilings", plan.lock_ceilings);
  settings.time("submit_us", plan.submit);
  settings.time("process_us", plan.process);
  settings.time("dispatch_us", plan.dispatch);
  settings.time("interrupt_receive_us", plan.interrupt_receive);
  settings.time("interrupt_complete_us", plan.interrupt_complete);
  settings.flag("hold_until_acknowledged", plan.hold_until_acknowledged);
  settings.flag("packs", plan.packs);
  settings.time("heartbeat_delay_us", plan.heartbeat_delay, -1);
  settings.flag("batch_waits_for_new_data", plan.batch_waits_for_new_data);
  settings.number<uint32_t>("nodes", plan.nodes, 2, 4096);
  settings.number<int32_t>("large_nodes", plan.large_nodes, -1, 4096);
  settings.number<uint32_t>("small_node_bytes", plan.small_node_bytes, 64, 65532);
  settings.number<uint32_t>("depth", plan.depth, 1, 255);
  settings.number<uint32_t>("service_depth", plan.service_depth, 0, 255);
  settings.number<uint32_t>("slots", plan.slots, 2, 4096);
  settings.number<uint32_t>("window", plan.window, 1, 16);
  settings.number<uint32_t>("reassemblies", plan.reassemblies, 0, 64);
  settings.number("success_percent", plan.success_percent, 0.0, 100.0);
  settings.choice("draw", plan.draw, kDraws);
  settings.number<uint32_t>("instance_losses", plan.instance_losses, 0, 16);
  settings.number("instance_loss", plan.instance_loss, 0.0, 1.0);
  visit_faults(settings, "up", plan.up);
  visit_faults(settings, "down", plan.down);
  settings.number("cuts", plan.cuts, 0u, 1000u);
  settings.time("cut_maximum_us", plan.cut_maximum);
  settings.flag("cut_unplugs", plan.cut_unplugs);
  settings.number("restarts", plan.restarts, 0u, 1000u);
  settings.time("outage_maximum_us", plan.outage_maximum);
  settings.time("settle_us", plan.settle);
  settings.time("way_us", plan.way);
  settings.choice("latency_from", plan.latency_from, kLatencyFrom);
  settings.flag("extremes", plan.extremes);
  settings.flag("hesitate", plan.hesitate);
  settings.flag("trace", plan.trace);
  settings.flag("record", plan.record);
  settings.flag("steady", plan.steady);
}

template <typename Of> void set_field(Of &of, const std::string &name, const std::string &value) {
  Settings settings(name, value);
  visit(settings, of);
  settings.require_found();
}

// Writes or reads an entry of the form `what = name=value name=value ...`.
template <typename Of> void add(std::vector<Of> &to, const char *what, const std::string &text) {
  Of one;
  one.name = what + std::to_string(to.size() + 1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) refuse(what, text);
    set_field(one, word.substr(0, equals), word.substr(equals + 1));
  }
  to.push_back(std::move(one));
}

// For a line such as `chains.sample_us = 5000`: sets the value in all chains. Returns false if the name has another
// form.
bool set_in_chains(Plan &plan, const std::string &name, const std::string &value) {
  constexpr std::string_view kPrefix = "chains.";
  if (!name.starts_with(kPrefix)) return false;
  for (ChainPlan &chain : plan.chains) set_field(chain, name.substr(kPrefix.size()), value);
  return true;
}

void add_board(Plan &plan, const std::string &name) {
  if (plan.boards.empty() && !plan.chains.empty())
    throw std::invalid_argument("a plan with boards has no chains before the first of them");
  Plan board = plan;
  board.boards.clear();
  board.executors.clear();
  board.callbacks.clear();
  board.messages.clear();
  board.paths.clear();
  board.loads.clear();
  set(board, "system", name);
  plan.boards.push_back(std::move(board));
}

}  // namespace

void set(Plan &plan, const std::string &name, const std::string &value) {
  if (name == "board") {
    add_board(plan, value);
  } else if (name == "executor") {
    add(plan.executors, "executor", value);
  } else if (name == "callback") {
    add(plan.callbacks, "callback", value);
  } else if (name == "message") {
    add(plan.messages, "message", value);
  } else if (name == "path") {
    add(plan.paths, "path", value);
  } else if (name == "load") {
    add(plan.loads, "load", value);
  } else if (!plan.boards.empty()) {
    set(plan.boards.back(), name, value);
  } else if (name == "chain") {
    add(plan.chains, "chain", value);
  } else if (name == "chains") {
    const auto count = number<size_t>(name, value, 1, plan.chains.size());
    plan.chains.erase(plan.chains.begin() + static_cast<std::ptrdiff_t>(count), plan.chains.end());
  } else if (!set_in_chains(plan, name, value)) {
    set_field(plan, name, value);
  }
}

void read_plan(Plan &plan, const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      throw std::invalid_argument("a plan has lines of name = value, not '" + line + "'");
    set(plan, trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
  }
}

std::string write_plan(const Plan &plan) {
  Plan copy = plan;
  Settings lines("", " = ", "\n");
  visit(lines, copy);
  std::string text = lines.written();
  const auto entries = [&text](const char *what, auto &all) {
    for (auto &one : all) {
      Settings words(" ", "=", "");
      visit(words, one);
      text += std::string(what) + " =" + words.written() + "\n";
    }
  };
  entries("chain", copy.chains);
  for (const Plan &board : plan.boards) text += "board = " + board.system + "\n" + write_plan(board);
  entries("executor", copy.executors);
  entries("callback", copy.callbacks);
  entries("message", copy.messages);
  entries("path", copy.paths);
  entries("load", copy.loads);
  return text;
}

// ---- the graph ----

namespace {

[[noreturn]] void does_not_fit(const std::string &what) { throw std::invalid_argument(what); }

// Converts the short form of a chain into callbacks and messages of the board.
void expand(const std::string &board, const ChainPlan &chain, Graph &graph) {
  const auto callback = [&](const std::string &name, const std::string &on, Time execution) {
    CallbackPlan one;
    one.name = name;
    one.on = on;
    one.execution = execution;
    if (on != "host") one.level = chain.level, one.group = chain.group;
    return one;
  };
  const auto message = [&](const std::string &name, const std::string &from, const std::string &to, uint32_t bytes) {
    MessagePlan one;
    one.name = name;
    one.from = from;
    one.to = {to};
    one.bytes = bytes;
    one.hold = chain.hold;
    return one;
  };
  const std::string &name = chain.name, answer = name + "_answer", act = name + "_act", listen = name + "_listen";
  CallbackPlan sample = callback(name, board, chain.sample);
  sample.period = chain.period;
  sample.phase = chain.phase;
  sample.jitter = chain.jitter;
  sample.budget = chain.budget;
  sample.budget_period = chain.budget_period;
  graph.callbacks.push_back(sample);
  graph.callbacks.push_back(callback(answer, "host", chain.host));
  graph.callbacks.push_back(callback(act, board, chain.act));
  if (chain.local_depth > 0) {
    graph.callbacks.push_back(callback(listen, board, chain.act / 4));
    MessagePlan local = message(name + "_local", name, listen, 0);
    local.carry = Carry::kLocal;
    local.depth = chain.local_depth;
    graph.messages.push_back(local);
  }
  MessagePlan request = message(name, name, answer, chain.payload_bytes);
  request.reliable = chain.reliable;
  MessagePlan reply = message(name + "_reply", answer, act, chain.reply_bytes);
  reply.reliable = chain.is_reply_reliable();
  graph.messages.push_back(request);
  graph.messages.push_back(reply);
  PathPlan path;
  path.name = name;
  path.callbacks = {name, answer, act};
  path.deadline = chain.deadline;
  path.level = chain.level;
  graph.paths.push_back(path);
}

class Resolver {
 public:
  Resolver(const Plan &plan, Graph &graph) : plan_(plan), graph_(graph) {}

  void resolve() {
    number(graph_.callbacks, "callbacks", callbacks_);
    number(graph_.messages, "messages", messages_);
    for (const ExecutorPlan &executor : plan_.executors) {
      if (executor.budget > executor.budget_period)
        does_not_fit("the budget of executor '" + executor.name + "' is longer than its period");
      if (!executor.is_shipped() && (executor.dispatch > 0 || executor.budget > 0))
        does_not_fit("executor '" + executor.name + "' has a dispatch_us or a budget, and takes any ready callback");
      if (executor.core > 0 && (!executor.is_shipped() || executor.lanes > 1 || executor.budget > 0))
        does_not_fit("executor '" + executor.name + "' shares a core, which needs a shipped lane without a budget");
    }
    for (CallbackPlan &callback : graph_.callbacks) place(callback);
    for (LoadPlan &load : graph_.loads) {
      load.board = board_of(load.on);
      if (load.board < 0) does_not_fit("load '" + load.name + "' is on '" + load.on + "', which is no board");
      if (load.execution >= load.period) does_not_fit("load '" + load.name + "' takes as long as its period");
    }
    for (size_t index = 0; index < graph_.messages.size(); index++) connect(index);
    for (size_t index = 0; index < graph_.callbacks.size(); index++) check_start(index);
    for (MessagePlan &message : graph_.messages) pair(message);
    order();
    for (PathPlan &path : graph_.paths) measure(path);
  }

 private:
  using Numbers = std::map<std::string, size_t>;
  template <typename Of> static void number(const std::vector<Of> &all, const char *what, Numbers &numbers) {
    for (const Of &one : all) {
      if (!numbers.emplace(one.name, numbers.size()).second)
        does_not_fit("two " + std::string(what) + " have the name '" + one.name + "'");
    }
  }
  static size_t find(const Numbers &numbers, const std::string &name, const std::string &whose, const char *what) {
    const auto found = numbers.find(name);
    if (found == numbers.end())
      does_not_fit("'" + whose + "' names the " + what + " '" + name + "', which is not there");
    return found->second;
  }

  int board_of(const std::string &name) const {
    for (size_t board = 0; board < plan_.boards.size(); board++) {
      if (plan_.boards[board].system == name) return static_cast<int>(board);
    }
    return plan_.boards.empty() && plan_.system == name ? 0 : -1;
  }

  void place(CallbackPlan &callback) {
    callback.board = board_of(callback.on);
    for (size_t number = 0; callback.board < 0 && number < plan_.executors.size(); number++)
      if (plan_.executors[number].name == callback.on) callback.executor = static_cast<unsigned>(number) + 1;
    if (callback.board < 0 && callback.executor == 0 && callback.on != "host")
      does_not_fit("'" + callback.name + "' is on '" + callback.on + "', which is no board or executor");
    const bool is_shipped = callback.executor > 0 && plan_.executors[callback.executor - 1].is_shipped();
    if (!is_shipped && (callback.least >= 0 || callback.priority > 0 || callback.reentrant))
      does_not_fit("'" + callback.name +
                   "' has a least_us, a priority or is reentrant, and is on no executor of policy tide or readyset");
    if (is_shipped && callback.burst > 0)
      does_not_fit("'" + callback.name + "' begins with events, and is on no board");
    if (callback.least > callback.execution) does_not_fit("'" + callback.name + "' has a least_us above execution_us");
  }

  void connect(size_t index) {
    MessagePlan &message = graph_.messages[index];
    message.sender = find(callbacks_, message.from, message.name, "callback");
    graph_.callbacks[message.sender].messages.push_back(index);
    if (!message.hops_us.empty() && message.hops_us.size() != message.to.size())
      does_not_fit("message '" + message.name + "' has as many entries in 'hops_us' as in 'to'");
    for (size_t place = 0; place < message.to.size(); place++) {
      const size_t receiver = find(callbacks_, message.to[place], message.name, "callback");
      const bool is_same_board = graph_.callbacks[receiver].board >= 0 &&
                                 graph_.callbacks[receiver].board == graph_.callbacks[message.sender].board;
      if (message.carry == Carry::kLocal && !is_same_board)
        does_not_fit("message '" + message.name + "' is local and does not stay on one board");
      message.inputs.push_back(graph_.inputs.size());
      graph_.callbacks[receiver].inputs.push_back(graph_.inputs.size());
      const Time hop = message.hops_us.empty() ? 0 : message.hops_us[place] * kMicrosecond;
      graph_.inputs.push_back({index, receiver, hop, message.reliable && graph_.callbacks[receiver].reliable});
    }
    if (message.carry == Carry::kRequest && message.to.size() != 1)
      does_not_fit("request '" + message.name + "' goes to one server");
  }

  void check_start(size_t index) {
    CallbackPlan &callback = graph_.callbacks[index];
    if (callback.is_root() == callback.inputs.empty()) {
      if (callback.is_root()) {
        callback.root = graph_.roots.size();
        graph_.roots.push_back(index);
      }
      return;
    }
    does_not_fit("callback '" + callback.name + "' has a period or messages that start it, one of them");
  }

  void pair(MessagePlan &reply) {
    if (reply.carry != Carry::kReply) return;
    reply.answers = find(messages_, reply.request, reply.name, "message");
    MessagePlan &request = graph_.messages[reply.answers];
    const bool fits =
        request.carry == Carry::kRequest && request.answered_by == SIZE_MAX && reply.to.size() == 1 &&
        graph_.inputs[request.inputs[0]].callback == reply.sender &&
        graph_.callbacks[graph_.inputs[reply.inputs[0]].callback].board == graph_.callbacks[request.sender].board;
    if (!fits) does_not_fit("'" + reply.name + "' is no reply of the server to whom it answers");
    request.answered_by = static_cast<size_t>(&reply - graph_.messages.data());
  }

  // Sorts the callbacks topologically: each one comes after all callbacks that start it.
  void order() {
    std::vector<size_t> missing, ready = graph_.roots;
    for (const CallbackPlan &callback : graph_.callbacks) missing.push_back(callback.inputs.size());
    std::vector<std::set<size_t>> roots(graph_.callbacks.size());
    std::vector<bool> keeps(graph_.callbacks.size(), true);
    for (size_t root = 0; root < graph_.roots.size(); root++) roots[graph_.roots[root]] = {root};
    for (size_t place = 0; place < ready.size(); place++) {
      const size_t index = ready[place];
      CallbackPlan &callback = graph_.callbacks[index];
      if (callback.inputs.size() > 1 && !callback.joins) keeps[index] = false;
      callback.step = callback.inputs.empty() ? 1 : graph_.messages[graph_.inputs[callback.inputs[0]].message].step;
      for (const size_t input : callback.inputs) {
        const uint64_t step = graph_.messages[graph_.inputs[input].message].step;
        callback.step = callback.joins ? std::lcm(callback.step, step) : std::gcd(callback.step, step);
      }
      for (const size_t sent : callback.messages) {
        MessagePlan &message = graph_.messages[sent];
        if (message.carry == Carry::kRequest && message.answered_by == SIZE_MAX)
          does_not_fit("request '" + message.name + "' has no reply");
        message.roots = roots[index];
        message.step = callback.step * message.every;
        message.keeps_order = keeps[index];
        if (message.bytes < kMarkBytes && message.carry != Carry::kLocal && (roots[index].size() > 1 || !keeps[index]))
          does_not_fit("message '" + message.name +
                       "' belongs to several timers or ways, and has no room to say to which; "
                       "give it " +
                       std::to_string(kMarkBytes) + " bytes");
        for (const size_t input : message.inputs) {
          const size_t next = graph_.inputs[input].callback;
          CallbackPlan &receiver = graph_.callbacks[next];
          receiver.position = std::min(
              std::max(receiver.position, callback.position + (message.carry == Carry::kLocal ? 0u : 1u)), 255u);
          roots[next].insert(roots[index].begin(), roots[index].end());
          keeps[next] = keeps[next] && keeps[index];
          if (--missing[next] == 0) ready.push_back(next);
        }
      }
    }
    if (ready.size() < graph_.callbacks.size()) does_not_fit("callbacks start each other in a circle");
    for (size_t index = 0; index < graph_.callbacks.size(); index++) {
      CallbackPlan &callback = graph_.callbacks[index];
      callback.roots = roots[index];
      if (callback.joins && callback.roots.size() > 1)
        does_not_fit("'" + callback.name + "' joins messages of several timers");
    }
  }

  void measure(PathPlan &path) {
    if (path.callbacks.empty()) does_not_fit("path '" + path.name + "' has no callback");
    std::vector<size_t> places;
    for (const std::string &name : path.callbacks) places.push_back(find(callbacks_, name, path.name, "callback"));
    path.first = places.front();
    path.last = places.back();
    if (!graph_.callbacks[path.first].is_root()) does_not_fit("path '" + path.name + "' begins with no timer");
    for (size_t place = 1; place < places.size(); place++) {
      const auto &sent = graph_.callbacks[places[place - 1]].messages;
      const auto leads = [&](size_t message) {
        const auto &inputs = graph_.messages[message].inputs;
        return std::any_of(inputs.begin(), inputs.end(),
                           [&](size_t input) { return graph_.inputs[input].callback == places[place]; });
      };
      const auto found = std::find_if(sent.begin(), sent.end(), leads);
      if (found == sent.end())
        does_not_fit("path '" + path.name + "' breaks behind '" + path.callbacks[place - 1] + "'");
      path.step = std::lcm(path.step, graph_.messages[*found].step);
    }
    if (path.until.empty()) return;
    path.crossing = find(messages_, path.until, path.name, "message");
    const MessagePlan &crossing = graph_.messages[path.crossing];
    if (crossing.sender != path.last)
      does_not_fit("'until' of path '" + path.name + "' is not sent by its last callback");
    path.step = std::lcm(path.step, crossing.step);
  }

  const Plan &plan_;
  Graph &graph_;
  Numbers callbacks_, messages_;
};

}  // namespace

Graph graph_of(const Plan &plan) {
  Graph graph;
  const auto add_chains = [&graph](const Plan &board) {
    const size_t count = board.only_first ? std::min<size_t>(board.chains.size(), 1) : board.chains.size();
    for (size_t chain = 0; chain < count; chain++) expand(board.system, board.chains[chain], graph);
  };
  add_chains(plan);
  for (const Plan &board : plan.boards) add_chains(board);
  graph.callbacks.insert(graph.callbacks.end(), plan.callbacks.begin(), plan.callbacks.end());
  graph.messages.insert(graph.messages.end(), plan.messages.begin(), plan.messages.end());
  graph.paths.insert(graph.paths.end(), plan.paths.begin(), plan.paths.end());
  graph.loads = plan.loads;
  Resolver(plan, graph).resolve();
  return graph;
}

const char *text_of(HostPolicy policy) { return kHostPolicies[static_cast<size_t>(policy)]; }
Time slot_delay(const std::vector<unsigned> &slots_us, Time slot, Time now) {
  if (slots_us.empty()) return 0;
  const Time number = now / slot;
  const Time most = slots_us[static_cast<size_t>(number) % slots_us.size()] * kMicrosecond;
  const Time least = *std::min_element(slots_us.begin(), slots_us.end()) * kMicrosecond;
  return std::min(most, least + (number + 1) * slot - now);
}

const char *text_of(Policy policy) { return kPolicies[static_cast<size_t>(policy)]; }
const char *text_of(Send send) { return kSends[static_cast<size_t>(send)]; }

}  // namespace tide::sim
