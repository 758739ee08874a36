/* SPDX-License-Identifier: Apache-2.0 */
/* A participant: sequence numbers towards one remote endpoint; the tables of remote participants and matches; received
 * messages; sent messages. */
#include <string.h>

#include "tide/invariant.h"
#include "tide/rtps_participant.h"
#include "tide/status.h"

#define NEVER INT64_MAX
#define MS INT64_C(1000000)
#define RETRY_NS (20 * MS) /* until a HEARTBEAT or ACKNACK is repeated; doubled with each try up to 2.56 s */
#define SILENT_TRIES 10    /* tries for a remote endpoint that never answered, until its participant announces itself */
#define RESTART_MS 1000u   /* after this time a lower count means a restart, not a reordering */
#define EARLY_ANNOUNCEMENTS 5u     /* number of announcements in quick succession after the start */
#define EARLY_PERIOD_NS (100 * MS) /* their period, as in Fast DDS */
#define ANNOUNCE_PERIOD_NS (3000 * MS)
#define LEASE_NS (20000 * MS)
#define RESIDENCE_NS (1000 * MS) /* after this time a participant without a match may be evicted */
#define SETTLED_NS (5000 * MS)   /* likewise, for a participant that does not answer */
#define LIST_BYTES (TIDE_RTPS_DATAGRAM_BYTES_MINIMUM - 128u)
#define STATUS_GONE 3u /* disposed and unregistered */
#define ENCAPSULATION_BYTES 4u
#define IDENTITY_BYTES 16u /* which Cyclone DDS puts before the message of a request or reply */
#define VENDOR_FAST_DDS 0x010Fu
#define VENDOR_CYCLONE_DDS 0x0110u

/* The sizes that the header states. */
_Static_assert(sizeof(void *) > 4 || (sizeof(tide_rtps_peer_t) <= 256 && sizeof(tide_rtps_match_t) <= 64), "sizes");

enum { PUBLICATIONS, SUBSCRIPTIONS, GRAPH };
static const uint32_t builtin_writer[2] = {TIDE_RTPS_ENTITY_PUBLICATIONS_WRITER, TIDE_RTPS_ENTITY_SUBSCRIPTIONS_WRITER};
static const uint32_t builtin_reader[2] = {TIDE_RTPS_ENTITY_PUBLICATIONS_READER, TIDE_RTPS_ENTITY_SUBSCRIPTIONS_READER};

static int64_t earlier(int64_t left, int64_t right) { return left < right ? left : right; }
static int64_t later(int64_t left, int64_t right) { return left > right ? left : right; }

static tide_rtps_text_t text_of(const char *text) {
  return text == NULL ? (tide_rtps_text_t){"", 0} : (tide_rtps_text_t){text, strlen(text)};
}

static bool text_equals(tide_rtps_text_t text, const char *other) {
  return strlen(other) == text.length && memcmp(other, text.characters, text.length) == 0;
}

tide_rtps_qos_t tide_rtps_qos_default(void) {
  return (tide_rtps_qos_t){.reliable = true, .deadline_ns = INT64_MAX, .lease_ns = INT64_MAX, .lifespan_ns = INT64_MAX};
}

/* ---- sequence numbers towards one remote endpoint ---- */

static void proxy_init(tide_rtps_proxy_t *proxy, int64_t next, int64_t due_ns) {
  *proxy = (tide_rtps_proxy_t){.next = next, .end = next, .due_ns = due_ns};
}

static int64_t retry_ns(const tide_rtps_proxy_t *proxy) { return RETRY_NS << (proxy->tries < 7 ? proxy->tries : 7); }

/* Call this after sending a HEARTBEAT or ACKNACK that expects an answer. */
static void proxy_await(tide_rtps_proxy_t *proxy, int64_t now) {
  const bool is_silent = !proxy->answered && proxy->tries >= SILENT_TRIES;
  proxy->due_ns = is_silent ? NEVER : now + retry_ns(proxy);
  if (proxy->tries < UINT8_MAX) proxy->tries++;
}

static void revive(tide_rtps_proxy_t *proxy, int64_t now) {
  if (!proxy->answered && proxy->due_ns == NEVER) proxy->due_ns = now;
}

/* A GUID begins with the number of its vendor. */
static bool is_of_vendor(const uint8_t *prefix, uint32_t vendor) {
  return prefix[0] == vendor >> 8 && prefix[1] == (vendor & 0xFFu);
}

typedef enum { OLD, NEW, RESTARTED } verdict_t;

/* The counts of HEARTBEATs and of ACKNACKs rise, so that duplicates can be recognised. A lower count that arrives more
 * than RESTART_MS after the last one comes from a participant that restarted with the same GUID. */
static verdict_t judge_count(tide_rtps_proxy_t *proxy, uint32_t count, int64_t now) {
  const uint32_t now_ms = (uint32_t)(now / MS);
  const int32_t step = (int32_t)(count - proxy->count_in);
  if (proxy->counted && step <= 0) return step < 0 && now_ms - proxy->heard_ms > RESTART_MS ? RESTARTED : OLD;
  proxy->counted = true;
  proxy->count_in = count;
  proxy->heard_ms = now_ms;
  return NEW;
}

/* Processes an ACKNACK to a writer with samples first to last. A base of 0 requests a HEARTBEAT and, if the writer
 * keeps samples for late readers, all samples that the HEARTBEAT lists. Fast DDS and this participant begin with such
 * an ACKNACK. */
static verdict_t on_acknack(tide_rtps_proxy_t *proxy, const tide_rtps_repair_t *repair, int64_t first, int64_t last,
                            bool starts_at_first, int64_t now) {
  const int64_t base = repair->set.base;
  if (base > last + 1) return OLD; /* the ACKNACK acknowledges samples that were never sent */
  const verdict_t verdict = judge_count(proxy, repair->count, now);
  if (verdict != NEW) return verdict;
  if (starts_at_first && base < proxy->next) { /* the reader wants the kept samples once more */
    proxy->next = earlier(proxy->next, later(base, first));
    proxy->requested = 0;
  }
  if (base < proxy->next) {
    /* A reader requests numbers below the first one that concerns it, until a HEARTBEAT has reported that number. */
    if (base != 0 && proxy->answered) return RESTARTED;
    proxy->due_ns = now;
    return NEW;
  }
  /* Fast DDS requests fragments of a sample before it acknowledges the samples below it, so earlier requests stay. */
  proxy->requested = base - proxy->next < 32 ? proxy->requested >> (base - proxy->next) : 0;
  proxy->answered = true;
  proxy->next = base;
  proxy->tries = 0;
  proxy->end = later(proxy->end, base);
  for (uint32_t bit = 0; bit < 32; bit++) {
    if (base + bit < proxy->end && tide_rtps_set_has(&repair->set, base + bit)) proxy->requested |= 1u << bit;
  }
  /* A HEARTBEAT follows the requested samples when they have been sent. */
  proxy->due_ns = base > last ? NEVER : now + retry_ns(proxy);
  if (!repair->final && tide_rtps_set_first(&repair->set) == 0) proxy->due_ns = now;
  return NEW;
}

/* *lost: number of samples that the writer no longer had. */
static verdict_t on_heartbeat(tide_rtps_proxy_t *proxy, const tide_rtps_repair_t *repair, int64_t now, int64_t *lost) {
  *lost = 0;
  /* The HEARTBEAT ends before samples that have arrived already: a later sample overtook it, or the writer has
   * restarted. */
  if (repair->last + 1 < proxy->next) return (uint32_t)(now / MS) - proxy->heard_ms > RESTART_MS ? RESTARTED : OLD;
  const verdict_t verdict = judge_count(proxy, repair->count, now);
  if (verdict != NEW) return verdict;
  if (repair->first > proxy->next) {
    if (proxy->answered) *lost = repair->first - proxy->next;
    proxy->next = repair->first;
  }
  if (!proxy->answered || proxy->tries >= SILENT_TRIES) proxy->tries = 0;
  proxy->answered = true;
  proxy->end = later(proxy->end, repair->last + 1);
  proxy->owes_answer = proxy->owes_answer || !repair->final;
  if (proxy->owes_answer || proxy->next < proxy->end) {
    proxy->due_ns = proxy->tries == 0 || proxy->owes_answer ? now : proxy->due_ns;
  } else {
    proxy->due_ns = NEVER;
  }
  return NEW;
}

/* Moves on to sample `next`: the samples before it arrived, or will never arrive. */
static void proxy_advance(tide_rtps_proxy_t *proxy, int64_t next, int64_t now) {
  proxy->next = next;
  proxy->end = later(proxy->end, next);
  proxy->tries = 0;
  proxy->heard_ms = (uint32_t)(now / MS);
  if (!proxy->owes_answer && proxy->answered) proxy->due_ns = proxy->next < proxy->end ? now + RETRY_NS : NEVER;
}

/* A sample of a reliable writer arrived before an earlier one: all from the expected one on are requested. */
static void proxy_ahead(tide_rtps_proxy_t *proxy, int64_t sequence, int64_t now) {
  proxy->end = later(proxy->end, sequence + 1);
  if (proxy->due_ns == NEVER) proxy->due_ns = now;
}

/* Processes a GAP: its samples do not concern this reader, or no longer exist. */
static void on_gap(tide_rtps_proxy_t *proxy, const tide_rtps_repair_t *repair, int64_t now) {
  int64_t next = proxy->next;
  if (repair->first <= next && next < repair->set.base) next = repair->set.base;
  while (tide_rtps_set_has(&repair->set, next)) next++;
  if (next != proxy->next) proxy_advance(proxy, next, now);
}

/* ---- tables ---- */

