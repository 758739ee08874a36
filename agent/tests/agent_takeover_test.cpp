// SPDX-License-Identifier: Apache-2.0
// Who may have a session: takeover, lists of admitted clients, limits, and notices for the user.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "client_messages.h"

namespace tide::agent::test::agent_takeover_test {

Options hosts_of_ten() {
  Options options;
  options.host_of = [](Endpoint endpoint) { return endpoint / 10; };
  return options;
}

TEST(Takeover, ALiveSessionIsKeptFromEveryOtherHost) {
  Driver driver(hosts_of_ten());
  ReadyClient owner(driver, 10, 0x11);
  TestClient thief(driver, 20, 0x11);
  owner.acknowledge(0x80);
  for (Time t_ns = 0; t_ns < 100 * kSecond; t_ns += kSecond) {
    driver.run_until(t_ns);
    driver.sent.clear();
    EXPECT_EQ(thief.connect(), -1);
    EXPECT_EQ(thief.create_xml(0x0023, 0x0011, ""), -1);
    EXPECT_EQ(thief.remove(0x0011), -1);
    owner.write(0x0015, {1});
  }
  EXPECT_EQ(driver.agent.counters().takeovers_refused, 100u);
  EXPECT_EQ(driver.agent.counters().samples_to_dds, 100u);
  EXPECT_EQ(driver.agent.entity_count(), 6u);
}

TEST(Takeover, TwoProgramsWithOneKeyOnAHostAreReported) {
  Options options = hosts_of_ten();
  std::vector<std::string> told;
  options.warn = [&](const std::string &line) { told.push_back(line); };
  Driver driver(options);
  TideClient first(driver, 10, 0x11, 0x81), second(driver, 11, 0x11, 0x81);
  for (int round = 0; round < 3; round++) {
    ASSERT_EQ(first.connect(), 0);
    driver.run_until(driver.now() + kSecond);
    ASSERT_EQ(second.connect(), 0);
    driver.run_until(driver.now() + kSecond);
    if (round == 0) EXPECT_TRUE(told.empty()) << "one move may be a restart";
  }
  ASSERT_FALSE(told.empty());
  EXPECT_NE(told.front().find("give each client its own key"), std::string::npos) << told.front();
}

// A stock client opens its session again from another port, so no program returns to the port of its former session.
// But it writes from that port until it notices that it has lost its session.
TEST(Takeover, TwoProgramsWithOneKeyAreReportedThoughTheirPortsChange) {
  Options options = hosts_of_ten();
  std::vector<std::string> told;
  options.warn = [&](const std::string &line) { told.push_back(line); };
  Driver driver(options);
  ReadyClient restarted(driver, 15, 0x22), first(driver, 10, 0x11);
  TestClient itself(driver, 16, 0x22), second(driver, 11, 0x11);
  ASSERT_EQ(itself.connect(), 0);
  restarted.write(0x0015, {1});  // delayed by the network
  ASSERT_EQ(second.connect(), 0);
  driver.run_until(driver.now() + kSecond);
  second.write(0x0015, {1});
  EXPECT_TRUE(told.empty());
  first.write(0x0015, {1});
  EXPECT_EQ(told, (std::vector<std::string>{"client 00000011 at endpoint 10: competes for its session with another "
                                            "program that has this key; give each client its own key"}));
  second.remove(TIDE_XRCE_OBJECT_CLIENT);
  first.write(0x0015, {1});
  EXPECT_EQ(driver.agent.counters().unknown_session, 3u);
}

// ---- silent readers ----

// A client that requests data and then stays silent, with one sample of 400 octets for it every 10 ms.
class Silent : public testing::TestWithParam<uint8_t> {
 protected:
  void start(bool may_be_forged, Time timeout_ns) {
    Options options;
    options.may_be_forged = [may_be_forged](Endpoint) { return may_be_forged; };
    options.client_timeout_ns = [timeout_ns](Endpoint, uint32_t) { return timeout_ns; };
    options.warn = [this](const std::string &line) { told.push_back(line); };
    driver = std::make_unique<Driver>(options);
    client = std::make_unique<TestClient>(*driver, 1, 0x11);
    ASSERT_EQ(client->connect(), 0);
    client->create_all();
    client->read(0x0016, GetParam());
  }
  // Lets time pass. Returns the number of octets that were sent to the client during this time.
  size_t run(Time duration_ns, const std::function<void()> &each_second = {}) {
    size_t octets = 0;
    driver->sent.clear();
    for (Time t_ns = 10'000'000; t_ns <= duration_ns; t_ns += 10'000'000) {
      Sample sample;
      sample.payload.resize(400);
      if (driver->middleware.sources.at(0)->waiting.size() < 8) driver->middleware.sources.at(0)->offer(sample);
      driver->run_until(driver->now() + 10'000'000);
      if (t_ns % kSecond != 0) continue;
      for (const Sent &message : driver->sent) octets += message.bytes.size();
      if (each_second) each_second();
      driver->sent.clear();
    }
    return octets;
  }

