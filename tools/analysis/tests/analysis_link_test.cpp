// SPDX-License-Identifier: Apache-2.0
// Analysis of the link: times of frames to the nanosecond, bounds of small systems computed by hand, and error
// messages.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "analysis/link.h"

namespace tide::analysis {
namespace analysis_link_test {

constexpr time_ns kMs = 1'000'000;

LinkChain round_trip(const std::string &name, int64_t priority, time_ns sample_ns, time_ns act_ns,
                     int64_t payload_bytes = 96) {
  return {name,
          priority,
          500 * kMs,
          100 * kMs,
          false,
          false,
          {{"sample", kOnClient, sample_ns, sample_ns, payload_bytes},
           {"decide", 0, 0, 0, 6},
           {"act", kOnClient, act_ns, act_ns, 0}}};
}

LinkSystem alone() {
  LinkSystem system;
  system.line.escaped_bytes = 0;
  system.line.exact_sizes = true;
  system.hosts.push_back({"node", 1, true});
  system.chains.push_back(round_trip("brake", 3, 10 * kMs, 10 * kMs));
  return system;
}

time_ns bound_of(const LinkSystem &system, size_t chain = 0) {
  EXPECT_TRUE(check(system).empty());
  const LinkResults results = bound_link(system);
  EXPECT_TRUE(results.chains[chain].response_ns);
  const time_ns response_ns = results.chains[chain].response_ns.value_or(-1);
  EXPECT_EQ(results.chains[chain].parts.total_ns(), response_ns);
  return response_ns;
}

TEST(LinkFrames, OfThePublishedEvaluation) {
  Line line;
  line.escaped_bytes = 0;
  EXPECT_EQ(message(line, Direction::up, 96).total_ns, 9'982'639);   // 115 bytes
  EXPECT_EQ(message(line, Direction::down, 6).total_ns, 2'170'139);  // 25 bytes
  EXPECT_EQ(answer_frame_ns(line), 1'736'112);                       // 20 bytes
  line.escaped_bytes.reset();
  EXPECT_EQ(message(line, Direction::up, 96).total_ns, 19'878'473);  // 1 + 2 * 114 bytes
}

TEST(LinkFrames, Fragments) {
  Line line;
  line.escaped_bytes = 0;
  line.mtu_bytes = 128;
  line.quantum_bytes = 64;
  const Message sent = message(line, Direction::up, 150);  // 158 bytes of submessage, in pieces of 56
  EXPECT_EQ(sent.frames, 3);
  EXPECT_EQ(sent.unit_ns, frame_ns(line, 64));
  EXPECT_EQ(sent.total_ns, 2 * frame_ns(line, 64) + frame_ns(line, 8 + 48));
}

// A client announces an MTU that is four bytes less than its own, so the agent cuts 6000 bytes into 13 frames instead
// of 12.
TEST(LinkFrames, FromTheAgentAreFourBytesShorter) {
  Line line;
  EXPECT_EQ(message(line, Direction::down, 6000).frames, 13);
  EXPECT_EQ(message(line, Direction::down, 5992).frames, 12);
  line.escaped_bytes = 0;
  EXPECT_EQ(message(line, Direction::down, 6000).unit_ns, frame_ns(line, 508));
}

TEST(LinkBound, AloneIsWhatItDoesItself) {
  LinkSystem system = alone();
  EXPECT_EQ(bound_of(system), 20 * kMs + 9'982'639 + 2'170'139);
  system.client.submit_ns = 268'000;
  system.client.process_ns = 268'000;
  system.line.agent_ns = 1'480'000;
  EXPECT_EQ(bound_of(system), 20 * kMs + 9'982'639 + 2'170'139 + 2 * 268'000 + 1'480'000);
}

TEST(LinkBound, ALessUrgentChainBlocksOnceAVisit) {
  LinkSystem system = alone();
  system.chains.push_back(round_trip("battery", 1, 10 * kMs, 10 * kMs, 90));
  // The line keeps up, so only callbacks block. There is only one less urgent chain, and only one callback of each of
  // its instances blocks, because its other callback follows at once.
  EXPECT_EQ(bound_of(system), bound_of(alone()) + 10 * kMs);
  LinkSystem crowded = system;
  crowded.chains.push_back(round_trip("lamp", 0, 10 * kMs, 10 * kMs, 90));
  EXPECT_EQ(bound_of(crowded), bound_of(alone()) + 20 * kMs);
  system.client.policy = ClientPolicy::lanes;
  EXPECT_EQ(bound_of(system), bound_of(alone()) + message(system.line, Direction::up, 90).unit_ns);
}

// Sixteen frames are unacknowledged, so the window is full, and the ACKNACK for the first frame waits behind one large
// frame of a less urgent chain.
TEST(LinkBound, NoBoundWhereAWindowRunsFull) {
  LinkSystem system;
  system.line.baud = 921'600;
  system.line.mtu_bytes = 4096;
  system.line.escaped_bytes = 12;
  system.hosts = {{"node", 1, true}};
  LinkChain fast{
      "fast", 9, 2 * kMs, 2 * kMs, true, true, {{"sample", kOnClient, 100'000, 0, 12}, {"hear", 0, 0, 0, 0}}};
  LinkChain slow{
      "slow", 2, 800 * kMs, 800 * kMs, true, true, {{"plan", 0, 0, 0, 8100}, {"act", kOnClient, 100'000, 0, 0}}};
  system.chains = {fast, slow};
  LinkResults results = bound_link(system);
  EXPECT_FALSE(results.chains[0].response_ns);
  EXPECT_NE(results.chains[0].reason.find("and a window holds 16"), std::string::npos) << results.chains[0].reason;
  // With a slower chain all unacknowledged frames fit into the window.
  system.chains[0].period_ns = system.chains[0].deadline_ns = 10 * kMs;
  results = bound_link(system);
  EXPECT_EQ(bound_of(system), results.chains[0].response_ns);
  EXPECT_LE(results.chains[0].up.frames, 16);
  EXPECT_EQ(results.chains[0].parts.window_ns, 0);
  system.protocol.window = results.chains[0].up.frames - 1;
  EXPECT_FALSE(bound_link(system).chains[0].response_ns);
}

// Of 40 frames on one stream, 16 may be unacknowledged, so the last ones wait for two acknowledgments of earlier
// frames.
TEST(LinkBound, ChainsOfOneStreamWaitForItsWindow) {
  LinkSystem system;
  system.line.baud = 20'000'000;
  system.line.escaped_bytes = 0;
  system.line.agent_ns = 50 * kMs;
  system.protocol.agent.delay_ns = 500 * kMs;
  system.hosts = {{"node", 1, true}};
  for (const char *name : {"a", "b", "c", "d"}) {
    LinkChain chain{name, 1, 900 * kMs, 900 * kMs, true, true, {{"plan", 0, 0, 0, 4900}, {"act", kOnClient, 0, 0, 0}}};
    chain.shares_level = true;
    system.chains.push_back(chain);
  }
  const LinkResults results = bound_link(system);
  EXPECT_EQ(results.chains[0].down.frames, 40);
  ASSERT_TRUE(results.chains[0].response_ns);
  EXPECT_GE(results.chains[0].parts.window_ns, 2 * 50 * kMs);
  EXPECT_LT(results.chains[0].parts.window_ns, 2 * 55 * kMs);
  EXPECT_EQ(bound_of(system), results.chains[0].response_ns);
  system.chains.resize(1);
  EXPECT_EQ(bound_link(system).chains[0].parts.window_ns, 0);
}

// A response does not include the message of the last callback, but interference does.
TEST(LinkBound, TheLastCallbackEndsBeforeWhatItSends) {
  LinkSystem system = alone();
  system.chains[0].callbacks = {{"sample", kOnClient, 10 * kMs, 10 * kMs, 96}};
  EXPECT_EQ(bound_of(system), 10 * kMs);
  system.chains.push_back(round_trip("below", 1, 1 * kMs, 1 * kMs));
  system.client.policy = ClientPolicy::lanes;
  EXPECT_GE(bound_link(system).chains[1].parts.line_interference_ns[0], 9'982'639);
}

// `turn_ns` is the time of acknowledgments over a network. It does not delay data, so the bound stays.
TEST(LinkBound, OnlyAcknowledgmentsTakeTheWayBack) {
  LinkSystem system = alone();
  system.chains[0].callbacks = {{"sample", kOnClient, 1 * kMs, 1 * kMs, 96}, {"hear", 0, 0, 0, 0}};
  system.chains[0].uplink_reliable = true;
  system.line.agent_ns = 2 * kMs;
  const time_ns bound_ns = bound_of(system);
  system.line.turn_ns = 7 * kMs;
  EXPECT_EQ(bound_of(system), bound_ns);
  EXPECT_EQ(bound_link(system).chains[0].parts.host_ns, 2 * kMs);
}

// The reason names percentages only if the described load exceeds 100 %, and not if waiting makes chains late.
TEST(LinkBound, PercentagesAreOfWhatIsAskedFor) {
  LinkSystem system = alone();
  system.client.policy = ClientPolicy::batch;
  system.client.send = Send::stock;
  system.line.agent_ns = 30 * kMs;
  for (const char *name : {"b", "c", "d"}) system.chains.push_back(round_trip(name, 1, 1 * kMs, 1 * kMs));
  for (LinkChain &chain : system.chains) {
    chain.uplink_reliable = chain.downlink_reliable = true;
    chain.period_ns = 150 * kMs;
  }
  const LinkResults results = bound_link(system);
  ASSERT_FALSE(results.chains[0].response_ns);
  EXPECT_EQ(results.chains[0].reason.find('%'), std::string::npos) << results.chains[0].reason;
}

TEST(LinkBound, EscapesThatDecideAreNamed) {
  LinkSystem system = alone();
  system.line.escaped_bytes.reset();
  system.chains[0].callbacks[0].payload_bytes = 400;
  system.chains[0].period_ns = 60 * kMs;
  const std::string reason = bound_link(system).chains[0].reason;
  EXPECT_NE(reason.find("if every byte of a frame is escaped"), std::string::npos) << reason;
  EXPECT_NE(reason.find("give 'escaped_bytes'"), std::string::npos) << reason;
}

// Less urgent load, however high, does not change the bounds of more urgent chains.
TEST(LinkBound, OverloadTakesTheBoundsOfWhatIsLessUrgent) {
  LinkSystem system = alone();
  system.chains.push_back(round_trip("late", 2, 300 * kMs, 300 * kMs));
  system.chains.push_back(round_trip("below", 1, 1 * kMs, 1 * kMs));
  const LinkResults results = bound_link(system);
  EXPECT_GT(results.chains[0].response_ns, 600 * kMs);  // blocked twice for 300 ms, so the bound exceeds the period
  EXPECT_FALSE(results.chains[1].response_ns);
  EXPECT_EQ(results.chains[1].reason, "it and the more urgent chains ask for 124.0 % of the microcontroller");
  EXPECT_FALSE(results.chains[2].response_ns);
  EXPECT_EQ(results.chains[2].depends_on, (std::vector<size_t>{0, 1}));
  EXPECT_FALSE(results.met);
}

// ---- beyond the period ----

LinkChain stream(const std::string &name, int64_t priority, time_ns period_ns, int64_t payload_bytes) {
  return {name,
          priority,
          period_ns,
          10 * period_ns,
          false,
          false,
          {{"sample", kOnClient, 1 * kMs, 0, payload_bytes}, {"filter", 0, 1 * kMs, 0, 0}}};
}

// At 100,000 bits/s, a byte of a frame takes 0.1 ms, so a frame of 63 bytes (41 bytes of payload, 3 of padding, 19 of
// headers and framing) takes 6.3 ms.
constexpr int64_t kBytes = 41;
constexpr time_ns kFrame = 6'300'000;

LinkSystem streams() {
  LinkSystem system;
  system.line.baud = 100'000;
  system.line.escaped_bytes = 0;
  system.line.agent_ns = 25 * kMs;
  system.protocol.silence_ns = 0;
  system.hosts.push_back({"node", 1, false});
  system.chains.push_back(stream("imu", 3, 10 * kMs, kBytes));
  return system;
}

// If instances are far enough apart at each stage, they do not delay each other, however long the whole chain takes.
TEST(BeyondThePeriod, ADelayIsNoLoad) {
  EXPECT_EQ(message(streams().line, Direction::up, kBytes).total_ns, kFrame);
  EXPECT_EQ(bound_of(streams()), 1 * kMs + kFrame + 25 * kMs + 1 * kMs);
  const LinkResult imu = bound_link(streams()).chains[0];
  EXPECT_EQ(imu.up.instances, 4);
  EXPECT_TRUE(imu.met);
}

// A more urgent message of 12.3 ms keeps the first instance off the line. The second instance comes 10 ms later and
// waits for the rest of that message and of the first instance, 8.6 ms, which is less than the first instance waited.
TEST(BeyondThePeriod, AFrameInFrontDelaysSeveralInstances) {
  LinkSystem system = streams();
  system.chains.push_back(stream("wheels", 4, 100 * kMs, 101));
  EXPECT_EQ(message(system.line, Direction::up, 101).total_ns, 12 * kMs + kMs * 3 / 10);
  const LinkResults results = bound_link(system);
  // Client and host execute two callbacks of 1 ms each: the chain's own callback, and one of the other chain.
  const time_ns client_ns = 1 * kMs + 1 * kMs, host_ns = 1 * kMs + 1 * kMs;
  EXPECT_EQ(results.chains[0].response_ns, client_ns + 12'300'000 + kFrame + 25 * kMs + host_ns);
  // With a period of 6 ms the line is never idle, and each instance waits longer than the preceding one.
  system.chains[0].period_ns = 6 * kMs;
  EXPECT_FALSE(bound_link(system).chains[0].response_ns);
  EXPECT_NE(bound_link(system).chains[0].reason.find("of the line to the agent"), std::string::npos);
}

// Two instances of the more urgent chain may precede an instance of the less urgent one: the first because it is late,
// and the second.
TEST(BeyondThePeriod, InstancesOfOthersComeLateOneBehindTheOther) {
  LinkSystem system = streams();
  system.chains[0].jitter_ns = 8 * kMs;
  system.chains.push_back(stream("log", 1, 1000 * kMs, kBytes));
  const LinkResult log = bound_link(system).chains[1];
  ASSERT_TRUE(log.response_ns);
  EXPECT_GE(*log.response_ns, 1 * kMs + 1 * kMs + 2 * kFrame + kFrame + 25 * kMs + 1 * kMs);
}

// The timer's callback must end before the next expiry, or an expiry may be skipped.
TEST(BeyondThePeriod, ALateTimerSkipsExpiries) {
  LinkSystem system = streams();
  system.chains.push_back(stream("slow", 1, 1000 * kMs, 8));
  system.chains[1].callbacks[0].execution_ns = 9 * kMs;
  EXPECT_TRUE(bound_link(system).chains[0].response_ns);
  system.chains[1].callbacks[0].execution_ns = 9 * kMs + 1;
  const LinkResult late = bound_link(system).chains[0];
  EXPECT_FALSE(late.response_ns);
  EXPECT_TRUE(late.reason.starts_with("its timer's callback may end 10.001 ms after its expiry")) << late.reason;
  EXPECT_EQ(late.reached_ns, 10 * kMs + 1);
  system.client.policy = ClientPolicy::lanes;
  EXPECT_TRUE(bound_link(system).chains[0].response_ns);
  system.client.policy = ClientPolicy::tide;
  system.chains[0].sporadic = true;  // an event is not skipped
  EXPECT_TRUE(bound_link(system).chains[0].response_ns);
}

// The reason names the overloaded executor.
TEST(BeyondThePeriod, AnExecutorOfTheHostMayBeOverloaded) {
  LinkSystem system = streams();
  system.chains[0].callbacks[1].execution_ns = 8 * kMs;
  EXPECT_EQ(bound_of(system), 1 * kMs + kFrame + 25 * kMs + 8 * kMs);
  system.chains[0].callbacks[1].execution_ns = 11 * kMs;
  const LinkResult late = bound_link(system).chains[0];
  EXPECT_FALSE(late.response_ns);
  EXPECT_TRUE(late.reason.starts_with("the callbacks of executor 'node' ask for 110.0 % of it")) << late.reason;
}

// On two lanes, a second instance may run beside the first, so a single chain may keep another one from both lanes.
TEST(BeyondThePeriod, InstancesOfOneChainTakeSeveralLanes) {
  LinkSystem system = streams();
  system.hosts[0].lanes = 2;
  system.chains[0].callbacks[1].execution_ns = 3 * kMs;
  system.chains.push_back(stream("other", 4, 1000 * kMs, 8));
  const LinkResults results = bound_link(system);
  ASSERT_TRUE(results.chains[1].response_ns);
  EXPECT_GT(results.chains[1].parts.host_wait_ns, 0);
  system.chains[0].period_ns = 1000 * kMs;
  EXPECT_EQ(bound_link(system).chains[1].parts.host_wait_ns, 0);
}

// Some chains have no bound only because their instances must not overlap; the reason says so.
TEST(BeyondThePeriod, SomeMustBeOverBefore) {
  LinkSystem system = streams();
  system.chains[0].alone = "it asks a service";
  EXPECT_TRUE(bound_link(system).chains[0].reason.ends_with(
      " or more, beyond its period of 10 ms, within which it must be over: it asks a service"));
  for (const auto change :
       {+[](LinkSystem &of) { of.protocol.losses = 1; }, +[](LinkSystem &of) { of.chains[0].hold = true; }}) {
    system = streams();
    change(system);
    EXPECT_TRUE(bound_link(system).chains[0].response_ns);  // with best effort, nothing is repaired and no chain holds
                                                            // the line
    system.chains[0].uplink_reliable = true;
    EXPECT_FALSE(bound_link(system).chains[0].response_ns);
  }
}

TEST(LinkBound, MoreOfAnythingIsNeverFaster) {
  LinkSystem system = alone();
  system.chains.push_back(round_trip("steer", 2, 7 * kMs, 5 * kMs, 80));
  system.chains.push_back(round_trip("battery", 1, 12 * kMs, 3 * kMs, 120));
  const auto sum = [](const LinkSystem &of) {
    time_ns total_ns = 0;
    for (const LinkResult &each : bound_link(of).chains) total_ns += each.response_ns.value_or(500 * kMs);
    return total_ns;
  };
  const time_ns before_ns = sum(system);
  LinkSystem more = system;
  more.chains[1].callbacks[0].execution_ns += 2 * kMs;
  EXPECT_GT(sum(more), before_ns);
  more = system;
  more.client.interrupt_receive_ns = 50'000;
  EXPECT_GT(sum(more), before_ns);
  more = system;
  more.line.escaped_bytes.reset();
  EXPECT_GT(sum(more), before_ns);
  more = system;
  for (LinkChain &chain : more.chains) chain.uplink_reliable = true;
  const time_ns reliable_ns = sum(more);
  EXPECT_GT(reliable_ns, before_ns);
  for (LinkChain &chain : more.chains) chain.hold = true;
  EXPECT_GT(sum(more), reliable_ns);
  for (LinkChain &chain : more.chains) chain.hold = false;
  more.protocol.losses = 1;
  more.protocol.client.delay_ns = 5 * kMs;
  EXPECT_GT(sum(more), reliable_ns);
}

// An answer is unacknowledged until its callback has begun and the ACKNACK has crossed the line. Each HEARTBEAT of this
// time adds its own frame and that of an ACKNACK to the load.
TEST(LinkBound, QuestionsCountFromTheirDelayOn) {
  LinkSystem system = alone();
  system.chains.push_back(round_trip("battery", 1, 10 * kMs, 10 * kMs, 90));
  for (LinkChain &chain : system.chains) chain.uplink_reliable = chain.downlink_reliable = true;
  const auto bound_with = [&system](time_ns delay_ns) {
    system.protocol.agent.delay_ns = delay_ns;
    return bound_of(system, 1);
  };
  const time_ns silent_ns = bound_with(100 * kMs);
  EXPECT_EQ(bound_with(1'000'000 * kMs), silent_ns);
  EXPECT_GT(bound_with(5 * kMs), silent_ns);
  EXPECT_GT(bound_with(-1), bound_with(5 * kMs));  // -1, a measured delay: HEARTBEATs at 2, 6, 14 ms and so on
  system.protocol.agent.floor_ns = 100 * kMs;
  EXPECT_EQ(bound_with(-1), silent_ns);
}

// Chains that go back and forth between a microcontroller and ROS 2.
LinkSystem back_and_forth(int64_t chains, int callbacks, time_ns period_ns) {
  LinkSystem system;
  system.line.baud = 921'600;
  system.client.submit_ns = 100'000;
  system.hosts.push_back({"ros2", 1, false});
  for (int64_t index = 0; index < chains; index++) {
    LinkChain chain{"chain" + std::to_string(index), index + 1, period_ns, period_ns, true, true, {}};
    for (int place = 0; place < callbacks; place++)
      chain.callbacks.push_back({"step", place % 2 == 0 ? kOnClient : 0, 400'000, 0, place + 1 < callbacks ? 20 : 0});
    system.chains.push_back(chain);
  }
  return system;
}

// Messages cross the line 1,900 times. If there were a HEARTBEAT for each message, the delay by each HEARTBEAT would
// cause more than one further HEARTBEAT.
TEST(LinkBound, QuestionsOfManyMessagesAreCountedByStream) {
  LinkSystem many = back_and_forth(100, 20, 100'000 * kMs);
  const LinkResults results = bound_link(many);
  for (const LinkResult &each : results.chains) EXPECT_TRUE(each.response_ns) << each.reason;
  // A message that a host publishes at the end stays on the host.
  for (LinkChain &chain : many.chains) chain.callbacks.back().payload_bytes = 20;
  EXPECT_EQ(bound_link(many).chains[0].response_ns, results.chains[0].response_ns);
  // A stream sends at most one HEARTBEAT in each delay, however many messages it has. Here one chain crosses the line
  // 24 times, and each time the agent waits for its acknowledgment for longer than the delay.
  LinkSystem system = back_and_forth(1, 25, 100'000 * kMs);
  for (LinkCallback &callback : system.chains[0].callbacks) callback.execution_ns *= callback.place == 0 ? 1 : 500;
  system.protocol.agent = {100 * kMs, 100 * kMs, 100 * kMs};
  const time_ns patient_ns = bound_of(system);
  system.protocol.agent.period_ns = 1 * kMs;
  system.protocol.agent.delay_ns = 50 * kMs;
  EXPECT_GT(bound_of(system), patient_ns);
}

// If the count of HEARTBEATs does not settle, there is no bound.
TEST(LinkBound, NoBoundWhereTheCountOfQuestionsDoesNotSettle) {
  const LinkSystem system = back_and_forth(10, 5, 10'000 * kMs);
  EXPECT_TRUE(bound_link(system).met);
  const LinkResults results = bound_link(system, 1);
  EXPECT_FALSE(results.met);
  for (const LinkResult &each : results.chains) {
    EXPECT_FALSE(each.response_ns);
    EXPECT_EQ(each.reason,
              "the questions whether reliable messages have arrived keep each other waiting; send fewer reliable "
              "messages");
  }
}

// A chain whose ACKNACKs may never be sent has no bound; more urgent chains have one.
TEST(LinkBound, OnlyTheStarvedHaveNone) {
  LinkSystem system = back_and_forth(3, 3, 1'000 * kMs);
  system.hosts[0].own_cores = true;
  system.chains[1].period_ns = system.chains[1].deadline_ns = 10 * kMs;
  system.chains[1].callbacks[0].payload_bytes = 450;
  const LinkResults results = bound_link(system);
  EXPECT_FALSE(results.chains[0].response_ns);
  EXPECT_TRUE(results.chains[2].response_ns);
}

TEST(LinkBound, NoBoundSaysWhy) {
  LinkSystem system = alone();
  system.line.baud = 1200;
  system.chains[0].callbacks[0].payload_bytes = 400;
  EXPECT_TRUE(bound_link(system).chains[0].reason.ends_with(
      " of the line to the agent at 1200 baud; raise 'baud' or send less"))
      << bound_link(system).chains[0].reason;
  system = alone();
  system.chains[0].callbacks[0].execution_ns = 600 * kMs;
  EXPECT_EQ(bound_link(system).chains[0].reason, "it asks for 122.0 % of the microcontroller");
  system.chains.push_back(round_trip("below", 1, 1 * kMs, 1 * kMs));
  const std::string needs = "it needs a bound of chain 'brake', which has none: ";
  EXPECT_EQ(bound_link(system).chains[1].reason, needs + "it asks for 122.0 % of the microcontroller");
  system.chains[0].callbacks[0].execution_ns = 480 * kMs;
  system.chains[0].alone = "because";
  const LinkResults late = bound_link(system);
  EXPECT_TRUE(late.chains[0].reason.starts_with("it may take 5")) << late.chains[0].reason;
  EXPECT_TRUE(
      late.chains[0].reason.ends_with(" or more, beyond its period of 500 ms, within which it must be over: because"));
  EXPECT_EQ(late.chains[1].reason, needs + late.chains[0].reason);
  for (const LinkResult &one : late.chains) {
    EXPECT_EQ(one.root, 0U);
    EXPECT_GT(one.reached_ns, one.limit_ns);
    EXPECT_EQ(one.reached_parts.execution_ns, 490 * kMs);  // the chain's two callbacks
  }
}

TEST(LinkBound, AHostExecutorIsShared) {
  LinkSystem system = alone();
  system.chains.push_back(round_trip("steer", 2, 1 * kMs, 1 * kMs));
  for (LinkChain &chain : system.chains) chain.callbacks[1].execution_ns = 8 * kMs;
  const time_ns apart_ns = bound_of(system);
  system.hosts[0].own_cores = false;
  EXPECT_GE(bound_of(system), apart_ns + 8 * kMs);
}

// A callback without execution time waits like any other: in a window that other callbacks fill, it has not run.
TEST(LinkBound, WhatTakesNoTimeWaitsForItsTurn) {
  LinkSystem system = alone();
  system.hosts[0].own_cores = false;
  system.chains = {{"none", 2, 500 * kMs, 500 * kMs, false, false, {{"only", 0, 0, 0, 0}}},
                   {"long", 1, 500 * kMs, 500 * kMs, false, false, {{"only", 0, 8 * kMs, 8 * kMs, 0}}}};
  EXPECT_EQ(bound_of(system), 8 * kMs + 1);
  EXPECT_EQ(bound_of(system, 1), 8 * kMs);
  for (LinkChain &chain : system.chains) chain.callbacks[0].place = kOnClient;
  EXPECT_GE(bound_of(system), 8 * kMs);
  EXPECT_GE(bound_of(system, 1), 8 * kMs);
}

// Messages from the line find the host idle, unless a chain begins on the host.
TEST(LinkBound, WhatTakesNoTimeOnTheHostWaitsBehindAnswers) {
  LinkSystem system = alone();
  system.hosts[0].own_cores = false;
  system.chains[0].uplink_reliable = false;
  system.chains[0].callbacks[1].execution_ns = 6 * kMs;
  system.chains.push_back({"none", 9, 500 * kMs, 500 * kMs, false, false, {{"only", 0, 0, 0, 0}}});
  EXPECT_EQ(bound_of(system, 1), 6 * kMs + 1);
}

// Random times between zero and the longest allowed; the sanitizers detect overflows.
TEST(LinkBound, ExtremeSystemsGetABoundOrNone) {
  std::mt19937_64 random(7);
  const auto below = [&random](uint64_t count) { return static_cast<int64_t>(random() % count); };
  const auto any_time = [&] {
    return std::array<time_ns, 5>{0, 1, 1'000, 1'000'000'000, 1'000'000'000'000}[random() % 5];
  };
  int bounded = 0;
  for (int round = 0; round < 2000; round++) {
    LinkSystem system;
    system.client.policy = static_cast<ClientPolicy>(below(3));
    system.client.send = static_cast<Send>(below(3));
    system.client.submit_ns = any_time();
    system.client.interrupt_receive_ns = any_time();
    system.line.agent_ns = any_time();
    system.line.baud = std::array<int64_t, 3>{1200, 115200, 1'000'000'000}[random() % 3];
    system.protocol.losses = below(2) * 16;
    system.protocol.client.delay_ns = any_time() - 1;
    system.protocol.agent.delay_ns = any_time() - 1;
    system.hosts = {{"own", 1, true}, {"shared", 2, false}};
    const int64_t count = 1 + below(6);
    for (int64_t index = 0; index < count; index++) {
      LinkChain chain{
          "chain" + std::to_string(index), index, any_time() + 1, any_time() + 1, below(2) == 1, below(2) == 1, {}};
      chain.hold = below(2) == 1;
      const int64_t last = below(5);
      for (int64_t step = 0; step <= last; step++)
        chain.callbacks.push_back({"step", static_cast<int>(below(3)) - 1,
                                   below(3) == 0 ? any_time() : below(1'000'000), 0, step < last ? 1 + below(200) : 0});
      chain.period_ns = std::min<time_ns>(chain.period_ns, 1'000'000'000'000);
      chain.deadline_ns = std::min<time_ns>(chain.deadline_ns, 1'000'000'000'000);
      system.chains.push_back(chain);
    }
    if (!check(system).empty()) continue;
    for (const LinkResult &result : bound_link(system).chains) {
      if (!result.response_ns) continue;
      bounded++;
      EXPECT_EQ(std::max<time_ns>(result.parts.total_ns(), 1), *result.response_ns) << round;
    }
  }
  EXPECT_GT(bounded, 40);
}

TEST(LinkCheck, ErrorsNameTheEntry) {
  LinkSystem system = alone();
  system.chains.push_back(system.chains[0]);
  system.chains[1].name = "steer";
  EXPECT_EQ(check(system),
            std::vector<std::string>{"chain 'steer': has the priority of chain 'brake'; give each its own"});
  system.chains[1].priority = 1;
  system.chains[1].callbacks[0].payload_bytes = 0;
  EXPECT_EQ(check(system),
            std::vector<std::string>{
                "chain 'steer', callback 'sample': publishes nothing that the next callback could receive"});
  system.chains[1].callbacks[0].payload_bytes = 600;
  ASSERT_EQ(check(system).size(), 1u);
  EXPECT_NE(check(system)[0].find("best effort knows no fragments"), std::string::npos);
  system.chains[1].callbacks[0].payload_bytes = 6000;
  system.line = Line{};
  system.line.baud = 19'200;
  system.line.mtu_bytes = 65'000;
  EXPECT_EQ(check(system),
            std::vector<std::string>{
                "chain 'steer', callback 'sample': its frame takes 6269 ms, one in the other direction 25 ms, and the "
                "agent 0 ms: together too long for a board, which begins a new session when its agent has not answered "
                "for 4000 ms; lower mtu_bytes or agent_ms, or raise baud"});
  system.line.baud = 38'400;
  EXPECT_TRUE(check(system).empty());
  system.line.baud = 0;
  EXPECT_EQ(check(system)[0], "line: 'baud' must be from 1200 to 1000000000");
}

}  // namespace analysis_link_test
}  // namespace tide::analysis
