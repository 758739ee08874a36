// SPDX-License-Identifier: Apache-2.0
// UDP links over real sockets, with a daemon that the test can inspect.
#include <barrier>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "eventually.h"
#include "link_ends.h"
#include "link_times.h"

namespace link_udp_test {

constexpr int64_t kNever = INT64_MAX / 4;
constexpr int kFlood = 63;  // messages in quick succession that are sent separately, before later ones are combined

// Changes the times of links that are opened while the object exists.
class LinkTimes {
 public:
  explicit LinkTimes(const tide_posix_link_times_t &times) : before_(tide_posix_link_times) {
    tide_posix_link_times = times;
  }
  ~LinkTimes() { tide_posix_link_times = before_; }
  LinkTimes(const LinkTimes &) = delete;
  LinkTimes &operator=(const LinkTimes &) = delete;

 private:
  const tide_posix_link_times_t before_;
};

// The descriptor of this process's socket that is connected to the port.
int descriptor_connected_to(uint16_t port) {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    const bool known = getpeername(descriptor, reinterpret_cast<sockaddr *>(&peer), &length) == 0;
    if (known && peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) return descriptor;
  }
  return -1;
}

class UdpLinkFamily : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, UdpLinkFamily, ::testing::Values(AF_INET, AF_INET6));

TEST_P(UdpLinkFamily, CarriesOneMessageADatagramBothWays) {
  Server server(SOCK_DGRAM, 0, GetParam());
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port, GetParam())), TIDE_OK);
  const auto messages = random_messages(1, 500, 512);
  tide_socket_address_t from{};
  for (const auto &message : messages) {
    client.submit(message);
    ASSERT_EQ(server.take(&from), message);
    server.give(message, from);
  }
  server.give(Bytes(513, 1), from);  // above the MTU
  server.give(Bytes(), from);
  server.give(Bytes(512, 2), from);
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.messages.size() == 501; }));
  EXPECT_TRUE(std::equal(messages.begin(), messages.end(), client.messages.begin()));
  EXPECT_EQ(client.messages.back(), Bytes(512, 2));
  EXPECT_EQ(client.counters().messages_oversize, 1u);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 500; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

// A submitter's message has been sent when submit returns. The thread keeps sleeping, unless it may have to request an
// acknowledgment.
TEST(UdpLink, CompletesAMessageWhileItIsStarted) {
  const LinkTimes times(
      {.poll_limit_ns = kNever, .flood_gap_ns = 1, .gather_ns = 0, .attention_ns = 0, .pause = nullptr});
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  client.poll_period_ns = kNever;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const auto messages = random_messages(11, 200, 512);
  const auto polls = [&] { return client.look<int>([](const FakeDaemon &fake) { return fake.polls; }); };
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.polls > 0; }));
  const int before = polls();
  for (const Bytes &message : messages) {
    client.submit(message);
    ASSERT_EQ(server.take(), message);
  }
  EXPECT_EQ(client.look<int>([](const FakeDaemon &fake) { return fake.completed_in_start; }), 200);
  EXPECT_EQ(polls(), before);
  client.awaited = true;
  client.submit(messages[0]);
  EXPECT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.polls > before; }));
  EXPECT_EQ(client.sent.size(), 201u);
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.refused, 0);
  EXPECT_EQ(client.counters().messages_sent, 201u);
  EXPECT_EQ(client.counters().batches, 201u);
}

// If acknowledgments may have to be requested, the thread wakes whenever a request may be due, not for each message.
TEST(UdpLink, IsNotWokenForEachOfManyMessagesThatWaitForAnswers) {
  const LinkTimes times(
      {.poll_limit_ns = kNever, .flood_gap_ns = 1, .gather_ns = 0, .attention_ns = 0, .pause = nullptr});
  constexpr int kMessages = 3000;
  constexpr int64_t kQuestionNs = 2'000'000;
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  client.poll_period_ns = kNever;
  client.session.daemon.transmitter.config.heartbeat_delay_ns = -1;  // measured
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  client.awaited = true;
  const auto polls = [&] { return client.look<int>([](const FakeDaemon &fake) { return fake.polls; }); };
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.polls > 0; }));
  const Bytes message(100, 7);
  const int64_t start_ns = FakeDaemon::now_ns();
  for (int index = 0; index < kMessages; index++) {
    client.submit(message);
    ASSERT_EQ(server.take(), message);
  }
  const int64_t lasted_ns = FakeDaemon::now_ns() - start_ns;  // by the clock of the link
  EXPECT_LE(polls(), 4 * (lasted_ns / kQuestionNs) + 100);    // once for each message it would be 3,000
  EXPECT_GT(polls(), 1);
}

