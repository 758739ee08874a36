// SPDX-License-Identifier: Apache-2.0
#include "sim/board/plan.h"

#include <array>
#include <charconv>
#include <map>
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

template <typename Number>
Number number(const std::string &name, const std::string &value, Number least, Number most) {
  Number result{};
  const char *end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, result);
  if (error != std::errc() || rest != end || !(result >= least && result <= most)) refuse(name, value);
  return result;
}

// Goes over the settings of a plan or a chain, and sets that of a name or writes all of them.
class Settings {
 public:
  Settings(const std::string &name, const std::string &value) : name_(&name), value_(value) {}
  Settings(std::string before, std::string equals, std::string after)
      : before_(std::move(before)), equals_(std::move(equals)), after_(std::move(after)) {}
  std::string written() const { return written_; }
  void require_found() const {
    if (!found_) throw std::invalid_argument("there is no '" + *name_ + "' in a plan");
  }

  // In whole units; -1, if it is allowed, is no time.
  void time(const char *name, Time &place, Time least = 0, Time unit = kMicrosecond) {
    Time count = place < 0 ? place : place / unit;
    number<Time>(name, count, least, 1'000'000'000'000);
    if (is_set(name)) place = count < 0 ? count : count * unit;
  }
  template <typename Number>
  void number(const char *name, Number &place, Number least, Number most) {
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
  // Nothing is written as -.
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
  // True: its value is to be set. text: as which it is written; not called in vain.
  template <typename Text>
  bool visit(const char *name, const Text &text) {
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
constexpr std::array<const char *, 6> kShapes = {"answered", "sampled", "heard", "told", "looped", "hosted"};
constexpr std::array<const char *, 3> kCalls = {"topics", "asks", "serves"};

void visit(Settings &settings, ChainPlan &chain) {
  settings.text("name", chain.name);
  settings.number("level", chain.level, 0u, 126u);
  settings.choice("shape", chain.shape, kShapes);
  settings.time("period_us", chain.period, 1);
  settings.time("phase_us", chain.phase);
  settings.number("burst", chain.burst, 0u, 16u);
  settings.time("jitter_us", chain.jitter);
  settings.time("deadline_us", chain.deadline);
  settings.number<uint32_t>("payload_bytes", chain.payload_bytes, 1, 65500);
  settings.number<uint32_t>("reply_bytes", chain.reply_bytes, 1, 65500);
  settings.time("sample_us", chain.sample);
  settings.time("host_us", chain.host);
  settings.time("act_us", chain.act);
  settings.flag("reliable", chain.reliable);
  settings.flag("reply_reliable", chain.reply_reliable);
  settings.number("node", chain.node, 0u, 64u);
  settings.numbers("more_nodes", chain.more_nodes, 0, 64);
  settings.numbers("more_us", chain.more_us, 0, 4'000'000'000u);
  settings.numbers("more_hops_us", chain.more_hops_us, 0, 4'000'000'000u);
  settings.numbers("after_hops_us", chain.after_hops_us, 0, 4'000'000'000u);
  settings.time("hop_us", chain.hop);
  settings.number("group", chain.group, 0u, 8u);
  settings.number<uint32_t>("local_depth", chain.local_depth, 0, 16);
  settings.time("budget_us", chain.budget);
  settings.time("budget_period_us", chain.budget_period);
  settings.flag("hold", chain.hold);
  settings.numbers("sample_locks", chain.sample_locks, 0, 1'000'000'000u);
  settings.numbers("act_locks", chain.act_locks, 0, 1'000'000'000u);
  settings.choice("calls", chain.calls, kCalls);
  settings.optional("service", chain.service);
  settings.numbers("after_nodes", chain.after_nodes, 0, 64);
  settings.numbers("after_us", chain.after_us, 0, 4'000'000'000u);
  settings.numbers("servers", chain.servers, 0, 64);
  settings.number("mark", chain.mark, 0u, 60'000u);
  settings.optional("next", chain.next);
  settings.texts("begins", chain.begins);
  settings.numbers("begins_at", chain.begins_at, 0, 64);
  settings.flag("ends_sampled", chain.ends_sampled);
  settings.number("waits", chain.waits, 1u, 64u);
  settings.number("join", chain.join, 0u, 1000u);
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
  settings.number("lanes_a_band", plan.lanes_a_band, 1u, 4u);
  settings.flag("only_first", plan.only_first);
  settings.number<uint32_t>("periods", plan.periods, 1, 1000000);
  settings.time("horizon_us", plan.horizon);
  settings.number<uint64_t>("baud", plan.baud, 0, 1000000000);
  settings.time("agent_least_us", plan.agent_least);
  settings.time("agent_most_us", plan.agent_most);
  settings.time("return_least_us", plan.return_least);
  settings.time("return_most_us", plan.return_most);
  settings.numbers("hosts", plan.hosts, 1, 64);
  settings.choice("agent_acknowledges", plan.agent_acknowledges, kAcknowledges);
  settings.time("agent_heartbeat_delay_us", plan.agent_heartbeat_delay, -1);
  settings.number<uint32_t>("mtu", plan.mtu, 68, 65535);
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
  settings.choice("latency_from", plan.latency_from, kLatencyFrom);
  settings.flag("trace", plan.trace);
  settings.flag("record", plan.record);
  settings.flag("steady", plan.steady);
}

template <typename Of>
void set_field(Of &of, const std::string &name, const std::string &value) {
  Settings settings(name, value);
  visit(settings, of);
  settings.require_found();
}

void add_chain(Plan &plan, const std::string &text) {
  ChainPlan chain;
  chain.name = "chain" + std::to_string(plan.chains.size() + 1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) refuse("chain", text);
    set_field(chain, word.substr(0, equals), word.substr(equals + 1));
  }
  plan.chains.push_back(chain);
}

// `chains.sample_us = 5000` sets it in all chains.
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
  set(board, "system", name);
  plan.boards.push_back(std::move(board));
}

}  // namespace

void set(Plan &plan, const std::string &name, const std::string &value) {
  if (name == "board") {
    add_board(plan, value);
  } else if (name != "hosts" && !plan.boards.empty()) {
    set(plan.boards.back(), name, value);
  } else if (name == "chain") {
    add_chain(plan, value);
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
  for (ChainPlan &chain : copy.chains) {
    Settings words(" ", "=", "");
    visit(words, chain);
    text += "chain =" + words.written() + "\n";
  }
  for (const Plan &board : plan.boards) text += "board = " + board.system + "\n" + write_plan(board);
  return text;
}

const char *text_of(Policy policy) { return kPolicies[static_cast<size_t>(policy)]; }
const char *text_of(Send send) { return kSends[static_cast<size_t>(send)]; }

}  // namespace tide::sim
