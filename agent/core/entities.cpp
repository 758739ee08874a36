// SPDX-License-Identifier: Apache-2.0
#include "core/entities.h"

#include "tide/invariant.h"
#include "tide/platform.h"

namespace tide::agent {

// ---- signals ----

void SignalQueue::push(const std::shared_ptr<Signal> &signal) {
  if (signal->queued.exchange(true)) return;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = signals_.empty();
    signals_.push_back(signal);
  }
  if (first && wake_) wake_();
}

void SignalQueue::take(std::vector<std::shared_ptr<Signal>> &signals) {
  const std::lock_guard lock(mutex_);
  signals.swap(signals_);
}

// ---- messages that wait for ROS 2 ----

Time WaitingMessages::next_ns() const {
  Time next = TIDE_FOREVER;
  for (const WaitingMessage &message : messages_) next = std::min(next, message.until_ns);
  return next;
}

size_t WaitingMessages::push(WaitingMessage message, const Limits &limits) {
  size_t evicted = 0;
  bytes_ += message.payload.size();
  messages_.push_back(std::move(message));
  while (messages_.size() > limits.waiting_messages || (bytes_ > limits.waiting_bytes && messages_.size() > 1)) {
    bytes_ -= messages_.front().payload.size();
    messages_.pop_front();
    evicted++;
  }
  check();
  return evicted;
}

size_t WaitingMessages::flush(Time now, const std::function<bool(const WaitingMessage &)> &send) {
  size_t expired = 0;
  std::erase_if(messages_, [&](const WaitingMessage &message) {
    const bool over = now >= message.until_ns;
    if (!over && !send(message)) return false;
    if (over) expired++;
    bytes_ -= message.payload.size();
    return true;
  });
  check();
  return expired;
}

void WaitingMessages::check() const {
#if TIDE_INVARIANTS
  size_t bytes = 0;
  for (const WaitingMessage &message : messages_) bytes += message.payload.size();
  TIDE_INVARIANT(bytes == bytes_);
#endif
}

// ---- one entity ----

Made *Entity::made() const {
  return std::visit(
      [](const auto &its) -> Made * {
        if constexpr (requires { its.dds; }) return its.dds.get();
        return nullptr;
      },
      part);
}

Source *Entity::source() const { return delivery() == nullptr ? nullptr : static_cast<Source *>(made()); }

const Delivery *Entity::delivery() const {
  return std::visit(
      [](const auto &its) -> const Delivery * {
        if constexpr (requires { its.delivery; }) return &its.delivery;
        return nullptr;
      },
      part);
}

Delivery *Entity::delivery() { return const_cast<Delivery *>(std::as_const(*this).delivery()); }

WaitingMessages *Entity::waiting() {
  if (auto *requester = as<RequesterPart>()) return &requester->waiting;
  auto *replier = as<ReplierPart>();
  return replier == nullptr ? nullptr : &replier->waiting;
}

// ---- all entities of a client ----

const Entity *Entities::find(uint16_t object) const {
  const auto found = entities_.find(object);
  return found == entities_.end() ? nullptr : &found->second;
}

