// SPDX-License-Identifier: Apache-2.0
// Options of a node's parameters.
#include <set>
#include <stdexcept>

#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
#include "tide_rclcpp/options.hpp"
#include "words.h"

namespace tide_rclcpp {

namespace {

using Parameters = rclcpp::node_interfaces::NodeParametersInterface;

template <typename Value>
Value parameter(Parameters &parameters, const std::string &name, const Value &usual) {
  if (!parameters.has_parameter(name)) {
    rcl_interfaces::msg::ParameterDescriptor descriptor;
    descriptor.read_only = true;
    parameters.declare_parameter(name, rclcpp::ParameterValue(usual), descriptor, false);
  }
  return parameters.get_parameter(name).get_value<Value>();
}

std::vector<std::string> list_of(Parameters &parameters, const std::string &name) {
  return parameter(parameters, name, std::vector<std::string>{});
}

tide_rcl::Policy policy_of(Parameters &parameters) {
  const std::string policy = parameter(parameters, "tide.policy", std::string("chains"));
  if (policy == "chains") return tide_rcl::Policy::kChains;
  if (policy == "default") return tide_rcl::Policy::kDefault;
  throw std::invalid_argument("parameter tide.policy: '" + policy + "' is neither chains nor default");
}

std::chrono::nanoseconds patience_of(Parameters &parameters) {
  const std::string usual = std::to_string(Options{}.patience.count()) + "ns";
  const std::string text = parameter(parameters, "tide.patience", usual);
  if (text == "none") return std::chrono::nanoseconds(0);
  const std::optional<std::chrono::nanoseconds> patience = duration_of(text);
  if (!patience.has_value()) {
    throw std::invalid_argument("parameter tide.patience: '" + text + "' is neither a duration, as 50us, nor none");
  }
  return *patience;
}

std::uint16_t place_of(Parameters &parameters) {
  const std::int64_t place = parameter(parameters, "tide.trace_place", std::int64_t{0});
  if (place >= 0 && place <= UINT16_MAX) return static_cast<std::uint16_t>(place);
  throw std::invalid_argument("parameter tide.trace_place: " + std::to_string(place) + " is not in 0 to 65535");
}

// One that is misspelt would be no chain, or no lane, without a word.
void refuse_unknown(Parameters &parameters) {
  const std::set<std::string> known = {"tide.chains",        "tide.lanes",      "tide.policy",     "tide.patience",
                                       "tide.measured_file", "tide.trace_file", "tide.trace_place"};
  for (const auto &[name, value] : parameters.get_parameter_overrides()) {
    if (name.rfind("tide.", 0) != 0 || known.count(name) > 0) continue;
    std::string text = "parameter " + name + ": there is none of that name; known are";
    for (const std::string &one : known) text += (one == *known.begin() ? " " : ", ") + one;
    throw std::invalid_argument(text);
  }
}

}  // namespace

Options options_of(Parameters &parameters) {
  refuse_unknown(parameters);
  Options options;
  options.policy = policy_of(parameters);
  options.patience = patience_of(parameters);
  options.measured_file = parameter(parameters, "tide.measured_file", std::string());
  options.trace_file = parameter(parameters, "tide.trace_file", std::string());
  options.trace_place = place_of(parameters);
  for (const std::string &words : list_of(parameters, "tide.chains")) options.chains.push_back(parse_chain(words));
  for (const std::string &words : list_of(parameters, "tide.lanes")) options.lanes.push_back(parse_lane(words));
  return options;
}

}  // namespace tide_rclcpp
