/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS (PLAN_LENGTH + 2)

static char complaint[200];

static const char *complain(const char *word, const char *wanted) {
  (void)snprintf(complaint, sizeof complaint, "'%.80s': %s", word, wanted);
  return complaint;
}

typedef struct fields {
  char text[8192];
  const char *field[FIELDS];
  size_t count;
} fields_t;

static bool split(fields_t *fields, const char *text) {
  const size_t length = strlen(text);
  *fields = (fields_t){0};
  if (length == 0u || length >= sizeof fields->text) return false;
  memcpy(fields->text, text, length + 1u);
  for (char *at = fields->text; at != NULL;) {
    if (fields->count == FIELDS) return false;
    fields->field[fields->count++] = at;
    at = strchr(at, ',');
    if (at != NULL) *at++ = '\0';
  }
  return true;
}

static bool number(const char *text, double least, double most, double *value) {
  char *end;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(*value) && *value >= least && *value <= most;
}

static bool whole(const char *text, double least, double most, size_t *value) {
  double found;
  if (!number(text, least, most, &found) || found != floor(found)) return false;
  *value = (size_t)found;
  return true;
}

static bool time_of(const char *text, double unit_ns, double least, int64_t *time_ns) {
  double found;
  if (!number(text, least, 1e9, &found)) return false;
  *time_ns = (int64_t)(found * unit_ns + 0.5);
  return true;
}

static bool seed_of(const char *text, uint64_t *seed) {
  char *end;
  *seed = strtoull(text, &end, 10);
  return end != text && *end == '\0' && *text != '-';
}

static bool copy_name(char *place, const char *name) {
  const size_t length = strlen(name);
  if (length == 0u || length >= PLAN_NAME_BYTES || strcspn(name, "\"\\") < length) return false;
  memcpy(place, name, length + 1u);
  return true;
}

#define FIND(places, count, wanted, found) \
  for ((found) = 0; (found) < (count) && strcmp((places)[found].name, (wanted)) != 0; (found)++) continue

static const char *read_executor(plan_t *plan, const char *word, const fields_t *fields) {
  executor_plan_t *const executor = &plan->executors[plan->executor_count];
  size_t same;
  if (plan->executor_count == PLAN_EXECUTORS) return complain(word, "there are too many executors");
  if ((fields->count != 2u && fields->count != 4u) || !copy_name(executor->name, fields->field[0]) ||
      !whole(fields->field[1], 1, PLAN_LANES, &executor->lanes)) {
    return complain(word, "an executor is NAME,LANES[,BUDGET_US,PERIOD_US] with 1 to 64 lanes");
  }
  executor->budget_ns = executor->budget_period_ns = 0;
  if (fields->count == 4u && (!time_of(fields->field[2], 1e3, 1e-3, &executor->budget_ns) ||
                              !time_of(fields->field[3], 1e3, 1e-3, &executor->budget_period_ns) ||
                              executor->budget_ns > executor->budget_period_ns)) {
    return complain(word, "a budget is more than 0 and not longer than its period");
  }
  FIND(plan->executors, plan->executor_count, executor->name, same);
  if (same < plan->executor_count) return complain(word, "there is an executor of this name");
  plan->executor_count++;
  return NULL;
}

static const char *read_group(plan_t *plan, const char *word, const fields_t *fields) {
  group_plan_t *const group = &plan->groups[plan->group_count];
  size_t same;
  if (plan->group_count == PLAN_GROUPS) return complain(word, "there are too many groups");
  const bool exclusive = fields->count == 2u && strcmp(fields->field[1], "exclusive") == 0;
  const bool reentrant = fields->count == 2u && strcmp(fields->field[1], "reentrant") == 0;
  if ((!exclusive && !reentrant) || !copy_name(group->name, fields->field[0])) {
    return complain(word, "a group is NAME,exclusive or NAME,reentrant");
  }
  FIND(plan->groups, plan->group_count, group->name, same);
  if (same < plan->group_count) return complain(word, "there is a group of this name");
  group->kind = exclusive ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT;
  plan->group_count++;
  return NULL;
}

