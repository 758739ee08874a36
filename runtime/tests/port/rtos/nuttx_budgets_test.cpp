// SPDX-License-Identifier: Apache-2.0
// Budgets of lanes on NuttX (runtime/port/nuttx/budgets.c), on a kernel of a few lines: it notes each switch, its
// watchdog comes at ticks, and whatever is most urgent runs, step by step.
#include <gtest/gtest.h>
#include <nuttx/sched.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "seeds.h"
#include "tide/budget.h"
#include "tide/status.h"
#include "tide_nuttx.h"

extern "C" {
#include "budgets.h"
}

namespace {

constexpr int64_t STEP = 100'000, TICK = 1'000'000;  // ns
constexpr int64_t STEPS_OF_A_TICK = TICK / STEP;
constexpr int MOST = 99, LEAST = 1;  // this machine's, for SCHED_FIFO

struct Thread {
  tcb_s tcb{};
  void *(*function)(void *) = nullptr;
  void *argument = nullptr;
  bool wants = false;
};

struct FakeNuttx {
  std::array<Thread, 8> threads{};  // the first is nobody's
  size_t created = 1, running = 0;
  int64_t now = 5 * TICK;
  int64_t counter_step = STEP;  // the counter has nanoseconds
  unsigned long frequency = 1'000'000'000;
  wdog_s *alarm = nullptr;
  unsigned masked = 0, critical = 0, events = 0, posts = 0, alarms = 0;
  bool in_note = false, is_full = false;

  void note_switch(size_t next);
  void serve();
  void step();
  void begin(size_t lane, size_t thread);
};

FakeNuttx *fake;
note_driver_s *notes;  // for good, as in NuttX

void FakeNuttx::note_switch(size_t next) {
  if (next == running || notes == nullptr) return;
  in_note = true;
  masked++;
  notes->ops->suspend(notes, &threads.at(running).tcb);
  notes->ops->resume(notes, &threads.at(next).tcb);
  masked--;
  in_note = false;
  running = next;
}

// The thread above all lanes, as often as it is woken.
void FakeNuttx::serve() {
  for (unsigned count = 0; posts > 0; count++) {
    ASSERT_LT(count, 3u) << "it wakes itself";
    posts--;
    const size_t before = running;
    note_switch(1);
    tide_nuttx_budgets_look();
    note_switch(before);
  }
}

void FakeNuttx::step() {
  serve();
  size_t next = 0;
  for (size_t index = 2; index < threads.size(); index++) {
    const Thread &thread = threads.at(index);
    if (!thread.wants) continue;
    if (next == 0 || thread.tcb.sched_priority > threads.at(next).tcb.sched_priority) next = index;
  }
  note_switch(next);
  now += STEP;
  if (now % TICK == 0 && alarm != nullptr && now / TICK >= alarm->tick) {
    const wdentry_t entry = alarm->entry;
    alarm = nullptr;
    alarms++;
    entry(0);
  }
}

int64_t now_ns(void *) { return fake->now; }
uintptr_t critical_enter(void *) { return fake->critical++; }
void critical_exit(void *, uintptr_t) { fake->critical--; }
void event_init(void *, tide_event_t *) {}
void event_set(void *, tide_event_t *) {
  EXPECT_EQ(fake->masked, 0u);
  fake->events++;
}

}  // namespace

extern "C" {
const tide_platform_t *tide_port_platform(void) {
  static tide_platform_t platform{};
  platform.now_ns = now_ns;
  platform.critical_enter = critical_enter;
  platform.critical_exit = critical_exit;
  platform.event_init = event_init;
  platform.event_set = event_set;
  EXPECT_FALSE(fake->in_note) << "it may wait";
  return &platform;
}
tcb_s *nxsched_self(void) { return &fake->threads.at(fake->running).tcb; }
clock_t perf_gettime(void) { return fake->now * fake->counter_step / STEP; }
void perf_convert(clock_t elapsed, timespec *time) {
  const int64_t elapsed_ns = elapsed * STEP / fake->counter_step;
  *time = {.tv_sec = elapsed_ns / 1'000'000'000, .tv_nsec = elapsed_ns % 1'000'000'000};
}
unsigned long perf_getfreq(void) { return fake->frequency; }
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
  EXPECT_FALSE(fake->in_note);
  wdog->entry = entry;
  wdog->tick = fake->now / TICK + delay + 1;
  fake->alarm = wdog;
  return 0;
}
int wd_cancel(wdog_s *) {
  fake->alarm = nullptr;
  return 0;
}
int note_driver_register(note_driver_s *driver) {
  if (fake->is_full) return -12;
  EXPECT_EQ(notes, nullptr) << "a second time";
  notes = driver;
  return 0;
}
int nuttx_create(pthread_t *thread, const pthread_attr_t *, void *(*function)(void *), void *argument) {
  fake->threads.at(fake->created).function = function;
  fake->threads.at(fake->created).argument = argument;
  *thread = fake->created++;
  return 0;
}
int nuttx_join(pthread_t thread, void **) {
  const Thread &joined = fake->threads.at(thread);
  fake->note_switch(thread);
  (void)joined.function(joined.argument);
  fake->note_switch(0);
  return 0;
}
pthread_t nuttx_self(void) { return fake->running; }
int nuttx_set_scheduling(pthread_t thread, int policy, const sched_param *parameters) {
  EXPECT_EQ(policy, SCHED_FIFO);
  EXPECT_EQ(fake->masked, 0u);
  EXPECT_EQ(fake->critical, 1u) << "it could be inside of a section of the runtime";
  EXPECT_GT(fake->events, 0u) << "or of an event";
  fake->threads.at(thread).tcb = {.sched_priority = static_cast<uint8_t>(parameters->sched_priority),
                                  .base_priority = static_cast<uint8_t>(parameters->sched_priority)};
  return 0;
}
int nuttx_post(sem_t *) {
  EXPECT_FALSE(fake->in_note);
  EXPECT_EQ(fake->masked, 0u) << "it switches at once";
  fake->posts++;
  return 0;
}
}

