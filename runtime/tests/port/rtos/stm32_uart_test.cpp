// SPDX-License-Identifier: Apache-2.0
// runtime/port/stm32 against registers in memory and a DMA of a few lines, with a data cache between the DMA's memory
// and the program: a byte without invalidation is not visible, one without cleaning is not sent. The F4
// (port_stm32_f4_test) has no cache; its flags are cleared by reading the data register and writing the status
// register.
#include "stm32_uart.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace {

constexpr size_t RING = 128, LINE = 32;
tide_stm32_uart_t uart;
tide_stm32_stream_t receive_stream, transmit_stream;
uint32_t flags, clear_receive, clear_transmit;
alignas(LINE) std::array<uint8_t, RING> ring;       // what the program sees: the cache
alignas(LINE) std::array<uint8_t, RING> in_memory;  // what the DMA has written
alignas(LINE) std::array<uint8_t, 64> piece, piece_in_memory;
std::vector<uint8_t> heard;
size_t taken;
int completions, receptions;

constexpr uint32_t ENABLE = 1, HALF = 1u << 4, FULL = 1u << 5, ERROR = 1u << 3, IDLE = 1u << 4, COMPLETE = 1u << 6;
constexpr unsigned SHIFT = 6;

// A byte has arrived: it is written to memory at the position of the DMA stream, which wraps around by itself.
void arrive(uint8_t byte) {
  ASSERT_TRUE(receive_stream.control & ENABLE);
  (TIDE_STM32_F4 ? ring : in_memory)[RING - receive_stream.count] = byte;
  receive_stream.count = receive_stream.count - 1;
  if (receive_stream.count == RING / 2) flags |= HALF << SHIFT;
  if (receive_stream.count == 0) {
    flags |= FULL << SHIFT;
    receive_stream.count = RING;
  }
}

void interrupts() {
  if (flags != 0) {
    tide_stm32_receive_interrupt();
    flags &= ~clear_receive;
    clear_receive = 0;
  }
}

#if TIDE_STM32_F4
constexpr uint32_t ON = 1u << 13;
uint32_t cleared() { return uart.status == ~COMPLETE ? COMPLETE : 0; }  // flags cleared by the last write
#else
constexpr uint32_t ON = 1;
uint32_t cleared() { return uart.clear; }
#endif

void become_idle() {
  uart.status = uart.status | IDLE;
  tide_stm32_uart_interrupt();
  if (!TIDE_STM32_F4) EXPECT_TRUE(cleared() & IDLE) << "the interrupt would come for ever";
  uart.status = uart.status & ~IDLE;
}

class Stm32Uart : public testing::Test {
 protected:
  Stm32Uart() {
    uart = {};
    receive_stream = transmit_stream = {};
    flags = clear_receive = clear_transmit = 0;
    ring.fill(0xEE);
    in_memory.fill(0xDD);
    heard.clear();
    taken = 0;
    completions = receptions = 0;
    tide_stm32_counters = {};
    tide_stm32_driver.open(115200, ring.data(), ring.size());
  }
};

}  // namespace

extern "C" {
const tide_stm32_line_t tide_stm32_line = {&uart,
                                           54000000,
                                           {&receive_stream, &flags, &clear_receive, SHIFT, 4u << 25},
                                           {&transmit_stream, &flags, &clear_transmit, 22, 4u << 25},
                                           true,
                                           37};
void tide_cortex_m_pend(uint32_t) { FAIL() << "only without streams"; }
void tide_stm32_cache_clean(const uint8_t *line, size_t bytes) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(line) % LINE, 0u);
  EXPECT_EQ(bytes % LINE, 0u);
  const auto offset = static_cast<size_t>(line - piece.data());
  ASSERT_LE(offset + bytes, piece.size());
  std::memcpy(piece_in_memory.data() + offset, line, bytes);
}
void tide_stm32_cache_invalidate(uint8_t *line, size_t bytes) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(line) % LINE, 0u);
  EXPECT_EQ(bytes % LINE, 0u);
  const auto offset = static_cast<size_t>(line - ring.data());
  ASSERT_LE(offset + bytes, ring.size()) << "invalidates what is not the ring's";
  std::memcpy(line, in_memory.data() + offset, bytes);
}
void tide_uart_transmit_complete(void) { completions++; }
void tide_uart_received(void) {  // as the link does it
  receptions++;
  const size_t position = tide_stm32_driver.receive_position();
  ASSERT_LT(position, RING);
  for (; taken != position; taken = (taken + 1) % RING) heard.push_back(ring[taken]);
}
}

TEST_F(Stm32Uart, OpensWithTheBaudRateRoundedAndACircularStream) {
  EXPECT_EQ(uart.baud, 469u);  // 468.75
  EXPECT_EQ(receive_stream.count, RING);
  EXPECT_EQ(receive_stream.control & ((1u << 8) | (1u << 10) | ENABLE), (1u << 8) | (1u << 10) | ENABLE);
  EXPECT_EQ(receive_stream.control & (4u << 25), 4u << 25);
  EXPECT_EQ(uart.control1, ON | 0x1Cu) << "on, both directions, interrupt when idle";
  EXPECT_EQ(uart.control3 & 0xC0u, 0xC0u);
  if (!TIDE_STM32_F4) EXPECT_EQ(ring[5], 0xDD) << "a dirty line of the ring may be written over what arrives";
}

