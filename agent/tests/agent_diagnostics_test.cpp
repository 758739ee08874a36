// SPDX-License-Identifier: Apache-2.0
// The agent's /diagnostics: contents, hysteresis of the levels, and the bounded size of arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "client_messages.h"
#include "tide/status.h"

namespace tide::agent::test::agent_diagnostics_test {

constexpr uint8_t kOk = 0, kWarning = 1, kError = 2;

struct Status {
  uint8_t level;
  std::string name, message, hardware;
  std::map<std::string, std::string> values;
};

std::string string_of(tide_cdr_t &cdr) {
  size_t length = 0;
  const char *text = tide_cdr_get_string(&cdr, &length);
  return cdr.status == TIDE_OK ? std::string(text, length) : std::string{};
}

std::vector<Status> array_of(const Octets &payload) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, payload.data(), payload.size(), false);
  tide_cdr_get_u32(&cdr);
  tide_cdr_get_u32(&cdr);
  EXPECT_EQ(string_of(cdr), "");
  std::vector<Status> statuses(tide_cdr_get_u32(&cdr));
  for (Status &status : statuses) {
    status.level = tide_cdr_get_u8(&cdr);
    status.name = string_of(cdr);
    status.message = string_of(cdr);
    status.hardware = string_of(cdr);
    for (uint32_t left = tide_cdr_get_u32(&cdr); left != 0 && cdr.status == TIDE_OK; left--) {
      const std::string key = string_of(cdr);
      status.values[key] = string_of(cdr);
    }
  }
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(cdr.position, payload.size());
  return statuses;
}

Options reporting(Time period_ns = kSecond) {
  Options options;
  options.diagnostics.period_ns = period_ns;
  options.diagnostics.instance = "robot process 7";
  options.limits.clients = 2000;
  return options;
}

std::vector<std::vector<Status>> arrays_of(Driver &driver) {
  std::vector<std::vector<Status>> arrays;
  for (const Written &one : driver.middleware.written) {
    if (one.topic == "rt/diagnostics") arrays.push_back(array_of(one.payload));
  }
  driver.middleware.written.clear();
  return arrays;
}

std::vector<Status> next_array(Driver &driver) {
  driver.middleware.written.clear();
  driver.run_until(driver.now() + kSecond);
  const auto arrays = arrays_of(driver);
  EXPECT_EQ(arrays.size(), 1u);
  return arrays.empty() ? std::vector<Status>{} : arrays.back();
}

Status find(const std::vector<Status> &statuses, const std::string &name) {
  const auto place = std::find_if(statuses.begin(), statuses.end(), [&](const auto &one) { return one.name == name; });
  if (place != statuses.end()) return *place;
  ADD_FAILURE() << "no status " << name;
  return {};
}

TEST(Diagnostics, NothingIsMadeWithoutAPeriod) {
  Driver driver;
  driver.run_until(10 * kSecond);
  EXPECT_TRUE(driver.middleware.domains.empty());
}

TEST(Diagnostics, TheDomainIsTheAgents) {
  Options options = reporting();
  options.default_domain = 7;
  Driver usual(options);
  usual.run_until(kSecond);
  EXPECT_EQ(usual.middleware.domains, std::vector<int>{7});
  options.domain = 9;
  Driver given(options);
  given.run_until(kSecond);
  EXPECT_EQ(given.middleware.domains, std::vector<int>{9});
}

TEST(Diagnostics, OneArrayEachPeriodWhileSomebodyReads) {
  Driver driver(reporting(kSecond / 2));
  driver.run_until(10 * kSecond);
  EXPECT_EQ(arrays_of(driver).size(), 21u);
  driver.middleware.unread = true;
  driver.run_until(20 * kSecond);
  EXPECT_TRUE(arrays_of(driver).empty());
}

