// SPDX-License-Identifier: Apache-2.0
#include "records.h"

#include "rclcpp/experimental/subscription_intra_process_base.hpp"

namespace tide_rclcpp {

namespace {

using rclcpp::experimental::SubscriptionIntraProcessBase;

// What rclcpp's executors share is theirs and static.
struct Access : public rclcpp::Executor {
  using rclcpp::Executor::execute_client;
  using rclcpp::Executor::execute_service;
  using rclcpp::Executor::execute_subscription;
};

// A timer does not tell its clock, whose lock is rclcpp's, but to what derives from it.
struct ClockOf : public rclcpp::TimerBase {
  static rclcpp::Clock::SharedPtr get(rclcpp::TimerBase &timer) { return timer.*(&ClockOf::clock_); }
};

std::size_t places_of(const rclcpp::QoS &qos) {
  return qos.history() == rclcpp::HistoryPolicy::KeepLast ? qos.depth() : 0;
}

std::size_t places_of(const rclcpp::Waitable::SharedPtr &waitable) {
  const auto intra_process = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable);
  return intra_process == nullptr ? 0 : places_of(intra_process->get_actual_qos());
}

}  // namespace

SubscriptionRecord::SubscriptionRecord(const rclcpp::SubscriptionBase::SharedPtr &subscription)
    : Arrivals(TIDE_CALLBACK_SUBSCRIPTION, places_of(subscription->get_actual_qos())), subscription_(subscription) {}

void SubscriptionRecord::connect() {
  Arrivals::connect();
  const auto subscription = subscription_.lock();
  if (subscription == nullptr) return;
  subscription->set_on_new_message_callback(
      [self = shared_from_this(), engine = keep_engine()](std::size_t times) { self->arrived(times); });
}

void SubscriptionRecord::disconnect() noexcept {
  const auto subscription = subscription_.lock();
  if (subscription != nullptr) subscription->clear_on_new_message_callback();
}

void SubscriptionRecord::take() {
  const auto subscription = subscription_.lock();
  if (subscription != nullptr) Access::execute_subscription(subscription);
}

ServiceRecord::ServiceRecord(const rclcpp::ServiceBase::SharedPtr &service)
    : Arrivals(TIDE_CALLBACK_SERVICE, 0), service_(service) {}

void ServiceRecord::connect() {
  Arrivals::connect();
  const auto service = service_.lock();
  if (service == nullptr) return;
  service->set_on_new_request_callback(
      [self = shared_from_this(), engine = keep_engine()](std::size_t times) { self->arrived(times); });
}

void ServiceRecord::disconnect() noexcept {
  const auto service = service_.lock();
  if (service != nullptr) service->clear_on_new_request_callback();
}

void ServiceRecord::take() {
  const auto service = service_.lock();
  if (service != nullptr) Access::execute_service(service);
}

ClientRecord::ClientRecord(const rclcpp::ClientBase::SharedPtr &client)
    : Arrivals(TIDE_CALLBACK_CLIENT, 0), client_(client) {}

void ClientRecord::connect() {
  Arrivals::connect();
  const auto client = client_.lock();
  if (client == nullptr) return;
  client->set_on_new_response_callback(
      [self = shared_from_this(), engine = keep_engine()](std::size_t times) { self->arrived(times); });
}

void ClientRecord::disconnect() noexcept {
  const auto client = client_.lock();
  if (client != nullptr) client->clear_on_new_response_callback();
}

void ClientRecord::take() {
  const auto client = client_.lock();
  if (client != nullptr) Access::execute_client(client);
}

TimerRecord::TimerRecord(const rclcpp::TimerBase::SharedPtr &timer)
    : timer_(timer), handle_(timer->get_timer_handle()) {}

std::shared_ptr<const rcl_timer_t> TimerRecord::lock() const { return timer_.expired() ? nullptr : handle_; }

bool TimerRecord::call(std::shared_ptr<void> &data) {
  const auto timer = timer_.lock();
  if (timer != nullptr) data = timer->call();
  return data != nullptr;
}

void TimerRecord::fire(const std::shared_ptr<void> &data) {
  const auto timer = timer_.lock();
  if (timer != nullptr) timer->execute_callback(data);
}

void TimerRecord::connect() {
  const auto timer = timer_.lock();
  if (timer == nullptr) return;
  TimerEntity::connect();
  timer->set_on_reset_callback([this](std::size_t) { follow(); });
  const rclcpp::Clock::SharedPtr clock = ClockOf::get(*timer);
  if (clock->get_clock_type() != RCL_ROS_TIME) return;
  const rcl_jump_threshold_t every_jump = {true, {1}, {-1}};
  jumps_ = clock->create_jump_callback(
      nullptr, [this](const rcl_time_jump_t &) { follow(); }, every_jump);
  follow();  // it may have jumped meanwhile
}

void TimerRecord::disconnect() noexcept {
  jumps_.reset();
  const auto timer = timer_.lock();
  if (timer != nullptr) timer->clear_on_reset_callback();
}

WaitableRecord::WaitableRecord(const rclcpp::Waitable::SharedPtr &waitable)
    : Arrivals(TIDE_CALLBACK_GUARD, places_of(waitable)),
      waitable_(waitable),
      intra_process_(std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable) != nullptr) {}

void WaitableRecord::connect() {
  Arrivals::connect();
  const auto waitable = waitable_.lock();
  if (waitable == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    parts_.clear();
  }
  waitable->set_on_ready_callback([self = shared_from_this(), engine = keep_engine()](std::size_t times, int part) {
    self->became_ready(times, part);
  });
  if (intra_process_) make_up_for_messages();
}

void WaitableRecord::disconnect() noexcept {
  const auto waitable = waitable_.lock();
  if (waitable != nullptr) waitable->clear_on_ready_callback();
}

// Messages that came while another executor, or none, had the callback: nobody tells them twice. Runs that find nothing
// do nothing.
void WaitableRecord::make_up_for_messages() {
  const auto subscription = std::dynamic_pointer_cast<SubscriptionIntraProcessBase>(waitable_.lock());
  if (subscription == nullptr) return;
  const std::size_t depth = places_of(subscription->get_actual_qos());
  const std::size_t free = subscription->available_capacity();
  if (depth > free) arrived(depth - free);
}

void WaitableRecord::became_ready(std::size_t times, int part) {
  if (!intra_process_) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (parts_.empty() || parts_.back().first != part) parts_.emplace_back(part, 0);
    parts_.back().second += times;
  }
  arrived(times);
}

int WaitableRecord::next_part() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (parts_.empty()) return 0;
  const int part = parts_.front().first;
  if (--parts_.front().second == 0) parts_.pop_front();
  return part;
}

void WaitableRecord::take() {
  const int part = intra_process_ ? 0 : next_part();
  const auto waitable = waitable_.lock();
  if (waitable == nullptr) return;
  const std::shared_ptr<void> data = waitable->take_data_by_entity_id(static_cast<std::size_t>(part));
  waitable->execute(data);
}

}  // namespace tide_rclcpp
