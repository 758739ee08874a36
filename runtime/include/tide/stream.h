/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence numbers (RFC 1982 arithmetic on 16 bits) and the receiving half of an XRCE stream: which message to
 * deliver, hold or drop, and what to acknowledge. The stream stores no messages: the caller holds early messages. The
 * sending half is in tide/transmitter.h, where the messages themselves are the history. */
#ifndef TIDE_STREAM_H
#define TIDE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* a - b as a signed distance, for |distance| < 32768. */
static inline int16_t tide_sequence_distance(uint16_t a, uint16_t b) { return (int16_t)(uint16_t)(a - b); }

#define TIDE_STREAM_WINDOW_MAXIMUM 16 /* messages that an ACKNACK can flag */

typedef enum tide_stream_verdict {
  TIDE_STREAM_DELIVER,   /* next in order: deliver it, then call tide_input_stream_advance */
  TIDE_STREAM_HOLD,      /* early, within the window: keep it until the gap is filled */
  TIDE_STREAM_DUPLICATE, /* received before: drop it (acknowledge again) */
  TIDE_STREAM_OUTSIDE    /* beyond the window: drop */
} tide_stream_verdict_t;

typedef struct tide_input_stream {
  uint8_t id;          /* 0: unused element */
  uint8_t window;      /* messages that may be held, 1..16 */
  bool acknowledge;    /* an ACKNACK is due */
  bool withheld;       /* set by the receiver: a missing message had no room, and no retransmission was requested */
  uint16_t asked_from; /* set by the receiver; bit n of asked: a retransmission of asked_from + n was requested */
  uint16_t asked;
  uint16_t next;           /* first message not yet delivered */
  uint16_t last_announced; /* highest sequence number seen or announced by a heartbeat */
  uint16_t oldest; /* first message that the sender can still resend; equal to next unless known to be beyond it */
  uint16_t held;   /* bit n: message next + n is held; bit 0: it can be delivered now */
  uint32_t gaps;   /* best effort: messages that never arrived; reliable: times a gap was detected */
  uint32_t duplicates;
  uint32_t given_up; /* reliable: missing messages that the sender no longer had */
} tide_input_stream_t;

void tide_input_stream_init(tide_input_stream_t *stream, uint8_t id, uint8_t window);
/* Call this when a message of this stream has arrived. Best effort: DELIVER when newer than the last, else DUPLICATE.
 * Reliable: the verdict says what to do; HOLD marks the message as held. Sets acknowledge for every reliable message.
 * O(1). After DELIVER the message counts as missing until tide_input_stream_advance. If it cannot be delivered, drop
 * it, and the peer sends it again. */
tide_stream_verdict_t tide_input_stream_arrive(tide_input_stream_t *stream, uint16_t sequence);
/* Report that the next message was delivered. True: the new next message is held; deliver it, too. */
bool tide_input_stream_advance(tide_input_stream_t *stream);
/* Report that a held message was dropped (overflow): it counts as missing again. */
void tide_input_stream_forget(tide_input_stream_t *stream, uint16_t sequence);
/* A HEARTBEAT arrived: sets acknowledge. Messages that the sender no longer has (next < first) and that are not held
 * are given up: next advances, at most to the first message that is held. Returns their number. When bit 0 of held is
 * set afterwards, deliver that message (next), advance, and so on. Best effort: no effect. */
uint16_t tide_input_stream_heartbeat(tide_input_stream_t *stream, uint16_t first, uint16_t last);
/* Content of the ACKNACK: the first unacknowledged number is next, and bit n of the result says that next + n is
 * missing. The result covers the messages that are known to have been sent and fit the window. */
uint16_t tide_input_stream_missing(const tide_input_stream_t *stream);

TIDE_EXTERN_C_END
#endif
