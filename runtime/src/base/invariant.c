/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/invariant.h"

/* Uses no library, like the rest of the runtime, except on a machine with an operating system (CMake's TIDE_HOST). */
#if __STDC_HOSTED__
#include <stdio.h>
#include <stdlib.h>
#endif

#if TIDE_INVARIANTS
__attribute__((weak)) void tide_invariant_failed(const char *condition, const char *file, int line) {
#if __STDC_HOSTED__
  fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  abort();
#else
  (void)condition, (void)file, (void)line;
  __builtin_trap();
#endif
}
#endif