static const char *read_callback(plan_t *plan, const char *word, const fields_t *fields) {
  static const char wanted[] = "a callback is NAME,EXECUTOR,PERIOD_US,PRIORITY,LEAST_US,MOST_US[,GROUP]";
  callback_plan_t *const callback = &plan->callbacks[plan->callback_count];
  size_t same, priority;
  if (plan->callback_count == PLAN_CALLBACKS) return complain(word, "there are too many callbacks");
  if (fields->count < 6u || fields->count > 7u || !copy_name(callback->name, fields->field[0])) {
    return complain(word, wanted);
  }
  FIND(plan->executors, plan->executor_count, fields->field[1], callback->executor);
  if (callback->executor == plan->executor_count) return complain(word, "there is no such executor before it");
  if (!time_of(fields->field[2], 1e3, 0, &callback->period_ns) || !whole(fields->field[3], 0, UINT16_MAX, &priority) ||
      !time_of(fields->field[4], 1e3, 0, &callback->least_ns) ||
      !time_of(fields->field[5], 1e3, 0, &callback->most_ns) || callback->least_ns > callback->most_ns) {
    return complain(word, wanted);
  }
  callback->priority = (tide_priority_t)priority;
  callback->join_count = 0;
  callback->grouped = fields->count == 7u;
  if (callback->grouped) {
    FIND(plan->groups, plan->group_count, fields->field[6], callback->group);
    if (callback->group == plan->group_count) return complain(word, "there is no such group before it");
  }
  for (size_t other = 0; callback->grouped && other < plan->callback_count; other++) {
    const callback_plan_t *const mate = &plan->callbacks[other];
    if (mate->grouped && mate->group == callback->group && mate->executor != callback->executor) {
      return complain(word, "its group belongs to another executor");
    }
  }
  FIND(plan->callbacks, plan->callback_count, callback->name, same);
  if (same < plan->callback_count) return complain(word, "there is a callback of this name");
  plan->callback_count++;
  return NULL;
}

size_t plan_predecessor(const plan_t *plan, size_t callback) {
  for (size_t chain = 0; chain < plan->chain_count; chain++) {
    for (size_t place = 1; place < plan->chains[chain].length; place++) {
      if (plan->chains[chain].callbacks[place] == callback) return plan->chains[chain].callbacks[place - 1u];
    }
  }
  return callback;
}

static const char *read_chain(plan_t *plan, const char *word, const fields_t *fields) {
  chain_plan_t *const chain = &plan->chains[plan->chain_count];
  if (plan->chain_count == PLAN_CHAINS) return complain(word, "there are too many chains");
  *chain = (chain_plan_t){0};
  if (fields->count < 2u || fields->count > PLAN_LENGTH + 1u || !copy_name(chain->name, fields->field[0])) {
    return complain(word, "a chain is NAME,CALLBACK,CALLBACK... of up to 128");
  }
  for (size_t place = 0; place + 1u < fields->count; place++) {
    size_t callback;
    FIND(plan->callbacks, plan->callback_count, fields->field[place + 1u], callback);
    if (callback == plan->callback_count) return complain(word, "there is no such callback before it");
    if ((place == 0u) != (plan->callbacks[callback].period_ns > 0)) {
      return complain(word, "a chain is one timer and then subscriptions");
    }
    const size_t before = plan_predecessor(plan, callback);
    if (place > 0u && before != callback && before != chain->callbacks[place - 1u]) {
      return complain(word, "one of its callbacks follows another one in another chain");
    }
    for (size_t earlier = 0; earlier < place; earlier++) {
      if (chain->callbacks[earlier] == callback) return complain(word, "a callback is twice in it");
    }
    chain->callbacks[place] = callback;
  }
  chain->length = fields->count - 1u;
  plan->chain_count++;
  return NULL;
}

