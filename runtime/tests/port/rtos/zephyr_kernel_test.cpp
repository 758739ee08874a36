// SPDX-License-Identifier: Apache-2.0
// The logic of runtime/port/zephyr on a kernel of a few lines: what it locks, when it lets the scheduler choose, what
// it refuses; and its transport by the interrupts of a UART.
#include <gtest/gtest.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/ring_buffer.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "fake_zephyr.h"
#include "microros_transports.h"
#include "tide/lock.h"
#include "tide/status.h"

extern "C" {
#include "../../../port/rtos/link_task.h"
#include "tide/port.h"
}

const device fake_device = {0};

namespace {
struct Uart {
  uart_irq_callback_user_data_t callback = nullptr;
  std::deque<uint8_t> arriving;
  std::vector<uint8_t> sent;
  bool receiving = false, sending = false, stuck = false;
  int unguarded = 0;  // uses of what another processor's interrupt uses, too, outside of the section
  void use() { unguarded += fake_zephyr->locked == 0 ? 1 : 0; }
  void interrupt() {
    fake_zephyr->in_interrupt = true;
    if (callback) callback(&fake_device, nullptr);
    fake_zephyr->in_interrupt = false;
  }
};
Uart *uart;

class Zephyr : public testing::Test {
 protected:
  Zephyr() { uart = &line; }
  FakeZephyr machine;
  Uart line;
  const int64_t begin = machine.ticks;
  const tide_platform_t *platform = tide_port_platform();
};
}  // namespace

extern "C" {
int uart_irq_callback_user_data_set(const device *, uart_irq_callback_user_data_t callback, void *) {
  uart->callback = callback;
  return 0;
}
int uart_irq_update(const device *) { return 1; }
int uart_irq_rx_ready(const device *) { return uart->receiving && !uart->arriving.empty(); }
// As a driver whose line is free says it, whether or not its interrupt is on.
int uart_irq_tx_ready(const device *) { return !uart->stuck; }
void uart_irq_rx_enable(const device *) { uart->receiving = true; }
void uart_irq_rx_disable(const device *) { uart->receiving = false; }
void uart_irq_tx_enable(const device *) {
  uart->use();
  uart->sending = true;
  uart->interrupt();
}
void uart_irq_tx_disable(const device *) {
  uart->use();
  uart->sending = false;
}
int uart_fifo_read(const device *, uint8_t *place, const int count) {
  int got = 0;
  while (got < std::min(count, 16) && !uart->arriving.empty()) {
    place[got++] = uart->arriving.front();
    uart->arriving.pop_front();
  }
  return got;
}
int uart_fifo_fill(const device *, const uint8_t *bytes, int count) {
  const int taken = std::min(count, 8);
  uart->sent.insert(uart->sent.end(), bytes, bytes + taken);
  return taken;
}
bool device_is_ready(const device *) { return true; }

void ring_buf_init(ring_buf *ring, uint32_t bytes, uint8_t *memory) { *ring = {memory, bytes, 0, 0}; }
uint32_t ring_buf_put_claim(ring_buf *ring, uint8_t **place, uint32_t bytes) {
  uart->use();
  const uint32_t free = ring->bytes - (ring->put - ring->got), at = ring->put % ring->bytes;
  *place = ring->memory + at;
  return std::min({bytes, free, ring->bytes - at});
}
int ring_buf_put_finish(ring_buf *ring, uint32_t bytes) {
  uart->use();
  ring->put += bytes;
  return 0;
}
uint32_t ring_buf_put(ring_buf *ring, const uint8_t *from, uint32_t bytes) {
  uart->use();
  uint32_t put = 0;
  while (put < bytes && ring->put - ring->got < ring->bytes) ring->memory[ring->put++ % ring->bytes] = from[put++];
  return put;
}
uint32_t ring_buf_get_claim(ring_buf *ring, uint8_t **place, uint32_t bytes) {
  uart->use();
  const uint32_t at = ring->got % ring->bytes;
  *place = ring->memory + at;
  return std::min({bytes, ring->put - ring->got, ring->bytes - at});
}
int ring_buf_get_finish(ring_buf *ring, uint32_t bytes) {
  uart->use();
  ring->got += bytes;
  return 0;
}
uint32_t ring_buf_get(ring_buf *ring, uint8_t *place, uint32_t bytes) {
  uart->use();
  uint32_t got = 0;
  while (got < bytes && ring->got != ring->put) place[got++] = ring->memory[ring->got++ % ring->bytes];
  return got;
}
}

