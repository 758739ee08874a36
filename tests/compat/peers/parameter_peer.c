/* SPDX-License-Identifier: Apache-2.0 */
/* A board with parameters, for tests with real ROS 2.
 *
 *   parameter_peer (--udp PORT | --rtps ADDRESS --domain N | --serial DEVICE (921,600 baud)) --key N [--node NAME]
 * [--store FILE]
 *
 * The parameters are "on" (bool), "count" (integer, 0 to 100 in steps of 5), "gain" (double) and "fixed" (integer,
 * read-only). Clients may create others. Changes that reach the program's callback are printed as lines of JSON; the
 * callback refuses a "count" above 90. With --store, "gain" is kept in a file across restarts. On SIGTERM it prints the
 * counters and ends. */
#include <rclc_parameter/rclc_parameter.h>
#include <tide/rclc_parameter.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_PARAMETER_SERVERS 1
#define TIDE_PARAMETERS 8
#define TIDE_RTPS_WRITERS 7
#define TIDE_RTPS_READERS 6
#define TIDE_RTPS_HISTORY 8
#define TIDE_RTPS_SAMPLE_BYTES 2048
#define TIDE_DEFINE_RTPS
#include "peer.h"

static rclc_parameter_server_t server;
static const char *store_path;

static double number_of(const ParameterValue *value) {
  if (value->type == RCLC_PARAMETER_BOOL) return value->bool_value;
  return value->type == RCLC_PARAMETER_INT ? (double)value->integer_value : value->double_value;
}

static bool on_change(const Parameter *before, const Parameter *after, void *context) {
  (void)context;
  printf("{\"asked\": \"%s\"", (before != NULL ? before : after)->name.data);
  if (before != NULL) printf(", \"before\": %g", number_of(&before->value));
  if (after != NULL) printf(", \"after\": %g", number_of(&after->value));
  printf("}\n");
  fflush(stdout);
  return after == NULL || strcmp(after->name.data, "count") != 0 || after->value.integer_value <= 90;
}

static bool load(void *context, const char *name, ParameterValue *value) {
  (void)context;
  FILE *file = strcmp(name, "gain") == 0 ? fopen(store_path, "r") : NULL;
  if (file == NULL) return false;
  const bool read = fscanf(file, "%lf", &value->double_value) == 1;
  fclose(file);
  return read;
}

static void save(void *context, const char *name, const ParameterValue *value) {
  (void)context;
  FILE *file = strcmp(name, "gain") == 0 && value != NULL ? fopen(store_path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%.17g\n", value->double_value);
  fclose(file);
}

static void add_parameters(void) {
  const rclc_parameter_options_t options = {true, 6, true, false};
  require(rclc_parameter_server_init_with_option(&server, &node, &options), "the parameter server");
  require(rclc_add_parameter(&server, "on", RCLC_PARAMETER_BOOL), "on");
  require(rclc_add_parameter(&server, "count", RCLC_PARAMETER_INT), "count");
  require(rclc_add_parameter(&server, "gain", RCLC_PARAMETER_DOUBLE), "gain");
  require(rclc_add_parameter(&server, "fixed", RCLC_PARAMETER_INT), "fixed");
  require(rclc_parameter_set_int(&server, "fixed", 7), "fixed");
  require(rclc_parameter_set_double(&server, "gain", 0.5), "gain");
  require(rclc_set_parameter_read_only(&server, "fixed", true), "read only");
  require(rclc_add_parameter_description(&server, "count", "How many", "Steps of five"), "the description");
  require(rclc_add_parameter_constraint_integer(&server, "count", 0, 100, 5), "the range");
  const tide_parameter_store_t store = {load, save, NULL};
  if (store_path != NULL) require(tide_rclc_parameter_server_restore(&server, &store), "restoring");
}

static void print_end(void) {
  tide_parameter_counters_t counters;
  require(tide_rclc_parameter_server_get_counters(&server, &counters), "counting");
  printf("{\"event\": \"end\", \"requests\": %" PRIu32 ", \"requests_lost\": %" PRIu32 ", \"answers_lost\": %" PRIu32
         ", \"events_lost\": %" PRIu32 ", \"reconnects\": %" PRIu32 "}\n",
         counters.requests, counters.requests_lost, counters.answers_lost, counters.events_lost,
         tide_rclc_support_session(&support)->counters.reconnects);
  fflush(stdout);
}

int main(int count, char **words) {
  const peer_option_t own[] = {{.name = "store", .text = &store_path}, {0}};
  connect_board(count, words, own, "", RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES);
  end_by_signal();
  add_parameters();
  require(rclc_executor_add_parameter_server(&executor, &server, on_change), "adding");
  tell_ready();
  while (!interrupted) require(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50)), "spinning");
  print_end();
  return 0;
}
