// SPDX-License-Identifier: Apache-2.0
// Supports, options and nodes; ping and time; refusals; programs that start again.
#include <algorithm>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::support_test {

// ---- options ----

TEST(Options, AddressesThatCannotBeAreRefused) {
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  EXPECT_OK(rcl_init_options_init(&options, rcl_get_default_allocator()));
  EXPECT_REFUSED(rcl_init_options_init(&options, rcl_get_default_allocator()), RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  for (const char *port : {"", "0", "65536", "99999999999", "12a", "-1", " 1"}) {
    EXPECT_REFUSED(rmw_uros_options_set_udp_address("127.0.0.1", port, link), RMW_RET_INVALID_ARGUMENT,
                   TIDE_ERROR_ARGUMENT)
        << port;
  }
  EXPECT_EQ(rmw_uros_options_set_udp_address("127.0.0.1", "65535", link), RMW_RET_OK);
  EXPECT_EQ(link->port, 65535);
  EXPECT_REFUSED(rmw_uros_options_set_udp_address(std::string(40, 'h').c_str(), "1", link), RCL_RET_TOPIC_NAME_INVALID,
                 TIDE_ERROR_CAPACITY_NAMES);
  EXPECT_REFUSED(rmw_uros_options_set_udp_address(nullptr, "1", link), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rmw_uros_options_set_client_key(0, link), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_options_set_serial(link, "/dev/null", 0), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_options_set_mtu(nullptr, 128), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_options_set_mtu(link, 67), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_options_set_mtu(link, tide_pools.mtu_bytes + 1u), RMW_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_rclc_options_set_mtu(link, 68), RMW_RET_OK);
  EXPECT_EQ(tide_rclc_options_set_mtu(link, tide_pools.mtu_bytes), RMW_RET_OK);
  EXPECT_REFUSED(rcl_init_options_set_domain_id(&options, 233), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  for (const size_t domain : {232u, 255u}) EXPECT_OK(rcl_init_options_set_domain_id(&options, domain));
  EXPECT_OK(rcl_init_options_fini(&options));
  EXPECT_FALSE(options.initialized);
}

TEST(Options, ADeviceThatIsNoneIsALinkError) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  EXPECT_OK(rcl_init_options_init(&options, allocator));
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  EXPECT_EQ(tide_rclc_options_set_serial(link, "/dev/does-not-exist", 115200), RMW_RET_OK);
  rclc_support_t support;
  EXPECT_REFUSED(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator), RCL_RET_ERROR,
                 TIDE_ERROR_LINK);
  EXPECT_REFUSED(rmw_uros_ping_agent_options(10, 1, link), RMW_RET_ERROR, TIDE_ERROR_LINK);
}

// ---- pools and names ----

TEST_F(Connected, NodesRunOut) {
  rcl_node_t second = rcl_get_zero_initialized_node(), third = rcl_get_zero_initialized_node();
  EXPECT_OK(rclc_node_init_default(&second, "second", "/robot/arm", &support));
  EXPECT_STREQ(rcl_node_get_namespace(&second), "/robot/arm");
  EXPECT_STREQ(rcl_node_get_name(&second), "second");
  EXPECT_REFUSED(rclc_node_init_default(&third, "third", "", &support), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_NODES);
  EXPECT_OK(rcl_node_fini(&second));
  EXPECT_OK(rcl_node_fini(&second));
  EXPECT_OK(rclc_node_init_default(&third, "third", "", &support));
}

struct Told {
  rmw_uros_error_entity_type_t entity;
  rmw_uros_error_source_t source;
  std::string description;
};
std::vector<Told> told;

void note_error(const rmw_uros_error_entity_type_t entity, const rmw_uros_error_source_t source,
                const rmw_uros_error_context_t context, const char *, const int) {
  told.push_back({entity, source, context.description});
}

