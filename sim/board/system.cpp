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
#include "sim/board/nodes.h"
#include "sim/board/ros.h"
#include "sim/board/rtps.h"
#include "tide/framing.h"
#include "tide/priority.h"
#include "tide/xrce.h"

namespace tide::sim {
namespace {

constexpr Time kTogetherLimit = 150 * kSecond;
constexpr Time kNotice = 6 * kSecond;
constexpr Time kCheckPeriod = 10 * kMillisecond;
constexpr Time kTogether = 10 * kMillisecond;  // from the end of the set-up of the last board until all boards begin
constexpr int kAttempts = 5;
constexpr int kLoadPriority = 250;  // more urgent than everything else that a board executes
constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15u;

// Adds structures of counters, all of whose members have the type Number.
template <typename Number, typename Counters> void add(Counters &sum, const Counters &more) {
  using Numbers = std::array<Number, sizeof(Counters) / sizeof(Number)>;
  auto numbers = std::bit_cast<Numbers>(sum);
  const auto others = std::bit_cast<Numbers>(more);
  for (size_t index = 0; index < numbers.size(); index++) numbers[index] += others[index];
  sum = std::bit_cast<Counters>(numbers);
}

// Numbers the instances of some timers and events consecutively, from 0.
class Instances {
 public:
  Instances(const Plan &plan, const Graph &graph, const std::set<size_t> &roots) {
    for (const size_t root : roots) {
      const uint32_t count = plan.instances_of(graph.callbacks[graph.roots[root]].period);
      spans_.push_back({root, size_, count});
      size_ += count;
    }
  }
  size_t size() const { return size_; }
  // Number of the instance with this mark; SIZE_MAX if it is not among the numbered ones.
  size_t number(const Mark &mark) const {
    for (const Span &span : spans_)
      if (span.root == mark.root && mark.index < span.count) return span.first + mark.index;
    return SIZE_MAX;
  }
  Mark mark(size_t number) const {
    auto span = spans_.begin();
    while (number >= span->first + span->count) ++span;
    return {static_cast<uint16_t>(span->root), static_cast<uint32_t>(number - span->first)};
  }

 private:
  struct Span {
    size_t root, first;
    uint32_t count;
  };
  std::vector<Span> spans_;
  size_t size_ = 0;
};

Bus::Payload payload_of(const MessagePlan &message, const Mark &mark, uint8_t fill) {
  Bus::Payload payload(message.bytes, message.escaped ? TIDE_FRAMING_ESCAPE : fill);
  put_mark(std::span(payload), mark);
  return payload;
}

// ---- rules that must hold ----

constexpr size_t kViolationsKept = 8;

bool has_free_lane(const tide_executor_t &executor, const tide_band_t *band) {
  for (size_t index = 0; index < executor.config.lane_count; index++) {
    const tide_lane_t &lane = executor.config.lanes[index];
    if (lane.band == band && lane.running == nullptr) return true;
  }
  return false;
}

// True if the choice of this callback can still be checked when the callback starts. It cannot with groups or several
// lanes in a band: another lane may meanwhile have chosen a callback and so blocked others of its group. `tide-sim
// host` checks such choices when they are made.
bool is_settled(const tide_callback_t &callback) { return callback.group == nullptr && callback.band->only != nullptr; }

// Conditions that hold in every run, whatever the faults on the line.
//
// In each step: (1) No callback starts while a more urgent one is ready or a more urgent frame waits to be processed.
// (2) No frame of a message starts while a frame of a more urgent level could be sent, and the line is never idle while
// a frame could be sent. (3) Each reader has its reserved receive slots, used or free, whatever messages arrive for
// other readers. (4) If there are as many reassemblies as readers of fragmented messages, each of these readers uses
// one or finds a free one; the same holds for the nodes and the publishing levels. For each message, from a board to
// ROS 2 (up) and from ROS 2 to each reader of a board (down): only messages that were sent arrive, no reliable message
// is lost or duplicated, and no message overtakes another. At the end: every reliable message has been delivered, and
// all nodes, slots and reassemblies are free again.
//
// After a new session (because the agent was restarted, or the client reconnected after a long cut), these rules are
// weaker: reliable messages from a board arrive at least once, and their first arrivals are in order. Messages to the
// board may be lost, and also requests and replies that wait in an agent that ends.
class Checks {
 public:
  Checks(const Plan &plan, const Graph &graph, int board) : graph_(graph), tide_(plan.policy == Policy::kTide) {
    for (size_t number = 0; number < graph.messages.size(); number++) {
      const MessagePlan &message = graph.messages[number];
      if (message.carry == Carry::kLocal) continue;
      if (graph.is_on_board(message.sender, board)) ups_.emplace(number, Way(plan, graph, message, message.reliable));
      for (const size_t input : message.inputs)
        if (graph.is_on_board(graph.inputs[input].callback, board))
          downs_.emplace(input, Way(plan, graph, message, graph.inputs[input].reliable));
    }
    for (size_t callback = 0; callback < graph.callbacks.size(); callback++)
      budgets_ = budgets_ || (graph.is_on_board(callback, board) && graph.callbacks[callback].budget > 0);
  }

  void callback_start(const tide_executor_t &executor, const tide_callback_t &callback, Time now) {
    if (!tide_ || !is_settled(callback)) return;
    for (size_t index = 0; index < executor.count; index++) {
      const tide_callback_t *other = executor.config.callbacks[index];
      const bool elsewhere = other->band != callback.band;
      if (elsewhere && budgets_) continue;  // the lane of the other callback may have used up its budget
      // A lane of a more urgent band would have run first, unless all lanes of that band are in a callback or have
      // ended.
      if (other->group != nullptr || (elsewhere && (executor.stopped || !has_free_lane(executor, other->band))))
        continue;
      if (other->pending > 0 && other->priority > callback.priority) {
        violate(now, "a callback starts while a more urgent one is ready");
      }
      if (other->kind != TIDE_CALLBACK_TIMER || other->pending > 0 || other->priority <= callback.priority) continue;
      const auto *timer = reinterpret_cast<const tide_timer_t *>(other);  // the callback is the timer's first member
      // If the timers of two lanes expire at the same time, the less urgent lane may be woken first.
      const bool due = elsewhere ? timer->next_ns < now : timer->next_ns <= now;
      if (!timer->canceled && due) violate(now, "a callback starts while a more urgent timer is due");
    }
    const tide_source_t &source = executor.config.source;
    if (source.most_urgent(source.context, callback.band->least, callback.band->most) > callback.priority) {
      violate(now, "a callback starts while a more urgent frame waits");
    }
  }

