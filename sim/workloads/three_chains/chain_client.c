/* SPDX-License-Identifier: Apache-2.0 */
/* A micro-ROS program with a few chains: for each, a timer samples and publishes, a ROS 2 node somewhere answers, and a
 * subscription acts on the answer. Everything below main's set-up is plain rclc; what tide adds are the chains with
 * their levels, the policy of the executor and the way of sending, which `tide run` varies.
 *
 * Latency of an instance: nominal expiry of its timer to completion of its last callback, on CLOCK_MONOTONIC. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <signal.h>
#include <std_msgs/msg/string.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/status.h>
#include <time.h>

#include "chain_options.h"
#include "measures.h"
#include "plan.h"
#include "recorder.h"

#define TIDE_PUBLISHERS PLAN_CHAINS
#define TIDE_SUBSCRIPTIONS PLAN_CHAINS
#define TIDE_TIMERS PLAN_CHAINS
#define TIDE_NODES 1
#define TIDE_EXECUTOR_LANES PLAN_CHAINS
#define TIDE_STREAMS (PLAN_CHAINS + 1)
#define TIDE_SLOTS (2 * PLAN_CHAINS)
#define TIDE_SMALL_NODES (3 * PLAN_CHAINS)
#define TIDE_LARGE_NODES PLAN_CHAINS
#define TIDE_LARGE_NODE_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_REASSEMBLY_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

typedef struct chain {
  const plan_chain_t *plan;
  tide_chain_t priorities;
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  rcl_timer_t timer;
  std_msgs__msg__String request, reply;
  char request_characters[PLAN_PAYLOAD_BYTES], reply_characters[PLAN_PAYLOAD_BYTES];
} chain_t;

static plan_t plan;
static chain_options_t options;
static chain_t chains[PLAN_CHAINS];
static int64_t first_release_ns;
static atomic_uint publish_failures, replies_unexpected; /* of all lanes */
static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Of the calling thread. */
static int64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "chain_client: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

/* ---- the callbacks ---- */

static chain_t *chain_of(const rcl_timer_t *timer) {
  size_t index = 0;
  while (&chains[index].timer != timer) index++;
  return &chains[index];
}

static void write_index(char *characters, uint32_t index) {
  for (int digit = PLAN_INDEX_DIGITS - 1; digit >= 0; digit--, index /= 10) {
    characters[digit] = (char)('0' + index % 10);
  }
}

/* An instance is that of its expiry: late in its period it may start in the next one. */
static void on_sample(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  const int64_t start_ns = now_ns(), start_cpu_ns = cpu_ns();
  chain_t *chain = chain_of(timer);
  const int64_t release_ns = tide_rclc_timer_callback(timer)->ready_ns;
  const int64_t since_ns = release_ns - first_release_ns - chain->plan->offset_ns;
  const int64_t index = since_ns / chain->plan->period_ns;
  if (since_ns < 0 || index >= options.periods) return; /* past the last counted period */
  record_t *record = recorder_at((size_t)(chain - chains), (uint32_t)index);
  record->release_ns = release_ns;
  record->sample_start_ns = start_ns;
  tide_posix_spin_cpu(chain->plan->sample_ns);
  write_index(chain->request_characters, (uint32_t)index);
  if (rcl_publish(&chain->publisher, &chain->request, NULL) != RCL_RET_OK) publish_failures++;
  record->sample_end_ns = now_ns();
  record->sample_cpu_ns = cpu_ns() - start_cpu_ns;
}

static bool read_index(const std_msgs__msg__String *message, uint32_t *index) {
  if (message->data.size < PLAN_INDEX_DIGITS) return false;
  *index = 0;
  for (int digit = 0; digit < PLAN_INDEX_DIGITS; digit++) {
    const char character = message->data.data[digit];
    if (character < '0' || character > '9') return false;
    *index = *index * 10 + (uint32_t)(character - '0');
  }
  return *index < options.periods;
}

static void on_act(const void *message, void *context) {
  const int64_t start_ns = now_ns(), start_cpu_ns = cpu_ns();
  chain_t *chain = context;
  uint32_t index = 0;
  record_t *record = NULL;
  if (read_index(message, &index)) record = recorder_at((size_t)(chain - chains), index);
  if (record == NULL || record->sample_start_ns == 0 || record->act_end_ns != 0) {
    replies_unexpected++;
    return;
  }
  tide_posix_spin_cpu(chain->plan->act_ns);
  record->act_start_ns = start_ns;
  record->act_end_ns = now_ns();
  record->act_cpu_ns = cpu_ns() - start_cpu_ns;
  recorder_finish((size_t)(chain - chains), index);
}