TEST(Diagnostics, AReaderFindsTheAgentAndItsClients) {
  Options options = reporting();
  options.name_of = [](Endpoint endpoint) { return "place " + std::to_string(endpoint); };
  Driver driver(options);
  TestClient client(driver, 4, 0xAB);
  client.connect();
  client.create_all();
  client.write(0x0015, {1, 2, 3, 4});
  const auto array = next_array(driver);
  ASSERT_EQ(array.size(), 2u);
  EXPECT_EQ(array[0].name, "tide_agent");
  EXPECT_EQ(array[0].hardware, "robot process 7");
  EXPECT_EQ(array[0].values.at("clients"), "1");
  EXPECT_EQ(array[0].values.at("samples_to_dds"), "1");
  EXPECT_EQ(array[0].values.at("messages_in"), std::to_string(driver.agent.counters().messages_in));
  const Status &told = array[1];
  EXPECT_EQ(told.name, "tide_agent: client 000000AB");
  EXPECT_EQ(told.hardware, "place 4");
  EXPECT_EQ(told.level, kOk);
  EXPECT_EQ(told.message, "connected");
  EXPECT_EQ(told.values.at("entities"), "6");
  EXPECT_EQ(told.values.at("messages in"), "7") << "the CREATE_CLIENT is nobody's yet";
  EXPECT_EQ(told.values.at("messages lost, from it"), "0");
}

TEST(Diagnostics, ALinkIsToldWithItsCounts) {
  Options options = reporting();
  LinkVitals link;
  link.name = "serial /dev/ttyX 115200";
  link.bits_per_second = 115200;
  options.diagnostics.links = [&link](std::vector<LinkVitals> &links) { links = {link}; };
  Driver driver(options);
  driver.run_until(0);
  EXPECT_EQ(find(next_array(driver), "tide_agent: link serial /dev/ttyX 115200").level, kOk);
  link.checksum_errors = 3;
  link.bytes_in = 4711;
  const Status told = find(next_array(driver), "tide_agent: link serial /dev/ttyX 115200");
  EXPECT_EQ(told.level, kWarning);
  EXPECT_EQ(told.message, "3 damaged frames lately");
  EXPECT_EQ(told.values.at("bytes in"), "4711");
  EXPECT_EQ(told.values.at("bits per second"), "115200");
}

// A gap in a best-effort stream counts as a loss of that client only.
TEST(Diagnostics, ALossIsAWarningForTenPeriods) {
  Driver driver(reporting());
  TestClient good(driver, 1, 0xA), bad(driver, 2, 0xB);
  for (TestClient *one : {&good, &bad}) {
    one->connect();
    one->create_all();
    one->write(0x0015, {1}, 0x01);
  }
  EXPECT_EQ(find(next_array(driver), "tide_agent: client 0000000B").level, kOk);
  bad.skip(0x01, 2);
  bad.write(0x0015, {2}, 0x01);
  for (int period = 0; period < 11; period++) {
    const auto array = next_array(driver);
    const Status told = find(array, "tide_agent: client 0000000B");
    EXPECT_EQ(told.level, period < 10 ? kWarning : kOk) << period;
    EXPECT_EQ(told.message, period < 10 ? "2 messages lost lately" : "connected");
    EXPECT_EQ(told.values.at("messages lost, from it"), "2");
    EXPECT_EQ(find(array, "tide_agent: client 0000000A").level, kOk);
  }
}

TEST(Diagnostics, WhatGoesOnIsAnErrorUntilItIsRareAgain) {
  CountAlarm alarm;
  uint64_t total = 0;
  std::vector<Level> levels;
  for (int period = 0; period < 30; period++) {
    if (period < 10) total++;
    alarm.update(total);
    levels.push_back(alarm.level());
  }
  EXPECT_EQ(levels[6], Level::kWarning);
  EXPECT_EQ(levels[7], Level::kError);
  EXPECT_EQ(levels[14], Level::kError);
  EXPECT_EQ(levels[15], Level::kWarning);
  EXPECT_EQ(levels[18], Level::kWarning);
  EXPECT_EQ(levels[19], Level::kOk);
  EXPECT_EQ(alarm.recent(), 0u);
}

