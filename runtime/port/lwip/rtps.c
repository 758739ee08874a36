/* SPDX-License-Identifier: Apache-2.0 */
/* RTPS over lwIP, as a custom transport: the link's context passes datagrams to the participant as they arrive, and
 * waits in its read for the next one, for the agent's next time, and for the program. */
#include <lwip/igmp.h>
#include <lwip/pbuf.h>
#include <lwip/udp.h>
#include <rmw_microros/rmw_microros.h>
#include <string.h>

#include "tide/rclc_rtps.h"
#include "tide_lwip.h"

#if !LWIP_IGMP || !IP_REASSEMBLY
#error "participants announce themselves by multicast, and their endpoints in fragments: LWIP_IGMP 1, IP_REASSEMBLY 1"
#endif

#define DATAGRAMS_A_READ 4u /* an urgent message of the program waits for at most this many */
#define DOMAIN_MAXIMUM 232u

static struct {
  tide_rtps_agent_t agent;
  uint8_t address[4];
  struct udp_pcb *sockets[2]; /* unicast, multicast */
  bool is_woken;
} wire;

/* A datagram that lwIP put together from fragments is copied into one buffer, if lwIP's heap has room. Otherwise the
 * datagram is lost, and ROS 2 repeats its reliable samples. */
static void receive(void *context, struct udp_pcb *socket, struct pbuf *datagram, const ip_addr_t *from, u16_t port) {
  (void)context;
  (void)socket;
  (void)port;
  uint8_t address[4];
  memcpy(address, ip_2_ip4(from), sizeof address);
  datagram = pbuf_coalesce(datagram, PBUF_RAW);
  if (datagram->next == NULL && tide_rtps_agent_is_up(&wire.agent))
    tide_participant_receive(&wire.agent.participant, datagram->payload, datagram->len, address, tide_lwip_now_ns());
  (void)pbuf_free(datagram);
}

static void close_sockets(void) {
  for (size_t i = 0; i < 2; i++) {
    if (wire.sockets[i] != NULL) udp_remove(wire.sockets[i]);
    wire.sockets[i] = NULL;
  }
}

static bool open_socket(size_t which, uint32_t port) {
  wire.sockets[which] = udp_new();
  if (wire.sockets[which] == NULL || udp_bind(wire.sockets[which], IP_ANY_TYPE, (u16_t)port) != ERR_OK) return false;
  udp_recv(wire.sockets[which], receive, NULL);
  return true;
}

/* The board is the only participant at its address. A restarted board differs by the random number, so others do not
 * take its new samples for old ones. */
static bool start(void *context, uint32_t domain, tide_participant_config_t *config) {
  struct netif *const interface = tide_lwip_network->interface;
  const ip4_addr_t group = {PP_HTONL(0xEFFF0001u)};
  const uint32_t random = LWIP_RAND();
  (void)context;
  config->domain = domain > DOMAIN_MAXIMUM ? 0 : domain;
  close_sockets();
  if (!open_socket(0, TIDE_RTPS_PORT_DISCOVERY(config->domain, 0)) ||
      !open_socket(1, TIDE_RTPS_PORT_MULTICAST(config->domain)) || igmp_joingroup_netif(interface, &group) != ERR_OK)
    return false;
  config->prefix[0] = TIDE_RTPS_VENDOR >> 8;
  config->prefix[1] = TIDE_RTPS_VENDOR & 0xFFu;
  memcpy(config->prefix + 2, interface->hwaddr, 6);
  memcpy(config->prefix + 8, &random, sizeof random);
  memcpy(config->address, wire.address, sizeof config->address);
  return true;
}

