// SPDX-License-Identifier: Apache-2.0
// Executors by name: tide, tide-default, single, static, multi, picas, events and cbg. cbg is the EventsCBGExecutor,
// which exists if rclcpp has it or the package cm_executors is installed. With the suffix -each, every callback has its
// own group; without it, all callbacks are in one reentrant group.
#pragma once

#include <pthread.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "picas.h"
#include "rclcpp/experimental/executors/events_executor/events_executor.hpp"
#include "rclcpp/rclcpp.hpp"
#include "tide_rclcpp/executor.hpp"

#if __has_include("rclcpp/executors/events_cbg_executor/events_cbg_executor.hpp")
#include "rclcpp/executors/events_cbg_executor/events_cbg_executor.hpp"
#define TIDE_HAS_CBG 1
#elif __has_include("cm_executors/events_cbg_executor.hpp")
#include "cm_executors/events_cbg_executor.hpp"
#define TIDE_HAS_CBG 1
#endif

inline bool ends_with_each(const std::string &name) {
  return name.size() > 5 && name.rfind("-each") == name.size() - 5;
}

// Makes the groups for a node's callbacks.
class Groups {
 public:
  Groups(rclcpp::Node &node, const std::string &executor) : node_(node) {
    if (!ends_with_each(executor)) all_ = node.create_callback_group(rclcpp::CallbackGroupType::Reentrant);
  }
  rclcpp::CallbackGroup::SharedPtr next() {
    if (all_ != nullptr) return all_;
    each_.push_back(node_.create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive));
    return each_.back();
  }

 private:
  rclcpp::Node &node_;
  rclcpp::CallbackGroup::SharedPtr all_;
  std::vector<rclcpp::CallbackGroup::SharedPtr> each_;
};

inline std::shared_ptr<rclcpp::Executor> make_executor(const std::string &called, int threads,
                                                       tide_rclcpp::Options options = {}) {
  const std::string name = ends_with_each(called) ? called.substr(0, called.size() - 5) : called;
  for (int index = 0; threads > 1 && index < threads && name.rfind("tide", 0) == 0; index++) {
    options.lanes.emplace_back();
  }
  if (name == "tide-default") options.policy = tide_rcl::Policy::kDefault;
  if (name == "tide" || name == "tide-default") return std::make_shared<tide_rclcpp::Executor>(std::move(options));
  if (name == "single") return std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
#if __has_include("rclcpp/executors/static_single_threaded_executor.hpp")  // later releases of rclcpp drop it
  if (name == "static") return std::make_shared<rclcpp::executors::StaticSingleThreadedExecutor>();
#endif
  if (name == "multi") {
    return std::make_shared<rclcpp::executors::MultiThreadedExecutor>(rclcpp::ExecutorOptions(), threads);
  }
  if (name == "picas") return std::make_shared<PicasExecutor>(threads);
  if (name == "events") return std::make_shared<rclcpp::experimental::executors::EventsExecutor>();
#ifdef TIDE_HAS_CBG
  if (name == "cbg") {
    return std::make_shared<rclcpp::executors::EventsCBGExecutor>(rclcpp::ExecutorOptions(), threads);
  }
#endif
  throw std::invalid_argument("there is no executor '" + name +
                              "': tide, tide-default, single, static, multi, picas, events or cbg (if it is there)");
}

// Cancels the executor after this time. The calling thread gets a higher scheduling priority than the executor's
// threads, so that it can cancel under any load.
inline void end_after(int seconds, rclcpp::Executor &executor) {
  sched_param urgency{};
  int policy = SCHED_OTHER;
  (void)pthread_getschedparam(pthread_self(), &policy, &urgency);
  if (policy == SCHED_FIFO) {
    urgency.sched_priority++;
    (void)pthread_setschedparam(pthread_self(), policy, &urgency);
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  executor.cancel();
}
