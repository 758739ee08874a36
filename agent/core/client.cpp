// SPDX-License-Identifier: Apache-2.0
#include "core/client.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "tide/priority.h"
#include "tide/status.h"

namespace tide::agent {

std::optional<Encoded> info_for(const tide_xrce_submessage_t &question, bool known) {
  tide_cdr_t cdr = reader_of(question);
  tide_xrce_get_info_body_t body;
  tide_xrce_get_get_info(&cdr, &body);
  if (cdr.status != TIDE_OK) return std::nullopt;
  const tide_xrce_info_t info = {.related = body.request,
                                 .status = TIDE_XRCE_STATUS_OK,
                                 .implementation_status = known ? uint8_t{1} : uint8_t{0},
                                 .vendor = kVendor,
                                 .version_major = kVersionMajor,
                                 .version_minor = kVersionMinor};
  return Encoded(tide_xrce_put_info, info);
}

// ---- liveness ----

void Liveness::restart(Time announced_ns, Time timeout_ns, Time now) {
  announced_ns_ = announced_ns;
  timeout_ns_ = timeout_ns;
  last_heard_ = now;
  answers_ = false;
}

void Liveness::heard(Time now) {
  last_heard_ = now;
  unanswered_ = 0;
  state_ = State::kAlive;
}

Time Liveness::due_ns() const {
  return last_heard_ + silence_ns() + static_cast<Time>(unanswered_) * limits_.probe_period_ns;
}

bool Liveness::is_probe_due(Time now) const { return is_watched() && unanswered_ < limits_.probes && now >= due_ns(); }

Time Liveness::poll(Output *output, Time now) {
  if (!is_watched()) return TIDE_FOREVER;
  const Time due = due_ns();
  if (now < due) return due;
  if (unanswered_ < limits_.probes) {
    if (output != nullptr) probe(*output);
    unanswered_++;
    return due + limits_.probe_period_ns;
  }
  state_ = answers_probes() ? State::kGone : State::kSilent;
  return TIDE_FOREVER;
}

void Liveness::ask(Output &output, Time now) {
  if (now - asked_ns_ < limits_.probe_period_ns && asked_ns_ != 0) return;
  asked_ns_ = now;
  probe(output);
}

// Sends a GET_INFO, which clients that announce liveliness answer. All others get HEARTBEATs of their reliable streams,
// too, which every client answers.
void Liveness::probe(Output &output) {
  counters_.probes_sent++;
  const tide_xrce_get_info_body_t question = {{0, TIDE_XRCE_OBJECT_CLIENT}, 1};
  output.submit_control(TIDE_XRCE_GET_INFO, Encoded(tide_xrce_put_get_info, question));
  if (announced_ns_ != 0 || !answers_) return;
  const tide_transmitter_config_t &config = output.transmitter().config;
  for (const tide_output_stream_t &stream : std::span(config.streams, config.stream_count)) {
    if (stream.id != TIDE_STREAM_RELIABLE(0) && stream.id != TIDE_STREAM_REQUESTS) continue;
    const tide_xrce_heartbeat_t heartbeat = {stream.first_unacknowledged,
                                             static_cast<uint16_t>(stream.next_to_send - 1), stream.id};
    output.submit_control(TIDE_XRCE_HEARTBEAT, Encoded(tide_xrce_put_heartbeat, heartbeat));
  }
}

// ---- sessions ----

namespace {

// The id of the session that a client of tide opens after this one.
uint8_t session_after(uint8_t session) {
  if (session == 0xFE) return 0x81;
  return session == 0x7F ? uint8_t{0x01} : static_cast<uint8_t>(session + 1);
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
  } else {  // the client may have been restarted: its request ids start again, and it expects no answers
    services_.forget();
    entities_.begin_anew();
  }
  // A program that was restarted may need some time before it creates its first entity.
  sweep_ns_ = announcement.starts && entities_.has_former() ? now + 10 * context_.limits.settle_ns : TIDE_FOREVER;
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
  if (input_ != nullptr) {
    past_gaps_ += input_->gaps();
    if (has_output()) past_repeated_ += output_->transmitter().counters.retransmissions;
  }
  creation_.forget();
  write_retry_ns_ = TIDE_FOREVER;
  readings_.forget_nodes();
  input_ = std::make_unique<Input>(
      context_.limits, counters_,
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage) {
        return stream_submessage(stream, submessage);
      },
      // An unsolicited STATUS informs the client about the refused submessage; the stream continues.
      [this](uint8_t stream, const tide_xrce_submessage_t &submessage, const char *cause) {
        tide_cdr_t cdr = reader_of(submessage);
        const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
        if (cdr.status != TIDE_OK) return;
        send_status(stream, request, TIDE_XRCE_STATUS_ERR_RESOURCES);
        tell(request.object, cause);
      });
  output_.reset();
}

