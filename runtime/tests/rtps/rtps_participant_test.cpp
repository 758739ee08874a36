// SPDX-License-Identifier: Apache-2.0
// Participants in virtual time, by seed: samples of a reliable writer arrive once, in order and unchanged, whatever the
// network does, as far as the writer's history reaches. No participant sends more than it has reason to.
// TIDE_FIRST_SEED and TIDE_SEEDS choose the seeds.
#include <gtest/gtest.h>

#include "mutate.h"
#include "rtps_boards.h"
#include "rtps_exercise.h"
#include "vectors.h"

namespace rtps_participant_test {

using tide::test::Dice;
using tide::test::environment;
using tide::test::kMs;
using tide::test::RtpsBoard;
using tide::test::RtpsNetwork;
using tide::test::RtpsReader;
using tide::test::RtpsWriter;

tide_rtps_qos_t quality(bool reliable, uint8_t durability = 0) {
  tide_rtps_qos_t qos = tide_rtps_qos_default();
  qos.reliable = reliable;
  qos.durability = durability;
  return qos;
}

void for_each_seed(uint64_t few, const std::function<void(uint64_t)> &test) {
  const uint64_t first = environment("TIDE_FIRST_SEED", 1);
  const uint64_t count = environment("TIDE_SEEDS", few);
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test(seed);
  }
}

void expect_unchanged(const RtpsReader &reader, const RtpsWriter &writer) {
  int64_t before = 0;
  for (const RtpsReader::Sample &sample : reader.received) {
    EXPECT_GT(sample.sequence, before);
    before = sample.sequence;
    EXPECT_EQ(sample.bytes.size(), writer.sizes.at(static_cast<size_t>(sample.sequence - 1))) << sample.sequence;
    EXPECT_TRUE(sample.bytes == RtpsBoard::sample(sample.sequence, sample.bytes.size())) << sample.sequence;
  }
}

struct Pair {
  explicit Pair(uint64_t seed = 1) : network(seed) {
    network.boards = {&a, &b};
    a.start(network.now);
    b.start(network.now);
  }
  RtpsBoard a{1}, b{2};
  RtpsNetwork network;
};

TEST(Discovery, ByMulticast) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  RtpsReader &reader = pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.b.reader("rt/y", quality(true), 100, pair.network.now);
  pair.network.run(10 * kMs);
  EXPECT_EQ(tide_participant_matched(&pair.a.participant, &writer.writer.endpoint), 1u);
  EXPECT_EQ(tide_participant_matched(&pair.b.participant, &reader.reader.endpoint), 1u);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_MATCHED), 1u);
  EXPECT_EQ(pair.b.count(TIDE_RTPS_EVENT_MATCHED), 1u);
  pair.a.participant.wall_ns = 5'000'000'000;
  pair.a.write(writer, 20, pair.network.now);
  pair.network.run(40 * kMs);
  ASSERT_EQ(reader.received.size(), 1u);
  EXPECT_EQ(reader.received[0].source_ns, pair.network.now - 40 * kMs + 5'000'000'000);
  EXPECT_EQ(reader.received[0].writer.prefix[2], 1);
  EXPECT_TRUE(tide_participant_is_acknowledged(&pair.a.participant, &writer.writer));
  // After the discovery each participant announces itself every 3 s, by multicast and to the other; nothing else is
  // sent.
  pair.network.run(1000 * kMs);
  const uint64_t before = pair.network.datagrams;
  pair.network.run(30'000 * kMs);
  EXPECT_EQ(pair.network.datagrams - before, 2u * 10 * 2);
}

TEST(Discovery, AtKnownAddresses) {
  static const uint8_t known[][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
  RtpsNetwork network(1);
  RtpsBoard a{1}, b{2};
  for (RtpsBoard *board : {&a, &b}) {
    board->config.no_multicast = true;
    board->config.known = known;
    board->config.known_count = 2;
    board->config.known_participants = 4;
    board->config.participant = board == &a ? 0 : 3;
    board->config.domain = 42;
    network.boards.push_back(board);
    board->start(network.now);
  }
  network.observe = [](const RtpsBoard &, const tide_rtps_datagram_t &datagram) {
    EXPECT_NE(datagram.to.address[0], 239);
  };
  RtpsWriter &writer = a.writer("rt/x", quality(true), 4, 100, network.now);
  b.reader("rt/x", quality(true), 100, network.now);
  network.run(10 * kMs);
  EXPECT_EQ(tide_participant_matched(&a.participant, &writer.writer.endpoint), 1u);
}

TEST(Discovery, AnotherDomainIsIgnored) {
  Pair pair;
  pair.b.config.domain = 1;
  pair.b.start(pair.network.now);
  pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.network.run(10'000 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_MATCHED), 0u);
}

TEST(Discovery, LeaseExpires) {
  Pair pair;
  pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  pair.b.config.lease_ns = 5000 * kMs;
  pair.b.start(pair.network.now);
  pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.network.run(60'000 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_UNMATCHED), 0u);
  pair.b.is_on = false;
  pair.network.run(3000 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_UNMATCHED), 0u);
  pair.network.run(2001 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_UNMATCHED), 1u);
  pair.b.is_on = true;
  pair.network.run(4000 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_MATCHED), 2u);
}

TEST(Discovery, WhoLeavesIsForgottenAtOnce) {
  Pair pair;
  pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.network.run(10 * kMs);
  tide_participant_leave(&pair.b.participant, pair.network.now);
  pair.network.run(1 * kMs);
  EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_UNMATCHED), 1u);
  EXPECT_EQ(pair.a.peers[0].port, 0);
}

