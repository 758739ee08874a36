// SPDX-License-Identifier: Apache-2.0
// The executor's rules one by one, in virtual time.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "exec_virtual.hpp"

namespace {

using exec_virtual::Bench;

// A callback that writes its name and does something.
struct Probe {
  Probe(Bench &the_bench, std::string &the_log, char the_name, tide_priority_t priority,
        tide_callback_kind_t kind = TIDE_CALLBACK_GUARD, bool always = false)
      : bench(the_bench), log(the_log), name(the_name) {
    callback.kind = kind;
    callback.priority = priority;
    callback.always = always;
    callback.context = this;
    callback.handle = this;
    callback.execute = [](tide_callback_t *, void *context) { static_cast<Probe *>(context)->run(); };
    EXPECT_EQ(tide_executor_add(&bench.executor, &callback), TIDE_OK);
  }
  void run() {
    log += name;
    if (action) {
      action();
    }
  }
  void notify() { tide_executor_notify(&callback); }

  Bench &bench;
  std::string &log;
  char name;
  tide_callback_t callback{};
  std::function<void()> action;
};

// A timer that notes when it ran.
struct Clock {
  Clock(Bench &the_bench, int64_t period, tide_overrun_t overrun = TIDE_OVERRUN_SKIP, tide_priority_t priority = 0)
      : bench(the_bench) {
    timer.period_ns = period;
    timer.overrun = overrun;
    timer.callback.priority = priority;
    timer.callback.context = this;
    timer.on_expiry = [](tide_timer_t *expired, int64_t since_last_call) {
      auto *clock = static_cast<Clock *>(expired->callback.context);
      clock->times.push_back(clock->bench.machine.now);
      clock->since.push_back(since_last_call);
      clock->bench.machine.execute(clock->execution);
      if (clock->action) {
        clock->action();
      }
    };
    EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_OK);
  }

  Bench &bench;
  tide_timer_t timer{};
  int64_t execution = 0;
  std::vector<int64_t> times, since;
  std::function<void()> action;
};

using Times = std::vector<int64_t>;

void rounds_until(Bench &bench, int64_t end) {
  while (bench.machine.now < end && tide_executor_round(&bench.executor, end) >= 0) {
  }
}

class BothPolicies : public testing::TestWithParam<tide_policy_t> {
 protected:
  BothPolicies() : bench(GetParam()) { bench.init(); }
  Bench bench;
  std::string log;
};
INSTANTIATE_TEST_SUITE_P(ExecRules, BothPolicies, testing::Values(TIDE_POLICY_TIDE, TIDE_POLICY_BATCH),
                         [](const auto &each) { return each.param == TIDE_POLICY_TIDE ? "tide" : "batch"; });

TEST_P(BothPolicies, TimerKeepsItsGrid) {
  Clock clock(bench, 50000);
  clock.execution = 7;
  rounds_until(bench, 200000);
  EXPECT_EQ(clock.times, (Times{50000, 100000, 150000, 200000}));
  EXPECT_EQ(clock.since, (Times{50000, 50000, 50000, 50000}));
  EXPECT_EQ(clock.timer.callback.execution_maximum_ns, 7);
  EXPECT_EQ(clock.timer.callback.ready_ns, 200000);
}

TEST_P(BothPolicies, SkippedExpiriesAreCountedAndTheGridIsKept) {
  Clock clock(bench, 10);
  clock.action = [&] { bench.machine.execute(clock.times.size() == 1 ? 35 : 0); };
  rounds_until(bench, 70);
  EXPECT_EQ(clock.times, (Times{10, 45, 50, 60, 70}));  // 20 runs late at 45 and answers for 30 and 40
  EXPECT_EQ(clock.timer.skipped, 2u);
}

TEST_P(BothPolicies, CatchUpRunsEveryExpiry) {
  Clock clock(bench, 10, TIDE_OVERRUN_CATCH_UP);
  clock.action = [&] { bench.machine.execute(clock.times.size() == 1 ? 35 : 0); };
  rounds_until(bench, 70);
  EXPECT_EQ(clock.times, (Times{10, 45, 45, 45, 50, 60, 70}));
  EXPECT_EQ(clock.timer.skipped, 0u);
}

TEST_P(BothPolicies, ManyMissedPeriodsCostOneStep) {
  Clock clock(bench, 1);
  bench.machine.now = INT64_C(3600000000000);
  EXPECT_EQ(tide_executor_round(&bench.executor, 0), 1);
  EXPECT_EQ(clock.timer.next_ns, INT64_C(3600000000001));
  EXPECT_EQ(clock.timer.skipped, UINT32_MAX) << "the count stays at its maximum";
}

