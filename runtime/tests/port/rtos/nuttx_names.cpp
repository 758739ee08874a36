// SPDX-License-Identifier: Apache-2.0
// The names of NuttX on the fake kernel: it records each switch, its watchdog runs at ticks of 1 ms, and the
// platform's section is a mutex, not a mask.
#include "nuttx_names.h"

#include <gtest/gtest.h>

#include <map>

#include "tide/port.h"

FakeNuttx nuttx;

namespace {
constexpr int64_t TICK_NS = 1'000'000;
note_driver_s *notes;  // stays registered, as in NuttX
bool in_note;
unsigned sections, events;
int posts;
FakeKernel::Task *waiting;
struct {
  int policy, priority;
} next;
size_t next_stack;

FakeKernel::Task &task_of(pthread_t thread) { return *reinterpret_cast<FakeKernel::Task *>(thread); }

int64_t now_ns(void *) { return fake->now_ns; }
uintptr_t critical_enter(void *) {
  EXPECT_EQ(fake->masked, 0u) << "it may wait";
  return sections++;
}
void critical_exit(void *, uintptr_t) { sections--; }
void event_init(void *, tide_event_t *event) { *event = {}; }
void event_set(void *, tide_event_t *event) {
  EXPECT_EQ(fake->masked, 0u) << "it may wait";
  events++;
  event->state = 1;
  if (event->port != nullptr) fake->wake(*static_cast<FakeKernel::Task *>(event->port));
  event->port = nullptr;
  fake->choose();
}
int event_wait(void *, tide_event_t *event, int64_t deadline_ns) {
  while (event->state == 0 && fake->now_ns < deadline_ns) {
    event->port = fake->current;
    fake->block(deadline_ns);
  }
  event->port = nullptr;
  const bool set = event->state != 0;
  event->state = 0;
  return set ? 1 : 0;
}
}  // namespace

tcb_s &tcb_of(FakeKernel::Task &task) {
  static std::map<const FakeKernel::Task *, tcb_s> blocks;
  static FakeKernel *of;
  if (of != fake) blocks.clear();
  of = fake;
  const auto known = blocks.find(&task);
  if (known != blocks.end()) return known->second;
  const auto priority = static_cast<uint8_t>(task.priority);
  return blocks[&task] = {.sched_priority = priority, .base_priority = priority}, blocks[&task];
}

extern "C" {
const tide_platform_t *tide_port_platform(void) {
  static tide_platform_t platform{};
  platform.now_ns = now_ns;
  platform.critical_enter = critical_enter;
  platform.critical_exit = critical_exit;
  platform.event_init = event_init;
  platform.event_set = event_set;
  platform.event_wait = event_wait;
  EXPECT_EQ(fake->masked, 0u) << "it may wait";
  return &platform;
}
bool tide_port_in_interrupt(void) { return fake->in_interrupt; }
tcb_s *nxsched_self(void) { return &tcb_of(*fake->current); }
clock_t perf_gettime(void) { return fake->now_ns; }
void perf_convert(clock_t elapsed, timespec *time) {
  *time = {.tv_sec = elapsed / 1'000'000'000, .tv_nsec = elapsed % 1'000'000'000};
}
unsigned long perf_getfreq(void) { return nuttx.frequency; }
irqstate_t spin_lock_irqsave(volatile spinlock_t *lock) {
  EXPECT_EQ(*lock, 0u) << "not twice";
  *lock = 1;
  return fake->masked++;
}
void spin_unlock_irqrestore(volatile spinlock_t *lock, irqstate_t) {
  *lock = 0;
  fake->masked--;
}
int wd_start(wdog_s *wdog, clock_t delay, wdentry_t entry, wdparm_t) {
  EXPECT_FALSE(in_note);
  wdog->entry = entry;
  fake->alarm_ns = (fake->now_ns / TICK_NS + delay + 1) * TICK_NS;
  fake->alarm = [wdog] { wdog->entry(0); };
  return 0;
}
int wd_cancel(wdog_s *) {
  EXPECT_FALSE(in_note);
  fake->alarm_ns = INT64_MAX;
  return 0;
}
int note_driver_register(note_driver_s *driver) {
  if (nuttx.is_full) return -12;
  EXPECT_EQ(notes, nullptr) << "a second time";
  notes = driver;
  return 0;
}
int nuttx_attributes(pthread_attr_t *) {
  next = {-1, fake->current->priority};
  next_stack = 0;
  return 0;
}
int nuttx_set_policy(pthread_attr_t *, int policy) {
  next.policy = policy;
  return 0;
}
int nuttx_set_parameters(pthread_attr_t *, const sched_param *parameters) {
  next.priority = parameters->sched_priority;
  return 0;
}
int nuttx_set_stack(pthread_attr_t *, size_t bytes) {
  next_stack = bytes;
  return 0;
}
int nuttx_create(pthread_t *thread, const pthread_attr_t *, void *(*function)(void *), void *argument) {
  if (fake->tasks.size() > fake->task_limit) return EAGAIN;
  if (notes != nullptr) {
    fake->on_switch = [](FakeKernel::Task &before) {
      in_note = true;
      fake->masked++;
      notes->ops->suspend(notes, &tcb_of(before));
      notes->ops->resume(notes, &tcb_of(*fake->current));
      fake->masked--;
      in_note = false;
    };
  }
  FakeKernel::Task &task = fake->create([=] { (void)function(argument); }, next.priority);
  task.policy = next.policy;
  task.stack_bytes = next_stack;
  *thread = reinterpret_cast<pthread_t>(&task);
  fake->start(task);
  return 0;
}
int nuttx_join(pthread_t thread, void **) {
  fake->join(task_of(thread));
  return 0;
}
pthread_t nuttx_self(void) { return reinterpret_cast<pthread_t>(fake->current); }
int nuttx_set_scheduling(pthread_t thread, int, const sched_param *parameters) {
  FakeKernel::Task &task = task_of(thread);
  EXPECT_EQ(fake->masked, 0u);
  if (&task != fake->current) {
    EXPECT_EQ(sections, 1u) << "it could be inside of a section of the runtime";
    EXPECT_GT(events, 0u) << "or of an event";
  }
  task.priority = parameters->sched_priority;
  tcb_of(task) = {.sched_priority = static_cast<uint8_t>(task.priority),
                  .base_priority = static_cast<uint8_t>(task.priority)};
  fake->choose();
  return 0;
}
int nuttx_get_scheduling(pthread_t thread, int *policy, sched_param *parameters) {
  *policy = SCHED_FIFO;
  parameters->sched_priority = task_of(thread).priority;
  return 0;
}
int nuttx_post(sem_t *) {
  EXPECT_FALSE(in_note);
  EXPECT_EQ(fake->masked, 0u) << "it switches at once";
  posts++;
  if (waiting != nullptr) fake->wake(*waiting);
  fake->choose();
  return 0;
}
int nuttx_wait(sem_t *) {
  while (posts == 0) {
    waiting = fake->current;
    fake->block(INT64_MAX);
  }
  waiting = nullptr;
  posts--;
  return 0;
}
}
