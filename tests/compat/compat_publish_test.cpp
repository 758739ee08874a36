// SPDX-License-Identifier: Apache-2.0
// Publishing: pools, sizes, several threads and send modes, and how priorities and chains determine the streams on the
// wire.
#include <atomic>
#include <map>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::publish_test {

constexpr size_t kSubmessageBytes = 8; /* header and ids of a WRITE_DATA */
constexpr size_t kStringBytes = 5;     /* length and NUL */

class Publishing : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    ASSERT_OK(rclc_publisher_init_default(&publisher, &node, string_type(), "text"));
    ASSERT_OK(rclc_publisher_init_best_effort(&quick, &node, int32_type(), "number"));
  }
  rcl_ret_t publish(size_t characters) {
    text.assign(characters, 'x');
    std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
    return rcl_publish(&publisher, &message, nullptr);
  }

  rcl_publisher_t publisher{}, quick{};
  std::string text;
};

TEST_F(Publishing, TheLargestMessageIsAsDocumented) {
  const size_t largest = tide_pools.classes[1].node_bytes - kSubmessageBytes - kStringBytes;
  EXPECT_OK(publish(largest));
  EXPECT_TRUE(eventually([&] { return server.written("rt/text").size() == 1; }));
  EXPECT_EQ(server.written("rt/text")[0], string_bytes(text));
  EXPECT_REFUSED(publish(largest + 1), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  EXPECT_REFUSED(publish(70'000), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
}

TEST_F(Publishing, BestEffortGoesInOneMessageOrNotAtAll) {
  rcl_publisher_t wide{};
  ASSERT_OK(rclc_publisher_init_best_effort(&wide, &node, string_type(), "wide"));
  text.assign(tide_pools.mtu_bytes, 'w');
  std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
  EXPECT_REFUSED(rcl_publish(&wide, &message, nullptr), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  message.data.size = 20;
  text.resize(20);
  message.data.data = text.data();
  EXPECT_OK(rcl_publish(&wide, &message, nullptr));
  EXPECT_TRUE(eventually([&] { return server.written("rt/wide").size() == 1; }));
}

TEST_F(Connected, TheLinkMayTakeLessThanThePools) {
  EXPECT_OK(rclc_support_fini(&support));
  ASSERT_EQ(tide_rclc_options_set_mtu(rmw_options, 100), RMW_RET_OK);
  connect();
  rcl_publisher_t wide{}, whole{};
  ASSERT_OK(rclc_publisher_init_best_effort(&wide, &node, string_type(), "wide"));
  ASSERT_OK(rclc_publisher_init_default(&whole, &node, string_type(), "whole"));
  std::string text(100, 'w');
  std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
  EXPECT_REFUSED(rcl_publish(&wide, &message, nullptr), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  EXPECT_OK(rcl_publish(&whole, &message, nullptr)); /* sent in fragments */
  EXPECT_TRUE(eventually([&] { return server.written("rt/whole").size() == 1; }));
  EXPECT_EQ(server.written("rt/whole")[0], string_bytes(text));
}

TEST_F(Publishing, ABestEffortMessageThatNeverFitsIsTooLargeAlsoWhenThePoolIsFull) {
  rcl_publisher_t wide{};
  ASSERT_OK(rclc_publisher_init_best_effort(&wide, &node, string_type(), "wide"));
  server.mute(true);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  while (publish(600) == RCL_RET_OK) continue;
  ASSERT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  text.assign(tide_pools.mtu_bytes, 'w');
  std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
  EXPECT_REFUSED(rcl_publish(&wide, &message, nullptr), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  server.mute(false);
}

TEST_F(Publishing, AFullPoolIsWaitedForOrTold) {
  server.mute(true); /* the agent acknowledges nothing */
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  int kept = 0;
  while (publish(10) == RCL_RET_OK && kept < 100) kept++;
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  EXPECT_GE(kept, tide_pools.data_node_count - 2);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 60));
  Time begin_ns = now_ns();
  EXPECT_REFUSED(publish(10), RCL_RET_ERROR, TIDE_ERROR_FULL);
  EXPECT_GE(now_ns() - begin_ns, 60'000'000);
  EXPECT_LT(now_ns() - begin_ns, 1'000'000'000);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 10'000));
  Thread later([&] {
    pass_time(50ms);
    server.mute(false);
  });
  begin_ns = now_ns();
  EXPECT_OK(publish(11));
  EXPECT_LT(now_ns() - begin_ns, 5'000'000'000);
  later.join();
  EXPECT_TRUE(eventually([&] { return server.written("rt/text").size() == static_cast<size_t>(kept) + 1; }));
}

TEST_F(Publishing, WhatWaitsForTheNextSessionIsNotThereYet) {
  server.mute(true);
  ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 30s));
  EXPECT_OK(publish(10));
  EXPECT_REFUSED(rcl_publisher_wait_for_all_acked(&publisher, 10'000'000), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  ASSERT_OK(tide_rclc_support_set_send(&support, TIDE_SEND_STOCK));
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 10));
  EXPECT_REFUSED(publish(11), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  server.mute(false);
  EXPECT_OK(rcl_publisher_wait_for_all_acked(&publisher, -1));
  EXPECT_EQ(server.written("rt/text").size(), 2u);
}

TEST_F(Publishing, TheProgramMayWaitUntilTheAgentHasEverything) {
  EXPECT_EQ(rcl_publisher_wait_for_all_acked(&publisher, 0), RCL_RET_OK) << "nothing was published";
  server.mute(true); /* the agent acknowledges nothing */
  EXPECT_OK(publish(10));
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(rcl_publisher_wait_for_all_acked(&publisher, 50'000'000), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  EXPECT_GE(now_ns() - begin_ns, 50'000'000);
  Thread later([&] {
    pass_time(30ms);
    server.mute(false);
  });
  EXPECT_OK(rcl_publisher_wait_for_all_acked(&publisher, -1));
  EXPECT_EQ(server.written("rt/text").size(), 1u);
  later.join();
  const rcl_publisher_t none{};
  EXPECT_EQ(rcl_publisher_wait_for_all_acked(&none, 0), RCL_RET_PUBLISHER_INVALID);
}

/* A flood takes every node that becomes free. Once another writer of its level has found no free node, a node is kept
 * for this writer. */
TEST_F(Publishing, APublisherThatFoundNoNodeHasOneFromThenOn) {
  const std_msgs__msg__Int32 number = {1};
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  for (const bool has_starved : {false, true}) {
    server.mute(true); /* the agent acknowledges nothing */
    while (publish(10) == RCL_RET_OK) continue;
    ASSERT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
    EXPECT_EQ(rcl_publish(&quick, &number, nullptr) == RCL_RET_OK, has_starved);
    server.mute(false);
    ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  }
}

TEST_F(Publishing, WithoutASessionReliableIsKeptAndBestEffortRefused) {
  server.mute(true);
  ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 10s));
  std_msgs__msg__Int32 number = {1};
  EXPECT_REFUSED(rcl_publish(&quick, &number, nullptr), RCL_RET_ERROR, TIDE_ERROR_DISCONNECTED);
  EXPECT_OK(publish(3));
  EXPECT_OK(publish(4));
  server.mute(false);
  ASSERT_TRUE(eventually([&] { return server.written("rt/text").size() == 2; }, 10s)) << state();
  EXPECT_EQ(server.written("rt/text")[1], string_bytes("xxxx"));
  EXPECT_TRUE(eventually([&] { return rcl_publish(&quick, &number, nullptr) == RCL_RET_OK; }));
}

TEST_F(Publishing, FinishingWaitsForTheLastMessages) {
  for (const uint8_t level : {0, 3}) {
    rcl_publisher_t last{};
    const std::string topic = "last" + std::to_string(level);
    ASSERT_OK(rclc_publisher_init_default(&last, &node, int32_type(), topic.c_str()));
    ASSERT_OK(tide_rclc_publisher_set_priority(&last, TIDE_PRIORITY(level, 0)));
    std_msgs__msg__Int32 number = {level};
    server.mute(true); /* these are lost, and sent again after the next one */
    for (int i = 0; i < 5; i++) ASSERT_OK(rcl_publish(&last, &number, nullptr));
    pass_time(20ms);
    server.mute(false);
    ASSERT_OK(rcl_publisher_fini(&last, &node));
    EXPECT_TRUE(eventually([&] { return server.written("rt/" + topic).size() == 5; })) << topic;
  }
}

TEST_F(Publishing, TheEndOfTheSupportWaitsForTheLastMessages) {
  ASSERT_OK(publish(1));
  server.mute(true);
  for (size_t i = 2; i <= 4; i++) ASSERT_OK(publish(i));
  Thread later([&] {
    pass_time(500ms);
    server.mute(false);
  });
  ASSERT_OK(rclc_support_fini(&support));
  later.join();
  EXPECT_EQ(server.written("rt/text").size(), 4u);
  EXPECT_EQ(server.clients(), 0u);
}

TEST_F(Publishing, FinishingWithoutAFreeNodeCanBeTriedAgain) {
  ASSERT_EQ(rmw_uros_set_context_entity_destroy_session_timeout(rcl_context_get_rmw_context(&support.context), 30),
            RMW_RET_OK);
  server.mute(true);
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 0));
  while (publish(10) == RCL_RET_OK) {}
  /* One node stays free for objects, but finalising a publisher needs three nodes, for its deletions. */
  EXPECT_REFUSED(rcl_publisher_fini(&publisher, &node), RCL_RET_ERROR, TIDE_ERROR_FULL);
  EXPECT_TRUE(rcl_publisher_is_valid(&publisher));
  server.mute(false);
  EXPECT_TRUE(eventually([&] { return rcl_publisher_fini(&publisher, &node) == RCL_RET_OK; }, 10s));
  EXPECT_FALSE(rcl_publisher_is_valid(&publisher));
}