TEST_F(Connected, TheProgramsFunctionHearsOfErrors) {
  told.clear();
  rmw_uros_set_error_handling_callback(note_error);
  rcl_node_t other = rcl_get_zero_initialized_node();
  EXPECT_NE(rclc_node_init_default(&other, "no/name", "", &support), RCL_RET_OK);
  rcl_publisher_t publishers[4] = {};
  for (auto &publisher : publishers) {
    (void)rclc_publisher_init_default(&publisher, &node, int32_type(), "topic");
  }
  ASSERT_EQ(told.size(), 2u) << "one a failure, none for what went well";
  EXPECT_EQ(told[0].entity, RMW_UROS_ERROR_ON_TOPIC);
  EXPECT_EQ(told[0].source, RMW_UROS_ERROR_CHECK);
  EXPECT_EQ(told[1].entity, RMW_UROS_ERROR_ON_PUBLISHER);
  EXPECT_EQ(told[1].source, RMW_UROS_ERROR_MIDDLEWARE_ALLOCATION);
  EXPECT_EQ(told[1].description, text_of(TIDE_ERROR_CAPACITY_PUBLISHERS));
  rmw_uros_set_error_handling_callback(nullptr);
  EXPECT_NE(rcl_publish(nullptr, nullptr, nullptr), RCL_RET_OK);
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(Connected, NamesThatBreakTheRulesAreRefused) {
  rcl_node_t other = rcl_get_zero_initialized_node();
  for (const char *name : {"", "a/b", "1st", "a b", "a-b", "ä"}) {
    EXPECT_REFUSED(rclc_node_init_default(&other, name, "", &support), RCL_RET_NODE_INVALID_NAME, TIDE_ERROR_NAME)
        << name;
  }
  for (const char *name : {"//", "/a//b", "a/", "/1a"}) {
    EXPECT_REFUSED(rclc_node_init_default(&other, "node", name, &support), RCL_RET_NODE_INVALID_NAMESPACE,
                   TIDE_ERROR_NAME)
        << name;
  }
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  for (const char *name : {"", "/", "~x", "~/", "a//b", "a/", "2nd", "a b", "a/~", "{x}/a", "a/{node", "a/}", "{}",
                           "{ns}/a", "a{/}", "{{node}}", "{node}/", "{nodes}"}) {
    EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), name), RCL_RET_TOPIC_NAME_INVALID,
                   TIDE_ERROR_NAME)
        << name;
  }
  const std::string long_name(tide_pools.name_bytes, 'n');
  EXPECT_REFUSED(rclc_node_init_default(&other, long_name.c_str(), "", &support), RCL_RET_TOPIC_NAME_INVALID,
                 TIDE_ERROR_CAPACITY_NAMES);
  EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), long_name.c_str()),
                 RCL_RET_TOPIC_NAME_INVALID, TIDE_ERROR_CAPACITY_NAMES);
  const std::string longest(tide_pools.name_bytes - sizeof "rt/", 'n');
  EXPECT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), longest.c_str()));
  EXPECT_OK(rcl_publisher_fini(&publisher, &node));
  EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), (longest + "n").c_str()),
                 RCL_RET_TOPIC_NAME_INVALID, TIDE_ERROR_CAPACITY_NAMES);
}

TEST_F(Connected, NamesAreRelativeToNodeAndNamespace) {
  rcl_node_t inner = rcl_get_zero_initialized_node();
  ASSERT_OK(rclc_node_init_default(&inner, "inner", "robot", &support));
  const struct {
    rcl_node_t *node;
    const char *given, *full;
  } cases[] = {{&node, "topic", "/topic"},
               {&node, "/a/topic", "/a/topic"},
               {&node, "~/topic", "/node/topic"},
               {&inner, "topic", "/robot/topic"},
               {&inner, "/topic", "/topic"},
               {&inner, "~/topic", "/robot/inner/topic"},
               {&inner, "~", "/robot/inner"},
               {&inner, "{node}/a", "/robot/inner/a"},
               {&inner, "{ns}/a", "/robot/a"},
               {&inner, "/{node}_{node}", "/inner_inner"},
               {&inner, "~/{node}", "/robot/inner/inner"},
               {&inner, "/a{namespace}/b", "/a/robot/b"}};
  for (const auto &one : cases) {
    rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
    ASSERT_OK(rclc_publisher_init_default(&publisher, one.node, int32_type(), one.given)) << one.given;
    EXPECT_STREQ(rcl_publisher_get_topic_name(&publisher), one.full);
    std_msgs__msg__Int32 message = {7};
    EXPECT_OK(rcl_publish(&publisher, &message, nullptr));
    EXPECT_TRUE(eventually([&] { return !server.written(std::string("rt") + one.full).empty(); })) << one.full;
    EXPECT_OK(rcl_publisher_fini(&publisher, one.node));
  }
}

