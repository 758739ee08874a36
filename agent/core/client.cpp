// SPDX-License-Identifier: Apache-2.0
#include "core/client.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "core/names.h"
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/status.h"

namespace tide::agent {
namespace {

constexpr Time kSecond = 1'000'000'000;
constexpr Time kMillisecond = 1'000'000;
constexpr uint16_t kUnlimited = 0xFFFF;
constexpr size_t kRequestBytes = 4;
constexpr uint8_t kProbedStream = TIDE_STREAM_RELIABLE(0);

bool big_endian(const tide_xrce_submessage_t &submessage) {
  return (submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
}

tide_cdr_t reader_of(const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, big_endian(submessage));
  return cdr;
}

// The mark that a DATA node carries: which reader, which of its readings. Never null.
void *owner_of(uint16_t object, uint32_t generation) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<void *>((uintptr_t{generation} << 17) | (uintptr_t{object} << 1) | 1u);
}
uint16_t object_of(void *owner) { return static_cast<uint16_t>(reinterpret_cast<uintptr_t>(owner) >> 1); }
uint32_t generation_of(void *owner) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(owner) >> 17); }

// As clients of tide count their sessions.
uint8_t session_after(uint8_t session) {
  if (session == 0xFE) return 0x81;
  return session == 0x7F ? uint8_t{0x01} : static_cast<uint8_t>(session + 1);
}

std::string line_of(uint32_t key, const tide_xrce_create_t &body, uint8_t status, const std::string &fault) {
  std::array<char, 96> line;
  std::snprintf(line.data(), line.size(), "client %08X: create object 0x%04X, status 0x%02X", key, body.request.object,
                status);
  return fault.empty() ? line.data() : std::string(line.data()) + ": " + fault;
}

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

}  // namespace

size_t answer_get_info(const tide_xrce_submessage_t &question, bool known, std::span<uint8_t> answer) {
  tide_cdr_t cdr = reader_of(question);
  tide_xrce_get_info_body_t body;
  tide_xrce_get_get_info(&cdr, &body);
  if (cdr.status != TIDE_OK) return 0;
  const tide_xrce_info_t info = {.related = body.request,
                                 .status = TIDE_XRCE_STATUS_OK,
                                 .implementation_status = known ? uint8_t{1} : uint8_t{0},
                                 .vendor = kVendor,
                                 .version_major = kVersionMajor,
                                 .version_minor = kVersionMinor};
  tide_cdr_t writer;
  tide_cdr_writer(&writer, answer.data(), answer.size());
  tide_xrce_put_info(&writer, &info);
  return writer.status == TIDE_OK ? writer.position : 0;
}

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

Client::Client(Context &context, Endpoint endpoint, const Announcement &announcement, Time now)
    : context_(context), endpoint_(endpoint), announcement_(announcement), began_(now), now_(now), last_heard_(now) {
  reset_streams();
}

Made *Client::Entity::made() const {
  if (participant != nullptr) return participant.get();
  if (writer != nullptr) return writer.get();
  return source.get();
}

void Client::resume(Endpoint endpoint, const Announcement &announcement, Time now) {
  endpoint_ = endpoint;
  // Else it is a program that has started anew, or may be: its request ids are others'.
  if (announcement.session != session_after(session())) forget_requests();
  if (announcement.session != session()) former_session_ = session();
  announcement_ = announcement;
  began_ = now;
  now_ = now;
  last_heard_ = now;
  acknowledged_ = false;
  for (auto &[object, entity] : entities_) entity.reading.active = false;
  rank_readers();
  reset_streams();
}

void Client::forget_requests() {
  for (auto &[object, entity] : entities_) {
    entity.requests.clear();
    entity.waiting = {};
    if (entity.requester != nullptr) entity.stalled.reset();
  }
}

void Client::reset_streams() {
  epoch_ = context_.next_epoch++;
  data_nodes_ = 0;
  creation_.reset();
  write_retry_ns_ = TIDE_FOREVER;
  for (auto &[object, entity] : entities_) {
    entity.generation = ++generation_;
    entity.in_flight = 0;
  }
  input_ = std::make_unique<Input>(
      context_.limits, context_.counters,
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage) {
        return stream_submessage(stream, submessage);
      },
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage) { refuse_fragments(stream, submessage); });
  const Time heartbeat_delay_ns = context_.heartbeat_delay_ns ? context_.heartbeat_delay_ns(endpoint_) : -1;
  output_ = std::make_unique<Output>(context_.limits, session(), key(), announcement_.message_bytes, heartbeat_delay_ns,
                                     [this](void *owner, tide_node_outcome_t outcome) { node_done(owner, outcome); });
}

