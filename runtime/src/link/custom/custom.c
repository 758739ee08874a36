/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tide/link_custom.h"
#include "tide/status.h"

#define MILLISECOND_NS INT64_C(1000000)
#define WRITE_ATTEMPTS 100u /* attempts without progress, slice_ms apart, before the message is lost */
#define MESSAGES_A_RUN 16u
#define LONGEST_WAIT_MS 60000 /* longest read with a transport whose read can be ended early */

static const tide_platform_t *platform_of(const tide_custom_link_t *link) { return link->session->daemon.platform; }

static int64_t now_of(const tide_custom_link_t *link) { return tide_platform_now_ns(platform_of(link)); }

/* Called from any context, so it only stores the frame's parts, which stay valid; only run uses the transport. */
static int start(void *context, const tide_frame_parts_t *frame) {
  tide_custom_link_t *link = context;
  const tide_platform_t *platform = platform_of(link);
  const uintptr_t state = tide_platform_enter(platform);
  link->outgoing = frame;
  tide_platform_exit(platform, state);
  tide_custom_link_wake(link);
  return TIDE_OK;
}

void tide_custom_link_wake(tide_custom_link_t *link) {
  if (link->wakes) (void)link->transport.wake(link->transport.context);
}

static const tide_frame_parts_t *take_outgoing(tide_custom_link_t *link) {
  const tide_platform_t *platform = platform_of(link);
  const uintptr_t state = tide_platform_enter(platform);
  const tide_frame_parts_t *frame = link->outgoing;
  link->outgoing = NULL;
  tide_platform_exit(platform, state);
  return frame;
}

/* Concatenates the message's parts: without framing, each write passes one whole message to the transport. */
static int gather(tide_serial_output_t *output, const tide_frame_parts_t *frame) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  uint8_t *place = output->frame;
  if (length > output->capacity) return TIDE_ERROR_TOO_LARGE;
  if (frame->head_bytes > 0u) memcpy(place, frame->head, frame->head_bytes);
  if (frame->body_bytes > 0u) memcpy(place + frame->head_bytes, frame->body, frame->body_bytes);
  if (frame->tail_bytes > 0u) memcpy(place + frame->head_bytes + frame->body_bytes, frame->tail, frame->tail_bytes);
  output->length = length;
  output->written = 0u;
  return TIDE_OK;
}

static void count(tide_custom_link_t *link, uint32_t *counter, uint32_t more) {
  const tide_platform_t *platform = platform_of(link);
  const uintptr_t state = tide_platform_enter(platform);
  *counter += more;
  tide_platform_exit(platform, state);
}

static void end_message(tide_custom_link_t *link, bool sent) {
  count(link, sent ? &link->counters.messages_sent : &link->counters.messages_lost, 1u);
  tide_serial_output_reset(&link->output);
  tide_daemon_on_transmit_complete(&link->session->daemon);
}

/* Passes the rest of the message to the transport. Returns true if the message was sent or lost. */
static bool write_rest(tide_custom_link_t *link) {
  const uint8_t *bytes;
  uint8_t error = 0u;
  const size_t rest = tide_serial_output_rest(&link->output, &bytes);
  const size_t taken = link->transport.write(link->transport.context, bytes, rest, &error);
  link->write_attempts = taken > 0u ? 0u : (uint8_t)(link->write_attempts + 1u);
  link->output.written += taken <= rest ? taken : rest;
  const bool whole = link->output.written == link->output.length;
  if (!whole && (link->transport.framed || taken == 0u) && link->write_attempts < WRITE_ATTEMPTS) return false;
  end_message(link, whole);
  return true;
}

/* Begins the message that was started. Returns false if none was started. */
static bool begin_message(tide_custom_link_t *link) {
  const tide_frame_parts_t *frame = take_outgoing(link);
  if (frame == NULL) return false;
  const int status =
      link->transport.framed ? tide_serial_output_load(&link->output, frame) : gather(&link->output, frame);
  link->write_attempts = 0u;
  if (status != TIDE_OK) end_message(link, false);
  return true;
}

static bool send_some(tide_custom_link_t *link) {
  for (unsigned sent = 0u; sent < MESSAGES_A_RUN; sent++) {
    const bool under_way = link->output.written < link->output.length;
    if (!under_way && !begin_message(link)) return sent > 0u;
    if (link->output.written < link->output.length && !write_rest(link)) return sent > 0u;
  }
  return true;
}

