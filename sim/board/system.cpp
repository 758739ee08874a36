// SPDX-License-Identifier: Apache-2.0
#include "sim/board/system.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/board/client.h"
#include "sim/board/losses.h"
#include "sim/board/ros.h"
#include "tide/priority.h"
#include "tide/xrce.h"

namespace tide::sim {
namespace {

constexpr Time kTogetherLimit = 150 * kSecond;
constexpr Time kNotice = 6 * kSecond;
constexpr Time kCheckPeriod = 10 * kMillisecond;
constexpr Time kTogether = 10 * kMillisecond;  // from when the last board is set up until all begin
constexpr int kAttempts = 5;
constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15u;

// Counters are plain numbers of one size.
template <typename Number, typename Counters>
void add(Counters &sum, const Counters &more) {
  using Numbers = std::array<Number, sizeof(Counters) / sizeof(Number)>;
  auto numbers = std::bit_cast<Numbers>(sum);
  const auto others = std::bit_cast<Numbers>(more);
  for (size_t index = 0; index < numbers.size(); index++) numbers[index] += others[index];
  sum = std::bit_cast<Counters>(numbers);
}

// Number of the server that several chains share; 0: none. index: of the chain's callbacks on the host.
unsigned server_of(const ChainPlan &plan, size_t index) {
  return index < plan.servers.size() ? plan.servers[index] : 0;
}

uint32_t index_of(const Bus::Payload &payload, size_t bytes) {
  return get_mark(std::span(payload).first(bytes), 0).index;
}

// Between nodes.
Bus::Payload payload_of(const Mark &mark) {
  Bus::Payload payload(kMarkBytes);
  put_mark(payload.data(), mark);
  return payload;
}

// ---- what must hold ----

constexpr size_t kViolationsKept = 8;

bool contains(const std::vector<bool> &seen, uint32_t index) { return index < seen.size() && seen[index]; }

std::string text(const char *where, size_t chain, uint32_t index) {
  return std::string(where) + ": chain " + std::to_string(chain) + ", message " + std::to_string(index);
}

bool has_free_lane(const tide_executor_t &executor, const tide_band_t *band) {
  for (size_t index = 0; index < executor.config.lane_count; index++) {
    const tide_lane_t &lane = executor.config.lanes[index];
    if (lane.band == band && lane.running == nullptr) return true;
  }
  return false;
}

// With several lanes in a band another one may have taken its turn since this one chose, and what is in a group may be
// kept by it: `tide-sim host` looks at those choices where they are made.
bool is_settled(const tide_callback_t &callback) { return callback.group == nullptr && callback.band->only != nullptr; }

// What must hold in every run, whatever the line does to frames.
//
// In each step: no callback starts while a more urgent one is ready or a more urgent frame waits to be digested; no
// frame of a message starts while one of a more urgent level could go; the wire is never idle while one could go; each
// reader has the receive slots that are reserved for it, in its use or free, whatever comes in for others; and where
// there is memory for the fragments of each reader that gets some, each has one or finds one; and the same of
// the nodes of each level that publishes. For each chain, in both directions (and from its timer to a callback of the
// same process): nothing arrives that was not sent, nothing reliable is lost or doubled, and nothing overtakes. At the
// end: every message is delivered, and all nodes, slots and reassemblies are free again.
//
// Where the session began anew (the agent was restarted, or a long cut made the client connect again), reliable
// messages arrive at least once: first arrivals are in order, and answers that were under way may be lost. So may
// requests that waited in an agent that died for a board that serves.
class Checks {
 public:
  Checks(const Plan &plan, size_t chains) : ways_(chains), tide_(plan.policy == Policy::kTide) {
    for (const ChainPlan &chain : plan.chains) budgets_ = budgets_ || chain.budget > 0;
    for (size_t chain = 0; chain < chains; chain++) {
      ways_[chain].reliable = plan.chains[chain].reliable;
      ways_[chain].reply_reliable = plan.chains[chain].is_reply_reliable();
      ways_[chain].asks_board = plan.chains[chain].calls == Calls::kAsks && !plan.chains[chain].next.empty();
      ways_[chain].seen_by_host.resize(plan.instances_of(plan.chains[chain]));
      ways_[chain].seen_by_client.resize(plan.instances_of(plan.chains[chain]));
    }
  }

