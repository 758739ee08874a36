// SPDX-License-Identifier: Apache-2.0
// Runs chains as timers and subscriptions of rclcpp on a chosen executor, with messages over the middleware. Measures
// the time from the expiry of a chain's timer to the end of the chain's last callback. The arguments are settings of
// sim/board/plan.h; lab/bench/rclcpp_executors.py derives them from a system.toml.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "executors.h"
#include "plan.h"
#include "rosgraph_msgs/msg/clock.hpp"

namespace {

using Message = rosgraph_msgs::msg::Clock;
using tide::sim::CallbackPlan;
using tide::sim::Graph;
using tide::sim::PathPlan;

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  (void)clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void compute(std::int64_t duration_ns) {
  const std::int64_t end_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) + duration_ns;
  while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end_ns) {}
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
  Chains(const Graph &graph, rclcpp::Node &node, const std::string &executor)
      : graph_(graph), node_(node), groups_(node, executor) {
    for (const PathPlan &path : graph.paths) add_chain(path);
  }
  void print() {
    for (const auto &chain : latencies_) chain->print();
  }
  void give_priorities(PicasExecutor &executor) {
    for (const auto &[entity, priority] : priorities_) executor.set_priority(entity, priority);
  }
  std::vector<tide_rclcpp::Chain> chains;

 private:
  using Run = std::function<void(const Message &)>;

  static std::string topic_of(const CallbackPlan &callback) {
    std::string topic = "/" + callback.name;
    std::replace(topic.begin(), topic.end(), '.', '/');
    return topic;
  }

  // Adds the callbacks of a chain, except those that it shares with an earlier chain.
  void add_chain(const PathPlan &path) {
    latencies_.push_back(std::make_unique<Latencies>());
    latencies_.back()->chain = path.name;
    tide_rclcpp::Chain &words = chains.emplace_back();
    words.name = path.name;
    for (const std::string &name_of_it : path.callbacks) {
      const auto found = std::find_if(graph_.callbacks.begin(), graph_.callbacks.end(),
                                      [&](const CallbackPlan &one) { return one.name == name_of_it; });
      std::vector<std::string> topics;
      for (const std::size_t input : found->inputs) {
        topics.push_back(topic_of(graph_.callbacks[graph_.messages[graph_.inputs[input].message].sender]));
      }
      name(*found, topics, words);
      if (made_.insert(name_of_it).second) add(*found, topics, name_of_it == path.callbacks.back());
    }
  }

  static void name(const CallbackPlan &callback, const std::vector<std::string> &topics, tide_rclcpp::Chain &words) {
    tide_rclcpp::Callback named;
    named.kind = topics.empty() ? tide_rclcpp::Kind::kTimer : tide_rclcpp::Kind::kSubscription;
    named.node = "*";
    named.period = std::chrono::nanoseconds(callback.period);
    named.priority = static_cast<int>(callback.priority);
    if (topics.empty()) words.callbacks.push_back(named);
    for (const std::string &topic : topics) {
      named.name = topic;
      words.callbacks.push_back(named);
    }
  }

  void add(const CallbackPlan &callback, const std::vector<std::string> &topics, bool last) {
    const Run run = run_of(callback, last);
    if (topics.empty()) {
      const auto due = [run](const rclcpp::TimerInfo &info) {
        Message message;
        message.clock = info.expected_call_time;
        run(message);
      };
      timers_.push_back(node_.create_wall_timer(std::chrono::nanoseconds(callback.period), due, groups_.next()));
      priorities_.emplace_back(timers_.back().get(), callback.priority);
      return;
    }
    const Run take = topics.size() > 1 ? joined(topics.size(), run) : run;
    for (const std::string &topic : topics) {
      rclcpp::SubscriptionOptions options;
      options.callback_group = groups_.next();
      subscriptions_.push_back(node_.create_subscription<Message>(
          topic, 10, [take](const Message::ConstSharedPtr &message) { take(*message); }, options));
      priorities_.emplace_back(subscriptions_.back().get(), callback.priority);
    }
  }

  Run run_of(const CallbackPlan &callback, bool last) {
    rclcpp::Publisher<Message>::SharedPtr publisher;
    if (!last) publisher = node_.create_publisher<Message>(topic_of(callback), 10);
    Latencies *latencies = latencies_.back().get();
    return [execution_ns = callback.execution, publisher, latencies](const Message &message) {
      compute(execution_ns);
      if (publisher != nullptr) {
        publisher->publish(message);
      } else {
        latencies->note(rclcpp::Time(message.clock).nanoseconds());
      }
    };
  }

  // Wraps `run` so that it is called once for each expiry, with the last of `count` messages.
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

  const Graph &graph_;
  rclcpp::Node &node_;
  Groups groups_;
  std::vector<std::unique_ptr<Latencies>> latencies_;
  std::vector<rclcpp::TimerBase::SharedPtr> timers_;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  std::set<std::string> made_;
  std::vector<std::pair<const void *, int>> priorities_;
};

}  // namespace

int main(int argc, char **argv) {
  tide::sim::Plan plan;
  Graph graph;
  try {
    if (argc < 4) throw std::invalid_argument("Usage: chains EXECUTOR THREADS NAME=VALUE...");
    for (const std::string &word : std::vector<std::string>(argv + 3, argv + argc)) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) throw std::invalid_argument("'" + word + "' is not NAME=VALUE");
      tide::sim::set(plan, word.substr(0, equals), word.substr(equals + 1));
    }
    graph = tide::sim::graph_of(plan);
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  rclcpp::init(0, nullptr);
  const int threads = static_cast<int>(std::strtol(argv[2], nullptr, 10));
  const auto node = std::make_shared<rclcpp::Node>("chains");
  Chains chains(graph, *node, argv[1]);
  tide_rclcpp::Options options;
  options.chains = chains.chains;
  const auto executor = make_executor(argv[1], threads, std::move(options));
  if (const auto picas = std::dynamic_pointer_cast<PicasExecutor>(executor)) chains.give_priorities(*picas);
  executor->add_node(node);
  std::thread end([&] { end_after(static_cast<int>(plan.horizon / tide::sim::kSecond), *executor); });
  executor->spin();
  end.join();
  std::printf("%s, %d threads\n", argv[1], threads);
  chains.print();
  rclcpp::shutdown();
  return 0;
}