namespace {

constexpr int HIGH = 50, LOW = 5, MIDDLE = 20;

tide_lane_t lane_of(int priority, int64_t budget_ns, int64_t period_ns) {
  tide_lane_t lane{};
  lane.settings.scheduling = TIDE_SCHEDULING_SPORADIC;
  lane.settings.priority = priority;
  lane.settings.low_priority = LOW;
  lane.settings.runtime_ns = budget_ns;
  lane.settings.period_ns = period_ns;
  return lane;
}

class NuttxBudgets : public testing::Test {
 protected:
  NuttxBudgets() { fake = &machine; }
  ~NuttxBudgets() override { tide_nuttx_budgets_stop(); }
  NuttxBudgets(const NuttxBudgets &) = delete;
  NuttxBudgets &operator=(const NuttxBudgets &) = delete;

  // A lane's thread: its number is that of the lane and two more.
  static constexpr size_t thread_of(size_t lane) { return lane + 2; }
  tcb_s &tcb_of(size_t lane) { return machine.threads.at(thread_of(lane)).tcb; }

  void begin(std::vector<tide_lane_t> &lanes) {
    ASSERT_EQ(tide_nuttx_budgets_start(), TIDE_OK);
    for (size_t index = 0; index < lanes.size(); index++) {
      ASSERT_EQ(tide_nuttx_budgets_add(&lanes[index], index), TIDE_OK);
      tcb_of(index).sched_priority = tcb_of(index).base_priority = static_cast<uint8_t>(lanes[index].settings.priority);
    }
    for (size_t index = 0; index < lanes.size(); index++) {
      machine.note_switch(thread_of(index));
      tide_nuttx_budgets_begin(index);
      machine.threads.at(thread_of(index)).wants = true;
    }
  }
  void end(const std::vector<tide_lane_t> &lanes) {
    for (size_t index = 0; index < lanes.size(); index++) tide_nuttx_budgets_end(index);
    tide_nuttx_budgets_stop();
  }
  void add_thread(size_t number, int priority) {
    machine.threads.at(number).tcb = {.sched_priority = static_cast<uint8_t>(priority),
                                      .base_priority = static_cast<uint8_t>(priority)};
    machine.threads.at(number).wants = true;
  }

  FakeNuttx machine;
};

}  // namespace

// The first, for a driver of notes stays for good.
TEST_F(NuttxBudgets, WithoutAPlaceForNotesOrACounterThereAreNone) {
  machine.is_full = true;
  EXPECT_EQ(tide_nuttx_budgets_start(), notes == nullptr ? TIDE_ERROR_FULL : TIDE_OK);
  tide_nuttx_budgets_stop();
  for (const unsigned long frequency : {0ul, ULONG_MAX}) {
    machine.frequency = frequency;
    EXPECT_EQ(tide_nuttx_budgets_start(), TIDE_ERROR_UNSUPPORTED);
  }
  EXPECT_EQ(machine.created, notes == nullptr ? 1u : 2u) << "no thread";
}

