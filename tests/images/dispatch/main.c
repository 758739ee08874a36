/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the instructions of a dispatch with 10, 100 and 1,000 timers, of which one is due. The executors are the tide
 * executor, the batch executor, and the tide executor when it watches the deadline of each timer. Run it with -icount
 * shift=5, with which an instruction takes 32 ns. */
#include "board.h"
#include "dispatch.h"
#include "measure.h"
#include "tide/port.h"

#define ROUNDS 1000u

static int measure(const char *name, tide_policy_t policy, size_t handles, bool watched) {
  const tide_platform_t *board = tide_port_platform();
  if (!dispatch_prepare(policy, handles) || (watched && !dispatch_watch(handles))) return 1;
  const int64_t start_ns = board->now_ns(board->context);
  const uint64_t ran = measured_rounds(ROUNDS);
  const int64_t took_ns = board->now_ns(board->context) - start_ns;
  if (ran != ROUNDS) return 2;
  measure_print(name, (int64_t)handles, " timers: ");
  measure_print("", measure_instructions(took_ns / (int64_t)ROUNDS), " instructions\n");
  return 0;
}

int main(void) {
  static const size_t sizes[] = {10, 100, 1000};
  for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    const int tide = measure("tide ", TIDE_POLICY_TIDE, sizes[index], false);
    const int batch = measure("batch ", TIDE_POLICY_BATCH, sizes[index], false);
    if (tide != 0 || batch != 0) return 10 * tide + batch;
  }
  return measure("watched ", TIDE_POLICY_TIDE, DISPATCH_WATCHES_MAXIMUM, true);
}