TEST(Discovery, EndpointsComeAndGo) {
  for_each_seed(20, [](uint64_t seed) {
    Pair pair(seed);
    pair.network.faults = {20, 10, 10};
    pair.network.run(5000 * kMs);  // they know each other, but have stored no endpoint
    RtpsWriter &x = pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
    pair.b.writer("rt/y", quality(true), 4, 100, pair.network.now);
    pair.b.writer("rt/z", quality(true), 4, 100, pair.network.now);
    pair.network.run(5000 * kMs);
    RtpsReader &reader = pair.b.reader("rt/x", quality(true), 100, pair.network.now);
    pair.a.reader("rt/y", quality(true), 100, pair.network.now);
    pair.network.run(60'000 * kMs);
    EXPECT_EQ(pair.a.count(TIDE_RTPS_EVENT_MATCHED), 2u);
    EXPECT_EQ(pair.b.count(TIDE_RTPS_EVENT_MATCHED), 2u);
    pair.a.writer("rt/w", quality(true), 4, 100, pair.network.now);
    tide_participant_remove(&pair.a.participant, &x.writer.endpoint, pair.network.now);
    pair.network.run(60'000 * kMs);
    EXPECT_EQ(pair.b.count(TIDE_RTPS_EVENT_UNMATCHED), 1u);
    EXPECT_EQ(tide_participant_matched(&pair.b.participant, &reader.reader.endpoint), 0u);
    // A third participant finds a gap in the place of the writer's announcement.
    RtpsBoard c{3};
    c.start(pair.network.now);
    c.reader("rt/x", quality(true), 100, pair.network.now);
    RtpsReader &y = c.reader("rt/y", quality(true), 100, pair.network.now);
    c.reader("rt/w", quality(true), 100, pair.network.now);
    pair.network.boards.push_back(&c);
    pair.network.run(60'000 * kMs);
    EXPECT_EQ(c.count(TIDE_RTPS_EVENT_MATCHED), 2u);
    EXPECT_EQ(tide_participant_matched(&c.participant, &y.reader.endpoint), 1u);
  });
}

// A node in ros_discovery_info: namespace, name, readers, writers.
struct Listed {
  std::string name;
  std::vector<uint32_t> readers, writers;
};
std::vector<Listed> listed(const std::vector<uint8_t> &bytes, const uint8_t *prefix) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  const auto gid = [&] {
    const uint8_t *octets = tide_cdr_view(&cdr, 16);
    if (octets == nullptr || memcmp(octets, prefix, TIDE_RTPS_PREFIX_BYTES) != 0) throw std::runtime_error("gid");
    return static_cast<uint32_t>(octets[12] << 24 | octets[13] << 16 | octets[14] << 8 | octets[15]);
  };
  const auto text = [&] {
    size_t length = 0;
    const char *characters = tide_cdr_get_string(&cdr, &length);
    return std::string(characters, length);
  };
  if (gid() != TIDE_RTPS_ENTITY_PARTICIPANT) throw std::runtime_error("participant");
  std::vector<Listed> nodes(tide_cdr_get_u32(&cdr));
  for (Listed &node : nodes) {
    node.name = text();
    node.name += "|" + text();
    for (std::vector<uint32_t> *gids : {&node.readers, &node.writers}) {
      gids->resize(tide_cdr_get_u32(&cdr));
      for (uint32_t &one : *gids) one = gid();
    }
  }
  if (cdr.status != TIDE_OK || tide_cdr_remaining(&cdr) != 0) throw std::runtime_error("entities");
  return nodes;
}

TEST(Discovery, NodesAreListedWithTheirEndpoints) {
  for_each_seed(30, [](uint64_t seed) {
    Pair pair(seed);
    pair.network.faults = {20, 10, 10};
    const auto watch = [&] {
      RtpsReader &reader = pair.b.reader("ros_discovery_info", quality(true, 1), 2000, pair.network.now);
      reader.reader.endpoint.type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
      return &reader;
    };
    RtpsReader *graph = watch();
    const auto latest = [&] { return listed(graph->received.back().bytes, pair.a.config.prefix); };
    tide_rtps_node_t first{"first", "/", nullptr}, second{"second", "/robot", nullptr};
    ASSERT_EQ(tide_participant_add_node(&pair.a.participant, &first, pair.network.now), TIDE_OK);
    RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now, 0, &first);
    pair.a.writer("rt/y", quality(true), 4, 100, pair.network.now);  // belongs to no node
    pair.network.run(20'000 * kMs);
    ASSERT_FALSE(graph->received.empty());
    ASSERT_EQ(latest().size(), 1u);
    EXPECT_EQ(latest()[0].name, "/|first");
    EXPECT_EQ(latest()[0].writers, std::vector<uint32_t>{writer.writer.endpoint.entity});
    // Of several changes in quick succession, the last one arrives.
    ASSERT_EQ(tide_participant_add_node(&pair.a.participant, &second, pair.network.now), TIDE_OK);
    pair.network.run(pair.network.dice.between(0, 5) * kMs);
    RtpsReader &reader = pair.a.reader("rt/z", quality(true), 100, pair.network.now, 0, &second);
    pair.network.run(pair.network.dice.between(0, 5) * kMs);
    tide_participant_remove(&pair.a.participant, &writer.writer.endpoint, pair.network.now);
    pair.network.run(20'000 * kMs);
    ASSERT_EQ(latest().size(), 2u);
    EXPECT_EQ(latest()[0].name, "/robot|second");
    EXPECT_EQ(latest()[0].readers, std::vector<uint32_t>{reader.reader.endpoint.entity});
    EXPECT_TRUE(latest()[1].writers.empty());
    // A participant that restarts reads the graph again.
    pair.b.config.prefix[3]++;
    pair.b.start(pair.network.now);
    graph = watch();
    pair.network.run(20'000 * kMs);
    ASSERT_EQ(graph->received.size(), 1u);
    EXPECT_EQ(latest().size(), 2u);
    tide_participant_remove_node(&pair.a.participant, &second);
    pair.network.run(20'000 * kMs);
    ASSERT_EQ(latest().size(), 1u);
    EXPECT_EQ(latest()[0].name, "/|first");
    EXPECT_EQ(pair.a.participant.counters.restarted + pair.b.participant.counters.restarted, 0u);
    // After that only announcements are sent.
    const uint64_t before = pair.network.datagrams;
    pair.network.faults = {};
    pair.network.run(30'000 * kMs);
    EXPECT_EQ(pair.network.datagrams - before, 2u * 10 * 2);
  });
}

// 80 endpoints of one node fit the usual datagram, as the header says, and what does not fit is refused.
TEST(Discovery, EndpointsOfANodeAreRefusedBeforeTheyFillADatagram) {
  RtpsBoard board{1};
  board.start(0);
  tide_rtps_node_t node{"node", "/robot", nullptr};
  ASSERT_EQ(tide_participant_add_node(&board.participant, &node, 0), TIDE_OK);
  for (int i = 0; i < 80; i++) board.reader("rt/x", quality(true), 10, 0, 0, &node);
  EXPECT_THROW(
      {
        for (int i = 0; i < 5; i++) board.reader("rt/x", quality(true), 10, 0, 0, &node);
      },
      std::runtime_error);
  board.reader("rt/x", quality(true), 10, 0);  // belongs to no node
  tide_rtps_node_t other{"other", "/a/namespace/that/is/longer/than/what/is/left/of/the/datagram", nullptr};
  EXPECT_EQ(tide_participant_add_node(&board.participant, &other, 0), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(board.participant.nodes, &node);
}

TEST(Discovery, IncompatibleQosIsToldOnce) {
  Pair pair;
  pair.a.writer("rt/x", quality(false), 4, 100, pair.network.now);
  pair.a.writer("rt/y", quality(true, 0), 4, 100, pair.network.now);
  pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.b.reader("rt/y", quality(true, 1), 100, pair.network.now);
  pair.network.run(1000 * kMs);
  pair.b.reader("rt/z", quality(true), 100, pair.network.now);  // all endpoints are announced again
  pair.a.writer("rt/z", quality(true), 1, 100, pair.network.now);
  pair.network.run(10'000 * kMs);
  for (RtpsBoard *board : {&pair.a, &pair.b}) {
    std::vector<int64_t> policies;
    for (const tide_rtps_event_t &event : board->events)
      if (event.kind == TIDE_RTPS_EVENT_INCOMPATIBLE) policies.push_back(event.count);
    std::sort(policies.begin(), policies.end());
    EXPECT_EQ(policies, (std::vector<int64_t>{TIDE_RTPS_POLICY_DURABILITY, TIDE_RTPS_POLICY_RELIABILITY}));
    EXPECT_EQ(board->count(TIDE_RTPS_EVENT_MATCHED), 1u);
  }
}

TEST(Tables, TheOneThatMatchesIsFoundAmong200) {
  RtpsNetwork network(environment("TIDE_FIRST_SEED", 1));
  RtpsBoard board{1, 8, 4};
  static const uint8_t known[][4] = {{10, 0, 0, 1}};
  board.start(network.now);
  RtpsWriter &writer = board.writer("rt/x", quality(true), 4, 100, network.now);
  network.boards.push_back(&board);
  std::deque<RtpsBoard> others;
  for (uint8_t number = 2; number < 202; number++) {
    RtpsBoard &other = others.emplace_back(number, 1, 1);
    other.config.no_multicast = true;  // they announce themselves only to the first participant
    other.config.known = known;
    other.config.known_count = other.config.known_participants = 1;
    other.start(network.now);
    if (number == 150)
      other.reader("rt/x", quality(true), 100, network.now);
    else
      other.reader("rt/y", quality(true), 100, network.now);
    network.boards.push_back(&other);
  }
  const int64_t begin = network.now;
  network.run(600'000 * kMs,
              [&] { return tide_participant_matched(&board.participant, &writer.writer.endpoint) == 1; });
  EXPECT_LT(network.now - begin, 600'000 * kMs);
  EXPECT_GT(board.participant.counters.evicted, 0u);
  EXPECT_EQ(board.count(TIDE_RTPS_EVENT_PEERS_FULL), 1u);
  // Other participants never evict the matched one.
  network.run(60'000 * kMs);
  EXPECT_EQ(board.count(TIDE_RTPS_EVENT_UNMATCHED), 0u);
}

TEST(Tables, AMatchWithoutAnEntryIsMadeWhenOneIsFree) {
  RtpsNetwork network(1);
  RtpsBoard a{1, 4, 1}, b{2}, c{3};
  network.boards = {&a, &b, &c};
  for (RtpsBoard *board : network.boards) board->start(network.now);
  a.reader("rt/x", quality(true), 100, network.now);
  b.writer("rt/x", quality(true), 4, 100, network.now);
  c.writer("rt/x", quality(true), 4, 100, network.now);
  network.run(100 * kMs);
  EXPECT_EQ(a.count(TIDE_RTPS_EVENT_MATCHED), 1u);
  EXPECT_EQ(a.count(TIDE_RTPS_EVENT_MATCHES_FULL), 1u);
  EXPECT_EQ(a.participant.counters.matches_full, 1u);
  const bool is_b = a.matches[0].peer == 0 ? a.peers[0].prefix[2] == 2 : a.peers[1].prefix[2] == 2;
  tide_participant_leave(is_b ? &b.participant : &c.participant, network.now);
  network.run(1000 * kMs);
  EXPECT_EQ(a.count(TIDE_RTPS_EVENT_MATCHED), 2u);
}

// The writer waits for acknowledgments, so that nothing leaves its history too early.
TEST(Exchange, ReliableSamplesArriveOnceAndInOrder) {
  for_each_seed(200, [](uint64_t seed) {
    Pair pair(seed);
    Dice &dice = pair.network.dice;
    pair.network.faults = {static_cast<int>(dice.between(0, 30)), static_cast<int>(dice.between(0, 20)),
                           static_cast<int>(dice.between(0, 20))};
    const auto depth = static_cast<uint32_t>(dice.between(1, 20));
    const size_t largest = dice.chance(50) ? 200 : 6000;
    const auto durability = static_cast<uint8_t>(dice.between(0, 1));
    RtpsWriter &writer = pair.a.writer("rt/x", quality(true, durability), depth, largest, pair.network.now);
    RtpsReader &reader = pair.b.reader("rt/x", quality(true, durability), largest, pair.network.now);
    pair.network.run(20'000 * kMs, [&] {
      return pair.a.count(TIDE_RTPS_EVENT_MATCHED) == 1 && pair.b.count(TIDE_RTPS_EVENT_MATCHED) == 1;
    });
    const tide_rtps_proxy_t &proxy = pair.a.matches[0].proxy;
    const int64_t total = dice.between(1, 100);
    for (int64_t n = 0; n < total; n++) {
      pair.network.run(dice.between(0, 20) * kMs);
      pair.network.run(60'000 * kMs, [&] { return writer.writer.last + 1 - proxy.next < depth; });
      pair.a.write(writer, static_cast<size_t>(dice.between(0, static_cast<int64_t>(largest))), pair.network.now);
    }
    pair.network.run(60'000 * kMs,
                     [&] { return tide_participant_is_acknowledged(&pair.a.participant, &writer.writer); });
    EXPECT_TRUE(tide_participant_is_acknowledged(&pair.a.participant, &writer.writer));
    EXPECT_EQ(static_cast<int64_t>(reader.received.size()), total);
    expect_unchanged(reader, writer);
    EXPECT_EQ(pair.b.participant.counters.lost + pair.a.participant.counters.overwritten, 0u);
    EXPECT_EQ(pair.a.participant.counters.restarted + pair.b.participant.counters.restarted, 0u);
    EXPECT_EQ(pair.b.participant.counters.malformed, 0u);
  });
}

// The writer does not wait for acknowledgments: samples that arrive are in order, lost samples are counted, and the
// last samples arrive.
TEST(Exchange, KeepLastLosesOnlyWhatItCounts) {
  for_each_seed(200, [](uint64_t seed) {
    Pair pair(seed);
    Dice &dice = pair.network.dice;
    const auto depth = static_cast<uint32_t>(dice.between(1, 10));
    const size_t largest = dice.chance(70) ? 200 : 4000;
    const bool reliable = dice.chance(70);
    RtpsWriter &writer = pair.a.writer("rt/x", quality(reliable), depth, largest, pair.network.now);
    RtpsReader &reader = pair.b.reader("rt/x", quality(reliable), largest, pair.network.now);
    pair.network.run(1000 * kMs);
    ASSERT_EQ(pair.b.count(TIDE_RTPS_EVENT_MATCHED), 1u);
    pair.network.faults = {static_cast<int>(dice.between(0, 40)), static_cast<int>(dice.between(0, 20)),
                           static_cast<int>(dice.between(0, 20))};
    for (int i = 0; i < 200; i++) {
      pair.a.write(writer, static_cast<size_t>(dice.between(0, static_cast<int64_t>(largest))), pair.network.now);
      pair.network.run(dice.between(0, 5) * kMs);
    }
    pair.network.faults = {};
    pair.network.run(10'000 * kMs);
    expect_unchanged(reader, writer);
    ASSERT_FALSE(reader.received.empty());
    const int64_t last = reader.received.back().sequence;
    const int64_t missing = last - static_cast<int64_t>(reader.received.size());
    if (reliable) {
      EXPECT_EQ(last, 200);
      EXPECT_EQ(pair.b.participant.counters.lost, missing);
      EXPECT_TRUE(tide_participant_is_acknowledged(&pair.a.participant, &writer.writer));
    } else {
      // Samples before the first one that arrived do not count as lost.
      EXPECT_EQ(pair.b.participant.counters.lost, missing - (reader.received.front().sequence - 1));
    }
  });
}

TEST(Exchange, LateJoinerOfATransientLocalTopic) {
  for_each_seed(50, [](uint64_t seed) {
    Pair pair(seed);
    pair.network.faults = {20, 10, 10};
    const bool reliable = pair.network.dice.chance(70);
    RtpsWriter &writer = pair.a.writer("rt/x", quality(true, 1), 5, 3000, pair.network.now);
    for (int i = 0; i < 9; i++) pair.a.write(writer, 10, pair.network.now);
    pair.network.run(1000 * kMs);
    RtpsReader &reader = pair.b.reader("rt/x", quality(reliable, 1), 3000, pair.network.now);
    RtpsReader &plain = pair.b.reader("rt/x", quality(reliable, 0), 3000, pair.network.now);
    pair.network.run(20'000 * kMs);
    EXPECT_TRUE(plain.received.empty());
    if (reliable) {
      ASSERT_EQ(reader.received.size(), 5u);
      EXPECT_EQ(reader.received[0].sequence, 5);
      EXPECT_EQ(pair.b.participant.counters.lost, 0u);
    }
    expect_unchanged(reader, writer);
    pair.a.write(writer, 3000, pair.network.now);
    pair.network.run(20'000 * kMs);
    if (reliable) {
      EXPECT_EQ(plain.received.size(), 1u);
      EXPECT_EQ(reader.received.size(), 6u);
    }
  });
}

TEST(Exchange, LargeSamplesAtFivePercentLoss) {
  for_each_seed(20, [](uint64_t seed) {
    Pair pair(seed);
    RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 3, 65536, pair.network.now);
    RtpsReader &reader = pair.b.reader("rt/x", quality(true), 65536, pair.network.now);
    pair.network.run(100 * kMs);
    pair.network.faults = {5, 2, 2};
    for (int i = 0; i < 3; i++) pair.a.write(writer, 65536, pair.network.now);
    const uint64_t before = pair.network.bytes;
    pair.network.run(60'000 * kMs, [&] { return reader.received.size() == 3; });
    EXPECT_EQ(reader.received.size(), 3u);
    expect_unchanged(reader, writer);
    EXPECT_LT(pair.network.bytes - before, 3u * 65536 * 5 / 2);  // repairs cost little more than sending all again
  });
}

// Two writers of large samples and one reader, which has memory for one sample.
TEST(Exchange, LargeSamplesOfTwoWritersTakeTurns) {
  for_each_seed(20, [](uint64_t seed) {
    Pair pair(seed);
    RtpsBoard c{3};
    c.start(pair.network.now);
    pair.network.boards.push_back(&c);
    RtpsWriter &first = pair.a.writer("rt/x", quality(true), 3, 20000, pair.network.now);
    RtpsWriter &second = c.writer("rt/x", quality(true), 3, 20000, pair.network.now);
    RtpsReader &reader = pair.b.reader("rt/x", quality(true), 20000, pair.network.now);
    pair.network.run(100 * kMs);
    pair.network.faults = {5, 2, 2};
    for (int i = 0; i < 3; i++) {
      pair.a.write(first, 20000, pair.network.now);
      c.write(second, 20000, pair.network.now);
    }
    pair.network.run(60'000 * kMs, [&] { return reader.received.size() == 6; });
    EXPECT_EQ(reader.received.size(), 6u);
  });
}

// A sample for which there is no room is sent again when there is room, in order.
TEST(Exchange, RefusedSamplesComeAgain) {
  for_each_seed(50, [](uint64_t seed) {
    Pair pair(seed);
    Dice &dice = pair.network.dice;
    const size_t largest = dice.chance(50) ? 200 : 4000;
    RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 20, largest, pair.network.now);
    RtpsReader &reader = pair.b.reader("rt/x", quality(true), largest, pair.network.now);
    pair.network.run(100 * kMs);
    pair.network.faults = {static_cast<int>(dice.between(0, 10)), 5, 5};
    reader.room = static_cast<size_t>(dice.between(0, 3));
    for (int i = 0; i < 20; i++)
      pair.a.write(writer, static_cast<size_t>(dice.between(0, static_cast<int64_t>(largest))), pair.network.now);
    pair.network.run(dice.between(0, 500) * kMs);
    while (reader.received.size() < 20) {
      const size_t before = reader.received.size();
      EXPECT_EQ(reader.room, 0u);
      reader.room = 1;
      tide_participant_resume(&pair.b.participant, &reader.reader, pair.network.now);
      pair.network.run(60'000 * kMs, [&] { return reader.received.size() > before; });
      ASSERT_EQ(reader.received.size(), before + 1);
    }
    expect_unchanged(reader, writer);
    EXPECT_GT(pair.b.participant.counters.refused, 0u);
    EXPECT_EQ(pair.b.participant.counters.lost, 0u);
  });
}

// Without faults a refused sample arrives one round trip after there is room.
TEST(Exchange, ResumedSamplesComeAtOnce) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 20, 100, pair.network.now);
  RtpsReader &reader = pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.network.run(100 * kMs);
  reader.room = 0;
  pair.a.write(writer, 10, pair.network.now);
  pair.network.run(10'000 * kMs);
  const uint64_t before = pair.network.datagrams;
  pair.network.run(10'000 * kMs);
  EXPECT_LT(pair.network.datagrams - before, 100u);  // the sample is not requested all the time
  reader.room = 1;
  tide_participant_resume(&pair.b.participant, &reader.reader, pair.network.now);
  pair.network.run(1 * kMs);
  EXPECT_EQ(reader.received.size(), 1u);
}

TEST(Exchange, ASampleTooLargeIsSkippedAndTold) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 3, 9000, pair.network.now);
  RtpsReader &reader = pair.b.reader("rt/x", quality(true), 5000, pair.network.now);
  pair.network.run(100 * kMs);
  pair.a.write(writer, 9000, pair.network.now);
  pair.a.write(writer, 4000, pair.network.now);
  pair.network.run(1000 * kMs);
  ASSERT_EQ(reader.received.size(), 1u);
  EXPECT_EQ(reader.received[0].sequence, 2);
  EXPECT_EQ(pair.b.count(TIDE_RTPS_EVENT_TOO_LARGE), 1u);
  EXPECT_TRUE(tide_participant_is_acknowledged(&pair.a.participant, &writer.writer));
  EXPECT_EQ(tide_participant_write_begin(&pair.a.participant, &writer.writer, 9001), nullptr);
}

TEST(Exchange, ARequestAndItsReplyKnowEachOther) {
  Pair pair;
  tide_rtps_sample_identity_t asked[2]{}, answered[2]{};
  RtpsWriter &asking = pair.a.writer("rq/x", quality(true), 2, 2016, pair.network.now);
  RtpsReader &served = pair.b.reader("rq/x", quality(true), 2000, pair.network.now);
  RtpsWriter &serving = pair.b.writer("rr/x", quality(true), 2, 2016, pair.network.now);
  RtpsReader &replied = pair.a.reader("rr/x", quality(true), 2000, pair.network.now);
  asking.writer.related = asked;
  serving.writer.related = answered;
  pair.network.run(100 * kMs);
  const tide_rtps_sample_identity_t own{tide_participant_guid(&pair.a.participant, &replied.reader.endpoint), 0};
  for (const size_t bytes : {size_t{8}, size_t{2000}}) {  // whole in one datagram, and in fragments
    ASSERT_NE(tide_participant_write_begin(&pair.a.participant, &asking.writer, bytes), nullptr);
    const int64_t number =
        tide_participant_write_end(&pair.a.participant, &asking.writer, bytes, &own, pair.network.now);
    pair.network.run(100 * kMs);
    ASSERT_EQ(static_cast<int64_t>(served.received.size()), number);
    const RtpsReader::Sample &request = served.received.back();
    EXPECT_TRUE(tide_guid_equal(&request.related.guid, &own.guid));
    const tide_rtps_sample_identity_t of{request.related.guid, request.sequence};
    ASSERT_NE(tide_participant_write_begin(&pair.b.participant, &serving.writer, bytes), nullptr);
    tide_participant_write_end(&pair.b.participant, &serving.writer, bytes, &of, pair.network.now);
    pair.network.run(100 * kMs);
    ASSERT_EQ(static_cast<int64_t>(replied.received.size()), number);
    EXPECT_TRUE(tide_guid_equal(&replied.received.back().related.guid, &own.guid));
    EXPECT_EQ(replied.received.back().related.sequence, number);
  }
}

// Participant a has the vendor's number of Cyclone DDS, so b puts the client and the number of a request before the
// message, in requests of its own and in replies, and sends no ACKNACK with a base of 0.
TEST(Exchange, CycloneHasTheIdentityOfARequestInTheSample) {
  Pair pair;
  pair.a.config.prefix[0] = 0x01;
  pair.a.config.prefix[1] = 0x10;
  pair.a.start(pair.network.now);
  pair.network.observe = [&](const RtpsBoard &board, const tide_rtps_datagram_t &datagram) {
    size_t position = TIDE_RTPS_HEADER_BYTES;
    tide_rtps_submessage_t submessage;
    while (&board == &pair.b && tide_rtps_next(datagram.bytes, datagram.length, &position, &submessage) == 1) {
      if (submessage.id != TIDE_RTPS_ACKNACK) continue;
      tide_cdr_t cdr;
      tide_rtps_repair_t acknack;
      tide_rtps_open(&cdr, &submessage);
      tide_rtps_get_repair(&cdr, &submessage, &acknack);
      EXPECT_GE(acknack.set.base, 1);
    }
  };
  tide_rtps_sample_identity_t asked[2]{}, answered[2]{};
  const int64_t now = pair.network.now;
  RtpsWriter &asking = pair.b.writer("rq/a", quality(true), 2, 2016, now);
  RtpsReader &replied = pair.b.reader("rr/a", quality(true), 2016, now);
  RtpsReader &served = pair.b.reader("rq/b", quality(true), 2016, now);
  RtpsWriter &serving = pair.b.writer("rr/b", quality(true), 2, 2016, now);
  asking.writer.related = asked;
  serving.writer.related = answered;
  RtpsReader &requests = pair.a.reader("rq/a", quality(true), 2016, now);
  RtpsWriter &replies = pair.a.writer("rr/a", quality(true), 2, 2016, now);
  RtpsWriter &calls = pair.a.writer("rq/b", quality(true), 2, 2016, now);
  RtpsReader &answers = pair.a.reader("rr/b", quality(true), 2016, now);
  const auto write = [&](RtpsBoard &board, RtpsWriter &to, const std::vector<uint8_t> &bytes,
                         const tide_rtps_sample_identity_t *related) {
    uint8_t *room = tide_participant_write_begin(&board.participant, &to.writer, bytes.size());
    ASSERT_NE(room, nullptr);
    std::copy(bytes.begin(), bytes.end(), room);
    tide_participant_write_end(&board.participant, &to.writer, bytes.size(), related, pair.network.now);
    pair.network.run(100 * kMs);
  };
  const auto body = [](const RtpsReader &reader) {
    const std::vector<uint8_t> &bytes = reader.received.back().bytes;
    return std::vector<uint8_t>(bytes.begin() + 16, bytes.end());
  };
  pair.network.run(1000 * kMs);
  const tide_rtps_sample_identity_t own{tide_participant_guid(&pair.b.participant, &replied.reader.endpoint), 0};
  size_t count = 0;
  for (const size_t size :
       {size_t{9}, size_t{1270}, size_t{2000}}) {  // whole; whole without the identity; in fragments
    count++;
    const std::vector<uint8_t> message = RtpsBoard::sample(static_cast<int64_t>(count), size);
    write(pair.b, asking, message, &own);
    ASSERT_EQ(requests.received.size(), count);
    EXPECT_EQ(body(requests), message);
    std::vector<uint8_t> reply = requests.received.back().bytes;
    EXPECT_EQ(reply[8], count) << "number of the request";
    write(pair.a, replies, reply, nullptr);
    ASSERT_EQ(replied.received.size(), count);
    EXPECT_EQ(replied.received.back().bytes, message);
    EXPECT_TRUE(tide_guid_equal(&replied.received.back().related.guid, &own.guid));
    EXPECT_EQ(replied.received.back().related.sequence, static_cast<int64_t>(count));

    std::vector<uint8_t> call = reply;
    for (size_t i = 0; i < 16; i++) call[i] = static_cast<uint8_t>(i < 12 ? 0xA0 + i : 0);  // of some client
    write(pair.a, calls, call, nullptr);
    ASSERT_EQ(served.received.size(), count);
    EXPECT_EQ(served.received.back().bytes, message);
    const tide_rtps_sample_identity_t of{served.received.back().related.guid, served.received.back().sequence};
    write(pair.b, serving, message, &of);
    ASSERT_EQ(answers.received.size(), count);
    EXPECT_EQ(answers.received.back().bytes, call);

    reply[0] ^= 1;  // another client's
    write(pair.a, replies, reply, nullptr);
    ASSERT_EQ(replied.received.size(), count + 1);
    EXPECT_FALSE(tide_guid_equal(&replied.received.back().related.guid, &own.guid));
    replied.received.pop_back();
  }
  write(pair.a, calls, std::vector<uint8_t>(15), nullptr);
  EXPECT_EQ(served.received.size(), count) << "too short for an identity";
  EXPECT_EQ(pair.b.participant.counters.malformed, 1u);
}

// Fast DDS sends NACK_FRAG, then ACKNACK, in one datagram.
TEST(Exchange, FragmentsAreRequestedBeforeTheAcknowledgment) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 3, 9000, pair.network.now);
  RtpsReader &reader = pair.b.reader("rt/x", quality(true), 9000, pair.network.now);
  pair.network.run(100 * kMs);
  pair.a.write(writer, 9000, pair.network.now);
  pair.b.is_on = false;
  pair.network.run(1 * kMs);
  uint8_t bytes[200];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  tide_rtps_put_header(&cdr, pair.b.config.prefix);
  tide_rtps_repair_t repair{};
  repair.id = TIDE_RTPS_NACK_FRAG;
  repair.writer = writer.writer.endpoint.entity;
  repair.reader = reader.reader.endpoint.entity;
  repair.first = 1;
  repair.set.base = 2;
  tide_rtps_set_add(&repair.set, 2);
  tide_rtps_set_add(&repair.set, 4);
  repair.count = 1000;
  tide_rtps_put_repair(&cdr, &repair);
  repair.id = TIDE_RTPS_ACKNACK;
  repair.set = {};
  repair.set.base = 1;
  tide_rtps_put_repair(&cdr, &repair);
  tide_participant_receive(&pair.a.participant, bytes, cdr.position, pair.b.config.address, pair.network.now);
  tide_rtps_datagram_t datagram{};
  datagram.bytes = pair.a.buffer.data();
  ASSERT_TRUE(tide_participant_poll(&pair.a.participant, pair.network.now, &datagram));
  EXPECT_GT(datagram.length, 1000u);
  ASSERT_TRUE(tide_participant_poll(&pair.a.participant, pair.network.now, &datagram));
  EXPECT_GT(datagram.length, 1000u);
  EXPECT_FALSE(tide_participant_poll(&pair.a.participant, pair.network.now, &datagram));
  EXPECT_EQ(pair.a.participant.counters.resent, 2u);
}

TEST(Exchange, AnUrgentSampleGoesBetweenTheFragmentsOfALargeOne) {
  Pair pair;
  // Two writers of large samples, and an urgent writer whose turn would not be next.
  RtpsWriter &urgent = pair.a.writer("rt/urgent", quality(true), 1, 8, pair.network.now, 2);
  RtpsWriter &large = pair.a.writer("rt/large", quality(true), 1, 20000, pair.network.now, 1);
  RtpsWriter &other = pair.a.writer("rt/other", quality(true), 1, 20000, pair.network.now, 1);
  RtpsReader &reader = pair.b.reader("rt/urgent", quality(true), 8, pair.network.now);
  pair.b.reader("rt/large", quality(true), 20000, pair.network.now);
  pair.b.reader("rt/other", quality(true), 20000, pair.network.now);
  pair.network.run(100 * kMs);
  ASSERT_EQ(pair.a.matches[0].local, &urgent.writer.endpoint);
  pair.a.write(large, 20000, pair.network.now);
  pair.a.write(other, 20000, pair.network.now);
  tide_rtps_datagram_t datagram{};
  datagram.bytes = pair.a.buffer.data();
  for (int i = 0; i < 3; i++) {
    ASSERT_TRUE(tide_participant_poll(&pair.a.participant, pair.network.now, &datagram));
    EXPECT_GT(datagram.length, 1000u);
  }
  pair.a.write(urgent, 8, pair.network.now);
  ASSERT_TRUE(tide_participant_poll(&pair.a.participant, pair.network.now, &datagram));
  EXPECT_LT(datagram.length, 200u);
  tide_participant_receive(&pair.b.participant, datagram.bytes, datagram.length, pair.a.config.address,
                           pair.network.now);
  EXPECT_EQ(reader.received.size(), 1u);
}

TEST(Exchange, BothSidesRestart) {
  for_each_seed(100, [](uint64_t seed) {
    Pair pair(seed);
    Dice &dice = pair.network.dice;
    pair.network.faults = {static_cast<int>(dice.between(0, 10)), 5, 5};
    RtpsBoard *const boards[] = {&pair.a, &pair.b};
    const auto begin = [&](RtpsBoard &board) {
      board.start(pair.network.now);
      if (&board == &pair.a)
        board.writer("rt/x", quality(true), 4, 100, pair.network.now);
      else
        board.reader("rt/x", quality(true), 100, pair.network.now);
    };
    begin(pair.a);
    begin(pair.b);
    pair.network.run(10'000 * kMs);
    for (int round = 0; round < 4; round++) {
      for (int64_t n = dice.between(0, 150); n > 0; n--) {  // many HEARTBEATs; after a restart their counts are lower
        pair.a.write(pair.a.writers[0], 50, pair.network.now);
        pair.network.run(dice.between(0, 30) * kMs);
      }
      pair.network.run(dice.between(0, 5000) * kMs);
      RtpsBoard &restarted = *boards[dice.between(0, 1)];
      const bool is_same = dice.chance(50);
      if (!is_same) restarted.config.prefix[3]++;
      begin(restarted);
      // With a new GUID the restarted participant is accepted at once; with the old GUID, when the other side has
      // noticed the restart.
      pair.network.run(30'000 * kMs);
      RtpsReader &reader = pair.b.readers[0];
      const size_t before = reader.received.size();
      for (int n = 0; n < 3; n++) {
        pair.a.write(pair.a.writers[0], 50, pair.network.now);
        pair.network.run(1000 * kMs);
      }
      EXPECT_EQ(reader.received.size(), before + 3) << "round " << round << (is_same ? ", same GUID" : "");
      EXPECT_EQ(tide_participant_matched(&pair.b.participant, &reader.reader.endpoint), 1u);
    }
  });
}

std::vector<uint8_t> recorded(const std::string &name) {
  std::ifstream file(TIDE_TEST_DATA "/rtps/fast_dds.txt");
  for (std::string line; std::getline(file, line);)
    if (line.substr(0, line.find(' ')) == name) return bytes_from_hex(line.substr(line.find(' ') + 1));
  throw std::runtime_error("no recording of " + name);
}

// The recordings have several participants and destinations; all are replaced by one participant and one destination.
void arrive(RtpsBoard &board, const std::string &name, uint8_t sequence, int64_t now) {
  std::vector<uint8_t> bytes = recorded(name);
  const std::vector<uint8_t> origin = recorded("publication");
  std::copy(origin.begin() + 8, origin.begin() + 20, bytes.begin() + 8);
  const std::vector<uint8_t> guid(bytes.begin() + 8, bytes.begin() + 20);
  for (size_t i = 20; i + 12 < bytes.size(); i++) {
    if (memcmp(&bytes[i], "\x01\x0f\x10\xf7", 4) != 0 && memcmp(&bytes[i], "\x01\x0f\x78\xfd", 4) != 0 &&
        memcmp(&bytes[i], "\x01\x0f\x10\xf8", 4) != 0 && memcmp(&bytes[i], "\x01\x0f", 2) != 0)
      continue;
    if (i + 12 <= bytes.size() && bytes[i + 2] == guid[2] && bytes[i + 3] == guid[3])
      std::copy(guid.begin(), guid.end(), bytes.begin() + static_cast<ptrdiff_t>(i));
  }
  if (bytes[20] == TIDE_RTPS_INFO_DST) memcpy(&bytes[24], board.config.prefix, TIDE_RTPS_PREFIX_BYTES);
  // After INFO_DST (16 octets) and INFO_TS (12) comes DATA, up to the low word of its sequence number.
  if (sequence != 0) bytes.at(20 + 16 + 12 + 4 + 16) = sequence;
  const uint8_t loopback[] = {127, 0, 0, 1};
  tide_participant_receive(&board.participant, bytes.data(), bytes.size(), loopback, now);
}

TEST(Recorded, FastDdsIsDiscoveredAndMatched) {
  RtpsBoard board{1};
  const int64_t now = 1000 * kMs;
  board.start(now);
  RtpsReader &reader = board.reader("rt/chat", quality(true, 1), 100, now);
  reader.reader.endpoint.type = "std_msgs::msg::dds_::String_";
  RtpsWriter &writer = board.writer("rt/chat", quality(true, 1), 1, 100, now);
  writer.writer.endpoint.type = "std_msgs::msg::dds_::String_";
  arrive(board, "participant", 0, now);
  ASSERT_NE(board.peers[0].port, 0) << board.participant.counters.malformed;
  EXPECT_EQ(board.peers[0].port, TIDE_RTPS_PORT_DISCOVERY(77, 0));
  EXPECT_EQ(board.peers[0].lease_ns, 20'000 * kMs);
  arrive(board, "publication", 1, now);
  EXPECT_EQ(tide_participant_matched(&board.participant, &reader.reader.endpoint), 1u);
  EXPECT_EQ(board.matches[0].remote & 0xFFu, TIDE_RTPS_KIND_WRITER);
  arrive(board, "subscription", 1, now);
  EXPECT_EQ(tide_participant_matched(&board.participant, &writer.writer.endpoint), 1u);
  EXPECT_EQ(board.participant.counters.malformed, 0u);
}

// No received datagram breaks an invariant, or causes many more octets than it has.
TEST(Hostile, DamagedTrafficIsCounted) {
  for_each_seed(30, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> script(512);
    for (uint8_t &byte : script) byte = static_cast<uint8_t>(random());
    exercise_participant(script.data(), script.size());
  });
}

// A message in the name of the first board, from `address`.
void forge(Pair &pair, const uint8_t *address, const std::function<void(tide_cdr_t *)> &put) {
  uint8_t bytes[200];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  tide_rtps_put_header(&cdr, pair.a.config.prefix);
  put(&cdr);
  tide_participant_receive(&pair.b.participant, bytes, cdr.position, address, pair.network.now);
}

TEST(Hostile, AnotherAddressIsNotTheParticipant) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(false), 4, 100, pair.network.now);
  RtpsReader &reader = pair.b.reader("rt/x", quality(false), 100, pair.network.now);
  pair.network.run(100 * kMs);
  const uint8_t sample[] = {0, 1, 0, 0, 1, 2, 3, 4};
  tide_rtps_data_t data{};
  data.writer = writer.writer.endpoint.entity;
  data.sequence = 1;
  data.payload = sample;
  data.payload_bytes = sizeof sample;
  const auto put = [&](tide_cdr_t *cdr) { tide_rtps_put_data(cdr, &data); };
  const uint8_t elsewhere[] = {10, 0, 0, 9};
  forge(pair, elsewhere, put);
  EXPECT_TRUE(reader.received.empty());
  EXPECT_EQ(pair.b.participant.counters.strange, 1u);
  forge(pair, pair.a.config.address, put);
  EXPECT_EQ(reader.received.size(), 1u);
  EXPECT_EQ(pair.b.participant.counters.strange, 1u);
}

// The counts of a participant fall, and not because a datagram was late: it has restarted with the same GUID.
TEST(Hostile, CountsThatFellForLongAreARestart) {
  Pair pair;
  RtpsWriter &writer = pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  pair.b.reader("rt/x", quality(true), 100, pair.network.now);
  pair.network.run(100 * kMs);
  for (int i = 0; i < 10; i++) {
    pair.a.write(writer, 10, pair.network.now);
    pair.network.run(50 * kMs);
  }
  tide_rtps_repair_t heartbeat{};
  heartbeat.id = TIDE_RTPS_HEARTBEAT;
  heartbeat.writer = writer.writer.endpoint.entity;
  heartbeat.first = 1;
  heartbeat.last = 20;
  heartbeat.count = 1;
  const auto put = [&](tide_cdr_t *cdr) { tide_rtps_put_repair(cdr, &heartbeat); };
  forge(pair, pair.a.config.address, put);
  EXPECT_EQ(pair.b.participant.counters.restarted, 0u);
  pair.network.run(2000 * kMs);
  forge(pair, pair.a.config.address, put);
  EXPECT_EQ(pair.b.participant.counters.restarted, 1u);
}

// A participant that announced itself and never answers is not asked for ever.
TEST(Hostile, AForgedAnnouncementIsGivenUp) {
  Pair pair;
  pair.a.writer("rt/x", quality(true), 4, 100, pair.network.now);
  pair.b.config.lease_ns = INT64_MAX / 2;
  pair.b.start(pair.network.now);
  tide_rtps_datagram_t datagram{};
  datagram.bytes = pair.b.buffer.data();
  ASSERT_TRUE(tide_participant_poll(&pair.b.participant, pair.network.now, &datagram));
  pair.b.is_on = false;
  tide_participant_receive(&pair.a.participant, datagram.bytes, datagram.length, pair.b.config.address,
                           pair.network.now);
  pair.network.run(60'000 * kMs);
  const uint64_t before = pair.network.datagrams;
  pair.network.run(600'000 * kMs);
  EXPECT_EQ(pair.network.datagrams - before, 2u * 200);  // announcements: by multicast, and to this participant
}

// Announcements of a thousand participants that do not exist: fewer octets are sent to them than were received.
TEST(Hostile, ForgedAnnouncementsAreNotAmplified) {
  RtpsNetwork network(1);
  RtpsBoard board{1}, forger{2};
  board.start(network.now);
  board.writer("rt/x", quality(true), 4, 100, network.now);
  network.boards = {&board};
  size_t received = 0, sent = 0;
  network.observe = [&](const RtpsBoard &, const tide_rtps_datagram_t &datagram) { sent += datagram.length; };
  for (int i = 0; i < 3000; i++) {
    forger.config.prefix[4] = static_cast<uint8_t>(i);
    forger.config.prefix[5] = static_cast<uint8_t>(i >> 8);
    forger.config.lease_ns = INT64_MAX / 2;
    forger.start(network.now);
    tide_rtps_datagram_t datagram{};
    datagram.bytes = forger.buffer.data();
    ASSERT_TRUE(tide_participant_poll(&forger.participant, network.now, &datagram));
    tide_participant_receive(&board.participant, datagram.bytes, datagram.length, forger.config.address, network.now);
    received += datagram.length;
    network.run(10 * kMs);
  }
  EXPECT_LT(sent, received);
  EXPECT_EQ(board.count(TIDE_RTPS_EVENT_PEERS_FULL), 1u);
}

}  // namespace rtps_participant_test