// ---- threads ----

TEST_F(Publishing, FromSeveralThreadsAtOnce) {
  constexpr int kThreads = 4, kMessages = 300;
  std_msgs__msg__Int32 received{};
  static std::atomic<int> heard;
  heard = 0;
  rcl_subscription_t subscription = subscription_of(int32_type(), "down");
  rclc_executor_t executor = executor_of(1);
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received, [](const void *) { heard++; }, ON_NEW_DATA));
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&publisher, 10'000));
  std::atomic<int> running = kThreads;
  std::vector<Thread> threads;
  for (int thread = 0; thread < kThreads; thread++) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kMessages; i++) {
        std::string one = std::to_string(thread) + ":" + std::to_string(i);
        std_msgs__msg__String message = {{one.data(), one.size(), one.size() + 1}};
        EXPECT_OK(rcl_publish(&publisher, &message, nullptr));
        std_msgs__msg__Int32 number = {i};
        (void)rcl_publish(&quick, &number, nullptr); /* there may be no free node */
        if (i % 50 == 0) server.offer("rt/down", int32_bytes(i));
        if (i % 100 == 0) {
          EXPECT_EQ(rmw_uros_ping_agent(2000, 3), RMW_RET_OK);
        }
      }
      running--;
    });
  }
  while (running > 0) EXPECT_OK(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(5)));
  for (Thread &thread : threads) thread.join();
  ASSERT_TRUE(eventually([&] { return server.written("rt/text").size() == kThreads * kMessages; }));
  std::map<char, int> next;
  for (const Octets &bytes : server.written("rt/text")) {
    const std::string one(bytes.begin() + 4, bytes.end() - 1);
    EXPECT_EQ(std::stoi(one.substr(2)), next[one[0]]++) << one; /* the messages of each thread are in order, and none is
                                                                   missing */
  }
  EXPECT_GT(heard, 0);
}

