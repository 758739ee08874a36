// SPDX-License-Identifier: Apache-2.0
#include "core/services.h"

#include <algorithm>

#include "tide/platform.h"

namespace tide::agent {
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
  entity.delivery()->signal->queued.store(false);  // before looking, so that what changes now is announced again
  WaitingMessages &waiting = *entity.waiting();
  if (waiting.empty() && is_ready(entity, message) && send(entity, message, now)) return true;
  (asks ? counters_.requests_waited : counters_.replies_waited)++;
  message.until_ns = now + (asks ? context_.limits.request_wait_ns : context_.limits.reply_wait_ns);
  const size_t given_up = waiting.push(std::move(message), context_.limits);
  (asks ? counters_.requests_unserved : counters_.replies_unreachable) += given_up;
  flush(entity, now);
  return true;
}

// What has waited for a server would come to it all at once, and push itself, or what others ask, out of its history.
bool Services::may_release(const Release &release, Time now) {
  const Time next_ns = release.since_ns + context_.limits.release_period_ns;
  if (now >= next_ns || release.count < context_.limits.released_requests) return true;
  next_ns_ = std::min(next_ns_, next_ns);
  return false;
}

void Services::count_release(Release &release, Time now) const {
  if (now >= release.since_ns + context_.limits.release_period_ns) release = {0, now};
  release.count++;
}

// False: DDS refuses it for now, as its lock is taken or its history is full.
bool Services::send(Entity &entity, const WaitingMessage &message, Time now) {
  bool written = false;
  if (auto *requester = entity.as<RequesterPart>()) {
    const std::optional<uint64_t> number = requester->dds->send(message.payload, message.big_endian);
    written = number.has_value();
    auto &requests = requester->requests;
    if (written) requests.insert_or_assign(*number, Asked{message.request, now});
    if (requests.size() > context_.limits.pending_requests) requests.erase(requests.begin());
  } else {
    ReplierPart &replier = *entity.as<ReplierPart>();
    written = replier.dds->send(message.identity, message.payload, message.big_endian);
    const auto taken = written ? replier.taken.extract(message.identity) : decltype(replier.taken)::node_type();
    if (!taken.empty()) replier.replies.add(now - taken.mapped());
  }
  if (written) counters_.samples_to_dds++;
  return written;
}

void Services::flush(Entity &entity, Time now) {
  auto *requester = entity.as<RequesterPart>();
  bool refused = false;  // then the others wait, too: they keep their order
  const size_t given_up = entity.waiting()->flush(now, [&](const WaitingMessage &message) {
    if (refused || !is_ready(entity, message)) return false;
    if (requester != nullptr && !may_release(*requester->release, now)) return false;
    refused = !send(entity, message, now);
    if (requester != nullptr && !refused) count_release(*requester->release, now);
    return !refused;
  });
  if (!entity.waiting()->empty()) look_again(entity, refused, now);
  (requester != nullptr ? counters_.requests_unserved : counters_.replies_unreachable) += given_up;
}

void Services::poll(Time now) {
  if (now < next_ns_) return;
  next_ns_ = TIDE_FOREVER;
  for (auto &[object, entity] : entities_) {
    const WaitingMessages *waiting = entity.waiting();
    if (waiting == nullptr || waiting->empty()) continue;
    flush(entity, now);
  }
}

void Services::look_again(Entity &entity, bool refused, Time now) {
  const Time period_ns = refused ? context_.limits.write_retry_ns : context_.limits.look_again_ns;
  next_ns_ = std::min({next_ns_, entity.waiting()->next_ns(), now + period_ns});
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

}  // namespace tide::agent
