/* SPDX-License-Identifier: Apache-2.0 */
/* tide-timers, the program that `tide lab timers` starts. See timers.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tide/status.h"
#include "timers.h"

static const char usage[] =
    "usage: tide-timers measure --repetitions N --timeout-ns N [--start-ns N] [--wake-up-lead-ns N] [scheduling]\n"
    "                           --out FILE\n"
    "       tide-timers rclc --repetitions N --timeout-ns N --agent PORT [scheduling] --out FILE\n"
    "       tide-timers load --percent N --cpu N [--cpu N ...]\n"
    "       tide-timers check [scheduling]\n"
    "       tide-timers schedule --thread ID --policy deadline --runtime-ns N --period-ns N\n"
    "scheduling: --policy normal|fifo|rr|deadline --priority N --cpu N --runtime-ns N --period-ns N\n";

static const struct {
  const char *name;
  int policy;
} policies[] = {{"normal", SCHED_OTHER}, {"fifo", SCHED_FIFO}, {"rr", SCHED_RR}, {"deadline", SCHED_DEADLINE}};

static bool take_number(const char *text, int64_t least, int64_t most, int64_t *number) {
  char *end;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static bool take_policy(timers_options_t *options, const char *name) {
  for (size_t index = 0; index < sizeof policies / sizeof policies[0]; index++) {
    if (strcmp(policies[index].name, name) == 0) {
      options->policy_name = policies[index].name;
      options->scheduling.policy = policies[index].policy;
      return true;
    }
  }
  return false;
}

static bool take_cpu(timers_options_t *options, const char *text) {
  int64_t cpu;
  if (options->cpu_count == TIMERS_CPUS_MAXIMUM || !take_number(text, 0, TIMERS_CPUS_MAXIMUM - 1, &cpu)) return false;
  options->cpus[options->cpu_count++] = (int)cpu;
  options->scheduling.cpu = (int)cpu;
  return true;
}

static bool take(timers_options_t *options, int option, const char *text) {
  int64_t number = 0;
  switch (option) {
    case 'r':
      if (!take_number(text, 1, 100000000, &number)) return false;
      options->repetitions = (uint32_t)number;
      return true;
    case 't':
      return take_number(text, 1000, INT64_C(3600000000000), &options->period_ns);
    case 'o':
      options->out = text;
      return true;
    case 'a':
      if (!take_number(text, 1, UINT16_MAX, &number)) return false;
      options->agent_port = text;
      return true;
    case 'p':
      return take_policy(options, text);
    case 'c':
      return take_cpu(options, text);
    case 's':
      return take_number(text, 0, INT64_MAX / 2, &options->start_ns);
    case 'w':
      return take_number(text, 0, INT64_C(1000000000), &options->lead_ns);
    case 'R':
      return take_number(text, 1, INT64_C(3600000000000), &options->scheduling.runtime_ns);
    case 'P':
      if (!take_number(text, 1, INT64_C(3600000000000), &number)) return false;
      options->scheduling.period_ns = options->scheduling.deadline_ns = number;
      return true;
    case 'n':
    case 'l':
    case 'T':
      if (!take_number(text, 0, INT32_MAX, &number)) return false;
      *(option == 'n'   ? &options->scheduling.priority
        : option == 'l' ? &options->percent
                        : &options->thread) = (int)number;
      return true;
    default:
      return false;
  }
}

static bool take_all(timers_options_t *options, int count, char **arguments) {
  static const struct option names[] = {
      {"repetitions", required_argument, NULL, 'r'},     {"timeout-ns", required_argument, NULL, 't'},
      {"start-ns", required_argument, NULL, 's'},        {"out", required_argument, NULL, 'o'},
      {"agent", required_argument, NULL, 'a'},           {"policy", required_argument, NULL, 'p'},
      {"priority", required_argument, NULL, 'n'},        {"cpu", required_argument, NULL, 'c'},
      {"runtime-ns", required_argument, NULL, 'R'},      {"period-ns", required_argument, NULL, 'P'},
      {"percent", required_argument, NULL, 'l'},         {"thread", required_argument, NULL, 'T'},
      {"wake-up-lead-ns", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0}};
  int option, place = 0;
  while ((option = getopt_long(count, arguments, "", names, &place)) != -1) {
    if (option == '?') return false; /* reported by getopt */
    if (!take(options, option, optarg)) {
      fprintf(stderr, "tide-timers: --%s does not take '%s'\n", names[place].name, optarg);
      return false;
    }
  }
  if (optind < count) fprintf(stderr, "tide-timers: what is '%s'?\n", arguments[optind]);
  return optind == count;
}

static void do_nothing(void *context) { (void)context; }

int timers_check(const timers_options_t *options) {
  const tide_posix_thread_config_t config = {.scheduling = options->scheduling, .function = do_nothing};
  tide_posix_thread_t thread;
  const int status = tide_posix_thread_start(&thread, &config);
  if (status == TIDE_OK) {
    tide_posix_thread_join(&thread);
    return TIMERS_DONE;
  }
  fprintf(stderr, "tide-timers: scheduling %s %d: %s\n", options->policy_name, options->scheduling.priority,
          tide_status_text(status));
  return status == TIDE_ERROR_NOT_PERMITTED ? TIMERS_NOT_PERMITTED : TIMERS_FAILED;
}

int timers_schedule(const timers_options_t *options) {
  const int status = tide_posix_schedule_thread(options->thread, &options->scheduling);
  if (status == TIDE_OK) return TIMERS_DONE;
  fprintf(stderr, "tide-timers: scheduling of thread %d: %s\n", options->thread, tide_status_text(status));
  return status == TIDE_ERROR_NOT_PERMITTED ? TIMERS_NOT_PERMITTED : TIMERS_FAILED;
}

static const struct {
  const char *name;
  int (*run)(const timers_options_t *options);
  bool needs_repetitions, needs_agent, needs_cpu, needs_thread;
} commands[] = {{"measure", timers_measure, true, false, false, false},
                {"rclc", timers_rclc, true, true, false, false},
                {"load", timers_load, false, false, true, false},
                {"check", timers_check, false, false, false, false},
                {"schedule", timers_schedule, false, false, false, true}};

static int run(size_t command, int count, char **arguments) {
  static timers_options_t options = {.policy_name = "normal", .lead_ns = -1, .scheduling.cpu = TIDE_POSIX_ANY_CPU};
  if (!take_all(&options, count, arguments)) return TIMERS_USAGE;
  if ((commands[command].needs_repetitions &&
       (options.repetitions == 0u || options.period_ns == 0 || options.out == NULL)) ||
      (commands[command].needs_agent && options.agent_port == NULL) ||
      (commands[command].needs_cpu && (options.cpu_count == 0 || options.percent < 1 || options.percent > 95)) ||
      (commands[command].needs_thread && options.thread == 0)) {
    fputs(usage, stderr);
    return TIMERS_USAGE;
  }
  return commands[command].run(&options);
}

int main(int count, char **arguments) {
  for (size_t command = 0; count > 1 && command < sizeof commands / sizeof commands[0]; command++) {
    if (strcmp(commands[command].name, arguments[1]) == 0) return run(command, count - 1, arguments + 1);
  }
  fputs(usage, stderr);
  return TIMERS_USAGE;
}
