// SPDX-License-Identifier: Apache-2.0
#include "core/creation.h"

#include "core/names.h"
#include "tide/invariant.h"

namespace tide::agent {
namespace {

constexpr const char *kRefusedByDds = "DDS refuses it; is there a topic of this name with another type?";

// Into what the entity becomes, unless DDS refused.
template <class Part>
uint8_t keep(Entity &entity, Part part) {
  if (part.dds == nullptr) return TIDE_XRCE_STATUS_ERR_DDS;
  entity.part = std::move(part);
  return TIDE_XRCE_STATUS_OK;
}

}  // namespace

std::optional<uint8_t> Creation::begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream,
                                       std::string &fault) {
  Definition definition;
  const std::optional<uint8_t> outcome = try_begin(body, flags, stream, definition, fault);
  if (outcome && !fault.empty()) fault = described(definition) + ": " + fault;
  return outcome;
}

std::optional<uint8_t> Creation::try_begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream,
                                           Definition &definition, std::string &fault) {
  const uint16_t object = body.request.object;
  const bool reuse = (flags & TIDE_XRCE_FLAG_REUSE) != 0;
  const bool replace = (flags & TIDE_XRCE_FLAG_REPLACE) != 0;
  const Entity *existing = entities_.find(object);
  if (existing != nullptr && !reuse && !replace) return TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS;
  if (existing == nullptr && entities_.size() >= context_.limits.entities_per_client) {
    fault = "this client has as many entities as --max-entities allows";
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  }
  const uint8_t defined = define(body, context_.profiles, definition, fault);
  // An unknown parent tells the client more than its bad description does.
  if (needed_parent(definition.kind) != TIDE_XRCE_KIND_INVALID && !entities_.has_parent(definition)) {
    if (defined != TIDE_XRCE_STATUS_ERR_INVALID_DATA) {
      fault = "what it belongs to does not exist";
      return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
    }
  }
  if (defined != TIDE_XRCE_STATUS_OK) {
    const bool by_name = defined == TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
    if (fault.empty()) fault = by_name ? "no such profile in --references" : "its description cannot be read";
    return defined;
  }
  fault = rename(definition);
  if (!fault.empty()) return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  if (definition.domain == 0) definition.domain = context_.default_domain;
  if (context_.domain) definition.domain = *context_.domain;
  // What gives its topic another type: of the program before this one, or by the topic that this one replaces.
  const bool names_topic = !definition.topic.name.empty() && !definition.topic.type.empty();
  if (names_topic) {
    const bool replaces = existing != nullptr && replace && definition.kind == TIDE_XRCE_KIND_TOPIC;
    const std::optional<Topic> replaced = replaces ? std::optional(existing->definition.topic) : std::nullopt;
    entities_.make_way(definition.topic, replaced ? &*replaced : nullptr);
    existing = entities_.find(object);
    if (needed_parent(definition.kind) != TIDE_XRCE_KIND_INVALID && !entities_.has_parent(definition)) {
      fault = "what it belongs to does not exist";
      return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
    }
  }
  if (definition.kind == TIDE_XRCE_KIND_DATAWRITER || definition.kind == TIDE_XRCE_KIND_DATAREADER) {
    const uint8_t found = entities_.find_topic(definition);
    if (found != TIDE_XRCE_STATUS_OK) {
      const bool mismatch = found == TIDE_XRCE_STATUS_ERR_MISMATCH;
      fault = mismatch ? "its topic exists with another type" : "its topic, and with it its type, is not known";
      return found;
    }
  }
  if (existing != nullptr && reuse) {
    if (existing->definition == definition) return TIDE_XRCE_STATUS_OK_MATCHED;
    if (!replace) {
      fault = "object exists as " + described(existing->definition);
      return TIDE_XRCE_STATUS_ERR_MISMATCH;
    }
  }
  if (existing != nullptr) entities_.remove(object);
  pending_ = std::make_unique<Pending>();
  pending_->stream = stream;
  pending_->request = body.request;
  Entity &entity = pending_->entity;
  const uint8_t made = instantiate(object, definition, entity, fault);
  if (made != TIDE_XRCE_STATUS_OK) {
    if (fault.empty()) fault = kRefusedByDds;
    pending_.reset();
    return made;
  }
  entity.definition = definition;
  if (!is_under_way()) return try_finish(fault);
  entity.made()->await(wake_of(pending_->signal, object));
  return std::nullopt;
}

