/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about the agent itself: ping and time synchronisation. */
#include "internal.h"
#include "rmw_microros/rmw_microros.h"

#define SYNC_ATTEMPTS 4
#define SYNC_SLICE_LEAST_MS 50

/* Both answers are handled where they are received, so waiting for them takes no frame away from an executor. */
static uint32_t answers(tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  const uint32_t count = support->session.ping_answers;
  tide_platform_exit(platform, critical);
  return count;
}

/* Another thread may have asked again before this one looks: so what counts is whether there was an answer since. */
static bool is_pinged(tide_support_t *support, void *context) {
  const uint32_t *before = context;
  return answers(support) != *before;
}

static int ping(tide_support_t *support, int timeout_ms, uint8_t attempts) {
  int status = TIDE_ERROR_TIMEOUT;
  for (uint8_t i = 0; i < attempts && status != TIDE_OK; i++) {
    uint32_t before = answers(support);
    status = tide_session_ping(&support->session);
    if (status == TIDE_OK) {
      status = tide_compat_wait(support, is_pinged, &before, tide_compat_deadline(timeout_ms), false);
    }
  }
  return status;
}

static uint32_t exchanges(tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  const uint32_t count = support->session.time_sync.exchanges;
  tide_platform_exit(platform, critical);
  return count;
}

static bool is_synchronised(tide_support_t *support, void *context) {
  const uint32_t *before = context;
  return exchanges(support) != *before;
}

/* An exchange that is lost is tried again within the time. */
static int synchronise(tide_support_t *support, int timeout_ms) {
  const tide_platform_t *platform = tide_port_platform();
  const int64_t deadline_ns = tide_compat_deadline(timeout_ms);
  const int64_t slice_ms =
      timeout_ms < SYNC_ATTEMPTS * SYNC_SLICE_LEAST_MS ? SYNC_SLICE_LEAST_MS : timeout_ms / SYNC_ATTEMPTS;
  uint32_t before = exchanges(support);
  int status = TIDE_ERROR_TIMEOUT;
  do {
    const int64_t slice_ns = tide_compat_deadline(slice_ms);
    status = tide_session_synchronise(&support->session);
    if (status != TIDE_OK) return status;
    status =
        tide_compat_wait(support, is_synchronised, &before, slice_ns < deadline_ns ? slice_ns : deadline_ns, false);
  } while (status == TIDE_ERROR_TIMEOUT && tide_platform_now_ns(platform) < deadline_ns);
  return status;
}

rmw_ret_t rmw_uros_ping_agent_options(const int timeout_ms, const uint8_t attempts, rmw_init_options_t *rmw_options) {
  if (timeout_ms < 0 || attempts == 0 || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_support_t *support = tide_compat_support();
  int status = TIDE_OK;
  if (support != NULL) {
    status = ping(support, timeout_ms, attempts);
  } else {
    support = tide_pools.support;
    status = tide_compat_open(support, rmw_options);
    if (status == TIDE_OK) {
      status = ping(support, timeout_ms, attempts);
      tide_compat_close(support);
    }
  }
  if (status == TIDE_OK) return RMW_RET_OK;
  tide_compat_result(status);
  return RMW_RET_ERROR;
}

rmw_ret_t rmw_uros_ping_agent(const int timeout_ms, const uint8_t attempts) {
  rmw_init_options_t options = tide_compat_default_options();
  return rmw_uros_ping_agent_options(timeout_ms, attempts, &options);
}

rmw_ret_t rmw_uros_sync_session(const int timeout_ms) {
  tide_support_t *support = tide_compat_support();
  if (support == NULL) return tide_compat_result(TIDE_ERROR_STATE);
  if (timeout_ms < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(synchronise(support, timeout_ms));
}

bool rmw_uros_epoch_synchronized(void) {
  tide_support_t *support = tide_compat_support();
  return support != NULL && exchanges(support) > 0;
}

int64_t rmw_uros_epoch_nanos(void) {
  tide_support_t *support = tide_compat_support();
  if (support == NULL) return 0;
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  const tide_time_sync_t sync = support->session.time_sync;
  tide_platform_exit(platform, critical);
  return sync.exchanges > 0 ? tide_platform_now_ns(platform) + sync.offset_ns : 0;
}

int64_t rmw_uros_epoch_millis(void) { return rmw_uros_epoch_nanos() / 1000000; }
