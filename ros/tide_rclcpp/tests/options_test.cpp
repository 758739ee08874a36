// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "program.h"

namespace tide_rclcpp {
namespace {

class Parameters : public Program {};

TEST_F(Parameters, GiveChainsLanesAndPolicy) {
  rclcpp::NodeOptions overrides;
  overrides.append_parameter_override("tide.chains", std::vector<std::string>{"c 3: timer /x", "d 4: remote"});
  overrides.append_parameter_override("tide.lanes", std::vector<std::string>{"one from 0", "two from 3"});
  overrides.append_parameter_override("tide.trace_place", 2);
  overrides.append_parameter_override("tide.patience", "none");
  overrides.append_parameter_override("tide.trace_file", "run.trace");
  rclcpp::Node node("parameters", space(), overrides);
  const Options options = options_of(*node.get_node_parameters_interface());
  EXPECT_EQ(options.chains.size(), 2u);
  EXPECT_EQ(options.lanes.at(1).settings.least_level, 3);
  EXPECT_EQ(options.policy, tide_rcl::Policy::kChains);
  EXPECT_EQ(options.trace_file, "run.trace");
  EXPECT_EQ(options.trace_place, 2);
  EXPECT_EQ(options.patience.count(), 0);
  EXPECT_EQ(options_of(*node.get_node_parameters_interface()).chains.size(), 2u) << "once more";
  rclcpp::NodeOptions others;
  others.append_parameter_override("tide.policy", "default");
  rclcpp::Node other("others", space(), others);
  const Options of_other = options_of(*other.get_node_parameters_interface());
  EXPECT_EQ(of_other.policy, tide_rcl::Policy::kDefault);
  rclcpp::NodeOptions wrong;
  wrong.append_parameter_override("tide.policy", "quick");
  rclcpp::Node bad("bad", space(), wrong);
  EXPECT_THROW(options_of(*bad.get_node_parameters_interface()), std::invalid_argument);
}

TEST_F(Parameters, PatienceIsADurationOrNone) {
  for (const std::string text : {"20us", "soon"}) {
    rclcpp::NodeOptions overrides;
    overrides.append_parameter_override("tide.patience", text);
    rclcpp::Node node("patient", space(), overrides);
    rclcpp::node_interfaces::NodeParametersInterface &parameters = *node.get_node_parameters_interface();
    if (text == "soon") {
      EXPECT_THROW(options_of(parameters), std::invalid_argument);
    } else {
      EXPECT_EQ(options_of(parameters).patience, std::chrono::microseconds(20));
    }
  }
}

TEST_F(Parameters, ThatNobodyKnowsAreRefused) {
  for (const char *name : {"tide.chain", "tide.lane", "tide.system", "tide.chains.brake"}) {
    rclcpp::NodeOptions overrides;
    overrides.append_parameter_override(name, "brake 2: timer *");
    overrides.append_parameter_override("other.chain", "of somebody else");
    rclcpp::Node node("misspelt", space(), overrides);
    try {
      (void)options_of(*node.get_node_parameters_interface());
      ADD_FAILURE() << name << " is taken";
    } catch (const std::invalid_argument &error) {
      EXPECT_EQ(
          std::string(error.what()).find("parameter " + std::string(name) + ": there is none of that name; known"), 0u)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace tide_rclcpp
