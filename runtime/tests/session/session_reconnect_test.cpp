// SPDX-License-Identifier: Apache-2.0
// Successive sessions: late messages of one are not taken for the next one's, and the next one is created despite any
// flood.
#include <utility>

#include "session_bench.h"

namespace session_reconnect_test {

using namespace bench;

void lose_agent(Bench &b) {
  b.agent.die();
  b.agent.live();
  const unsigned connects = b.session()->counters.connects;
  ASSERT_TRUE(b.run_until([&] { return b.session()->counters.connects > connects; }));
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }));
}

TEST(SessionReconnect, EachSessionHasTheNextId) {
  const std::vector<std::vector<uint8_t>> runs = {
      {0x81, 0x82, 0x83}, {0xFD, 0xFE, 0x81, 0x82}, {0x7E, 0x7F, 0x01}, {0x01, 0x02}};
  for (const auto &ids : runs) {
    Bench b({.session = ids[0]});
    b.connect();
    auto program = b.add_program(1);
    for (size_t number = 0; number < ids.size(); ++number) {
      if (number > 0) lose_agent(b);
      EXPECT_EQ(b.agent.client.session, ids[number]);
      ASSERT_TRUE(b.run_until([&] { return program.writers[0]->state == TIDE_OBJECT_CREATED; }));
      b.sent.clear();
      EXPECT_EQ(b.write(program.writers[0]->id, "sample", true, 0), TIDE_OK);
      b.run(10 * ms);
      ASSERT_FALSE(b.sent.empty());
      for (const Bytes &bytes : b.sent) EXPECT_EQ(bytes[0], ids[number]);
    }
  }
}

TEST(SessionReconnect, ClosingAndOpeningIsANewSessionAndRepeatingIsNot) {
  Bench b;
  b.agent.running = false;
  b.open();
  b.run(3 * s);
  b.agent.running = true;
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }));
  EXPECT_EQ(b.agent.client.session, 0x81);
  tide_session_close(b.session());
  tide_session_open(b.session());
  ASSERT_TRUE(b.run_until([&] { return b.session()->counters.connects == 2; }));
  EXPECT_EQ(b.agent.client.session, 0x82);
}

// Late frames of the preceding session, one of every kind that advances a stream.
void bring_late_frames(Bench &b, uint8_t session) {
  const auto bring = [&](uint8_t stream, uint16_t sequence, uint8_t id, const Bytes &body) {
    Bytes bytes = message(session, stream, sequence, b.config.key);
    append(bytes, id, 1, body);
    tide_daemon_on_message(&b.session()->daemon, bytes.data(), bytes.size());
    b.execute();
  };
  for (const uint8_t stream : {0x80, 0x82, 0xFF}) {
    const tide_xrce_heartbeat_t heartbeat = {500, 510, stream};
    bring(0, 0, TIDE_XRCE_HEARTBEAT, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_heartbeat(cdr, &heartbeat); }));
    const tide_xrce_acknack_t acknack = {1, 0, stream};
    bring(0, 0, TIDE_XRCE_ACKNACK, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_acknack(cdr, &acknack); }));
    for (uint16_t sequence = 0; sequence < 5; ++sequence)
      bring(stream, sequence, TIDE_XRCE_STATUS, {0, 10, 0, 0x11, 0x87, 0});
  }
  const tide_xrce_status_agent_t answer = {0, 0, 1, 0, 0x010F, true};
  bring(0, 0, TIDE_XRCE_STATUS_AGENT, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_status_agent(cdr, &answer); }));
  bring(0, 0, TIDE_XRCE_RESET, {});
}

