// SPDX-License-Identifier: Apache-2.0
// Timers of rcl in the engine's timer_list. rcl says when the next expiry is, the engine waits for it: a timer costs
// nothing until it is due, however many there are.
//
// A timer on the steady clock starts when its lane chooses it, at its time or after, never before. Expiries that pass
// unseen are skipped and the grid is kept, as rcl does. On other clocks time can jump: with simulated time a timer
// looks at its clock when that is set and at no other time; otherwise at its expiry, and at the latest a second after
// its last look.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "rcl/timer.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

// A timer of whoever: of rcl below, of rclcpp in tide_rclcpp.
class TimerEntity : public Entity {
 protected:
  enum class Of {
    kExecutor,  // which calls it, and hears when its clock jumps
    kOwner      // which calls it or sets it anew when it is served, and keeps its clock
  };
  explicit TimerEntity(Of whose = Of::kExecutor) noexcept : Entity(TIDE_CALLBACK_TIMER), whose_(whose) {}
  // Null when it is gone.
  [[nodiscard]] virtual std::shared_ptr<const rcl_timer_t> lock() const = 0;
  // rcl_timer_call, with what fire is given; false: canceled, and fire is not called.
  virtual bool call(std::shared_ptr<void> &data) = 0;
  virtual void fire(const std::shared_ptr<void> &data) = 0;

  void run() final;
  void connect() override;
  // Its reset, or a jump of its clock: look when it is due.
  void follow() noexcept;

 private:
  [[nodiscard]] bool is_due(const rcl_timer_t &timer) const noexcept;
  void follow_locked(const rcl_timer_t &timer) noexcept;
  void follow_clock_locked(const rcl_timer_t &timer, std::int64_t period_ns) noexcept;

  Of whose_;
  std::mutex mutex_;  // of the timer's state in rcl and here, which have to agree
  bool steady_ = true;
};

// A timer of plain rcl, which outlives its place in the engine. function gets no message; rcl's own callback is not
// used. Add and remove it while nobody sets its clock.
class Timer final : public TimerEntity {
 public:
  Timer(rcl_timer_t *timer, std::function<void()> function);

 private:
  [[nodiscard]] std::shared_ptr<const rcl_timer_t> lock() const override;
  bool call(std::shared_ptr<void> &data) override;
  void fire(const std::shared_ptr<void> &data) override;
  void connect() override;
  void disconnect() noexcept override;
  static void on_reset(const void *timer, std::size_t times);
  static void on_jump(const rcl_time_jump_t *jump, bool before, void *timer);

  rcl_timer_t *timer_;
  std::function<void()> function_;
};

// A timer of rcl that something else keeps for a wait set, as an action server does for the expiry of its goals: no
// event tells that it is due. serve runs when it is, and does what its owner does when a wait set finds it ready. One
// that is due still is served again a millisecond later. On a clock with simulated time it is looked at each second.
// Its owner may set and end it from any thread.
class KeptTimer final : public TimerEntity {
 public:
  KeptTimer(std::weak_ptr<const rcl_timer_t> timer, std::function<void()> serve);

 private:
  [[nodiscard]] std::shared_ptr<const rcl_timer_t> lock() const override { return timer_.lock(); }
  bool call(std::shared_ptr<void> &data) override;
  void fire(const std::shared_ptr<void> &data) override;
  void connect() override;
  void disconnect() noexcept override;
  static void on_reset(const void *number, std::size_t times);

  std::weak_ptr<const rcl_timer_t> timer_;
  std::function<void()> serve_;
  std::uintptr_t number_ = 0;  // among those that are connected
};

}  // namespace tide_rcl
