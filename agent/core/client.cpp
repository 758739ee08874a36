// SPDX-License-Identifier: Apache-2.0
#include "core/client.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/answers.h"
#include "core/submessage.h"
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/status.h"

namespace tide::agent {
namespace {

constexpr size_t kRequestBytes = 4;

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

}  // namespace

Client::Client(Context &context, Endpoint endpoint, const Announcement &announcement, Time now)
    : context_(context),
      endpoint_(endpoint),
      announcement_(announcement),
      began_(now),
      entities_([this](uint16_t object, Entity &entity) {
        creation_.removes(object);
        readings_.removes(object, entity);
      }),
      creation_(context, entities_, announcement.key),
      services_(context, counters_, entities_),
      readings_(context, counters_, entities_, services_),
      liveness_(context.limits, counters_, announcement.liveliness_ns, announcement.timeout_ns, now),
      now_(now) {
  creation_.set_names(announcement.names);
  if (context.tracer != nullptr) trace_ = context.tracer->add(announcement.key);
  reset_streams();
}

void Client::resume(Endpoint endpoint, const Announcement &announcement, Time now) {
  endpoint_ = endpoint;
  if (announcement.session == session_after(session())) {
    if (has_output()) readings_.keep(*output_);
  } else {  // a program that has started anew, or may have: its request ids are others', and it missed nothing
    services_.forget();
    entities_.begin_anew();
  }
  sweep_ns_ = TIDE_FOREVER;
  if (announcement.session != session()) former_session_ = session();
  announcement_ = announcement;
  creation_.set_names(announcement.names);
  began_ = now;
  now_ = now;
  liveness_.restart(announcement.liveliness_ns, announcement.timeout_ns, now);
  unheard_bytes_ = 0;
  readings_.end_all();
  reset_streams();
}

void Client::reset_streams() {
  epoch_ = context_.next_epoch++;
  keep_counts();
  creation_.forget();
  write_retry_ns_ = TIDE_FOREVER;
  readings_.forget_nodes();
  input_ = std::make_unique<Input>(
      context_.limits, counters_,
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage) {
        return stream_submessage(stream, submessage);
      },
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage) { refuse_fragments(stream, submessage); });
  output_.reset();
}

Output &Client::output() {
  if (has_output()) return *output_;
  const Time heartbeat_delay_ns = context_.heartbeat_delay_ns ? context_.heartbeat_delay_ns(endpoint_) : -1;
  output_ = std::make_unique<Output>(context_.limits, session(), key(), announcement_.message_bytes, heartbeat_delay_ns,
                                     [this](void *owner, tide_node_outcome_t outcome) { node_done(owner, outcome); });
  if (trace_ != nullptr) output_->keep_times();
  return *output_;
}

// What the streams counted that end here.
void Client::keep_counts() {
  if (input_ == nullptr) return;
  past_gaps_ += input_->gaps();
  if (has_output()) past_repeated_ += output_->transmitter().counters.retransmissions;
}

ClientVitals Client::vitals(Time now) const {
  const Counters &c = counters_;
  ClientVitals vitals;
  vitals.key = key();
  vitals.silent = liveness() == Liveness::State::kSilent;
  vitals.silence_ns = now - last_heard();
  vitals.entities = entity_count();
  vitals.messages_in = c.messages_in;
  vitals.bytes_in = c.bytes_in;
  vitals.messages_out = c.messages_out;
  vitals.bytes_out = c.bytes_out;
  vitals.repeated = past_repeated_;
  if (has_output()) {
    const tide_transmitter_t &transmitter = output_->transmitter();
    vitals.queued = transmitter.nodes_in_use;
    vitals.queue = output_->node_count();
    vitals.repeated += transmitter.counters.retransmissions;
  }
  vitals.lost_from = past_gaps_ + input_->gaps() + c.given_up + c.held_dropped + c.fragments_dropped +
                     c.fragmented_refused + c.write_failed + c.malformed;
  vitals.lost_to = c.nodes_evicted + c.samples_skipped + c.samples_too_large;
  vitals.refused = c.entities_refused + c.write_unknown + c.format_unsupported + c.requests_unserved +
                   c.replies_unreachable + c.replies_unmatched;
  vitals.limited = c.streams_refused + c.creations_waited + c.statuses_lost + c.replies_dropped;
  for (const auto &[object, entity] : entities_) {
    const auto *requester = entity.as<RequesterPart>();
    const auto *replier = entity.as<ReplierPart>();
    if (requester == nullptr && replier == nullptr) continue;
    const Replies &replies = requester != nullptr ? requester->replies : replier->replies;
    if (replies.count == 0) continue;
    vitals.services.push_back({entity.definition.service.request.name, replier != nullptr, replies.count,
                               replies.last_ns, replies.greatest_ns});
  }
  return vitals;
}

