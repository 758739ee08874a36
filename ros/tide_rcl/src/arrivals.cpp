// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/arrivals.h"

#include <algorithm>

namespace tide_rcl {

std::size_t Arrivals::depth_of(const rmw_qos_profile_t *qos) noexcept {
  return qos != nullptr && qos->history == RMW_QOS_POLICY_HISTORY_KEEP_LAST ? qos->depth : 0;
}

void Arrivals::on_arrival(const void *arrivals, std::size_t times) {
  const_cast<Arrivals *>(static_cast<const Arrivals *>(arrivals))->arrived(times);
}

void Arrivals::arrived(std::size_t times) noexcept {
  if (depth_ == 0) {
    notify(times);
    return;
  }
  std::size_t waiting = waiting_.load();
  std::size_t more = 0;
  do {
    more = std::min(times, depth_ - std::min(depth_, waiting));
  } while (more > 0 && !waiting_.compare_exchange_weak(waiting, waiting + more));
  notify(more);
}

// Counted down before it takes: what arrives from now on is told again. It may have been removed and added since it was
// chosen, and then nothing waits.
void Arrivals::run() {
  std::size_t waiting = waiting_.load();
  while (waiting > 0 && !waiting_.compare_exchange_weak(waiting, waiting - 1)) {
  }
  take();
}

}  // namespace tide_rcl
