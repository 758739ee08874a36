// SPDX-License-Identifier: Apache-2.0
// Spinning: by lanes, or one thread alone that does the rounds of all lanes, the most urgent first.
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tide/port.h"
#include "tide/status.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

namespace {

std::int64_t deadline_after(std::int64_t now_ns, std::chrono::nanoseconds duration) {
  const std::int64_t length_ns = duration.count();
  return length_ns < 0 || length_ns > TIDE_FOREVER - now_ns ? TIDE_FOREVER : now_ns + length_ns;
}

// Which of its settings the system does not take, as far as that can be told.
std::string refused_setting(const tide_lane_settings_t &settings, int status) {
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  if (status == TIDE_ERROR_ARGUMENT && settings.processor != 0) {
    const std::string cpu = "cpu " + std::to_string(settings.processor - 1);
    if (settings.processor <= processors) return cpu + " is none of those that this process may use";
    return cpu + ": this machine has processors 0 to " + std::to_string(processors - 1);
  }
  const std::string priority = std::to_string(settings.priority);
  std::string what;
  if (settings.scheduling == TIDE_SCHEDULING_FIFO) what = "fifo " + priority + ": ";
  if (settings.scheduling == TIDE_SCHEDULING_ROUND_ROBIN) what = "rr " + priority + ": ";
  if (settings.scheduling == TIDE_SCHEDULING_DEADLINE) what = "deadline: ";
  if (settings.scheduling == TIDE_SCHEDULING_SPORADIC) what = "budget with fifo " + priority + ": ";
  return what + tide_status_text(status);
}

[[noreturn]] void refuse_lane(const Lane &lane, int status) {
  const std::string text = "lane '" + lane.name + "': " + refused_setting(lane.settings, status);
  if (status == TIDE_ERROR_NOT_PERMITTED) throw std::system_error(EPERM, std::generic_category(), text);
  throw std::runtime_error(text);
}

}  // namespace

// False: may_spin says no. end_spin has to follow either way.
bool Engine::begin_spin(bool by_lanes) {
  {
    const std::lock_guard<std::mutex> lock(spin_mutex_);
    if (spinning_.load()) throw std::runtime_error("the executor is already spinning");
    spinning_.store(true);
    cancelled_.store(false);
    by_lanes_ = by_lanes;
    failure_ = nullptr;
    alone_.store(!by_lanes);
    __atomic_store_n(&executor_.stopped, false, __ATOMIC_RELEASE);  // the stop of the spin before
  }
  return !options_.may_spin || options_.may_spin();
}

void Engine::end_spin() {
  std::exception_ptr failure;
  {
    const std::lock_guard<std::mutex> lock(spin_mutex_);
    spinning_.store(false);
    alone_.store(false);
    failure = std::exchange(failure_, nullptr);
  }
  let_go_of_removed();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Engine::cancel_locked() noexcept {
  if (!spinning_.load()) return;
  cancelled_.store(true);
  if (by_lanes_) tide_executor_stop(&executor_);
  wake_alone();
}

void Engine::cancel() noexcept {
  const std::lock_guard<std::mutex> lock(spin_mutex_);
  cancel_locked();
}

// True: it is the first of the spin.
bool Engine::fail(std::exception_ptr exception) noexcept {
  const std::lock_guard<std::mutex> lock(spin_mutex_);
  const bool first = failure_ == nullptr;
  if (first) {
    failure_ = std::move(exception);
  } else {
    exceptions_lost_++;
  }
  cancel_locked();
  return first;
}

void Engine::wake_alone() noexcept {
  if (alone_.load()) platform_->event_set(platform_->context, &alone_event_);
}

// One lane that asks the system for nothing is the thread that spins.
bool Engine::is_thread_of_spinner() const {
  const tide_lane_settings_t &settings = lanes_.front().settings;
  return lanes_.size() == 1 && settings.scheduling == TIDE_SCHEDULING_INHERIT && settings.processor == 0;
}

void Engine::spin_lane(std::size_t lane) noexcept {
  while (!cancelled_.load() && round(lane, TIDE_FOREVER) >= 0) {
  }
}

void Engine::spin_lanes() {
  if (is_thread_of_spinner()) {
    spin_lane(0);
    return;
  }
  std::size_t refused = 0;
  const auto run = [](void *context, std::size_t index) { static_cast<Engine *>(context)->spin_lane(index); };
  const int status = tide_port_run_lanes(lanes_.data(), lanes_.size(), run, this, &refused);
  if (status == TIDE_OK) return;
  try {
    refuse_lane(options_.lanes[refused], status);
  } catch (...) {
    (void)fail(std::current_exception());
  }
}

void Engine::spin() {
  if (begin_spin(true)) spin_lanes();
  end_spin();
}

bool Engine::run_one(std::int64_t deadline_ns) {
  for (;;) {
    for (const std::size_t lane : by_urgency_) {
      if (round(lane, 0) > 0) return true;
    }
    if (cancelled_.load() || now_ns() >= deadline_ns) return false;
    const std::int64_t until_ns = std::min(deadline_ns, tide_executor_next_expiry_ns(&executor_));
    (void)platform_->event_wait(platform_->context, &alone_event_, until_ns);
    if (cancelled_.load()) return false;
  }
}

void Engine::spin_once(std::chrono::nanoseconds timeout) {
  if (begin_spin(false)) (void)run_one(deadline_after(now_ns(), timeout));
  end_spin();
}

void Engine::spin_while_ready(std::chrono::nanoseconds max_duration, bool exhaustive) {
  const std::int64_t now = now_ns();
  const std::int64_t end_ns = max_duration.count() == 0 ? TIDE_FOREVER : deadline_after(now, max_duration);
  std::size_t left = exhaustive ? SIZE_MAX : tide_executor_count_starts(&executor_, now);
  while (left > 0 && !cancelled_.load() && run_one(0) && now_ns() < end_ns) left--;
}

void Engine::spin_some(std::chrono::nanoseconds max_duration) {
  if (begin_spin(false)) spin_while_ready(max_duration, false);
  end_spin();
}

void Engine::spin_all(std::chrono::nanoseconds max_duration) {
  if (max_duration.count() < 0) throw std::invalid_argument("spin_all: max_duration is negative");
  if (begin_spin(false)) spin_while_ready(max_duration, true);
  end_spin();
}

}  // namespace tide_rcl
