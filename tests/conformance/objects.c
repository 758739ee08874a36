/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: how many there may be, their names, and the orders in which they may be finalised. */
#include <string.h>

#include "behaviours.h"

#define MANY 40

static char long_name[80];

static void publishers_at_once(void) {
  connect_node();
  rcl_publisher_t all[MANY];
  int count = 0;
  rcl_ret_t code = RCL_RET_OK;
  for (; count < MANY && code == RCL_RET_OK; count++) {
    all[count] = rcl_get_zero_initialized_publisher();
    code = rclc_publisher_init_default(&all[count], &node, INT32, fresh("p"));
  }
  say(" %s", code == RCL_RET_OK ? "no limit up to 40" : "refused beyond a limit:");
  if (code != RCL_RET_OK) say_code("code", code);
}

static void node_names(void) {
  connect_support();
  memset(long_name, 'n', 70);
  const char *const names[] = {"n", "n_1", "1n", "a-b", "a b", "", "/n", long_name};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rcl_node_t one = rcl_get_zero_initialized_node();
    const rcl_ret_t code = rclc_node_init_default(&one, names[i], "", &support);
    say_code(names[i] == long_name ? "70 characters" : names[i][0] ? names[i] : "(empty)", code);
    if (code == RCL_RET_OK) (void)rcl_node_fini(&one);
  }
}

static void namespaces(void) {
  connect_support();
  const char *const names[] = {"", "/", "a", "/a", "/a/b", "/a/", "/1a", "/a b", "a//b"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rcl_node_t one = rcl_get_zero_initialized_node();
    const rcl_ret_t code = rclc_node_init_default(&one, "n", names[i], &support);
    say_code(names[i][0] ? names[i] : "(empty)", code);
    if (code == RCL_RET_OK) {
      say(" (%s)", rcl_node_get_namespace(&one));
      (void)rcl_node_fini(&one);
    }
  }
}

static void topic_names(void) {
  connect_node();
  memset(long_name, 't', 70);
  const char *const names[] = {"a",   "/a",   "a/b", "~/a",  "~a", "{node}/a", "{x}/a", "1a",
                               "a b", "a__b", "a/",  "a//b", "-a", "",         "~",     long_name};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rcl_publisher_t one = rcl_get_zero_initialized_publisher();
    const rcl_ret_t code = rclc_publisher_init_default(&one, &node, INT32, names[i]);
    say_code(names[i] == long_name ? "70 characters" : names[i][0] ? names[i] : "(empty)", code);
    if (code == RCL_RET_OK) (void)rcl_publisher_fini(&one, &node);
  }
}

static void service_names(void) {
  connect_node();
  const char *const names[] = {"s", "/s", "~/s", "1s", "s t", "", "s/"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rcl_service_t one = rcl_get_zero_initialized_service();
    const rcl_ret_t code = rclc_service_init_default(&one, &node, SET_BOOL, names[i]);
    say_code(names[i][0] ? names[i] : "(empty)", code);
    if (code == RCL_RET_OK) (void)rcl_service_fini(&one, &node);
  }
}

static void names_in_a_namespace(void) {
  connect_support();
  node = rcl_get_zero_initialized_node();
  say_code("node", rclc_node_init_default(&node, "arm", "/robot", &support));
  say(" %s %s %s", rcl_node_get_name(&node), rcl_node_get_namespace(&node), rcl_node_get_fully_qualified_name(&node));
  const char *const names[] = {"a", "/a", "~/a"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const rcl_publisher_t one = publisher_of(names[i]);
    say(" %s is %s", names[i], rcl_publisher_get_topic_name(&one));
  }
}

static void two_nodes_of_one_name(void) {
  connect_node();
  rcl_node_t second = rcl_get_zero_initialized_node();
  say_code("second", rclc_node_init_default(&second, "node", "", &support));
}

static void one_topic_twice(void) {
  connect_node();
  rcl_publisher_t one = rcl_get_zero_initialized_publisher(), two = one;
  say_code("first", rclc_publisher_init_default(&one, &node, INT32, "twice"));
  say_code("second", rclc_publisher_init_default(&two, &node, INT32, "twice"));
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  say_code("subscription", rclc_subscription_init_default(&subscription, &node, INT32, "twice"));
}

static void one_topic_with_two_types(void) {
  connect_node();
  rcl_publisher_t one = rcl_get_zero_initialized_publisher(), two = one;
  const char *topic = fresh("types");
  say_code("first", rclc_publisher_init_default(&one, &node, INT32, topic));
  say_code("second", rclc_publisher_init_default(&two, &node, STRING, topic));
}