bool Entities::has_parent(const Definition &definition) const {
  uint8_t needed = TIDE_XRCE_KIND_PARTICIPANT;
  if (definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return true;
  if (definition.kind == TIDE_XRCE_KIND_DATAWRITER) needed = TIDE_XRCE_KIND_PUBLISHER;
  if (definition.kind == TIDE_XRCE_KIND_DATAREADER) needed = TIDE_XRCE_KIND_SUBSCRIBER;
  return TIDE_XRCE_OBJECT_KIND(definition.parent) == needed && entities_.contains(definition.parent);
}

const Entity *Entities::participant_of(const Definition &definition) const {
  const Entity *parent = find(definition.parent);
  if (parent == nullptr || parent->definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return parent;
  return find(parent->definition.parent);
}

// A writer or reader refers to its topic by object id (binary form) or by name. Without a type of its own, it takes the
// type of the topic object.
uint8_t Entities::find_topic(Definition &definition) const {
  const Entity *participant = participant_of(definition);
  for (const auto &[object, entity] : entities_) {
    const Topic &topic = entity.definition.topic;
    if (entity.definition.kind != TIDE_XRCE_KIND_TOPIC || find(entity.definition.parent) != participant) continue;
    if (definition.topic_object != 0 ? object != definition.topic_object : topic.name != definition.topic.name)
      continue;
    if (!definition.topic.type.empty() && definition.topic.type != topic.type) return TIDE_XRCE_STATUS_ERR_MISMATCH;
    definition.topic = topic;
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
  const auto found = entities_.find(object);
  if (found == entities_.end()) return;
  departs_(object, found->second);
  entities_.erase(found);
}

void Entities::remove_if(const std::function<bool(const Entity &entity)> &condition) {
  std::vector<uint16_t> objects;
  for (const auto &[object, entity] : entities_) {
    if (condition(entity)) objects.push_back(object);
  }
  for (const uint16_t object : objects) remove(object);
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

void Entities::make_way(const Topic &topic, const std::optional<Topic> &replaced) {
  remove_if([&](const Entity &entity) {
    const Topic &its = entity.definition.topic;
    const bool conflicts = its.name == topic.name && !its.type.empty() && its.type != topic.type;
    return conflicts && (entity.former || its == replaced);
  });
}

bool Entities::has_former() const {
  return std::any_of(entities_.begin(), entities_.end(), [](const auto &entry) { return entry.second.former; });
}

void Entities::remove_former() {
  remove_if([](const Entity &entity) { return entity.former; });
}

// ---- creation ----

namespace {

constexpr const char *kRefusedByDds = "DDS refuses it; is there a topic of this name with another type?";
constexpr const char *kNoParent = "its parent object does not exist";

// Stores the DDS object in the entity's part, unless DDS refused to create it.
template <class Part> uint8_t keep(Entity &entity, Part part) {
  if (part.dds == nullptr) return TIDE_XRCE_STATUS_ERR_DDS;
  entity.part = std::move(part);
  return TIDE_XRCE_STATUS_OK;
}

// Returns the object for this key in a map of weak pointers; makes a new one if there is none.
template <class Value, class Key>
std::shared_ptr<Value> shared_of(std::map<Key, std::weak_ptr<Value>> &known, const Key &key) {
  std::shared_ptr<Value> value = known[key].lock();
  if (value == nullptr) known[key] = value = std::make_shared<std::remove_const_t<Value>>();
  return value;
}

}  // namespace

std::optional<uint8_t> Creation::begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream,
                                       std::string &fault) {
  const uint16_t object = body.request.object;
  const bool reuse = (flags & TIDE_XRCE_FLAG_REUSE) != 0, replace = (flags & TIDE_XRCE_FLAG_REPLACE) != 0;
  Definition definition;
  const auto refuse = [&](uint8_t status, const std::string &why) {
    fault = described(definition) + ": " + why;
    return status;
  };
  const Entity *existing = entities_.find(object);
  if (existing != nullptr && !reuse && !replace) return TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS;
  if (existing == nullptr && entities_.size() >= context_.limits.entities_per_client) {
    return refuse(TIDE_XRCE_STATUS_ERR_RESOURCES, "this client has reached the limit of --max-entities");
  }
  std::string why;
  const uint8_t defined = define(body, context_.profiles, definition, why);
  // An unknown parent is reported first, because it is a more useful error than a bad description.
  if (defined != TIDE_XRCE_STATUS_ERR_INVALID_DATA && !entities_.has_parent(definition)) {
    return refuse(TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE, kNoParent);
  }
  if (defined != TIDE_XRCE_STATUS_OK) {
    const bool by_name = defined == TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
    if (why.empty()) why = by_name ? "no such profile in --references" : "its description cannot be read";
    return refuse(defined, why);
  }
  if (names_ != nullptr) {
    definition.name = names_->node(definition.name);
    for (Topic *topic : {&definition.topic, &definition.service.request, &definition.service.reply}) {
      if (topic->name.empty()) continue;
      topic->name = names_->topic(topic->name);
      why = topic_fault(topic->name);
      if (!why.empty()) return refuse(TIDE_XRCE_STATUS_ERR_INVALID_DATA, quoted(topic->name) + " " + why);
    }
  }
  if (definition.domain == 0) definition.domain = context_.default_domain;
  if (context_.domain) definition.domain = *context_.domain;
  // New firmware may use a topic with another type, of which entities of the former run, or of a replaced topic, would
  // still use the old type.
  if (!definition.topic.name.empty() && !definition.topic.type.empty()) {
    const bool replaces = existing != nullptr && replace && definition.kind == TIDE_XRCE_KIND_TOPIC;
    const std::optional<Topic> replaced = replaces ? std::optional(existing->definition.topic) : std::nullopt;
    entities_.make_way(definition.topic, replaced);
    existing = entities_.find(object);
    if (!entities_.has_parent(definition)) return refuse(TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE, kNoParent);
  }
  if (definition.kind == TIDE_XRCE_KIND_DATAWRITER || definition.kind == TIDE_XRCE_KIND_DATAREADER) {
    const uint8_t found = entities_.find_topic(definition);
    const bool mismatch = found == TIDE_XRCE_STATUS_ERR_MISMATCH;
    if (mismatch) return refuse(found, "its topic exists with another type");
    if (found != TIDE_XRCE_STATUS_OK) return refuse(found, "its topic object, which has the type, does not exist");
  }
  if (existing != nullptr && reuse) {
    if (existing->definition == definition) return TIDE_XRCE_STATUS_OK_MATCHED;
    if (!replace) {
      return refuse(TIDE_XRCE_STATUS_ERR_MISMATCH, "object exists as " + described(existing->definition));
    }
  }
  if (existing != nullptr) entities_.remove(object);
  pending_ = std::make_unique<Pending>();
  pending_->stream = stream;
  pending_->request = body.request;
  const uint8_t made = instantiate(object, definition, pending_->entity, why);
  if (made != TIDE_XRCE_STATUS_OK) {
    pending_.reset();
    return refuse(made, why.empty() ? kRefusedByDds : why);
  }
  pending_->entity.definition = definition;
  if (!is_under_way()) return finish(fault);
  pending_->entity.made()->await(wake_of(pending_->signal, object));
  return std::nullopt;
}

uint8_t Creation::instantiate(uint16_t object, const Definition &definition, Entity &entity, std::string &fault) {
  const Limits &limits = context_.limits;
  if (definition.kind == TIDE_XRCE_KIND_PARTICIPANT) {
    const auto is_participant = [](const auto &entry) {
      return entry.second.definition.kind == TIDE_XRCE_KIND_PARTICIPANT;
    };
    const auto count = std::count_if(entities_.begin(), entities_.end(), is_participant);
    if (static_cast<size_t>(count) >= limits.participants_per_client) {
      fault = "a client may have at most " + std::to_string(limits.participants_per_client) + " nodes";
      return TIDE_XRCE_STATUS_ERR_RESOURCES;
    }
    std::erase_if(context_.domains, [](const auto &known) { return known.second.expired(); });
    if (context_.domains.size() >= limits.domains && !context_.domains.contains(definition.domain)) {
      fault = "the clients' DDS domains have reached the limit of --max-domains";
      return TIDE_XRCE_STATUS_ERR_RESOURCES;
    }
    auto domain = shared_of(context_.domains, definition.domain);
    const std::string name = is_node_name(definition.name) ? definition.name : std::string{};
    return keep(entity,
                ParticipantPart{std::move(domain), context_.middleware.create_participant(definition.domain, name)});
  }
  const Entity *owner = entities_.participant_of(definition);
  const auto *part = owner == nullptr ? nullptr : owner->as<ParticipantPart>();
  if (part == nullptr) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  Participant &participant = *part->dds;
  std::shared_ptr<Signal> signal;
  switch (definition.kind) {
    case TIDE_XRCE_KIND_TOPIC:
      if (participant.check_topic(definition.topic)) return TIDE_XRCE_STATUS_OK;
      fault = "this node uses the topic with another type";
      return TIDE_XRCE_STATUS_ERR_DDS;
    case TIDE_XRCE_KIND_DATAWRITER:
      return keep(entity, WriterPart{participant.create_writer(definition.topic, definition.qos)});
    case TIDE_XRCE_KIND_DATAREADER: {
      auto reader = participant.create_reader(definition.topic, definition.qos, wake_of(signal, object));
      return keep(entity, ReaderPart{std::move(reader), {signal}});
    }
    case TIDE_XRCE_KIND_REQUESTER: {
      auto requester = participant.create_requester(definition.service, definition.qos, wake_of(signal, object));
      std::erase_if(context_.releases, [](const auto &known) { return known.second.expired(); });
      auto release = shared_of(context_.releases, std::pair(owner->definition.domain, definition.service.request.name));
      return keep(entity, RequesterPart{std::move(requester), {signal}, std::move(release)});
    }
    case TIDE_XRCE_KIND_REPLIER: {
      auto replier = participant.create_replier(definition.service, definition.qos, wake_of(signal, object));
      return keep(entity, ReplierPart{std::move(replier), {signal}});
    }
    default: return TIDE_XRCE_STATUS_OK;
  }
}

uint8_t Creation::finish(std::string &fault) {
  TIDE_INVARIANT(pending_ != nullptr && !is_under_way());
  const std::unique_ptr<Pending> pending = std::move(pending_);
  const Made *made = pending->entity.made();
  const auto refuse = [&](uint8_t status, const std::string &why) {
    fault = described(pending->entity.definition) + ": " + why;
    return status;
  };
  if (pending->orphaned) {
    return refuse(TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE, "its parent object was deleted meanwhile");
  }
  if (made != nullptr && made->state() == Made::State::kRefused) {
    return refuse(TIDE_XRCE_STATUS_ERR_DDS, kRefusedByDds);
  }
  entities_.add(pending->request.object, std::move(pending->entity));
  return TIDE_XRCE_STATUS_OK;
}

bool Creation::is_under_way() const {
  const Made *made = pending_ == nullptr ? nullptr : pending_->entity.made();
  return made != nullptr && made->state() == Made::State::kUnderWay;
}

bool Creation::is_of(uint8_t stream, tide_xrce_request_t request) const {
  return pending_ != nullptr && pending_->stream == stream && pending_->request.request == request.request &&
         pending_->request.object == request.object;
}

void Creation::removes(uint16_t object) {
  if (pending_ != nullptr && pending_->entity.definition.parent == object) pending_->orphaned = true;
}

Wake Creation::wake_of(std::shared_ptr<Signal> &signal, uint16_t object) {
  signal = std::make_shared<Signal>(key_, object, context_.next_entity++);
  return [queue = context_.signals, signal] { queue->push(signal); };
}

}  // namespace tide::agent
