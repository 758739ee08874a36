// SPDX-License-Identifier: Apache-2.0
// runtime/port/nuttx on this machine: its link runs over a pseudo terminal; what its lanes ask of the scheduler arrives
// here.
#include "nuttx.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "../fake_daemon.h"
#include "tide/link_serial.h"

namespace {

std::vector<std::pair<int, nuttx_sched_param>> asked;
int policy_asked;
std::mutex left_mutex;
std::vector<std::pair<int, int>> left; /* policies that threads chose for themselves, and their priorities */
size_t create_limit;

tide_lane_t lane_of(tide_scheduling_t scheduling, int priority) {
  tide_lane_t lane{};
  lane.settings.scheduling = scheduling;
  lane.settings.priority = priority;
  return lane;
}

struct Ran {
  std::mutex mutex;
  std::vector<size_t> indexes;
  static void run(void *context, size_t index) {
    auto *self = static_cast<Ran *>(context);
    const std::lock_guard lock(self->mutex);
    self->indexes.push_back(index);
  }
};

int run_lanes(std::vector<tide_lane_t> lanes, Ran &ran, size_t *refused = nullptr) {
  asked.clear();
  left.clear();
  return tide_port_run_lanes(lanes.data(), lanes.size(), Ran::run, &ran, refused);
}

}  // namespace

extern "C" {
int nuttx_set_policy(pthread_attr_t *, int policy) {
  policy_asked = policy;
  return 0;
}
int nuttx_set_parameters(pthread_attr_t *, const nuttx_sched_param *parameters) {
  asked.emplace_back(policy_asked, *parameters);
  return 0;
}
int nuttx_own_parameters(pthread_t, int policy, const nuttx_sched_param *parameters) {
  const std::lock_guard lock(left_mutex);
  left.emplace_back(policy, parameters->sched_priority);
  return 0;
}
int nuttx_least(int) { return 1; }
int nuttx_most(int) { return 255; }
int nuttx_create(pthread_t *thread, const pthread_attr_t *, void *(*function)(void *), void *argument) {
  if (create_limit-- == 0) return EAGAIN;
  return pthread_create(thread, nullptr, function, argument);
}
}

TEST(NuttxLanes, ABudgetIsTheSystemsSporadicServer) {
  create_limit = 100;
  tide_lane_t sporadic = lane_of(TIDE_SCHEDULING_SPORADIC, 120);
  sporadic.settings.low_priority = 60;
  sporadic.settings.runtime_ns = 2500000;
  sporadic.settings.period_ns = 1000000001;
  Ran ran;
  ASSERT_EQ(run_lanes({sporadic, lane_of(TIDE_SCHEDULING_FIFO, 200)}, ran), TIDE_OK);
  EXPECT_EQ(ran.indexes.size(), 2u);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].first, SCHED_SPORADIC);
  EXPECT_EQ(asked[0].second.sched_priority, 120);
  EXPECT_EQ(asked[0].second.sched_ss_low_priority, 60);
  EXPECT_EQ(asked[0].second.sched_ss_max_repl, 16);
  EXPECT_EQ(asked[0].second.sched_ss_init_budget.tv_nsec, 2500000);
  EXPECT_EQ(asked[0].second.sched_ss_repl_period.tv_sec, 1);
  EXPECT_EQ(asked[0].second.sched_ss_repl_period.tv_nsec, 1);
  EXPECT_EQ(asked[1].first, SCHED_FIFO);
  EXPECT_EQ(left, (std::vector<std::pair<int, int>>{{SCHED_FIFO, 1}})) << "a sporadic thread that ends stops NuttX";
}