static const char *read_join(plan_t *plan, const char *word, const fields_t *fields) {
  size_t found;
  if (fields->count < 2u || fields->count > PLAN_JOINS + 1u) {
    return complain(word, "a join is CALLBACK,CALLBACK... of up to 8");
  }
  FIND(plan->callbacks, plan->callback_count, fields->field[0], found);
  if (found == plan->callback_count || plan_predecessor(plan, found) == found) {
    return complain(word, "it is no subscription of a chain before it");
  }
  callback_plan_t *const callback = &plan->callbacks[found];
  callback->join_count = 0;
  for (size_t place = 1; place < fields->count; place++) {
    size_t other;
    FIND(plan->callbacks, plan->callback_count, fields->field[place], other);
    if (other == plan->callback_count || other == found) return complain(word, "there is no such callback before it");
    callback->joins[callback->join_count++] = other;
  }
  return NULL;
}

static const char *read_offset(plan_t *plan, const char *word, const fields_t *fields) {
  size_t found = plan->callback_count;
  if (fields->count == 2u) FIND(plan->callbacks, plan->callback_count, fields->field[0], found);
  if (found == plan->callback_count || plan->callbacks[found].period_ns == 0) {
    return complain(word, "an offset is CALLBACK,OFFSET_US of a timer before it");
  }
  callback_plan_t *const callback = &plan->callbacks[found];
  callback->placed = time_of(fields->field[1], 1e3, 0, &callback->offset_ns);
  return callback->placed ? NULL : complain(word, "wants a time");
}

static const char *read_jitter(plan_t *plan, const char *word, const fields_t *fields) {
  size_t found = plan->callback_count;
  if (fields->count == 2u) FIND(plan->callbacks, plan->callback_count, fields->field[0], found);
  if (found == plan->callback_count || plan->callbacks[found].period_ns == 0) {
    return complain(word, "a jitter is CALLBACK,JITTER_US of a timer before it");
  }
  callback_plan_t *const callback = &plan->callbacks[found];
  const bool fits =
      time_of(fields->field[1], 1e3, 0, &callback->jitter_ns) && callback->jitter_ns < callback->period_ns;
  return fits ? NULL : complain(word, "wants a time that is shorter than the period");
}

static const char *read_lock(plan_t *plan, const char *word, const fields_t *fields) {
  lock_plan_t *const lock = &plan->locks[plan->lock_count];
  if (plan->lock_count == PLAN_LOCKS) return complain(word, "there are too many locks");
  *lock = (lock_plan_t){0};
  if (fields->count < 3u || fields->count % 2u == 0u || !copy_name(lock->name, fields->field[0])) {
    return complain(word, "a lock is NAME,CALLBACK,SECTION_US,CALLBACK,SECTION_US...");
  }
  for (size_t place = 1; place < fields->count; place += 2u) {
    size_t callback;
    FIND(plan->callbacks, plan->callback_count, fields->field[place], callback);
    if (callback == plan->callback_count) return complain(word, "there is no such callback before it");
    if (!time_of(fields->field[place + 1u], 1e3, 1e-3, &lock->sections_ns[callback])) {
      return complain(word, "a section is more than 0");
    }
  }
  plan->lock_count++;
  return NULL;
}

static bool choice(const char *text, const char *first, const char *second, unsigned *value) {
  *value = strcmp(text, second) == 0 ? 1u : 0u;
  return *value == 1u || strcmp(text, first) == 0;
}

static const char *read_policy(plan_t *plan, const char *word, const char *text) {
  for (tide_policy_t policy = TIDE_POLICY_TIDE; plan_policy(policy) != NULL; policy++) {
    if (strcmp(text, plan_policy(policy)) == 0 && policy != TIDE_POLICY_BATCH) {
      plan->policy = policy;
      return NULL;
    }
  }
  return complain(word, "a policy is tide or readyset");
}

