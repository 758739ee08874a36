// SPDX-License-Identifier: Apache-2.0
// The session's state machine against a small agent in virtual time.
#include "session_bench.h"
#include "vectors.h"
namespace session_state_test {

using namespace bench;

int64_t in(Bench &b, int64_t duration_ns) { return b.clock.now_ns + duration_ns; }

bool is_answered(Bench &b) {
  return b.run_until([&] { return !b.session()->ping_asked; }, s);
}
bool is_synchronised(Bench &b, int64_t within_ns) {
  return b.run_until([&] { return !b.session()->time_sync_under_way; }, within_ns);
}

std::vector<std::string> samples_of(const Agent &agent, uint16_t writer) {
  std::vector<std::string> samples;
  for (const auto &[id, text] : agent.samples)
    if (id == writer) samples.push_back(text);
  return samples;
}

std::vector<std::string> numbered(const std::string &prefix, int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(prefix + std::to_string(i));
  return texts;
}

// Data on unreliable links may arrive twice, once in each of two sessions, but never out of order, and none is missing.
void expect_all_in_order(const std::vector<std::string> &got, const std::vector<std::string> &sent) {
  std::vector<std::string> unique;
  for (const std::string &text : got)
    if (std::find(unique.begin(), unique.end(), text) == unique.end()) unique.push_back(text);
  EXPECT_EQ(unique, sent);
}

TEST(SessionConnect, CreatesClientThenObjectsInOrderAndSaysGoodbye) {
  Bench b;
  b.open();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  ASSERT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.client.key, 0xAAAABBBBu);
  EXPECT_EQ(b.agent.client.session, 0x81);
  EXPECT_EQ(b.agent.client.mtu, 508);
  EXPECT_EQ(b.agent.client.vendor, TIDE_XRCE_VENDOR);
  std::vector<uint16_t> created;
  for (const Seen &seen : b.agent.seen)
    if (seen.id == TIDE_XRCE_CREATE) {
      created.push_back(static_cast<uint16_t>(seen.body[2] << 8 | seen.body[3]));
      EXPECT_EQ(seen.flags, 0x07);
      EXPECT_EQ(seen.stream, TIDE_STREAM_REQUESTS);
    }
  EXPECT_EQ(created, (std::vector<uint16_t>{0x0011, 0x0012, 0x0013, 0x0014, 0x0015}));
  tide_session_close(b.session());
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_IDLE, in(b, s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.deletes_of_client, 1u);
  EXPECT_EQ(b.states, (std::vector<tide_session_state_t>{TIDE_SESSION_CONNECTING, TIDE_SESSION_CREATING,
                                                         TIDE_SESSION_READY, TIDE_SESSION_CLOSING, TIDE_SESSION_IDLE}));
}

TEST(SessionConnect, SessionIdsBelow0x80CarryTheKey) {
  Bench b({.session = 0x05});
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  ASSERT_EQ(b.write(program.writers[0]->id, "hello", true, 0), TIDE_OK);
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.samples.size(), 1u);
  EXPECT_EQ(b.sent[0][0], 0x00);
  EXPECT_EQ(Bytes(b.sent[0].begin() + 4, b.sent[0].begin() + 8), (Bytes{0xAA, 0xAA, 0xBB, 0xBB}));
  EXPECT_EQ(b.sent[1][0], 0x05);
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  EXPECT_TRUE(is_answered(b));
  EXPECT_TRUE(b.session()->info_knows_us);
}

TEST(SessionConnect, RepeatsCreateClientQuicklyThenSlowly) {
  Bench b;
  b.agent.running = false;
  b.open();
  const int64_t start_ns = b.clock.now_ns;
  std::vector<int64_t> at;
  size_t seen = 0;
  while (b.clock.now_ns < start_ns + 3 * s) {
    b.step(start_ns + 3 * s);
    for (; seen < b.sent.size(); ++seen) at.push_back((b.clock.now_ns - start_ns) / (100 * ms));
  }
  EXPECT_EQ(at, (std::vector<int64_t>{0, 2, 4, 6, 16, 26}));
  b.agent.running = true;
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, 2 * s), &b.pump), TIDE_OK);
}