  void callback_start(const tide_executor_t &executor, const tide_callback_t &callback, Time now) {
    if (!tide_ || !is_settled(callback)) return;
    for (size_t index = 0; index < executor.count; index++) {
      const tide_callback_t *other = executor.config.callbacks[index];
      const bool elsewhere = other->band != callback.band;
      if (elsewhere && budgets_) continue;  // that lane may have used up its budget
      // A lane of a more urgent band would have gone first, unless all wait within a callback or have ended.
      if (other->group != nullptr || (elsewhere && (executor.stopped || !has_free_lane(executor, other->band))))
        continue;
      if (other->pending > 0 && other->priority > callback.priority) {
        violate(now, "a callback starts while a more urgent one is ready");
      }
      if (other->kind != TIDE_CALLBACK_TIMER || other->pending > 0 || other->priority <= callback.priority) continue;
      const auto *timer = reinterpret_cast<const tide_timer_t *>(other);  // its first member
      // Of two lanes that wake at the same time, the less urgent one may be told first.
      const bool due = elsewhere ? timer->next_ns < now : timer->next_ns <= now;
      if (!timer->canceled && due) violate(now, "a callback starts while a more urgent timer is due");
    }
    const tide_source_t &source = executor.config.source;
    if (source.most_urgent(source.context, callback.band->least, callback.band->most) > callback.priority) {
      violate(now, "a callback starts while a more urgent frame waits");
    }
  }

  // Looks at all nodes, not at the head of the queue that the transmitter chose from.
  void frame_start(Client &client, const tide_frame_parts_t &frame, Time now) {
    if (frame.body_bytes == 0) return;
    const tide_transmitter_t &transmitter = client.session().daemon.transmitter;
    for (size_t index = 0; index < transmitter.config.node_count; index++) {
      const tide_node_t &node = transmitter.config.nodes[index];
      if (&node == transmitter.current_node || !tide_queue_contains(&node.entry)) continue;
      if (TIDE_STREAM_LEVEL(node.stream) > TIDE_PRIORITY_LEVEL(frame.priority)) {
        violate(now, "a frame starts while one of a more urgent level could go");
      }
    }
  }

  // Whoever would have to start the frame may be preempted by now, and for long.
  void step_end(Client &client, Time now) {
    const tide_daemon_t &daemon = client.session().daemon;
    slots(daemon.receiver, now);
    reassemblies(daemon.receiver, now);
    const tide_transmitter_t &transmitter = daemon.transmitter;
    nodes(transmitter, now);
    if (!daemon.link_open || transmitter.busy || transmitter.paused) return;
    bool waits = transmitter.control_count > 0;
    int held = -1;
    for (size_t index = 0; index < transmitter.config.stream_count; index++) {
      const tide_output_stream_t &stream = transmitter.config.streams[index];
      if (stream.id == 0) continue;
      waits = waits || stream.acknack_due || stream.heartbeat_due;
      const unsigned level = TIDE_STREAM_LEVEL(stream.id);
      const bool chosen = (transmitter.config.hold_levels[level / 32u] >> level % 32u & 1u) != 0u;
      const bool holds = transmitter.config.hold_until_acknowledged || chosen;
      if (holds && stream.first_unacknowledged != stream.next_to_send) held = std::max(held, static_cast<int>(level));
    }
    const auto *node = reinterpret_cast<const tide_node_t *>(tide_queue_head(&transmitter.execution_buffer));
    waits = waits || (node != nullptr && TIDE_STREAM_LEVEL(node->stream) >= held);
    if (waits) violate(now, "the wire is idle although a frame could go");
  }

  void published(size_t chain, uint32_t index) { ways_[chain].published.push_back(index); }

  void host_received(size_t chain, uint32_t index, bool session_renewed, Time now) {
    Way &way = ways_[chain];
    way.received.push_back(index);
    arrived(way, way.seen_by_host, way.last_received, index, session_renewed, "host", now);
  }

  void host_answered(size_t chain, uint32_t index) { ways_[chain].answered.push_back(index); }

  void acted(size_t chain, uint32_t index, bool session_renewed, Time now) {
    Way &way = ways_[chain];
    way.acted.push_back(index);
    if (!contains(way.seen_by_host, index)) stranger("client", now);
    // A message that came to the host twice is answered twice, and the second answer may be the first to arrive.
    const bool answered_twice = std::count(way.answered.begin(), way.answered.end(), index) > 1;
    if (session_renewed && answered_twice) return;
    arrived(way, way.seen_by_client, way.last_acted, index, session_renewed || answered_twice, "client", now);
  }

