// SPDX-License-Identifier: Apache-2.0
// rclc's executor, which uses tide's: rounds, triggers, timers, guard conditions, and handles that are added and
// removed.
#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::executor_test {

class Executing : public Spinning {
 protected:
  Executing() : Spinning(6) {}
  void SetUp() override {
    Spinning::SetUp();
    for (size_t i = 0; i < subscribed.size(); i++) subscribe(subscribed[i], "topic" + std::to_string(i));
  }
  void add(size_t place, rclc_executor_handle_invocation_t invocation = ON_NEW_DATA) {
    hear(subscribed[place], invocation);
  }
  void deliver(size_t place, int32_t number) { Spinning::deliver(subscribed[place], number); }
  std::vector<int32_t> &numbers(size_t place) { return subscribed[place].numbers; }
  size_t count() const {
    size_t all = 0;
    for (const Heard &one : subscribed) all += one.numbers.size();
    return all;
  }

  std::array<Heard, 3> subscribed;
};

using Numbers = std::vector<int32_t>;

// ---- rounds ----

TEST_F(Executing, ACallbackMayEndTheSupport) {
  const auto end = [](const void *, void *whole) {
    EXPECT_OK(rclc_support_fini(static_cast<rclc_support_t *>(whole)));
  };
  ASSERT_OK(rclc_executor_add_subscription_with_context(&executor, &subscribed[0].subscription, &subscribed[0].message,
                                                        end, &support, ON_NEW_DATA));
  deliver(0, 7);
  EXPECT_OK(rclc_executor_spin(&executor));
  EXPECT_FALSE(rcl_context_is_valid(&support.context));
}

TEST_F(Executing, SpinSomeReturnsOkAfterItsTimeout) {
  add(0);
  for (const uint64_t timeout_ms : {0u, 5u, 30u}) {
    const Time begin_ns = now_ns();
    EXPECT_OK(rclc_executor_spin_some(&executor, timeout_ms * kMillisecond));
    const auto taken_ns = static_cast<uint64_t>(now_ns() - begin_ns);
    EXPECT_GE(taken_ns, timeout_ms * kMillisecond);
    EXPECT_LT(taken_ns, (timeout_ms + 500) * kMillisecond);
  }
}

