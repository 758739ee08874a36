/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *parse_line(const char *line, plan_chain_t *chain) {
  char reliability[16];
  unsigned level = 0;
  const int fields =
      sscanf(line, "%63s %u %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %zu %zu %63s %63s %15s", chain->name,
             &level, &chain->period_ns, &chain->offset_ns, &chain->sample_ns, &chain->act_ns, &chain->payload_bytes,
             &chain->reply_bytes, chain->topic, chain->reply_topic, reliability);
  if (fields != 11) return "does not have the eleven fields of a chain";
  if (level < 1 || level > 126) return "has a level outside 1..126";
  if (chain->period_ns <= 0 || chain->offset_ns < 0 || chain->sample_ns < 0 || chain->act_ns < 0)
    return "has an impossible time";
  const size_t least = PLAN_INDEX_DIGITS + PLAN_STRING_OVERHEAD_BYTES;
  if (chain->payload_bytes < least || chain->reply_bytes < least) return "has a payload below 10 bytes";
  if (chain->payload_bytes > PLAN_PAYLOAD_BYTES || chain->reply_bytes > PLAN_PAYLOAD_BYTES) {
    return "has a payload above 4096 bytes";
  }
  chain->level = (uint8_t)level;
  chain->reliable = strcmp(reliability, "reliable") == 0;
  if (!chain->reliable && strcmp(reliability, "best_effort") != 0) return "is neither reliable nor best_effort";
  return NULL;
}

bool plan_read(const char *path, plan_t *plan) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fprintf(stderr, "chain_client: %s cannot be opened; give the plan that tide run wrote\n", path);
    return false;
  }
  memset(plan, 0, sizeof *plan);
  const char *problem = NULL;
  char line[512];
  int number = 0;
  while (problem == NULL && fgets(line, sizeof line, file) != NULL) {
    number++;
    if (line[0] == '#' || line[strspn(line, " \t\r\n")] == '\0') continue;
    if (plan->count == PLAN_CHAINS) {
      problem = "is one chain too many (at most 16)";
    } else {
      problem = parse_line(line, &plan->chains[plan->count]);
      plan->count++;
    }
  }
  fclose(file);
  if (problem == NULL && plan->count == 0) problem = "is the end, and there was no chain";
  if (problem != NULL) fprintf(stderr, "chain_client: %s:%d: %s\n", path, number, problem);
  return problem == NULL;
}
