/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tide/status.h"

static uintptr_t lock(const program_t *program) { return tide_platform_enter(program->world.platform); }
static void unlock(const program_t *program, uintptr_t state) { tide_platform_exit(program->world.platform, state); }

/* splitmix64 */
static uint64_t draw(uint64_t *state) {
  uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
  return mixed ^ mixed >> 31;
}

/* ---- callbacks ---- */

static int64_t execution(program_callback_t *callback) {
  const callback_plan_t *const plan = &callback->program->plan->callbacks[callback->index];
  const uintptr_t state = lock(callback->program); /* a reentrant callback runs on several lanes at once */
  const uint64_t drawn = draw(&callback->random);
  unlock(callback->program, state);
  if (callback->program->plan->executions == PLAN_EXECUTIONS_EXTREMES) {
    return (drawn & 1u) == 0u ? plan->least_ns : plan->most_ns;
  }
  return plan->least_ns + (int64_t)(drawn % ((uint64_t)(plan->most_ns - plan->least_ns) + 1u));
}

static void complete(program_t *program, size_t callback, int64_t release_ns) {
  const int64_t now_ns = tide_platform_now_ns(program->world.platform);
  for (size_t index = 0; index < program->plan->chain_count; index++) {
    const chain_plan_t *const plan = &program->plan->chains[index];
    if (plan->callbacks[plan->length - 1u] != callback) continue;
    program_chain_t *const chain = &program->chains[index];
    const uintptr_t state = lock(program);
    if (chain->completed < chain->capacity) chain->responses_ns[chain->completed++] = now_ns - release_ns;
    unlock(program, state);
  }
}

static void publish_on(tide_local_topic_t *topic, int64_t release_ns) {
  void *message;
  if (topic->subscriptions == NULL || tide_local_borrow(topic, &message) != TIDE_OK) return;
  *(int64_t *)message = release_ns;
  (void)tide_local_publish(topic, message, sizeof release_ns);
}

/* Bit of an input among those that a callback waits for; 0: none. */
static uint32_t input_of(const plan_t *plan, size_t callback, size_t publisher) {
  const callback_plan_t *const waits = &plan->callbacks[callback];
  if (plan_predecessor(plan, callback) == publisher) return 1u;
  for (size_t place = 0; place < waits->join_count; place++) {
    if (waits->joins[place] == publisher) return UINT32_C(2) << place;
  }
  return 0u;
}

/* True: it was the last of this instance. If too many wait, a new instance replaces the oldest. */
static bool is_complete(program_callback_t *callback, uint32_t input, int64_t release_ns) {
  const uint32_t all = (UINT32_C(2) << callback->program->plan->callbacks[callback->index].join_count) - 1u;
  const uintptr_t state = lock(callback->program);
  size_t place = 0;
  while (place < PLAN_DEPTH &&
         (callback->arrivals[place].arrived == 0u || callback->arrivals[place].release_ns != release_ns))
    place++;
  if (place == PLAN_DEPTH) {
    place = callback->next_arrival;
    callback->next_arrival = (place + 1u) % PLAN_DEPTH;
    callback->arrivals[place].release_ns = release_ns;
    callback->arrivals[place].arrived = 0u;
  }
  callback->arrivals[place].arrived |= input;
  const bool complete = callback->arrivals[place].arrived == all;
  if (complete) callback->arrivals[place].arrived = 0u;
  unlock(callback->program, state);
  return complete;
}

static void publish(program_callback_t *callback, int64_t release_ns) {
  program_t *const program = callback->program;
  publish_on(&callback->topic, release_ns);
  for (size_t index = 0; index < program->plan->callback_count; index++) {
    if (program->plan->callbacks[index].join_count == 0u) continue;
    const uint32_t input = input_of(program->plan, index, callback->index);
    if (input != 0u && is_complete(&program->callbacks[index], input, release_ns))
      publish_on(&program->callbacks[index].joined, release_ns);
  }
}

static void hold(program_callback_t *callback, size_t index, int64_t duration_ns) {
  program_t *const program = callback->program;
  const int status = tide_lock_take(&program->locks[index], &callback->timer.callback);
  uintptr_t state = lock(program);
  const bool alone = status == TIDE_OK && program->inside[index]++ == 0u;
  if (!alone) program->lock_errors++;
  unlock(program, state);
  if (status != TIDE_OK) return;
  program->world.work(program->world.context, duration_ns);
  state = lock(program);
  program->inside[index]--;
  unlock(program, state);
  (void)tide_lock_give(&program->locks[index]);
}

