/* SPDX-License-Identifier: Apache-2.0 */
/* tide's additions to the rclc interface. A program that uses none of these additions runs with the executor policy
 * tide and one priority. Chains and priorities make a chain's latency independent of the rest of the program.
 *
 * Set-up calls are made from one thread, before the executor spins, unless said otherwise. Any thread may at any time
 * call rcl_publish, rcl_trigger_guard_condition, rmw_uros_ping_agent, rmw_uros_sync_session and rmw_uros_epoch_*.
 *
 * Several executors, several lanes. Executors of one support may spin in different threads, and an executor may have
 * several lanes (tide_rclc_executor_set_lanes). Only the lane that runs a subscription's callback processes the
 * subscription's received frames. While that lane is busy, these frames wait, and reliable frames are not acknowledged.
 * So the agent sends no more frames than the slots hold. Frames that belong to no lane (answers to requests,
 * subscriptions in no executor) are processed by any lane that is not asleep. Subscriptions of the same level share a
 * stream of the agent, which keeps its order. So a frame of one executor may wait behind a frame of the same level for
 * another executor. Give their chains different levels if that matters, and spin every executor that has subscriptions.
 *
 * Sharing data between lanes. Callbacks of different lanes run at the same time or preempt each other at any
 * instruction. Callbacks of one lane never do, and no callback overlaps itself. So with a lane for each level, data
 * used only by callbacks of one level needs no protection. Data that callbacks of several lanes use needs a topic, C11
 * atomics, or a lock with priority inheritance (POSIX: PTHREAD_PRIO_INHERIT; hold it for microseconds only, because a
 * more urgent lane may have to wait for the lock). The runtime's own calls are safe from every lane: rcl_publish (even
 * on the same publisher; the message stays the caller's), rcl_timer_* except init and fini,
 * rcl_trigger_guard_condition, rmw_uros_*. The message passed when a subscription is added belongs to its callback.
 * rclc_executor_remove_* and the fini of a timer, subscription or guard condition return an error (TIDE_ERROR_STATE)
 * while a lane runs the callback, even when called from the callback. To stop a timer from its own callback, cancel
 * it. */
#ifndef TIDE_RCLC_H
#define TIDE_RCLC_H

#include <rclc/executor.h>
#include <rclc/rclc.h>

#include "tide/executor.h"
#include "tide/session.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_send {
  TIDE_SEND_ASYNCHRONOUS, /* default: publish copies into the daemon's pool and returns */
  TIDE_SEND_STOCK, /* like the stock library: a best-effort publish returns at once. A reliable publish waits for all
                      acknowledgments, at most rmw_uros_set_publisher_session_timeout, and meanwhile stores received
                      frames */
  TIDE_SEND_STOCK_BLOCKING /* like the stock library on a UART whose driver waits for its DMA: a best-effort publish
                              also waits until the frame has left the wire */
} tide_send_t;

/* Set the executor's policy, before handles are added. Default: TIDE_POLICY_TIDE. The other policies are baselines.
 * TIDE_POLICY_BATCH behaves like rclc, with one lane. TIDE_POLICY_READYSET behaves like rclcpp's executors, with any
 * number of lanes of one level, the default trigger and handles ON_NEW_DATA (TIDE_ERROR_UNSUPPORTED otherwise). */
rcl_ret_t tide_rclc_executor_set_policy(rclc_executor_t *executor, tide_policy_t policy);
/* Set the lanes of an executor, before handles are added; needs TIDE_EXECUTOR_LANES of <tide/pools.h>. Pass the lanes
 * with rising least_level; settings are copied. rclc_executor_spin then starts a thread for each lane. All threads have
 * their scheduling before any callback runs. The spin returns when tide_executor_stop, called with the executor's core,
 * has ended all threads.
 *
 *   static const tide_lane_settings_t lanes[] = {
 *       {.scheduling = TIDE_SCHEDULING_FIFO, .priority = 10},                    everything else
 *       {.scheduling = TIDE_SCHEDULING_FIFO, .priority = 30, .least_level = 2}}; chains of level 2 and above
 *
 * For preemption, give the lanes rising priorities on one processor, below the priority of the link's thread. An urgent
 * timer or frame then waits for nothing less urgent, except the runtime's critical sections (microseconds; a mutex with
 * priority inheritance). If the system refuses real-time scheduling, rclc_executor_spin fails with
 * TIDE_ERROR_NOT_PERMITTED before any callback has run. Run as root or with CAP_SYS_NICE, raise the limit (ulimit -r,
 * or rtprio in /etc/security/limits.conf), or set may_run_normally and accept what its comment says.
 *
 * Requires the default trigger, handles ON_NEW_DATA and a policy other than batch (TIDE_ERROR_UNSUPPORTED otherwise).
 * With several lanes rclc_executor_spin_some and spin_period return TIDE_ERROR_UNSUPPORTED, because one caller cannot
 * run all lanes. With one lane these two calls run the lane in the calling thread. TIDE_ERROR_CAPACITY_LANES: more than
 * TIDE_EXECUTOR_LANES. */
