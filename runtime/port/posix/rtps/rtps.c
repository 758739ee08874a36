/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of RTPS, as a custom transport: the link's thread waits in its read for datagrams, for the agent's next
 * time, and for the program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rmw_microros/rmw_microros.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tide/rclc_rtps.h"

#define PARTICIPANTS 32u    /* participants of this machine to announce to, as many as in Fast DDS */
#define DATAGRAMS_A_READ 4u /* an urgent message of the program waits for at most this many */
#define DATAGRAM_BYTES_MAXIMUM 65536u
#define OUTLETS 4u /* DSCP 0, and three others */

typedef struct outlet { /* sends the datagrams of a DSCP. A full buffer of one delays no other */
  int socket;
  uint8_t dscp;
  size_t length; /* of a datagram for which the socket's buffer had no room; 0: none */
  struct sockaddr_in to;
  uint8_t bytes[TIDE_RTPS_DATAGRAM_BYTES];
} outlet_t;

static struct {
  tide_rtps_agent_t agent;
  uint8_t address[1][4];
  int sockets[2];            /* unicast, multicast; -1: none */
  int wake[2];               /* a pipe */
  outlet_t outlets[OUTLETS]; /* the first is the unicast socket */
  size_t outlet_count;
  uint8_t received[DATAGRAM_BYTES_MAXIMUM];
  uint8_t sent[TIDE_RTPS_DATAGRAM_BYTES];
} wire = {.sockets = {-1, -1}, .wake = {-1, -1}};

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool is_loopback(void) { return wire.address[0][0] == 127; }

static int open_socket(const struct sockaddr_in *address, bool shared) {
  const int made = socket(AF_INET, SOCK_DGRAM, 0);
  const int yes = 1;
  if (made >= 0 && (!shared || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0) &&
      fcntl(made, F_SETFL, O_NONBLOCK) == 0 && bind(made, (const struct sockaddr *)address, sizeof *address) == 0)
    return made;
  if (made >= 0) (void)close(made);
  return -1;
}

/* The socket that receives the multicast announcements of participants that do not know this one yet. */
static int open_multicast(uint32_t domain) {
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)TIDE_RTPS_PORT_MULTICAST(domain))};
  struct ip_mreq group = {.imr_multiaddr.s_addr = htonl(0xEFFF0001u)};
  memcpy(&group.imr_interface, wire.address[0], sizeof group.imr_interface);
  const int made = open_socket(&any, true);
  if (made < 0) return -1;
  if (setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0 &&
      setsockopt(wire.sockets[0], IPPROTO_IP, IP_MULTICAST_IF, &group.imr_interface, sizeof group.imr_interface) == 0)
    return made;
  (void)close(made);
  return -1;
}

static void close_sockets(void) {
  while (wire.outlet_count > 1) (void)close(wire.outlets[--wire.outlet_count].socket);
  wire.outlet_count = 0;
  for (size_t i = 0; i < 2; i++) {
    if (wire.sockets[i] >= 0) (void)close(wire.sockets[i]);
    wire.sockets[i] = -1;
  }
}

/* The outlet for datagrams of this level. */
static outlet_t *outlet_for(uint8_t level) {
  const uint8_t dscp = tide_rtps_memory.dscp == NULL || level == 0 ? 0 : tide_rtps_memory.dscp(level);
  for (size_t i = 0; i < wire.outlet_count; i++)
    if (wire.outlets[i].dscp == dscp) return &wire.outlets[i];
  if (wire.outlet_count == OUTLETS) return wire.outlets;
  struct sockaddr_in own = {.sin_family = AF_INET}; /* any port */
  memcpy(&own.sin_addr, wire.address[0], sizeof own.sin_addr);
  const int made = open_socket(&own, false);
  const int service = dscp << 2; /* the upper six bits of the octet */
  if (made < 0) return wire.outlets;
  if (setsockopt(made, IPPROTO_IP, IP_TOS, &service, sizeof service) != 0) {
    (void)close(made);
    return wire.outlets;
  }
  wire.outlets[wire.outlet_count] = (outlet_t){.socket = made, .dscp = dscp};
  return &wire.outlets[wire.outlet_count++];
}

static bool is_full(uint8_t level) { return outlet_for(level)->length != 0; }

/* False: the socket's buffer is full. A datagram that is refused for another reason is lost; reliable samples in it are
 * repeated. */
static bool put(const outlet_t *outlet, const uint8_t *bytes, size_t length, const struct sockaddr_in *to) {
  return sendto(outlet->socket, bytes, length, 0, (const struct sockaddr *)to, sizeof *to) >= 0 || errno != EAGAIN;
}

/* A datagram that the full buffer of its socket does not take is kept until there is room, and with it the samples
 * after it, so that histories keep the newest. */
