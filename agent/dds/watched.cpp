// SPDX-License-Identifier: Apache-2.0
#include "dds/watched.h"

#include <algorithm>
#include <optional>

#include "tide/cdr.h"

namespace tide::agent {
namespace {

enum Kind : uint8_t { kPublisher, kSubscription, kServer, kClient };  // of micro_ros_msgs/Entity

struct Entity {
  Kind kind;
  std::string name, type;
};

bool cut_front(std::string &text, const std::string &front) {
  if (!text.starts_with(front)) return false;
  text.erase(0, front.size());
  return true;
}

bool cut_back(std::string &text, const std::string &back) {
  if (!text.ends_with(back)) return false;
  text.erase(text.size() - back.size());
  return true;
}

// std_msgs::msg::dds_::String_ is std_msgs/msg/String.
std::string type_of_ros(std::string type) {
  const size_t place = type.find("::dds_::");
  if (place == std::string::npos || !cut_back(type, "_")) return type;
  type.replace(place, 8, "/");
  for (size_t colons; (colons = type.find("::")) != std::string::npos;) type.replace(colons, 2, "/");
  return type;
}

// What it is to ROS 2; of a service only the side that asks counts.
std::optional<Entity> entity_of(bool is_writer, const Topic &topic) {
  std::string name = topic.name, type = topic.type;
  if (cut_front(name, "rt/")) {
    return Entity{is_writer ? kPublisher : kSubscription, "/" + name, type_of_ros(type)};
  }
  if (!cut_front(name, "rq/") || !cut_back(name, "Request")) return std::nullopt;
  cut_back(type, "Request_");
  return Entity{is_writer ? kClient : kServer, "/" + name, type_of_ros(type)};
}

class Text {
 public:
  void count(size_t value) {
    while (bytes.size() % 4 != 0) bytes.push_back(0);
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
  }
  void put(const std::string &text) {
    count(text.size() + 1);
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.push_back(0);
  }
  std::vector<uint8_t> bytes;
};

Watched::Guid read_gid(tide_cdr_t &cdr, size_t gid_bytes) {
  std::array<uint8_t, 24> octets{};
  tide_cdr_get_bytes(&cdr, octets.data(), std::min(gid_bytes, octets.size()));
  Watched::Guid guid;
  std::copy_n(octets.begin(), 12, guid.guidPrefix.value);
  std::copy_n(octets.begin() + 12, 4, guid.entityId.value);
  return guid;
}

std::string read_text(tide_cdr_t &cdr) {
  size_t length = 0;
  const char *text = tide_cdr_get_string(&cdr, &length);
  return text == nullptr ? std::string() : std::string(text, length);
}

}  // namespace

bool Watched::read_nodes(Bytes sample, size_t gid_bytes) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample.data(), sample.size(), false);
  const Guid participant = read_gid(cdr, gid_bytes);
  std::vector<Node> nodes(tide_cdr_get_count(&cdr, 16));
  for (Node &node : nodes) {
    node.space = read_text(cdr);
    node.name = read_text(cdr);
    for (int side = 0; side < 2; side++) {
      const uint32_t count = tide_cdr_get_count(&cdr, gid_bytes);
      for (uint32_t i = 0; i < count; i++) node.endpoints.push_back(read_gid(cdr, gid_bytes));
    }
  }
  if (cdr.status != 0) return false;
  participants_[participant.guidPrefix] = std::move(nodes);
  return true;
}

std::vector<uint8_t> Watched::describe() const {
  Text graph;
  size_t count = 0;
  for (const auto &[prefix, nodes] : participants_) count += nodes.size();
  graph.count(count);
  for (const auto &[prefix, nodes] : participants_) {
    for (const Node &node : nodes) {
      std::vector<Entity> entities;
      for (const Guid &guid : node.endpoints) {
        const auto place = endpoints_.find(guid);
        if (place == endpoints_.end()) continue;
        const std::optional<Entity> entity = entity_of(place->second.is_writer, place->second.topic);
        if (entity) entities.push_back(*entity);
      }
      graph.put(node.space);
      graph.put(node.name);
      graph.count(entities.size());
      for (const Entity &entity : entities) {
        graph.bytes.push_back(entity.kind);
        graph.put(entity.name);
        graph.count(1);
        graph.put(entity.type);
      }
    }
  }
  return std::move(graph.bytes);
}

}  // namespace tide::agent
