/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/trace.h"

#include "tide/status.h"

#define VERSION 1u
#define RECORD_BYTES 16u
#define CHECKSUM_AT 20u
#define ADLER_MODULUS 65521u

_Static_assert(sizeof(tide_trace_record_t) == RECORD_BYTES, "documented in docs/internals/trace.md and trace.h");

int tide_trace_init(tide_trace_ring_t *ring, tide_trace_record_t *records, uint32_t count,
                    tide_trace_instances_t *instances, uint16_t place, uint16_t source) {
  if (!ring || !records || !instances || count < 2u || (count & (count - 1u)) != 0u) return TIDE_ERROR_ARGUMENT;
  *ring = (tide_trace_ring_t){
      .records = records, .instances = instances, .mask = count - 1u, .place = place, .source = source};
  return TIDE_OK;
}

static uint8_t *put_number(uint8_t *to, uint64_t value, unsigned bytes) {
  for (unsigned index = 0u; index < bytes; index++) *to++ = (uint8_t)(value >> (8u * index));
  return to;
}

static uint8_t *put_record(uint8_t *to, const tide_trace_record_t *record) {
  to = put_number(to, (uint64_t)record->time_ns, 8u);
  to = put_number(to, record->instance, 4u);
  to = put_number(to, record->priority, 2u);
  *to++ = record->kind;
  *to++ = record->detail;
  return to;
}

/* Adler-32 (RFC 1950) of the block, computed with its checksum field as 0. */
static uint32_t checksum(const uint8_t *bytes, size_t count) {
  uint32_t low = 1u, high = 0u;
  for (size_t index = 0u; index < count; index++) {
    low = (low + bytes[index]) % ADLER_MODULUS;
    high = (high + low) % ADLER_MODULUS;
  }
  return high << 16 | low;
}

static uint8_t *put_header(const tide_trace_ring_t *ring, uint32_t count, uint8_t *to) {
  static const uint8_t magic[4] = {'T', 'D', 'T', 'R'};
  for (size_t index = 0u; index < sizeof magic; index++) *to++ = magic[index];
  *to++ = VERSION;
  *to++ = RECORD_BYTES;
  to = put_number(to, count, 2u);
  to = put_number(to, ring->place, 2u);
  to = put_number(to, ring->source, 2u);
  to = put_number(to, __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED), 4u);
  to = put_number(to, ring->blocks, 4u);
  return put_number(to, 0u, 4u);
}

static uint32_t room_for_records(size_t capacity) {
  if (capacity < TIDE_TRACE_BLOCK_HEADER_BYTES) return 0u;
  const size_t room = (capacity - TIDE_TRACE_BLOCK_HEADER_BYTES) / RECORD_BYTES;
  return room < TIDE_TRACE_BLOCK_RECORDS ? (uint32_t)room : TIDE_TRACE_BLOCK_RECORDS;
}

size_t tide_trace_next_block(const tide_trace_ring_t *ring, int left_out, uint8_t *bytes, size_t capacity,
                             uint32_t *passed) {
  const uint32_t waiting = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE) - ring->read;
  const uint32_t room = room_for_records(capacity);
  uint8_t *to = bytes + TIDE_TRACE_BLOCK_HEADER_BYTES;
  uint32_t count = 0u, index = 0u;
  for (; index < waiting && count < room; index++) {
    const tide_trace_record_t *record = &ring->records[(ring->read + index) & ring->mask];
    if ((int)TIDE_PRIORITY_LEVEL(record->priority) == left_out) continue;
    to = put_record(to, record);
    count++;
  }
  *passed = index;
  if (count == 0u) return 0u;
  (void)put_header(ring, count, bytes);
  const size_t length = (size_t)(to - bytes);
  (void)put_number(bytes + CHECKSUM_AT, checksum(bytes, length), 4u);
  return length;
}

void tide_trace_pass(tide_trace_ring_t *ring, size_t bytes, uint32_t passed) {
  if (bytes > 0u) ring->blocks++;
  __atomic_store_n(&ring->read, ring->read + passed, __ATOMIC_RELEASE);
}

int tide_trace_drain(tide_trace_ring_t *ring, uint32_t most_blocks, tide_trace_sink_t sink, void *context) {
  uint8_t block[TIDE_TRACE_BLOCK_BYTES];
  int drained = 0;
  for (uint32_t number = 0u; number < most_blocks; number++) {
    uint32_t passed = 0u;
    const size_t bytes = tide_trace_next_block(ring, TIDE_TRACE_ALL_LEVELS, block, sizeof block, &passed);
    if (bytes == 0u) break;
    const int status = sink(context, block, bytes);
    if (status != TIDE_OK) return status;
    tide_trace_pass(ring, bytes, passed);
    drained += (int)passed;
  }
  return drained;
}
