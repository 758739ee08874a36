// SPDX-License-Identifier: Apache-2.0
// Two peers on a line that loses, doubles, delays, reorders and damages frames, in virtual time. Each seed draws its
// own mix of faults, speeds, sizes and pools. Safety is checked first: no reliable message is lost, duplicated or out
// of order in its stream; priorities hold on the wire; no more than a window is in flight; and only flagged messages
// are sent again. Then the faults stop, and liveness is checked: everything arrives and every pool is full again.
//
// TIDE_SIMULATION_SEEDS and TIDE_SIMULATION_FIRST select another range of seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <string>

#include "daemon_peer.h"
#include "dice.h"

namespace daemon_simulation_test {

using peer::Bytes;

constexpr int64_t microsecond = 1'000, millisecond = 1'000'000, second = 1'000'000'000;
constexpr int levels = 3;

struct Options {
  uint32_t seed;
  int64_t byte_ns, latency_ns, jitter_ns, process_ns, hold_sample_ns;
  unsigned loss, doubling, damage;  // probabilities per thousand frames
  unsigned messages;                // settings of each side
  uint32_t message_bytes;
  uint8_t window;
  bool hold, pad, expire, with_key, pack;
  int64_t heartbeat_delay_ns;
  unsigned resets, cuts;
  size_t slots;
  uint16_t nodes;
  bool drop_acknacks;  // a fault of the daemon instead of the line; the harness must detect it
};

Options draw(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t bound) { return random() % bound; };
  auto one_of = [&](std::initializer_list<int64_t> values) { return values.begin()[below(values.size())]; };
  Options o{};
  o.seed = seed;
  o.byte_ns = one_of({86'806, 8'681, 100, 1});
  o.latency_ns = one_of({0, 20 * microsecond, millisecond, 30 * millisecond});
  o.jitter_ns = one_of({0, 0, 100 * microsecond, 20 * millisecond});
  o.process_ns = one_of({0, 100 * microsecond, 5 * millisecond});
  o.hold_sample_ns = one_of({0, 0, millisecond, 40 * millisecond});
  o.loss = static_cast<unsigned>(one_of({0, 10, 100, 400}));
  o.doubling = static_cast<unsigned>(one_of({0, 0, 50, 300}));
  o.damage = static_cast<unsigned>(one_of({0, 0, 30, 200}));
  o.messages = 10 + below(40);
  o.message_bytes = static_cast<uint32_t>(one_of({64, 128, 508, 512, 1472}));
  o.window = static_cast<uint8_t>(one_of({1, 3, 8, 16, 16}));
  o.hold = below(4) == 0 && TIDE_RELIABLE_STREAMS;
  o.pad = below(2) == 0;
  o.expire = below(5) == 0 && !TIDE_LEAN;
  o.with_key = below(4) == 0;
  o.heartbeat_delay_ns = one_of({-1, -1, 0, 5 * millisecond});
  o.resets = below(6) == 0 ? 1 + below(3) : 0;
  o.cuts = below(6) == 0 ? 1 + below(3) : 0;
  o.slots = 3 + below(20);
  o.nodes = static_cast<uint16_t>(6 + below(30));
  o.pack = below(3) == 0 && TIDE_PACKING;
  return o;
}

// A message that contains its own description, and a pattern that reveals mixed messages.
Bytes compose(uint8_t id, uint8_t stream, uint8_t position, uint32_t index, uint32_t bytes, uint32_t session) {
  Bytes body(std::max<uint32_t>(bytes, 16));
  body[0] = 0;
  body[1] = stream;
  body[2] = 0;
  body[3] = position;
  std::memcpy(&body[4], &index, 4);
  const uint32_t size = static_cast<uint32_t>(body.size());
  std::memcpy(&body[8], &size, 4);
  std::memcpy(&body[12], &session, 4);
  for (uint32_t i = 16; i < size; ++i) body[i] = static_cast<uint8_t>(index * 31 + i * 7 + stream);
  return peer::submessage(id, body);
}

class World;

