/* SPDX-License-Identifier: Apache-2.0 */
#include "wake_up_lead.h"

static int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

void tide_wake_up_lead_init(tide_wake_up_lead_t *lead) {
  lead->past_ns = 0;
  lead->present_ns = INT64_MAX;
  lead->count = 0u;
}

int64_t tide_wake_up_lead_of(const tide_wake_up_lead_t *lead, int64_t pause_ns, int64_t limit_ns) {
  return lesser(lesser(lead->past_ns, lead->present_ns), lesser(pause_ns / 2, limit_ns));
}

void tide_wake_up_lead_learn(tide_wake_up_lead_t *lead, int64_t late_ns) {
  lead->present_ns = lesser(lead->present_ns, late_ns);
  if (++lead->count < WAKE_UP_WINDOW) return;
  lead->past_ns = lead->present_ns;
  lead->present_ns = INT64_MAX;
  lead->count = 0u;
}