static void tell(tide_participant_t *participant, tide_rtps_event_kind_t kind, const tide_rtps_endpoint_t *local,
                 const uint8_t *prefix, uint32_t entity, int64_t count) {
  if (participant->config.event == NULL) return;
  tide_rtps_event_t event = {.kind = kind, .local = local, .remote = {.entity = entity}, .count = count};
  memcpy(event.remote.prefix, prefix, TIDE_RTPS_PREFIX_BYTES);
  participant->config.event(participant->config.context, &event);
}

static tide_rtps_peer_t *peer_of(tide_participant_t *participant, const tide_rtps_match_t *match) {
  return &participant->config.peers[match->peer];
}

/* Little-endian. The last octet is the number of padding octets that follow the sample, up to a multiple of 4. A sample
 * in fragments has no padding. */
static void put_encapsulation(const tide_participant_t *participant, uint8_t *to, uint32_t size) {
  const uint8_t header[ENCAPSULATION_BYTES] = {0, 1, 0, size <= participant->fragment_bytes ? (0u - size) & 3u : 0};
  memcpy(to, header, sizeof header);
}

static void tell_of(tide_participant_t *participant, tide_rtps_event_kind_t kind, const tide_rtps_match_t *match,
                    int64_t count) {
  tell(participant, kind, match->local, peer_of(participant, match)->prefix, match->remote, count);
}

static void tell_lost(tide_participant_t *participant, const tide_rtps_match_t *match, int64_t count) {
  if (count == 0) return;
  participant->counters.lost += (uint32_t)count;
  tell_of(participant, TIDE_RTPS_EVENT_LOST, match, count);
}

/* Remote endpoints without a match are not stored, so they have to be announced again when a local endpoint is
 * added. */
static void fetch_again(tide_participant_t *participant, int kind, int64_t now) {
  for (size_t i = 0; i < participant->config.peer_count; i++)
    proxy_init(&participant->config.peers[i].writers[kind], 1, now);
}

static void release_match(tide_participant_t *participant, tide_rtps_match_t *match, int64_t now) {
  if (!match->local->is_writer) {
    tide_rtps_reader_t *reader = (tide_rtps_reader_t *)match->local;
    if (reader->assembly.match == match) reader->assembly.match = NULL;
  }
  if (match->policy == 0) tell_of(participant, TIDE_RTPS_EVENT_UNMATCHED, match, 0);
  match->local = NULL;
  if (participant->has_refused_match) {
    participant->has_refused_match = false;
    fetch_again(participant, PUBLICATIONS, now);
    fetch_again(participant, SUBSCRIPTIONS, now);
  }
}

/* Releases the participant's matches with this remote entity; entity 0: all its matches. */
static void release_matches(tide_participant_t *participant, const tide_rtps_peer_t *peer, uint32_t entity,
                            int64_t now) {
  const size_t index = (size_t)(peer - participant->config.peers);
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != NULL && match->peer == index && (entity == 0 || entity == match->remote))
      release_match(participant, match, now);
  }
}

static void release_peer(tide_participant_t *participant, tide_rtps_peer_t *peer, int64_t now) {
  release_matches(participant, peer, 0, now);
  peer->port = 0;
  participant->has_told_full = false;
}

/* From here on the participant is known, but none of its endpoints. */
static void begin_peer(tide_rtps_peer_t *peer, int64_t now) {
  peer->is_owed_announcement = true;
  peer->since_ns = now;
  peer->graph_reader = 0;
  for (int kind = PUBLICATIONS; kind <= SUBSCRIPTIONS; kind++) {
    proxy_init(&peer->writers[kind], 1, now);
    proxy_init(&peer->readers[kind], 1, now);
  }
}

static void restart_peer(tide_participant_t *participant, tide_rtps_peer_t *peer, int64_t now) {
  participant->counters.restarted++;
  release_matches(participant, peer, 0, now);
  begin_peer(peer, now);
}

static tide_rtps_peer_t *find_peer(tide_participant_t *participant, const uint8_t *prefix) {
  for (size_t i = 0; i < participant->config.peer_count; i++) {
    tide_rtps_peer_t *peer = &participant->config.peers[i];
    if (peer->port != 0 && memcmp(peer->prefix, prefix, TIDE_RTPS_PREFIX_BYTES) == 0) return peer;
  }
  return NULL;
}

static bool has_match(const tide_participant_t *participant, const tide_rtps_peer_t *peer) {
  for (size_t i = 0; i < participant->config.match_count; i++) {
    const tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != NULL && match->policy == 0 && &participant->config.peers[match->peer] == peer) return true;
  }
  return false;
}

static bool is_settled(const tide_rtps_peer_t *peer, int64_t now) {
  if (now - peer->since_ns > SETTLED_NS) return true;
  if (now - peer->since_ns < RESIDENCE_NS) return false;
  for (int kind = PUBLICATIONS; kind <= SUBSCRIPTIONS; kind++)
    if (!peer->writers[kind].answered || peer->writers[kind].next < peer->writers[kind].end) return false;
  return peer->graph_reader == 0 || peer->readers[GRAPH].due_ns == NEVER;
}

/* Returns a free entry. If there is none, it evicts the participant that has been in the table longest among those
 * without a match whose endpoints are all known. So in a domain with more participants than entries, each participant
 * gets an entry in turn. */
static tide_rtps_peer_t *free_peer(tide_participant_t *participant, int64_t now) {
  tide_rtps_peer_t *oldest = NULL;
  for (size_t i = 0; i < participant->config.peer_count; i++) {
    tide_rtps_peer_t *peer = &participant->config.peers[i];
    if (peer->port == 0) return peer;
    if ((oldest == NULL || peer->since_ns < oldest->since_ns) && is_settled(peer, now) && !has_match(participant, peer))
      oldest = peer;
  }
  if (oldest == NULL) return NULL;
  participant->counters.evicted++;
  const bool has_told = participant->has_told_full;
  release_peer(participant, oldest, now);
  participant->has_told_full = has_told;
  return oldest;
}

/* Returns a free entry. If there is none and the new pair is compatible, returns the entry of an incompatible pair. */
static tide_rtps_match_t *free_match(tide_participant_t *participant, bool compatible) {
  tide_rtps_match_t *found = NULL;
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local == NULL) return match;
    if (compatible && match->policy != 0) found = match;
  }
  return found;
}

/* ---- requests and replies ----
 *
 * rmw_fastrtps puts the identity of a request into the inline QoS of the request and its reply, rmw_cyclonedds into the
 * sample before the message: eight octets for the client, and the number of the request. In a GUID, the eight octets
 * stand at its beginning, and its entity is no reader. */

static bool has_identity(tide_participant_t *participant, const tide_rtps_match_t *match) {
  const char *topic = match->local->topic;
  return topic[0] == 'r' && (topic[1] == 'q' || topic[1] == 'r') && topic[2] == '/' &&
         is_of_vendor(peer_of(participant, match)->prefix, VENDOR_CYCLONE_DDS);
}

static uint64_t cyclone_client(const tide_participant_t *participant, const tide_guid_t *guid) {
  uint64_t client = 0;
  const bool is_own = memcmp(guid->prefix, participant->config.prefix, sizeof guid->prefix) == 0;
  /* the last octets of the prefix differ most between boards */
  for (size_t i = 0; i < sizeof client; i++) client = client << 8 | guid->prefix[is_own ? i + 4 : i];
  return is_own ? client ^ guid->entity : client;
}

/* Writes what precedes the message of a request or reply in its slot, as this match gets it. Returns the beginning. */
static const uint8_t *open_related(tide_participant_t *participant, const tide_rtps_match_t *match, int64_t number) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  const size_t index = (size_t)(number % writer->depth);
  const tide_rtps_sample_identity_t *related = &writer->related[index];
  uint8_t *start = writer->memory + index * writer->slot_bytes;
  if (!has_identity(participant, match)) {
    put_encapsulation(participant, start + IDENTITY_BYTES, writer->slots[index].bytes);
    return start + IDENTITY_BYTES;
  }
  put_encapsulation(participant, start, writer->slots[index].bytes + IDENTITY_BYTES);
  const bool is_request = match->local->topic[1] == 'q';
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, start + ENCAPSULATION_BYTES, IDENTITY_BYTES);
  tide_cdr_put_u64(&cdr, cyclone_client(participant, &related->guid));
  tide_cdr_put_u64(&cdr, (uint64_t)(is_request ? number : related->sequence));
  return start;
}

/* Takes the identity off a request or reply of Cyclone DDS. False: it is malformed. */
static bool take_identity(const tide_participant_t *participant, const tide_rtps_match_t *match,
                          tide_rtps_sample_t *sample) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes, sample->length, sample->big_endian);
  const uint64_t client = tide_cdr_get_u64(&cdr);
  const int64_t number = (int64_t)tide_cdr_get_u64(&cdr);
  if (cdr.status != TIDE_OK) return false;
  sample->bytes += IDENTITY_BYTES;
  sample->length -= IDENTITY_BYTES;
  const tide_guid_t own = tide_participant_guid(participant, match->local);
  if (match->local->topic[1] == 'q') {
    sample->identity.sequence = number;
  } else {
    sample->related.sequence = number;
  }
  if (match->local->topic[1] == 'r' && client == cyclone_client(participant, &own)) {
    sample->related.guid = own;
    return true;
  }
  sample->related.guid = (tide_guid_t){.entity = TIDE_RTPS_KIND_WRITER};
  for (size_t i = 0; i < sizeof client; i++) sample->related.guid.prefix[i] = (uint8_t)(client >> (56u - 8u * i));
  return true;
}

/* Size of the sample, with its encapsulation header, as this match gets it. */
static uint32_t size_for(tide_participant_t *participant, const tide_rtps_match_t *match, int64_t number) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  return writer->slots[number % writer->depth].bytes + (has_identity(participant, match) ? IDENTITY_BYTES : 0u);
}

/* The reader that the sample is for, if it is a reply and its client has named the reader; null: any reader. A request
 * has the GUID of the reader of its reply, which is a local one. */