// ---- reception ----

void Client::message(const tide_xrce_header_t &header, Bytes message, Time now) {
  now_ = now;
  last_heard_ = now;
  probes_unanswered_ = 0;
  liveliness_ = Liveliness::kAlive;
  if (header.stream != TIDE_XRCE_STREAM_NONE) {
    acknowledge(input_->message(header, message));
    return;
  }
  size_t position = tide_xrce_header_bytes(header.session);
  tide_xrce_submessage_t submessage;
  int more = 0;
  // A RESET or DELETE among them ends the state that the rest belongs to, so look after each.
  while (!closing_ && (more = tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage)) == 1) {
    control_submessage(submessage, now);
  }
  if (more < 0) context_.counters.malformed++;
}

void Client::acknowledge(const tide_input_stream_t *stream) {
  if (stream == nullptr) return;
  tide_transmitter_request_acknack(&output_->transmitter(), stream->id, stream->next,
                                   tide_input_stream_missing(stream));
}

void Client::control_submessage(const tide_xrce_submessage_t &submessage, Time now) {
  tide_cdr_t cdr = reader_of(submessage);
  switch (submessage.id) {
    case TIDE_XRCE_ACKNACK: {
      tide_xrce_acknack_t body;
      tide_xrce_get_acknack(&cdr, &body);
      if (cdr.status != TIDE_OK) break;
      acknowledged_ = true;
      tide_transmitter_on_acknack(&output_->transmitter(), &body, now);
      return;
    }
    case TIDE_XRCE_HEARTBEAT: {
      tide_xrce_heartbeat_t body;
      tide_xrce_get_heartbeat(&cdr, &body);
      if (cdr.status != TIDE_OK) break;
      acknowledge(input_->heartbeat(body));
      return;
    }
    case TIDE_XRCE_RESET:
      reset_streams();
      return;
    case TIDE_XRCE_GET_INFO:
      on_get_info(submessage);
      return;
    case TIDE_XRCE_TIMESTAMP:
      on_timestamp(submessage);
      return;
    case TIDE_XRCE_INFO:
      acknowledged_ = true;
      return;
    case TIDE_XRCE_CREATE_CLIENT:
      return;  // some clients answer a probe with zero octets, which read like this
    default:
      input_->submessage(TIDE_XRCE_STREAM_NONE, submessage);
      return;
  }
  context_.counters.malformed++;
}

// False: offer it again later.
bool Client::stream_submessage(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  if (closing_) return true;
  switch (submessage.id) {
    case TIDE_XRCE_CREATE:
      return on_create(stream, submessage);
    case TIDE_XRCE_DELETE:
      on_delete(stream, submessage);
      break;
    case TIDE_XRCE_WRITE_DATA:
      return on_write(stream, submessage);
    case TIDE_XRCE_READ_DATA:
      on_read(stream, submessage);
      break;
    case TIDE_XRCE_GET_INFO:
      on_get_info(submessage);
      break;
    default:
      context_.counters.malformed++;
      break;
  }
  return true;
}

// No reason for the stream to stand still for ever; the client hears of it by a STATUS that it did not wait for.
void Client::refuse_fragments(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
  if (cdr.status != TIDE_OK) return;
  send_status(stream, request, TIDE_XRCE_STATUS_ERR_RESOURCES);
}

void Client::on_timestamp(const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_timestamp_reply_t reply{};
  reply.receive = tide_xrce_time_from_ns(context_.wall_clock_ns());
  reply.originate = tide_xrce_get_timestamp(&cdr);
  if (cdr.status != TIDE_OK) {
    context_.counters.malformed++;
    return;
  }
  reply.transmit = tide_xrce_time_from_ns(context_.wall_clock_ns());
  std::array<uint8_t, 32> storage;
  tide_cdr_t body;
  tide_cdr_writer(&body, storage.data(), storage.size());
  tide_xrce_put_timestamp_reply(&body, &reply);
  if (output_->submit_control(TIDE_XRCE_TIMESTAMP_REPLY, {storage.data(), body.position}) < 0) {
    context_.counters.replies_dropped++;
  }
}

void Client::on_get_info(const tide_xrce_submessage_t &submessage) {
  std::array<uint8_t, 36> storage;
  const size_t length = answer_get_info(submessage, true, storage);
  if (length == 0) {
    context_.counters.malformed++;
  } else if (output_->submit_control(TIDE_XRCE_INFO, {storage.data(), length}) < 0) {
    context_.counters.replies_dropped++;
  }
}

