// SPDX-License-Identifier: Apache-2.0
// The chains of a system.toml as timers and subscriptions of rclcpp on the executor of your choice, over the
// middleware: from the time at which a chain's timer was due to the end of its last callback. Usage: chains EXECUTOR
// SYSTEM.toml SECONDS [THREADS]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "../src/system_file.h"
#include "executors.h"
#include "rosgraph_msgs/msg/clock.hpp"

namespace {

using Message = rosgraph_msgs::msg::Clock;

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  (void)clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void compute(std::int64_t duration_ns) {
  const std::int64_t end_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) + duration_ns;
  while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
  }
}

struct Latencies {
  std::string chain;
  std::mutex mutex;
  std::vector<std::int64_t> values_ns;

  void note(std::int64_t due_ns) {
    const std::int64_t late_ns = read_clock(CLOCK_MONOTONIC) - due_ns;
    const std::lock_guard<std::mutex> lock(mutex);
    values_ns.push_back(late_ns);
  }
  void print() {
    std::sort(values_ns.begin(), values_ns.end());
    if (values_ns.empty()) {
      std::printf("  %s: nothing\n", chain.c_str());
      return;
    }
    const auto at = [&](double part) {
      return static_cast<double>(
                 values_ns[static_cast<std::size_t>(part * static_cast<double>(values_ns.size() - 1))]) /
             1e6;
    };
    std::printf("  %s: %zu times, median %.1f ms, 99 %% %.1f ms, most %.1f ms\n", chain.c_str(), values_ns.size(),
                at(0.5), at(0.99), at(1));
  }
};

class Chains {
 public:
  Chains(const std::string &path, rclcpp::Node &node) : node_(node) {
    group_ = node.create_callback_group(rclcpp::CallbackGroupType::Reentrant);
    for (const tide_rclcpp::Table &table : tide_rclcpp::read_tables(path)) {
      if (table.path == "chains") begin(table);
      if (table.path == "chains.callbacks") add(table);
    }
  }
  void print() {
    for (const auto &chain : latencies_) chain->print();
  }
  void give_priorities(PicasExecutor &executor) {
    for (const auto &[entity, priority] : priorities_) executor.set_priority(entity, priority);
  }

 private:
  void begin(const tide_rclcpp::Table &table) {
    latencies_.push_back(std::make_unique<Latencies>());
    latencies_.back()->chain = table.get("name");
    period_ns_ = static_cast<std::int64_t>(table.number("period_ms") * 1e6);
    topic_ = topics_[table.get("branches_from")];
    priority_ = static_cast<int>(table.number("priority")) << 8;
  }

  void add(const tide_rclcpp::Table &table) {
    const auto execution_ns = static_cast<std::int64_t>(table.number("execution_ms") * 1e6);
    const std::string to = table.get("publishes.topic");
    rclcpp::Publisher<Message>::SharedPtr publisher;
    if (!to.empty()) publisher = node_.create_publisher<Message>("/" + to, 10);
    Latencies *latencies = latencies_.back().get();
    const auto run = [execution_ns, publisher, latencies](const Message &message) {
      compute(execution_ns);
      if (publisher != nullptr) {
        publisher->publish(message);
      } else {
        latencies->note(rclcpp::Time(message.clock).nanoseconds());
      }
    };
    if (table.get("kind") == "timer") {
      const auto due = [run](const rclcpp::TimerInfo &info) {
        Message message;
        message.clock = info.expected_call_time;
        run(message);
      };
      timers_.push_back(node_.create_wall_timer(std::chrono::nanoseconds(period_ns_), due, group_));
    } else {
      rclcpp::SubscriptionOptions options;
      options.callback_group = group_;
      subscriptions_.push_back(node_.create_subscription<Message>(
          "/" + topic_, 10, [run](const Message::ConstSharedPtr message) { run(*message); }, options));
    }
    topic_ = to;
    topics_[latencies->chain + "." + table.get("name")] = to;
    const void *entity = table.get("kind") == "timer" ? static_cast<const void *>(timers_.back().get())
                                                      : static_cast<const void *>(subscriptions_.back().get());
    const int own = static_cast<int>(table.number("priority"));
    priorities_.emplace_back(entity, own > 0 ? own : priority_);
    priority_++;  // later in a chain is more urgent
  }

  rclcpp::Node &node_;
  rclcpp::CallbackGroup::SharedPtr group_;
  std::vector<std::unique_ptr<Latencies>> latencies_;
  std::vector<rclcpp::TimerBase::SharedPtr> timers_;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  std::int64_t period_ns_ = 0;
  std::string topic_;
  std::map<std::string, std::string> topics_;  // of chain.callback, for chains that branch
  int priority_ = 0;
  std::vector<std::pair<const void *, int>> priorities_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "Usage: chains EXECUTOR SYSTEM.toml SECONDS [THREADS]\n");
    return 2;
  }
  rclcpp::init(argc, argv);
  const int threads = argc > 4 ? std::atoi(argv[4]) : 2;
  const auto node = std::make_shared<rclcpp::Node>("chains");
  Chains chains(argv[2], *node);
  tide_rclcpp::Options options = tide_rclcpp::options_of_system(argv[2]);
  options.lanes.clear();
  const auto executor = make_executor(argv[1], threads, std::move(options));
  if (const auto picas = std::dynamic_pointer_cast<PicasExecutor>(executor)) chains.give_priorities(*picas);
  executor->add_node(node);
  std::thread end([&] { end_after(std::atoi(argv[3]), *executor); });
  executor->spin();
  end.join();
  std::printf("%s, %d threads\n", argv[1], threads);
  chains.print();
  rclcpp::shutdown();
  return 0;
}