  // Of a chain that serves: the client has handed a reply over, and it has come to ROS 2.
  void replied(size_t chain, uint32_t index) { ways_[chain].replied.push_back(index); }
  void host_replied(size_t chain, uint32_t index) { ways_[chain].replies_seen.push_back(index); }
  void stranger(const char *where, Time now) { violate(now, std::string(where) + ": nobody sent that"); }

  void broken(size_t chain, const char *what, Time now) {
    violate(now, "chain " + std::to_string(chain) + ": " + what);
  }

  // Everything that is promised has come; false while something is under way.
  bool is_complete(Client &client, bool session_renewed) const {
    for (size_t chain = 0; chain < ways_.size(); chain++) {
      const Way &way = ways_[chain];
      if (client.unheard(chain) != 0) return false;
      if (!way.reliable || (way.asks_board && session_renewed)) continue;
      for (const uint32_t index : way.published) {
        if (!contains(way.seen_by_host, index)) return false;
      }
      if (session_renewed || !way.reply_reliable) continue;
      if (way.replied.size() != way.replies_seen.size()) return false;
      const tide_reader_t &reader = client.reader(chain);
      if (way.answered.size() != way.acted.size() + reader.dropped) return false;
    }
    return client.session().state == TIDE_SESSION_READY && tide_session_is_idle(&client.session(), 0) &&
           missing_in_pools(client).empty();
  }

  void at_end(Client &client, bool session_renewed, Time now) {
    for (size_t chain = 0; chain < ways_.size(); chain++) {
      const Way &way = ways_[chain];
      if (client.unheard(chain) != 0) broken(chain, "a local message is lost", now);
      if (!way.reliable || (way.asks_board && session_renewed)) continue;
      for (const uint32_t index : way.published) {
        if (!contains(way.seen_by_host, index)) violate(now, text("host", chain, index) + " is lost");
      }
      if (!session_renewed && way.replied != way.replies_seen) {
        violate(now, "chain " + std::to_string(chain) + ": replies of the client are lost, doubled or overtaken");
      }
      const tide_reader_t &reader = client.reader(chain);
      if (!session_renewed && way.reply_reliable && way.answered.size() != way.acted.size() + reader.dropped) {
        violate(now, "client: chain " + std::to_string(chain) + " was answered " + std::to_string(way.answered.size()) +
                         " times, acted " + std::to_string(way.acted.size()) + " times and dropped " +
                         std::to_string(reader.dropped));
      }
    }
    if (client.session().state != TIDE_SESSION_READY) violate(now, "the session is not ready again");
    if (!tide_session_is_idle(&client.session(), 0)) violate(now, "the session has not come to rest");
    const std::string missing = missing_in_pools(client);
    if (!missing.empty()) violate(now, missing);
  }

  // Empty: all is well. The first few only.
  const std::vector<std::string> &violations() const { return violations_; }

 private:
  struct Way {
    bool reliable = false, reply_reliable = false;
    bool asks_board = false;
    std::vector<uint32_t> published, received, answered, acted, replied, replies_seen;
    std::vector<bool> seen_by_host, seen_by_client;
    int64_t last_received = -1, last_acted = -1;
  };

  void arrived(Way &way, std::vector<bool> &seen, int64_t &last, uint32_t index, bool renewed, const char *where,
               Time now) {
    const auto chain = static_cast<size_t>(&way - ways_.data());
    if (index >= seen.size()) {
      stranger(where, now);
      return;
    }
    if (seen[index]) {
      if (!renewed) violate(now, text(where, chain, index) + " comes twice");
      return;
    }
    seen[index] = true;
    if (int64_t{index} < last) violate(now, text(where, chain, index) + " was overtaken");
    last = std::max(last, int64_t{index});
  }

