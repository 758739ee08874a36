/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives: looked at once, then handled at once, noted, or dropped. */
#include "receiver_internal.h"
#include "upcalls.h"

static uint16_t request_part(const uint8_t *bytes) { return (uint16_t)(bytes[0] << 8 | bytes[1]); }

/* ---- what has no stream ---- */

static int handle_control(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                          size_t position) {
  if (!tide_receiver_verify(slot)) {
    TIDE_COUNT(r->counters.checksum_errors, 1u);
    return 0;
  }
  TIDE_COUNT(r->counters.control, 1u);
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  const bool in_session = r->session == RECEIVER_ANY_SESSION || header->session == r->session;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage)) == 1) {
    if (TIDE_RELIABLE_STREAMS && in_session && delivery.submessage.id == TIDE_XRCE_HEARTBEAT)
      tide_receiver_apply_heartbeat(r, &delivery.submessage);
    if (in_session && delivery.submessage.id == TIDE_XRCE_RESET) tide_receiver_reset(r);
    receiver_tell_control(r, &delivery);
  }
  if (more < 0) TIDE_COUNT(r->counters.malformed, 1u);
  return 0;
}

/* ---- what has a stream ---- */

static int32_t priority_of_stream(const tide_slot_t *slot) { return (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8; }

static int32_t priority_of_data(const tide_receiver_t *r, const tide_slot_t *slot, uint8_t id, const uint8_t *body,
                                size_t bytes, tide_account_t **account) {
  if (id != TIDE_XRCE_DATA || bytes < 4u || !receiver_has_priorities(r)) return priority_of_stream(slot);
  const tide_xrce_request_t request = {request_part(body), request_part(body + 2)};
  return receiver_ask_priority(r, slot->stream, request, account);
}

/* A later fragment says nothing about its message: it is as urgent as the one before it. */
static int32_t priority_of_fragment(const tide_receiver_t *r, const tide_slot_t *slot,
                                    const tide_xrce_submessage_t *fragment, tide_account_t **account) {
  if (!TIDE_FRAGMENTS) return priority_of_stream(slot);
  const tide_slot_t *before = tide_receiver_find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (before && before->continues) {
    *account = before->account;
    return before->priority | TIDE_FRAME_OWNER(before->owner);
  }
  const tide_reassembly_t *reassembly = tide_receiver_growing(r, slot->stream);
  if (reassembly) {
    *account = reassembly->account;
    return reassembly->priority | TIDE_FRAME_OWNER(reassembly->owner);
  }
  const tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  const bool is_first = before || slot->sequence == (stream ? stream->next : 0u);
  if (!is_first || fragment->body_bytes < 8u) return priority_of_stream(slot);
  return priority_of_data(r, slot, fragment->body[0], fragment->body + 4, fragment->body_bytes - 4u, account);
}

/* Nothing in it waits for a callback, so it need not wait for the executor. */
static bool has_answers_only(const tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t submessage;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &submessage)) == 1)
    if (submessage.id != TIDE_XRCE_STATUS && submessage.id != TIDE_XRCE_INFO) return false;
  return more == 0;
}

/* The only full look at the header. Returns the frame's own priority or, negative, that nobody wants it. */
static int32_t preprocess(const tide_receiver_t *r, tide_slot_t *slot, const tide_xrce_submessage_t *first,
                          size_t position, tide_account_t **account) {
  slot->continues = false;
  slot->whole = false;
  if (first->id == TIDE_XRCE_FRAGMENT) {
    slot->continues = (first->flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0u;
    const int32_t priority = priority_of_fragment(r, slot, first, account);
    return priority < 0 ? priority_of_stream(slot) : priority;
  }
  const int32_t priority = priority_of_data(r, slot, first->id, first->body, first->body_bytes, account);
  const bool alone = ((position + 3u) & ~(size_t)3u) >= slot->length;
  slot->whole = alone && first->id == TIDE_XRCE_DATA;
  return priority >= 0 || alone ? priority : priority_of_stream(slot);
}

/* A stream keeps its order, so what is before an urgent frame is as urgent as that frame. */
static void pass_on_priority(tide_receiver_t *r, tide_slot_t *slot) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !receiver_waits(other)) continue;
    const bool is_before = tide_sequence_distance(other->sequence, slot->sequence) < 0;
    if (!is_before && other->priority > slot->priority) slot->priority = other->priority;
  }
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !receiver_waits(other)) continue;
    if (tide_sequence_distance(other->sequence, slot->sequence) > 0 || other->priority >= slot->priority) continue;
    other->priority = slot->priority;
    if (!tide_queue_contains(&other->entry)) continue;
    receiver_leave_heap(r, other);
    tide_receiver_enter_heap(r, other);
  }
}

