// SPDX-License-Identifier: Apache-2.0
#include "core/delivery.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "tide/invariant.h"
#include "tide/priority.h"
#include "tide/status.h"

namespace tide::agent {

// ---- requests and replies to DDS ----

namespace {

bool is_ready(Entity &entity, const WaitingMessage &message) {
  if (const auto *requester = entity.as<RequesterPart>()) return requester->dds->is_served();
  return entity.as<ReplierPart>()->dds->reaches(message.identity);
}

}  // namespace

bool Services::write(Entity &entity, uint16_t request, Bytes payload, bool big_endian, Time now) {
  const bool asks = entity.as<RequesterPart>() != nullptr;
  WaitingMessage message;
  message.request = request;
  message.big_endian = big_endian;
  if (!asks) {
    if (payload.size() < message.identity.size()) return false;
    std::copy_n(payload.begin(), message.identity.size(), message.identity.begin());
    payload = payload.subspan(message.identity.size());
  }
  message.payload.assign(payload.begin(), payload.end());
  entity.delivery()->signal->queued.store(false);  // cleared before the check, so that a later change is signalled
                                                   // again
  WaitingMessages &waiting = *entity.waiting();
  if (waiting.empty() && is_ready(entity, message) && send(entity, message, now)) return true;
  (asks ? counters_.requests_waited : counters_.replies_waited)++;
  message.until_ns = now + (asks ? context_.limits.request_wait_ns : context_.limits.reply_wait_ns);
  lose(entity, waiting.push(std::move(message), context_.limits), now);
  flush(entity, now);
  return true;
}

// Counts and reports waiting messages that are dropped.
void Services::lose(Entity &entity, size_t count, Time now) {
  const bool asks = entity.as<RequesterPart>() != nullptr;
  (asks ? counters_.requests_unserved : counters_.replies_unreachable) += count;
  if (count == 0) return;
  entity.delivery()->lost += static_cast<uint32_t>(count);
  has_lost_ = true;
  if (!context_.event) return;
  context_.event(entity.delivery()->signal->key,
                 "loses a message of its " + described(entity.definition) +
                     (asks ? ": no server can be reached" : ": the caller cannot be reached"),
                 now);
}

// Sends a message through DDS. Returns false if DDS refuses it for now, because a lock is taken or the history is full.
bool Services::send(Entity &entity, const WaitingMessage &message, Time now) {
  if (auto *requester = entity.as<RequesterPart>()) {
    const std::optional<uint64_t> number = requester->dds->send(message.payload, message.big_endian);
    if (!number) return false;
    auto &requests = requester->requests;
    requests.insert_or_assign(*number, Asked{message.request, now});
    if (requests.size() > context_.limits.pending_requests) requests.erase(requests.begin());
  } else {
    ReplierPart &replier = *entity.as<ReplierPart>();
    if (!replier.dds->send(message.identity, message.payload, message.big_endian)) return false;
    const auto taken = replier.taken.extract(message.identity);
    if (!taken.empty()) replier.replies.add(now - taken.mapped());
  }
  counters_.samples_to_dds++;
  return true;
}

void Services::flush(Entity &entity, Time now) {
  const Limits &limits = context_.limits;
  WaitingMessages &waiting = *entity.waiting();
  auto *requester = entity.as<RequesterPart>();
  bool refused = false;  // if true, later messages wait, too, to keep the order
  const size_t expired = waiting.flush(now, [&](const WaitingMessage &message) {
    if (refused || !is_ready(entity, message)) return false;
    // If all waiting requests were sent at once, they would evict one another, or other clients' requests, from the
    // server's history.
    const Time next_ns = requester == nullptr ? 0 : requester->release->since_ns + limits.release_period_ns;
    if (requester != nullptr && now < next_ns && requester->release->count >= limits.released_requests) {
      next_ns_ = std::min(next_ns_, next_ns);
      return false;
    }
    refused = !send(entity, message, now);
    if (requester != nullptr && !refused) {
      if (now >= next_ns) *requester->release = {0, now};
      requester->release->count++;
    }
    return !refused;
  });
  if (!waiting.empty()) {
    next_ns_ = std::min({next_ns_, waiting.next_ns(), now + (refused ? limits.write_retry_ns : limits.look_again_ns)});
  }
  lose(entity, expired, now);
}

void Services::poll(Time now) {
  if (now < next_ns_) return;
  next_ns_ = TIDE_FOREVER;
  for (auto &[object, entity] : entities_) {
    const WaitingMessages *waiting = entity.waiting();
    if (waiting != nullptr && !waiting->empty()) flush(entity, now);
  }
}

void Services::took(Entity &entity, Time now) {
  auto *requester = entity.as<RequesterPart>();
  if (requester != nullptr && requester->release->count > 0) requester->release->count--;
  const WaitingMessages *waiting = entity.waiting();
  if (waiting != nullptr && !waiting->empty()) next_ns_ = now;
}

void Services::forget() {
  for (auto &[object, entity] : entities_) {
    if (WaitingMessages *waiting = entity.waiting()) *waiting = {};
    if (auto *replier = entity.as<ReplierPart>()) replier->taken.clear();
    auto *requester = entity.as<RequesterPart>();
    if (requester == nullptr) continue;
    requester->requests.clear();
    requester->delivery.waiting.clear();
    requester->delivery.waiting_bytes = 0;
  }
}

// ---- samples to the client ----

namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr uint16_t kUnlimited = 0xFFFF;

// The owner of a DATA node, made from the object id of the reader and the reader's generation. Never null.
void *owner_of(uint16_t object, uint32_t generation) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<void *>((uintptr_t{generation} << 17) | (uintptr_t{object} << 1) | 1u);
}
uint32_t generation_of(void *owner) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(owner) >> 17); }

}  // namespace