TEST(SessionConnect, RefusedClientIsReportedAndTriedAgainSlowly) {
  Bench b;
  b.agent.refuse_client = TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  b.open();
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, s), &b.pump), TIDE_ERROR_REFUSED);
  EXPECT_EQ(b.session()->refusal, 0x85);
  EXPECT_EQ(b.session()->state, TIDE_SESSION_REFUSED);
  const unsigned before = b.agent.create_clients;
  b.run(4900 * ms);
  EXPECT_EQ(b.agent.create_clients, before);
  b.agent.refuse_client = 0;
  EXPECT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }, 200 * ms));
  EXPECT_EQ(b.session()->refusal, 0);
}

TEST(SessionConnect, AnotherMajorVersionIsNotAccepted) {
  Bench b;
  b.agent.version_major = 2;
  b.open();
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, s), &b.pump), TIDE_ERROR_VERSION);
}

TEST(SessionConnect, AStrangerIsNotTakenForTheAgent) {
  Bench b;
  b.agent.running = false;
  b.open();
  b.run(10 * ms);
  Bytes bytes = message(0x82, 0, 0, 0); /* another session id */
  append(bytes, TIDE_XRCE_STATUS_AGENT, 1, bytes_from_hex("000058524345010001 0f00"));
  tide_daemon_on_message(&b.session()->daemon, bytes.data(), bytes.size());
  bytes = message(0x81, 0, 0, 0); /* no cookie */
  append(bytes, TIDE_XRCE_STATUS_AGENT, 1, bytes_from_hex("000058585858010001 0f00"));
  tide_daemon_on_message(&b.session()->daemon, bytes.data(), bytes.size());
  b.run(10 * ms);
  EXPECT_NE(b.session()->state, TIDE_SESSION_CREATING);
  EXPECT_NE(b.session()->state, TIDE_SESSION_READY);
}

TEST(SessionConnect, BadConfigurationsAreRefused) {
  Bench b;
  const tide_session_config_t good = b.config;
  tide_session_config_t bad = good;
  bad.key = 0;
  EXPECT_EQ(tide_session_init(b.session(), &bad), TIDE_ERROR_ARGUMENT);
  for (const uint8_t session : {0x00, 0x80, 0xFF}) {
    bad = good;
    bad.session = session;
    EXPECT_EQ(tide_session_init(b.session(), &bad), TIDE_ERROR_ARGUMENT);
  }
  bad = good;
  bad.mtu = 1024; /* because the agent would send more than a slot holds */
  EXPECT_EQ(tide_session_init(b.session(), &bad), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_session_init(nullptr, &good), TIDE_ERROR_ARGUMENT);
  b.start();
}

TEST(SessionConnect, FramesOfAnOldSessionDoNotSpoilTheNewOne) {
  Bench b;
  b.agent.running = false;
  b.open();
  auto program = b.add_program(1, 1);
  auto *subscription = b.subscribe(program.readers[0]->id, true, 0, 8);
  b.run(10 * ms);
  for (uint16_t sequence = 0; sequence < 8; ++sequence) { /* an agent that does not yet know that the session ended */
    Bytes bytes = message(0x81, 0x80, sequence == 3 ? 9 : sequence, 0);
    append(bytes, TIDE_XRCE_DATA, 1, bytes_from_hex("000f00160badc0de"));
    tide_daemon_on_message(&b.session()->daemon, bytes.data(), bytes.size());
    b.execute();
  }
  b.agent.running = true;
  ASSERT_EQ(tide_session_wait_object(b.session(), program.readers[0], in(b, 2 * s), &b.pump), TIDE_OK);
  ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }, s));
  for (const char *text : {"a", "b", "c", "d"}) b.agent.publish(program.readers[0]->id, text);
  b.run(20 * ms);
  for (const char *text : {"a", "b", "c", "d", "-"}) EXPECT_EQ(b.take(&subscription->reader), text);
}

TEST(SessionConnect, CloseWithoutAnAnswerEndsAnyway) {
  Bench b;
  b.connect();
  b.cut = true;
  tide_session_close(b.session());
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_IDLE, in(b, 2 * s), &b.pump), TIDE_OK);
  b.cut = false;
  tide_session_open(b.session());
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, 2 * s), &b.pump), TIDE_OK);
}

TEST(SessionConnect, WhatWasPublishedLeavesBeforeTheGoodbye) {
  Bench b({.wire_ns_per_byte = 100'000});
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, 5 * s), &b.pump), TIDE_OK);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(b.write(program.writers[0]->id, "b" + std::to_string(i), false, 0), TIDE_OK);
    EXPECT_EQ(b.write(program.writers[0]->id, "r" + std::to_string(i), true, 0), TIDE_OK);
  }
  tide_session_close(b.session());
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_IDLE, in(b, 2 * s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.samples.size(), 10u);
  EXPECT_EQ(b.agent.deletes_of_client, 1u);
}

