// SPDX-License-Identifier: Apache-2.0
// Local delivery through the rclc interface: messages that are passed in place or copied, matching, and refusals.
#include "connected.h"
#include "tide/pools.h"
#include "tide/rclc_local.h"

namespace tide::compat::test::lanes_test_local {

class LocalReach : public Spinning {
 protected:
  LocalReach() : Spinning(3) {
    numbers.clear();
    place = nullptr;
  }

  rcl_ret_t advertise(rcl_publisher_t &publisher, tide_reach_t reach, const char *topic = "points",
                      const rosidl_message_type_support_t *type = int32_type()) {
    return tide_rclc_publisher_init(&publisher, &node, type, topic, &rmw_qos_profile_default, reach);
  }
  rcl_ret_t listen(rcl_subscription_t &subscription, tide_reach_t reach, const char *topic = "points",
                   const rosidl_message_type_support_t *type = int32_type(),
                   const rmw_qos_profile_t *qos = &rmw_qos_profile_default) {
    return tide_rclc_subscription_init(&subscription, &node, type, topic, qos, reach);
  }
  static void on_number(const void *message) {
    place = message;
    numbers.push_back(static_cast<const std_msgs__msg__Int32 *>(message)->data);
  }
  void add(rcl_subscription_t &subscription) {
    ASSERT_OK(rclc_executor_add_subscription(&executor, &subscription, &memory, on_number, ON_NEW_DATA));
  }
  static rcl_ret_t publish(const rcl_publisher_t &publisher, int32_t number) {
    const std_msgs__msg__Int32 message{number};
    return rcl_publish(&publisher, &message, nullptr);
  }
  bool hears(size_t count) {
    return spin_until([&] { return numbers.size() >= count; });
  }
  std::vector<int32_t> spun() {
    EXPECT_OK(rclc_executor_spin_some(&executor, 0));
    return numbers;
  }

  std_msgs__msg__Int32 memory{};
  static inline std::vector<int32_t> numbers;
  static inline const void *place;
};

TEST_F(LocalReach, AMessageOfFixedSizeIsReadWhereThePublisherWroteIt) {
  rcl_publisher_t publisher{};
  rcl_subscription_t subscription{};
  const size_t objects_before = session()->objects_used;
  ASSERT_OK(advertise(publisher, TIDE_REACH_LOCAL));
  ASSERT_OK(listen(subscription, TIDE_REACH_LOCAL));
  EXPECT_EQ(session()->objects_used, objects_before) << "nothing of it is on the agent";
  add(subscription);
  ASSERT_TRUE(rcl_publisher_can_loan_messages(&publisher));
  void *loan = nullptr;
  ASSERT_OK(rcl_borrow_loaned_message(&publisher, int32_type(), &loan));
  static_cast<std_msgs__msg__Int32 *>(loan)->data = 41;
  ASSERT_OK(rcl_publish_loaned_message(&publisher, loan, nullptr));
  ASSERT_OK(publish(publisher, 42));
  EXPECT_EQ(spun(), (std::vector<int32_t>{41, 42}));
  EXPECT_NE(place, &memory);
  EXPECT_EQ(memory.data, 0) << "not even copied into the program's memory";
  ASSERT_OK(publish(publisher, 43));
  rmw_message_info_t info{};
  ASSERT_OK(rcl_take(&subscription, &memory, &info, nullptr));
  EXPECT_EQ(memory.data, 43);
  EXPECT_TRUE(info.from_intra_process);
  ASSERT_OK(rcl_borrow_loaned_message(&publisher, int32_type(), &loan));
  EXPECT_OK(rcl_return_loaned_message_from_publisher(&publisher, loan));
  EXPECT_OK(rcl_publisher_fini(&publisher, &node));
  EXPECT_OK(rcl_subscription_fini(&subscription, &node));
  EXPECT_EQ(tide_pools.local_pool->reserved, 0u);
  EXPECT_FALSE(tide_pools.local_topics[0].open);
}

TEST_F(LocalReach, AMessageWithTextIsDecodedIntoTheProgramsMemory) {
  rcl_publisher_t publisher{};
  rcl_subscription_t subscription{};
  ASSERT_OK(advertise(publisher, TIDE_REACH_LOCAL, "words", string_type()));
  ASSERT_OK(listen(subscription, TIDE_REACH_LOCAL, "words", string_type()));
  EXPECT_FALSE(rcl_publisher_can_loan_messages(&publisher));
  void *loan = nullptr;
  EXPECT_REFUSED(rcl_borrow_loaned_message(&publisher, string_type(), &loan), RCL_RET_UNSUPPORTED,
                 TIDE_ERROR_UNSUPPORTED);
  static std::string text;
  static char characters[16];
  std_msgs__msg__String received{{characters, 0, sizeof characters}};
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received,
      [](const void *message) { text = static_cast<const std_msgs__msg__String *>(message)->data.data; }, ON_NEW_DATA));
  const auto say = [&](std::string words) {
    std_msgs__msg__String message{{words.data(), words.size(), words.size() + 1}};
    return rcl_publish(&publisher, &message, nullptr);
  };
  ASSERT_OK(say("one"));
  EXPECT_OK(rclc_executor_spin_some(&executor, 0));
  EXPECT_EQ(text, "one");
  ASSERT_OK(say("more than fifteen characters"));
  EXPECT_REFUSED(rclc_executor_spin_some(&executor, 0), RCL_RET_ERROR, TIDE_ERROR_CAPACITY_MESSAGE);
  EXPECT_EQ(text, "one") << "it does not fit";
  EXPECT_EQ(subscription.impl->decode_errors, 1u);
  EXPECT_REFUSED(say(std::string(60, 'x')), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  tide_local_counters_t counters{};
  ASSERT_OK(tide_rclc_publisher_local_counters(&publisher, &counters));
  EXPECT_EQ(counters.published, 2u);
  EXPECT_EQ(tide_pools.local_topics[0].topic.used, 0u) << "nothing leaks";
}