uint16_t Readings::object_of(void *owner) { return static_cast<uint16_t>(reinterpret_cast<uintptr_t>(owner) >> 1); }

std::optional<uint8_t> Readings::begin(const tide_xrce_read_data_t &body, Time now) {
  Entity *entity = entities_.find(body.request.object);
  Delivery *delivery = entity == nullptr ? nullptr : entity->delivery();
  if (delivery == nullptr) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  const bool cancels = body.has_delivery_control && body.max_samples == 0;
  if (!cancels && (body.stream == TIDE_XRCE_STREAM_NONE || body.format != TIDE_XRCE_FORMAT_DATA)) {
    return TIDE_XRCE_STATUS_ERR_INCOMPATIBLE;
  }
  Reading reading;
  reading.request = body.request;
  reading.stream = body.stream;
  reading.remaining = body.has_delivery_control ? body.max_samples : uint16_t{1};
  reading.unlimited = reading.remaining == kUnlimited;
  reading.active = reading.remaining != 0;
  reading.ends_ns = TIDE_FOREVER;
  reading.next_ns = now;
  if (body.has_delivery_control) {
    if (body.max_elapsed_time_s != 0) reading.ends_ns = now + body.max_elapsed_time_s * kSecond;
    reading.bytes_per_second = body.max_bytes_per_second;
    reading.pace_ns = body.min_pace_period_ms * kMillisecond;
  }
  delivery->reading = reading;
  delivery->has_data = true;  // samples may have arrived in DDS before the READ_DATA
  rank();
  next_ns_ = now;
  return std::nullopt;
}

void Readings::removes(uint16_t object, Entity &entity) {
  std::erase(readers_, object);
  if (const Delivery *delivery = entity.delivery()) data_nodes_ -= delivery->in_flight;
}

void Readings::wake(Entity &entity, Time now) {
  Delivery &delivery = *entity.delivery();
  delivery.has_data = true;
  drain(entity, now);
  if (delivery.reading.active) next_ns_ = now;
}