TEST_F(NuttxBudgets, TwoLanesAtOnceHaveTheirSharesAndTheRestIsOthers) {
  std::vector<tide_lane_t> lanes{lane_of(HIGH, 20 * TICK, 100 * TICK), lane_of(HIGH + 1, 30 * TICK, 100 * TICK)};
  add_thread(7, MIDDLE);
  ASSERT_NO_FATAL_FAILURE(begin(lanes));
  std::array<int64_t, 8> ran{};
  const int64_t steps = 1000 * STEPS_OF_A_TICK;
  for (int64_t step = 0; step < steps; step++) {
    machine.step();
    ran.at(machine.running)++;
  }
  end(lanes);
  EXPECT_EQ(ran[thread_of(0)], steps * 20 / 100);
  EXPECT_EQ(ran[thread_of(1)], steps * 30 / 100);
  EXPECT_EQ(ran[7], steps * 50 / 100);
  for (size_t lane = 0; lane < 2; lane++) {
    const tide_budget_t *budget = tide_nuttx_lane_budget(lane);
    ASSERT_NE(budget, nullptr);
    EXPECT_EQ(budget->counters.used_ns, static_cast<uint64_t>(ran.at(thread_of(lane)) * STEP));
    EXPECT_EQ(budget->counters.exhaustions, 10u);
    EXPECT_EQ(budget->counters.overrun_ns, 0u);
    EXPECT_EQ(lanes[lane].budget.ready, nullptr) << "no hooks stay";
  }
  EXPECT_EQ(tide_nuttx_lane_budget(2), nullptr);
  EXPECT_LE(machine.alarms, 40u) << "looks without need";
}

TEST_F(NuttxBudgets, ATickWithoutWorkCostsNothingAndAWaitIsNotCharged) {
  std::vector<tide_lane_t> lanes{lane_of(HIGH, 5 * TICK, 20 * TICK)};
  add_thread(7, MIDDLE);
  ASSERT_NO_FATAL_FAILURE(begin(lanes));
  const tide_budget_t *budget = tide_nuttx_lane_budget(0);
  for (int activation = 0; activation < 100; activation++) {  // 0.3 of 4 ms
    for (int step = 0; step < 3; step++) machine.step();
    lanes[0].budget.block(lanes[0].budget.context);
    machine.threads.at(thread_of(0)).wants = false;
    for (int step = 3; step < 40; step++) machine.step();
    machine.threads.at(thread_of(0)).wants = true;
    machine.note_switch(thread_of(0));
    lanes[0].budget.ready(lanes[0].budget.context);
    EXPECT_EQ(tcb_of(0).sched_priority, HIGH);
  }
  EXPECT_EQ(budget->counters.used_ns, static_cast<uint64_t>(100 * 3 * STEP));
  EXPECT_EQ(budget->counters.exhaustions + budget->counters.denied, 0u) << budget->counters.denied;
  end(lanes);
}

TEST_F(NuttxBudgets, WhatTheKernelHasLentToALaneStays) {
  std::vector<tide_lane_t> lanes{lane_of(HIGH, 5 * TICK, 20 * TICK)};
  ASSERT_NO_FATAL_FAILURE(begin(lanes));
  tcb_of(0).sched_priority = HIGH + 7;
  for (int64_t step = 0; step < 8 * STEPS_OF_A_TICK; step++) machine.step();
  EXPECT_EQ(tcb_of(0).sched_priority, HIGH + 7);
  EXPECT_EQ(tcb_of(0).base_priority, LOW) << "where it goes when it gives back what others wait for";
  end(lanes);
}

TEST_F(NuttxBudgets, NumbersThatAreNoBudgetAreRefusedAndNothingRuns) {
  struct Case {
    int priority, low;
    int64_t budget_ns, period_ns;
    uint16_t replenishments;
    int status;
  };
  const std::vector<Case> cases{
      {MOST, 3, 1, 2, 0, TIDE_ERROR_ARGUMENT},
      {10, 10, 1, 2, 0, TIDE_ERROR_ARGUMENT},
      {10, -1, 1, 2, 0, TIDE_ERROR_ARGUMENT},
      {LEAST, 0, 1, 2, 0, TIDE_ERROR_ARGUMENT},
      {10, 3, 0, 2, 0, TIDE_ERROR_ARGUMENT},
      {10, 3, 3, 2, 0, TIDE_ERROR_ARGUMENT},
      {10, 3, 1, 2, CONFIG_TIDE_REPLENISHMENTS + 1, TIDE_ERROR_FULL},
  };
  for (const Case &each : cases) {
    std::array<tide_lane_t, 2> lanes{};
    lanes[1] = lane_of(each.priority, each.budget_ns, each.period_ns);
    lanes[1].settings.low_priority = each.low;
    lanes[1].settings.maximum_replenishments = each.replenishments;
    machine = FakeNuttx();
    size_t refused = 99;
    const auto runs = [](void *, size_t) { FAIL() << "it runs"; };
    EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), runs, nullptr, &refused), each.status);
    EXPECT_EQ(refused, 1u);
    EXPECT_EQ(machine.created, 2u) << "the thread above all lanes, which has ended";
  }
}

