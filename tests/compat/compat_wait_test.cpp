// SPDX-License-Identifier: Apache-2.0
// Wait sets, which programs without an executor use.
#include <rcl/wait.h>

#include <cstdlib>

#include "services.h"

namespace tide::compat::test::wait_test {

class Waiting : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    ASSERT_OK(rcl_wait_set_init(&wait_set, 2, 1, 2, 1, 1, 0, &support.context, allocator));
  }
  void TearDown() override {
    EXPECT_OK(rcl_wait_set_fini(&wait_set));
    Connected::TearDown();
  }
  void subscribe(rcl_subscription_t *subscription, const char *topic) {
    ASSERT_OK(rclc_subscription_init_default(subscription, &node, int32_type(), topic));
    ASSERT_TRUE(eventually([&] { return server.qos_of_reader("rt/" + std::string(topic)).reliable; }));
  }
  static int64_t ms(int64_t count) { return count * static_cast<int64_t>(kMillisecond); }

  rcl_wait_set_t wait_set = rcl_get_zero_initialized_wait_set();
};

TEST_F(Waiting, ASubscriptionIsReadyUntilItIsTaken) {
  rcl_subscription_t first{}, second{};
  subscribe(&first, "first");
  subscribe(&second, "second");
  size_t place = 9;
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &first, nullptr));
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &second, &place));
  EXPECT_EQ(place, 1u);
  EXPECT_EQ(rcl_wait_set_add_subscription(&wait_set, &first, nullptr), RCL_RET_WAIT_SET_FULL);
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_TIMEOUT);
  EXPECT_EQ(wait_set.subscriptions[0], nullptr);
  EXPECT_EQ(wait_set.subscriptions[1], nullptr);
  ASSERT_TRUE(eventually([&] { return server.offer("rt/second", int32_bytes(7)); }));
  for (int again = 0; again < 2; again++) {
    ASSERT_OK(rcl_wait_set_clear(&wait_set));
    ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &first, nullptr));
    ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &second, nullptr));
    EXPECT_OK(rcl_wait(&wait_set, ms(2000)));
    EXPECT_EQ(wait_set.subscriptions[0], nullptr);
    EXPECT_EQ(wait_set.subscriptions[1], &second);
  }
  std_msgs__msg__Int32 number{};
  EXPECT_OK(rcl_take(&second, &number, nullptr, nullptr));
  EXPECT_EQ(number.data, 7);
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &second, nullptr));
  EXPECT_EQ(rcl_wait(&wait_set, ms(20)), RCL_RET_TIMEOUT);
}

TEST_F(Waiting, WaitsAsLongAsItIsToldAndNoLonger) {
  rcl_subscription_t subscription{};
  subscribe(&subscription, "numbers");
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &subscription, nullptr));
  const Time begin = now_ns();
  EXPECT_EQ(rcl_wait(&wait_set, ms(50)), RCL_RET_TIMEOUT);
  EXPECT_GE(now_ns() - begin, ms(50));
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &subscription, nullptr));
  Thread later([&] {
    pass_time(30ms);
    EXPECT_TRUE(server.offer("rt/numbers", int32_bytes(1)));
  });
  EXPECT_OK(rcl_wait(&wait_set, -1)) << "for ever";
  later.join();
}

TEST_F(Waiting, ATimerEndsTheWait) {
  static int calls;
  calls = 0;
  rcl_timer_t timer{};
  ASSERT_OK(rclc_timer_init_default(&timer, &support, 20 * kMillisecond, [](rcl_timer_t *, int64_t) { calls++; }));
  for (int round = 0; round < 3; round++) {
    ASSERT_OK(rcl_wait_set_clear(&wait_set));
    ASSERT_OK(rcl_wait_set_add_timer(&wait_set, &timer, nullptr));
    const Time begin = now_ns();
    EXPECT_OK(rcl_wait(&wait_set, ms(5000)));
    EXPECT_LT(now_ns() - begin, ms(4000));
    ASSERT_EQ(wait_set.timers[0], &timer);
    EXPECT_OK(rcl_timer_call(&timer));
  }
  EXPECT_EQ(calls, 3);
  ASSERT_OK(rcl_timer_cancel(&timer));
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_timer(&wait_set, &timer, nullptr));
  EXPECT_EQ(rcl_wait(&wait_set, ms(50)), RCL_RET_TIMEOUT);
}

