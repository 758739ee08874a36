// SPDX-License-Identifier: Apache-2.0
// Executors by name: tide, tide-default, single, multi, picas, events.
#pragma once

#include <pthread.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "picas.h"
#include "rclcpp/experimental/executors/events_executor/events_executor.hpp"
#include "rclcpp/rclcpp.hpp"
#include "tide_rclcpp/executor.hpp"

inline std::shared_ptr<rclcpp::Executor> make_executor(const std::string &name, int threads,
                                                       tide_rclcpp::Options options = {}) {
  for (int index = 0; threads > 1 && index < threads && name.rfind("tide", 0) == 0; index++) {
    options.lanes.emplace_back();
  }
  if (name == "tide-default") options.policy = tide_rcl::Policy::kDefault;
  if (name == "tide" || name == "tide-default") return std::make_shared<tide_rclcpp::Executor>(std::move(options));
  if (name == "single") return std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
  if (name == "multi") {
    return std::make_shared<rclcpp::executors::MultiThreadedExecutor>(rclcpp::ExecutorOptions(), threads);
  }
  if (name == "picas") return std::make_shared<PicasExecutor>(threads);
  if (name == "events") return std::make_shared<rclcpp::experimental::executors::EventsExecutor>();
  throw std::invalid_argument("there is no executor '" + name +
                              "': tide, tide-default, single, multi, picas or events");
}

// More urgent than the threads of the executor, so that it comes to its end under any load.
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