static bool receive_some(tide_custom_link_t *link, int timeout_ms) {
  uint8_t error = 0u;
  const size_t taken =
      link->transport.read(link->transport.context, link->input, link->input_bytes, timeout_ms, &error);
  if (taken == 0u || taken > link->input_bytes) return false;
  count(link, &link->counters.bytes_received, (uint32_t)taken);
  if (link->transport.framed) {
    tide_daemon_on_bytes(&link->session->daemon, link->input, taken);
  } else {
    tide_daemon_on_message(&link->session->daemon, link->input, taken);
  }
  return true;
}

/* While a message is partly written, waits only for slice_ms, after which the rest is offered again. */
static int longest_wait_ms(const tide_custom_link_t *link) {
  const bool under_way = link->output.written < link->output.length;
  return link->wakes && !under_way ? LONGEST_WAIT_MS : (int)link->slice_ms;
}

/* Time until the deadline, or until just after the session's next poll, so that the last fraction of a millisecond does
 * not cause busy waiting. */
static int timeout_until(const tide_custom_link_t *link, int64_t session_ns, int64_t deadline_ns) {
  const int64_t now_ns = now_of(link);
  const int64_t session_left_ns = session_ns - now_ns, deadline_ms = (deadline_ns - now_ns) / MILLISECOND_NS;
  const int64_t session_ms =
      session_left_ns / MILLISECOND_NS + (session_left_ns > 0 && session_left_ns % MILLISECOND_NS != 0 ? 1 : 0);
  const int64_t left_ms = session_ms < deadline_ms ? session_ms : deadline_ms;
  const int longest_ms = longest_wait_ms(link);
  if (left_ms <= 0) return 0;
  return left_ms < longest_ms ? (int)left_ms : longest_ms;
}

void tide_custom_link_run(void *context, int64_t deadline_ns) {
  tide_custom_link_t *link = context;
  if (!link->open || link->running) return;
  link->running = true;
  bool progress;
  do {
    const int64_t session_ns = tide_session_poll(link->session);
    progress = send_some(link);
    progress = receive_some(link, progress ? 0 : timeout_until(link, session_ns, deadline_ns)) || progress;
  } while (!progress && !link->wakes && deadline_ns - now_of(link) >= MILLISECOND_NS);
  link->running = false;
}

static bool is_complete(const tide_custom_transport_t *transport) {
  return transport != NULL && transport->open != NULL && transport->close != NULL && transport->write != NULL &&
         transport->read != NULL;
}

int tide_custom_link_open(tide_custom_link_t *link, tide_session_t *session, const tide_custom_transport_t *transport,
                          uint8_t *storage, size_t storage_bytes) {
  if (link == NULL || session == NULL || storage == NULL || !is_complete(transport)) return TIDE_ERROR_ARGUMENT;
  const size_t message_bytes = session->config.mtu;
  if (storage_bytes < TIDE_CUSTOM_LINK_STORAGE_BYTES(message_bytes)) return TIDE_ERROR_TOO_LARGE;
  memset(link, 0, sizeof *link);
  link->transport = *transport;
  link->session = session;
  link->slice_ms = 1u;
  const size_t output_bytes = TIDE_FRAMING_WORST_BYTES(message_bytes);
  tide_serial_output_init(&link->output, storage, output_bytes, 0u, TIDE_SERIAL_ADDRESS_CLIENT,
                          TIDE_SERIAL_ADDRESS_AGENT);
  link->input = storage + output_bytes;
  link->input_bytes = storage_bytes - output_bytes;
  if (!link->transport.open(link->transport.context)) return TIDE_ERROR_LINK;
  link->wakes = link->transport.wake != NULL && link->transport.wake(link->transport.context);
  link->open = true;
  const tide_link_t functions = {.context = link, .start = start, .heartbeat_floor_ns = TIDE_SERIAL_HEARTBEAT_FLOOR_NS};
  return tide_daemon_attach_link(&session->daemon, &functions, TIDE_SERIAL_ADDRESS_CLIENT);
}

void tide_custom_link_close(tide_custom_link_t *link) {
  if (!link->open) return;
  link->open = false;
  tide_daemon_detach_link(&link->session->daemon);
  (void)link->transport.close(link->transport.context);
}
