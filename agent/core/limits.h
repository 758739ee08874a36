// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tide::agent {

// Limits on the resources of clients, and counters of refusals and losses.

using Time = int64_t;  // nanoseconds, monotonic
constexpr Time kSecond = 1'000'000'000;

struct NodeClass {
  uint32_t node_bytes;  // largest submessage, a multiple of 4
  uint16_t count;
};

// Delay on a serial line from a reliable message to the HEARTBEAT that requests its acknowledgment. A client
// acknowledges a message when it processes the message, so its callbacks may delay the acknowledgment.
constexpr Time kLineHeartbeatDelay = 100'000'000;

constexpr int kDomainMaximum = 232;
constexpr int kDomainOfAgent = 255;  // in requests of stock clients: the agent's default domain

// Maximum number of DDS participants in a process that creates participants in this domain; 0: no such domain. The
// highest port of a participant follows from its domain and from its number in the process (RTPS 2.3, 9.6.1):
// 7400 + 250 * domain + 11 + 2 * number. Fast DDS ends the process when a port exceeds 65535. Some numbers are left
// free, because Fast DDS takes the next number if another process uses a port.
constexpr size_t participants_maximum(int domain) {
  constexpr int kPortMaximum = 65535, kFirstPort = 7411, kPerDomain = 250, kPerParticipant = 2, kReserved = 16;
  if (domain < 0 || domain > kDomainMaximum) return 0;
  return static_cast<size_t>((kPortMaximum - kFirstPort - kPerDomain * domain) / kPerParticipant + 1 - kReserved);
}

// Memory of one client: nodes (276 KiB and 128 bytes each), held_bytes, reassembly_bytes, sample_bytes, output_streams
// * 112 and, once used, input_streams * 0.5 KiB. With these defaults it is at most 1.8 MiB, and 115 MiB for all
// clients, plus the entities. Each reader gets at least one node as long as there are no more readers than nodes less
// reserved_nodes.
struct Limits {
  size_t clients = 64;
  size_t entities_per_client = 256;
  size_t participants_per_client = 32;
  size_t creations_at_once = 512;            // burst of one client's creations in DDS; then one in each period
  Time creation_period_ns = 20'000'000;      // 0: no limit
  size_t domains = 16;                       // total of all clients
  size_t pending_requests = 256;             // limit of one requester; the oldest is forgotten
  size_t waiting_messages = 64;              // limit of one requester or replier; the oldest is evicted
  size_t waiting_bytes = size_t{64} * 1024;  // the same limit in bytes
  Time request_wait_ns = 5'000'000'000;      // longest wait of a request for a server
  size_t released_requests = 8;              // burst of waiting requests to a server: ROS 2 servers keep the last ten
  Time release_period_ns = 100'000'000;      // time between two such bursts; each reply allows one more request
  Time reply_wait_ns = 10'000'000'000;       // wait of a reply until DDS has matched the client (see reader_wait_ns)
  Time look_again_ns = 100'000'000;          // time between two checks of DDS while a message waits
  std::array<NodeClass, 4> nodes = {{{128, 160}, {1024, 64}, {8192, 8}, {65540, 2}}};
  size_t reserved_nodes = 8;                    // not used for DATA, so that a STATUS always finds a free node
  size_t output_streams = 129;                  // of one client: 64 levels, reliable and best effort, and requests
  size_t input_streams = 130;                   // of one client: as many, and one for messages without a stream
  size_t held_bytes = size_t{256} * 1024;       // memory for messages that arrive early or are blocked
  size_t sample_bytes = size_t{1024} * 1024;    // memory for a sample that is longer than XRCE can announce
  size_t reassembly_bytes = size_t{2} * 65540;  // memory for the fragments of all other unfinished messages
  uint32_t message_bytes = 65500;               // largest message sent, whatever the client announces
  size_t replies = 256;                         // answers outside of sessions that wait for their link
  size_t replies_per_endpoint = 16;
  Time write_wait_ns = 5'000'000'000;  // a reliable sample that DDS refuses blocks its stream at most so long
  Time write_retry_ns = 1'000'000;
  // After a restart of the agent, a client's reliable samples wait at most this long for a first reader of their topic.
  // DDS may not have discovered the reader yet, because announcements are repeated every three seconds.
  Time reader_wait_ns = 10'000'000'000;
  uint32_t in_flight_reliable = 16;    // limit of one reader's DATA between DDS and the client
  uint32_t in_flight_best_effort = 4;  // beyond this, samples wait and the oldest is dropped
  // The depth of a KEEP_LAST reader applies to samples that have waited for the client longer than burst_ns. Younger
  // samples wait up to these limits, because acknowledgments may be about to arrive.
  Time burst_ns = 20'000'000;
  size_t burst_samples = 256;
  size_t burst_bytes = size_t{256} * 1024;
  // When a restarted client has created its last entity, entities left from its former run are deleted after this time.
  Time settle_ns = 3'000'000'000;
  Time client_timeout_ns = 30'000'000'000;  // silence after which a client is probed; 0: never
  // If the sender's address may be forged, a client that has never acknowledged a message receives at most this much
  // between two messages of its own. A client that has also left its probes unanswered receives nothing.
  size_t unproven_bytes = size_t{256} * 1024;
  Time probe_period_ns = 1'000'000'000;
  uint32_t probes = 3;  // unanswered ones until a client is removed; one that never answered only counts as silent
  // Silence after which another endpoint may take over the session of a client that answers probes. For clients that do
  // not: client_timeout_ns, or takeover_slow_ns if that is 0.
  Time takeover_ns = 5'000'000'000;
  Time takeover_slow_ns = 30'000'000'000;
  Time idle_ns = 2'000'000'000;  // silence after which a client without entities may be evicted for a new one
};

// clang-format off
#define TIDE_AGENT_COUNTERS(X) \
  X(messages_in) X(bytes_in) X(messages_out) X(bytes_out) X(malformed) X(unknown_session) X(clients_created) \
  X(clients_resumed) X(clients_refused) X(clients_deleted) X(clients_lost) X(clients_displaced) X(takeovers_refused) X(not_allowed) \
  X(entities_created) X(entities_refused) X(creations_waited) X(samples_to_dds) X(samples_to_client) X(samples_repeated) X(samples_skipped) \
  X(samples_too_large) X(write_unknown) X(write_waited) X(write_failed) X(format_unsupported) X(replies_unmatched) \
  X(requests_waited) X(requests_unserved) X(replies_waited) X(replies_unreachable) \
  X(statuses_lost) X(replies_dropped) X(streams_refused) X(duplicates) X(outside_window) X(held_dropped) \
  X(given_up) X(fragments_dropped) X(fragmented_refused) X(nodes_evicted) X(probes_sent)
// clang-format on

struct Counters {
#define TIDE_AGENT_COUNTER(name) uint64_t name = 0;
  TIDE_AGENT_COUNTERS(TIDE_AGENT_COUNTER)
#undef TIDE_AGENT_COUNTER

  void add(const Counters &other) {
#define TIDE_AGENT_COUNTER(name) name += other.name;
    TIDE_AGENT_COUNTERS(TIDE_AGENT_COUNTER)
#undef TIDE_AGENT_COUNTER
  }
};

}  // namespace tide::agent