static void one_service_twice(void) {
  connect_node();
  rcl_service_t one = rcl_get_zero_initialized_service(), two = one;
  rcl_client_t first = rcl_get_zero_initialized_client(), second = first;
  say_code("service", rclc_service_init_default(&one, &node, SET_BOOL, "twice"));
  say_code("again", rclc_service_init_default(&two, &node, SET_BOOL, "twice"));
  say_code("client", rclc_client_init_default(&first, &node, SET_BOOL, "twice"));
  say_code("again", rclc_client_init_default(&second, &node, SET_BOOL, "twice"));
}

static void init_without_what_it_needs(void) {
  rcl_node_t one = rcl_get_zero_initialized_node();
  rclc_support_t none;
  memset(&none, 0, sizeof none);
  say_code("node without support", rclc_node_init_default(&one, "n", "", &none));
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  say_code("publisher without node", rclc_publisher_init_default(&publisher, &one, INT32, "t"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  say_code("timer without support", rclc_timer_init_default(&timer, NULL, RCL_MS_TO_NS(10), NULL));
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  say_code("executor without support", rclc_executor_init(&executor, NULL, 1, &allocator));
}

static void null_arguments(void) {
  connect_node();
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  say_code("publisher null", rclc_publisher_init_default(NULL, &node, INT32, "t"));
  say_code("node null", rclc_publisher_init_default(&publisher, NULL, INT32, "t"));
  say_code("type null", rclc_publisher_init_default(&publisher, &node, NULL, "t"));
  say_code("name null", rclc_publisher_init_default(&publisher, &node, INT32, NULL));
  say_code("support null", rclc_node_init_default(&node, "n", "", NULL));
  say_code("executor null", rclc_executor_spin_some(NULL, 1000));
}

static void support_arguments(void) {
  rcl_init_options_t options = options_of_agent();
  say_code("support null", rclc_support_init_with_options(NULL, 0, NULL, &options, &allocator));
  say_code("allocator null", rclc_support_init_with_options(&support, 0, NULL, &options, NULL));
}

static void support_twice(void) {
  connect_support();
  rclc_support_t second;
  memset(&second, 0, sizeof second);
  rcl_init_options_t options = options_of_agent();
  say_code("second", rclc_support_init_with_options(&second, 0, NULL, &options, &allocator));
  say_code("first ends", rclc_support_fini(&support));
  say_code("again", rclc_support_fini(&support));
}

static void support_again(void) {
  int failed = 0;
  for (int i = 0; i < 5; i++) {
    connect_node();
    rcl_publisher_t publisher = publisher_of("again");
    failed += rcl_publisher_fini(&publisher, &node) != RCL_RET_OK;
    failed += rcl_node_fini(&node) != RCL_RET_OK;
    failed += rclc_support_fini(&support) != RCL_RET_OK;
  }
  say(" 5 rounds, %d ends failed", failed);
}

static void ends_of_what_never_began(void) {
  connect_node();
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  rcl_service_t service = rcl_get_zero_initialized_service();
  rcl_client_t client = rcl_get_zero_initialized_client();
  rcl_node_t other = rcl_get_zero_initialized_node();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  say_code("publisher", rcl_publisher_fini(&publisher, &node));
  say_code("subscription", rcl_subscription_fini(&subscription, &node));
  say_code("timer", rcl_timer_fini(&timer));
  say_code("service", rcl_service_fini(&service, &node));
  say_code("client", rcl_client_fini(&client, &node));
  say_code("node", rcl_node_fini(&other));
  say_code("executor", rclc_executor_fini(&executor));
}

static void ends_twice(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  rcl_subscription_t subscription = subscription_of("t");
  say_code("publisher", rcl_publisher_fini(&publisher, &node));
  say_code("again", rcl_publisher_fini(&publisher, &node));
  say_code("subscription", rcl_subscription_fini(&subscription, &node));
  say_code("again", rcl_subscription_fini(&subscription, &node));
  say_code("node", rcl_node_fini(&node));
  say_code("again", rcl_node_fini(&node));
}

static void executor_ends_twice(void) {
  connect_node();
  rclc_executor_t executor = executor_of(1);
  say_code("executor", rclc_executor_fini(&executor));
  say_code("again", rclc_executor_fini(&executor));
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(1)));
}

static void node_ends_before_its_publisher(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  say_code("node", rcl_node_fini(&node));
  say_code("publish", publish_int32(&publisher, 1));
  say_code("publisher", rcl_publisher_fini(&publisher, &node));
  say_code("support", rclc_support_fini(&support));
}

