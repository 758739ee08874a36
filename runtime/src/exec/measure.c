/* SPDX-License-Identifier: Apache-2.0 */
/* Runs nest like calls: one that preempts another begins and ends within it. So `inner` is kept as on a stack, whose
 * places are the locals of whoever runs: a run begins with none inside of it, and at its end tells the one around it
 * how long it took. */
#include "tide/measure.h"

#include "exec.h"

void tide_measure_init(tide_measure_t *measure, const tide_measure_clock_t *clock) {
  *measure = (tide_measure_t){.clock = *clock};
}

exec_measured_t tide_exec_measure_begin(const tide_executor_t *executor) {
  tide_measure_t *measure = executor->config.measure;
  const uintptr_t lock = exec_lock(executor);
  const exec_measured_t measured = {.begin = measure->clock.now(measure->clock.context), .around = measure->inner};
  measure->inner = 0u;
  exec_unlock(executor, lock);
  return measured;
}

void tide_exec_measure_end(const tide_executor_t *executor, tide_measurement_t *measurement,
                           const exec_measured_t *measured) {
  tide_measure_t *measure = executor->config.measure;
  const uintptr_t lock = exec_lock(executor);
  const uint64_t whole = (measure->clock.now(measure->clock.context) - measured->begin) & measure->clock.mask;
  const uint64_t own = measure->clock.of_thread ? whole : whole - measure->inner;
  measure->inner = measured->around + whole;
  if (measurement->count == 0u || own < measurement->minimum) {
    measurement->minimum = own;
  }
  if (own > measurement->maximum) {
    measurement->maximum = own;
  }
  measurement->sum += own;
  measurement->count++;
  exec_unlock(executor, lock);
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
  if (writer->used + 1u < writer->bytes) {
    writer->text[writer->used++] = character;
  }
}

static void put_text(writer_t *writer, const char *text) {
  while (*text != '\0') {
    put(writer, *text++);
  }
}

static void put_number(writer_t *writer, uint64_t number) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10u);
    number /= 10u;
  } while (number > 0u);
  put(writer, ' ');
  while (count > 0u) {
    put(writer, digits[--count]);
  }
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
  if (bytes > 0u) {
    text[writer.used] = '\0';
  }
  return writer.used;
}

int tide_executor_get_measurement(tide_executor_t *executor, size_t place, tide_measurement_t *measurement) {
  const uintptr_t lock = exec_lock(executor);
  const bool exists = place < executor->count;
  const tide_measurement_t *found = exists ? executor->config.callbacks[place]->measurement : NULL;
  if (found != NULL) *measurement = *found;
  exec_unlock(executor, lock);
  if (!exists) return TIDE_ERROR_NOT_FOUND;
  return found != NULL;
}
