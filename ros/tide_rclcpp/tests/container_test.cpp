// SPDX-License-Identifier: Apache-2.0
// component_container in a separate process: components are loaded, run and are unloaded by clients that exist for one
// call. The environment variable TIDE_ROUNDS sets the number of rounds; with it, the container's memory is printed
// after a fifth of the rounds and at the end.
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>

#include "composition_interfaces/srv/list_nodes.hpp"
#include "composition_interfaces/srv/load_node.hpp"
#include "composition_interfaces/srv/unload_node.hpp"
#include "program.h"

namespace tide_rclcpp {
namespace {

using composition_interfaces::srv::ListNodes;
using composition_interfaces::srv::LoadNode;
using composition_interfaces::srv::UnloadNode;
constexpr int kCountTo = 20;

// The container program, in the name space of this test, with two lanes and a chain.
class ContainerProcess {
 public:
  ContainerProcess() {
    const char *before = std::getenv("AMENT_PREFIX_PATH");
    const std::string prefixes = std::string(TIDE_PREFIX) + ":" + (before == nullptr ? "" : before);
    (void)setenv("AMENT_PREFIX_PATH", prefixes.c_str(), 1);
    std::vector<std::string> words = {TIDE_CONTAINER, "--ros-args",
                                      "-r",           "__ns:=" + space(),
                                      "-p",           "tide.lanes:=['rest from 0', 'urgent from 2']",
                                      "-p",           "tide.chains:=['count 3: timer * 2ms']"};
    std::vector<char *> arguments;
    for (std::string &word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&process_, TIDE_CONTAINER, nullptr, nullptr, arguments.data(), environ), 0);
  }
  ContainerProcess(const ContainerProcess &) = delete;
  ContainerProcess &operator=(const ContainerProcess &) = delete;
  ~ContainerProcess() {
    if (process_ > 0) (void)end(SIGKILL);
  }

  // Returns the status from waitpid.
  int end(int signal) {
    int status = -1;
    (void)kill(process_, signal);
    (void)waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

  double memory_mb() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
    long size = 0, resident = 0;
    file >> size >> resident;
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
  }

 private:
  pid_t process_ = 0;
};

class Containers : public Program {
 protected:
  // Calls a service of the container with a client that exists only for this call.
  template <typename Service>
  typename Service::Response::SharedPtr call(const std::string &name,
                                             const typename Service::Request::SharedPtr &request) {
    const auto client = asker_->create_client<Service>(space() + "/ComponentManager/_container/" + name);
    if (!client->wait_for_service(seconds(60))) return nullptr;
    auto future = client->async_send_request(request).future.share();
    if (executor_->spin_until_future_complete(future, seconds(60)) != rclcpp::FutureReturnCode::SUCCESS) return nullptr;
    return future.get();
  }

  std::uint64_t load(std::uint32_t number, const char *plugin = "tide_rclcpp::Counter") {
    const auto request = std::make_shared<LoadNode::Request>();
    request->package_name = "tide_rclcpp_test";
    request->plugin_name = plugin;
    request->node_name = "component_" + std::to_string(number);
    request->node_namespace = space();
    request->parameters.push_back(rclcpp::Parameter("number", static_cast<std::int64_t>(number)).to_parameter_msg());
    const auto response = call<LoadNode>("load_node", request);
    EXPECT_TRUE(response != nullptr && response->success) << (response == nullptr ? "" : response->error_message);
    return response == nullptr ? 0 : response->unique_id;
  }

  bool unload(std::uint64_t id) {
    const auto request = std::make_shared<UnloadNode::Request>();
    request->unique_id = id;
    const auto response = call<UnloadNode>("unload_node", request);
    return response != nullptr && response->success;
  }

  void visit(std::uint32_t first) {
    counts_.clear();
    std::vector<std::uint64_t> ids;
    for (std::uint32_t number = first; number < first + 3; number++) ids.push_back(load(number));
    const auto all_counted = [&] {
      executor_->spin_some();
      for (std::uint32_t number = first; number < first + 3; number++) {
        if (counts_[number] >= 0 && counts_[number] < kCountTo) return false;
      }
      return true;
    };
    EXPECT_TRUE(eventually(all_counted));
    for (std::uint32_t number = first; number < first + 3; number++) {
      EXPECT_GE(counts_[number], kCountTo) << "component " << number << " lost a message";
    }
    for (const std::uint64_t id : ids) EXPECT_TRUE(unload(id)) << id;
    const auto list = call<ListNodes>("list_nodes", std::make_shared<ListNodes::Request>());
    ASSERT_NE(list, nullptr);
    EXPECT_TRUE(list->unique_ids.empty());
  }

  std::shared_ptr<rclcpp::Node> asker_;
  std::unique_ptr<Executor> executor_;
  std::map<std::uint32_t, std::int32_t> counts_;  // by number of the component
};

TEST_F(Containers, ComponentsComeAndGo) {
  const char *asked = std::getenv("TIDE_ROUNDS");
  const std::uint32_t rounds = asked == nullptr ? 3 : static_cast<std::uint32_t>(std::atoi(asked));
  ContainerProcess container;
  asker_ = make_node("asker");
  executor_ = std::make_unique<Executor>();
  const auto subscription = asker_->create_subscription<Message>(
      space() + "/counted", 100, [this](Message::ConstSharedPtr got) { counts_[got->clock.nanosec] = got->clock.sec; });
  executor_->add_node(asker_);
  for (std::uint32_t round = 0; round < rounds && !HasFailure(); round++) {
    visit(1 + 3 * (round % 50));
    if (asked != nullptr && (round + 1 == rounds || round == rounds / 5)) {
      std::printf("after %u components: %.1f MB\n", 3 * (round + 1), container.memory_mb());
      std::fflush(stdout);
    }
  }
  executor_.reset();
  EXPECT_EQ(container.end(SIGINT), 0);
}

// The component's callback and the request to unload the component run on different lanes.
TEST_F(Containers, AComponentEndsAfterItsCallback) {
  ContainerProcess container;
  asker_ = make_node("asker");
  executor_ = std::make_unique<Executor>();
  int begins = 0;
  const auto subscription =
      asker_->create_subscription<Message>(space() + "/begins", 10, [&](Message::ConstSharedPtr) { begins++; });
  executor_->add_node(asker_);
  for (std::uint32_t round = 1; round <= 3 && !HasFailure(); round++) {
    const std::uint64_t id = load(round, "tide_rclcpp::Slow");
    begins = 0;
    EXPECT_TRUE(eventually([&] {
      executor_->spin_some();
      return begins > 0;
    }));
    EXPECT_TRUE(unload(id)) << "in round " << round;
  }
  EXPECT_NE(call<ListNodes>("list_nodes", std::make_shared<ListNodes::Request>()), nullptr);
  executor_.reset();
  EXPECT_EQ(container.end(SIGINT), 0);
}

}  // namespace
}  // namespace tide_rclcpp
