/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char complaint[160];

static const char *complain(const char *word, const char *wanted) {
  (void)snprintf(complaint, sizeof complaint, "'%.60s': %s", word, wanted);
  return complaint;
}

/* A number from least to most at the beginning of the text; *end points behind it. */
static bool read_number(const char *text, double least, double most, double *value, char **end) {
  *value = strtod(text, end);
  return *end != text && isfinite(*value) && *value >= least && *value <= most;
}

static bool read_whole(const char *text, double least, double most, double *value) {
  char *end;
  return read_number(text, least, most, value, &end) && *end == '\0';
}

static int64_t of_ms(double value_ms) { return (int64_t)(value_ms * 1e6 + 0.5); }

static bool read_budget(lane_plan_t *lane, const char *text) {
  double budget_ms, period_ms, low;
  char *end;
  if (!read_number(text, 1e-6, 1e9, &budget_ms, &end) || *end != '/') return false;
  if (!read_number(end + 1, budget_ms, 1e9, &period_ms, &end) || *end != ',') return false;
  if (!read_number(end + 1, 0, lane->priority - 1, &low, &end) || *end != '\0') return false;
  lane->budget_ns = of_ms(budget_ms);
  lane->period_ns = of_ms(period_ms);
  lane->low_priority = (int32_t)low;
  return true;
}

static const char *read_lane(pong_plan_t *plan, const char *word, const char *text) {
  static const char wanted[] = "a lane is NAME,PRIORITY[,BUDGET_MS/PERIOD_MS,LOW_PRIORITY][,sleep=PERCENT]";
  char copy[128];
  double priority, sleep = 0;
  if (plan->lane_count == LANES_MAXIMUM) return complain(word, "there are too many lanes");
  if (strlen(text) >= sizeof copy) return complain(word, wanted);
  lane_plan_t *const lane = &plan->lanes[plan->lane_count];
  strcpy(copy, text);
  char *const sleep_text = strstr(copy, ",sleep=");
  if (sleep_text) {
    *sleep_text = '\0';
    if (!read_whole(sleep_text + strlen(",sleep="), 0, 100, &sleep)) return complain(word, wanted);
  }
  char *after = strchr(copy, ',');
  const size_t length = after ? (size_t)(after - copy) : 0u;
  if (length == 0u || length >= sizeof lane->name || strcspn(copy, "\"\\") < length) return complain(word, wanted);
  memcpy(lane->name, copy, length);
  if (!read_number(after + 1, 1, EXECUTOR_PRIORITY - 1, &priority, &after)) return complain(word, wanted);
  lane->priority = (int32_t)priority;
  lane->sleep_percent = (int32_t)sleep;
  if (*after != '\0' && *after != ',') return complain(word, wanted);
  if (*after == ',' && !read_budget(lane, after + 1)) {
    return complain(word, "its budget is BUDGET_MS/PERIOD_MS,LOW_PRIORITY, at most the period, below the priority");
  }
  plan->lane_count++;
  return NULL;
}

static const char *read_time(const char *word, const char *text, double scale, int64_t *time_ns) {
  double value;
  if (!read_whole(text, 1e-6, 1e6, &value)) return complain(word, "wants a number above 0");
  *time_ns = of_ms(value * scale);
  return NULL;
}

