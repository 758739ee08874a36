/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves by a link: from the daemon's start to the report of its end. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "tide/status.h"

/* Messages sent in a row before the thread looks at what arrived. */
#define MESSAGES_A_TURN 32
/* A flood starts with so many messages, and ends when so many have leaked away. */
#define FLOOD_MESSAGES 64
#define FLOOD_MESSAGES_MAXIMUM 256
/* The shortest delay of a HEARTBEAT where the transmitter finds it (tide_transmitter_config_t.heartbeat_delay_ns). */
#define HEARTBEAT_LEAST_NS INT64_C(2000000)

/* What a submitter has begun is seen by the thread before it sleeps, or he wakes it: he asks after this. */
void tide_posix_link_leave(tide_posix_link_t *link) {
  const bool waits = link->batch.count > 0u || link->gather_until_ns != TIDE_FOREVER;
  atomic_store(&link->under_way, link->busy || waits);
  (void)pthread_mutex_unlock(&link->mutex);
}

int tide_posix_link_gather(tide_posix_link_t *link, const tide_frame_parts_t *frame, size_t offset) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  if (offset + length > link->output.capacity) return TIDE_ERROR_TOO_LARGE;
  uint8_t *place = link->output.frame + offset;
  if (frame->head_bytes > 0u) memcpy(place, frame->head, frame->head_bytes);
  if (frame->body_bytes > 0u) memcpy(place + frame->head_bytes, frame->body, frame->body_bytes);
  if (frame->tail_bytes > 0u) memcpy(place + frame->head_bytes + frame->body_bytes, frame->tail, frame->tail_bytes);
  link->output.length = offset + length;
  link->output.written = 0u;
  return TIDE_OK;
}

int tide_posix_link_push_stream(tide_posix_link_t *link) {
  const uint8_t *bytes;
  size_t rest = tide_serial_output_rest(&link->output, &bytes);
  while (rest > 0u) {
    const ssize_t count = write(link->descriptor, bytes, rest);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      link->counters.writes_partial++;
      return TIDE_OK;
    }
    if (count < 0) return TIDE_ERROR_LINK;
    tide_serial_output_wrote(&link->output, (size_t)count, tide_posix_link_now_ns());
    link->counters.bytes_sent += (uint64_t)count;
    rest = tide_serial_output_rest(&link->output, &bytes);
  }
  return TIDE_OK;
}

/* ---- datagrams ---- */

static void flush_locked(tide_posix_link_t *link) {
  link->gather_until_ns = TIDE_FOREVER;
  if (link->batch.count == 0u) return;
  const uint64_t lost = link->batch.lost, bytes_sent = link->batch.bytes_sent;
  if (!tide_datagram_output_flush(&link->batch)) link->counters.writes_partial++;
  link->counters.messages_lost += (uint32_t)(link->batch.lost - lost); /* no route, too long: as if lost on the way */
  link->counters.bytes_sent += link->batch.bytes_sent - bytes_sent;
  link->counters.batches++;
}

/* A bucket of the submitters' messages that leaks one in each flood_gap_ns. */
static bool is_flood_locked(tide_posix_link_t *link, int64_t now_ns) {
  const int64_t leaked = (now_ns - link->submitted_ns) / link->times.flood_gap_ns;
  link->recent_messages = leaked < link->recent_messages ? link->recent_messages - leaked + 1 : 1;
  if (link->recent_messages > FLOOD_MESSAGES_MAXIMUM) link->recent_messages = FLOOD_MESSAGES_MAXIMUM;
  link->submitted_ns = now_ns;
  return link->recent_messages >= FLOOD_MESSAGES;
}

/* Only a flood is worth a message's waiting, and only what leaves with the others as one train, so that the call that
 * sends them stays short: the critical section is held. What is more urgent than something that waits leaves at once,
 * and that with it. */
