/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "chain_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static const char usage[] =
    "chain_client: a board of a system.toml, its chains as tide run plans them\n"
    "\n"
    "  chain_client --plan out/plan.txt --device out/robot.tty --executor tide\n"
    "\n"
    "  --plan FILE          file of the chains, as written by tide run\n"
    "  --device PATH        serial device of the agent's line\n"
    "  --udp PORT           UDP port of the agent on this machine, in place of a device\n"
    "  --baud N             baud rate; default: 115200\n"
    "  --mtu N              bytes of the largest message of the link; default: 512\n"
    "  --key N              key of the client; default: any\n"
    "  --executor NAME      executor: tide | tide-preemptive | batch; default: tide\n"
    "  --send NAME          way of sending: asynchronous | stock | blocking; default: asynchronous\n"
    "  --offset-ms N        milliseconds from the start to the first release; default: 500\n"
    "  --domain N           ROS domain; default: 0\n"
    "  --cpu N              processor of the executor; default: any\n"
    "  --link-cpu N         processor of the link's thread; default: any\n"
    "  --priority N         SCHED_FIFO priority of the executor; 0: normal scheduling. tide-preemptive: of its least\n"
    "                       urgent lane; the others are above it\n"
    "  --link-priority N    SCHED_FIFO priority of the link's thread; default: the highest\n"
    "  --heartbeat-delay-us N  microseconds from a reliable message to the question after it; default: a measured\n"
    "                       round trip\n"
    "  --hold-level N       level whose reliable messages keep all that is less urgent until their\n"
    "                       acknowledgment; may be repeated\n"
    "  --budget-us N        microseconds of each lane, or of the batch executor, at its priority in each period\n"
    "  --budget-period-us N microseconds of that period; needs --priority\n"
    "  --granted-ns N       nanoseconds that a callback may take beside its execution time to be chosen and to make "
    "its\n"
    "                       message: what that takes more, its work takes less; default: the work is as described\n"
    "  --wait               wait for execution times in place of computing, as a board with a processor of its own "
    "would\n"
    "                       have them; not with tide-preemptive or a budget\n"
    "  --wait-for-start     wait with the first release for a line on standard input: start, and when in nanoseconds "
    "of\n"
    "                       the monotonic clock, or nothing\n"
    "  --trace FILE         file of the trace; read by tide export\n"
    "  --stay               stay until SIGTERM, also when all instances are over\n"
    "\n"
    "Prints a line of JSON for each event and each finished chain instance, and the execution times of the "
    "callbacks.\n";

static void refuse(const char *name, const char *value) {
  fprintf(stderr, "chain_client: --%s does not take '%s'; see chain_client --help\n", name, value);
  exit(2);
}

static long number(const char *name, const char *text, long least, long most) {
  char *end = NULL;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) refuse(name, text);
  return value;
}

static int choice(const char *name, const char *text, const char *const *names, const int *values) {
  while (*names != NULL && strcmp(*names, text) != 0) names++, values++;
  if (*names == NULL) refuse(name, text);
  return *values;
}