TEST(SessionReconnect, NothingLateSpoilsTheNextSession) {
  for (int64_t late_ns = 0; late_ns < 30 * ms; late_ns += ms / 2) {
    SCOPED_TRACE("late by " + std::to_string(late_ns) + " ns");
    Bench b;
    b.connect();
    auto program = b.add_program(1, 1);
    auto *subscription = b.subscribe(program.readers[0]->id, true, TIDE_PRIORITY(2, 0), 8);
    ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
    b.agent.die();
    b.agent.live();
    const unsigned connects = b.session()->counters.connects;
    for (const char *text : {"a", "b", "c"}) EXPECT_EQ(b.write(program.writers[0]->id, text, true, 0), TIDE_OK);
    ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_CONNECTING; }));
    b.run(late_ns);
    bring_late_frames(b, 0x81);
    ASSERT_TRUE(b.run_until([&] { return b.session()->counters.connects > connects; }));
    bring_late_frames(b, 0x81);
    ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }));
    bring_late_frames(b, 0x81);
    ASSERT_EQ(tide_session_wait_idle(b.session(), 0, b.clock.now_ns + 5 * s, &b.pump), TIDE_OK);
    ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
    for (const char *text : {"1", "2", "3"}) b.agent.publish(program.readers[0]->id, text);
    b.run(100 * ms);
    for (const char *text : {"1", "2", "3", "-"}) EXPECT_EQ(b.take(&subscription->reader), text);
    ASSERT_EQ(b.agent.samples.size(), 3u);
    EXPECT_EQ(b.agent.writes_to_unknown, 0u);
    EXPECT_EQ(b.session()->counters.connects, connects + 1);
    EXPECT_EQ(b.session()->objects_refused, 0);
  }
}

// A restarted device requests its former session, which an agent could take for a late copy.
TEST(SessionReconnect, AnAgentThatGoesOnWithAnOlderSessionIsNoticed) {
  Bench b;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_TRUE(b.run_until([&] { return program.writers[0]->state == TIDE_OBJECT_CREATED; }));
  const tide_xrce_acknack_t acknack = {57, 0, TIDE_STREAM_REQUESTS};
  Bytes bytes = message(0x81, 0, 0, 0);
  append(bytes, TIDE_XRCE_ACKNACK, 1, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_acknack(cdr, &acknack); }));
  tide_daemon_on_message(&b.session()->daemon, bytes.data(), bytes.size());
  ASSERT_TRUE(b.run_until([&] { return b.session()->counters.connects == 2; }, 100 * ms));
  EXPECT_EQ(b.agent.client.session, 0x82);
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }));
  b.run(5 * s);
  EXPECT_EQ(b.session()->counters.connects, 2u);
}

// The objects are created, however long the executor is busy, and even if data occupy every slot.
TEST(SessionReconnect, ObjectsAreMadeWhileDataFloodsInWithTheFewestSlots) {
  for (const size_t slots : {2, 3, 4}) {
    for (const double loss : {0.0, 0.2}) {
      SCOPED_TRACE(std::to_string(slots) + " slots, loss " + std::to_string(loss));
      Bench b({.seed = slots, .slots = slots});
      b.connect();
      auto program = b.add_program(1, 1);
      b.subscribe(program.readers[0]->id, false, TIDE_PRIORITY(5, 0), 8);
      ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
      b.executor_runs = false;
      b.loss_to_agent = b.loss_to_client = loss;
      auto more = b.add_program(2, 2);
      const std::function<void()> flood = [&] {
        b.agent.publish(program.readers[0]->id, "flood");
        b.clock.at(b.clock.now_ns + ms / 5, flood);
      };
      flood();
      EXPECT_TRUE(b.run_until([&] { return more.readers[1]->state == TIDE_OBJECT_CREATED; }, 20 * s));
      EXPECT_GT(b.session()->daemon.receiver.counters.overflow_dropped, 0u);
    }
  }
}

// All nodes but one hold samples. While another sample is begun, a request takes the reserve and returns its node. The
// sample must not get this node, or the objects of the next session could never be created.
TEST(SessionReconnect, TheLastNodeIsForRequestsWhateverComesInBetween) {
  Bench bench(Options{});
  bench.open();
  tide_session_t *session = bench.session();
  const Bench::Writers base = bench.add_program(1, 0);
  size_t written = 0;
  while (bench.write(base.writers[0]->id, "x", true, 0) == TIDE_OK) written++;
  ASSERT_NE(session->reserve, nullptr);
  const auto use_reserve = [&] { tide_daemon_abandon(&session->daemon, std::exchange(session->reserve, nullptr)); };
  use_reserve();
  bool came = false;
  bench.interrupts = [&] {
    if (came || session->reserve == nullptr) return;
    came = true;
    use_reserve();
  };
  EXPECT_EQ(bench.write(base.writers[0]->id, "x", true, 0), TIDE_ERROR_FULL);
  EXPECT_TRUE(came);
  bench.interrupts = nullptr;
  bench.run(10 * s);
  EXPECT_EQ(session->state, TIDE_SESSION_READY);
  EXPECT_EQ(bench.agent.samples.size(), written);
}

}  // namespace session_reconnect_test