  // Inspects all nodes, so that the check does not rely on the transmitter's queue.
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

  // Checks after each step that the pools keep their reservations, and that the line is not idle while a frame could be
  // sent.
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

  // For messages from the board: published() is called when the session has accepted the message, and received() when
  // it has arrived in ROS 2. received() returns false if the message belongs to no instance.
  void published(size_t message, const Mark &mark) { ups_.at(message).send(mark); }
  bool received(size_t message, const Mark &mark, bool renewed, Time now) {
    Way &way = ups_.at(message);
    return arrived(way, mark, renewed, "host", now);
  }

  // For messages to the board: offered() is called when the agent has the message for a reader of the board, and took()
  // when the board has taken it.
  bool offered(size_t input, const Mark &mark) { return downs_.at(input).send(mark); }
  void took(size_t input, const Mark &mark, bool renewed, Time now) {
    Way &way = downs_.at(input);
    const size_t number = way.instances.number(mark);
    way.got++;
    // If a message reached the host twice, its answer is sent down twice, and the second copy may arrive first.
    const bool twice = number != SIZE_MAX && way.sent[number] > 1;
    if (renewed && twice) return;
    if (number == SIZE_MAX || way.sent[number] == 0) return stranger("client", now);
    arrived(way, mark, renewed || twice, "client", now);
  }
  void stranger(const char *where, Time now) { violate(now, std::string(where) + ": nobody sent that"); }

  void broken_wire(const char *what, Time now) { violate(now, what); }
  void broken(size_t callback, const char *what, Time now) {
    violate(now, "callback '" + graph_.callbacks[callback].name + "': " + what);
  }

  // Number of messages that have arrived. Repeated arrivals do not count, because a message that is sent again and
  // again must not keep a run going.
  uint64_t arrivals() const { return arrivals_; }

  // True if all messages that must arrive have arrived, and the pools are free. `unmatched` is the number of replies
  // that the agent has dropped and counted. `overwritten`: an RTPS history was too small, so samples may be lost.
  bool is_complete(Client &client, uint64_t unmatched, bool renewed, bool overwritten) const {
    if (client.unheard() != 0) return false;
    for (const auto &[message, way] : ups_)
      if (way.promises(renewed) && !overwritten && way.first_missing() != SIZE_MAX) return false;
    for (const auto &[input, way] : downs_)
      if (way.reliable && !renewed && !way.has_all(client.dropped(input), unmatched)) return false;
    return client.session().state == TIDE_SESSION_READY && tide_session_is_idle(&client.session(), 0) &&
           missing_in_pools(client).empty();
  }

  void at_end(Client &client, uint64_t unmatched, bool renewed, bool overwritten, Time now) {
    if (client.unheard() != 0) violate(now, "a local message is lost");
    for (const auto &[message, way] : ups_) {
      const size_t missing = way.promises(renewed) && !overwritten ? way.first_missing() : SIZE_MAX;
      if (missing != SIZE_MAX) violate(now, text("host", way, way.instances.mark(missing)) + " is lost");
    }
    for (const auto &[input, way] : downs_) {
      const uint32_t dropped = client.dropped(input);
      if (!way.reliable || renewed || way.has_all(dropped, unmatched)) continue;
      violate(now, "client: message '" + way.message.name + "' was sent " + std::to_string(way.sent_count) +
                       " times, taken " + std::to_string(way.got) + " times and dropped " + std::to_string(dropped));
    }
    if (client.session().state != TIDE_SESSION_READY) violate(now, "the session is not ready again");
    if (!tide_session_is_idle(&client.session(), 0)) violate(now, "the session has not come to rest");
    const std::string missing = missing_in_pools(client);
    if (!missing.empty()) violate(now, missing);
  }

  // The first few violations; empty: none.
  const std::vector<std::string> &violations() const { return violations_; }

 private:
  // State of one message in one direction. By instance: how often the message was sent, and whether it arrived.
  struct Way {
    Way(const Plan &plan, const Graph &graph, const MessagePlan &of, bool is_reliable)
        : message(of),
          reliable(is_reliable),
          instances(plan, graph, of.roots),
          sent(instances.size()),
          seen(instances.size()),
          last(graph.roots.size(), -1) {
      const bool to_board =
          of.carry == Carry::kRequest && graph.callbacks[graph.inputs[of.inputs[0]].callback].board >= 0;
      waits_in_agent = to_board || of.carry == Carry::kReply;
    }
    bool send(const Mark &mark) {
      const size_t number = instances.number(mark);
      if (number == SIZE_MAX) return false;
      sent_count++;
      sent[number]++;
      return true;
    }
    // True if each message was taken, was dropped by a full queue, or is a reply that the agent dropped. Subtracts such
    // replies from `unmatched`.
    bool has_all(uint64_t dropped, uint64_t &unmatched) const {
      const uint64_t accounted = got + dropped;
      const uint64_t missing = accounted < sent_count ? sent_count - accounted : 0;
      if (accounted > sent_count || (missing > 0 && (message.carry != Carry::kReply || missing > unmatched)))
        return false;
      unmatched -= missing;
      return true;
    }
    bool promises(bool renewed) const { return reliable && !(renewed && waits_in_agent); }
    size_t first_missing() const {
      for (size_t number = 0; number < sent.size(); number++)
        if (sent[number] > 0 && !seen[number]) return number;
      return SIZE_MAX;
    }

    const MessagePlan &message;
    bool reliable;
    Instances instances;
    bool waits_in_agent = false;
    std::vector<uint32_t> sent;
    std::vector<bool> seen;
    std::vector<int64_t> last;  // by root (Graph::roots): the highest instance number that has arrived
    size_t sent_count = 0, got = 0;
  };

