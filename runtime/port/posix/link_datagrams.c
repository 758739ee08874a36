/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "link_datagrams.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

/* A piece of a train must fit the path's largest packet; 1,472 bytes fit Ethernet. */
#define TRAIN_PIECE_BYTES_MAXIMUM 1472u
#define TRAIN_BYTES_MAXIMUM 60000u

/* ---- out ---- */

void tide_datagram_output_init(tide_datagram_output_t *output, int descriptor, uint8_t *storage, size_t storage_bytes) {
  memset(output, 0, sizeof *output);
  output->descriptor = descriptor;
  output->storage = storage;
  output->storage_bytes = storage_bytes;
  output->trains = true;
}

uint8_t *tide_datagram_output_place(const tide_datagram_output_t *output, size_t length) {
  if (output->count == TIDE_DATAGRAMS_A_BATCH || output->bytes + length > output->storage_bytes) return NULL;
  return output->storage + output->bytes;
}

void tide_datagram_output_add(tide_datagram_output_t *output, size_t length, const tide_socket_address_t *to) {
  tide_datagram_t *datagram = &output->datagrams[output->count++];
  datagram->offset = output->bytes;
  datagram->length = length;
  memset(&datagram->to, 0, sizeof datagram->to);
  if (to != NULL) datagram->to = *to;
  output->bytes += length;
}

bool tide_datagram_output_is_full(const tide_datagram_output_t *output) {
  return output->count == TIDE_DATAGRAMS_A_BATCH || output->bytes >= TIDE_DATAGRAM_BATCH_BYTES;
}

size_t tide_datagram_output_clear(tide_datagram_output_t *output) {
  const size_t left = output->count - output->first;
  output->count = output->first = output->bytes = 0u;
  output->blocked = false;
  return left;
}

typedef struct train {
  struct iovec bytes;
  size_t count; /* number of datagrams */
  _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
} train_t;

static bool is_same_address(const tide_socket_address_t *a, const tide_socket_address_t *b) {
  if (a->any.sa_family != b->any.sa_family) return false;
  if (a->any.sa_family == AF_INET)
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr && a->v4.sin_port == b->v4.sin_port;
  return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0 &&
         a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

/* How many datagrams from `first` on may leave as one: all of equal length, except that the last one may be shorter. */
static size_t train_length(const tide_datagram_output_t *output, size_t first) {
  const tide_datagram_t *head = &output->datagrams[first];
  size_t count = 1u, bytes = head->length;
  if (!output->trains || head->length > TRAIN_PIECE_BYTES_MAXIMUM || head->length == 0u) return 1u;
  while (first + count < output->count) {
    const tide_datagram_t *next = &output->datagrams[first + count];
    if (next->length > head->length || next->length == 0u || bytes + next->length > TRAIN_BYTES_MAXIMUM) break;
    if (!is_same_address(&head->to, &next->to)) break;
    bytes += next->length;
    count++;
    if (next->length < head->length) break;
  }
  return count;
}

static void put_piece_length(struct msghdr *header, train_t *train, uint16_t length) {
  header->msg_control = train->control;
  header->msg_controllen = sizeof train->control;
  struct cmsghdr *control = CMSG_FIRSTHDR(header);
  control->cmsg_level = SOL_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof length);
  memcpy(CMSG_DATA(control), &length, sizeof length);
}

static unsigned make_trains(tide_datagram_output_t *output, struct mmsghdr *headers, train_t *trains) {
  unsigned number = 0u;
  for (size_t first = output->first; first < output->count; first += trains[number - 1u].count) {
    tide_datagram_t *head = &output->datagrams[first];
    train_t *train = &trains[number];
    struct msghdr *header = &headers[number].msg_hdr;
    number++;
    train->count = train_length(output, first);
    const tide_datagram_t *last = &output->datagrams[first + train->count - 1u];
    train->bytes = (struct iovec){output->storage + head->offset, last->offset + last->length - head->offset};
    *header = (struct msghdr){.msg_iov = &train->bytes, .msg_iovlen = 1u};
    if (head->to.any.sa_family != 0) {
      header->msg_name = &head->to;
      header->msg_namelen = tide_socket_address_bytes(&head->to);
    }
    if (train->count > 1u) put_piece_length(header, train, (uint16_t)head->length);
  }
  return number;
}

