/* SPDX-License-Identifier: Apache-2.0 */
/* A micro-ROS program that is a board of a system.toml: for each chain that comes there, timers that sample and
 * publish, and subscriptions that act and may publish again. Everything below main's set-up is plain rclc; what tide
 * adds are the chains with their levels, the policy of the executor and the way of sending, which `tide run` varies.
 *
 * Latency of an instance: nominal expiry of its timer to completion of its last callback, on CLOCK_MONOTONIC. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <rcl/rcl.h>
#include <rclc/client.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc/service.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/rclc_service.h>
#include <tide/status.h>
#include <time.h>

#include "board_callbacks.h"
#include "chain_options.h"
#include "measures.h"
#include "plan.h"
#include "raw_message.h"
#include "recorder.h"
#include "trace_file.h"

#define TIDE_PUBLISHERS PLAN_CALLBACKS
#define TIDE_SUBSCRIPTIONS (PLAN_CALLBACKS + PLAN_JOINS)
#define TIDE_SERVICES PLAN_CHAINS
#define TIDE_CLIENTS PLAN_CHAINS
#define TIDE_TIMERS PLAN_CHAINS
#define TIDE_NODES 1
#define TIDE_EXECUTOR_LANES PLAN_CHAINS
#define TIDE_STREAMS (PLAN_CHAINS + 1)
#define TIDE_NAME_BYTES PLAN_TOPIC_BYTES
#define TIDE_MTU_BYTES MTU_BYTES_MOST
#define TIDE_SLOTS (4 * PLAN_CHAINS)
#define TIDE_SMALL_NODES (3 * PLAN_CHAINS)
#define TIDE_LARGE_NODES PLAN_CHAINS
#define TIDE_LARGE_NODE_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_REASSEMBLY_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

static chain_options_t options;
static tide_chain_t priorities[PLAN_CHAINS];
static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "chain_client: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

/* ---- set-up ---- */

static void require_plan(bool right, const plan_message_t *message) {
  if (right) return;
  fprintf(stderr, "chain_client: topic %s: its type %s is none, or there is no memory for it\n", message->topic,
          message->type);
  exit(2);
}

static void subscribe_to(const plan_message_t *in, bool reliable, raw_type_t *type, raw_message_t *message,
                         rcl_subscription_t *subscription, rcl_node_t *node) {
  require_plan(raw_type_init(type, in->type) && raw_message_reserve(message), in);
  require(reliable ? rclc_subscription_init_default(subscription, node, &type->support, in->topic)
                   : rclc_subscription_init_best_effort(subscription, node, &type->support, in->topic),
          in->topic);
}

static void subscribe(callback_t *callback, rcl_node_t *node) {
  const plan_chain_t *chain = chain_of(callback);
  const plan_callback_t *described = callback->plan;
  subscribe_to(&described->in, chain->reliable, &callback->in_type, &callback->in, &callback->subscription, node);
  for (size_t place = 0; place < described->join_count; place++) {
    join_t *join = &joins[described->first_join + place];
    join->callback = callback;
    join->plan = &plan.joins[described->first_join + place];
    join->bit = (unsigned)place + 1u;
    subscribe_to(join->plan, chain->reliable, &join->type, &join->in, &join->subscription, node);
  }
  if (described->join_count == 0) return;
  callback->came = calloc(chain->instances, 1);
  if (callback->came != NULL) return;
  fputs("chain_client: no memory for the messages of a join; ask for fewer periods\n", stderr);
  exit(1);
}

static void advertise(callback_t *callback, rcl_node_t *node) {
  const plan_message_t *out = &callback->plan->out;
  require_plan(raw_type_init(&callback->out_type, out->type), out);
  if (!raw_message_read(&callback->out, out->file)) exit(2);
  require_plan(out->number.offset + number_bytes(out->number.kind) <= callback->out.size, out);
  const rosidl_message_type_support_t *type = &callback->out_type.support;
  require(chain_of(callback)->reliable ? rclc_publisher_init_default(&callback->publisher, node, type, out->topic)
                                       : rclc_publisher_init_best_effort(&callback->publisher, node, type, out->topic),
          out->topic);
}