TEST_F(LocalReach, BothReachesTheAgentAndThisProcessOnceEach) {
  rcl_publisher_t publisher{};
  rcl_subscription_t local{}, refused{};
  ASSERT_OK(advertise(publisher, TIDE_REACH_BOTH));
  ASSERT_OK(listen(local, TIDE_REACH_LOCAL));
  EXPECT_REFUSED(listen(refused, TIDE_REACH_BOTH), RCL_RET_UNSUPPORTED, TIDE_ERROR_UNSUPPORTED)
      << "it would hear each message twice";
  add(local);
  ASSERT_OK(publish(publisher, 7));
  void *loan = nullptr;
  ASSERT_OK(rcl_borrow_loaned_message(&publisher, int32_type(), &loan));
  static_cast<std_msgs__msg__Int32 *>(loan)->data = 8;
  ASSERT_OK(rcl_publish_loaned_message(&publisher, loan, nullptr));
  EXPECT_EQ(spun(), (std::vector<int32_t>{7, 8}));
  EXPECT_TRUE(eventually([&] { return server.written("rt/points").size() == 2; }));
  EXPECT_EQ(int32_of(server.written("rt/points").back()), 8);
}

TEST_F(LocalReach, ASubscriptionOfBothHearsTheAgentToo) {
  rcl_publisher_t publisher{}, refused{};
  rcl_subscription_t subscription{};
  ASSERT_OK(listen(subscription, TIDE_REACH_BOTH));
  EXPECT_REFUSED(advertise(refused, TIDE_REACH_BOTH), RCL_RET_UNSUPPORTED, TIDE_ERROR_UNSUPPORTED);
  ASSERT_OK(advertise(publisher, TIDE_REACH_LOCAL));
  add(subscription);
  ASSERT_OK(publish(publisher, 1));
  ASSERT_TRUE(hears(1));
  ASSERT_TRUE(eventually([&] { return server.offer("rt/points", int32_bytes(2)); }));
  ASSERT_TRUE(hears(2));
  ASSERT_OK(publish(publisher, 3));
  ASSERT_TRUE(hears(3));
  EXPECT_EQ(numbers, (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(LocalReach, EveryRefusalHasAName) {
  std::array<rcl_publisher_t, 3> publishers{};
  std::array<rcl_subscription_t, 3> subscriptions{};
  EXPECT_REFUSED(advertise(publishers[0], static_cast<tide_reach_t>(9)), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(listen(subscriptions[0], TIDE_REACH_LOCAL));            // reserves 5 of 16 messages
  ASSERT_OK(listen(subscriptions[1], TIDE_REACH_LOCAL, "others"));  // 10 are reserved
  EXPECT_REFUSED(listen(subscriptions[2], TIDE_REACH_LOCAL), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_LOCAL_TOPICS);
  EXPECT_REFUSED(advertise(publishers[0], TIDE_REACH_LOCAL, "third"), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_LOCAL_TOPICS);
  EXPECT_REFUSED(advertise(publishers[0], TIDE_REACH_LOCAL, "points", string_type()), RCL_RET_ALREADY_INIT,
                 TIDE_ERROR_EXISTS);
  ASSERT_OK(advertise(publishers[0], TIDE_REACH_LOCAL));  // 13 are reserved
  ASSERT_OK(advertise(publishers[1], TIDE_REACH_LOCAL));  // 16 are reserved
  EXPECT_REFUSED(advertise(publishers[2], TIDE_REACH_LOCAL), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_LOCAL_MESSAGES);
  EXPECT_OK(rcl_publisher_fini(&publishers[1], &node));
  EXPECT_OK(advertise(publishers[2], TIDE_REACH_LOCAL)) << "what it had set aside is free again, and so is its place";
  std::array<void *, 6> loans{};
  for (void *&loan : loans) ASSERT_OK(rcl_borrow_loaned_message(&publishers[0], int32_type(), &loan));
  for (size_t more = 0; more < 5; more++) {
    void *loan = nullptr;
    ASSERT_OK(rcl_borrow_loaned_message(&publishers[0], int32_type(), &loan)) << "the queue is empty";
  }
  EXPECT_REFUSED(publish(publishers[0], 1), RCL_RET_ERROR, TIDE_ERROR_FULL);
}

}  // namespace tide::compat::test::lanes_test_local