TEST(SessionConnect, ASecondCloseDoesNotCutTheGoodbyeShort) {
  Bench b({.wire_ns_per_byte = 100'000});
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, 5 * s), &b.pump), TIDE_OK);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(b.write(program.writers[0]->id, "r" + std::to_string(i), true, 0), TIDE_OK);
  tide_session_close(b.session());
  tide_session_close(b.session());
  EXPECT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_IDLE, in(b, 2 * s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.samples.size(), 5u);
  EXPECT_EQ(b.agent.deletes_of_client, 1u);
}

TEST(SessionDeathTest, AHeldSampleTooManyIsNoticed) {
  Bench b;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(b.write(program.writers[0]->id, "held", true, 0), TIDE_OK);
  ASSERT_EQ(b.session()->held_count, 1u);
  b.session()->held_count = 2;
  EXPECT_DEATH((void)b.write(program.writers[0]->id, "next", true, 0), "broken invariant: hold_is_whole");
}

TEST(SessionConnect, AGoodbyeOnALineThatWasDownDoesNotEndTheNextSession) {
  Bench b;
  b.connect();
  tide_daemon_detach_link(&b.session()->daemon);
  tide_session_close(b.session());
  ASSERT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_IDLE, in(b, 2 * s), &b.pump), TIDE_OK);
  tide_session_open(b.session());
  b.run(50 * ms);
  b.attach();
  ASSERT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, 2 * s), &b.pump), TIDE_OK);
  b.run(5 * s);
  EXPECT_EQ(b.session()->counters.reconnects, 0u);
  EXPECT_TRUE(b.agent.knows_client());
}

TEST(SessionConnect, OpenWhileClosingConnectsAgain) {
  Bench b;
  b.connect();
  tide_session_close(b.session());
  tide_session_open(b.session());
  EXPECT_TRUE(b.run_until([&] { return b.session()->counters.connects == 2; }, s));
  EXPECT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }, s));
}

TEST(SessionObjects, ARefusedObjectDoesNotStopTheOthers) {
  Bench b;
  b.agent.refuse_object[0x0012] = TIDE_XRCE_STATUS_ERR_DDS;
  b.connect();
  auto program = b.add_program(2);
  EXPECT_EQ(tide_session_wait_object(b.session(), program.topic, in(b, s), &b.pump), TIDE_ERROR_REFUSED);
  EXPECT_EQ(program.topic->status, TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(tide_session_wait_object(b.session(), program.writers[1], in(b, s), &b.pump), TIDE_OK);
  tide_write_t write;
  EXPECT_EQ(tide_session_write_begin(b.session(), &write, program.topic->id, true, 0, 4), TIDE_ERROR_REFUSED);
  EXPECT_EQ(b.write(program.writers[1]->id, "fine", true, 0), TIDE_OK);
}

TEST(SessionObjects, CapacityExistenceAndSizeAreChecked) {
  Bench b;
  b.config.object_count = 2;
  b.connect();
  tide_object_t *first = b.add(TIDE_XRCE_KIND_PARTICIPANT, 0);
  EXPECT_EQ(tide_session_add_object(b.session(), first), TIDE_ERROR_EXISTS);
  tide_object_t large{};
  large.description.kind = TIDE_XRCE_KIND_TOPIC;
  large.description.representation = TIDE_XRCE_BY_XML;
  const std::string xml(2100, 'x');
  large.description.text = {xml.data(), xml.size()};
  EXPECT_EQ(tide_session_add_object(b.session(), &large), TIDE_ERROR_TOO_LARGE);
  b.add(TIDE_XRCE_KIND_TOPIC, first->id);
  tide_object_t third{};
  third.description.kind = TIDE_XRCE_KIND_TOPIC;
  third.description.representation = TIDE_XRCE_BY_XML;
  EXPECT_EQ(tide_session_add_object(b.session(), &third), TIDE_ERROR_CAPACITY_OBJECTS);
  third.description.kind = 9;
  EXPECT_EQ(tide_session_add_object(b.session(), &third), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_session_remove_object(b.session(), &third), TIDE_ERROR_NOT_FOUND);
}

TEST(SessionObjects, RemovedObjectsAreDeletedOnTheAgentAndTheirPlaceIsFree) {
  Bench b;
  b.config.object_count = 5;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  ASSERT_EQ(tide_session_remove_object(b.session(), program.writers[0]), TIDE_OK);
  EXPECT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_ERROR_NOT_FOUND);
  EXPECT_TRUE(b.run_until([&] { return b.agent.objects.count(0x0015) == 0; }, s));
  EXPECT_EQ(b.add(TIDE_XRCE_KIND_DATAWRITER, program.publisher->id)->id, 0x0025);
  b.run(100 * ms);
  EXPECT_EQ(b.session()->counters.statuses_unexpected, 0u);
}

