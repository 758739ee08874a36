// SPDX-License-Identifier: Apache-2.0
// Chains and lanes as text, and the callbacks that chains name.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <stdexcept>

#include "plan.h"

namespace tide_rclcpp {
namespace tide_rclcpp_names_test {

using std::chrono::milliseconds;

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
  EXPECT_EQ(to_string(chain.callbacks[0]), "timer /lidar 10ms");
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
  const Chain given =
      parse_chain("a 1: timer /n priority 900, timer /n 1500us as t priority 7, subscription * /s priority 3 as s");
  EXPECT_EQ(given.callbacks[0].priority, 900);
  EXPECT_EQ(to_string(given.callbacks[0]), "timer /n") << "whatever its period";
  EXPECT_EQ(given.callbacks[1].priority, 7);
  EXPECT_EQ(to_string(given.callbacks[1]), "timer /n 1500us");
  EXPECT_EQ(name_of(given, 2), "a/s");
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
      {"a 1: timer /a 1_000ms", "'1_000ms' is not a period, as 10ms"},
      {"a 1: timer /a 0.1ns", "'0.1ns' is not a period"},
      {"a 1: timer /a 10ms more", "'more' is not 'as', 'priority' or the end of a callback"},
      {"a 1: timer /a priority 32512", "'32512' is not a priority (1 to 32511)"},
      {"a 1: remote priority", "its end is not a priority"},
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

TEST(Words, OfADuration) {
  EXPECT_EQ(duration_of("50us"), std::chrono::microseconds(50));
  EXPECT_EQ(duration_of(" 1.5 ms "), std::chrono::microseconds(1500));
  for (const char *text : {"", "50", "us", "50us more", "50us,", "-1us", "0us", "0.1ns", "1_000us"}) {
    EXPECT_FALSE(duration_of(text).has_value()) << text;
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
      {"a from 0 budget 1ms 2ms fifo 60 low 60", "low 60 is not below fifo 60"},
      {"a from 0 fifo 60 low 5", "low 5 is of a lane with a budget"},
      {"a from 0 deadline 1ms 2ms cpu 1", "cpu 1: a lane with deadline runs on all processors"},
      {"a from 0 fifo 60 fifo 50", "fifo is given twice"},
      {"a from 0 cpu 1 fifo 60 cpu 1", "cpu is given twice"},
      {"a from 0 fifo 60 rr 50", "a lane cannot have both fifo and rr"},
      {"a from 0 deadline 1ms 2ms fifo 60", "a lane cannot have both fifo and deadline"},
      {"a from 0 budget 1ms 2ms rr 60", "a lane cannot have both budget and rr"},
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
            (std::vector<std::string>{"chain low: timer /a 10ms", "chain low: subscription /c /y"}));
  Chain endless = parse_chain("endless 1: remote");
  endless.callbacks.resize(257);
  EXPECT_THROW(Plan refused({endless}), std::invalid_argument);
}

// A name without a period matches each timer of its node, so a timer that is recreated with another period keeps its
// position.
TEST(Plans, ATimerWithoutAPeriodIsAnyOfItsNode) {
  const Plan plan({parse_chain("talk 3: timer /talker, subscription /listener /chatter")});
  for (const int period_ms : {1, 10, 5000}) {
    EXPECT_EQ(plan.priority_of({Kind::kTimer, "/talker", "", milliseconds(period_ms), 0}), TIDE_PRIORITY(3, 0));
  }
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/other", "", milliseconds(10), 0}), 0);
}

// The file is the output of `tide show --as parameters` for an example with a join, as
// tools/tests/test_ros_parameters.py checks.
TEST(Plans, TakeTheWordsThatTheCommandWrites) {
  std::ifstream file(TIDE_WRITTEN_PARAMETERS);
  ASSERT_TRUE(file.is_open());
  std::vector<Chain> chains;
  std::vector<tide_rcl::Lane> lanes;
  bool of_lanes = false;
  for (std::string line; std::getline(file, line);) {
    of_lanes = of_lanes || line.find("tide.lanes:") != std::string::npos;
    const std::size_t begin = line.find("- \"");
    if (begin == std::string::npos) continue;
    const std::string words = line.substr(begin + 3, line.rfind('"') - begin - 3);
    if (of_lanes) {
      lanes.push_back(parse_lane(words));
    } else {
      chains.push_back(parse_chain(words));
    }
  }
  EXPECT_EQ(lanes.size(), 2u);
  const Plan plan(chains);
  const Found trigger{Kind::kSubscription, "/eyes", "/trigger", {}, 0};
  EXPECT_EQ(plan.priority_of(trigger), TIDE_PRIORITY(6, 1)) << "what leads to a join is as urgent as the join";
  EXPECT_EQ(plan.names_of(trigger), (std::vector<std::string>{"left/rectify_left", "right/rectify_right"}));
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/eyes", "", milliseconds(100), 0}), TIDE_PRIORITY(6, 0));
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/lidar", "", milliseconds(50), 0}), TIDE_PRIORITY(3, 0));
}

std::vector<std::string> logged(NameLog &log, const Plan &plan, const std::vector<Found> &found) {
  std::vector<std::string> texts;
  for (const auto &[warning, text] : log.update(plan, found)) texts.push_back((warning ? "W " : "I ") + text);
  return texts;
}

using Texts = std::vector<std::string>;

// A container begins with its own node; then components are loaded, one of which does not match the chain.
TEST(NameLogs, TellWhatMatchesAndWhatNeverDid) {
  const Plan plan({parse_chain("brake 2: timer /lidar 10ms, subscription /planner /scan, remote")});
  const Found own{Kind::kService, "/ComponentManager", "/load", {}, 0};
  const Found timer{Kind::kTimer, "/lidar", "", milliseconds(10), 0};
  const Found wrong{Kind::kSubscription, "/planner", "/scans", {}, 0};
  const Found right{Kind::kSubscription, "/planner", "/scan", {}, 0};
  NameLog log;
  EXPECT_EQ(logged(log, plan, {own}), Texts{"W chains name callbacks that are not here yet:\n"
                                            "  chain brake: timer /lidar 10ms: there is no node /lidar\n"
                                            "  chain brake: subscription /planner /scan: there is no node /planner"});
  EXPECT_EQ(logged(log, plan, {own}), Texts{}) << "nothing has changed";
  EXPECT_EQ(logged(log, plan, {own, timer}),
            (Texts{"I chain brake: timer /lidar 10ms: found",
                   "W chains name callbacks that are not here yet:\n"
                   "  chain brake: subscription /planner /scan: there is no node /planner"}));
  EXPECT_EQ(logged(log, plan, {own, timer, wrong}),
            Texts{"W chains name callbacks that are not here yet:\n"
                  "  chain brake: subscription /planner /scan: the node has /scans"});
  EXPECT_EQ(logged(log, plan, {own, timer, wrong, right}),
            (Texts{"I chain brake: subscription /planner /scan: found", "I every callback that chains name is here"}));
}

// A lifecycle node creates its callbacks long after it was loaded.
TEST(NameLogs, TellWhatALateCallbackIsNamed) {
  const Plan plan({parse_chain("brake 2: subscription /planner /scan")});
  const Found service{Kind::kService, "/planner", "/planner/change_state", {}, 0};
  const Found wrong{Kind::kSubscription, "/planner", "/scans", {}, 0};
  const std::string start =
      "W chains name callbacks that are not here yet:\n  chain brake: subscription /planner /scan: ";
  NameLog log;
  EXPECT_EQ(logged(log, plan, {service}), Texts{start + "the node has none"});
  EXPECT_EQ(logged(log, plan, {service, wrong}), Texts{start + "the node has /scans"});
  EXPECT_EQ(logged(log, plan, {service, wrong}), Texts{});
}

// A parameter of the component makes it recreate its timer; then the component is unloaded and loaded again.
TEST(NameLogs, TellWhatStopsMatching) {
  const Plan plan({parse_chain("talk 2: timer /talker 10ms")});
  const Found first{Kind::kTimer, "/talker", "", milliseconds(10), 0};
  const Found other{Kind::kTimer, "/talker", "", milliseconds(5), 0};
  NameLog log;
  EXPECT_EQ(logged(log, plan, {first}),
            (Texts{"I chain talk: timer /talker 10ms: found", "I every callback that chains name is here"}));
  EXPECT_EQ(logged(log, plan, {other}), Texts{"W chain talk: timer /talker 10ms: no longer here: the node has 5ms"});
  EXPECT_EQ(logged(log, plan, {other}), Texts{});
  EXPECT_EQ(logged(log, plan, {}), Texts{});
  EXPECT_EQ(logged(log, plan, {first}).size(), 2u);
  EXPECT_EQ(logged(log, plan, {}), Texts{"W chain talk: timer /talker 10ms: no longer here: there is no node /talker"});
}

}  // namespace tide_rclcpp_names_test
}  // namespace tide_rclcpp
