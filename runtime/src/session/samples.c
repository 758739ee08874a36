/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives: DATA in its formats, cut into samples that stay in the frame they came in, and the readers' queues. */
#include "internal.h"

#define SAMPLES_A_FRAME_MAXIMUM 255u /* a slot counts its references in eight bits */

static void retain(tide_session_t *session, const tide_delivery_t *delivery) {
  tide_receiver_retain(&session->daemon.receiver, delivery);
}

/* The place of the queue so many behind the first. */
static tide_sample_t *place_of(const tide_reader_t *reader, size_t behind) {
  const size_t place = reader->first + behind;
  return &reader->samples[place < reader->depth ? place : place - reader->depth];
}

static tide_sample_t *remove_first_locked(tide_reader_t *reader) {
  tide_sample_t *first = &reader->samples[reader->first++];
  if (reader->first == reader->depth) {
    reader->first = 0;
  }
  --reader->count;
  return first;
}

/* Keep last: the oldest gives way. Returns its memory, null when there was room. */
static void *queue_locked(tide_reader_t *reader, const tide_sample_t *sample, bool *reassembled) {
  void *memory = NULL;
  if (reader->count == reader->depth) {
    const tide_sample_t *oldest = remove_first_locked(reader);
    memory = oldest->memory;
    *reassembled = oldest->reassembled;
    ++reader->dropped;
  }
  *place_of(reader, reader->count) = *sample;
  ++reader->count;
  ++reader->received;
  return memory;
}

static void deliver(tide_session_t *session, const tide_delivery_t *delivery, tide_xrce_request_t request,
                    const uint8_t *bytes, size_t length) {
  const bool big_endian = (delivery->submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u;
  const tide_sample_t sample = {bytes,      (uint32_t)length,    delivery->memory, delivery->reassembled,
                                big_endian, delivery->arrived_ns};
  void *oldest = NULL;
  bool reassembled = false;
  const uintptr_t critical = session_enter(session);
  tide_reader_t *reader = tide_session_find_reader_locked(session, request);
  if (reader != NULL) {
    retain(session, delivery);
    oldest = queue_locked(reader, &sample, &reassembled);
    if (TIDE_RESERVATIONS && reader->keep_all && reader->count == reader->depth) {
      tide_receiver_set_full(&session->daemon.receiver, &reader->account, true);
    }
  } else {
    TIDE_COUNT(session->counters.samples_unwanted, 1u);
  }
  session_exit(session, critical);
  if (oldest != NULL) {
    tide_daemon_release(&session->daemon, oldest, reassembled);
  }
  if (reader != NULL && reader->on_sample != NULL) {
    reader->on_sample(reader->context, reader);
  }
}

/* More wait than it keeps, or as many and one more comes; and the oldest is older than a burst. */
static bool has_old_locked(tide_session_t *session, const tide_reader_t *reader, size_t more) {
  if (reader->count == 0u || session_now(session) - place_of(reader, 0)->arrived_ns < TIDE_BURST_NS) return false;
  return tide_receiver_is_behind(&session->daemon.receiver, &reader->account, reader->count + more, true);
}

void tide_session_give_way_locked(tide_session_t *session, tide_reader_t *reader) {
  if (!has_old_locked(session, reader, 1u)) {
    return;
  }
  const tide_sample_t *oldest = remove_first_locked(reader);
  ++reader->dropped;
  tide_receiver_release(&session->daemon.receiver, oldest->memory, oldest->reassembled);
}

/* The frame that is next has room in its reader's queue. Or it, or one behind it, shall replace an old sample. */
static bool is_welcome(void *context, const tide_account_t *account, bool is_first) {
  tide_session_t *session = context;
  if (account == &session->daemon.receiver.nobody) return is_first;
  const tide_reader_t *reader =
      (const tide_reader_t *)(const void *)((const uint8_t *)account - offsetof(tide_reader_t, account));
  return (is_first && reader->count < reader->depth) || has_old_locked(session, reader, 0u);
}

bool tide_session_is_welcome(tide_session_t *session, const tide_frame_share_t *share) {
  const uintptr_t critical = session_enter(session);
  const bool welcome = tide_receiver_any_of(&session->daemon.receiver, share, session, is_welcome);
  session_exit(session, critical);
  return welcome;
}

/* State, sequence number and time offset of one sample: of no use to a ROS 2 subscription. */
static void skip_sample_info(tide_cdr_t *cdr) {
  (void)tide_cdr_get_u8(cdr);
  (void)tide_cdr_get_u32(cdr);
  (void)tide_cdr_get_u32(cdr);
}
static void skip_nothing(tide_cdr_t *cdr) { (void)cdr; }
static void skip_sample_delta(tide_cdr_t *cdr) {
  (void)tide_cdr_get_u8(cdr);
  (void)tide_cdr_get_u8(cdr);
  (void)tide_cdr_get_u16(cdr);
}

static void deliver_rest(tide_session_t *session, const tide_delivery_t *delivery, tide_xrce_request_t request,
                         tide_cdr_t *cdr) {
  const size_t length = tide_cdr_remaining(cdr);
  const uint8_t *bytes = tide_cdr_view(cdr, length);
  if (cdr->status == TIDE_OK) {
    deliver(session, delivery, request, bytes, length);
  }
}

static void deliver_sequence(tide_session_t *session, const tide_delivery_t *delivery, tide_xrce_request_t request,
                             tide_cdr_t *cdr, void (*skip)(tide_cdr_t *cdr)) {
  const uint32_t count = tide_cdr_get_count(cdr, 4);
  for (uint32_t i = 0; i < count && i < SAMPLES_A_FRAME_MAXIMUM; ++i) {
    skip(cdr);
    const uint32_t length = tide_cdr_get_count(cdr, 1);
    const uint8_t *bytes = tide_cdr_view(cdr, length);
    if (cdr->status != TIDE_OK) {
      return;
    }
    deliver(session, delivery, request, bytes, length);
  }
}

void tide_session_on_data(tide_session_t *session, const tide_delivery_t *delivery) {
  const tide_xrce_submessage_t *submessage = &delivery->submessage;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u);
  const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
  bool known = cdr.status == TIDE_OK;
  const uint8_t format = submessage->flags & TIDE_XRCE_FORMAT_MASK;
  const bool supported = TIDE_SAMPLE_SEQUENCES || format == TIDE_XRCE_FORMAT_DATA;
  switch (supported ? format : TIDE_XRCE_FORMAT_MASK + 1) {
    case TIDE_XRCE_FORMAT_DATA:
      deliver_rest(session, delivery, request, &cdr);
      break;
    case TIDE_XRCE_FORMAT_SAMPLE:
      skip_sample_info(&cdr);
      deliver_rest(session, delivery, request, &cdr);
      break;
    case TIDE_XRCE_FORMAT_DATA_SEQUENCE:
      deliver_sequence(session, delivery, request, &cdr, skip_nothing);
      break;
    case TIDE_XRCE_FORMAT_SAMPLE_SEQUENCE:
      deliver_sequence(session, delivery, request, &cdr, skip_sample_info);
      break;
    case TIDE_XRCE_FORMAT_PACKED_SAMPLES:
      skip_sample_info(&cdr);
      deliver_sequence(session, delivery, request, &cdr, skip_sample_delta);
      break;
    default:
      known = false;
      break;
  }
  if (!known || cdr.status != TIDE_OK) {
    const uintptr_t critical = session_enter(session);
    TIDE_COUNT(session->counters.samples_malformed, 1u);
    session_exit(session, critical);
  }
}