static void take_memory(callback_t *callback) {
  const plan_message_t *in = &callback->plan->in, *out = &callback->plan->out;
  if (callback->plan->role == PLAN_SERVICE || callback->plan->role == PLAN_CLIENT) {
    require_plan(raw_message_reserve(&callback->in), in);
  }
  if (!serves(callback) && !requests(callback)) return;
  if (!raw_message_read(&callback->out, out->file)) exit(2);
  require_plan(out->number.offset + number_bytes(out->number.kind) <= callback->out.size, out);
}

static void create_ends(callback_t *callback, rcl_node_t *node) {
  const plan_message_t *in = &callback->plan->in, *out = &callback->plan->out;
  take_memory(callback);
  if (has_service(callback)) {
    require_plan(raw_service_init(&callback->served, in->type), in);
    require(rclc_service_init_default(&callback->service, node, &callback->served.support, in->topic), in->topic);
  }
  if (requests(callback)) {
    require_plan(raw_service_init(&callback->requested, out->type), out);
    require(rclc_client_init_default(&callback->client, node, &callback->requested.support, out->topic), out->topic);
  }
}

static void create_callback(callback_t *callback, const plan_callback_t *described, rclc_support_t *support,
                            rcl_node_t *node) {
  callback->plan = described;
  if (publishes(callback)) advertise(callback, node);
  create_ends(callback, node);
  if (described->role == PLAN_SUBSCRIPTION) {
    subscribe(callback, node);
  } else if (described->role == PLAN_TIMER) {
    const uint64_t period_ns = (uint64_t)chain_of(callback)->period_ns;
    require(rclc_timer_init_default(&callback->timer, support, period_ns, on_timer), "a timer");
  }
}

static void register_handle(rclc_executor_t *executor, callback_t *callback) {
  const plan_role_t role = callback->plan->role;
  if (role == PLAN_SUBSCRIPTION) {
    require(rclc_executor_add_subscription_with_context(executor, &callback->subscription, &callback->in, on_message,
                                                        callback, ON_NEW_DATA),
            "adding a subscription");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      join_t *join = &joins[callback->plan->first_join + place];
      require(rclc_executor_add_subscription_with_context(executor, &join->subscription, &join->in, on_join, join,
                                                          ON_NEW_DATA),
              "adding a subscription");
    }
  } else if (has_service(callback)) {
    callback->reply = callback->out;
    require(rclc_executor_add_service_with_context(executor, &callback->service, &callback->in, &callback->reply,
                                                   on_request, callback),
            "adding a service");
  } else if (role == PLAN_CLIENT) {
    require(rclc_executor_add_client_with_request_id(executor, client_of(callback), &callback->in, on_reply),
            "adding a client");
  }
}

/* Timers first, then the others, both in order of the plan: the order in which the batch executor runs what is ready
 * in the same round. The priorities do not depend on it. */
static void register_handles(rclc_executor_t *executor) {
  for (size_t index = 0; index < plan.callback_count; index++) {
    if (!subscribes(&callbacks[index])) {
      require(rclc_executor_add_timer(executor, &callbacks[index].timer), "adding a timer");
    }
  }
  for (size_t index = 0; index < plan.callback_count; index++) register_handle(executor, &callbacks[index]);
}

/* What comes from elsewhere is behind the node or the board that published it. */
static void name_callback(tide_chain_t *chain, callback_t *callback) {
  if (subscribes(callback)) {
    tide_chain_add_remote(chain);
    if (serves(callback) && !has_service(callback)) return; /* the chains have the same level */
    require(serves(callback)                      ? tide_rclc_chain_add_service(chain, &callback->service)
            : callback->plan->role == PLAN_CLIENT ? tide_rclc_chain_add_client(chain, client_of(callback))
                                                  : tide_rclc_chain_add_subscription(chain, &callback->subscription),
            "naming the chain of what a callback takes");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      rcl_subscription_t *joined = &joins[callback->plan->first_join + place].subscription;
      require(tide_rclc_chain_add_subscription(chain, joined), "naming the chain of what a callback joins");
    }
  } else {
    require(tide_rclc_chain_add_timer(chain, &callback->timer), "naming a timer's chain");
  }
  if (publishes(callback)) {
    require(tide_rclc_chain_add_publisher(chain, &callback->publisher), "naming a publisher's chain");
  }
}