struct Side {
  Side(World &the_world, const Options &o, int the_number);
  World &world;
  const int number;
  peer::Transmitter transmitter;
  peer::Receiver receiver;
  Bytes on_wire;
  bool wire_open = true;
  uint64_t wire_generation = 0;
  int64_t poll_at = TIDE_FOREVER;
  bool process_scheduled = false;
  // State as a sender.
  std::map<uint8_t, uint32_t> submitted;                 // by stream
  std::map<std::pair<uint8_t, uint32_t>, int> outcomes;  // numbers of reliable messages, by stream and index
  std::map<std::pair<uint8_t, uint16_t>, bool> flagged;  // whether it was on the wire, and was requested again
  // State as a receiver.
  std::map<uint8_t, uint32_t> expected;                   // reliable: next expected index, by stream
  std::map<std::pair<uint8_t, uint8_t>, int64_t> newest;  // best effort: last received index, by stream and position
  std::set<std::pair<uint8_t, uint32_t>> received;
  std::map<uint8_t, bool> restarted;  // reliable: after a reset, indexes may start over
};

struct Event {
  int64_t time;
  uint64_t number;
  std::function<void()> action;
  bool operator<(const Event &other) const { return time != other.time ? time > other.time : number > other.number; }
};

class World {
 public:
  explicit World(const Options &o) : options(o), random(o.seed * 7919u + 1u) {
    for (int i = 0; i < 2; ++i) sides[i] = std::make_unique<Side>(*this, o, i);
    set_session(0x81);
  }

  // Describes the first error. Empty if there was none.
  std::string run() {
    plan();
    while (!events.empty() && trouble.empty()) {
      if (++steps > 2'000'000) return "no end in sight";
      Event event = events.top();
      events.pop();
      now = event.time;
      event.action();
      if (now > faults_end && submissions_left == 0 && is_quiet()) break;
      if (now > faults_end + 600 * second) return "liveness: not everything arrived in ten minutes without faults";
    }
    if (!trouble.empty()) return trouble;
    return check_end();
  }

  void at(int64_t time, std::function<void()> action) { events.push({time, ++numbers, std::move(action)}); }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random() % bound); }
  bool chance(unsigned per_thousand) { return now < faults_end && below(1000) < per_thousand; }
  void fail(const std::string &what) {
    if (trouble.empty()) trouble = what + " at " + std::to_string(now) + " ns";
  }

  void delivered(Side &side, const tide_delivery_t &delivery);
  void control(Side &side, const tide_delivery_t &delivery);
  void pump(Side &side);

  const Options options;
  std::mt19937 random;
  int64_t now = 0, faults_end = 0;
  uint32_t session_number = 0;

 private:
  Side &other(const Side &side) { return *sides[1 - side.number]; }
  void plan();
  // Clients pack their samples; the messages of agents have priorities.
  uint8_t kind_of_sample() const { return options.pack ? TIDE_XRCE_WRITE_DATA : TIDE_XRCE_DATA; }
  void submit(Side &side);
  void check_frame(Side &side, const Bytes &bytes, const tide_frame_parts_t &frame);
  void check_levels(Side &side, int level, bool is_data);
  void wire_done(Side &side);
  void transmit(Side &side, const Bytes &bytes);
  void arrive(Side &side, Bytes bytes, uint16_t crc, uint8_t session);
  void process(Side &side);
  void set_session(uint8_t session);
  void reset();
  bool is_quiet();
  std::string check_end();

  std::unique_ptr<Side> sides[2];
  std::priority_queue<Event> events;
  uint64_t numbers = 0, steps = 0;
  unsigned submissions_left = 0;
  uint8_t session = 0;
  std::string trouble;
};

