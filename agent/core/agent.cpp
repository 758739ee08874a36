// SPDX-License-Identifier: Apache-2.0
#include "core/agent.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/streams.h"
#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/status.h"

namespace tide::agent {

namespace {

int64_t system_wall_clock_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

void count_in(Counters &counters, size_t bytes) {
  counters.messages_in++;
  counters.bytes_in += bytes;
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

AgentVitals Agent::vitals(Time now) {
  vitals_.clear();
  for (const auto &[key, slot] : clients_) {
    vitals_.push_back(slot.client->vitals(now));
    vitals_.back().place = name_of(slot.client->endpoint());
  }
  return {vitals_, counters(), options_.limits};
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
    report_competitor(endpoint, now);
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
      const auto info = info_for(submessage, false);
      if (info) reply(endpoint, header.session, header.key, TIDE_XRCE_INFO, *info);
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
  reply(endpoint, body.session, body.key, TIDE_XRCE_STATUS_AGENT, Encoded(tide_xrce_put_status_agent, answer));
}

// ---- bookkeeping ----

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

std::set<Host> Agent::hosts() const {
  std::set<Host> hosts;
  for (const auto &[key, slot] : clients_) hosts.insert(slot.host);
  return hosts;
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
  if (slot->second.former) left_.erase(*slot->second.former);
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
  const tide_xrce_status_body_t status = {related, TIDE_XRCE_STATUS_OK, 0};
  reply(endpoint, session, key, TIDE_XRCE_STATUS, Encoded(tide_xrce_put_status, status));
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
  // Visits only clients with work; with many clients, visiting the idle ones would take most of the time.
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
      notices_.tell("acknowledges nothing; nothing more is sent to it until it sends a message",
                    name_of(key, slot.client->endpoint()), now);
    }
    if (slot.client->liveness() == Liveness::State::kGone) gone.push_back(key);
  }
  for (const uint32_t key : gone) {
    counters_.clients_lost++;
    diagnostics_.lost(key, name_of(clients_.at(key).client->endpoint()), now);
    erase(key, "is gone: it no longer answers", now);
  }
  const Time next = std::min(noticed, diagnostics_.poll(now, [this, now] { return vitals(now); }));
  return deadlines_.empty() ? next : std::min(next, deadlines_.begin()->first);
}

// Checks that the keys and replies stored for the endpoint agree with clients_, deadlines_ and reply_count_.
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
    const uint32_t key = place.keys[place.turn];
    Client &client = *clients_.at(key).client;
    if (!client.has_output() || client.is_paused()) continue;
    client.serve(now);
    if (tide_transmitter_next(&client.output().transmitter(), now, &frame) != 1) continue;
    place.sending_key = key;
    place.sending_epoch = client.epoch();
    client.sending(now);
    client.count_out(frame.head_bytes + frame.body_bytes + frame.tail_bytes);
    return true;
  }
  return false;
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

// ---- admission: who may begin a session, which session it continues, and which client is evicted for it ----

namespace {

constexpr uint32_t kMessageBytesMinimum = 64;
constexpr std::string_view kLivelinessProperty = "uxr_hl";
// While a session is younger than this, another CREATE_CLIENT for it is a copy or a repetition of the first one. Later,
// it means that the device was restarted.
constexpr Time kRepetition = 300'000'000;
// Time for which a network may delay a message of an ended session.
constexpr Time kLateCopy = 3'000'000'000;
// If the endpoint that a client has left sends something within this time, two programs compete for one session.
constexpr Time kReturn = 10 * kSecond;

// True for the first session of a client of tide: 0x81 without and 0x01 with the client's key in each header.
bool is_first_session(uint8_t session) { return session == 0x81 || session == 0x01; }

// Silence after which the client wants to be probed; 0: it announces none.
Time liveliness_of(const tide_xrce_create_client_t &body) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, body.properties, body.properties_bytes, false);
  for (uint32_t property = 0; property < body.property_count && cdr.status == TIDE_OK; property++) {
    size_t name_length = 0, value_length = 0;
    const char *name = tide_cdr_get_string(&cdr, &name_length);
    const char *value = tide_cdr_get_string(&cdr, &value_length);
    if (cdr.status != TIDE_OK || std::string_view(name, name_length) != kLivelinessProperty) continue;
    uint32_t milliseconds = 0;
    std::from_chars(value, value + value_length, milliseconds);
    return static_cast<Time>(milliseconds) * 1'000'000;
  }
  return 0;
}

}  // namespace