void Client::send_status(uint8_t stream, tide_xrce_request_t related, uint8_t status) {
  std::array<uint8_t, 8> storage;
  tide_cdr_t body;
  tide_cdr_writer(&body, storage.data(), storage.size());
  const tide_xrce_status_body_t values = {related, status, 0};
  tide_xrce_put_status(&body, &values);
  const Bytes bytes(storage.data(), body.position);
  const int sent =
      stream == TIDE_XRCE_STREAM_NONE
          ? output_->submit_control(TIDE_XRCE_STATUS, bytes)
          : output_->submit(stream, TIDE_XRCE_STATUS, TIDE_XRCE_FLAG_LITTLE_ENDIAN, bytes, {}, nullptr, now_);
  if (sent < 0) context_.counters.statuses_lost++;
}

// ---- entities ----

bool Client::on_create(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  if (is_creating()) return false;
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_create_t body{};
  tide_xrce_get_create(&cdr, &body);
  if (submessage.body_bytes < kRequestBytes) {
    context_.counters.malformed++;
    return true;
  }
  std::string fault;
  if (creation_ != nullptr && creation_->stream != stream && input_->is_stalled(creation_->stream)) return false;
  const bool returns = creation_ != nullptr && creation_->stream == stream &&
                       creation_->request.request == body.request.request &&
                       creation_->request.object == body.request.object;
  if (!returns) creation_.reset();  // or there was no room to keep what asked for it
  std::optional<uint8_t> outcome = uint8_t{TIDE_XRCE_STATUS_ERR_INVALID_DATA};
  if (returns) {
    outcome = finish_creation();
  } else if (cdr.status == TIDE_OK) {
    outcome = create(body, submessage.flags, stream, fault);
  } else {
    tide_cdr_t ids = reader_of(submessage);
    body.request = tide_xrce_get_request(&ids);
  }
  if (!outcome) return false;
  const uint8_t status = *outcome;
  if (status == TIDE_XRCE_STATUS_OK) {
    context_.counters.entities_created++;
  } else if (status != TIDE_XRCE_STATUS_OK_MATCHED) {
    context_.counters.entities_refused++;
  }
  if (context_.log) context_.log(line_of(key(), body, status, fault));
  send_status(stream, body.request, status);
  return true;
}

std::optional<uint8_t> Client::create(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream,
                                      std::string &fault) {
  const uint16_t object = body.request.object;
  const bool reuse = (flags & TIDE_XRCE_FLAG_REUSE) != 0;
  const bool replace = (flags & TIDE_XRCE_FLAG_REPLACE) != 0;
  Entity *existing = find(object);
  if (existing != nullptr && !reuse && !replace) return TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS;
  if (existing == nullptr && entities_.size() >= context_.limits.entities_per_client) {
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  }
  Definition definition;
  const uint8_t defined = define(body, context_.profiles, definition, fault);
  // An unknown parent tells the client more than its bad description does.
  if (needed_parent(definition.kind) != TIDE_XRCE_KIND_INVALID && !has_parent(definition)) {
    if (defined != TIDE_XRCE_STATUS_ERR_INVALID_DATA) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  }
  if (defined != TIDE_XRCE_STATUS_OK) return defined;
  if (definition.domain == 0) definition.domain = context_.default_domain;
  if (context_.domain) definition.domain = *context_.domain;
  if (definition.kind == TIDE_XRCE_KIND_DATAWRITER || definition.kind == TIDE_XRCE_KIND_DATAREADER) {
    const uint8_t found = find_topic(definition, *participant_of(definition));
    if (found != TIDE_XRCE_STATUS_OK) return found;
  }
  if (existing != nullptr && reuse) {
    if (existing->definition == definition) return TIDE_XRCE_STATUS_OK_MATCHED;
    if (!replace) return TIDE_XRCE_STATUS_ERR_MISMATCH;
  }
  if (existing != nullptr) remove(object);
  creation_ = std::make_unique<Creation>();
  creation_->stream = stream;
  creation_->request = body.request;
  Entity &entity = creation_->entity;
  const uint8_t made = instantiate(object, definition, entity);
  if (made != TIDE_XRCE_STATUS_OK) {
    creation_.reset();
    return made;
  }
  entity.definition = std::move(definition);
  if (!is_creating()) return finish_creation();
  entity.made()->await(wake_of(creation_->signal, object));
  return std::nullopt;
}