// Takes all samples of a KEEP_LAST reader out of DDS and applies the reader's depth to them. DDS itself would drop
// samples too early, because the agent's thread cannot take them while it writes other clients' samples.
void Readings::drain(Entity &entity, Time now) {
  const Limits &limits = context_.limits;
  Delivery &delivery = *entity.delivery();
  std::deque<Fetched> &waiting = delivery.waiting;
  if (entity.as<ReaderPart>() == nullptr || entity.definition.qos.keep_all) return;
  if (delivery.has_data) {
    delivery.signal->queued.store(false);  // cleared before the check, so that a later sample is signalled again
    size_t left = limits.burst_samples;
    for (Sample sample; left != 0 && entity.source()->take(sample); left--, sample = {}) {
      counters_.samples_skipped += sample.skipped;
      delivery.waiting_bytes += sample.payload.size();
      waiting.push_back({std::move(sample), now});
    }
    delivery.has_data = left == 0;
  }
  // Beyond the depth, the oldest samples are dropped, except for samples that have just arrived and for which there is
  // memory.
  const size_t depth = entity.definition.qos.depth;
  if (waiting.size() <= depth) return;
  const auto first = std::find_if(waiting.begin(), waiting.end(), [](const auto &one) { return !one.repeated; });
  const auto kept = first - waiting.begin();
  while (waiting.size() - static_cast<size_t>(kept) > depth) {
    const auto oldest = waiting.begin() + kept;
    const bool is_burst = delivery.reading.active && now - oldest->since_ns < limits.burst_ns;
    const bool has_memory =
        waiting.size() <= std::max(depth, limits.burst_samples) && delivery.waiting_bytes <= limits.burst_bytes;
    if (is_burst && has_memory) return;
    delivery.waiting_bytes -= oldest->sample.payload.size();
    waiting.erase(oldest);
    counters_.samples_skipped++;
  }
}