TEST(SessionObjects, NumbersAreUsedAgainOnlyAfterAllHaveBeen) {
  Bench b;
  b.start(); /* the session is not open, so nothing is sent */
  tide_object_t kept{}, object{};
  kept.description.kind = object.description.kind = TIDE_XRCE_KIND_TOPIC;
  kept.description.representation = object.description.representation = TIDE_XRCE_BY_XML;
  ASSERT_EQ(tide_session_add_object(b.session(), &kept), TIDE_OK);
  for (unsigned number = 2; number <= 0xFFF; ++number) {
    object.id = 0;
    ASSERT_EQ(tide_session_add_object(b.session(), &object), TIDE_OK);
    ASSERT_EQ(object.id, number << 4 | 2u);
    ASSERT_EQ(tide_session_remove_object(b.session(), &object), TIDE_OK);
  }
  object.id = 0;
  ASSERT_EQ(tide_session_add_object(b.session(), &object), TIDE_OK);
  EXPECT_EQ(object.id, 0x0022);
}

TEST(SessionObjects, BestEffortObjectStreamRepeatsUntilAnswered) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bench b({.seed = seed, .loss = 0.3, .object_stream = TIDE_STREAM_BEST_EFFORT(0)});
    b.config.silence_limit_ns = 100 * s;
    b.open();
    auto program = b.add_program(1, 1);
    b.subscribe(program.readers[0]->id, false, 0, 2);
    ASSERT_TRUE(b.run_until([&] { return b.session()->objects_unanswered == 0; }));
    EXPECT_EQ(b.session()->counters.objects_created, 6u);
    EXPECT_EQ(b.session()->objects_refused, 0);
    for (const Seen &seen : b.agent.seen) EXPECT_TRUE(seen.id != TIDE_XRCE_CREATE || seen.stream == 0x01);
    b.loss_to_agent = b.loss_to_client = 0;
    EXPECT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }, 5 * s)) << "READ_DATA is sent twice";
  }
}

TEST(SessionWrite, BestEffortNeedsASessionAndReliableIsKept) {
  Bench b;
  b.agent.running = false;
  b.open();
  auto program = b.add_program(1);
  const uint16_t writer = program.writers[0]->id;
  tide_write_t write;
  EXPECT_EQ(tide_session_write_begin(b.session(), &write, writer, false, 0, 4), TIDE_ERROR_DISCONNECTED);
  for (const std::string &text : numbered("kept ", 5)) EXPECT_EQ(b.write(writer, text, true, 0), TIDE_OK);
  EXPECT_FALSE(tide_session_is_idle(b.session(), 0));
  EXPECT_FALSE(tide_session_is_idle(b.session(), TIDE_STREAM_RELIABLE(0)));
  EXPECT_TRUE(tide_session_is_idle(b.session(), TIDE_STREAM_RELIABLE(1)));
  b.agent.running = true;
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, 5 * s), &b.pump), TIDE_OK);
  EXPECT_EQ(samples_of(b.agent, writer), numbered("kept ", 5));
  EXPECT_EQ(b.agent.writes_to_unknown, 0u);
  EXPECT_EQ(b.session()->counters.held_maximum, 5u);
  EXPECT_EQ(b.write(writer, "now", false, 0), TIDE_OK);
  EXPECT_TRUE(b.run_until([&] { return b.agent.samples.size() == 6; }, s));
}

TEST(SessionWrite, SamplesOfANewObjectWaitForItButOthersDoNot) {
  Bench b;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  b.agent.creation_ns = 500 * ms;
  tide_object_t *late = b.add(TIDE_XRCE_KIND_DATAWRITER, program.publisher->id, program.topic->id);
  EXPECT_EQ(b.write(late->id, "late", true, TIDE_PRIORITY(3, 0)), TIDE_OK);
  EXPECT_EQ(b.write(program.writers[0]->id, "early", true, TIDE_PRIORITY(3, 0)), TIDE_OK);
  b.run(100 * ms);
  EXPECT_EQ(samples_of(b.agent, program.writers[0]->id).size(), 1u);
  EXPECT_EQ(samples_of(b.agent, late->id).size(), 0u);
  b.run(s);
  EXPECT_EQ(samples_of(b.agent, late->id).size(), 1u);
  EXPECT_EQ(b.agent.writes_to_unknown, 0u);
}