  // Empty: all is free again.
  static std::string missing_in_pools(Client &client) {
    const tide_session_t &session = client.session();
    const tide_transmitter_t &transmitter = session.daemon.transmitter;
    const unsigned reserved = session.reserve != nullptr ? 1 : 0;
    if (transmitter.nodes_in_use != reserved) return "nodes are missing in the pool";
    size_t free = reserved;
    for (const tide_node_t *list : transmitter.free_nodes) {
      for (const tide_node_t *node = list; node != nullptr; node = node->next_free) free++;
    }
    if (free != transmitter.config.node_count) return "nodes are missing in the lists of free ones";
    for (size_t index = 0; index < transmitter.config.stream_count; index++) {
      const tide_output_stream_t &stream = transmitter.config.streams[index];
      if (stream.nodes != 0 || stream.queued != 0) return "a stream counts nodes that it does not have";
    }
    const tide_receiver_t &receiver = session.daemon.receiver;
    for (size_t index = 0; index < receiver.config.slot_count; index++) {
      const tide_slot_t &slot = receiver.config.slots[index];
      if (&slot != receiver.filling && slot.state != 0) return "a frame slot is not free";
    }
    for (size_t index = 0; index < receiver.config.reassembly_count; index++) {
      if (receiver.config.reassemblies[index].state != 0) return "a reassembly is not free";
    }
    return "";
  }

  // Counts the slots themselves, not what the receiver counts.
  void slots(const tide_receiver_t &receiver, Time now) {
    size_t free = 0, owed = 0;
    for (size_t index = 0; index < receiver.config.slot_count; index++) {
      if (receiver.config.slots[index].state == 0) free++;
    }
    for (const tide_account_t *account = &receiver.nobody; account != nullptr; account = account->next) {
      if (account->used < account->reserved) owed += account->reserved - account->used;
    }
    if (free < owed) violate(now, "receive slots that are reserved for a reader are in use by others");
  }

  // Counts who uses which, not what the receiver counts. All are of one size here. A reader is known by its first
  // message: what others took before that is theirs until they give it back.
  void reassemblies(const tide_receiver_t &receiver, Time now) {
    const size_t count = receiver.config.reassembly_count;
    size_t free = 0, known = 0, without = 0;
    bool has_more = false;
    for (size_t index = 0; index < count; index++) free += receiver.config.reassemblies[index].state == 0 ? 1 : 0;
    for (const tide_account_t *account = receiver.nobody.next; account != nullptr; account = account->next) {
      if (account->fragment_bytes == 0) continue;
      size_t used = 0;
      for (size_t index = 0; index < count; index++) {
        const tide_reassembly_t &each = receiver.config.reassemblies[index];
        if (each.state != 0 && each.account == account) used++;
      }
      known++;
      if (used == 0) without++;
      has_more = has_more || used > 1;
    }
    if (known > known_to_fragments_ && has_more) late_to_fragments_ = true;
    if (!has_more) late_to_fragments_ = false;
    known_to_fragments_ = known;
    if (known <= count && free < without && !late_to_fragments_) {
      violate(now, "memory that is kept for a reader's fragments is in use by others");
    }
  }

  // Counts whose nodes are in use, not what the transmitter counts. A level is known by its first message of a class:
  // what others took before that is theirs until they give it back. Runs after each step of the simulation, so it
  // passes once.
  void nodes(const tide_transmitter_t &transmitter, Time now) {
    struct Use {
      size_t free = 0;
      LevelSet used, doubled, known;
    };
    std::array<Use, kNodeClasses> uses;
    for (size_t index = 0; index < transmitter.config.node_count; index++) {
      const tide_node_t &node = transmitter.config.nodes[index];
      Use &use = uses[node.size_class];
      if (node.state == 0 || node.account == TIDE_NODE_OWN) {  // the session's own requests may take any
        use.free++;
        continue;
      }
      const size_t level = TIDE_PRIORITY_LEVEL(node.priority);
      use.doubled.set(level, use.doubled.test(level) || use.used.test(level));
      use.used.set(level);
      const uint32_t smaller = node.size_class == 0 ? 0 : transmitter.config.classes[node.size_class - 1].node_bytes;
      if (node.length > smaller) use.known.set(level);
    }
    for (size_t size_class = 0; size_class < transmitter.config.class_count; size_class++) {
      const Use &use = uses[size_class];
      Levels &levels = levels_[size_class];
      const size_t before = levels.known.count();
      levels.known |= use.known;
      const size_t known = levels.known.count(), without = (levels.known & ~use.used).count();
      const bool has_more = use.doubled.any();
      if (known > before && has_more) levels.late = true;
      if (!has_more) levels.late = false;
      if (known <= transmitter.config.classes[size_class].count && use.free < without && !levels.late) {
        violate(now, "a node that is kept for a level is in use by others");
      }
    }
  }

