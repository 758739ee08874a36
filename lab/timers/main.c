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

#include "tide/status.h"
#include "timers.h"

static const char usage[] =
    "usage: tide-timers measure --repetitions N --timeout-ns N [--start-ns N] [--wake-up-lead-ns N] [scheduling]\n"
    "                           --out FILE\n"
    "       tide-timers rclc --repetitions N --timeout-ns N --agent PORT [scheduling] --out FILE\n"
    "scheduling: --policy normal|fifo|rr --priority N --cpu N\n";

static const struct {
  const char *name;
  int policy;
} policies[] = {{"normal", SCHED_OTHER}, {"fifo", SCHED_FIFO}, {"rr", SCHED_RR}};

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

static bool take(timers_options_t *options, int option, const char *text) {
  int64_t number = 0;
  switch (option) {
    case 'r':
      if (!take_number(text, 1, 100000000, &number)) return false;
      options->repetitions = (uint32_t)number;
      return true;
    case 't': return take_number(text, 1000, INT64_C(3600000000000), &options->period_ns);
    case 'o': options->out = text; return true;
    case 'a':
      if (!take_number(text, 1, UINT16_MAX, &number)) return false;
      options->agent_port = text;
      return true;
    case 'p': return take_policy(options, text);
    case 'c':
      if (!take_number(text, 0, 255, &number)) return false;
      options->scheduling.cpu = (int)number;
      return true;
    case 's': return take_number(text, 0, INT64_MAX / 2, &options->start_ns);
    case 'w': return take_number(text, 0, INT64_C(1000000000), &options->lead_ns);
    case 'n':
      if (!take_number(text, 0, INT32_MAX, &number)) return false;
      options->scheduling.priority = (int)number;
      return true;
    default: return false;
  }
}

static bool take_all(timers_options_t *options, int count, char **arguments) {
  static const struct option names[] = {
      {"repetitions", required_argument, NULL, 'r'},     {"timeout-ns", required_argument, NULL, 't'},
      {"start-ns", required_argument, NULL, 's'},        {"out", required_argument, NULL, 'o'},
      {"agent", required_argument, NULL, 'a'},           {"policy", required_argument, NULL, 'p'},
      {"priority", required_argument, NULL, 'n'},        {"cpu", required_argument, NULL, 'c'},
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

int main(int count, char **arguments) {
  static timers_options_t options = {.policy_name = "normal", .lead_ns = -1, .scheduling.cpu = TIDE_POSIX_ANY_CPU};
  const bool is_rclc = count > 1 && strcmp(arguments[1], "rclc") == 0;
  if (count > 1 && (is_rclc || strcmp(arguments[1], "measure") == 0)) {
    if (!take_all(&options, count - 1, arguments + 1)) return TIMERS_USAGE;
    if (options.repetitions > 0u && options.period_ns > 0 && options.out != NULL &&
        (!is_rclc || options.agent_port != NULL)) {
      return is_rclc ? timers_rclc(&options) : timers_measure(&options);
    }
  }
  fputs(usage, stderr);
  return TIMERS_USAGE;
}
