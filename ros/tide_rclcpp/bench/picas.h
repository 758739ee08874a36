// SPDX-License-Identifier: Apache-2.0
// rclcpp's MultiThreadedExecutor with priorities and nothing else: before each choice it waits again, as PiCAS does,
// and takes the timer or subscription with the highest priority of those that are ready in its wait set.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "rclcpp/rclcpp.hpp"

class PicasExecutor : public rclcpp::Executor {
 public:
  explicit PicasExecutor(int threads) : threads_(threads) {}

  // Sets the priority of a timer or subscription; call it before the executor spins. The default is 0.
  void set_priority(const void *entity, int priority) { priorities_[entity] = priority; }

  void spin() override {
    spinning.store(true);
    std::vector<std::thread> others;
    for (int index = 1; index < threads_; index++) others.emplace_back([this] { run(); });
    run();
    for (std::thread &other : others) other.join();
    spinning.store(false);
  }

 private:
  void run() {
    while (rclcpp::ok(context_) && spinning.load()) {
      rclcpp::AnyExecutable chosen;
      if (choose(chosen)) execute_any_executable(chosen);
    }
  }

  bool choose(rclcpp::AnyExecutable &chosen) {
    const std::lock_guard<std::mutex> lock(choice_mutex_);
    wait_for_work(std::chrono::nanoseconds(-1));
    if (!spinning.load() || !wait_result_.has_value()) return false;
    if (wait_result_->kind() != rclcpp::WaitResultKind::Ready) return false;
    best_ = -1;
    look_at_timers(chosen);
    look_at_subscriptions(chosen);
    if (best_ < 0) return get_next_ready_executable(chosen);
    if (chosen.timer != nullptr && (chosen.data = chosen.timer->call()) == nullptr) return forget(chosen);
    if (chosen.callback_group->type() == rclcpp::CallbackGroupType::MutuallyExclusive) {
      chosen.callback_group->can_be_taken_from().store(false);
    }
    return true;
  }

  // Drops a chosen timer that was canceled after the choice, and whose group has not been entered.
  static bool forget(rclcpp::AnyExecutable &chosen) {
    chosen.timer.reset();
    chosen.callback_group.reset();
    return false;
  }

  template <typename Entities, typename Handle>
  rclcpp::CallbackGroup::SharedPtr free_group(const Entities &entities, const Handle *handle) {
    const auto entity = entities.find(handle);
    const auto group = entity == entities.end() ? nullptr : entity->second.callback_group.lock();
    return group != nullptr && group->can_be_taken_from() ? group : nullptr;
  }

  bool is_better(const void *entity) {
    const auto known = priorities_.find(entity);
    const int priority = known == priorities_.end() ? 0 : known->second;
    if (priority <= best_) return false;
    best_ = priority;
    return true;
  }

  void look_at_timers(rclcpp::AnyExecutable &chosen) {
    for (std::size_t index = 0;; index++) {
      const auto [timer, at] = wait_result_->peek_next_ready_timer(index);
      if (timer == nullptr) return;
      index = at;
      const auto group = free_group(current_collection_.timers, timer->get_timer_handle().get());
      if (group == nullptr || !is_better(timer.get())) continue;
      chosen.timer = timer;
      chosen.callback_group = group;
    }
  }

  void look_at_subscriptions(rclcpp::AnyExecutable &chosen) {
    while (const auto subscription = wait_result_->next_ready_subscription()) {
      const auto group = free_group(current_collection_.subscriptions, subscription->get_subscription_handle().get());
      if (group == nullptr || !is_better(subscription.get())) continue;
      chosen.timer.reset();
      chosen.subscription = subscription;
      chosen.callback_group = group;
    }
  }

  int threads_;
  std::mutex choice_mutex_;
  int best_ = -1;
  std::map<const void *, int> priorities_;
};
