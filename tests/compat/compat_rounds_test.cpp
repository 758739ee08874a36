// SPDX-License-Identifier: Apache-2.0
// Logical execution time: inputs are taken before the first callback of a round, and outputs are sent after the last
// one.
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::rounds_test {

class Rounds : public Spinning {
 protected:
  Rounds() : Spinning(5) {}
  void SetUp() override {
    Spinning::SetUp();
    for (size_t i = 0; i < inputs.size(); i++) subscribe(inputs[i], "in" + std::to_string(i));
    ASSERT_OK(rclc_publisher_init_default(&output, &node, int32_type(), "out"));
  }
  void add(size_t place, rclc_executor_handle_invocation_t invocation = ON_NEW_DATA) {
    hear(inputs[place], invocation);
  }
  void deliver(size_t place, int32_t number) { Spinning::deliver(inputs[place], number); }
  void publish(int32_t number) {
    std_msgs__msg__Int32 message{};
    message.data = number;
    EXPECT_OK(rcl_publish(&output, &message, nullptr));
  }
  std::vector<int32_t> written() {
    std::vector<int32_t> numbers;
    for (const Octets &bytes : server.written("rt/out")) numbers.push_back(int32_of(bytes));
    return numbers;
  }
  bool writes_within(std::chrono::milliseconds limit) {
    return eventually([&] { return !written().empty(); }, limit);
  }
  rcl_ret_t use(rclc_executor_semantics_t semantics) { return rclc_executor_set_semantics(&executor, semantics); }
  rcl_ret_t spin() { return rclc_executor_spin_some(&executor, 20 * kMillisecond); }

  std::array<Heard, 3> inputs;
  rcl_publisher_t output{};
};

TEST_F(Rounds, EveryInputIsThereBeforeTheFirstCallback) {
  for (const auto semantics : {RCLC_SEMANTICS_RCLCPP_EXECUTOR, RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME}) {
    SCOPED_TRACE(semantics);
    ASSERT_OK(use(semantics));
    if (executor.index == 0) {
      add(0);
      add(1);
    }
    inputs[0].message.data = inputs[1].message.data = 0;
    std::vector<int32_t> seen;  // the message of the other callback, as seen in each callback
    inputs[0].act = [&] { seen.push_back(inputs[1].message.data); };
    inputs[1].act = [&] { seen.push_back(inputs[0].message.data); };
    deliver(0, 7);
    deliver(1, 7);
    ASSERT_OK(spin());
    const bool logical = semantics == RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME;
    EXPECT_EQ(seen, (std::vector<int32_t>{logical ? 7 : 0, 7}));
  }
}

TEST_F(Rounds, OutputsLeaveWhenTheLastCallbackHasEnded) {
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  add(0);
  add(1);
  inputs[0].act = [&] { publish(1); };
  inputs[1].act = [&] {
    publish(2);
    EXPECT_FALSE(writes_within(std::chrono::milliseconds(50)));
  };
  deliver(0, 1);
  deliver(1, 1);
  ASSERT_OK(spin());
  EXPECT_TRUE(eventually([&] { return written() == std::vector<int32_t>{1, 2}; }));
}

TEST_F(Rounds, WithoutThemOutputsLeaveAtOnce) {
  add(0);
  inputs[0].act = [&] {
    publish(1);
    EXPECT_TRUE(writes_within(std::chrono::seconds(5)));
  };
  deliver(0, 1);
  ASSERT_OK(spin());
  EXPECT_EQ(inputs[0].numbers.size(), 1u);
}

TEST_F(Rounds, OutputsLeaveInASpinThatGoesOnAndAtItsEnd) {
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  add(0);
  inputs[0].act = [&] {
    publish(inputs[0].message.data);
    if (inputs[0].message.data == 2) tide_executor_stop(tide_rclc_executor_core(&executor));
  };
  Thread spinning([&] { EXPECT_OK(rclc_executor_spin(&executor)); });
  ASSERT_TRUE(eventually([&] { return server.offer("rt/in0", int32_bytes(1)); }));
  EXPECT_TRUE(eventually([&] { return written() == std::vector<int32_t>{1}; }));
  ASSERT_TRUE(eventually([&] { return server.offer("rt/in0", int32_bytes(2)); }));
  spinning.join();
  EXPECT_TRUE(eventually([&] { return written() == (std::vector<int32_t>{1, 2}); }));
}

TEST_F(Rounds, AnotherThreadsOutputsDoNotWait) {
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  add(0);
  inputs[0].act = [&] {
    std::thread other([&] { publish(9); });  // not a simulated thread: the runtime recognises the round by a
                                             // thread-local variable
    other.join();
    EXPECT_TRUE(writes_within(std::chrono::seconds(5)));
  };
  deliver(0, 1);
  ASSERT_OK(spin());
  EXPECT_EQ(inputs[0].numbers.size(), 1u);
}

TEST_F(Rounds, ATriggerStaysAndCallbacksThatAreAlwaysCalledAreCalled) {
  ASSERT_OK(rclc_executor_set_trigger(&executor, rclc_executor_trigger_one, &inputs[0].subscription));
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  add(0);
  add(1, ALWAYS);
  deliver(1, 5);
  ASSERT_OK(spin());
  EXPECT_TRUE(inputs[1].numbers.empty());
  deliver(0, 1);
  ASSERT_OK(spin());
  deliver(0, 2);
  ASSERT_OK(spin());
  EXPECT_EQ(inputs[0].numbers, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(inputs[1].numbers, (std::vector<int32_t>{5, -1}));
}

TEST_F(Rounds, AreRefusedFromWithinAndWithLanes) {
  add(0);
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  EXPECT_REFUSED(use(static_cast<rclc_executor_semantics_t>(2)), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  inputs[0].act = [&] { EXPECT_REFUSED(use(RCLC_SEMANTICS_RCLCPP_EXECUTOR), RCL_RET_ERROR, TIDE_ERROR_STATE); };
  deliver(0, 1);
  ASSERT_OK(spin());
  ASSERT_OK(rclc_executor_remove_subscription(&executor, &inputs[0].subscription));
  ASSERT_OK(rclc_executor_fini(&executor));
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 5, &allocator));
  const std::array<tide_lane_settings_t, 2> lanes{};
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()), RCL_RET_UNSUPPORTED,
                 TIDE_ERROR_UNSUPPORTED);
}

