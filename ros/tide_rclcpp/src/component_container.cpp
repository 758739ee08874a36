// SPDX-License-Identifier: Apache-2.0
// A container for components of rclcpp with the executor of this package; otherwise it is like
// rclcpp_components/component_container. Its node, /ComponentManager, has the parameters that options_of declares.
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "rclcpp/rclcpp.hpp"
#include "rclcpp_components/component_manager.hpp"
#include "tide_rclcpp/executor.hpp"

namespace {

// Destroys an unloaded component only when none of its callbacks runs any more.
class Manager final : public rclcpp_components::ComponentManager {
 private:
  void remove_node_from_executor(std::uint64_t node_id) override {
    const auto executor = std::dynamic_pointer_cast<tide_rclcpp::Executor>(executor_.lock());
    if (executor != nullptr) executor->remove_node_and_wait(node_wrappers_[node_id].get_node_base_interface());
  }
};

// A container has many components, so if an exception ends it, the message names the callback.
void spin(tide_rclcpp::Executor &executor) {
  std::string what = "an exception that is no std::exception";
  try {
    executor.spin();
    return;
  } catch (const std::exception &error) {
    what = error.what();
  } catch (...) {}
  const std::string callback = executor.failed_callback();
  throw std::runtime_error(callback.empty() ? what : callback + ": " + what);
}

}  // namespace

int main(int argc, char **argv) {
  rclcpp::init(argc, argv);
  int status = 0;
  try {
    const auto manager = std::make_shared<Manager>();
    const auto executor =
        std::make_shared<tide_rclcpp::Executor>(tide_rclcpp::options_of(*manager->get_node_parameters_interface()));
    manager->set_executor(executor);
    executor->add_node(manager);
    spin(*executor);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "component_container: %s\n", error.what());
    status = 1;
  }
  rclcpp::shutdown();
  return status;
}
