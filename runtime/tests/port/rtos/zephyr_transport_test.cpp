// SPDX-License-Identifier: Apache-2.0
// The transport of runtime/port/zephyr by the interrupts of a UART. The other tests of the port are in rtos_test.cpp.
#include <gtest/gtest.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/sys/ring_buffer.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "microros_transports.h"
#include "zephyr_names.h"

extern "C" {
#include "tide/port.h"
}

const device fake_device = {0};

namespace {
struct Uart {
  uart_irq_callback_user_data_t callback = nullptr;
  std::deque<uint8_t> arriving;
  std::vector<uint8_t> sent;
  bool receiving = false, sending = false, stuck = false;
  int unguarded = 0;  // counts unprotected uses of data shared with an interrupt of another processor
  void use() { unguarded += fake->masked == 0 ? 1 : 0; }
  void interrupt() {
    fake->take([this] {
      if (callback) callback(&fake_device, nullptr);
    });
  }
};
Uart *uart;
}  // namespace

extern "C" {
int uart_irq_callback_user_data_set(const device *, uart_irq_callback_user_data_t callback, void *) {
  uart->callback = callback;
  return 0;
}
int uart_irq_update(const device *) { return 1; }
int uart_irq_rx_ready(const device *) { return uart->receiving && !uart->arriving.empty(); }
// The state reported by a driver whose line is free, whether or not its interrupt is enabled.
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

namespace {
class ZephyrTransport : public testing::Test {
 protected:
  ZephyrTransport() {
    uart = &line;
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
  // Calls `then` after each of the next `times` ticks.
  void in_a_tick(const std::function<void()> &then, int times = 1) {
    for (int count = 1; count <= times; count++) machine.at.emplace(machine.now_ns + count * ZEPHYR_TICK_NS, then);
  }
  int64_t ticks() const { return (machine.now_ns - begin_ns) / ZEPHYR_TICK_NS; }

  FakeKernel machine;
  Uart line;
  const int64_t begin_ns = machine.now_ns;
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
  in_a_tick([&] { line.interrupt(); }, 100);
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
  EXPECT_EQ(ticks(), 70) << "it did not sleep";
  in_a_tick([&] {
    line.arriving = {1, 2, 3};
    line.interrupt();
  });
  EXPECT_EQ(read(10, 7), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(ticks(), 71);
}

TEST_F(ZephyrTransport, AWakeEndsTheReadThatWaitsOrTheNextOne) {
  ASSERT_NE(transport.wake, nullptr);
  in_a_tick([&] { transport.wake(&transport); });
  EXPECT_TRUE(read(10, 7).empty());
  transport.wake(&transport);
  EXPECT_TRUE(read(10, 7).empty());
  EXPECT_EQ(ticks(), 1) << "it slept";
  EXPECT_TRUE(read(10, 7).empty());
  EXPECT_EQ(ticks(), 71) << "the wake was for one read";
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
