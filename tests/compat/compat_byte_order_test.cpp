// SPDX-License-Identifier: Apache-2.0
// Peers may serialise in either byte order. Samples, also those in fragments, requests and replies each state their
// byte order.
#include <algorithm>

#include "services.h"

namespace tide::compat::test::byte_order_test {

using ByteOrder = Services;

// The octets with those of each word in reverse order. `word` is the number of octets in a word.
Octets swapped(Octets bytes, size_t word) {
  for (size_t place = 0; place + word <= bytes.size(); place += word) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(place), bytes.begin() + static_cast<ptrdiff_t>(place + word));
  }
  return bytes;
}

int32_t taken = 0;
std::string text;
int64_t sum = 0;

TEST_F(ByteOrder, NumbersOfBothOrdersMixed) {
  std_msgs__msg__Int32 message{};
  rcl_subscription_t subscription = subscription_of(int32_type(), "number");
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &message,
      [](const void *given) { taken = static_cast<const std_msgs__msg__Int32 *>(given)->data; }, ON_NEW_DATA));
  for (int32_t number = 0x01020304; number < 0x0102030A; number++) {
    const bool big = number % 2 == 0;
    const Octets bytes = int32_bytes(number);
    ASSERT_TRUE(eventually([&] { return server.offer("rt/number", big ? swapped(bytes, 4) : bytes, big); }));
    EXPECT_TRUE(spin_until([&] { return taken == number; })) << number << " became " << taken;
  }
}

TEST_F(ByteOrder, ATextInFragments) {
  std::array<char, 800> memory{};
  std_msgs__msg__String message{};
  message.data = {memory.data(), 0, memory.size()};
  rcl_subscription_t subscription = subscription_of(string_type(), "text");
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &message,
      [](const void *given) { text = static_cast<const std_msgs__msg__String *>(given)->data.data; }, ON_NEW_DATA));
  const std::string long_text(700, 'x');
  Octets bytes = string_bytes(long_text);
  std::reverse(bytes.begin(), bytes.begin() + 4);
  ASSERT_TRUE(eventually([&] { return server.offer("rt/text", bytes, true); }));
  EXPECT_TRUE(spin_until([&] { return text == long_text; }));
}

TEST_F(ByteOrder, ARequest) {
  rcl_service_t service{};
  Request request{};
  Response response{};
  ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "/add"));
  ASSERT_OK(rclc_executor_add_service(&executor, &service, &request, &response, add));
  ASSERT_TRUE(eventually([&] {
    return server.ask("/add", swapped(words_bytes({3, 1000}), 8), identity_of(1, 1), true);
  }));
  ASSERT_TRUE(spin_until([&] { return server.replies("/add").size() == 1; }));
  EXPECT_EQ(word_of(server.replies("/add")[0].payload), 1003);
  EXPECT_FALSE(server.replies("/add")[0].big_endian);
}

TEST_F(ByteOrder, AReply) {
  rcl_client_t client{};
  Request request{};
  Response response{};
  ASSERT_OK(rclc_client_init_default(&client, &node, add_type(), "/add"));
  ASSERT_OK(rclc_executor_add_client(&executor, &client, &response,
                                     [](const void *given) { sum = static_cast<const Response *>(given)->sum; }));
  int64_t number = 0;
  ASSERT_OK(rcl_send_request(&client, &request, &number));
  ASSERT_TRUE(eventually([&] { return server.requests("/add").size() == 1; }));
  ASSERT_TRUE(server.answer("/add", swapped(words_bytes({4711}), 8), server.requests("/add")[0].number, true));
  EXPECT_TRUE(spin_until([&] { return sum != 0; }));
  EXPECT_EQ(sum, 4711);
}

}  // namespace tide::compat::test::byte_order_test
