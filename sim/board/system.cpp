// SPDX-License-Identifier: Apache-2.0
#include "sim/board/one_board.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <stdexcept>

#include "tide/xrce.h"

namespace tide::sim {
namespace {

// Counters are plain numbers of 32 bits.
template <typename Counters>
void add(Counters &sum, const Counters &more) {
  using Numbers = std::array<uint32_t, sizeof(Counters) / sizeof(uint32_t)>;
  auto numbers = std::bit_cast<Numbers>(sum);
  const auto others = std::bit_cast<Numbers>(more);
  for (size_t index = 0; index < numbers.size(); index++) numbers[index] += others[index];
  sum = std::bit_cast<Counters>(numbers);
}

// 0: none. place: of its callbacks on the host.
unsigned server_of(const ChainPlan &plan, size_t place) {
  return place < plan.servers.size() ? plan.servers[place] : 0;
}

}  // namespace

OneBoard::OneBoard(World &world, const Plan &plan)
    : world_(world),
      plan_(plan),
      engine_(world.engine),
      trace_(world.trace),
      checks_(plan, chain_count()),
      up_(engine_, plan.baud, seed_of(plan, Chance::kUp)),
      down_(engine_, plan.baud, seed_of(plan, Chance::kDown)),
      bus_(world.bus),
      host_(engine_, bus_, down_,
            {plan.agent_least, plan.agent_most, plan.agent_acknowledges, plan.agent_heartbeat_delay},
            seed_of(plan, Chance::kLatency)),
      machine_(engine_),
      client_(machine_, up_, plan, observer()),
      incidents_(seed_of(plan, Chance::kIncidents)),
      return_(seed_of(plan, Chance::kReturn)),
      losses_(plan),
      instance_losses_(plan) {
  connect();
  for (size_t chain = 0; chain < chain_count(); chain++) add_node(chain);
}

Client::Observer OneBoard::observer() {
  Client::Observer observer;
  observer.callback_start = [this](const tide_executor_t &executor, const tide_callback_t &callback) {
    trace_.add(engine_.now(), "callback", callback.priority, callback.index);
    checks_.callback_start(client_, executor, callback, engine_.now());
  };
  observer.sample_end = [this](size_t chain, uint32_t index) {
    const bool published = client_.instances(chain)[index].published;
    trace_.add(engine_.now(), published ? "published" : "refused", static_cast<int64_t>(chain), index);
    if (published) checks_.published(chain, index);
  };
  observer.act = [this](size_t chain, uint32_t index) {
    trace_.add(engine_.now(), "acted", static_cast<int64_t>(chain), index);
    checks_.acted(chain, index, is_renewed(), engine_.now());
  };
  observer.replied = [this](size_t chain, uint32_t index) {
    trace_.add(engine_.now(), "replied", static_cast<int64_t>(chain), index);
    checks_.replied(chain, index);
  };
  observer.strange_sample = [this](size_t, uint32_t) { checks_.stranger("client", engine_.now()); };
  observer.broken = [this](size_t chain, const char *what) { checks_.broken(chain, what, engine_.now()); };
  observer.event = [this](const char *what) { trace_.add(engine_.now(), what); };
  return observer;
}

void OneBoard::connect() {
  machine_.on_change = [this] { world_.changed.push_back(this); };
  up_.deliver = [this](const Line::Bytes &frame) { host_.receive(frame); };
  up_.refuse = [this](const Line::Bytes &) {
    if (!client_.is_set_up()) return false;
    const Time since = engine_.now() - client_.first_release();
    return losses_.lost(since) || instance_losses_.lost(Way::kUp, since);
  };
  down_.refuse = [this](const Line::Bytes &) {
    return client_.is_set_up() && instance_losses_.lost(Way::kDown, engine_.now() - client_.first_release());
  };
  down_.deliver = [this](const Line::Bytes &frame) {
    trace_.add(engine_.now(), "line_down", static_cast<int64_t>(frame.size()));
    client_.link().receive(frame);
    if (acknowledging_) {
      machine_.core().interrupt(0, [this, count = heartbeats_answered_] { client_.note_heartbeats_answered(count); });
    }
  };
  host_.on_input = [this](agent::Bytes message) {
    const Glance seen = glance(message);
    trace_.add(engine_.now(), "agent_input", seen.submessage, seen.header.sequence);
    if (seen.submessage == TIDE_XRCE_HEARTBEAT) heartbeats_seen_++;
  };
  host_.on_output = [this](agent::Bytes message) {
    const Glance seen = glance(message);
    instance_losses_.begin(Way::kDown, message);
    trace_.add(engine_.now(), "agent_output", seen.submessage, seen.header.sequence);
    acknowledging_ = seen.submessage == TIDE_XRCE_ACKNACK;
    if (acknowledging_) heartbeats_answered_ = heartbeats_seen_;
  };
  client_.link().on_start = [this](const tide_frame_parts_t &parts) {
    std::vector<uint8_t> message(parts.head, parts.head + parts.head_bytes);
    message.insert(message.end(), parts.body, parts.body + parts.body_bytes);
    trace_.add(engine_.now(), "line_up", parts.priority, static_cast<int64_t>(message.size() + parts.tail_bytes));
    instance_losses_.begin(Way::kUp, message);
    if (losses_.begin(message).submessage == TIDE_XRCE_HEARTBEAT) client_.note_heartbeat();
    checks_.frame_start(client_, parts, engine_.now());
  };
}

void OneBoard::add_node(size_t chain) {
  if (plan_.chains[chain].calls != Calls::kTopics) {
    add_service(chain);
    return;
  }
  const Shape shape = plan_.chains[chain].shape;
  if (shape == Shape::kLooped) {
    nodes_.push_back(nullptr);
    bus_.subscribe(client_.topic(chain), [this, chain](const Bus::Payload &payload) {
      const uint32_t index = get_mark(payload, 0).index;
      checks_.host_received(chain, index, is_renewed(), engine_.now());
      checks_.host_answered(chain, index);
    });
    return;
  }
  const ChainPlan &plan = plan_.chains[chain];
  const End end = [this, chain](const Bus::Payload &payload) { answer(chain, payload); };
  nodes_.push_back(first_of(plan, end));
  bus_.subscribe(client_.topic(chain), [this, chain](const Bus::Payload &payload) {
    const uint32_t bytes = plan_.chains[chain].payload_bytes;
    if (!is_own(chain, payload, bytes)) return;
    const Mark mark = get_mark(std::span(payload).first(bytes), client_.mark_of(chain));
    Bus::Payload marked(kMarkBytes);  // what it received may be shorter
    put_mark(marked.data(), mark);
    checks_.host_received(chain, mark.index, is_renewed(), engine_.now());
    client_.note_heard(chain, mark.index, engine_.now());
    begin_others(chain, 0, mark.index);
    nodes_[chain]->receive(marked);
  });
}

// next: who is told when it has ended; null: it is the end.
std::unique_ptr<HostCallback> OneBoard::callback_of(Time execution, unsigned node, unsigned server, HostCallback *next,
                                                    End end) {
  HostExecutor *const executor = node == 0 ? nullptr : world_.hosts.at(node - 1).get();
  const void *const shared = server == 0 ? nullptr : &world_.servers[server];
  return std::make_unique<HostCallback>(engine_, execution, executor, shared, [next, end](const Bus::Payload &payload) {
    if (next != nullptr) {
      next->receive(payload);
    } else {
      end(payload);
    }
  });
}

// What follows the callback on the host of that number, from 1, behind those that its message begins beside it.
OneBoard::End OneBoard::telling(const ChainPlan &plan, size_t done, HostCallback *next, Time hop, const End &end) {
  const auto chain = static_cast<size_t>(&plan - plan_.chains.data());
  return [this, chain, done, next, hop, end](const Bus::Payload &payload) {
    begin_others(chain, done, get_mark(payload.data()).index);
    if (next == nullptr) {
      end(payload);
    } else if (hop == 0) {
      next->receive(payload);
    } else {
      engine_.after(hop, [next, payload] { next->receive(payload); });
    }
  };
}

void OneBoard::begin_others(size_t chain, size_t done, uint32_t index) {
  const ChainPlan &plan = plan_.chains[chain];
  for (size_t place = 0; place < plan.begins.size(); place++) {
    if (plan.begins_at[place] == done)
      world_.pass_on(plan.begins[place], index, client_.instances(chain)[index].release);
  }
}

std::unique_ptr<HostCallback> OneBoard::first_of(const ChainPlan &plan, const End &end) {
  HostCallback *const next = followers_of(plan, false, end);
  const Time hop = plan.more_hops_us.empty() ? 0 : plan.more_hops_us.front() * kMicrosecond;
  return callback_of(plan.host, plan.node, server_of(plan, 0), nullptr, telling(plan, 1, next, hop, end));
}

// The first of callbacks that follow each other, behind the first or behind the reply; null: there is none.
HostCallback *OneBoard::followers_of(const ChainPlan &plan, bool after, const End &end) {
  const std::vector<unsigned> &nodes = after ? plan.after_nodes : plan.more_nodes;
  const std::vector<unsigned> &us = after ? plan.after_us : plan.more_us;
  const std::vector<unsigned> &hops = after ? plan.after_hops_us : plan.more_hops_us;
  const size_t before = after ? plan.more_us.size() : 0;
  HostCallback *next = nullptr;
  for (size_t place = us.size(); place > 0; place--) {
    const unsigned server = server_of(plan, before + place);
    const Time hop = place < hops.size() ? hops[place] * kMicrosecond : 0;  // to the one behind it
    const End told = telling(plan, before + place + 1, next, hop, end);
    followers_.push_back(callback_of(us[place - 1] * kMicrosecond, nodes[place - 1], server, nullptr, told));
    next = followers_.back().get();
  }
  return next;
}

// The sender's padding may follow.
bool OneBoard::is_own(size_t chain, const Bus::Payload &payload, size_t least) {
  const bool whole = payload.size() >= least && payload.size() <= least + 3;
  const uint16_t known = client_.mark_of(chain);
  const Mark mark = whole ? get_mark(std::span(payload).first(least), known) : Mark{UINT16_MAX, UINT32_MAX};
  trace_.add(engine_.now(), "host_received", static_cast<int64_t>(chain), mark.index);
  const bool own = whole && mark.chain == known;
  if (!own) checks_.stranger("host", engine_.now());
  return own;
}

// What begins on the host does so by timers there.
void OneBoard::release_nodes() {
  for (size_t chain = 0; chain < chain_count(); chain++) {
    const ChainPlan &each = plan_.chains[chain];
    if (!each.begins_on_host() || each.passed_on) continue;
    for (uint32_t index = 0; index < plan_.instances_of(each); index++) {
      const Time release = client_.first_release() + each.phase + index * each.period;
      engine_.at(release, [this, chain, index, release] { take_over(chain, index, release); });
    }
  }
}

// release: of what its response counts from.
void OneBoard::take_over(size_t chain, uint32_t index, Time release) {
  if (plan_.chains[chain].waits > 1 && ++arrived_[{chain, index}] < plan_.chains[chain].waits) return;
  client_.note_release(chain, index, release);
  checks_.host_received(chain, index, is_renewed(), engine_.now());
  client_.note_heard(chain, index, engine_.now());
  Bus::Payload payload(kMarkBytes);
  put_mark(payload.data(), {client_.mark_of(chain), index});
  nodes_[chain]->receive(payload);
}

void OneBoard::answer(size_t chain, const Bus::Payload &payload) {
  const Shape shape = plan_.chains[chain].shape;
  client_.note_answered(chain, get_mark(payload.data()).index, engine_.now());
  if (shape == Shape::kHeard || shape == Shape::kHosted) {
    const uint32_t index = get_mark(payload.data()).index;
    const bool is_over = plan_.chains[chain].ends_sampled;
    client_.note_end(chain, index, is_over ? client_.instances(chain)[index].sample_end : engine_.now());
    const std::string &next = plan_.chains[chain].next;
    if (!next.empty()) world_.pass_on(next, index, client_.instances(chain)[index].release);
    return;
  }
  Bus::Payload reply(plan_.chains[chain].reply_bytes, 0x3B);
  const Mark mark = get_mark(payload.data());
  put_mark(std::span(reply), mark);
  const auto publish = [this, chain, reply, mark] {
    const size_t readers = bus_.publish(client_.reply_topic(chain), reply);
    if (readers > 0) checks_.host_answered(chain, mark.index);
  };
  come_back(publish);
}

// From ROS 2 to the agent, in order.
void OneBoard::come_back(std::function<void()> deliver) {
  if (plan_.return_most == 0) {
    deliver();
    return;
  }
  last_return_ = std::max(last_return_, engine_.now() + return_.between(plan_.return_least, plan_.return_most));
  engine_.at(last_return_, std::move(deliver));
}

// ---- the run ----

Time OneBoard::steady_until() const {
  Time first = INT64_MAX - kSecond;
  for (size_t chain = 0; chain < chain_count(); chain++) {
    const ChainPlan &plan = client_.chain_plan(chain);
    first = std::min(first, client_.first_release() + plan.phase + (plan_.instances_of(plan) - 1) * plan.period);
  }
  return first + kSecond;
}

Time OneBoard::last_release() const {
  Time last = 0;
  for (size_t chain = 0; chain < chain_count(); chain++) {
    const ChainPlan &plan = client_.chain_plan(chain);
    last = std::max(last, client_.first_release() + plan.phase + (plan_.instances_of(plan) - 1) * plan.period);
  }
  return last;
}

void OneBoard::schedule_incidents() {
  const Time begin = client_.first_release();
  const Time end = std::max(last_release(), begin + 1);
  engine_.at(begin, [this] {
    up_.set_faults(plan_.up);
    down_.set_faults(plan_.down);
  });
  for (unsigned cut = 0; cut < plan_.cuts; cut++) {
    const Time from = incidents_.between(begin, end);
    const Time to = std::min(from + incidents_.between(0, plan_.cut_maximum), end);
    const auto change = [this](int by) {
      const bool before = cuts_now_ > 0;
      cuts_now_ += static_cast<unsigned>(by);
      const bool after = cuts_now_ > 0;
      if (before == after) return;
      trace_.add(engine_.now(), after ? "cut" : "mended");
      up_.set_cut(after);
      down_.set_cut(after);
      if (!plan_.cut_unplugs) return;
      machine_.core().interrupt(0, [this, after] { after ? client_.link().detach() : client_.link().attach(); });
    };
    engine_.at(from, [change] { change(1); });
    engine_.at(to, [change] { change(-1); });
  }
  for (unsigned restart = 0; restart < plan_.restarts; restart++) {
    const Time outage = incidents_.between(0, plan_.outage_maximum);
    engine_.at(incidents_.between(begin, end), [this, outage] {
      trace_.add(engine_.now(), "agent_restarts");
      host_.restart(outage);
    });
  }
  engine_.at(end, [this] {
    up_.set_faults({});
    down_.set_faults({});
  });
}

Time OneBoard::longest_period() const {
  Time longest = 0;
  for (const ChainPlan &chain : plan_.chains) longest = std::max(longest, chain.period);
  return longest;
}

bool OneBoard::is_done() {
  for (size_t chain = 0; chain < chain_count(); chain++) {
    for (const Instance &instance : client_.instances(chain)) {
      if (instance.sample_end < 0 && instance.release > 0) return false;
    }
  }
  return checks_.is_complete(client_, is_renewed());
}

Time OneBoard::longest_callbacks() const {
  Time longest = kSecond;
  for (const ChainPlan &chain : plan_.chains) longest += chain.sample + chain.act + chain.host;
  return longest;
}

void OneBoard::end() {
  checks_.at_end(client_, is_renewed(), engine_.now());
  client_.stop();
}

namespace {

void add(LineCounters &sum, const LineCounters &more) {
  sum.frames += more.frames;
  sum.bytes += more.bytes;
  sum.lost += more.lost;
  sum.duplicated += more.duplicated;
  sum.corrupted += more.corrupted;
  sum.delayed += more.delayed;
  sum.cut += more.cut;
  sum.refused += more.refused;
}

}  // namespace

void OneBoard::tell(Result &result) {
  const Time until = plan_.steady ? steady_until() : INT64_MAX;
  for (size_t chain = 0; chain < chain_count(); chain++) {
    const ChainPlan &plan = client_.chain_plan(chain);
    ChainResult each{plan.name, plan.level, plan.deadline > 0 ? plan.deadline : plan.period, {}, 0, -1};
    for (const Instance &instance : client_.instances(chain)) {
      if (instance.act_end >= 0) {
        const bool published = plan_.latency_from == LatencyFrom::kStart;
        each.latencies.push_back(instance.act_end - (published ? instance.sample_start : instance.release));
        if (instance.act_end < until)
          each.worst_response = std::max(each.worst_response, instance.act_end - instance.release);
      } else if (instance.release > 0) {
        each.lost++;
      }
      if (!plan_.record || instance.release == 0) continue;
      each.recorded.push_back({instance.release, instance.sample_start, instance.sample_end, instance.heard,
                               instance.answered, instance.act_start, instance.act_end});
    }
    if (const tide_budget_t *budget = client_.budget(plan.level)) {
      const tide_budget_counters_t &counters = budget->counters;
      result.budgets.push_back(
          {plan.level, counters.exhaustions, counters.used_ns, counters.low_ns, counters.overrun_ns});
    }
    result.chains.push_back(std::move(each));
  }
  for (const std::string &violation : checks_.violations()) result.violations.push_back(violation);
  result.publish_failures += client_.publish_failures();
  result.publish_waits += client_.publish_waits();
  result.agent_restarts += host_.restarts();
  add(result.up, up_.counters());
  add(result.down, down_.counters());
  const auto &daemon = client_.session().daemon;
  add(result.transmitter, daemon.transmitter.counters);
  add(result.receiver, daemon.receiver.counters);
  add(result.session, client_.session().counters);
}

void World::pass_on(const std::string &next, uint32_t index, Time release) {
  const auto &[system, chain] = begun_elsewhere.at(next);
  const Time hop = system->hop_to(chain);
  const auto begin = [system = system, chain = chain, index, release] { system->take_over(chain, index, release); };
  hop == 0 ? begin() : engine.after(hop, begin);
}

}  // namespace tide::sim
