// SPDX-License-Identifier: Apache-2.0
// The list of an executor's entities. Each update makes it agree with the callback groups of the nodes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan.h"
#include "rclcpp/rclcpp.hpp"
#include "tide_rcl/engine.h"

namespace tide_rclcpp {

class Roll {
 public:
  Roll(tide_rcl::Engine &engine, rclcpp::Context::SharedPtr context, std::vector<Chain> chains);
  ~Roll();
  Roll(const Roll &) = delete;
  Roll &operator=(const Roll &) = delete;

  // Tell the roll to which node groups belong, for the names in chains.
  void know(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);
  void know(const rclcpp::CallbackGroup::SharedPtr &group,
            const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr &node);
  using Groups = std::vector<rclcpp::CallbackGroup::WeakPtr>;
  // Adds the entities that are new in the groups, and removes those that are in no group any more. Thread-safe.
  // `groups` must return all present groups. It is called with this object's lock held, so that no update uses an older
  // list than the update before.
  void update(const std::function<Groups()> &groups);
  // The engine's groups for the entities of a node.
  std::vector<std::shared_ptr<tide_rcl::Group>> groups_of(rclcpp::node_interfaces::NodeBaseInterface &node) const;
  // Returns false if the waitable is not in this executor.
  bool set_priority(const rclcpp::Waitable &waitable, tide_priority_t priority);

  bool has_chains() const { return !plan_.empty(); }
  std::vector<std::string> unmatched() const;
  std::vector<std::string> without_chain() const;
  // Lines about the names in chains, as NameLog::update returns them for the present callbacks.
  std::vector<NameLog::Line> log_of_names();
  // The entity's name in chains, such as "subscription /node /topic"; if it has none, its kind and node.
  std::string name_of(const tide_rcl::Entity &entity) const;

 private:
  struct Record {
    std::weak_ptr<void> thing;
    std::shared_ptr<tide_rcl::Entity> entity;
    Found found;
    std::uint64_t seen = 0;
    std::vector<std::shared_ptr<tide_rcl::Entity>> timers;  // timers inside a waitable, which only a wait set finds
                                                            // ready

    std::vector<std::shared_ptr<tide_rcl::Entity>> entities() const {
      std::vector<std::shared_ptr<tide_rcl::Entity>> all(timers);
      all.push_back(entity);
      return all;
    }
  };
  struct GroupRecord {
    rclcpp::CallbackGroup::WeakPtr thing;
    std::shared_ptr<tide_rcl::Group> group;
  };
  using Nodes = std::unordered_map<const rclcpp::CallbackGroup *, std::string>;
  // References to rclcpp's objects. They are held while the objects are examined and released without a lock.
  struct Everything;

  Nodes nodes_of_groups_locked();
  std::shared_ptr<tide_rcl::Group> group_locked(const rclcpp::CallbackGroup::SharedPtr &group);
  template <typename Made, typename Thing>
  void see_locked(const std::shared_ptr<Thing> &thing, Found found, const rclcpp::CallbackGroup::SharedPtr &group);
  void see_group_locked(const Everything &everything, const rclcpp::CallbackGroup::SharedPtr &group,
                        const std::string &node);
  void remove(const Record &record);
  std::vector<std::shared_ptr<tide_rcl::Entity>> kept_timers(const rclcpp::Waitable::SharedPtr &waitable);
  bool is_here_locked(const rclcpp::Waitable::SharedPtr &waitable);
  void forget_unseen_locked();
  std::vector<Found> found_locked() const;

  tide_rcl::Engine &engine_;
  rclcpp::Context::SharedPtr context_;
  Plan plan_;
  mutable std::mutex mutex_;  // guards the members below
  NameLog name_log_;
  std::uint64_t round_ = 0;
  std::vector<rclcpp::node_interfaces::NodeBaseInterface::WeakPtr> nodes_;
  std::vector<std::pair<rclcpp::CallbackGroup::WeakPtr, std::string>> named_groups_;
  std::unordered_map<const void *, Record> records_;
  std::unordered_map<const rclcpp::CallbackGroup *, GroupRecord> groups_;
};

}  // namespace tide_rclcpp