  static std::string text(const char *where, const Way &way, const Mark &mark) {
    return std::string(where) + ": message '" + way.message.name + "' of instance " + std::to_string(mark.index);
  }

  bool arrived(Way &way, const Mark &mark, bool renewed, const char *where, Time now) {
    const size_t number = way.instances.number(mark);
    if (number == SIZE_MAX) {
      stranger(where, now);
      return false;
    }
    if (way.seen[number]) {
      if (!renewed && way.message.keeps_order) violate(now, text(where, way, mark) + " comes twice");
      return true;
    }
    way.seen[number] = true;
    arrivals_++;
    int64_t &last = way.last[mark.root];
    if (mark.index < last && way.message.keeps_order) violate(now, text(where, way, mark) + " was overtaken");
    last = std::max(last, int64_t{mark.index});
    return true;
  }

  // Describes what is still in use at the end of a run; empty if nothing is.
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

  // Counts the free slots itself, because the receiver's counters are under test.
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

  // Counts used reassemblies itself, because the receiver's counters are under test. All reassemblies have the same
  // size here. The receiver knows a reader from its first fragmented message on, and reserves nothing for it before.
  // Other readers may then keep several reassemblies until they return them.
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

  // Counts the levels of used nodes itself, because the transmitter's counters are under test. The transmitter knows a
  // level in a size class from its first message of this class on, and reserves nothing for it before. Other levels may
  // then keep several nodes until they return them. Levels whose numbers differ by 32 count as one
  // (tide/transmitter.h). The function makes only one pass over the nodes, because it runs after each step.
  void nodes(const tide_transmitter_t &transmitter, Time now) {
    struct Use {
      size_t free = 0;
      LevelSet used, known;
    };
    std::array<Use, kNodeClasses> uses;
    for (size_t index = 0; index < transmitter.config.node_count; index++) {
      const tide_node_t &node = transmitter.config.nodes[index];
      Use &use = uses[node.size_class];
      if (node.state == 0 || node.account == TIDE_NODE_OWN) {  // the session's own requests may use any node
        use.free++;
        continue;
      }
      const size_t level = TIDE_PRIORITY_LEVEL(node.priority) % kLevels;
      use.used.set(level);
      if (node.length == 0) continue;
      // Determines the class that was requested: the smallest one that fits the first sample. The node may be of a
      // larger class, and then later samples may follow the first one in it.
      const uint32_t first = node.bytes[2] | static_cast<uint32_t>(node.bytes[3]) << 8;
      const uint32_t asked =
          first == 0 ? node.length : std::min(node.length, first + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
      size_t fits = 0;
      while (transmitter.config.classes[fits].node_bytes < asked) fits++;
      uses[fits].known.set(level);
    }
    for (size_t size_class = 0; size_class < transmitter.config.class_count; size_class++) {
      const Use &use = uses[size_class];
      Levels &levels = levels_[size_class];
      const size_t before = levels.known.count();
      levels.known |= use.known;
      const size_t known = levels.known.count(), without = (levels.known & ~use.used).count();
      const bool lacks = use.free < without;
      levels.late = lacks && (levels.late || known > before);
      if (known <= transmitter.config.classes[size_class].count && lacks && !levels.late) {
        violate(now, "a node that is kept for a level is in use by others");
      }
    }
  }

  void violate(Time now, const std::string &what) {
    if (violations_.size() < kViolationsKept) violations_.push_back(std::to_string(now) + " ns: " + what);
  }

  const Graph &graph_;
  std::map<size_t, Way> ups_, downs_;  // by message, and by input
  size_t known_to_fragments_ = 0;      // number of readers of fragmented messages known so far
  bool late_to_fragments_ = false;     // a reader became known while another reader had several reassemblies
  static constexpr size_t kNodeClasses = 4, kLevels = 32;
  using LevelSet = std::bitset<kLevels>;
  struct Levels {
    LevelSet known;     // levels that have used nodes of a class
    bool late = false;  // since a new level became known, there have been fewer free nodes than levels without a node
  };
  std::array<Levels, kNodeClasses> levels_;
  uint64_t arrivals_ = 0;
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
  // Without printf, which took a quarter of a campaign's time: each seed writes a line for each of some thousand
  // events.
  static char *put(char *begin, char *end, int64_t number) { return std::to_chars(begin, end, number).ptr; }

  bool kept_;
  std::string text_;
  uint64_t hash_ = 0xCBF29CE484222325u;
};

class OneBoard;

// Everything outside of the boards: the nodes of the host, the routes of messages between nodes and boards, and the
// measurements.
class World {
 public:
  World(const Plan &plan, const Graph &graph)
      : trace(plan.trace), shipped(engine, plan, graph, observer()), plan_(plan), graph_(graph) {
    for (const ExecutorPlan &executor : plan.executors)
      hosts_.push_back(
          std::make_unique<HostExecutor>(engine, executor.lanes, seed_of(plan, Chance::kHosts) + hosts_.size()));
    for (const CallbackPlan &callback : graph.callbacks) {
      HostExecutor *const executor = callback.executor == 0 ? nullptr : hosts_.at(callback.executor - 1).get();
      const void *const group = callback.group == 0 ? nullptr : &exclusive_[{callback.executor, callback.group}];
      nodes_.push_back(
          callback.board >= 0 ? nullptr : std::make_unique<HostCallback>(engine, callback.execution, executor, group));
      runs_.emplace_back(Instances(plan, graph, callback.roots));
    }
    for (const MessagePlan &message : graph.messages) crossings_.emplace_back(Instances(plan, graph, message.roots));
    for (const size_t root : graph.roots) releases_.emplace_back(plan.instances_of(graph.callbacks[root].period), -1);
    for (size_t request = 0; request < graph.messages.size(); request++) serve(request);
  }

  // ---- the host ----