  void violate(Time now, const std::string &what) {
    if (violations_.size() < kViolationsKept) violations_.push_back(std::to_string(now) + " ns: " + what);
  }

  std::vector<Way> ways_;
  size_t known_to_fragments_ = 0;   // readers
  bool late_to_fragments_ = false;  // one of them became known when another one had more than one reassembly
  static constexpr size_t kNodeClasses = 4, kLevels = 128;
  using LevelSet = std::bitset<kLevels>;
  struct Levels {
    LevelSet known;     // that have used nodes of a class
    bool late = false;  // one of them became known when another one had more than one
  };
  std::array<Levels, kNodeClasses> levels_;
  bool tide_, budgets_ = false;
  std::vector<std::string> violations_;
};

// ---- a board ----

class Trace {
 public:
  explicit Trace(bool kept) : kept_(kept) {}
  void add(Time now, const char *what, int64_t first = -1, int64_t second = -1) {
    char line[128];
    char *end = put(line, line + sizeof line, now);
    *end++ = ' ';
    end = std::copy_n(what, std::strlen(what), end);
    for (const int64_t number : {first, second}) {
      if (number < 0) continue;
      *end++ = ' ';
      end = put(end, line + sizeof line, number);
    }
    *end++ = '\n';
    for (const char *byte = line; byte < end; byte++) {
      hash_ = (hash_ ^ static_cast<uint8_t>(*byte)) * 0x100000001B3u;
    }
    if (kept_) text_.append(line, end);
  }
  std::string text() const { return text_; }
  uint64_t hash() const { return hash_; }

 private:
  // A line is made for each of some thousand events of a seed: printf took a quarter of a campaign.
  static char *put(char *begin, char *end, int64_t number) { return std::to_chars(begin, end, number).ptr; }

  bool kept_;
  std::string text_;
  uint64_t hash_ = 0xCBF29CE484222325u;
};

class OneBoard;

// What boards share.
struct World {
  explicit World(const Plan &plan) : trace(plan.trace) {
    for (const unsigned lanes : plan.hosts)
      hosts.push_back(std::make_unique<HostExecutor>(engine, lanes, seed_of(plan, Chance::kHosts) + hosts.size()));
  }
  // The end of a chain on one board begins one on another.
  void pass_on(const std::string &next, uint32_t index, Time release);
  // A request of one board is on its way to the chain of another one that serves it.
  void note_begun(const std::string &next, uint32_t index, Time release);

  Engine engine;
  Trace trace;
  Bus bus;
  std::vector<std::unique_ptr<HostExecutor>> hosts;
  std::map<unsigned, char> servers;  // of several chains; who they are is where they are
  std::map<std::string, std::pair<OneBoard *, size_t>> begun_elsewhere;  // by name
  std::vector<OneBoard *> changed;  // that have done something in this step; others are as they were
};

// A client, its line, its agent and its nodes in a world that other boards may share.
class OneBoard {
 public:
  OneBoard(World &world, const Plan &plan)
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

  void check_step() {
    machine_.rest();
    checks_.step_end(client_, engine_.now());
  }
  bool is_set_up() const { return client_.is_set_up(); }
  Time first_release() const { return client_.first_release(); }