TEST_P(BothPolicies, TimerMayCancelResetAndRetimeItself) {
  Clock clock(bench, 10);
  clock.action = [&] {
    if (clock.times.size() == 2) {
      tide_timer_cancel(&clock.timer);
      EXPECT_EQ(tide_timer_until_next_ns(&clock.timer, bench.machine.now), TIDE_FOREVER);
    }
  };
  rounds_until(bench, 100);
  EXPECT_EQ(clock.times, (Times{10, 20}));
  EXPECT_TRUE(clock.timer.canceled);
  tide_timer_reset(&clock.timer);
  clock.action = [&] { tide_timer_set_period(&clock.timer, 30); };  // from the next expiry on
  EXPECT_EQ(tide_timer_until_next_ns(&clock.timer, 100), 10);
  rounds_until(bench, 200);
  EXPECT_EQ(clock.times, (Times{10, 20, 110, 120, 150, 180}));
  tide_timer_set_phase(&clock.timer, 215);
  rounds_until(bench, 250);
  EXPECT_EQ(clock.times.back(), 245);
}

TEST_P(BothPolicies, CancelAndResetTakeBackAnExpiryThatHasNotRun) {
  Clock first(bench, 10, TIDE_OVERRUN_SKIP, 2);
  Clock second(bench, 10, TIDE_OVERRUN_SKIP, 1);
  Clock third(bench, 10, TIDE_OVERRUN_SKIP, 0);
  first.action = [&] {
    tide_timer_cancel(&second.timer);
    tide_timer_reset(&third.timer);
    tide_timer_cancel(&first.timer);
  };
  rounds_until(bench, 25);
  EXPECT_EQ(first.times, (Times{10}));
  EXPECT_EQ(second.times, (Times{}));
  EXPECT_EQ(third.times, (Times{20}));
}

TEST_P(BothPolicies, TimerOnlyExecutorSleepsOnceAnExpiry) {
  Clock clock(bench, 1000);
  rounds_until(bench, 100000);
  EXPECT_EQ(clock.times.size(), 100u);
  EXPECT_LE(bench.machine.waits, 101);
  EXPECT_EQ(bench.executor.counters.timers_expired, 100u);
  EXPECT_EQ(bench.executor.counters.callbacks_run, 100u);
}

TEST_P(BothPolicies, NotifiedSoManyTimesRunsSoManyTimes) {
  Probe probe(bench, log, 'a', 0);
  for (int times = 0; times < 5; times++) {
    probe.notify();
  }
  rounds_until(bench, 10);
  EXPECT_EQ(log, "aaaaa");
}

TEST_P(BothPolicies, WakeUpFromWithinACallbackIsNotLost) {
  Probe first(bench, log, 'a', 0);
  Probe second(bench, log, 'b', 9);
  first.action = [&] { second.notify(); };
  second.action = [&] { log.size() < 6 ? first.notify() : void(); };
  first.notify();
  rounds_until(bench, 10);
  EXPECT_EQ(log, "ababab");
}

TEST_P(BothPolicies, TriggerThatIsFalseLosesNothingAndSleeps) {
  Probe first(bench, log, 'a', 0);
  Probe second(bench, log, 'b', 1);
  tide_executor_set_trigger(&bench.executor, tide_trigger_all, nullptr);
  Clock clock(bench, 10, TIDE_OVERRUN_SKIP, 2);
  bench.machine.at(35, [&] { first.notify(); });
  bench.machine.at(77, [&] { second.notify(); });
  const int waits = bench.machine.waits;
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), 3);
  EXPECT_EQ(bench.machine.now, 77);
  EXPECT_EQ(log, GetParam() == TIDE_POLICY_TIDE ? "ba" : "ab");
  EXPECT_EQ(clock.times, (Times{77}));
  EXPECT_LE(bench.machine.waits - waits, 5) << "a due timer must not make a false trigger spin";
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(bench.machine.now, 1000);
}

TEST_P(BothPolicies, TriggerOneWaitsForItsHandleThenRunsAll) {
  Probe first(bench, log, 'a', 0);
  Probe second(bench, log, 'b', 1);
  tide_executor_set_trigger(&bench.executor, tide_trigger_one, &second);
  first.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), TIDE_ERROR_TIMEOUT);
  second.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
}

