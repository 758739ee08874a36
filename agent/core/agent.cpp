// SPDX-License-Identifier: Apache-2.0
#include "core/agent.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "core/answers.h"
#include "core/submessage.h"
#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/status.h"

namespace tide::agent {
namespace {

int64_t system_wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Agent::Agent(Middleware &middleware, Options options)
    : options_(std::move(options)),
      notices_(options_.warn),
      signals_(std::make_shared<SignalQueue>(options_.wake)),
      context_{middleware,
               options_.limits,
               options_.profiles,
               signals_,
               options_.wall_clock_ns ? options_.wall_clock_ns : system_wall_clock_ns,
               options_.domain,
               options_.default_domain,
               options_.log,
               [this](uint32_t key, const std::string &what, Time now) { tell(key, what, now); },
               options_.heartbeat_delay_ns,
               options_.tracer},
      diagnostics_(middleware, options_.diagnostics, options_.domain.value_or(options_.default_domain), notices_,
                   context_.wall_clock_ns) {}

Counters Agent::counters() const {
  Counters sum = counters_;
  for (const auto &[key, slot] : clients_) sum.add(slot.client->counters());
  return sum;
}

const std::vector<ClientVitals> &Agent::vitals(Time now) {
  vitals_.clear();
  for (const auto &[key, slot] : clients_) {
    vitals_.push_back(slot.client->vitals(now));
    vitals_.back().place = name_of(slot.client->endpoint());
  }
  return vitals_;
}

size_t Agent::entity_count() const {
  size_t count = 0;
  for (const auto &[key, slot] : clients_) count += slot.client->entity_count();
  return count;
}

size_t Agent::output_count() const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(),
                                           [](const auto &entry) { return entry.second.client->has_output(); }));
}

size_t Agent::unserved_requesters() const {
  size_t count = 0;
  for (const auto &[key, slot] : clients_) count += slot.client->unserved_requesters();
  return count;
}

// ---- in ----

void Agent::input(Endpoint endpoint, Bytes message, Time now) {
  tide_xrce_header_t header;
  const int header_bytes = tide_xrce_get_header(message.data(), message.size(), &header);
  if (header_bytes < 0) {
    count_in(counters_, message.size());
    counters_.malformed++;
    return;
  }
  if (tide_xrce_is_no_session(header.session)) {
    size_t position = static_cast<size_t>(header_bytes);
    tide_xrce_submessage_t first;
    if (tide_xrce_next_submessage(message.data(), message.size(), &position, &first) == 1 &&
        first.id == TIDE_XRCE_CREATE_CLIENT) {
      count_in(counters_, message.size());
      create_client(endpoint, first, now);
      return;
    }
  }
  Client *client = find(endpoint, header);
  count_in(client == nullptr ? counters_ : client->counters(), message.size());
  if (client == nullptr) {
    if (!allows(endpoint)) {
      counters_.not_allowed++;
      return;
    }
    answer_stranger(endpoint, header, message);
    return;
  }
  client->message(header, message, now);
  if (!client->is_closing()) {
    mark(client->key());
    return;
  }
  reply_status(endpoint, header.session, header.key, client->closing_request());
  counters_.clients_deleted++;
  erase(client->key(), "left", now);
  check(endpoint);
}

void Agent::count_in(Counters &counters, size_t bytes) const {
  counters.messages_in++;
  counters.bytes_in += bytes;
}

Client *Agent::find(Endpoint endpoint, const tide_xrce_header_t &header) {
  const auto place = places_.find(endpoint);
  if (place == places_.end()) return nullptr;
  for (const uint32_t key : place->second.keys) {
    Client *client = clients_.at(key).client.get();
    if (client->session() == header.session && (!tide_xrce_session_has_key(header.session) || key == header.key))
      return client;
  }
  return nullptr;
}