TEST(SessionWrite, SizesAreCheckedAndFewerBytesMayBeWritten) {
  Bench b;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  tide_write_t write;
  EXPECT_EQ(tide_session_write_begin(b.session(), &write, 0x15, true, 0, 65532), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(tide_session_write_begin(b.session(), &write, 0x15, true, 0, 3000), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(tide_session_write_begin(b.session(), &write, 0x15, true, TIDE_PRIORITY(127, 0), 4), TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(tide_session_write_begin(b.session(), &write, 0x15, true, 0, 100), TIDE_OK);
  tide_cdr_put_u8(&write.cdr, 'a');
  tide_cdr_put_u32(&write.cdr, 0x64636362); /* aligned relative to the start of the payload */
  ASSERT_EQ(tide_session_write_end(&write), TIDE_OK);
  ASSERT_EQ(tide_session_write_begin(b.session(), &write, 0x15, true, 0, 4), TIDE_OK);
  tide_cdr_put_u64(&write.cdr, 1);
  EXPECT_EQ(tide_session_write_end(&write), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(tide_session_write_end(&write), TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, s), &b.pump), TIDE_OK);
  ASSERT_EQ(b.agent.samples.size(), 1u);
  EXPECT_EQ(b.agent.samples[0].second, std::string("a\0\0\0bccd", 8));
  const std::string large(1900, 'l');
  ASSERT_EQ(b.write(0x15, large, true, 0), TIDE_OK);
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, s), &b.pump), TIDE_OK);
  EXPECT_EQ(b.agent.samples[1].second, large);
}

TEST(SessionWrite, WhateverIsKeptObjectsCanBeCreated) {
  Bench b({.small_nodes = 3, .large_nodes = 0});
  b.agent.running = false;
  b.open();
  auto program = b.add_program(1);
  int kept = 0;
  while (b.write(program.writers[0]->id, "k" + std::to_string(kept), true, 0) == TIDE_OK) ASSERT_LT(++kept, 4);
  EXPECT_EQ(kept, 2);
  b.agent.running = true;
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, 10 * s), &b.pump), TIDE_OK);
  EXPECT_EQ(samples_of(b.agent, program.writers[0]->id), numbered("k", kept));
}

TEST(SessionLiveness, AnAgentThatWasRestartedIsNoticedAndEverythingIsMadeAgain) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bench b({.seed = seed, .loss = seed % 3 == 0 ? 0.1 : 0.0});
    b.connect();
    auto program = b.add_program(3, 1);
    auto *subscription = b.subscribe(program.readers[0]->id, true, TIDE_PRIORITY(2, 1), 4);
    ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
    const unsigned writes_before_restart = b.agent.writes_to_unknown;
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::string>> sent(3);
    auto write_some = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const size_t w = random() % 3;
        const std::string text =
            std::to_string(w) + ":" + std::to_string(sent[w].size()) + std::string(random() % 8 == 0 ? 900 : 3, '.');
        if (b.write(program.writers[w]->id, text, true, TIDE_PRIORITY(w * 2, 0)) == TIDE_OK) sent[w].push_back(text);
        b.run(static_cast<int64_t>(random() % 3) * ms);
      }
    };
    write_some(10);
    b.agent.die();
    write_some(6); /* lost with the agent, or received but never acknowledged */
    const std::vector<std::pair<uint16_t, std::string>> before = b.agent.samples;
    b.run(static_cast<int64_t>(random() % 4000) * ms);
    b.agent.live();
    write_some(5);
    const unsigned connects = b.session()->counters.connects;
    ASSERT_TRUE(b.run_until([&] { return b.session()->counters.connects > connects || connects > 1; }, 30 * s));
    ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }, 30 * s));
    write_some(5);
    ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, 30 * s), &b.pump), TIDE_OK);
    EXPECT_EQ(b.agent.writes_to_unknown, writes_before_restart);
    for (size_t w = 0; w < 3; ++w) {
      SCOPED_TRACE("writer " + std::to_string(w));
      expect_all_in_order(samples_of(b.agent, program.writers[w]->id), sent[w]);
    }
    ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
    EXPECT_EQ(b.agent.reads.begin()->second.stream, 0x82);
    b.agent.publish(program.readers[0]->id, "back");
    ASSERT_TRUE(b.run_until([&] { return subscription->reader.count == 1; }));
    EXPECT_EQ(b.take(&subscription->reader), "back");
  }
}