TEST_P(BothPolicies, TriggerMayBecomeTrueByAWakeUpAlone) {
  Probe probe(bench, log, 'a', 0);
  bool open = false;
  tide_executor_set_trigger(
      &bench.executor, [](tide_callback_t *const *, size_t, void *object) { return *static_cast<bool *>(object); },
      &open);
  probe.notify();
  bench.machine.at(500, [&] {
    open = true;
    tide_executor_wake(&bench.executor);
  });
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), 1);
  EXPECT_EQ(bench.machine.now, 500);
}

TEST_P(BothPolicies, TriggerAlwaysRunsTheAlwaysCallbacksWhenTheTimeIsOver) {
  Probe probe(bench, log, 'a', 0, TIDE_CALLBACK_SUBSCRIPTION, true);
  Probe other(bench, log, 'b', 1, TIDE_CALLBACK_SUBSCRIPTION);
  tide_executor_set_trigger(&bench.executor, tide_trigger_always, nullptr);
  EXPECT_EQ(tide_executor_round(&bench.executor, 100), 1);
  EXPECT_EQ(bench.machine.now, 100);
  EXPECT_EQ(log, "a");
}

TEST_P(BothPolicies, AlwaysCallbacksRunInEveryTriggeredRound) {
  Probe low(bench, log, 'a', 1, TIDE_CALLBACK_SUBSCRIPTION, true);
  Probe middle(bench, log, 'b', 2);
  Probe high(bench, log, 'c', 3, TIDE_CALLBACK_SUBSCRIPTION, true);
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), TIDE_ERROR_TIMEOUT) << "alone they do not trigger";
  middle.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 3);
  EXPECT_EQ(log, GetParam() == TIDE_POLICY_TIDE ? "cba" : "abc");
  high.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
  EXPECT_EQ(tide_executor_remove(&bench.executor, &high.callback), TIDE_OK);
  middle.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
}

TEST_P(BothPolicies, CallbacksMayRemoveThemselvesAndOthersOfTheirRound) {
  Probe first(bench, log, 'a', 9), second(bench, log, 'b', 8), third(bench, log, 'c', 7), fourth(bench, log, 'd', 6);
  tide_executor_set_trigger(&bench.executor, tide_trigger_all, nullptr);
  first.action = [&] {
    EXPECT_EQ(tide_executor_remove(&bench.executor, &first.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &second.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &fourth.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &fourth.callback), TIDE_ERROR_NOT_FOUND);
    second.notify();
  };
  for (Probe *probe : {&first, &second, &third, &fourth}) {
    probe->notify();
  }
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), 2);
  EXPECT_EQ(log, "ac");
  EXPECT_EQ(bench.executor.count, 1u);
  EXPECT_EQ(bench.executor.ready_count, 0u);
  EXPECT_EQ(third.callback.index, 0u);
  Probe fifth(bench, log, 'e', 5);
  third.notify();
  fifth.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), 2);
}

// Its memory may be used for something else once it is removed: nothing may lead there any more.
TEST_P(BothPolicies, NothingRemembersARemovedCallback) {
  Probe first(bench, log, 'a', 9);
  auto last = std::make_unique<Probe>(bench, log, 'b', 8);
  auto clock = std::make_unique<Clock>(bench, 10);
  tide_executor_set_trigger(&bench.executor, tide_trigger_always, nullptr);
  first.action = [&] {
    EXPECT_EQ(tide_executor_remove(&bench.executor, &last->callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &clock->timer.callback), TIDE_OK);
    std::memset(static_cast<void *>(&last->callback), 0x55, sizeof last->callback);
    std::memset(static_cast<void *>(&clock->timer), 0x55, sizeof clock->timer);
    first.action = nullptr;
  };
  first.notify();
  last->notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 0), 1);
  EXPECT_EQ(bench.lanes[0].band->timer_list.count, 0u);
  last.reset();
  clock.reset();
  Probe other(bench, log, 'c', 7);
  first.notify();
  other.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 100), 2);
  EXPECT_EQ(log, "aac");
}

TEST_P(BothPolicies, StopEndsSpinAndIsNotLostWhenItComesFirst) {
  Probe probe(bench, log, 'a', 0);
  bench.machine.at(50, [&] { tide_executor_stop(&bench.executor); });
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(bench.machine.now, 50);
  tide_executor_stop(&bench.executor);
  probe.notify();
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(log, "");
  probe.action = [&] {
    tide_executor_stop(&bench.executor);
    EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_ERROR_STATE);
  };
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(log, "a");
}

TEST_P(BothPolicies, SpinLooksAtATriggerEverySpinTimeout) {
  Probe probe(bench, log, 'a', 0, TIDE_CALLBACK_SUBSCRIPTION, true);
  tide_executor_set_trigger(&bench.executor, tide_trigger_always, nullptr);
  probe.action = [&] { log.size() == 3 ? tide_executor_stop(&bench.executor) : void(); };
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(bench.machine.now, INT64_C(3000000000));
}