/* ---- set-up ---- */

static void prepare_message(std_msgs__msg__String *message, char *characters, size_t bytes) {
  message->data.data = characters;
  message->data.size = bytes - PLAN_STRING_OVERHEAD_BYTES;
  message->data.capacity = PLAN_PAYLOAD_BYTES;
  memset(characters, '.', message->data.size);
  characters[message->data.size] = '\0';
}

static void create_chain(chain_t *chain, const plan_chain_t *description, rclc_support_t *support, rcl_node_t *node) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  chain->plan = description;
  prepare_message(&chain->request, chain->request_characters, description->payload_bytes);
  prepare_message(&chain->reply, chain->reply_characters, description->reply_bytes);
  if (description->reliable) {
    require(rclc_publisher_init_default(&chain->publisher, node, type, description->topic), description->topic);
    require(rclc_subscription_init_default(&chain->subscription, node, type, description->reply_topic),
            description->reply_topic);
  } else {
    require(rclc_publisher_init_best_effort(&chain->publisher, node, type, description->topic), description->topic);
    require(rclc_subscription_init_best_effort(&chain->subscription, node, type, description->reply_topic),
            description->reply_topic);
  }
  require(rclc_timer_init_default(&chain->timer, support, (uint64_t)description->period_ns, on_sample), "a timer");
}

/* Timers first, then subscriptions, both in order of the plan: the order in which the batch executor runs what is ready
 * in the same round. The priorities do not depend on it. */
static void register_handles(rclc_executor_t *executor) {
  for (size_t index = 0; index < plan.count; index++) {
    require(rclc_executor_add_timer(executor, &chains[index].timer), "adding a timer");
  }
  for (size_t index = 0; index < plan.count; index++) {
    chain_t *chain = &chains[index];
    require(rclc_executor_add_subscription_with_context(executor, &chain->subscription, &chain->reply, on_act, chain,
                                                        ON_NEW_DATA),
            "adding a subscription");
  }
}

/* The whole difference between this program and its micro-ROS original. */
static void name_chains(void) {
  for (size_t index = 0; index < plan.count; index++) {
    chain_t *chain = &chains[index];
    const plan_chain_t *description = chain->plan;
    tide_chain_init(&chain->priorities, description->name, description->level, description->period_ns,
                    description->period_ns);
    require(tide_rclc_chain_add_timer(&chain->priorities, &chain->timer), "naming a timer's chain");
    require(tide_rclc_chain_add_publisher(&chain->priorities, &chain->publisher), "naming a publisher's chain");
    tide_chain_add_remote(&chain->priorities); /* the ROS 2 node that answers */
    require(tide_rclc_chain_add_subscription(&chain->priorities, &chain->subscription), "naming a reply's chain");
  }
}

static void schedule(int priority, int cpu, const char *what) {
  if (priority == 0 && cpu == TIDE_POSIX_ANY_CPU) return;
  const int status = tide_posix_set_scheduling(priority > 0 ? SCHED_FIFO : SCHED_OTHER, priority, cpu);
  if (status != TIDE_OK) {
    fprintf(stderr, "chain_client: the %s keeps its scheduling: %s\n", what, tide_status_text(status));
  }
}

static tide_lane_settings_t lane_of(unsigned level, size_t number) {
  tide_lane_settings_t lane = {.least_level = (uint8_t)level};
  if (options.priority > 0) {
    lane.scheduling = TIDE_SCHEDULING_FIFO;
    lane.priority = options.priority + (int)number;
  }
  if (options.budget_ns > 0) {
    lane.scheduling = TIDE_SCHEDULING_SPORADIC;
    lane.runtime_ns = options.budget_ns;
    lane.period_ns = options.budget_period_ns;
  }
  if (options.cpu != TIDE_POSIX_ANY_CPU) lane.processor = TIDE_ON_PROCESSOR(options.cpu);
  return lane;
}

/* One lane for each level, the more urgent the higher its priority, all of them on the executor's processor; or one for
 * all. */
static void choose_lanes(rclc_executor_t *executor) {
  tide_lane_settings_t lanes[PLAN_CHAINS];
  size_t count = 0;
  if (!options.preemptive) lanes[count++] = lane_of(0, 0);
  for (unsigned level = 1; options.preemptive && level <= TIDE_LEVEL_MAXIMUM; level++) {
    bool used = false;
    for (size_t index = 0; index < plan.count; index++) used = used || plan.chains[index].level == level;
    if (used) lanes[count] = lane_of(level, count), count++;
  }
  require(tide_rclc_executor_set_lanes(executor, lanes, count), "choosing the lanes");
}

