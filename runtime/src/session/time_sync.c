/* SPDX-License-Identifier: Apache-2.0 */
/* Time synchronisation. An exchange is wrong by at most half its round trip (all the delay on one side), so among the
 * recent ones the quickest is believed. Should a new exchange contradict it by more than both can be wrong, one of the
 * clocks was set: the past is forgotten. */
#include "internal.h"

#define CLOCK_DRIFT_ALLOWANCE_NS 1000000
#define CLOCK_STEP_MOST_NS 10000000 /* of kernels whose clock is a tick */

static void put_timestamp(tide_cdr_t *cdr, const void *body) {
  tide_xrce_put_timestamp(cdr, *(const tide_xrce_time_t *)body);
}

int tide_session_synchronise(tide_session_t *session) {
  if (!TIDE_TIME_SYNC) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  const int64_t now_ns = session_now(session);
  const tide_xrce_time_t originate = tide_xrce_time_from_ns(now_ns);
  const uintptr_t critical = session_enter(session);
  const bool up = session_is_up(session);
  if (up) {
    session->time_sync_sent_ns = now_ns;
    session->time_sync_under_way = true;
  }
  session_exit(session, critical);
  if (!up) {
    return TIDE_ERROR_DISCONNECTED;
  }
  return tide_session_send_control(session, TIDE_XRCE_TIMESTAMP, put_timestamp, &originate, SESSION_OWN_ID,
                                   SESSION_CONTROL_PRIORITY);
}

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

static void note_locked(tide_session_t *session, int64_t offset_ns, int64_t round_trip_ns) {
  const tide_time_sync_t *sync = &session->time_sync;
  const int64_t doubt_ns = (round_trip_ns + sync->round_trip_ns) / 2 + CLOCK_DRIFT_ALLOWANCE_NS;
  if (sync->exchanges > 0u && magnitude(offset_ns - sync->offset_ns) > doubt_ns) {
    session->time_sample_count = session->time_sample_next = 0;
  }
  session->time_samples[session->time_sample_next].offset_ns = offset_ns;
  session->time_samples[session->time_sample_next].round_trip_ns = round_trip_ns;
  session->time_sample_next = (uint8_t)((session->time_sample_next + 1u) % TIDE_SESSION_TIME_SAMPLES);
  if (session->time_sample_count < TIDE_SESSION_TIME_SAMPLES) {
    ++session->time_sample_count;
  }
  uint8_t best = 0;
  for (uint8_t i = 1; i < session->time_sample_count; ++i) {
    if (session->time_samples[i].round_trip_ns < session->time_samples[best].round_trip_ns) {
      best = i;
    }
  }
  session->time_sync.offset_ns = session->time_samples[best].offset_ns;
  session->time_sync.round_trip_ns = session->time_samples[best].round_trip_ns;
  ++session->time_sync.exchanges;
}

void tide_session_on_timestamp_reply(tide_session_t *session, const tide_xrce_timestamp_reply_t *reply,
                                     int64_t arrived_ns) {
  if (!TIDE_TIME_SYNC) return;
  const int64_t sent_ns = tide_xrce_time_to_ns(reply->originate);
  const int64_t agent_received_ns = tide_xrce_time_to_ns(reply->receive);
  const int64_t agent_sent_ns = tide_xrce_time_to_ns(reply->transmit);
  const int64_t measured_ns = (arrived_ns - sent_ns) - (agent_sent_ns - agent_received_ns);
  /* A clock of ticks may not have moved while the agent, whose clock is finer, was at work. */
  const int64_t there_and_back_ns = measured_ns < 0 && measured_ns >= -CLOCK_STEP_MOST_NS ? 0 : measured_ns;
  const uintptr_t critical = session_enter(session);
  if (session->time_sync_under_way && sent_ns == session->time_sync_sent_ns && there_and_back_ns >= 0 &&
      agent_sent_ns >= agent_received_ns) {
    session->time_sync_under_way = false;
    /* Halves are taken of differences: sums of wall clocks would overflow. */
    const int64_t offset_ns = ((agent_received_ns - sent_ns) + (agent_sent_ns - arrived_ns)) / 2;
    note_locked(session, offset_ns, there_and_back_ns);
  } else {
    ++session->time_sync.ignored;
  }
  session_exit(session, critical);
  tide_session_changed(session);
}