TEST_P(BothPolicies, PolicyMayChangeBetweenRounds) {
  Probe first(bench, log, 'a', 0), second(bench, log, 'b', 9);
  first.notify();
  second.notify();
  const tide_policy_t other = GetParam() == TIDE_POLICY_TIDE ? TIDE_POLICY_BATCH : TIDE_POLICY_TIDE;
  first.action = [&] { EXPECT_EQ(tide_executor_set_policy(&bench.executor, GetParam()), TIDE_ERROR_STATE); };
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, other), TIDE_OK);
  rounds_until(bench, 10);
  EXPECT_EQ(log, other == TIDE_POLICY_TIDE ? "ba" : "ab");
  log.clear();
  first.action = nullptr;
  first.notify();
  second.notify();
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, GetParam()), TIDE_OK);
  rounds_until(bench, 20);
  EXPECT_EQ(log, GetParam() == TIDE_POLICY_TIDE ? "ba" : "ab");
}

TEST_P(BothPolicies, BadArgumentsAreRefused) {
  tide_executor_t other{};
  for (const auto &spoil : std::vector<std::function<void(tide_executor_config_t &)>>{
           [](auto &config) { config.platform = nullptr; }, [](auto &config) { config.callbacks = nullptr; },
           [](auto &config) { config.ready_storage = nullptr; }, [](auto &config) { config.timer_storage = nullptr; },
           [](auto &config) { config.callback_count = 0; }, [](auto &config) { config.lanes = nullptr; },
           [](auto &config) { config.lane_count = 0; }, [](auto &config) { config.spin_timeout_ns = -1; },
           [](auto &config) { config.policy = static_cast<tide_policy_t>(7); },
           [](auto &config) {
             config.source.most_urgent = [](void *, tide_priority_t, tide_priority_t) -> int32_t { return 0; };
           }}) {
    tide_executor_config_t config = bench.config;
    spoil(config);
    EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_ARGUMENT);
  }
  EXPECT_EQ(tide_executor_init(nullptr, &bench.config), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_round(nullptr, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_spin(nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_set_trigger(nullptr, nullptr, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, static_cast<tide_policy_t>(7)), TIDE_ERROR_ARGUMENT);
  tide_callback_t callback{};
  EXPECT_EQ(tide_executor_add(&bench.executor, &callback), TIDE_ERROR_ARGUMENT);
  tide_executor_notify(&callback);
  tide_executor_notify(nullptr);
  EXPECT_EQ(tide_executor_set_priority(&bench.executor, &callback, 1), TIDE_ERROR_NOT_FOUND);
  tide_timer_t timer{};
  timer.on_expiry = [](tide_timer_t *, int64_t) {};
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_timer_reset(&timer), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_timer_cancel(nullptr), TIDE_ERROR_ARGUMENT);
  timer.period_ns = TIDE_FOREVER;  // never within reach, and no overflow
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_OK);
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_ERROR_EXISTS);
  EXPECT_EQ(tide_timer_set_period(&timer, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_timer_set_phase(&timer, -1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), TIDE_ERROR_TIMEOUT);
}

TEST_P(BothPolicies, FullExecutorRefusesAndFreedPlacesAreUsedAgain) {
  std::vector<std::unique_ptr<Probe>> probes;
  for (size_t index = 0; index < bench.callbacks.size(); index++) {
    probes.push_back(std::make_unique<Probe>(bench, log, 'a', 0));
  }
  tide_callback_t extra = probes[0]->callback;
  EXPECT_EQ(tide_executor_add(&bench.executor, &extra), TIDE_ERROR_FULL);
  EXPECT_EQ(tide_executor_remove(&bench.executor, &probes[3]->callback), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&bench.executor, &extra), TIDE_OK);
  for (auto &probe : probes) {
    probe->notify();
  }
  tide_executor_notify(&extra);
  rounds_until(bench, 10);
  EXPECT_EQ(log.size(), bench.callbacks.size());
}

// A source of frames: each has a priority and the callback it makes ready, if any.
struct Frames {
  struct Frame {
    int32_t priority;
    tide_callback_t *callback;
  };
  std::vector<Frame> waiting;
  std::string order;
  int64_t poll_deadline = TIDE_FOREVER;
  int polls = 0;
  int refuse = 0;

