// SPDX-License-Identifier: Apache-2.0
// Subscriptions, services, clients, guards and timers of plain rcl in an engine, by the middleware's own callbacks: no
// wait set.
//
//   tide_rcl::Engine engine;
//   auto scan = std::make_shared<tide_rcl::Subscription>(&subscription, make_message, on_message);
//   engine.add(scan, TIDE_PRIORITY(2, 1));
//   engine.spin();
//
// What rcl made stays the program's and outlives its place in the engine. While it is there, nobody else sets its
// on-new callback or takes from it. One run takes one message.
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

// std::runtime_error with what rcl said, when it is not RCL_RET_OK.
void check(rcl_ret_t result, const char *call);

// What becomes ready because something arrived that waits in a queue of the middleware.
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

// A message, request or response of the right type to take into; called for each run.
using MakeMessage = std::function<std::shared_ptr<void>()>;

class SubscriptionEntity : public Arrivals {
 protected:
  explicit SubscriptionEntity(rcl_subscription_t *subscription);
  void connect() override;
  void disconnect() noexcept override;
  // False: there was none (any more).
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

// The bytes as they came; they are the function's for the length of its call.
class SerializedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const rcl_serialized_message_t &message, const rmw_message_info_t &info)>;
  SerializedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The middleware's own memory, lent for the length of the call. std::invalid_argument: the middleware does not lend
// messages of this type (rcl_subscription_can_loan_messages).
class LoanedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const void *message, const rmw_message_info_t &info)>;
  LoanedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The function answers by rcl_send_response, then or later.
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

// A guard condition: the middleware's have no callbacks, so this one is the engine's. trigger makes it ready once,
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
// Timers of rcl in the engine's timer_list. rcl says when the next expiry is, the engine waits for it: a timer costs
// nothing until it is due, however many there are.
//
// A timer on the steady clock starts when its lane chooses it, at its time or after, never before. Expiries that pass
// unseen are skipped and the grid is kept, as rcl does. On other clocks time can jump: with simulated time a timer
// looks at its clock when that is set and at no other time; otherwise at its expiry, and at the latest a second after
// its last look.

// Base of timers: those of rcl follow, those of rclcpp are in tide_rclcpp.
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