/* ---- eviction ---- */

static int32_t urgency_of(const tide_slot_t *slot) { return priority_of_stream(slot) << 8 | slot->priority; }

/* The waiting frame whose slot is taken when `frame` has arrived and no slot is left for the next one. May be `frame`
 * itself, which waits like all others. Two passes over the slots, as it runs in the critical section for each frame of
 * a flood. */
static tide_slot_t *choose_evicted(const tide_receiver_t *r, const tide_slot_t *frame) {
  const bool frame_is_over = tide_receiver_is_over(frame->account);
  /* Streams that are blocked on a reassembly: their other frames cannot be used until it is free. A bit for each id,
   * collected once: to search the slots again for each candidate would be quadratic. */
  uint32_t blocked[8] = {0u};
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->blocked && receiver_waits(slot)) receiver_set_bit(blocked, slot->stream, true);
  }
  /* The stream that was looked up last: only candidates of one level ask, and a level has one reliable stream. */
  const tide_input_stream_t *stream = NULL;
  uint8_t stream_id = TIDE_XRCE_STREAM_NONE;
  tide_slot_t *of_others = NULL, *own = NULL;

  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!receiver_waits(slot)) continue;
    const bool is_blocked = receiver_get_bit(blocked, slot->stream);
    const bool is_reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);

    /* 1. Who gives. The frame's own account does if no other one has to. */
    const tide_account_t *account = frame->account, *other = slot->account;
    const bool is_own = TIDE_RESERVATIONS && other == account;
    if (is_own && of_others) continue;
    if (TIDE_RESERVATIONS && !is_own) {
      if (!tide_receiver_is_over(other)) continue; /* nobody takes what is reserved */
      const bool follows =
          is_reliable && slot->stream == frame->stream && tide_sequence_distance(slot->sequence, frame->sequence) > 0;
      const bool unblocks = is_blocked && !receiver_get_bit(blocked, frame->stream);
      /* An account that uses less than is reserved for it takes from any that uses more. One that is over takes what
       * cannot be used before the frame, or at all now. Beyond that only one without a reservation takes: from accounts
       * that use more than it does, or as much for something less urgent. */
      if (frame_is_over && !follows && !unblocks) {
        if (account->reserved > 0u || other->used < account->used) continue;
        if (other->used == account->used && urgency_of(slot) >= urgency_of(frame)) continue;
      }
    }

    /* 2. Which of these is first. */
    tide_slot_t **chosen = is_own ? &own : &of_others;
    const tide_slot_t *best = *chosen;
    bool is_first;
    if (!best) {
      is_first = true;
    } else if (is_blocked != receiver_get_bit(blocked, best->stream)) {
      is_first = is_blocked;
    } else if (urgency_of(slot) != urgency_of(best)) {
      /* By level first, as senders choose: a sender that sends nothing less urgent until a level is acknowledged could
       * wait forever for a slot that something less urgent keeps. */
      is_first = urgency_of(slot) < urgency_of(best);
    } else if (is_reliable && slot->stream == best->stream) {
      is_first = tide_sequence_distance(slot->sequence, best->sequence) > 0; /* needed last, and sent again */
    } else {
      bool is_early = false, best_is_early = false;
      if (slot->stream != best->stream) { /* one of them is reliable: it goes first unless it is its turn */
        const tide_slot_t *reliable = is_reliable ? slot : best;
        if (reliable->stream != stream_id) stream = tide_receiver_find_stream(r, reliable->stream);
        stream_id = reliable->stream;
        const bool early = receiver_distance_from(stream ? stream->next : 0u, reliable->sequence) > 0;
        is_early = is_reliable && early;
        best_is_early = !is_reliable && early;
      }
      /* A reader's best-effort frames: keep last. All others: first come, first served. */
      const bool keeps_last = TIDE_RESERVATIONS && other != &r->nobody && !is_reliable;
      const bool by_age = keeps_last ? slot->arrival < best->arrival : slot->arrival > best->arrival;
      is_first = is_early != best_is_early ? is_early : by_age;
    }
    if (is_first) *chosen = slot;
  }
  return of_others ? of_others : own;
}

