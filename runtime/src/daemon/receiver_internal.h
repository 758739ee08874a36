/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the receiver share.
 * Invariants.
 * There always is a slot to fill. A slot is among the noted frames (the heap) exactly when it could be processed now:
 * it is noted, or held and the next of its stream, or delivered in part; it does not wait for memory; and no other
 * frame of its stream is being delivered. tide_receiver_refresh_stream restores this after any change.
 * A slot that holds a frame is charged to the account of who reads it, or of nobody. free counts the free
 * ones, owed what accounts have reserved beyond what they use; but for a while after an account is opened or closed
 * there are at least as many free as owed.
 * Nothing is believed before its checksum was good: a noted frame takes no place for its stream and moves no window;
 * the worst that a damaged header does is to ask for a message in vain. */
#ifndef TIDE_DAEMON_RECEIVER_INTERNAL_H
#define TIDE_DAEMON_RECEIVER_INTERNAL_H

#include "tide/invariant.h"
#include "tide/receiver.h"
#include "tide/status.h"

enum {
  SLOT_FREE,
  SLOT_FILLING,
  SLOT_NOTED,
  SLOT_HELD,    /* verified, early in its stream or next, not yet delivered */
  SLOT_TAKEN,   /* somebody verifies or delivers it */
  SLOT_STALE,   /* the same, but its session is over */
  SLOT_PARTIAL, /* some of its submessages are delivered */
  SLOT_USED     /* delivered, samples in use */
};
enum { REASSEMBLY_FREE, REASSEMBLY_GROWING, REASSEMBLY_STALE, REASSEMBLY_USED };
enum { RECEIVER_ANY_SESSION = 0xFF };

static inline int16_t receiver_distance_from(uint16_t next, uint16_t sequence) {
  return tide_sequence_distance(sequence, next);
}
static inline bool receiver_get_bit(const uint32_t *bits, uint8_t id) {
  return (bits[id / 32u] >> (id % 32u) & 1u) != 0u;
}
static inline void receiver_set_bit(uint32_t *bits, uint8_t id, bool value) {
  const uint32_t mask = UINT32_C(1) << (id % 32u);
  bits[id / 32u] = value ? bits[id / 32u] | mask : bits[id / 32u] & ~mask;
}

/* One copy serves all where small code counts. */
inline tide_input_stream_t *tide_receiver_find_stream(const tide_receiver_t *r, uint8_t id) {
  for (size_t i = 0; i < r->config.stream_count; ++i)
    if (r->config.streams[i].id == id) return &r->config.streams[i];
  return NULL;
}

static inline bool receiver_waits(const tide_slot_t *slot) {
  return slot->state == SLOT_NOTED || slot->state == SLOT_HELD;
}
static inline bool receiver_is_being_delivered(const tide_slot_t *slot) {
  return slot->state == SLOT_TAKEN || slot->state == SLOT_PARTIAL;
}

static inline void receiver_leave_heap(tide_receiver_t *r, tide_slot_t *slot) {
  tide_queue_remove(&r->noted, &slot->entry);
}

/* receiver_invariants.c */
#if TIDE_INVARIANTS
void tide_receiver_check(const tide_receiver_t *r);
#else
static inline void tide_receiver_check(const tide_receiver_t *r) { (void)r; }
#endif

/* receiver.c */
tide_input_stream_t *tide_receiver_take_stream(tide_receiver_t *r, uint8_t id);
tide_slot_t *tide_receiver_find_slot(const tide_receiver_t *r, uint8_t stream, uint16_t sequence);
void tide_receiver_enter_heap(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_refresh_stream(tide_receiver_t *r, uint8_t id);
void tide_receiver_let_go(tide_receiver_t *r, tide_slot_t *slot); /* what was retained lives on */

/* receiver_accounts.c */
void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account);
void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot); /* back to everybody */
bool tide_receiver_is_over(const tide_account_t *account);           /* uses more than is reserved for it */
void tide_receiver_share_out(tide_receiver_t *r);                    /* of all slots, to all accounts */
/* Slots that frames of this stream can get. */
uint32_t tide_receiver_room(const tide_receiver_t *r, uint8_t stream);

/* receiver_fragments.c; in use, and the account that it is charged to */
void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account);
void tide_receiver_unblock(tide_receiver_t *r); /* what waits for memory looks again */

/* receiver_streams.c */
/* Flags what is missing up to the last frame that was announced, is here, or (suspect) seems to have been sent, as far
 * as there is room for it. What is here and was not looked at yet is neither acknowledged nor flagged. */
void tide_receiver_acknowledge(tide_receiver_t *r, tide_input_stream_t *stream, int16_t suspect);
/* Slots that wait for what was asked for, of this stream or of all others. What is asked for finds a slot: a sender
 * that has sent it again in vain would not do so a third time for a while. */
uint32_t tide_receiver_promised(const tide_receiver_t *r, uint8_t stream, bool others);
/* The frame is here. True: it was asked for. */
bool tide_receiver_keep_promise(const tide_receiver_t *r, uint8_t stream, uint16_t sequence);
/* A slot came free: what could not be asked for before, or gave way, may come now. */
void tide_receiver_ask_withheld(tide_receiver_t *r);
void tide_receiver_hand_on_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                                   size_t position);
/* Its header may be damaged, too, but most likely it is the message that it says: ask for that one. */
void tide_receiver_ask_again(tide_receiver_t *r, uint8_t id, uint16_t sequence);
void tide_receiver_advance(tide_receiver_t *r, tide_input_stream_t *stream); /* its next frame is here */
void tide_receiver_apply_heartbeat(tide_receiver_t *r, const tide_xrce_submessage_t *submessage);

/* receiver_fragments.c */
void tide_receiver_free_reassembly(tide_receiver_t *r, tide_reassembly_t *reassembly);
tide_reassembly_t *tide_receiver_growing(const tide_receiver_t *r, uint8_t stream);
/* The end of a delivery, or a change of the stream: what was given up can be forgotten when nobody works on it. */
void tide_receiver_settle_stream(tide_receiver_t *r, uint8_t id);
/* Finds the memory for the next FRAGMENT in the slot, if there is one. False: it has to wait. */
bool tide_receiver_prepare_fragment(tide_receiver_t *r, tide_slot_t *slot, size_t position);
int tide_receiver_deliver_fragment(tide_receiver_t *r, tide_slot_t *slot, const tide_delivery_t *delivery);
void tide_receiver_finish_reassembly(tide_receiver_t *r, tide_slot_t *slot);

#endif