static const char *read_word(pong_plan_t *plan, const char *word) {
  const char *const text = strchr(word, '=') ? strchr(word, '=') + 1 : word;
  const size_t length = (size_t)(text - word);
  double value;
#define IS(name) (length == sizeof(name) - 1u && memcmp(word, name, length) == 0)
  if (IS("lane=")) return read_lane(plan, word, text);
  if (IS("seconds=")) return read_time(word, text, 1e3, &plan->duration_ns);
  if (IS("ping_ms=")) return read_time(word, text, 1, &plan->ping_ns);
  if (IS("work_ms=")) return read_time(word, text, 1, &plan->work_ns);
  if (IS("replenishments=")) {
    if (!read_whole(text, 1, REPLENISHMENTS_MAXIMUM, &value)) return complain(word, "wants 1 to 1000");
    plan->replenishments = (uint16_t)value;
    return NULL;
  }
  if (IS("cpu=")) {
    if (!read_whole(text, 0, 1023, &value)) return complain(word, "wants the number of a processor");
    plan->cpu = (int32_t)value;
    return NULL;
  }
  if (IS("rule=") && (strcmp(text, "corrected") == 0 || strcmp(text, "posix") == 0)) {
    plan->rule = *text == 'p' ? TIDE_BUDGET_POSIX : TIDE_BUDGET_CORRECTED;
    return NULL;
  }
#undef IS
  return complain(word, "is not a word of a plan; --help lists them");
}

const char *pong_plan_read(pong_plan_t *plan, int count, char **words) {
  *plan = (pong_plan_t){
      .duration_ns = INT64_C(10000000000), .ping_ns = 10000000, .work_ns = 10000000, .replenishments = 100};
  for (int index = 0; index < count; index++) {
    const char *const wrong = read_word(plan, words[index]);
    if (wrong) return wrong;
  }
  return plan->lane_count > 0 ? NULL : complain("lane", "there is no lane; --help says how to name one");
}

void pong_plan_help(const char *program) {
  printf(
      "usage: %s [seconds=10] [ping_ms=10] [work_ms=10] [replenishments=100] [rule=corrected|posix] [cpu=0]\n"
      "       lane=NAME,PRIORITY[,BUDGET_MS/PERIOD_MS,LOW_PRIORITY][,sleep=PERCENT] ...\n"
      "Pings come on each lane; a lane works for each and answers. Prints the answers as JSON.\n"
      "Example: %s seconds=2 lane=hprt,60,30/100,6 lane=lpbe,50\n",
      program, program);
}

/* Without printf: that of small C libraries does not support 64 bits. */
static void print_member(const char *name, int64_t value) {
  char digits[24], *digit = digits + sizeof digits - 1;
  uint64_t rest = value < 0 ? 0u : (uint64_t)value;
  *digit = '\0';
  do *--digit = (char)('0' + rest % 10u);
  while ((rest /= 10u) != 0u);
  printf(", \"%s\": %s", name, digit);
}

static void print_lane(const lane_plan_t *lane, const lane_result_t *result) {
  const tide_budget_counters_t *const budget = &result->budget;
  printf("{\"name\": \"%s\"", lane->name);
  print_member("priority", lane->priority);
  print_member("budget_ns", lane->budget_ns);
  print_member("period_ns", lane->period_ns);
  print_member("pings", (int64_t)result->pings);
  print_member("replies", (int64_t)result->replies);
  print_member("overwritten", (int64_t)result->overwritten);
  print_member("cpu_ns", result->cpu_ns);
  print_member("used_ns", (int64_t)budget->used_ns);
  print_member("low_ns", (int64_t)budget->low_ns);
  print_member("overrun_ns", (int64_t)budget->overrun_ns);
  print_member("exhaustions", (int64_t)budget->exhaustions);
  print_member("replenishments", (int64_t)budget->replenishments);
  print_member("activations", (int64_t)budget->activations);
  printf("}");
}

void pong_plan_print(const pong_plan_t *plan, const char *on, const lane_result_t *results) {
  printf("{\"on\": \"%s\", \"rule\": \"%s\"", on, plan->rule == TIDE_BUDGET_POSIX ? "posix" : "corrected");
  print_member("duration_ns", plan->duration_ns);
  printf(", \"lanes\": [");
  for (int32_t index = 0; index < plan->lane_count; index++) {
    printf(index > 0 ? ",\n " : "\n ");
    print_lane(&plan->lanes[index], &results[index]);
  }
  printf("]}\n");
}
