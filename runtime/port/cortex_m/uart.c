/* SPDX-License-Identifier: Apache-2.0 */
/* The link between the daemon and a UART's driver. A frame is encoded in pieces while it is sent, so that starting a
 * frame is short. A ring holds the received bytes. */
#include "uart.h"

#include "tide/link_serial.h"
#include "tide/port.h"
#include "tide/status.h"

/* The session is polled by a task of an operating system (runtime/port/rtos/link.c); an interrupt of the link; or, in a
 * runtime without lanes, the executing or waiting context (tide_port_pump). */
#ifndef LINK_TASK
#define LINK_TASK 0
#endif
#define LINK_INTERRUPT (!LINK_TASK && TIDE_LANES && !TIDE_SINGLE_CONTEXT)
#if LINK_INTERRUPT
#include "software.h"
#endif
#if LINK_TASK && TIDE_SINGLE_CONTEXT
#error "with tasks there is more than one context: TIDE_SINGLE_CONTEXT"
#endif

static struct {
  tide_session_t *session;      /* null: closed */
  tide_framing_writer_t writer; /* writes the frame that is being sent */
  size_t taken;                 /* index in the ring of the next byte for the daemon */
  tide_event_t activity;        /* set when bytes were received or a frame was sent; unused with a task */
  volatile bool sent, came;
} uart;

#if TIDE_STATIC_PLATFORM
static const tide_platform_t *platform_of_port(void) { return NULL; }
#else
static const tide_platform_t *platform_of_port(void) { return tide_port_platform(); }
#endif

#if LINK_TASK
static void note_activity(void) { tide_uart_wake_task(); }
#else
static void note_activity(void) { tide_platform_event_set(platform_of_port(), &uart.activity); }
#endif

static bool send_piece(void) {
  const size_t count = tide_framing_writer_output(&uart.writer, tide_uart_board.piece, tide_uart_board.piece_bytes);
  if (count > 0u) tide_uart_board.driver->start_transmit(tide_uart_board.piece, count);
  return count > 0u;
}

/* Starts to send a frame. Runs in the critical section of the daemon, so only one piece is encoded here. */
static int start(void *context, const tide_frame_parts_t *parts) {
  (void)context;
  const int status =
      tide_framing_writer_init(&uart.writer, TIDE_SERIAL_ADDRESS_CLIENT, TIDE_SERIAL_ADDRESS_AGENT, parts->head,
                               parts->head_bytes, parts->body, parts->body_bytes, parts->tail, parts->tail_bytes);
  if (status == TIDE_OK) (void)send_piece();
  return status;
}

static void hand_on(void) {
  const size_t position = tide_uart_board.driver->receive_position();
  while (uart.taken != position) {
    const size_t end = uart.taken < position ? position : tide_uart_board.ring_bytes;
    tide_daemon_on_bytes(&uart.session->daemon, tide_uart_board.ring + uart.taken, end - uart.taken);
    uart.taken = end == tide_uart_board.ring_bytes ? 0u : end;
  }
}

void tide_uart_transmit_complete(void) {
  if (uart.session == NULL || send_piece()) return;
  if (TIDE_SINGLE_CONTEXT)
    uart.sent = true;
  else
    tide_daemon_on_transmit_complete(&uart.session->daemon);
  note_activity();
}

void tide_uart_received(void) {
  if (uart.session == NULL) return;
  if (TIDE_SINGLE_CONTEXT)
    uart.came = true;
  else
    hand_on();
  note_activity();
}

int tide_uart_open_link(tide_session_t *session, const tide_link_address_t *address) {
  static const tide_link_t link = {.start = start, .heartbeat_floor_ns = TIDE_SERIAL_HEARTBEAT_FLOOR_NS};
  if (address->kind == TIDE_LINK_CUSTOM)
    return TIDE_ERROR_UNSUPPORTED; /* any other kind selects the board's only line */
  if (uart.session != NULL) return TIDE_ERROR_EXISTS;
  const uint32_t baud = address->baud != 0u ? address->baud : 115200u;
  uart.taken = 0u;
  uart.sent = uart.came = false;
  if (tide_uart_board.driver->open(baud, tide_uart_board.ring, tide_uart_board.ring_bytes) < 0) return TIDE_ERROR_LINK;
  uart.session = session;
  return tide_daemon_attach_link(&session->daemon, &link, TIDE_SERIAL_ADDRESS_CLIENT);
}

void tide_uart_close_link(tide_session_t *session) {
  if (uart.session != session) return;
  tide_uart_board.driver->close();
  uart.session = NULL;
  tide_daemon_detach_link(&session->daemon);
}

int tide_uart_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (uart.session == NULL || uart.session != session) return TIDE_ERROR_NOT_FOUND;
  const uintptr_t state = tide_platform_enter(platform_of_port());
  *counters = (tide_link_counters_t){.opens = 1u, .messages_sent = session->daemon.transmitter.counters.frames};
  tide_platform_exit(platform_of_port(), state);
  return TIDE_OK;
}

#if !LINK_TASK

void tide_port_serve_link(tide_session_t *session) {
  if (!TIDE_SINGLE_CONTEXT || uart.session != session) return;
  if (uart.came) {
    uart.came = false; /* cleared before handling, so that bytes received meanwhile set it again */
    hand_on();
  }
  if (uart.sent) {
    uart.sent = false;
    tide_daemon_on_transmit_complete(&session->daemon);
  }
}

#if LINK_INTERRUPT
/* The link's own context: an interrupt above the lanes and below the hardware interrupts. */
static void poll_session(size_t index) {
  tide_session_t *session = uart.session;
  if (session != NULL) tide_software_wake_at(index, tide_session_poll(session));
}

static void start_context(void) {
  tide_software_start(TIDE_SOFTWARE_LINK, TIDE_LINK_PRIORITY, poll_session);
  uart.activity.port = (void *)(uintptr_t)tide_software_number(TIDE_SOFTWARE_LINK);
  note_activity();
}

static void stop_context(void) { tide_software_stop(TIDE_SOFTWARE_LINK); }
#else
static void start_context(void) {}
static void stop_context(void) {}
#endif

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  const int status = tide_uart_open_link(session, address);
  if (status == TIDE_OK) start_context();
  return status;
}

void tide_port_close_link(tide_session_t *session) {
  if (uart.session != session) return;
  stop_context();
  tide_uart_close_link(session);
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  return tide_uart_link_counters(session, counters);
}

void tide_port_wake_link(tide_session_t *session) {
  if (uart.session == session) note_activity();
}

#if LINK_INTERRUPT

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

#else

/* Only the caller polls the session here: one step, then sleep until something arrives. */
static void run(void *context, int64_t deadline_ns) {
  tide_port_serve_link(context);
  const int64_t next_ns = tide_session_poll(context);
  if (next_ns < deadline_ns) deadline_ns = next_ns;
  (void)tide_platform_event_wait(platform_of_port(), &uart.activity, deadline_ns);
}

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  static tide_pump_t pump = {run, NULL};
  pump.context = session;
  return &pump;
}

#endif

#endif
