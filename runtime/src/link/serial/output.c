/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tide/link_serial.h"
#include "tide/status.h"

#define SECOND_NS INT64_C(1000000000)

int64_t tide_serial_duration_ns(size_t bytes, uint32_t baud) {
  if (baud == 0u) return 0;
  const int64_t bits = (int64_t)bytes * (int64_t)TIDE_SERIAL_BITS_A_BYTE;
  const int64_t seconds = bits / baud;
  return seconds * SECOND_NS + (bits % baud * SECOND_NS + baud - 1) / baud;
}

void tide_serial_output_init(tide_serial_output_t *output, uint8_t *storage, size_t capacity, uint32_t baud,
                             uint8_t source, uint8_t destination) {
  memset(output, 0, sizeof *output);
  output->frame = storage;
  output->capacity = capacity;
  output->baud = baud;
  output->source = source;
  output->destination = destination;
}

int tide_serial_output_load(tide_serial_output_t *output, const tide_frame_parts_t *parts) {
  tide_framing_writer_t writer;
  if (output->written < output->length) return TIDE_ERROR_STATE;
  const int status =
      tide_framing_writer_init(&writer, output->source, output->destination, parts->head, parts->head_bytes,
                               parts->body, parts->body_bytes, parts->tail, parts->tail_bytes);
  if (status != TIDE_OK) return status;
  const size_t length = tide_framing_writer_output(&writer, output->frame, output->capacity);
  if (!tide_framing_writer_is_complete(&writer)) return TIDE_ERROR_TOO_LARGE;
  output->length = length;
  output->written = 0u;
  return TIDE_OK;
}

size_t tide_serial_output_rest(const tide_serial_output_t *output, const uint8_t **bytes) {
  *bytes = output->frame + output->written;
  return output->length - output->written;
}

void tide_serial_output_wrote(tide_serial_output_t *output, size_t count, int64_t now_ns) {
  if (output->free_at_ns < now_ns) output->free_at_ns = now_ns;
  output->free_at_ns += tide_serial_duration_ns(count, output->baud);
  output->written += count;
}

int64_t tide_serial_output_complete_ns(const tide_serial_output_t *output) {
  return output->written < output->length ? INT64_MAX : output->free_at_ns;
}

void tide_serial_output_reset(tide_serial_output_t *output) {
  output->length = 0u;
  output->written = 0u;
}