TEST(NuttxLanes, WhenOneCannotBeNoneRuns) {
  const auto refusal = [](tide_lane_t second) {
    Ran ran;
    size_t refused = 99;
    const int status = run_lanes({lane_of(TIDE_SCHEDULING_FIFO, 10), second}, ran, &refused);
    EXPECT_EQ(refused, 1u);
    EXPECT_TRUE(ran.indexes.empty());
    return status;
  };
  create_limit = 100;
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_DEADLINE, 1)), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, 256)), TIDE_ERROR_ARGUMENT);
  tide_lane_t sporadic = lane_of(TIDE_SCHEDULING_SPORADIC, 10);
  sporadic.settings.low_priority = 10;
  sporadic.settings.runtime_ns = sporadic.settings.period_ns = 1;
  EXPECT_EQ(refusal(sporadic), TIDE_ERROR_ARGUMENT) << "without budget it would be as urgent as with";
  create_limit = 1;
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, 10)), TIDE_ERROR_FULL);
}

namespace {

struct Cable {
  Cable() {
    char name[64];
    termios raw{};
    cfmakeraw(&raw);
    EXPECT_EQ(openpty(&near, &far, name, &raw, nullptr), 0);
    device = name;
  }
  ~Cable() {
    close(near);
    close(far);
  }
  Bytes read_some(size_t count) const {
    Bytes bytes;
    std::array<uint8_t, 256> part{};
    while (bytes.size() < count) {
      const ssize_t got = read(near, part.data(), std::min(part.size(), count - bytes.size()));
      if (got <= 0) break;
      bytes.insert(bytes.end(), part.begin(), part.begin() + got);
    }
    return bytes;
  }
  int near = -1, far = -1;
  std::string device;
};

tide_link_address_t address_of(const Cable &cable) {
  tide_link_address_t address{};
  address.kind = TIDE_LINK_SERIAL;
  address.device = cable.device.c_str();
  address.baud = B115200;
  return address;
}

}  // namespace

TEST(NuttxLink, FramesLeaveInOrderAndTheirEndsAreReportedOnce) {
  const Cable cable;
  FakeDaemon daemon;
  ASSERT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  Bytes expected;
  for (uint8_t n = 0; n < 20; n++) {
    const Bytes message(static_cast<size_t>(n + 1), static_cast<uint8_t>(0x70 + n));
    std::array<uint8_t, 128> frame{};
    const int length = tide_framing_encode(frame.data(), frame.size(), TIDE_SERIAL_ADDRESS_CLIENT,
                                           TIDE_SERIAL_ADDRESS_AGENT, message.data(), message.size(), nullptr, 0);
    ASSERT_GT(length, 0);
    expected.insert(expected.end(), frame.begin(), frame.begin() + length);
    daemon.submit(message);
  }
  EXPECT_EQ(cable.read_some(expected.size()), expected);
  EXPECT_TRUE(daemon.eventually([](const FakeDaemon &fake) { return fake.sent.size() == 20; }));
  EXPECT_EQ(daemon.wrong_completions, 0);
  EXPECT_EQ(daemon.counters().bytes_sent, expected.size());
}

TEST(NuttxLink, BytesArriveAndTheSessionsTimePasses) {
  const Cable cable;
  FakeDaemon daemon;
  ASSERT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  const Bytes bytes{1, 2, 3, 0x7E, 0x0A, 0x0D, 0x11, 0x13, 0xFF, 0};
  ASSERT_EQ(write(cable.near, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(daemon.eventually([&](const FakeDaemon &fake) { return fake.received == bytes; }));
  daemon.close();
  EXPECT_FALSE(daemon.attached);
}

TEST(NuttxLink, ADeviceThatIsNotThereIsAnErrorAndTheLineCanBeOpenedAgain) {
  FakeDaemon daemon;
  tide_link_address_t nowhere{};
  nowhere.kind = TIDE_LINK_SERIAL;
  nowhere.device = "/nonexistent/tty";
  EXPECT_EQ(daemon.open(nowhere), TIDE_ERROR_LINK);
  const Cable cable;
  EXPECT_EQ(daemon.open(address_of(cable)), TIDE_OK);
  EXPECT_EQ(tide_port_open_link(&daemon.session, &nowhere), TIDE_ERROR_EXISTS);
}