TEST_F(Connected, PublishersAndSubscriptionsRunOut) {
  std::array<rcl_publisher_t, 4> publishers{};
  std::array<rcl_subscription_t, 4> subscriptions{};
  for (size_t i = 0; i < 3; i++) {
    const std::string name = "topic" + std::to_string(i);
    ASSERT_OK(rclc_publisher_init_default(&publishers[i], &node, int32_type(), name.c_str()));
    ASSERT_OK(rclc_subscription_init_best_effort(&subscriptions[i], &node, int32_type(), name.c_str()));
  }
  EXPECT_REFUSED(rclc_publisher_init_default(&publishers[3], &node, int32_type(), "more"), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_PUBLISHERS);
  EXPECT_REFUSED(rclc_subscription_init_default(&subscriptions[3], &node, int32_type(), "more"), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_SUBSCRIPTIONS);
  EXPECT_OK(rcl_publisher_fini(&publishers[1], &node));
  EXPECT_OK(rcl_subscription_fini(&subscriptions[1], &node));
  EXPECT_OK(rclc_publisher_init_default(&publishers[3], &node, int32_type(), "more"));
  EXPECT_OK(rclc_subscription_init_default(&subscriptions[3], &node, int32_type(), "more"));
  EXPECT_FALSE(rcl_publisher_is_valid(&publishers[1]));
  std_msgs__msg__Int32 message = {1};
  EXPECT_REFUSED(rcl_publish(&publishers[1], &message, nullptr), RCL_RET_PUBLISHER_INVALID, TIDE_ERROR_ARGUMENT);
}

