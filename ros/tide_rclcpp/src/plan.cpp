// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tide_rclcpp {

namespace {

constexpr std::size_t kLongestChain = 256;

bool matches(const Callback &pattern, const Found &found) {
  if (pattern.kind != found.kind || (pattern.node != "*" && pattern.node != found.node)) return false;
  if (found.kind == Kind::kTimer) return pattern.period.count() == 0 || pattern.period == found.period;
  return pattern.name == found.name;
}

// What exists instead of the named callback. This distinguishes a misspelt name from a node that is not loaded yet.
std::string instead_of(const Callback &pattern, const std::vector<Found> &found) {
  if (pattern.node == "*") return "no node has it";
  const auto of_node = [&](const Found &one) { return one.node == pattern.node; };
  if (std::none_of(found.begin(), found.end(), of_node)) return "there is no node " + pattern.node;
  std::set<std::string> others;
  for (const Found &one : found) {
    if (!of_node(one) || one.kind != pattern.kind) continue;
    others.insert(one.kind == Kind::kTimer ? to_string(one.period) : one.name);
  }
  if (others.empty()) return "the node has none";
  std::string text = "the node has";
  for (const std::string &other : others) text += (other == *others.begin() ? " " : ", ") + other;
  return text;
}

}  // namespace

Plan::Plan(std::vector<Chain> chains) : chains_(std::move(chains)) {
  for (const Chain &chain : chains_) {
    if (chain.level < 1 || chain.level > TIDE_LEVEL_MAXIMUM || chain.callbacks.size() > kLongestChain) {
      throw std::invalid_argument("chain " + chain.name +
                                  ": its level has to be 1 to 126, and its callbacks at most 256");
    }
  }
}

tide_priority_t Plan::priority_of(const Found &found) const {
  tide_priority_t highest = 0;
  for (const Chain &chain : chains_) {
    for (std::size_t position = 0; position < chain.callbacks.size(); position++) {
      if (matches(chain.callbacks[position], found)) {
        const tide_priority_t own = chain.callbacks[position].priority;
        highest = std::max<tide_priority_t>(highest, own > 0 ? own : TIDE_PRIORITY(chain.level, position));
      }
    }
  }
  return highest;
}

std::vector<std::string> Plan::names_of(const Found &found) const {
  std::vector<std::string> names;
  for (const Chain &chain : chains_) {
    for (std::size_t position = 0; position < chain.callbacks.size(); position++) {
      if (matches(chain.callbacks[position], found)) names.push_back(name_of(chain, position));
    }
  }
  return names;
}

std::vector<Plan::Name> Plan::names(const std::vector<Found> &found) const {
  std::vector<Name> names;
  for (const Chain &chain : chains_) {
    for (const Callback &callback : chain.callbacks) {
      if (callback.kind == Kind::kRemote) continue;
      const bool there =
          std::any_of(found.begin(), found.end(), [&](const Found &one) { return matches(callback, one); });
      names.push_back({"chain " + chain.name + ": " + to_string(callback), there,
                       there ? std::string() : instead_of(callback, found)});
    }
  }
  return names;
}

std::vector<std::string> Plan::unmatched(const std::vector<Found> &found) const {
  std::vector<std::string> texts;
  for (const Name &name : names(found)) {
    if (!name.matches) texts.push_back(name.text);
  }
  return texts;
}

std::vector<NameLog::Line> NameLog::update(const Plan &plan, const std::vector<Found> &found) {
  std::vector<Line> lines;
  std::string never;
  bool complete = true, came = false;
  for (const Plan::Name &name : plan.names(found)) {
    const auto known = matched_.find(name.text);
    if (name.matches && (known == matched_.end() || !known->second)) {
      lines.push_back({false, name.text + ": found"});
    } else if (!name.matches && known == matched_.end()) {
      never += "\n  " + name.text + ": " + name.instead;
      std::string &before = never_[name.text];
      came = came || before != name.instead;
      before = name.instead;
    } else if (!name.matches && known->second) {
      lines.push_back({true, name.text + ": no longer here: " + name.instead});
    }
    if (name.matches || known != matched_.end()) matched_[name.text] = name.matches;
    complete = complete && name.matches;
  }
  std::set<std::string> nodes;
  for (const Found &one : found) nodes.insert(one.node);
  came = came || !std::includes(nodes_.begin(), nodes_.end(), nodes.begin(), nodes.end());
  nodes_.swap(nodes);
  if (came && !never.empty()) lines.push_back({true, "chains name callbacks that are not here yet:" + never});
  if (complete && !complete_) lines.push_back({false, "every callback that chains name is here"});
  complete_ = complete;
  return lines;
}

}  // namespace tide_rclcpp