  // Releases the callbacks of the host that timers or events start.
  void release_nodes(Time first_release) {
    shipped.start(first_release);
    Random random(seed_of(plan_, Chance::kReleases));
    for (const size_t number : graph_.roots) {
      const CallbackPlan &callback = graph_.callbacks[number];
      if (callback.board >= 0 || shipped.has(number)) continue;
      const uint32_t count = plan_.instances_of(callback.period);
      const Time first = first_release + callback.phase;
      std::vector<Time> releases;
      if (callback.burst > 0) releases = event_times(callback, count, first, random);
      for (uint32_t index = 0; callback.burst == 0 && index < count; index++)
        releases.push_back(first + index * callback.period);
      for (uint32_t index = 0; index < releases.size(); index++) {
        const Mark mark{static_cast<uint16_t>(callback.root), index};
        const Time release = releases[index], late = callback.burst > 0 ? 0 : lateness(callback, random);
        engine.at(release + late, [this, number, mark, release] {
          released(mark, release);
          start(number, mark);
        });
      }
    }
  }

  // Call this when a message from a board or a node has arrived in ROS 2.
  void cross(size_t number, const Mark &mark) {
    const MessagePlan &message = graph_.messages[number];
    crossings_[number].note(mark, engine.now(), engine.now());
    if (message.carry == Carry::kTopic) deliver(message, mark);
  }

  // ---- measurements ----

  void released(const Mark &mark, Time release) { releases_[mark.root][mark.index] = release; }
  void ran(size_t callback, const Mark &mark, Time start, Time end) {
    runs_[callback].note(mark, start, end, graph_.callbacks[callback].inputs.size() > 1);
  }
  ChainResult result(const PathPlan &path, Time until) const;
  Records records() const;

  // True if no message is under way between nodes, and no callback of a shipped executor waits or runs.
  bool is_quiet() const { return hops_ == 0 && shipped.is_quiet(); }

  Engine engine;
  Trace trace;
  Nodes shipped;
  Bus bus;
  std::vector<OneBoard *> boards;
  std::vector<OneBoard *> changed;  // boards that acted in this step; the others are unchanged

 private:
  // Start and end of each instance, for one callback or message.
  struct Times {
    explicit Times(Instances numbers) : instances(std::move(numbers)), all(instances.size(), {-1, -1}) {}
    // If this is not the first run for the instance: with `again`, the later end counts, otherwise the first one.
    void note(const Mark &mark, Time start, Time end, bool again = false) {
      const size_t number = instances.number(mark);
      if (number == SIZE_MAX) return;  // an unknown instance, which Checks reports
      auto &[from, to] = all[number];
      if (from < 0) from = start;
      if (to < 0 || again) to = end;
    }
    std::pair<Time, Time> of(const Mark &mark) const { return all[instances.number(mark)]; }
    Instances instances;
    std::vector<std::pair<Time, Time>> all;
  };

  void deliver(const MessagePlan &message, const Mark &mark);

  void receive(size_t callback, const Mark &mark) {
    const CallbackPlan &plan = graph_.callbacks[callback];
    if (plan.joins && ++joined_[{callback, mark}] < plan.inputs.size()) return;
    start(callback, mark);
  }

  void start(size_t callback, const Mark &mark) {
    if (shipped.has(callback)) return shipped.receive(callback, mark);
    nodes_[callback]->run([this, callback, mark, from = engine.now()] { end(callback, mark, from, engine.now()); });
  }

  void end(size_t callback, const Mark &mark, Time from, Time to) {
    ran(callback, mark, from, to);
    for (const size_t message : graph_.callbacks[callback].messages)
      if (mark.index % graph_.messages[message].step == 0) send(message, mark);
  }

  Nodes::Observer observer() {
    return {[this](const Mark &mark, Time release) { released(mark, release); },
            [this](const char *what, size_t callback, const Mark &mark) {
              trace.add(engine.now(), what, static_cast<int64_t>(callback), mark.index);
            },
            [this](size_t callback, const Mark &mark, Time from, Time to) { end(callback, mark, from, to); }};
  }

  bool is_on_board(size_t callback) const { return graph_.callbacks[callback].board >= 0; }
  size_t receiver_of(const MessagePlan &message) const { return graph_.inputs[message.inputs[0]].callback; }

  // Sends a message of a callback of the host.
  void send(size_t number, const Mark &mark) {
    const MessagePlan &message = graph_.messages[number];
    const bool to_board = !message.inputs.empty() && is_on_board(receiver_of(message));
    if (message.carry == Carry::kRequest && to_board) {
      bus.services.ask(message.name, payload_of(message, mark, 0x3B), [this, &message, mark](const Bus::Payload &) {
        deliver(graph_.messages[message.answered_by], mark);
      });
    } else if (message.carry == Carry::kReply && to_board) {
      const auto asker = askers_.extract({number, mark});
      if (!asker.empty()) asker.mapped()(payload_of(message, mark, 0x3B));
    } else {
      cross(number, mark);
      if (message.carry != Carry::kTopic) deliver(message, mark);
    }
  }

  // Registers the node that serves these requests, if a board sends such requests.
  void serve(size_t request) {
    const MessagePlan &message = graph_.messages[request];
    if (message.carry != Carry::kRequest || !is_on_board(message.sender) || is_on_board(receiver_of(message))) return;
    auto marks = std::make_shared<MarkReader>(message);
    bus.services.serve(message.name,
                       [this, &message, request, marks](const Bus::Payload &payload, Services::Take reply) {
                         const Mark mark = marks->read(payload, 3);
                         if (crossings_[request].instances.number(mark) == SIZE_MAX)
                           return;  // Checks of the board has reported the error
                         askers_[{message.answered_by, mark}] = std::move(reply);
                         receive(receiver_of(message), mark);
                       });
  }

