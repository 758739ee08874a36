/* SPDX-License-Identifier: Apache-2.0 */
/* The UART of this program: the modelled DMA of the board when an agent is at the other end; in lock-step a DMA that
 * costs no instructions for its bytes. What leaves is told to the world at once, and a timer tells when it has left; a
 * second timer is set for the world's next event, at which what has arrived is in the ring. */
#include "line.h"

#include "board.h"
#include "mps2.h"
#include "platform.h"
#include "uart.h"
#include "world.h"

#define BITS_A_BYTE 10

static struct {
  bool chosen, lockstep;
  uint32_t baud;
  uint8_t *ring;
  size_t ring_bytes, position;
} line;

static int64_t now_ns(void) { return tide_port_platform()->now_ns(NULL); }

static void arm(mps2_dual_timer_t *timer, int64_t left_ns) {
  timer->control = MPS2_DUAL_ONE_SHOT;
  timer->load = left_ns <= 0 ? 1u : (uint32_t)((left_ns + MPS2_TICK_NS - 1) / MPS2_TICK_NS);
  timer->control = MPS2_DUAL_ONE_SHOT | MPS2_DUAL_RUN;
}

static void wait_for_event(int64_t next_ns) {
  const int64_t longest_ns = INT64_C(100000000000); /* the timer counts to 171 s */
  const int64_t left_ns = next_ns == INT64_MAX ? longest_ns : next_ns - now_ns();
  arm(MPS2_DUAL2, left_ns < longest_ns ? left_ns : longest_ns);
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

void board_dual_timer_interrupt(void) {
  if (!line.lockstep) {
    tide_mps2_dual_timer_interrupt();
    return;
  }
  if (MPS2_DUAL1->masked_status != 0u) {
    MPS2_DUAL1->clear = 1;
    tide_uart_transmit_complete();
  }
  if (MPS2_DUAL2->masked_status != 0u) {
    MPS2_DUAL2->clear = 1;
    ask_world();
  }
}

static int open(uint32_t baud, uint8_t *ring, size_t ring_bytes) {
  if (!line.chosen) line_choose(world_open() != NULL);
  if (!line.lockstep) {
    return tide_mps2_uart.open(baud, ring, ring_bytes);
  }
  line.baud = baud;
  line.ring = ring;
  line.ring_bytes = ring_bytes;
  line.position = 0u;
  tide_cortex_m_enable_interrupt(MPS2_IRQ_DUAL_TIMER);
  return 0;
}

static void close(void) {
  if (!line.lockstep) {
    tide_mps2_uart.close();
    return;
  }
  MPS2_DUAL1->control = 0;
  MPS2_DUAL2->control = 0;
}

static void start_transmit(const uint8_t *bytes, size_t count) {
  if (!line.lockstep) {
    tide_mps2_uart.start_transmit(bytes, count);
    return;
  }
  const world_answer_t answer = world_ask(WORLD_TRANSMIT, now_ns(), bytes, count);
  arm(MPS2_DUAL1, (int64_t)count * BITS_A_BYTE * INT64_C(1000000000) / line.baud);
  wait_for_event(answer.next_ns);
}

static size_t receive_position(void) { return line.lockstep ? line.position : tide_mps2_uart.receive_position(); }

void line_choose(bool lockstep) {
  line.chosen = true;
  line.lockstep = lockstep;
}

static const tide_uart_driver_t driver = {open, close, start_transmit, receive_position};
/* Small pieces: making one is the longest critical section there is. */
static uint8_t piece[32], ring[2048];
const tide_uart_board_t tide_uart_board = {&driver, piece, sizeof piece, ring, sizeof ring};
