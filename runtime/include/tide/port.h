/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of every port: its platform, and functions that open a link for a session. */
#ifndef TIDE_PORT_H
#define TIDE_PORT_H

#include "tide/executor.h"
#include "tide/link_custom.h"
#include "tide/session.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_link_kind {
  TIDE_LINK_NONE,
  TIDE_LINK_SERIAL,
  TIDE_LINK_UDP,
  TIDE_LINK_TCP,
  TIDE_LINK_CUSTOM
} tide_link_kind_t;

typedef struct tide_link_address {
  tide_link_kind_t kind;
  const char *device; /* serial: path of the tty; all strings here must outlive the link */
  uint32_t baud;      /* serial */
  bool paced;         /* serial: compute the end of a transmission from the baud rate, for adapters that report it
                         wrongly; a pseudo terminal is always paced */
  bool agent_side;    /* serial: use the agent's address on the line, not the client's: for tests and tools */
  const char *host;   /* UDP, TCP: IPv4 or IPv6 address, or name */
  uint16_t port;
  const tide_custom_transport_t *custom; /* custom: copied */
  uint8_t *storage; /* custom link on a port whose tasks have no heap: memory of TIDE_CUSTOM_LINK_STORAGE_BYTES(mtu)
                       bytes, valid until the link is closed; not needed on POSIX */
  size_t storage_bytes;
  /* POSIX, FreeRTOS, Zephyr, NuttX, ThreadX: priority of the link's thread, in the numbers used for lanes (SCHED_FIFO
   * on POSIX). The thread acts as the daemon's interrupt context. 0: the highest, so no lane delays an acknowledgment
   * or the start of a frame. TIDE_LINK_PRIORITY_INHERIT: the scheduling of the thread that opens the link. If the
   * system refuses the priority, the thread also has the inherited scheduling, and thread_status of the link's counters
   * reports the refusal. POSIX: needs CAP_SYS_NICE or an rtprio limit (ulimit -r). */
  int thread_priority;
  /* UDP on POSIX: how long a caller that waits for the agent may poll before it sleeps, in microseconds. Such a caller
   * waits for a ping, an acknowledgment or the creation of an entity. Neither the lanes of an executor nor the link's
   * thread poll. 0: TIDE_BUSY_POLL_USUAL_US; TIDE_BUSY_POLL_OFF: never; at most TIDE_BUSY_POLL_MAXIMUM_US. This is an
   * upper limit: the polling time is reduced when polling does not succeed, so long waits soon cost nothing. A process
   * on one processor never polls; a thread with a real-time policy polls for at most a quarter of its time. */
  int32_t busy_poll_us;
} tide_link_address_t;

#define TIDE_LINK_PRIORITY_INHERIT (-1)
#define TIDE_BUSY_POLL_OFF (-1)
#define TIDE_BUSY_POLL_USUAL_US 100
#define TIDE_BUSY_POLL_MAXIMUM_US 1000

/* The platform of this port; always the same pointer. */
const tide_platform_t *tide_port_platform(void);

/* True if the caller is an interrupt that is not a lane; always false on ports that cannot tell. Any context may call
 * it. */
bool tide_port_in_interrupt(void);

/* The clock for execution times (tide/measure.h): a cycle counter if the core has one, the thread's processor clock if
 * there are threads, else the port's clock. Always the same pointer. */
const tide_measure_clock_t *tide_port_measure_clock(void);

/* Open a link for the session and attach it to its daemon. From now on the link's context (a thread on POSIX,
 * interrupts on a microcontroller) drives tide_session_poll and the reception. A link that is cut (unplugged cable,
 * closed tty) is reopened automatically. One link per session. TIDE_ERROR_LINK: the first opening failed.
 * TIDE_ERROR_ARGUMENT: the address is invalid, or the system does not have the priority. TIDE_ERROR_FULL: the system
 * has no resources for a thread.
 */
int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address);
/* Close the link and drop frames that have not been sent. Do not call it from the link's context. */
void tide_port_close_link(tide_session_t *session);

/* Let the link's context call tide_session_poll now, before the time that poll last returned. Any thread or interrupt
 * may call it, but not within a critical section. It has no effect if the link has no context of its own. */
void tide_port_wake_link(tide_session_t *session);

/* With sockets: send a query to the agents of this network at TIDE_XRCE_DISCOVERY_GROUP and wait for the first answer.
 * host: room for TIDE_HOST_BYTES; host and *port are written when the result is TIDE_OK. TIDE_ERROR_TIMEOUT: no answer.
 * TIDE_ERROR_LINK: no network. */
#define TIDE_HOST_BYTES 16
int tide_port_discover_agent(uint16_t group_port, int timeout_ms, char *host, uint16_t *port);

/* Only in builds with TIDE_SINGLE_CONTEXT (tide/options.h): handles the events that interrupts have recorded but not
 * handled. Call it before each tide_session_poll. */
void tide_port_serve_link(tide_session_t *session);

/* Returns what a waiting caller must run when the session's link has no context of its own (bare metal): a step of
 * tide_session_poll, and a sleep that ends when a message arrives. Null if the link has a context of its own, as always
 * on POSIX. */
const tide_pump_t *tide_port_pump(tide_session_t *session);

/* Run run(context, index) for each of count lanes at the same time, each with the scheduling of its settings; index
 * counts from 0. Return when all have returned; the caller only waits. Every lane gets its scheduling before any of
 * them runs. If the system refuses the scheduling of a lane, no lane runs, the result is the error, and *refused (may
 * be null) is the index of that lane. TIDE_ERROR_NOT_PERMITTED: the system refuses the scheduling to this user (see
 * tide_lane_settings_t.may_run_normally); TIDE_ERROR_ARGUMENT: there is no such priority or processor; TIDE_ERROR_FULL:
 * no resources for a thread; TIDE_ERROR_UNSUPPORTED: there is more than one lane and the port has no threads, or the
 * port does not have the scheduling. */
int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused);

/* The budget of a lane, for reading its counters during and after tide_port_run_lanes; null: the lane has no budget.
 * Exists on FreeRTOS, Zephyr, NuttX and bare Cortex-M. Any context may call it; a running lane changes the counters
 * concurrently. */
const tide_budget_t *tide_port_lane_budget(size_t lane);

typedef struct tide_link_counters {
  uint32_t opens;             /* number of openings, including the first */
  uint32_t cuts;              /* times the link was lost */
  uint32_t messages_sent;     /* messages sent completely, by the driver's report or by the line's pacing */
  uint32_t messages_lost;     /* messages refused by the system, or lost in a cut */
  uint32_t writes_partial;    /* times the system took only part of a message: the peer or the line is slower */
  uint32_t messages_oversize; /* received messages that were dropped: longer than the mtu */
  uint64_t bytes_sent, bytes_received;
  uint32_t batches;                 /* UDP: system calls that sent messages; each sent one or more */
  int64_t complete_late_maximum_ns; /* longest delay from the end of a transmission to its report */
  /* POSIX: the real-time priority that the link's thread has; 0: none, it shares the processor with everything else. */
  int thread_priority;
  int thread_status;    /* TIDE_ERROR_NOT_PERMITTED: the system refused the priority; else TIDE_OK */
  int32_t busy_poll_us; /* UDP: the limit in force; 0: waiting callers sleep at once */
} tide_link_counters_t;

/* Take a snapshot. Counters that a port cannot observe are 0: on a UART with DMA all but opens and messages_sent.
 * TIDE_ERROR_NOT_FOUND: the session has no link. */
int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters);

TIDE_EXTERN_C_END
#endif