TEST_F(Connected, TimersGuardsExecutorsAndHandlesRunOut) {
  std::array<rcl_timer_t, 4> timers{};
  const auto ignore = [](rcl_timer_t *, int64_t) {};
  for (size_t i = 0; i < 3; i++) ASSERT_OK(rclc_timer_init_default(&timers[i], &support, RCL_MS_TO_NS(10), ignore));
  EXPECT_REFUSED(rclc_timer_init_default(&timers[3], &support, RCL_MS_TO_NS(10), ignore), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_TIMERS);
  std::array<rcl_guard_condition_t, 3> guards{};
  const rcl_guard_condition_options_t guard_options = rcl_guard_condition_get_default_options();
  for (size_t i = 0; i < 2; i++) ASSERT_OK(rcl_guard_condition_init(&guards[i], &support.context, guard_options));
  EXPECT_REFUSED(rcl_guard_condition_init(&guards[2], &support.context, guard_options), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_GUARD_CONDITIONS);

  std::array<rclc_executor_t, 3> executors{};
  EXPECT_REFUSED(rclc_executor_init(&executors[0], &support.context, 7, &allocator), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_HANDLES);
  EXPECT_REFUSED(rclc_executor_init(&executors[0], &support.context, 0, &allocator), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  ASSERT_OK(rclc_executor_init(&executors[0], &support.context, 2, &allocator));
  ASSERT_OK(rclc_executor_init(&executors[1], &support.context, 3, &allocator));
  EXPECT_REFUSED(rclc_executor_init(&executors[2], &support.context, 1, &allocator), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_EXECUTORS);
  ASSERT_OK(rclc_executor_add_timer(&executors[0], &timers[0]));
  EXPECT_REFUSED(rclc_executor_add_timer(&executors[1], &timers[0]), RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
  ASSERT_OK(rclc_executor_add_guard_condition(&executors[0], &guards[0], [] {}));
  EXPECT_REFUSED(rclc_executor_add_timer(&executors[0], &timers[1]), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_HANDLES);
  EXPECT_REFUSED(rclc_executor_remove_timer(&executors[0], &timers[1]), RCL_RET_ERROR, TIDE_ERROR_NOT_FOUND);
  EXPECT_OK(rclc_executor_remove_timer(&executors[0], &timers[0]));
  EXPECT_OK(rclc_executor_add_timer(&executors[0], &timers[1]));
  EXPECT_OK(rclc_executor_fini(&executors[1]));
  EXPECT_OK(rclc_executor_init(&executors[2], &support.context, 4, &allocator));
}

TEST_F(Connected, NothingIsMadeWithoutASupport) {
  ASSERT_OK(rclc_support_fini(&support));
  rcl_node_t other = rcl_get_zero_initialized_node();
  EXPECT_REFUSED(rclc_node_init_default(&other, "other", "", &support), RCL_RET_NOT_INIT, TIDE_ERROR_STATE);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic"), RCL_RET_NODE_INVALID,
                 TIDE_ERROR_ARGUMENT);
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  EXPECT_REFUSED(rclc_timer_init_default(&timer, &support, 1000, nullptr), RCL_RET_ERROR, TIDE_ERROR_STATE);
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  EXPECT_REFUSED(rclc_executor_init(&executor, &support.context, 1, &allocator), RCL_RET_ERROR, TIDE_ERROR_STATE);
  EXPECT_REFUSED(rclc_executor_spin_some(&executor, 0), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rclc_executor_spin_period(&executor, 1000), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rmw_uros_sync_session(10), RCL_RET_ERROR, TIDE_ERROR_STATE);
  EXPECT_EQ(rmw_uros_epoch_nanos(), 0);
}

// A program may end its objects in any order, even after their support.
TEST_F(Connected, EndsInEveryOrderLeaveNothing) {
  std::string order = "EPSNW";  // executor, publisher, subscription, node, the support
  std::sort(order.begin(), order.end());
  do {
    if (!rcl_context_is_valid(&support.context)) connect();
    std_msgs__msg__Int32 message{};
    rcl_publisher_t publisher = publisher_of(int32_type(), "numbers");
    rcl_subscription_t subscription = subscription_of(int32_type(), "numbers");
    rclc_executor_t executor = executor_of(1);
    ASSERT_OK(rclc_executor_add_subscription(
        &executor, &subscription, &message, [](const void *) {}, ON_NEW_DATA));
    for (int time = 0; time < 2; time++) {
      for (const char end : order) {
        const rcl_ret_t code = end == 'E'   ? rclc_executor_fini(&executor)
                               : end == 'P' ? rcl_publisher_fini(&publisher, &node)
                               : end == 'S' ? rcl_subscription_fini(&subscription, &node)
                               : end == 'N' ? rcl_node_fini(&node)
                                            : rclc_support_fini(&support);
        EXPECT_EQ(code, end == 'W' && time > 0 ? RCL_RET_ALREADY_INIT : RCL_RET_OK) << order << ", " << end;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Connected, NullIsRefusedEverywhere) {
  rcl_publisher_t publisher{};
  rcl_subscription_t subscription{};
  rclc_executor_t executor{};
  EXPECT_EQ(rclc_support_init(nullptr, 0, nullptr, &allocator), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_support_fini(nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_node_init_default(nullptr, "a", "", &support), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_publisher_init_default(&publisher, &node, nullptr, "a"), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_subscription_init_default(&subscription, nullptr, int32_type(), "a"), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_publish(&publisher, nullptr, nullptr), RCL_RET_PUBLISHER_INVALID);
  EXPECT_EQ(rcl_take(&subscription, nullptr, nullptr, nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_executor_spin_some(nullptr, 0), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_executor_spin(nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_executor_spin_period(nullptr, 1), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_executor_set_trigger(&executor, rclc_executor_trigger_any, nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_timer_cancel(nullptr), RCL_RET_TIMER_INVALID);
  EXPECT_EQ(rcl_trigger_guard_condition(nullptr), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_executor_handle_get_ptr(nullptr), nullptr);
  EXPECT_EQ(rmw_uros_ping_agent_options(1, 1, nullptr), RMW_RET_INVALID_ARGUMENT);
}

TEST_F(Connected, WhatTheAgentRefusesIsToldAndLeavesNoTrace) {
  rcl_publisher_t publisher{};
  for (int again = 0; again < 10; again++) {
    server.refuse(true);
    EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic"), RCL_RET_ERROR,
                   TIDE_ERROR_REFUSED);
    server.refuse(false);
    ASSERT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic"));
    ASSERT_OK(rcl_publisher_fini(&publisher, &node));
  }
  EXPECT_TRUE(eventually([&] { return server.entities() == 1; })) << server.entities();
}

TEST_F(Connected, CreationGivesUpAfterItsTime) {
  ASSERT_EQ(rmw_uros_set_context_entity_creation_session_timeout(rcl_context_get_rmw_context(&support.context), 100),
            RMW_RET_OK);
  server.mute(true);
  rcl_publisher_t publisher{};
  const Time begin_ns = now_ns();
  EXPECT_REFUSED(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic"), RCL_RET_TIMEOUT,
                 TIDE_ERROR_TIMEOUT);
  EXPECT_LT(now_ns() - begin_ns, 1'000'000'000);
  server.mute(false);
  ASSERT_TRUE(eventually([&] { return rmw_uros_ping_agent(100, 1) == RMW_RET_OK; }));
  ASSERT_EQ(rmw_uros_set_context_entity_creation_session_timeout(rcl_context_get_rmw_context(&support.context), 5000),
            RMW_RET_OK);
  EXPECT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic"));
  EXPECT_TRUE(eventually([&] { return server.entities() == 4; })) << server.entities();
}

TEST_F(Connected, TheParticipantHasTheNodesFullNameAndDomain) {
  ASSERT_OK(rclc_support_fini(&support));
  ASSERT_OK(rcl_init_options_set_domain_id(&options, 7));
  connect();
  EXPECT_FALSE(server.heard("/node"));
  rcl_node_t inner = rcl_get_zero_initialized_node();
  ASSERT_OK(rclc_node_init_default(&inner, "inner", "robot", &support));
  EXPECT_TRUE(server.heard("/robot/inner"));
  EXPECT_EQ(server.domains(), (std::vector<int>{0, 7, 7}));
}

// ---- starting again and again ----

// If file descriptors leaked, the process would run out of them; the leak sanitizer detects leaks of memory.
TEST_F(Connected, ManyLivesLeaveNothingBehind) {
  const int lives = 1000;
  for (int life = 0; life < lives; life++) {
    rcl_publisher_t publisher{};
    rcl_timer_t timer{};
    rclc_executor_t executor{};
    std_msgs__msg__Int32 message = {life}, received = {};
    ASSERT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), "topic")) << life;
    rcl_subscription_t subscription = subscription_of(int32_type(), "topic");
    ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1), [](rcl_timer_t *, int64_t) {}));
    ASSERT_OK(rclc_executor_init(&executor, &support.context, 6, &allocator)) << life;
    ASSERT_OK(rclc_executor_add_subscription(
        &executor, &subscription, &received, [](const void *) {}, ON_NEW_DATA));
    ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
    ASSERT_OK(rcl_publish(&publisher, &message, nullptr));
    ASSERT_OK(rclc_executor_spin_some(&executor, 0));
    if (life % 2 == 0) { /* every other time in order; otherwise the support's end ends all objects */
      ASSERT_OK(rclc_executor_fini(&executor));
      ASSERT_OK(rcl_subscription_fini(&subscription, &node));
      ASSERT_OK(rcl_timer_fini(&timer));
      ASSERT_OK(rcl_publisher_fini(&publisher, &node));
      ASSERT_OK(rcl_node_fini(&node));
    }
    ASSERT_OK(rclc_support_fini(&support));
    ASSERT_OK(rcl_publisher_fini(&publisher, &node)); /* too late, but harmless */
    connect();
  }
  EXPECT_EQ(server.written("rt/topic").size(),
            static_cast<size_t>(lives)); /* the last message before each end has arrived, too */
  EXPECT_EQ(server.clients(), 1u);
  EXPECT_EQ(server.entities(), 1u);
}

// ---- the agent ----

TEST_F(Connected, PingTakesNothingFromTheExecutor) {
  rcl_subscription_t subscription = subscription_of(int32_type(), "topic");
  ASSERT_TRUE(eventually([&] { return server.offer("rt/topic", int32_bytes(1)); }));
  for (int32_t i = 2; i <= 8; i++) server.offer("rt/topic", int32_bytes(i)); /* more than the queue holds */
  pass_time(20ms);
  EXPECT_EQ(rmw_uros_ping_agent(1000, 1), RMW_RET_OK);
  std_msgs__msg__Int32 received = {};
  EXPECT_EQ(rcl_take(&subscription, &received, nullptr, nullptr), RCL_RET_SUBSCRIPTION_TAKE_FAILED);
  static std::vector<int32_t> numbers;
  numbers.clear();
  rclc_executor_t executor = executor_of(1);
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received,
      [](const void *message) { numbers.push_back(static_cast<const std_msgs__msg__Int32 *>(message)->data); },
      ON_NEW_DATA));
  EXPECT_TRUE(eventually([&] { return rclc_executor_spin_some(&executor, 0) == RCL_RET_OK && numbers.size() == 8; }));
  EXPECT_EQ(numbers, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(Connected, PingWithoutASession) {
  ASSERT_OK(rclc_support_fini(&support));
  EXPECT_EQ(rmw_uros_ping_agent_options(1000, 1, rmw_options), RMW_RET_OK);
  server.mute(true);
  EXPECT_REFUSED(rmw_uros_ping_agent_options(20, 3, rmw_options), RMW_RET_ERROR, TIDE_ERROR_TIMEOUT);
  server.mute(false);
  EXPECT_EQ(rmw_uros_ping_agent_options(1000, 1, rmw_options), RMW_RET_OK);
  EXPECT_EQ(server.clients(), 0u);
  rmw_init_options_t own = rmw_get_zero_initialized_init_options();
  ASSERT_EQ(rmw_init_options_init(&own, allocator), RMW_RET_OK);
  ASSERT_EQ(rmw_uros_options_set_udp_address("127.0.0.1", server.port().c_str(), &own), RMW_RET_OK);
  EXPECT_EQ(rmw_uros_ping_agent_options(1000, 1, &own), RMW_RET_OK);
  EXPECT_EQ(rmw_init_options_fini(&own), RMW_RET_OK);
  EXPECT_EQ(rmw_init_options_init(nullptr, allocator), RMW_RET_INVALID_ARGUMENT);
  connect();
}

TEST_F(Connected, TimeIsSynchronised) {
  EXPECT_FALSE(rmw_uros_epoch_synchronized());
  EXPECT_EQ(rmw_uros_epoch_millis(), 0);
  server.mute(true);
  EXPECT_REFUSED(rmw_uros_sync_session(30), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  Thread later([&] {
    pass_time(100ms);
    server.mute(false);
  });
  EXPECT_OK(rmw_uros_sync_session(2000)); /* the first request is lost, the next one is not */
  later.join();
  EXPECT_TRUE(rmw_uros_epoch_synchronized());
  const int64_t now = wall_ns();
  EXPECT_LT(std::abs(rmw_uros_epoch_nanos() - now), 100'000'000);
  EXPECT_LT(std::abs(rmw_uros_epoch_millis() - now / 1'000'000), 100);
}

TEST_F(Connected, AStepOfTheAgentsClockReachesTheEpochByTheNextSynchronisationAndNoTimer) {
  static int calls;
  calls = 0;
  rcl_timer_t timer{};
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), [](rcl_timer_t *, int64_t) { calls++; }));
  rclc_executor_t executor = executor_of(1);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  ASSERT_OK(rmw_uros_sync_session(1000));
  for (const Time step : {-3600 * sim::kSecond, 7200 * sim::kSecond}) {
    const Time begun = now_ns(), epoch = rmw_uros_epoch_nanos();
    const int before = calls;
    World::current().wall_step += step;
    while (now_ns() - begun < sim::kSecond) EXPECT_OK(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10)));
    EXPECT_NEAR(calls - before, 10, 1);
    EXPECT_LT(std::abs(rmw_uros_epoch_nanos() - epoch - (now_ns() - begun)), 100'000'000);
    ASSERT_OK(rmw_uros_sync_session(1000));
    EXPECT_LT(std::abs(rmw_uros_epoch_nanos() - wall_ns()), 100'000'000);
  }
  EXPECT_OK(rclc_executor_fini(&executor));
}