// What is too long now, or empty.
std::string Creation::rename(Definition &definition) const {
  if (names_ == nullptr) return {};
  definition.name = names_->node(definition.name);
  for (Topic *topic : {&definition.topic, &definition.service.request, &definition.service.reply}) {
    if (topic->name.empty()) continue;
    topic->name = names_->topic(topic->name);
    if (const std::string fault = topic_fault(topic->name); !fault.empty()) return quoted(topic->name) + " " + fault;
  }
  return {};
}

bool Creation::is_under_way() const {
  if (pending_ == nullptr) return false;
  const Made *made = pending_->entity.made();
  return made != nullptr && made->state() == Made::State::kUnderWay;
}

bool Creation::is_of(uint8_t stream, tide_xrce_request_t request) const {
  return pending_ != nullptr && pending_->stream == stream && pending_->request.request == request.request &&
         pending_->request.object == request.object;
}

uint8_t Creation::finish(std::string &fault) {
  const std::string what = described(pending_->entity.definition);
  const uint8_t status = try_finish(fault);
  if (!fault.empty()) fault = what + ": " + fault;
  return status;
}

uint8_t Creation::try_finish(std::string &fault) {
  TIDE_INVARIANT(pending_ != nullptr && !is_under_way());
  const std::unique_ptr<Pending> pending = std::move(pending_);
  const Made *made = pending->entity.made();
  if (pending->orphaned) {
    fault = "what it belongs to was deleted meanwhile";
    return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  }
  if (made != nullptr && made->state() == Made::State::kRefused) {
    fault = kRefusedByDds;
    return TIDE_XRCE_STATUS_ERR_DDS;
  }
  entities_.add(pending->request.object, std::move(pending->entity));
  return TIDE_XRCE_STATUS_OK;
}

void Creation::removes(uint16_t object) {
  if (pending_ != nullptr && pending_->entity.definition.parent == object) pending_->orphaned = true;
}

Wake Creation::wake_of(std::shared_ptr<Signal> &signal, uint16_t object) {
  signal = std::make_shared<Signal>(key_, object, context_.next_entity++);
  return [queue = context_.signals, signal] { queue->push(signal); };
}

std::shared_ptr<Release> Creation::release_of(int domain, const std::string &topic) {
  std::erase_if(context_.releases, [](const auto &known) { return known.second.expired(); });
  std::weak_ptr<Release> &known = context_.releases[{domain, topic}];
  std::shared_ptr<Release> release = known.lock();
  if (release == nullptr) known = release = std::make_shared<Release>();
  return release;
}

uint8_t Creation::make_participant(Definition &definition, Entity &entity, std::string &fault) {
  if (entities_.count(TIDE_XRCE_KIND_PARTICIPANT) >= context_.limits.participants_per_client) {
    fault = "a client may have " + std::to_string(context_.limits.participants_per_client) + " nodes";
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  }
  Domains::Use domain = context_.domains.enter(definition.domain, context_.limits.domains);
  if (domain == nullptr) {
    fault = "clients use as many DDS domains as --max-domains allows";
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  }
  const std::string name = is_node_name(definition.name) ? definition.name : std::string{};
  return keep(entity,
              ParticipantPart{std::move(domain), context_.middleware.create_participant(definition.domain, name)});
}

uint8_t Creation::instantiate(uint16_t object, Definition &definition, Entity &entity, std::string &fault) {
  if (definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return make_participant(definition, entity, fault);
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
      auto release = release_of(owner->definition.domain, definition.service.request.name);
      return keep(entity, RequesterPart{std::move(requester), {signal}, std::move(release)});
    }
    case TIDE_XRCE_KIND_REPLIER: {
      auto replier = participant.create_replier(definition.service, definition.qos, wake_of(signal, object));
      return keep(entity, ReplierPart{std::move(replier), {signal}});
    }
    default:
      return TIDE_XRCE_STATUS_OK;
  }
}

}  // namespace tide::agent
