// SPDX-License-Identifier: Apache-2.0
// Subscriptions, services, clients, guards and timers of plain rcl in an engine, driven by the middleware's callbacks,
// without a wait set.
//
//   tide_rcl::Engine engine;
//   auto scan = std::make_shared<tide_rcl::Subscription>(&subscription, make_message, on_message);
//   engine.add(scan, TIDE_PRIORITY(2, 1));
//   engine.spin();
//
// The rcl object stays the program's and must outlive its entity in the engine. Meanwhile no one else may set its
// on-new callback or take from it. One run takes one message.
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

// Throws std::runtime_error with rcl's message unless the result is RCL_RET_OK.
void check(rcl_ret_t result, const char *call);

// An entity that becomes ready when a message arrives in a queue of the middleware. A queue with history depth drops
// the oldest, so there are never more pending runs than its depth, and a flood leaves no backlog of empty runs.
class Arrivals : public Entity {
 public:
  // Called by the middleware's thread.
  void arrived(std::size_t times) noexcept;

 protected:
  // depth 0: the queue keeps all.
  Arrivals(tide_callback_kind_t kind, std::size_t depth) noexcept : Entity(kind), depth_(depth) {}
  static std::size_t depth_of(const rmw_qos_profile_t *qos) noexcept;
  static void on_arrival(const void *arrivals, std::size_t times);  // an rcl_event_callback_t

  void run() final;
  virtual void take() = 0;  // takes the next waiting message, if any, and calls the program's function with it
  void connect() override { waiting_.store(0); }

 private:
  std::size_t depth_;
  std::atomic<std::size_t> waiting_{0};  // notified, and not run yet
};

// Makes a message, request or response of the right type for each run.
using MakeMessage = std::function<std::shared_ptr<void>()>;

class SubscriptionEntity : public Arrivals {
 protected:
  explicit SubscriptionEntity(rcl_subscription_t *subscription);
  void connect() override;
  void disconnect() noexcept override;
  // Result of an rcl_take call. True: a message was taken; false: there was none (any more).
  static bool took(rcl_ret_t result);

  rcl_subscription_t *subscription_;
};

// Copies the message.
class Subscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const std::shared_ptr<void> &message, const rmw_message_info_t &info)>;
  Subscription(rcl_subscription_t *subscription, MakeMessage make, Function function);

 private:
  void take() override;
  MakeMessage make_;
  Function function_;
};

// Passes the serialised bytes, valid during the call.
class SerializedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const rcl_serialized_message_t &message, const rmw_message_info_t &info)>;
  SerializedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// Passes a message in the middleware's own memory, valid during the call. std::invalid_argument: the middleware does
// not lend messages of this type (rcl_subscription_can_loan_messages).
class LoanedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const void *message, const rmw_message_info_t &info)>;
  LoanedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The function replies by rcl_send_response, at once or later.
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

// A guard condition: implemented by the engine, since the middleware's have no callbacks. trigger makes it ready once,
// however often it is called before it runs.
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
// Timers of rcl in the engine's timer_list. rcl provides the next expiry and the engine waits for it, so timers cost
// nothing until they are due.
//
// A timer on the steady clock starts when its lane chooses it, never before its time. Missed expiries are skipped and
// the grid is kept, as in rcl. On other clocks time can jump: with simulated time a timer checks its clock only when
// the clock is set; otherwise at its expiry, and at least once a second.

// Base class of timers: those of rcl follow, those of rclcpp are in tide_rclcpp.
class TimerEntity : public Entity {
 protected:
  enum class Of {
    kExecutor,  // the executor calls it and is notified of clock jumps
    kOwner      // the owner calls or rearms it when served, and keeps its clock
  };
  explicit TimerEntity(Of whose = Of::kExecutor) noexcept : Entity(TIDE_CALLBACK_TIMER), whose_(whose) {}
  // The rcl timer; null if it no longer exists.
  [[nodiscard]] virtual std::shared_ptr<const rcl_timer_t> lock() const = 0;
  // Calls rcl_timer_call and provides the argument of fire; false: canceled, and fire is not called.
  virtual bool call(std::shared_ptr<void> &data) = 0;
  virtual void fire(const std::shared_ptr<void> &data) = 0;

  void run() final;
  void connect() override;
  // Called after its reset or a jump of its clock: determines the new expiry.
  void follow() noexcept;

 private:
  [[nodiscard]] bool is_due(const rcl_timer_t &timer) const noexcept;
  void follow_locked(const rcl_timer_t &timer) noexcept;
  void follow_clock_locked(const rcl_timer_t &timer, std::int64_t period_ns) noexcept;

  Of whose_;
  std::mutex mutex_;  // keeps the timer's state in rcl and here consistent
  bool steady_ = true;
};

// A timer of plain rcl, which must outlive its entity in the engine. function gets no message; rcl's own callback is
// not used. Do not set its clock while adding or removing it.
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

// An rcl timer that another object keeps for a wait set, such as an action server's for the expiry of its goals: no
// event reports that it is due. serve runs when it is due, and must do what its owner does when a wait set finds it
// ready. If the timer is still due afterwards, it is served again a millisecond later. With simulated time it is
// checked each second. The timer's owner may reset and end it from any thread.
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
  std::uintptr_t number_ = 0;  // number among the connected timers
};

}  // namespace tide_rcl
