// SPDX-License-Identifier: Apache-2.0
// Chains that branch and that join messages have the priorities of docs/analysis/joins.md, and what a join waits for is
// one callback.
#include "system_graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

#include "plan.h"
#include "program.h"
#include "written.h"

namespace tide_rclcpp {
namespace {

const Chain &chain_named(const Options &options, const std::string &name) {
  for (const Chain &chain : options.chains) {
    if (chain.name == name) return chain;
  }
  throw std::out_of_range(name);
}

TEST(SystemGraph, EachMessageOfAJoinStartsItsFirstCallback) {
  const Options options = options_of_system(TIDE_EXAMPLES "/host_pipeline.toml", "fusion");
  const Chain &depth = chain_named(options, "depth");
  ASSERT_EQ(depth.callbacks.size(), 3u);
  EXPECT_EQ(to_string(depth.callbacks[0]), "subscription * /left/image");
  EXPECT_EQ(to_string(depth.callbacks[1]), "remote");
  EXPECT_EQ(to_string(depth.callbacks[2]), "subscription * /right/image");
  const Plan plan(options.chains);
  for (const char *topic : {"/left/image", "/right/image"}) {
    const Found found{Kind::kSubscription, "/depth_node", topic, {}, 0};
    EXPECT_EQ(plan.priority_of(found), TIDE_PRIORITY(6, 2)) << topic;
    EXPECT_EQ(plan.names_of(found), std::vector<std::string>{"depth/match"}) << topic;
  }
  EXPECT_EQ(plan.unmatched({{Kind::kSubscription, "/n", "/left/image", {}, 0},
                            {Kind::kSubscription, "/n", "/points", {}, 0},
                            {Kind::kSubscription, "/n", "/image", {}, 0}}),
            std::vector<std::string>{"chain depth: subscription * /right/image"});
}

TEST(SystemGraph, WhatLeadsToAJoinIsAsUrgentAsTheJoin) {
  const Plan plan(options_of_system(TIDE_EXAMPLES "/host_pipeline.toml", "sensors").chains);
  EXPECT_EQ(plan.priority_of({Kind::kSubscription, "/eyes", "/trigger", {}, 0}), TIDE_PRIORITY(6, 1));
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/eyes", "", milliseconds(100), 0}), TIDE_PRIORITY(6, 0));
  EXPECT_EQ(plan.priority_of({Kind::kTimer, "/lidar", "", milliseconds(50), 0}), TIDE_PRIORITY(3, 0));
}

TEST(SystemGraph, ListsOfTablesAreTablesAndGroupsOfLinesAreOne) {
  const Written file(R"(
[[executors]]
name = "e"
where = "host"
[[chains]]
name = "left"
callbacks = [
  { name = "t", kind = "timer", executor = "e", publishes = { topic = "/t", payload_bytes = 8 } },  # [
  { name = "a", kind = "subscription", executor = "e",
    publishes = { topic = "/a,[b", payload_bytes = 8 } },
]
priority = 2
period_ms = 7
[[chains]]
name = "right"
priority = 9
period_ms = 7
branches_from = "left.t"
joins = [
  "left.a",  # two messages
]
callbacks = [{ name = "b", kind = "subscription", executor = "e" }]
)");
  const Options options = options_of_system(file.path);
  ASSERT_EQ(options.chains.size(), 2u);
  EXPECT_EQ(options.chains[0].level, 2);
  ASSERT_EQ(options.chains[0].callbacks.size(), 2u);
  EXPECT_EQ(to_string(options.chains[0].callbacks[0]), "timer * 7000000ns");
  EXPECT_EQ(options.chains[0].callbacks[1].priority, TIDE_PRIORITY(9, 1));
  ASSERT_EQ(options.chains[1].callbacks.size(), 2u);
  EXPECT_EQ(to_string(options.chains[1].callbacks[0]), "subscription * /t");
  EXPECT_EQ(to_string(options.chains[1].callbacks[1]), "subscription * /a,[b");
  EXPECT_EQ(options.chains[1].callbacks[0].priority, TIDE_PRIORITY(9, 2)) << "behind the longer way";
}

TEST(SystemGraph, MorePrioritiesThanLevelsAreRefusedOnlyWhereTheyMeet) {
  const auto text = [](int count, const std::string &of_last) {
    std::string chains =
        "[[executors]]\nname = \"e\"\nwhere = \"host\"\n[[executors]]\nname = \"f\"\nwhere = \"host\"\n";
    for (int chain = 1; chain <= count; chain++) {
      chains += "[[chains]]\nname = \"c" + std::to_string(chain) + "\"\npriority = " + std::to_string(1000 * chain) +
                "\n[[chains.callbacks]]\nname = \"t\"\nkind = \"timer\"\nexecutor = \"" +
                (chain == count ? of_last : "e") + "\"\n";
    }
    return chains;
  };
  const Options options = options_of_system(Written(text(127, "f")).path, "e");
  ASSERT_EQ(options.chains.size(), 126u) << "the last one does not come there";
  EXPECT_EQ(options.chains.front().level, 1);
  EXPECT_EQ(options.chains.back().level, 126);
  try {
    (void)options_of_system(Written(text(127, "e")).path, "e");
    ADD_FAILURE() << "127 levels are taken";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("'e' has chains of 127 priorities"), std::string::npos) << error.what();
  }
}

std::string chain_text(const std::string &name, const std::string &more, const std::string &callback_more) {
  return "[[chains]]\nname = \"" + name + "\"\npriority = 3\nperiod_ms = 5\n" + more +
         "\n[[chains.callbacks]]\nname = \"c\"\nkind = \"subscription\"\nexecutor = \"e\"\n" + callback_more + "\n";
}

TEST(SystemGraph, WhatCannotBeIsNamed) {
  const std::string publishes = "publishes = { topic = \"x\" }";
  const std::vector<std::pair<std::string, const char *>> cases = {
      {chain_text("a", "branches_from = \"b.c\"", ""), "chain 'a': there is no callback 'b.c'"},
      {chain_text("b", "", "") + chain_text("a", "branches_from = \"b.c\"", ""), "'b.c' publishes nothing"},
      {chain_text("b", "", publishes) + chain_text("a", "branches_from = \"b.c\"\njoins = [\"b.d\"]", ""),
       "there is no callback 'b.d'"},
      {chain_text("a", "branches_from = \"b.c\"", publishes) + chain_text("b", "branches_from = \"a.c\"", publishes),
       "it waits for itself"},
      {chain_text("a", "joins = [\"x.y\"", ""), "a list without its end"},
  };
  for (const auto &[text, expected] : cases) {
    const Written file("[[executors]]\nname = \"e\"\nwhere = \"host\"\n" + text);
    try {
      (void)options_of_system(file.path);
      ADD_FAILURE() << "taken: " << text;
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

// A description of chains that branch and join at random, named in any order, and beside it every way from a timer.
class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {
    const std::size_t count = between(1, 7), most = seed % 2 == 0 ? 126 : 1'000'000;
    for (std::size_t index = 0; index < count; index++) {
      lengths_.push_back(between(1, 4));
      priorities_.push_back(between(1, most));
      executors_.emplace_back();
      for (std::size_t callback = 0; callback < lengths_.back(); callback++) {
        executors_.back().push_back(between(0, 3) == 0 ? "f" : "e");
      }
      inputs_.emplace_back();
      for (std::size_t more = index == 0 ? 0 : between(0, 3); more > 0; more--) {
        const std::size_t from = between(0, index - 1);
        inputs_.back().emplace_back(from, between(0, lengths_[from] - 1));
      }
    }
  }

  std::string text() {
    std::vector<std::size_t> order(lengths_.size());
    for (std::size_t index = 0; index < order.size(); index++) order[index] = index;
    std::shuffle(order.begin(), order.end(), random_);
    std::ostringstream out;
    for (const char *name : {"e", "f"}) out << "[[executors]]\nname = \"" << name << "\"\nwhere = \"host\"\n";
    for (const std::size_t chain : order) write(out, chain);
    return out.str();
  }

  // As tide.system.levels has it: the priorities, or their places where one of them is no level.
  std::size_t level_of(std::size_t chain, const std::string &executor) const {
    std::set<std::size_t> there;
    for (std::size_t other = 0; other < lengths_.size(); other++) {
      for (const auto &way : ways(other, lengths_[other] - 1)) {
        for (const auto &[from, index] : way) {
          if (executors_[from][index] == executor) there.insert(priorities_[other]);
        }
      }
    }
    if (*there.rbegin() <= 126) return priorities_[chain];
    return static_cast<std::size_t>(std::distance(there.begin(), there.find(priorities_[chain]))) + 1;
  }

  // Of all ways of all chains.
  tide_priority_t priority_of(std::size_t chain, std::size_t callback) const {
    const std::string &executor = executors_[chain][callback];
    tide_priority_t highest = 0;
    const auto note = [&](std::size_t level, const std::vector<std::pair<std::size_t, std::size_t>> &way) {
      for (std::size_t position = 0; position < way.size(); position++) {
        if (way[position] == std::make_pair(chain, callback)) {
          highest = std::max<tide_priority_t>(highest, TIDE_PRIORITY(level, position));
        }
      }
    };
    for (std::size_t other = 0; other < lengths_.size(); other++) {
      for (const auto &way : ways(other, lengths_[other] - 1)) {
        if (std::find(way.begin(), way.end(), std::make_pair(chain, callback)) == way.end()) continue;
        note(level_of(other, executor), way);
      }
    }
    return highest;
  }
  std::size_t size() const { return lengths_.size(); }
  std::size_t length(std::size_t chain) const { return lengths_[chain]; }

 private:
  using Way = std::vector<std::pair<std::size_t, std::size_t>>;

  std::size_t between(std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(least, most)(random_);
  }

  std::vector<Way> ways(std::size_t chain, std::size_t last) const {
    std::vector<Way> found;
    for (const auto &[from, index] : inputs_[chain]) {
      for (Way &way : ways(from, index)) found.push_back(std::move(way));
    }
    if (found.empty()) found.emplace_back();
    for (Way &way : found) {
      for (std::size_t index = 0; index <= last; index++) way.emplace_back(chain, index);
    }
    return found;
  }

  void write(std::ostream &out, std::size_t chain) {
    const auto name = [](const auto &place) {
      return "\"k" + std::to_string(place.first) + ".c" + std::to_string(place.second) + "\"";
    };
    const Way &inputs = inputs_[chain];
    out << "[[chains]]\nname = \"k" << chain << "\"\npriority = " << priorities_[chain] << "\nperiod_ms = 9\n";
    if (!inputs.empty()) out << "branches_from = " << name(inputs[0]) << "\n";
    if (inputs.size() > 1) {
      out << "joins = [";
      for (std::size_t index = 1; index < inputs.size(); index++) out << name(inputs[index]) << ", ";
      out << "]\n";
    }
    for (std::size_t index = 0; index < lengths_[chain]; index++) {
      out << "[[chains.callbacks]]\nname = \"c" << index << "\"\nexecutor = \"" << executors_[chain][index]
          << "\"\nkind = \"" << (index == 0 && inputs.empty() ? "timer" : "subscription")
          << "\"\npublishes = { topic = \"/k" << chain << "_" << index << "\" }\n";
    }
  }

  std::mt19937 random_;
  std::vector<std::size_t> lengths_, priorities_;
  std::vector<std::vector<std::string>> executors_;
  std::vector<Way> inputs_;
};

TEST(SystemGraph, PrioritiesOfRandomGraphsAreThoseOfAllTheirWays) {
  for (unsigned seed = 1; seed <= 500; seed++) {
    Drawn drawn(seed);
    const Written file(drawn.text());
    const std::vector<Table> tables = read_tables(file.path);
    for (const std::string executor : {"e", "f"}) {
      const SystemGraph graph(file.path, tables, executor);
      ASSERT_EQ(graph.chains().size(), drawn.size());
      for (const SystemGraph::Branch &branch : graph.chains()) {
        const std::size_t chain = std::stoul(branch.table->get("name").substr(1));
        ASSERT_EQ(branch.callbacks.size(), drawn.length(chain)) << "seed " << seed;
        for (std::size_t index = 0; index < branch.callbacks.size(); index++) {
          if (branch.callbacks[index].table->get("executor") != executor) continue;
          ASSERT_EQ(branch.callbacks[index].priority, drawn.priority_of(chain, index))
              << "seed " << seed << ", chain " << chain << ", callback " << index;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tide_rclcpp
