// SPDX-License-Identifier: Apache-2.0
// The pools of a program on a desktop that does not define any.
#include <test_interfaces/srv/blob.h>

#include "../connected.h"

namespace tide::compat::test::defaults_test {

// In the stock library, each kind of object has four places.
TEST_F(Connected, ThereAreMorePlacesThanTheStockHas) {
  constexpr size_t kPlaces = 8;
  rcl_publisher_t publishers[kPlaces]{};
  rcl_subscription_t subscriptions[kPlaces]{};
  rcl_service_t services[kPlaces]{};
  rcl_client_t clients[kPlaces]{};
  rcl_timer_t timers[kPlaces]{};
  rcl_guard_condition_t guards[kPlaces]{};
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(test_interfaces, srv, Blob);
  for (size_t i = 0; i < kPlaces; i++) {
    const std::string name = "name" + std::to_string(i);
    EXPECT_OK(rclc_publisher_init_default(&publishers[i], &node, string_type(), name.c_str()));
    EXPECT_OK(rclc_subscription_init_default(&subscriptions[i], &node, string_type(), name.c_str()));
    EXPECT_OK(rclc_service_init_default(&services[i], &node, type, name.c_str()));
    EXPECT_OK(rclc_client_init_default(&clients[i], &node, type, name.c_str()));
    EXPECT_OK(rclc_timer_init_default(&timers[i], &support, RCL_MS_TO_NS(1), nullptr));
    EXPECT_OK(rcl_guard_condition_init(&guards[i], &support.context, rcl_guard_condition_get_default_options()));
  }
}

class Sizes : public Connected, public ::testing::WithParamInterface<size_t> {};

TEST_P(Sizes, ReliableMessagesArriveBothWays) {
  rcl_publisher_t publisher = publisher_of(string_type(), "up");
  rcl_subscription_t subscription = subscription_of(string_type(), "down");
  std::string text(GetParam(), 'x'), memory(GetParam() + 1, '\0');
  for (size_t i = 0; i < text.size(); i++) text[i] = static_cast<char>('a' + i % 26);
  std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
  EXPECT_OK(rcl_publish(&publisher, &message, nullptr));
  EXPECT_TRUE(eventually([&] { return server.written("rt/up").size() == 1; }));
  EXPECT_TRUE(server.written("rt/up").at(0) == string_bytes(text));
  std_msgs__msg__String received = {{memory.data(), 0, memory.size()}};
  ASSERT_TRUE(eventually([&] { return server.offer("rt/down", string_bytes(text)); }));
  rclc_executor_t executor = executor_of(1);
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received, [](const void *) {}, ON_NEW_DATA));
  EXPECT_TRUE(eventually(
      [&] { return rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10)) == RCL_RET_OK && received.data.size > 0; }));
  EXPECT_EQ(received.data.size, text.size());
  EXPECT_TRUE(std::string(received.data.data, received.data.size) == text);
}

INSTANTIATE_TEST_SUITE_P(Bytes, Sizes, ::testing::Values(2'040, 3'501, 8'000, 30'000, 60'000));

}  // namespace tide::compat::test::defaults_test
