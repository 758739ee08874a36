// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/entities.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "rcl/error_handling.h"
#include "rcl/time.h"
#include "rmw/serialized_message.h"
#include "tide/port.h"

namespace tide_rcl {

void check(rcl_ret_t result, const char *call) {
  if (result == RCL_RET_OK) return;
  const std::string reason = rcl_error_is_set() ? rcl_get_error_string().str : "no reason given";
  rcl_reset_error();
  throw std::runtime_error(std::string(call) + ": " + reason + " (" + std::to_string(result) + ")");
}

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

// The count is decremented before the message is taken, so that a message that arrives from now on makes the entity
// ready again. The count may be 0: without a depth, or if the entity was removed and added again after a lane had
// chosen it.
void Arrivals::run() {
  std::size_t waiting = waiting_.load();
  while (waiting > 0 && !waiting_.compare_exchange_weak(waiting, waiting - 1)) {}
  take();
}

// ---- subscriptions, services, clients, guards ----

namespace {

void report(rcl_ret_t result) {
  if (result != RCL_RET_OK) rcl_reset_error();
}

// Returns the loan to the middleware, even if the function throws.
class Loan {
 public:
  explicit Loan(rcl_subscription_t *subscription) : subscription_(subscription) {}
  Loan(const Loan &) = delete;
  Loan &operator=(const Loan &) = delete;
  ~Loan() {
    if (message != nullptr) report(rcl_return_loaned_message_from_subscription(subscription_, message));
  }
  void *message = nullptr;

 private:
  rcl_subscription_t *subscription_;
};

class Bytes {
 public:
  Bytes() {
    const rcutils_allocator_t allocator = rcutils_get_default_allocator();
    check(rmw_serialized_message_init(&message, 0, &allocator), "rmw_serialized_message_init");
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() { report(rmw_serialized_message_fini(&message)); }
  rcl_serialized_message_t message = rmw_get_zero_initialized_serialized_message();
};

}  // namespace

SubscriptionEntity::SubscriptionEntity(rcl_subscription_t *subscription)
    : Arrivals(TIDE_CALLBACK_SUBSCRIPTION, depth_of(rcl_subscription_get_actual_qos(subscription))),
      subscription_(subscription) {}

void SubscriptionEntity::connect() {
  Arrivals::connect();
  check(rcl_subscription_set_on_new_message_callback(subscription_, on_arrival, static_cast<Arrivals *>(this)),
        "rcl_subscription_set_on_new_message_callback");
}

void SubscriptionEntity::disconnect() noexcept {
  report(rcl_subscription_set_on_new_message_callback(subscription_, nullptr, nullptr));
}

bool SubscriptionEntity::took(rcl_ret_t result) {
  if (result == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
    rcl_reset_error();
    return false;
  }
  check(result, "taking a message");
  return true;
}

Subscription::Subscription(rcl_subscription_t *subscription, MakeMessage make, Function function)
    : SubscriptionEntity(subscription), make_(std::move(make)), function_(std::move(function)) {}

void Subscription::take() {
  const std::shared_ptr<void> message = make_();
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  if (took(rcl_take(subscription_, message.get(), &info, nullptr))) function_(message, info);
}

SerializedSubscription::SerializedSubscription(rcl_subscription_t *subscription, Function function)
    : SubscriptionEntity(subscription), function_(std::move(function)) {}

void SerializedSubscription::take() {
  Bytes bytes;
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  if (took(rcl_take_serialized_message(subscription_, &bytes.message, &info, nullptr))) function_(bytes.message, info);
}

LoanedSubscription::LoanedSubscription(rcl_subscription_t *subscription, Function function)
    : SubscriptionEntity(subscription), function_(std::move(function)) {
  if (!rcl_subscription_can_loan_messages(subscription)) {
    throw std::invalid_argument("the middleware lends no messages of this type; use Subscription");
  }
}

void LoanedSubscription::take() {
  Loan loan(subscription_);
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  if (took(rcl_take_loaned_message(subscription_, &loan.message, &info, nullptr))) function_(loan.message, info);
}

Service::Service(rcl_service_t *service, MakeMessage make_request, Function function)
    : Arrivals(TIDE_CALLBACK_SERVICE, 0),
      service_(service),
      make_(std::move(make_request)),
      function_(std::move(function)) {}

void Service::connect() {
  Arrivals::connect();
  check(rcl_service_set_on_new_request_callback(service_, on_arrival, static_cast<Arrivals *>(this)),
        "rcl_service_set_on_new_request_callback");
}

void Service::disconnect() noexcept { report(rcl_service_set_on_new_request_callback(service_, nullptr, nullptr)); }

void Service::take() {
  const std::shared_ptr<void> request = make_();
  rmw_request_id_t id{};
  const rcl_ret_t result = rcl_take_request(service_, &id, request.get());
  if (result == RCL_RET_SERVICE_TAKE_FAILED) {
    rcl_reset_error();
    return;
  }
  check(result, "rcl_take_request");
  function_(id, request);
}

Client::Client(rcl_client_t *client, MakeMessage make_response, Function function)
    : Arrivals(TIDE_CALLBACK_CLIENT, 0),
      client_(client),
      make_(std::move(make_response)),
      function_(std::move(function)) {}

void Client::connect() {
  Arrivals::connect();
  check(rcl_client_set_on_new_response_callback(client_, on_arrival, static_cast<Arrivals *>(this)),
        "rcl_client_set_on_new_response_callback");
}

void Client::disconnect() noexcept { report(rcl_client_set_on_new_response_callback(client_, nullptr, nullptr)); }

void Client::take() {
  const std::shared_ptr<void> response = make_();
  rmw_request_id_t id{};
  const rcl_ret_t result = rcl_take_response(client_, &id, response.get());
  if (result == RCL_RET_CLIENT_TAKE_FAILED) {
    rcl_reset_error();
    return;
  }
  check(result, "rcl_take_response");
  function_(id, response);
}

Guard::Guard(std::function<void()> function) : Entity(TIDE_CALLBACK_GUARD), function_(std::move(function)) {}

void Guard::trigger() noexcept {
  if (!triggered_.exchange(true)) notify();
}

// A trigger while the guard condition was in no engine, or one whose run had not begun when it was removed, takes
// effect now.
void Guard::connect() {
  if (triggered_.load()) notify();
}

// A trigger from now on makes the guard condition ready for another run.
void Guard::run() {
  triggered_.store(false);
  function_();
}

// ---- timers ----

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

// Returns true if rcl reports the timer ready; false also if the timer is canceled.
bool is_ready_in_rcl(const rcl_timer_t &timer) {
  bool ready = false;
  if (rcl_timer_is_ready(&timer, &ready) != RCL_RET_OK) rcl_reset_error();
  return ready;
}

// The connected KeptTimers by number. The owner of a kept timer resets it from any thread, and rcl calls the reset
// callback without a lock, even while the entity is being removed. The callback therefore gets a number instead of a
// pointer to the entity.
struct Connected {
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::unordered_map<std::uintptr_t, std::function<void()>> follow;
};

Connected &connected() {
  static auto *const all = new Connected;  // never freed: threads outlive static objects
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
  if (whose_ == Of::kOwner) period_ns = kLongestWithoutLookNs;  // fire asks for the expiry after each run
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

// Returns false if the timer has been reset since it became ready, and is not due any more.
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

// The result does not own the timer, because the program does.
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

// The owner of the timer calls the timer when it is served.
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
  follow();  // the timer may have been reset before its callback was set
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