// ---- send modes ----

TEST_F(Publishing, StockSendingReturnsWhenAllIsAcknowledged) {
  ASSERT_OK(tide_rclc_support_set_send(&support, TIDE_SEND_STOCK));
  for (size_t i = 1; i <= 20; i++) {
    EXPECT_OK(publish(i));
    EXPECT_EQ(server.written("rt/text").size(), i);
  }
  server.mute(true);
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(publish(1), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  EXPECT_GE(now_ns() - begin_ns, 1'000'000'000);
  EXPECT_REFUSED(tide_rclc_support_set_send(&support, static_cast<tide_send_t>(3)), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
}

TEST_F(Publishing, StockSendingWaitsAsLongAsThePublisherSays) {
  ASSERT_OK(tide_rclc_support_set_send(&support, TIDE_SEND_STOCK));
  ASSERT_EQ(rmw_uros_set_publisher_session_timeout(rcl_publisher_get_rmw_handle(&publisher), 1'500), RMW_RET_OK);
  server.mute(true);
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(publish(1), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  EXPECT_GE(now_ns() - begin_ns, 1'500'000'000);
  server.mute(false);
}

// ---- priorities ----

TEST_F(Publishing, TheLevelChoosesTheStream) {
  const auto last_stream = [&] {
    const auto streams = server.streams_of(TIDE_XRCE_WRITE_DATA);
    return streams.empty() ? -1 : int{streams.back()};
  };
  std_msgs__msg__Int32 number = {1};
  for (const uint8_t level : {0, 1, 2}) {
    ASSERT_OK(tide_rclc_publisher_set_priority(&publisher, TIDE_PRIORITY(level, 5)));
    ASSERT_OK(tide_rclc_publisher_set_priority(&quick, TIDE_PRIORITY(level, 5)));
    server.forget_received();
    EXPECT_OK(publish(3));
    EXPECT_TRUE(eventually([&] { return last_stream() == TIDE_STREAM_RELIABLE(level); })) << last_stream();
    EXPECT_OK(rcl_publish(&quick, &number, nullptr));
    EXPECT_TRUE(eventually([&] { return last_stream() == TIDE_STREAM_BEST_EFFORT(level); })) << last_stream();
  }
  /* Six streams are in use; there is no seventh. */
  ASSERT_OK(tide_rclc_publisher_set_priority(&publisher, TIDE_PRIORITY(3, 0)));
  EXPECT_REFUSED(publish(3), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_STREAMS);
  EXPECT_REFUSED(tide_rclc_publisher_set_priority(&publisher, TIDE_PRIORITY(127, 0)), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
}

TEST_F(Publishing, AChainGivesItsPrioritiesToCallbacksAndStreams) {
  rcl_timer_t timer{};
  std_msgs__msg__Int32 received{};
  tide_chain_t chain;
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), [](rcl_timer_t *, int64_t) {}));
  rcl_subscription_t subscription = subscription_of(int32_type(), "down");
  rclc_executor_t executor = executor_of(2);
  ASSERT_EQ(tide_chain_init(&chain, "brake", 2, 100'000'000, 100'000'000), TIDE_OK);
  EXPECT_REFUSED(tide_rclc_chain_add_timer(&chain, &timer), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received, [](const void *) {}, ON_NEW_DATA));
  ASSERT_OK(tide_rclc_chain_add_timer(&chain, &timer));
  ASSERT_OK(tide_rclc_chain_add_publisher(&chain, &publisher));
  ASSERT_GE(tide_chain_add_remote(&chain), 0);
  server.forget_received();
  ASSERT_OK(tide_rclc_chain_add_subscription(&chain, &subscription));
  const tide_callback_t *first = tide_rclc_timer_callback(&timer);
  const tide_callback_t *last = tide_rclc_subscription_callback(&subscription);
  EXPECT_EQ(TIDE_PRIORITY_LEVEL(first->priority), 2);
  EXPECT_EQ(TIDE_PRIORITY_LEVEL(last->priority), 2);
  EXPECT_GT(last->priority, first->priority);
  /* The program asks the agent to send on the stream of this level. */
  ASSERT_TRUE(eventually([&] { return !server.streams_of(TIDE_XRCE_READ_DATA).empty(); }));
  EXPECT_OK(publish(3));
  EXPECT_TRUE(eventually([&] {
    const auto streams = server.streams_of(TIDE_XRCE_WRITE_DATA);
    return !streams.empty() && streams.back() == TIDE_STREAM_RELIABLE(2);
  }));
  ASSERT_TRUE(eventually([&] { return server.offer("rt/down", int32_bytes(1)); }));
  EXPECT_TRUE(
      eventually([&] { return rclc_executor_spin_some(&executor, RCL_MS_TO_NS(1)) == RCL_RET_OK && last->runs == 1; }));
  bool used = false;
  for (size_t i = 0; i < tide_pools.stream_count; i++) {
    used = used || tide_pools.input_streams[i].id == TIDE_STREAM_RELIABLE(2);
  }
  EXPECT_TRUE(used) << "samples come on the stream of the level";
}

// ---- quality ----

TEST_F(Publishing, QualityReachesTheAgent) {
  rcl_subscription_t subscription{};
  rmw_qos_profile_t quality = rmw_qos_profile_default;
  quality.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  quality.depth = 7;
  quality.deadline = {1, 500'000'000};
  ASSERT_OK(rclc_subscription_init(&subscription, &node, int32_type(), "kept", &quality));
  agent::Qos expected;
  expected.transient_local = true;
  expected.depth = 7;
  expected.deadline_ms = 1500;
  EXPECT_EQ(server.qos_of_reader("rt/kept"), expected);
  ASSERT_OK(rcl_subscription_fini(&subscription, &node));
  quality.depth = 100'000; /* more than the protocol can express, and than any history holds */
  ASSERT_OK(rclc_subscription_init(&subscription, &node, int32_type(), "deep", &quality));
  EXPECT_EQ(server.qos_of_reader("rt/deep").depth, agent::kDepthMaximum);
  ASSERT_OK(rcl_subscription_fini(&subscription, &node));
  quality = rmw_qos_profile_sensor_data;
  quality.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  ASSERT_OK(rclc_subscription_init(&subscription, &node, int32_type(), "sensed", &quality));
  const agent::Qos sensed = server.qos_of_reader("rt/sensed");
  EXPECT_FALSE(sensed.reliable);
  EXPECT_TRUE(sensed.keep_all);
}

}  // namespace tide::compat::test::publish_test
