// SPDX-License-Identifier: Apache-2.0
// Threads for lanes: all are scheduled as requested, or none runs.
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "tide/port.h"
#include "tide/status.h"

namespace lanes_test {

struct Seen {
  std::array<std::atomic<int>, 3> runs{}, policy{}, priority{}, processors{}, first_processor{};
  std::atomic<int> present = 0;
};

int first_of(const cpu_set_t &processors) {
  int first = 0;
  while (first < CPU_SETSIZE && !CPU_ISSET(first, &processors)) first++;
  return first;
}

void run(void *context, size_t index) {
  auto *seen = static_cast<Seen *>(context);
  seen->runs[index]++;
  sched_param parameter{};
  seen->policy[index] = sched_getscheduler(0);
  sched_getparam(0, &parameter);
  seen->priority[index] = parameter.sched_priority;
  cpu_set_t processors;
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof processors, &processors);
  seen->processors[index] = CPU_COUNT(&processors);
  seen->first_processor[index] = first_of(processors);
  seen->present++;
  while (seen->present < 3) std::this_thread::yield();  // the callbacks run at the same time
}

// Runs the body without permission for real-time scheduling, in this thread and its children.
void without_the_right(const std::function<void()> &body) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_RTPRIO, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_RTPRIO, &none), 0);
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> capabilities{};
    ASSERT_EQ(syscall(SYS_capget, &header, capabilities.data()), 0);
    capabilities[0].effective &= ~(1u << CAP_SYS_NICE);
    capabilities[0].permitted &= ~(1u << CAP_SYS_NICE);
    ASSERT_EQ(syscall(SYS_capset, &header, capabilities.data()), 0);
    body();
  }).join();
  EXPECT_EQ(setrlimit(RLIMIT_RTPRIO, &before), 0);
}

TEST(PortLanes, RunAtTheSameTimeWithTheCallersScheduling) {
  std::array<tide_lane_t, 3> lanes{};
  Seen seen;
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr), TIDE_OK);
  for (size_t lane = 0; lane < lanes.size(); lane++) {
    EXPECT_EQ(seen.runs[lane], 1);
    EXPECT_EQ(seen.policy[lane], sched_getscheduler(0));
  }
}

TEST(PortLanes, NothingRunsWhenTheLastOneIsNotPermitted) {
  std::array<tide_lane_t, 3> lanes{};
  lanes[2].settings.scheduling = TIDE_SCHEDULING_FIFO;
  lanes[2].settings.priority = 10;
  without_the_right([&] {
    Seen seen;
    size_t refused = 99;
    EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, &refused), TIDE_ERROR_NOT_PERMITTED);
    EXPECT_EQ(refused, 2u);
    EXPECT_EQ(seen.present, 0);
    lanes[2].settings.may_run_normally = true;
    EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, &refused), TIDE_OK);
    EXPECT_EQ(seen.runs[2], 1);
    EXPECT_EQ(seen.policy[2], SCHED_OTHER) << "the user chose this";
  });
}

TEST(PortLanes, RealTimeSchedulingIsInForceOrRefused) {
  std::array<tide_lane_t, 3> lanes{};
  lanes[1].settings.scheduling = TIDE_SCHEDULING_ROUND_ROBIN;
  lanes[1].settings.priority = 3;
  lanes[2].settings.scheduling = TIDE_SCHEDULING_FIFO;
  lanes[2].settings.priority = 5;
  Seen seen;
  const int status = tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr);
  if (status == TIDE_OK) {
    EXPECT_EQ(seen.policy[1], SCHED_RR);
    EXPECT_EQ(seen.priority[1], 3);
    EXPECT_EQ(seen.policy[2], SCHED_FIFO);
    EXPECT_EQ(seen.priority[2], 5);
  } else {
    EXPECT_EQ(status, TIDE_ERROR_NOT_PERMITTED);
    EXPECT_EQ(seen.present, 0);
  }
}

TEST(PortLanes, NormalIsInForceWhateverTheCallerHas) {
  std::thread([] {
    const sched_param urgent{.sched_priority = 4};
    const bool permitted = sched_setscheduler(0, SCHED_FIFO, &urgent) == 0;
    std::array<tide_lane_t, 3> lanes{};
    lanes[1].settings.scheduling = TIDE_SCHEDULING_NORMAL;
    Seen seen;
    EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr), TIDE_OK);
    EXPECT_EQ(seen.policy[1], SCHED_OTHER);
    EXPECT_EQ(seen.policy[2], permitted ? SCHED_FIFO : SCHED_OTHER) << "inherited";
  }).join();
}

TEST(PortLanes, ALaneStaysOnItsProcessor) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  std::array<tide_lane_t, 3> lanes{};
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(first_of(mine));
  Seen seen;
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr), TIDE_OK);
  EXPECT_EQ(seen.processors[1], 1);
  EXPECT_EQ(seen.first_processor[1], first_of(mine));
  EXPECT_EQ(seen.processors[2], CPU_COUNT(&mine)) << "any";
}

TEST(PortLanes, DeadlineSchedulingIsInForceOrRefused) {
  std::array<tide_lane_t, 3> lanes{};
  lanes[2].settings.scheduling = TIDE_SCHEDULING_DEADLINE;
  lanes[2].settings.runtime_ns = 1'000'000;
  lanes[2].settings.period_ns = 100'000'000;
  Seen seen;
  size_t refused = 99;
  const int status = tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, &refused);
  if (status == TIDE_OK) {
    EXPECT_EQ(seen.policy[2], SCHED_DEADLINE) << "with the period as its deadline";
  } else {
    EXPECT_EQ(status, TIDE_ERROR_NOT_PERMITTED);
    EXPECT_EQ(refused, 2u);
    EXPECT_EQ(seen.present, 0);
  }
  lanes[2].settings.may_run_normally = true;
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr), TIDE_OK);
  EXPECT_EQ(seen.policy[2], status == TIDE_OK ? SCHED_DEADLINE : SCHED_OTHER);
  lanes[2].settings.runtime_ns = 200'000'000;  // the budget exceeds the period
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, &refused), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refused, 2u);
}

TEST(PortLanes, BadSettingsAreRefused) {
  std::array<tide_lane_t, 3> lanes{};
  Seen seen;
  EXPECT_EQ(tide_port_run_lanes(nullptr, 1, run, &seen, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 0, run, &seen, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 1, nullptr, &seen, nullptr), TIDE_ERROR_ARGUMENT);
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(60000);
  size_t refused = 99;
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, &refused), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refused, 1u);
  EXPECT_EQ(seen.present, 0);
}

}  // namespace lanes_test
