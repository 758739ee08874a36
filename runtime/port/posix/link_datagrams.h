/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams in batches, for links over UDP: as few system calls as the kernel allows, and a bound on the messages that
 * are chosen but not sent. Client and agent use it.
 *
 * Outgoing: messages are copied into a batch and sent with one sendmmsg. Adjacent messages of equal length to the same
 * address are sent as one train that the kernel splits as late as possible (UDP_SEGMENT, Linux 4.18). Without support
 * for trains the messages are sent one by one. A receiver gets datagrams in either case. Incoming: one recvmmsg; trains
 * that were received whole (UDP_GRO, Linux 5.0) are split here.
 *
 * Blocking term: a message that is more urgent than everything in a batch waits for the rest of that batch. The rest is
 * at most TIDE_DATAGRAMS_A_BATCH messages, and at most TIDE_DATAGRAM_BATCH_BYTES plus the message that exceeded this
 * limit.
 *
 * Not thread-safe: the owner serialises. Nothing allocates. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_DATAGRAMS_A_BATCH 32u
#define TIDE_DATAGRAM_BATCH_BYTES 32768u
#define TIDE_DATAGRAM_BYTES_MAXIMUM 65536u
/* Limit of a socket's datagrams in the kernel on their way to a device; further frames wait where they can be reordered
 * by priority. (On loopback the kernel holds none.) */
#define TIDE_DATAGRAM_SOCKET_BYTES 65536

typedef union tide_socket_address { /* zeroes beyond its family's structure */
  struct sockaddr_in6 v6;           /* the largest member, first, so that {0} clears the union */
  struct sockaddr_in v4;
  struct sockaddr any;
} tide_socket_address_t;

static inline socklen_t tide_socket_address_bytes(const tide_socket_address_t *address) {
  return address->any.sa_family == AF_INET6 ? (socklen_t)sizeof address->v6 : (socklen_t)sizeof address->v4;
}

typedef struct tide_datagram {
  size_t offset, length;    /* in the storage */
  tide_socket_address_t to; /* family 0: the address is the socket's peer */
} tide_datagram_t;

typedef struct tide_datagram_output {
  int descriptor;
  uint8_t *storage;
  size_t storage_bytes;
  size_t bytes;        /* number of bytes used */
  size_t count, first; /* datagrams in the batch, and the first one not sent yet */
  bool trains;         /* the kernel supports trains */
  bool blocked;        /* the kernel did not take the whole batch */
  uint64_t sent, bytes_sent, lost, calls;
  tide_datagram_t datagrams[TIDE_DATAGRAMS_A_BATCH];
} tide_datagram_output_t;

/* storage: at least the longest message plus TIDE_DATAGRAM_BATCH_BYTES, so that a batch that is not full accepts one
 * more message.
 */
void tide_datagram_output_init(tide_datagram_output_t *output, int descriptor, uint8_t *storage, size_t storage_bytes);
/* Where to write the next message; null: the message does not fit (never if the batch is not full and the storage is as
 * above). */
uint8_t *tide_datagram_output_place(const tide_datagram_output_t *output, size_t length);
/* Adds the message written there to the batch. to: null for a connected socket. */
void tide_datagram_output_add(tide_datagram_output_t *output, size_t length, const tide_socket_address_t *to);
bool tide_datagram_output_is_full(const tide_datagram_output_t *output);
/* Sends everything; messages with a permanent error are lost and counted. False: the kernel takes no more now; the next
 * call sends the rest when the socket is writable. */
bool tide_datagram_output_flush(tide_datagram_output_t *output);
/* Drops unsent datagrams; returns their number. */
size_t tide_datagram_output_clear(tide_datagram_output_t *output);

#define TIDE_DATAGRAM_PLACES_MAXIMUM 16u

typedef struct tide_datagram_place {
  struct iovec part; /* a buffer of TIDE_DATAGRAM_BYTES_MAXIMUM; pages are used only when written */
  tide_socket_address_t from;
  union {
    size_t alignment; /* of a cmsghdr */
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
  } control;
} tide_datagram_place_t;

typedef struct tide_datagram_input { /* refers to itself: not to be moved after init */
  int descriptor;
  size_t places;
  uint64_t received, calls;
  struct mmsghdr headers[TIDE_DATAGRAM_PLACES_MAXIMUM];
  tide_datagram_place_t place[TIDE_DATAGRAM_PLACES_MAXIMUM];
} tide_datagram_input_t;

typedef void (*tide_on_datagram_t)(void *context, const uint8_t *bytes, size_t length,
                                   const tide_socket_address_t *from);

/* storage: room for at least one buffer. Makes the kernel deliver whole trains. */
void tide_datagram_input_init(tide_datagram_input_t *input, int descriptor, uint8_t *storage, size_t storage_bytes);
/* One system call; passes on every datagram in order of arrival. True: there may be more. */
bool tide_datagram_input_take(tide_datagram_input_t *input, tide_on_datagram_t on_datagram, void *context);

#ifdef __cplusplus
}
#endif
