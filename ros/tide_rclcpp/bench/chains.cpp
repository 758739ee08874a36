// SPDX-License-Identifier: Apache-2.0
// The chains of a system.toml as timers and subscriptions of rclcpp on the executor of your choice, over the
// middleware: from the time at which a chain's timer was due to the end of its last callback. Usage: chains EXECUTOR
// SYSTEM.toml SECONDS [THREADS]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "../src/system_graph.h"
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

// The executor whose lanes these threads stand for, as options_of_system chooses it.
std::string host_of(const std::vector<tide_rclcpp::Table> &tables) {
  const auto is_host = [](const auto &table) { return table.path == "executors" && table.get("where") == "host"; };
  const auto host = std::find_if(tables.begin(), tables.end(), is_host);
  return host == tables.end() ? std::string() : host->get("name");
}

class Chains {
 public:
  Chains(const std::string &path, rclcpp::Node &node, const std::string &executor)
      : node_(node), groups_(node, executor) {
    const std::vector<tide_rclcpp::Table> tables = tide_rclcpp::read_tables(path);
    const tide_rclcpp::SystemGraph graph(path, tables, host_of(tables));
    for (const tide_rclcpp::SystemGraph::Branch &chain : graph.chains()) {
      latencies_.push_back(std::make_unique<Latencies>());
      latencies_.back()->chain = chain.table->get("name");
      period_ns_ = static_cast<std::int64_t>(chain.table->number("period_ms") * 1e6);
      std::vector<std::string> topics = chain.topics;
      for (const tide_rclcpp::SystemGraph::Node &callback : chain.callbacks) {
        add(callback, topics);
        topics = {callback.table->get("publishes.topic")};
      }
    }
  }
  void print() {
    for (const auto &chain : latencies_) chain->print();
  }
  void give_priorities(PicasExecutor &executor) {
    for (const auto &[entity, priority] : priorities_) executor.set_priority(entity, priority);
  }

 private:
  using Run = std::function<void(const Message &)>;

  void add(const tide_rclcpp::SystemGraph::Node &callback, const std::vector<std::string> &topics) {
    const Run run = run_of(*callback.table);
    if (callback.table->get("kind") == "timer") {
      const auto due = [run](const rclcpp::TimerInfo &info) {
        Message message;
        message.clock = info.expected_call_time;
        run(message);
      };
      timers_.push_back(node_.create_wall_timer(std::chrono::nanoseconds(period_ns_), due, groups_.next()));
      priorities_.emplace_back(timers_.back().get(), callback.priority);
      return;
    }
    const Run take = topics.size() > 1 ? joined(topics.size(), run) : run;
    for (const std::string &topic : topics) {
      if (topic.empty()) continue;
      rclcpp::SubscriptionOptions options;
      options.callback_group = groups_.next();
      subscriptions_.push_back(node_.create_subscription<Message>(
          absolute(topic), 10, [take](const Message::ConstSharedPtr &message) { take(*message); }, options));
      priorities_.emplace_back(subscriptions_.back().get(), callback.priority);
    }
  }

  Run run_of(const tide_rclcpp::Table &table) {
    const auto execution_ns = static_cast<std::int64_t>(table.number("execution_ms") * 1e6);
    const std::string to = table.get("publishes.topic");
    rclcpp::Publisher<Message>::SharedPtr publisher;
    if (!to.empty()) publisher = node_.create_publisher<Message>(absolute(to), 10);
    Latencies *latencies = latencies_.back().get();
    return [execution_ns, publisher, latencies](const Message &message) {
      compute(execution_ns);
      if (publisher != nullptr) {
        publisher->publish(message);
      } else {
        latencies->note(rclcpp::Time(message.clock).nanoseconds());
      }
    };
  }

  // Runs with the last of the messages of one expiry.
  static Run joined(std::size_t count, const Run &run) {
    struct Waiting {
      std::mutex mutex;
      std::map<std::int64_t, std::size_t> arrived;  // by the expiry
    };
    const auto waiting = std::make_shared<Waiting>();
    return [waiting, count, run](const Message &message) {
      {
        const std::int64_t due_ns = rclcpp::Time(message.clock).nanoseconds();
        const std::lock_guard<std::mutex> lock(waiting->mutex);
        if (++waiting->arrived[due_ns] < count) return;
        waiting->arrived.erase(waiting->arrived.begin(), waiting->arrived.upper_bound(due_ns));
      }
      run(message);
    };
  }

  static std::string absolute(const std::string &topic) { return topic.front() == '/' ? topic : "/" + topic; }

  rclcpp::Node &node_;
  Groups groups_;
  std::vector<std::unique_ptr<Latencies>> latencies_;
  std::vector<rclcpp::TimerBase::SharedPtr> timers_;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  std::int64_t period_ns_ = 0;
  std::vector<std::pair<const void *, int>> priorities_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "Usage: chains EXECUTOR SYSTEM.toml SECONDS [THREADS]\n");
    return 2;
  }
  rclcpp::init(argc, argv);
  const int threads = argc > 4 ? static_cast<int>(std::strtol(argv[4], nullptr, 10)) : 2;
  const auto node = std::make_shared<rclcpp::Node>("chains");
  Chains chains(argv[2], *node, argv[1]);
  tide_rclcpp::Options options = tide_rclcpp::options_of_system(argv[2]);
  options.lanes.clear();
  const auto executor = make_executor(argv[1], threads, std::move(options));
  if (const auto picas = std::dynamic_pointer_cast<PicasExecutor>(executor)) chains.give_priorities(*picas);
  executor->add_node(node);
  std::thread end([&] { end_after(static_cast<int>(std::strtol(argv[3], nullptr, 10)), *executor); });
  executor->spin();
  end.join();
  std::printf("%s, %d threads\n", argv[1], threads);
  chains.print();
  rclcpp::shutdown();
  return 0;
}
