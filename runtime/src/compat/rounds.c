/* SPDX-License-Identifier: Apache-2.0 */
/* Logical execution time: what came before a round is taken before its first callback, what the callbacks send leaves
 * when the last one has ended. Only programs that ask for it have this file. */
#include "internal.h"
#include "rclc/executor.h"

/* Of the thread that runs a round. Where threads have no variables of their own, tasks that send meanwhile wait for the
 * end of the round, too. */
#if TIDE_SOCKETS
static _Thread_local tide_executor_handle_t *current;
#else
static tide_executor_handle_t *current;
#endif

/* ---- outputs ---- */

/* The most urgent first, others in the order in which they were written. */
static int keep(tide_support_t *support, tide_write_t *write) {
  tide_executor_handle_t *executor = current;
  if (executor == NULL || executor->rounds == NULL || executor->support != support || write->cdr.status != TIDE_OK) {
    return tide_session_write_end(write);
  }
  tide_node_t *node = write->node;
  tide_node_t **place = &executor->kept;
  while (*place != NULL && (*place)->priority >= node->priority) place = &(*place)->next_in_stream;
  node->length = (uint32_t)write->cdr.position;
  node->resend = write->stream; /* free for the writer's use until the node is submitted */
  node->next_in_stream = *place;
  *place = node;
  write->node = NULL;
  return TIDE_OK;
}

static int let_go(tide_support_t *support, tide_node_t *node) {
  tide_write_t write;
  write.session = &support->session;
  write.node = node;
  write.stream = (uint8_t)node->resend;
  tide_cdr_writer(&write.cdr, node->bytes, node->capacity);
  write.cdr.position = node->length;
  node->resend = 0;
  node->next_in_stream = NULL;
  return tide_session_write_end(&write);
}

static void end_round(tide_executor_handle_t *executor) {
  if (current == executor) current = NULL;
  if (executor->support == NULL) executor->kept = NULL; /* the session has ended, and its pool with it */
  while (executor->kept != NULL) {
    tide_node_t *node = executor->kept;
    executor->kept = node->next_in_stream;
    const int status = let_go(executor->support, node);
    if (status != TIDE_OK) (void)tide_compat_result(status);
  }
}

/* ---- inputs ---- */

static void call(rclc_executor_handle_t *handle, const void *message) {
  if (handle->type == RCLC_SUBSCRIPTION_WITH_CONTEXT) {
    handle->subscription_callback_with_context(message, handle->callback_context);
  } else {
    handle->subscription_callback(message);
  }
}

static void execute_taken(tide_callback_t *callback, void *context) {
  (void)callback;
  rclc_executor_handle_t *handle = context;
  call(handle, handle->data);
}

/* Its message could not be read. */
static void execute_without(tide_callback_t *callback, void *context) {
  (void)callback;
  rclc_executor_handle_t *handle = context;
  if (handle->invocation == ALWAYS) call(handle, NULL);
}

/* What came after the round began is for the next one. */
static void execute_early(tide_callback_t *callback, void *context) {
  rclc_executor_handle_t *handle = context;
  tide_subscription_handle_t *subscription = handle->impl;
  const bool waiting =
      subscription->reader.count > 0 || (subscription->local != NULL && subscription->local->waiting(subscription) > 0);
  if (waiting) tide_executor_notify(callback);
  execute_without(callback, context);
}

static void take(tide_callback_t *callback) {
  rclc_executor_handle_t *handle = callback->context;
  if (__atomic_load_n(&callback->pending, __ATOMIC_RELAXED) == 0) {
    callback->execute = execute_early;
    return;
  }
  const rcl_ret_t result = tide_compat_take(handle->impl, handle->data, NULL);
  callback->execute = result == RCL_RET_OK ? execute_taken : execute_without;
}

static bool begin_round(tide_callback_t *const *callbacks, size_t count, void *object) {
  tide_executor_handle_t *executor = object;
  if (!tide_compat_ask_program(callbacks, count, executor)) return false;
  for (size_t i = 0; i < count; i++) {
    if (callbacks[i]->kind == TIDE_CALLBACK_SUBSCRIPTION) take(callbacks[i]);
  }
  current = executor;
  return true;
}

static void take_at_once(tide_executor_handle_t *executor) {
  for (size_t i = 0; i < executor->core.count; i++) {
    tide_callback_t *callback = executor->core.config.callbacks[i];
    if (callback->kind == TIDE_CALLBACK_SUBSCRIPTION) callback->execute = tide_compat_execute_subscription;
  }
}

/* ---- choice ---- */

static const tide_rounds_t rounds = {begin_round, end_round};

rcl_ret_t rclc_executor_set_semantics(rclc_executor_t *executor, rclc_executor_semantics_t semantics) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || semantics > RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (current == handle && handle->rounds != NULL) return tide_compat_result(TIDE_ERROR_STATE);
  handle->rounds = semantics == RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME ? &rounds : NULL;
  const rcl_ret_t result = rclc_executor_set_trigger(executor, handle->trigger, handle->trigger_object);
  if (result != RCL_RET_OK) handle->rounds = NULL;
  handle->core.all_frames_first = handle->rounds != NULL;
  if (handle->rounds == NULL) take_at_once(handle);
  handle->support->keep = keep; /* stays: another executor of the support may use it */
  return result;
}