size_t Client::unserved_requesters() const {
  size_t count = 0;
  for (const auto &[object, entity] : entities_) {
    const auto *requester = entity.as<RequesterPart>();
    count += requester != nullptr && !requester->dds->is_served();
  }
  return count;
}

// ---- reception ----

void Client::message(const tide_xrce_header_t &header, Bytes message, Time now) {
  now_ = now;
  liveness_.heard(now);
  unheard_bytes_ = 0;
  was_paused_ = false;
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
  if (more < 0) counters_.malformed++;
}

void Client::acknowledge(const tide_input_stream_t *stream) {
  if (stream == nullptr) return;
  tide_transmitter_request_acknack(&output().transmitter(), stream->id, stream->next,
                                   tide_input_stream_missing(stream));
}

void Client::control_submessage(const tide_xrce_submessage_t &submessage, Time now) {
  tide_cdr_t cdr = reader_of(submessage);
  switch (submessage.id) {
    case TIDE_XRCE_ACKNACK: {
      tide_xrce_acknack_t body;
      tide_xrce_get_acknack(&cdr, &body);
      if (cdr.status != TIDE_OK) break;
      liveness_.answered();
      if (has_output()) tide_transmitter_on_acknack(&output_->transmitter(), &body, now);
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
      answer(TIDE_XRCE_INFO, answer_get_info(submessage, true, answer_));
      return;
    case TIDE_XRCE_TIMESTAMP:
      answer(TIDE_XRCE_TIMESTAMP_REPLY, answer_timestamp(submessage, context_.wall_clock_ns, answer_));
      return;
    case TIDE_XRCE_INFO:
      liveness_.answered();
      return;
    case TIDE_XRCE_CREATE_CLIENT:
      return;  // some clients answer a probe with zero octets, which read like this
    default:
      input_->submessage(TIDE_XRCE_STREAM_NONE, submessage);
      return;
  }
  counters_.malformed++;
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
      answer(TIDE_XRCE_INFO, answer_get_info(submessage, true, answer_));
      break;
    default:
      counters_.malformed++;
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

void Client::answer(uint8_t id, size_t length) {
  if (length == 0) {
    counters_.malformed++;
  } else if (output().submit_control(id, {answer_.data(), length}) < 0) {
    counters_.replies_dropped++;
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
          ? output().submit_control(TIDE_XRCE_STATUS, bytes)
          : output().submit(stream, TIDE_XRCE_STATUS, TIDE_XRCE_FLAG_LITTLE_ENDIAN, bytes, {}, nullptr, now_);
  if (sent < 0) counters_.statuses_lost++;
}

// ---- entities ----

bool Client::on_create(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  if (creation_.is_under_way()) return false;
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_create_t body{};
  tide_xrce_get_create(&cdr, &body);
  if (submessage.body_bytes < kRequestBytes) {
    counters_.malformed++;
    return true;
  }
  std::string fault;
  if (creation_.is_begun() && creation_.stream() != stream && input_->is_stalled(creation_.stream())) return false;
  const bool returns = creation_.is_of(stream, body.request);
  if (!returns && cdr.status == TIDE_OK && !may_create(body, submessage.flags)) return false;
  if (!returns) creation_.forget();  // or there was no room to keep what asked for it
  std::optional<uint8_t> outcome = uint8_t{TIDE_XRCE_STATUS_ERR_INVALID_DATA};
  if (returns) {
    outcome = creation_.finish(fault);
  } else if (cdr.status == TIDE_OK) {
    outcome = creation_.begin(body, submessage.flags, stream, fault);
  } else {
    tide_cdr_t ids = reader_of(submessage);
    body.request = tide_xrce_get_request(&ids);
  }
  if (!outcome) return false;
  const uint8_t status = *outcome;
  if (status == TIDE_XRCE_STATUS_OK) {
    counters_.entities_created++;
    on_created(body.request.object);
  } else if (status != TIDE_XRCE_STATUS_OK_MATCHED) {
    counters_.entities_refused++;
  }
  if (!tide_xrce_is_error(status)) {
    entities_.renew(body.request.object);
    if (entities_.former_count() != 0) sweep_ns_ = now_ + context_.limits.settle_ns;
  }
  if (!fault.empty() && context_.event) context_.event(key(), "is refused a " + fault, now_);
  if (context_.log) context_.log(line_of(key(), body, status, fault));
  send_status(stream, body.request, status);
  return true;
}

// What DDS makes nothing for is free: topics, publishers, subscribers, and what exists already.
bool Client::may_create(const tide_xrce_create_t &body, uint8_t flags) {
  const uint8_t kind = body.request.object & 0x0Fu;
  const bool is_free =
      kind == TIDE_XRCE_KIND_TOPIC || kind == TIDE_XRCE_KIND_PUBLISHER || kind == TIDE_XRCE_KIND_SUBSCRIBER;
  const bool exists = (flags & TIDE_XRCE_FLAG_REPLACE) == 0 && entities_.find(body.request.object) != nullptr;
  if (is_free || exists || creation_budget_.take(context_.limits, now_)) return true;
  if (creation_ns_ <= now_) counters_.creations_waited++;
  creation_ns_ = creation_budget_.next_ns();
  return false;
}

// The program that runs now has made what it has.
void Client::sweep() {
  if (creation_.is_begun() || input_->is_stalled()) {
    sweep_ns_ = now_ + context_.limits.settle_ns;
    return;
  }
  sweep_ns_ = TIDE_FOREVER;
  entities_.remove_former();
}

void Client::on_created(uint16_t object) {
  Entity &entity = *entities_.find(object);
  if (Delivery *delivery = entity.delivery()) readings_.adds(*delivery);
  const Qos &qos = entity.definition.qos;
  auto *writer = entity.as<WriterPart>();
  const bool forgets = writer != nullptr && qos.reliable && !qos.transient_local;
  if (announcement_.continues && forgets) writer->reader_deadline_ns = now_ + context_.limits.reader_wait_ns;
}

void Client::on_delete(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  const tide_xrce_request_t body = tide_xrce_get_request(&cdr);
  if (cdr.status != TIDE_OK) {
    counters_.malformed++;
    return;
  }
  if (body.object == TIDE_XRCE_OBJECT_CLIENT) {
    closing_ = true;
    closing_request_ = body;  // the agent answers: this client's output ends here
    return;
  }
  const bool known = entities_.find(body.object) != nullptr;
  if (known) entities_.remove(body.object);
  send_status(stream, body, known ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
}

// ---- towards DDS ----

bool Client::on_write(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
  if (cdr.status != TIDE_OK) {
    counters_.malformed++;
    return true;
  }
  Entity *entity = entities_.find(request.object);
  if (entity == nullptr || (entity->as<WriterPart>() == nullptr && entity->waiting() == nullptr)) {
    counters_.write_unknown++;
    return true;
  }
  if (waits_for_reader(*entity, stream)) return offer_again();
  if ((submessage.flags & TIDE_XRCE_FORMAT_MASK) == TIDE_XRCE_FORMAT_DATA) {
    const Bytes payload{submessage.body + kRequestBytes, submessage.body_bytes - kRequestBytes};
    if (write(*entity, request.request, payload, is_big_endian(submessage))) {
      trace_write(stream, request.object);
      return true;
    }
    if (may_wait(*entity, stream)) return offer_again();
    counters_.write_failed++;
    return true;
  }
  if ((submessage.flags & TIDE_XRCE_FORMAT_MASK) != TIDE_XRCE_FORMAT_DATA_SEQUENCE) {
    counters_.format_unsupported++;
    return true;
  }
  for (uint32_t count = tide_cdr_get_count(&cdr, sizeof(uint32_t)); count != 0 && cdr.status == TIDE_OK; count--) {
    const uint32_t length = tide_cdr_get_count(&cdr, 1);
    const uint8_t *bytes = tide_cdr_view(&cdr, length);
    if (cdr.status != TIDE_OK) break;
    if (!write(*entity, request.request, {bytes, length}, is_big_endian(submessage))) counters_.write_failed++;
  }
  if (cdr.status != TIDE_OK) counters_.malformed++;
  return true;
}

bool Client::offer_again() {
  write_retry_ns_ = now_ + context_.limits.write_retry_ns;
  return false;
}

// DDS refuses for a moment when its lock is taken or its history is full of what readers have not acknowledged. Until
// it takes the sample the client's stream waits, and with it the client; but not for ever.
bool Client::may_wait(Entity &entity, uint8_t stream) {
  auto *writer = entity.as<WriterPart>();
  if (!TIDE_STREAM_IS_RELIABLE(stream) || writer == nullptr || !entity.definition.qos.reliable) return false;
  if (writer->refused_since_ns == 0) {
    writer->refused_since_ns = now_;
    counters_.write_waited++;
  }
  return now_ - writer->refused_since_ns < context_.limits.write_wait_ns;
}

// What the client kept for an agent that was started again comes before DDS has found the writers' readers again, and
// before those have found the writers. Each side finds the other on its own, on a busy machine a second apart. One
// sample is sent to the readers that were found, and the others wait until it is acknowledged.
bool Client::waits_for_reader(Entity &entity, uint8_t stream) const {
  auto *writer = entity.as<WriterPart>();
  if (writer == nullptr || writer->reader_deadline_ns == 0 || !TIDE_STREAM_IS_RELIABLE(stream)) return false;
  if (now_ < writer->reader_deadline_ns) {
    if (!writer->dds->has_reader()) return true;
    if (!writer->has_written) return false;
    if (!writer->dds->is_acknowledged()) return true;
  }
  writer->reader_deadline_ns = 0;
  return false;
}

void Client::trace_write(uint8_t stream, uint16_t object) {
  if (trace_ == nullptr) return;
  trace_->received(object, stream, input_->sequence(stream), now_, trace_now_ns());
}

bool Client::write(Entity &entity, uint16_t request, Bytes payload, bool big_endian) {
  auto *writer = entity.as<WriterPart>();
  if (writer == nullptr) return services_.write(entity, request, payload, big_endian, now_);
  if (!writer->dds->write(payload, big_endian)) return false;
  writer->refused_since_ns = 0;
  writer->has_written = true;
  counters_.samples_to_dds++;
  return true;
}

// ---- towards the client ----

void Client::on_read(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_read_data_t body{};
  tide_xrce_get_read_data(&cdr, &body);
  if (cdr.status != TIDE_OK) {
    counters_.malformed++;
    return;
  }
  const std::optional<uint8_t> refused = readings_.begin(body, now_);
  if (refused) send_status(stream, body.request, *refused);
}

void Client::wake(const Signal &signal, Time now) {
  Entity *entity = entities_.find(signal.object);
  Delivery *delivery = entity == nullptr ? nullptr : entity->delivery();
  if (delivery == nullptr || delivery->signal->number != signal.number) return;
  now_ = now;
  readings_.wake(*entity, now);
  const WaitingMessages *waiting = entity->waiting();
  if (waiting == nullptr || waiting->empty()) return;
  delivery->signal->queued.store(false);
  services_.flush(*entity, now);
}

void Client::serve(Time now) {
  now_ = now;
  if (readings_.is_active()) readings_.serve(output(), now);
}

void Client::sending(Time now) {
  const tide_transmitter_t &transmitter = output_->transmitter();
  if (trace_ == nullptr || transmitter.current_node == nullptr) return;
  const uint16_t object = Readings::object_of(transmitter.current_node->owner);
  if (object != 0) trace_->sending(object, transmitter, output_->submitted_ns(*transmitter.current_node), now);
}

void Client::sent(Time now) {
  if (trace_ != nullptr) trace_->sent(now);
}

void Client::node_done(void *owner, tide_node_outcome_t outcome) {
  if (outcome == TIDE_NODE_EVICTED) counters_.nodes_evicted++;
  readings_.node_done(owner);
}

// ---- time ----

// When what stands still is tried again.
Time Client::next_offer_ns(Time now) const {
  if (creation_.is_under_way()) return write_retry_ns_;
  return creation_ns_ > now ? std::min(creation_ns_, write_retry_ns_) : now;
}

bool Client::is_paused() const {
  if (!announcement_.may_be_forged || !liveness_.is_watched()) return false;
  const bool unproven = !liveness_.answers() && unheard_bytes_ > context_.limits.unproven_bytes;
  return unproven || liveness() == Liveness::State::kSilent;
}

bool Client::begins_pause() {
  const bool paused = is_paused() && readings_.is_active();
  return paused && !std::exchange(was_paused_, paused);
}

void Client::count_out(size_t bytes) {
  counters_.messages_out++;
  counters_.bytes_out += bytes;
  unheard_bytes_ += bytes;
}

Time Client::poll(Time now) {
  now_ = now;
  if (input_->is_stalled() && now >= next_offer_ns(now)) {
    write_retry_ns_ = TIDE_FOREVER;
    input_->resume([this](const tide_input_stream_t &stream) { acknowledge(&stream); });
  }
  if (now >= sweep_ns_) sweep();
  services_.poll(now);
  const bool sends = !is_paused();
  if (sends) serve(now);
  const bool polls = sends && has_output();
  const Time transmitter_next = polls ? tide_transmitter_poll(&output_->transmitter(), now) : TIDE_FOREVER;
  const Time reading_next = sends ? readings_.next_ns() : TIDE_FOREVER;
  if (announcement_.liveliness_ns != 0) output();  // to ask with
  const Time probe_next = liveness_.poll(output_.get(), now);
  Time next = std::min({transmitter_next, reading_next, services_.next_ns(), probe_next, sweep_ns_});
  if (input_->is_stalled()) next = std::min(next, std::max(next_offer_ns(now), now + context_.limits.write_retry_ns));
  return next;
}

}  // namespace tide::agent
