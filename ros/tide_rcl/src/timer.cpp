// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/timer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "rcl/error_handling.h"
#include "rcl/time.h"
#include "tide/port.h"
#include "tide_rcl/error.h"

namespace tide_rcl {

namespace {

constexpr std::int64_t kLongestWithoutLookNs = 1000000000;
constexpr std::int64_t kServedInVainNs = 1000000;

rcl_clock_t *clock_of(const rcl_timer_t &timer) {
  rcl_clock_t *clock = nullptr;
  if (rcl_timer_clock(&timer, &clock) != RCL_RET_OK) rcl_reset_error();
  return clock;
}

bool is_canceled(const rcl_timer_t &timer) {
  bool canceled = true;
  if (rcl_timer_is_canceled(&timer, &canceled) != RCL_RET_OK) rcl_reset_error();
  return canceled;
}

bool is_simulated(rcl_clock_t *clock) {
  bool simulated = false;
  if (clock->type == RCL_ROS_TIME && rcl_is_enabled_ros_time_override(clock, &simulated) != RCL_RET_OK) {
    rcl_reset_error();
  }
  return simulated;
}

// False also for a timer that is canceled.
bool is_ready_in_rcl(const rcl_timer_t &timer) {
  bool ready = false;
  if (rcl_timer_is_ready(&timer, &ready) != RCL_RET_OK) rcl_reset_error();
  return ready;
}

// The owner of a kept timer resets it from threads of its own, and rcl has no lock for what it calls then. So rcl gets
// a number in place of a pointer: one that is gone finds nothing, and whoever disconnects waits for a reset under way.
struct Connected {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::unordered_map<std::uintptr_t, std::function<void()>> follow;
};

Connected &connected() {
  static auto *const all = new Connected;  // threads of the middleware outlive static objects
  return *all;
}

}  // namespace

void TimerEntity::connect() {
  const std::shared_ptr<const rcl_timer_t> timer = lock();
  if (timer == nullptr) return;
  const rcl_clock_t *clock = clock_of(*timer);
  steady_ = clock == nullptr || clock->type == RCL_STEADY_TIME;
  follow();
}

void TimerEntity::follow() noexcept {
  const std::shared_ptr<const rcl_timer_t> timer = lock();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (timer == nullptr) {
    disarm();
  } else {
    follow_locked(*timer);
  }
}

void TimerEntity::follow_locked(const rcl_timer_t &timer) noexcept {
  std::int64_t period_ns = 0;
  if (is_canceled(timer) || rcl_timer_get_period(&timer, &period_ns) != RCL_RET_OK) {
    disarm();
    return;
  }
  if (whose_ == Of::kOwner) period_ns = kLongestWithoutLookNs;  // it is followed after each run
  if (!steady_) {
    follow_clock_locked(timer, period_ns);
    return;
  }
  std::int64_t next_ns = 0;
  if (rcl_timer_get_next_call_time(&timer, &next_ns) == RCL_RET_OK && armed_for_ns() != next_ns) {
    arm_at(next_ns, period_ns);
  }
}

void TimerEntity::follow_clock_locked(const rcl_timer_t &timer, std::int64_t period_ns) noexcept {
  std::int64_t until_ns = 0;
  rcl_clock_t *clock = clock_of(timer);
  if (clock == nullptr || rcl_timer_get_time_until_next_call(&timer, &until_ns) != RCL_RET_OK) {
    rcl_reset_error();
    return;
  }
  if (whose_ == Of::kOwner || !is_simulated(clock)) {
    const std::int64_t now_ns = tide_platform_now_ns(tide_port_platform());
    arm_at(now_ns + std::clamp<std::int64_t>(until_ns, 0, kLongestWithoutLookNs), period_ns);
    return;
  }
  if (armed_for_ns() != TIDE_FOREVER) disarm();
  if (until_ns <= 0 && !is_ready()) notify();
}

// Also when it was reset after it had become ready.
bool TimerEntity::is_due(const rcl_timer_t &timer) const noexcept {
  std::int64_t next_ns = 0;
  if (!steady_) return is_ready_in_rcl(timer);
  return rcl_timer_get_next_call_time(&timer, &next_ns) == RCL_RET_OK && next_ns <= start_ns();
}

void TimerEntity::run() {
  std::shared_ptr<void> data;
  {
    const std::shared_ptr<const rcl_timer_t> timer = lock();
    const std::lock_guard<std::mutex> guard(mutex_);
    if (timer == nullptr) {
      disarm();
      return;
    }
    const bool called = is_due(*timer) && call(data);
    if (!called || whose_ == Of::kExecutor) follow_locked(*timer);
    if (!called) return;
  }
  fire(data);
}

Timer::Timer(rcl_timer_t *timer, std::function<void()> function) : timer_(timer), function_(std::move(function)) {}

// Shares nothing: the program keeps the timer.
std::shared_ptr<const rcl_timer_t> Timer::lock() const { return {std::shared_ptr<void>(), timer_}; }

bool Timer::call(std::shared_ptr<void> &data) {
  (void)data;
  const rcl_ret_t result = rcl_timer_call(timer_);
  if (result == RCL_RET_TIMER_CANCELED) {
    rcl_reset_error();
    return false;
  }
  check(result, "rcl_timer_call");
  return true;
}

void Timer::fire(const std::shared_ptr<void> &data) {
  (void)data;
  function_();
}

void Timer::connect() {
  TimerEntity::connect();
  check(rcl_timer_set_on_reset_callback(timer_, on_reset, this), "rcl_timer_set_on_reset_callback");
  rcl_clock_t *clock = clock_of(*timer_);
  if (clock == nullptr || clock->type != RCL_ROS_TIME) return;
  const rcl_jump_threshold_t every_jump = {true, {1}, {-1}};
  check(rcl_clock_add_jump_callback(clock, every_jump, on_jump, this), "rcl_clock_add_jump_callback");
}

void Timer::disconnect() noexcept {
  if (rcl_timer_set_on_reset_callback(timer_, nullptr, nullptr) != RCL_RET_OK) rcl_reset_error();
  rcl_clock_t *clock = clock_of(*timer_);
  if (clock == nullptr || clock->type != RCL_ROS_TIME) return;
  if (rcl_clock_remove_jump_callback(clock, on_jump, this) != RCL_RET_OK) rcl_reset_error();
}

void Timer::on_reset(const void *timer, std::size_t times) {
  (void)times;
  const_cast<Timer *>(static_cast<const Timer *>(timer))->follow();
}

void Timer::on_jump(const rcl_time_jump_t *jump, bool before, void *timer) {
  (void)jump;
  if (!before) static_cast<Timer *>(timer)->follow();
}

KeptTimer::KeptTimer(std::weak_ptr<const rcl_timer_t> timer, std::function<void()> serve)
    : TimerEntity(Of::kOwner), timer_(std::move(timer)), serve_(std::move(serve)) {}

// Nobody but its owner calls it.
bool KeptTimer::call(std::shared_ptr<void> &data) {
  (void)data;
  return true;
}

void KeptTimer::fire(const std::shared_ptr<void> &data) {
  (void)data;
  serve_();
  const std::shared_ptr<const rcl_timer_t> timer = lock();
  if (timer != nullptr && is_ready_in_rcl(*timer)) {
    arm_at(tide_platform_now_ns(tide_port_platform()) + kServedInVainNs, kLongestWithoutLookNs);
  } else {
    follow();
  }
}

void KeptTimer::connect() {
  {
    const std::lock_guard<std::mutex> lock(connected().mutex);
    number_ = ++connected().last;
    connected().follow.emplace(number_, [this] { follow(); });
  }
  TimerEntity::connect();
  const std::shared_ptr<const rcl_timer_t> timer = lock();
  if (timer == nullptr) return;
  check(rcl_timer_set_on_reset_callback(timer.get(), on_reset, reinterpret_cast<const void *>(number_)),
        "rcl_timer_set_on_reset_callback");
  follow();  // it may have been reset meanwhile
}

void KeptTimer::disconnect() noexcept {
  const std::shared_ptr<const rcl_timer_t> timer = lock();
  if (timer != nullptr && rcl_timer_set_on_reset_callback(timer.get(), nullptr, nullptr) != RCL_RET_OK) {
    rcl_reset_error();
  }
  const std::lock_guard<std::mutex> lock(connected().mutex);
  connected().follow.erase(number_);
}

void KeptTimer::on_reset(const void *number, std::size_t times) {
  (void)times;
  const std::lock_guard<std::mutex> lock(connected().mutex);
  const auto found = connected().follow.find(reinterpret_cast<std::uintptr_t>(number));
  if (found != connected().follow.end()) found->second();
}

}  // namespace tide_rcl
