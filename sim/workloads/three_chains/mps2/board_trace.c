/* SPDX-License-Identifier: Apache-2.0 */
#include "board_trace.h"

#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"
#include "tide/trace.h"
#include "world.h"

enum { RECORDS = 256, LANES = 8, DAEMON = 0, RINGS = LANES + 1, BLOCKS_A_TURN = 4, PERIOD_MS = 20 };

static tide_trace_ring_t rings[RINGS];
static tide_trace_record_t records[RINGS][RECORDS];
static tide_trace_instances_t instances;

static int tell(void *context, const uint8_t *bytes, size_t count) {
  (void)context;
  world_tell(WORLD_TRACE, tide_port_platform()->now_ns(NULL), bytes, count);
  return TIDE_OK;
}

static void drain(uint32_t most_blocks) {
  for (size_t ring = 0; ring < RINGS; ring++) (void)tide_trace_drain(&rings[ring], most_blocks, tell, NULL);
}

static void on_turn(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer, (void)since_last_call_ns;
  drain(BLOCKS_A_TURN);
}

rcl_ret_t board_trace_create_timer(rcl_timer_t *timer, rclc_support_t *support) {
  return rclc_timer_init_default(timer, support, RCL_MS_TO_NS(PERIOD_MS), on_turn);
}

void board_trace_attach(rclc_support_t *support, rclc_executor_t *executor) {
  for (size_t ring = 0; ring < RINGS; ring++)
    (void)tide_trace_init(&rings[ring], records[ring], RECORDS, &instances, 0u, (uint16_t)ring);
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  for (size_t lane = 0; lane < config->lane_count && lane < LANES; lane++)
    config->lanes[lane].trace = &rings[1u + lane];
  tide_rclc_support_session(support)->daemon.trace = &rings[DAEMON];
}

void board_trace_instance(tide_priority_t priority, uint32_t chain, uint32_t index) {
  tide_trace_set_instance(&rings[DAEMON], priority, (chain + 1u) << 24 | index);
}

void board_trace_drain(void) { drain(UINT32_MAX); }
