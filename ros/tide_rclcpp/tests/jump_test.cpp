// SPDX-License-Identifier: Apache-2.0
// A program that releases a timer while its clock jumps.
#include <cstdlib>
#include <future>

#include "program.h"
#include "rcl/time.h"

namespace tide_rclcpp {
namespace {

class Jumps : public Program {};

// A timer whose call lasts until the test ends it, and runs no callback. The executor makes this call with the timer's
// lock held.
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

// Like rclcpp when a /clock message arrives: the callbacks of a jump run with the clock's lock held.
void set_time(rclcpp::Clock &clock, std::chrono::nanoseconds time) {
  const std::lock_guard<std::mutex> lock(clock.get_clock_mutex());
  ASSERT_EQ(rcl_set_ros_time_override(clock.get_clock_handle(), time.count()), RCL_RET_OK);
}

// The jump waits for the call of a timer that the program has released. Destroying the timer takes the clock's lock, so
// a jump that held the last reference to the timer would wait for itself.
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
    std::this_thread::sleep_for(milliseconds(20));  // clock: a wait for a lock is not observable from outside
    timer.reset();
    gate.opened.set_value();
    if (!eventually([&] { return jumped.load(); })) {
      std::fprintf(stderr, "round %d: the clock's jump does not end\n", round);
      std::_Exit(1);  // from here on, this program cannot end normally
    }
    jump.join();
  }
}

}  // namespace
}  // namespace tide_rclcpp