/* The whole difference between this program and its micro-ROS original. */
static void name_chains(void) {
  for (size_t index = 0; index < plan.chain_count; index++) {
    const plan_chain_t *described = &plan.chains[index];
    tide_chain_init(&priorities[index], described->name, described->level, described->period_ns, described->period_ns);
    for (size_t number = described->first; number < described->first + described->count; number++) {
      name_callback(&priorities[index], &callbacks[number]);
    }
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
    for (size_t index = 0; index < plan.chain_count; index++) used = used || plan.chains[index].level == level;
    if (used) lanes[count] = lane_of(level, count), count++;
  }
  require(tide_rclc_executor_set_lanes(executor, lanes, count), "choosing the lanes");
}

/* When to release first: as the one who starts says, or soon. */
static int64_t wait_for_start(void) {
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  char line[64];
  if (!options.wait_for_start) return now_ns() + options.offset_ns;
  if (fgets(line, sizeof line, stdin) == NULL) exit(0); /* whoever started this program is gone */
  const int64_t told_ns = strncmp(line, "start ", 6) == 0 ? strtoll(line + 6, NULL, 10) : 0;
  return told_ns > 0 ? told_ns : now_ns() + options.offset_ns;
}

static void release_timers(int64_t first_ns) {
  first_release_ns = first_ns;
  recorder_begin(first_ns);
  for (size_t index = 0; index < plan.callback_count; index++) {
    callback_t *callback = &callbacks[index];
    if (subscribes(callback)) continue;
    require(tide_rclc_timer_set_phase(&callback->timer, first_ns + chain_of(callback)->offset_ns),
            "setting the first release");
  }
  printf("{\"event\": \"start\", \"first_release_ns\": %" PRId64 "}\n", first_release_ns);
  fflush(stdout);
}

/* ---- the run ---- */

static int64_t last_release_ns(void) {
  int64_t last_ns = 0;
  for (size_t index = 0; index < plan.chain_count; index++) {
    const plan_chain_t *chain = &plan.chains[index];
    const int64_t end_ns = chain->offset_ns + (int64_t)chain->instances * chain->period_ns;
    if (end_ns > last_ns) last_ns = end_ns;
  }
  return first_release_ns + last_ns;
}

static bool is_over(void) {
  const int64_t grace_ns = 2000000000;
  if (interrupted || options.stay) return interrupted != 0;
  return recorder_is_complete() || now_ns() >= last_release_ns() + grace_ns;
}

