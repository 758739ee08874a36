/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing a sample that is longer than any node of the pool: it is written in pieces while its beginning is sent.
 *
 * The sample takes up to four free nodes, and fewer if these hold the whole sample or 32 frames of it; one node is
 * enough. The nodes are refilled as the agent acknowledges their contents. The sample keeps its position in its
 * reliable stream: samples published meanwhile on the same level follow it, and samples of other levels pass it. No
 * copy is kept, so the sample cannot be sent again. It is delivered when tide_session_long_poll returns TIDE_OK, and
 * lost as a whole if the session ends before.
 *
 * Giving up a partly sent sample ends the session, because XRCE cannot cancel a fragmented message: the agent would
 * join its beginning to the next sample. The session reconnects and sends all other reliable messages again.
 *
 * A length beyond 65,531 does not fit XRCE's 16 bits. Such a length is announced as 0, "to the end of the message", as
 * the stock client and agent do by default.
 *
 * Threads and callbacks may call these functions, for one sample at a time on each level. Cost: that of
 * tide_session_write_* for each node. */
#ifndef TIDE_LONG_WRITE_H
#define TIDE_LONG_WRITE_H

#include "tide/session.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_long_write {
  tide_session_t *session;
  tide_long_message_t message;
  tide_node_t *node; /* the node being filled; null: none is free */
  uint32_t used;     /* octets in that node */
  uint32_t left;     /* octets of the sample not yet in a node */
  uint8_t stream;
} tide_long_write_t;

/* Reserve nodes for a sample of the given length in octets and write its header. TIDE_ERROR_FULL: no node is free, or
 * another long sample of this level is under way. TIDE_ERROR_DISCONNECTED: there is no session, or the writer is not
 * created yet. TIDE_ERROR_REFUSED: the agent refused the writer. TIDE_ERROR_UNSUPPORTED: a runtime without reliable
 * streams, or a lean runtime. */
int tide_session_long_begin(tide_session_t *session, tide_long_write_t *write, uint16_t object,
                            tide_priority_t priority, uint32_t bytes);
/* Returns where to write the next octets, and in *bytes how many fit: 0 when all are written or tide_session_long_flush
 * is due. */
uint8_t *tide_session_long_place(const tide_long_write_t *write, uint32_t *bytes);
/* Report that `bytes` octets were written at the address that tide_session_long_place returned. */
void tide_session_long_wrote(tide_long_write_t *write, uint32_t bytes);
/* Send a full node, or the sample's last node, and acquire the next node. TIDE_ERROR_FULL: no node is free yet; call
 * again when a node has been acknowledged. TIDE_ERROR_DISCONNECTED: the sample is lost with its session. */
int tide_session_long_flush(tide_long_write_t *write);
/* TIDE_OK: the agent has acknowledged the whole sample. TIDE_ERROR_FULL: not yet. TIDE_ERROR_DISCONNECTED: the sample
 * is lost. */
int tide_session_long_poll(const tide_long_write_t *write);
/* A value that changes with each acknowledgment in the sample's stream: a waiting caller gives up when it stops
 * changing. */
uint16_t tide_session_long_progress(const tide_long_write_t *write);
/* Return the nodes. An undelivered sample is given up. */
void tide_session_long_end(tide_long_write_t *write);

TIDE_EXTERN_C_END
#endif