// Compares an alarm with a reference that stores all values of its window.
TEST(Diagnostics, AnAlarmCountsTheLastTenPeriods) {
  for (uint32_t seed = 1; seed <= 200; seed++) {
    std::mt19937 random(seed);
    CountAlarm alarm;
    std::vector<uint64_t> totals(CountAlarm::kPeriods + 1, 0);
    for (int period = 0; period < 100; period++) {
      totals.push_back(totals.back() + (random() % 3 == 0 ? random() % 5 : 0));
      alarm.update(totals.back());
      const uint64_t expected = totals.back() - totals[totals.size() - 1 - CountAlarm::kPeriods];
      ASSERT_EQ(alarm.recent(), expected) << "seed " << seed << " period " << period;
      ASSERT_EQ(alarm.level() == Level::kOk, expected == 0) << "seed " << seed << " period " << period;
    }
  }
}

TEST(Diagnostics, AQueueThatFillsWarnsBeforeItIsFullAndDoesNotFlicker) {
  FillAlarm alarm;
  const auto level_at = [&alarm](size_t used) {
    alarm.update(used, 100);
    return alarm.level();
  };
  EXPECT_EQ(level_at(79), Level::kOk);
  EXPECT_EQ(level_at(80), Level::kWarning);
  EXPECT_EQ(level_at(60), Level::kWarning);
  EXPECT_EQ(level_at(59), Level::kOk);
  EXPECT_EQ(level_at(95), Level::kError);
  EXPECT_EQ(level_at(80), Level::kError);
  EXPECT_EQ(level_at(79), Level::kWarning);
  alarm.update(0, 0);
  EXPECT_EQ(alarm.level(), Level::kOk);
}

TEST(Diagnostics, AClientThatIsGoneIsShownForAWhile) {
  Options options = reporting();
  options.limits.client_timeout_ns = 2 * kSecond;
  options.limits.probe_period_ns = kSecond / 2;
  Driver driver(options);
  TestClient client(driver, 1, 0xA);
  client.connect(508, "1000");
  bool gone = false;
  int shown = 0;
  for (int second = 0; second < 60; second++) {
    for (const Status &one : next_array(driver)) {
      if (one.name != "tide_agent: client 0000000A" || one.values.at("connected") != "no") continue;
      EXPECT_EQ(one.level, kError);
      gone = true;
      shown++;
    }
  }
  EXPECT_TRUE(gone);
  EXPECT_NEAR(shown, 30, 1);
  EXPECT_EQ(client.connect(508, "1000"), 0);
  EXPECT_EQ(find(next_array(driver), "tide_agent: client 0000000A").values.at("connected"), "yes");
}

TEST(Diagnostics, CountersOutliveTheirClient) {
  Driver driver(reporting());
  TestClient client(driver, 1, 0xA);
  client.connect();
  client.create_all();
  client.write(0x0015, {1});
  const Counters before = driver.agent.counters();
  client.remove(TIDE_XRCE_OBJECT_CLIENT);
  const Counters after = driver.agent.counters();
  EXPECT_EQ(after.samples_to_dds, 1u);
  EXPECT_EQ(after.entities_created, before.entities_created);
  EXPECT_EQ(after.messages_in, before.messages_in + 1);
  EXPECT_EQ(next_array(driver).size(), 1u) << "one that took its leave is not missed";
}

TEST(Diagnostics, TimesOfServicesAreThoseBetweenRequestAndReply) {
  Driver driver(reporting());
  TestClient client(driver, 1, 0xA);
  client.connect();
  ASSERT_EQ(client.create_xml(0x0011, 0, ""), 0);
  ASSERT_EQ(client.create_xml(0x0017, 0x0011, TestClient::kRequester), 0);
  ASSERT_EQ(client.create_xml(0x0018, 0x0011, TestClient::kReplier), 0);
  FakeSource &replies = *driver.middleware.sources[0], &requests = *driver.middleware.sources[1];
  client.read(0x0017, 0x80);
  client.read(0x0018, 0x80);
  const auto asked = [&](uint64_t number, Time time_ns) {
    client.write(0x0017, {1});
    driver.run_until(driver.now() + time_ns);
    Sample answer = sample_of({5});
    answer.request = number;
    replies.offer(answer);
    driver.pump();
  };
  const auto served = [&](uint8_t number, Time time_ns) {
    Sample request = sample_of({7});
    request.identity.fill(number);
    Octets reply(request.identity.begin(), request.identity.end());
    requests.offer(std::move(request));
    driver.pump();
    driver.run_until(driver.now() + time_ns);
    client.write(0x0018, reply);
  };
  const auto values = [&] { return find(next_array(driver), "tide_agent: client 0000000A").values; };
  EXPECT_FALSE(values().contains("asks s_Request")) << "nobody has replied";
  asked(1, 4'000'000);
  asked(2, 3'000'000);
  served(1, 2'000'000);
  const auto told = values();
  EXPECT_EQ(told.at("asks s_Request"), "2 replies, last 3000 us, greatest 4000 us");
  EXPECT_EQ(told.at("serves s_Request"), "1 replies, last 2000 us, greatest 2000 us");
  served(1, 1'000'000);
  client.write(0x0018, Octets(24, 9));  // a reply to a request that never existed
  EXPECT_EQ(values().at("serves s_Request"), "2 replies, last 1000 us, greatest 2000 us");
}