TEST(SessionLiveness, ALineThatWasCutKeepsEverything) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bench b({.seed = seed});
    b.connect();
    auto program = b.add_program(2);
    ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[1], in(b, s), &b.pump), TIDE_OK);
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::string>> sent(2);
    for (int round = 0; round < 6; ++round) {
      b.cut = round % 2 == 1;
      for (int i = 0; i < 4; ++i) {
        const size_t w = random() % 2;
        sent[w].push_back(std::to_string(w) + ":" + std::to_string(sent[w].size()));
        ASSERT_EQ(b.write(program.writers[w]->id, sent[w].back(), true, TIDE_PRIORITY(w, 0)), TIDE_OK);
        b.run(static_cast<int64_t>(random() % 1200) * ms);
      }
    }
    b.cut = false;
    ASSERT_TRUE(b.run_until(
        [&] { return b.session()->state == TIDE_SESSION_READY && tide_session_is_idle(b.session(), 0); }, 60 * s));
    for (size_t w = 0; w < 2; ++w) expect_all_in_order(samples_of(b.agent, program.writers[w]->id), sent[w]);
    EXPECT_EQ(b.agent.writes_to_unknown, 0u);
  }
}

TEST(SessionLiveness, AQuietSessionIsAskedAboutOnceASilence) {
  Bench b;
  b.connect();
  b.run(10 * s);
  EXPECT_EQ(b.session()->counters.connects, 1u);
  EXPECT_NEAR(b.session()->counters.pings, 10, 1);
}

TEST(SessionLiveness, EightUnansweredPingsEndTheSession) {
  Bench b;
  b.connect();
  const int64_t start_ns = b.clock.now_ns;
  b.cut = true;
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_CONNECTING; }, 10 * s));
  EXPECT_NEAR(static_cast<double>(b.clock.now_ns - start_ns), 5e9, 0.1e9);
  EXPECT_EQ(b.session()->counters.pings, 8u);
}

TEST(SessionLiveness, ALineThatComesBackInTimeGoesOnWithTheSameSession) {
  for (const int64_t cut_ns : {1 * s, 2 * s, 3 * s, 9 * s / 2}) {
    SCOPED_TRACE("cut for " + std::to_string(cut_ns) + " ns");
    Bench b;
    b.connect();
    b.cut = true;
    b.run(cut_ns);
    b.cut = false;
    b.run(10 * s);
    EXPECT_EQ(b.session()->state, TIDE_SESSION_READY);
    EXPECT_EQ(b.session()->counters.reconnects, 0u);
  }
}

TEST(SessionLiveness, LossDoesNotEndASession) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bench b({.seed = seed, .loss = 0.2});
    b.connect();
    auto program = b.add_program(1);
    ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, 20 * s), &b.pump), TIDE_OK);
    std::vector<std::string> sent;
    for (int i = 0; i < 300; ++i) {
      sent.push_back(std::to_string(i));
      ASSERT_TRUE(
          b.run_until([&] { return b.write(program.writers[0]->id, sent.back(), true, 0) == TIDE_OK; }, 10 * s));
      b.run(10 * ms);
    }
    ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, 20 * s), &b.pump), TIDE_OK);
    if (b.session()->counters.reconnects == 0) EXPECT_EQ(samples_of(b.agent, 0x15), sent);
    EXPECT_LE(b.session()->counters.reconnects, 1u);
    expect_all_in_order(samples_of(b.agent, 0x15), sent);
  }
}

TEST(SessionLiveness, AnUplinkThatIsDeadIsNoticedAlthoughFramesStillCome) {
  Bench b;
  b.connect();
  auto program = b.add_program(1, 1);
  b.subscribe(program.readers[0]->id, false, 0, 1);
  ASSERT_TRUE(b.run_until([&] { return b.agent.reads.size() == 1; }));
  b.loss_to_agent = 1;
  ASSERT_EQ(b.write(program.writers[0]->id, "x", true, 0), TIDE_OK);
  std::function<void()> chatter = [&] {
    b.agent.publish(program.readers[0]->id, "chatter");
    b.clock.at(b.clock.now_ns + 50 * ms, chatter);
  };
  chatter();
  EXPECT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_CONNECTING; }, 10 * s));
}