  const Plan &plan_;
  const Graph &graph_;
  std::vector<std::unique_ptr<HostExecutor>> hosts_;
  std::map<std::pair<unsigned, unsigned>, char> exclusive_;   // the address of an element identifies a group
  std::vector<std::unique_ptr<HostCallback>> nodes_;          // by callback; null if it is on a board
  std::vector<Times> runs_, crossings_;                       // by callback, and by message
  std::vector<std::vector<Time>> releases_;                   // by timer and instance; -1 if it is not released
  size_t hops_ = 0;                                           // number of messages under way between executors
  std::map<std::pair<size_t, Mark>, size_t> joined_;          // by callback and instance: number of its messages that
                                                              // have arrived
  std::map<std::pair<size_t, Mark>, Services::Take> askers_;  // by reply and instance: where to send the reply
};

// A board's program, its line and its agent, in a world that may contain other boards.
class OneBoard {
 public:
  OneBoard(World &world, const Plan &plan, const Graph &graph, int board)
      : world_(world),
        plan_(plan),
        graph_(graph),
        board_(board),
        engine_(world.engine),
        trace_(world.trace),
        checks_(plan, graph, board),
        up_(engine_, plan.rtps_mbit > 0 ? 0 : plan.baud, seed_of(plan, Chance::kUp)),
        down_(engine_, plan.baud, seed_of(plan, Chance::kDown)),
        bus_(world.bus),
        machine_(engine_),
        client_(machine_, up_, plan, graph, board, observer()),
        incidents_(seed_of(plan, Chance::kIncidents)),
        return_(seed_of(plan, Chance::kReturn)),
        losses_(plan),
        instance_losses_(plan, graph, board) {
    if (plan.rtps_mbit > 0) {
      rtps_ = std::make_unique<RtpsWire>(machine_, client_.link(), plan, graph, board);
    } else {
      host_ = std::make_unique<AgentHost>(
          engine_, bus_, down_,
          AgentHost::Manner{plan.agent_least, plan.agent_most, plan.agent_acknowledges, plan.agent_heartbeat_delay,
                            plan.delay_slot, plan.agent_slots_us},
          seed_of(plan, Chance::kLatency));
    }
    connect();
    for (size_t number = 0; number < graph.messages.size(); number++) watch(number);
  }

  void check_step() {
    machine_.rest();
    checks_.step_end(client_, engine_.now());
  }
  bool is_set_up() const { return client_.is_set_up(); }
  Time first_release() const { return client_.first_release(); }

  // Publishes a sample in ROS 2 for one of the board's readers.
  void deliver(size_t input, const Mark &mark) {
    const MessagePlan &message = graph_.messages[graph_.inputs[input].message];
    const uint8_t fill = graph_.callbacks[message.sender].board < 0 ? 0x3B : 0x2E;
    if (rtps_ != nullptr) {
      checks_.offered(input, mark);
      rtps_->publish(input, payload_of(message, mark, fill));
      return;
    }
    come_back([this, input, mark, payload = payload_of(message, mark, fill)] {
      if (bus_.publish(topic_of(graph_, input), payload) > 0) checks_.offered(input, mark);
    });
  }

  // Starts the described loads, which use the board's core until the run ends. A load that sleeps executes the rest of
  // each run so late that it ends just before the next one, however other loads and interrupts delay it.
  void start_loads() {
    Time spare = plan_.interrupt_receive + plan_.interrupt_complete > 0 ? kMillisecond / 2 : 0;
    for (const LoadPlan &load : graph_.loads) spare += load.board == board_ ? 2 * load.execution : 0;
    for (const LoadPlan &load : graph_.loads) {
      if (load.board != board_) continue;
      const Time first = client_.first_release() + load.phase;
      if (load.masks) {
        mask(load, first);
        continue;
      }
      loads_.push_back(std::make_unique<Task>(machine_.core(), "load", kLoadPriority, [this, &load, first, spare] {
        Random random(seed_of(plan_, Chance::kLoads) + static_cast<uint64_t>(load.period));
        for (Time next = first;; next += load.period) {
          Task::current()->block(next);
          if (load.asks) tide_session_ping(&client_.session());
          const Time before = load.sleeps ? random.between(0, load.execution - 1) : load.execution;
          if (before > 0) Task::current()->execute(before);
          if (before == load.execution) continue;
          const Time latest = next + load.period - (load.execution - before) - (spare - 2 * load.execution);
          if (latest > engine_.now())
            Task::current()->block(random.chance(0.7) ? latest : random.between(engine_.now(), latest));
          Task::current()->execute(load.execution - before);
        }
      }));
    }
  }

  void schedule_incidents(Time last_release) {
    const Time begin = client_.first_release();
    const Time end = std::max(last_release, begin + 1);
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
        if (host_ != nullptr) host_->restart(outage);
      });
    }
    engine_.at(end, [this] {
      up_.set_faults({});
      down_.set_faults({});
    });
  }

  bool is_done() {
    return client_.is_settled() && (rtps_ == nullptr || rtps_->is_idle()) &&
           checks_.is_complete(client_, replies_unmatched(), is_renewed(), has_overwritten());
  }
  uint64_t arrivals() const { return checks_.arrivals(); }
  bool has_overwritten() const { return rtps_ != nullptr && rtps_->has_overwritten(); }

  void end() {
    checks_.at_end(client_, replies_unmatched(), is_renewed(), has_overwritten(), engine_.now());
    client_.stop();
  }

  bool is_stopped() const { return client_.is_stopped(); }

  void tell(Result &result) {
    for (const auto &[level, budget] : client_.budgets()) {
      const tide_budget_counters_t &counters = budget->counters;
      result.budgets.push_back({level, counters.exhaustions, counters.used_ns, counters.low_ns, counters.overrun_ns});
    }
    for (const std::string &violation : checks_.violations()) result.violations.push_back(violation);
    result.publish_failures += client_.publish_failures();
    result.publish_waits += client_.publish_waits();
    result.agent_restarts += restarts();
    if (rtps_ != nullptr) {
      for (const char *pool : rtps_->full()) result.full.emplace_back(pool);
    }
    add<uint64_t>(result.up, rtps_ != nullptr ? rtps_->counters() : up_.counters());
    add<uint64_t>(result.down, down_.counters());
    const auto &daemon = client_.session().daemon;
    add<uint32_t>(result.transmitter, daemon.transmitter.counters);
    add<uint32_t>(result.receiver, daemon.receiver.counters);
    add<uint32_t>(result.session, client_.session().counters);
  }

