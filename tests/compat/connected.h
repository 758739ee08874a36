// SPDX-License-Identifier: Apache-2.0
// Fixtures of the tests: a program with a node, connected to the agent.
#pragma once

#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc/sleep.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <std_msgs/msg/string.h>

#include <cstring>
#include <functional>

#include "agent_server.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"
#include "tide/xrce.h"

namespace tide::compat::test {

constexpr uint64_t kMillisecond = 1'000'000;

inline const rosidl_message_type_support_t *int32_type() { return ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32); }
inline const rosidl_message_type_support_t *string_type() { return ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String); }

inline Octets int32_bytes(int32_t value) {
  Octets bytes(4);
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}
inline int32_t int32_of(const Octets &bytes) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data(), 4);
  return value;
}
inline Octets string_bytes(const std::string &text) {
  const size_t length = text.size() + 1;
  Octets bytes(4 + length);
  for (size_t octet = 0; octet < 4; octet++) bytes[octet] = static_cast<uint8_t>(length >> (8 * octet));
  std::memcpy(bytes.data() + 4, text.c_str(), length);
  return bytes;
}

inline std::string text_of(int status) { return tide_status_text(status); }

#define EXPECT_OK(call) EXPECT_EQ((call), RCL_RET_OK) << text_of(tide_rclc_last_status())
#define ASSERT_OK(call) ASSERT_EQ((call), RCL_RET_OK) << text_of(tide_rclc_last_status())
struct Outcome {
  rcl_ret_t code;
  int cause;
  bool operator==(const Outcome &) const = default;
};
inline void PrintTo(const Outcome &outcome, std::ostream *out) {
  *out << outcome.code << " (" << text_of(outcome.cause) << ")";
}
// Expects the call to fail with this rcl code and this cause (tide_rclc_last_status).
#define EXPECT_REFUSED(call, code, cause) \
  EXPECT_EQ((rcl_reset_error(), Outcome{(call), tide_rclc_last_status()}), (Outcome{(code), (cause)}))

// The functions of a custom transport. Its `args` points to a ClientEnd.
inline bool open_transport(uxrCustomTransport *transport) { return transport->args != nullptr; }
inline bool close_transport(uxrCustomTransport *) { return true; }
inline size_t write_transport(uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  static_cast<ClientEnd *>(transport->args)->write({bytes, bytes + count});
  *error = 0;
  return count;
}
inline size_t read_transport(uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error) {
  *error = 0;
  return static_cast<ClientEnd *>(transport->args)->read(bytes, count, timeout_ms);
}

class Connected : public ::testing::Test {
 protected:
  void SetUp() override {
    options = rcl_get_zero_initialized_init_options();
    ASSERT_OK(rcl_init_options_init(&options, allocator));
    rmw_options = rcl_init_options_get_rmw_init_options(&options);
    ASSERT_EQ(rmw_uros_options_set_udp_address("127.0.0.1", server.port().c_str(), rmw_options), RMW_RET_OK);
    connect();
  }
  void TearDown() override {
    if (rcl_context_is_valid(&support.context)) {
      EXPECT_OK(rclc_support_fini(&support));
    }
    rcl_init_options_fini(&options);
  }
  void connect() {
    ASSERT_OK(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator));
    ASSERT_OK(rclc_node_init_default(&node, "node", "", &support));
  }
  // Reads a value of the session in a critical section, as the session's own code does.
  template <typename Read> auto masked(Read read) {
    const tide_platform_t *platform = tide_port_platform();
    const uintptr_t critical = platform->critical_enter(platform->context);
    const auto value = read(*session());
    platform->critical_exit(platform->context, critical);
    return value;
  }
  tide_session_state_t state() {
    return masked([](const tide_session_t &session) { return session.state; });
  }
  // Number of frames that have been put into slots so far.
  size_t noted() {
    return masked([](const tide_session_t &session) { return session.daemon.receiver.counters.noted; });
  }
  // Calls `send` until it succeeds, and returns when the frame is in a slot.
  void bring(const std::function<bool()> &send) {
    const size_t before = noted();
    ASSERT_TRUE(eventually(send));
    ASSERT_TRUE(eventually([&] { return noted() > before; }));
  }
  // Waits until all messages have been acknowledged; false if that takes too long. Messages that are unacknowledged at
  // the end of a session are sent again in the next one.
  bool is_acknowledged() {
    return eventually([&] { return tide_session_is_idle(session(), 0); });
  }
  tide_session_t *session() { return tide_rclc_support_session(&support); }
  rcl_publisher_t publisher_of(const rosidl_message_type_support_t *type, const char *topic) {
    rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
    EXPECT_OK(rclc_publisher_init_default(&publisher, &node, type, topic));
    return publisher;
  }
  rcl_subscription_t subscription_of(const rosidl_message_type_support_t *type, const char *topic) {
    rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
    EXPECT_OK(rclc_subscription_init_default(&subscription, &node, type, topic));
    return subscription;
  }
  rclc_executor_t executor_of(size_t handles) {
    rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
    EXPECT_OK(rclc_executor_init(&executor, &support.context, handles, &allocator));
    return executor;
  }

  AgentServer server;
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options{};
  rmw_init_options_t *rmw_options = nullptr;
  rclc_support_t support{};
  rcl_node_t node{};
};

// A subscription to std_msgs/Int32, and the values that its callback got (-1: a call without a message).
struct Heard {
  rcl_subscription_t subscription{};
  std_msgs__msg__Int32 message{};
  std::string topic;
  std::vector<int32_t> numbers;
  std::function<void()> act;  // called in each callback, if it is set
};

// A program that is connected and has an executor.
class Spinning : public Connected {
 protected:
  explicit Spinning(size_t handles) : handles_(handles) {}
  void SetUp() override {
    Connected::SetUp();
    ASSERT_OK(rclc_executor_init(&executor, &support.context, handles_, &allocator));
  }
  void TearDown() override {
    EXPECT_OK(rclc_executor_fini(&executor));
    Connected::TearDown();
  }
  // Runs callbacks until the condition holds; false if that takes too long.
  bool spin_until(const std::function<bool()> &condition) {
    return eventually([&] {
      EXPECT_OK(rclc_executor_spin_some(&executor, 5 * kMillisecond));
      return condition();
    });
  }
  void subscribe(Heard &heard, const std::string &topic) {
    heard.topic = topic;
    ASSERT_OK(rclc_subscription_init_default(&heard.subscription, &node, int32_type(), topic.c_str()));
  }
  void hear(Heard &heard, rclc_executor_handle_invocation_t invocation = ON_NEW_DATA) {
    ASSERT_OK(rclc_executor_add_subscription_with_context(
        &executor, &heard.subscription, &heard.message,
        [](const void *message, void *context) {
          auto *to = static_cast<Heard *>(context);
          to->numbers.push_back(message == nullptr ? -1 : static_cast<const std_msgs__msg__Int32 *>(message)->data);
          if (to->act) to->act();
        },
        &heard, invocation));
  }
  // Runs callbacks in a separate thread until it is stopped.
  struct Spinner {
    explicit Spinner(rclc_executor_t &spun)
        : core(tide_rclc_executor_core(&spun)), thread([&spun] { EXPECT_OK(rclc_executor_spin(&spun)); }) {}
    void stop() {
      tide_executor_stop(core);
      thread.join();
    }
    tide_executor_t *core;
    Thread thread;
  };
  void deliver(const Heard &heard, int32_t number) {
    bring([&] { return server.offer("rt/" + heard.topic, int32_bytes(number)); });
  }

  rclc_executor_t executor{};

 private:
  size_t handles_;
};

}  // namespace tide::compat::test