static const tide_guid_t *addressee_of(const tide_participant_t *participant, const tide_rtps_writer_t *writer,
                                       int64_t number) {
  if (writer->related == NULL) return NULL;
  const tide_guid_t *guid = &writer->related[number % writer->depth].guid;
  const bool is_reader = (guid->entity & TIDE_RTPS_KIND_READER) != 0;
  return is_reader && memcmp(guid->prefix, participant->config.prefix, sizeof guid->prefix) != 0 ? guid : NULL;
}

/* Number of the first sample for this reader. A transient-local reader gets the oldest kept sample. Any other reader
 * gets the first sample that is held for it or, if there is none, the next new one. */
static int64_t first_for(const tide_participant_t *participant, tide_rtps_writer_t *writer,
                         const tide_rtps_endpoint_data_t *remote, int64_t now) {
  if (remote->qos.durability != 0) return writer->first;
  int64_t next = writer->last + 1;
  for (int64_t number = writer->last; writer->hold_ns != 0 && number >= writer->first; number--) {
    tide_rtps_slot_t *slot = &writer->slots[number % writer->depth];
    if (now - slot->written_ns >= writer->hold_ns) break;
    const tide_guid_t *addressee = addressee_of(participant, writer, number);
    if (addressee == NULL ? !slot->is_unheard : !tide_guid_equal(addressee, &remote->guid)) continue;
    next = number;
    slot->is_unheard = false;
  }
  return next;
}

/* True if one of the matched readers has the sample: a reliable reader acknowledged it, a best-effort one was sent it.
 * *count: number of the matched readers that the sample is for. */
static bool is_had(const tide_participant_t *participant, const tide_rtps_writer_t *writer, int64_t number,
                   size_t *count) {
  const tide_guid_t *addressee = addressee_of(participant, writer, number);
  bool found = false;
  *count = 0;
  for (size_t i = 0; i < participant->config.match_count; i++) {
    const tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != &writer->endpoint || match->policy != 0) continue;
    tide_guid_t reader = {.entity = match->remote};
    memcpy(reader.prefix, participant->config.peers[match->peer].prefix, sizeof reader.prefix);
    if (addressee != NULL && !tide_guid_equal(addressee, &reader)) continue;
    found |= (match->reliable ? match->proxy.next : match->proxy.end) > number;
    ++*count;
  }
  return found;
}

/* A request or reply goes, and nobody has it. */
static void lose_unheard(tide_participant_t *participant, const tide_rtps_writer_t *writer, int64_t number) {
  const tide_guid_t *addressee = addressee_of(participant, writer, number);
  participant->counters.unheard++;
  tell(participant, TIDE_RTPS_EVENT_UNHEARD, &writer->endpoint,
       addressee == NULL ? participant->config.prefix : addressee->prefix, addressee == NULL ? 0 : addressee->entity,
       number);
}

/* Gives up the requests and replies that have waited for their reader for hold_ns. */
static void lose_expired(tide_participant_t *participant, int64_t now) {
  participant->unheard_ns = NEVER;
  for (tide_rtps_endpoint_t *endpoint = participant->endpoints; endpoint != NULL; endpoint = endpoint->next) {
    const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)endpoint;
    if (!endpoint->is_writer || endpoint == &participant->graph || writer->hold_ns == 0) continue;
    for (int64_t number = writer->first; number <= writer->last; number++) {
      tide_rtps_slot_t *slot = &writer->slots[number % writer->depth];
      const int64_t until_ns = slot->written_ns + writer->hold_ns;
      if (slot->is_unheard && until_ns > now) participant->unheard_ns = earlier(participant->unheard_ns, until_ns);
      if (!slot->is_unheard || until_ns > now) continue;
      slot->is_unheard = false;
      lose_unheard(participant, writer, number);
    }
  }
}

static void match_endpoints(tide_participant_t *participant, tide_rtps_peer_t *peer, tide_rtps_endpoint_t *local,
                            const tide_rtps_endpoint_data_t *remote, int64_t now) {
  const uint16_t index = (uint16_t)(peer - participant->config.peers);
  const uint16_t port = remote->data.port != 0 ? remote->data.port : peer->data;
  const tide_rtps_qos_t *offered = local->is_writer ? &local->qos : &remote->qos;
  const tide_rtps_qos_t *requested = local->is_writer ? &remote->qos : &local->qos;
  const int policy = tide_rtps_incompatible(offered, requested);
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *known = &participant->config.matches[i];
    if (known->local != local || known->peer != index || known->remote != remote->guid.entity) continue;
    known->port = port;
    if (known->policy == policy) return;
    release_match(participant, known, now);
  }
  tide_rtps_match_t *match = free_match(participant, policy == 0);
  if (policy != 0) tell(participant, TIDE_RTPS_EVENT_INCOMPATIBLE, local, peer->prefix, remote->guid.entity, policy);
  if (match == NULL || port == 0) {
    if (policy != 0 || port == 0) return;
    participant->counters.matches_full++;
    participant->has_refused_match = true;
    tell(participant, TIDE_RTPS_EVENT_MATCHES_FULL, local, peer->prefix, remote->guid.entity, 0);
    return;
  }
  *match = (tide_rtps_match_t){.local = local, .remote = remote->guid.entity, .peer = index, .port = port};
  match->policy = (uint8_t)policy;
  match->reliable = requested->reliable;
  int64_t next = 1;
  if (local->is_writer) {
    match->wants_history = requested->durability != 0;
    if (policy == 0) next = first_for(participant, (tide_rtps_writer_t *)local, remote, now);
  }
  proxy_init(&match->proxy, next, match->reliable && policy == 0 ? now : NEVER);
  if (policy == 0) tell_of(participant, TIDE_RTPS_EVENT_MATCHED, match, 0);
}

/* ---- ros_discovery_info: which endpoints belong to which node ---- */

#define GRAPH_OVERHEAD_BYTES (20u + 16u + 28u + 32u) /* header, INFO_DST, DATA with encapsulation, HEARTBEAT */

static void put_gids(tide_cdr_t *cdr, const tide_participant_t *participant, const tide_rtps_node_t *node,
                     bool is_writer) {
  uint32_t count = 0;
  const tide_rtps_endpoint_t *endpoint;
  for (endpoint = participant->endpoints; endpoint != NULL; endpoint = endpoint->next)
    count += endpoint->node == node && endpoint->is_writer == is_writer;
  tide_cdr_put_u32(cdr, count);
  for (endpoint = participant->endpoints; endpoint != NULL; endpoint = endpoint->next) {
    const tide_guid_t guid = tide_participant_guid(participant, endpoint);
    if (endpoint->node == node && endpoint->is_writer == is_writer) tide_rtps_put_guid(cdr, &guid);
  }
}

/* rmw_dds_common/msg/ParticipantEntitiesInfo */
static void put_entities(tide_cdr_t *cdr, const tide_participant_t *participant) {
  tide_guid_t own = {.entity = TIDE_RTPS_ENTITY_PARTICIPANT};
  memcpy(own.prefix, participant->config.prefix, sizeof own.prefix);
  uint32_t count = 0;
  const tide_rtps_node_t *node;
  for (node = participant->nodes; node != NULL; node = node->next) count++;
  tide_rtps_put_guid(cdr, &own);
  tide_cdr_put_u32(cdr, count);
  for (node = participant->nodes; node != NULL; node = node->next) {
    tide_cdr_put_string(cdr, node->name_space, strlen(node->name_space));
    tide_cdr_put_string(cdr, node->name, strlen(node->name));
    put_gids(cdr, participant, node, false);
    put_gids(cdr, participant, node, true);
  }
}

static bool graph_fits(const tide_participant_t *participant) {
  tide_cdr_t cdr;
  tide_cdr_measure(&cdr);
  put_entities(&cdr, participant);
  return cdr.position <= participant->config.datagram_bytes - GRAPH_OVERHEAD_BYTES;
}

/* The graph sample is built from the present graph when it is sent. Earlier samples are not kept, so requests for them
 * are dropped. */
static void change_graph(tide_participant_t *participant) {
  if (participant->graph.topic == NULL) return;
  const int64_t number = ++participant->announced[GRAPH];
  for (size_t i = 0; i < participant->config.peer_count; i++) {
    participant->config.peers[i].readers[GRAPH].requested = 0;
    participant->config.peers[i].readers[GRAPH].end = number;
  }
}

static void match_graph(const tide_participant_t *participant, tide_rtps_peer_t *peer,
                        const tide_rtps_endpoint_data_t *remote, int64_t now) {
  peer->graph_port = remote->data.port != 0 ? remote->data.port : peer->data;
  if (peer->graph_reader == remote->guid.entity || !remote->qos.reliable ||
      tide_rtps_incompatible(&participant->graph.qos, &remote->qos) != 0)
    return;
  peer->graph_reader = remote->guid.entity;
  proxy_init(&peer->readers[GRAPH], participant->announced[GRAPH], now);
}

/* ---- the program's calls ---- */

int tide_participant_init(tide_participant_t *participant, const tide_participant_config_t *config, int64_t now) {
  if (config->peers == NULL || config->peer_count == 0 || config->matches == NULL || config->match_count == 0 ||
      config->participant >= 120 || config->domain > 232 || (config->known_count != 0 && config->known == NULL) ||
      (config->datagram_bytes != 0 && config->datagram_bytes < TIDE_RTPS_DATAGRAM_BYTES_MINIMUM))
    return TIDE_ERROR_ARGUMENT;
  *participant = (tide_participant_t){.config = *config, .announce_ns = now, .unheard_ns = NEVER};
  tide_participant_config_t *own = &participant->config;
  if (own->lease_ns == 0) own->lease_ns = LEASE_NS;
  if (own->user_data == NULL) own->user_data = "enclave=/;";
  if (own->datagram_bytes == 0) own->datagram_bytes = TIDE_RTPS_DATAGRAM_BYTES;
  participant->fragment_bytes = (uint16_t)((own->datagram_bytes - TIDE_RTPS_OVERHEAD_BYTES) & ~3u);
  memset(own->peers, 0, own->peer_count * sizeof *own->peers);
  memset(own->matches, 0, own->match_count * sizeof *own->matches);
  return TIDE_OK;
}

