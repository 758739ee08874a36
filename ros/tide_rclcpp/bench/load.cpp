// SPDX-License-Identifier: Apache-2.0
// Measures the number of callbacks with 20 us of work that an executor runs per second, or the time from messages to
// their callbacks. Usage: load EXECUTOR KIND SECONDS [THREADS]. The kinds are:
//   timers                        eight timers that are always due
// intra, inter eight callbacks, each of which publishes the next message for itself, within the process or over the
// middleware
//   latency-intra, latency-inter  one message each millisecond, and no work: the time to the callback, from the
//                                 publication and from the time at which the publishing timer was due
//   the last two with -late       the publisher works for 60 us before it publishes. By then the other thread is
//                                 asleep; without the suffix it is only about to go to sleep
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executors.h"
#include "rosgraph_msgs/msg/clock.hpp"

namespace {

using Message = rosgraph_msgs::msg::Clock;
constexpr int kSources = 8;
constexpr std::int64_t kWorkNs = 20000;

std::int64_t now_ns() {
  timespec time{};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void work(int times = 1) {
  const std::int64_t end_ns = now_ns() + times * kWorkNs;
  while (now_ns() < end_ns) {}
}

class Load {
 public:
  Load(rclcpp::Node &node, const std::string &kind, const std::string &executor)
      : node_(node), groups_(node, executor), works_(kind.rfind("latency", 0) != 0) {
    for (int index = 0; index < (works_ ? kSources : 1); index++) kind == "timers" ? add_timer() : add_topic(index);
    if (works_) return;
    const bool late = kind.find("-late") != std::string::npos;
    const auto send = [this, late](const rclcpp::TimerInfo &info) {
      due_ns_ = info.expected_call_time.nanoseconds();
      if (late) work(3);
      publish(0);
    };
    timers_.push_back(node.create_wall_timer(std::chrono::milliseconds(1), send, groups_.next()));
  }
  void begin() {
    for (std::size_t index = 0; works_ && index < publishers_.size(); index++) publish(index);
  }
  bool matched() const {
    return std::all_of(publishers_.begin(), publishers_.end(),
                       [](const auto &one) { return one->get_subscription_count() > 0; });
  }
  void print(double seconds) {
    std::printf("%.0f callbacks a second", static_cast<double>(runs_) / seconds);
    if (!works_) {
      print_times("publish to callback", latencies_ns_);
      print_times("due to callback", since_due_ns_);
    }
    std::printf("\n");
  }

 private:
  static void print_times(const char *name, std::vector<std::int64_t> &times_ns) {
    if (times_ns.empty()) return;
    std::sort(times_ns.begin(), times_ns.end());
    const auto at_us = [&](std::size_t percent) {
      return static_cast<double>(times_ns[(times_ns.size() - 1) * percent / 100]) / 1e3;
    };
    std::printf("; %s: median %.1f us, 99 %% %.1f us", name, at_us(50), at_us(99));
  }

  void add_timer() {
    const auto run = [this] {
      work();
      runs_++;
    };
    timers_.push_back(node_.create_wall_timer(std::chrono::microseconds(1), run, groups_.next()));
  }

  void add_topic(int index) {
    const std::string name = "load" + std::to_string(index);
    publishers_.push_back(node_.create_publisher<Message>(name, 10));
    rclcpp::SubscriptionOptions options;
    options.callback_group = groups_.next();
    subscriptions_.push_back(node_.create_subscription<Message>(
        name, 10, [this, index](const Message::ConstSharedPtr &message) { take(*message, index); }, options));
  }

  void take(const Message &message, int index) {
    runs_++;
    if (works_) {
      work();
      publish(static_cast<std::size_t>(index));
      return;
    }
    const std::int64_t time_ns = now_ns();
    const std::lock_guard<std::mutex> lock(mutex_);
    latencies_ns_.push_back(time_ns - rclcpp::Time(message.clock).nanoseconds());
    since_due_ns_.push_back(time_ns - due_ns_);
  }

  void publish(std::size_t index) {
    auto message = std::make_unique<Message>();
    message->clock = rclcpp::Time(now_ns());
    publishers_[index]->publish(std::move(message));
  }

  rclcpp::Node &node_;
  Groups groups_;
  bool works_;
  std::vector<rclcpp::TimerBase::SharedPtr> timers_;
  std::vector<rclcpp::Publisher<Message>::SharedPtr> publishers_;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::int64_t> due_ns_{0};  // when the timer that published the last message was due
  std::mutex mutex_;
  std::vector<std::int64_t> latencies_ns_, since_due_ns_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "Usage: load EXECUTOR timers|intra|inter|latency-intra|latency-inter|latency-intra-late|"
                 "latency-inter-late SECONDS [THREADS]\n");
    return 2;
  }
  rclcpp::init(argc, argv);
  const std::string kind = argv[2];
  const bool intra = kind.find("intra") != std::string::npos;
  const auto node = std::make_shared<rclcpp::Node>("load", rclcpp::NodeOptions().use_intra_process_comms(intra));
  Load load(*node, kind, argv[1]);
  while (!load.matched()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto executor = make_executor(argv[1], argc > 4 ? static_cast<int>(std::strtol(argv[4], nullptr, 10)) : 2);
  executor->add_node(node);
  std::thread end([&] {
    load.begin();
    end_after(static_cast<int>(std::strtol(argv[3], nullptr, 10)), *executor);
  });
  const std::int64_t begin_ns = now_ns();
  executor->spin();
  end.join();
  const double seconds = static_cast<double>(now_ns() - begin_ns) / 1e9;
  std::printf("%s, %s: ", argv[1], argv[2]);
  load.print(seconds);
  rclcpp::shutdown();
  return 0;
}
