// SPDX-License-Identifier: Apache-2.0
// Subscriptions, services, clients, guards and timers of plain rcl in an engine, driven by the middleware's callbacks,
// without a wait set.
//
//   tide_rcl::Engine engine;
//   auto scan = std::make_shared<tide_rcl::Subscription>(&subscription, make_message, on_message);
//   engine.add(scan, TIDE_PRIORITY(2, 1));
//   engine.spin();
//
// The rcl object belongs to the program and must outlive its entity in the engine. Meanwhile nothing else may set its
// on-new callback or take from it. Each run takes one message.
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
// the oldest messages. There are therefore never more pending runs than its depth, and a flood leaves no backlog of
// runs without a message.
class Arrivals : public Entity {
 public:
  // Called by the middleware's thread.
  void arrived(std::size_t times) noexcept;

 protected:
  // A depth of 0 means that the queue keeps all messages.
  Arrivals(tide_callback_kind_t kind, std::size_t depth) noexcept : Entity(kind), depth_(depth) {}
  static std::size_t depth_of(const rmw_qos_profile_t *qos) noexcept;
  static void on_arrival(const void *arrivals, std::size_t times);  // an rcl_event_callback_t for the notifications

  void run() final;
  virtual void take() = 0;  // takes the next waiting message, if there is one, and calls the program's function with it
  void connect() override { waiting_.store(0); }

 private:
  std::size_t depth_;
  std::atomic<std::size_t> waiting_{0};  // number of notified messages whose runs have not begun
};

// Makes a message, request or response of the right type for each run.
using MakeMessage = std::function<std::shared_ptr<void>()>;

class SubscriptionEntity : public Arrivals {
 protected:
  explicit SubscriptionEntity(rcl_subscription_t *subscription);
  void connect() override;
  void disconnect() noexcept override;
  // Translates the result of an rcl_take call. Returns true if a message was taken, false if there was none.
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

// Passes the serialised bytes to the program's function; they are valid during the call.
class SerializedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const rcl_serialized_message_t &message, const rmw_message_info_t &info)>;
  SerializedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// Passes a message in the middleware's own memory to the program's function; it is valid during the call. Throws
// std::invalid_argument if the middleware does not lend messages of this type (rcl_subscription_can_loan_messages).
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

// A guard condition, implemented by the engine because those of the middleware have no callbacks. trigger makes it
// ready once, however often it is called before the guard condition runs.
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
// Timers of rcl are in the engine's timer_list. rcl provides the next expiry and the engine waits for it, so timers
// cost nothing until they are due.
//
// A timer on the steady clock starts when its lane chooses it, and never before its time. As in rcl, missed expiries
// are skipped and the grid is kept. On other clocks, time can jump. With simulated time, a timer checks its clock only
// when the clock is set; otherwise at its expiry, and at least once a second.

// Base class of timers: those of rcl are below, those of rclcpp in tide_rclcpp.
class TimerEntity : public Entity {
 protected:
  enum class Of {
    kExecutor,  // the executor calls the timer and is notified of clock jumps
    kOwner      // the owner calls or rearms the timer when served, and handles its clock
  };
  explicit TimerEntity(Of whose = Of::kExecutor) noexcept : Entity(TIDE_CALLBACK_TIMER), whose_(whose) {}
  // The rcl timer; null if it no longer exists.
  [[nodiscard]] virtual std::shared_ptr<const rcl_timer_t> lock() const = 0;
  // Calls rcl_timer_call and provides the argument of fire. Returns false if the timer is canceled; fire is then not
  // called.
  virtual bool call(std::shared_ptr<void> &data) = 0;
  virtual void fire(const std::shared_ptr<void> &data) = 0;

  void run() final;
  void connect() override;
  // Called after a reset of the timer or a jump of its clock: determines the new expiry.
  void follow() noexcept;

 private:
  [[nodiscard]] bool is_due(const rcl_timer_t &timer) const noexcept;
  void follow_locked(const rcl_timer_t &timer) noexcept;
  void follow_clock_locked(const rcl_timer_t &timer, std::int64_t period_ns) noexcept;

  Of whose_;
  std::mutex mutex_;  // keeps rcl's state of the timer and the state here consistent
  bool steady_ = true;
};

// A timer of plain rcl, which must outlive its entity in the engine. `function` gets no message; the timer's own rcl
// callback is not used. Do not set the timer's clock while the timer is added or removed.
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
// goals. No event reports that it is due, so the engine watches it. `serve` runs when it is due, and must do what the
// owner does when a wait set finds the timer ready. If the timer is still due after that, it is served again a
// millisecond later. With simulated time, it is checked at least once a second. The owner may reset and end the timer
// from any thread.
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
  std::uintptr_t number_ = 0;  // its number among the connected timers
};

}  // namespace tide_rcl
