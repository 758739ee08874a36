// SPDX-License-Identifier: Apache-2.0
// A component that is nearly always in its callback. If it is destroyed during the callback, it ends the process.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "rclcpp/rclcpp.hpp"
#include "rclcpp_components/register_node_macro.hpp"
#include "rosgraph_msgs/msg/clock.hpp"

namespace tide_rclcpp {

class Slow : public rclcpp::Node {
  using Message = rosgraph_msgs::msg::Clock;

 public:
  explicit Slow(const rclcpp::NodeOptions &options) : Node("slow", options) {
    begins_ = create_publisher<Message>("begins", 10);
    timer_ = create_wall_timer(std::chrono::milliseconds(2), [this] {
      inside_ = true;
      begins_->publish(Message());
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // clock: the callback's length
      inside_ = false;
    });
  }
  ~Slow() override {
    if (!inside_) return;
    std::fprintf(stderr, "a component ends while its callback runs\n");
    std::abort();
  }
  Slow(const Slow &) = delete;
  Slow &operator=(const Slow &) = delete;

 private:
  std::atomic<bool> inside_{false};
  rclcpp::Publisher<Message>::SharedPtr begins_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace tide_rclcpp

RCLCPP_COMPONENTS_REGISTER_NODE(tide_rclcpp::Slow)
