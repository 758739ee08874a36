/* SPDX-License-Identifier: Apache-2.0 */
/* The link of a kernel with tasks. A separate task polls the session, so that waiting callers need not, and each sleeps
 * on its own event. It serves a UART (runtime/port/cortex_m/uart.h) or a custom transport, one at a time.
 * Its priority is above that of all lanes, so a custom transport's read must sleep while it waits. A transport that can
 * be woken sleeps until there is work. */
#include "rtos.h"
#include "tide/link_custom.h"

#ifndef TIDE_LINK_UART /* 0: the program has no UART driver */
#define TIDE_LINK_UART 1
#endif
#if TIDE_LINK_UART
#include "uart.h"
#endif
#ifndef TIDE_LINK_SYSTEM /* 1: the board has its own transports (tide_rtos_transport) */
#define TIDE_LINK_SYSTEM 0
#endif

#define TURN_NS INT64_C(20000000) /* interval of stop checks, for a custom transport that cannot be woken */

static struct {
  tide_session_t *session; /* null: closed */
  tide_rtos_task_t task;
  tide_event_t work;
  bool stop, custom;
  tide_custom_link_t transport;
} served;

static const tide_platform_t *platform(void) { return tide_port_platform(); }
static uintptr_t enter(void) { return platform()->critical_enter(platform()->context); }
static void leave(uintptr_t state) { platform()->critical_exit(platform()->context, state); }

static void wake(void) {
  if (served.custom) {
    tide_custom_link_wake(&served.transport);
  } else {
    platform()->event_set(platform()->context, &served.work);
  }
}

#if TIDE_LINK_UART
void tide_uart_wake_task(void) { wake(); }
#endif

static void run(void *unused) {
  (void)unused;
  for (;;) {
    const uintptr_t state = enter();
    const bool stop = served.stop;
    leave(state);
    if (stop) return;
    if (served.custom) {
      const int64_t now_ns = platform()->now_ns(platform()->context);
      tide_custom_link_run(&served.transport, served.transport.wakes ? TIDE_FOREVER : now_ns + TURN_NS);
    } else {
      const int64_t next_ns = tide_session_poll(served.session);
      (void)platform()->event_wait(platform()->context, &served.work, next_ns);
    }
  }
}

static int open_transport(tide_session_t *session, const tide_link_address_t *address) {
  if (served.custom) {
    const tide_custom_transport_t *transport = address->custom;
#if TIDE_LINK_SYSTEM
    if (address->kind != TIDE_LINK_CUSTOM) transport = tide_rtos_transport(address);
#endif
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
  static const tide_lane_settings_t settings = {
      .name = "tide link", .scheduling = TIDE_SCHEDULING_FIFO, .stack_bytes = TIDE_KERNEL_LINK_STACK_BYTES};
  int priority = address->thread_priority > 0 ? address->thread_priority : TIDE_KERNEL_PRIORITY_LINK;
  if (served.session != NULL) return TIDE_ERROR_EXISTS;
  if (address->thread_priority > TIDE_KERNEL_PRIORITY_MOST) return TIDE_ERROR_ARGUMENT;
  if (address->thread_priority == TIDE_LINK_PRIORITY_INHERIT) priority = tide_kernel_priority();
  platform()->event_init(platform()->context, &served.work);
  served.stop = false;
  served.custom = TIDE_LINK_SYSTEM || address->kind == TIDE_LINK_CUSTOM;
  int status = open_transport(session, address);
  if (status != TIDE_OK) return status;
  served.session = session;
  served.task.run = run;
  status = tide_kernel_start(&served.task, TIDE_RTOS_LINK, &settings, priority);
  if (status == TIDE_OK) return TIDE_OK;
  served.session = NULL;
  close_transport(session);
  return status;
}

void tide_port_close_link(tide_session_t *session) {
  if (session == NULL || served.session != session) return;
  const uintptr_t state = enter();
  served.stop = true;
  leave(state);
  wake();
  tide_kernel_join(&served.task);
  close_transport(session);
  served.session = NULL;
}

void tide_port_wake_link(tide_session_t *session) {
  if (served.session == session) wake();
}

void tide_port_serve_link(tide_session_t *session) { (void)session; }

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (session == NULL || served.session != session) return TIDE_ERROR_NOT_FOUND;
#if TIDE_LINK_UART
  if (!served.custom) return tide_uart_link_counters(session, counters);
#endif
  const uintptr_t state = enter();
  const tide_custom_counters_t *known = &served.transport.counters;
  *counters = (tide_link_counters_t){.opens = 1u,
                                     .messages_sent = known->messages_sent,
                                     .messages_lost = known->messages_lost,
                                     .bytes_received = known->bytes_received};
  leave(state);
  return TIDE_OK;
}
