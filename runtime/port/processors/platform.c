/* SPDX-License-Identifier: Apache-2.0 */
/* Sections exclude each other while threads are switched on all processors, and no event is lost. */
#include "internal.h"
#include "tide/port.h"

#define SHORT_NS INT64_C(1000000)

static const tide_platform_t *platform;
static uint32_t wanted;
static volatile uint32_t guarded; /* by the section: not atomic */
static uint32_t done, from_interrupts, overlaps;
static volatile bool inside;
static tide_event_t balls[2];
static uint32_t passed, early;
static bool noisy;
static void (*sleep_ms)(uint32_t ms);

static void add_one(void) {
  const uintptr_t outer = platform->critical_enter(platform->context);
  if (inside) overlaps++;
  inside = true;
  const uint32_t before = guarded;
  const uintptr_t inner = platform->critical_enter(platform->context);
  for (volatile unsigned turn = 0; turn < 5u; turn++) {
  }
  platform->critical_exit(platform->context, inner);
  guarded = before + 1u;
  inside = false;
  platform->critical_exit(platform->context, outer);
}

static void run_sections(void *argument) {
  (void)argument;
  for (uint32_t count = 0; count < wanted; count++) {
    add_one();
    (void)__atomic_add_fetch(&done, 1u, __ATOMIC_RELAXED);
  }
}

static void on_interrupt(void) {
  from_interrupts++;
  add_one();
}

/* Two threads that wake each other most of the time: the system switches on all processors. */
static void make_noise(void *argument) {
  tide_event_t *own = &balls[(uintptr_t)argument], *other = &balls[1u - (uintptr_t)argument];
  for (unsigned count = 1; __atomic_load_n(&noisy, __ATOMIC_ACQUIRE); count++) {
    platform->event_set(platform->context, other);
    (void)platform->event_wait(platform->context, own, platform->now_ns(platform->context) + SHORT_NS);
    if (count % 16u == 0u) sleep_ms(1); /* others of one processor run, too */
  }
}

static void try_sections(const tide_processors_board_t *board) {
  noisy = true;
  if (board->start_interrupt != NULL) board->start_interrupt(on_interrupt);
  for (unsigned index = 0; index < 2u; index++) {
    (void)processors_start(index, run_sections, NULL, false);
    (void)processors_start(2u + index, make_noise, (void *)(uintptr_t)index, true);
  }
  bool good = processors_await(0, 2, &done);
  if (board->start_interrupt != NULL) board->stop_interrupt();
  __atomic_store_n(&noisy, false, __ATOMIC_RELEASE);
  good = processors_await(2, 4, &done) && good;
  processors_tell("threads that ended", good, true);
  processors_tell("sections that overlapped another one", overlaps, 0);
  processors_tell("sections of threads and interrupts", guarded, 2u * wanted + from_interrupts);
}

/* Every second pass waits with a deadline, so that a set and the end of a wait meet. */
static void pass(void *argument) {
  const uintptr_t self = (uintptr_t)argument;
  for (uint32_t count = 0; count < wanted; count++) {
    if (self == 0u) platform->event_set(platform->context, &balls[1]);
    bool came = false;
    while (!came) {
      const int64_t end_ns = count % 2u == 0u ? TIDE_FOREVER : platform->now_ns(platform->context) + SHORT_NS / 10;
      came = platform->event_wait(platform->context, &balls[self], end_ns) != 0;
      if (!came && platform->now_ns(platform->context) < end_ns) (void)__atomic_add_fetch(&early, 1u, __ATOMIC_RELAXED);
    }
    if (self == 0u) continue;
    (void)__atomic_add_fetch(&passed, 1u, __ATOMIC_RELAXED);
    platform->event_set(platform->context, &balls[0]);
  }
}

static void try_events(void) {
  for (unsigned index = 0; index < 2u; index++) platform->event_init(platform->context, &balls[index]);
  for (unsigned index = 0; index < 2u; index++)
    (void)processors_start(index, pass, (void *)(uintptr_t)index, index > 0u);
  (void)processors_await(0, 2, &passed);
  processors_tell("waits that ended early", early, 0);
  processors_tell("passes between two threads, none lost", passed, wanted);
}

void processors_try_platform(const tide_processors_board_t *board) {
  platform = tide_port_platform();
  wanted = board->runs;
  sleep_ms = board->sleep_ms;
  for (unsigned index = 0; index < 2u; index++) platform->event_init(platform->context, &balls[index]);
  try_sections(board);
  try_events();
}