static void put_endpoint(tide_cdr_t *cdr, const tide_participant_t *participant, const tide_rtps_endpoint_t *endpoint) {
  const tide_participant_config_t *config = &participant->config;
  tide_rtps_endpoint_data_t data = {.guid = tide_participant_guid(participant, endpoint),
                                    .topic = text_of(endpoint->topic),
                                    .type = text_of(endpoint->type),
                                    .type_hash = text_of(endpoint->type_hash),
                                    .qos = endpoint->qos};
  memcpy(data.data.address, config->address, sizeof config->address);
  data.data.port = (uint16_t)TIDE_RTPS_PORT_DISCOVERY(config->domain, config->participant);
  tide_rtps_put_endpoint(cdr, &data);
}

static void link_endpoint(tide_participant_t *participant, tide_rtps_endpoint_t *endpoint, bool is_writer) {
  endpoint->is_writer = is_writer;
  endpoint->entity = ++participant->entities << 8 | (is_writer ? TIDE_RTPS_KIND_WRITER : TIDE_RTPS_KIND_READER);
  endpoint->number = ++participant->announced[is_writer ? PUBLICATIONS : SUBSCRIPTIONS];
  endpoint->next = participant->endpoints;
  participant->endpoints = endpoint;
}

static int add_endpoint(tide_participant_t *participant, tide_rtps_endpoint_t *endpoint, bool is_writer, int64_t now) {
  if (endpoint->topic == NULL || endpoint->type == NULL) return TIDE_ERROR_ARGUMENT;
  if (participant->entities >= UINT16_MAX) return TIDE_ERROR_FULL;
  tide_cdr_t cdr;
  tide_cdr_measure(&cdr);
  put_endpoint(&cdr, participant, endpoint);
  if (cdr.position > LIST_BYTES) return TIDE_ERROR_TOO_LARGE;
  link_endpoint(participant, endpoint, is_writer);
  if (endpoint->node != NULL && !graph_fits(participant)) {
    participant->endpoints = endpoint->next;
    participant->announced[is_writer ? PUBLICATIONS : SUBSCRIPTIONS]--;
    return TIDE_ERROR_TOO_LARGE;
  }
  if (endpoint->node != NULL) change_graph(participant);
  fetch_again(participant, is_writer ? SUBSCRIPTIONS : PUBLICATIONS, now);
  return TIDE_OK;
}

int tide_participant_add_node(tide_participant_t *participant, tide_rtps_node_t *node, int64_t now) {
  if (node->name == NULL || node->name_space == NULL) return TIDE_ERROR_ARGUMENT;
  node->next = participant->nodes;
  participant->nodes = node;
  if (!graph_fits(participant)) {
    participant->nodes = node->next;
    return TIDE_ERROR_TOO_LARGE;
  }
  if (participant->graph.topic == NULL) {
    participant->graph.topic = "ros_discovery_info";
    participant->graph.type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
    participant->graph.type_hash = "RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e";
    participant->graph.qos = tide_rtps_qos_default();
    participant->graph.qos.durability = 1;
    link_endpoint(participant, &participant->graph, true);
    fetch_again(participant, SUBSCRIPTIONS, now);
  }
  change_graph(participant);
  return TIDE_OK;
}

void tide_participant_remove_node(tide_participant_t *participant, const tide_rtps_node_t *node) {
  tide_rtps_node_t **link = &participant->nodes;
  while (*link != NULL && *link != node) link = &(*link)->next;
  if (*link == NULL) return;
  *link = node->next;
  change_graph(participant);
}

int tide_participant_add_writer(tide_participant_t *participant, tide_rtps_writer_t *writer, int64_t now) {
  if (writer->slots == NULL || writer->memory == NULL || writer->depth == 0 ||
      writer->slot_bytes <= ENCAPSULATION_BYTES)
    return TIDE_ERROR_ARGUMENT;
  if (writer->slot_bytes / participant->fragment_bytes >= UINT16_MAX) return TIDE_ERROR_TOO_LARGE;
  writer->first = 1;
  writer->last = 0;
  return add_endpoint(participant, &writer->endpoint, true, now);
}

int tide_participant_add_reader(tide_participant_t *participant, tide_rtps_reader_t *reader, int64_t now) {
  if (reader->sample == NULL) return TIDE_ERROR_ARGUMENT;
  reader->assembly.match = NULL;
  return add_endpoint(participant, &reader->endpoint, false, now);
}

void tide_participant_remove(tide_participant_t *participant, tide_rtps_endpoint_t *endpoint, int64_t now) {
  const int kind = endpoint->is_writer ? PUBLICATIONS : SUBSCRIPTIONS;
  tide_rtps_endpoint_t **link = &participant->endpoints;
  while (*link != NULL && *link != endpoint) link = &(*link)->next;
  if (*link == NULL) return;
  *link = endpoint->next;
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local == endpoint) release_match(participant, match, now);
  }
  const int64_t number = ++participant->announced[kind];
  participant->removed[kind][number % 4].number = number;
  participant->removed[kind][number % 4].entity = endpoint->entity;
  if (endpoint->node != NULL) change_graph(participant);
}

uint8_t *tide_participant_write_begin(tide_participant_t *participant, tide_rtps_writer_t *writer, size_t bytes) {
  if (bytes > writer->slot_bytes - ENCAPSULATION_BYTES) return NULL;
  const int64_t number = writer->last + 1, first = writer->first;
  writer->first = later(first, number + 1 - writer->depth);
  if (writer->hold_ns != 0 && writer->first > first) {
    size_t readers;
    tide_rtps_slot_t *slot = &writer->slots[first % writer->depth];
    const bool is_had_by_one = is_had(participant, writer, first, &readers);
    if (slot->is_unheard || (readers != 0 && !is_had_by_one)) lose_unheard(participant, writer, first);
    slot->is_unheard = false;
  }
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != &writer->endpoint || match->policy != 0 || match->proxy.end >= writer->first) continue;
    participant->counters.overwritten += (uint32_t)(writer->first - match->proxy.end);
    match->proxy.end = writer->first;
    match->fragment = 0;
    if (!match->reliable) match->proxy.next = match->proxy.end;
  }
  return writer->memory + (size_t)(number % writer->depth) * writer->slot_bytes + ENCAPSULATION_BYTES;
}

int64_t tide_participant_write_end(tide_participant_t *participant, tide_rtps_writer_t *writer, size_t length,
                                   const tide_rtps_sample_identity_t *related, int64_t now) {
  const int64_t number = ++writer->last;
  const size_t index = (size_t)(number % writer->depth);
  uint8_t *slot = writer->memory + index * writer->slot_bytes;
  const uint32_t bytes = (uint32_t)(length + ENCAPSULATION_BYTES);
  const uint32_t identity_bytes = writer->related == NULL ? 0u : IDENTITY_BYTES;
  TIDE_INVARIANT(bytes + identity_bytes <= writer->slot_bytes);
  if (identity_bytes == 0u) put_encapsulation(participant, slot, bytes);
  if (identity_bytes != 0u) memmove(slot + ENCAPSULATION_BYTES + IDENTITY_BYTES, slot + ENCAPSULATION_BYTES, length);
  writer->slots[index].bytes = bytes;
  writer->slots[index].source_ns = participant->wall_ns == 0 ? 0 : participant->wall_ns + now;
  writer->slots[index].written_ns = now;
  if (writer->related != NULL) writer->related[index] = related == NULL ? (tide_rtps_sample_identity_t){0} : *related;
  if (writer->hold_ns != 0) {
    size_t readers;
    (void)is_had(participant, writer, number, &readers);
    writer->slots[index].is_unheard = readers == 0;
    if (readers == 0) participant->unheard_ns = earlier(participant->unheard_ns, now + writer->hold_ns);
  }
  return number;
}

tide_guid_t tide_participant_guid(const tide_participant_t *participant, const tide_rtps_endpoint_t *endpoint) {
  tide_guid_t guid = {.entity = endpoint->entity};
  memcpy(guid.prefix, participant->config.prefix, sizeof guid.prefix);
  return guid;
}

bool tide_participant_is_acknowledged(const tide_participant_t *participant, const tide_rtps_writer_t *writer) {
  for (size_t i = 0; i < participant->config.match_count; i++) {
    const tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local == &writer->endpoint && match->policy == 0 && match->reliable && match->proxy.next <= writer->last)
      return false;
  }
  return true;
}

size_t tide_participant_matched(const tide_participant_t *participant, const tide_rtps_endpoint_t *endpoint) {
  size_t count = 0;
  for (size_t i = 0; i < participant->config.match_count; i++)
    count += participant->config.matches[i].local == endpoint && participant->config.matches[i].policy == 0;
  return count;
}

void tide_participant_resume(tide_participant_t *participant, const tide_rtps_reader_t *reader, int64_t now) {
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local == &reader->endpoint && match->policy == 0 && match->reliable && match->is_refused) {
      match->is_refused = false;
      match->proxy.tries = 0;
      match->proxy.due_ns = now;
    }
  }
}

void tide_participant_leave(tide_participant_t *participant, int64_t now) {
  participant->is_leaving = true;
  participant->announcement = 0;
  participant->announce_ns = now;
}

/* ---- received messages ---- */

