// SPDX-License-Identifier: Apache-2.0
// Entities that DDS creates slowly: only the stream with the CREATE waits.
#include <gtest/gtest.h>

#include "client_messages.h"

namespace tide::agent::test::agent_creation_test {

constexpr uint16_t kSecondWriter = 0x0025;
const std::string kWriterXml = writer_xml("t");
constexpr int kNoAnswer = -1;

struct World {
  explicit World(Options options = {}) : driver(std::move(options)) {
    EXPECT_EQ(client.connect(), 0);
    client.create_all();
    driver.middleware.later = true;
  }
  int status() const { return client.status(request); }
  int begin(uint8_t stream = 0x80) {
    request = client.next_request();
    request++;  // the request id that create_xml will use
    return client.create_xml(kSecondWriter, 0x0013, kWriterXml, 0, stream);
  }
  void finish(Made::State state) {
    driver.middleware.finish(state);
    driver.pump();
  }

  Driver driver;
  TestClient client{driver, 1, 0x60};
  uint16_t request = 0;
};

TEST(Creation, IsAnsweredWhenDdsHasMadeTheEntity) {
  World world;
  EXPECT_EQ(world.begin(), kNoAnswer);
  world.driver.run_until(3 * kSecond);
  EXPECT_EQ(world.status(), kNoAnswer);
  world.finish(Made::State::kMade);
  EXPECT_EQ(world.status(), TIDE_XRCE_STATUS_OK);
  world.client.write(kSecondWriter, {7});
  EXPECT_EQ(world.driver.middleware.written.size(), 1u);
}

TEST(Creation, ThatDdsRefusesLaterIsRefused) {
  World world;
  EXPECT_EQ(world.begin(), kNoAnswer);
  world.finish(Made::State::kRefused);
  EXPECT_EQ(world.status(), TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(world.driver.middleware.writers, 1);
  world.client.write(kSecondWriter, {7});
  EXPECT_EQ(world.driver.agent.counters().write_unknown, 1u);
}

TEST(Creation, HoldsUpItsStreamAndNothingElse) {
  World world;
  world.driver.middleware.later = false;
  ReadyClient other(world.driver, 2, 0x61);
  world.driver.middleware.later = true;
  EXPECT_EQ(world.begin(), kNoAnswer);
  world.client.write(0x0015, {1}, 0x80);
  EXPECT_EQ(world.driver.middleware.written.size(), 0u) << "behind the creation, in its stream";
  world.client.write(0x0015, {2}, 0x81);
  world.client.write(0x0015, {3}, 0x01);
  other.write(0x0015, {4});
  EXPECT_EQ(world.driver.middleware.written.size(), 3u);
  world.finish(Made::State::kMade);
  ASSERT_EQ(world.driver.middleware.written.size(), 4u);
  EXPECT_EQ(world.driver.middleware.written.back().payload, Octets{1});
}

TEST(Creation, OfAnotherStreamOfTheClientWaitsItsTurn) {
  World world;
  EXPECT_EQ(world.begin(), kNoAnswer);
  world.driver.middleware.later = false;
  world.client.create_xml(0x0035, 0x0013, kWriterXml);  // waits for the creation under way
  EXPECT_EQ(world.client.create_xml(0x0045, 0x0013, kWriterXml, 0, 0x81), kNoAnswer);
  EXPECT_EQ(world.driver.middleware.writers, 2);
  world.finish(Made::State::kMade);
  world.driver.run_until(world.driver.now() + kSecond / 100);
  EXPECT_EQ(world.driver.middleware.writers, 4);
}

TEST(Creation, WithoutConfirmationKeepsTheOrderAsFarAsThereIsRoom) {
  for (const uint8_t stream : {uint8_t{0x01}, uint8_t{0x00}}) {
    World world;
    EXPECT_EQ(world.begin(stream), kNoAnswer);
    world.client.write(kSecondWriter, {5}, stream);
    EXPECT_EQ(world.driver.middleware.written.size(), 0u);
    EXPECT_EQ(world.driver.agent.counters().held_dropped, 0u);
    for (int message = 0; message < 100; message++) world.client.write(kSecondWriter, Octets(4000, 6), stream);
    EXPECT_GT(world.driver.agent.counters().held_dropped, 0u) << "400 kB have no room";
    world.finish(Made::State::kMade);
    ASSERT_GT(world.driver.middleware.written.size(), 50u);
    EXPECT_EQ(world.driver.middleware.written.front().payload, Octets{5});
  }
}

TEST(Creation, ThatComesTwiceIsOne) {
  World world;
  EXPECT_EQ(world.begin(), kNoAnswer);
  const Octets body = TestClient::ids(99, kSecondWriter);
  world.client.send(0x81, 0x80, 6, TIDE_XRCE_CREATE, 1, body);  // a repetition, with the same sequence number
  EXPECT_EQ(world.driver.middleware.making.size(), 1u);
  world.finish(Made::State::kMade);
  EXPECT_EQ(world.driver.middleware.writers, 2);
  EXPECT_EQ(world.driver.agent.counters().duplicates, 1u);
}

TEST(Creation, EndsWithItsParentItsSessionAndItsClient) {
  World parent;
  EXPECT_EQ(parent.begin(), kNoAnswer);
  const uint16_t request = parent.client.next_request();
  parent.client.submit(0x81, TIDE_XRCE_DELETE, 1, TestClient::ids(request, 0x0013));
  parent.finish(Made::State::kMade);
  EXPECT_EQ(parent.status(), TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  EXPECT_EQ(parent.driver.middleware.writers, 0);

  World session;
  EXPECT_EQ(session.begin(), kNoAnswer);
  ASSERT_EQ(session.client.connect(), 0);
  EXPECT_EQ(session.driver.middleware.writers, 1);
  session.finish(Made::State::kMade);  // a result for an entity whose stream has ended
  session.driver.middleware.later = false;
  EXPECT_EQ(session.client.create_xml(kSecondWriter, 0x0013, kWriterXml), 0);

  World gone;
  EXPECT_EQ(gone.begin(), kNoAnswer);
  EXPECT_EQ(gone.client.remove(TIDE_XRCE_OBJECT_CLIENT), 0);
  EXPECT_EQ(gone.driver.middleware.writers, 0);
  gone.finish(Made::State::kMade);
}

TEST(Creation, IsWaitedForWithoutLookingAgainAndAgain) {
  World world;
  world.client.acknowledge(0x80);
  world.driver.run_until(kSecond);  // lets pending repetitions be sent
  EXPECT_EQ(world.begin(), kNoAnswer);
  EXPECT_GT(world.driver.deadline(), world.driver.now() + kSecond / 20);
}

constexpr Time kPeriod = 20'000'000;

Options with_budget(size_t creations) {
  Options options;
  options.limits.creations_at_once = creations;
  options.limits.creation_period_ns = kPeriod;
  return options;
}

TEST(Creation, BeyondTheBudgetWaitsForItsPeriodAndNothingElseDoes) {
  World world(with_budget(8));  // three of the eight are used for the participant, the writer and the reader
  world.driver.middleware.later = false;
  for (int time = 0; time < 5; time++) {
    ASSERT_EQ(world.begin(), TIDE_XRCE_STATUS_OK) << time;
    ASSERT_EQ(world.client.remove(kSecondWriter), 0);
  }
  EXPECT_EQ(world.begin(), kNoAnswer);
  EXPECT_EQ(world.client.create_xml(0x0032, 0x0011, topic_xml("u", "T")), kNoAnswer) << "in the same stream";
  world.client.write(0x0015, {1}, 0x81);
  EXPECT_EQ(world.driver.middleware.written.size(), 1u);
  ReadyClient other(world.driver, 2, 0x61);
  EXPECT_EQ(world.driver.agent.counters().creations_waited, 1u);
  world.client.acknowledge(0x80);
  world.driver.run_until(world.driver.now() + kPeriod - 1);
  EXPECT_EQ(world.driver.middleware.writers, 2) << "one of each client";
  world.driver.run_until(world.driver.now() + 1);
  EXPECT_EQ(world.driver.middleware.writers, 3);
  ASSERT_EQ(world.client.connect(), 0);
  ASSERT_EQ(world.client.remove(kSecondWriter), 0);
  EXPECT_EQ(world.begin(), kNoAnswer) << "another session has no other budget";
}

TEST(Creation, WithTheDefaultsOfAWholeClientWaitsForNothing) {
  World world;
  world.driver.middleware.later = false;
  size_t made = 0;
  for (uint16_t number = 1; number < 250; number++) {
    const auto object = static_cast<uint16_t>((number + 0x40) << 4 | 5);
    made += world.client.create_xml(object, 0x0013, kWriterXml) == 0 ? 1 : 0;
    world.client.acknowledge(0x80);
  }
  EXPECT_EQ(made, 249u);
}

// ---- one firmware image, many robots ----

TEST(Renaming, NamespacesAndRemapsOfTopicsServicesActionsAndNodes) {
  Renaming names;
  EXPECT_EQ(names.topic("rt/scan"), "rt/scan");
  EXPECT_EQ(names.node("base"), "base");
  EXPECT_EQ(names.set_space("/robot1"), "");
  EXPECT_EQ(names.add("/scan:=/front/scan"), "");
  EXPECT_EQ(names.add("/tf:=/robot1/tf"), "");
  EXPECT_EQ(names.add("/sum:=/add"), "");
  EXPECT_EQ(names.add("/dock:=/station/dock"), "");
  const std::map<std::string, std::string> expected = {
      {"rt/cmd_vel", "rt/robot1/cmd_vel"},
      {"rt/arm/state", "rt/robot1/arm/state"},
      {"rt/scan", "rt/front/scan"},
      {"rt/scan/raw", "rt/robot1/scan/raw"},
      {"rt/tf", "rt/robot1/tf"},
      {"rt/tf_static", "rt/tf_static"},
      {"rt/rosout", "rt/rosout"},
      {"rq/sumRequest", "rq/addRequest"},
      {"rr/sumReply", "rr/addReply"},
      {"rq/base/set_parametersRequest", "rq/robot1/base/set_parametersRequest"},
      {"rt/dock/_action/feedback", "rt/station/dock/_action/feedback"},
      {"rq/dock/_action/send_goalRequest", "rq/station/dock/_action/send_goalRequest"},
      {"rr/turn/_action/get_resultReply", "rr/robot1/turn/_action/get_resultReply"},
      {"plain_dds", "plain_dds"}};
  for (const auto &[name, becomes] : expected) EXPECT_EQ(names.topic(name), becomes);
  EXPECT_EQ(names.node("base"), "/robot1/base");
  EXPECT_EQ(names.node("/arm/base"), "/robot1/arm/base");
  EXPECT_EQ(names.node(""), "");
}

TEST(Renaming, WhatIsWrongIsNamed) {
  Renaming names;
  EXPECT_EQ(names.set_space("robot1"), "'robot1' does not begin with /");
  EXPECT_EQ(names.set_space("/1robot"), "'/1robot' has a part that starts with a digit");
  EXPECT_EQ(names.set_space("/"), "'/' has an empty part");
  EXPECT_NE(names.add("/scan=/front").find(":="), std::string::npos);
  EXPECT_EQ(names.add("/scan:=front"), "'front' does not begin with /");
  EXPECT_EQ(names.add("/scan:=/front"), "");
  EXPECT_EQ(names.add("/scan:=/back"), "'/scan' is remapped twice");
}

// Three boards with the same firmware image, two of them with a namespace: each gets its own names. A writer without a
// type finds its topic object, although the name of the topic object is changed, too.
TEST(Renaming, EachClientHasItsOwn) {
  std::map<Endpoint, Renaming> names;
  names[1].space = "/robot1";
  names[2].space = "/robot2";
  Options options;
  options.names = [&names](Endpoint endpoint, uint32_t) {
    const auto place = names.find(endpoint);
    return place == names.end() ? nullptr : &place->second;
  };
  Driver driver(options);
  const std::string topic = topic_xml("rt/scan", "T");
  const std::string writer = writer_xml("rt/scan");
  for (const Endpoint endpoint : {1u, 2u, 3u}) {
    TestClient client(driver, endpoint, static_cast<uint32_t>(endpoint));
    ASSERT_EQ(client.connect(), 0);
    EXPECT_EQ(client.create_xml(0x0011, 0, TestClient::kParticipant), 0);
    EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic), 0);
    EXPECT_EQ(client.create_xml(0x0013, 0x0011, ""), 0);
    EXPECT_EQ(client.create_xml(0x0015, 0x0013, writer), 0);
    EXPECT_EQ(client.create_xml(0x0015, 0x0013, writer, TIDE_XRCE_FLAG_REUSE), TIDE_XRCE_STATUS_OK_MATCHED);
    client.write(0x0015, {1});
  }
  ASSERT_EQ(driver.middleware.written.size(), 3u);
  EXPECT_EQ(driver.middleware.written[0].topic, "rt/robot1/scan");
  EXPECT_EQ(driver.middleware.written[1].topic, "rt/robot2/scan");
  EXPECT_EQ(driver.middleware.written[2].topic, "rt/scan");
}

}  // namespace tide::agent::test::agent_creation_test