rcl_ret_t tide_rclc_executor_set_lanes(rclc_executor_t *executor, const tide_lane_settings_t *lanes, size_t count);
/* The lane whose scheduling the system refused in the last rclc_executor_spin; -1: no lanes were set. */
int tide_rclc_executor_refused_lane(const rclc_executor_t *executor);
/* Callback groups, as rclcpp's: with several lanes, at most one callback of an exclusive group runs at a time. Other
 * callbacks of the group wait in priority order and block no lane. Callbacks of a reentrant group may overlap even
 * themselves. The runs of a subscription then share its one message: use local delivery, or one lane. A callback
 * without a group may overlap all callbacks except itself. With one lane groups have no effect. See tide_group_t for
 * cost.
 *
 *   tide_callback_group_t sensors = {NULL};
 *   tide_rclc_callback_group_init(&sensors, TIDE_GROUP_EXCLUSIVE);
 *   tide_rclc_timer_set_group(&timer, &sensors);              before rclc_executor_add_timer
 *
 * Memory: TIDE_GROUPS of <tide/pools.h>. Causes of an error (tide_rclc_last_status): TIDE_ERROR_CAPACITY_GROUPS: more
 * than TIDE_GROUPS. TIDE_ERROR_STATE: set_group of a handle that is already in an executor, or fini while callbacks of
 * the group are in an executor. TIDE_ERROR_EXISTS: rclc_executor_add_* of a handle whose group has callbacks in another
 * executor. TIDE_ERROR_UNSUPPORTED: a runtime without lanes. set_group with a null group takes the callback out of its
 * group. */
struct tide_group_handle;
typedef struct tide_callback_group {
  struct tide_group_handle *impl;
} tide_callback_group_t;
rcl_ret_t tide_rclc_callback_group_init(tide_callback_group_t *group, tide_group_kind_t kind);
rcl_ret_t tide_rclc_callback_group_fini(tide_callback_group_t *group);
rcl_ret_t tide_rclc_timer_set_group(rcl_timer_t *timer, const tide_callback_group_t *group);
rcl_ret_t tide_rclc_subscription_set_group(rcl_subscription_t *subscription, const tide_callback_group_t *group);
rcl_ret_t tide_rclc_guard_condition_set_group(rcl_guard_condition_t *guard, const tide_callback_group_t *group);

/* How every publisher of this support sends. */
rcl_ret_t tide_rclc_support_set_send(rclc_support_t *support, tide_send_t send);

/* Delay (at most 1,000 ms) of the HEARTBEAT that requests a missing acknowledgment. It counts from the end of the last
 * frame that the level can send now. Agents acknowledge without a request, so the default (-1: measured; 20 ms before
 * the first measurement) costs nothing while nothing is lost. 0 (at once, as PoDS) detects a loss soonest, but costs a
 * HEARTBEAT and its answer on the wire for every message. Any thread may call it at any time. */
rcl_ret_t tide_rclc_support_set_heartbeat_delay(rclc_support_t *support, int64_t delay_ns);
/* Whether small reliable samples share a frame while they wait for the agent's acknowledgments (pack in
 * tide_transmitter_config_t). Off by default; useful for programs that send more than sixteen small samples per round
 * trip. Samples then reach ROS 2 in bursts, and a reader with a small depth may miss some. Do not use it on serial
 * lines, where more urgent frames would wait for the longer frames. TIDE_ERROR_UNSUPPORTED: built with TIDE_PACKING=0.
 * Any thread may call it at any time. */