static void wait_for_start(void) {
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  if (!options.wait_for_start) return;
  char line[16];
  if (fgets(line, sizeof line, stdin) == NULL) exit(0); /* whoever started this program is gone */
}

static void release_timers(void) {
  first_release_ns = now_ns() + options.offset_ns;
  for (size_t index = 0; index < plan.count; index++) {
    require(tide_rclc_timer_set_phase(&chains[index].timer, first_release_ns + plan.chains[index].offset_ns),
            "setting the first release");
  }
  printf("{\"event\": \"start\", \"first_release_ns\": %" PRId64 "}\n", first_release_ns);
  fflush(stdout);
}

/* ---- the run ---- */

static int64_t longest_period_ns(void) {
  int64_t longest_ns = 0;
  for (size_t index = 0; index < plan.count; index++) {
    if (plan.chains[index].period_ns > longest_ns) longest_ns = plan.chains[index].period_ns;
  }
  return longest_ns;
}

static int64_t longest_offset_ns(void) {
  int64_t longest_ns = 0;
  for (size_t index = 0; index < plan.count; index++) {
    if (plan.chains[index].offset_ns > longest_ns) longest_ns = plan.chains[index].offset_ns;
  }
  return longest_ns;
}

static bool is_over(void) {
  const int64_t grace_ns = 2000000000;
  const int64_t last_ns = (int64_t)options.periods * longest_period_ns() + longest_offset_ns();
  const int64_t end_ns = first_release_ns + last_ns + grace_ns;
  return interrupted || recorder_finished() >= plan.count * options.periods || now_ns() >= end_ns;
}

/* Beside the lanes, with the scheduling of main. */
static void *stop_when_over(void *executor) {
  const struct timespec pause = {.tv_nsec = 50000000};
  while (!is_over()) nanosleep(&pause, NULL);
  measures_note_budgets(executor);
  tide_executor_stop(tide_rclc_executor_core(executor));
  return NULL;
}

/* A budget is a lane's, and the baseline has none: there it is the thread's. */
static bool has_lanes(void) {
  return options.preemptive || (options.budget_ns > 0 && options.policy != TIDE_POLICY_BATCH);
}

static void run(rclc_executor_t *executor) {
  if (has_lanes()) {
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, stop_when_over, executor) != 0) return;
    require(rclc_executor_spin(executor), "starting the lanes");
    pthread_join(watcher, NULL);
    return;
  }
  if (options.budget_ns > 0 && !measures_take_budget(options.priority, options.budget_ns, options.budget_period_ns)) {
    exit(1);
  }
  while (!is_over()) rclc_executor_spin_some(executor, RCL_MS_TO_NS(100));
  measures_note_budgets(executor);
}

static uint32_t released(void) {
  const int64_t count = (now_ns() - first_release_ns) / longest_period_ns() + 1;
  return count < 0 ? 0 : count > options.periods ? options.periods : (uint32_t)count;
}

static void print_summary(rclc_support_t *support, rclc_executor_t *executor) {
  const tide_session_t *session = tide_rclc_support_session(support);
  const tide_executor_counters_t *rounds = &tide_rclc_executor_core(executor)->counters;
  const tide_transmitter_counters_t *sent = &session->daemon.transmitter.counters;
  const tide_receiver_counters_t *received = &session->daemon.receiver.counters;
  printf("{\"event\": \"summary\", \"publish_failures\": %" PRIu32 ", \"replies_unexpected\": %" PRIu32
         ", \"interrupted\": %s",
         (uint32_t)publish_failures, (uint32_t)replies_unexpected, interrupted ? "true" : "false");
  printf(", \"executor\": {\"rounds\": %" PRIu64 ", \"callbacks_run\": %" PRIu64 ", \"frames_digested\": %" PRIu64
         ", \"timers_expired\": %" PRIu64 ", \"sleeps\": %" PRIu64 "}",
         rounds->rounds, rounds->callbacks_run, rounds->frames_digested, rounds->timers_expired, rounds->sleeps);
  tide_link_counters_t link = {0};
  (void)tide_port_link_counters(tide_rclc_support_session(support), &link);
  printf(", \"link\": {\"thread_priority\": %d, \"messages_lost\": %" PRIu32 ", \"complete_late_maximum_ns\": %" PRId64
         "}",
         link.thread_priority, link.messages_lost, link.complete_late_maximum_ns);
  printf(", \"session\": {\"connects\": %" PRIu32 ", \"reconnects\": %" PRIu32 ", \"requests_repeated\": %" PRIu32 "}",
         session->counters.connects, session->counters.reconnects, session->counters.requests_repeated);
  printf(", \"transmitter\": {\"submitted\": %" PRIu32 ", \"refused_full\": %" PRIu32 ", \"expired\": %" PRIu32
         ", \"frames\": %" PRIu32 ", \"retransmissions\": %" PRIu32 ", \"heartbeats\": %" PRIu32
         ", \"acknacks\": %" PRIu32 ", \"acknowledged\": %" PRIu32 "}",
         sent->submitted, sent->refused_full, sent->expired, sent->frames, sent->retransmissions, sent->heartbeats,
         sent->acknacks, sent->acknowledged);
  printf(", \"receiver\": {\"frames\": %" PRIu32 ", \"checksum_errors\": %" PRIu32 ", \"overflow_dropped\": %" PRIu32
         ", \"duplicates\": %" PRIu32 ", \"gaps\": %" PRIu32 "}, \"budgets\": ",
         received->frames, received->checksum_errors, received->overflow_dropped, received->duplicates, received->gaps);
  measures_print_budgets();
  puts("}");
  fflush(stdout);
}