  tide_source_t source() {
    return {this,
            [](void *context, tide_priority_t, tide_priority_t) -> int32_t {
              const auto &frames = static_cast<Frames *>(context)->waiting;
              return frames.empty() ? TIDE_PRIORITY_NONE : best(frames)->priority;
            },
            [](void *context, tide_priority_t, tide_priority_t) {
              auto *self = static_cast<Frames *>(context);
              return self->digest(best(self->waiting) - self->waiting.begin());
            },
            [](void *context) { return static_cast<Frames *>(context)->digest(0); },
            [](void *context) {
              auto *self = static_cast<Frames *>(context);
              self->polls++;
              return self->poll_deadline;
            }};
  }
  static std::vector<Frame>::const_iterator best(const std::vector<Frame> &frames) {
    return std::max_element(frames.begin(), frames.end(),
                            [](const Frame &left, const Frame &right) { return left.priority < right.priority; });
  }
  int digest(int64_t place) {
    if (refuse != 0) {
      return refuse;
    }
    const Frame frame = waiting[static_cast<size_t>(place)];
    waiting.erase(waiting.begin() + place);
    order += static_cast<char>('0' + frame.priority);
    if (frame.callback == nullptr) {
      return 0;
    }
    tide_executor_notify(frame.callback);
    return 1;
  }
};

struct WithFrames : testing::Test {
  void start(tide_policy_t policy, bool waits_for_new_data = false) {
    bench = std::make_unique<Bench>(policy);
    bench->config.source = frames.source();
    bench->config.batch_waits_for_new_data = waits_for_new_data;
    bench->init();
    a = std::make_unique<Probe>(*bench, log, 'a', 1, TIDE_CALLBACK_SUBSCRIPTION);
    b = std::make_unique<Probe>(*bench, log, 'b', 2, TIDE_CALLBACK_SUBSCRIPTION);
    c = std::make_unique<Probe>(*bench, log, 'c', 3, TIDE_CALLBACK_SUBSCRIPTION);
  }
  int round(int64_t deadline) { return tide_executor_round(&bench->executor, deadline); }
  Frames frames;
  std::string log;
  std::unique_ptr<Bench> bench;
  std::unique_ptr<Probe> a, b, c;
};

TEST_F(WithFrames, TideDigestsOnlyWhatIsUrgentEnough) {
  start(TIDE_POLICY_TIDE);
  frames.waiting = {{1, &a->callback}, {3, &c->callback}, {1, &a->callback}};
  b->notify();
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(frames.order, "3");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "cb");
  EXPECT_EQ(frames.order, "3") << "less urgent frames wait, untouched";
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(frames.order, "31");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(log, "cbaa");
}

TEST_F(WithFrames, TideGoesOnDigestingWhatMakesNothingReady) {
  start(TIDE_POLICY_TIDE);
  frames.waiting = {{3, nullptr}, {3, nullptr}, {2, nullptr}, {3, &c->callback}, {0, nullptr}};
  a->notify();
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "c");
  EXPECT_EQ(frames.order, "333");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "ca");
  EXPECT_EQ(frames.order, "3332");
}

TEST_F(WithFrames, FloodOfUselessFramesDoesNotHoldARoundForever) {
  for (const tide_policy_t policy : {TIDE_POLICY_TIDE, TIDE_POLICY_BATCH}) {
    for (const tide_trigger_t trigger : {tide_trigger_any, tide_trigger_all}) {
      start(policy);
      tide_executor_set_trigger(&bench->executor, trigger, nullptr);
      frames.waiting.assign(1000, {1, nullptr});
      EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
      EXPECT_GT(frames.waiting.size(), 800u);
    }
  }
}

TEST_F(WithFrames, SourceThatRefusesIsNotAskedInALoop) {
  for (const tide_policy_t policy : {TIDE_POLICY_TIDE, TIDE_POLICY_BATCH}) {
    start(policy);
    frames.waiting = {{3, &c->callback}};
    frames.refuse = TIDE_ERROR_FULL;
    EXPECT_EQ(round(100), TIDE_ERROR_TIMEOUT);
    a->notify();
    EXPECT_EQ(round(200), 1);
    EXPECT_LE(bench->machine.waits, 3);
    frames.refuse = 0;
    EXPECT_EQ(round(200), 1);
  }
}

TEST_F(WithFrames, PollIsCalledEveryRoundAndAtItsDeadline) {
  start(TIDE_POLICY_TIDE);
  frames.poll_deadline = 40;
  bench->machine.at(60, [&] { frames.poll_deadline = TIDE_FOREVER; });
  a->notify();
  EXPECT_EQ(round(100), 1);
  EXPECT_EQ(frames.polls, 1);
  frames.poll_deadline = 70;
  EXPECT_EQ(round(50), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.polls, 4) << "twice at 0, as the event of the notify was still set, and at 50";
  EXPECT_EQ(round(90), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.polls, 7) << "at 50, 70 and 90";
}

