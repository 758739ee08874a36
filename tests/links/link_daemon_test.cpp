// SPDX-License-Identifier: Apache-2.0
// Two real daemons at the ends of the emulated cable. Their streams are reliable, although the line loses and cuts
// frames and is unplugged.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon_memory.h"
#include "eventually.h"
#include "line_process.h"
#include "tide/port.h"
#include "tide/status.h"

// The session that the links drive; here it consists only of its daemon.
extern "C" {
int64_t tide_session_poll(tide_session_t *session) { return tide_daemon_poll(&session->daemon); }
int64_t tide_session_poll_received(tide_session_t *session) { return tide_daemon_poll(&session->daemon); }
}

namespace link_daemon_test {

constexpr uint8_t kSession = 0x81;
constexpr uint16_t kMtu = 256;

// One end of the cable: a daemon with its memory, the link, and a thread that stands for the executor.
class End {
 public:
  End() {
    tide_daemon_config_t config{};
    config.platform = tide_port_platform();
    memory_.give(config, {.classes = {{kMtu, 32}}, .streams = 6, .slots = 24, .slot_bytes = kMtu});
    config.transmitter.message_bytes = kMtu;
    config.transmitter.pad_last = true;
    config.transmitter.heartbeat_delay_ns = -1;
    config.receiver.context = this;
    config.receiver.on_submessage = [](void *context, const tide_delivery_t *delivery) {
      static_cast<End *>(context)->deliver(*delivery);
    };
    config.on_activity = [](void *context) {
      const tide_platform_t *platform = tide_port_platform();
      platform->event_set(platform->context, &static_cast<End *>(context)->activity_);
    };
    config.context = this;
    session.config.daemon = config;
    session.config.mtu = kMtu;
    session.deadline_ns = TIDE_FOREVER;
    EXPECT_EQ(tide_daemon_init(&session.daemon, &config), TIDE_OK);
    config.platform->event_init(config.platform->context, &activity_);
    tide_daemon_set_session(&session.daemon, kSession, 0);
    executor_ = std::thread([this] { execute(); });
  }
  ~End() {
    tide_port_close_link(&session);
    stop_ = true;
    executor_.join();
  }
  End(const End &) = delete;
  End &operator=(const End &) = delete;

  int open(const std::string &device, bool agent_side, uint32_t baud = 115200) {
    device_ = device;
    tide_link_address_t address{};
    address.kind = TIDE_LINK_SERIAL;
    address.device = device_.c_str();
    address.baud = baud;
    address.agent_side = agent_side;
    address.thread_priority = 85;
    return tide_port_open_link(&session, &address);
  }

  // Submits a reliable message on the stream of the level. Waits while no node is free; returns false if that takes too
  // long.
  bool submit(uint8_t level, uint16_t number, uint32_t body_bytes) {
    tide_node_t *node = nullptr;
    if (!tide::test::eventually([&] {
          return tide_daemon_acquire(&session.daemon, 4 + body_bytes, TIDE_PRIORITY(level, 0), &node) == TIDE_OK;
        })) {
      return false;
    }
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                    static_cast<uint16_t>(body_bytes));
    std::fill_n(node->bytes + 4, body_bytes, uint8_t{0x42});
    node->bytes[4] = static_cast<uint8_t>(number);
    node->bytes[5] = static_cast<uint8_t>(number >> 8);
    node->length = 4 + body_bytes;
    node->expires_ns = TIDE_FOREVER;
    return tide_daemon_submit(&session.daemon, node, TIDE_STREAM_RELIABLE(level)) == TIDE_OK;
  }
  bool received(uint8_t level, size_t count) {
    return tide::test::eventually([&] { return numbers(level).size() >= count; });
  }
  std::vector<uint16_t> numbers(uint8_t level) {
    const std::lock_guard lock(mutex_);
    return numbers_[level];
  }
  size_t heard() { return numbers(1).size() + numbers(2).size(); }
  bool is_idle() { return tide_daemon_is_idle(&session.daemon, 0); }
  tide_link_counters_t counters() {
    tide_link_counters_t counters{};
    EXPECT_EQ(tide_port_link_counters(&session, &counters), TIDE_OK);
    return counters;
  }

  tide_session_t session{};

 private:
  void deliver(const tide_delivery_t &delivery) {
    const std::lock_guard lock(mutex_);
    const auto &body = delivery.submessage;
    numbers_[TIDE_STREAM_LEVEL(delivery.header.stream)].push_back(
        static_cast<uint16_t>(body.body[0] | body.body[1] << 8));
  }
  void execute() {
    const tide_platform_t *platform = tide_port_platform();
    while (!stop_) {
      while (tide_daemon_most_urgent(&session.daemon) != TIDE_PRIORITY_NONE) {
        tide_daemon_process_most_urgent(&session.daemon);
      }
      platform->event_wait(platform->context, &activity_, platform->now_ns(platform->context) + 5'000'000);
    }
  }