// True for a late copy of a CREATE_CLIENT. It has the number of the former session, because tide's clients number their
// sessions. Stock clients request the same number for each session, so a late copy from one of them cannot be
// recognised.
bool Agent::is_of_former_session(const tide_xrce_create_client_t &body, Time now) const {
  const auto existing = clients_.find(body.key);
  if (body.vendor != TIDE_XRCE_VENDOR || existing == clients_.end()) return false;
  const Client &client = *existing->second.client;
  return client.former_session() == body.session && now - client.began() < kLateCopy;
}

// True if the client may begin a session from this endpoint. If not, the agent sends no answer at all, so that an
// attacker learns nothing. A client that has moved to this endpoint is admitted later: a stock client repeats its
// request for ten seconds, and its former endpoint is silent meanwhile.
bool Agent::may_come(Endpoint endpoint, uint32_t key, Time now) {
  if (options_.allows && !options_.allows(endpoint, key)) {
    counters_.not_allowed++;
    refuse(endpoint, key, "refused: no --allow names it", now);
    return false;
  }
  const auto existing = clients_.find(key);
  if (existing == clients_.end() || may_take_over(*existing->second.client, endpoint, now)) return true;
  counters_.takeovers_refused++;
  existing->second.client->ask(now);
  mark(key);
  refuse(endpoint, key, "refused: a client with this key is alive elsewhere; give each client its own key", now);
  return false;
}

// True if a request from this endpoint may take over the client's session. A request from any port or connection of the
// client's host may, because the client may have been restarted. A request from elsewhere may only after a silence of
// the client, which is longer than an answer to a probe takes.
bool Agent::may_take_over(const Client &client, Endpoint endpoint, Time now) const {
  if (client.endpoint() == endpoint || clients_.at(client.key()).host == host_of(endpoint)) return true;
  const Limits &limits = options_.limits;
  const Time slow = client.timeout_ns() != 0 ? client.timeout_ns() : limits.takeover_slow_ns;
  return now - client.last_heard() >= (client.answers_probes() ? limits.takeover_ns : slow);
}

// Two programs of one host that have the same key take the session from each other. A program that was restarted sends
// nothing more from the endpoint that it left, except for messages that the network has delayed.
void Agent::report_competitor(Endpoint endpoint, Time now) {
  const auto left = left_.find(endpoint);
  if (left == left_.end()) return;
  const Time since = now - clients_.at(left->second).moved;
  if (since < kRepetition || since >= kReturn) return;
  notices_.tell("competes for its session with another program that has this key; give each client its own key",
                name_of(left->second, endpoint), now);
}

