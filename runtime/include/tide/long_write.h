/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing a sample that is longer than any node of the pool: it is written in pieces while its beginning leaves.
 *
 * The sample takes two nodes (one, if there is no more; up to four where frames are large) and fills them again and
 * again as the agent acknowledges them. In its reliable stream it stands where it began: what is published meanwhile on
 * the same level follows behind it, and other levels pass. Nothing of it is kept, so it cannot be sent again: it is
 * delivered when tide_session_long_poll says TIDE_OK, and given up whole when the session ends before.
 *
 * To give up a sample that has begun costs the session: an agent would join its beginning to the next sample, and XRCE
 * has no word for "no more comes". The session connects again, and everything else that is reliable is sent again.
 *
 * A length beyond 65,531 has no place in XRCE's 16 bits. It is announced as 0, "to the end of the message", as the
 * stock client and agent do by default.
 *
 * From threads and callbacks, one sample at a time on each level. Cost: as tide_session_write_*, for each node. */
#ifndef TIDE_LONG_WRITE_H
#define TIDE_LONG_WRITE_H

#include "tide/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_long_write {
  tide_session_t *session;
  tide_long_message_t message;
  tide_node_t *node; /* being filled; null: none is free */
  uint32_t used;     /* octets in it */
  uint32_t left;     /* octets of the sample that are not in a node yet */
  uint8_t stream;
} tide_long_write_t;

/* Reserve nodes for a sample of so many octets and write its header. TIDE_ERROR_FULL: no node is free, or another long
 * sample of this level is under way. TIDE_ERROR_DISCONNECTED: there is no session, or the writer is not created yet.
 * TIDE_ERROR_REFUSED: the agent refused the writer. TIDE_ERROR_UNSUPPORTED: a runtime without reliable
 * streams, or a lean one. */
int tide_session_long_begin(tide_session_t *session, tide_long_write_t *write, uint16_t object,
                            tide_priority_t priority, uint32_t bytes);
/* Where the next octets go and how many there is room for: 0 when all are written or tide_session_long_flush is due. */
uint8_t *tide_session_long_place(const tide_long_write_t *write, uint32_t *bytes);
/* So many octets were written there. */
void tide_session_long_wrote(tide_long_write_t *write, uint32_t bytes);
/* Send what is full, or the end, and take the next node. TIDE_ERROR_FULL: none has come back; call again when one has.
 * TIDE_ERROR_DISCONNECTED: the sample is lost with its session. */
int tide_session_long_flush(tide_long_write_t *write);
/* TIDE_OK: the agent has acknowledged all of it. TIDE_ERROR_FULL: not yet. TIDE_ERROR_DISCONNECTED: it is lost. */
int tide_session_long_poll(const tide_long_write_t *write);
/* Changes with each acknowledgment in its stream: who waits gives up when it stands still. */
uint16_t tide_session_long_progress(const tide_long_write_t *write);
/* Give the nodes back. What is not delivered is given up. */
void tide_session_long_end(tide_long_write_t *write);

#ifdef __cplusplus
}
#endif
#endif