int main(int count, char **words) {
  options = chain_options_of(count, words);
  if (!plan_read(options.plan, &plan)) return 2;
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  static const char *names[PLAN_CHAINS];
  for (size_t index = 0; index < plan.count; index++) names[index] = plan.chains[index].name;
  if (!recorder_start(plan.count, names, options.periods)) {
    fputs("chain_client: no memory for the records; ask for fewer periods\n", stderr);
    return 1;
  }
  mlockall(MCL_CURRENT | MCL_FUTURE); /* as good as it gets: without the right to, pages may still be fetched late */

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init_options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&init_options, allocator), "initialising the options");
  require(rcl_init_options_set_domain_id(&init_options, options.domain), "setting the domain");
  rmw_init_options_t *rmw_options = rcl_init_options_get_rmw_init_options(&init_options);
  require(tide_rclc_options_set_serial(rmw_options, options.device, options.baud), "choosing the serial device");

  rclc_support_t support;
  require(tide_rclc_options_set_link_priority(rmw_options, options.link_priority), "choosing the link's priority");
  schedule(0, options.link_cpu, "link"); /* its thread inherits the processor */
  require(rclc_support_init_with_options(&support, 0, NULL, &init_options, &allocator), "connecting to the agent");
  if (!has_lanes()) schedule(options.priority, options.cpu, "executor");
  require(tide_rclc_support_set_send(&support, options.send), "choosing the way of sending");
  require(tide_rclc_support_set_heartbeat_delay(&support, options.heartbeat_delay_ns), "choosing the heartbeat");
  for (unsigned level = 0; level <= TIDE_LEVEL_MAXIMUM; level++) {
    require(tide_rclc_support_hold_level(&support, (uint8_t)level, options.hold[level]), "choosing who holds the line");
  }

  rcl_node_t node;
  require(rclc_node_init_default(&node, "chain_client", "", &support), "creating the node");
  for (size_t index = 0; index < plan.count; index++) {
    create_chain(&chains[index], &plan.chains[index], &support, &node);
  }
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, 2 * plan.count, &allocator), "creating the executor");
  require(tide_rclc_executor_set_policy(&executor, options.policy), "choosing the policy");
  if (has_lanes()) choose_lanes(&executor);
  register_handles(&executor);
  if (options.policy == TIDE_POLICY_TIDE) name_chains(); /* the baseline knows nothing of priorities */
  for (size_t index = 0; index < plan.count; index++)
    measures_times_of(&executor, index, names[index], &chains[index].timer, &chains[index].subscription);

  wait_for_start();
  release_timers();
  run(&executor);

  recorder_stop(released());
  measures_print_times();
  print_summary(&support, &executor);
  require(rclc_executor_fini(&executor), "ending the executor");
  for (size_t index = 0; index < plan.count; index++) {
    require(rcl_timer_fini(&chains[index].timer), "ending a timer");
    require(rcl_publisher_fini(&chains[index].publisher, &node), "ending a publisher");
    require(rcl_subscription_fini(&chains[index].subscription, &node), "ending a subscription");
  }
  require(rcl_node_fini(&node), "ending the node");
  require(rclc_support_fini(&support), "ending the session");
  return 0;
}
