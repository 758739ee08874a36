// SPDX-License-Identifier: Apache-2.0
// A program releases a timer while the timer's clock jumps.
#include <cstdlib>
#include <future>

#include "program.h"
#include "rcl/time.h"

namespace tide_rclcpp {
namespace {

class Jumps : public Program {};

// A timer without a callback, whose call() lasts until the test ends it. The executor makes this call with its lock for
// the timer held.
class HeldTimer : public rclcpp::TimerBase {
 public:
  struct Gate {
    std::promise<void> entered, opened;
  };
  HeldTimer(const rclcpp::Clock::SharedPtr &clock, Gate &gate)
      : TimerBase(clock, seconds(1), rclcpp::contexts::get_global_default_context()), gate_(gate) {}
  std::shared_ptr<void> call() override {
    gate_.entered.set_value();
    gate_.opened.get_future().wait();
    return nullptr;
  }
  void execute_callback(const std::shared_ptr<void> &) override {}
  bool is_steady() override { return false; }

 private:
  Gate &gate_;
};

// Sets the time as rclcpp does when a /clock message arrives: the clock's lock is held while the callbacks for the jump
// run.
void set_time(rclcpp::Clock &clock, std::chrono::nanoseconds time) {
  const std::lock_guard<std::mutex> lock(clock.get_clock_mutex());
  ASSERT_EQ(rcl_set_ros_time_override(clock.get_clock_handle(), time.count()), RCL_RET_OK);
}

// The report of the jump waits for the call of a timer that the program has released. The timer's destructor takes the
// clock's lock, so a report that released the last reference to the timer would wait for itself.
TEST_F(Jumps, AJumpNeverEndsATimer) {
  for (int round = 0; round < 10; round++) {
    const auto clock = std::make_shared<rclcpp::Clock>(RCL_ROS_TIME);
    ASSERT_EQ(rcl_enable_ros_time_override(clock->get_clock_handle()), RCL_RET_OK);
    std::atomic<int> jumps{0};
    const auto told = clock->create_jump_callback([&] { jumps++; }, nullptr, {true, {1}, {-1}});
    const auto node = make_node("jumps");
    HeldTimer::Gate gate;
    auto timer = std::make_shared<HeldTimer>(clock, gate);
    node->get_node_timers_interface()->add_timer(timer, nullptr);
    Executor executor;
    executor.add_node(node);
    const Spinning spinning(executor);
    set_time(*clock, seconds(10));
    gate.entered.get_future().wait();
    std::atomic<bool> jumped{false};
    std::thread jump([&] {
      set_time(*clock, seconds(20));
      jumped = true;
    });
    ASSERT_TRUE(eventually([&] { return jumps == 2; }));
    std::this_thread::sleep_for(milliseconds(20));  // clock: time for the other thread to wait for a lock, which cannot
                                                    // be observed
    timer.reset();
    gate.opened.set_value();
    if (!eventually([&] { return jumped.load(); })) {
      std::fprintf(stderr, "round %d: the clock's jump does not end\n", round);
      std::_Exit(1);  // the threads wait for each other for ever
    }
    jump.join();
  }
}

}  // namespace
}  // namespace tide_rclcpp
