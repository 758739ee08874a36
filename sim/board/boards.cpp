// SPDX-License-Identifier: Apache-2.0
// A run of all boards of a plan, from the plan to the result.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "sim/board/one_board.h"

namespace tide::sim {
namespace {

constexpr Time kSetUpLimit = 150 * kSecond;
constexpr Time kNotice = 6 * kSecond;
constexpr Time kCheckPeriod = 10 * kMillisecond;
constexpr Time kTogether = 10 * kMillisecond;  // from when the last board is set up until all begin
constexpr int kAttempts = 5;
constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15u;

// All boards of a plan.
class Run {
 public:
  Run(const Plan &plan, const std::vector<Plan> &boards) : plan_(plan), world_(plan) {
    for (const Plan &board : boards) {
      OneBoard &system = *systems_.emplace_back(std::make_unique<OneBoard>(world_, board));
      for (size_t chain = 0; chain < board.chains.size(); chain++) {
        if (board.chains[chain].passed_on) world_.begun_elsewhere[board.chains[chain].name] = {&system, chain};
      }
    }
    world_.engine.on_step = [this] {
      for (OneBoard *system : world_.changed) system->check_step();
      world_.changed.clear();
    };
  }

  // When each board begins.
  std::vector<Time> first_releases() {
    set_up();
    std::vector<Time> times;
    for (const auto &system : systems_) times.push_back(system->first_release());
    return times;
  }

  // In place of run.
  void abandon() {
    for (const auto &system : systems_) system->end();
    world_.engine.run_until(world_.engine.now() + most(&OneBoard::longest_callbacks));
  }

  // After first_releases.
  Result run() {
    for (const auto &system : systems_) system->release_nodes();
    for (const auto &system : systems_) system->schedule_incidents();
    finish();
    Result result;
    for (const auto &system : systems_) system->tell(result);
    result.trace = world_.trace.text();
    result.trace_hash = world_.trace.hash();
    result.simulated = world_.engine.now();
    result.events = world_.engine.event_count();
    return result;
  }

 private:
  using Each = const std::unique_ptr<OneBoard> &;

  void set_up() {
    Engine &engine = world_.engine;
    const auto is_set_up = [this] {
      return std::all_of(systems_.begin(), systems_.end(), [](Each system) { return system->is_set_up(); });
    };
    while (!is_set_up() && engine.now() < kSetUpLimit) {
      if (!engine.step(kSetUpLimit)) break;
    }
    if (!is_set_up()) throw std::runtime_error("the client could not connect");
  }

  Time most(Time (OneBoard::*of)() const) const {
    Time longest = 0;
    for (const auto &system : systems_) longest = std::max(longest, (system.get()->*of)());
    return longest;
  }

  void finish() {
    Engine &engine = world_.engine;
    // A client notices a restart that changed nothing by its own signs of life.
    const Time noticed = plan_.restarts > 0 || plan_.cuts > 0 ? kNotice + plan_.outage_maximum : 0;
    Time next = most(&OneBoard::last_release) + noticed + most(&OneBoard::longest_period);
    const Time limit = next + plan_.settle;
    engine.run_until(next);
    // Best-effort messages and callbacks that are still under way hold places in the pools, so they are waited for,
    // too.
    const auto is_done = [this] {
      return std::all_of(systems_.begin(), systems_.end(), [](Each system) { return system->is_done(); });
    };
    while (!is_done() && next < limit) engine.run_until(next += kCheckPeriod);
    for (const auto &system : systems_) system->end();
    engine.run_until(engine.now() + most(&OneBoard::longest_callbacks));
    if (!std::all_of(systems_.begin(), systems_.end(), [](Each system) { return system->is_stopped(); }))
      throw std::runtime_error("the client does not stop");
  }