 private:
  Client::Observer observer() {
    Client::Observer observer;
    observer.callback_start = [this](const tide_executor_t &executor, const tide_callback_t &callback) {
      trace_.add(engine_.now(), "callback", callback.priority, callback.index);
      checks_.callback_start(executor, callback, engine_.now());
    };
    observer.released = [this](const Mark &mark, Time release) { world_.released(mark, release); };
    observer.ran = [this](size_t callback, size_t, const Mark &mark, Time start, Time end) {
      world_.ran(callback, mark, start, end);
    };
    observer.sent = [this](size_t message, const Mark &mark, bool accepted) {
      trace_.add(engine_.now(), accepted ? "published" : "refused", mark.root, mark.index);
      if (accepted) checks_.published(message, mark);
    };
    observer.took = [this](size_t input, const Mark &mark) {
      trace_.add(engine_.now(), "acted", mark.root, mark.index);
      checks_.took(input, mark, is_renewed(), engine_.now());
    };
    observer.strange_sample = [this](size_t) { checks_.stranger("client", engine_.now()); };
    observer.broken = [this](size_t callback, const char *what) { checks_.broken(callback, what, engine_.now()); };
    observer.event = [this](const char *what) { trace_.add(engine_.now(), what); };
    return observer;
  }

  void connect() {
    machine_.on_change = [this] { world_.changed.push_back(this); };
    up_.deliver = [this](const Line::Bytes &frame) { rtps_ != nullptr ? rtps_->write(frame) : host_->receive(frame); };
    if (rtps_ != nullptr) {
      client_.is_discovered = [this] { return rtps_->is_discovered(); };
      rtps_->on_left = [this](size_t bytes) { trace_.add(engine_.now(), "datagram_up", static_cast<int64_t>(bytes)); };
      rtps_->broken = [this](const char *what) { checks_.broken_wire(what, engine_.now()); };
      rtps_->lost = [this](size_t level) {
        return client_.is_set_up() && instance_losses_.lost(level, engine_.now() - client_.first_release());
      };
      rtps_->ask = [this](size_t message, const Bus::Payload &payload, Bus::Receive reply) {
        bus_.services.ask(graph_.messages[message].name, payload, std::move(reply));
      };
    }
    up_.refuse = [this](const Line::Bytes &) {
      if (!client_.is_set_up() || rtps_ != nullptr) return false;
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
    if (host_ != nullptr) observe_agent();
    client_.link().on_start = [this](const tide_frame_parts_t &parts) {
      std::vector<uint8_t> message(parts.head, parts.head + parts.head_bytes);
      message.insert(message.end(), parts.body, parts.body + parts.body_bytes);
      trace_.add(engine_.now(), "line_up", parts.priority, static_cast<int64_t>(message.size() + parts.tail_bytes));
      instance_losses_.begin(Way::kUp, message);
      if (losses_.begin(message).submessage == TIDE_XRCE_HEARTBEAT) client_.note_heartbeat();
      checks_.frame_start(client_, parts, engine_.now());
    };
  }

  void observe_agent() {
    host_->on_input = [this](agent::Bytes message) {
      const Glance seen = glance(message);
      trace_.add(engine_.now(), "agent_input", seen.submessage, seen.header.sequence);
      if (seen.submessage == TIDE_XRCE_HEARTBEAT) heartbeats_seen_++;
    };
    host_->on_output = [this](agent::Bytes message) {
      const Glance seen = glance(message);
      instance_losses_.begin(Way::kDown, message);
      trace_.add(engine_.now(), "agent_output", seen.submessage, seen.header.sequence);
      acknowledging_ = seen.submessage == TIDE_XRCE_ACKNACK;
      if (acknowledging_) heartbeats_answered_ = heartbeats_seen_;
    };
  }

  // A load that masks interrupts is simulated by an interrupt of the same length, because interrupts wait for one
  // another.
  void mask(const LoadPlan &load, Time time) {
    engine_.at(time, [this, &load, time] {
      machine_.core().interrupt(load.execution, [this, &load] {
        if (load.asks) tide_session_ping(&client_.session());
      });
      mask(load, time + load.period);
    });
  }

  // Subscribes to a message that this board sends or receives, to observe it in ROS 2.
  void watch(size_t number) {
    const MessagePlan &message = graph_.messages[number];
    if (message.carry == Carry::kLocal) return;
    const std::string &service = message.carry == Carry::kReply ? graph_.messages[message.answers].name : message.name;
    const auto of_service = [&](Bus::Receive take) {
      message.carry == Carry::kRequest ? bus_.services.watch_requests(service, std::move(take))
                                       : bus_.services.watch_replies(service, std::move(take));
    };
    if (graph_.is_on_board(message.sender, board_)) {
      const auto marks = std::make_shared<MarkReader>(message);
      Bus::Receive take = [this, number, marks](const Bus::Payload &payload) {
        come_up(number, marks->read(payload, 3));
      };
      if (rtps_ != nullptr) {
        rtps_->subscribe(number, std::move(take));
      } else if (message.carry == Carry::kTopic) {
        bus_.subscribe(topic_of(message), std::move(take));
      } else {
        of_service(std::move(take));
      }
    }
    for (const size_t input : message.inputs) {
      if (!graph_.is_on_board(graph_.inputs[input].callback, board_) || message.carry == Carry::kTopic) continue;
      const auto marks = std::make_shared<MarkReader>(message);
      const bool is_from_node = graph_.callbacks[message.sender].board < 0;
      of_service([this, input, number, marks, is_from_node](const Bus::Payload &payload) {
        const Mark mark = marks->read(payload, 3);
        if (!checks_.offered(input, mark)) return;  // Checks of the sender has reported the error
        if (is_from_node) world_.cross(number, mark);
      });
      if (rtps_ != nullptr) {
        if (message.carry == Carry::kRequest)
          bus_.services.serve(service, [this, input](const Bus::Payload &payload, Services::Take reply) {
            rtps_->request(input, payload, std::move(reply));
          });
        continue;
      }
      const auto carry = [this](std::function<void()> deliver) { come_back(std::move(deliver)); };
      message.carry == Carry::kRequest ? bus_.services.carry_requests(service, carry)
                                       : bus_.services.carry_replies(service, carry);
    }
  }

  void come_up(size_t message, const Mark &mark) {
    trace_.add(engine_.now(), "host_received", mark.root, mark.index);
    const bool is_known = graph_.messages[message].roots.contains(mark.root);
    if (!is_known) return checks_.stranger("host", engine_.now());
    if (checks_.received(message, mark, is_renewed(), engine_.now())) world_.cross(message, mark);
  }

  // Delays a message from ROS 2 to the agent. Messages keep their order.
  void come_back(std::function<void()> deliver) {
    if (plan_.return_most == 0 && plan_.delay_slot == 0) {
      deliver();
      return;
    }
    const Time delay = plan_.delay_slot > 0 ? slot_delay(plan_.return_slots_us, plan_.delay_slot, engine_.now())
                                            : return_.between(plan_.return_least, plan_.return_most);
    last_return_ = std::max(last_return_, engine_.now() + delay);
    engine_.at(last_return_, std::move(deliver));
  }

  bool is_renewed() { return client_.session().counters.reconnects > 0 || restarts() > 0; }
  unsigned restarts() const { return host_ == nullptr ? 0 : host_->restarts(); }
  uint64_t replies_unmatched() const { return host_ == nullptr ? 0 : host_->replies_unmatched(); }

  World &world_;
  const Plan &plan_;
  const Graph &graph_;
  const int board_;
  Engine &engine_;
  Trace &trace_;
  Checks checks_;
  Line up_, down_;
  Bus &bus_;
  std::unique_ptr<AgentHost> host_;  // null: the board speaks RTPS
  Machine machine_;
  Client client_;
  std::unique_ptr<RtpsWire> rtps_;  // null: the board has a line and an agent
  std::vector<std::unique_ptr<Task>> loads_;
  Random incidents_, return_;
  Time last_return_ = 0;
  FirstLosses losses_;
  InstanceLosses instance_losses_;
  uint64_t heartbeats_seen_ = 0, heartbeats_answered_ = 0;
  bool acknowledging_ = false;
  unsigned cuts_now_ = 0;
};

void World::deliver(const MessagePlan &message, const Mark &mark) {
  shipped.publish(static_cast<size_t>(&message - graph_.messages.data()), mark);
  for (const size_t number : message.inputs) {
    if (shipped.subscribes(number)) continue;
    const Input &input = graph_.inputs[number];
    const CallbackPlan &callback = graph_.callbacks[input.callback];
    if (callback.board >= 0) {
      boards[static_cast<size_t>(callback.board)]->deliver(number, mark);
    } else if (input.hop == 0) {
      receive(input.callback, mark);
    } else {
      hops_++;
      engine.after(input.hop, [this, callback = input.callback, mark] {
        hops_--;
        receive(callback, mark);
      });
    }
  }
}

// The result of a path. Only instances that end before `until` count for the worst response.
ChainResult World::result(const PathPlan &path, Time until) const {
  const CallbackPlan &first = graph_.callbacks[path.first];
  const Times &ends = path.crossing == SIZE_MAX ? runs_[path.last] : crossings_[path.crossing];
  ChainResult result{path.name, path.level, path.deadline > 0 ? path.deadline : first.period, {}, 0, -1};
  for (uint32_t index = 0; index < releases_[first.root].size(); index += static_cast<uint32_t>(path.step)) {
    const Mark mark{static_cast<uint16_t>(first.root), index};
    const Time release = releases_[first.root][index], start = runs_[path.first].of(mark).first;
    const Time end = ends.of(mark).second;
    if (end >= 0) {
      result.latencies.push_back(end - (plan_.latency_from == LatencyFrom::kStart ? start : release));
      if (end < until && end - release > result.worst_response) {
        result.worst_response = end - release;
        result.worst_index = index;
      }
    } else if (release >= 0) {
      result.lost++;
    }
    if (plan_.record && release >= 0) result.recorded.push_back({release, start, end});
  }
  return result;
}

Records World::records() const {
  Records records;
  for (const Times &runs : runs_) {
    auto &all = records.runs.emplace_back();
    for (size_t number = 0; number < runs.all.size(); number++) {
      const Mark mark = runs.instances.mark(number);
      if (runs.all[number].second >= 0)
        all.push_back({mark.root, mark.index, runs.all[number].first, runs.all[number].second});
    }
  }
  for (const Times &crossings : crossings_) {
    auto &all = records.crossings.emplace_back();
    for (size_t number = 0; number < crossings.all.size(); number++) {
      const Mark mark = crossings.instances.mark(number);
      if (crossings.all[number].first >= 0) all.push_back({mark.root, mark.index, crossings.all[number].first});
    }
  }
  return records;
}

// ---- all boards of a plan ----

class Run {
 public:
  Run(const Plan &plan, const std::vector<Plan> &boards, const Graph &graph)
      : plan_(plan), graph_(graph), world_(plan, graph) {
    for (const Plan &board : boards) {
      boards_.push_back(std::make_unique<OneBoard>(world_, board, graph, static_cast<int>(boards_.size())));
      world_.boards.push_back(boards_.back().get());
    }
    world_.engine.on_step = [this] {
      for (OneBoard *board : world_.changed) board->check_step();
      world_.changed.clear();
      world_.shipped.step_end();
    };
  }

