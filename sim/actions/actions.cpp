// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/actions.h"

#include "sim/actions/nodes.h"
#include "sim/actions/program.h"
#include "sim/board/agent_host.h"
#include "sim/engine/port.h"

namespace tide::sim {
namespace {

constexpr uint64_t kBaud = 0;  // frames take no time, so a run does not depend on the ids of goals, which need escapes
constexpr Time kSpan = 4 * kSecond, kSetUpLimit = 30 * kSecond, kSettleLimit = 120 * kSecond;
constexpr Time kAskAgain = 2 * kSecond, kRest = kSecond, kEndLimit = 30 * kSecond;

Faults draw_faults(Random &random) {
  Faults faults;
  if (random.chance(0.6)) faults.loss = static_cast<double>(random.between(1, 30)) / 100;
  if (random.chance(0.3)) faults.duplication = static_cast<double>(random.between(1, 20)) / 100;
  if (random.chance(0.3)) faults.corruption = static_cast<double>(random.between(1, 20)) / 100;
  if (random.chance(0.3)) faults.delay = static_cast<double>(random.between(1, 20)) / 100;
  faults.delay_maximum = random.between(1, 30) * kMillisecond;
  return faults;
}

std::vector<Time> draw_times(Random &random, int64_t most) {
  std::vector<Time> times(static_cast<size_t>(random.between(0, most)));
  for (Time &time : times) time = random.between(0, kSpan);
  return times;
}

std::vector<Incident> draw_incidents(Random &random, int64_t most, Time longest) {
  std::vector<Incident> incidents(static_cast<size_t>(random.between(1, most)));
  for (Incident &incident : incidents) incident = {random.between(0, kSpan), random.between(0, longest)};
  return incidents;
}

class System {
 public:
  explicit System(const ActionPlan &plan)
      : plan_(plan),
        up_(engine_, kBaud, plan.seed * 5 + 1),
        down_(engine_, kBaud, plan.seed * 5 + 2),
        host_(engine_, bus_, down_, {0, plan.agent_most}, plan.seed * 5 + 3),
        machine_(engine_),
        port_(machine_, [this](tide_session_t &session, const tide_link_address_t &) { return open(session); }),
        nodes_(engine_, bus_, ledger_, plan.strict, plan.seed * 5 + 4),
        program_(machine_, ledger_, plan.seed) {
    up_.deliver = [this](const Line::Bytes &frame) { host_.receive(frame); };
    down_.deliver = [this](const Line::Bytes &frame) {
      if (!links_.empty()) links_.back()->receive(frame);
    };
  }

  ActionResult run() {
    if (run_until([this] { return program_.is_set_up(); }, kSetUpLimit)) {
      disturb();
      engine_.run_until(engine_.now() + kSpan);
      settle();
    }
    const uint32_t reconnects = program_.is_set_up() ? program_.reconnects() : 0;
    ledger_.renewed = host_.restarts() > 0 || reconnects > 0;
    const uint64_t again = bus_.services.unasked_replies();
    if (!ledger_.renewed && again > 0) ledger_.note("a reply came to ROS 2 twice");
    program_.stop();
    if (!run_until([this] { return program_.is_finished(); }, kEndLimit)) ledger_.note("the program does not end");
    ActionResult result{ledger_.violations(), ledger_, engine_.now(), engine_.event_count()};
    for (const LineCounters *counters : {&up_.counters(), &down_.counters()}) {
      result.frames += counters->frames;
      result.frames_lost += counters->lost + counters->cut + counters->corrupted;
    }
    result.restarts = host_.restarts();
    return result;
  }

 private:
  template <typename Condition>
  bool run_until(const Condition &condition, Time limit) {
    const Time end = engine_.now() + limit;
    while (!condition() && engine_.now() < end) {
      if (!engine_.step(end)) break;
    }
    return condition();
  }

  template <typename Send>
  void schedule(const std::vector<Time> &times, Send send) {
    for (size_t place = 0; place < times.size(); place++) {
      engine_.after(times[place], [send, number = static_cast<int32_t>(place) + 1] { send(number); });
    }
  }

  Link *open(tide_session_t &session) {
    return links_.emplace_back(std::make_unique<Link>(machine_, session, up_, Link::Costs{})).get();
  }

  void cut(bool is_cut) {
    up_.set_cut(is_cut);
    down_.set_cut(is_cut);
  }

  void disturb() {
    up_.set_faults(plan_.up);
    down_.set_faults(plan_.down);
    for (const Incident &incident : plan_.cuts) {
      engine_.after(incident.at, [this] { cut(true); });
      engine_.after(incident.at + incident.duration, [this] { cut(false); });
    }
    for (const Incident &incident : plan_.restarts)
      engine_.after(incident.at, [this, outage = incident.duration] { host_.restart(outage); });
    schedule(plan_.goals_of_board, [this](int32_t number) { program_.send_goal(number); });
    schedule(plan_.goals_of_nodes, [this](int32_t number) { nodes_.send_goal(number); });
    schedule(plan_.questions, [this](int32_t) { nodes_.ask_again(); });
    schedule(plan_.requests_of_board, [this](int32_t number) { program_.ask(number); });
    schedule(plan_.requests_of_nodes, [this](int32_t number) { nodes_.ask(number); });
  }

  // All is well again; who waits asks again. Then a rest for what may come late.
  void settle() {
    up_.set_faults({});
    down_.set_faults({});
    const Time end = engine_.now() + kSettleLimit;
    const auto settled = [this] {
      return program_.has_sent_all() && ledger_.all_goals_settled() && ledger_.all_requests_settled();
    };
    while (engine_.now() < end) {
      engine_.run_until(engine_.now() + kAskAgain);
      if (settled()) break;
      nodes_.ask_again();
      nodes_.give_up();
    }
    engine_.run_until(engine_.now() + kRest);
    if (!program_.has_sent_all()) ledger_.note("the board could not send all");
  }

  const ActionPlan &plan_;
  Engine engine_;
  Bus bus_;
  Line up_, down_;
  AgentHost host_;
  Machine machine_;
  std::vector<std::unique_ptr<Link>> links_;  // the last is in use; events of others may come yet
  Port port_;
  Ledger ledger_;
  Nodes nodes_;
  Program program_;
};

}  // namespace

ActionPlan draw_actions(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  ActionPlan plan;
  plan.seed = seed;
  if (random.chance(0.7)) plan.up = draw_faults(random);
  if (random.chance(0.7)) plan.down = draw_faults(random);
  if (random.chance(0.3)) plan.cuts = draw_incidents(random, 3, 800 * kMillisecond);
  if (random.chance(0.5)) plan.restarts = draw_incidents(random, 4, 800 * kMillisecond);
  plan.agent_most = random.between(0, 20) * kMillisecond;
  plan.goals_of_board = draw_times(random, 12);
  plan.goals_of_nodes = draw_times(random, 12);
  plan.questions = draw_times(random, 6);
  plan.requests_of_board = draw_times(random, 6);
  plan.requests_of_nodes = draw_times(random, 6);
  plan.strict = random.chance(0.5);
  return plan;
}

ActionResult simulate(const ActionPlan &plan) { return System(plan).run(); }

}  // namespace tide::sim