bool Client::is_creating() const {
  if (creation_ == nullptr) return false;
  const Made *made = creation_->entity.made();
  return made != nullptr && made->state() == Made::State::kUnderWay;
}

uint8_t Client::finish_creation() {
  const std::unique_ptr<Creation> creation = std::move(creation_);
  const Made *made = creation->entity.made();
  if (creation->orphaned) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  if (made != nullptr && made->state() == Made::State::kRefused) return TIDE_XRCE_STATUS_ERR_DDS;
  Entity &entity = creation->entity;
  entity.generation = ++generation_;
  const Qos &qos = entity.definition.qos;
  const bool forgets = entity.writer != nullptr && qos.reliable && !qos.transient_local;
  if (announcement_.continues && forgets) entity.reader_deadline_ns = now_ + context_.limits.reader_wait_ns;
  entities_.emplace(creation->request.object, std::move(entity));
  return TIDE_XRCE_STATUS_OK;
}

bool Client::has_parent(const Definition &definition) const {
  if (TIDE_XRCE_OBJECT_KIND(definition.parent) != needed_parent(definition.kind)) return false;
  return entities_.contains(definition.parent);
}

size_t Client::count(uint8_t kind) const {
  return static_cast<size_t>(std::count_if(entities_.begin(), entities_.end(),
                                           [kind](const auto &entry) { return entry.second.definition.kind == kind; }));
}

Client::Entity *Client::participant_of(const Definition &definition) {
  Entity *parent = find(definition.parent);
  if (parent == nullptr || parent->definition.kind == TIDE_XRCE_KIND_PARTICIPANT) return parent;
  return find(parent->definition.parent);
}