  // Sets up all boards, and returns the first release of each.
  std::vector<Time> first_releases() {
    Engine &engine = world_.engine;
    while (!all(&OneBoard::is_set_up) && engine.now() < kTogetherLimit) {
      if (!engine.step(kTogetherLimit)) break;
    }
    if (!all(&OneBoard::is_set_up)) throw std::runtime_error("the client could not connect");
    std::vector<Time> times;
    for (const auto &board : boards_) times.push_back(board->first_release());
    return times;
  }

  // Ends the boards without running them. Call this instead of run().
  void abandon() {
    for (const auto &board : boards_) board->end();
    world_.engine.run_until(world_.engine.now() + longest_callbacks());
  }

  // Call this after first_releases.
  Result run() {
    if (!boards_.empty()) first_release_ = boards_.front()->first_release();
    Time last = 0;
    for (const size_t root : graph_.roots) last = std::max(last, last_release_of(root));
    world_.release_nodes(first_release_);
    for (const auto &board : boards_) board->start_loads();
    for (const auto &board : boards_) board->schedule_incidents(last);
    finish(last);
    Result result;
    for (const PathPlan &path : graph_.paths)
      result.chains.push_back(world_.result(path, plan_.steady ? steady_until(path) : INT64_MAX));
    if (plan_.record) result.records = world_.records();
    for (const auto &board : boards_) board->tell(result);
    world_.shipped.tell(result);
    for (size_t path = 0; path < graph_.paths.size(); path++) {
      result.chains[path].skipped = result.skipped[graph_.paths[path].first];
      check_shipped(graph_.paths[path], result.chains[path], result);
    }
    result.trace = world_.trace.text();
    result.trace_hash = world_.trace.hash();
    result.simulated = world_.engine.now();
    result.events = world_.engine.event_count();
    return result;
  }