TEST_F(Waiting, AGuardConditionWakesFromAnotherThreadAndIsReadyOnce) {
  rcl_guard_condition_t guard{};
  ASSERT_OK(rcl_guard_condition_init(&guard, &support.context, rcl_guard_condition_get_default_options()));
  ASSERT_OK(rcl_wait_set_add_guard_condition(&wait_set, &guard, nullptr));
  Thread other([&] {
    pass_time(30ms);
    EXPECT_OK(rcl_trigger_guard_condition(&guard));
  });
  const Time begin = now_ns();
  EXPECT_OK(rcl_wait(&wait_set, ms(5000)));
  EXPECT_LT(now_ns() - begin, ms(4000));
  other.join();
  EXPECT_EQ(wait_set.guard_conditions[0], &guard);
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_guard_condition(&wait_set, &guard, nullptr));
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_TIMEOUT);
}

TEST_F(Waiting, ServicesAndClientsWithoutAnExecutor) {
  rcl_service_t service{};
  rcl_client_t client{};
  ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "sums"));
  ASSERT_OK(rclc_client_init_default(&client, &node, add_type(), "others"));
  ASSERT_TRUE(eventually([&] { return server.ask("/sums", words_bytes({1, 2}), identity_of(1, 1)); }));
  Request request{1, 2};
  int64_t number = 0;
  ASSERT_OK(rcl_send_request(&client, &request, &number));
  ASSERT_TRUE(eventually([&] { return server.requests("/others").size() == 1; }));
  ASSERT_TRUE(server.answer("/others", words_bytes({3}), server.requests("/others")[0].number));
  bool served = false, answered = false;
  while (!served || !answered) {
    ASSERT_OK(rcl_wait_set_clear(&wait_set));
    ASSERT_OK(rcl_wait_set_add_service(&wait_set, &service, nullptr));
    ASSERT_OK(rcl_wait_set_add_client(&wait_set, &client, nullptr));
    ASSERT_OK(rcl_wait(&wait_set, ms(5000)));
    rmw_request_id_t id{};
    Response response{};
    if (wait_set.services[0] != nullptr) {
      served = true;
      EXPECT_OK(rcl_take_request(&service, &id, &request));
    }
    if (wait_set.clients[0] != nullptr) {
      answered = true;
      EXPECT_OK(rcl_take_response(&client, &id, &response));
      EXPECT_EQ(response.sum, 3);
    }
  }
}