TEST_F(WithFrames, BatchDigestsOneFrameARoundFirstComeFirstServed) {
  start(TIDE_POLICY_BATCH);
  frames.waiting = {{1, &a->callback}, {3, &c->callback}, {2, &b->callback}};
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "acb");
  EXPECT_EQ(frames.order, "132");
}

TEST_F(WithFrames, BatchTakesOneSampleAHandleARound) {
  start(TIDE_POLICY_BATCH);
  c->notify();
  c->notify();
  a->notify();
  frames.waiting = {{2, &b->callback}};
  EXPECT_EQ(round(0), 3);
  EXPECT_EQ(log, "abc");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "abcc");
}

// As measured on the stock stack: a sample that was stored during a blocking publish waits for new data or 1 s.
TEST_F(WithFrames, BatchAsStockLeavesStoredSamplesUntilNewData) {
  start(TIDE_POLICY_BATCH, true);
  a->notify();
  b->notify();
  EXPECT_EQ(round(INT64_C(9000000000)), 2);
  EXPECT_EQ(bench->machine.now, INT64_C(1000000000));
  a->notify();
  bench->machine.at(INT64_C(1300000000), [&] {
    frames.waiting = {{3, &c->callback}};
    tide_executor_wake(&bench->executor);
  });
  EXPECT_EQ(round(INT64_C(9000000000)), 2);
  EXPECT_EQ(bench->machine.now, INT64_C(1300000000));
  EXPECT_EQ(log, "abac");
  Clock clock(*bench, 1000);
  b->notify();
  EXPECT_EQ(round(INT64_C(9000000000)), 2);
  EXPECT_EQ(clock.times, (Times{INT64_C(1300001000)}));
  a->notify();
  tide_timer_cancel(&clock.timer);
  EXPECT_EQ(round(INT64_C(1300005000)), 1) << "the caller's deadline ends the wait too";
  EXPECT_EQ(bench->machine.now, INT64_C(1300005000));
}

// The array of callbacks is for registration, triggers and the batch policy; a tide round never looks at it.
TEST(ExecRules, TideRoundDoesNotLookAtTheTableOfCallbacks) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe probe(bench, log, 'a', 1);
  Clock clock(bench, 10);
  std::fill(bench.callbacks.begin(), bench.callbacks.end(), nullptr);
  probe.notify();
  rounds_until(bench, 30);
  EXPECT_EQ(log, "a");
  EXPECT_EQ(clock.times, (Times{10, 20, 30}));
}

TEST(ExecRules, EqualPrioritiesAreServedInTurn) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe first(bench, log, 'a', 1), second(bench, log, 'b', 1);
  for (int times = 0; times < 3; times++) {
    second.notify();
    first.notify();
  }
  rounds_until(bench, 10);
  EXPECT_EQ(log, "bababa");
}

TEST(ExecRules, NewPriorityCountsForWhatIsReadyAlready) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe first(bench, log, 'a', 1), second(bench, log, 'b', 2);
  first.notify();
  second.notify();
  EXPECT_EQ(tide_executor_set_priority(&bench.executor, &first.callback, 3), TIDE_OK);
  rounds_until(bench, 10);
  EXPECT_EQ(log, "ab");
}

TEST(ExecRules, HooksSeeEveryRun) {
  Bench bench(TIDE_POLICY_TIDE);
  std::string log;
  bench.config.context = &log;
  bench.config.on_start = [](void *context, tide_callback_t *, int64_t now) {
    *static_cast<std::string *>(context) += "<" + std::to_string(now);
  };
  bench.config.on_end = [](void *context, tide_callback_t *callback, int64_t now) {
    EXPECT_EQ(callback->end_ns, now);
    *static_cast<std::string *>(context) += ">" + std::to_string(now);
  };
  bench.init();
  Clock clock(bench, 10);
  clock.execution = 3;
  rounds_until(bench, 20);
  EXPECT_EQ(log, "<10>13<20>23");
  EXPECT_EQ(clock.timer.callback.runs, 2u);
}