static void take_announcement(tide_participant_t *participant, const uint8_t *prefix, const uint8_t *address,
                              const tide_rtps_data_t *data, int64_t now) {
  tide_rtps_peer_t *peer = find_peer(participant, prefix);
  if ((data->status & STATUS_GONE) != 0) {
    if (peer != NULL && memcmp(peer->address, address, sizeof peer->address) == 0) release_peer(participant, peer, now);
    return;
  }
  tide_rtps_participant_data_t remote;
  if (tide_rtps_get_participant(data->payload, data->payload_bytes, address, &remote) != TIDE_OK ||
      memcmp(remote.guid.prefix, prefix, TIDE_RTPS_PREFIX_BYTES) != 0) {
    participant->counters.malformed++;
    return;
  }
  if ((remote.has_domain && remote.domain != participant->config.domain) || remote.discovery.port == 0) return;
  if (peer == NULL) {
    peer = free_peer(participant, now);
    if (peer == NULL) {
      participant->counters.peers_full++;
      if (!participant->has_told_full) tell(participant, TIDE_RTPS_EVENT_PEERS_FULL, NULL, prefix, 0, 0);
      participant->has_told_full = true;
      return;
    }
    *peer = (tide_rtps_peer_t){0};
    memcpy(peer->prefix, prefix, sizeof peer->prefix);
    memcpy(peer->address, address, sizeof peer->address);
    begin_peer(peer, now);
  } else if (memcmp(peer->address, address, sizeof peer->address) != 0) {
    return; /* another address of the same host, on another network: one address is enough */
  }
  peer->port = remote.discovery.port;
  peer->data = remote.data.port;
  peer->lease_ns = remote.lease_ns;
  peer->expires_ns = remote.lease_ns < NEVER - now ? now + remote.lease_ns : NEVER;
  for (int kind = PUBLICATIONS; kind <= GRAPH; kind++) {
    if (kind != GRAPH) revive(&peer->writers[kind], now);
    revive(&peer->readers[kind], now);
  }
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != NULL && match->policy == 0 && match->reliable && peer_of(participant, match) == peer)
      revive(&match->proxy, now);
  }
}

static void take_endpoint(tide_participant_t *participant, tide_rtps_peer_t *peer, int kind,
                          const tide_rtps_data_t *data, int64_t now) {
  tide_rtps_endpoint_data_t remote = {.guid = data->key_hash};
  int status = TIDE_OK;
  if (!data->has_key_hash || (data->status & STATUS_GONE) == 0)
    status = tide_rtps_get_endpoint(data->payload, data->payload_bytes, kind == PUBLICATIONS, peer->address, &remote);
  const bool is_gone = (data->status & STATUS_GONE) != 0;
  if (memcmp(remote.guid.prefix, peer->prefix, TIDE_RTPS_PREFIX_BYTES) != 0 || remote.guid.entity == 0 ||
      (status != TIDE_OK && !is_gone)) {
    participant->counters.malformed++;
    return;
  }
  if (is_gone) {
    release_matches(participant, peer, remote.guid.entity, now);
    if (peer->graph_reader == remote.guid.entity) peer->graph_reader = 0;
    return;
  }
  for (tide_rtps_endpoint_t *local = participant->endpoints; local != NULL; local = local->next) {
    if (local->is_writer != (kind == SUBSCRIPTIONS) || !text_equals(remote.topic, local->topic) ||
        !text_equals(remote.type, local->type))
      continue;
    if (local == &participant->graph) {
      match_graph(participant, peer, &remote, now);
    } else {
      match_endpoints(participant, peer, local, &remote, now);
    }
  }
}

/* bytes: the sample with its encapsulation header, in the datagram or assembled from fragments. False: the program has
 * no room for it. */
static bool deliver(tide_participant_t *participant, const tide_rtps_match_t *match, const tide_rtps_data_t *data,
                    const uint8_t *bytes, int64_t source_ns) {
  const tide_rtps_reader_t *reader = (const tide_rtps_reader_t *)match->local;
  const size_t length = data->sample_bytes;
  if (bytes == NULL || data->is_key) return true; /* says that an instance is gone; ROS 2 has no instances */
  const size_t padding = length < ENCAPSULATION_BYTES ? 0 : bytes[3] & 3u;
  if (length < ENCAPSULATION_BYTES + padding || bytes[0] != 0 || bytes[1] > 1) {
    participant->counters.unsupported++;
    return true;
  }
  tide_rtps_sample_t sample = {.bytes = bytes + ENCAPSULATION_BYTES,
                               .length = length - ENCAPSULATION_BYTES - padding,
                               .big_endian = bytes[1] == 0,
                               .identity = {.guid = {.entity = match->remote}, .sequence = data->sequence},
                               .related = data->related,
                               .source_ns = source_ns};
  memcpy(sample.identity.guid.prefix, peer_of(participant, match)->prefix, TIDE_RTPS_PREFIX_BYTES);
  if (has_identity(participant, match) && !take_identity(participant, match, &sample)) {
    participant->counters.malformed++;
    return true;
  }
  if (sample.related.guid.entity == 0) sample.related.guid = sample.identity.guid;
  if (reader->sample(reader->endpoint.context, &sample)) return true;
  participant->counters.refused++;
  return false;
}

/* Moves on past this sample, which was delivered or never will be. */
static void pass(tide_participant_t *participant, tide_rtps_match_t *match, int64_t sequence, int64_t now) {
  tide_rtps_reader_t *reader = (tide_rtps_reader_t *)match->local;
  if (!match->reliable && match->proxy.answered) tell_lost(participant, match, sequence - match->proxy.next);
  if (reader->assembly.match == match) reader->assembly.match = NULL;
  if (match->reliable) {
    match->is_refused = false;
    proxy_advance(&match->proxy, sequence + 1, now);
  } else {
    match->proxy.next = sequence + 1;
    match->proxy.answered = true;
  }
}

/* Takes a complete sample. If it is refused and its writer is reliable, it counts as missing and is requested again. */
static void take_whole(tide_participant_t *participant, tide_rtps_match_t *match, const tide_rtps_data_t *data,
                       const uint8_t *bytes, int64_t source_ns, int64_t now) {
  tide_rtps_reader_t *reader = (tide_rtps_reader_t *)match->local;
  if (!match->reliable) {
    pass(participant, match, data->sequence, now);
    (void)deliver(participant, match, data, bytes, source_ns);
  } else if (deliver(participant, match, data, bytes, source_ns)) {
    pass(participant, match, data->sequence, now);
  } else {
    if (reader->assembly.match == match) reader->assembly.match = NULL;
    match->is_refused = true;
    match->proxy.end = later(match->proxy.end, data->sequence + 1);
    match->proxy.owes_answer = false;
    match->proxy.due_ns = now + retry_ns(&match->proxy);
  }
}

static void take_fragments(tide_participant_t *participant, tide_rtps_match_t *match, const tide_rtps_data_t *data,
                           int64_t source_ns, int64_t now) {
  tide_rtps_reader_t *reader = (tide_rtps_reader_t *)match->local;
  const uint32_t count = (data->sample_bytes - 1) / data->fragment_bytes + 1;
  if (data->sample_bytes > reader->memory_bytes || reader->memory == NULL || count > TIDE_RTPS_FRAGMENTS) {
    participant->counters.too_large++;
    tell_of(participant, TIDE_RTPS_EVENT_TOO_LARGE, match, data->sample_bytes);
    pass(participant, match, data->sequence, now);
    return;
  }
  if (reader->assembly.match != match || reader->assembly.sequence != data->sequence ||
      reader->assembly.sample_bytes != data->sample_bytes || reader->assembly.fragment_bytes != data->fragment_bytes) {
    /* A reliable writer's sample is finished first, unless its fragments have stopped. */
    const tide_rtps_match_t *other = reader->assembly.match;
    if (other != NULL && other != match && other->reliable && now - reader->assembly.progress_ns < 1000 * MS) return;
    if (other == match && data->sequence < reader->assembly.sequence) return;
    memset(&reader->assembly, 0, sizeof reader->assembly);
    reader->assembly.match = match;
    reader->assembly.sequence = data->sequence;
    reader->assembly.sample_bytes = data->sample_bytes;
    reader->assembly.fragment_bytes = data->fragment_bytes;
  }
  reader->assembly.progress_ns = now;
  size_t taken = 0;
  for (uint32_t i = data->first_fragment - 1; taken < data->payload_bytes; i++) {
    const size_t left = data->payload_bytes - taken;
    const size_t bytes = left < data->fragment_bytes ? left : data->fragment_bytes;
    memcpy(reader->memory + (size_t)i * data->fragment_bytes, data->payload + taken, bytes);
    taken += bytes;
    if ((reader->assembly.bitmap[i / 32] >> i % 32 & 1u) != 0) continue;
    reader->assembly.bitmap[i / 32] |= 1u << i % 32;
    reader->assembly.received++;
  }
  if (match->reliable) {
    match->proxy.end = later(match->proxy.end, data->sequence + 1);
    match->proxy.tries = 0;
    if (!match->proxy.owes_answer) match->proxy.due_ns = now + RETRY_NS;
  }
  if (reader->assembly.received < count) return;
  take_whole(participant, match, data, reader->memory, source_ns, now);
}

static void take_sample(tide_participant_t *participant, tide_rtps_match_t *match, const tide_rtps_data_t *data,
                        int64_t source_ns, int64_t now) {
  tide_rtps_proxy_t *proxy = &match->proxy;
  if (data->sequence < proxy->next) {
    participant->counters.duplicates++;
  } else if (match->reliable && data->sequence > proxy->next) {
    participant->counters.ahead++;
    proxy_ahead(proxy, data->sequence, now);
  } else if (data->fragment_bytes != 0) {
    take_fragments(participant, match, data, source_ns, now);
  } else {
    take_whole(participant, match, data, data->payload, source_ns, now);
  }
}

