/* SPDX-License-Identifier: Apache-2.0 */
/* UDP and TCP links over IPv4. A message is a datagram; on TCP it follows its length in two octets, low first. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "tide/status.h"

#define RECEIVE_BUFFER_BYTES (1 << 20)
/* What the kernel may hold of a TCP connection that has not been sent yet: beyond it, messages wait where they can be
 * chosen by priority. */
#define UNSENT_BYTES 16384
#define CONNECT_TIMEOUT_MS 500
#define LENGTH_BYTES 2u
#define RECEIVE_CALLS_A_TURN 4

static void set_option(int descriptor, int level, int option, int value) {
  (void)setsockopt(descriptor, level, option, &value, (socklen_t)sizeof value);
}

/* 0 when the connection that is being made was made. */
static int finish_connect(int descriptor, int timeout_ms) {
  struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
  int error = 0;
  socklen_t length = (socklen_t)sizeof error;
  if (poll(&wait, 1, timeout_ms) != 1) return -1;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -1;
  return error == 0 ? 0 : -1;
}

static int connect_to(const struct addrinfo *target, int timeout_ms) {
  const int descriptor = socket(target->ai_family, target->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return TIDE_ERROR_LINK;
  set_option(descriptor, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES);
  if (target->ai_socktype == SOCK_STREAM) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES);
  } else {
    set_option(descriptor, SOL_SOCKET, SO_SNDBUF, TIDE_DATAGRAM_SOCKET_BYTES);
  }
  int result = connect(descriptor, target->ai_addr, target->ai_addrlen);
  if (result != 0 && errno == EINPROGRESS) result = finish_connect(descriptor, timeout_ms);
  if (result == 0) return descriptor;
  (void)close(descriptor);
  return TIDE_ERROR_LINK;
}

int tide_posix_link_connect(const tide_link_address_t *address, int type, int timeout_ms) {
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = type};
  struct addrinfo *targets = NULL;
  char service[8];
  (void)snprintf(service, sizeof service, "%u", (unsigned)address->port);
  if (getaddrinfo(address->host, service, &hints, &targets) != 0) return TIDE_ERROR_LINK;
  int descriptor = TIDE_ERROR_LINK;
  for (const struct addrinfo *target = targets; target != NULL && descriptor < 0; target = target->ai_next) {
    descriptor = connect_to(target, timeout_ms);
  }
  freeaddrinfo(targets);
  return descriptor;
}

/* ---- UDP ---- */

static int open_udp(tide_posix_link_t *link) {
  const int descriptor = tide_posix_link_connect(&link->address, SOCK_DGRAM, CONNECT_TIMEOUT_MS);
  if (descriptor < 0) return descriptor;
  tide_datagram_output_init(&link->batch, descriptor, link->output.frame, link->output.capacity);
  tide_datagram_input_init(&link->datagrams, descriptor, link->datagram_storage, TIDE_POSIX_LINK_DATAGRAM_BYTES);
  return descriptor;
}

static int append_udp(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  uint8_t *place = tide_datagram_output_place(&link->batch, length);
  if (place == NULL) return TIDE_ERROR_TOO_LARGE;
  if (frame->head_bytes > 0u) memcpy(place, frame->head, frame->head_bytes);
  if (frame->body_bytes > 0u) memcpy(place + frame->head_bytes, frame->body, frame->body_bytes);
  if (frame->tail_bytes > 0u) memcpy(place + frame->head_bytes + frame->body_bytes, frame->tail, frame->tail_bytes);
  tide_datagram_output_add(&link->batch, length, NULL);
  return TIDE_OK;
}

static void take_datagram(void *context, const uint8_t *bytes, size_t length, const struct sockaddr_in *from) {
  tide_posix_link_t *link = context;
  (void)from; /* the socket is connected */
  const bool oversize = length > link->session->config.mtu;
  tide_posix_link_count_received(link, length, oversize);
  if (length > 0u && !oversize) tide_daemon_on_message(&link->session->daemon, bytes, length);
}

static int receive_udp(tide_posix_link_t *link) {
  const uint64_t before = link->datagrams.received;
  for (int turn = 0; turn < RECEIVE_CALLS_A_TURN; turn++) {
    if (!tide_datagram_input_take(&link->datagrams, take_datagram, link)) break;
  }
  return link->datagrams.received != before ? 1 : 0;
}

const tide_posix_link_kind_t tide_posix_link_udp = {
    .open = open_udp,
    .append = append_udp,
    .receive = receive_udp,
    .survives_errors = true,
};

/* ---- TCP ---- */

static int open_tcp(tide_posix_link_t *link) {
  return tide_posix_link_connect(&link->address, SOCK_STREAM, CONNECT_TIMEOUT_MS);
}

static int load_tcp(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const int status = tide_posix_link_gather(link, frame, LENGTH_BYTES);
  if (status != TIDE_OK) return status;
  const size_t length = link->output.length - LENGTH_BYTES;
  link->output.frame[0] = (uint8_t)length;
  link->output.frame[1] = (uint8_t)(length >> 8);
  return TIDE_OK;
}

/* Hand on the whole messages of the input; returns the bytes that they took. */
static size_t take_messages(tide_posix_link_t *link) {
  size_t place = 0u;
  while (link->input_bytes - place >= LENGTH_BYTES) {
    const uint8_t *message = link->input + place + LENGTH_BYTES;
    const size_t length = (size_t)link->input[place] | (size_t)link->input[place + 1u] << 8;
    if (link->input_bytes - place - LENGTH_BYTES < length) break;
    const bool oversize = length > link->session->config.mtu;
    tide_posix_link_count_received(link, LENGTH_BYTES + length, oversize);
    if (length > 0u && !oversize) {
      tide_daemon_on_message(&link->session->daemon, message, length);
    }
    place += LENGTH_BYTES + length;
  }
  return place;
}

static int receive_tcp(tide_posix_link_t *link) {
  const int count = tide_posix_link_read(link);
  if (count <= 0) return count;
  const size_t taken = take_messages(link);
  link->input_bytes -= taken;
  if (taken > 0u) memmove(link->input, link->input + taken, link->input_bytes);
  return count;
}

const tide_posix_link_kind_t tide_posix_link_tcp = {
    .open = open_tcp,
    .load = load_tcp,
    .push = tide_posix_link_push_stream,
    .receive = receive_tcp,
};
