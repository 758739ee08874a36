/* SPDX-License-Identifier: Apache-2.0 */
/* Objects are finalised in every order, and while the agent is away; a ROS 2 node observes this. */
#include <string.h>

#include "behaviours.h"

static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_timer_t timer;
static rcl_service_t service;
static rcl_client_t client;
static rclc_executor_t executor;
static std_msgs__msg__Int32 received;
static std_srvs__srv__SetBool_Request asked;
static std_srvs__srv__SetBool_Response response, heard;
static const char *topic;

static void on_timer(rcl_timer_t *one, int64_t last_call_time) {
  (void)one;
  (void)last_call_time;
}
static void answer(const void *request, void *reply) {
  (void)request;
  (void)reply;
}
static void on_answer(const void *reply) { (void)reply; }

static void begin(void) {
  connect_node();
  publisher = publisher_of(topic);
  subscription = subscription_of(topic);
  timer = rcl_get_zero_initialized_timer();
  (void)rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), on_timer);
  service = rcl_get_zero_initialized_service();
  (void)rclc_service_init_default(&service, &node, SET_BOOL, fresh("s"));
  client = rcl_get_zero_initialized_client();
  (void)rclc_client_init_default(&client, &node, SET_BOOL, fresh("c"));
  executor = executor_of(4);
  (void)rclc_executor_add_timer(&executor, &timer);
  (void)rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
  (void)rclc_executor_add_service(&executor, &service, &asked, &response, answer);
  (void)rclc_executor_add_client(&executor, &client, &heard, on_answer);
  spin_for(&executor, 200);
}

static void watch(void) {
  topic = fresh("end");
  start_peer(topic);
}

static void begin_watched(void) {
  watch();
  begin();
  (void)ask_peer("publishers 1");
  (void)ask_peer("subscriptions 1");
  (void)ask_peer("nodes 1");
}

static void say_what_is_left(void) {
  say_peer("publishers 0");
  say_peer("subscriptions 0");
  say_peer("nodes 0");
}

/* Finalises the objects in the given order. The capital letters in these words stand for them: Executor, Timer,
 * Publisher, suBscription, seRvice, Client, Node, Support. */
static void end(const char *order) {
  for (; *order != '\0'; order++) {
    switch (*order) {
      case 'E': say_code("executor", rclc_executor_fini(&executor)); break;
      case 'T': say_code("timer", rcl_timer_fini(&timer)); break;
      case 'P': say_code("publisher", rcl_publisher_fini(&publisher, &node)); break;
      case 'B': say_code("subscription", rcl_subscription_fini(&subscription, &node)); break;
      case 'R': say_code("service", rcl_service_fini(&service, &node)); break;
      case 'C': say_code("client", rcl_client_fini(&client, &node)); break;
      case 'N': say_code("node", rcl_node_fini(&node)); break;
      default: say_code("support", rclc_support_fini(&support));
    }
  }
}

static void in_the_order(const char *order) {
  begin_watched();
  end(order);
  say_what_is_left();
}

static void executor_first(void) { in_the_order("ETPBRCNS"); }
static void executor_last(void) { in_the_order("TPBRCNSE"); }
static void executor_before_the_support(void) { in_the_order("TPBRCNES"); }
static void node_first(void) { in_the_order("NETPBRCS"); }
static void node_before_its_services(void) { in_the_order("ETPBNRCS"); }
static void support_first(void) { in_the_order("SETPBRCN"); }
static void support_before_the_node(void) { in_the_order("ETPBRCSN"); }
static void only_the_support(void) { in_the_order("S"); }
static void only_the_node(void) { in_the_order("N"); }

static void everything_twice(void) {
  begin_watched();
  end("ETPBRCN");
  say(", again");
  end("ETPBRCN");
  say_what_is_left();
}

static void support_twice(void) {
  connect_support();
  end("SS");
}

static void support_that_never_began(void) {
  memset(&support, 0, sizeof support);
  end("S");
}

static void guard_condition(void) {
  connect_support();
  rcl_guard_condition_t one = rcl_get_zero_initialized_guard_condition();
  say_code("never begun", rcl_guard_condition_fini(&one));
  (void)rcl_guard_condition_init(&one, &support.context, rcl_guard_condition_get_default_options());
  say_code("ends", rcl_guard_condition_fini(&one));
  say_code("again", rcl_guard_condition_fini(&one));
  say_code("trigger", rcl_trigger_guard_condition(&one));
}

static void ends_of_null(void) {
  connect_node();
  say_code("publisher", rcl_publisher_fini(NULL, &node));
  say_code("subscription", rcl_subscription_fini(NULL, &node));
  say_code("service", rcl_service_fini(NULL, &node));
  say_code("client", rcl_client_fini(NULL, &node));
  say_code("node", rcl_node_fini(NULL));
  say_code("timer", rcl_timer_fini(NULL));
  say_code("executor", rclc_executor_fini(NULL));
  say_code("support", rclc_support_fini(NULL));
  publisher = publisher_of("t");
  say_code("without its node", rcl_publisher_fini(&publisher, NULL));
}

static void with_another_node(void) {
  begin_watched();
  rcl_node_t other = rcl_get_zero_initialized_node();
  (void)rclc_node_init_default(&other, "other", "", &support);
  say_code("publisher", rcl_publisher_fini(&publisher, &other));
  say_code("subscription", rcl_subscription_fini(&subscription, &other));
  say_peer("publishers 0");
  say_peer("subscriptions 0");
}