TEST_F(Zephyr, WhoeverIsWokenWithinASectionIsChosenWhenItEnds) {
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  machine.while_sleeping = [&] {
    const uintptr_t outer = platform->critical_enter(platform->context);
    platform->event_set(platform->context, &event);
    EXPECT_EQ(machine.choices, 0) << "within the section of the caller";
    platform->critical_exit(platform->context, outer);
    EXPECT_EQ(machine.choices, 1) << "an urgent thread waits for the next tick";
    platform->event_set(platform->context, &event);
    EXPECT_EQ(machine.choices, 1) << "nobody was woken";
  };
  EXPECT_EQ(platform->event_wait(platform->context, &event, TIDE_FOREVER), 1);
  EXPECT_EQ(machine.locked, 0u);
}

TEST_F(Zephyr, AnInterruptLeavesTheChoiceToItsEnd) {
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  machine.while_sleeping = [&] {
    machine.in_interrupt = true;
    platform->event_set(platform->context, &event);
#ifndef CONFIG_SMP
    const uintptr_t state = platform->lanes_enter(platform->context);
    EXPECT_EQ(machine.scheduler_locked, 0u);
    platform->lanes_exit(platform->context, state);
#endif
    machine.in_interrupt = false;
  };
  EXPECT_EQ(platform->event_wait(platform->context, &event, TIDE_FOREVER), 1);
}

TEST_F(Zephyr, AWaitEndsAtTheFirstTickThatIsNotEarly) {
  for (const int64_t delay_ns : {int64_t{1}, int64_t{99'999}, int64_t{100'000}, int64_t{1'234'567}}) {
    tide_event_t event{};
    platform->event_init(platform->context, &event);
    const int64_t deadline_ns = platform->now_ns(platform->context) + delay_ns;
    EXPECT_EQ(platform->event_wait(platform->context, &event, deadline_ns), 0);
    EXPECT_GE(platform->now_ns(platform->context), deadline_ns);
    EXPECT_LT(platform->now_ns(platform->context), deadline_ns + 100'000);
  }
}

#ifndef CONFIG_SMP
TEST_F(Zephyr, LanesAreKeptOutByTheSchedulerAndInterruptsComeIn) {
  const uintptr_t outer = platform->lanes_enter(platform->context);
  const uintptr_t inner = platform->lanes_enter(platform->context);
  EXPECT_EQ(machine.locked, 0u);
  EXPECT_EQ(machine.scheduler_locked, 2u);
  platform->lanes_exit(platform->context, inner);
  platform->lanes_exit(platform->context, outer);
  EXPECT_EQ(machine.scheduler_locked, 0u);
}
#endif

namespace {
struct Lanes {
  std::vector<size_t> ran;
  int second = 99;
};
void run_lane(void *context, size_t index) {
  auto *lanes = static_cast<Lanes *>(context);
  lanes->ran.push_back(index);
  if (lanes->second != 99) return;
  std::array<tide_lane_t, 1> more{};
  lanes->second = tide_port_run_lanes(more.data(), 1, run_lane, context, nullptr);
}
int link_runs;
void count_link_run() { link_runs++; }
}  // namespace

TEST_F(Zephyr, ASecondSetOfLanesIsRefusedWhileTheFirstRuns) {
  std::array<tide_lane_t, 2> lanes{};
  lanes[0].settings.scheduling = TIDE_SCHEDULING_FIFO;
  lanes[0].settings.priority = CONFIG_NUM_PREEMPT_PRIORITIES;
  Lanes ran;
  ASSERT_EQ(tide_port_run_lanes(lanes.data(), 2, run_lane, &ran, nullptr), TIDE_OK);
  EXPECT_EQ(ran.second, TIDE_ERROR_STATE) << "its threads would be made over running ones";
  EXPECT_EQ(ran.ran, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(machine.threads.at(0).priority, 0);
  EXPECT_EQ(machine.threads.at(1).priority, 9) << "that of the caller";
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 2, run_lane, &ran, nullptr), TIDE_OK) << "they have ended";
}

TEST_F(Zephyr, TheLinkHasAThreadFromOpenToClose) {
  link_runs = 0;
  ASSERT_EQ(tide_link_task_start(count_link_run, 0), TIDE_OK);
  EXPECT_EQ(machine.threads.at(0).priority, CONFIG_TIDE_LINK_PRIORITY);
  tide_link_task_join();
  EXPECT_EQ(link_runs, 1);
  ASSERT_EQ(tide_link_task_start(count_link_run, 5), TIDE_OK);
  EXPECT_EQ(machine.threads.at(1).priority, CONFIG_NUM_PREEMPT_PRIORITIES - 5);
  EXPECT_EQ(tide_link_task_start(count_link_run, CONFIG_NUM_PREEMPT_PRIORITIES + 1), TIDE_ERROR_ARGUMENT);
}

