/* SPDX-License-Identifier: Apache-2.0 */
/* What a session asks of its daemon: who it is, what of it may be sent now, and whether anything is left. */
#include "daemon_internal.h"
#include "tide/status.h"

void tide_daemon_set_session(tide_daemon_t *d, uint8_t session, uint32_t key) {
  const uintptr_t state = daemon_enter(d);
  tide_transmitter_set_session(&d->transmitter, session, key);
  tide_receiver_set_session(&d->receiver, session, key);
  d->out_of_step = false;
  daemon_leave(d, state);
}

void tide_daemon_reset(tide_daemon_t *d, bool keep) {
  const uintptr_t state = daemon_enter(d);
  tide_transmitter_reset(&d->transmitter, keep);
  tide_receiver_reset(&d->receiver);
  tide_daemon_leave_busy(d, state);
}

int tide_daemon_set_heartbeat_delay(tide_daemon_t *d, int64_t delay_ns) {
  const uintptr_t state = daemon_enter(d);
  const int status = tide_transmitter_set_heartbeat_delay(&d->transmitter, delay_ns);
  daemon_leave(d, state);
  return status;
}

int tide_daemon_set_packing(tide_daemon_t *d, bool pack) {
  if (!TIDE_PACKING && pack) return TIDE_ERROR_UNSUPPORTED;
  const uintptr_t state = daemon_enter(d);
  d->transmitter.config.pack = pack;
  daemon_leave(d, state);
  return TIDE_OK;
}

int tide_daemon_hold_level(tide_daemon_t *d, uint8_t level, bool hold) {
  const uintptr_t state = daemon_enter(d);
  const int status = tide_transmitter_hold_level(&d->transmitter, level, hold);
  tide_daemon_leave_busy(d, state);
  return status;
}

void tide_daemon_pause_streams(tide_daemon_t *d, bool paused) {
  const uintptr_t state = daemon_enter(d);
  tide_transmitter_pause_streams(&d->transmitter, paused);
  tide_daemon_leave_busy(d, state);
}

bool tide_daemon_is_idle(tide_daemon_t *d, uint8_t stream) {
  const uintptr_t state = daemon_enter(d);
  const bool idle = tide_transmitter_is_idle(&d->transmitter, stream);
  daemon_leave(d, state);
  return idle;
}