static void send_datagram(const tide_rtps_datagram_t *datagram) {
  outlet_t *outlet = outlet_for(datagram->level);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(datagram->to.port)};
  memcpy(&to.sin_addr, datagram->to.address, sizeof to.sin_addr);
  if (put(outlet, datagram->bytes, datagram->length, &to)) return;
  memcpy(outlet->bytes, datagram->bytes, datagram->length);
  outlet->length = datagram->length;
  outlet->to = to;
}

static void send_kept(void) {
  for (outlet_t *outlet = wire.outlets; outlet < wire.outlets + wire.outlet_count; outlet++)
    if (outlet->length != 0 && put(outlet, outlet->bytes, outlet->length, &outlet->to)) outlet->length = 0;
}

/* Chooses a number that no other participant of this machine has. It counts downwards, because other participants count
 * upwards from 0. */
static bool start(void *context, uint32_t domain, tide_participant_config_t *config) {
  (void)context;
  if (domain > 232) {
    const char *chosen = getenv("ROS_DOMAIN_ID");
    char *end = NULL;
    const unsigned long number = chosen == NULL || *chosen == '\0' ? 0 : strtoul(chosen, &end, 10);
    if (number > 232 || (end != NULL && *end != '\0')) {
      (void)fprintf(stderr, "rtps: ROS_DOMAIN_ID is '%s'; it has to be a number from 0 to 232\n", chosen);
      return false;
    }
    domain = (uint32_t)number;
  }
  config->domain = domain;
  close_sockets();
  for (uint32_t number = PARTICIPANTS; number-- > 0 && wire.sockets[0] < 0;) {
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)TIDE_RTPS_PORT_DISCOVERY(domain, number))};
    memcpy(&own.sin_addr, wire.address[0], sizeof own.sin_addr);
    wire.sockets[0] = open_socket(&own, false);
    config->participant = (uint16_t)number;
  }
  if (wire.sockets[0] < 0) return false;
  wire.outlets[wire.outlet_count++] = (outlet_t){.socket = wire.sockets[0]};
  config->no_multicast = is_loopback();
  if (!is_loopback()) wire.sockets[1] = open_multicast(domain);
  if (!is_loopback() && wire.sockets[1] < 0) return false;
  const int64_t now_ns = clock_ns(CLOCK_REALTIME);
  const uint32_t process = (uint32_t)getpid();
  const uint64_t parts[2] = {TIDE_RTPS_VENDOR >> 8 | (TIDE_RTPS_VENDOR & 0xFFu) << 8 | (uint64_t)process << 16,
                             (uint64_t)now_ns / 1000u};
  memcpy(config->prefix, parts, sizeof config->prefix);
  memcpy(config->address, wire.address[0], sizeof config->address);
  config->known = (const uint8_t(*)[4])wire.address;
  config->known_count = 1;
  config->known_participants = PARTICIPANTS;
  return true;
}

static bool wire_close(struct uxrCustomTransport *transport) {
  (void)transport;
  tide_rtps_datagram_t datagram = {.bytes = wire.sent};
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  tide_rtps_agent_close(&wire.agent, now_ns);
  while (tide_rtps_agent_is_up(&wire.agent) &&
         tide_participant_poll(&wire.agent.participant, now_ns, &datagram)) /* goodbye */
    send_datagram(&datagram);
  close_sockets();
  for (size_t i = 0; i < 2; i++) {
    if (wire.wake[i] >= 0) (void)close(wire.wake[i]);
    wire.wake[i] = -1;
  }
  return true;
}

static size_t wire_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  *error = 0;
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  return tide_rtps_agent_write(&wire.agent, bytes, count, now_ns, clock_ns(CLOCK_REALTIME) - now_ns) ? count : 0;
}

static void receive_some(int64_t now_ns) {
  for (size_t i = 0; i < 2; i++) {
    for (size_t taken = 0; wire.sockets[i] >= 0 && taken < DATAGRAMS_A_READ; taken++) {
      struct sockaddr_in from;
      socklen_t from_bytes = sizeof from;
      const ssize_t length =
          recvfrom(wire.sockets[i], wire.received, sizeof wire.received, 0, (struct sockaddr *)&from, &from_bytes);
      if (length < 0) break; /* nothing has arrived, or an earlier datagram went to a port without a socket */
      uint8_t address[4];
      memcpy(address, &from.sin_addr, sizeof address);
      tide_participant_receive(&wire.agent.participant, wire.received, (size_t)length, address, now_ns);
    }
  }
}

/* True: there is more to send. */
static bool send_some(int64_t now_ns, int64_t *deadline_ns) {
  tide_rtps_datagram_t datagram = {.bytes = wire.sent, .is_full = is_full};
  send_kept();
  for (size_t sent = 0; sent < DATAGRAMS_A_READ; sent++) {
    if (!tide_participant_poll(&wire.agent.participant, now_ns, &datagram)) {
      if (datagram.deadline_ns < *deadline_ns) *deadline_ns = datagram.deadline_ns;
      return false;
    }
    send_datagram(&datagram);
  }
  return true;
}

static bool is_woken(void) {
  uint8_t bytes[64];
  return read(wire.wake[0], bytes, sizeof bytes) > 0;
}

