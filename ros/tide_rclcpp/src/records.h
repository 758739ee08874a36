// SPDX-License-Identifier: Apache-2.0
// Entities of rclcpp as entities of the engine. None keeps what it stands for alive, but while it runs. What the
// middleware calls keeps the record and its engine: a subscription that ends hears of messages until it has ended, and
// nobody else can disconnect it by then.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "rclcpp/rclcpp.hpp"
#include "tide_rcl/arrivals.h"
#include "tide_rcl/timer.h"

namespace tide_rclcpp {

class SubscriptionRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<SubscriptionRecord> {
 public:
  explicit SubscriptionRecord(const rclcpp::SubscriptionBase::SharedPtr &subscription);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  std::weak_ptr<rclcpp::SubscriptionBase> subscription_;
};

class ServiceRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<ServiceRecord> {
 public:
  explicit ServiceRecord(const rclcpp::ServiceBase::SharedPtr &service);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  std::weak_ptr<rclcpp::ServiceBase> service_;
};

class ClientRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<ClientRecord> {
 public:
  explicit ClientRecord(const rclcpp::ClientBase::SharedPtr &client);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  std::weak_ptr<rclcpp::ClientBase> client_;
};

class TimerRecord final : public tide_rcl::TimerEntity {
 public:
  explicit TimerRecord(const rclcpp::TimerBase::SharedPtr &timer);

 private:
  std::shared_ptr<const rcl_timer_t> lock() const override;
  bool call(std::shared_ptr<void> &data) override;
  void fire(const std::shared_ptr<void> &data) override;
  void connect() override;
  void disconnect() noexcept override;
  std::weak_ptr<rclcpp::TimerBase> timer_;
  // Its end takes the lock of the clock, which is held where a jump of the clock is told: so a jump never has the last.
  std::shared_ptr<const rcl_timer_t> handle_;
  rclcpp::JumpHandler::SharedPtr jumps_;
};

// Events, actions, intra-process subscriptions, and what programs make themselves.
class WaitableRecord final : public tide_rcl::Arrivals, public std::enable_shared_from_this<WaitableRecord> {
 public:
  explicit WaitableRecord(const rclcpp::Waitable::SharedPtr &waitable);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  void became_ready(std::size_t times, int part);
  void make_up_for_messages();
  int next_part();

  std::weak_ptr<rclcpp::Waitable> waitable_;
  bool intra_process_;
  std::mutex mutex_;  // of the parts of the waitable that became ready, in order, each so many times
  std::deque<std::pair<int, std::size_t>> parts_;
};

}  // namespace tide_rclcpp
