// SPDX-License-Identifier: Apache-2.0
#include "system_graph.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace tide_rclcpp {

namespace {

constexpr std::size_t kLastPosition = 255;
constexpr double kMostPriority = 1'000'000;

tide_priority_t priority_of(const Table &callback, std::uint8_t level, std::size_t position) {
  const auto own = static_cast<tide_priority_t>(callback.number("priority"));
  return own > 0 ? own : TIDE_PRIORITY(level, std::min(position, kLastPosition));
}

}  // namespace

SystemGraph::SystemGraph(const std::string &path, const std::vector<Table> &tables, const std::string &executor)
    : path_(path), executor_(executor) {
  for (const Table &table : tables) {
    if (table.path == "chains") {
      chains_.push_back({&table, 0, {}, {}});
    } else if (table.path == "chains.callbacks" && !chains_.empty()) {
      std::vector<Node> &callbacks = chains_.back().callbacks;
      places_[chains_.back().table->get("name") + "." + table.get("name")] = {chains_.size() - 1, callbacks.size()};
      callbacks.push_back({&table, 0});
    }
  }
  for (std::size_t chain = 0; chain < chains_.size(); chain++) {
    find_inputs(chain);
  }
  depths_.assign(chains_.size(), kUnknown);
  for (std::size_t chain = 0; chain < chains_.size(); chain++) (void)depth_of(chain);
  find_levels();
  for (const Branch &chain : chains_) levels_.emplace_back(chain.callbacks.size(), chain.level);
  for (std::size_t chain = 0; chain < chains_.size(); chain++) {
    for (const Place &input : inputs_[chain]) raise(input, chains_[chain].level);
  }
  for (std::size_t chain = 0; chain < chains_.size(); chain++) {
    for (std::size_t index = 0; index < levels_[chain].size(); index++) {
      Node &node = chains_[chain].callbacks[index];
      node.priority = priority_of(*node.table, levels_[chain][index], depths_[chain] + index);
    }
  }
}

void SystemGraph::refuse(std::size_t chain, const std::string &what) const {
  throw std::runtime_error(path_ + ": chain '" + chains_[chain].table->get("name") + "': " + what);
}

std::int64_t SystemGraph::chain_priority(std::size_t chain) const {
  const Table &table = *chains_[chain].table;
  const double priority = table.number("priority");
  if (priority >= 1 && priority <= kMostPriority) return static_cast<std::int64_t>(priority);
  refuse(chain, "priority " + table.get("priority", "(none)") + " is not in 1 to 1000000");
}

// Whether one of its callbacks up to this one is there, or one on a way to them.
void SystemGraph::find_executors(std::size_t chain, std::size_t last, std::set<Place> &seen, bool &comes) const {
  if (comes || !seen.insert({chain, last}).second) return;
  const std::vector<Node> &callbacks = chains_[chain].callbacks;
  for (std::size_t index = 0; index < callbacks.size() && index <= last; index++) {
    comes = comes || callbacks[index].table->get("executor") == executor_;
  }
  for (const auto &[from, index] : inputs_[chain]) find_executors(from, index, seen, comes);
}

void SystemGraph::find_levels() {
  std::set<std::int64_t> priorities;
  std::vector<bool> there;
  for (std::size_t chain = 0; chain < chains_.size(); chain++) {
    std::set<Place> seen;
    bool comes = false;
    find_executors(chain, chains_[chain].callbacks.size(), seen, comes);
    there.push_back(comes);
    const std::int64_t priority = chain_priority(chain);
    if (comes) priorities.insert(priority);
  }
  if (priorities.size() > TIDE_LEVEL_MAXIMUM) {
    throw std::runtime_error(path_ + ": executor '" + executor_ + "' has chains of " +
                             std::to_string(priorities.size()) + " priorities, and there are 126 levels");
  }
  const bool are_levels = priorities.empty() || *priorities.rbegin() <= static_cast<std::int64_t>(TIDE_LEVEL_MAXIMUM);
  for (std::size_t chain = 0; chain < chains_.size(); chain++) {
    if (!there[chain]) continue;
    const std::int64_t priority = chain_priority(chain);
    const auto place = std::distance(priorities.begin(), priorities.find(priority)) + 1;
    chains_[chain].level = static_cast<std::uint8_t>(are_levels ? priority : place);
  }
}

void SystemGraph::find_inputs(std::size_t chain) {
  const Table &table = *chains_[chain].table;
  std::vector<std::string> names = table.texts("joins");
  if (!table.get("branches_from").empty()) names.insert(names.begin(), table.get("branches_from"));
  inputs_.emplace_back();
  for (const std::string &name : names) {
    const auto found = places_.find(name);
    if (found == places_.end()) refuse(chain, "there is no callback '" + name + "' that it could follow");
    const auto [from, index] = found->second;
    const std::string topic = chains_[from].callbacks[index].table->get("publishes.topic");
    if (topic.empty()) refuse(chain, "'" + name + "' publishes nothing that it could follow");
    inputs_.back().push_back(found->second);
    chains_[chain].topics.push_back(topic);
  }
}

std::size_t SystemGraph::depth_of(std::size_t chain) {
  if (depths_[chain] == kUnderWay) refuse(chain, "it waits for itself");
  if (depths_[chain] != kUnknown) return depths_[chain];
  depths_[chain] = kUnderWay;
  std::size_t depth = 0;
  for (const auto &[from, index] : inputs_[chain]) depth = std::max(depth, depth_of(from) + index + 1);
  return depths_[chain] = depth;
}

// Each callback that leads there. One that has the level already has passed it on.
void SystemGraph::raise(const Place &place, std::uint8_t level) {
  const auto [chain, last] = place;
  if (levels_[chain][last] >= level) return;  // and so have those before it
  for (std::size_t index = 0; index <= last; index++) levels_[chain][index] = std::max(levels_[chain][index], level);
  for (const Place &input : inputs_[chain]) raise(input, level);
}

}  // namespace tide_rclcpp