static size_t wire_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                        uint8_t *error) {
  (void)transport;
  *error = 0;
  if (count < tide_rtps_memory.frame_bytes) return 0;
  const int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ms * INT64_C(1000000);
  for (;;) {
    const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t deadline_ns = INT64_MAX;
    bool has_more = false;
    if (tide_rtps_agent_is_up(&wire.agent)) receive_some(now_ns);
    const size_t length = tide_rtps_agent_read(&wire.agent, bytes, now_ns, &deadline_ns);
    if (tide_rtps_agent_is_up(&wire.agent)) has_more = send_some(now_ns, &deadline_ns);
    if (length > 0) return length;
    if (is_woken() || has_more || now_ns >= end_ns) return 0;
    if (deadline_ns > end_ns) deadline_ns = end_ns;
    const int64_t wait_ms = (deadline_ns - now_ns + 999999) / 1000000;
    struct pollfd watched[3 + OUTLETS] = {{.fd = wire.wake[0], .events = POLLIN},
                                          {.fd = wire.sockets[0], .events = POLLIN},
                                          {.fd = wire.sockets[1], .events = POLLIN}};
    nfds_t watched_count = 3;
    for (size_t i = 0; i < wire.outlet_count; i++) {
      if (wire.outlets[i].length != 0)
        watched[watched_count++] = (struct pollfd){.fd = wire.outlets[i].socket, .events = POLLOUT};
    }
    (void)poll(watched, watched_count, wait_ms <= 0 ? 0 : (int)wait_ms);
  }
}

/* A full pipe refuses the octet, but already wakes the reader. */
static void wire_wake(struct uxrCustomTransport *transport) {
  (void)transport;
  (void)!write(wire.wake[1], "", 1);
}

/* True once for each endpoint. Of more than 256 endpoints some share a bit, so that a line may be missing. */
static bool is_first(const tide_rtps_endpoint_t *endpoint) {
  static uint8_t told[32];
  const uint32_t number = endpoint->entity >> 8;
  const uint8_t bit = (uint8_t)(1u << number % 8u);
  const bool is_new = (told[number / 8u % sizeof told] & bit) == 0;
  told[number / 8u % sizeof told] |= bit;
  return is_new;
}

static void print_event(void *context, const tide_rtps_event_t *event) {
  (void)context;
  if (event->kind == TIDE_RTPS_EVENT_PEERS_FULL) { /* the only event without an endpoint */
    (void)fprintf(stderr,
                  "rtps: a participant of the domain gets no entry, because all %u are in use: raise TIDE_RTPS_PEERS\n",
                  tide_rtps_memory.peer_count);
    return;
  }
  const char *topic = event->local->topic;
  const char *end = event->local->is_writer ? "reader" : "writer";
  if (event->kind == TIDE_RTPS_EVENT_MATCHES_FULL) {
    (void)fprintf(stderr,
                  "rtps: %s: a %s of another node gets no entry, because all %u are in use: raise "
                  "TIDE_RTPS_MATCHES\n",
                  topic, end, tide_rtps_memory.match_count);
  } else if (event->kind == TIDE_RTPS_EVENT_INCOMPATIBLE) {
    (void)fprintf(stderr, "rtps: %s: a %s of another node has an incompatible QoS, policy %d\n", topic, end,
                  (int)event->count);
  } else if (event->kind == TIDE_RTPS_EVENT_TOO_LARGE && is_first(event->local)) {
    (void)fprintf(stderr,
                  "rtps: %s: a sample of %d bytes is dropped: raise TIDE_RTPS_SAMPLE_BYTES (now %u) or, for samples to "
                  "this program, TIDE_RTPS_FRAMES or TIDE_MTU_BYTES\n",
                  topic, (int)event->count, (unsigned)tide_rtps_memory.sample_bytes);
  }
}

static bool wire_open(struct uxrCustomTransport *transport) {
  tide_rtps_agent_config_t config = tide_rtps_memory;
  if (config.event == NULL) config.event = print_event;
  config.start = start;
  if (pipe(wire.wake) != 0) return false;
  for (size_t i = 0; i < 2; i++)
    if (fcntl(wire.wake[i], F_SETFL, O_NONBLOCK) != 0) return false;
  transport->wake = wire_wake;
  tide_rtps_agent_init(&wire.agent, &config);
  return true;
}

rmw_ret_t tide_rclc_options_set_rtps(rmw_init_options_t *options, const char *address) {
  struct in_addr parsed;
  if (options == NULL || address == NULL || inet_pton(AF_INET, address, &parsed) != 1) return RMW_RET_INVALID_ARGUMENT;
  memcpy(wire.address[0], &parsed, sizeof wire.address[0]);
  return rmw_uros_options_set_custom_transport(false, NULL, wire_open, wire_close, wire_write, wire_read, options);
}

const tide_rtps_agent_t *tide_rclc_rtps_agent(void) { return &wire.agent; }