TEST_F(Executing, SpinSomeReturnsWhenSomethingHasRun) {
  add(0);
  Thread later([&] {
    pass_time(30ms);
    EXPECT_TRUE(eventually([&] { return server.offer("rt/topic0", int32_bytes(7)); }));
  });
  const Time begin_ns = now_ns();
  EXPECT_OK(rclc_executor_spin_some(&executor, 20'000 * kMillisecond));
  EXPECT_LT(now_ns() - begin_ns, 10'000'000'000);
  EXPECT_EQ(numbers(0), Numbers{7});
  later.join();
}

TEST_F(Executing, SpinSomeRunsAtMostAsManyCallbacksAsHandles) {
  ASSERT_OK(rclc_executor_fini(&executor));
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  add(0);
  // This reader can use four of the twelve slots: one is being filled, and seven are reserved for other readers and for
  // data without a reader.
  for (int32_t number = 0; number < 4; number++) deliver(0, number);
  for (const size_t expected : {2u, 4u, 4u}) {
    EXPECT_OK(rclc_executor_spin_some(&executor, 0));
    EXPECT_EQ(numbers(0).size(), expected);
  }
  EXPECT_EQ(numbers(0), (Numbers{0, 1, 2, 3}));
}

TEST_F(Executing, SpinSomeRunsAllThatIsReadyWithoutWaiting) {
  for (size_t place = 0; place < 3; place++) add(place);
  for (size_t place = 0; place < 3; place++) deliver(place, static_cast<int32_t>(place));
  const Time begin_ns = now_ns();
  EXPECT_OK(rclc_executor_spin_some(&executor, 20'000 * kMillisecond));
  EXPECT_LT(now_ns() - begin_ns, 10'000'000'000);
  EXPECT_EQ(count(), 3u);
}

TEST_F(Executing, SpinningWithinACallbackIsRefused) {
  static rclc_executor_t *self;
  static int status;
  self = &executor;
  rcl_timer_t timer{};
  ASSERT_OK(rclc_timer_init_default(&timer, &support, kMillisecond, [](rcl_timer_t *, int64_t) {
    EXPECT_EQ(rclc_executor_spin_some(self, 0), RCL_RET_ERROR);
    status = tide_rclc_last_status();
  }));
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  EXPECT_OK(rclc_executor_spin_some(&executor, 1000 * kMillisecond));
  EXPECT_EQ(status, TIDE_ERROR_STATE);
}

TEST_F(Executing, StopEndsSpinAndSpinPeriod) {
  add(0);
  for (const bool periodic : {false, true}) {
    Thread stopper([&] {
      pass_time(30ms);
      tide_executor_stop(tide_rclc_executor_core(&executor));
    });
    if (periodic) {
      EXPECT_OK(rclc_executor_set_timeout(&executor, 0));
      EXPECT_OK(rclc_executor_spin_period(&executor, kMillisecond));
    } else {
      EXPECT_OK(rclc_executor_spin(&executor));
    }
    stopper.join();
  }
  deliver(0, 4);
  EXPECT_OK(rclc_executor_spin_some(&executor, 1000 * kMillisecond));
  EXPECT_EQ(numbers(0), Numbers{4});
}

TEST_F(Executing, SpinPeriodKeepsItsPeriod) {
  EXPECT_OK(rclc_executor_set_timeout(&executor, 0));
  const Time begin_ns = now_ns();
  for (int round = 1; round <= 10; round++) {
    EXPECT_OK(rclc_executor_spin_one_period(&executor, 5 * kMillisecond));
    EXPECT_GE(now_ns() - begin_ns, round * 5'000'000);
  }
  pass_time(100ms); /* the runs of twenty periods are skipped */
  EXPECT_OK(rclc_executor_spin_one_period(&executor, 5 * kMillisecond));
  const Time after_ns = now_ns();
  for (int round = 0; round < 4; round++) EXPECT_OK(rclc_executor_spin_one_period(&executor, 5 * kMillisecond));
  EXPECT_GE(now_ns() - after_ns, 15'000'000);
}

TEST_F(Executing, SleepIsNeverShort) {
  const Time begin_ns = now_ns();
  rclc_sleep_ms(15);
  EXPECT_GE(now_ns() - begin_ns, 15'000'000);
}

TEST_F(Executing, AMessageThatDoesNotFitIsPassedOver) {
  ASSERT_OK(rcl_subscription_fini(&subscribed[0].subscription, &node));
  ASSERT_OK(rclc_subscription_init_default(&subscribed[0].subscription, &node, string_type(), "text"));
  static std::vector<std::string> texts;
  texts.clear();
  char memory[8];
  std_msgs__msg__String text = {{memory, 0, sizeof memory}};
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscribed[0].subscription, &text,
      [](const void *message) { texts.emplace_back(static_cast<const std_msgs__msg__String *>(message)->data.data); },
      ON_NEW_DATA));
  for (const char *one : {"first", "much too long", "last"}) {
    ASSERT_TRUE(eventually([&] { return server.offer("rt/text", string_bytes(one)); }));
  }
  server.offer("rt/text", {9, 0, 0}); /* invalid data */
  server.offer("rt/text", string_bytes("end"));
  int refused = 0;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(eventually([&] {
    refused += rclc_executor_spin_some(&executor, kMillisecond) == RCL_RET_ERROR;
    return !texts.empty() && texts.back() == "end";
  }));
  const std::string reported = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(texts, (std::vector<std::string>{"first", "last", "end"}));
  EXPECT_EQ(subscribed[0].subscription.impl->decode_errors, 2u);
  EXPECT_GE(refused, 1);
  EXPECT_OK(rclc_executor_spin_some(&executor, 0)) << "of those since the last one";
  EXPECT_EQ(std::count(reported.begin(), reported.end(), '\n'), 1) << "the first one of a subscription";
  EXPECT_NE(reported.find("a message of '/text' was dropped: "), std::string::npos) << reported;
  EXPECT_NE(reported.find("micro_ros_utilities_create_message_memory"), std::string::npos) << reported;
}

TEST_F(Executing, TheBoardCountsWhatTheAgentCannotSendIt) {
  ASSERT_OK(rcl_subscription_fini(&subscribed[0].subscription, &node));
  ASSERT_OK(rclc_subscription_init_best_effort(&subscribed[0].subscription, &node, string_type(), "text"));
  for (int number = 0; number < 3; number++) {
    ASSERT_TRUE(eventually([&] { return server.offer("rt/text", string_bytes(std::string(2000, 'x'))); }));
  }
  EXPECT_TRUE(eventually([&] { return session()->counters.samples_too_large == 3; }));
  EXPECT_EQ(subscribed[0].subscription.impl->reader.state, TIDE_OBJECT_CREATED);
}

// ---- triggers ----

TEST_F(Executing, AlwaysRunsWheneverAnythingDoes) {
  add(0, ALWAYS);
  add(1, ON_NEW_DATA);
  deliver(1, 10);
  EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_EQ(numbers(0), Numbers{-1});
  EXPECT_EQ(numbers(1), Numbers{10});
}

struct Seen {
  std::vector<void *> pointers;
  std::vector<bool> available;
  void *object = nullptr;
  unsigned int size = 0;
  bool answer = false;
} seen;

bool look(rclc_executor_handle_t *handles, unsigned int size, void *object) {
  seen.object = object;
  seen.size = size;
  seen.pointers.clear();
  seen.available.clear();
  for (unsigned int i = 0; i < size && handles[i].initialized; i++) {
    seen.pointers.push_back(rclc_executor_handle_get_ptr(&handles[i]));
    seen.available.push_back(handles[i].data_available);
  }
  return seen.answer;
}

TEST_F(Executing, ACustomTriggerSeesTheProgramsHandles) {
  seen = {};
  rcl_timer_t timer{};
  rcl_guard_condition_t guard{};
  ASSERT_OK(rclc_timer_init_default(&timer, &support, 3'600'000 * kMillisecond, [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rcl_guard_condition_init(&guard, &support.context, rcl_guard_condition_get_default_options()));
  add(0);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  add(1);
  ASSERT_OK(rclc_executor_add_guard_condition(&executor, &guard, [] {}));
  ASSERT_OK(rclc_executor_set_trigger(&executor, look, &seen));
  deliver(1, 10);
  EXPECT_OK(rcl_trigger_guard_condition(&guard));
  EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_EQ(seen.object, &seen);
  EXPECT_EQ(seen.size, executor.max_handles);
  EXPECT_EQ(seen.pointers,
            (std::vector<void *>{&subscribed[0].subscription, &timer, &subscribed[1].subscription, &guard}));
  EXPECT_EQ(seen.available, (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(count(), 0u);
  seen.answer = true;
  EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_EQ(count(), 1u);
}

// ---- timers ----

struct Fired {
  std::vector<Time> at_ns;
  std::vector<int64_t> since_ns;
  rcl_timer_t *timer = nullptr;
} fired;

void on_timer(rcl_timer_t *timer, int64_t since_ns) {
  fired.at_ns.push_back(now_ns());
  fired.since_ns.push_back(since_ns);
  fired.timer = timer;
}

class Timing : public Executing {
 protected:
  void SetUp() override {
    Executing::SetUp();
    fired = {};
  }
  void spin_for(uint64_t duration_ms) {
    const Time end_ns = now_ns() + static_cast<Time>(duration_ms * kMillisecond);
    while (now_ns() < end_ns) {
      EXPECT_OK(rclc_executor_spin_some(&executor, static_cast<uint64_t>(std::max<Time>(end_ns - now_ns(), 0))));
    }
  }
  rcl_timer_t timer{};
};

TEST_F(Timing, FiresOnItsGridAndNeverEarly) {
  const Time begin_ns = now_ns();
  ASSERT_OK(rclc_timer_init_default(&timer, &support, 10 * kMillisecond, on_timer));
  const Time grid_ns = timer.impl->timer.next_ns;
  EXPECT_GE(grid_ns, begin_ns + 10'000'000);
  pass_time(4ms); /* the timer runs since its initialisation */
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  EXPECT_EQ(timer.impl->timer.next_ns, grid_ns);
  spin_for(105);
  ASSERT_GE(fired.at_ns.size(), 3u);
  Time previous_cell = -1;
  for (const Time at_ns : fired.at_ns) {
    const Time cell = (at_ns - grid_ns) / 10'000'000;
    EXPECT_GE(at_ns, grid_ns);
    EXPECT_GT(cell, previous_cell); /* at most one run in each period */
    previous_cell = cell;
  }
  EXPECT_EQ(fired.timer, &timer);
  EXPECT_GT(fired.since_ns.back(), 0);
}

TEST_F(Timing, CancelResetAndAutostart) {
  ASSERT_OK(rclc_timer_init_default2(&timer, &support, 5 * kMillisecond, on_timer, false));
  bool canceled = false;
  EXPECT_OK(rcl_timer_is_canceled(&timer, &canceled));
  EXPECT_TRUE(canceled);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  spin_for(20);
  EXPECT_TRUE(fired.at_ns.empty());
  int64_t until_ns = 0;
  EXPECT_EQ(rcl_timer_get_time_until_next_call(&timer, &until_ns), RCL_RET_TIMER_CANCELED);
  const Time reset_ns = now_ns();
  EXPECT_OK(rcl_timer_reset(&timer));
  EXPECT_OK(rcl_timer_get_time_until_next_call(&timer, &until_ns));
  EXPECT_GT(until_ns, -1'000'000'000);
  EXPECT_LE(until_ns, 5'000'000);
  spin_for(30);
  ASSERT_FALSE(fired.at_ns.empty());
  EXPECT_GE(fired.at_ns[0], reset_ns + 5'000'000);
  EXPECT_OK(rcl_timer_cancel(&timer));
  EXPECT_OK(rcl_timer_is_canceled(&timer, &canceled));
  EXPECT_TRUE(canceled);
  const size_t before = fired.at_ns.size();
  spin_for(20);
  EXPECT_EQ(fired.at_ns.size(), before);
}

TEST_F(Timing, ThePeriodIsExchanged) {
  ASSERT_OK(rclc_timer_init_default(&timer, &support, 3'600'000 * kMillisecond, on_timer));
  int64_t period_ns = 0;
  EXPECT_OK(rcl_timer_exchange_period(&timer, 7'000'000, &period_ns));
  EXPECT_EQ(period_ns, 3'600'000'000'000);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  EXPECT_OK(rcl_timer_exchange_period(&timer, 4'000'000, &period_ns));
  EXPECT_EQ(period_ns, 7'000'000);
  EXPECT_OK(rcl_timer_get_period(&timer, &period_ns));
  EXPECT_EQ(period_ns, 4'000'000);
  EXPECT_EQ(rcl_timer_exchange_period(&timer, 0, &period_ns), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_timer_exchange_period(&timer, 1, nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_OK(rcl_timer_reset(&timer));
  spin_for(30);
  EXPECT_GE(fired.at_ns.size(), 2u);
}

// ---- guard conditions ----

TEST_F(Executing, AChainBeginsWithAGuardCondition) {
  rcl_guard_condition_t guard{};
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "estop", 7, 100'000'000, 100'000'000), TIDE_OK);
  ASSERT_OK(rcl_guard_condition_init(&guard, &support.context, rcl_guard_condition_get_default_options()));
  EXPECT_REFUSED(tide_rclc_chain_add_guard_condition(&chain, &guard), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(rclc_executor_add_guard_condition(&executor, &guard, [] {}));
  EXPECT_OK(tide_rclc_chain_add_guard_condition(&chain, &guard));
  EXPECT_EQ(TIDE_PRIORITY_LEVEL(tide_rclc_guard_condition_callback(&guard)->priority), 7);
  EXPECT_OK(rcl_guard_condition_fini(&guard));
}

// ---- handles that end ----

TEST_F(Executing, ARemovedSubscriptionKeepsItsSamplesForLater) {
  add(0);
  add(1);
  EXPECT_OK(rclc_executor_remove_subscription(&executor, &subscribed[0].subscription));
  EXPECT_REFUSED(rclc_executor_remove_subscription(&executor, &subscribed[0].subscription), RCL_RET_ERROR,
                 TIDE_ERROR_NOT_FOUND);
  deliver(0, 1);
  deliver(1, 10);
  for (int round = 0; round < 3; round++) EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  EXPECT_EQ(numbers(0), Numbers{});
  EXPECT_EQ(numbers(1), Numbers{10});
  add(0);
  EXPECT_OK(rclc_executor_spin_some(&executor, 1000 * kMillisecond));
  EXPECT_EQ(numbers(0), Numbers{1});
}

TEST_F(Executing, AFinishedSubscriptionIsForgotten) {
  add(0);
  add(1);
  deliver(0, 1);
  EXPECT_OK(rcl_subscription_fini(&subscribed[0].subscription, &node));
  std::memset(&subscribed[0].subscription, 0x5A,
              sizeof subscribed[0].subscription); /* the program may use the memory again */
  EXPECT_FALSE(executor.handles[0].initialized);
  deliver(1, 10);
  EXPECT_OK(rclc_executor_spin_some(&executor, 1000 * kMillisecond));
  EXPECT_EQ(numbers(1), Numbers{10});
  EXPECT_EQ(numbers(0), Numbers{});
}

TEST_F(Executing, ObjectsMayGoOutOfScopeBeforeTheirExecutor) {
  {
    std::array<rcl_timer_t, 2> timers{};
    for (rcl_timer_t &timer : timers) {
      ASSERT_OK(rclc_timer_init_default(&timer, &support, 3'600'000 * kMillisecond, [](rcl_timer_t *, int64_t) {}));
      ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
    }
    std::memset(timers.data(), 0x5A, sizeof timers);
  }
  EXPECT_OK(rclc_executor_spin_some(&executor, 0));
  EXPECT_OK(rclc_executor_fini(&executor));
}

TEST_F(Executing, ASubscriptionWithoutAnExecutorIsTakenByHand) {
  std_msgs__msg__Int32 message{};
  rmw_message_info_t info{};
  EXPECT_EQ(rcl_take(&subscribed[0].subscription, &message, nullptr, nullptr), RCL_RET_SUBSCRIPTION_TAKE_FAILED);
  deliver(0, 8);
  EXPECT_OK(rclc_executor_spin_some(&executor, 0)); /* processes received frames */
  EXPECT_OK(rcl_take(&subscribed[0].subscription, &message, &info, nullptr));
  EXPECT_EQ(message.data, 8);
  EXPECT_GT(info.received_timestamp, 0);
  EXPECT_EQ(rcl_take(&subscribed[0].subscription, &message, nullptr, nullptr), RCL_RET_SUBSCRIPTION_TAKE_FAILED);
}

// ---- policies ----

TEST_F(Executing, ThePolicyIsChosenBeforeHandlesAreAdded) {
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_BATCH));
  for (size_t place = 0; place < 2; place++) add(place);
  EXPECT_REFUSED(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_TIDE), RCL_RET_ERROR, TIDE_ERROR_STATE);
  deliver(1, 10);
  deliver(0, 1);
  EXPECT_TRUE(
      eventually([&] { return rclc_executor_spin_some(&executor, kMillisecond) == RCL_RET_OK && count() == 2; }));
}

// Some programs have a helper function that returns an executor by value.
TEST_F(Connected, AnExecutorMayBeCopiedAfterItsInit) {
  (void)publisher_of(int32_type(), "copied");
  rcl_subscription_t subscription = subscription_of(int32_type(), "copied");
  static int runs;
  runs = 0;
  std_msgs__msg__Int32 message{};
  rclc_executor_t first = executor_of(2);
  rclc_executor_t second = first;
  std::memset(&first, 0xEE, sizeof first);
  ASSERT_OK(rclc_executor_add_subscription(
      &second, &subscription, &message, [](const void *) { runs++; }, ON_NEW_DATA));
  ASSERT_OK(rclc_executor_set_trigger(&second, rclc_executor_trigger_all, nullptr));
  ASSERT_TRUE(eventually([&] { return server.offer("rt/copied", int32_bytes(1)); }));
  EXPECT_TRUE(eventually([&] { return rclc_executor_spin_some(&second, RCL_MS_TO_NS(5)) == RCL_RET_OK && runs == 1; }));
  EXPECT_OK(rclc_executor_set_semantics(&second, RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  EXPECT_OK(rclc_executor_spin_some(&second, RCL_MS_TO_NS(5)));
  EXPECT_OK(rclc_executor_fini(&second));
}

}  // namespace tide::compat::test::executor_test
