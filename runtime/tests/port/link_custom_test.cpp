// SPDX-License-Identifier: Apache-2.0
// Custom links on a transport controlled by the test.
#include <thread>

#include "link_ends.h"

namespace link_custom_test {

struct CustomLink {
  CustomLink(FakeDaemon &fake, Transport &transport, bool framed) {
    const tide_custom_transport_t functions = transport.functions(framed);
    storage.resize(TIDE_CUSTOM_LINK_STORAGE_BYTES(fake.session.config.mtu));
    status = tide_custom_link_open(&link, &fake.session, &functions, storage.data(), storage.size());
  }
  ~CustomLink() { tide_custom_link_close(&link); }
  CustomLink(const CustomLink &) = delete;
  CustomLink &operator=(const CustomLink &) = delete;
  void run() { tide_custom_link_run(&link, 0); }
  std::vector<uint8_t> storage;
  tide_custom_link_t link;
  int status;
};

TEST(CustomLink, IsRunByWhoeverWaits) {
  for (const bool framed : {true, false}) {
    FakeDaemon client;
    Transport transport;
    CustomLink custom(client, transport, framed);
    ASSERT_EQ(custom.status, TIDE_OK);
    EXPECT_TRUE(transport.is_open);
    const auto messages = random_messages(9, 10, 300);
    for (const auto &message : messages) client.submit(message);
    EXPECT_TRUE(transport.written.empty());  // only tide_custom_link_run uses the transport
    custom.run();
    EXPECT_EQ(client.sent.size(), 10u);
    if (framed) {
      EXPECT_EQ(transport.stream(), frames_of(messages));
    } else {
      EXPECT_EQ(transport.written, messages);
    }
    transport.arriving = {Bytes(5, 1), Bytes(6, 2)};
    custom.run();
    custom.run();
    EXPECT_EQ(client.received.size(), framed ? 11u : 0u);
    EXPECT_EQ(client.messages, framed ? std::vector<Bytes>{} : (std::vector<Bytes>{Bytes(5, 1), Bytes(6, 2)}));
    EXPECT_EQ(custom.link.counters.messages_sent, 10u);
    EXPECT_EQ(custom.link.counters.bytes_received, 11u);
    EXPECT_EQ(client.wrong_completions, 0);
  }
}

TEST(CustomLink, WaitsNoLongerThanItsDeadline) {
  FakeDaemon client;
  Transport transport;
  CustomLink custom(client, transport, true);
  const int64_t start_ns = FakeDaemon::now_ns();
  tide_custom_link_run(&custom.link, start_ns + 30'000'000);
  const int64_t taken_ns = FakeDaemon::now_ns() - start_ns;
  EXPECT_GE(taken_ns, 29'000'000);
  EXPECT_LE(transport.timeouts, 31);  // each read waits for a millisecond
  EXPECT_EQ(transport.longest_timeout_ms, 1);
  EXPECT_GE(client.polls, transport.timeouts);
}

// The rest of a millisecond is slept and not waited busily.
TEST(CustomLink, SleepsPastTheTimeOfTheSession) {
  FakeDaemon client;
  client.poll_period_ns = 500'000;
  Transport transport;
  CustomLink custom(client, transport, true);
  for (int turn = 0; turn < 1000 && transport.longest_timeout_ms == 0; turn++)
    tide_custom_link_run(&custom.link, FakeDaemon::now_ns() + 2'000'000);
  EXPECT_EQ(transport.longest_timeout_ms, 1);
}

TEST(CustomLink, AReadThatCanBeWokenWaitsForWhatIsNext) {
  FakeDaemon client;
  client.poll_period_ns = 3'600'000'000'000;
  Transport transport;
  transport.can_wake = true;
  CustomLink custom(client, transport, true);
  const auto run = [&] {
    transport.arriving = {Bytes(5, 1)};  // so that the link need not sleep
    transport.longest_timeout_ms = 0;
    tide_custom_link_run(&custom.link, TIDE_FOREVER);
    return transport.longest_timeout_ms;
  };
  EXPECT_GT(run(), 1000);
  const int wakes = transport.wakes;
  client.submit(Bytes(10, 1));
  EXPECT_EQ(transport.wakes, wakes + 1) << "the message would wait for the end of the read";
  tide_custom_link_wake(&custom.link);
  EXPECT_EQ(transport.wakes, wakes + 2);
  transport.stuck = true;
  EXPECT_EQ(run(), 1) << "a rest of a message is offered again";
}

TEST(CustomLink, ARunEndsWhenItIsWoken) {
  FakeDaemon client;
  Transport transport;
  transport.can_wake = true;
  CustomLink custom(client, transport, true);
  tide_custom_link_wake(&custom.link);
  tide_custom_link_run(&custom.link, TIDE_FOREVER);
  EXPECT_EQ(client.polls, 1);
}

TEST(CustomLink, GoesOnWithWhatTheTransportDidNotTake) {
  FakeDaemon client;
  Transport transport;
  transport.takes_at_once = 7;
  CustomLink custom(client, transport, true);
  const auto messages = random_messages(4, 5, 100);
  for (const auto &message : messages) client.submit(message);
  for (int turn = 0; turn < 1000 && client.sent.size() < 5; turn++) custom.run();
  EXPECT_EQ(transport.stream(), frames_of(messages));
}

TEST(CustomLink, GivesUpAMessageThatIsNeverTaken) {
  for (const bool framed : {true, false}) {
    FakeDaemon client;
    Transport transport;
    transport.stuck = true;
    CustomLink custom(client, transport, framed);
    client.submit(Bytes(10, 1));
    client.submit(Bytes(10, 2));
    for (int turn = 0; turn < 10000 && client.sent.size() < 2; turn++) custom.run();
    EXPECT_EQ(custom.link.counters.messages_lost, 2u);
    transport.stuck = false;
    client.submit(Bytes(10, 3));
    custom.run();
    EXPECT_EQ(custom.link.counters.messages_sent, 1u);
  }
}

TEST(CustomLink, RefusesWhatDoesNotWork) {
  FakeDaemon client;
  Transport transport;
  transport.opens = false;
  CustomLink custom(client, transport, true);
  EXPECT_EQ(custom.status, TIDE_ERROR_LINK);
  EXPECT_FALSE(client.attached);
  custom.run();
  tide_custom_transport_t functions = transport.functions(true);
  uint8_t few[10];
  EXPECT_EQ(tide_custom_link_open(&custom.link, &client.session, &functions, few, sizeof few), TIDE_ERROR_TOO_LARGE);
  functions.read = nullptr;
  EXPECT_EQ(
      tide_custom_link_open(&custom.link, &client.session, &functions, custom.storage.data(), custom.storage.size()),
      TIDE_ERROR_ARGUMENT);
}

TEST(CustomLink, HasAThreadOnThisPort) {
  FakeDaemon client;
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t address{};
  address.kind = TIDE_LINK_CUSTOM;
  address.custom = &functions;
  ASSERT_EQ(client.open(address), TIDE_OK);
  EXPECT_EQ(tide_port_pump(&client.session), nullptr);
  for (int index = 0; index < 50; index++) client.submit(Bytes(10, 1));
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 50; }));
  EXPECT_EQ(client.counters().messages_sent, 50u);
  client.close();
  EXPECT_FALSE(transport.is_open);
  EXPECT_EQ(transport.collisions, 0);
  EXPECT_EQ(transport.written.size(), 50u);
}

// Each read waits for an hour, so all events in this test are caused by wake-ups.
TEST(CustomLink, ItsThreadIsWokenForMessagesAndTimesAndTheEnd) {
  FakeDaemon client;
  client.poll_period_ns = 3'600'000'000'000;
  Transport transport;
  transport.can_wake = true;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t address{};
  address.kind = TIDE_LINK_CUSTOM;
  address.custom = &functions;
  ASSERT_EQ(client.open(address), TIDE_OK);
  for (size_t count = 1; count <= 20; count++) {
    client.submit(Bytes(10, 1));
    ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.sent.size() == count; }));
    const int polls = client.look<int>([](const FakeDaemon &fake) { return fake.polls; });
    tide_port_wake_link(&client.session);
    ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.polls > polls; }));
  }
  client.close();
  EXPECT_FALSE(transport.is_open);
}

}  // namespace link_custom_test
