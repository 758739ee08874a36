/* SPDX-License-Identifier: Apache-2.0 */
/* Common declarations for the files of behaviours. Each behaviour reports its observations in one line. shared.c has
 * the functions that do not depend on the environment. The environment (clock, threads, agent and ROS 2) is real in
 * real.c, for any client, and virtual in conformance_test.cpp, for tide in the gate. */
#pragma once

#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <std_msgs/msg/string.h>
#include <std_srvs/srv/set_bool.h>
#include <stdbool.h>
#include <stdint.h>

TIDE_EXTERN_C_BEGIN

typedef struct behaviour {
  const char *name;
  void (*run)(void);
  bool needs_peer;
} behaviour_t;

extern const behaviour_t behaviours_of_objects[], behaviours_of_executors[], behaviours_of_agents[],
    behaviours_of_messages[], behaviours_of_starts[], behaviours_of_ends[], behaviours_of_threads[],
    behaviours_of_memory[]; /* each array ends with a null name */
extern const behaviour_t *const behaviour_lists[8];

extern char line[4000]; /* the line that is reported */
extern const char *agent_port;

/* Appends a part to the reported line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Appends " NAME CODE". */
void say_code(const char *name, rcl_ret_t code);

/* Most behaviours start with connect_node, which connects and creates a node "node". Both functions end the program if
 * there is no agent. */
extern rcl_allocator_t allocator;
extern rclc_support_t support;
extern rcl_node_t node;
void connect_support(void);
void connect_node(void);
rcl_init_options_t options_of_agent(void);

#define INT32 ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32)
#define STRING ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String)
#define SET_BOOL ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool)

/* start_agent gives the program an agent of its own; kill_agent ends that agent. */
void kill_agent(void);
void start_agent(void);

/* A ROS 2 node (peer.py) that observes the topic. ask_peer returns its answer to a question, and say_peer appends "
 * [QUESTION ANSWER]" to the line. */
void start_peer(const char *topic);
int ask_peer(const char *question);
void say_peer(const char *question);

int64_t now_ms(void);
int64_t wall_ms(void);
void sleep_ms(int64_t time_ms);
typedef int thread_t;
thread_t start_thread(void *(*body)(void *), void *argument);
void join_thread(thread_t thread);
/* Unless the condition holds, ends the program, because nothing more can be observed, and reports the step. */
void require(bool holds, const char *step);
/* A duration as text, rounded so that all runs report the same: "0 s", "0.1 s", "0.5 s", "1 s", "2 s", "5 s", "10 s",
 * "15 s" or "long". */
const char *about(int64_t time_ms);
/* A name that no other behaviour uses. */
const char *fresh(const char *base);

extern int seen;           /* number of callbacks that ran */
extern int32_t last_value; /* value of the last message */
void on_int32(const void *message);
rcl_publisher_t publisher_of(const char *topic);
rcl_subscription_t subscription_of(const char *topic);
rcl_ret_t publish_int32(const rcl_publisher_t *publisher, int32_t value);
rclc_executor_t executor_of(size_t handles);
/* Spins until `seen` equals count, for at most 2 s. */
void spin_until(rclc_executor_t *executor, int count);
void spin_for(rclc_executor_t *executor, int64_t time_ms);

TIDE_EXTERN_C_END
