// SPDX-License-Identifier: Apache-2.0
#include "sim/board/checks.h"

#include <algorithm>

#include "tide/priority.h"

namespace tide::sim {
namespace {

constexpr size_t kViolationsKept = 8;

bool contains(const std::vector<bool> &seen, uint32_t index) { return index < seen.size() && seen[index]; }

std::string text(const char *where, size_t chain, uint32_t index) {
  return std::string(where) + ": chain " + std::to_string(chain) + ", message " + std::to_string(index);
}

}  // namespace

Checks::Checks(const Plan &plan, size_t chains) : ways_(chains), tide_(plan.policy == Policy::kTide) {
  for (const ChainPlan &chain : plan.chains) budgets_ = budgets_ || chain.budget > 0;
  for (size_t chain = 0; chain < chains; chain++) {
    ways_[chain].reliable = plan.chains[chain].reliable;
    ways_[chain].reply_reliable = plan.chains[chain].is_reply_reliable();
    ways_[chain].asks_board = plan.chains[chain].calls == Calls::kAsks && !plan.chains[chain].next.empty();
    ways_[chain].seen_by_host.resize(plan.instances_of(plan.chains[chain]));
    ways_[chain].seen_by_client.resize(plan.instances_of(plan.chains[chain]));
  }
}

void Checks::violate(Time now, const std::string &what) {
  if (violations_.size() < kViolationsKept) violations_.push_back(std::to_string(now) + " ns: " + what);
}

void Checks::stranger(const char *where, Time now) { violate(now, std::string(where) + ": nobody sent that"); }

void Checks::broken(size_t chain, const char *what, Time now) {
  violate(now, "chain " + std::to_string(chain) + ": " + what);
}

// ---- in each step ----

namespace {

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

}  // namespace

void Checks::callback_start(const tide_executor_t &executor, const tide_callback_t &callback, Time now) {
  if (!tide_ || !is_settled(callback)) return;
  for (size_t index = 0; index < executor.count; index++) {
    const tide_callback_t *other = executor.config.callbacks[index];
    const bool elsewhere = other->band != callback.band;
    if (elsewhere && budgets_) continue;  // that lane may have used up its budget
    // A lane of a more urgent band would have gone first, unless all wait within a callback or have ended.
    if (other->group != nullptr || (elsewhere && (executor.stopped || !has_free_lane(executor, other->band)))) continue;
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
void Checks::frame_start(Client &client, const tide_frame_parts_t &frame, Time now) {
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

// Counts the slots themselves, not what the receiver counts.
void Checks::slots(const tide_receiver_t &receiver, Time now) {
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
void Checks::reassemblies(const tide_receiver_t &receiver, Time now) {
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
// what others took before that is theirs until they give it back. Runs after each step of the simulation, so it passes
// once.
void Checks::nodes(const tide_transmitter_t &transmitter, Time now) {
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

// Whoever would have to start the frame may be preempted by now, and for long.
void Checks::step_end(Client &client, Time now) {
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

// ---- messages ----

void Checks::arrived(Way &way, std::vector<bool> &seen, int64_t &last, uint32_t index, bool renewed, const char *where,
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

void Checks::host_received(size_t chain, uint32_t index, bool session_renewed, Time now) {
  Way &way = ways_[chain];
  way.received.push_back(index);
  arrived(way, way.seen_by_host, way.last_received, index, session_renewed, "host", now);
}

void Checks::acted(size_t chain, uint32_t index, bool session_renewed, Time now) {
  Way &way = ways_[chain];
  way.acted.push_back(index);
  if (!contains(way.seen_by_host, index)) stranger("client", now);
  // A message that came to the host twice is answered twice, and the second answer may be the first to arrive.
  const bool answered_twice = std::count(way.answered.begin(), way.answered.end(), index) > 1;
  if (session_renewed && answered_twice) return;
  arrived(way, way.seen_by_client, way.last_acted, index, session_renewed || answered_twice, "client", now);
}

bool Checks::is_complete(Client &client, bool session_renewed) const {
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

// ---- the end ----

// Empty: all is free again.
std::string Checks::missing_in_pools(Client &client) {
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

void Checks::at_end(Client &client, bool session_renewed, Time now) {
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

}  // namespace tide::sim