Output &Client::output() {
  if (has_output()) return *output_;
  const Time heartbeat_delay_ns = context_.heartbeat_delay_ns ? context_.heartbeat_delay_ns(endpoint_) : -1;
  output_ = std::make_unique<Output>(context_.limits, session(), key(), announcement_.message_bytes, heartbeat_delay_ns,
                                     [this](void *owner, tide_node_outcome_t outcome) {
                                       if (outcome == TIDE_NODE_EVICTED) counters_.nodes_evicted++;
                                       readings_.node_done(owner);
                                     });
  if (trace_ != nullptr) output_->keep_times();
  return *output_;
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
  // A DELETE of the client ends the session, so the remaining submessages are ignored.
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
    case TIDE_XRCE_RESET: reset_streams(); return;
    case TIDE_XRCE_GET_INFO: {
      const auto info = info_for(submessage, true);
      if (!info) break;
      submit_answer(TIDE_XRCE_INFO, *info);
      return;
    }
    case TIDE_XRCE_TIMESTAMP: {
      tide_xrce_timestamp_reply_t reply{};
      reply.receive = tide_xrce_time_from_ns(context_.wall_clock_ns());
      reply.originate = tide_xrce_get_timestamp(&cdr);
      if (cdr.status != TIDE_OK) break;
      reply.transmit = tide_xrce_time_from_ns(context_.wall_clock_ns());
      submit_answer(TIDE_XRCE_TIMESTAMP_REPLY, Encoded(tide_xrce_put_timestamp_reply, reply));
      return;
    }
    case TIDE_XRCE_INFO: liveness_.answered(); return;
    case TIDE_XRCE_CREATE_CLIENT: return;  // some clients answer a probe with zeros, which parse as CREATE_CLIENT
    default: input_->submessage(TIDE_XRCE_STREAM_NONE, submessage); return;
  }
  counters_.malformed++;
}

// Handles a submessage of a stream. Returns false if the submessage cannot be handled now and must be offered again.
bool Client::stream_submessage(uint8_t stream, const tide_xrce_submessage_t &submessage) {
  if (closing_) return true;
  switch (submessage.id) {
    case TIDE_XRCE_CREATE: return on_create(stream, submessage);
    case TIDE_XRCE_DELETE: on_delete(stream, submessage); break;
    case TIDE_XRCE_WRITE_DATA: return on_write(stream, submessage);
    case TIDE_XRCE_READ_DATA: on_read(stream, submessage); break;
    case TIDE_XRCE_GET_INFO:
      if (const auto info = info_for(submessage, true)) {
        submit_answer(TIDE_XRCE_INFO, *info);
        break;
      }
      [[fallthrough]];
    default: counters_.malformed++; break;
  }
  return true;
}

void Client::submit_answer(uint8_t id, Bytes body) {
  if (output().submit_control(id, body) < 0) counters_.replies_dropped++;
}

void Client::send_status(uint8_t stream, tide_xrce_request_t related, uint8_t status) {
  const Encoded body(tide_xrce_put_status, tide_xrce_status_body_t{related, status, 0});
  const int sent =
      stream == TIDE_XRCE_STREAM_NONE
          ? output().submit_control(TIDE_XRCE_STATUS, body)
          : output().submit(stream, TIDE_XRCE_STATUS, TIDE_XRCE_FLAG_LITTLE_ENDIAN, body, {}, nullptr, now_);
  if (sent < 0) counters_.statuses_lost++;
}