// Some programs, such as rclcpp, resize their wait sets before each wait.
TEST_F(Waiting, PlacesMayBecomeMoreAndLess) {
  static size_t blocks, octets;
  blocks = octets = 0;
  rcl_allocator_t counting = allocator;
  counting.allocate = [](size_t size, void *) {
    blocks++;
    octets = size;
    return std::malloc(size);
  };
  rcl_wait_set_t other = rcl_get_zero_initialized_wait_set();
  ASSERT_OK(rcl_wait_set_init(&other, 1, 0, 1, 0, 0, 0, &support.context, counting));
  rcl_subscription_t subscription{};
  subscribe(&subscription, "numbers");
  ASSERT_OK(rcl_wait_set_add_subscription(&other, &subscription, nullptr));
  ASSERT_OK(rcl_wait_set_resize(&other, 0, 0, 0, 0, 2, 0));
  EXPECT_EQ(blocks, 1u) << "the block is large enough";
  EXPECT_EQ(other.subscriptions, nullptr);
  EXPECT_EQ(rcl_wait_set_add_subscription(&other, &subscription, nullptr), RCL_RET_WAIT_SET_FULL);
  const size_t before = octets;
  ASSERT_OK(rcl_wait_set_resize(&other, 2, 1, 3, 1, 1, 1));
  EXPECT_EQ(blocks, 2u);
  EXPECT_EQ(octets, before + 7 * sizeof(void *));
  EXPECT_EQ(other.size_of_subscriptions, 2u);
  EXPECT_EQ(other.size_of_guard_conditions, 1u);
  EXPECT_EQ(other.size_of_timers, 3u);
  EXPECT_EQ(other.size_of_clients, 1u);
  EXPECT_EQ(other.size_of_services, 1u);
  EXPECT_EQ(other.size_of_events, 1u);
  for (size_t i = 0; i < 2; i++) EXPECT_EQ(other.subscriptions[i], nullptr);
  for (size_t i = 0; i < 3; i++) EXPECT_EQ(other.timers[i], nullptr);
  EXPECT_EQ(other.events[0], nullptr);
  ASSERT_OK(rcl_wait_set_add_subscription(&other, &subscription, nullptr));
  ASSERT_TRUE(eventually([&] { return server.offer("rt/numbers", int32_bytes(7)); }));
  EXPECT_OK(rcl_wait(&other, ms(5000)));
  EXPECT_EQ(other.subscriptions[0], &subscription);
  rcl_allocator_t found{};
  ASSERT_OK(rcl_wait_set_get_allocator(&other, &found));
  EXPECT_EQ(found.allocate, counting.allocate);
  EXPECT_OK(rcl_wait_set_fini(&other));
  EXPECT_EQ(rcl_wait_set_get_allocator(&other, &found), RCL_RET_WAIT_SET_INVALID);
  EXPECT_EQ(rcl_wait_set_resize(&other, 1, 0, 0, 0, 0, 0), RCL_RET_WAIT_SET_INVALID);
}

TEST_F(Waiting, AllocatorThatRefusesLeavesThePlaces) {
  static bool refuses;
  refuses = false;
  rcl_allocator_t moody = allocator;
  moody.allocate = [](size_t size, void *) { return refuses ? nullptr : std::malloc(size); };
  rcl_wait_set_t other = rcl_get_zero_initialized_wait_set();
  ASSERT_OK(rcl_wait_set_init(&other, 1, 0, 0, 0, 0, 0, &support.context, moody));
  rcl_subscription_t subscription{};
  subscribe(&subscription, "numbers");
  ASSERT_OK(rcl_wait_set_add_subscription(&other, &subscription, nullptr));
  refuses = true;
  EXPECT_EQ(rcl_wait_set_resize(&other, 2, 0, 0, 0, 0, 0), RCL_RET_BAD_ALLOC);
  EXPECT_EQ(other.size_of_subscriptions, 1u);
  EXPECT_EQ(other.subscriptions[0], &subscription);
  ASSERT_TRUE(eventually([&] { return server.offer("rt/numbers", int32_bytes(7)); }));
  EXPECT_OK(rcl_wait(&other, ms(5000))) << "the set goes on as it was";
  EXPECT_EQ(other.subscriptions[0], &subscription);
  EXPECT_OK(rcl_wait_set_fini(&other));
}