TEST(SessionLiveness, TheAgentMayAskToo) {
  Bench b;
  b.connect();
  b.agent.ask_client(0x1234);
  ASSERT_TRUE(b.run_until([&] { return b.agent.infos.size() == 1; }, s));
  EXPECT_EQ(b.agent.infos[0].related.request, 0x1234);
  EXPECT_EQ(b.agent.infos[0].related.object, TIDE_XRCE_OBJECT_CLIENT);
  EXPECT_EQ(b.agent.infos[0].status, 0);
}

TEST(SessionLiveness, ResetOfTheAgentStartsAgain) {
  Bench b;
  b.connect();
  b.agent.send_control(0x81, TIDE_XRCE_RESET, {});
  EXPECT_TRUE(b.run_until([&] { return b.session()->counters.connects == 2; }, s));
}

TEST(SessionLiveness, AnAgentThatAnswersPingsButCreatesNothingIsStartedAgain) {
  Bench b;
  b.agent.creation_ns = 1000 * s;
  b.open();
  auto program = b.add_program(1);
  ASSERT_TRUE(b.run_until([&] { return b.session()->counters.reconnects == 1; }, 12 * s));
  b.agent.creation_ns = ms;
  EXPECT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, 2 * s), &b.pump), TIDE_OK);
}

TEST(SessionLiveness, ASubmissionThatCrossesTheEndOfTheSessionIsKept) {
  Bench b;
  b.connect();
  auto program = b.add_program(1);
  ASSERT_EQ(tide_session_wait_object(b.session(), program.writers[0], in(b, s), &b.pump), TIDE_OK);
  b.agent.die();
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_CONNECTING; }, 10 * s));
  b.run(10 * ms);
  tide_node_t *node = nullptr;
  ASSERT_EQ(tide_daemon_acquire(&b.session()->daemon, 12, 0, &node), TIDE_OK);
  const Bytes late = bytes_from_hex("07010800 00630015 6c617465");
  std::memcpy(node->bytes, late.data(), late.size());
  node->length = 12;
  ASSERT_EQ(tide_daemon_submit(&b.session()->daemon, node, TIDE_STREAM_RELIABLE(0)), TIDE_OK);
  b.run(10 * ms);
  b.agent.live();
  ASSERT_TRUE(b.run_until([&] { return b.session()->state == TIDE_SESSION_READY; }, 5 * s));
  ASSERT_EQ(tide_session_wait_idle(b.session(), 0, in(b, s), &b.pump), TIDE_OK);
  EXPECT_EQ(samples_of(b.agent, program.writers[0]->id), std::vector<std::string>{"late"});
  EXPECT_EQ(b.agent.writes_to_unknown, 0u);
}

