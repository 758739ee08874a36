/* SPDX-License-Identifier: Apache-2.0 */
/* The link of an operating system with tasks. A task of its own polls the session, so that nobody who waits has to, and
 * every waiter sleeps on its own event. It serves a UART (runtime/port/cortex_m/uart.h) or a custom transport, one at a
 * time. Its priority is above that of all lanes, so a custom transport's read must sleep while it waits; one that can
 * be woken sleeps until there is something to do. */
#include "link_task.h"
#include "tide/link_custom.h"
#include "tide/port.h"
#include "tide/status.h"

#ifndef TIDE_LINK_UART /* 0: a program that has no UART driver */
#define TIDE_LINK_UART 1
#endif
#if TIDE_LINK_UART
#include "uart.h"
#endif
#ifndef TIDE_LINK_SYSTEM /* 1: the board has transports of its own */
#define TIDE_LINK_SYSTEM 0
#endif
#if TIDE_LINK_SYSTEM
#include "transports.h"
#endif

#define TURN_NS INT64_C(20000000) /* of a custom transport that cannot be woken: then it looks whether to stop */

static struct {
  tide_session_t *session; /* null: closed */
  tide_event_t work;
  bool stop, custom;
  tide_custom_link_t transport;
} served;

static const tide_platform_t *platform(void) { return tide_port_platform(); }

static bool is_stopped(void) {
  const uintptr_t state = platform()->critical_enter(platform()->context);
  const bool stop = served.stop;
  platform()->critical_exit(platform()->context, state);
  return stop;
}

void tide_link_task_wake(void) {
  if (served.custom) {
    tide_custom_link_wake(&served.transport);
  } else {
    platform()->event_set(platform()->context, &served.work);
  }
}

static void run(void) {
  while (!is_stopped()) {
    if (served.custom) {
      const int64_t now_ns = platform()->now_ns(platform()->context);
      tide_custom_link_run(&served.transport, served.transport.wakes ? TIDE_FOREVER : now_ns + TURN_NS);
    } else {
      const int64_t next_ns = tide_session_poll(served.session);
      (void)platform()->event_wait(platform()->context, &served.work, next_ns);
    }
  }
}

static const tide_custom_transport_t *transport_of(const tide_link_address_t *address) {
#if TIDE_LINK_SYSTEM
  if (address->kind != TIDE_LINK_CUSTOM) return tide_rtos_transport(address);
#endif
  return address->custom;
}

static int open_transport(tide_session_t *session, const tide_link_address_t *address) {
  if (served.custom) {
    const tide_custom_transport_t *transport = transport_of(address);
    if (transport == NULL) return address->kind == TIDE_LINK_CUSTOM ? TIDE_ERROR_UNSUPPORTED : TIDE_ERROR_LINK;
    if (address->storage == NULL) return TIDE_ERROR_UNSUPPORTED;
    return tide_custom_link_open(&served.transport, session, transport, address->storage, address->storage_bytes);
  }
#if TIDE_LINK_UART
  return tide_uart_open_link(session, address);
#else
  return TIDE_ERROR_UNSUPPORTED;
#endif
}

static void close_transport(tide_session_t *session) {
  if (served.custom) tide_custom_link_close(&served.transport);
#if TIDE_LINK_UART
  if (!served.custom) tide_uart_close_link(session);
#endif
  (void)session;
}

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  if (served.session != NULL) return TIDE_ERROR_EXISTS;
  platform()->event_init(platform()->context, &served.work);
  served.stop = false;
  served.custom = TIDE_LINK_SYSTEM || address->kind == TIDE_LINK_CUSTOM;
  int status = open_transport(session, address);
  if (status != TIDE_OK) return status;
  served.session = session;
  status = tide_link_task_start(run, address->thread_priority);
  if (status == TIDE_OK) return TIDE_OK;
  served.session = NULL;
  close_transport(session);
  return status;
}

void tide_port_close_link(tide_session_t *session) {
  if (session == NULL || served.session != session) return;
  const uintptr_t state = platform()->critical_enter(platform()->context);
  served.stop = true;
  platform()->critical_exit(platform()->context, state);
  tide_link_task_wake();
  tide_link_task_join();
  close_transport(session);
  served.session = NULL;
}

void tide_port_wake_link(tide_session_t *session) {
  if (served.session == session) tide_link_task_wake();
}

void tide_port_serve_link(tide_session_t *session) { (void)session; }

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

static void read_custom_counters(tide_link_counters_t *counters) {
  const uintptr_t state = platform()->critical_enter(platform()->context);
  const tide_custom_counters_t *known = &served.transport.counters;
  *counters = (tide_link_counters_t){.opens = 1u,
                                     .messages_sent = known->messages_sent,
                                     .messages_lost = known->messages_lost,
                                     .bytes_received = known->bytes_received};
  platform()->critical_exit(platform()->context, state);
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (session == NULL || served.session != session) return TIDE_ERROR_NOT_FOUND;
  if (served.custom) {
    read_custom_counters(counters);
    return TIDE_OK;
  }
#if TIDE_LINK_UART
  return tide_uart_link_counters(session, counters);
#else
  return TIDE_ERROR_NOT_FOUND;
#endif
}