// Messages of one length, in a flood: after the first ones, 32 are sent together, and the last ones after a delay.
TEST(UdpLink, GathersAFloodIntoBatches) {
  const LinkTimes times(
      {.poll_limit_ns = kNever, .flood_gap_ns = kNever, .gather_ns = kNever, .attention_ns = 0, .pause = nullptr});
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  client.poll_period_ns = kNever;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  std::mt19937_64 random(12);
  std::vector<Bytes> messages;
  for (int index = 0; index < kFlood + 32 * 4; index++) messages.push_back(random_message(random, 40));
  for (const Bytes &message : messages) client.submit(message);
  for (const Bytes &message : messages) ASSERT_EQ(server.take(), message);
  EXPECT_EQ(client.look<int>([](const FakeDaemon &fake) { return fake.completed_in_start; }), kFlood + 32 * 4);
  EXPECT_EQ(client.counters().batches, kFlood + 4u);
  for (size_t rest = 1; rest < 20; rest++) {  // a more urgent message is sent at once, together with the earlier ones
    for (size_t index = 0; index < rest; index++) client.submit(messages[index]);
    EXPECT_FALSE(server.has_some());
    client.priority++;
    client.submit(messages[rest]);
    for (size_t index = 0; index <= rest; index++) ASSERT_EQ(server.take(), messages[index]);
    client.priority = 0;
  }
  client.submit(messages[0]);
  client.submit(Bytes(39, 1));  // would not be sent together with the earlier message
  ASSERT_EQ(server.take(), messages[0]);
  ASSERT_EQ(server.take(), Bytes(39, 1));
  client.submit(messages[0]);
  client.submit(Bytes(8, 1));  // a caller waits for the answer
  ASSERT_EQ(server.take(), messages[0]);
  ASSERT_EQ(server.take(), Bytes(8, 1));
  client.awaited = true;  // this starts a round trip
  client.submit(messages[0]);
  ASSERT_EQ(server.take(), messages[0]);
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.counters().messages_lost, 0u);
}