TEST(SessionPing, WorksInsideAndOutsideASession) {
  Bench b;
  b.start();
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  EXPECT_TRUE(is_answered(b));
  EXPECT_EQ(b.sent[0][0], 0x80);
  EXPECT_FALSE(b.session()->info_knows_us);
  EXPECT_GT(b.session()->ping_round_trip_ns, 600'000);
  EXPECT_LT(b.session()->ping_round_trip_ns, 800'000);
  b.agent.running = false;
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  EXPECT_FALSE(is_answered(b));
  EXPECT_EQ(b.session()->ping_round_trip_ns, -1);
  b.agent.running = true;
  tide_session_open(b.session());
  ASSERT_EQ(tide_session_wait_state(b.session(), TIDE_SESSION_READY, in(b, 2 * s), &b.pump), TIDE_OK);
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  EXPECT_TRUE(is_answered(b));
  EXPECT_TRUE(b.session()->info_knows_us);
}

TEST(SessionPing, ALateAnswerDoesNotCountForTheNextQuestion) {
  Bench b;
  b.start();
  b.agent.mute_info = true;
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  b.run(100 * ms);
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  const tide_xrce_info_t late = {{10, TIDE_XRCE_OBJECT_AGENT}, 0, 0, 0x010F, 1, 0};
  b.agent.send_control(0x80, TIDE_XRCE_INFO, body_of([&](tide_cdr_t *cdr) { tide_xrce_put_info(cdr, &late); }));
  b.run(100 * ms);
  EXPECT_EQ(b.session()->ping_round_trip_ns, -1);
}

TEST(SessionPing, AnAnswerIsSeenThoughSomebodyAsksAgainBeforeTheFirstOneLooks) {
  Bench b;
  b.start();
  const uint32_t before = b.session()->ping_answers;
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  b.run(100 * ms);
  EXPECT_GE(b.session()->ping_round_trip_ns, 0);
  b.agent.mute_info = true;
  ASSERT_EQ(tide_session_ping(b.session()), TIDE_OK);
  b.run(100 * ms);
  EXPECT_EQ(b.session()->ping_round_trip_ns, -1);
  EXPECT_EQ(b.session()->ping_answers, before + 1u);
}

TEST(SessionTimeSync, TheQuickestOfTheRecentExchangesIsBelieved) {
  Bench b;
  b.connect();
  std::mt19937_64 random(7);
  for (int i = 0; i < 20; ++i) {
    /* with all the delay on one side, the offset is wrong by half of the delay */
    b.agent.reply_delay_ns = i % 5 == 2 ? 0 : static_cast<int64_t>(random() % 40) * ms;
    ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
    ASSERT_TRUE(is_synchronised(b, s));
    if (i >= 2) EXPECT_NEAR(static_cast<double>(b.session()->time_sync.offset_ns - b.agent.wall_offset_ns), 0, 50'000);
  }
  EXPECT_EQ(b.session()->time_sync.exchanges, 20u);
  EXPECT_LT(b.session()->time_sync.round_trip_ns, ms);
  b.agent.wall_offset_ns += 3600 * s; /* the clock of the host was set */
  b.agent.reply_delay_ns = 30 * ms;
  ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
  ASSERT_TRUE(is_synchronised(b, s));
  EXPECT_NEAR(static_cast<double>(b.session()->time_sync.offset_ns - b.agent.wall_offset_ns), 0, 16e6);
}

TEST(SessionTimeSync, LateAndForeignRepliesAreIgnored) {
  Bench b;
  b.connect();
  b.agent.reply_delay_ns = 200 * ms;
  ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
  EXPECT_FALSE(is_synchronised(b, 100 * ms));
  b.agent.reply_delay_ns = 0;
  ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
  const tide_xrce_time_t never = tide_xrce_time_from_ns(b.clock.now_ns - 1);
  const tide_xrce_timestamp_reply_t foreign = {never, never, never};
  b.agent.send_control(0x81, TIDE_XRCE_TIMESTAMP_REPLY,
                       body_of([&](tide_cdr_t *cdr) { tide_xrce_put_timestamp_reply(cdr, &foreign); }));
  ASSERT_TRUE(is_synchronised(b, s));
  EXPECT_NEAR(static_cast<double>(b.session()->time_sync.offset_ns - b.agent.wall_offset_ns), 0, 50'000);
  const tide_time_sync_t good = b.session()->time_sync;
  b.run(300 * ms);
  EXPECT_EQ(b.session()->time_sync.offset_ns, good.offset_ns);
  EXPECT_EQ(b.session()->time_sync.exchanges, 1u);
  EXPECT_EQ(b.session()->time_sync.ignored, 2u) << "the foreign one, and the late one";
  tide_session_close(b.session());
  EXPECT_EQ(tide_session_synchronise(b.session()), TIDE_ERROR_DISCONNECTED);
}

/* The reply to the current exchange, from an agent that took the given time by its own clock. */
static void reply_after(Bench &b, int64_t work_ns) {
  const int64_t received_ns = b.clock.now_ns + b.agent.wall_offset_ns;
  const tide_xrce_timestamp_reply_t reply = {tide_xrce_time_from_ns(received_ns + work_ns),
                                             tide_xrce_time_from_ns(received_ns),
                                             tide_xrce_time_from_ns(b.session()->time_sync_sent_ns)};
  b.agent.send_control(0x81, TIDE_XRCE_TIMESTAMP_REPLY,
                       body_of([&](tide_cdr_t *cdr) { tide_xrce_put_timestamp_reply(cdr, &reply); }));
}

TEST(SessionTimeSync, AClockOfTicksMayStandStillWhileTheAgentWorks) {
  Bench b;
  b.connect();
  b.agent.reply_delay_ns = 10 * s;
  ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
  reply_after(b, 8 * ms);
  ASSERT_TRUE(is_synchronised(b, 100 * ms));
  EXPECT_EQ(b.session()->time_sync.round_trip_ns, 0);
  EXPECT_NEAR(static_cast<double>(b.session()->time_sync.offset_ns - b.agent.wall_offset_ns), 0, 5e6);
  ASSERT_EQ(tide_session_synchronise(b.session()), TIDE_OK);
  reply_after(b, 50 * ms);
  EXPECT_FALSE(is_synchronised(b, 100 * ms)) << "nonsense";
}

}  // namespace session_state_test