static void take_data(tide_participant_t *participant, tide_rtps_peer_t *peer, const tide_rtps_data_t *data,
                      int64_t source_ns, int64_t now) {
  for (int kind = PUBLICATIONS; kind <= SUBSCRIPTIONS; kind++) {
    if (data->writer != builtin_writer[kind]) continue;
    tide_rtps_proxy_t *proxy = &peer->writers[kind];
    if (data->fragment_bytes != 0 || data->sequence < proxy->next) return;
    if (data->sequence > proxy->next) {
      proxy_ahead(proxy, data->sequence, now);
      return;
    }
    proxy_advance(proxy, data->sequence + 1, now); /* done first, because take_endpoint may cause all announcements to
                                                    * be fetched again */
    take_endpoint(participant, peer, kind, data, now);
    return;
  }
  const size_t index = (size_t)(peer - participant->config.peers);
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local != NULL && !match->local->is_writer && match->policy == 0 && match->peer == index &&
        match->remote == data->writer && (data->reader == 0 || data->reader == match->local->entity))
      take_sample(participant, match, data, source_ns, now);
  }
}

static void take_fragment_request(tide_participant_t *participant, tide_rtps_match_t *match,
                                  const tide_rtps_repair_t *repair) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  tide_rtps_proxy_t *proxy = &match->proxy;
  const int64_t ahead = repair->first - proxy->next;
  if (ahead < 0 || ahead >= 32 || repair->first >= proxy->end || repair->first < writer->first) return;
  /* One sample at a time is repaired, the lowest first; the reader asks again for the others. */
  if ((proxy->requested & ((1u << ahead) - 1u)) != 0) return;
  const uint32_t bytes = size_for(participant, match, repair->first);
  const int64_t count = bytes <= participant->fragment_bytes ? 0 : (bytes - 1) / participant->fragment_bytes + 1;
  if (repair->set.base == 0 || repair->set.base > count) return;
  match->repair_fragment = (uint16_t)(repair->set.base - 1);
  match->repair_bits = 0;
  for (uint32_t bit = 0; bit < 32 && repair->set.base + bit <= count; bit++)
    if (tide_rtps_set_has(&repair->set, repair->set.base + bit)) match->repair_bits |= 1u << bit;
  if (match->repair_bits != 0) proxy->requested |= 1u << ahead;
}

static void take_repair(tide_participant_t *participant, tide_rtps_peer_t *peer, const tide_rtps_repair_t *repair,
                        int64_t now) {
  const bool is_of_writer = repair->id != TIDE_RTPS_ACKNACK && repair->id != TIDE_RTPS_NACK_FRAG;
  verdict_t verdict = NEW;
  int64_t lost;
  for (int kind = PUBLICATIONS; kind <= SUBSCRIPTIONS; kind++) {
    if (repair->writer != builtin_writer[kind]) continue;
    if (repair->id == TIDE_RTPS_HEARTBEAT) verdict = on_heartbeat(&peer->writers[kind], repair, now, &lost);
    if (repair->id == TIDE_RTPS_GAP) on_gap(&peer->writers[kind], repair, now);
    if (repair->id == TIDE_RTPS_ACKNACK)
      verdict = on_acknack(&peer->readers[kind], repair, 1, participant->announced[kind], true, now);
    if (verdict == RESTARTED) restart_peer(participant, peer, now);
    return;
  }
  if (peer->graph_reader != 0 && repair->writer == participant->graph.entity && repair->reader == peer->graph_reader) {
    const int64_t last = participant->announced[GRAPH];
    if (repair->id == TIDE_RTPS_ACKNACK) verdict = on_acknack(&peer->readers[GRAPH], repair, last, last, true, now);
    if (verdict == RESTARTED) restart_peer(participant, peer, now);
    return;
  }
  const size_t index = (size_t)(peer - participant->config.peers);
  for (size_t i = 0; i < participant->config.match_count; i++) {
    tide_rtps_match_t *match = &participant->config.matches[i];
    if (match->local == NULL || match->policy != 0 || !match->reliable || match->peer != index ||
        match->local->is_writer == is_of_writer)
      continue;
    const uint32_t here = is_of_writer ? repair->reader : repair->writer;
    const uint32_t there = is_of_writer ? repair->writer : repair->reader;
    if (match->remote != there || (match->local->entity != here && !(is_of_writer && here == 0))) continue;
    tide_rtps_proxy_t *proxy = &match->proxy;
    if (repair->id == TIDE_RTPS_ACKNACK) {
      const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
      const int64_t next = proxy->next, end = proxy->end;
      verdict = on_acknack(proxy, repair, writer->first, writer->last, match->wants_history, now);
      if (proxy->next != next || (proxy->requested & 1u) == 0) {
        match->repair_bits = 0;
        match->repair_fragment = 0;
      }
      if (proxy->end != end) match->fragment = 0;
    } else if (repair->id == TIDE_RTPS_NACK_FRAG) {
      take_fragment_request(participant, match, repair);
    } else if (repair->id == TIDE_RTPS_HEARTBEAT_FRAG) {
      if (repair->first >= proxy->next) proxy_ahead(proxy, repair->first, now);
    } else {
      const int64_t next = proxy->next;
      tide_rtps_reader_t *reader = (tide_rtps_reader_t *)match->local;
      lost = 0;
      if (repair->id == TIDE_RTPS_GAP) on_gap(proxy, repair, now);
      const int64_t due = proxy->due_ns;
      if (repair->id == TIDE_RTPS_HEARTBEAT) verdict = on_heartbeat(proxy, repair, now, &lost);
      if (match->is_refused) { /* an answer would request the refused sample at once, so the answer waits */
        proxy->owes_answer = false;
        proxy->due_ns = due;
      }
      if (proxy->next != next && reader->assembly.match == match) reader->assembly.match = NULL;
      tell_lost(participant, match, lost);
    }
    if (verdict == RESTARTED) {
      restart_peer(participant, peer, now);
      return;
    }
  }
}

void tide_participant_receive(tide_participant_t *participant, const uint8_t *bytes, size_t length,
                              const uint8_t address[4], int64_t now) {
  const tide_participant_config_t *config = &participant->config;
  const uint8_t *prefix = NULL;
  if (tide_rtps_get_header(bytes, length, &prefix) != TIDE_OK) {
    participant->counters.malformed++;
    return;
  }
  if (participant->is_leaving || memcmp(prefix, config->prefix, TIDE_RTPS_PREFIX_BYTES) == 0) return;
  tide_rtps_submessage_t submessage;
  size_t position = TIDE_RTPS_HEADER_BYTES;
  bool is_for_us = true, is_strange = false;
  int64_t source_ns = 0;
  int status;
  while ((status = tide_rtps_next(bytes, length, &position, &submessage)) == 1) {
    tide_cdr_t cdr;
    tide_rtps_data_t data;
    tide_rtps_repair_t repair;
    tide_rtps_peer_t *peer = find_peer(participant, prefix);
    const bool is_known = peer != NULL && memcmp(peer->address, address, sizeof peer->address) == 0;
    tide_rtps_open(&cdr, &submessage);
    switch (submessage.id) {
      case TIDE_RTPS_INFO_DST: {
        static const uint8_t all[TIDE_RTPS_PREFIX_BYTES];
        const uint8_t *to = tide_cdr_view(&cdr, TIDE_RTPS_PREFIX_BYTES);
        is_for_us = to != NULL && (memcmp(to, all, sizeof all) == 0 || memcmp(to, config->prefix, sizeof all) == 0);
        break;
      }
      case TIDE_RTPS_INFO_TS:
        source_ns = (submessage.flags & TIDE_RTPS_FLAG_INVALIDATE) != 0 ? 0 : tide_rtps_get_timestamp(&cdr);
        break;
      case TIDE_RTPS_INFO_SRC:
        is_for_us = false; /* a relay sent this: the rest of the message comes from another participant */
        break;
      case TIDE_RTPS_DATA:
      case TIDE_RTPS_DATA_FRAG:
        tide_rtps_get_data(&cdr, &submessage, &data);
        if (cdr.status != TIDE_OK || !is_for_us || data.sequence == INT64_MAX) break;
        if (data.writer == TIDE_RTPS_ENTITY_SPDP_WRITER) {
          take_announcement(participant, prefix, address, &data, now);
        } else if (is_known) {
          take_data(participant, peer, &data, source_ns, now);
        } else {
          is_strange = true;
        }
        break;
      case TIDE_RTPS_ACKNACK:
      case TIDE_RTPS_HEARTBEAT:
      case TIDE_RTPS_HEARTBEAT_FRAG:
      case TIDE_RTPS_NACK_FRAG:
      case TIDE_RTPS_GAP:
        tide_rtps_get_repair(&cdr, &submessage, &repair);
        if (cdr.status != TIDE_OK || !is_for_us) break;
        if (is_known) take_repair(participant, peer, &repair, now);
        is_strange |= !is_known;
        break;
      default: /* kinds of later versions and of vendors */ break;
    }
    if (cdr.status != TIDE_OK) participant->counters.malformed++;
    if (is_known && is_for_us && peer->port != 0)
      peer->expires_ns = peer->lease_ns < NEVER - now ? now + peer->lease_ns : NEVER;
  }
  if (status < 0) participant->counters.malformed++;
  if (is_strange) participant->counters.strange++;
}

/* ---- sent messages ---- */

static void open_message(tide_cdr_t *cdr, const tide_participant_t *participant, tide_rtps_datagram_t *datagram) {
  tide_cdr_writer(cdr, datagram->bytes, participant->config.datagram_bytes);
  tide_rtps_put_header(cdr, participant->config.prefix);
}

static void open_message_to(tide_cdr_t *cdr, const tide_participant_t *participant, const tide_rtps_peer_t *peer,
                            uint16_t port, tide_rtps_datagram_t *datagram) {
  open_message(cdr, participant, datagram);
  tide_rtps_put_info_dst(cdr, peer->prefix);
  memcpy(datagram->to.address, peer->address, sizeof peer->address);
  datagram->to.port = port;
}