static void evict(tide_receiver_t *r, tide_slot_t *slot) {
  tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  if (slot->state == SLOT_HELD && stream) tide_input_stream_forget(stream, slot->sequence);
  receiver_leave_heap(r, slot);
  TIDE_COUNT(r->counters.overflow_dropped, 1u);
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) {
    TIDE_COUNT(slot->account->dropped, 1u);
  } else if (stream) {
    if (receiver_distance_from(stream->last_announced, slot->sequence) > 0) stream->last_announced = slot->sequence;
    if (TIDE_RESERVATIONS) stream->withheld = r->withheld = true;
  }
  tide_receiver_discharge(r, slot);
}

static uint32_t missing_before(const tide_receiver_t *r, const tide_slot_t *slot, uint16_t next) {
  uint32_t missing = (uint16_t)(slot->sequence - next);
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *other = &r->config.slots[i];
    const bool is_here = receiver_waits(other) || receiver_is_being_delivered(other);
    if (other == slot || other->stream != slot->stream || !is_here) continue;
    const int16_t ahead = receiver_distance_from(next, other->sequence);
    if (ahead >= 0 && receiver_distance_from(slot->sequence, other->sequence) < 0) missing--;
  }
  return missing;
}

/* Once there was no room for something of a stream, nothing takes the room that what comes before it will need: it
 * would only give way, and be sent a third time. */
static bool comes_too_early(const tide_receiver_t *r, const tide_slot_t *slot) {
  if (!TIDE_RESERVATIONS) return false;
  const tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  if (!TIDE_RELIABLE_STREAMS || !TIDE_STREAM_IS_RELIABLE(slot->stream) || !stream || !stream->withheld) return false;
  return missing_before(r, slot, stream->next) >= tide_receiver_room(r, slot->stream);
}

static tide_slot_t *take_free(tide_receiver_t *r) {
  tide_slot_t *slot = r->config.slots;
  while (slot->state != SLOT_FREE) ++slot;
  TIDE_INVARIANT(r->free > 0u);
  r->free--;
  return slot;
}

/* ---- keep last ---- */

static bool is_short_of_slots(const tide_receiver_t *r) { return r->free <= (TIDE_RESERVATIONS ? r->owed : 0u); }

bool tide_receiver_is_behind(const tide_receiver_t *r, const tide_account_t *account, size_t samples, bool is_old) {
  if (account->keep == 0u) return false;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    samples += slot->account == account && receiver_waits(slot) && !slot->continues ? 1u : 0u;
  }
  const bool is_short = is_short_of_slots(r);
  if (samples > account->keep) return is_old || is_short;
  return is_old && is_short && samples > 1u && TIDE_RESERVATIONS && account->used >= account->reserved;
}

static tide_slot_t *oldest_waiting(const tide_receiver_t *r, const tide_account_t *account) {
  tide_slot_t *oldest = NULL;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    const bool is_one = slot->account == account && receiver_waits(slot) && slot->whole;
    if (is_one && (!oldest || slot->arrival < oldest->arrival)) oldest = slot;
  }
  return oldest;
}

