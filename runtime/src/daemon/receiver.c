/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up, the slots and their heap, reset. */
#include <string.h>

#include "receiver_internal.h"

enum { RANK_BITS = 47 };

static int check_config(const tide_receiver_config_t *config) {
  if (!config->slots || !config->storage || !config->noted_storage || !config->streams) return TIDE_ERROR_ARGUMENT;
  if (config->slot_count < 2u || config->slot_count > UINT16_MAX || config->slot_bytes < 16u ||
      config->slot_bytes > UINT16_MAX)
    return TIDE_ERROR_ARGUMENT;
  if (config->stream_count == 0u || config->window > TIDE_STREAM_WINDOW_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (config->reassembly_count > 0u && !config->reassemblies) return TIDE_ERROR_ARGUMENT;
  return TIDE_STATIC_SESSION || config->on_submessage ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

int tide_receiver_init(tide_receiver_t *r, const tide_receiver_config_t *config) {
  if (!r || !config) return TIDE_ERROR_ARGUMENT;
  const int status = TIDE_CONFIG_CHECKS ? check_config(config) : TIDE_OK;
  if (status != TIDE_OK) return status;
  memset(r, 0, sizeof *r);
  r->config = *config;
  if (r->config.window == 0u) r->config.window = TIDE_STREAM_WINDOW_MAXIMUM;
  r->session = RECEIVER_ANY_SESSION;
  tide_queue_init(&r->noted, config->noted_storage, config->slot_count);
  for (size_t i = 0; i < config->slot_count; ++i)
    config->slots[i] = (tide_slot_t){.bytes = config->storage + i * config->slot_bytes};
  for (size_t i = 0; i < config->stream_count; ++i) config->streams[i].id = 0u;
  for (size_t i = 0; TIDE_FRAGMENTS && i < config->reassembly_count; ++i) {
    config->reassemblies[i].stream = 0u;
    config->reassemblies[i].state = REASSEMBLY_FREE;
    config->reassemblies[i].account = NULL;
  }
  r->filling = &config->slots[0];
  r->filling->state = SLOT_FILLING;
  r->free = (uint16_t)(config->slot_count - 1u);
  r->nobody = (tide_account_t){.wanted = 1u};
  tide_receiver_share_out(r);
  tide_receiver_check(r);
  return TIDE_OK;
}

void tide_receiver_set_session(tide_receiver_t *r, uint8_t session, uint32_t key) {
  r->session = session;
  r->key = key;
}

/* ---- streams, slots and the heap ---- */

extern inline tide_input_stream_t *tide_receiver_find_stream(const tide_receiver_t *r, uint8_t id);

tide_input_stream_t *tide_receiver_take_stream(tide_receiver_t *r, uint8_t id) {
  tide_input_stream_t *stream = tide_receiver_find_stream(r, id);
  if (stream) return stream;
  stream = tide_receiver_find_stream(r, 0u);
  if (stream) {
    tide_input_stream_init(stream, id, r->config.window);
  } else {
    TIDE_COUNT(r->counters.streams_full, 1u);
  }
  return stream;
}

void tide_receiver_enter_heap(tide_receiver_t *r, tide_slot_t *slot) {
  const uint32_t urgency = 0xFFFFu - slot->priority;
  (void)tide_queue_push(&r->noted, &slot->entry, (int64_t)((uint64_t)urgency << RANK_BITS | slot->arrival));
}

void tide_receiver_let_go(tide_receiver_t *r, tide_slot_t *slot) {
  receiver_leave_heap(r, slot);
  if (TIDE_FRAGMENTS) slot->blocked = false;
  if (slot->references == slot->released) {
    tide_receiver_free_slot(r, slot);
  } else {
    slot->state = SLOT_USED;
  }
}

static bool is_ready(const tide_slot_t *slot, const tide_input_stream_t *stream, bool taken, bool partial) {
  if (slot->blocked || taken) return false;
  if (slot->state == SLOT_PARTIAL) return true;
  if (partial || (TIDE_RESERVATIONS && slot->account->full)) return false;
  return slot->state == SLOT_NOTED || (stream && slot->sequence == stream->next);
}

void tide_receiver_refresh_stream(tide_receiver_t *r, uint8_t id) {
  const tide_input_stream_t *stream = tide_receiver_find_stream(r, id);
  bool taken = false, partial = false;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id) continue;
    taken = taken || slot->state == SLOT_TAKEN;
    partial = partial || slot->state == SLOT_PARTIAL;
  }
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id || (!receiver_waits(slot) && slot->state != SLOT_PARTIAL)) continue;
    const bool is_past = receiver_waits(slot) && TIDE_STREAM_IS_RELIABLE(id) && stream &&
                         receiver_distance_from(stream->next, slot->sequence) < 0;
    if (is_past) {
      tide_receiver_let_go(r, slot); /* its sender gave it up meanwhile */
    } else if (is_ready(slot, stream, taken, partial)) {
      tide_receiver_enter_heap(r, slot);
    } else {
      receiver_leave_heap(r, slot);
    }
  }
}

tide_slot_t *tide_receiver_find_slot(const tide_receiver_t *r, uint8_t stream, uint16_t sequence) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream == stream && slot->sequence == sequence &&
        (receiver_waits(slot) || receiver_is_being_delivered(slot)))
      return slot;
  }
  return NULL;
}

/* ---- reset ---- */

void tide_receiver_reset(tide_receiver_t *r) {
  r->withheld = false;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    slot->blocked = false;
    if (slot->state == SLOT_TAKEN) {
      slot->state = SLOT_STALE;
      if (slot->reassembly) slot->reassembly->state = REASSEMBLY_STALE;
    }
    if (receiver_waits(slot) || slot->state == SLOT_PARTIAL) tide_receiver_let_go(r, slot);
  }
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.reassembly_count; ++i) {
    if (r->config.reassemblies[i].state == REASSEMBLY_GROWING)
      tide_receiver_free_reassembly(r, &r->config.reassemblies[i]);
  }
  for (size_t i = 0; i < r->config.stream_count; ++i) r->config.streams[i].id = 0u;
  tide_receiver_check(r);
  if (!TIDE_FRAGMENTS) return;
  memset(r->skipping, 0, sizeof r->skipping);
  memset(r->abandoning, 0, sizeof r->abandoning);
}
