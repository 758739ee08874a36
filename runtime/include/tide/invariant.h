/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that only a defect of this code can break. CONTRIBUTING.md says which conditions are invariants and which
 * are error codes.
 *
 * TIDE_INVARIANTS selects whether they are checked. The default is 0, for firmware and shipped libraries: no code or
 * text of a check remains. The tests, the simulator and sanitizer builds check them. CMake's option of the same name
 * turns them on everywhere. The value changes no layout and no interface. */
#ifndef TIDE_INVARIANT_H
#define TIDE_INVARIANT_H

#ifndef TIDE_INVARIANTS
#define TIDE_INVARIANTS 0
#endif

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Reports a violated invariant and ends the program. It must not return. The runtime's implementation prints one line
 * on standard error and calls abort; without an operating system it executes the compiler's trap instruction. It is a
 * weak symbol: a port or a program may define its own. It runs in the context in which the check failed, possibly an
 * interrupt or a critical section. */
#ifdef __GNUC__
__attribute__((noreturn))
#endif
void tide_invariant_failed(const char *condition, const char *file, int line);

TIDE_EXTERN_C_END

/* TIDE_INVARIANT(condition): a statement. The condition must have no side effect. With checks off the condition is
 * compiled but not executed, so that variables used only in it are not reported as unused. */
#if TIDE_INVARIANTS
#define TIDE_INVARIANT(condition) ((condition) ? (void)0 : tide_invariant_failed(#condition, __FILE__, __LINE__))
#else
#define TIDE_INVARIANT(condition) ((void)(0 && (condition)))
#endif

#endif
