// SPDX-License-Identifier: Apache-2.0
// A board finds the agent of its network by multicast, here on loopback. It finds only an agent that admits it.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "fake_middleware.h"
#include "io/network.h"
#include "tide/port.h"
#include "tide/status.h"

namespace tide::agent::test {
namespace link_discovery_test {

class Discovery : public ::testing::Test {
 protected:
  void serve(const std::string &rule) {
    if (!rule.empty()) access.add(rule);
    link = std::make_unique<DiscoveryLink>(0, agent, poller, "127.0.0.1", 0, 4711, access);
    thread = std::thread([this] {
      std::vector<Poller::Event> events;
      while (!over) {
        poller.wait(monotonic_ns() + 10'000'000, events);
        for (const Poller::Event &event : events) link->event(event, monotonic_ns());
      }
    });
  }
  void TearDown() override {
    over = true;
    if (thread.joinable()) thread.join();
  }
  int discover(int timeout_ms) { return tide_port_discover_agent(link->port(), timeout_ms, host, &port); }

  FakeMiddleware middleware;
  Agent agent{middleware, {}};
  Poller poller;
  AccessList access;
  std::unique_ptr<DiscoveryLink> link;
  std::thread thread;
  std::atomic<bool> over = false;
  char host[TIDE_HOST_BYTES] = "";
  uint16_t port = 0;
};

TEST_F(Discovery, TheAnswerNamesTheAddressOfTheInterface) {
  serve("");
  ASSERT_EQ(discover(5000), TIDE_OK);
  EXPECT_STREQ(host, "127.0.0.1");
  EXPECT_EQ(port, 4711);
}

TEST_F(Discovery, WhoIsNotAllowedHearsNothing) {
  serve("10.9.8.7");
  EXPECT_EQ(discover(100), TIDE_ERROR_TIMEOUT);
  EXPECT_STREQ(host, "");
  over = true;
  thread.join();
  EXPECT_EQ(link->counters().frames_in, 1u);
  EXPECT_EQ(link->counters().frames_out, 0u);
}

}  // namespace link_discovery_test
}  // namespace tide::agent::test