/* Number of trains that the system accepted; negative: none, and errno has the reason. */
static int send_trains(tide_datagram_output_t *output, train_t *trains) {
  struct mmsghdr headers[TIDE_DATAGRAMS_A_BATCH];
  const unsigned number = make_trains(output, headers, trains);
  return sendmmsg(output->descriptor, headers, number, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The most frequent case, with little preparation. */
static int send_last_one(const tide_datagram_output_t *output, train_t *train) {
  const tide_datagram_t *last = &output->datagrams[output->first];
  const bool connected = last->to.any.sa_family == 0;
  train->count = 1u;
  train->bytes = (struct iovec){output->storage + last->offset, last->length};
  const ssize_t taken = sendto(output->descriptor, train->bytes.iov_base, last->length, MSG_DONTWAIT | MSG_NOSIGNAL,
                               connected ? NULL : &last->to.any, connected ? 0u : tide_socket_address_bytes(&last->to));
  return taken < 0 ? -1 : 1;
}

/* Handles a failed send before the next attempt. The path may not support trains. The error of a single datagram may
 * belong to an earlier datagram (port closed), so a datagram is lost only when it fails twice. */
static void handle_error(tide_datagram_output_t *output, const train_t *train, int error, bool *again) {
  if (train->count > 1u && error != ECONNREFUSED && error != ENOBUFS) {
    output->trains = false;
    return;
  }
  *again = !*again;
  if (*again) return;
  output->lost += train->count;
  output->first += train->count;
}

bool tide_datagram_output_flush(tide_datagram_output_t *output) {
  train_t trains[TIDE_DATAGRAMS_A_BATCH];
  bool again = false;
  while (output->first < output->count) {
    const bool is_last = output->first + 1u == output->count;
    const int taken = is_last ? send_last_one(output, trains) : send_trains(output, trains);
    output->calls++;
    for (int index = 0; index < taken; index++) {
      output->first += trains[index].count;
      output->sent += trains[index].count;
      output->bytes_sent += trains[index].bytes.iov_len;
    }
    if (taken > 0) again = false;
    if (taken > 0 || errno == EINTR) continue;
    output->blocked = errno == EAGAIN || errno == EWOULDBLOCK;
    if (output->blocked) return false;
    handle_error(output, &trains[0], errno, &again);
  }
  (void)tide_datagram_output_clear(output);
  return true;
}

/* ---- in ---- */

void tide_datagram_input_init(tide_datagram_input_t *input, int descriptor, uint8_t *storage, size_t storage_bytes) {
  const int on = 1;
  memset(input, 0, sizeof *input);
  input->descriptor = descriptor;
  input->places = storage_bytes / TIDE_DATAGRAM_BYTES_MAXIMUM;
  if (input->places > TIDE_DATAGRAM_PLACES_MAXIMUM) input->places = TIDE_DATAGRAM_PLACES_MAXIMUM;
  for (size_t number = 0; number < input->places; number++) {
    tide_datagram_place_t *place = &input->place[number];
    place->part = (struct iovec){storage + number * TIDE_DATAGRAM_BYTES_MAXIMUM, TIDE_DATAGRAM_BYTES_MAXIMUM};
    input->headers[number].msg_hdr = (struct msghdr){.msg_name = &place->from,
                                                     .msg_namelen = sizeof place->from,
                                                     .msg_iov = &place->part,
                                                     .msg_iovlen = 1u,
                                                     .msg_control = place->control.bytes,
                                                     .msg_controllen = sizeof place->control};
  }
  (void)setsockopt(descriptor, SOL_UDP, UDP_GRO, &on, sizeof on);
}

/* The length of the pieces of a train; 0 for a single datagram. */
static size_t piece_length(struct msghdr *header) {
  for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control != NULL; control = CMSG_NXTHDR(header, control)) {
    int length = 0;
    if (control->cmsg_level != SOL_UDP || control->cmsg_type != UDP_GRO) continue;
    memcpy(&length, CMSG_DATA(control), sizeof length);
    return length > 0 ? (size_t)length : 0u;
  }
  return 0u;
}

bool tide_datagram_input_take(tide_datagram_input_t *input, tide_on_datagram_t on_datagram, void *context) {
  const int count = recvmmsg(input->descriptor, input->headers, (unsigned)input->places, MSG_DONTWAIT, NULL);
  input->calls++;
  for (int number = 0; number < count; number++) {
    tide_datagram_place_t *place = &input->place[number];
    struct msghdr *header = &input->headers[number].msg_hdr;
    const uint8_t *bytes = place->part.iov_base;
    size_t rest = input->headers[number].msg_len;
    size_t piece = piece_length(header);
    if (piece == 0u) piece = rest;
    do {
      const size_t length = rest < piece ? rest : piece;
      on_datagram(context, bytes, length, &place->from);
      input->received++;
      bytes += length;
      rest -= length;
    } while (rest > 0u);
    header->msg_namelen = sizeof place->from; /* reset, because the kernel overwrites it with the used length */
    header->msg_controllen = sizeof place->control;
    header->msg_flags = 0;
  }
  return count == (int)input->places;
}