/* False: nothing is due before *deadline_ns; or lwIP has no memory now, and its next timer ends the wait. */
static bool send_next(int64_t now_ns, int64_t *deadline_ns) {
  struct pbuf *const frame = pbuf_alloc(PBUF_TRANSPORT, TIDE_RTPS_DATAGRAM_BYTES, PBUF_RAM);
  if (frame == NULL) return false;
  tide_rtps_datagram_t datagram = {.bytes = frame->payload};
  const bool is_due = tide_participant_poll(&wire.agent.participant, now_ns, &datagram);
  if (is_due) {
    ip4_addr_t host;
    ip_addr_t address;
    memcpy(&host, datagram.to.address, sizeof host);
    ip_addr_copy_from_ip4(address, host);
    pbuf_realloc(frame, (u16_t)datagram.length);
    /* The DSCP is in the upper six bits of the octet. */
    wire.sockets[0]->tos =
        datagram.level == 0 || tide_rtps_memory.dscp == NULL ? 0 : (u8_t)(tide_rtps_memory.dscp(datagram.level) << 2);
    /* A datagram that is not sent is lost; reliable samples in it are repeated. */
    (void)udp_sendto_if(wire.sockets[0], frame, &address, datagram.to.port, tide_lwip_network->interface);
  } else if (datagram.deadline_ns < *deadline_ns) {
    *deadline_ns = datagram.deadline_ns;
  }
  (void)pbuf_free(frame);
  return is_due;
}

static bool wire_close(struct uxrCustomTransport *transport) {
  (void)transport;
  const int64_t now_ns = tide_lwip_now_ns();
  int64_t deadline_ns = INT64_MAX;
  tide_rtps_agent_close(&wire.agent, now_ns);
  while (tide_rtps_agent_is_up(&wire.agent) && send_next(now_ns, &deadline_ns)) { /* goodbye */
  }
  close_sockets();
  return true;
}

static size_t wire_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  *error = 0;
  return tide_rtps_agent_write(&wire.agent, bytes, count, tide_lwip_now_ns(), 0) ? count : 0;
}

static size_t wire_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                        uint8_t *error) {
  (void)transport;
  *error = 0;
  if (count < tide_rtps_memory.frame_bytes) return 0;
  const int64_t end_ns = tide_lwip_now_ns() + timeout_ms * INT64_C(1000000);
  for (;;) {
    tide_lwip_poll();
    const int64_t now_ns = tide_lwip_now_ns();
    int64_t deadline_ns = end_ns;
    bool has_more = false;
    const size_t length = tide_rtps_agent_read(&wire.agent, bytes, now_ns, &deadline_ns);
    if (tide_rtps_agent_is_up(&wire.agent)) {
      size_t sent = 0;
      while (sent < DATAGRAMS_A_READ && send_next(now_ns, &deadline_ns)) sent++;
      has_more = sent == DATAGRAMS_A_READ;
    }
    if (length > 0) return length;
    if (__atomic_exchange_n(&wire.is_woken, false, __ATOMIC_ACQ_REL) || has_more || now_ns >= end_ns) return 0;
    tide_lwip_wait(deadline_ns < end_ns ? deadline_ns : end_ns);
  }
}

static void wire_wake(struct uxrCustomTransport *transport) {
  (void)transport;
  __atomic_store_n(&wire.is_woken, true, __ATOMIC_RELEASE);
  tide_lwip_wake();
}

static bool wire_open(struct uxrCustomTransport *transport) {
  tide_rtps_agent_config_t config = tide_rtps_memory;
  if (tide_lwip_network == NULL) return false;
  config.start = start;
  transport->wake = wire_wake;
  tide_rtps_agent_init(&wire.agent, &config);
  return true;
}

rmw_ret_t tide_rclc_options_set_rtps(rmw_init_options_t *options, const char *address) {
  ip4_addr_t parsed;
  if (options == NULL || address == NULL || !ip4addr_aton(address, &parsed)) return RMW_RET_INVALID_ARGUMENT;
  memcpy(wire.address, &parsed, sizeof wire.address);
  return rmw_uros_options_set_custom_transport(false, NULL, wire_open, wire_close, wire_write, wire_read, options);
}

const tide_rtps_agent_t *tide_rclc_rtps_agent(void) { return &wire.agent; }
