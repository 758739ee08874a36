// SPDX-License-Identifier: Apache-2.0
#include "sim/board/plan.h"

#include <array>
#include <charconv>
#include <functional>
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

// How one field is read and written. Times are integers of the unit in their name.
struct Field {
  std::function<void(const std::string &name, const std::string &value)> read;
  std::function<std::string()> write;
};
using Fields = std::vector<std::pair<std::string, Field>>;

Field time_field(Time &place, Time unit, Time least = 0) {
  return {[&place, unit, least](const std::string &name, const std::string &value) {
            const auto count = number<Time>(name, value, least, 1'000'000'000'000);
            place = count < 0 ? count : count * unit;
          },
          [&place, unit] { return std::to_string(place < 0 ? place : place / unit); }};
}

template <typename Number>
Field number_field(Number &place, Number least, Number most) {
  return {[&place, least, most](const std::string &name, const std::string &value) {
            place = number<Number>(name, value, least, most);
          },
          [&place] {
            std::ostringstream out;
            out.precision(17);
            out << place;
            return out.str();
          }};
}

Field bool_field(bool &place) {
  return {[&place](const std::string &name, const std::string &value) {
            if (value != "true" && value != "false") refuse(name, value);
            place = value == "true";
          },
          [&place] { return place ? "true" : "false"; }};
}

Field text_field(std::string &place) {
  return {[&place](const std::string &name, const std::string &value) {
            if (value.empty() || value.find_first_of("\"\\ \t=") != std::string::npos) refuse(name, value);
            place = value;
          },
          [&place] { return place; }};
}

// Nothing is written as -.
Field optional_field(std::string &place) {
  const Field field = text_field(place);
  return {[field, &place](const std::string &name, const std::string &value) {
            field.read(name, value);
            if (value == "-") place.clear();
          },
          [&place] { return place.empty() ? "-" : place; }};
}

template <typename Choice, size_t kCount>
Field choice_field(Choice &place, const std::array<const char *, kCount> &texts) {
  return {[&place, texts](const std::string &name, const std::string &value) {
            for (size_t index = 0; index < kCount; index++) {
              if (value == texts[index]) {
                place = static_cast<Choice>(index);
                return;
              }
            }
            refuse(name, value);
          },
          [&place, texts] { return std::string(texts[static_cast<size_t>(place)]); }};
}

Field numbers_field(std::vector<unsigned> &place, unsigned least, unsigned most) {
  return {[&place, least, most](const std::string &name, const std::string &value) {
            place.clear();
            std::istringstream parts(value);
            for (std::string part; std::getline(parts, part, ',');) place.push_back(number(name, part, least, most));
          },
          [&place] {
            std::string text;
            for (const unsigned one : place) text += (text.empty() ? "" : ",") + std::to_string(one);
            return text;
          }};
}

Field texts_field(std::vector<std::string> &place) {
  return {[&place](const std::string &name, const std::string &value) {
            place.clear();
            std::istringstream parts(value);
            for (std::string part; std::getline(parts, part, ',');) text_field(place.emplace_back()).read(name, part);
          },
          [&place] {
            std::string text;
            for (const std::string &one : place) text += (text.empty() ? "" : ",") + one;
            return text;
          }};
}

constexpr std::array<const char *, 3> kPolicies = {"tide", "batch", "readyset"};
constexpr std::array<const char *, 4> kSends = {"asynchronous", "stock", "blocking", "answered"};
constexpr std::array<const char *, 2> kDraws = {"together", "independent"};
constexpr std::array<const char *, 2> kAcknowledges = {"always", "asked"};
constexpr std::array<const char *, 2> kLatencyFrom = {"expiry", "start"};
constexpr std::array<const char *, 6> kShapes = {"answered", "sampled", "heard", "told", "looped", "hosted"};
constexpr std::array<const char *, 3> kCalls = {"topics", "asks", "serves"};