/* Critical sections lie at random positions, in the order of locks; they are shortened to fit. */
static void work(program_callback_t *callback, int64_t left_ns) {
  program_t *const program = callback->program;
  const program_world_t *const world = &program->world;
  int64_t free_ns = left_ns;
  for (size_t index = 0; index < program->plan->lock_count; index++) {
    free_ns -= program->plan->locks[index].sections_ns[callback->index];
  }
  if (free_ns < 0) free_ns = 0;
  for (size_t index = 0; index < program->plan->lock_count; index++) {
    const int64_t section_ns = program->plan->locks[index].sections_ns[callback->index];
    if (section_ns == 0) continue;
    const uintptr_t state = lock(program);
    const uint64_t drawn = draw(&callback->random);
    unlock(program, state);
    const int64_t anywhere_ns = (int64_t)((drawn >> 8) % ((uint64_t)free_ns + 1u));
    const int64_t before_ns = drawn % 4u < 2u ? 0 : drawn % 4u == 2u ? free_ns : anywhere_ns;
    const int64_t held_ns = section_ns < left_ns - before_ns ? section_ns : left_ns - before_ns;
    if (before_ns > 0) world->work(world->context, before_ns);
    hold(callback, index, held_ns);
    free_ns -= before_ns;
    left_ns -= before_ns + held_ns;
  }
  world->work(world->context, left_ns);
}

static void run(program_callback_t *callback, int64_t release_ns) {
  program_t *const program = callback->program;
  const program_world_t *const world = &program->world;
  if (world->on_begin != NULL) world->on_begin(world->context, callback->index, release_ns);
  work(callback, program->plan->dispatch_ns + execution(callback));
  if (world->on_end != NULL) world->on_end(world->context, callback->index, release_ns);
  complete(program, callback->index, release_ns);
  publish(callback, release_ns);
}

/* Late by zero, by the whole jitter, or by a time between. */
static int64_t lateness(program_callback_t *callback) {
  const int64_t jitter_ns = callback->program->plan->callbacks[callback->index].jitter_ns;
  if (jitter_ns == 0) return 0;
  const uint64_t drawn = draw(&callback->random);
  const uint64_t kind = drawn % 3u;
  return kind == 0u ? 0 : kind == 1u ? jitter_ns : (int64_t)((drawn >> 8) % ((uint64_t)jitter_ns + 1u));
}

/* The expiry on its grid at which an instance begins; sets the next one. An already waiting instance is not moved. */
static int64_t nominal(program_callback_t *callback, int64_t release_ns) {
  const callback_plan_t *const plan = &callback->program->plan->callbacks[callback->index];
  if (plan->jitter_ns == 0) return release_ns;
  const int64_t nominal_ns = release_ns - (release_ns - callback->grid_ns) % plan->period_ns;
  if (callback->timer.callback.pending == 0u) {
    (void)tide_timer_set_phase(&callback->timer, nominal_ns + plan->period_ns + lateness(callback));
  }
  return nominal_ns;
}

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  program_callback_t *const callback = timer->callback.context;
  program_t *const program = callback->program;
  const int64_t release_ns = nominal(callback, timer->callback.ready_ns);
  (void)since_last_call_ns;
  if (release_ns - program->start_ns >= program->plan->duration_ns) {
    (void)tide_timer_cancel(timer);
    return;
  }
  const uintptr_t state = lock(program);
  program->released[callback->index]++;
  unlock(program, state);
  run(callback, release_ns);
}

static void on_message(tide_callback_t *base, void *context) {
  program_callback_t *const callback = context;
  const int64_t *const message = tide_local_take(&callback->subscription, NULL);
  (void)base;
  if (message == NULL) return;
  run(callback, *message);
  tide_local_release(message);
}

/* ---- set-up ---- */

static int add_executors(program_t *program) {
  for (size_t index = 0; index < program->plan->executor_count; index++) {
    const tide_executor_config_t config = {.platform = program->world.platform,
                                           .policy = program->plan->policy,
                                           .callbacks = program->registered[index],
                                           .ready_storage = program->ready[index],
                                           .timer_storage = program->timers[index],
                                           .callback_count = PLAN_CALLBACKS,
                                           .lanes = program->lanes[index],
                                           .lane_count = program->plan->executors[index].lanes};
    const int status = tide_executor_init(&program->executors[index], &config);
    if (status != TIDE_OK) return status;
  }
  for (size_t index = 0; index < program->plan->group_count; index++) {
    const int status = tide_group_init(&program->groups[index], program->plan->groups[index].kind,
                                       program->waiting[index], PLAN_CALLBACKS);
    if (status != TIDE_OK) return status;
  }
  return TIDE_OK;
}