// Reports a message of an entity that is lost, in a line for the user.
void Client::tell(uint16_t object, const std::string &what) const {
  if (!context_.event) return;
  const Entity *entity = entities_.find(object);
  const std::string whose = entity == nullptr ? "an unknown object" : described(entity->definition);
  context_.event(key(), "loses a message of its " + whose + ": " + what, now_);
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
  if (creation_.is_begun() && creation_.stream() != stream && input_->is_stalled(creation_.stream())) return false;
  std::string fault;
  uint8_t status = TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  if (creation_.is_of(stream, body.request)) {
    status = creation_.finish(fault);
  } else if (cdr.status != TIDE_OK) {
    creation_.forget();
    cdr = reader_of(submessage);
    body.request = tide_xrce_get_request(&cdr);
    fault = "CREATE: it cannot be parsed";
  } else {
    if (!may_create(body, submessage.flags)) return false;
    // A creation is pending here only if its CREATE was dropped for lack of memory, so that it is not offered again.
    creation_.forget();
    const std::optional<uint8_t> outcome = creation_.begin(body, submessage.flags, stream, fault);
    if (!outcome) return false;
    status = *outcome;
  }
  if (status == TIDE_XRCE_STATUS_OK) {
    counters_.entities_created++;
    Entity &entity = *entities_.find(body.request.object);
    if (Delivery *delivery = entity.delivery()) readings_.adds(*delivery);
    const Qos &qos = entity.definition.qos;
    auto *writer = entity.as<WriterPart>();
    if (announcement_.continues && writer != nullptr && qos.reliable && !qos.transient_local) {
      writer->reader_deadline_ns = now_ + context_.limits.reader_wait_ns;
    }
  } else if (status != TIDE_XRCE_STATUS_OK_MATCHED) {
    counters_.entities_refused++;
  }
  if (!tide_xrce_is_error(status)) {
    entities_.renew(body.request.object);
    if (entities_.has_former()) sweep_ns_ = now_ + context_.limits.settle_ns;
  }
  if (!fault.empty() && context_.event) context_.event(key(), "is refused a " + fault, now_);
  if (context_.log) {
    std::array<char, 96> line;
    std::snprintf(line.data(), line.size(), "client %08X: create object 0x%04X, status 0x%02X", key(),
                  body.request.object, status);
    context_.log(fault.empty() ? line.data() : std::string(line.data()) + ": " + fault);
  }
  send_status(stream, body.request, status);
  return true;
}

