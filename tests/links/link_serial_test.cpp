// SPDX-License-Identifier: Apache-2.0
// Serial links over pseudo terminals, with a daemon that the test can inspect.
#include <algorithm>
#include <filesystem>
#include <thread>

#include "eventually.h"
#include "line_process.h"
#include "link_ends.h"

namespace link_serial_test {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tide_link_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string &name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void point(const std::string &link, const std::string &target) {
  std::filesystem::remove(link);
  std::filesystem::create_symlink(target, link);
}

int64_t median(std::vector<int64_t> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

TEST(SerialLink, ReportsTheEndOfATransmissionWhenItsLastByteHasLeftTheLine) {
  LineProcess line({});
  FakeDaemon client, agent;
  tide_link_address_t address = serial(line.a);
  address.thread_priority = 85;
  ASSERT_EQ(client.open(address), TIDE_OK);
  tide_link_address_t far = serial(line.b);
  far.agent_side = true;
  ASSERT_EQ(agent.open(far), TIDE_OK);
  std::vector<Bytes> up_messages, down_messages;
  std::mt19937_64 random(3);
  for (int index = 0; index < 100; index++)
    up_messages.push_back(random_message(random, 93));  // about 100 bytes each
                                                        // on the line
  for (int index = 0; index < 100; index++) down_messages.push_back(random_message(random, 20));
  for (const auto &message : up_messages) client.submit(message);
  for (const auto &message : down_messages) agent.submit(message);
  const Bytes up_bytes = frames_of(up_messages), down_bytes = frames_of(down_messages, 0, 1);
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 100; }));
  ASSERT_TRUE(agent.eventually([&](const FakeDaemon &fake) { return fake.received.size() == up_bytes.size(); }));
  ASSERT_TRUE(client.eventually([&](const FakeDaemon &fake) { return fake.received.size() == down_bytes.size(); }));
  EXPECT_EQ(agent.received, up_bytes);
  EXPECT_EQ(client.received, down_bytes);
  EXPECT_EQ(client.address, TIDE_SERIAL_ADDRESS_CLIENT);
  EXPECT_EQ(agent.address, TIDE_SERIAL_ADDRESS_AGENT);
  std::vector<int64_t> late_ns;
  for (size_t index = 0; index < 100; index++) {
    const auto &sent = client.sent[index];
    const size_t bytes = frame_of(up_messages[index], 1, 0).size();
    late_ns.push_back(sent.completed_ns - sent.started_ns - tide_serial_duration_ns(bytes, 115200));
    EXPECT_GE(late_ns.back(), 0) << index;
  }
  // A frame is never early. Other load may delay some wake-ups, but not most of the hundred.
  std::printf("late by %lld us in the median\n", static_cast<long long>(median(late_ns) / 1000));
  EXPECT_LT(*std::min_element(late_ns.begin(), late_ns.end()), 1'000'000);
  EXPECT_EQ(client.wrong_completions, 0);
  EXPECT_EQ(client.counters().messages_sent, 100u);
  EXPECT_EQ(client.counters().bytes_sent, up_bytes.size());
}

TEST(SerialLink, APeerThatStopsReadingDelaysNobodyAndLosesNothing) {
  PseudoTerminal terminal;
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(terminal.path, 4'000'000)), TIDE_OK);
  const auto messages = random_messages(7, 400, 400);
  for (const auto &message : messages) client.submit(message);  // without waiting
  EXPECT_TRUE(tide::test::eventually([&] { return client.counters().writes_partial > 0; }));
  const auto waiting = client.look<size_t>([](const FakeDaemon &fake) { return fake.waiting(); });
  EXPECT_GT(waiting, 100u);
  EXPECT_GT(client.counters().writes_partial, 0u);
  const Bytes expected = frames_of(messages);
  EXPECT_EQ(read_some(terminal.master, expected.size()), expected);
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 400; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

TEST(SerialLink, ComesBackByItselfAfterItsTerminalVanished) {
  const Folder folder;
  const std::string path = folder.file("robot");
  auto terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(path)), TIDE_OK);
  const Bytes message(20, 0x55), frame = frame_of(message, 1, 0);
  for (int round = 1; round <= 3; round++) {
    client.submit(message);
    EXPECT_EQ(read_some(terminal->master, frame.size()), frame);
    ASSERT_EQ(write(terminal->master.number, "hello", 5), 5);
    ASSERT_TRUE(client.eventually(
        [&](const FakeDaemon &fake) { return fake.received.size() == 5u * static_cast<size_t>(round); }));
    std::filesystem::remove(path);
    terminal.reset();
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
    EXPECT_EQ(client.counters().cuts, static_cast<uint32_t>(round));
    terminal = std::make_unique<PseudoTerminal>();
    point(path, terminal->path);
    ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.attached; }));
  }
  EXPECT_EQ(client.counters().opens, 4u);
}

TEST(SerialLink, IsCutInTheMiddleOfAFrame) {
  const Folder folder;
  const std::string path = folder.file("robot");
  auto terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  FakeDaemon client;
  ASSERT_EQ(client.open(serial(path, 9600)), TIDE_OK);  // 200 bytes take 208 ms
  const Bytes message(193, 0x11), frame = frame_of(message, 1, 0);
  client.submit(message);
  EXPECT_EQ(read_some(terminal->master, 10).size(), 10u);
  terminal.reset();
  ASSERT_TRUE(client.eventually([](const FakeDaemon &fake) { return !fake.attached; }));
  EXPECT_EQ(client.counters().messages_lost, 1u);
  terminal = std::make_unique<PseudoTerminal>();
  point(path, terminal->path);
  EXPECT_EQ(read_some(terminal->master, frame.size()), frame);  // the daemon sends the message again
  EXPECT_TRUE(client.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 1; }));
  EXPECT_EQ(client.wrong_completions, 0);
}

TEST(SerialLink, IsClosedWhileFramesAreOnTheirWay) {
  for (int round = 0; round < 20; round++) {
    PseudoTerminal terminal;
    FakeDaemon client;
    ASSERT_EQ(client.open(serial(terminal.path, 1'000'000)), TIDE_OK);
    std::atomic<bool> stop = false;
    std::thread submitter([&] {
      while (!stop) {
        client.submit(Bytes(50, 0x33));
        std::this_thread::yield();
      }
    });
    client.eventually([&](const FakeDaemon &fake) { return fake.sent.size() >= static_cast<size_t>(2 * round); });
    client.close();
    stop = true;
    submitter.join();
    EXPECT_FALSE(client.attached);
    EXPECT_EQ(client.wrong_completions, 0);
  }
}

}  // namespace link_serial_test
