/* SPDX-License-Identifier: Apache-2.0 */
/* The port's functions about links: which there are, and their memory. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "link.h"
#include "tide/status.h"

tide_posix_link_times_t tide_posix_link_times = {
    .poll_limit_ns = 20000000, .flood_gap_ns = 20000, .gather_ns = 50000, .pause = NULL};

static pthread_mutex_t links_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t link_let_go = PTHREAD_COND_INITIALIZER;
static tide_posix_link_t *links;

static const tide_posix_link_kind_t *kind_of(const tide_link_address_t *address) {
  if (address->kind == TIDE_LINK_SERIAL && address->device != NULL && address->baud > 0u) {
    return &tide_posix_link_serial;
  }
  if (address->host == NULL || address->port == 0u || address->busy_poll_us > TIDE_BUSY_POLL_MAXIMUM_US) return NULL;
  if (address->kind == TIDE_LINK_UDP) return &tide_posix_link_udp;
  return address->kind == TIDE_LINK_TCP ? &tide_posix_link_tcp : NULL;
}

/* take: out of the list, for good, once nobody holds it. */
static tide_posix_link_t *find(tide_session_t *session, bool take) {
  (void)pthread_mutex_lock(&links_mutex);
  tide_posix_link_t **place = &links;
  while (*place != NULL && (*place)->session != session) place = &(*place)->next;
  tide_posix_link_t *link = *place;
  if (take && link != NULL) {
    *place = link->next;
    atomic_store(&link->stop, true);
  }
  while (take && link != NULL && link->holders > 0u) (void)pthread_cond_wait(&link_let_go, &links_mutex);
  (void)pthread_mutex_unlock(&links_mutex);
  return link;
}

tide_posix_link_t *tide_posix_link_hold(const void *wanted) {
  (void)pthread_mutex_lock(&links_mutex);
  tide_posix_link_t *link = links;
  while (link != NULL && link != wanted) link = link->next;
  if (link != NULL) link->holders++;
  (void)pthread_mutex_unlock(&links_mutex);
  return link;
}

void tide_posix_link_let_go(tide_posix_link_t *link) {
  (void)pthread_mutex_lock(&links_mutex);
  link->holders--;
  (void)pthread_cond_broadcast(&link_let_go);
  (void)pthread_mutex_unlock(&links_mutex);
}

static void destroy(tide_posix_link_t *link) {
  if (link->wake_descriptor >= 0) (void)close(link->wake_descriptor);
  (void)pthread_mutex_destroy(&link->mutex);
  (void)pthread_mutex_destroy(&link->receiving);
  free(link->datagram_storage);
  free(link->output.frame);
  free(link);
}

static int64_t busy_poll_ns(const tide_link_address_t *address) {
  if (address->busy_poll_us < 0) return 0;
  return (int64_t)(address->busy_poll_us == 0 ? TIDE_BUSY_POLL_USUAL_US : address->busy_poll_us) * 1000;
}

/* A line's frame, or a batch of datagrams. */
static size_t output_bytes_of(const tide_session_t *session) {
  const size_t frame_bytes = TIDE_FRAMING_WORST_BYTES((size_t)session->config.mtu);
  const size_t batch_bytes = (size_t)session->config.mtu + TIDE_DATAGRAM_BATCH_BYTES;
  return frame_bytes > batch_bytes ? frame_bytes : batch_bytes;
}

