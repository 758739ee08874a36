/* SPDX-License-Identifier: Apache-2.0 */
/* Writes execution times as text; executor.c measures them. */
#include "tide/measure.h"

void tide_measure_init(tide_measure_t *measure, const tide_measure_clock_t *clock) {
  *measure = (tide_measure_t){.clock = *clock};
}

uint64_t tide_measure_ns(const tide_measure_t *measure, uint64_t ticks) {
  const uint64_t hertz = measure->clock.hertz, second_ns = 1000000000u;
  return ticks / hertz * second_ns + (ticks % hertz * second_ns + hertz - 1u) / hertz;
}

typedef struct writer {
  char *text;
  size_t bytes, used;
} writer_t;

static void put(writer_t *writer, char character) {
  if (writer->used + 1u < writer->bytes) writer->text[writer->used++] = character;
}

static void put_text(writer_t *writer, const char *text) {
  while (*text != '\0') put(writer, *text++);
}

static void put_number(writer_t *writer, uint64_t number) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10u);
    number /= 10u;
  } while (number > 0u);
  put(writer, ' ');
  while (count > 0u) put(writer, digits[--count]);
}

size_t tide_measurement_line(const tide_measurement_t *measurement, const tide_measure_t *measure, char *text,
                             size_t bytes) {
  writer_t writer = {text, bytes, 0};
  put_text(&writer, "tide-execution ");
  put_text(&writer, measurement->name == NULL ? "-" : measurement->name);
  put_number(&writer, measurement->count);
  put_number(&writer, tide_measure_ns(measure, measurement->minimum));
  put_number(&writer, tide_measure_ns(measure, measurement->maximum));
  put_number(&writer, tide_measure_ns(measure, measurement->sum));
  put(&writer, '\n');
  if (bytes > 0u) text[writer.used] = '\0';
  return writer.used;
}