static void take_option(chain_options_t *options, int letter, const char *value) {
  static const char *const policies[] = {"tide", "tide-preemptive", "batch", NULL};
  static const int policy_values[] = {TIDE_POLICY_TIDE, TIDE_POLICY_TIDE, TIDE_POLICY_BATCH, 0};
  static const char *const sends[] = {"asynchronous", "stock", "blocking", NULL};
  static const int send_values[] = {TIDE_SEND_ASYNCHRONOUS, TIDE_SEND_STOCK, TIDE_SEND_STOCK_BLOCKING, 0};
  switch (letter) {
    case 'p':
      options->plan = value;
      break;
    case 'd':
      options->device = value;
      break;
    case 'b':
      options->baud = (uint32_t)number("baud", value, 50, 100000000);
      break;
    case 'e':
      options->policy = (tide_policy_t)choice("executor", value, policies, policy_values);
      options->preemptive = strcmp(value, "tide-preemptive") == 0;
      break;
    case 's':
      options->send = (tide_send_t)choice("send", value, sends, send_values);
      break;
    case 'u':
      (void)number("udp", value, 1, 65535);
      options->udp = value;
      break;
    case 'M':
      options->mtu_bytes = (size_t)number("mtu", value, 68, MTU_BYTES_MOST);
      break;
    case 'K':
      options->key = (uint32_t)number("key", value, 1, 0x7FFFFFFF);
      break;
    case 'S':
      options->stay = true;
      break;
    case 'o':
      options->offset_ns = number("offset-ms", value, 1, 60000) * 1000000L;
      break;
    case 'm':
      options->domain = (size_t)number("domain", value, 0, 232);
      break;
    case 'c':
      options->cpu = (int)number("cpu", value, 0, 1023);
      break;
    case 'k':
      options->link_cpu = (int)number("link-cpu", value, 0, 1023);
      break;
    case 'r':
      options->priority = (int)number("priority", value, 0, 99);
      break;
    case 'l':
      options->link_priority = (int)number("link-priority", value, 0, 99);
      break;
    case 't':
      options->heartbeat_delay_ns = number("heartbeat-delay-us", value, 0, 1000000) * 1000L;
      break;
    case 'H':
      options->hold[number("hold-level", value, 0, TIDE_LEVEL_MAXIMUM)] = true;
      break;
    case 'B':
      options->budget_ns = number("budget-us", value, 1, 10000000) * 1000L;
      break;
    case 'P':
      options->budget_period_ns = number("budget-period-us", value, 1, 10000000) * 1000L;
      break;
    case 'G':
      options->granted_ns = number("granted-ns", value, 0, 1000000000);
      break;
    case 'T':
      options->trace = value;
      break;
    case 'W':
      options->waits = true;
      break;
    case 'w':
      options->wait_for_start = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(0);
    default:
      exit(2);
  }
}

chain_options_t chain_options_of(int count, char **words) {
  static const struct option names[] = {{"plan", required_argument, NULL, 'p'},
                                        {"device", required_argument, NULL, 'd'},
                                        {"baud", required_argument, NULL, 'b'},
                                        {"executor", required_argument, NULL, 'e'},
                                        {"send", required_argument, NULL, 's'},
                                        {"udp", required_argument, NULL, 'u'},
                                        {"mtu", required_argument, NULL, 'M'},
                                        {"key", required_argument, NULL, 'K'},
                                        {"stay", no_argument, NULL, 'S'},
                                        {"offset-ms", required_argument, NULL, 'o'},
                                        {"domain", required_argument, NULL, 'm'},
                                        {"cpu", required_argument, NULL, 'c'},
                                        {"link-cpu", required_argument, NULL, 'k'},
                                        {"priority", required_argument, NULL, 'r'},
                                        {"link-priority", required_argument, NULL, 'l'},
                                        {"heartbeat-delay-us", required_argument, NULL, 't'},
                                        {"hold-level", required_argument, NULL, 'H'},
                                        {"budget-us", required_argument, NULL, 'B'},
                                        {"budget-period-us", required_argument, NULL, 'P'},
                                        {"trace", required_argument, NULL, 'T'},
                                        {"granted-ns", required_argument, NULL, 'G'},
                                        {"wait", no_argument, NULL, 'W'},
                                        {"wait-for-start", no_argument, NULL, 'w'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  chain_options_t options = {.baud = 115200,
                             .policy = TIDE_POLICY_TIDE,
                             .send = TIDE_SEND_ASYNCHRONOUS,
                             .mtu_bytes = 512,
                             .offset_ns = 500000000,
                             .cpu = TIDE_POSIX_ANY_CPU,
                             .link_cpu = TIDE_POSIX_ANY_CPU,
                             .heartbeat_delay_ns = -1,
                             .granted_ns = -1};
  int letter = 0;
  while ((letter = getopt_long(count, words, "", names, NULL)) != -1) take_option(&options, letter, optarg);
  if (options.plan == NULL || (options.device == NULL) == (options.udp == NULL) || optind < count) {
    fputs("chain_client: needs --plan, and --device or --udp, and no other words; see chain_client --help\n", stderr);
    exit(2);
  }
  if (options.waits && (options.preemptive || options.budget_ns > 0)) {
    fputs("chain_client: --wait has no preemption and no budget; leave out --wait, or these\n", stderr);
    exit(2);
  }
  if (options.budget_ns == 0 && options.budget_period_ns == 0) return options;
  if (options.priority == 0 || options.budget_ns == 0 || options.budget_ns > options.budget_period_ns) {
    fputs("chain_client: a budget needs --priority, --budget-us and a --budget-period-us that is not shorter\n",
          stderr);
    exit(2);
  }
  return options;
}