Fields fields_of(ChainPlan &chain) {
  return {{"name", text_field(chain.name)},
          {"level", number_field(chain.level, 0u, 126u)},
          {"shape", choice_field(chain.shape, kShapes)},
          {"period_us", time_field(chain.period, kMicrosecond, 1)},
          {"phase_us", time_field(chain.phase, kMicrosecond)},
          {"burst", number_field(chain.burst, 0u, 16u)},
          {"jitter_us", time_field(chain.jitter, kMicrosecond)},
          {"deadline_us", time_field(chain.deadline, kMicrosecond)},
          {"payload_bytes", number_field<uint32_t>(chain.payload_bytes, 1, 65500)},
          {"reply_bytes", number_field<uint32_t>(chain.reply_bytes, 1, 65500)},
          {"sample_us", time_field(chain.sample, kMicrosecond)},
          {"host_us", time_field(chain.host, kMicrosecond)},
          {"act_us", time_field(chain.act, kMicrosecond)},
          {"reliable", bool_field(chain.reliable)},
          {"reply_reliable", bool_field(chain.reply_reliable)},
          {"node", number_field(chain.node, 0u, 64u)},
          {"more_nodes", numbers_field(chain.more_nodes, 0, 64)},
          {"more_us", numbers_field(chain.more_us, 0, 4'000'000'000u)},
          {"more_hops_us", numbers_field(chain.more_hops_us, 0, 4'000'000'000u)},
          {"after_hops_us", numbers_field(chain.after_hops_us, 0, 4'000'000'000u)},
          {"hop_us", time_field(chain.hop, kMicrosecond)},
          {"group", number_field(chain.group, 0u, 8u)},
          {"local_depth", number_field<uint32_t>(chain.local_depth, 0, 16)},
          {"budget_us", time_field(chain.budget, kMicrosecond)},
          {"budget_period_us", time_field(chain.budget_period, kMicrosecond)},
          {"hold", bool_field(chain.hold)},
          {"sample_locks", numbers_field(chain.sample_locks, 0, 1'000'000'000u)},
          {"act_locks", numbers_field(chain.act_locks, 0, 1'000'000'000u)},
          {"calls", choice_field(chain.calls, kCalls)},
          {"service", optional_field(chain.service)},
          {"after_nodes", numbers_field(chain.after_nodes, 0, 64)},
          {"after_us", numbers_field(chain.after_us, 0, 4'000'000'000u)},
          {"servers", numbers_field(chain.servers, 0, 64)},
          {"mark", number_field(chain.mark, 0u, 60'000u)},
          {"next", optional_field(chain.next)},
          {"begins", texts_field(chain.begins)},
          {"begins_at", numbers_field(chain.begins_at, 0, 64)},
          {"ends_sampled", bool_field(chain.ends_sampled)},
          {"waits", number_field(chain.waits, 1u, 64u)},
          {"join", number_field(chain.join, 0u, 1000u)}};
}

void add_faults(Fields &fields, const std::string &way, Faults &faults) {
  fields.emplace_back(way + "_loss", number_field(faults.loss, 0.0, 1.0));
  fields.emplace_back(way + "_duplication", number_field(faults.duplication, 0.0, 1.0));
  fields.emplace_back(way + "_corruption", number_field(faults.corruption, 0.0, 1.0));
  fields.emplace_back(way + "_delay", number_field(faults.delay, 0.0, 1.0));
  fields.emplace_back(way + "_delay_maximum_us", time_field(faults.delay_maximum, kMicrosecond));
}

Fields fields_of(Plan &plan) {
  Fields fields = {{"system", text_field(plan.system)},
                   {"seed", number_field<uint64_t>(plan.seed, 0, UINT64_MAX)},
                   {"policy", choice_field(plan.policy, kPolicies)},
                   {"send", choice_field(plan.send, kSends)},
                   {"lanes", number_field(plan.lanes, 1u, 64u)},
                   {"lanes_a_band", number_field(plan.lanes_a_band, 1u, 4u)},
                   {"only_first", bool_field(plan.only_first)},
                   {"periods", number_field<uint32_t>(plan.periods, 1, 1000000)},
                   {"horizon_us", time_field(plan.horizon, kMicrosecond)},
                   {"baud", number_field<uint64_t>(plan.baud, 0, 1000000000)},
                   {"agent_least_us", time_field(plan.agent_least, kMicrosecond)},
                   {"agent_most_us", time_field(plan.agent_most, kMicrosecond)},
                   {"return_least_us", time_field(plan.return_least, kMicrosecond)},
                   {"return_most_us", time_field(plan.return_most, kMicrosecond)},
                   {"hosts", numbers_field(plan.hosts, 1, 64)},
                   {"agent_acknowledges", choice_field(plan.agent_acknowledges, kAcknowledges)},
                   {"agent_heartbeat_delay_us", time_field(plan.agent_heartbeat_delay, kMicrosecond, -1)},
                   {"mtu", number_field<uint32_t>(plan.mtu, 68, 65535)},
                   {"budget_us", time_field(plan.budget, kMicrosecond)},
                   {"budget_period_us", time_field(plan.budget_period, kMicrosecond)},
                   {"lock_ceilings", bool_field(plan.lock_ceilings)},
                   {"submit_us", time_field(plan.submit, kMicrosecond)},
                   {"process_us", time_field(plan.process, kMicrosecond)},
                   {"dispatch_us", time_field(plan.dispatch, kMicrosecond)},
                   {"interrupt_receive_us", time_field(plan.interrupt_receive, kMicrosecond)},
                   {"interrupt_complete_us", time_field(plan.interrupt_complete, kMicrosecond)},
                   {"hold_until_acknowledged", bool_field(plan.hold_until_acknowledged)},
                   {"packs", bool_field(plan.packs)},
                   {"heartbeat_delay_us", time_field(plan.heartbeat_delay, kMicrosecond, -1)},
                   {"batch_waits_for_new_data", bool_field(plan.batch_waits_for_new_data)},
                   {"nodes", number_field<uint32_t>(plan.nodes, 2, 4096)},
                   {"large_nodes", number_field<int32_t>(plan.large_nodes, -1, 4096)},
                   {"small_node_bytes", number_field<uint32_t>(plan.small_node_bytes, 64, 65532)},
                   {"depth", number_field<uint32_t>(plan.depth, 1, 255)},
                   {"slots", number_field<uint32_t>(plan.slots, 2, 4096)},
                   {"window", number_field<uint32_t>(plan.window, 1, 16)},
                   {"reassemblies", number_field<uint32_t>(plan.reassemblies, 0, 64)},
                   {"success_percent", number_field(plan.success_percent, 0.0, 100.0)},
                   {"draw", choice_field(plan.draw, kDraws)},
                   {"instance_losses", number_field<uint32_t>(plan.instance_losses, 0, 16)},
                   {"instance_loss", number_field(plan.instance_loss, 0.0, 1.0)}};
  add_faults(fields, "up", plan.up);
  add_faults(fields, "down", plan.down);
  fields.emplace_back("cuts", number_field(plan.cuts, 0u, 1000u));
  fields.emplace_back("cut_maximum_us", time_field(plan.cut_maximum, kMicrosecond));
  fields.emplace_back("cut_unplugs", bool_field(plan.cut_unplugs));
  fields.emplace_back("restarts", number_field(plan.restarts, 0u, 1000u));
  fields.emplace_back("outage_maximum_us", time_field(plan.outage_maximum, kMicrosecond));
  fields.emplace_back("settle_us", time_field(plan.settle, kMicrosecond));
  fields.emplace_back("latency_from", choice_field(plan.latency_from, kLatencyFrom));
  fields.emplace_back("trace", bool_field(plan.trace));
  fields.emplace_back("record", bool_field(plan.record));
  fields.emplace_back("steady", bool_field(plan.steady));
  return fields;
}

void set_field(const Fields &fields, const std::string &name, const std::string &value) {
  for (const auto &[known, field] : fields) {
    if (known != name) continue;
    field.read(name, value);
    return;
  }
  throw std::invalid_argument("there is no '" + name + "' in a plan");
}

void add_chain(Plan &plan, const std::string &text) {
  ChainPlan chain;
  chain.name = "chain" + std::to_string(plan.chains.size() + 1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) refuse("chain", text);
    set_field(fields_of(chain), word.substr(0, equals), word.substr(equals + 1));
  }
  plan.chains.push_back(chain);
}

// `chains.sample_us = 5000` sets it in all chains.
bool set_in_chains(Plan &plan, const std::string &name, const std::string &value) {
  constexpr std::string_view kPrefix = "chains.";
  if (!name.starts_with(kPrefix)) return false;
  for (ChainPlan &chain : plan.chains) set_field(fields_of(chain), name.substr(kPrefix.size()), value);
  return true;
}

}  // namespace

namespace {

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
    set_field(fields_of(plan), name, value);
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
  std::string text;
  for (const auto &[name, field] : fields_of(copy)) text += name + " = " + field.write() + "\n";
  for (ChainPlan &chain : copy.chains) {
    text += "chain =";
    for (const auto &[name, field] : fields_of(chain)) text += " " + name + "=" + field.write();
    text += "\n";
  }
  for (const Plan &board : plan.boards) text += "board = " + board.system + "\n" + write_plan(board);
  return text;
}

const char *text_of(Policy policy) { return kPolicies[static_cast<size_t>(policy)]; }
const char *text_of(Send send) { return kSends[static_cast<size_t>(send)]; }

}  // namespace tide::sim