/* The frame is not delivered, but its stream has it: nobody sends it again, and what is behind it does not wait. */
static void pass_over(tide_receiver_t *r, tide_slot_t *slot) {
  const uint8_t id = slot->stream;
  const uint16_t sequence = slot->sequence;
  const bool is_good = tide_receiver_verify(slot), has_arrived = slot->arrived;
  if (is_good) TIDE_COUNT(slot->account->dropped, 1u);
  tide_receiver_let_go(r, slot);
  if (!is_good) {
    tide_receiver_ask_again(r, id, sequence);
  } else if (TIDE_STREAM_IS_RELIABLE(id)) {
    tide_input_stream_t *stream = tide_receiver_take_stream(r, id);
    const bool is_next = stream && sequence == stream->next;
    if (stream && !has_arrived) (void)tide_input_stream_arrive(stream, sequence);
    if (is_next) tide_receiver_advance(r, stream);
  }
  tide_receiver_settle_stream(r, id);
}

/* A reader that keeps the last few is slower than what comes: the oldest that wait beyond these give way. So neither
 * they nor their streams hold up what is newer. Those of the last TIDE_BURST_NS stay while there are slots to spare. */
static void keep_last(tide_receiver_t *r, const tide_account_t *account, int64_t now_ns) {
  for (tide_slot_t *oldest; account->keep > 0u && (oldest = oldest_waiting(r, account)) != NULL;) {
    if (!tide_receiver_is_behind(r, account, 0u, now_ns - oldest->arrived_ns >= TIDE_BURST_NS)) return;
    pass_over(r, oldest);
  }
}

/* The frame that arrived is noted: the next one needs a slot. */
static void replace_filling(tide_receiver_t *r, bool was_asked_for) {
  const uint32_t promised = was_asked_for ? 0u : tide_receiver_promised(r, r->filling->stream, true);
  const bool has_room = r->free > (tide_receiver_is_over(r->filling->account) ? r->owed + promised : 0u);
  const bool is_early = !was_asked_for && comes_too_early(r, r->filling);
  tide_slot_t *chosen = is_early ? r->filling : has_room ? take_free(r) : choose_evicted(r, r->filling);
  if (is_early || !has_room) evict(r, chosen);
  chosen->state = SLOT_FILLING;
  chosen->blocked = false;
  r->filling = chosen;
}

/* Reliable frames that cannot be of use are dropped at once. */
static bool is_useless(tide_receiver_t *r, const tide_slot_t *slot, tide_input_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) return false;
  const int16_t ahead = receiver_distance_from(stream ? stream->next : 0u, slot->sequence);
  if (ahead < 0 || tide_receiver_find_slot(r, slot->stream, slot->sequence)) {
    TIDE_COUNT(r->counters.duplicates, 1u);
    /* Nothing is asked for here: who sends again at each question would answer each answer with another copy. */
    if (stream && ahead < 0) receiver_tell_acknowledge(r, stream->id, stream->next, 0u);
    return true;
  }
  if (ahead < (int16_t)r->config.window) return false;
  TIDE_COUNT(r->counters.outside_window, 1u);
  return true;
}

/* Answers in their stream's order are handled where they came in, whatever has taken the slots: without them a client
 * that connects again while data floods in could not go on. Best-effort ones have no place in their stream to keep.
 * False: it has to wait like any other frame. */
static bool handle_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                           size_t position) {
  tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  const bool reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);
  if (reliable && slot->sequence != (stream ? stream->next : 0u)) return false;
  if (!tide_receiver_verify(slot)) {
    tide_receiver_ask_again(r, slot->stream, slot->sequence);
    return true;
  }
  if (reliable) {
    stream = tide_receiver_take_stream(r, slot->stream);
    if (!stream) return true;
    (void)tide_input_stream_arrive(stream, slot->sequence);
  }
  tide_receiver_hand_on_answers(r, slot, header, position);
  if (reliable) {
    tide_receiver_advance(r, stream);
    tide_receiver_refresh_stream(r, stream->id);
  }
  return true;
}