static const char *read_word(plan_t *plan, const char *word) {
  static const struct {
    const char *name;
    const char *(*read)(plan_t *plan, const char *word, const fields_t *fields);
  } entries[] = {{"executor=", read_executor}, {"group=", read_group},   {"callback=", read_callback},
                 {"offset=", read_offset},     {"jitter=", read_jitter}, {"chain=", read_chain},
                 {"join=", read_join},         {"lock=", read_lock}};
  const char *const equals = strchr(word, '=');
  const char *const text = equals == NULL ? word : equals + 1;
  const size_t length = (size_t)(text - word);
  fields_t fields;
  unsigned chosen;
#define IS(name) (length == sizeof(name) - 1u && memcmp(word, name, length) == 0)
  for (size_t entry = 0; entry < sizeof entries / sizeof *entries; entry++) {
    if (length != strlen(entries[entry].name) || memcmp(word, entries[entry].name, length) != 0) continue;
    return split(&fields, text) ? entries[entry].read(plan, word, &fields) : complain(word, "wants names and numbers");
  }
  if (IS("policy=")) return read_policy(plan, word, text);
  if (IS("seconds=")) {
    return time_of(text, 1e9, 1e-3, &plan->duration_ns) && plan->duration_ns <= INT64_C(86400000000000)
               ? NULL
               : complain(word, "wants 0.001 to 86400");
  }
  if (IS("dispatch_us=")) return time_of(text, 1e3, 0, &plan->dispatch_ns) ? NULL : complain(word, "wants a time");
  if (IS("spread_us=")) return time_of(text, 1e3, 0, &plan->spread_ns) ? NULL : complain(word, "wants a time");
  if (IS("depth=")) return whole(text, 1, PLAN_DEPTH, &plan->depth) ? NULL : complain(word, "wants 1 to 64");
  if (IS("executions=")) {
    if (!choice(text, "uniform", "extremes", &chosen)) return complain(word, "executions are uniform or extremes");
    plan->executions = (plan_executions_t)chosen;
    return NULL;
  }
  if (IS("supply=")) {
    if (!choice(text, "server", "anywhere", &chosen)) return complain(word, "a supply is server or anywhere");
    plan->supply = (plan_supply_t)chosen;
    return NULL;
  }
  if (IS("seed=")) return seed_of(text, &plan->seed) ? NULL : complain(word, "wants a whole number");
#undef IS
  return complain(word, "is not a word of a plan; --help lists them");
}

static const char *check(const plan_t *plan) {
  if (plan->chain_count == 0u) return complain("chain", "there is no chain; --help says how to name one");
  for (size_t callback = 0; callback < plan->callback_count; callback++) {
    bool used = false;
    for (size_t chain = 0; chain < plan->chain_count; chain++) {
      for (size_t place = 0; place < plan->chains[chain].length; place++) {
        used = used || plan->chains[chain].callbacks[place] == callback;
      }
    }
    if (!used) return complain(plan->callbacks[callback].name, "is a callback of no chain");
  }
  return NULL;
}

const char *plan_read(plan_t *plan, int count, char **words) {
  *plan = (plan_t){.duration_ns = INT64_C(60000000000), .seed = 1, .depth = 10};
  for (int index = 0; index < count; index++) {
    const char *const wrong = read_word(plan, words[index]);
    if (wrong != NULL) return wrong;
  }
  return check(plan);
}

const char *plan_policy(tide_policy_t policy) {
  static const char *const names[] = {"tide", "batch", "readyset"};
  return (size_t)policy < sizeof names / sizeof *names ? names[policy] : NULL;
}

bool plan_has_budgets(const plan_t *plan) {
  for (size_t index = 0; index < plan->executor_count; index++) {
    if (plan->executors[index].budget_ns > 0) return true;
  }
  return false;
}

void plan_help(const char *program) {
  printf(
      "usage: %s [policy=tide|readyset] [seconds=60] [seed=1] [spread_us=0] [dispatch_us=0] [depth=10]\n"
      "       [executions=uniform|extremes] [supply=server|anywhere] [offset=CALLBACK,OFFSET_US ...] "
      "[jitter=CALLBACK,JITTER_US ...]\n"
      "       executor=NAME,LANES[,BUDGET_US,PERIOD_US] ... [group=NAME,exclusive|reentrant ...]\n"
      "       callback=NAME,EXECUTOR,PERIOD_US,PRIORITY,LEAST_US,MOST_US[,GROUP] ... chain=NAME,CALLBACK,... ...\n"
      "       [lock=NAME,CALLBACK,SECTION_US,... ...]\n"
      "Chains of callbacks on executors of several lanes; prints response times as JSON.\n"
      "Example: %s seconds=2 executor=main,2 callback=a,main,50000,1,3000,3000 callback=b,main,0,2,4000,4000 "
      "chain=c1,a,b\n",
      program, program);
}