TEST_F(Stm32Uart, BytesAreHandedOnWhenTheLineIsIdle) {
  for (uint8_t byte = 1; byte <= 3; byte++) arrive(byte);
  EXPECT_TRUE(heard.empty());
  become_idle();
  EXPECT_EQ(heard, (std::vector<uint8_t>{1, 2, 3}));
  arrive(4);  // the bytes are in the same cache line, which is invalidated again
  become_idle();
  EXPECT_EQ(heard, (std::vector<uint8_t>{1, 2, 3, 4}));
}

TEST_F(Stm32Uart, AStreamWithoutPausesIsHandedOnAtHalfAndFull) {
  std::vector<uint8_t> sent;
  for (size_t n = 0; n < 5 * RING; n++) {
    sent.push_back(static_cast<uint8_t>(n * 7));
    arrive(sent.back());
    interrupts();
  }
  EXPECT_EQ(heard, sent);
  EXPECT_EQ(receptions, 10);
  EXPECT_EQ(tide_stm32_counters.overruns, 0u);
}

TEST_F(Stm32Uart, AnyMixtureOfPausesAndLateInterruptsBelowHalfARingLosesNothing) {
  for (uint32_t seed = 0; seed < 200; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ring.fill(0xEE);
    heard.clear();
    taken = 0;
    flags = 0;
    tide_stm32_driver.open(115200, ring.data(), ring.size());
    std::vector<uint8_t> sent;
    for (int burst = 0; burst < 40; burst++) {
      size_t until_served = random() % (RING / 2);
      for (size_t n = random() % (2 * RING); n-- > 0;) {
        sent.push_back(static_cast<uint8_t>(random()));
        arrive(sent.back());
        if (flags != 0 && until_served-- == 0) {
          interrupts();
          until_served = random() % (RING / 2);
        }
      }
      interrupts();
      become_idle();
      ASSERT_EQ(heard, sent);
    }
  }
  EXPECT_EQ(tide_stm32_counters.overruns, 0u);
}

TEST_F(Stm32Uart, AHandlerThatIsHalfARingLateIsCounted) {
  for (size_t n = 0; n < RING; n++) arrive(1);
  interrupts();
  EXPECT_EQ(tide_stm32_counters.overruns, 1u);
  EXPECT_EQ(clear_receive, 0u);
  for (size_t n = 0; n < RING / 2; n++) arrive(2);
  interrupts();
  EXPECT_EQ(tide_stm32_counters.overruns, 1u) << "goes on as if nothing had been";
  EXPECT_EQ(heard.back(), 2);
}

TEST_F(Stm32Uart, APieceIsCleanedBeforeTheStreamReadsIt) {
  for (size_t offset : {size_t{0}, size_t{1}, size_t{31}}) {
    for (const size_t count : {size_t{1}, size_t{31}, size_t{32}, size_t{33}}) {
      if (offset + count > piece.size()) continue;
      piece.fill(static_cast<uint8_t>(offset + count));
      piece_in_memory.fill(0);
      tide_stm32_driver.start_transmit(piece.data() + offset, count);
      EXPECT_EQ(transmit_stream.count, count);
      EXPECT_TRUE(transmit_stream.control & ENABLE);
      EXPECT_TRUE(transmit_stream.control & (1u << 6)) << "to the UART";
      EXPECT_FALSE(transmit_stream.control & (1u << 8)) << "once";
      for (size_t n = 0; n < count && !TIDE_STM32_F4; n++) EXPECT_EQ(piece_in_memory[offset + n], piece[offset + n]);
    }
  }
}

TEST_F(Stm32Uart, TheEndIsReportedOnceAndOnlyOfWhatWasStarted) {
  uart.status = COMPLETE;  // set without a transmission, as after reset
  tide_stm32_uart_interrupt();
  EXPECT_EQ(completions, 0);
  tide_stm32_driver.start_transmit(piece.data(), 8);
  EXPECT_EQ(cleared(), COMPLETE) << "the end of the last piece would count for this one";
  EXPECT_TRUE(uart.control1 & COMPLETE);
  uart.status = 0;
  tide_stm32_uart_interrupt();
  EXPECT_EQ(completions, 0) << "the last stop bit has not left";
  uart.status = COMPLETE;
  tide_stm32_uart_interrupt();
  tide_stm32_uart_interrupt();
  EXPECT_EQ(completions, 1);
}

TEST_F(Stm32Uart, ErrorsAreClearedAndCounted) {
  uart.status = 1u << 3;  // overrun
  tide_stm32_uart_interrupt();
  if (!TIDE_STM32_F4) EXPECT_EQ(cleared(), 1u << 3);
  EXPECT_EQ(tide_stm32_counters.uart_errors, 1u);
  EXPECT_EQ(receptions, 0);
  flags = ERROR << SHIFT;
  interrupts();
  EXPECT_EQ(tide_stm32_counters.dma_errors, 1u);
}

TEST_F(Stm32Uart, CloseTurnsBothStreamsOff) {
  tide_stm32_driver.start_transmit(piece.data(), 8);
  tide_stm32_driver.close();
  EXPECT_FALSE(receive_stream.control & ENABLE);
  EXPECT_FALSE(transmit_stream.control & ENABLE);
  EXPECT_EQ(uart.control1, 0u);
}