// Agents report no events. The stock client returns the same codes.
TEST_F(Waiting, EventsAreRefused) {
  rcl_subscription_t subscription{};
  rcl_publisher_t publisher = publisher_of(int32_type(), "up");
  subscribe(&subscription, "down");
  rcl_event_t event = rcl_get_zero_initialized_event();
  EXPECT_EQ(rcl_publisher_event_init(&event, &publisher, RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS), RCL_RET_UNSUPPORTED);
  EXPECT_EQ(rcl_subscription_event_init(&event, &subscription, RCL_SUBSCRIPTION_MATCHED), RCL_RET_UNSUPPORTED);
  EXPECT_EQ(rcl_subscription_event_init(&event, &subscription, static_cast<rcl_subscription_event_type_t>(99)),
            RCL_RET_INVALID_ARGUMENT);
  rcl_publisher_t none{};
  EXPECT_EQ(rcl_publisher_event_init(&event, &none, RCL_PUBLISHER_MATCHED), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_publisher_event_init(nullptr, &publisher, RCL_PUBLISHER_MATCHED), RCL_RET_EVENT_INVALID);
  EXPECT_FALSE(rcl_event_is_valid(&event));
  int told = 0;
  EXPECT_EQ(rcl_take_event(&event, &told), RCL_RET_EVENT_INVALID);
  ASSERT_OK(rcl_wait_set_resize(&wait_set, 0, 0, 0, 0, 0, 1));
  EXPECT_EQ(rcl_wait_set_add_event(&wait_set, &event, nullptr), RCL_RET_ERROR);
  EXPECT_EQ(rcl_wait_set_add_event(&wait_set, nullptr, nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_TIMEOUT) << "places for events only";
  EXPECT_OK(rcl_event_fini(&event));
}

// Programs add those entities that exist at the time, which may be none.
TEST_F(Waiting, PlacesWithoutAnythingInThemWaitTheirTime) {
  const Time begin = now_ns();
  EXPECT_EQ(rcl_wait(&wait_set, ms(20)), RCL_RET_TIMEOUT);
  EXPECT_GE(now_ns() - begin, ms(20));
}

TEST_F(Waiting, WhatHasEndedInTheSetIsNamed) {
  rcl_subscription_t subscription{};
  rcl_service_t service{};
  rcl_client_t client{};
  subscribe(&subscription, "numbers");
  ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "sums"));
  ASSERT_OK(rclc_client_init_default(&client, &node, add_type(), "others"));
  ASSERT_OK(rcl_wait_set_add_subscription(&wait_set, &subscription, nullptr));
  ASSERT_OK(rcl_subscription_fini(&subscription, &node));
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_SUBSCRIPTION_INVALID);
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_client(&wait_set, &client, nullptr));
  ASSERT_OK(rcl_client_fini(&client, &node));
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_CLIENT_INVALID);
  ASSERT_OK(rcl_wait_set_clear(&wait_set));
  ASSERT_OK(rcl_wait_set_add_service(&wait_set, &service, nullptr));
  ASSERT_OK(rcl_service_fini(&service, &node));
  EXPECT_EQ(rcl_wait(&wait_set, 0), RCL_RET_SERVICE_INVALID);
}

TEST_F(Waiting, WrongCallsAreRefused) {
  rcl_wait_set_t none = rcl_get_zero_initialized_wait_set();
  rcl_subscription_t subscription{};
  EXPECT_EQ(rcl_wait(&none, 0), RCL_RET_WAIT_SET_INVALID);
  rcl_wait_set_t empty = rcl_get_zero_initialized_wait_set();
  ASSERT_OK(rcl_wait_set_init(&empty, 0, 0, 0, 0, 0, 0, &support.context, allocator));
  EXPECT_EQ(rcl_wait(&empty, 0), RCL_RET_WAIT_SET_EMPTY);
  EXPECT_OK(rcl_wait_set_fini(&empty));
  EXPECT_EQ(rcl_wait_set_clear(&none), RCL_RET_WAIT_SET_INVALID);
  EXPECT_EQ(rcl_wait_set_add_subscription(&wait_set, &subscription, nullptr), RCL_RET_SUBSCRIPTION_INVALID);
  EXPECT_REFUSED(rcl_wait_set_init(&wait_set, 1, 0, 0, 0, 0, 0, &support.context, allocator), RCL_RET_ALREADY_INIT,
                 TIDE_ERROR_EXISTS);
  rcl_allocator_t refusing = allocator;
  refusing.allocate = [](size_t, void *) -> void * { return nullptr; };
  EXPECT_EQ(rcl_wait_set_init(&none, 1, 0, 0, 0, 0, 0, &support.context, refusing), RCL_RET_BAD_ALLOC);
  EXPECT_OK(rcl_wait_set_fini(&none));
}

}  // namespace tide::compat::test::wait_test