void Agent::answer_stranger(Endpoint endpoint, const tide_xrce_header_t &header, Bytes message) {
  size_t position = tide_xrce_header_bytes(header.session);
  tide_xrce_submessage_t submessage;
  while (header.stream == TIDE_XRCE_STREAM_NONE &&
         tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage) == 1) {
    if (submessage.id == TIDE_XRCE_GET_INFO) {
      std::array<uint8_t, 36> storage;
      const size_t length = answer_get_info(submessage, false, storage);
      if (length != 0) reply(endpoint, header.session, header.key, TIDE_XRCE_INFO, {storage.data(), length});
      return;
    }
    if (submessage.id == TIDE_XRCE_DELETE) {
      tide_cdr_t cdr;
      tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, false);
      const tide_xrce_request_t related = tide_xrce_get_request(&cdr);
      if (cdr.status == TIDE_OK) reply_status(endpoint, header.session, header.key, related);
      return;
    }
  }
  counters_.unknown_session++;
}

void Agent::create_client(Endpoint endpoint, const tide_xrce_submessage_t &submessage, Time now) {
  tide_cdr_t cdr = reader_of(submessage);
  tide_xrce_create_client_t body{};
  tide_xrce_get_create_client(&cdr, &body);
  if (cdr.status != TIDE_OK) {
    counters_.malformed++;
    return;
  }
  if (is_of_former_session(body, now)) {
    counters_.duplicates++;
    return;
  }
  if (!may_come(endpoint, body.key, now)) return;
  const uint8_t status = admit(endpoint, body, now);
  if (status != TIDE_XRCE_STATUS_OK) counters_.clients_refused++;
  const tide_xrce_status_agent_t answer = {.status = status,
                                           .implementation_status = 0,
                                           .version_major = kVersionMajor,
                                           .version_minor = kVersionMinor,
                                           .vendor = kVendor,
                                           .cookie_valid = true};
  std::array<uint8_t, 16> storage;
  tide_cdr_t writer;
  tide_cdr_writer(&writer, storage.data(), storage.size());
  tide_xrce_put_status_agent(&writer, &answer);
  reply(endpoint, body.session, body.key, TIDE_XRCE_STATUS_AGENT, {storage.data(), writer.position});
}

// ---- bookkeeping ----

void Agent::attach(Endpoint endpoint, uint32_t key) { places_[endpoint].keys.push_back(key); }

void Agent::detach(Endpoint endpoint, uint32_t key) {
  const auto place = places_.find(endpoint);
  if (place == places_.end()) return;
  std::erase(place->second.keys, key);
  forget_if_empty(endpoint);
}

void Agent::forget_if_empty(Endpoint endpoint) {
  const auto place = places_.find(endpoint);
  if (place->second.keys.empty() && place->second.replies.empty()) places_.erase(place);
}

bool Agent::has_client(Endpoint endpoint) const {
  const auto place = places_.find(endpoint);
  return place != places_.end() && !place->second.keys.empty();
}

bool Agent::has_used_session(Endpoint endpoint) const {
  const auto place = places_.find(endpoint);
  return place != places_.end() &&
         std::any_of(place->second.keys.begin(), place->second.keys.end(),
                     [this](uint32_t key) { return !clients_.at(key).client->is_half_open(); });
}

std::string Agent::name_of(Endpoint endpoint) const {
  return options_.name_of ? options_.name_of(endpoint) : "endpoint " + std::to_string(endpoint);
}

std::string Agent::name_of(uint32_t key, Endpoint endpoint) const {
  std::array<char, 24> name;
  std::snprintf(name.data(), name.size(), "client %08X at ", key);
  return name.data() + name_of(endpoint);
}

void Agent::refuse(Endpoint endpoint, uint32_t key, const char *cause, Time now) {
  notices_.tell(cause, name_of(key, endpoint), now);
}

void Agent::tell(uint32_t key, const std::string &what, Time now) {
  const auto slot = clients_.find(key);
  if (options_.tells_events && slot != clients_.end()) {
    notices_.event(name_of(key, slot->second.client->endpoint()) + " " + what, now);
  }
}