static bool may_wait_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame, int64_t now_ns) {
  const bool flood = is_flood_locked(link, now_ns);
  const tide_datagram_output_t *batch = &link->batch;
  if (!flood || frame->body_bytes == 0u || frame->awaited || !batch->trains) return false;
  if (batch->blocked || tide_datagram_output_is_full(batch)) return false;
  if (batch->count == 1u) {
    link->gather_until_ns = now_ns + link->times.gather_ns;
    link->gathered_priority = frame->priority;
    return true;
  }
  const tide_datagram_t *last = &batch->datagrams[batch->count - 1u];
  if (link->gather_until_ns == TIDE_FOREVER || frame->priority > link->gathered_priority) return false;
  if (last[-1].length != last->length || now_ns >= link->gather_until_ns) return false;
  link->gathered_priority = frame->priority;
  return true;
}

/* The thread's messages leave together when its turn ends. Everybody else's leave now, with what is in the batch
 * before them because numbers in a stream have to rise; the wire waits for nobody who is preempted. */
static int append_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const int status = link->kind->append(link, frame);
  if (status != TIDE_OK) return status;
  const int64_t now_ns = tide_posix_link_now_ns();
  tide_serial_output_wrote(&link->output, 0u, now_ns);
  if (tide_posix_link_is_own_thread(link)) {
    link->gather_until_ns = 0;
  } else if (!may_wait_locked(link, frame, now_ns)) {
    flush_locked(link);
    link->submitted_ns = tide_posix_link_now_ns();
  }
  return TIDE_OK;
}

/* A submitter's datagram that the system has taken, or that waits for others in a flood. While the system takes no
 * more, or the batch is full, the daemon chooses nothing: what waits there can still be overtaken. */
static bool is_gone_locked(const tide_posix_link_t *link) {
  return link->kind->append != NULL && !tide_posix_link_is_own_thread(link) && !link->batch.blocked &&
         !tide_datagram_output_is_full(&link->batch);
}

/* ---- start and end ---- */

static int load_and_push_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const int status = link->kind->load(link, frame);
  return status == TIDE_OK ? link->kind->push(link) : status;
}

static int start_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  if (link->descriptor < 0) return TIDE_ERROR_LINK;
  if (link->busy) return TIDE_ERROR_STATE;
  const int status = link->kind->append != NULL ? append_locked(link, frame) : load_and_push_locked(link, frame);
  link->busy = status == TIDE_OK;
  if (!link->busy) {
    link->counters.messages_lost++;
    tide_serial_output_reset(&link->output);
  }
  return status;
}

static int64_t heartbeat_delay_ns(const tide_posix_link_t *link) {
  const int64_t delay_ns = link->session->daemon.transmitter.config.heartbeat_delay_ns;
  return delay_ns >= 0 && delay_ns < HEARTBEAT_LEAST_NS ? delay_ns : HEARTBEAT_LEAST_NS;
}

/* Where such messages follow each other more quickly than their HEARTBEATs are due, the thread need not be woken for
 * each of them when it wakes that often by itself. The daemon starts one at a time. */
static void note_awaited(tide_posix_link_t *link, int64_t now_ns) {
  if (now_ns - link->awaited_ns < HEARTBEAT_LEAST_NS) {
    atomic_store_explicit(&link->awaiting_until_ns, now_ns + HEARTBEAT_LEAST_NS, memory_order_relaxed);
  }
  link->awaited_ns = now_ns;
}

int64_t tide_posix_link_ask_again_ns(const tide_posix_link_t *link, int64_t now_ns) {
  const bool awaiting = now_ns < atomic_load_explicit(&link->awaiting_until_ns, memory_order_relaxed);
  return awaiting ? now_ns + HEARTBEAT_LEAST_NS : TIDE_FOREVER;
}

/* What the thread has to do about a message that is gone: send it with others, and ask for its acknowledgment if none
 * comes. The session knows when; it is polled by the earliest time there can be. */
static int64_t due_ns(tide_posix_link_t *link, const tide_frame_parts_t *frame, int64_t gather_until_ns) {
  if (!frame->awaited) return gather_until_ns;
  const int64_t now_ns = tide_posix_link_now_ns();
  note_awaited(link, now_ns);
  const int64_t heartbeat_ns = now_ns + heartbeat_delay_ns(link);
  return heartbeat_ns < gather_until_ns ? heartbeat_ns : gather_until_ns;
}

