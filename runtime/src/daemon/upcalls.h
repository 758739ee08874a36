/* SPDX-License-Identifier: Apache-2.0 */
/* How the halves call whoever joins them: through the pointers of their configurations, or by name, when they are a
 * daemon's and the daemon a session's (TIDE_STATIC_SESSION). */
#ifndef TIDE_DAEMON_UPCALLS_H
#define TIDE_DAEMON_UPCALLS_H

#include "tide/daemon.h"

/* daemon.c */
void tide_daemon_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome);
void tide_daemon_on_control(void *context, const tide_delivery_t *delivery);
void tide_daemon_on_acknowledge(void *context, uint8_t stream, uint16_t first, uint16_t missing);

#if TIDE_STATIC_SESSION
static inline tide_daemon_t *receiver_daemon(const tide_receiver_t *r) {
  return (tide_daemon_t *)((uintptr_t)r - offsetof(tide_daemon_t, receiver));
}
static inline tide_daemon_t *transmitter_daemon(const tide_transmitter_t *t) {
  return (tide_daemon_t *)((uintptr_t)t - offsetof(tide_daemon_t, transmitter));
}
static inline bool receiver_has_priorities(const tide_receiver_t *r) {
  (void)r;
  return true;
}
static inline int32_t receiver_ask_priority(const tide_receiver_t *r, uint8_t stream, tide_xrce_request_t request,
                                            tide_account_t **account) {
  return tide_daemon_owner_priority_of(receiver_daemon(r), stream, request, account);
}
static inline void receiver_tell_submessage(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  tide_daemon_owner_on_submessage(receiver_daemon(r), delivery);
}
static inline bool receiver_has_control(const tide_receiver_t *r) {
  (void)r;
  return true;
}
static inline void receiver_tell_control(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  tide_daemon_on_control(receiver_daemon(r), delivery);
}
static inline void receiver_tell_acknowledge(const tide_receiver_t *r, uint8_t stream, uint16_t first,
                                             uint16_t missing) {
  tide_daemon_on_acknowledge(receiver_daemon(r), stream, first, missing);
}
static inline void transmitter_tell_done(const tide_transmitter_t *t, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_daemon_on_done(transmitter_daemon(t), node, outcome);
}
#else
static inline bool receiver_has_priorities(const tide_receiver_t *r) { return r->config.priority_of != NULL; }
static inline int32_t receiver_ask_priority(const tide_receiver_t *r, uint8_t stream, tide_xrce_request_t request,
                                            tide_account_t **account) {
  return r->config.priority_of(r->config.context, stream, request, account);
}
static inline void receiver_tell_submessage(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  r->config.on_submessage(r->config.context, delivery);
}
static inline bool receiver_has_control(const tide_receiver_t *r) { return r->config.on_control != NULL; }
static inline void receiver_tell_control(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  if (r->config.on_control) r->config.on_control(r->config.context, delivery);
}
static inline void receiver_tell_acknowledge(const tide_receiver_t *r, uint8_t stream, uint16_t first,
                                             uint16_t missing) {
  if (r->config.on_acknowledge) r->config.on_acknowledge(r->config.context, stream, first, missing);
}
static inline void transmitter_tell_done(const tide_transmitter_t *t, tide_node_t *node, tide_node_outcome_t outcome) {
  if (t->config.on_done) t->config.on_done(t->config.context, node, outcome);
}
#endif

#endif