static int add_callback(program_t *program, size_t index) {
  const callback_plan_t *const plan = &program->plan->callbacks[index];
  program_callback_t *const callback = &program->callbacks[index];
  tide_executor_t *const executor = &program->executors[plan->executor];
  callback->program = program;
  callback->index = index;
  callback->random = program->plan->seed * UINT64_C(0xD1342543DE82EF95) + index;
  callback->timer.callback.priority = plan->priority;
  callback->timer.callback.group = plan->grouped ? &program->groups[plan->group] : NULL;
  callback->timer.callback.context = callback;
  if (plan->period_ns > 0) {
    callback->timer.period_ns = plan->period_ns;
    callback->timer.overrun = TIDE_OVERRUN_SKIP;
    callback->timer.on_expiry = on_expiry;
    const int status = tide_executor_add_timer(executor, &callback->timer);
    return status == TIDE_OK ? tide_timer_cancel(&callback->timer) : status; /* until program_start */
  }
  callback->timer.callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
  callback->timer.callback.execute = on_message;
  return tide_executor_add(executor, &callback->timer.callback);
}

/* Most concurrent runs of a callback, and so publications: one, or in a reentrant group the number of its lanes. */
static uint32_t overlaps(const plan_t *plan, size_t callback) {
  return (uint32_t)plan->executors[plan->callbacks[callback].executor].lanes;
}

/* Messages that a topic may need: being filled in, waiting, and being read. */
static uint32_t loans(const plan_t *plan, size_t publisher) {
  uint32_t count = overlaps(plan, publisher);
  for (size_t index = 0; index < plan->callback_count; index++) {
    if (index != publisher && plan_predecessor(plan, index) == publisher) count += overlaps(plan, index);
  }
  return count;
}

/* The same for the topic of joined instances. */
static uint32_t joined_loans(const plan_t *plan, size_t callback) {
  const callback_plan_t *const waits = &plan->callbacks[callback];
  if (waits->join_count == 0u) return 0u;
  uint32_t count = overlaps(plan, callback) + overlaps(plan, plan_predecessor(plan, callback));
  for (size_t place = 0; place < waits->join_count; place++) count += overlaps(plan, waits->joins[place]);
  return count;
}

static int add_topics(program_t *program) {
  const plan_t *const plan = program->plan;
  uint32_t count = 0;
  for (size_t index = 0; index < plan->callback_count; index++) {
    const uint32_t joined = joined_loans(plan, index);
    count += loans(plan, index) + (uint32_t)plan->depth + 1u;
    if (joined > 0u) count += joined + (uint32_t)plan->depth + 1u;
  }
  program->messages = calloc(1, TIDE_LOCAL_STORAGE_BYTES(count, sizeof(int64_t)));
  if (program->messages == NULL) return TIDE_ERROR_FULL;
  int status = tide_local_pool_init(&program->pool, program->world.platform, program->messages, count, sizeof(int64_t));
  for (size_t index = 0; status == TIDE_OK && index < plan->callback_count; index++) {
    status = tide_local_topic_init(&program->callbacks[index].topic, &program->pool, loans(plan, index));
    const uint32_t joined = joined_loans(plan, index);
    if (status == TIDE_OK && joined > 0u)
      status = tide_local_topic_init(&program->callbacks[index].joined, &program->pool, joined);
  }
  return status;
}

static int subscribe(program_t *program, size_t index) {
  const size_t before = plan_predecessor(program->plan, index);
  program_callback_t *const callback = &program->callbacks[index];
  if (before == index) return TIDE_OK;
  callback->subscription = (tide_local_subscription_t){
      .callback = &callback->timer.callback, .queue = callback->queue, .depth = (uint16_t)program->plan->depth};
  tide_local_topic_t *const topic =
      program->plan->callbacks[index].join_count > 0u ? &callback->joined : &program->callbacks[before].topic;
  return tide_local_subscribe(topic, &callback->subscription);
}

static int add_lock(program_t *program, size_t index) {
  int status = tide_lock_init(&program->locks[index], &program->lock_set);
  for (size_t callback = 0; status == TIDE_OK && callback < program->plan->callback_count; callback++) {
    if (program->plan->locks[index].sections_ns[callback] == 0) continue;
    status = tide_lock_allow(&program->locks[index], &program->callbacks[callback].timer.callback);
  }
  return status;
}

static int add_locks(program_t *program) {
  if (program->plan->lock_count == 0u) return TIDE_OK;
  int status = tide_lock_set_init(&program->lock_set, program->world.platform, program->world.locks);
  for (size_t index = 0; status == TIDE_OK && index < program->plan->lock_count; index++) {
    status = add_lock(program, index);
  }
  return status;
}