static void support_ends_first(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  say_code("support", rclc_support_fini(&support));
  say_code("publish", publish_int32(&publisher, 1));
}

static void publish_what_is_not_there(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t"), none = rcl_get_zero_initialized_publisher();
  say_code("message null", rcl_publish(&publisher, NULL, NULL));
  say_code("publisher zero", publish_int32(&none, 1));
  say_code("publisher null", publish_int32(NULL, 1));
  (void)rcl_publisher_fini(&publisher, &node);
  say_code("after its end", publish_int32(&publisher, 1));
}

static void validity(void) {
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  node = rcl_get_zero_initialized_node();
  say(" before %d %d %d", rcl_node_is_valid(&node), rcl_publisher_is_valid(&publisher),
      rcl_subscription_is_valid(&subscription));
  connect_node();
  publisher = publisher_of("t");
  subscription = subscription_of("t");
  say(", then %d %d %d", rcl_node_is_valid(&node), rcl_publisher_is_valid(&publisher),
      rcl_subscription_is_valid(&subscription));
  (void)rcl_publisher_fini(&publisher, &node);
  (void)rcl_subscription_fini(&subscription, &node);
  say(", ended %d %d", rcl_publisher_is_valid(&publisher), rcl_subscription_is_valid(&subscription));
}

static void say_profile(const char *name, const rmw_qos_profile_t *profile) {
  say(" %s %d %d %d %d", name, (int)profile->history, (int)profile->depth, (int)profile->reliability,
      (int)profile->durability);
}

static void profiles(void) {
  say_profile("default", &rmw_qos_profile_default);
  say_profile("sensor", &rmw_qos_profile_sensor_data);
  say_profile("services", &rmw_qos_profile_services_default);
  say_profile("parameters", &rmw_qos_profile_parameters);
  say_profile("system", &rmw_qos_profile_system_default);
}

static void init_options(void) {
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  say_code("ends before", rcl_init_options_fini(&options));
  say_code("init", rcl_init_options_init(&options, allocator));
  say_code("again", rcl_init_options_init(&options, allocator));
  size_t domain = 99;
  say_code("domain", rcl_init_options_get_domain_id(&options, &domain));
  say(" %zd", (ssize_t)domain);
  say_code("set 7", rcl_init_options_set_domain_id(&options, 7));
  say_code("get", rcl_init_options_get_domain_id(&options, &domain));
  say(" %zd", (ssize_t)domain);
  say_code("ends", rcl_init_options_fini(&options));
}

static void allocators(void) {
  void *memory = allocator.allocate(16, allocator.state);
  memory = memory ? allocator.reallocate(memory, 32, allocator.state) : NULL;
  say(" 32 octets %s", memory ? "there" : "refused");
  allocator.deallocate(memory, allocator.state);
  rcl_allocator_t zero = rcutils_get_zero_initialized_allocator();
  say(", zero valid %d, default valid %d", rcutils_allocator_is_valid(&zero), rcutils_allocator_is_valid(&allocator));
}

const behaviour_t behaviours_of_objects[] = {{"publishers at once", publishers_at_once, false},
                                             {"node names", node_names, false},
                                             {"namespaces", namespaces, false},
                                             {"topic names", topic_names, false},
                                             {"service names", service_names, false},
                                             {"names in a namespace", names_in_a_namespace, false},
                                             {"two nodes of one name", two_nodes_of_one_name, false},
                                             {"one topic twice", one_topic_twice, false},
                                             {"one topic with two types", one_topic_with_two_types, false},
                                             {"one service twice", one_service_twice, false},
                                             {"init without what it needs", init_without_what_it_needs, false},
                                             {"null arguments", null_arguments, false},
                                             {"arguments of the support", support_arguments, false},
                                             {"support twice", support_twice, false},
                                             {"support again and again", support_again, false},
                                             {"ends of what never began", ends_of_what_never_began, false},
                                             {"ends twice", ends_twice, false},
                                             {"executor ends twice", executor_ends_twice, false},
                                             {"node ends before its publisher", node_ends_before_its_publisher, false},
                                             {"support ends first", support_ends_first, false},
                                             {"publish what is not there", publish_what_is_not_there, false},
                                             {"validity", validity, false},
                                             {"QoS profiles", profiles, false},
                                             {"init options", init_options, false},
                                             {"default allocator", allocators, false},
                                             {NULL, NULL, false}};