TEST(ExecChain, LaterIsMoreUrgentAndSharedCallbacksKeepTheHighest) {
  tide_chain_t urgent{}, lazy{};
  ASSERT_EQ(tide_chain_init(&urgent, "urgent", 5, 100, 100), TIDE_OK);
  ASSERT_EQ(tide_chain_init(&lazy, "lazy", 4, 100, 100), TIDE_OK);
  tide_callback_t timer{}, end{}, shared{};
  EXPECT_EQ(tide_chain_add(&urgent, &timer), 0);
  EXPECT_EQ(tide_chain_add_remote(&urgent), 1);
  EXPECT_EQ(tide_chain_add(&urgent, &end), 2);
  EXPECT_EQ(tide_chain_add(&lazy, &shared), 0);
  EXPECT_EQ(tide_chain_add(&lazy, &timer), 1);
  EXPECT_EQ(timer.priority, TIDE_PRIORITY(5, 0));
  EXPECT_EQ(end.priority, TIDE_PRIORITY(5, 2));
  EXPECT_EQ(shared.priority, TIDE_PRIORITY(4, 0));
  EXPECT_EQ(tide_chain_add(&urgent, &shared), 3);
  EXPECT_EQ(shared.priority, TIDE_PRIORITY(5, 3));
}

TEST(ExecChain, EveryCallbackOfAMoreUrgentChainIsAboveTheOthers) {
  std::vector<tide_priority_t> all;
  for (uint8_t level = 1; level <= TIDE_LEVEL_MAXIMUM; level++) {
    tide_chain_t chain{};
    ASSERT_EQ(tide_chain_init(&chain, "", level, 0, 0), TIDE_OK);
    for (int position = 0; position < 256; position++) {
      tide_callback_t callback{};
      ASSERT_EQ(tide_chain_add(&chain, &callback), position);
      all.push_back(callback.priority);
    }
    EXPECT_EQ(tide_chain_add_remote(&chain), TIDE_ERROR_FULL);
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(ExecChain, ReadyCallbackMovesWhenAChainIsAssigned) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe first(bench, log, 'a', 0), second(bench, log, 'b', 1);
  first.notify();
  second.notify();
  tide_chain_t chain{};
  ASSERT_EQ(tide_chain_init(&chain, "late", 1, 0, 0), TIDE_OK);
  EXPECT_EQ(tide_chain_add(&chain, &first.callback), 0);
  rounds_until(bench, 10);
  EXPECT_EQ(log, "ab");
}

TEST(ExecChain, BadArgumentsAreRefused) {
  tide_chain_t chain{};
  tide_callback_t callback{};
  EXPECT_EQ(tide_chain_add(&chain, &callback), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_add_remote(&chain), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(nullptr, "", 1, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", 0, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", TIDE_LEVEL_MAXIMUM + 1, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", 1, -1, 0), TIDE_ERROR_ARGUMENT);
}

// ---- execution times ----

struct Measured {
  explicit Measured(Bench &bench, uint64_t mask = UINT64_MAX, bool of_thread = false) {
    clock.now = [](void *context) -> uint64_t {
      return static_cast<uint64_t>(static_cast<Bench *>(context)->machine.now);
    };
    clock.context = &bench;
    clock.mask = mask;
    clock.hertz = 1000000000;
    clock.of_thread = of_thread;
    tide_measure_init(&measure, &clock);
    bench.config.measure = &measure;
  }
  tide_measure_clock_t clock{};
  tide_measure_t measure{};
};

// Another executor of the same machine, whose callback preempts: an interrupt runs it.
struct Preempting {
  explicit Preempting(Bench &bench) {
    auto config = bench.config;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = callbacks.size();
    config.lanes = &lane;
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
  }
  std::array<tide_callback_t *, 2> callbacks{};
  std::array<tide_queue_entry_t *, 2> ready{}, timers{};
  tide_lane_t lane{};
  tide_executor_t executor{};
};

TEST(ExecMeasure, CountsShortestLongestAndSumOfTheCallbacksThatAreMeasured) {
  Bench bench(TIDE_POLICY_TIDE);
  Measured measured(bench);
  bench.init();
  std::string log;
  Probe a(bench, log, 'a', 1), b(bench, log, 'b', 2);
  tide_measurement_t of_a{"brake/a", 0, 0, 0, 0};
  a.callback.measurement = &of_a;
  int64_t duration = 0;
  a.action = [&] { bench.machine.execute(duration); };
  b.action = [&] { bench.machine.execute(1000); };
  for (const int64_t each : {30, 7, 12}) {
    duration = each;
    a.notify();
    b.notify();
    rounds_until(bench, bench.machine.now + 2000);
  }
  EXPECT_EQ(log, "bababa");
  EXPECT_EQ(of_a.count, 3u);
  EXPECT_EQ(of_a.minimum, 7u);
  EXPECT_EQ(of_a.maximum, 30u);
  EXPECT_EQ(of_a.sum, 49u);
}

TEST(ExecMeasure, WhatPreemptsIsTakenOffUnlessTheClockIsTheThreads) {
  for (const bool of_thread : {false, true}) {
    Bench bench(TIDE_POLICY_TIDE);
    Measured measured(bench, UINT64_MAX, of_thread);
    bench.init();
    Preempting urgent(bench), most_urgent(bench);
    std::array<tide_measurement_t, 3> of{};
    std::string log;
    Probe low(bench, log, 'l', 1);
    low.callback.measurement = &of[0];
    low.action = [&] { bench.machine.execute(100); };
    struct Nested {
      Bench *bench;
      int64_t duration;
    } middle{&bench, 40}, high{&bench, 5};
    const auto nested = [](tide_callback_t *, void *context) {
      auto *self = static_cast<Nested *>(context);
      self->bench->machine.execute(self->duration);
    };
    tide_callback_t in_middle{}, in_high{};
    in_middle.kind = in_high.kind = TIDE_CALLBACK_GUARD;
    in_middle.execute = in_high.execute = nested;
    in_middle.context = &middle;
    in_high.context = &high;
    in_middle.measurement = &of[1];
    in_high.measurement = &of[2];
    ASSERT_EQ(tide_executor_add(&urgent.executor, &in_middle), TIDE_OK);
    ASSERT_EQ(tide_executor_add(&most_urgent.executor, &in_high), TIDE_OK);
    const auto preempt = [&](tide_executor_t &executor, tide_callback_t &callback) {
      tide_executor_notify(&callback);
      EXPECT_EQ(tide_executor_round(&executor, bench.machine.now), 1);
    };
    for (const int64_t begin : {0, 1000}) {
      bench.machine.at(begin + 10, [&] { preempt(urgent.executor, in_middle); });
      for (const int64_t offset : {12, 20})  // within the middle one
        bench.machine.at(begin + offset, [&] { preempt(most_urgent.executor, in_high); });
      bench.machine.at(begin + 80, [&] { preempt(most_urgent.executor, in_high); });  // within the low one
      bench.machine.now = begin;
      low.notify();
      rounds_until(bench, begin + 900);
    }
    EXPECT_EQ(of[0].count, 2u);
    EXPECT_EQ(of[1].count, 2u);
    EXPECT_EQ(of[2].count, 6u);
    EXPECT_EQ(of[2].sum, 30u);
    const uint64_t low_whole = of_thread ? of[0].maximum : of[0].maximum + of[1].maximum + 3 * of[2].maximum;
    EXPECT_EQ(low_whole, 100u);  // execute() ends at a time: whoever preempts takes from it
    EXPECT_EQ(of[0].minimum, of[0].maximum);
    EXPECT_EQ(of[1].maximum, of_thread ? 40u : 30u);
  }
}

TEST(ExecMeasure, ACounterThatWrapsMeasuresOn) {
  Bench bench(TIDE_POLICY_TIDE);
  Measured measured(bench, 0xFF);
  measured.measure.clock.now = [](void *context) -> uint64_t {
    return static_cast<uint64_t>(static_cast<Bench *>(context)->machine.now) & 0xFF;
  };
  bench.init();
  tide_measurement_t of{};
  Clock clock(bench, 300);
  clock.execution = 200;
  clock.timer.callback.measurement = &of;
  rounds_until(bench, 3000);
  EXPECT_GE(of.count, 9u);
  EXPECT_EQ(of.minimum, 200u);
  EXPECT_EQ(of.maximum, 200u);
}

TEST(ExecMeasure, ALineIsInNanosecondsAndNeverTooLong) {
  tide_measure_t measure{};
  measure.clock.hertz = 216000000;
  const tide_measurement_t of{"brake/sample", 2, 216, UINT32_MAX, UINT64_C(432000000000) + 1};
  char text[TIDE_MEASUREMENT_LINE_BYTES];
  const std::string expected = "tide-execution brake/sample 2 1000 19884107848 2000000000005\n";
  EXPECT_EQ(tide_measurement_line(&of, &measure, text, sizeof text), expected.size());
  EXPECT_EQ(text, expected);
  for (size_t bytes = 0; bytes <= expected.size() + 1; bytes++) {
    std::string cut(bytes + 1, '#');
    const size_t written = tide_measurement_line(&of, &measure, cut.data(), bytes);
    EXPECT_EQ(written, bytes == 0 ? 0 : std::min(bytes - 1, expected.size()));
    EXPECT_EQ(cut.substr(0, written), expected.substr(0, written));
    EXPECT_EQ(cut[bytes], '#') << "written beyond " << bytes;
  }
}

}  // namespace