  std::vector<std::string> told;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<TestClient> client;
};

TEST_P(Silent, AnAddressThatNeverAcknowledgesIsLeftInPeace) {
  start(true, 30 * kSecond);
  EXPECT_LE(run(40 * kSecond), 260 * 1024u);
  EXPECT_EQ(run(200 * kSecond), 0u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0],
            "client 00000011 at endpoint 1: acknowledges nothing; nothing more is sent to it until it sends a message");
  client->write(0x0015, {1}, 0x01);
  EXPECT_GT(run(kSecond), GetParam() < 0x80 ? 5 * 1000u : 10u) << "it is there after all";
}

TEST_P(Silent, WhoIsSlowToReadIsAskedAndGoesOn) {
  start(true, 5 * kSecond);
  size_t octets = 0;
  for (int round = 0; round < 30; round++) {
    octets = run(2 * kSecond, [&] { client->acknowledge(GetParam() >= 0x80 ? GetParam() : 0x80); });
  }
  EXPECT_GT(octets, 5 * 1000u) << "in the last two seconds of a minute";
  EXPECT_TRUE(told.empty());
}

// There are two cases without a limit: a serial line or TCP, where addresses cannot be forged; and a timeout of 0, with
// which the user accepts forged addresses.
TEST_P(Silent, WhereNobodyElseCanBeMeantItGoesOnForEver) {
  if (GetParam() >= 0x80) {  // reliable: the window is full, and nothing more is sent without acknowledgments
    start(false, 30 * kSecond);
    EXPECT_LT(run(100 * kSecond), 100 * 1000u);
    return;
  }
  for (const bool may_be_forged : {false, true}) {
    start(may_be_forged, may_be_forged ? 0 : 30 * kSecond);
    EXPECT_GT(run(100 * kSecond), 1000 * 1000u);
    EXPECT_GT(run(kSecond), 40 * 1000u);
    EXPECT_TRUE(told.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, Silent, testing::Values(uint8_t{0x01}, uint8_t{0x80}));

// A client that only reads does not lose its session to another endpoint, because it answers probes.
TEST(Takeover, TheOwnerIsAskedBeforeItLosesItsSession) {
  Driver driver(hosts_of_ten());
  ReadyClient owner(driver, 10, 0x11);
  TestClient thief(driver, 20, 0x11);
  owner.acknowledge(0x80);
  uint64_t asked = 0;
  for (Time t_ns = kSecond; t_ns < 60 * kSecond; t_ns += kSecond) {
    driver.run_until(t_ns);
    driver.sent.clear();
    EXPECT_EQ(thief.connect(), -1) << t_ns;
    if (owner.all(TIDE_XRCE_HEARTBEAT).empty()) continue;
    asked++;
    owner.acknowledge(0x80);
  }
  EXPECT_GT(asked, 10u);
}

TEST(Takeover, AnOwnerThatMovedIsInAfterFiveSeconds) {
  for (const bool answers : {true, false}) {
    Driver driver(hosts_of_ten());
    ReadyClient before(driver, 10, 0x11);
    TestClient after(driver, 20, 0x11);
    if (answers) before.acknowledge(0x80);
    const Time heard = driver.now(), silence = (answers ? 5 : 30) * kSecond;
    driver.run_until(heard + silence - 1);
    EXPECT_EQ(after.connect(), -1);
    driver.run_until(heard + silence);
    EXPECT_EQ(after.connect(), 0);
    EXPECT_EQ(driver.agent.client_count(), 1u);
    EXPECT_EQ(after.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
    driver.sent.clear();
    EXPECT_EQ(before.create_xml(0x0023, 0x0011, ""), -1);
  }
}

// A restarted program comes from another port or connection of the same host, and is admitted at once.
TEST(Takeover, AnOwnerThatWasStartedAgainIsInAtOnce) {
  Driver driver(hosts_of_ten());
  ReadyClient before(driver, 10, 0x11);
  TestClient after(driver, 11, 0x11);
  EXPECT_EQ(after.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(after.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  driver.sent.clear();
  EXPECT_EQ(before.create_xml(0x0023, 0x0011, ""), -1);
  EXPECT_EQ(driver.agent.counters().takeovers_refused, 0u);
}

TEST(Allowed, OnlyThoseThatAreNamedAreAnswered) {
  Options options;
  options.allows = [](Endpoint endpoint, std::optional<uint32_t> key) {
    return endpoint == 1 && (!key || *key == 0x11);
  };
  std::vector<std::string> lines;
  options.warn = [&lines](const std::string &line) { lines.push_back(line); };
  Driver driver(options);
  TestClient good(driver, 1, 0x11), other(driver, 1, 0x12, 0x82), elsewhere(driver, 2, 0x11);
  EXPECT_EQ(good.connect(), 0);
  driver.sent.clear();
  EXPECT_EQ(other.connect(), -1);
  EXPECT_EQ(elsewhere.connect(), -1);
  driver.sent.clear();
  const Octets question = bytes_from_hex("000afffd02000000");
  elsewhere.submit(0, TIDE_XRCE_GET_INFO, 1, question);
  EXPECT_TRUE(driver.sent.empty());
  other.submit(0, TIDE_XRCE_GET_INFO, 1, question);
  EXPECT_EQ(driver.sent.size(), 1u);
  EXPECT_EQ(driver.agent.counters().not_allowed, 3u);
  EXPECT_EQ(lines, (std::vector<std::string>{"client 00000012 at endpoint 1: refused: no --allow names it"}));
}

TEST(Crowd, InventedKeysGiveWayToClientsThatWork) {
  std::vector<std::string> lines;
  Options options = telling(lines);
  options.limits.clients = 64;
  Driver driver(options);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (uint32_t number = 0; number < 20; number++) {
    clients.push_back(std::make_unique<TestClient>(driver, 100 + number, 0x1000 + number));
    ASSERT_EQ(clients.back()->connect(), 0) << number;
    clients.back()->create_all();
    for (uint32_t flood = 0; flood < 500; flood++) {
      driver.run_until(driver.now() + 100'000);
      TestClient(driver, 1000 + flood, 0x10000 + number * 500 + flood).connect();
      driver.sent.clear();
    }
  }
  for (const auto &client : clients) {
    EXPECT_EQ(client->create_xml(0x0023, 0x0011, ""), 0);
    driver.sent.clear();
  }
  EXPECT_EQ(driver.agent.client_count(), 64u);
  EXPECT_EQ(lines.size(), 1u);
  driver.run_until(driver.now() + 11 * kSecond);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[1].find("times more in"), std::string::npos) << lines[1];
}

TEST(Notices, OfOneCauseAreALineAndThenACount) {
  std::vector<std::string> lines;
  Notices notices([&lines](const std::string &line) { lines.push_back(line); });
  for (Time t_ns = 0; t_ns < 60 * kSecond; t_ns += kSecond / 100) {
    if (t_ns < 25 * kSecond) notices.tell("too many", "client 1", t_ns);
    if (t_ns == 3 * kSecond) notices.tell("too long", "client 2", t_ns);
    notices.poll(t_ns);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"client 1: too many", "client 2: too long",
                                             "1000 times more in 10 s, the last for client 1: too many",
                                             "1000 times more in 10 s, the last for client 1: too many",
                                             "499 times more in 10 s, the last for client 1: too many"}));
  notices.tell("too many", "client 3", 100 * kSecond);
  EXPECT_EQ(lines.back(), "client 3: too many");
}

}  // namespace tide::agent::test::agent_takeover_test
