// SPDX-License-Identifier: Apache-2.0
// Who may begin a session, whose place it takes, and who gives way to it.
#include <charconv>
#include <string_view>

#include "core/agent.h"
#include "core/answers.h"
#include "tide/status.h"

namespace tide::agent {
namespace {

constexpr uint32_t kMessageBytesMinimum = 64;
constexpr std::string_view kLivelinessProperty = "uxr_hl";
// A CREATE_CLIENT for the session that began so recently is a copy or a repetition; later, the device was restarted.
constexpr Time kRepetition = 300'000'000;
// Longer than any network keeps a message of a session that is over.
constexpr Time kLateCopy = 3'000'000'000;

// Clients of tide count their sessions from here, without and with their key in each header.
bool is_first_session(uint8_t session) { return session == 0x81 || session == 0x01; }

// How often the client wants to be asked for a sign of life; 0: not at all.
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

// Clients of tide number their sessions, so what a network brings late is told from what a client asks for now. Stock
// clients always ask for the same id, and mean it.
bool Agent::is_of_former_session(const tide_xrce_create_client_t &body, Time now) const {
  const auto existing = clients_.find(body.key);
  if (body.vendor != TIDE_XRCE_VENDOR || existing == clients_.end()) return false;
  const Client &client = *existing->second.client;
  return client.former_session() == body.session && now - client.began() < kLateCopy;
}

// False: no answer at all. A stock client asks for ten seconds until it gives up, so the owner of a key that comes from
// elsewhere is in as soon as its former place has been silent; a thief learns nothing.
bool Agent::may_come(Endpoint endpoint, uint32_t key, Time now) {
  if (options_.allows && !options_.allows(endpoint, key)) {
    counters_.not_allowed++;
    refuse(endpoint, key, "not let in: no --allow names it", now);
    return false;
  }
  const auto existing = clients_.find(key);
  if (existing == clients_.end() || may_take_over(*existing->second.client, endpoint, now)) return true;
  counters_.takeovers_refused++;
  existing->second.client->ask(now);
  mark(key);
  refuse(endpoint, key, "not let in: a client with this key is alive elsewhere; give each client a key of its own",
         now);
  return false;
}

// The owner of a session is who comes from where it is, also from another port or connection there: so does a program
// that was restarted. Anyone else has to wait until the owner has been silent for a while and has not answered.
bool Agent::may_take_over(const Client &client, Endpoint endpoint, Time now) const {
  if (client.endpoint() == endpoint || clients_.at(client.key()).host == host_of(endpoint)) return true;
  const Limits &limits = options_.limits;
  const Time slow = client.timeout_ns() != 0 ? client.timeout_ns() : limits.takeover_slow_ns;
  return now - client.last_heard() >= (client.answers_probes() ? limits.takeover_ns : slow);
}

uint8_t Agent::admit(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now) {
  if (!body.cookie_valid || body.key == 0 || tide_xrce_is_no_session(body.session))
    return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  if (body.version_major != kVersionMajor) return TIDE_XRCE_STATUS_ERR_INCOMPATIBLE;
  if (body.mtu < kMessageBytesMinimum) return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
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
      .continues = numbered && !is_first_session(body.session)};
  if (same && numbered && existing->second.client->endpoint() == endpoint &&
      now - existing->second.client->began() < kRepetition) {
    counters_.duplicates++;  // or a repetition of one that was answered: nothing is new
    return TIDE_XRCE_STATUS_OK;
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
      refuse(endpoint, body.key, "not let in: as many clients as --max-clients allows are in", now);
      return TIDE_XRCE_STATUS_ERR_RESOURCES;
    }
    clients_[body.key].client = std::make_unique<Client>(context_, endpoint, announcement, now);
    counters_.clients_created++;
  }
  clients_.at(body.key).host = host_of(endpoint);
  attach(endpoint, body.key);
  tell(body.key, known ? "connected again" : "connected", now);
  mark(body.key);
  return TIDE_XRCE_STATUS_OK;
}

// A device that starts again with another key can never use its old session: two sessions with one id at one endpoint
// cannot be told apart unless their headers carry the key.
void Agent::displace(Endpoint endpoint, const tide_xrce_create_client_t &body, Time now) {
  if (tide_xrce_session_has_key(body.session)) return;
  tide_xrce_header_t header{};
  header.session = body.session;
  const Client *former = find(endpoint, header);
  if (former == nullptr || former->key() == body.key) return;
  counters_.clients_displaced++;
  erase(former->key(), "gave way to another key at its place", now);
}

// Who gives way to a new client: first who has said nothing since it came, as a flood of invented keys leaves behind;
// then who has no entities and is silent; then who has been silent and never showed that it could answer. Of them the
// one that was heard least recently.
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
  notices_.tell("gave way to a new client, as many are in as --max-clients allows",
                name_of(chosen->key(), chosen->endpoint()), now);
  erase(chosen->key(), "gave way to a new client", now);
  return true;
}

}  // namespace tide::agent