// The thread is always notified of waiting messages. There are many submitters, bursts and pauses by seed, and a thread
// that delays where a wake-up could be lost; after each round, no message is left. No poll hides a lost wake-up in this
// test.
class UdpWakeUps : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr size_t kSubmitters = 4, kRounds = 400;

  static void dawdle() {
    static thread_local std::mt19937_64 random(20);
    if (random() % 4 == 0) tide::test::let_others_run(random() % 20);
  }
  void submit(size_t number) {
    std::mt19937_64 random(GetParam() * kSubmitters + number);
    for (size_t round = 0; round < kRounds; round++) {
      for (size_t left = random() % 50 == 0 ? 40 : random() % 3; left > 0; left--) {
        if (random() % 2 == 0) tide::test::let_others_run(random() % 40);
        client.submit(Bytes(16 + random() % 2, static_cast<uint8_t>(number)));
        submitted++;
      }
      round_over.arrive_and_wait();  // all submitters have finished
      round_over.arrive_and_wait();  // everything has arrived
    }
  }
  // Returns false if nothing arrived.
  bool take_all() {
    for (; arrived < submitted; arrived++) {
      if (server.take().empty()) return false;
    }
    return true;
  }

  const LinkTimes times_{
      {.poll_limit_ns = kNever, .flood_gap_ns = kNever, .gather_ns = 30'000, .attention_ns = 0, .pause = dawdle}};
  Server server{SOCK_DGRAM};
  FakeDaemon client;
  std::barrier<> round_over{kSubmitters + 1};
  std::atomic<size_t> submitted = 0;
  size_t arrived = 0;
};

TEST_P(UdpWakeUps, AreNotLost) {
  client.poll_period_ns = kNever;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  std::vector<std::thread> submitters;
  for (size_t number = 0; number < kSubmitters; number++) submitters.emplace_back([this, number] { submit(number); });
  std::string failure;
  for (size_t round = 0; round < kRounds; round++) {
    round_over.arrive_and_wait();
    if (failure.empty() && !take_all()) failure = "round " + std::to_string(round);
    round_over.arrive_and_wait();
  }
  for (std::thread &submitter : submitters) submitter.join();
  EXPECT_EQ(failure, "") << arrived << " of " << submitted << " arrived";
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.refused, 0);
  EXPECT_LT(client.counters().batches, submitted);
  EXPECT_EQ(client.counters().messages_lost, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, UdpWakeUps, testing::Values(1u, 2u, 77u), testing::PrintToStringParamName());

// Replaces the link's socket by one that waits for its receiver, as a socket on a slow device does.
TEST(UdpLink, GoesOnWhenTheSystemTakesMessagesAgain) {
  const LinkTimes times(
      {.poll_limit_ns = kNever, .flood_gap_ns = 20'000, .gather_ns = 50'000, .attention_ns = 0, .pause = nullptr});
  const Server server(SOCK_DGRAM);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const Descriptor near(ends[0]), far(ends[1]);
  FakeDaemon client(2000);
  client.poll_period_ns = kNever;
  client.on_attach = [&] { EXPECT_GE(dup2(near.number, descriptor_connected_to(server.port)), 0); };
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  std::vector<Bytes> messages;
  std::mt19937_64 random(13);
  const auto blocked = [](const FakeDaemon &fake) { return fake.waiting() > 40; };
  while (!client.look<bool>(blocked)) {
    ASSERT_LT(messages.size(), 10'000u);
    messages.push_back(random_message(random, 1500));  // too long for a train, which only UDP supports
    client.submit(messages.back());
  }
  EXPECT_GT(client.counters().writes_partial, 0u);
  for (const Bytes &message : messages) ASSERT_EQ(read_some(far, message.size()), message);
  ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.sent.size() == messages.size(); }));
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.counters().messages_lost, 0u);
  client.submit(Bytes(20, 7));
  EXPECT_EQ(read_some(far, 20), Bytes(20, 7));
}