static void one_at_a_time(void) {
  begin_watched();
  say_peer("publishers 1");
  end("P");
  say_peer("publishers 0");
  say_peer("subscriptions 1");
  end("B");
  say_peer("subscriptions 0");
  say_peer("nodes 1");
  end("N");
  say_peer("nodes 0");
}

static void while_it_is_in_the_executor(void) {
  begin_watched();
  end("B");
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50)));
  end("T");
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50)));
  end("R");
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50)));
}

static void with_messages_unread(void) {
  topic = fresh("end");
  connect_node();
  publisher = publisher_of(topic);
  subscription = subscription_of(topic);
  sleep_ms(500);
  for (int i = 0; i < 3; i++) (void)publish_int32(&publisher, i);
  sleep_ms(500);
  end("B");
  subscription = subscription_of(topic);
  executor = executor_of(1);
  (void)rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
  sleep_ms(500);
  spin_for(&executor, 300);
  say(" the next one gets %d", seen);
  (void)publish_int32(&publisher, 7);
  spin_until(&executor, seen + 1);
  say(", and what is new: %d", (int)last_value);
}

static void with_messages_under_way(void) {
  begin_watched();
  say_peer("publishers 1");
  sleep_ms(300);
  (void)ask_peer("forget");
  for (int i = 0; i < 10; i++) (void)publish_int32(&publisher, i);
  end("PNS");
  sleep_ms(500);
  say_peer("messages");
}

static void fifty_times(void) {
  watch();
  connect_node();
  int failed = 0;
  for (int i = 0; i < 50; i++) {
    rcl_publisher_t one = rcl_get_zero_initialized_publisher();
    failed += rclc_publisher_init_default(&one, &node, INT32, topic) != RCL_RET_OK;
    failed += rcl_publisher_fini(&one, &node) != RCL_RET_OK;
  }
  say(" %d failed", failed);
  say_peer("publishers 0");
}

/* Finalises everything while the agent is away. Then the agent returns, and everything is initialised again. */
static void agent_gone(const char *order) {
  begin_watched();
  kill_agent();
  const int64_t begin_ms = now_ms();
  end(order);
  say(", all after %s", about(now_ms() - begin_ms));
  start_agent();
  connect_node();
  publisher = publisher_of(topic);
  (void)ask_peer("forget");
  int messages = 0;
  for (const int64_t end_ms = now_ms() + 10000; messages == 0 && now_ms() < end_ms; sleep_ms(50)) {
    (void)publish_int32(&publisher, 1);
    messages = ask_peer("messages");
  }
  say(", a new one is %s", messages > 0 ? "heard" : "not heard");
}

static void agent_gone_executor_first(void) { agent_gone("ETPBNS"); }
static void agent_gone_executor_last(void) { agent_gone("PBTNSE"); }
static void agent_gone_node_first(void) { agent_gone("NPBETS"); }
static void agent_gone_support_first(void) { agent_gone("SETPBN"); }
static void agent_gone_only_the_support(void) { agent_gone("S"); }

static void agent_gone_for_services(void) {
  topic = fresh("end");
  begin();
  kill_agent();
  const int64_t begin_ms = now_ms();
  end("RC");
  say(" after %s", about(now_ms() - begin_ms));
}

/* A finalisation that did not reach the old agent has no effect in the new one. */
static void agent_back_between_the_ends(void) {
  begin_watched();
  kill_agent();
  end("P");
  start_agent();
  end("BN");
  say_code("support", rclc_support_fini(&support));
}

const behaviour_t behaviours_of_ends[] = {{"ends, executor first", executor_first, true},
                                          {"ends, executor last of all", executor_last, true},
                                          {"ends, executor before the support", executor_before_the_support, true},
                                          {"ends, node first", node_first, true},
                                          {"ends, node before its services", node_before_its_services, true},
                                          {"ends, support first of all", support_first, true},
                                          {"ends, support before the node", support_before_the_node, true},
                                          {"ends, only the support", only_the_support, true},
                                          {"ends, only the node", only_the_node, true},
                                          {"ends, everything twice", everything_twice, true},
                                          {"ends, support twice", support_twice, false},
                                          {"ends, support that never began", support_that_never_began, false},
                                          {"ends, guard condition", guard_condition, false},
                                          {"ends, of null", ends_of_null, false},
                                          {"ends, with another node", with_another_node, true},
                                          {"ends, one at a time", one_at_a_time, true},
                                          {"ends, while it is in the executor", while_it_is_in_the_executor, true},
                                          {"ends, with messages unread", with_messages_unread, false},
                                          {"ends, with messages under way", with_messages_under_way, true},
                                          {"ends, fifty times", fifty_times, true},
                                          {"ends, agent gone, executor first", agent_gone_executor_first, true},
                                          {"ends, agent gone, executor last", agent_gone_executor_last, true},
                                          {"ends, agent gone, node first", agent_gone_node_first, true},
                                          {"ends, agent gone, support first", agent_gone_support_first, true},
                                          {"ends, agent gone, only the support", agent_gone_only_the_support, true},
                                          {"ends, agent gone, services", agent_gone_for_services, false},
                                          {"ends, agent back between them", agent_back_between_the_ends, true},
                                          {NULL, NULL, false}};