// A writer or reader names its topic by object (binary) or by name; a name alone takes the type of the topic object.
uint8_t Client::find_topic(Definition &definition, const Entity &participant) const {
  for (const auto &[object, entity] : entities_) {
    if (entity.definition.kind != TIDE_XRCE_KIND_TOPIC) continue;
    if (find_participant(entity.definition.parent) != &participant) continue;
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

const Client::Entity *Client::find_participant(uint16_t object) const {
  const auto place = entities_.find(object);
  return place == entities_.end() ? nullptr : &place->second;
}

Wake Client::wake_of(std::shared_ptr<Signal> &signal, uint16_t object) {
  signal = std::make_shared<Signal>(key(), object, context_.next_entity++);
  return [queue = context_.signals, signal] { queue->push(signal); };
}

uint8_t Client::instantiate(uint16_t object, Definition &definition, Entity &entity) {
  if (definition.kind == TIDE_XRCE_KIND_PARTICIPANT) {
    if (count(TIDE_XRCE_KIND_PARTICIPANT) >= context_.limits.participants_per_client) {
      return TIDE_XRCE_STATUS_ERR_RESOURCES;
    }
    entity.domain = context_.domains.enter(definition.domain, context_.limits.domains);
    if (entity.domain == nullptr) return TIDE_XRCE_STATUS_ERR_RESOURCES;
    entity.participant = context_.middleware.create_participant(
        definition.domain, is_node_name(definition.name) ? definition.name : std::string{});
    return entity.participant != nullptr ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
  }
  Entity *owner = participant_of(definition);
  if (owner == nullptr || owner->participant == nullptr) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  Participant &participant = *owner->participant;
  bool made = true;
  switch (definition.kind) {
    case TIDE_XRCE_KIND_TOPIC:
      made = participant.check_topic(definition.topic);
      break;
    case TIDE_XRCE_KIND_DATAWRITER:
      entity.writer = participant.create_writer(definition.topic, definition.qos);
      made = entity.writer != nullptr;
      break;
    case TIDE_XRCE_KIND_DATAREADER:
      entity.source = participant.create_reader(definition.topic, definition.qos, wake_of(entity.signal, object));
      made = entity.source != nullptr;
      break;
    case TIDE_XRCE_KIND_REQUESTER: {
      auto requester = participant.create_requester(definition.service, definition.qos, wake_of(entity.signal, object));
      entity.requester = requester.get();
      entity.source = std::move(requester);
      made = entity.source != nullptr;
      break;
    }
    case TIDE_XRCE_KIND_REPLIER: {
      auto replier = participant.create_replier(definition.service, definition.qos, wake_of(entity.signal, object));
      entity.replier = replier.get();
      entity.source = std::move(replier);
      made = entity.source != nullptr;
      break;
    }
    default:
      break;
  }
  return made ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_DDS;
}

Client::Entity *Client::find(uint16_t object) {
  const auto place = entities_.find(object);
  return place == entities_.end() ? nullptr : &place->second;
}

// With everything that it contains.
void Client::remove(uint16_t object) {
  if (creation_ != nullptr && creation_->entity.definition.parent == object) creation_->orphaned = true;
  std::vector<uint16_t> children;
  for (const auto &[child, entity] : entities_) {
    if (entity.definition.kind != TIDE_XRCE_KIND_PARTICIPANT && entity.definition.parent == object) {
      children.push_back(child);
    }
  }
  for (const uint16_t child : children) remove(child);
  const auto place = entities_.find(object);
  if (place == entities_.end()) return;
  data_nodes_ -= place->second.in_flight;
  entities_.erase(place);
  rank_readers();
}

void Client::on_delete(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  const tide_xrce_request_t body = tide_xrce_get_request(&cdr);
  if (cdr.status != TIDE_OK) {
    context_.counters.malformed++;
    return;
  }
  if (body.object == TIDE_XRCE_OBJECT_CLIENT) {
    closing_ = true;
    closing_request_ = body;  // the agent answers: this client's output ends here
    return;
  }
  const bool known = find(body.object) != nullptr;
  if (known) remove(body.object);
  send_status(stream, body, known ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
}

// ---- towards DDS ----

bool Client::on_write(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
  if (cdr.status != TIDE_OK) {
    context_.counters.malformed++;
    return true;
  }
  Entity *entity = find(request.object);
  if (entity == nullptr || (entity->writer == nullptr && entity->requester == nullptr && entity->replier == nullptr)) {
    context_.counters.write_unknown++;
    return true;
  }
  if (waits_for_reader(*entity, stream)) return offer_again();
  if ((submessage.flags & TIDE_XRCE_FORMAT_MASK) == TIDE_XRCE_FORMAT_DATA) {
    const Bytes payload{submessage.body + kRequestBytes, submessage.body_bytes - kRequestBytes};
    if (write(*entity, request.request, payload, big_endian(submessage))) return true;
    if (may_wait(*entity, stream)) return offer_again();
    context_.counters.write_failed++;
    return true;
  }
  if ((submessage.flags & TIDE_XRCE_FORMAT_MASK) != TIDE_XRCE_FORMAT_DATA_SEQUENCE) {
    context_.counters.format_unsupported++;
    return true;
  }
  for (uint32_t count = tide_cdr_get_count(&cdr, sizeof(uint32_t)); count != 0 && cdr.status == TIDE_OK; count--) {
    const uint32_t length = tide_cdr_get_count(&cdr, 1);
    const uint8_t *bytes = tide_cdr_view(&cdr, length);
    if (cdr.status != TIDE_OK) break;
    if (!write(*entity, request.request, {bytes, length}, big_endian(submessage))) context_.counters.write_failed++;
  }
  if (cdr.status != TIDE_OK) context_.counters.malformed++;
  return true;
}

bool Client::offer_again() {
  write_retry_ns_ = now_ + context_.limits.write_retry_ns;
  return false;
}

// DDS refuses for a moment when its lock is taken or its history is full of what readers have not acknowledged. Until
// it takes the sample the client's stream waits, and with it the client; but not for ever.
bool Client::may_wait(Entity &entity, uint8_t stream) {
  if (!TIDE_STREAM_IS_RELIABLE(stream) || entity.writer == nullptr || !entity.definition.qos.reliable) return false;
  if (entity.refused_since_ns == 0) {
    entity.refused_since_ns = now_;
    context_.counters.write_waited++;
  }
  return now_ - entity.refused_since_ns < context_.limits.write_wait_ns;
}

// What the client kept for an agent that was started again comes before DDS has found the writers' readers again.
bool Client::waits_for_reader(Entity &entity, uint8_t stream) const {
  if (entity.reader_deadline_ns == 0 || !TIDE_STREAM_IS_RELIABLE(stream)) return false;
  if (now_ < entity.reader_deadline_ns && !entity.writer->has_reader()) return true;
  entity.reader_deadline_ns = 0;
  return false;
}

bool Client::write(Entity &entity, uint16_t request, Bytes payload, bool big_endian_payload) {
  if (entity.writer == nullptr) return write_to_service(entity, request, payload, big_endian_payload);
  const bool written = entity.writer->write(payload, big_endian_payload);
  if (!written) return false;
  entity.refused_since_ns = 0;
  context_.counters.samples_to_dds++;
  return true;
}

// ---- services ----

bool Client::write_to_service(Entity &entity, uint16_t request, Bytes payload, bool big_endian_payload) {
  WaitingMessage message;
  message.request = request;
  message.big_endian = big_endian_payload;
  if (entity.replier != nullptr) {
    if (payload.size() < message.identity.size()) return false;
    std::copy_n(payload.begin(), message.identity.size(), message.identity.begin());
    payload = payload.subspan(message.identity.size());
  }
  message.payload.assign(payload.begin(), payload.end());
  entity.signal->queued.store(false);  // before looking, so that what changes now is announced again
  if (entity.waiting.empty() && is_ready(entity, message)) {
    send_to_service(entity, message);
    return true;
  }
  Counters &counters = context_.counters;
  const bool asks = entity.requester != nullptr;
  (asks ? counters.requests_waited : counters.replies_waited)++;
  message.until_ns = now_ + (asks ? context_.limits.request_wait_ns : context_.limits.reply_wait_ns);
  waiting_next_ns_ = std::min(waiting_next_ns_, message.until_ns);
  const size_t given_up = entity.waiting.push(std::move(message), context_.limits);
  (asks ? counters.requests_unserved : counters.replies_unreachable) += given_up;
  flush_waiting(entity);
  return true;
}

bool Client::is_ready(Entity &entity, const WaitingMessage &message) {
  return entity.requester != nullptr ? entity.requester->is_served() : entity.replier->reaches(message.identity);
}

// What has waited for a server would come to it all at once, and push itself out of the server's history.
bool Client::may_release(Entity &entity) {
  if (entity.requester == nullptr) return true;
  const Time next_ns = entity.release_ns + context_.limits.release_period_ns;
  if (now_ >= next_ns) {
    entity.released = 0;
    entity.release_ns = now_;
  }
  if (entity.released < context_.limits.released_requests) return true;
  waiting_next_ns_ = std::min(waiting_next_ns_, next_ns);
  return false;
}

void Client::send_to_service(Entity &entity, const WaitingMessage &message) {
  bool written = false;
  if (entity.requester != nullptr) {
    const std::optional<uint64_t> number = entity.requester->send(message.payload, message.big_endian);
    written = number.has_value();
    if (written) entity.requests.insert_or_assign(*number, message.request);
    if (entity.requests.size() > context_.limits.pending_requests) entity.requests.erase(entity.requests.begin());
  } else {
    written = entity.replier->send(message.identity, message.payload, message.big_endian);
  }
  (written ? context_.counters.samples_to_dds : context_.counters.write_failed)++;
}

void Client::flush_waiting(Entity &entity) {
  const size_t given_up = entity.waiting.flush(
      now_, [&](const WaitingMessage &message) { return is_ready(entity, message) && may_release(entity); },
      [&](const WaitingMessage &message) {
        entity.released++;
        send_to_service(entity, message);
      });
  Counters &counters = context_.counters;
  (entity.requester != nullptr ? counters.requests_unserved : counters.replies_unreachable) += given_up;
}

void Client::flush_all_waiting(Time now) {
  if (now < waiting_next_ns_) return;
  waiting_next_ns_ = TIDE_FOREVER;
  for (auto &[object, entity] : entities_) {
    if (entity.waiting.empty()) continue;
    flush_waiting(entity);
    waiting_next_ns_ = std::min(waiting_next_ns_, entity.waiting.next_ns());
  }
}

// ---- towards the client ----

void Client::on_read(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_read_data_t body{};
  tide_xrce_get_read_data(&cdr, &body);
  if (cdr.status != TIDE_OK) {
    context_.counters.malformed++;
    return;
  }
  Entity *entity = find(body.request.object);
  if (entity == nullptr || entity->source == nullptr) {
    send_status(stream, body.request, TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
    return;
  }
  const bool cancels = body.has_delivery_control && body.max_samples == 0;
  if (!cancels && (body.stream == TIDE_XRCE_STREAM_NONE || body.format != TIDE_XRCE_FORMAT_DATA)) {
    send_status(stream, body.request, TIDE_XRCE_STATUS_ERR_INCOMPATIBLE);
    return;
  }
  Reading reading;
  reading.request = body.request;
  reading.stream = body.stream;
  reading.remaining = body.has_delivery_control ? body.max_samples : uint16_t{1};
  reading.unlimited = reading.remaining == kUnlimited;
  reading.active = reading.remaining != 0;
  reading.ends_ns = TIDE_FOREVER;
  reading.next_ns = now_;
  if (body.has_delivery_control) {
    if (body.max_elapsed_time_s != 0) reading.ends_ns = now_ + body.max_elapsed_time_s * kSecond;
    reading.bytes_per_second = body.max_bytes_per_second;
    reading.pace_ns = body.min_pace_period_ms * kMillisecond;
  }
  entity->reading = reading;
  entity->has_data = true;  // what came before the request waits in DDS
  rank_readers();
  readers_next_ns_ = now_;
}

void Client::rank_readers() {
  readers_.clear();
  for (const auto &[object, entity] : entities_) {
    if (entity.reading.active) readers_.push_back(object);
  }
  std::stable_sort(readers_.begin(), readers_.end(), [this](uint16_t left, uint16_t right) {
    return TIDE_STREAM_LEVEL(find(left)->reading.stream) > TIDE_STREAM_LEVEL(find(right)->reading.stream);
  });
}

void Client::wake(const Signal &signal, Time now) {
  Entity *entity = find(signal.object);
  if (entity == nullptr || entity->signal == nullptr || entity->signal->number != signal.number) return;
  now_ = now;
  entity->has_data = true;
  if (!entity->waiting.empty()) {
    entity->signal->queued.store(false);
    flush_waiting(*entity);
  }
  if (entity->reading.active) readers_next_ns_ = now;
}

void Client::serve(Time now) {
  now_ = now;
  if (now < readers_next_ns_) return;
  readers_next_ns_ = TIDE_FOREVER;
  bool ended = false;
  for (const uint16_t object : readers_) {
    Entity *entity = find(object);
    serve_entity(*entity, object, now);
    ended = ended || !entity->reading.active;
  }
  if (ended) rank_readers();
}

void Client::serve_entity(Entity &entity, uint16_t object, Time now) {
  Reading &reading = entity.reading;
  const uint32_t limit = TIDE_STREAM_IS_RELIABLE(reading.stream) ? context_.limits.in_flight_reliable
                                                                 : context_.limits.in_flight_best_effort;
  while (reading.active) {
    if (now >= reading.ends_ns) {
      reading.active = false;
      return;
    }
    if (!entity.has_data && !entity.stalled) return;
    if (now < reading.next_ns) {
      readers_next_ns_ = std::min(readers_next_ns_, reading.next_ns);
      return;
    }
    if (entity.in_flight >= limit) return;  // a node that comes back calls again
    // Who has something under way leaves a node for each of the others.
    const size_t taken = data_nodes_ + context_.limits.reserved_nodes + (entity.in_flight == 0 ? 0 : readers_.size());
    if (taken >= output_->node_count()) return;
    if (!entity.stalled && !fetch(entity)) return;
    const size_t payload_bytes = entity.stalled->payload.size();
    const int sent = deliver(entity, object, now);
    if (sent == TIDE_ERROR_FULL) return;
    entity.stalled.reset();
    if (sent < 0) {
      context_.counters.samples_too_large++;
      continue;
    }
    entity.in_flight++;
    data_nodes_++;
    context_.counters.samples_to_client++;
    account(reading, payload_bytes, now);
  }
}

bool Client::fetch(Entity &entity) {
  entity.signal->queued.store(false);  // before looking, so that what comes now is announced again
  Sample sample;
  while (entity.source->take(sample)) {
    context_.counters.samples_skipped += sample.skipped;
    if (entity.released > 0) entity.released--;
    if (!entity.waiting.empty()) waiting_next_ns_ = now_;
    if (entity.requester == nullptr || entity.requests.contains(sample.request)) {
      entity.stalled = std::move(sample);
      return true;
    }
    context_.counters.replies_unmatched++;
  }
  entity.has_data = false;
  return false;
}

int Client::deliver(Entity &entity, uint16_t object, Time now) {
  const Sample &sample = *entity.stalled;
  std::array<uint8_t, 32> storage;
  tide_cdr_t head;
  tide_cdr_writer(&head, storage.data(), storage.size());
  tide_xrce_put_request(&head, entity.reading.request);
  if (entity.replier != nullptr) tide_cdr_put_bytes(&head, sample.identity.data(), sample.identity.size());
  if (entity.requester != nullptr) {
    const auto request = entity.requests.find(sample.request);
    if (request == entity.requests.end()) return TIDE_ERROR_NOT_FOUND;  // forgotten while the sample waited
    tide_xrce_put_request(&head, {request->second, object});
  }
  const uint8_t flags = sample.big_endian ? uint8_t{0} : uint8_t{TIDE_XRCE_FLAG_LITTLE_ENDIAN};
  const int sent = output_->submit(entity.reading.stream, TIDE_XRCE_DATA, flags, {storage.data(), head.position},
                                   sample.payload, owner_of(object, entity.generation), now);
  if (sent != TIDE_ERROR_FULL && entity.requester != nullptr) entity.requests.erase(sample.request);
  return sent;
}

void Client::account(Reading &reading, size_t payload_bytes, Time now) {
  if (!reading.unlimited && --reading.remaining == 0) reading.active = false;
  Time gap = reading.pace_ns;
  if (reading.bytes_per_second != 0) {
    gap = std::max(gap, static_cast<Time>(payload_bytes) * kSecond / static_cast<Time>(reading.bytes_per_second));
  }
  if (gap != 0) reading.next_ns = now + gap;
}

void Client::node_done(void *owner, tide_node_outcome_t outcome) {
  if (outcome == TIDE_NODE_EVICTED) context_.counters.nodes_evicted++;
  readers_next_ns_ = 0;
  if (owner == nullptr) return;
  Entity *entity = find(object_of(owner));
  if (entity == nullptr || entity->generation != generation_of(owner)) return;
  if (entity->in_flight == 0) return;
  entity->in_flight--;
  data_nodes_--;
}

// ---- time ----

Time Client::poll(Time now) {
  now_ = now;
  if (input_->is_stalled() && (!is_creating() || now >= write_retry_ns_)) {
    write_retry_ns_ = TIDE_FOREVER;
    input_->resume([this](const tide_input_stream_t &stream) { acknowledge(&stream); });
  }
  flush_all_waiting(now);
  serve(now);
  const Time transmitter_next = tide_transmitter_poll(&output_->transmitter(), now);
  watch(now);
  Time next = std::min({transmitter_next, readers_next_ns_, waiting_next_ns_});
  if (next_probe_ns_ != TIDE_FOREVER) next = std::min(next, next_probe_ns_);
  if (input_->is_stalled()) {
    next = std::min(next, is_creating() ? write_retry_ns_ : now + context_.limits.write_retry_ns);
  }
  return next;
}

void Client::watch(Time now) {
  const Limits &limits = context_.limits;
  const Time silence = announcement_.liveliness_ns != 0 ? announcement_.liveliness_ns : limits.client_timeout_ns;
  if (silence == 0) {
    next_probe_ns_ = TIDE_FOREVER;
    return;
  }
  const Time due = last_heard_ + silence + static_cast<Time>(probes_unanswered_) * limits.probe_period_ns;
  next_probe_ns_ = due;
  if (now < due) return;
  if (probes_unanswered_ < limits.probes) {
    probe();
    probes_unanswered_++;
    next_probe_ns_ = due + limits.probe_period_ns;
    return;
  }
  liveliness_ = answers_probes() ? Liveliness::kGone : Liveliness::kSilent;
  next_probe_ns_ = TIDE_FOREVER;
}

bool Client::ask(Time now) {
  if (now - asked_ns_ < context_.limits.probe_period_ns && asked_ns_ != 0) return false;
  asked_ns_ = now;
  probe();
  return true;
}

// A client that knows liveliness answers GET_INFO; every client answers a HEARTBEAT of a reliable stream it has.
void Client::probe() {
  context_.counters.probes_sent++;
  std::array<uint8_t, 8> storage;
  tide_cdr_t body;
  tide_cdr_writer(&body, storage.data(), storage.size());
  const tide_xrce_get_info_body_t question = {{0, TIDE_XRCE_OBJECT_CLIENT}, 1};
  tide_xrce_put_get_info(&body, &question);
  output_->submit_control(TIDE_XRCE_GET_INFO, {storage.data(), body.position});
  if (announcement_.liveliness_ns != 0 || !acknowledged_) return;
  for (const tide_output_stream_t *stream = output_->transmitter().config.streams;
       stream != output_->transmitter().config.streams + output_->transmitter().config.stream_count; stream++) {
    if (stream->id != kProbedStream) continue;
    tide_cdr_writer(&body, storage.data(), storage.size());
    const tide_xrce_heartbeat_t heartbeat = {stream->first_unacknowledged,
                                             static_cast<uint16_t>(stream->next_to_send - 1), kProbedStream};
    tide_xrce_put_heartbeat(&body, &heartbeat);
    output_->submit_control(TIDE_XRCE_HEARTBEAT, {storage.data(), body.position});
  }
}

}  // namespace tide::agent
