// SPDX-License-Identifier: Apache-2.0
// rclcpp's timer for `tide lab timers`: one node, one wall timer, rclcpp's single-threaded executor. Prints `ready`,
// waits for a line, measures, and writes two int64 for each callback. The first is the clock at the start of the
// callback minus the expiry on the timer's grid; the second is the value that rclcpp reports, actual minus expected
// call. SIGTERM and SIGINT end it early, and the measurements are kept. Usage: timer_latency --repetitions N
// --timeout-ns N --policy normal|fifo|rr|deadline
// --priority N [--cpu N] --out FILE; with deadline the scheduling is given from outside.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "rclcpp/rclcpp.hpp"

namespace {

struct Sample {
  std::int64_t measured_ns, reported_ns;
};

std::int64_t now_ns() {
  timespec time{};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// The grid begins with the first expected call; calls whose expected time is not on it are counted.
class Measurement {
 public:
  Measurement(std::size_t repetitions, std::int64_t period_ns) : samples_(repetitions), period_ns_(period_ns) {}

  // Records a call of the timer. Returns true if it was the last one.
  bool note(std::int64_t time_ns, const rclcpp::TimerInfo &info) {
    const std::int64_t expected_ns = info.expected_call_time.nanoseconds();
    if (done_ == samples_.size()) return true;
    if (done_ == 0) grid_ns_ = expected_ns;
    const std::int64_t index = (expected_ns - grid_ns_ + period_ns_ / 2) / period_ns_;
    const std::int64_t expiry_ns = grid_ns_ + index * period_ns_;
    told_another_ += expected_ns != expiry_ns ? 1 : 0;
    if (done_ > 0 && index > index_ + 1) skipped_ += index - index_ - 1;
    index_ = index;
    early_ += time_ns < expiry_ns ? 1 : 0;
    samples_[done_++] = {time_ns - expiry_ns, info.actual_call_time.nanoseconds() - expected_ns};
    return done_ == samples_.size();
  }
  bool write(const std::string &path) const {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return false;
    const std::size_t wrote = std::fwrite(samples_.data(), sizeof samples_[0], done_, file);
    return std::fclose(file) == 0 && wrote == done_;
  }
  void print() const {
    std::printf(
        "{\"event\": \"done\", \"done\": %zu, \"skipped\": %lld, \"early\": %lld, \"told_another_expiry\": %lld}\n",
        done_, static_cast<long long>(skipped_), static_cast<long long>(early_), static_cast<long long>(told_another_));
  }

 private:
  std::vector<Sample> samples_;
  std::int64_t period_ns_, grid_ns_ = 0, index_ = 0, skipped_ = 0, early_ = 0, told_another_ = 0;
  std::size_t done_ = 0;
};

// Call this before rclcpp starts threads, because they inherit the scheduling.
bool schedule(const std::map<std::string, std::string> &words) {
  if (words.count("--cpu") != 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::stoul(words.at("--cpu")), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return false;
  }
  const std::string &policy = words.at("--policy");
  if (policy != "fifo" && policy != "rr") return policy == "normal" || policy == "deadline";
  sched_param parameter{};
  parameter.sched_priority = std::stoi(words.at("--priority"));
  return sched_setscheduler(0, policy == "fifo" ? SCHED_FIFO : SCHED_RR, &parameter) == 0;
}

int measure(const std::map<std::string, std::string> &words, const sigset_t &signals) {
  const std::chrono::nanoseconds period(std::stoll(words.at("--timeout-ns")));
  Measurement measurement(std::stoul(words.at("--repetitions")), period.count());
  rclcpp::init(0, nullptr, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None);
  const auto node = std::make_shared<rclcpp::Node>("timer_latency");
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  std::atomic<bool> measuring{false};
  std::thread([&signals, &executor, &measuring] {
    int number = 0;
    (void)sigwait(&signals, &number);
    if (!measuring) std::_Exit(0);
    executor.cancel();
  }).detach();
  std::puts("{\"event\": \"ready\"}");
  (void)std::fflush(stdout);
  std::string line;
  (void)std::getline(std::cin, line);
  const auto timer = node->create_wall_timer(period, [&](const rclcpp::TimerInfo &info) {
    if (measurement.note(now_ns(), info)) executor.cancel();
  });
  measuring = true;
  executor.spin();
  if (!measurement.write(words.at("--out"))) {
    std::perror("timer_latency: the file could not be written");
    return EXIT_FAILURE;
  }
  measurement.print();
  (void)std::fflush(stdout);
  std::_Exit(EXIT_SUCCESS);  // the file is complete; rclcpp's threads are not needed any more
}

}  // namespace

int main(int count, char **arguments) {
  std::map<std::string, std::string> words{{"--priority", "0"}};
  for (int place = 1; place + 1 < count; place += 2) words[arguments[place]] = arguments[place + 1];
  for (const char *name : {"--repetitions", "--timeout-ns", "--policy", "--out"}) {
    if (words.count(name) != 0) continue;
    std::fprintf(stderr, "timer_latency: %s is missing\n", name);
    return 2;
  }
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGTERM);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    if (!schedule(words)) {
      std::perror("timer_latency: the scheduling was refused");
      return 3;
    }
    return measure(words, signals);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "timer_latency: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
