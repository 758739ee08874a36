// SPDX-License-Identifier: Apache-2.0
// runtime/port/zephyr's line against a driver of a few lines: it fills the given buffer, requests the next one in time,
// reports received data after a silence or when the buffer is full, and stops at an error of the line.
#include <gtest/gtest.h>
#include <zephyr/drivers/uart.h>

#include <random>
#include <vector>

extern "C" {
#include "../../../port/cortex_m/uart.h"
}

const device fake_device = {0};

namespace {

constexpr size_t RING = 64;

struct Driver {
  uart_callback_t callback = nullptr;
  uint8_t *memory = nullptr, *next = nullptr;
  size_t bytes = 0, next_bytes = 0, used = 0, told = 0;
  uint32_t baud = 0;
  const uint8_t *sending = nullptr;
  size_t taken = 0;
  std::vector<uint8_t> heard;
  int completions = 0;

  void event(uart_event_type type) {
    uart_event one{};
    one.type = type;
    one.data.rx = {memory, told, used - told};
    callback(&fake_device, &one, nullptr);
  }
  void tell() {
    if (used == told) return;
    event(UART_RX_RDY);
    told = used;
  }
  void enable(uint8_t *given, size_t count) {
    memory = given;
    bytes = count;
    used = told = 0;
    next = nullptr;
    event(UART_RX_BUF_REQUEST);
  }
  void arrive(uint8_t byte) {
    ASSERT_LT(used, bytes);
    memory[used++] = byte;
    if (used < bytes) return;
    tell();
    ASSERT_NE(next, nullptr) << "nowhere to go on";
    enable(next, next_bytes);
  }
  void fail() {
    tell();
    memory = nullptr;
    event(UART_RX_DISABLED);
    ASSERT_NE(memory, nullptr) << "deaf after an error of the line";
  }
};
Driver driver;

class ZephyrUart : public testing::Test {
 protected:
  ZephyrUart() {
    driver = {};
    EXPECT_EQ(tide_uart_board.driver->open(921600, tide_uart_board.ring, tide_uart_board.ring_bytes), 0);
  }
};

}  // namespace

extern "C" {
int uart_config_get(const device *, uart_config *) { return 0; }
int uart_configure(const device *, const uart_config *config) {
  driver.baud = config->baudrate;
  return 0;
}
int uart_callback_set(const device *, uart_callback_t callback, void *) {
  driver.callback = callback;
  return 0;
}
int uart_rx_enable(const device *, uint8_t *memory, size_t bytes, int32_t) {
  EXPECT_GT(bytes, 0u);
  driver.enable(memory, bytes);
  return 0;
}
int uart_rx_buf_rsp(const device *, uint8_t *memory, size_t bytes) {
  driver.next = memory;
  driver.next_bytes = bytes;
  return 0;
}
int uart_rx_disable(const device *) { return 0; }
int uart_tx(const device *, const uint8_t *bytes, size_t, int32_t) {
  driver.sending = bytes;
  return 0;
}
int uart_tx_abort(const device *) { return 0; }
void tide_uart_transmit_complete(void) { driver.completions++; }
void tide_uart_received(void) {  // as the link does it
  const size_t position = tide_uart_board.driver->receive_position();
  ASSERT_LT(position, RING);
  for (; driver.taken != position; driver.taken = (driver.taken + 1) % RING)
    driver.heard.push_back(tide_uart_board.ring[driver.taken]);
}
}

TEST_F(ZephyrUart, TheRingGoesOnOverItsHalvesPausesAndErrors) {
  EXPECT_EQ(driver.baud, 921600u);
  for (uint32_t seed = 0; seed < 50; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<uint8_t> sent;
    driver.heard.clear();
    for (int n = 0; n < 1000; n++) {
      sent.push_back(static_cast<uint8_t>(random()));
      driver.arrive(sent.back());
      if (random() % 20 == 0) driver.tell();
      if (random() % 60 == 0) driver.fail();
    }
    driver.tell();
    ASSERT_EQ(driver.heard, sent);
  }
}

TEST_F(ZephyrUart, TheEndOfAPieceIsReported) {
  tide_uart_board.driver->start_transmit(tide_uart_board.piece, 4);
  EXPECT_EQ(driver.sending, tide_uart_board.piece);
  EXPECT_EQ(driver.completions, 0);
  driver.event(UART_TX_DONE);
  EXPECT_EQ(driver.completions, 1);
}
