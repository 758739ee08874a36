/* SPDX-License-Identifier: Apache-2.0 */
/* What chain_client is told on its command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tide/executor.h>
#include <tide/posix.h>
#include <tide/rclc.h>

typedef struct chain_options {
  const char *plan, *device;
  const char *trace; /* file that receives it; null: none */
  const char *udp;   /* port of the agent on this machine, in place of a device */
  uint32_t baud;
  size_t mtu_bytes;
  uint32_t key; /* of the client; 0: any */
  tide_policy_t policy;
  bool preemptive; /* a lane for each level */
  tide_send_t send;
  int64_t offset_ns;
  size_t domain;
  int cpu, link_cpu, priority, link_priority;
  int64_t heartbeat_delay_ns;
  int64_t budget_ns, budget_period_ns; /* of each lane; 0: none */
  bool hold[TIDE_LEVEL_MAXIMUM + 1];
  bool wait_for_start;
  int64_t granted_ns; /* of a callback beside its execution time; -1: whatever it takes */
  bool waits;         /* for execution times, in place of computing */
  bool stay;
} chain_options_t;

/* Ends the program after --help, and with 2 and one line after a word that it does not know. Strings are those of
 * `words`. */
chain_options_t chain_options_of(int count, char **words);