TEST_F(Connected, CreationWaitsForNoDeadlineOfTheLink) {
  const Time begin_ns = now_ns();
  for (int again = 0; again < 50; again++) {
    rcl_publisher_t publisher = publisher_of(int32_type(), "topic");
    ASSERT_OK(rcl_publisher_fini(&publisher, &node));
    ASSERT_EQ(rmw_uros_ping_agent(1000, 1), RMW_RET_OK);
  }
  EXPECT_LT((now_ns() - begin_ns) / 50, 20'000'000) << "each; the link's thread wakes every 20 ms by itself";
}

// ---- rarely used calls ----

TEST_F(Connected, ATimerIsAskedAndCalledWithoutAnExecutor) {
  static int calls, others;
  calls = others = 0;
  const rcl_timer_callback_t first = [](rcl_timer_t *, int64_t since_ns) { calls += since_ns > 0; };
  const rcl_timer_callback_t second = [](rcl_timer_t *, int64_t) { others++; };
  rcl_timer_t timer{};
  EXPECT_EQ(rcl_timer_call(&timer), RCL_RET_TIMER_INVALID);
  EXPECT_EQ(rcl_timer_get_callback(&timer), nullptr);
  ASSERT_OK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), first));
  bool ready = true;
  int64_t since_ns = -1, until_ns = -1;
  EXPECT_OK(rcl_timer_is_ready(&timer, &ready));
  EXPECT_FALSE(ready);
  EXPECT_TRUE(eventually([&] { return rcl_timer_is_ready(&timer, &ready) == RCL_RET_OK && ready; }));
  EXPECT_OK(rcl_timer_get_time_since_last_call(&timer, &since_ns));
  EXPECT_GE(since_ns, RCL_MS_TO_NS(20));
  EXPECT_OK(rcl_timer_call(&timer));
  EXPECT_OK(rcl_timer_is_ready(&timer, &ready));
  EXPECT_FALSE(ready);
  EXPECT_OK(rcl_timer_get_time_until_next_call(&timer, &until_ns));
  EXPECT_LE(until_ns, RCL_MS_TO_NS(20));
  EXPECT_EQ(rcl_timer_exchange_callback(&timer, second), first);
  EXPECT_EQ(rcl_timer_get_callback(&timer), second);
  EXPECT_OK(rcl_timer_call(&timer));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(others, 1);
  EXPECT_OK(rcl_timer_cancel(&timer));
  EXPECT_EQ(rcl_timer_call(&timer), RCL_RET_TIMER_CANCELED);
  rclc_executor_t executor = executor_of(1);
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  EXPECT_REFUSED(rcl_timer_call(&timer), RCL_RET_ERROR, TIDE_ERROR_STATE);
}

