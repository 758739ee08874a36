// SPDX-License-Identifier: Apache-2.0
// Default options of the sanitizers; those in the environment override them. Findings end a program by abort(), which
// no test can mistake for an error that the program reports itself. Clang 14 reports an overflow when a thread with an
// alternate signal stack ends. Debian's Fast DDS 2.9 deletes its own readers with another size than it allocated.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=1:abort_on_error=1:use_sigaltstack=0:new_delete_type_mismatch=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "print_stacktrace=1:abort_on_error=1"; }

const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "halt_on_error=1:abort_on_error=1"; }
