// SPDX-License-Identifier: Apache-2.0
#include "tide_rcl/entities.h"

#include <stdexcept>
#include <utility>

#include "rcl/error_handling.h"
#include "rmw/serialized_message.h"
#include "tide_rcl/error.h"

namespace tide_rcl {

namespace {

void report(rcl_ret_t result) {
  if (result != RCL_RET_OK) rcl_reset_error();
}

// Given back whatever the function does.
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

// Triggered while it was in no engine, or removed before it could run.
void Guard::connect() {
  if (triggered_.load()) notify();
}

// What is triggered from now on needs another run.
void Guard::run() {
  triggered_.store(false);
  function_();
}

}  // namespace tide_rcl