namespace {
class ZephyrTransport : public Zephyr {
 protected:
  ZephyrTransport() {
    transport.args = &default_params;
    EXPECT_TRUE(zephyr_transport_open(&transport));
  }
  ~ZephyrTransport() override {
    EXPECT_TRUE(zephyr_transport_close(&transport));
    EXPECT_EQ(line.unguarded, 0) << "an interrupt on another processor comes in between";
  }
  ZephyrTransport(const ZephyrTransport &) = delete;
  ZephyrTransport &operator=(const ZephyrTransport &) = delete;
  size_t write(const std::vector<uint8_t> &bytes) {
    return zephyr_transport_write(&transport, bytes.data(), bytes.size(), &error);
  }
  std::vector<uint8_t> read(size_t count, int timeout_ms) {
    std::vector<uint8_t> bytes(count);
    bytes.resize(zephyr_transport_read(&transport, bytes.data(), count, timeout_ms, &error));
    return bytes;
  }
  uxrCustomTransport transport{};
  uint8_t error = 0;
};
std::vector<uint8_t> counted(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; i++) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}
}  // namespace

TEST_F(ZephyrTransport, ALongMessageLeavesWholeAndInOrder) {
  machine.while_sleeping = [&] { line.interrupt(); };
  const auto bytes = counted(5 * CONFIG_TIDE_RING_BYTES + 3);
  EXPECT_EQ(write(bytes), bytes.size());
  while (line.sending) line.interrupt();
  EXPECT_EQ(line.sent, bytes);
  EXPECT_EQ(error, 0);
}

TEST_F(ZephyrTransport, AStuckLineEndsTheWrite) {
  line.stuck = true;
  EXPECT_LT(write(counted(3 * CONFIG_TIDE_RING_BYTES)), size_t{3} * CONFIG_TIDE_RING_BYTES);
  EXPECT_EQ(error, 1);
}

TEST_F(ZephyrTransport, AReadSleepsUntilSomethingComes) {
  EXPECT_TRUE(read(10, 7).empty());
  EXPECT_EQ(machine.ticks - begin, 70) << "it did not sleep";
  machine.while_sleeping = [&] {
    line.arriving = {1, 2, 3};
    line.interrupt();
  };
  EXPECT_EQ(read(10, 7), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(machine.ticks - begin, 70);
}

TEST_F(ZephyrTransport, AWakeEndsTheReadThatWaitsOrTheNextOne) {
  ASSERT_NE(transport.wake, nullptr);
  machine.while_sleeping = [&] { transport.wake(&transport); };
  EXPECT_TRUE(read(10, 7).empty());
  machine.while_sleeping = nullptr;
  transport.wake(&transport);
  EXPECT_TRUE(read(10, 7).empty());
  EXPECT_EQ(machine.ticks - begin, 0) << "it slept";
  EXPECT_TRUE(read(10, 7).empty());
  EXPECT_EQ(machine.ticks - begin, 70) << "the wake was for one read";
}

TEST_F(ZephyrTransport, WhatFindsNoRoomIsDroppedAndTheLineGoesOn) {
  const auto bytes = counted(CONFIG_TIDE_RING_BYTES + 20);
  line.arriving.assign(bytes.begin(), bytes.end());
  line.interrupt();
  EXPECT_TRUE(line.arriving.empty()) << "the interrupt would never end";
  EXPECT_EQ(read(200, 0), counted(CONFIG_TIDE_RING_BYTES));
  line.arriving = {9};
  line.interrupt();
  EXPECT_EQ(read(200, 0), (std::vector<uint8_t>{9}));
}

// The ceiling of each lane, and what the running thread has within the section: smaller is more urgent.
TEST_F(Zephyr, ALockRaisesToItsLaneAndNeverLowers) {
  const tide_lock_port_t *locks = tide_port_locks();
  struct Case {
    tide_scheduling_t scheduling;
    int ceiling;
    int within;
  };
  for (const Case &each :
       {Case{TIDE_SCHEDULING_FIFO, 10, 5}, Case{TIDE_SCHEDULING_ROUND_ROBIN, 10, 5}, Case{TIDE_SCHEDULING_FIFO, 6, 9},
        Case{TIDE_SCHEDULING_FIFO, 2, 9}, Case{TIDE_SCHEDULING_INHERIT, 0, 9}, Case{TIDE_SCHEDULING_NORMAL, 0, 9}}) {
    tide_lane_t lane{};
    lane.settings.scheduling = each.scheduling;
    lane.settings.priority = each.ceiling;
    uintptr_t before = 0;
    EXPECT_EQ(locks->raise(locks->context, &lane, &before), TIDE_OK);
    EXPECT_EQ(machine.priority, each.within) << each.ceiling;
    locks->restore(locks->context, before);
    EXPECT_EQ(machine.priority, 9) << each.ceiling;
  }
}

TEST_F(Zephyr, AnInterruptOwnsNoLock) {
  const tide_lock_port_t *locks = tide_port_locks();
  EXPECT_TRUE(locks->may_wait);
  EXPECT_NE(locks->current(locks->context), nullptr);
  machine.in_interrupt = true;
  EXPECT_EQ(locks->current(locks->context), nullptr);
  machine.in_interrupt = false;
}
