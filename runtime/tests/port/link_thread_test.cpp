// SPDX-License-Identifier: Apache-2.0
// Arguments refused by links of all kinds, and the threads on which they run.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>

#include "eventually.h"
#include "link_ends.h"

namespace link_thread_test {

TEST(Links, RefuseWhatCannotBeOpened) {
  FakeDaemon client;
  EXPECT_EQ(client.open(serial("/dev/there_is_no_such_tty")), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(serial("/dev/null")), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(serial("/dev/null", 0)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_UDP, 0)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_TCP, 1)), TIDE_ERROR_LINK);
  EXPECT_EQ(client.open(internet(TIDE_LINK_NONE, 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(client.open(internet(TIDE_LINK_CUSTOM, 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_port_open_link(nullptr, nullptr), TIDE_ERROR_ARGUMENT);
  tide_link_address_t polling = internet(TIDE_LINK_UDP, 9);
  polling.busy_poll_us = TIDE_BUSY_POLL_MAXIMUM_US + 1;
  EXPECT_EQ(client.open(polling), TIDE_ERROR_ARGUMENT);
  tide_link_counters_t counters;
  EXPECT_EQ(tide_port_link_counters(&client.session, &counters), TIDE_ERROR_NOT_FOUND);
  EXPECT_FALSE(client.attached);
  tide_port_close_link(&client.session);
  polling.busy_poll_us = TIDE_BUSY_POLL_OFF;
  ASSERT_EQ(client.open(polling), TIDE_OK);
  EXPECT_EQ(client.counters().busy_poll_us, 0);
  const tide_link_address_t again = internet(TIDE_LINK_UDP, 9);
  EXPECT_EQ(tide_port_open_link(&client.session, &again), TIDE_ERROR_EXISTS);
}

struct LinkThread {
  int policy, priority;
  bool operator==(const LinkThread &) const = default;
};

// The threads of this process that have the links' name.
std::vector<LinkThread> link_threads_now() {
  std::vector<LinkThread> found;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name != "tide link") continue;
    const pid_t thread = std::stoi(entry.path().filename());
    sched_param parameter{};
    const int policy = sched_getscheduler(thread);
    if (sched_getparam(thread, &parameter) == 0) found.push_back({policy, parameter.sched_priority});
  }
  return found;
}

// A joined thread remains on the kernel's list for a moment.
std::vector<LinkThread> link_threads(size_t count) {
  std::vector<LinkThread> found;
  tide::test::eventually([&] { return (found = link_threads_now()).size() == count; });
  return found;
}

bool may_be_real_time() {
  bool may = false;
  std::thread([&may] {
    const sched_param parameter{1};
    may = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) == 0;
  }).join();
  return may;
}

// Drops the permission for real-time priorities, which root has. On Linux every thread has its own permissions.
void without_rights(const std::function<void()> &action) {
  std::thread([&action] {
    rlimit before{};
    getrlimit(RLIMIT_RTPRIO, &before);
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_RTPRIO, &none);
    const bool root = geteuid() == 0;
    if (root) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    }
    action();
    if (root) {
      EXPECT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
    }
    setrlimit(RLIMIT_RTPRIO, &before);
  }).join();
}

TEST(Links, RunTheirInterruptSideAtTheTopPriorityUnlessToldOtherwise) {
  const PseudoTerminal terminal;
  ASSERT_EQ(chmod(terminal.path.c_str(), 0666), 0);  // else the thread without permission could not open it
  const Server datagrams(SOCK_DGRAM), connections(SOCK_STREAM);
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t custom{};
  custom.kind = TIDE_LINK_CUSTOM;
  custom.custom = &functions;
  const bool may = may_be_real_time();
  const int top = sched_get_priority_max(SCHED_FIFO);
  for (tide_link_address_t address : {serial(terminal.path), internet(TIDE_LINK_UDP, datagrams.port),
                                      internet(TIDE_LINK_TCP, connections.port), custom}) {
    SCOPED_TRACE(static_cast<int>(address.kind));
    {
      FakeDaemon client;
      ASSERT_EQ(client.open(address), TIDE_OK);
      const LinkThread expected = may ? LinkThread{SCHED_FIFO, top} : LinkThread{SCHED_OTHER, 0};
      EXPECT_EQ(link_threads(1), std::vector{expected});
      EXPECT_EQ(client.counters().thread_priority, may ? top : 0);
      EXPECT_EQ(client.counters().thread_status, may ? TIDE_OK : TIDE_ERROR_NOT_PERMITTED);
    }
    without_rights([&] {  // without a message, but visible in the counters
      FakeDaemon client;
      ASSERT_EQ(client.open(address), TIDE_OK);
      EXPECT_EQ(link_threads(1), (std::vector{LinkThread{SCHED_OTHER, 0}}));
      EXPECT_EQ(client.counters().thread_priority, 0);
      EXPECT_EQ(client.counters().thread_status, TIDE_ERROR_NOT_PERMITTED);
      client.close();
      address.thread_priority = TIDE_LINK_PRIORITY_INHERIT;
      ASSERT_EQ(client.open(address), TIDE_OK);
      EXPECT_EQ(client.counters().thread_status, TIDE_OK);
    });
    FakeDaemon client;
    address.thread_priority = top + 1;
    EXPECT_EQ(client.open(address), TIDE_ERROR_ARGUMENT);
    EXPECT_TRUE(link_threads(0).empty());
  }
}

TEST(Links, RunTheirInterruptSideOnAThreadOfThePriorityAskedFor) {
  const PseudoTerminal terminal;
  const Server datagrams(SOCK_DGRAM), connections(SOCK_STREAM);
  Transport transport;
  const tide_custom_transport_t functions = transport.functions(false);
  tide_link_address_t custom{};
  custom.kind = TIDE_LINK_CUSTOM;
  custom.custom = &functions;
  const LinkThread expected = may_be_real_time() ? LinkThread{SCHED_FIFO, 85} : LinkThread{SCHED_OTHER, 0};
  for (tide_link_address_t address : {serial(terminal.path), internet(TIDE_LINK_UDP, datagrams.port),
                                      internet(TIDE_LINK_TCP, connections.port), custom}) {
    SCOPED_TRACE(static_cast<int>(address.kind));
    FakeDaemon client;
    address.thread_priority = 85;
    ASSERT_EQ(client.open(address), TIDE_OK);
    tide::test::eventually([&] { return link_threads_now() == std::vector{expected}; });
    EXPECT_EQ(link_threads(1), std::vector{expected});
    client.close();
    EXPECT_TRUE(link_threads(0).empty());
  }
}

}  // namespace link_thread_test