void Readings::keep(Output &output) {
  const std::vector<Output::Unacknowledged> taken = output.take_back();
  for (auto one = taken.rbegin(); one != taken.rend(); ++one) {
    if (one->owner == nullptr) continue;
    Entity *entity = entities_.find(object_of(one->owner));
    Delivery *delivery = entity == nullptr ? nullptr : entity->delivery();
    if (delivery == nullptr || delivery->generation != generation_of(one->owner)) continue;
    if (entity->as<ReplierPart>() != nullptr) continue;
    Sample sample;
    sample.big_endian = (one->submessage[1] & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
    Bytes payload = one->submessage.subspan(TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + kRequestBytes);
    if (auto *requester = entity->as<RequesterPart>()) {
      tide_cdr_t cdr;
      tide_cdr_reader(&cdr, payload.data(), payload.size(), false);
      sample.request = UINT64_MAX - replies_kept_++;
      requester->requests.emplace(sample.request, Asked{tide_xrce_get_request(&cdr).request, 0});
      payload = payload.subspan(kRequestBytes);
    }
    sample.payload.assign(payload.begin(), payload.end());
    delivery->waiting_bytes += sample.payload.size();
    delivery->waiting.push_front({std::move(sample), 0, true});
    counters_.samples_repeated++;
  }
}

void Readings::forget_nodes() {
  data_nodes_ = 0;
  for (auto &[object, entity] : entities_) {
    Delivery *delivery = entity.delivery();
    if (delivery == nullptr) continue;
    delivery->generation = ++generation_;
    delivery->in_flight = 0;
  }
}

void Readings::end_all() {
  for (auto &[object, entity] : entities_) {
    if (Delivery *delivery = entity.delivery()) delivery->reading.active = false;
  }
  readers_.clear();
}

// Sorts the active readers: most urgent streams first and, within a level, the reader first whose last sample is the
// oldest.
void Readings::rank() {
  std::vector<std::tuple<int, uint64_t, uint16_t>> ranked;
  for (auto &[object, entity] : entities_) {
    const Delivery *delivery = entity.delivery();
    if (delivery == nullptr || !delivery->reading.active) continue;
    ranked.emplace_back(-TIDE_STREAM_LEVEL(delivery->reading.stream), delivery->last_turn, object);
  }
  std::sort(ranked.begin(), ranked.end());
  readers_.clear();
  for (const auto &[level, turn, object] : ranked) readers_.push_back(object);
}

void Readings::serve(Output &output, Time now) {
  if (!services_.take_lost() && now < next_ns_ && !behind_) return;
  next_ns_ = TIDE_FOREVER;
  behind_ = false;
  bool ended = false;
  for (const uint16_t object : readers_) {
    Entity *entity = entities_.find(object);
    serve_entity(*entity, object, output, now);
    ended = ended || !entity->delivery()->reading.active;
  }
  if (ended || behind_) rank();
  check();
}

void Readings::serve_entity(Entity &entity, uint16_t object, Output &output, Time now) {
  Delivery &delivery = *entity.delivery();
  Reading &reading = delivery.reading;
  report_losses(delivery, output, now);
  drain(entity, now);
  const Limits &limits = context_.limits;
  const bool keeps_last = entity.as<ReaderPart>() != nullptr && !entity.definition.qos.keep_all;
  const bool is_reliable = TIDE_STREAM_IS_RELIABLE(reading.stream);
  const uint32_t limit = is_reliable ? limits.in_flight_reliable : limits.in_flight_best_effort;
  while (reading.active) {
    if (now >= reading.ends_ns) {
      reading.active = false;
      return;
    }
    if (!delivery.has_data && delivery.waiting.empty()) return;
    if (now < reading.next_ns) {
      next_ns_ = std::min(next_ns_, reading.next_ns);
      return;
    }
    if (delivery.in_flight >= limit) return;  // node_done tries again
    // A reader that has samples in transfer leaves one node free for each other reader.
    const size_t taken = data_nodes_ + limits.reserved_nodes + (delivery.in_flight == 0 ? 0 : readers_.size());
    if (taken >= output.node_count()) return;
    // A newer sample cannot replace one that is in a node, so a KEEP_LAST reader takes a node only when the sample can
    // be sent at once.
    if (keeps_last && !output.is_clear(reading.stream)) {
      behind_ = true;
      return;
    }
    if (delivery.waiting.empty() && !fetch(entity, now)) return;
    const size_t payload_bytes = delivery.waiting.front().sample.payload.size();
    // A newer sample cannot replace one whose fragments are being sent, so fragmented samples are sent one at a time.
    const bool is_long = payload_bytes > output.transmitter().fragment_bytes;
    if (keeps_last && is_long && delivery.in_flight != 0) return;
    const int sent = deliver(entity, object, output, now);
    if (sent == TIDE_ERROR_FULL) return;
    delivery.waiting_bytes -= payload_bytes;
    delivery.waiting.pop_front();
    if (sent == TIDE_ERROR_NOT_FOUND) {  // the request was forgotten while its reply waited
      counters_.replies_unmatched++;
      continue;
    }
    if (sent < 0) {
      counters_.samples_too_large++;
      delivery.too_large++;
      report_losses(delivery, output, now);
      tell_too_large(entity, payload_bytes, is_reliable, now);
      continue;
    }
    delivery.in_flight++;
    delivery.last_turn = ++turns_;
    data_nodes_++;
    counters_.samples_to_client++;
    if (!reading.unlimited && --reading.remaining == 0) reading.active = false;
    Time gap = reading.pace_ns;
    if (reading.bytes_per_second != 0) {
      gap = std::max(gap, static_cast<Time>(payload_bytes) * kSecond / static_cast<Time>(reading.bytes_per_second));
    }
    if (gap != 0) reading.next_ns = now + gap;
  }
}

// Reports losses to the client by a STATUS for the READ_DATA, at most once a second: samples that were too long, and
// the client's own requests or replies that found no receiver. A client of tide counts them; a stock client ignores the
// STATUS.
void Readings::report_losses(Delivery &delivery, Output &output, Time now) {
  if (delivery.too_large + delivery.lost == 0) return;
  if (now >= delivery.tell_ns) {
    uint32_t &losses = delivery.too_large != 0 ? delivery.too_large : delivery.lost;
    const uint8_t kind = delivery.too_large != 0 ? TIDE_XRCE_STATUS_ERR_RESOURCES : TIDE_XRCE_STATUS_ERR_DDS;
    const auto count = static_cast<uint8_t>(std::min<uint32_t>(losses, UINT8_MAX));
    const tide_xrce_status_body_t status{delivery.reading.request, kind, count};
    if (output.submit_control(TIDE_XRCE_STATUS, Encoded(tide_xrce_put_status, status)) == TIDE_OK) {
      losses -= count;
      delivery.tell_ns = now + kSecond;
    }
  }
  if (delivery.too_large + delivery.lost != 0)
    next_ns_ = std::min(next_ns_, std::max(delivery.tell_ns, now + context_.limits.write_retry_ns));
}

// Reports a sample that was too long, in a line for the user: at most one line in ten seconds for each topic.
void Readings::tell_too_large(Entity &entity, size_t bytes, bool is_reliable, Time now) {
  Delivery &delivery = *entity.delivery();
  if (!context_.event || now < delivery.line_ns) return;
  delivery.line_ns = now + 10 * kSecond;
  const Service &service = entity.definition.service;
  const std::string &topic = entity.as<ReaderPart>()      ? entity.definition.topic.name
                             : entity.as<RequesterPart>() ? service.reply.name
                                                          : service.request.name;
  context_.event(delivery.signal->key,
                 "cannot receive a message of '" + topic + "': " + std::to_string(bytes) + " octets are too long; " +
                     (is_reliable ? "a reliable message has at most 65,523 octets"
                                  : "subscribe reliably, or raise the client's MTU (TIDE_MTU_BYTES)"),
                 now);
}

// Takes the reader's next sample out of DDS and lets it wait for a node. Returns false if DDS has none.
bool Readings::fetch(Entity &entity, Time now) {
  Delivery &delivery = *entity.delivery();
  delivery.signal->queued.store(false);  // cleared before the check, so that a later sample is signalled again
  auto *requester = entity.as<RequesterPart>();
  auto *replier = entity.as<ReplierPart>();
  Sample sample;
  while (entity.source()->take(sample)) {
    counters_.samples_skipped += sample.skipped;
    services_.took(entity, now);
    if (replier != nullptr) {
      // a server that never replies must not fill this map
      if (replier->taken.size() >= context_.limits.pending_requests) replier->taken.erase(replier->taken.begin());
      replier->taken.insert_or_assign(sample.identity, now);
    }
    if (requester != nullptr) {
      const auto asked = requester->requests.find(sample.request);
      if (asked == requester->requests.end()) {
        counters_.replies_unmatched++;
        continue;
      }
      requester->replies.add(now - asked->second.at_ns);
    }
    delivery.waiting_bytes += sample.payload.size();
    delivery.waiting.push_back({std::move(sample), now});
    return true;
  }
  delivery.has_data = false;
  return false;
}

// Writes the oldest waiting sample into a node. Returns a tide_status_t.
int Readings::deliver(Entity &entity, uint16_t object, Output &output, Time now) {
  Delivery &delivery = *entity.delivery();
  const Sample &sample = delivery.waiting.front().sample;
  std::array<uint8_t, 32> storage;
  tide_cdr_t head;
  tide_cdr_writer(&head, storage.data(), storage.size());
  tide_xrce_put_request(&head, delivery.reading.request);
  if (entity.as<ReplierPart>() != nullptr) tide_cdr_put_bytes(&head, sample.identity.data(), sample.identity.size());
  auto *requester = entity.as<RequesterPart>();
  if (requester != nullptr) {
    const auto request = requester->requests.find(sample.request);
    if (request == requester->requests.end())
      return TIDE_ERROR_NOT_FOUND;  // the request was forgotten while its reply waited
    tide_xrce_put_request(&head, {request->second.request, object});
  }
  const uint8_t flags = sample.big_endian ? uint8_t{0} : uint8_t{TIDE_XRCE_FLAG_LITTLE_ENDIAN};
  const int sent = output.submit(delivery.reading.stream, TIDE_XRCE_DATA, flags, {storage.data(), head.position},
                                 sample.payload, owner_of(object, delivery.generation), now);
  if (sent != TIDE_ERROR_FULL && requester != nullptr) requester->requests.erase(sample.request);
  return sent;
}

void Readings::node_done(void *owner) {
  next_ns_ = 0;
  if (owner == nullptr) return;
  Entity *entity = entities_.find(object_of(owner));
  Delivery *delivery = entity == nullptr ? nullptr : entity->delivery();
  if (delivery == nullptr || delivery->generation != generation_of(owner) || delivery->in_flight == 0) return;
  TIDE_INVARIANT(data_nodes_ > 0);
  delivery->in_flight--;
  data_nodes_--;
}

void Readings::check() const {
#if TIDE_INVARIANTS
  size_t in_flight = 0, active = 0;
  for (auto &[object, entity] : entities_) {
    const Delivery *delivery = entity.delivery();
    if (delivery == nullptr) continue;
    in_flight += delivery->in_flight;
    active += delivery->reading.active ? 1 : 0;
    TIDE_INVARIANT(!delivery->reading.active || std::count(readers_.begin(), readers_.end(), object) == 1);
  }
  TIDE_INVARIANT(in_flight == data_nodes_ && active == readers_.size());
#endif
}

}  // namespace tide::agent