rcl_ret_t tide_rclc_support_set_packing(rclc_support_t *support, bool pack);
/* Whether all less urgent levels are held back while a reliable message of this level waits for its acknowledgment, as
 * PoDS does for all levels. A retransmission of this level then never waits for a less urgent frame, but less urgent
 * levels wait a round trip for each reliable message of this level. Default: off for all levels; then the wire is never
 * idle while a frame could leave. Any thread may call it at any time. */
rcl_ret_t tide_rclc_support_hold_level(rclc_support_t *support, uint8_t level, bool hold);

/* The session of the support, for its state, counters and time. Valid until rclc_support_fini. */
tide_session_t *tide_rclc_support_session(rclc_support_t *support);
/* The runtime's executor inside an rclc executor, for its counters and hooks. */
tide_executor_t *tide_rclc_executor_core(rclc_executor_t *executor);
/* The runtime's callback of a handle; null if the handle is in no executor. */
tide_callback_t *tide_rclc_timer_callback(const rcl_timer_t *timer);
tide_callback_t *tide_rclc_subscription_callback(const rcl_subscription_t *subscription);
tide_callback_t *tide_rclc_guard_condition_callback(const rcl_guard_condition_t *guard);

/* Explicit priorities. The level (TIDE_PRIORITY_LEVEL) of a subscription selects the stream on which its messages
 * arrive; the level of a publisher selects the stream on which they are sent. */
rcl_ret_t tide_rclc_timer_set_priority(rcl_timer_t *timer, tide_priority_t priority);
rcl_ret_t tide_rclc_subscription_set_priority(rcl_subscription_t *subscription, tide_priority_t priority);
rcl_ret_t tide_rclc_publisher_set_priority(rcl_publisher_t *publisher, tide_priority_t priority);

/* How long rcl_publish may wait for a free buffer (node) of the pool. Default: 1,000 ms for a reliable publisher, 0 (no
 * wait) for a best-effort one.
 */
rcl_ret_t tide_rclc_publisher_set_wait_ms(rcl_publisher_t *publisher, int32_t wait_ms);

/* Chains: after tide_chain_init, add the chain's handles in the order of the data flow, each after it was added to its
 * executor. */
rcl_ret_t tide_rclc_chain_add_timer(tide_chain_t *chain, rcl_timer_t *timer);
rcl_ret_t tide_rclc_chain_add_publisher(tide_chain_t *chain, rcl_publisher_t *publisher);
rcl_ret_t tide_rclc_chain_add_subscription(tide_chain_t *chain, rcl_subscription_t *subscription);
/* Adds the first callback of a chain that begins with an event; an interrupt triggers the guard condition. Several
 * triggers before the callback begins count as one. A program whose events come in bursts counts them, and triggers
 * again while some are not handled. */
rcl_ret_t tide_rclc_chain_add_guard_condition(tide_chain_t *chain, rcl_guard_condition_t *guard);

/* Absolute monotonic time of the next expiry. */
rcl_ret_t tide_rclc_timer_set_phase(rcl_timer_t *timer, int64_t first_expiry_ns);

/* The status (tide/status.h) behind the last rcl_ret_t, of any thread, that was not RCL_RET_OK. */
int tide_rclc_last_status(void);

/* Reach the agent by a serial device: device path (the string must outlive the support) and baud rate. The UDP form is
 * the stock rmw_uros_options_set_udp_address. */
rmw_ret_t tide_rclc_options_set_serial(rmw_init_options_t *options, const char *device, uint32_t baud);
/* POSIX: the priority of the link's thread, see tide_link_address_t.thread_priority; default 0, the highest.
 * tide_port_link_counters of the support's session reports the actual priority. */
rmw_ret_t tide_rclc_options_set_link_priority(rmw_init_options_t *options, int priority);
/* Largest message of the link in bytes, from 68 to TIDE_MTU_BYTES, the default; RMW_RET_INVALID_ARGUMENT otherwise. */
rmw_ret_t tide_rclc_options_set_mtu(rmw_init_options_t *options, size_t bytes);

TIDE_EXTERN_C_END
#endif