/* Beside the lanes, with the scheduling of main. */
static void *stop_when_over(void *executor) {
  const struct timespec pause = {.tv_nsec = 50000000};
  for (bool attached = false; !is_over(); nanosleep(&pause, NULL)) {
    if (!attached && now_ns() >= first_release_ns) trace_file_attach_budgets(executor), attached = true;
  }
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

static void print_summary(rclc_support_t *support, rclc_executor_t *executor) {
  const tide_session_t *session = tide_rclc_support_session(support);
  const tide_executor_counters_t *rounds = &tide_rclc_executor_core(executor)->counters;
  const tide_transmitter_counters_t *sent = &session->daemon.transmitter.counters;
  const tide_receiver_counters_t *received = &session->daemon.receiver.counters;
  printf("{\"event\": \"summary\", \"publish_failures\": %" PRIu32 ", \"unexpected\": %" PRIu32 ", \"interrupted\": %s",
         (uint32_t)publish_failures, (uint32_t)unexpected, interrupted ? "true" : "false");
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  printf(", \"processor_ns\": %" PRId64, (int64_t)used.tv_sec * 1000000000 + used.tv_nsec);
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

static void choose_link(rmw_init_options_t *link) {
  require(tide_rclc_options_set_mtu(link, options.mtu_bytes), "choosing the largest message");
  if (options.key != 0) require(rmw_uros_options_set_client_key(options.key, link), "choosing the key");
  if (options.udp != NULL) {
    require(rmw_uros_options_set_udp_address("127.0.0.1", options.udp, link), "choosing the agent's port");
  } else {
    require(tide_rclc_options_set_serial(link, options.device, options.baud), "choosing the serial device");
  }
}

static void measure_callbacks(rclc_executor_t *executor) {
  for (size_t index = 0; index < plan.callback_count; index++) {
    const bool is_counted = !serves(&callbacks[index]) || has_service(&callbacks[index]); /* else with the first */
    if (plan.callbacks[index].join_count > 0) continue; /* its runs tell, which not every message brings */
    if (is_counted) measures_times_of(executor, index, &plan, core_of(&callbacks[index]));
  }
}

static void end_callback(callback_t *callback, rcl_node_t *node) {
  if (publishes(callback)) require(rcl_publisher_fini(&callback->publisher, node), "ending a publisher");
  if (has_service(callback)) require(rcl_service_fini(&callback->service, node), "ending a service");
  if (requests(callback)) require(rcl_client_fini(&callback->client, node), "ending a client");
  if (callback->plan->role == PLAN_SUBSCRIPTION) {
    require(rcl_subscription_fini(&callback->subscription, node), "ending a subscription");
    for (size_t place = 0; place < callback->plan->join_count; place++) {
      rcl_subscription_t *joined = &joins[callback->plan->first_join + place].subscription;
      require(rcl_subscription_fini(joined, node), "ending a subscription");
    }
    free(callback->came);
  } else if (callback->plan->role == PLAN_TIMER) {
    require(rcl_timer_fini(&callback->timer), "ending a timer");
  }
}

int main(int count, char **words) {
  options = chain_options_of(count, words);
  if (!plan_read(options.plan, &plan)) return 2;
  play_executions(options.waits, options.granted_ns);
  static measures_clock_t executed = {executed_ns};
  measures_begin(&executed);
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  if (!recorder_start(&plan)) {
    fputs("chain_client: no memory for the records; ask for fewer periods\n", stderr);
    return 1;
  }
  if (options.trace != NULL && !trace_file_open(options.trace)) return 1;
  mlockall(MCL_CURRENT | MCL_FUTURE); /* as good as it gets: without the right to, pages may still be fetched late */

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init_options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&init_options, allocator), "initialising the options");
  require(rcl_init_options_set_domain_id(&init_options, options.domain), "setting the domain");
  rmw_init_options_t *rmw_options = rcl_init_options_get_rmw_init_options(&init_options);
  choose_link(rmw_options);

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
  for (size_t index = 0; index < plan.callback_count; index++) {
    create_callback(&callbacks[index], &plan.callbacks[index], &support, &node);
  }
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, plan.callback_count + plan.join_count, &allocator),
          "creating the executor");
  require(tide_rclc_executor_set_policy(&executor, options.policy), "choosing the policy");
  if (has_lanes()) choose_lanes(&executor);
  register_handles(&executor);
  if (options.policy == TIDE_POLICY_TIDE) name_chains(); /* the baseline knows nothing of priorities */
  measure_callbacks(&executor);

  trace_file_attach(&support, &executor);
  release_timers(wait_for_start());
  run(&executor);
  trace_file_close();

  recorder_stop(now_ns());
  measures_print_times();
  print_summary(&support, &executor);
  require(rclc_executor_fini(&executor), "ending the executor");
  for (size_t index = 0; index < plan.callback_count; index++) end_callback(&callbacks[index], &node);
  require(rcl_node_fini(&node), "ending the node");
  require(rclc_support_fini(&support), "ending the session");
  return 0;
}
