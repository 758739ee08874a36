// SPDX-License-Identifier: Apache-2.0
// Runs CALLBACKS callbacks of TIMERS timers, of which one is due every 2 ms, and ends. The instructions of one callback
// follow from the difference of two runs with different numbers of callbacks under valgrind --tool=callgrind or perf
// stat. Usage: dispatch EXECUTOR TIMERS CALLBACKS
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "executors.h"
#include "tide/posix.h"

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "Usage: dispatch EXECUTOR TIMERS CALLBACKS\n");
    return 2;
  }
  tide_posix_set_wake_up_lead(0);  // no polling of the clock at the end of a wait, which adds instructions
  rclcpp::init(argc, argv);
  const int count = std::atoi(argv[2]), wanted = std::atoi(argv[3]);
  const auto node = std::make_shared<rclcpp::Node>(
      "dispatch", rclcpp::NodeOptions().start_parameter_services(false).start_parameter_event_publisher(false));
  const auto executor = make_executor(argv[1], 1);
  int ran = 0;
  std::vector<rclcpp::TimerBase::SharedPtr> timers;
  for (int index = 0; index < count; index++) {
    timers.push_back(node->create_wall_timer(std::chrono::milliseconds(2 * count), [&] {
      if (++ran == wanted) executor->cancel();
    }));
    rclcpp::sleep_for(std::chrono::milliseconds(2));
  }
  executor->add_node(node);
  executor->spin();
  std::printf("%s: %d callbacks of %d timers\n", argv[1], ran, count);
  rclcpp::shutdown();
  return 0;
}