 private:
  template <typename Is> bool all(Is is) {
    return std::all_of(boards_.begin(), boards_.end(), [is](const auto &board) { return (board.get()->*is)(); });
  }

  Time last_release_of(size_t root) const {
    const CallbackPlan &callback = graph_.callbacks[root];
    return first_release_ + callback.phase + (plan_.instances_of(callback.period) - 1) * callback.period;
  }

  // Checks a path on shipped executors of the host: it may lose only instances that full queues have dropped, and no
  // response may be shorter than its executions.
  void check_shipped(const PathPlan &path, const ChainResult &seen, Result &result) const {
    Time least = 0;
    uint64_t dropped = 0;
    for (size_t number = 0; number < graph_.callbacks.size(); number++) {
      const CallbackPlan &callback = graph_.callbacks[number];
      if (std::find(path.callbacks.begin(), path.callbacks.end(), callback.name) == path.callbacks.end()) continue;
      if (!world_.shipped.has(number) || callback.joins || path.step != 1) return;
      least += callback.least < 0 ? callback.execution : callback.least;
      dropped += result.dropped[number];
    }
    if (seen.lost != dropped)
      result.violations.push_back(path.name + " lost " + std::to_string(seen.lost) + " instances, and queues dropped " +
                                  std::to_string(dropped));
    if (plan_.latency_from == LatencyFrom::kExpiry &&
        std::any_of(seen.latencies.begin(), seen.latencies.end(), [least](Time one) { return one < least; }))
      result.violations.push_back(path.name + " has a response shorter than its executions");
  }

  // A second after the first of the timers that involve the path's boards is released for the last time.
  Time steady_until(const PathPlan &path) const {
    std::set<int> touched;
    for (const CallbackPlan &callback : graph_.callbacks)
      if (std::find(path.callbacks.begin(), path.callbacks.end(), callback.name) != path.callbacks.end())
        touched.insert(callback.board);
    touched.erase(-1);
    Time first = INT64_MAX - kSecond;
    for (const CallbackPlan &callback : graph_.callbacks) {
      if (!touched.contains(callback.board)) continue;
      for (const size_t root : callback.roots) first = std::min(first, last_release_of(graph_.roots[root]));
    }
    return first + kSecond;
  }

  Time longest_callbacks() const {
    Time longest = kSecond;
    for (const CallbackPlan &callback : graph_.callbacks) longest += callback.execution;
    return longest;
  }

  void finish(Time last_release) {
    Engine &engine = world_.engine;
    // A client that receives nothing notices a restart of the agent only by its own probes, which takes up to kNotice.
    const Time noticed = plan_.restarts > 0 || plan_.cuts > 0 ? kNotice + plan_.outage_maximum : 0;
    Time longest = 0;
    for (const size_t root : graph_.roots) longest = std::max(longest, graph_.callbacks[root].period);
    Time next = last_release + noticed + longest + plan_.way;
    Time limit = next + plan_.settle;
    engine.run_until(next);
    const auto arrivals = [this] {
      uint64_t sum = 0;
      for (const auto &board : boards_) sum += board->arrivals();
      return sum;
    };
    // The run also waits for best-effort messages and running callbacks, because they occupy elements of pools.
    for (uint64_t before = arrivals(); !(all(&OneBoard::is_done) && world_.is_quiet()) && next < limit;) {
      engine.run_until(next += kCheckPeriod);
      if (const uint64_t now = arrivals(); now != before) {
        before = now;
        limit = next + plan_.settle;
      }
    }
    for (const auto &board : boards_) board->end();
    world_.shipped.stop();
    engine.run_until(engine.now() + longest_callbacks());
    if (!all(&OneBoard::is_stopped)) throw std::runtime_error("the client does not stop");
    if (!world_.shipped.is_stopped()) throw std::runtime_error("a lane does not end its spin");
  }

  const Plan &plan_;
  const Graph &graph_;
  World world_;
  std::vector<std::unique_ptr<OneBoard>> boards_;
  Time first_release_ = 0;
};

// The plans of all boards, each with a seed of its own. The boards start together.
std::vector<Plan> boards_of(const Plan &plan, const Graph &graph) {
  std::vector<Plan> boards = plan.boards;
  const auto is_on_board = [](const CallbackPlan &one) { return one.board >= 0; };
  if (boards.empty() && std::any_of(graph.callbacks.begin(), graph.callbacks.end(), is_on_board)) boards = {plan};
  for (size_t board = 0; board < plan.boards.size(); board++) {
    boards[board].seed = plan.seed + board * kSeedsApart;
  }
  return boards;
}

// The smallest sample such that at least this share of all samples is not larger.
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
  const Graph graph = graph_of(plan);
  std::vector<Plan> boards = boards_of(plan, graph);
  if (graph.paths.empty()) throw std::invalid_argument("a plan needs a chain, or a path over its callbacks");
  for (size_t number = 0; number < boards.size(); number++) {
    const Plan &board = boards[number];
    const auto is_here = [number](const CallbackPlan &one) { return one.board == static_cast<int>(number); };
    if (!plan.boards.empty() && std::none_of(graph.callbacks.begin(), graph.callbacks.end(), is_here))
      throw std::invalid_argument("board '" + board.system + "' has no callback");
    if (board.budget > 0) throw std::invalid_argument("the simulated client has no budgets; a board has (--board)");
  }
  // The set-up of all boards must end at the same time, so that no board is silent for long before its first release.
  // How long it takes depends on when the other boards start, so the set-up is repeated until all end together.
  if (boards.empty()) return Run(plan, boards, graph).run();
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    Run run(plan, boards, graph);
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
