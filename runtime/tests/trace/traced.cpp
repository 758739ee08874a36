// SPDX-License-Identifier: Apache-2.0
// Records of a runtime built with TIDE_TRACE=1.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon_memory.h"
#include "tide/budget.h"
#include "tide/daemon.h"
#include "tide/executor.h"
#include "tide/status.h"

namespace traced {

int64_t clock_ns = 0;

tide_platform_t platform() {
  tide_platform_t made{};
  made.now_ns = [](void *) { return clock_ns; };
  made.critical_enter = [](void *) -> uintptr_t { return 0; };
  made.critical_exit = [](void *, uintptr_t) {};
  made.event_init = [](void *, tide_event_t *) {};
  made.event_set = [](void *, tide_event_t *) {};
  made.event_wait = [](void *, tide_event_t *, int64_t deadline) {
    clock_ns = deadline;
    return 0;
  };
  return made;
}

struct Recorded {
  std::array<tide_trace_record_t, 64> records{};
  tide_trace_instances_t instances{};
  tide_trace_ring_t ring{};
  Recorded() { EXPECT_EQ(tide_trace_init(&ring, records.data(), 64, &instances, 1, 1), TIDE_OK); }
  [[nodiscard]] std::vector<std::array<int64_t, 5>> all() const {
    std::vector<std::array<int64_t, 5>> made;
    for (uint32_t at = 0; at < ring.written; at++)
      made.push_back(
          {records[at].kind, records[at].time_ns, records[at].priority, records[at].instance, records[at].detail});
    return made;
  }
};

using Rows = std::vector<std::array<int64_t, 5>>;

TEST(Traced, ALaneRecordsReleaseStartAndEndOfEachInstance) {
  clock_ns = 0;
  Recorded recorded;
  const tide_platform_t machine = platform();
  std::array<tide_callback_t *, 1> callbacks{};
  std::array<tide_queue_entry_t *, 1> ready{}, timers{};
  tide_lane_t lane{};
  lane.trace = &recorded.ring;
  tide_executor_config_t config{};
  config.platform = &machine;
  config.callbacks = callbacks.data();
  config.ready_storage = ready.data();
  config.timer_storage = timers.data();
  config.callback_count = 1;
  config.lanes = &lane;
  config.lane_count = 1;
  tide_executor_t executor{};
  ASSERT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
  tide_timer_t timer{};
  timer.period_ns = 100;
  timer.callback.priority = TIDE_PRIORITY(5, 1);
  timer.on_expiry = [](tide_timer_t *, int64_t) { clock_ns += 7; };
  ASSERT_EQ(tide_executor_add_timer(&executor, &timer), TIDE_OK);
  ASSERT_EQ(tide_executor_lane_round(&executor, 0, TIDE_FOREVER), 1);
  clock_ns = 230;  // late by 30
  ASSERT_EQ(tide_executor_lane_round(&executor, 0, TIDE_FOREVER), 1);
  const int64_t of = TIDE_PRIORITY(5, 1);
  EXPECT_EQ(recorded.all(), (Rows{{TIDE_TRACE_RELEASE, 100, of, 0, 0},
                                  {TIDE_TRACE_START, 100, of, 0, TIDE_CALLBACK_TIMER},
                                  {TIDE_TRACE_END, 107, of, 0, 0},
                                  {TIDE_TRACE_RELEASE, 200, of, 1, 0},
                                  {TIDE_TRACE_START, 230, of, 1, TIDE_CALLBACK_TIMER},
                                  {TIDE_TRACE_END, 237, of, 1, 0}}));
}

TEST(Traced, ABudgetRecordsThatItIsExhaustedAndReplenished) {
  Recorded recorded;
  std::array<tide_replenishment_t, 4> replenishments{};
  tide_budget_config_t config{};
  config.replenishments = replenishments.data();
  config.maximum_replenishments = 4;
  config.priority = 2;
  config.low_priority = 1;
  config.budget_ns = 10;
  config.period_ns = 100;
  tide_budget_t budget{};
  ASSERT_EQ(tide_budget_init(&budget, &config, 0), TIDE_OK);
  budget.trace = &recorded.ring;
  tide_budget_ready(&budget, 0);
  tide_budget_run(&budget, 0);
  tide_budget_account(&budget, 10, 10);
  tide_budget_account(&budget, 0, 100);
  EXPECT_EQ(recorded.all(), (Rows{{TIDE_TRACE_BUDGET, 10, 0, 0, 1}, {TIDE_TRACE_BUDGET, 100, 0, 0, 0}}));
}

TEST(Traced, ADaemonRecordsAMessageFromSubmitToTheEndOfItsFrame) {
  clock_ns = 50;
  Recorded recorded;
  const tide_platform_t machine = platform();
  DaemonMemory memory;
  tide_daemon_config_t config{};
  memory.give(config, {.classes = {{64, 2}}, .streams = 2, .slots = 2});
  config.transmitter.message_bytes = 128;
  tide_transmitter_t transmitter{};
  ASSERT_EQ(tide_transmitter_init(&transmitter, &config.transmitter), TIDE_OK);
  static tide_daemon_t daemon;
  daemon = {};
  daemon.platform = &machine;
  daemon.transmitter = transmitter;
  daemon.trace = &recorded.ring;
  daemon.transmitter.config.on_done = nullptr;
  daemon.link.start = [](void *, const tide_frame_parts_t *) { return 0; };
  daemon.link_open = true;
  recorded.instances.of_level[4] = 41;
  tide_node_t *node = nullptr;
  ASSERT_EQ(tide_daemon_acquire(&daemon, 12, TIDE_PRIORITY(4, 0), &node), TIDE_OK);
  node->length = 12;
  ASSERT_EQ(tide_daemon_submit(&daemon, node, TIDE_STREAM_BEST_EFFORT(4)), TIDE_OK);
  recorded.instances.of_level[4] = 42;  // messages that were sent belong to the instance that submitted them
  clock_ns = 90;
  tide_daemon_on_transmit_complete(&daemon);
  const int64_t of = TIDE_PRIORITY(4, 0);
  EXPECT_EQ(recorded.all(), (Rows{{TIDE_TRACE_SUBMIT, 50, of, 41, 0},
                                  {TIDE_TRACE_WIRE_START, 50, of, 41, 0},
                                  {TIDE_TRACE_FRAME, 50, of, 0, TIDE_STREAM_BEST_EFFORT(4)},
                                  {TIDE_TRACE_WIRE_END, 90, of, 41, 0}}));
}

TEST(Traced, ADaemonRecordsFramesThatDidNotComeWhole) {
  clock_ns = 30;
  Recorded recorded;
  const tide_platform_t machine = platform();
  std::array<tide_slot_t, 2> slots{};
  std::array<tide_queue_entry_t *, 2> noted{};
  std::array<uint8_t, 128> storage{};
  std::array<tide_input_stream_t, 1> streams{};
  static tide_daemon_t daemon;
  daemon = {};
  daemon.platform = &machine;
  tide_receiver_config_t config{};
  config.slots = slots.data();
  config.slot_count = 2;
  config.storage = storage.data();
  config.slot_bytes = 64;
  config.noted_storage = noted.data();
  config.streams = streams.data();
  config.stream_count = 1;
  config.priority_of = [](void *, uint8_t, tide_xrce_request_t, tide_account_t **) -> int32_t {
    return TIDE_PRIORITY(4, 0);
  };
  config.on_submessage = [](void *, const tide_delivery_t *) {};
  ASSERT_EQ(tide_receiver_init(&daemon.receiver, &config), TIDE_OK);
  tide_receiver_set_session(&daemon.receiver, 0x81, 0);
  daemon.trace = &recorded.ring;
  const std::array<uint8_t, 2> cut{0x81, 0x04};
  tide_daemon_on_message(&daemon, cut.data(), cut.size());
  EXPECT_EQ(recorded.all(), (Rows{{TIDE_TRACE_LOST, 30, 0, 1, TIDE_TRACE_NOT_RECEIVED}}));
}

}  // namespace traced