  // What begins on the host does so by timers there.
  void release_nodes() {
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
  void take_over(size_t chain, uint32_t index, Time release) {
    if (plan_.chains[chain].waits > 1 && ++arrived_[{chain, index}] < plan_.chains[chain].waits) return;
    client_.note_release(chain, index, release);
    checks_.host_received(chain, index, is_renewed(), engine_.now());
    client_.note_heard(chain, index, engine_.now());
    Bus::Payload payload(kMarkBytes);
    put_mark(payload.data(), {client_.mark_of(chain), index});
    nodes_[chain]->receive(payload);
  }

  Time hop_to(size_t chain) const { return plan_.chains[chain].hop; }

  void note_begun(size_t chain, uint32_t index, Time release) {
    client_.note_release(chain, index, release);
    checks_.host_received(chain, index, is_renewed(), engine_.now());
    client_.note_heard(chain, index, engine_.now());
  }

  void schedule_incidents() {
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

  Time last_release() const {
    Time last = 0;
    for (size_t chain = 0; chain < chain_count(); chain++) last = std::max(last, last_release_of(chain));
    return last;
  }

  // From then on not all chains are released any more.
  Time steady_until() const {
    Time first = INT64_MAX - kSecond;
    for (size_t chain = 0; chain < chain_count(); chain++) first = std::min(first, last_release_of(chain));
    return first + kSecond;
  }

  Time longest_period() const {
    Time longest = 0;
    for (const ChainPlan &chain : plan_.chains) longest = std::max(longest, chain.period);
    return longest;
  }

  Time longest_callbacks() const {
    Time longest = kSecond;
    for (const ChainPlan &chain : plan_.chains) longest += chain.sample + chain.act + chain.host;
    return longest;
  }

  bool is_done() {
    for (size_t chain = 0; chain < chain_count(); chain++) {
      for (const Instance &instance : client_.instances(chain)) {
        if (instance.sample_end < 0 && instance.release > 0) return false;
      }
    }
    return checks_.is_complete(client_, is_renewed());
  }

  void end() {
    checks_.at_end(client_, is_renewed(), engine_.now());
    client_.stop();
  }

  bool is_stopped() const { return client_.is_stopped(); }

  void tell(Result &result) {
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
    add<uint64_t>(result.up, up_.counters());
    add<uint64_t>(result.down, down_.counters());
    const auto &daemon = client_.session().daemon;
    add<uint32_t>(result.transmitter, daemon.transmitter.counters);
    add<uint32_t>(result.receiver, daemon.receiver.counters);
    add<uint32_t>(result.session, client_.session().counters);
  }

 private:
  size_t chain_count() const { return plan_.only_first ? 1 : plan_.chains.size(); }
  Time last_release_of(size_t chain) const {
    const ChainPlan &plan = client_.chain_plan(chain);
    return client_.first_release() + plan.phase + (plan_.instances_of(plan) - 1) * plan.period;
  }

  Client::Observer observer() {
    Client::Observer observer;
    observer.callback_start = [this](const tide_executor_t &executor, const tide_callback_t &callback) {
      trace_.add(engine_.now(), "callback", callback.priority, callback.index);
      checks_.callback_start(executor, callback, engine_.now());
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

  void connect() {
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

  void add_node(size_t chain) {
    if (plan_.chains[chain].calls == Calls::kAsks) return add_asking(chain);
    if (plan_.chains[chain].calls == Calls::kServes) return add_serving(chain);
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

  using End = std::function<void(const Bus::Payload &payload)>;

  // next: who is told when it has ended; null: it is the end.
  std::unique_ptr<HostCallback> callback_of(Time execution, unsigned node, unsigned server, HostCallback *next,
                                            End end) {
    HostExecutor *const executor = node == 0 ? nullptr : world_.hosts.at(node - 1).get();
    const void *const shared = server == 0 ? nullptr : &world_.servers[server];
    return std::make_unique<HostCallback>(engine_, execution, executor, shared,
                                          [next, end](const Bus::Payload &payload) {
                                            if (next != nullptr) {
                                              next->receive(payload);
                                            } else {
                                              end(payload);
                                            }
                                          });
  }

  // What follows the callback on the host of that number, from 1, behind those that its message begins beside it.
  End telling(const ChainPlan &plan, size_t done, HostCallback *next, Time hop, const End &end) {
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

  std::unique_ptr<HostCallback> first_of(const ChainPlan &plan, const End &end) {
    HostCallback *const next = followers_of(plan, false, end);
    const Time hop = plan.more_hops_us.empty() ? 0 : plan.more_hops_us.front() * kMicrosecond;
    return callback_of(plan.host, plan.node, server_of(plan, 0), nullptr, telling(plan, 1, next, hop, end));
  }

  // The first of callbacks that follow each other, behind the first or behind the reply; null: there is none.
  HostCallback *followers_of(const ChainPlan &plan, bool after, const End &end) {
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

  void begin_others(size_t chain, size_t done, uint32_t index) {
    const ChainPlan &plan = plan_.chains[chain];
    for (size_t place = 0; place < plan.begins.size(); place++) {
      if (plan.begins_at[place] == done)
        world_.pass_on(plan.begins[place], index, client_.instances(chain)[index].release);
    }
  }

  // From ROS 2 to the agent, in order.
  void come_back(std::function<void()> deliver) {
    if (plan_.return_most == 0) {
      deliver();
      return;
    }
    last_return_ = std::max(last_return_, engine_.now() + return_.between(plan_.return_least, plan_.return_most));
    engine_.at(last_return_, std::move(deliver));
  }

  // The sender's padding may follow.
  bool is_own(size_t chain, const Bus::Payload &payload, size_t least) {
    const bool whole = payload.size() >= least && payload.size() <= least + 3;
    const uint16_t known = client_.mark_of(chain);
    const Mark mark = whole ? get_mark(std::span(payload).first(least), known) : Mark{UINT16_MAX, UINT32_MAX};
    trace_.add(engine_.now(), "host_received", static_cast<int64_t>(chain), mark.index);
    const bool own = whole && mark.chain == known;
    if (!own) checks_.stranger("host", engine_.now());
    return own;
  }

  // A node serves, or the chain of another board.
  void add_asking(size_t chain) {
    const ChainPlan &plan = plan_.chains[chain];
    const std::string &service = plan.service_name();
    bus_.services.watch_requests(service, [this, chain](const Bus::Payload &payload) {
      const size_t bytes = plan_.chains[chain].payload_bytes;
      if (!is_own(chain, payload, bytes)) return;
      const uint32_t index = index_of(payload, bytes);
      checks_.host_received(chain, index, is_renewed(), engine_.now());
      client_.note_heard(chain, index, engine_.now());
      const std::string &next = plan_.chains[chain].next;
      if (!next.empty()) world_.note_begun(next, index, client_.instances(chain)[index].release);
    });
    bus_.services.watch_replies(service, [this, chain](const Bus::Payload &payload) {
      const uint32_t index = index_of(payload, plan_.chains[chain].reply_bytes);
      client_.note_answered(chain, index, engine_.now());
      checks_.host_answered(chain, index);
    });
    bus_.services.carry_replies(service, [this](std::function<void()> deliver) { come_back(std::move(deliver)); });
    if (!plan.next.empty()) {
      nodes_.push_back(nullptr);
      return;
    }
    const End end = [this, chain](const Bus::Payload &payload) {
      const Mark mark = get_mark(payload.data());
      Bus::Payload reply(plan_.chains[chain].reply_bytes, 0x3B);
      put_mark(std::span(reply), mark);
      if (const auto asker = askers_.extract({chain, mark.index}); !asker.empty()) asker.mapped()(reply);
    };
    nodes_.push_back(first_of(plan, end));
    bus_.services.serve(service, [this, chain](const Bus::Payload &payload, Services::Take reply) {
      const Mark mark{client_.mark_of(chain), index_of(payload, plan_.chains[chain].payload_bytes)};
      askers_[{chain, mark.index}] = std::move(reply);
      nodes_[chain]->receive(payload_of(mark));
    });
  }

  // A node asks, or the chain of another board, which notes when an instance begins.
  void add_serving(size_t chain) {
    const ChainPlan &plan = plan_.chains[chain];
    const std::string service = plan.service_name();
    bus_.services.carry_requests(service, [this](std::function<void()> deliver) { come_back(std::move(deliver)); });
    bus_.services.watch_requests(service, [this, chain](const Bus::Payload &payload) {
      const uint32_t index = index_of(payload, plan_.chains[chain].reply_bytes);
      client_.note_answered(chain, index, engine_.now());
      checks_.host_answered(chain, index);
    });
    bus_.services.watch_replies(service, [this, chain](const Bus::Payload &payload) {
      const size_t bytes = plan_.chains[chain].payload_bytes;
      if (!is_own(chain, payload, bytes)) return;
      const uint32_t index = index_of(payload, bytes);
      checks_.host_replied(chain, index);
      if (plan_.chains[chain].is_asked_by_board()) client_.note_end(chain, index, engine_.now());
    });
    if (plan.is_asked_by_board()) {
      nodes_.push_back(nullptr);
      return;
    }
    const End finish = [this, chain](const Bus::Payload &payload) {
      client_.note_end(chain, get_mark(payload.data()).index, engine_.now());
    };
    HostCallback *const after = followers_of(plan, true, finish);
    const End ask = [this, chain, service, after, finish](const Bus::Payload &payload) {
      Bus::Payload request(plan_.chains[chain].reply_bytes, 0x3B);
      const Mark mark = get_mark(payload.data());
      put_mark(std::span(request), mark);
      bus_.services.ask(service, request, [after, finish, mark](const Bus::Payload &) {
        after != nullptr ? after->receive(payload_of(mark)) : finish(payload_of(mark));
      });
    };
    nodes_.push_back(first_of(plan, ask));
  }

  void answer(size_t chain, const Bus::Payload &payload) {
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

  bool is_renewed() { return client_.session().counters.reconnects > 0 || host_.restarts() > 0; }

  World &world_;
  const Plan &plan_;
  Engine &engine_;
  Trace &trace_;
  Checks checks_;
  Line up_, down_;
  Bus &bus_;
  AgentHost host_;
  Machine machine_;
  Client client_;
  Random incidents_, return_;
  Time last_return_ = 0;
  std::vector<std::unique_ptr<HostCallback>> nodes_;              // by chain, the first
  std::vector<std::unique_ptr<HostCallback>> followers_;          // those behind it
  std::map<std::pair<size_t, uint32_t>, Services::Take> askers_;  // by chain and instance, of nodes that serve
  std::map<std::pair<size_t, uint32_t>, unsigned> arrived_;  // by chain and instance, of those that wait for several
  FirstLosses losses_;
  InstanceLosses instance_losses_;
  uint64_t heartbeats_seen_ = 0, heartbeats_answered_ = 0;
  bool acknowledging_ = false;
  unsigned cuts_now_ = 0;
};

void World::pass_on(const std::string &next, uint32_t index, Time release) {
  const auto &[system, chain] = begun_elsewhere.at(next);
  const Time hop = system->hop_to(chain);
  const auto begin = [system = system, chain = chain, index, release] { system->take_over(chain, index, release); };
  hop == 0 ? begin() : engine.after(hop, begin);
}

void World::note_begun(const std::string &next, uint32_t index, Time release) {
  const auto &[system, chain] = begun_elsewhere.at(next);
  system->note_begun(chain, index, release);
}

// ---- all boards of a plan ----

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
    while (!is_set_up() && engine.now() < kTogetherLimit) {
      if (!engine.step(kTogetherLimit)) break;
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

// The smallest sample that at least this share of all samples does not exceed.
Time percentile(const std::vector<Time> &sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

Summary summarise(const ChainResult &chain) {
  Summary summary;
  summary.samples = chain.latencies.size();
  if (summary.samples == 0) return summary;
  std::vector<Time> sorted = chain.latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const Time latency : sorted) {
    squares += (static_cast<double>(latency) - mean) * (static_cast<double>(latency) - mean);
    if (latency > chain.deadline) summary.deadline_misses++;
  }
  summary.minimum = sorted.front();
  summary.p50 = percentile(sorted, 0.5);
  summary.p99 = percentile(sorted, 0.99);
  summary.maximum = sorted.back();
  summary.mean = static_cast<Time>(std::llround(mean));
  summary.deviation = static_cast<Time>(std::llround(std::sqrt(squares / count)));
  return summary;
}

Result simulate(const Plan &plan) {
  std::vector<Plan> boards = boards_of(plan);
  for (const Plan &board : boards) {
    const auto require = [](bool holds, const char *otherwise) {
      if (!holds) throw std::invalid_argument(otherwise);
    };
    require(!board.chains.empty(), "a plan needs a chain");
    require(board.budget == 0, "the simulated client has no budgets; a board has (--board)");
    for (const ChainPlan &chain : board.chains) {
      const auto is_there = [&board](unsigned node) { return node <= board.hosts.size(); };
      require(is_there(chain.node) && std::all_of(chain.more_nodes.begin(), chain.more_nodes.end(), is_there) &&
                  std::all_of(chain.after_nodes.begin(), chain.after_nodes.end(), is_there),
              "a chain names a host executor that is not there");
      require(chain.more_nodes.size() == chain.more_us.size() && chain.after_nodes.size() == chain.after_us.size(),
              "'more_nodes' and 'more_us', 'after_nodes' and 'after_us' have as many entries");
      const bool is_short = chain.payload_bytes < kMarkBytes || chain.reply_bytes < kMarkBytes;
      require(!is_short || plan.instances_of(chain) <= kShortInstances,
              "a payload has at least 6 bytes, or one in at most 256 periods");
      require((chain.calls != Calls::kAsks || chain.shape == Shape::kAnswered) &&
                  (chain.calls != Calls::kServes || chain.shape == Shape::kTold),
              "a chain that asks is answered, and one that serves is told");
    }
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