static int note(tide_receiver_t *r, tide_slot_t *slot, const tide_xrce_header_t *header, size_t position) {
  tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  tide_xrce_submessage_t first;
  const size_t start = position;
  if (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &first) != 1) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return 0;
  }
  if (is_useless(r, slot, stream)) return 0;
  slot->answers = receiver_has_control(r) && has_answers_only(slot, start);
  if (slot->answers && handle_answers(r, slot, header, start)) return 0;
  const bool was_asked_for = TIDE_RELIABLE_STREAMS && tide_receiver_keep_promise(r, slot->stream, slot->sequence);
  tide_account_t *account = &r->nobody;
  int32_t priority = preprocess(r, slot, &first, position, &account);
  slot->unwanted = priority < 0;
  if (slot->unwanted) TIDE_COUNT(r->counters.unwanted, 1u);
  if (slot->unwanted && !TIDE_STREAM_IS_RELIABLE(slot->stream)) return 0;
  if (slot->unwanted) priority = priority_of_stream(slot);
  slot->priority = (tide_priority_t)(priority & 0xFFFF);
  slot->owner = (uint8_t)(priority >> 16);
  slot->state = SLOT_NOTED;
  slot->arrival = r->next_arrival++;
  slot->arrived = false;
  slot->position = 0u;
  slot->references = 0u;
  slot->released = 0u;
  TIDE_COUNT(r->counters.noted, 1u);
  tide_receiver_charge(r, slot, account);
  pass_on_priority(r, slot);
  tide_receiver_refresh_stream(r, slot->stream);
  keep_last(r, account, slot->arrived_ns);
  const bool reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);
  const bool reveals_gap = reliable && stream && slot->sequence != stream->next &&
                           !tide_receiver_find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (reveals_gap) tide_receiver_acknowledge(r, stream, -1);
  replace_filling(r, was_asked_for);
  return r->filling == slot ? 0 : 1;
}

static bool is_foreign(const tide_receiver_t *r, const tide_xrce_header_t *header) {
  if (r->session == RECEIVER_ANY_SESSION) return false;
  if (r->session == TIDE_XRCE_SESSION_NONE_WITHOUT_KEY) return header->stream != TIDE_XRCE_STREAM_NONE;
  if (header->session == r->session) return tide_xrce_session_has_key(header->session) && header->key != r->key;
  return !tide_xrce_is_no_session(header->session) || header->stream != TIDE_XRCE_STREAM_NONE;
}

uint8_t *tide_receiver_claim(tide_receiver_t *r) { return r->filling->bytes; }

static int commit(tide_receiver_t *r, uint16_t length, bool verify, uint16_t crc, int64_t now_ns) {
  tide_slot_t *slot = r->filling;
  tide_xrce_header_t header;
  TIDE_COUNT(r->counters.frames, 1u);
  const int position =
      length > r->config.slot_bytes ? TIDE_ERROR_MALFORMED : tide_xrce_get_header(slot->bytes, length, &header);
  if (position < 0) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return 0;
  }
  if (is_foreign(r, &header)) {
    TIDE_COUNT(r->counters.foreign_session, 1u);
    return 0;
  }
  slot->length = length;
  slot->verify = verify;
  slot->crc = crc;
  slot->arrived_ns = now_ns;
  slot->stream = header.stream;
  slot->sequence = header.sequence;
  if (header.stream == TIDE_XRCE_STREAM_NONE) return handle_control(r, slot, &header, (size_t)position);
  return note(r, slot, &header, (size_t)position);
}

int tide_receiver_commit(tide_receiver_t *r, uint16_t length, bool verify, uint16_t crc, int64_t now_ns) {
  const int noted = commit(r, length, verify, crc, now_ns);
  tide_receiver_check(r);
  return noted;
}