int tide_posix_link_start(void *context, const tide_frame_parts_t *frame) {
  tide_posix_link_t *link = context;
  (void)pthread_mutex_lock(&link->mutex);
  const int status = start_locked(link, frame);
  const bool gone = status == TIDE_OK && is_gone_locked(link);
  if (gone) {
    link->busy = false;
    link->counters.messages_sent++;
  }
  const int64_t gather_until_ns = link->gather_until_ns;
  tide_posix_link_leave(link);
  if (gone) {
    tide_posix_link_ask(link, due_ns(link, frame, gather_until_ns));
    tide_daemon_on_transmit_complete(&link->session->daemon);
  } else if (status == TIDE_OK && !tide_posix_link_is_own_thread(link)) {
    tide_posix_link_wake(link);
  }
  return status;
}

static int64_t complete_ns_locked(const tide_posix_link_t *link) {
  if (!link->busy || link->batch.blocked || tide_datagram_output_is_full(&link->batch)) return TIDE_FOREVER;
  const int64_t complete_ns = tide_serial_output_complete_ns(&link->output);
  return complete_ns < link->drained_check_ns ? link->drained_check_ns : complete_ns;
}

int64_t tide_posix_link_output_due_ns(tide_posix_link_t *link, bool *wants_to_write) {
  *wants_to_write = false;
  if (!atomic_load(&link->under_way)) return TIDE_FOREVER;
  (void)pthread_mutex_lock(&link->mutex);
  const int64_t complete_ns = complete_ns_locked(link);
  const int64_t gather_until_ns = link->batch.blocked ? TIDE_FOREVER : link->gather_until_ns;
  *wants_to_write = link->batch.blocked || (link->busy && link->output.written < link->output.length);
  (void)pthread_mutex_unlock(&link->mutex);
  return complete_ns < gather_until_ns ? complete_ns : gather_until_ns;
}

/* True when the message has left: then it is no longer under way. */
static bool take_complete(tide_posix_link_t *link, int64_t now_ns) {
  (void)pthread_mutex_lock(&link->mutex);
  bool complete = complete_ns_locked(link) <= now_ns;
  if (complete && link->kind->is_drained != NULL && !link->kind->is_drained(link)) {
    link->drained_check_ns = now_ns + tide_serial_duration_ns(1u, link->output.baud);
    complete = false;
  }
  if (complete) {
    const int64_t late_ns = now_ns - tide_serial_output_complete_ns(&link->output);
    if (late_ns > link->counters.complete_late_maximum_ns) link->counters.complete_late_maximum_ns = late_ns;
    link->counters.messages_sent++;
    link->busy = false;
    link->drained_check_ns = 0;
  }
  tide_posix_link_leave(link);
  return complete;
}

bool tide_posix_link_report_complete(tide_posix_link_t *link) {
  for (int count = 0; count < MESSAGES_A_TURN; count++) {
    if (!atomic_load(&link->under_way)) return false;
    if (!take_complete(link, tide_posix_link_now_ns())) return false;
    tide_daemon_on_transmit_complete(&link->session->daemon);
  }
  return true;
}

void tide_posix_link_flush(tide_posix_link_t *link) {
  if (!atomic_load(&link->under_way)) return;
  (void)pthread_mutex_lock(&link->mutex);
  if (link->batch.blocked || link->gather_until_ns <= tide_posix_link_now_ns()) flush_locked(link);
  tide_posix_link_leave(link);
}

void tide_posix_link_push_rest(tide_posix_link_t *link) {
  (void)pthread_mutex_lock(&link->mutex);
  if (link->busy && link->output.written < link->output.length && link->kind->push(link) != TIDE_OK) {
    tide_serial_output_reset(&link->output); /* its end is reported next; the descriptor tells what is wrong with it */
    link->counters.messages_lost++;
  }
  tide_posix_link_leave(link);
}