TEST_F(Connected, ThePublishersSessionTimeoutIsItsWait) {
  rcl_publisher_t publisher{};
  EXPECT_EQ(rcl_publisher_get_rmw_handle(&publisher), nullptr);
  EXPECT_REFUSED(rmw_uros_set_publisher_session_timeout(nullptr, 0), RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(rclc_publisher_init_default(&publisher, &node, int32_type(), "number"));
  ASSERT_OK(rmw_uros_set_publisher_session_timeout(rcl_publisher_get_rmw_handle(&publisher), 40));
  server.mute(true);
  std_msgs__msg__Int32 message = {1};
  const Time begin_ns = now_ns();
  while (rcl_publish(&publisher, &message, nullptr) == RCL_RET_OK) continue;
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  EXPECT_GE(now_ns() - begin_ns, 40'000'000);
  EXPECT_LT(now_ns() - begin_ns, 900'000'000) << "the default is 1 s";
  server.mute(false);
}

TEST(Clock, MillisecondsAreThoseOfThePort) {
  const int64_t begin_ns = uxr_nanos(), begin_ms = uxr_millis();
  pass_time(15ms);
  EXPECT_GE(uxr_millis() - begin_ms, 14);
  EXPECT_GE(uxr_nanos() - begin_ns, 15'000'000);
  EXPECT_LT(std::abs(uxr_nanos() / 1'000'000 - uxr_millis()), 1000);
}

TEST(Text, IsFormattedWithinItsBuffer) {
  char text[6] = "";
  EXPECT_EQ(rcutils_snprintf(text, sizeof text, "%s %d", "abc", 1234), 8);
  EXPECT_STREQ(text, "abc 1");
  EXPECT_LT(rcutils_snprintf(nullptr, 5, "x"), 0);
}

// ---- custom transports ----

class CustomTransport : public ::testing::TestWithParam<bool> {};

TEST_P(CustomTransport, CarriesASession) {
  const bool framed = GetParam();
  AgentServer server(framed ? AgentServer::Kind::kStream : AgentServer::Kind::kDatagrams);
  EXPECT_REFUSED(rmw_uros_set_custom_transport(framed, &server.client_end, open_transport, close_transport,
                                               write_transport, nullptr),
                 RMW_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(rmw_uros_set_custom_transport(framed, &server.client_end, open_transport, close_transport, write_transport,
                                          read_transport),
            RMW_RET_OK);
  rcl_allocator_t allocator = rcl_get_default_allocator();
  EXPECT_EQ(rmw_uros_ping_agent(1000, 1), RMW_RET_OK);
  rclc_support_t support;
  ASSERT_OK(rclc_support_init(&support, 0, nullptr, &allocator));
  rcl_node_t node{};
  ASSERT_OK(rclc_node_init_default(&node, "node", "", &support));
  rcl_publisher_t publisher{};
  ASSERT_OK(rclc_publisher_init_default(&publisher, &node, string_type(), "up"));
  rcl_subscription_t subscription{};
  ASSERT_OK(rclc_subscription_init_default(&subscription, &node, int32_type(), "down"));
  std::string text(800, '~'); /* with escaped octets, in fragments */
  std_msgs__msg__String message = {{text.data(), text.size(), text.size() + 1}};
  for (int i = 0; i < 20; i++) ASSERT_OK(rcl_publish(&publisher, &message, nullptr));
  EXPECT_TRUE(eventually([&] { return server.written("rt/up").size() == 20; }));
  EXPECT_EQ(server.written("rt/up").back(), string_bytes(text));
  static std::vector<int32_t> numbers;
  numbers.clear();
  std_msgs__msg__Int32 received = {};
  rclc_executor_t executor{};
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  ASSERT_OK(rclc_executor_add_subscription(
      &executor, &subscription, &received,
      [](const void *number) { numbers.push_back(static_cast<const std_msgs__msg__Int32 *>(number)->data); },
      ON_NEW_DATA));
  for (int32_t i = 0; i < 20; i++) {
    ASSERT_TRUE(eventually([&] { return server.offer("rt/down", int32_bytes(i)); }));
    EXPECT_TRUE(eventually([&] {
      return rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10)) == RCL_RET_OK &&
             numbers.size() == static_cast<size_t>(i) + 1;
    }));
  }
  EXPECT_OK(rclc_support_fini(&support));
  EXPECT_EQ(server.clients(), 0u);
}