// True if the client's budget of creations permits this CREATE now. Each creation in DDS causes discovery traffic in
// every participant of the domain, so a client that creates and deletes endlessly would take the processor from all
// others. The budget permits a burst, which a starting program needs, and then one creation in each period. Further
// creations wait in their stream; none is refused. Topics, publishers, subscribers and existing entities cost nothing.
bool Client::may_create(const tide_xrce_create_t &body, uint8_t flags) {
  const Limits &limits = context_.limits;
  const uint8_t kind = body.request.object & 0x0Fu;
  const bool is_free =
      kind == TIDE_XRCE_KIND_TOPIC || kind == TIDE_XRCE_KIND_PUBLISHER || kind == TIDE_XRCE_KIND_SUBSCRIBER;
  const bool exists = (flags & TIDE_XRCE_FLAG_REPLACE) == 0 && entities_.find(body.request.object) != nullptr;
  if (is_free || exists) return true;
  const Time paid_ns = std::max(creations_paid_ns_, now_) + limits.creation_period_ns;
  const Time allowed_ns = paid_ns - static_cast<Time>(limits.creations_at_once) * limits.creation_period_ns;
  if (allowed_ns <= now_) {
    creations_paid_ns_ = paid_ns;
    return true;
  }
  if (creation_ns_ <= now_) counters_.creations_waited++;
  creation_ns_ = allowed_ns;
  return false;
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
    closing_request_ = body;  // the agent sends the answer, because the output of this client ends here
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
  auto *writer = entity->as<WriterPart>();
  if (waits_for_reader(writer, stream, entity->definition.qos.depth)) return offer_again();
  if ((submessage.flags & TIDE_XRCE_FORMAT_MASK) == TIDE_XRCE_FORMAT_DATA) {
    const Bytes payload{submessage.body + kRequestBytes, submessage.body_bytes - kRequestBytes};
    if (write(*entity, request.request, payload, is_big_endian(submessage))) {
      if (trace_ != nullptr) {
        trace_->received(request.object, stream, input_->sequence(stream), now_, trace_now_ns());
      }
      return true;
    }
    // DDS refuses a sample temporarily while its lock is taken or its history is full of unacknowledged samples. Until
    // DDS accepts the sample, the client's stream is blocked and the client waits, but only for a limited time.
    if (TIDE_STREAM_IS_RELIABLE(stream) && writer != nullptr && entity->definition.qos.reliable) {
      if (writer->refused_since_ns == 0) {
        writer->refused_since_ns = now_;
        counters_.write_waited++;
      }
      if (now_ - writer->refused_since_ns < context_.limits.write_wait_ns) return offer_again();
      tell(request.object, "DDS accepts none; does a reader of its topic not acknowledge?");
    }
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

// True if a sample must wait for a reader of its topic. After a restart of the agent, the client's unacknowledged
// samples arrive all at once, before writers and readers have discovered each other. The two directions of discovery
// are independent and, on a busy machine, up to a second apart, so only one sample is sent first, and the others wait
// until a reader has acknowledged it. More samples than the writer's history holds would evict one another before a
// reader has them, so until the deadline at most this number of samples is unacknowledged.
bool Client::waits_for_reader(WriterPart *writer, uint8_t stream, uint32_t depth) const {
  if (writer == nullptr || writer->reader_deadline_ns == 0 || !TIDE_STREAM_IS_RELIABLE(stream)) return false;
  if (now_ < writer->reader_deadline_ns) {
    if (!writer->is_known && !writer->dds->has_reader()) return true;
    if (writer->unacknowledged < (writer->is_known ? std::max(depth, 1u) : 1u)) return false;
    if (!writer->dds->is_acknowledged()) return true;
    writer->is_known = true;
    writer->unacknowledged = 0;
    return false;
  }
  writer->reader_deadline_ns = 0;
  return false;
}

bool Client::write(Entity &entity, uint16_t request, Bytes payload, bool big_endian) {
  auto *writer = entity.as<WriterPart>();
  if (writer == nullptr) return services_.write(entity, request, payload, big_endian, now_);
  if (!writer->dds->write(payload, big_endian)) return false;
  writer->refused_since_ns = 0;
  writer->unacknowledged++;
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

// ---- timers ----

// Time at which submessages of blocked streams are offered again.
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
  if (now >= sweep_ns_) {
    const bool is_busy = creation_.is_begun() || input_->is_stalled();  // the client may still be going to create
                                                                        // entities
    sweep_ns_ = is_busy ? now + context_.limits.settle_ns : TIDE_FOREVER;
    if (!is_busy) entities_.remove_former();
  }
  services_.poll(now);
  const bool sends = !is_paused();
  if (sends) serve(now);
  const bool polls = sends && has_output();
  const Time transmitter_next = polls ? tide_transmitter_poll(&output_->transmitter(), now) : TIDE_FOREVER;
  const Time reading_next = sends ? readings_.next_ns() : TIDE_FOREVER;
  if (announcement_.liveliness_ns != 0 && liveness_.is_probe_due(now)) output();  // creates output_, which sends probes
  const Time probe_next = liveness_.poll(output_.get(), now);
  Time next = std::min({transmitter_next, reading_next, services_.next_ns(), probe_next, sweep_ns_});
  if (input_->is_stalled()) next = std::min(next, std::max(next_offer_ns(now), now + context_.limits.write_retry_ns));
  return next;
}

}  // namespace tide::agent
