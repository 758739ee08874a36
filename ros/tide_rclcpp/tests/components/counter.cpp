// SPDX-License-Identifier: Apache-2.0
// A component that sends itself a count over the middleware, and publishes how far it has counted.
#include <atomic>

#include "rclcpp/rclcpp.hpp"
#include "rclcpp_components/register_node_macro.hpp"
#include "rosgraph_msgs/msg/clock.hpp"

namespace tide_rclcpp {

// Its messages on `counted` contain the parameter `number` in the field nanosec, and the count in sec. The first
// message to itself is repeated, because it may be lost during discovery. If a later one is lost, the count stops.
class Counter : public rclcpp::Node {
  using Message = rosgraph_msgs::msg::Clock;

 public:
  explicit Counter(const rclcpp::NodeOptions &options) : Node("counter", options) {
    number_ = static_cast<std::uint32_t>(declare_parameter<std::int64_t>("number", 0));
    counted_ = create_publisher<Message>("counted", 10);
    to_itself_ = create_publisher<Message>("~/next", rclcpp::QoS(100).reliable());
    group_ = create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive);
    rclcpp::SubscriptionOptions of_group;
    of_group.callback_group = group_;
    subscription_ = create_subscription<Message>(
        "~/next", rclcpp::QoS(100).reliable(), [this](Message::ConstSharedPtr message) { came(*message); }, of_group);
    timer_ = create_wall_timer(std::chrono::milliseconds(2), [this] {
      const std::int32_t count = count_;
      if (count != 0 && count != sent_) return;
      Message message;
      message.clock.sec = count;
      sent_ = count + 1;
      to_itself_->publish(message);
    });
  }

 private:
  void came(const Message &message) {
    if (message.clock.sec != count_) return;
    count_++;
    Message told;
    told.clock.sec = count_;
    told.clock.nanosec = number_;
    counted_->publish(told);
  }

  std::uint32_t number_ = 0;
  std::int32_t sent_ = 0;  // the count after the timer's last message has arrived
  std::atomic<std::int32_t> count_{0};
  rclcpp::CallbackGroup::SharedPtr group_;
  rclcpp::Publisher<Message>::SharedPtr counted_, to_itself_;
  rclcpp::Subscription<Message>::SharedPtr subscription_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace tide_rclcpp

RCLCPP_COMPONENTS_REGISTER_NODE(tide_rclcpp::Counter)
