/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <string.h>

static bool is_blank(char character) { return character == ' ' || character == '\n'; }

/* The next word, truncated to its buffer; false: there is none. */
static bool word(const char **text, char *place, size_t bytes) {
  size_t length = 0;
  while (is_blank(**text)) ++*text;
  for (; **text != '\0' && !is_blank(**text); ++*text) {
    if (length + 1u < bytes) place[length++] = **text;
  }
  place[length] = '\0';
  return length > 0u;
}

static int64_t number(const char **text) {
  char digits[24];
  int64_t value = 0;
  if (!word(text, digits, sizeof digits)) return -1;
  const bool negative = digits[0] == '-';
  for (const char *digit = digits + negative; *digit >= '0' && *digit <= '9'; ++digit) {
    value = value * 10 + (*digit - '0');
  }
  return negative ? -value : value;
}

static bool read_chain(const char **text, plan_chain_t *chain) {
  (void)word(text, chain->name, sizeof chain->name);
  chain->level = (uint8_t)number(text);
  chain->period_ns = number(text);
  chain->sample_ns = number(text);
  chain->act_ns = number(text);
  chain->payload_bytes = (uint32_t)number(text);
  chain->reply_bytes = (uint32_t)number(text);
  (void)word(text, chain->topic, sizeof chain->topic);
  (void)word(text, chain->reply_topic, sizeof chain->reply_topic);
  chain->reliable = number(text) == 1;
  chain->reply_reliable = number(text) == 1;
  chain->hold = number(text) == 1;
  chain->offset_ns = number(text);
  return chain->reply_topic[0] != '\0' && chain->period_ns > 0 && chain->offset_ns >= 0 &&
         chain->payload_bytes <= PLAN_PAYLOAD_BYTES && chain->reply_bytes <= PLAN_PAYLOAD_BYTES;
}

static bool read_send(const char *name, plan_send_t *send) {
  static const char *const names[] = {"asynchronous", "stock", "blocking", "answered"};
  for (unsigned index = 0; index < sizeof names / sizeof names[0]; index++) {
    if (strcmp(name, names[index]) != 0) continue;
    *send = (plan_send_t)index;
    return true;
  }
  return false;
}

static bool read_setting(const char **text, const char *name, plan_t *plan) {
  char value[16];
  if (strcmp(name, "executor") == 0) {
    (void)word(text, value, sizeof value);
    plan->batch = strcmp(value, "batch") == 0;
    return plan->batch || strcmp(value, "tide") == 0;
  }
  if (strcmp(name, "send") == 0) return word(text, value, sizeof value) && read_send(value, &plan->send);
  const int64_t given = number(text);
  if (strcmp(name, "lanes") == 0)
    plan->lanes = given == 1;
  else if (strcmp(name, "batch_waits") == 0)
    plan->batch_waits = given == 1;
  else if (strcmp(name, "baud") == 0)
    plan->baud = (uint32_t)given;
  else if (strcmp(name, "periods") == 0)
    plan->periods = (uint32_t)given;
  else if (strcmp(name, "instruction_ns") == 0)
    plan->instruction_ns = (uint32_t)given;
  else if (strcmp(name, "heartbeat_delay_ns") == 0)
    plan->heartbeat_delay_ns = given;
  else if (strcmp(name, "budget_ns") == 0)
    plan->budget_ns = given;
  else if (strcmp(name, "budget_period_ns") == 0)
    plan->budget_period_ns = given;
  else if (strcmp(name, "chains") == 0)
    plan->count = (uint32_t)given;
  else
    return false;
  return true;
}

bool plan_read(const char *text, plan_t *plan) {
  char name[24];
  memset(plan, 0, sizeof *plan);
  while (plan->count == 0u) {
    if (!word(&text, name, sizeof name) || !read_setting(&text, name, plan)) return false;
  }
  if (plan->count > PLAN_CHAINS) return false;
  for (uint32_t index = 0; index < plan->count; index++) {
    if (!read_chain(&text, &plan->chains[index])) return false;
  }
  return true;
}