TEST_F(NuttxBudgets, LanesRunWithThemAndASecondExecutorWithBudgetsIsRefused) {
  std::array<tide_lane_t, 3> lanes{lane_of(HIGH, TICK, 2 * TICK), tide_lane_t{}, lane_of(HIGH + 1, TICK, 2 * TICK)};
  lanes[1].settings.scheduling = TIDE_SCHEDULING_FIFO;
  lanes[1].settings.priority = MIDDLE;
  struct Seen {
    tide_lane_t *lanes;
    std::vector<size_t> ran;
  } seen{lanes.data(), {}};
  const auto run = [](void *context, size_t index) {
    auto *self = static_cast<Seen *>(context);
    self->ran.push_back(index);
    const tide_budget_t *budget = tide_nuttx_lane_budget(index);
    EXPECT_EQ(budget != nullptr, index != 1);
    if (budget == nullptr) return;
    EXPECT_TRUE(budget->running && budget->ready);
    EXPECT_NE(self->lanes[index].budget.block, nullptr);
    fake->now += STEP;
    tide_lane_t other = lane_of(HIGH, TICK, 2 * TICK);
    EXPECT_EQ(tide_port_run_lanes(
                  &other, 1, [](void *, size_t) {}, nullptr, nullptr),
              TIDE_ERROR_STATE);
  };
  for (int time = 0; time < 2; time++) {
    machine = FakeNuttx();
    seen.ran.clear();
    ASSERT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), run, &seen, nullptr), TIDE_OK);
    EXPECT_EQ(seen.ran.size(), 3u);
    for (const size_t lane : {size_t{0}, size_t{2}}) {
      EXPECT_EQ(tide_nuttx_lane_budget(lane)->counters.used_ns, static_cast<uint64_t>(STEP));
    }
    EXPECT_EQ(machine.alarm, nullptr);
  }
}

// In any window at most one budget more than the periods in it; never low while a budget has not been used within a
// period. Two ticks at each end of a window: a look is up to one late.
TEST_F(NuttxBudgets, WhateverElseRunsEachLaneHasItsBudgetAndNoMore) {
  constexpr int64_t SLACK = 3 * STEPS_OF_A_TICK;
  const unsigned first = tide::test::seed_of_run();
  for (unsigned round = 0; round < 30; round++) {
    SCOPED_TRACE(tide::test::replay_of(first + round));
    std::mt19937 random(first + round);
    const auto between = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random()) % (high - low + 1);
    };
    machine = FakeNuttx();
    std::vector<tide_lane_t> lanes;
    for (int lane = 0; lane < 3; lane++) {
      const int64_t period = between(30, 80);
      lanes.push_back(lane_of(HIGH + lane, between(6, period / 3) * TICK, period * TICK));
    }
    add_thread(7, HIGH + 9);
    ASSERT_NO_FATAL_FAILURE(begin(lanes));
    std::array<std::vector<int64_t>, 3> used{{{0}, {0}, {0}}};
    for (int64_t step = 0; step < 6000; step++) {
      machine.step();
      for (size_t lane = 0; lane < 3; lane++) {
        Thread &thread = machine.threads.at(thread_of(lane));
        const bool high = thread.tcb.sched_priority > LOW;
        const bool runs = machine.running == thread_of(lane);
        used.at(lane).push_back(used.at(lane).back() + (runs && high ? 1 : 0));
        const int64_t period = lanes[lane].settings.period_ns / STEP, budget = lanes[lane].settings.runtime_ns / STEP;
        if (thread.wants && !high) {
          const auto since = static_cast<size_t>(std::max<int64_t>(0, step - period - SLACK));
          ASSERT_GE(used.at(lane).back() - used.at(lane).at(since), budget - SLACK)
              << "lane " << lane << " is low with budget at step " << step << ": " << budget << " in " << period;
        }
        if (runs && between(0, 150) == 0) {
          lanes[lane].budget.block(lanes[lane].budget.context);
          thread.wants = false;
        } else if (!thread.wants && between(0, 100) == 0) {
          thread.wants = true;
          machine.note_switch(thread_of(lane));
          lanes[lane].budget.ready(lanes[lane].budget.context);
        }
      }
      if (between(0, 300) == 0) machine.threads.at(7).wants = !machine.threads.at(7).wants;
    }
    for (size_t lane = 0; lane < 3; lane++) {
      const int64_t period = lanes[lane].settings.period_ns / STEP, budget = lanes[lane].settings.runtime_ns / STEP;
      const auto count = static_cast<int64_t>(used.at(lane).size());
      for (int64_t periods = 1; periods * period < count; periods++) {
        for (int64_t begin = 0; begin + periods * period < count; begin++) {
          const int64_t had = used.at(lane).at(static_cast<size_t>(begin + periods * period)) -
                              used.at(lane).at(static_cast<size_t>(begin));
          ASSERT_LE(had, budget * (periods + 1) + SLACK) << budget << " in " << period << " from " << begin;
        }
      }
    }
    end(lanes);
  }
}