void Agent::erase(uint32_t key, const char *what, Time now) {
  if (what != nullptr) tell(key, what, now);
  const auto slot = clients_.find(key);
  detach(slot->second.client->endpoint(), key);
  deadlines_.erase({slot->second.deadline, key});
  counters_.add(slot->second.client->counters());
  clients_.erase(slot);
}

void Agent::mark(uint32_t key) {
  Slot &slot = clients_.at(key);
  mark_dirty(key, slot);
  mark_ready(slot.client->endpoint());
}

void Agent::mark_dirty(uint32_t key, Slot &slot) {
  if (slot.dirty) return;
  slot.dirty = true;
  dirty_.push_back(key);
}

void Agent::mark_ready(Endpoint endpoint) {
  Place &place = places_[endpoint];
  if (place.ready) return;
  place.ready = true;
  ready_.push_back(endpoint);
}

void Agent::take_ready(std::vector<Endpoint> &endpoints) {
  endpoints.clear();
  endpoints.swap(ready_);
  for (const Endpoint endpoint : endpoints) {
    const auto place = places_.find(endpoint);
    if (place != places_.end()) place->second.ready = false;
  }
}

void Agent::reply(Endpoint endpoint, uint8_t session, uint32_t key, uint8_t id, Bytes body) {
  const auto place = places_.find(endpoint);
  const size_t waiting = place == places_.end() ? 0 : place->second.replies.size();
  if (reply_count_ >= options_.limits.replies || waiting >= options_.limits.replies_per_endpoint) {
    counters_.replies_dropped++;
    return;
  }
  Reply answer;
  const tide_xrce_header_t header = {session, TIDE_XRCE_STREAM_NONE, 0, key};
  answer.length = tide_xrce_put_header(answer.bytes.data(), &header);
  tide_xrce_put_submessage_header(answer.bytes.data() + answer.length, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  static_cast<uint16_t>(body.size()));
  answer.length += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  std::memcpy(answer.bytes.data() + answer.length, body.data(), body.size());
  answer.length += body.size();
  places_[endpoint].replies.push_back(answer);
  reply_count_++;
  mark_ready(endpoint);
}

void Agent::reply_status(Endpoint endpoint, uint8_t session, uint32_t key, tide_xrce_request_t related) {
  std::array<uint8_t, 8> storage;
  tide_cdr_t writer;
  tide_cdr_writer(&writer, storage.data(), storage.size());
  const tide_xrce_status_body_t status = {related, TIDE_XRCE_STATUS_OK, 0};
  tide_xrce_put_status(&writer, &status);
  reply(endpoint, session, key, TIDE_XRCE_STATUS, {storage.data(), writer.position});
}

void Agent::forget(Endpoint endpoint) {
  const auto place = places_.find(endpoint);
  if (place == places_.end()) return;
  counters_.replies_dropped += place->second.replies.size();
  reply_count_ -= place->second.replies.size();
  place->second.replies.clear();
  place->second.sending_reply = false;
  place->second.sending_epoch = 0;
  forget_if_empty(endpoint);
}

// ---- out ----

