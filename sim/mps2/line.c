/* SPDX-License-Identifier: Apache-2.0 */
/* The serial line of the program. If there is no simulated world, it is the chip's UART (on the MPS2 boards with a
 * modelled DMA), with an agent at the other end. In lock-step with a simulated world, it is a DMA whose bytes cost no
 * instructions: bytes to send go to the world at once, and one alarm marks the end of their transmission. The other
 * alarm is set for the world's next event; received bytes are then put into the ring. */
#include "board.h"
#include "chip.h"
#include "platform.h"
#include "uart.h"
#include "world.h"

#define BITS_A_BYTE 10
enum { SENT, EVENT }; /* alarms */

static struct {
  bool lockstep;
  uint32_t baud, ticks;
  uint8_t *ring;
  size_t ring_bytes, position;
} line;

static int64_t now_ns(void) { return tide_port_platform()->now_ns(NULL); }

static void arm(unsigned alarm, int64_t left_ns) { board_alarm(alarm, left_ns < 0 ? 0 : left_ns); }

static void wait_for_event(int64_t next_ns) {
  const int64_t longest_ns = INT64_C(100000000000); /* a timer cannot count for longer than 171 s */
  const int64_t left_ns = next_ns == INT64_MAX ? longest_ns : next_ns - now_ns();
  arm(EVENT, left_ns < longest_ns ? left_ns : longest_ns);
}

static void ask_world(void) {
  const world_answer_t answer = world_ask(WORLD_EVENT, now_ns(), NULL, 0);
  for (uint32_t left = answer.bytes; left > 0u;) {
    const size_t room = line.ring_bytes - line.position, piece = left < room ? left : room;
    world_read(line.ring + line.position, piece);
    line.position = (line.position + piece) % line.ring_bytes;
    left -= piece;
  }
  wait_for_event(answer.next_ns);
  if (answer.bytes > 0u) tide_uart_received();
}

void board_alarm_interrupt(void) {
#if !TIDE_STM32F405
  if (!line.lockstep) {
    tide_mps2_dual_timer_interrupt();
    return;
  }
#endif
  if (board_alarm_due(SENT)) tide_uart_transmit_complete();
  if (board_alarm_due(EVENT)) ask_world();
}

static int open(uint32_t baud, uint8_t *ring, size_t ring_bytes) {
  line.lockstep = world_open() != NULL;
  if (!line.lockstep) {
    return TIDE_CHIP_UART.open(baud, ring, ring_bytes);
  }
  line.baud = baud;
  line.ring = ring;
  line.ring_bytes = ring_bytes;
  line.position = 0u;
  return 0;
}

static void close(void) {
  if (!line.lockstep) {
    TIDE_CHIP_UART.close();
    return;
  }
  board_alarm(SENT, -1);
  board_alarm(EVENT, -1);
}

static void start_transmit(const uint8_t *bytes, size_t count) {
  if (!line.lockstep) {
    TIDE_CHIP_UART.start_transmit(bytes, count);
    return;
  }
  const uint32_t since = tide_chip_ticks();
  const world_answer_t answer = world_ask(WORLD_TRANSMIT, now_ns(), bytes, count);
  arm(SENT, (int64_t)count * BITS_A_BYTE * INT64_C(1000000000) / line.baud);
  wait_for_event(answer.next_ns);
  line.ticks += tide_chip_ticks() - since;
}

uint32_t board_line_ticks(void) { return line.ticks; }

static size_t receive_position(void) { return line.lockstep ? line.position : TIDE_CHIP_UART.receive_position(); }

static const tide_uart_driver_t driver = {open, close, start_transmit, receive_position};
/* The driver encodes a frame in pieces of the size of `piece`, which is small because encoding a piece is the longest
 * critical section. */
static uint8_t piece[32], ring[2048];
const tide_uart_board_t tide_uart_board = {&driver, piece, sizeof piece, ring, sizeof ring};
