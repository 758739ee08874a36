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
