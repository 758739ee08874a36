/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's one context, and the datagrams of the session with an agent as a custom transport. */
#include <lwip/pbuf.h>
#include <lwip/sys.h>
#include <lwip/timeouts.h>
#include <lwip/udp.h>
#include <rmw_microros/rmw_microros.h>

#include "tide/port.h"
#include "tide_lwip.h"

#if !NO_SYS
#error "runtime/port/lwip calls lwIP from one context: lwipopts.h needs NO_SYS 1"
#endif

#define MILLISECOND_NS INT64_C(1000000)

/* ---- the context ---- */

const tide_lwip_network_t *tide_lwip_network;
static tide_event_t activity;

int64_t tide_lwip_now_ns(void) { return tide_platform_now_ns(tide_port_platform()); }

/* Weak: a board's file may have its own (STM32Cube). */
__attribute__((weak)) u32_t sys_now(void) { return (u32_t)(tide_lwip_now_ns() / MILLISECOND_NS); }

void tide_lwip_set_network(const tide_lwip_network_t *network) {
  tide_lwip_network = network;
  tide_platform_event_init(tide_port_platform(), &activity);
}

void tide_lwip_wake(void) { tide_platform_event_set(tide_port_platform(), &activity); }

void tide_lwip_poll(void) {
  tide_lwip_network->input(tide_lwip_network->interface);
  sys_check_timeouts();
}

void tide_lwip_wait(int64_t deadline_ns) {
  const u32_t timer_ms = sys_timeouts_sleeptime();
  const int64_t timer_ns = tide_lwip_now_ns() + timer_ms * MILLISECOND_NS;
  if (timer_ms != SYS_TIMEOUTS_SLEEPTIME_INFINITE && timer_ns < deadline_ns) deadline_ns = timer_ns;
  (void)tide_platform_event_wait(tide_port_platform(), &activity, deadline_ns);
}

/* ---- the session's datagrams ---- */

static struct {
  ip_addr_t address;
  uint16_t port;
  struct udp_pcb *socket;
  struct pbuf *received[TIDE_LWIP_DATAGRAMS];
  size_t first, count;
  uint32_t dropped;
} agent;

static void keep(void *context, struct udp_pcb *socket, struct pbuf *datagram, const ip_addr_t *from, u16_t port) {
  (void)context;
  (void)socket;
  (void)from; /* the agent, to which the socket is connected */
  (void)port;
  if (agent.count == TIDE_LWIP_DATAGRAMS) {
    agent.dropped++;
    (void)pbuf_free(datagram);
    return;
  }
  agent.received[(agent.first + agent.count++) % TIDE_LWIP_DATAGRAMS] = datagram;
}

static struct pbuf *take(void) {
  struct pbuf *const datagram = agent.received[agent.first];
  agent.first = (agent.first + 1u) % TIDE_LWIP_DATAGRAMS;
  agent.count--;
  return datagram;
}

static void wake(struct uxrCustomTransport *transport) {
  (void)transport;
  tide_lwip_wake();
}

static bool close_agent(struct uxrCustomTransport *transport) {
  (void)transport;
  while (agent.count > 0u) (void)pbuf_free(take());
  if (agent.socket != NULL) udp_remove(agent.socket);
  agent.socket = NULL;
  return true;
}

static bool open_agent(struct uxrCustomTransport *transport) {
  if (tide_lwip_network == NULL || (agent.socket = udp_new()) == NULL) return false;
  transport->wake = wake;
  udp_recv(agent.socket, keep, NULL);
  return udp_connect(agent.socket, &agent.address, agent.port) == ERR_OK || !close_agent(transport);
}

/* A message for which lwIP has no memory now is offered again. */
static size_t write_agent(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  struct pbuf *const datagram = pbuf_alloc(PBUF_TRANSPORT, (u16_t)count, PBUF_RAM);
  const bool is_sent = datagram != NULL && pbuf_take(datagram, bytes, (u16_t)count) == ERR_OK &&
                       udp_send(agent.socket, datagram) == ERR_OK;
  if (datagram != NULL) (void)pbuf_free(datagram);
  *error = !is_sent;
  return is_sent ? count : 0u;
}

static size_t read_agent(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                         uint8_t *error) {
  (void)transport;
  *error = 0;
  tide_lwip_poll();
  if (agent.count == 0u && timeout_ms > 0) {
    tide_lwip_wait(tide_lwip_now_ns() + timeout_ms * MILLISECOND_NS);
    tide_lwip_poll();
  }
  if (agent.count == 0u) return 0u;
  struct pbuf *const datagram = take();
  const size_t length = datagram->tot_len <= count ? pbuf_copy_partial(datagram, bytes, datagram->tot_len, 0) : 0u;
  if (length == 0u) agent.dropped++; /* longer than TIDE_MTU_BYTES, or empty */
  (void)pbuf_free(datagram);
  return length;
}

rmw_ret_t tide_lwip_options_set_agent(rmw_init_options_t *options, const char *address, uint16_t port) {
  if (options == NULL || address == NULL || !ipaddr_aton(address, &agent.address)) return RMW_RET_INVALID_ARGUMENT;
  agent.port = port;
  return rmw_uros_options_set_custom_transport(false, NULL, open_agent, close_agent, write_agent, read_agent, options);
}

uint32_t tide_lwip_dropped(void) { return agent.dropped; }