std::vector<peer::Class> sizes_of(const Options &o) {
  return {{64, o.nodes}, {1500, static_cast<uint16_t>(2 + o.nodes / 4)}, {40'016, 2}};
}

peer::Receiver::Options receiver_of(const Options &o) {
  return {o.slots, 1480, 2 * levels + 1, o.window, {3'100, 40'100, 40'100, 40'100}};
}

Side::Side(World &the_world, const Options &o, int the_number)
    : world(the_world),
      number(the_number),
      transmitter(sizes_of(o),
                  [&](tide_transmitter_config_t &config) {
                    config.message_bytes = o.message_bytes;
                    config.window = o.window;
                    config.pad_last = o.pad;
                    config.hold_until_acknowledged = o.hold;
                    config.pack = o.pack;
                    config.heartbeat_delay_ns = o.heartbeat_delay_ns;
                  }),
      receiver(receiver_of(o)) {
  transmitter.on_done = [this](const tide_node_t &node, tide_node_outcome_t outcome) {
    uint32_t index;
    std::memcpy(&index, node.bytes + 8, 4);
    if (!TIDE_STREAM_IS_RELIABLE(node.stream)) return;
    auto [place, is_new] = outcomes.emplace(std::pair{node.stream, index}, outcome);
    if (!is_new) world.fail("a node came back twice");
    const bool packed = outcome == TIDE_NODE_PACKED && world.options.pack;
    if (outcome != TIDE_NODE_ACKNOWLEDGED && outcome != TIDE_NODE_EXPIRED && !packed)
      world.fail("a reliable node was dropped");
    if (outcome == TIDE_NODE_EXPIRED && node.expires_ns > world.now) world.fail("expired before its time");
  };
  receiver.on_submessage = [this](const tide_delivery_t &delivery) { world.delivered(*this, delivery); };
  receiver.on_control = [this](const tide_delivery_t &delivery) { world.control(*this, delivery); };
  receiver.on_acknowledge = [this](uint8_t stream, uint16_t first, uint16_t missing) {
    if (!world.options.drop_acknacks) tide_transmitter_request_acknack(&transmitter.core, stream, first, missing);
  };
  receiver.priority_of = [](uint8_t, tide_xrce_request_t request) -> int32_t {
    return TIDE_STREAM_LEVEL(request.request) << 8 | request.object;
  };
}

void World::set_session(uint8_t value) {
  session = value;
  for (auto &side : sides) {
    tide_transmitter_set_session(&side->transmitter.core, session, 0xAABBCCDD);
    tide_receiver_set_session(&side->receiver.core, session, 0xAABBCCDD);
  }
}

void World::plan() {
  if (options.with_key) set_session(0x01);
  const int64_t span = 1 + below(3) * 100 * millisecond;
  for (auto &side : sides) {
    Side *pointer = side.get();
    for (unsigned i = 0; i < options.messages; ++i) {
      ++submissions_left;
      at(static_cast<int64_t>(random() % static_cast<uint64_t>(span)), [this, pointer] { submit(*pointer); });
    }
    for (unsigned i = 0; i < options.cuts; ++i) {
      const int64_t start = static_cast<int64_t>(random() % static_cast<uint64_t>(span));
      at(start, [this, pointer] {
        if (!pointer->wire_open) return;
        pointer->wire_open = false;
        ++pointer->wire_generation;
        tide_xrce_header_t header;  // an interrupted message is sent again without being requested
        if (pointer->transmitter.core.busy && tide_xrce_get_header(pointer->on_wire.data(), 8, &header) > 0) {
          const auto place = pointer->flagged.find({header.stream, header.sequence});
          if (place != pointer->flagged.end()) place->second = true;
        }
        tide_transmitter_cancel(&pointer->transmitter.core);
        at(now + 30 * millisecond, [this, pointer] {
          pointer->wire_open = true;
          pump(*pointer);
        });
      });
    }
  }
  for (unsigned i = 0; i < options.resets; ++i)
    at(static_cast<int64_t>(random() % static_cast<uint64_t>(2 * span)), [this] { reset(); });
  faults_end = span + 200 * millisecond;
  at(faults_end + 1, [this] {
    for (auto &side : sides) pump(*side);
  });
}

void World::submit(Side &side) {
  const uint8_t level = static_cast<uint8_t>(below(levels)), position = static_cast<uint8_t>(below(3));
  const bool reliable = below(3) != 0;
  const uint8_t stream = reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  const uint32_t kind = reliable ? below(40) : 0;
  const uint32_t limit = options.message_bytes * 60;
  uint32_t bytes = 16 + below(24);
  if (kind >= 30) bytes = 100 + below(1300);
  if (kind == 38) bytes = 3'000;
  if (kind == 39) bytes = 3'000 + below(37'000);
  bytes = std::min(bytes, std::min(limit, 40'000u));
  if (!TIDE_FRAGMENTS) bytes = std::min(bytes, options.message_bytes - 16u);  // whole in one frame, with both headers
  const uint32_t index = side.submitted[stream];
  const Bytes message = compose(kind_of_sample(), stream, position, index, bytes, session_number);
  const int64_t expires = options.expire && below(3) == 0 ? now + 1 + below(60) * millisecond : TIDE_FOREVER;
  const int status = side.transmitter.submit(stream, message, TIDE_PRIORITY(level, position), now, expires);
  if (status == TIDE_OK) {
    ++side.submitted[stream];
    --submissions_left;
  } else if (status == TIDE_ERROR_FULL && reliable) {
    at(now + 5 * millisecond, [this, &side] { submit(side); });
  } else if (status == TIDE_ERROR_FULL) {
    --submissions_left;
  } else {
    fail("submit answered " + std::to_string(status));
  }
  pump(side);
}

// No message of a more urgent level may wait if it could be sent now.
void World::check_levels(Side &side, int level, bool is_data) {
  int unacknowledged = -1;
  for (const tide_output_stream_t &stream : side.transmitter.streams) {
    const uint16_t flying = static_cast<uint16_t>(stream.next_to_send - stream.first_unacknowledged);
    if (stream.id == 0) continue;
    if (flying > options.window) fail("more than a window is in flight");
    if (flying > 0) unacknowledged = std::max<int>(unacknowledged, TIDE_STREAM_LEVEL(stream.id));
  }
  if (options.hold && is_data && level < unacknowledged)
    fail("something less urgent did not wait for the acknowledgment");
  for (const tide_node_t &node : side.transmitter.nodes) {
    if (node.stream == 0 || TIDE_STREAM_LEVEL(node.stream) <= level || &node == side.transmitter.core.current_node)
      continue;
    if (options.hold && TIDE_STREAM_LEVEL(node.stream) < unacknowledged) continue;
    if (!TIDE_STREAM_IS_RELIABLE(node.stream)) fail("a more urgent best-effort frame was left waiting");
    if (node.resend != 0) fail("a more urgent retransmission was left waiting");
    for (const tide_output_stream_t &stream : side.transmitter.streams) {
      const uint16_t flying = static_cast<uint16_t>(stream.next_to_send - stream.first_unacknowledged);
      const uint16_t fragments = TIDE_FRAGMENTS ? node.fragment_count : 1u;
      if (stream.id == node.stream && node.next_fragment < fragments && flying < options.window)
        fail("a more urgent reliable frame was left waiting");
    }
  }
}

void World::check_frame(Side &side, const Bytes &bytes, const tide_frame_parts_t &frame) {
  tide_xrce_header_t header;
  if (tide_xrce_get_header(bytes.data(), bytes.size(), &header) < 0) return fail("a frame without header");
  if (bytes.size() > options.message_bytes) return fail("a frame is larger than the link quantum");
  if (header.session != session) return fail("a frame of another session");
  if (options.pad && header.stream != 0 && bytes.size() % 4 != 0) return fail("a frame is not padded");
  const int level = header.stream == 0 ? TIDE_PRIORITY_LEVEL(frame.priority) : TIDE_STREAM_LEVEL(header.stream);
  check_levels(side, level, header.stream != 0);
  if (!TIDE_STREAM_IS_RELIABLE(header.stream)) return;
  auto [place, is_new] = side.flagged.emplace(std::pair{header.stream, header.sequence}, false);
  if (!is_new && !place->second) fail("sent again though nobody asked for it");
  place->second = false;
}

void World::pump(Side &side) {
  tide_transmitter_t *core = &side.transmitter.core;
  const int64_t next_poll = tide_transmitter_poll(core, now);
  tide_frame_parts_t frame;
  if (side.wire_open && tide_transmitter_next(core, now, &frame) == 1) {
    side.on_wire = peer::flatten(frame);
    check_frame(side, side.on_wire, frame);
    const uint64_t generation = side.wire_generation;
    at(now + options.byte_ns * static_cast<int64_t>(side.on_wire.size()), [this, &side, generation] {
      if (side.wire_generation == generation) wire_done(side);
    });
  }
  if (next_poll < side.poll_at || side.poll_at <= now) {
    side.poll_at = next_poll;
    if (next_poll != TIDE_FOREVER) at(next_poll, [this, &side] { pump(side); });
  }
}

void World::wire_done(Side &side) {
  const Bytes bytes = std::move(side.on_wire);
  tide_transmitter_sent(&side.transmitter.core, now);
  transmit(side, bytes);
  if (chance(options.doubling)) transmit(side, bytes);
  pump(side);
}

void World::transmit(Side &side, const Bytes &original) {
  if (chance(options.loss)) return;
  Bytes bytes = original;
  const uint16_t crc = tide_crc16(bytes.data(), bytes.size());
  if (chance(options.damage)) {
    for (uint32_t flips = 1 + below(2); flips > 0; --flips) bytes[below(static_cast<uint32_t>(bytes.size()))] ^= 0x10;
    if (bytes == original) bytes[0] ^= 0x01;
  }
  int64_t delay = options.latency_ns;
  if (options.jitter_ns > 0 && now < faults_end) delay += below(static_cast<uint32_t>(options.jitter_ns));
  Side &receiver = other(side);
  const uint8_t sent_in = session;
  at(now + delay, [this, &receiver, bytes, crc, sent_in] { arrive(receiver, bytes, crc, sent_in); });
}

void World::arrive(Side &side, Bytes bytes, uint16_t crc, uint8_t) {
  side.receiver.arrive_checked(bytes, crc, now);
  if (!side.process_scheduled) {
    side.process_scheduled = true;
    at(now + options.process_ns, [this, &side] { process(side); });
  }
  pump(side);
}

void World::process(Side &side) {
  side.process_scheduled = false;
  if (tide_receiver_most_urgent(&side.receiver.core) == TIDE_PRIORITY_NONE) return;
  side.receiver.process();
  side.process_scheduled = true;
  at(now + options.process_ns, [this, &side] { process(side); });
  pump(side);
}

void World::delivered(Side &side, const tide_delivery_t &delivery) {
  const tide_xrce_submessage_t &sub = delivery.submessage;
  uint32_t index, size, of_session;
  if (sub.id != kind_of_sample() || sub.body_bytes < 16) return fail("something that was never sent");
  std::memcpy(&index, sub.body + 4, 4);
  std::memcpy(&size, sub.body + 8, 4);
  std::memcpy(&of_session, sub.body + 12, 4);
  const uint8_t stream = sub.body[1], position = sub.body[3];
  if (sub.body_bytes != size || stream != delivery.header.stream) return fail("a mixed-up message");
  for (uint32_t i = 16; i < size; ++i)
    if (sub.body[i] != static_cast<uint8_t>(index * 31 + i * 7 + stream)) return fail("a damaged message");
  if (TIDE_STREAM_IS_RELIABLE(stream)) {
    uint32_t &expected = side.expected[stream];
    const bool skip_allowed = options.expire && index > expected;
    const bool repeat_allowed = side.restarted[stream] && index < expected;
    if (index != expected && !skip_allowed && !repeat_allowed)
      fail("stream " + std::to_string(stream) + ": got " + std::to_string(index) + " instead of " +
           std::to_string(expected));
    side.restarted[stream] = false;
    expected = index + 1;
    side.received.insert({stream, index});
  } else {
    auto [place, is_new] = side.newest.emplace(std::pair{stream, position}, -1);
    if (int64_t{index} <= place->second) fail("best effort out of order or twice");
    place->second = index;
  }
  if (options.hold_sample_ns > 0 && below(2) == 0) {
    tide_receiver_retain(&side.receiver.core, &delivery);
    const uint8_t *body = sub.body;
    const Bytes copy(body, body + size);
    void *memory = delivery.memory;
    const bool reassembled = delivery.reassembled;
    at(now + below(static_cast<uint32_t>(options.hold_sample_ns)), [this, &side, memory, reassembled, body, copy] {
      if (std::memcmp(body, copy.data(), copy.size()) != 0) fail("a sample in use was overwritten");
      tide_receiver_release(&side.receiver.core, memory, reassembled);
      if (!side.process_scheduled) process(side);
      pump(side);
    });
  }
}

void World::control(Side &side, const tide_delivery_t &delivery) {
  if (delivery.submessage.id != TIDE_XRCE_ACKNACK) return;
  tide_cdr_t cdr;
  tide_xrce_acknack_t body;
  tide_cdr_reader(&cdr, delivery.submessage.body, delivery.submessage.body_bytes, false);
  tide_xrce_get_acknack(&cdr, &body);
  for (uint16_t n = 0; n < 16; ++n) {
    const auto place = side.flagged.find({body.stream, static_cast<uint16_t>(body.first_unacknowledged + n)});
    if ((body.missing >> n & 1) != 0 && place != side.flagged.end()) place->second = true;
  }
  tide_transmitter_on_acknack(&side.transmitter.core, &body, now);
}

// Client and agent agree on a new session at once; messages in transfer belong to the old session.
void World::reset() {
  const uint8_t low = options.with_key ? 0x01 : 0x81;
  ++session_number;
  set_session(static_cast<uint8_t>(low + session_number));
  for (auto &side : sides) {
    tide_transmitter_reset(&side->transmitter.core, true);
    tide_receiver_reset(&side->receiver.core);
    side->flagged.clear();
    for (int level = 0; level < levels; ++level)
      side->restarted[static_cast<uint8_t>(TIDE_STREAM_RELIABLE(level))] = true;
  }
  for (auto &side : sides) {
    // the frame on the wire still counts as sent once, although it belongs to no session
    pump(*side);
  }
}

bool World::is_quiet() {
  for (auto &side : sides) {
    const tide_transmitter_t &core = side->transmitter.core;
    if (!tide_transmitter_is_idle(&core, 0) || core.busy || core.control_count > 0) return false;
    if (side->receiver.slots_in_use() > 0 || side->receiver.reassemblies_in_use() > 0) return false;
  }
  return true;
}

std::string World::check_end() {
  for (auto &side : sides) {
    const std::string who = "side " + std::to_string(side->number) + ": ";
    Side &peer = other(*side);
    if (!is_quiet()) return who + "liveness: something is left, but nothing happens any more";
    if (side->transmitter.core.nodes_in_use != 0) return who + "nodes are missing";
    if (side->transmitter.core.execution_buffer.count != 0) return who + "execution_buffer is not empty";
    if (side->transmitter.core.pending_buffer.count != 0) return who + "pending_buffer is not empty";
    for (const auto &[stream, count] : side->submitted) {
      if (!TIDE_STREAM_IS_RELIABLE(stream)) continue;
      for (uint32_t index = 0; index < count; ++index) {
        const auto outcome = side->outcomes.find({stream, index});
        if (outcome == side->outcomes.end()) return who + "a reliable node never came back";
        const bool arrived = peer.received.contains({stream, index});
        if (outcome->second != TIDE_NODE_EXPIRED && !arrived)
          return who + "acknowledged, but never delivered: stream " + std::to_string(stream) + " message " +
                 std::to_string(index);
      }
    }
  }
  return {};
}

TEST(daemon_simulation, safety_and_liveness) {
  const auto first = static_cast<uint32_t>(tide::test::environment("TIDE_SIMULATION_FIRST", 1));
  const auto count = static_cast<uint32_t>(tide::test::environment("TIDE_SIMULATION_SEEDS", 3000));
  unsigned failures = 0;
  for (uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
    World world(draw(seed));
    const std::string trouble = world.run();
    if (trouble.empty()) continue;
    ++failures;
    ADD_FAILURE() << trouble << "; replay: TIDE_SIMULATION_FIRST=" << seed << " TIDE_SIMULATION_SEEDS=1";
  }
}

// Checks the harness: it must detect a daemon that never acknowledges.
TEST(daemon_simulation, notices_a_daemon_without_acknowledgments) {
  Options options = draw(1);
  options.drop_acknacks = true;
  options.expire = false;
  World world(options);
  EXPECT_NE(world.run(), "");
}

}  // namespace daemon_simulation_test