// Some programs set the transport after they have initialised the options. The options then use it, unless they have an
// address.
TEST_P(CustomTransport, IsUsedByOptionsThatWereMadeBefore) {
  const bool framed = GetParam();
  AgentServer server(framed ? AgentServer::Kind::kStream : AgentServer::Kind::kDatagrams);
  AgentServer other;
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t early = rcl_get_zero_initialized_init_options(), chosen = early;
  ASSERT_OK(rcl_init_options_init(&early, allocator));
  ASSERT_OK(rcl_init_options_init(&chosen, allocator));
  ASSERT_EQ(rmw_uros_options_set_udp_address("127.0.0.1", other.port().c_str(),
                                             rcl_init_options_get_rmw_init_options(&chosen)),
            RMW_RET_OK);
  ASSERT_EQ(rmw_uros_set_custom_transport(framed, &server.client_end, open_transport, close_transport, write_transport,
                                          read_transport),
            RMW_RET_OK);
  rclc_support_t support;
  ASSERT_OK(rclc_support_init_with_options(&support, 0, nullptr, &early, &allocator));
  EXPECT_EQ(server.clients(), 1u);
  EXPECT_EQ(other.clients(), 0u);
  EXPECT_OK(rclc_support_fini(&support));
  ASSERT_OK(rclc_support_init_with_options(&support, 0, nullptr, &chosen, &allocator));
  EXPECT_EQ(other.clients(), 1u);
  EXPECT_OK(rclc_support_fini(&support));
}

INSTANTIATE_TEST_SUITE_P(Framing, CustomTransport, ::testing::Bool(),
                         [](const auto &instance) { return instance.param ? "Framed" : "Unframed"; });

}  // namespace tide::compat::test::support_test