// Called while an input is being decoded; does what another thread might do then.
std::function<void()> meanwhile;
void decode_slowly(tide_cdr_t *cdr, void *message) {
  static_cast<const tide_message_type_t *>(int32_type()->data)->decode(cdr, message);
  if (meanwhile) std::exchange(meanwhile, nullptr)();
}

TEST_F(Rounds, ACallbackMayBeRemovedWhileInputsAreTaken) {
  static tide_message_type_t type = *static_cast<const tide_message_type_t *>(int32_type()->data);
  type.decode = decode_slowly;
  static rosidl_message_type_support_t support_of_type = *int32_type();
  support_of_type.data = &type;
  ASSERT_OK(rcl_subscription_fini(&inputs[1].subscription, &node));
  ASSERT_OK(rclc_subscription_init_default(&inputs[1].subscription, &node, &support_of_type, "in1"));
  ASSERT_OK(use(RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  for (size_t place = 0; place < 3; place++) add(place);
  const auto round = [&](int32_t number, std::function<void()> other) {
    for (size_t place = 0; place < 3; place++) deliver(place, number);
    meanwhile = std::move(other);
    for (int spins = 0; spins < 2; spins++) ASSERT_OK(spin());
  };
  const auto remove = [&](size_t place) {
    EXPECT_OK(rclc_executor_remove_subscription(&executor, &inputs[place].subscription));
  };
  round(1, nullptr);
  round(2, [&] { remove(2); });
  std_msgs__msg__Int32 message{};
  EXPECT_OK(rcl_take(&inputs[2].subscription, &message, nullptr, nullptr)) << "it is still there";
  add(2);
  round(3, nullptr);
  round(4, [&] {
    remove(0);
    add(0);
  });
  EXPECT_EQ(inputs[0].numbers, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(inputs[1].numbers, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(inputs[2].numbers, (std::vector<int32_t>{1, 3, 4})) << "not an old one again";
}

// Whatever the order of events is, callbacks run once for each sample, in the order of the samples, and outputs arrive
// once and in order.
TEST_F(Rounds, NothingIsLostOrDoubledWhateverComesWhen) {
  const auto seed = static_cast<unsigned>(World::current().random.next());
  std::mt19937 random(seed);
  for (size_t place = 0; place < 2; place++) add(place);
  std::array<int32_t, 2> offered{};
  int32_t published = 0;
  const auto waiting = [&](size_t place) {
    return offered[place] - static_cast<int32_t>(inputs[place].numbers.size());
  };
  const auto offer = [&](size_t place) {
    if (offered[place] < 30 && waiting(place) < 4) deliver(place, ++offered[place]);
  };
  for (size_t place = 0; place < 2; place++) {
    inputs[place].act = [&, place] {
      publish(++published);
      if (random() % 3 == 0) offer(1 - place);
    };
  }
  for (int step = 0; step < 40; step++) {
    if (random() % 8 == 0) {
      ASSERT_OK(use(random() % 2 == 0 ? RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME : RCLC_SEMANTICS_RCLCPP_EXECUTOR));
    }
    offer(random() % 2);
    const std::array<int32_t, 2> before = {waiting(0), waiting(1)}, since = offered;
    ASSERT_OK(spin());
    for (size_t i = 0; i < 2; i++) {
      const int32_t left = waiting(i) - (offered[i] - since[i]);
      ASSERT_LE(left, std::max(before[i] - 1, 0)) << "a round takes from each that has something";
    }
  }
  for (int rest = 0; rest < 10; rest++) ASSERT_OK(spin());
  for (size_t place = 0; place < 2; place++) {
    std::vector<int32_t> expected(static_cast<size_t>(offered[place]));
    for (size_t i = 0; i < expected.size(); i++) expected[i] = static_cast<int32_t>(i) + 1;
    EXPECT_EQ(inputs[place].numbers, expected);
  }
  EXPECT_TRUE(eventually([&] { return written().size() == static_cast<size_t>(published); }));
  const std::vector<int32_t> got = written();
  for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(got[i], static_cast<int32_t>(i) + 1);
}

}  // namespace tide::compat::test::rounds_test
