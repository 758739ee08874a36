// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tide::agent {

// Limits on the resources of clients, and counters of the agent's work, refusals and losses.

using Time = int64_t;  // nanoseconds, monotonic
constexpr Time kSecond = 1'000'000'000;

struct NodeClass {
  uint32_t node_bytes;  // largest submessage, a multiple of 4
  uint16_t count;
};

// Delay on a serial line from a reliable message to the HEARTBEAT that requests its acknowledgment. It is long because
// a client acknowledges a message only when it processes the message, which its callbacks may delay.
constexpr Time kLineHeartbeatDelay = 100'000'000;

constexpr int kDomainMaximum = 232;
constexpr int kDomainOfAgent = 255;  // in requests of stock clients: the agent's default domain

// Most DDS participants of a process that has participants in this domain; 0: the domain is invalid. The highest port
// of a participant follows from its domain and its number in the process (RTPS 2.3, 9.6.1): 7400 + 250 * domain + 11 +
// 2 * number. Fast DDS ends the process if a port exceeds 65535. kReserved numbers stay free, because Fast DDS takes
// the next number if another process uses a port.
constexpr size_t participants_maximum(int domain) {
  constexpr int kPortMaximum = 65535, kFirstPort = 7411, kPerDomain = 250, kPerParticipant = 2, kReserved = 16;
  if (domain < 0 || domain > kDomainMaximum) return 0;
  return static_cast<size_t>((kPortMaximum - kFirstPort - kPerDomain * domain) / kPerParticipant + 1 - kReserved);
}

// Memory of one client: the nodes (276 KiB, and 128 bytes for each node), held_bytes, reassembly_bytes, sample_bytes,
// 112 bytes for each of output_streams and, as soon as it is used, 0.5 KiB for each of input_streams. With these
// defaults, this is at most 1.8 MiB for a client and 115 MiB for all clients, plus the entities. Each reader gets at
// least one node if there are at most as many readers as nodes less reserved_nodes.
struct Limits {
  size_t clients = 64;
  size_t entities_per_client = 256;
  size_t participants_per_client = 32;
  size_t creations_at_once = 512;            // one client's burst of creations in DDS; after it, one creation in each
                                             // period
  Time creation_period_ns = 20'000'000;      // 0: no limit
  size_t domains = 16;                       // of all clients together
  size_t pending_requests = 256;             // of one requester or replier; beyond it, the oldest is forgotten
  size_t waiting_messages = 64;              // of one requester or replier; beyond it, the oldest is evicted
  size_t waiting_bytes = size_t{64} * 1024;  // the same limit in bytes
  Time request_wait_ns = 5'000'000'000;      // longest wait of a request for a server
  size_t released_requests = 8;              // burst of waiting requests to a server; a ROS 2 server keeps the last ten
  Time release_period_ns = 100'000'000;      // time between two such bursts; each reply allows one additional request
  Time reply_wait_ns = 10'000'000'000;       // longest wait of a reply until DDS has matched the client
  Time look_again_ns = 100'000'000;          // time between two attempts to send a waiting message
  std::array<NodeClass, 4> nodes = {{{128, 160}, {1024, 64}, {8192, 8}, {65540, 2}}};
  size_t reserved_nodes = 8;                    // nodes that DATA does not use, so that a STATUS always finds a free
                                                // node
  size_t output_streams = 129;                  // of one client: a reliable and a best-effort one for each of 64
                                                // levels, and one for requests
  size_t input_streams = 130;                   // of one client: the same, and one for messages without a stream
  size_t held_bytes = size_t{256} * 1024;       // memory for messages that arrive early or are blocked
  size_t sample_bytes = size_t{1024} * 1024;    // memory for a sample that is longer than XRCE can announce
  size_t reassembly_bytes = size_t{2} * 65540;  // memory for the fragments of all other unfinished messages
  uint32_t message_bytes = 65500;               // largest message sent, whatever the client announces
  size_t replies = 256;                         // most answers outside of sessions that wait for their link
  size_t replies_per_endpoint = 16;
  Time write_wait_ns = 5'000'000'000;  // longest time for which a reliable sample that DDS refuses blocks its stream
  Time write_retry_ns = 1'000'000;
  // After a restart of the agent, a client's reliable samples wait at most this long for a first reader of their topic.
  // DDS may not have discovered the reader yet, because announcements are repeated every three seconds.
  Time reader_wait_ns = 10'000'000'000;
  uint32_t in_flight_reliable = 16;    // most DATA of one reader in the output at a time
  uint32_t in_flight_best_effort = 4;  // the same for a best-effort stream
  // The depth of a KEEP_LAST reader applies to samples that have waited for the client longer than burst_ns. Younger
  // samples wait up to these limits, because acknowledgments may be about to arrive.
  Time burst_ns = 20'000'000;
  size_t burst_samples = 256;
  size_t burst_bytes = size_t{256} * 1024;
  // When a restarted client has created nothing for this long, the entities left over from its former run are deleted.
  Time settle_ns = 3'000'000'000;
  Time client_timeout_ns = 30'000'000'000;  // silence after which a client is probed; 0: never
  // If the address of a client may be forged and the client has never acknowledged a message, it gets at most this many
  // bytes between two messages of its own. If it has not answered probes either, it gets nothing.
  size_t unproven_bytes = size_t{256} * 1024;
  Time probe_period_ns = 1'000'000'000;
  uint32_t probes = 3;  // unanswered probes after which a client is removed; a client that never answered any is only
                        // considered silent
  // Silence of a client that answers probes after which another endpoint may take over its session. For a client that
  // does not answer probes, it is client_timeout_ns, or takeover_slow_ns if client_timeout_ns is 0.
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