static int add_chain(program_t *program, size_t index) {
  const chain_plan_t *const plan = &program->plan->chains[index];
  program_chain_t *const chain = &program->chains[index];
  const int64_t period_ns = program->plan->callbacks[plan->callbacks[0]].period_ns;
  chain->capacity = (size_t)(program->plan->duration_ns / period_ns) + 1u;
  chain->responses_ns = calloc(chain->capacity, sizeof *chain->responses_ns);
  return chain->responses_ns == NULL ? TIDE_ERROR_FULL : TIDE_OK;
}

int program_init(program_t *program, const plan_t *plan, const program_world_t *world) {
  program->plan = plan;
  program->world = *world;
  int status = add_executors(program);
  for (size_t index = 0; status == TIDE_OK && index < plan->callback_count; index++) {
    status = add_callback(program, index);
  }
  if (status == TIDE_OK) status = add_locks(program);
  if (status == TIDE_OK) status = add_topics(program);
  for (size_t index = 0; status == TIDE_OK && index < plan->callback_count; index++) status = subscribe(program, index);
  for (size_t index = 0; status == TIDE_OK && index < plan->chain_count; index++) status = add_chain(program, index);
  return status;
}

void program_start(program_t *program, int64_t start_ns) {
  program->start_ns = start_ns;
  for (size_t index = 0; index < program->plan->callback_count; index++) {
    program_callback_t *const callback = &program->callbacks[index];
    const int64_t period_ns = program->plan->callbacks[index].period_ns;
    if (period_ns == 0) continue;
    const callback_plan_t *const plan = &program->plan->callbacks[index];
    callback->grid_ns = start_ns + (int64_t)(draw(&callback->random) % ((uint64_t)program->plan->spread_ns + 1u));
    int64_t first_ns = callback->grid_ns + period_ns;
    if (plan->placed) first_ns = callback->grid_ns = start_ns + plan->offset_ns;
    (void)tide_timer_set_phase(&callback->timer, first_ns + lateness(callback));
  }
}

bool program_is_quiet(const program_t *program) {
  bool quiet = true;
  const uintptr_t state = lock(program);
  for (size_t index = 0; index < program->plan->callback_count; index++) {
    const tide_timer_t *const timer = &program->callbacks[index].timer;
    const bool releases = program->plan->callbacks[index].period_ns > 0 && !timer->canceled;
    quiet = quiet && !releases && timer->callback.pending == 0u && timer->callback.running == 0u;
  }
  unlock(program, state);
  return quiet;
}

void program_stop(program_t *program) {
  for (size_t index = 0; index < program->plan->executor_count; index++) {
    tide_executor_stop(&program->executors[index]);
  }
}

void program_free(program_t *program) {
  free(program->messages);
  for (size_t index = 0; index < PLAN_CHAINS; index++) free(program->chains[index].responses_ns);
}

/* ---- results ---- */

static void print_chain(const program_t *program, size_t index) {
  const chain_plan_t *const plan = &program->plan->chains[index];
  const program_chain_t *const chain = &program->chains[index];
  const size_t timer = plan->callbacks[0];
  printf("%s\n  {\"name\": \"%s\", \"period_ns\": %" PRId64 ", \"released\": %" PRIu64 ", \"skipped\": %" PRIu32
         ", \"lost\": %" PRIu64 ", \"responses_ns\": [",
         index == 0u ? "" : ",", plan->name, program->plan->callbacks[timer].period_ns, program->released[timer],
         program->callbacks[timer].timer.skipped, program->released[timer] - chain->completed);
  for (size_t sample = 0; sample < chain->completed; sample++) {
    printf("%s%" PRId64, sample == 0u ? "" : ", ", chain->responses_ns[sample]);
  }
  printf("]}");
}

void program_print(const program_t *program, const char *on, const char *const *violations, size_t violation_count) {
  const plan_t *const plan = program->plan;
  printf("{\"on\": \"%s\", \"policy\": \"%s\", \"duration_ns\": %" PRId64 ", \"seed\": %" PRIu64 ", \"executors\": [",
         on, plan_policy(plan->policy), plan->duration_ns, plan->seed);
  for (size_t index = 0; index < plan->executor_count; index++) {
    const tide_executor_counters_t *const counters = &program->executors[index].counters;
    printf("%s\n  {\"name\": \"%s\", \"lanes\": %zu, \"updates\": %" PRIu64 ", \"callbacks_run\": %" PRIu64 "}",
           index == 0u ? "" : ",", plan->executors[index].name, plan->executors[index].lanes, counters->set_updates,
           counters->callbacks_run);
  }
  printf("],\n \"chains\": [");
  for (size_t index = 0; index < plan->chain_count; index++) print_chain(program, index);
  printf("],\n \"violations\": [");
  for (size_t index = 0; index < violation_count; index++)
    printf("%s\"%s\"", index == 0u ? "" : ", ", violations[index]);
  printf("]}\n");
}