uint8_t Agent::admit(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now) {
  const char *fault = nullptr;
  if (!body.cookie_valid || tide_xrce_is_no_session(body.session)) fault = "refused: its CREATE_CLIENT is not valid";
  if (body.key == 0) fault = "refused: its key is 0; give it another one";
  if (body.mtu < kMessageBytesMinimum) fault = "refused: its MTU is below 64 octets";
  if (fault != nullptr) {
    refuse(endpoint, body.key, fault, now);
    return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  }
  if (body.version_major != kVersionMajor) {
    refuse(endpoint, body.key, "refused: it speaks another version of DDS-XRCE than 1", now);
    return TIDE_XRCE_STATUS_ERR_INCOMPATIBLE;
  }
  const auto existing = clients_.find(body.key);
  const bool known = existing != clients_.end();
  const bool same = known && existing->second.client->session() == body.session;
  const bool numbered = body.vendor == TIDE_XRCE_VENDOR;
  const Client::Announcement announcement = {
      .key = body.key,
      .session = body.session,
      .message_bytes = body.mtu,
      .liveliness_ns = liveliness_of(body),
      .timeout_ns = options_.client_timeout_ns ? options_.client_timeout_ns(endpoint, body.key)
                                               : options_.limits.client_timeout_ns,
      .may_be_forged = options_.may_be_forged && options_.may_be_forged(endpoint),
      .names = options_.names ? options_.names(endpoint, body.key) : nullptr,
      .starts = numbered && is_first_session(body.session),
      .continues = numbered && !is_first_session(body.session)};
  if (same && numbered && existing->second.client->endpoint() == endpoint &&
      now - existing->second.client->began() < kRepetition) {
    counters_.duplicates++;  // a copy or a repetition of a request that was already answered
    return TIDE_XRCE_STATUS_OK;
  }
  if (known && existing->second.client->endpoint() != endpoint) {
    Slot &slot = existing->second;
    report_competitor(endpoint, now);
    if (slot.former) left_.erase(*slot.former);
    slot.former = slot.client->endpoint();
    slot.moved = now;
    left_[*slot.former] = body.key;
  }
  if (same || (known && numbered)) {
    detach(existing->second.client->endpoint(), body.key);
    displace(endpoint, body, now);
    existing->second.client->resume(endpoint, announcement, now);
    counters_.clients_resumed++;
  } else {
    if (known) erase(body.key, nullptr, now);
    displace(endpoint, body, now);
    if (clients_.size() >= options_.limits.clients && !make_room(now)) {
      refuse(endpoint, body.key, "refused: the limit of --max-clients is reached", now);
      return TIDE_XRCE_STATUS_ERR_RESOURCES;
    }
    clients_[body.key].client = std::make_unique<Client>(context_, endpoint, announcement, now);
    counters_.clients_created++;
  }
  clients_.at(body.key).host = host_of(endpoint);
  places_[endpoint].keys.push_back(body.key);
  tell(body.key, known ? "connected again" : "connected", now);
  mark(body.key);
  return TIDE_XRCE_STATUS_OK;
}

// Without keys in the headers, two sessions with the same id at one endpoint cannot be distinguished. A new key at an
// endpoint therefore means that the device was restarted; this ends the session with the old key.
void Agent::displace(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now) {
  if (tide_xrce_session_has_key(body.session)) return;
  tide_xrce_header_t header{};
  header.session = body.session;
  const Client *former = find(endpoint, header);
  if (former == nullptr || former->key() == body.key) return;
  counters_.clients_displaced++;
  erase(former->key(), "was replaced by a client with another key at its address", now);
}

// Evicts one client for a new one; returns false if there is no candidate. The first candidates are clients that have
// sent nothing since their CREATE_CLIENT, such as those of a flood of invented keys; then silent clients without
// entities; then silent ones that never answered a probe. Of equal candidates, the one that has been silent for the
// longest time is evicted.
bool Agent::make_room(Time now) {
  const auto rank = [&](const Client &client) {
    if (client.is_half_open()) return 3;
    if (client.entity_count() == 0 && now - client.last_heard() >= options_.limits.idle_ns) return 2;
    return client.liveness() == Liveness::State::kSilent ? 1 : 0;
  };
  const Client *chosen = nullptr;
  for (const auto &[key, slot] : clients_) {
    const Client &client = *slot.client;
    const int its = rank(client), best = chosen == nullptr ? 1 : rank(*chosen);
    if (its < best) continue;
    if (chosen == nullptr || its > best || client.last_heard() < chosen->last_heard()) chosen = &client;
  }
  if (chosen == nullptr) return false;
  counters_.clients_lost++;
  notices_.tell("was evicted for a new client, because the limit of --max-clients is reached",
                name_of(chosen->key(), chosen->endpoint()), now);
  erase(chosen->key(), "was evicted for a new client", now);
  return true;
}

}  // namespace tide::agent