static tide_posix_link_t *create(tide_session_t *session, const tide_link_address_t *address,
                                 const tide_posix_link_kind_t *kind) {
  tide_posix_link_t *link = calloc(1u, sizeof *link);
  const size_t output_bytes = output_bytes_of(session);
  uint8_t *storage = malloc(output_bytes);
  uint8_t *datagrams = address->kind == TIDE_LINK_UDP ? malloc(TIDE_POSIX_LINK_DATAGRAM_BYTES) : NULL;
  if (link == NULL || storage == NULL || (address->kind == TIDE_LINK_UDP && datagrams == NULL)) {
    free(datagrams);
    free(storage);
    free(link);
    return NULL;
  }
  pthread_mutexattr_t attributes;
  (void)pthread_mutexattr_init(&attributes);
  (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  (void)pthread_mutex_init(&link->mutex, &attributes);
  (void)pthread_mutex_init(&link->receiving, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
  const bool serial = address->kind == TIDE_LINK_SERIAL;
  const uint8_t ours = (uint8_t)(address->agent_side ? TIDE_SERIAL_ADDRESS_AGENT : TIDE_SERIAL_ADDRESS_CLIENT);
  const uint8_t theirs = (uint8_t)(address->agent_side ? TIDE_SERIAL_ADDRESS_CLIENT : TIDE_SERIAL_ADDRESS_AGENT);
  tide_serial_output_init(&link->output, storage, output_bytes, serial ? address->baud : 0u, ours, theirs);
  link->datagram_storage = datagrams;
  link->kind = kind;
  link->session = session;
  link->address = *address;
  link->descriptor = -1;
  link->wake_descriptor = eventfd(0u, EFD_NONBLOCK | EFD_CLOEXEC);
  link->gather_until_ns = TIDE_FOREVER;
  link->times = tide_posix_link_times;
  atomic_store(&link->asleep_until_ns, TIDE_FOREVER);
  atomic_store(&link->asked_ns, TIDE_FOREVER);
  tide_busy_poll_init(&link->busy_poll, busy_poll_ns(address));
  return link;
}

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  if (session == NULL || address == NULL) return TIDE_ERROR_ARGUMENT;
  tide_link_counters_t counters;
  if (tide_port_link_counters(session, &counters) == TIDE_OK) return TIDE_ERROR_EXISTS;
  if (address->kind == TIDE_LINK_CUSTOM) return tide_posix_custom_open(session, address);
  const tide_posix_link_kind_t *kind = kind_of(address);
  if (kind == NULL) return TIDE_ERROR_ARGUMENT;
  tide_posix_link_t *link = create(session, address, kind);
  if (link == NULL) return TIDE_ERROR_LINK;
  const int status = tide_posix_link_bring_up(link);
  if (status != TIDE_OK) {
    destroy(link);
    return status;
  }
  (void)pthread_mutex_lock(&links_mutex);
  link->next = links;
  links = link;
  (void)pthread_mutex_unlock(&links_mutex);
  return TIDE_OK;
}

void tide_port_close_link(tide_session_t *session) {
  if (tide_posix_custom_close(session)) return;
  tide_posix_link_t *link = find(session, true);
  if (link == NULL) return;
  tide_posix_link_take_down(link);
  destroy(link);
}

void tide_port_wake_link(tide_session_t *session) {
  const tide_platform_t *platform = session->daemon.platform;
  const uintptr_t critical = tide_platform_enter(platform);
  const int64_t due_ns = session->deadline_ns;
  tide_platform_exit(platform, critical);
  (void)pthread_mutex_lock(&links_mutex);
  tide_posix_link_t *link = links;
  while (link != NULL && link->session != session) link = link->next;
  if (link != NULL) tide_posix_link_ask(link, due_ns);
  (void)pthread_mutex_unlock(&links_mutex);
  if (link == NULL) tide_posix_custom_wake(session);
}

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (tide_posix_custom_counters(session, counters)) return TIDE_OK;
  tide_posix_link_t *link = find(session, false);
  if (link == NULL) return TIDE_ERROR_NOT_FOUND;
  (void)pthread_mutex_lock(&link->mutex);
  *counters = link->counters;
  (void)pthread_mutex_unlock(&link->mutex);
  counters->bytes_received = atomic_load_explicit(&link->bytes_received, memory_order_relaxed);
  counters->messages_oversize = atomic_load_explicit(&link->messages_oversize, memory_order_relaxed);
  counters->busy_poll_us = (int32_t)(link->busy_poll.limit_ns / 1000);
  return TIDE_OK;
}