static void put_heartbeat(tide_cdr_t *cdr, tide_participant_t *participant, tide_rtps_proxy_t *proxy, uint32_t writer,
                          uint32_t reader, int64_t first, int64_t now) {
  const tide_rtps_repair_t heartbeat = {.id = TIDE_RTPS_HEARTBEAT,
                                        .writer = writer,
                                        .reader = reader,
                                        .first = first,
                                        .last = proxy->end - 1, /* unsent samples need not be requested */
                                        .count = ++participant->count};
  tide_rtps_put_repair(cdr, &heartbeat);
  proxy_await(proxy, now);
}

/* assembling: the reader that has fragments of the expected sample, or null. */
static void put_acknack(tide_cdr_t *cdr, tide_participant_t *participant, const tide_rtps_peer_t *peer,
                        tide_rtps_proxy_t *proxy, uint32_t writer, uint32_t reader,
                        const tide_rtps_reader_t *assembling, int64_t now) {
  tide_rtps_repair_t acknack = {.id = TIDE_RTPS_ACKNACK, .writer = writer, .reader = reader};
  /* Fast DDS repeats acknowledged samples only after an ACKNACK with a base of 0. That ACKNACK may have been lost, so
   * it is sent again at every second try. Cyclone DDS refuses this base, which the specification does not permit. */
  const bool takes_zero = is_of_vendor(peer->prefix, VENDOR_FAST_DDS) || is_of_vendor(peer->prefix, TIDE_RTPS_VENDOR);
  const bool is_anew = takes_zero && (!proxy->answered || (proxy->next == 1 && proxy->tries % 2 != 0));
  if (!is_anew) {
    acknack.set.base = proxy->next;
    acknack.final = proxy->answered;
    if (assembling == NULL) {
      for (int64_t n = proxy->next; n < proxy->end && n - proxy->next < TIDE_RTPS_SET_BITS; n++)
        tide_rtps_set_add(&acknack.set, n);
    }
  }
  acknack.count = ++participant->count;
  tide_rtps_put_repair(cdr, &acknack);
  if (assembling != NULL) {
    tide_rtps_repair_t fragments = {.id = TIDE_RTPS_NACK_FRAG, .writer = writer, .reader = reader};
    fragments.first = proxy->next;
    fragments.count = participant->count;
    const uint32_t count = (assembling->assembly.sample_bytes - 1) / assembling->assembly.fragment_bytes + 1;
    for (uint32_t i = 0; i < count; i++) {
      if ((assembling->assembly.bitmap[i / 32] >> i % 32 & 1u) != 0) continue;
      if (fragments.set.base == 0) fragments.set.base = i + 1;
      tide_rtps_set_add(&fragments.set, i + 1);
    }
    tide_rtps_put_repair(cdr, &fragments);
  }
  proxy->owes_answer = false;
  if (proxy->answered && proxy->next >= proxy->end) {
    proxy->due_ns = NEVER;
  } else {
    proxy_await(proxy, now);
  }
}

static const uint8_t follows[1]; /* marks a payload that is written directly behind its DATA header */

/* Announces the endpoint with this number, or announces that the endpoint is gone. */
static void put_announced(tide_cdr_t *cdr, const tide_participant_t *participant, int kind, int64_t number) {
  const size_t start = cdr->position;
  tide_rtps_data_t data = {.reader = builtin_reader[kind], .writer = builtin_writer[kind], .sequence = number};
  const tide_rtps_endpoint_t *endpoint = participant->endpoints;
  while (endpoint != NULL && (endpoint->number != number || endpoint->is_writer != (kind == PUBLICATIONS)))
    endpoint = endpoint->next;
  if (endpoint != NULL) {
    data.payload = follows;
    tide_rtps_put_data(cdr, &data);
    put_endpoint(cdr, participant, endpoint);
    tide_rtps_extend(cdr, start);
  } else if (participant->removed[kind][number % 4].number == number) {
    data.status = STATUS_GONE;
    data.has_key_hash = true;
    memcpy(data.key_hash.prefix, participant->config.prefix, TIDE_RTPS_PREFIX_BYTES);
    data.key_hash.entity = participant->removed[kind][number % 4].entity;
    tide_rtps_put_data(cdr, &data);
  } else {
    const tide_rtps_repair_t gap = {.id = TIDE_RTPS_GAP,
                                    .writer = data.writer,
                                    .reader = data.reader,
                                    .first = number,
                                    .set = {.base = number + 1}};
    tide_rtps_put_repair(cdr, &gap);
  }
}

static void put_graph(tide_cdr_t *cdr, const tide_participant_t *participant, const tide_rtps_peer_t *peer) {
  static const uint8_t little_endian[ENCAPSULATION_BYTES] = {0, 1, 0, 0};
  const size_t start = cdr->position;
  const tide_rtps_data_t data = {.reader = peer->graph_reader,
                                 .writer = participant->graph.entity,
                                 .sequence = participant->announced[GRAPH],
                                 .payload = little_endian,
                                 .payload_bytes = sizeof little_endian};
  tide_rtps_put_data(cdr, &data);
  put_entities(cdr, participant); /* nothing in it needs more than an alignment of 4 */
  tide_rtps_extend(cdr, start);
}

/* The lowest number that the reader lacks and that may be sent now: a requested one, or else a new one; 0: none.
 * Nothing is sent to a reliable reader that has not answered a HEARTBEAT: it may not know the writer yet. */
static int64_t number_to_send(const tide_rtps_proxy_t *proxy, bool reliable, int64_t last) {
  if (reliable && !proxy->answered) return 0;
  if (proxy->requested != 0) return proxy->next + __builtin_ctz(proxy->requested);
  return proxy->end <= last ? proxy->end : 0;
}

static void mark_sent(tide_rtps_proxy_t *proxy, int64_t number) {
  if (number < proxy->end) {
    proxy->requested &= ~(1u << (number - proxy->next));
  } else {
    proxy->end = number + 1;
  }
}

static bool is_large(tide_participant_t *participant, const tide_rtps_match_t *match, int64_t number) {
  return size_for(participant, match, number) > participant->fragment_bytes;
}

/* Like number_to_send, for a program's writer. After a fragmented sample, the next sample is sent only when the
 * fragmented one is acknowledged: a reader that still lacks a fragment would drop the next sample. */
static int64_t sample_to_send(tide_participant_t *participant, const tide_rtps_match_t *match) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  const tide_rtps_proxy_t *proxy = &match->proxy;
  const int64_t number = number_to_send(proxy, match->reliable, writer->last);
  const bool is_new = number == proxy->end && proxy->next < number && number > writer->first;
  return match->reliable && is_new && is_large(participant, match, number - 1) ? 0 : number;
}

/* Appends the sample, or its next fragment. Returns whether it is complete. */
static bool put_sample(tide_cdr_t *cdr, tide_participant_t *participant, tide_rtps_match_t *match, int64_t number) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  const size_t index = (size_t)(number % writer->depth);
  const tide_rtps_slot_t *slot = &writer->slots[index];
  const bool is_repair = number < match->proxy.end;
  const uint32_t bytes = size_for(participant, match, number);
  tide_rtps_data_t data = {.reader = match->remote,
                           .writer = writer->endpoint.entity,
                           .sequence = number,
                           .payload = writer->memory + index * writer->slot_bytes,
                           .payload_bytes = bytes};
  participant->counters.resent += is_repair;
  if (writer->related != NULL) {
    data.related = writer->related[index];
    data.payload = open_related(participant, match, number);
  }
  if (slot->source_ns != 0) tide_rtps_put_info_ts(cdr, slot->source_ns);
  if (bytes <= participant->fragment_bytes) {
    tide_rtps_put_data(cdr, &data);
    return true;
  }
  const uint32_t count = (bytes - 1) / participant->fragment_bytes + 1;
  uint16_t *next = is_repair ? &match->repair_fragment : &match->fragment;
  uint32_t fragment = *next;
  const bool is_picked = is_repair && match->repair_bits != 0;
  if (is_picked) {
    fragment += (uint32_t)__builtin_ctz(match->repair_bits);
    match->repair_bits &= match->repair_bits - 1;
  }
  TIDE_INVARIANT(fragment < count);
  const uint32_t from = fragment * participant->fragment_bytes;
  data.sample_bytes = bytes;
  data.first_fragment = fragment + 1;
  data.fragment_count = 1;
  data.fragment_bytes = participant->fragment_bytes;
  data.payload += from;
  data.payload_bytes = bytes - from;
  if (data.payload_bytes > participant->fragment_bytes) data.payload_bytes = participant->fragment_bytes;
  tide_rtps_put_data(cdr, &data);
  const bool is_complete = is_picked ? match->repair_bits == 0 : fragment + 1 >= count;
  *next = is_complete ? 0 : (uint16_t)(is_picked ? *next : fragment + 1);
  return is_complete;
}

static void send_of_writer(tide_cdr_t *cdr, tide_participant_t *participant, tide_rtps_match_t *match, int64_t now) {
  const tide_rtps_writer_t *writer = (const tide_rtps_writer_t *)match->local;
  tide_rtps_proxy_t *proxy = &match->proxy;
  bool is_beat_due = proxy->due_ns <= now;
  int64_t number = sample_to_send(participant, match);
  if (number != 0 && number < writer->first) { /* lost to this reader: the HEARTBEAT says so */
    proxy->requested = 0;
    match->repair_bits = 0;
    match->repair_fragment = 0;
    is_beat_due = true;
  } else if (number != 0) {
    if (!put_sample(cdr, participant, match, number)) return;
    mark_sent(proxy, number);
    if (!match->reliable) {
      proxy->next = proxy->end;
      return;
    }
    /* The last sample to send carries a HEARTBEAT if half the history is not acknowledged. Otherwise one HEARTBEAT
     * follows later, for several samples. */
    const bool is_last = sample_to_send(participant, match) == 0;
    if (is_last && (is_large(participant, match, number) || (proxy->end - proxy->next) * 2 >= writer->depth))
      is_beat_due = true;
    if (!is_last) is_beat_due = false;
    proxy->due_ns = earlier(proxy->due_ns, now + RETRY_NS);
  }
  if (!is_beat_due || !match->reliable) return;
  put_heartbeat(cdr, participant, proxy, writer->endpoint.entity, match->remote,
                /* to a reader without interest in earlier samples, these do not exist */
                match->wants_history ? writer->first : later(writer->first, proxy->next), now);
}