Time Agent::poll(Time now) {
  woken_.clear();
  signals_->take(woken_);
  for (const auto &signal : woken_) {
    const auto slot = clients_.find(signal->key);
    if (slot == clients_.end()) continue;
    slot->second.client->wake(*signal, now);
    mark(signal->key);
  }
  const Time noticed = notices_.poll(now);
  // Only those that have something to do: with many clients the others would take most of the time.
  due_.clear();
  due_.swap(dirty_);
  for (auto place = deadlines_.begin(); place != deadlines_.end() && place->first <= now; place++) {
    due_.push_back(place->second);
  }
  std::sort(due_.begin(), due_.end());
  due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
  std::vector<uint32_t> gone;
  for (const uint32_t key : due_) {
    const auto place = clients_.find(key);
    if (place == clients_.end()) continue;
    Slot &slot = place->second;
    slot.dirty = false;
    deadlines_.erase({slot.deadline, key});
    slot.deadline = slot.client->poll(now);
    deadlines_.emplace(slot.deadline, key);
    mark_ready(slot.client->endpoint());
    if (slot.client->begins_pause()) {
      notices_.tell("acknowledges nothing, so nothing more is sent to it until it says something",
                    name_of(key, slot.client->endpoint()), now);
    }
    if (slot.client->liveness() == Liveness::State::kGone) gone.push_back(key);
  }
  for (const uint32_t key : gone) {
    counters_.clients_lost++;
    diagnostics_.lost(key, name_of(clients_.at(key).client->endpoint()), now);
    erase(key, "is gone: it answers no more", now);
  }
  const Time told = diagnostics_.poll(now, [this, now] {
    return AgentVitals{vitals(now), counters(), options_.limits};
  });
  const Time next = std::min(noticed, told);
  return deadlines_.empty() ? next : std::min(next, deadlines_.begin()->first);
}

void Agent::check(Endpoint endpoint) const {
#if TIDE_INVARIANTS
  const auto place = places_.find(endpoint);
  if (place == places_.end()) return;
  TIDE_INVARIANT(!place->second.keys.empty() || !place->second.replies.empty());
  TIDE_INVARIANT(place->second.replies.size() <= reply_count_);
  for (const uint32_t key : place->second.keys) {
    const auto slot = clients_.find(key);
    TIDE_INVARIANT(slot != clients_.end() && slot->second.client->endpoint() == endpoint);
    TIDE_INVARIANT(slot->second.dirty || deadlines_.contains({slot->second.deadline, key}));
  }
#else
  (void)endpoint;
#endif
}

bool Agent::next(Endpoint endpoint, Time now, tide_frame_parts_t &frame) {
  const auto found = places_.find(endpoint);
  if (found == places_.end()) return false;
  check(endpoint);
  Place &place = found->second;
  place.sending_reply = !place.replies.empty();
  if (place.sending_reply) {
    frame = {};
    frame.head = place.replies.front().bytes.data();
    frame.head_bytes = place.replies.front().length;
    return true;
  }
  for (size_t tries = place.keys.size(); tries != 0; tries--) {
    place.turn = (place.turn + 1) % place.keys.size();
    if (next_of_client(place, place.keys[place.turn], now, frame)) return true;
  }
  return false;
}

bool Agent::next_of_client(Place &place, uint32_t key, Time now, tide_frame_parts_t &frame) {
  Client &client = *clients_.at(key).client;
  if (!client.has_output() || client.is_paused()) return false;
  client.serve(now);
  if (tide_transmitter_next(&client.output().transmitter(), now, &frame) != 1) return false;
  place.sending_key = key;
  place.sending_epoch = client.epoch();
  client.sending(now);
  client.count_out(frame.head_bytes + frame.body_bytes + frame.tail_bytes);
  return true;
}

void Agent::sent(Endpoint endpoint, Time now) {
  const auto found = places_.find(endpoint);
  if (found == places_.end()) return;
  Place &place = found->second;
  if (place.sending_reply) {
    place.sending_reply = false;
    place.replies.pop_front();
    reply_count_--;
    counters_.messages_out++;
    forget_if_empty(endpoint);
    return;
  }
  const auto slot = clients_.find(place.sending_key);
  if (slot == clients_.end() || slot->second.client->epoch() != place.sending_epoch) return;
  place.sending_epoch = 0;
  TIDE_INVARIANT(slot->second.client->endpoint() == endpoint);
  slot->second.client->sent(now);
  tide_transmitter_sent(&slot->second.client->output().transmitter(), now);
  mark_dirty(slot->first, slot->second);
}

}  // namespace tide::agent
