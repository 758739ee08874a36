/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams in batches, for links over UDP: as few system calls as the kernel allows, and a bound on what has been
 * chosen but has not left. Client and agent use it.
 *
 * Out: messages are copied side by side into a batch and leave with one sendmmsg. Neighbours of equal length to the
 * same place leave as one train that the kernel takes apart as late as it can (UDP_SEGMENT, Linux 4.18); where a kernel
 * or a device does not know trains they go one by one. A receiver sees datagrams in any case.
 * In: one recvmmsg, and trains that came through whole (UDP_GRO, Linux 5.0) are taken apart here.
 *
 * The quantum: a message that is more urgent than everything in a batch waits for the rest of that batch: at most
 * TIDE_DATAGRAMS_A_BATCH messages, and at most TIDE_DATAGRAM_BATCH_BYTES and the one message that crossed this line.
 *
 * Not thread-safe: the owner serialises. Nothing allocates. */
#ifndef TIDE_PORT_POSIX_LINK_DATAGRAMS_H
#define TIDE_PORT_POSIX_LINK_DATAGRAMS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_DATAGRAMS_A_BATCH 32u
#define TIDE_DATAGRAM_BATCH_BYTES 32768u
#define TIDE_DATAGRAM_BYTES_MAXIMUM 65536u
/* What the kernel may hold of a socket's datagrams on their way to a device; beyond it, frames wait where they can be
 * chosen by priority. (On loopback the kernel holds none.) */
#define TIDE_DATAGRAM_SOCKET_BYTES 65536

typedef struct tide_datagram {
  size_t offset, length; /* in the storage */
  struct sockaddr_in to; /* family 0: where the socket is connected to */
} tide_datagram_t;

typedef struct tide_datagram_output {
  int descriptor;
  uint8_t *storage;
  size_t storage_bytes;
  size_t bytes;        /* used */
  size_t count, first; /* datagrams in the batch, and the first that has not left */
  bool trains;         /* the kernel takes them */
  bool blocked;        /* the kernel took less than was there */
  uint64_t sent, bytes_sent, lost, calls;
  tide_datagram_t datagrams[TIDE_DATAGRAMS_A_BATCH];
} tide_datagram_output_t;

/* storage: room for the longest message and TIDE_DATAGRAM_BATCH_BYTES, so that a batch that is not full takes one more.
 */
void tide_datagram_output_init(tide_datagram_output_t *output, int descriptor, uint8_t *storage, size_t storage_bytes);
/* Where the next message goes; null: it does not fit (never, when the batch is not full and the storage as above). */
uint8_t *tide_datagram_output_place(const tide_datagram_output_t *output, size_t length);
/* The message that was written there belongs to the batch. to: null for a connected socket. */
void tide_datagram_output_add(tide_datagram_output_t *output, size_t length, const struct sockaddr_in *to);
bool tide_datagram_output_is_full(const tide_datagram_output_t *output);
/* Everything leaves, or is lost for a reason that waiting does not cure (counted). False: the kernel takes no more
 * now; what it left is sent by the next call, when the socket is writable. */
bool tide_datagram_output_flush(tide_datagram_output_t *output);
/* Forget what has not left; returns how many that were. */
size_t tide_datagram_output_clear(tide_datagram_output_t *output);

#define TIDE_DATAGRAM_PLACES_MAXIMUM 16u

typedef struct tide_datagram_input {
  int descriptor;
  uint8_t *storage; /* places of TIDE_DATAGRAM_BYTES_MAXIMUM: pages are used only when they are written */
  size_t places;
  uint64_t received, calls;
} tide_datagram_input_t;

typedef void (*tide_on_datagram_t)(void *context, const uint8_t *bytes, size_t length, const struct sockaddr_in *from);

/* At least one place. Asks the kernel for whole trains. */
void tide_datagram_input_init(tide_datagram_input_t *input, int descriptor, uint8_t *storage, size_t storage_bytes);
/* One system call; every datagram is handed over in the order of its arrival. True: there may be more. */
bool tide_datagram_input_take(tide_datagram_input_t *input, tide_on_datagram_t on_datagram, void *context);

#ifdef __cplusplus
}
#endif
#endif