static void send_of_match(tide_participant_t *participant, tide_rtps_match_t *match, int64_t now,
                          tide_rtps_datagram_t *datagram) {
  tide_cdr_t cdr;
  open_message_to(&cdr, participant, peer_of(participant, match), match->port, datagram);
  if (match->local->is_writer) {
    send_of_writer(&cdr, participant, match, now);
  } else {
    const tide_rtps_reader_t *reader = (const tide_rtps_reader_t *)match->local;
    const bool is_assembling = reader->assembly.match == match && reader->assembly.sequence == match->proxy.next;
    put_acknack(&cdr, participant, peer_of(participant, match), &match->proxy, match->remote, reader->endpoint.entity,
                is_assembling ? reader : NULL, now);
  }
  TIDE_INVARIANT(cdr.status == TIDE_OK);
  datagram->length = cdr.position;
}

static void put_participant(tide_cdr_t *cdr, const tide_participant_t *participant) {
  const tide_participant_config_t *config = &participant->config;
  const uint16_t port = (uint16_t)TIDE_RTPS_PORT_DISCOVERY(config->domain, config->participant);
  const size_t start = cdr->position;
  tide_rtps_participant_data_t own = {.guid = {.entity = TIDE_RTPS_ENTITY_PARTICIPANT},
                                      .builtin_endpoints = TIDE_RTPS_BUILTIN_ENDPOINTS,
                                      .lease_ns = config->lease_ns,
                                      .discovery = {.port = port},
                                      .data = {.port = port},
                                      .domain = config->domain,
                                      .has_domain = true,
                                      .user_data = text_of(config->user_data)};
  memcpy(own.guid.prefix, config->prefix, sizeof config->prefix);
  memcpy(own.discovery.address, config->address, sizeof config->address);
  memcpy(own.data.address, config->address, sizeof config->address);
  tide_rtps_data_t data = {.reader = TIDE_RTPS_ENTITY_SPDP_READER, .writer = TIDE_RTPS_ENTITY_SPDP_WRITER};
  data.sequence = participant->is_leaving ? 2 : 1;
  if (participant->is_leaving) {
    data.status = STATUS_GONE;
    data.has_key_hash = true;
    data.key_hash = own.guid;
  } else {
    data.payload = follows;
  }
  tide_rtps_put_data(cdr, &data);
  if (participant->is_leaving) return;
  tide_rtps_put_participant(cdr, &own);
  tide_rtps_extend(cdr, start);
}

/* A round of announcements: multicast, the known addresses, the participants in the table. One datagram a step. */
static bool send_announcement(tide_participant_t *participant, int64_t now, tide_rtps_datagram_t *datagram) {
  static const tide_rtps_locator_t multicast = {.address = {239, 255, 0, 1}};
  const tide_participant_config_t *config = &participant->config;
  const uint32_t known = (uint32_t)config->known_count * config->known_participants;
  while (participant->announcement <= known + config->peer_count) {
    const uint32_t step = participant->announcement++;
    if (step == 0) {
      if (config->no_multicast) continue;
      datagram->to = multicast;
      datagram->to.port = (uint16_t)TIDE_RTPS_PORT_MULTICAST(config->domain);
    } else if (step <= known) {
      const uint32_t number = (step - 1) % config->known_participants;
      memcpy(datagram->to.address, config->known[(step - 1) / config->known_participants], 4);
      if (number == config->participant && memcmp(datagram->to.address, config->address, 4) == 0) continue;
      datagram->to.port = (uint16_t)TIDE_RTPS_PORT_DISCOVERY(config->domain, number);
    } else {
      tide_rtps_peer_t *peer = &config->peers[step - known - 1];
      if (peer->port == 0) continue;
      peer->is_owed_announcement = false;
      memcpy(datagram->to.address, peer->address, 4);
      datagram->to.port = peer->port;
    }
    tide_cdr_t cdr;
    open_message(&cdr, participant, datagram);
    put_participant(&cdr, participant);
    datagram->length = cdr.position;
    return true;
  }
  participant->announcement = 0;
  const bool is_early = participant->early_announcements < EARLY_ANNOUNCEMENTS;
  participant->early_announcements += is_early;
  const int64_t period = is_early ? EARLY_PERIOD_NS : ANNOUNCE_PERIOD_NS;
  participant->announce_ns = participant->is_leaving ? NEVER : now + earlier(period, config->lease_ns / 3);
  return false;
}

/* Writes the next discovery message for this participant. False: there is none before *deadline. */
static bool send_of_peer(tide_participant_t *participant, tide_rtps_peer_t *peer, int64_t now,
                         tide_rtps_datagram_t *datagram) {
  tide_cdr_t cdr;
  open_message_to(&cdr, participant, peer, peer->port, datagram);
  const size_t empty = cdr.position;
  if (peer->is_owed_announcement) {
    peer->is_owed_announcement = false;
    put_participant(&cdr, participant);
  }
  for (int kind = PUBLICATIONS; kind <= SUBSCRIPTIONS && cdr.position == empty; kind++) {
    tide_rtps_proxy_t *proxy = &peer->writers[kind];
    if (proxy->due_ns <= now)
      put_acknack(&cdr, participant, peer, proxy, builtin_writer[kind], builtin_reader[kind], NULL, now);
    datagram->deadline_ns = earlier(datagram->deadline_ns, proxy->due_ns);
  }
  for (int kind = PUBLICATIONS; kind <= GRAPH && cdr.position == empty; kind++) {
    tide_rtps_proxy_t *proxy = &peer->readers[kind];
    const int64_t last = participant->announced[kind];
    int64_t number = number_to_send(proxy, true, last);
    if (kind == GRAPH && peer->graph_reader == 0) break;
    if (kind == GRAPH) datagram->to.port = peer->graph_port;
    if (kind == GRAPH && number != 0 && number < last) { /* the HEARTBEAT says that it is gone */
      proxy->requested = 0;
      proxy->due_ns = now;
      number = number_to_send(proxy, true, last);
    }
    if (number != 0) {
      if (kind == GRAPH) {
        put_graph(&cdr, participant, peer);
      } else {
        put_announced(&cdr, participant, kind, number);
      }
      mark_sent(proxy, number);
      if (number_to_send(proxy, true, last) == 0) proxy->due_ns = now;
    }
    if (proxy->due_ns <= now && number_to_send(proxy, true, last) == 0) {
      const bool is_graph = kind == GRAPH;
      put_heartbeat(&cdr, participant, proxy, is_graph ? participant->graph.entity : builtin_writer[kind],
                    is_graph ? peer->graph_reader : builtin_reader[kind], is_graph ? last : 1, now);
    }
    datagram->deadline_ns = earlier(datagram->deadline_ns, proxy->due_ns);
  }
  TIDE_INVARIANT(cdr.status == TIDE_OK);
  datagram->length = cdr.position;
  return cdr.position != empty;
}

static bool is_full(const tide_rtps_datagram_t *datagram, uint8_t level) {
  return datagram->is_full != NULL && datagram->is_full(level);
}

bool tide_participant_poll(tide_participant_t *participant, int64_t now, tide_rtps_datagram_t *datagram) {
  const tide_participant_config_t *config = &participant->config;
  datagram->length = 0;
  datagram->level = 0;
  datagram->deadline_ns = NEVER;
  if (participant->is_leaving) {
    return participant->announce_ns <= now && send_announcement(participant, now, datagram);
  }
  for (size_t i = 0; i < config->peer_count; i++) {
    tide_rtps_peer_t *peer = &config->peers[i];
    if (peer->port == 0) continue;
    if (peer->expires_ns <= now) release_peer(participant, peer, now);
    if (peer->port != 0) datagram->deadline_ns = earlier(datagram->deadline_ns, peer->expires_ns);
  }
  if (participant->unheard_ns <= now) lose_expired(participant, now);
  datagram->deadline_ns = earlier(datagram->deadline_ns, participant->unheard_ns);
  tide_rtps_match_t *chosen = NULL;
  for (size_t i = 0; i < config->match_count; i++) {
    tide_rtps_match_t *match = &config->matches[(participant->match_turn + i) % config->match_count];
    if (match->local == NULL || match->policy != 0) continue;
    const bool has_sample = match->local->is_writer && sample_to_send(participant, match) != 0;
    const int64_t due = has_sample ? now : match->proxy.due_ns;
    if (due > now) {
      datagram->deadline_ns = earlier(datagram->deadline_ns, due);
    } else if ((chosen == NULL || match->local->level > chosen->local->level) &&
               !is_full(datagram, match->local->level)) {
      chosen = match;
    }
  }
  if (chosen != NULL) {
    participant->match_turn = (uint16_t)(chosen - config->matches + 1);
    datagram->level = chosen->local->level;
    send_of_match(participant, chosen, now, datagram);
    return true;
  }
  if (is_full(datagram, 0)) return false;
  for (size_t i = 0; i < config->peer_count; i++) {
    const size_t index = (participant->peer_turn + i) % config->peer_count;
    if (config->peers[index].port == 0) continue;
    if (send_of_peer(participant, &config->peers[index], now, datagram)) {
      participant->peer_turn = (uint16_t)(index + 1);
      return true;
    }
  }
  if (participant->announce_ns <= now && send_announcement(participant, now, datagram)) return true;
  datagram->deadline_ns = earlier(datagram->deadline_ns, participant->announce_ns);
  return false;
}
