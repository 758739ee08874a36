// SPDX-License-Identifier: Apache-2.0
// Measured times and the trace of real nodes.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "program.h"

namespace tide_rclcpp {
namespace {

std::string contents_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Records : public Program {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "tide_rclcpp_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    Program::SetUp();
  }
  void TearDown() override {
    Program::TearDown();
    if (std::getenv("TIDE_KEEP_FILES") == nullptr) std::filesystem::remove_all(folder_);
  }

  // Runs a chain until its timer has published ten times and its subscription has taken the messages.
  void run_chain(Options options) {
    Executor executor(std::move(options));
    const auto node = make_node("brake");
    const auto publisher = node->create_publisher<Message>("scan", 10);
    int sent = 0;
    std::atomic<int> came{0};
    const auto timer = node->create_wall_timer(milliseconds(5), [&] {
      if (publisher->get_subscription_count() > 0 && sent < 10) publisher->publish(message(sent++));
    });
    const auto subscription = node->create_subscription<Message>("scan", 10, [&](Message::ConstSharedPtr got) {
      Executor::set_trace_instance(static_cast<std::uint32_t>(got->clock.sec) + 1000);
      came++;
    });
    executor.add_node(node);
    const Spinning spinning(executor);
    EXPECT_TRUE(eventually([&] { return came == 10; })) << came;
  }

  static std::string chain() { return "brake 5: timer * 5ms as sample, subscription * " + space() + "/scan"; }
  std::string folder_;
};

TEST_F(Records, TimesAndTraceOfAChain) {
  Options options = with({"low from 0", "high from 5"}, {chain()});
  options.measured_file = folder_ + "/lines.txt";
  options.trace_file = folder_ + "/run.trace";
  options.trace_place = 3;
  run_chain(options);
  const std::string lines = contents_of(options.measured_file);
  EXPECT_NE(lines.find("tide-execution brake/sample "), std::string::npos) << lines;
  EXPECT_NE(lines.find("tide-execution brake/subscription_2 10 "), std::string::npos) << lines;
  const std::string trace = contents_of(options.trace_file);
  std::set<int> instances;  // of the ended runs of the subscription
  for (std::size_t at = 0; at + TIDE_TRACE_BLOCK_HEADER_BYTES < trace.size();) {
    ASSERT_EQ(trace.substr(at, 4), "TDTR");
    const int count = static_cast<unsigned char>(trace[at + 6]);
    EXPECT_EQ(trace[at + 8], 3);
    at += TIDE_TRACE_BLOCK_HEADER_BYTES;
    for (int index = 0; index < count; index++, at += 16) {
      tide_trace_record_t record;
      std::memcpy(&record, trace.data() + at, sizeof record);
      const bool ends = record.kind == TIDE_TRACE_END && record.priority == TIDE_PRIORITY(5, 1);
      if (ends) instances.insert(static_cast<int>(record.instance));
    }
  }
  EXPECT_EQ(instances.size(), 10u);
  EXPECT_EQ(*instances.begin(), 1000);
  EXPECT_EQ(*instances.rbegin(), 1009);
}

TEST_F(Records, TheEnvironmentTurnsThemOn) {
  ASSERT_EQ(setenv("TIDE_MEASURED_FILE", (folder_ + "/{pid}.txt").c_str(), 1), 0);
  ASSERT_EQ(setenv("TIDE_TRACE_FILE", (folder_ + "/{pid}.trace").c_str(), 1), 0);
  run_chain(with({}, {chain()}));
  ASSERT_EQ(unsetenv("TIDE_MEASURED_FILE"), 0);
  ASSERT_EQ(unsetenv("TIDE_TRACE_FILE"), 0);
  const std::string file = folder_ + "/" + std::to_string(getpid());
  EXPECT_NE(contents_of(file + ".txt").find("brake/sample"), std::string::npos);
  EXPECT_EQ(contents_of(file + ".trace").substr(0, 4), "TDTR");
}

}  // namespace
}  // namespace tide_rclcpp
