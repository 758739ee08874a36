// SPDX-License-Identifier: Apache-2.0
#include "core/entities.h"

#include <algorithm>
#include <vector>

namespace tide::agent {

uint8_t needed_parent(uint8_t kind) {
  switch (kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      return TIDE_XRCE_KIND_INVALID;
    case TIDE_XRCE_KIND_DATAWRITER:
      return TIDE_XRCE_KIND_PUBLISHER;
    case TIDE_XRCE_KIND_DATAREADER:
      return TIDE_XRCE_KIND_SUBSCRIBER;
    default:
      return TIDE_XRCE_KIND_PARTICIPANT;
  }
}

Entity *Entities::find(uint16_t object) {
  const auto place = entities_.find(object);
  return place == entities_.end() ? nullptr : &place->second;
}

const Entity *Entities::find(uint16_t object) const {
  const auto place = entities_.find(object);
  return place == entities_.end() ? nullptr : &place->second;
}

bool Entities::has_parent(const Definition &definition) const {
  if (TIDE_XRCE_OBJECT_KIND(definition.parent) != needed_parent(definition.kind)) return false;
  return entities_.contains(definition.parent);
}

size_t Entities::count(uint8_t kind) const {
  return static_cast<size_t>(std::count_if(entities_.begin(), entities_.end(),
                                           [kind](const auto &entry) { return entry.second.definition.kind == kind; }));
}

const Entity *Entities::participant_of(const Definition &definition) const {
  const Entity *parent = find(definition.parent);
  if (parent == nullptr || parent->definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return parent;
  return find(parent->definition.parent);
}

// A writer or reader names its topic by object (binary) or by name; a name alone takes the type of the topic object.
uint8_t Entities::find_topic(Definition &definition) const {
  const Entity *participant = participant_of(definition);
  for (const auto &[object, entity] : entities_) {
    if (entity.definition.kind != TIDE_XRCE_KIND_TOPIC) continue;
    if (find(entity.definition.parent) != participant) continue;
    const bool same = definition.topic_object != 0 ? object == definition.topic_object
                                                   : entity.definition.topic.name == definition.topic.name;
    if (!same) continue;
    if (!definition.topic.type.empty() && definition.topic.type != entity.definition.topic.type) {
      return TIDE_XRCE_STATUS_ERR_MISMATCH;
    }
    definition.topic = entity.definition.topic;
    return TIDE_XRCE_STATUS_OK;
  }
  if (definition.topic_object != 0) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  return definition.topic.type.empty() ? TIDE_XRCE_STATUS_ERR_DDS : TIDE_XRCE_STATUS_OK;
}

void Entities::begin_anew() {
  for (auto &[object, entity] : entities_) entity.former = true;
}

void Entities::renew(uint16_t object) {
  for (Entity *entity = find(object); entity != nullptr; entity = find(entity->definition.parent)) {
    entity->former = false;
    if (Entity *topic = find(entity->definition.topic_object)) topic->former = false;
    if (entity->definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return;
  }
}

void Entities::remove_if(const std::function<bool(const Entity &entity)> &is) {
  std::vector<uint16_t> gone;
  for (const auto &[object, entity] : entities_) {
    if (is(entity)) gone.push_back(object);
  }
  for (const uint16_t object : gone) remove(object);
}

void Entities::make_way(const Topic &topic, const Topic *replaced) {
  remove_if([&](const Entity &entity) {
    const Topic &its = entity.definition.topic;
    const bool conflicts = its.name == topic.name && !its.type.empty() && its.type != topic.type;
    return conflicts && (entity.former || (replaced != nullptr && its == *replaced));
  });
}

size_t Entities::former_count() const {
  return static_cast<size_t>(
      std::count_if(entities_.begin(), entities_.end(), [](const auto &entry) { return entry.second.former; }));
}

void Entities::remove_former() {
  remove_if([](const Entity &entity) { return entity.former; });
}

void Entities::remove(uint16_t object) {
  std::vector<uint16_t> children;
  for (const auto &[child, entity] : entities_) {
    if (entity.definition.kind != TIDE_XRCE_KIND_PARTICIPANT && entity.definition.parent == object) {
      children.push_back(child);
    }
  }
  for (const uint16_t child : children) remove(child);
  const auto place = entities_.find(object);
  if (place == entities_.end()) return;
  departs_(object, place->second);
  entities_.erase(place);
}

}  // namespace tide::agent
