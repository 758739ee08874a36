// SPDX-License-Identifier: Apache-2.0
// Subscriptions, services, clients, guards and timers of plain rcl in an engine, driven by the middleware's callbacks,
// without a wait set.
//
//   tide_rcl::Engine engine;
//   auto scan = std::make_shared<tide_rcl::Subscription>(&subscription, make_message, on_message);
//   engine.add(scan, TIDE_PRIORITY(2, 1));
//   engine.spin();
//
// The rcl object belongs to the program and must exist as long as its entity is in the engine. During this time,
// nothing else may set the object's on-new callback or take from the object. Each run takes at most one message.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "rcl/client.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "rcl/timer.h"
#include "tide_rcl/engine.h"

namespace tide_rcl {

// Throws std::runtime_error with rcl's message unless `result` is RCL_RET_OK.
void check(rcl_ret_t result, const char *call);

// An entity that becomes ready when a message arrives in a queue of the middleware. A queue with a history depth drops
// its oldest messages. The entity therefore never has more pending runs than this depth, so that after a flood every
// run finds a message.
class Arrivals : public Entity {
 public:
  // The middleware's thread calls this when `times` messages have arrived.
  void arrived(std::size_t times) noexcept;

 protected:
  // A depth of 0 means that the queue keeps all messages.
  Arrivals(tide_callback_kind_t kind, std::size_t depth) noexcept : Entity(kind), depth_(depth) {}
  static std::size_t depth_of(const rmw_qos_profile_t *qos) noexcept;
  static void on_arrival(const void *arrivals, std::size_t times);  // an rcl_event_callback_t; its user data is the
                                                                    // Arrivals

  void run() final;
  virtual void take() = 0;  // takes the next waiting message, if there is one, and calls the program's function with it
  void connect() override { waiting_.store(0); }

 private:
  std::size_t depth_;
  std::atomic<std::size_t> waiting_{0};  // number of notified messages whose runs have not begun; only with a depth
};

// Makes a message, request or response of the right type for each run.
using MakeMessage = std::function<std::shared_ptr<void>()>;

class SubscriptionEntity : public Arrivals {
 protected:
  explicit SubscriptionEntity(rcl_subscription_t *subscription);
  void connect() override;
  void disconnect() noexcept override;
  // Translates the result of an rcl_take call: true if a message was taken, false if there was none. Throws
  // std::runtime_error for other results.
  static bool took(rcl_ret_t result);

  rcl_subscription_t *subscription_;
};

// Passes a copy of the message to the program's function.
class Subscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const std::shared_ptr<void> &message, const rmw_message_info_t &info)>;
  Subscription(rcl_subscription_t *subscription, MakeMessage make, Function function);

 private:
  void take() override;
  MakeMessage make_;
  Function function_;
};

// Passes the message as serialised bytes to the program's function. The bytes are valid only during the call.
class SerializedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const rcl_serialized_message_t &message, const rmw_message_info_t &info)>;
  SerializedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// Passes the message in the middleware's own memory to the program's function. It is valid only during the call. The
// constructor throws std::invalid_argument if the middleware does not lend messages of this type
// (rcl_subscription_can_loan_messages).
class LoanedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const void *message, const rmw_message_info_t &info)>;
  LoanedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The function replies with rcl_send_response, at once or later.
class Service final : public Arrivals {
 public:
  using Function = std::function<void(const rmw_request_id_t &id, const std::shared_ptr<void> &request)>;
  Service(rcl_service_t *service, MakeMessage make_request, Function function);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  rcl_service_t *service_;
  MakeMessage make_;
  Function function_;
};

class Client final : public Arrivals {
 public:
  using Function = std::function<void(const rmw_request_id_t &id, const std::shared_ptr<void> &response)>;
  Client(rcl_client_t *client, MakeMessage make_response, Function function);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  rcl_client_t *client_;
  MakeMessage make_;
  Function function_;
};

// A guard condition of the engine, because those of the middleware have no on-new callbacks. It becomes ready for one
// run, however often trigger is called before this run begins.
class Guard final : public Entity {
 public:
  explicit Guard(std::function<void()> function);
  void trigger() noexcept;

 private:
  void run() override;
  void connect() override;
  std::function<void()> function_;
  std::atomic<bool> triggered_{false};
};

// ---- timers ----
//
// The engine takes the next expiry of a timer from rcl and keeps the timer in its own queue by time, so a timer costs
// nothing until it is due.
//
// A timer on the steady clock starts when its lane chooses it, never before its expiry. As in rcl, missed expiries are
// skipped, and later ones stay multiples of the period from the first. The time of other clocks can jump. A timer on
// such a clock is checked when simulated time is set; without simulated time, at its expiry and at least once a second.

// Base class of timers: those of rcl are below, those of rclcpp in tide_rclcpp.
class TimerEntity : public Entity {
 protected:
  enum class Of {
    kExecutor,  // the engine calls the timer and is notified when its clock jumps
    kOwner      // the owner calls or rearms the timer when it is served; nobody reports when its clock jumps
  };
  explicit TimerEntity(Of whose = Of::kExecutor) noexcept : Entity(TIDE_CALLBACK_TIMER), whose_(whose) {}
  // The rcl timer; null if it no longer exists.
  [[nodiscard]] virtual std::shared_ptr<const rcl_timer_t> lock() const = 0;
  // Called when the timer is due: calls the timer's rcl_timer_call unless its owner does so, and sets the argument of
  // fire. If this returns false because the timer is canceled, fire is not called.
  virtual bool call(std::shared_ptr<void> &data) = 0;
  virtual void fire(const std::shared_ptr<void> &data) = 0;

  void run() final;
  void connect() override;
  // Asks rcl for the next expiry and arms the entity for it. Called after a reset of the timer or a jump of its clock.
  void follow() noexcept;

 private:
  [[nodiscard]] bool is_due(const rcl_timer_t &timer) const noexcept;
  void follow_locked(const rcl_timer_t &timer) noexcept;
  void follow_clock_locked(const rcl_timer_t &timer, std::int64_t period_ns) noexcept;

  Of whose_;
  std::mutex mutex_;  // held while rcl's expiry is read and the entity is armed for it, and while the timer is called
  bool steady_ = true;
};

// A timer of plain rcl, which must exist as long as its entity is in the engine. Each expiry calls `function`; the
// timer's own rcl callback is not used. The timer's clock must not be set while Engine::add or Engine::remove works on
// the entity.
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

// An rcl timer that another object keeps for a wait set, such as the timer of an action server for the expiry of its
// goals. No event reports that such a timer is due, so the engine watches it. `serve` runs when the timer is due, and
// must do what the owner does when a wait set finds the timer ready. If the timer is still due after that, it is served
// again a millisecond later. If its clock is not the steady clock, it is checked at least once a second. The owner may
// reset and end the timer from any thread.
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
  std::uintptr_t number_ = 0;  // its key among the connected timers
};

}  // namespace tide_rcl