// Waiting callers receive by themselves, or are notified by the link's thread; nothing is lost, duplicated or out of
// order.
TEST(UdpLink, LendsWhatItReceivesToCallersThatWait) {
  Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  client.submit(Bytes(10, 1));
  tide_socket_address_t from{};
  ASSERT_EQ(server.take(&from), Bytes(10, 1));
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  client.on_message = [&] { platform->event_set(platform->context, &event); };
  const auto wait = [&](int64_t limit_ns) { return client.wait(&event, FakeDaemon::now_ns() + limit_ns); };
  const auto messages = random_messages(2, 2000, 512);
  for (const auto &message : messages) {
    server.give(message, from);
    ASSERT_EQ(wait(10'000'000'000), 1);
  }
  EXPECT_EQ(client.messages, messages);
  std::thread other([&] {  // set by another part of the program, not by the link's thread or the caller
    tide::test::let_others_run(200);
    platform->event_set(platform->context, &event);
  });
  EXPECT_EQ(wait(10'000'000'000), 1);
  other.join();
  EXPECT_EQ(wait(3'000'000), 0);
  EXPECT_EQ(wait(-1), 0);
}

// Number of times that the link's thread has slept so far.
long sleeps_of_the_thread() {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(entry.path() / "comm"), status(entry.path() / "status");
    std::string name, word;
    std::getline(comm, name);
    while (name == "tide link" && status >> word) {
      long count = 0;
      if (word == "voluntary_ctxt_switches:" && status >> count) return count;
    }
  }
  return -1;
}

// A single-threaded program that waits and publishes, and the agent's answers.
struct Program {
  explicit Program(int64_t attention_ns)
      : times({.poll_limit_ns = kNever,
               .flood_gap_ns = 1,
               .gather_ns = 0,
               .attention_ns = attention_ns,
               .pause = nullptr}) {
    client.poll_period_ns = kNever;
    client.awaited = true;
    client.session.daemon.transmitter.config.heartbeat_delay_ns = -1;  // measured
    EXPECT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
    platform->event_init(platform->context, &event);
    client.on_message = [this] { platform->event_set(platform->context, &event); };
  }
  // One message and its answer, which this thread receives itself.
  void exchange(tide_wait_t kind = TIDE_WAIT_WORK) {
    client.submit(Bytes(20, 1));
    ASSERT_EQ(server.take(&from), Bytes(20, 1));
    server.give(Bytes(20, 2), from);
    ASSERT_EQ(client.wait(&event, FakeDaemon::now_ns() + 10'000'000'000, kind), 1);
  }
  const tide_platform_t *platform = tide_port_platform();
  const LinkTimes times;
  Server server{SOCK_DGRAM};
  tide_socket_address_t from{};
  tide_event_t event{};
  FakeDaemon client;
};

// Neither received nor sent messages wake the thread; it wakes because a HEARTBEAT may be due every 2 ms.
TEST(UdpLink, LeavesItsThreadAsleepWhileTheProgramAttends) {
  Program program(kNever);
  program.exchange();
  const long before = sleeps_of_the_thread();
  const int64_t start_ns = FakeDaemon::now_ns();
  for (int count = 0; count < 1000; count++) program.exchange();
  const int64_t lasted_ns = FakeDaemon::now_ns() - start_ns;               // by the clock of the link
  EXPECT_LE(sleeps_of_the_thread() - before, lasted_ns / 2'000'000 + 20);  // once for each message it would be 1,000
  EXPECT_EQ(program.client.messages.size(), 1001u);
}

TEST(UdpLink, TakesOverWhenTheProgramDoesNotAttendAnyMore) {
  Program program(1'000'000);
  for (size_t count = 1; count < 100; count += 2) {
    program.exchange();
    program.server.give(Bytes(20, 3), program.from);
    ASSERT_TRUE(program.client.eventually([&](const FakeDaemon &fake) { return fake.messages.size() == count + 1; }));
    EXPECT_EQ(program.platform->event_wait(program.platform->context, &program.event, TIDE_FOREVER), 1);
  }
}

// A lane does not receive. The link's thread does, although the program has just attended to the link and may still
// wait.
TEST(UdpLink, ReceivesForLanesWhoeverAttends) {
  Program program(kNever);
  program.exchange();
  std::thread lane([&] { program.exchange(TIDE_WAIT_LANE); });
  lane.join();
  EXPECT_EQ(program.client.messages.size(), 2u);
}

// More callers wait at the same time than the platform has descriptors for.
TEST(UdpLink, ReceivesForManyProgramsAtOnce) {
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::thread> waiting;
  for (int count = 0; count < 12; count++) {
    Program &program = *programs.emplace_back(std::make_unique<Program>(kNever));
    program.exchange();
    waiting.emplace_back([&program] {
      EXPECT_EQ(program.client.wait(&program.event, FakeDaemon::now_ns() + 10'000'000'000, TIDE_WAIT_WORK), 1);
    });
  }
  tide::test::let_others_run(500);
  for (const auto &program : programs) program->server.give(Bytes(20, 3), program->from);
  for (std::thread &each : waiting) each.join();
}

TEST(UdpLink, MayBeClosedWhileACallerWaits) {
  const Server server(SOCK_DGRAM);
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, server.port)), TIDE_OK);
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  std::atomic<int> result = -1;
  std::thread waiting([&] { result = client.wait(&event, FakeDaemon::now_ns() + 10'000'000'000); });
  tide::test::let_others_run(200);
  client.close();
  EXPECT_EQ(result, -1);  // it waits for its event, whether or not there is a link
  platform->event_set(platform->context, &event);
  waiting.join();
  EXPECT_EQ(result, 1);
}

TEST(UdpLink, DoesNotMindThatNobodyListensYet) {
  uint16_t port;
  {
    const Server server(SOCK_DGRAM);
    port = server.port;
  }
  FakeDaemon client;
  ASSERT_EQ(client.open(internet(TIDE_LINK_UDP, port)), TIDE_OK);
  for (int index = 0; index < 20; index++) {
    client.submit(Bytes(10, 1));
    tide::test::let_others_run(100);
  }
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 20; }));
  for (int index = 0; index < 200; index++) client.submit(Bytes(10, 1));  // each gets the error of the preceding one
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 220; }));
  EXPECT_EQ(client.refused, 0);
  EXPECT_EQ(client.counters().messages_lost, 0u);
  EXPECT_EQ(client.counters().cuts, 0u);
  Server server(SOCK_DGRAM, port);
  client.submit(Bytes(10, 2));
  EXPECT_EQ(server.take(), Bytes(10, 2));
}

}  // namespace link_udp_test
