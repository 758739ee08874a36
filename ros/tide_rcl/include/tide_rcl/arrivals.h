// SPDX-License-Identifier: Apache-2.0
// What becomes ready because something arrived that waits in a queue of the middleware.
#pragma once

#include <atomic>
#include <cstddef>

#include "rmw/types.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

// A queue that keeps the last `depth` lets the oldest go: there never is more to run for than its depth, however many
// arrivals were told while the callback waited for its turn. So a flood leaves no backlog of runs that find nothing.
class Arrivals : public Entity {
 public:
  // From the middleware's thread.
  void arrived(std::size_t times) noexcept;

 protected:
  // depth 0: the queue keeps all.
  Arrivals(tide_callback_kind_t kind, std::size_t depth) noexcept : Entity(kind), depth_(depth) {}
  static std::size_t depth_of(const rmw_qos_profile_t *qos) noexcept;
  static void on_arrival(const void *arrivals, std::size_t times);  // an rcl_event_callback_t

  void run() final;
  virtual void take() = 0;  // the next that waits, if there is one, and runs the program's function with it
  void connect() override { waiting_.store(0); }

 private:
  std::size_t depth_;
  std::atomic<std::size_t> waiting_{0};  // notified, and not run yet
};

}  // namespace tide_rcl
