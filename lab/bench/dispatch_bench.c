/* SPDX-License-Identifier: Apache-2.0 */
/* Cost of a dispatch, that is, of choosing and starting a callback. Prints nanoseconds. With `--count` it runs one case
 * so that a tool can count its instructions:
 *
 *   valgrind --tool=callgrind --toggle-collect=measured_rounds build/release/bin/dispatch_bench --count tide 100
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "tide/port.h"

#define ROUNDS 10000u
#define ATTEMPTS 5

/* Returns the time of a round in nanoseconds (the best of several tries), or -1 if a round did not run exactly one
 * callback. */
static double measure(tide_policy_t policy, size_t handles) {
  const tide_platform_t *host = tide_port_platform();
  int64_t best_ns = TIDE_FOREVER;
  if (!dispatch_prepare(policy, handles)) {
    return -1.0;
  }
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    const int64_t start_ns = host->now_ns(host->context);
    const uint64_t ran = measured_rounds(ROUNDS);
    const int64_t took_ns = host->now_ns(host->context) - start_ns;
    if (ran != ROUNDS) {
      return -1.0;
    }
    best_ns = took_ns < best_ns ? took_ns : best_ns;
  }
  return (double)best_ns / ROUNDS;
}

static tide_policy_t policy_of(const char *name) {
  return strcmp(name, "batch") == 0      ? TIDE_POLICY_BATCH
         : strcmp(name, "readyset") == 0 ? TIDE_POLICY_READYSET
                                         : TIDE_POLICY_TIDE;
}

static int count_one(const char *policy, const char *handles_text) {
  const size_t handles = (size_t)strtoul(handles_text, NULL, 10);
  if (handles < 1u || handles > DISPATCH_HANDLES_MAXIMUM || !dispatch_prepare(policy_of(policy), handles)) {
    return EXIT_FAILURE;
  }
  const uint64_t ran = measured_rounds(ROUNDS);
  printf("%" PRIu64 " callbacks in %u rounds\n", ran, ROUNDS);
  return ran == ROUNDS ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_table(void) {
  static const size_t sizes[] = {1, 10, 100, 1000};
  bool good = true;
  printf("%8s %12s %12s %12s\n", "timers", "tide ns", "batch ns", "readyset ns");
  for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    const double tide = measure(TIDE_POLICY_TIDE, sizes[index]);
    const double batch = measure(TIDE_POLICY_BATCH, sizes[index]);
    const double readyset = measure(TIDE_POLICY_READYSET, sizes[index]);
    printf("%8zu %12.1f %12.1f %12.1f\n", sizes[index], tide, batch, readyset);
    good = good && tide > 0.0 && batch > 0.0 && readyset > 0.0;
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments) {
  if (count == 4 && strcmp(arguments[1], "--count") == 0) {
    return count_one(arguments[2], arguments[3]);
  }
  if (count != 1) {
    fprintf(stderr, "usage: dispatch_bench [--count tide|batch|readyset HANDLES]\n");
    return 2;
  }
  return print_table();
}