  DaemonMemory memory_;
  tide_event_t activity_{};
  std::string device_;
  std::atomic<bool> stop_ = false;
  std::thread executor_;
  std::mutex mutex_;
  std::map<uint8_t, std::vector<uint16_t>> numbers_;
};

std::vector<uint16_t> counted(size_t count) {
  std::vector<uint16_t> numbers(count);
  for (size_t index = 0; index < count; index++) numbers[index] = static_cast<uint16_t>(index);
  return numbers;
}

void send_both_ways(End &client, End &agent, size_t count) {
  std::thread downlink([&] {
    for (size_t number = 0; number < count; number++) ASSERT_TRUE(agent.submit(1, static_cast<uint16_t>(number), 20));
  });
  for (size_t number = 0; number < count; number++) {
    ASSERT_TRUE(client.submit(number % 2 == 0 ? 1 : 2, static_cast<uint16_t>(number / 2), 81));
  }
  downlink.join();
}

void expect_all(End &client, End &agent, size_t count) {
  EXPECT_TRUE(agent.received(1, count / 2));
  EXPECT_TRUE(agent.received(2, count / 2));
  EXPECT_TRUE(client.received(1, count));
  EXPECT_EQ(agent.numbers(1), counted(count / 2));
  EXPECT_EQ(agent.numbers(2), counted(count / 2));
  EXPECT_EQ(client.numbers(1), counted(count));
}

bool eventually_idle(End &end) {
  return tide::test::eventually([&] { return end.is_idle(); });
}

TEST(DaemonsOnALine, ExchangeReliableMessages) {
  LineProcess line({});
  End client, agent;
  ASSERT_EQ(client.open(line.a, false), TIDE_OK);
  ASSERT_EQ(agent.open(line.b, true), TIDE_OK);
  send_both_ways(client, agent, 200);
  expect_all(client, agent, 200);
  EXPECT_TRUE(eventually_idle(client));
  EXPECT_TRUE(eventually_idle(agent));
  const tide_link_counters_t counters = client.counters();
  EXPECT_EQ(counters.cuts, 0u);
  EXPECT_GE(counters.bytes_sent, 200u * 81);
}

TEST(DaemonsOnALine, RepairWhatTheLineLosesOrDamages) {
  for (const char *seed : {"1", "2"}) {
    SCOPED_TRACE(seed);
    LineProcess line({"--baud", "460800", "--frame-loss", "0.05", "--bit-flip", "0.0003", "--byte-loss", "0.0003",
                      "--noise", "0.05", "--seed", seed});
    End client, agent;
    ASSERT_EQ(client.open(line.a, false, 460800), TIDE_OK);
    ASSERT_EQ(agent.open(line.b, true, 460800), TIDE_OK);
    send_both_ways(client, agent, 300);
    expect_all(client, agent, 300);
    EXPECT_TRUE(eventually_idle(client));
    const std::string report = line.finish();
    EXPECT_GT(LineProcess::number(report, "a_to_b", "frames_dropped"), 0u);
  }
}

// Waits until this many more messages, or all messages, have arrived.
void wait_for_more(End &end, size_t count) {
  const size_t begin = end.heard();
  tide::test::eventually([&] { return end.heard() >= std::min<size_t>(begin + count, 80); });
}

TEST(DaemonsOnALine, GoOnAfterTheCableWasUnplugged) {
  LineProcess line({});
  End client, agent;
  ASSERT_EQ(client.open(line.a, false), TIDE_OK);
  ASSERT_EQ(agent.open(line.b, true), TIDE_OK);
  std::thread hand([&] {
    for (int time = 0; time < 3; time++) {
      wait_for_more(agent, 10);
      line.set_plugged(false);
      const auto cut = [&] {
        line.tell(SIGUSR1);
        return LineProcess::number(line.line(), "a_to_b", "bytes_cut");
      };
      const uint64_t before = cut();
      tide::test::eventually([&] { return cut() > before; });
      line.set_plugged(true);
    }
  });
  send_both_ways(client, agent, 100);
  expect_all(client, agent, 100);
  hand.join();
  EXPECT_GT(LineProcess::number(line.finish(), "a_to_b", "bytes_cut"), 0u);
}

TEST(DaemonsOnALine, GoOnAfterTheLineWasReplaced) {
  const auto folder = std::filesystem::temp_directory_path() / ("tide_daemons_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::vector<std::string> options{"--link-a", folder / "a", "--link-b", folder / "b"};
  auto line = std::make_unique<LineProcess>(options);
  {
    End client, agent;
    ASSERT_EQ(client.open(folder / "a", false), TIDE_OK);
    ASSERT_EQ(agent.open(folder / "b", true), TIDE_OK);
    std::thread hand([&] {
      for (int time = 0; time < 2; time++) {
        wait_for_more(agent, 10);
        line->finish();
        line = std::make_unique<LineProcess>(options);
      }
    });
    send_both_ways(client, agent, 100);
    expect_all(client, agent, 100);
    hand.join();
    EXPECT_GE(client.counters().cuts, 1u);
    EXPECT_EQ(client.counters().opens, client.counters().cuts + 1);
  }
  line.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace link_daemon_test