static bool pop_locked(tide_reader_t *reader, tide_sample_t *sample) {
  if (reader->count == 0u) {
    return false;
  }
  *sample = *remove_first_locked(reader);
  return true;
}

size_t tide_session_queued(tide_session_t *session, const tide_reader_t *reader) {
  const uintptr_t critical = session_enter(session);
  const size_t count = reader->count;
  session_exit(session, critical);
  return count;
}

const tide_sample_t *tide_session_peek(tide_session_t *session, tide_reader_t *reader) {
  const uintptr_t critical = session_enter(session);
  const bool any = reader->current.memory != NULL || pop_locked(reader, &reader->current);
  const bool resumes = TIDE_RESERVATIONS && reader->account.full && reader->count < reader->depth;
  session_exit(session, critical);
  if (resumes) {
    tide_daemon_resume(&session->daemon, &reader->account);
  }
  return any ? &reader->current : NULL;
}

void tide_session_take_done(tide_session_t *session, tide_reader_t *reader) {
  const uintptr_t critical = session_enter(session);
  const tide_sample_t sample = reader->current;
  reader->current.memory = NULL;
  session_exit(session, critical);
  if (sample.memory != NULL) {
    tide_daemon_release(&session->daemon, sample.memory, sample.reassembled);
  }
}

void tide_session_release_samples(tide_session_t *session, tide_reader_t *reader) {
  tide_session_take_done(session, reader);
  while (tide_session_peek(session, reader) != NULL) {
    tide_session_take_done(session, reader);
  }
}