  const Plan &plan_;
  World world_;
  std::vector<std::unique_ptr<OneBoard>> systems_;
};

// Boards with seeds of their own, which begin together, and chains that know who begins them.
std::vector<Plan> boards_of(const Plan &plan) {
  std::vector<Plan> boards = plan.boards.empty() ? std::vector<Plan>{plan} : plan.boards;
  if (plan.boards.empty()) return boards;
  std::map<std::string, ChainPlan *> chains;
  for (size_t board = 0; board < boards.size(); board++) {
    boards[board].hosts = plan.hosts;
    boards[board].seed = plan.seed + board * kSeedsApart;
    for (ChainPlan &chain : boards[board].chains) {
      if (!chains.emplace(chain.name, &chain).second)
        throw std::invalid_argument("two boards have a chain '" + chain.name + "'");
    }
  }
  for (const auto &[name, chain] : chains) {
    if (chain->next.empty()) continue;
    const auto next = chains.find(chain->next);
    const bool asks = chain->calls == Calls::kAsks;
    const bool fits = next != chains.end() && next->second->shape == Shape::kTold &&
                      chain->shape == (asks ? Shape::kAnswered : Shape::kHeard) &&
                      next->second->calls == (asks ? Calls::kServes : Calls::kTopics);
    if (!fits || next->second->passed_on)
      throw std::invalid_argument("'next' of " + name + " is no chain that is told, or that of another one");
    next->second->passed_on = true;
  }
  std::map<ChainPlan *, unsigned> begun;  // by how many
  for (const auto &[name, chain] : chains) {
    if (chain->begins.size() != chain->begins_at.size())
      throw std::invalid_argument("'begins' and 'begins_at' of " + name + " have as many entries");
    for (const std::string &one : chain->begins) {
      const auto other = chains.find(one);
      const bool fits = other != chains.end() && other->second->begins_on_host() &&
                        (chain->calls == Calls::kTopics || chain->calls == Calls::kServes);
      if (!fits) throw std::invalid_argument("'begins' of " + name + " names no chain that begins on the host");
      begun[other->second]++;
    }
  }
  for (const auto &[name, chain] : chains) {
    const unsigned count = begun.contains(chain) ? begun[chain] : 0;
    if (count > 0 ? chain->passed_on || count != chain->waits : chain->waits > 1)
      throw std::invalid_argument("'waits' of " + name + " is not by how many it is begun");
    chain->begun = count > 0;
    chain->passed_on = chain->passed_on || chain->begun;
  }
  return boards;
}

}  // namespace

Result simulate(const Plan &plan) {
  std::vector<Plan> boards = boards_of(plan);
  for (const Plan &board : boards) {
    if (board.chains.empty()) throw std::invalid_argument("a plan needs a chain");
    for (const ChainPlan &chain : board.chains) {
      const auto is_there = [&board](unsigned node) { return node <= board.hosts.size(); };
      const bool known = std::all_of(chain.more_nodes.begin(), chain.more_nodes.end(), is_there) &&
                         std::all_of(chain.after_nodes.begin(), chain.after_nodes.end(), is_there);
      if (chain.node > board.hosts.size() || !known)
        throw std::invalid_argument("a chain names a host executor that is not there");
    }
    if (std::any_of(board.chains.begin(), board.chains.end(), [](const ChainPlan &one) {
          return one.more_nodes.size() != one.more_us.size() || one.after_nodes.size() != one.after_us.size();
        }))
      throw std::invalid_argument("'more_nodes' and 'more_us', 'after_nodes' and 'after_us' have as many entries");
    for (const ChainPlan &chain : board.chains) {
      const bool is_short = chain.payload_bytes < kMarkBytes || chain.reply_bytes < kMarkBytes;
      if (is_short && plan.instances_of(chain) > kShortInstances)
        throw std::invalid_argument("a payload has at least 6 bytes, or one in at most 256 periods");
    }
    if (std::any_of(board.chains.begin(), board.chains.end(), [](const ChainPlan &one) {
          return (one.calls == Calls::kAsks && one.shape != Shape::kAnswered) ||
                 (one.calls == Calls::kServes && one.shape != Shape::kTold);
        }))
      throw std::invalid_argument("a chain that asks is answered, and one that serves is told");
    if (board.budget > 0) throw std::invalid_argument("the simulated client has no budgets; a board has (--board)");
  }
  // All are set up at the same time, so that none is silent for long before its first release. What one meets on the
  // way changes with the time at which the others come, so that one may be late the first time that they come together.
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    Run run(plan, boards);
    const std::vector<Time> times = run.first_releases();
    const Time last = *std::max_element(times.begin(), times.end());
    if (std::all_of(times.begin(), times.end(), [last](Time one) { return one == last; })) return run.run();
    run.abandon();
    for (size_t board = 0; board < boards.size(); board++) {
      if (attempt == 0) boards[board].begin = last - times[board];
      boards[board].start = last + kTogether;
    }
  }
  throw std::runtime_error("the boards were not set up together");
}

}  // namespace tide::sim
