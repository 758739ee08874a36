// SPDX-License-Identifier: Apache-2.0
// The entities of one client, by object id, and what holds what.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "core/entity.h"

namespace tide::agent {

class Entities {
 public:
  // Called for each entity that is removed, before it is.
  using Departure = std::function<void(uint16_t object, Entity &entity)>;

  explicit Entities(Departure departs) : departs_(std::move(departs)) {}

  Entity *find(uint16_t object);
  const Entity *find(uint16_t object) const;
  // Of the same name or number in the same participant: fills in topic. Returns a TIDE_XRCE_STATUS_*.
  uint8_t find_topic(Definition &definition) const;
  // That the description belongs to; null: its parent is unknown.
  const Entity *participant_of(const Definition &definition) const;
  bool has_parent(const Definition &definition) const;
  size_t count(uint8_t kind) const;
  size_t size() const { return entities_.size(); }
  void add(uint16_t object, Entity entity) { entities_.emplace(object, std::move(entity)); }
  // With everything that it contains.
  void remove(uint16_t object);

  // The client has started anew: from here on all are former ones, until they are made again.
  void begin_anew();
  // This one is of the program that runs now, and so is what it belongs to.
  void renew(uint16_t object);
  // Removes former ones that give this topic another type; all of them, and what has `replaced`, which is replaced.
  void make_way(const Topic &topic, const Topic *replaced);
  size_t former_count() const;
  void remove_former();

  auto begin() { return entities_.begin(); }
  auto end() { return entities_.end(); }
  auto begin() const { return entities_.begin(); }
  auto end() const { return entities_.end(); }

 private:
  void remove_if(const std::function<bool(const Entity &entity)> &is);

  std::map<uint16_t, Entity> entities_;
  Departure departs_;
};

// What kind a parent has to have; invalid: there is none.
uint8_t needed_parent(uint8_t kind);

}  // namespace tide::agent
