// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "plan.h"
#include "program.h"
#include "written.h"

namespace tide_rclcpp {
namespace {

std::string refusal_of(const std::string &words, bool lane) {
  try {
    lane ? (void)parse_lane(words) : (void)parse_chain(words);
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "(taken)";
}

TEST(Words, OfAChain) {
  const Chain chain = parse_chain("brake 12: timer /lidar 10ms, subscription * /scan, remote, service /a/plan /stop");
  EXPECT_EQ(chain.name, "brake");
  EXPECT_EQ(chain.level, 12);
  ASSERT_EQ(chain.callbacks.size(), 4u);
  EXPECT_EQ(to_string(chain.callbacks[0]), "timer /lidar 10000000ns");
  EXPECT_EQ(to_string(chain.callbacks[1]), "subscription * /scan");
  EXPECT_EQ(to_string(chain.callbacks[2]), "remote");
  EXPECT_EQ(to_string(chain.callbacks[3]), "service /a/plan /stop");
  EXPECT_EQ(parse_chain("a 1: timer *").callbacks.front().period.count(), 0);
  const Chain named = parse_chain("a 1: timer * as tick, timer * 3ms as t2, action_server * /move as m, client * /c");
  EXPECT_EQ(name_of(named, 0), "a/tick");
  EXPECT_EQ(name_of(named, 1), "a/t2");
  EXPECT_EQ(name_of(named, 2), "a/m");
  EXPECT_EQ(name_of(named, 3), "a/client_4");
  EXPECT_EQ(to_string(named.callbacks[2]), "action_server * /move");
}

TEST(Words, OfAChainThatAreNotUnderstood) {
  const std::vector<std::pair<const char *, const char *>> cases = {
      {"brake 2", "no colon"},
      {"brake 0: timer /a", "'0' is not a level (1 to 126)"},
      {"brake 127: timer /a", "'127' is not a level"},
      {"brake 2 3: timer /a", "'3' is not the end of a chain's head"},
      {": timer /a", "its end is not the name of a chain"},
      {"a 1: timr /a", "'timr' is not timer, subscription"},
      {"a 1: timer a", "'a' is not the full name of a node, or *, as /a"},
      {"a 1: timer /a 10", "'10' is not a period, as 10ms"},
      {"a 1: timer /a -3ms", "is not a period"},
      {"a 1: timer /a 10ms more", "'more' is not the end of a callback"},
      {"a 1: subscription /a", "its end is not the full name of a topic"},
      {"a 1: subscription /a scan", "as /scan"},
      {"a 1: subscription /a *", "is not the full name of a topic"},
      {"a 1: timer /a,", "its end is not timer"},
      {"a 1: timer /a as", "its end is not a callback's name"},
      {"a 1: timer /a as Tick", "'Tick' is not a callback's name of small letters"},
      {"a 1: action_client /a move", "is not the full name of an action"},
      {"a 1: action_client /a", "its end is not the full name of an action"},
  };
  for (const auto &[words, expected] : cases) {
    EXPECT_NE(refusal_of(words, false).find(expected), std::string::npos) << words << ": " << refusal_of(words, false);
  }
}

TEST(Words, OfALane) {
  const tide_rcl::Lane lane = parse_lane("urgent from 3 budget 30ms 100ms fifo 60 low 5 cpu 1 normal if refused");
  EXPECT_EQ(lane.name, "urgent");
  EXPECT_EQ(lane.settings.least_level, 3);
  EXPECT_EQ(lane.settings.scheduling, TIDE_SCHEDULING_SPORADIC);
  EXPECT_EQ(lane.settings.priority, 60);
  EXPECT_EQ(lane.settings.low_priority, 5);
  EXPECT_EQ(lane.settings.runtime_ns, 30000000);
  EXPECT_EQ(lane.settings.period_ns, 100000000);
  EXPECT_EQ(lane.settings.processor, TIDE_ON_PROCESSOR(1));
  EXPECT_TRUE(lane.settings.may_run_normally);
  EXPECT_EQ(parse_lane("a from 0").settings.scheduling, TIDE_SCHEDULING_INHERIT);
  EXPECT_EQ(parse_lane("a from 0 fifo 1").settings.scheduling, TIDE_SCHEDULING_FIFO);
  EXPECT_EQ(parse_lane("a from 0 rr 99").settings.scheduling, TIDE_SCHEDULING_ROUND_ROBIN);
  EXPECT_EQ(parse_lane("a from 0 deadline 1ms 10ms").settings.scheduling, TIDE_SCHEDULING_DEADLINE);
}

TEST(Words, OfALaneThatAreNotUnderstood) {
  const std::vector<std::pair<const char *, const char *>> cases = {
      {"", "its end is not the name of a lane"},
      {"a 3", "'3' is not 'from'"},
      {"a from 127", "'127' is not a level (0 to 126)"},
      {"a from 0 fifo 100", "'100' is not a priority (1 to 99)"},
      {"a from 0 cpu x", "'x' is not a processor"},
      {"a from 0 deadline 10ms", "its end is not a period"},
      {"a from 0 deadline 10ms 1ms", "a period of at least the runtime"},
      {"a from 0 budget 1ms 2ms", "needs a priority"},
      {"a from 0 normal", "is not normal if refused"},
      {"a from 0 quick", "'quick' is not fifo, rr"},
  };
  for (const auto &[words, expected] : cases) {
    EXPECT_NE(refusal_of(words, true).find(expected), std::string::npos) << words << ": " << refusal_of(words, true);
  }
}

TEST(Plans, TheHighestOfSeveralChainsAndWhatIsNamedInVain) {
  const Plan plan({parse_chain("low 1: timer /a 10ms, subscription /b /x, subscription /c /y"),
                   parse_chain("high 2: remote, subscription * /x")});
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/a", "", milliseconds(10), 0}), TIDE_PRIORITY(1, 0));
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/a", "", milliseconds(11), 0}), 0);
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/b", "", milliseconds(10), 0}), 0);
  EXPECT_EQ(plan.priority_of({Kind::kSubscription, "/b", "/x", {}, 0}), TIDE_PRIORITY(2, 1));
  EXPECT_EQ(plan.priority_of({Kind::kClient, "/b", "/x", {}, 0}), 0);
  EXPECT_EQ(plan.priority_of({Kind::kSubscription, "/c", "/y", {}, 0}), TIDE_PRIORITY(1, 2));
  EXPECT_EQ(plan.unmatched({{Kind::kSubscription, "/b", "/x", {}, 0}}),
            (std::vector<std::string>{"chain low: timer /a 10000000ns", "chain low: subscription /c /y"}));
  Chain endless = parse_chain("endless 1: remote");
  endless.callbacks.resize(257);
  EXPECT_THROW(Plan refused({endless}), std::invalid_argument);
}

TEST(Systems, OfFourChains) {
  const Options options = options_of_system(TIDE_SYSTEMS "/four_chains/system.toml");
  EXPECT_EQ(options.lanes.size(), 2u);
  ASSERT_EQ(options.chains.size(), 4u);
  EXPECT_EQ(options.chains[0].name, "c1");
  EXPECT_EQ(options.chains[0].level, 4);
  ASSERT_EQ(options.chains[0].callbacks.size(), 3u);
  EXPECT_EQ(to_string(options.chains[0].callbacks[0]), "timer * 80000000ns");
  EXPECT_EQ(to_string(options.chains[0].callbacks[1]), "subscription * /c1/sense");
  EXPECT_EQ(to_string(options.chains[0].callbacks[2]), "subscription * /c1/plan");
  EXPECT_EQ(options.chains[3].level, 1);
}

TEST(Systems, PartsOnOtherExecutorsBranchesAndPriorities) {
  const Written file(R"(# a # sign
[[executors]]
name = "board"
where = "mcu"
[[executors]]
name = "host"   # the first on the host
where = 'host'
lanes = 3
budget_ms = 2.5
budget_period_ms = 10
[[chains]]
name = "main"
priority = 7
period_ms = 12.5
[[chains.callbacks]]
name = "read"
kind = "timer"
executor = "board"
publishes = { topic = "a#b", payload_bytes = 8 }
[[chains.callbacks]]
name = "filter"
kind = "subscription"
executor = "host"
priority = 900
publishes = { topic = "/x/y", payload_bytes = 8 }
[[chains]]
name = "side"
priority = 2
period_ms = 12.5
branches_from = "main.filter"
[[chains.callbacks]]
name = "log"
kind = "subscription"
executor = "host"
)");
  const Options options = options_of_system(file.path);
  ASSERT_EQ(options.lanes.size(), 3u);
  EXPECT_EQ(options.lanes[2].settings.runtime_ns, 2500000);
  EXPECT_EQ(options.lanes[2].settings.scheduling, TIDE_SCHEDULING_SPORADIC);
  EXPECT_EQ(to_string(options.chains[0].callbacks[0]), "remote");
  EXPECT_EQ(to_string(options.chains[0].callbacks[1]), "subscription * /a#b");
  EXPECT_EQ(options.chains[0].callbacks[1].priority, 900);
  EXPECT_EQ(to_string(options.chains[1].callbacks[0]), "subscription * /x/y");
  EXPECT_EQ(to_string(options_of_system(file.path, "board").chains[0].callbacks[0]), "timer * 12500000ns");
  EXPECT_THROW(options_of_system(file.path, "none"), std::runtime_error);
  EXPECT_THROW(options_of_system(file.path + ".none"), std::runtime_error);
}

TEST(Systems, AServiceAndItsClientAreKnownByItsName) {
  const Written file(R"([[executors]]
name = "host"
where = "host"
[[chains]]
name = "ask"
priority = 7
period_ms = 20
callbacks = [
  { name = "t", kind = "timer", executor = "host", requests = { service = "arm/close", type = "std_srvs/srv/Trigger" } },
  { name = "s", kind = "service", executor = "host", replies = { service = "arm/close", type = "std_srvs/srv/Trigger" } },
  { name = "c", kind = "client", executor = "host", publishes = { topic = "done", payload_bytes = 8 } },
  { name = "d", kind = "subscription", executor = "host" },
]
)");
  const Options options = options_of_system(file.path);
  ASSERT_EQ(options.chains.at(0).callbacks.size(), 4u);
  EXPECT_EQ(to_string(options.chains[0].callbacks[1]), "service * /arm/close");
  EXPECT_EQ(to_string(options.chains[0].callbacks[2]), "client * /arm/close");
  EXPECT_EQ(to_string(options.chains[0].callbacks[3]), "subscription * /done");
}

TEST(Systems, ALineThatIsNoTomlIsNamed) {
  const Written file("[[executors]]\nname = \"a\"\nwhere\n");
  try {
    (void)options_of_system(file.path);
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("line 3: 'where' is neither"), std::string::npos) << error.what();
  }
}

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
  others.append_parameter_override("tide.system", TIDE_SYSTEMS "/four_chains/system.toml");
  rclcpp::Node other("others", space(), others);
  const Options of_other = options_of(*other.get_node_parameters_interface());
  EXPECT_EQ(of_other.policy, tide_rcl::Policy::kDefault);
  EXPECT_EQ(of_other.chains.size(), 4u);
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

}  // namespace
}  // namespace tide_rclcpp