TEST(Diagnostics, AThousandClientsHaveRoomInTurnsAndThoseWithFaultsFirst) {
  constexpr uint32_t kClients = 1000;
  Driver driver(reporting());
  std::vector<TestClient> clients;
  for (uint32_t n = 0; n < kClients; n++) {
    clients.emplace_back(driver, n, 0x1000 + n);
    clients.back().connect();
  }
  TestClient &bad = clients[500];
  std::set<std::string> seen;
  for (int period = 0; period < 20; period++) {
    bad.write(0x0015, {1});  // 0x0015 does not exist
    driver.middleware.written.clear();
    driver.run_until(driver.now() + kSecond);
    ASSERT_EQ(driver.middleware.written.size(), 1u);
    const Octets &payload = driver.middleware.written.back().payload;
    EXPECT_LE(payload.size(), DiagnosticArray::kBytesMaximum);
    const auto array = array_of(payload);
    ASSERT_EQ(array.size(), 65u);
    EXPECT_EQ(array[0].values.at("clients"), "1000");
    EXPECT_EQ(array[0].values.at("clients not well"), "1");
    EXPECT_EQ(array[1].name, "tide_agent: client 000011F4");
    for (size_t n = 1; n < array.size(); n++) seen.insert(array[n].name);
  }
  EXPECT_EQ(seen.size(), kClients) << "each had its turn";
}

TEST(Diagnostics, WhatHasNoRoomIsLeftOutAsAWhole) {
  DiagnosticArray array;
  array.begin(0);
  const std::string text(1000, 'x');
  size_t taken = 0;
  for (int n = 0; n < 100; n++) {
    array.status(Level::kOk, "name", "message", "hardware");
    array.value("key", text);
    taken += array.end_status() ? 1 : 0;
  }
  const Bytes bytes = array.end();
  EXPECT_LE(bytes.size(), DiagnosticArray::kBytesMaximum);
  const auto statuses = array_of({bytes.begin(), bytes.end()});
  EXPECT_EQ(statuses.size(), taken);
  EXPECT_GT(taken, 50u);
  EXPECT_LT(taken, 100u);
}

// DDS refuses an entity either at once or later, in the thread that creates it.
TEST(Diagnostics, WhenDdsRefusesItIsAskedAgainAndTheUserHears) {
  for (const bool later : {false, true}) {
    std::vector<std::string> lines;
    Options options = reporting();
    options.warn = telling(lines).warn;
    Driver driver(options);
    (later ? driver.middleware.later : driver.middleware.refuse) = true;
    driver.run_until(kSecond);
    driver.middleware.finish(Made::State::kRefused);
    driver.run_until(5 * kSecond);
    EXPECT_TRUE(arrays_of(driver).empty());
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("/diagnostics"), std::string::npos);
    driver.middleware.refuse = false;
    driver.run_until(14 * kSecond);
    driver.middleware.finish(Made::State::kMade);
    driver.run_until(30 * kSecond);
    EXPECT_FALSE(arrays_of(driver).empty());
  }
}

}  // namespace tide::agent::test::agent_diagnostics_test
