// SPDX-License-Identifier: Apache-2.0
// The roll of an executor's entities, tested alone.
#include "roll.h"

#include "program.h"

namespace tide_rclcpp {
namespace {

class Rolls : public Program {};

// Two updates at the same time: the later one never uses an older list of groups than the earlier one.
TEST_F(Rolls, NoUpdateGoesByOlderGroups) {
  const auto node = make_node("late");
  tide_rcl::Engine engine(tide_rcl::EngineOptions{});
  Roll roll(engine, rclcpp::contexts::get_global_default_context(), {});
  std::atomic<bool> asked{false}, updated{false};
  std::thread older([&] {
    roll.update([&] {
      asked = true;
      // clock: the other update waits for this one, so no event ends this loop
      for (int tries = 0; tries < 100 && !updated; tries++) std::this_thread::sleep_for(milliseconds(1));
      return Roll::Groups{};
    });
  });
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  const auto group = node->get_node_base_interface()->get_default_callback_group();
  roll.update([&] { return Roll::Groups{group}; });
  updated = true;
  older.join();
  EXPECT_FALSE(roll.without_chain().empty()) << "what the node has is forgotten";
}

}  // namespace
}  // namespace tide_rclcpp
