// SPDX-License-Identifier: Apache-2.0
// Names of the interface that few programs use: handles of rmw, clocks, QoS profiles, logging, sequences.
#include <rcutils/error_handling.h>
#include <rcutils/logging_macros.h>
#include <rmw/error_handling.h>
#include <std_msgs/msg/string.h>

#include <atomic>
#include <cstdarg>
#include <ctime>

#include "services.h"
#include "tide/message_memory.h"

namespace tide::compat::test::names_test {

TEST_F(Services, HandlesOfTheLayerBelowTakeTimeouts) {
  rcl_service_t service{};
  rcl_client_t client{};
  rcl_subscription_t subscription{};
  EXPECT_EQ(rcl_service_get_rmw_handle(&service), nullptr);
  EXPECT_EQ(rcl_client_get_rmw_handle(&client), nullptr);
  EXPECT_EQ(rcl_subscription_get_rmw_handle(&subscription), nullptr);
  EXPECT_EQ(rmw_uros_set_client_session_timeout(nullptr, 1), RMW_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rmw_uros_set_service_session_timeout(nullptr, 1), RMW_RET_INVALID_ARGUMENT);
  ASSERT_OK(rclc_service_init_default(&service, &node, add_type(), "sums"));
  ASSERT_OK(rclc_client_init_default(&client, &node, add_type(), "others"));
  ASSERT_OK(rclc_subscription_init_default(&subscription, &node, int32_type(), "numbers"));
  EXPECT_NE(rcl_subscription_get_rmw_handle(&subscription), nullptr);
  EXPECT_NE(rcl_node_get_rmw_handle(&node), nullptr);
  EXPECT_EQ(rmw_uros_set_client_session_timeout(rcl_client_get_rmw_handle(&client), 0), RMW_RET_OK);
  EXPECT_EQ(rmw_uros_set_service_session_timeout(rcl_service_get_rmw_handle(&service), 10), RMW_RET_OK);
  EXPECT_EQ(rmw_uros_set_service_session_timeout(rcl_service_get_rmw_handle(&service), -1), RMW_RET_INVALID_ARGUMENT);
}

TEST_F(Connected, NodesHaveTheirFullName) {
  rcl_node_t other{};
  ASSERT_OK(rclc_node_init_default(&other, "name", "some/space", &support));
  EXPECT_STREQ(rcl_node_get_fully_qualified_name(&node), "/node");
  EXPECT_STREQ(rcl_node_get_fully_qualified_name(&other), "/some/space/name");
  EXPECT_STREQ(rcl_node_get_logger_name(&node), "node");
  const char *logger = rcl_node_get_logger_name(&other);
  EXPECT_STREQ(logger, "some.space.name");
  EXPECT_EQ(rcl_node_get_logger_name(&other), logger);
  size_t domain = 99;
  EXPECT_OK(rcl_node_get_domain_id(&node, &domain));
  EXPECT_EQ(domain, 0u);
  ASSERT_OK(rcl_node_fini(&other));
  EXPECT_EQ(rcl_node_get_fully_qualified_name(&other), nullptr);
  EXPECT_EQ(rcl_node_get_domain_id(&other, &domain), RCL_RET_NODE_INVALID);
  EXPECT_EQ(rcl_node_get_logger_name(&other), nullptr);
  EXPECT_STREQ(logger, "some.space.name");  // a program may have stored it
}

TEST_F(Connected, NamesOfLoggersShareAMemory) {
  const auto name_in = [&](const std::string &space) {
    rcl_node_t one{};
    EXPECT_OK(rclc_node_init_default(&one, "one", space.c_str(), &support));
    const char *name = rcl_node_get_logger_name(&one);
    EXPECT_OK(rcl_node_fini(&one));
    return name;
  };
  const std::string longest(24, 'n');
  EXPECT_STREQ(name_in(longest), (longest + ".one").c_str());
  size_t kept = 0;
  for (const char *last = ""; last != nullptr && kept < TIDE_LOGGER_NAME_BYTES; kept++) {
    const std::string space = "space" + std::to_string(kept);
    last = name_in(space);
    if (last == nullptr) break;
    EXPECT_EQ(last, space + ".one");
  }
  EXPECT_GE(kept, size_t{16});
  EXPECT_LT(kept, size_t{TIDE_LOGGER_NAME_BYTES});
  EXPECT_STREQ(name_in("space3"), "space3.one");  // stored names stay valid
}

TEST_F(Connected, ClocksTellTheTimeOnceItIsKnown) {
  rcl_clock_t steady{}, wall{};
  ASSERT_OK(rcl_clock_init(RCL_STEADY_TIME, &steady, &allocator));
  ASSERT_OK(rcl_clock_init(RCL_SYSTEM_TIME, &wall, &allocator));
  rcl_time_point_value_t first = 0, second = 0;
  EXPECT_OK(rcl_clock_get_now(&steady, &first));
  EXPECT_OK(rcl_clock_get_now(&steady, &second));
  EXPECT_GE(second, first);
  EXPECT_REFUSED(rcl_clock_get_now(&wall, &first), RCL_RET_ERROR, TIDE_ERROR_STATE);
  ASSERT_EQ(rmw_uros_sync_session(1000), RMW_RET_OK);
  EXPECT_OK(rcl_clock_get_now(&wall, &first));
  EXPECT_GT(first, 0);
  EXPECT_OK(rcl_clock_fini(&wall));
  EXPECT_FALSE(rcl_clock_valid(&wall));
  EXPECT_EQ(rcl_clock_get_now(&wall, &first), RCL_RET_INVALID_ARGUMENT);
}

TEST_F(Connected, ClocksOfOneKind) {
  rcl_clock_t clock{};
  ASSERT_OK(rcl_steady_clock_init(&clock, &allocator));
  EXPECT_EQ(clock.type, RCL_STEADY_TIME);
  EXPECT_EQ(rcl_ros_clock_fini(&clock), RCL_RET_ERROR);
  EXPECT_EQ(rcl_system_clock_fini(&clock), RCL_RET_ERROR);
  EXPECT_OK(rcl_steady_clock_fini(&clock));
  EXPECT_FALSE(rcl_clock_valid(&clock));
  ASSERT_OK(rcl_ros_clock_init(&clock, &allocator));
  EXPECT_EQ(clock.type, RCL_ROS_TIME);
  EXPECT_OK(rcl_ros_clock_fini(&clock));
  ASSERT_OK(rcl_system_clock_init(&clock, &allocator));
  EXPECT_EQ(clock.type, RCL_SYSTEM_TIME);
  EXPECT_OK(rcl_system_clock_fini(&clock));
  EXPECT_EQ(rcl_steady_clock_fini(nullptr), RCL_RET_INVALID_ARGUMENT);
  const rcl_time_point_t early = {1000, RCL_ROS_TIME}, late = {3500, RCL_ROS_TIME}, other = {1, RCL_STEADY_TIME};
  rcl_duration_t between{};
  EXPECT_OK(rcl_difference_times(&early, &late, &between));
  EXPECT_EQ(between.nanoseconds, 2500);
  EXPECT_EQ(rcl_difference_times(&early, &other, &between), RCL_RET_ERROR);
}

TEST(Times, OfTheSystemNeedNoAgent) {
  rcutils_time_point_value_t steady = 0, wall = 0;
  const Time before = now_ns();
  ASSERT_EQ(rcutils_steady_time_now(&steady), RCUTILS_RET_OK);
  EXPECT_GE(steady, before);
  EXPECT_LE(steady, now_ns());
  const Time second = wall_ns() / sim::kSecond;
  ASSERT_EQ(rcutils_system_time_now(&wall), RCUTILS_RET_OK);
  EXPECT_GE(RCUTILS_NS_TO_S(wall), second);
  EXPECT_LE(RCUTILS_NS_TO_S(wall), second + 60);
  EXPECT_EQ(rcutils_steady_time_now(nullptr), RCUTILS_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcutils_system_time_now(nullptr), RCUTILS_RET_INVALID_ARGUMENT);
}

TEST_F(Connected, OptionsAndContextsAreCopiedAndEnded) {
  rcl_init_options_t copy = rcl_get_zero_initialized_init_options();
  ASSERT_OK(rcl_init_options_set_domain_id(&options, 7));
  EXPECT_OK(rcl_init_options_copy(&options, &copy));
  EXPECT_EQ(copy.rmw.domain_id, 7u);
  EXPECT_STREQ(copy.rmw.host, "127.0.0.1");
  EXPECT_EQ(rcl_init_options_copy(&options, &copy), RCL_RET_ALREADY_INIT);
  EXPECT_OK(rcl_init_options_fini(&copy));
  EXPECT_EQ(rcl_init_options_copy(&copy, &copy), RCL_RET_INVALID_ARGUMENT);
  rcl_node_options_t of_node = rcl_node_get_default_options(), other{};
  of_node.domain_id = 3;
  EXPECT_OK(rcl_node_options_copy(&of_node, &other));
  EXPECT_EQ(other.domain_id, 3u);
  EXPECT_OK(rcl_node_options_fini(&other));
  rcl_subscription_options_t of_subscription = rcl_subscription_get_default_options();
  EXPECT_OK(rcl_subscription_options_fini(&of_subscription));
  size_t domain = 99;
  EXPECT_OK(rcl_context_get_domain_id(&support.context, &domain));
  EXPECT_EQ(domain, 0u);
  EXPECT_EQ(rcl_context_fini(&support.context), RCL_RET_INVALID_ARGUMENT) << "before its end";
  ASSERT_OK(rclc_support_fini(&support));
  EXPECT_OK(rcl_context_fini(&support.context));
  EXPECT_EQ(rcl_context_get_domain_id(&support.context, &domain), RCL_RET_INVALID_ARGUMENT);
  EXPECT_STREQ(rcutils_get_error_string().str, rmw_get_error_string().str);
  EXPECT_TRUE(rcutils_error_is_set());
  rcutils_reset_error();
  EXPECT_FALSE(rmw_error_is_set());
}

TEST(InitOptions, AreReadFromWords) {
  rmw_init_options_t options{};
  const char *udp[] = {"program", "10.0.0.7", "9000"};
  EXPECT_EQ(rmw_uros_init_options(3, udp, &options), RMW_RET_OK);
  EXPECT_STREQ(options.host, "10.0.0.7");
  EXPECT_EQ(options.port, 9000);
  const char *serial[] = {"program", "/dev/ttyACM0"};
  EXPECT_EQ(rmw_uros_init_options(2, serial, &options), RMW_RET_OK);
  EXPECT_STREQ(options.device, "/dev/ttyACM0");
  EXPECT_EQ(rmw_uros_init_options(1, serial, &options), RMW_RET_INVALID_ARGUMENT);
}

std::string logged;
void keep(const rcutils_log_location_t *location, int severity, const char *name, rcutils_time_point_value_t,
          const char *format, va_list *args) {
  std::array<char, 200> text;
  std::vsnprintf(text.data(), text.size(), format, *args);
  logged += std::to_string(severity) + " " + name + " " + text.data() + " " + location->function_name + "\n";
}

TEST(Logging, GoesToTheHandlerFromItsLevelOn) {
  static bool again = false;  // a repetition of the test does not log the messages again that a process logs once
  const std::string once = again ? "" : "30  once 0 TestBody\n";
  again = true;
  logged.clear();
  rcutils_logging_set_output_handler(keep);
  RCUTILS_LOG_INFO("speed %d", 7);
  RCUTILS_LOG_DEBUG("not %d", 1);
  RCUTILS_LOG_ERROR_NAMED("wheel", "broken");
  for (int i = 0; i < 3; i++) RCUTILS_LOG_WARN_ONCE("once %d", i);
  rcutils_logging_set_default_logger_level(RCUTILS_LOG_SEVERITY_DEBUG);
  RCUTILS_LOG_DEBUG_EXPRESSION(1 + 1 == 2, "now");
  RCUTILS_LOG_DEBUG_EXPRESSION(1 + 1 == 3, "never");
  rcutils_logging_set_default_logger_level(RCUTILS_LOG_SEVERITY_UNSET);
  rcutils_logging_set_output_handler(nullptr);
  RCUTILS_LOG_FATAL("nobody hears it");
  rcutils_logging_set_output_handler(rcutils_logging_console_output_handler);
  EXPECT_EQ(logged, "20  speed 7 TestBody\n40 wheel broken TestBody\n" + once + "10  now TestBody\n");
  ::testing::internal::CaptureStderr();
  RCUTILS_LOG_WARN_NAMED("wheel", "turns %s", "left");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[WARN] [0.000000000] [wheel]: turns left\n");
}

TEST(Sequences, OfMessagesComeFromTheHeap) {
  std_msgs__msg__Int32__Sequence points{};
  ASSERT_TRUE(std_msgs__msg__Int32__Sequence__init(&points, 3));
  EXPECT_EQ(points.size, 3u);
  std_msgs__msg__Int32__Sequence__fini(&points);
  EXPECT_EQ(points.data, nullptr);
  EXPECT_TRUE(std_msgs__msg__Int32__Sequence__init(&points, 0));
  EXPECT_FALSE(std_msgs__msg__Int32__Sequence__init(&points, SIZE_MAX / 4));
  EXPECT_FALSE(std_msgs__msg__Int32__Sequence__init(nullptr, 1));
  std_msgs__msg__String__Sequence *first = std_msgs__msg__String__Sequence__create(4);
  std_msgs__msg__String__Sequence *second = std_msgs__msg__String__Sequence__create(4);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  for (size_t i = 0; i < first->size; i++) {
    std::snprintf(first->data[i].data.data, first->data[i].data.capacity, "text %zu", i);
    first->data[i].data.size = 6;
  }
  EXPECT_FALSE(std_msgs__msg__String__Sequence__are_equal(first, second));
  second->size = 1;
  EXPECT_TRUE(std_msgs__msg__String__Sequence__copy(first, second));
  EXPECT_TRUE(std_msgs__msg__String__Sequence__are_equal(first, second));
  EXPECT_STREQ(second->data[3].data.data, "text 3");
  second->data[2].data.capacity = 3;
  EXPECT_TRUE(std_msgs__msg__String__Sequence__copy(first, second)) << "the third text moves";
  EXPECT_STREQ(second->data[2].data.data, "text 2");
  second->capacity = 3;
  EXPECT_TRUE(std_msgs__msg__String__Sequence__copy(first, second)) << "all elements move";
  EXPECT_TRUE(std_msgs__msg__String__Sequence__are_equal(first, second));
  char texts[3][7] = {};
  std_msgs__msg__String own[3] = {{{texts[0], 0, 7}}, {{texts[1], 0, 7}}, {{texts[2], 0, 3}}};
  std_msgs__msg__String__Sequence of_caller{own, 0, 3};
  EXPECT_FALSE(std_msgs__msg__String__Sequence__copy(first, &of_caller)) << "too few";
  first->size = 3;
  EXPECT_FALSE(std_msgs__msg__String__Sequence__copy(first, &of_caller)) << "one is too small";
  EXPECT_EQ(of_caller.size, 2u);
  EXPECT_FALSE(std_msgs__msg__String__Sequence__are_equal(first, nullptr));
  std_msgs__msg__String__Sequence__destroy(first);
  std_msgs__msg__String__Sequence__destroy(second);
  std_msgs__msg__String *message = std_msgs__msg__String__create();
  ASSERT_NE(message, nullptr);
  EXPECT_GT(message->data.capacity, 0u);
  std_msgs__msg__String__destroy(message);
}

TEST(Profiles, AreThoseOfRos) {
  EXPECT_EQ(rmw_qos_profile_best_available.reliability, RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE);
  EXPECT_EQ(rmw_qos_profile_unknown.history, RMW_QOS_POLICY_HISTORY_UNKNOWN);
  EXPECT_EQ(rmw_qos_profile_parameters.depth, 1000u);
}

}  // namespace tide::compat::test::names_test
