// SPDX-License-Identifier: Apache-2.0
// Bounds of what clients may take, and the counters that tell what was refused or lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tide::agent {

using Time = int64_t;  // nanoseconds, monotonic
constexpr Time kSecond = 1'000'000'000;

struct NodeClass {
  uint32_t node_bytes;  // largest submessage, a multiple of 4
  uint16_t count;
};

// Memory of one client: nodes (276 KiB and 128 bytes each), held_bytes, reassembly_bytes, sample_bytes, output_streams
// * 112 and, as they come into use, input_streams * 0.5 KiB; at most 1.8 MiB with these defaults, and 115 MiB for all
// clients; its entities come on top. Each reader has at least one node as long as nodes less reserved_nodes are as many
// as readers. From a reliable message to the HEARTBEAT that asks about it, on a serial line: a client acknowledges when
// it takes a message, and callbacks may keep it from that.
constexpr Time kLineHeartbeatDelay = 100'000'000;

struct Limits {
  size_t clients = 64;
  size_t entities_per_client = 256;
  size_t participants_per_client = 32;
  size_t creations_at_once = 512;            // of one client, in DDS; then one in each period
  Time creation_period_ns = 20'000'000;      // 0: as many as it likes
  size_t domains = 16;                       // of all clients
  size_t pending_requests = 256;             // of one requester; the oldest is forgotten
  size_t waiting_messages = 64;              // of one requester or replier: the oldest gives way
  size_t waiting_bytes = size_t{64} * 1024;  // the same
  Time request_wait_ns = 5'000'000'000;      // as long a request waits for a server
  size_t released_requests = 8;              // of those that waited, at once: ROS 2 servers keep the last ten
  Time release_period_ns = 100'000'000;      // so many more, and one more for each reply
  // As long a reply waits for DDS to know who asked: as reader_wait_ns.
  Time reply_wait_ns = 10'000'000'000;
  Time look_again_ns = 100'000'000;  // while something waits, also without news of DDS
  std::array<NodeClass, 4> nodes = {{{128, 160}, {1024, 64}, {8192, 8}, {65540, 2}}};
  size_t reserved_nodes = 8;                    // kept from DATA, so that a STATUS always finds room
  size_t output_streams = 128;                  // of one client: 63 levels, each reliable and best effort, and level 0
  size_t input_streams = 128;                   // of one client
  size_t held_bytes = size_t{256} * 1024;       // early messages of reliable streams
  size_t sample_bytes = size_t{1024} * 1024;    // of a sample that is longer than XRCE can announce
  size_t reassembly_bytes = size_t{2} * 65540;  // fragments of unfinished messages, all streams; and one such sample
  uint32_t message_bytes = 65500;               // largest message sent, whatever the client announces
  size_t replies = 256;                         // answers outside sessions that wait for their link
  size_t replies_per_endpoint = 16;
  Time write_wait_ns = 5'000'000'000;  // as long DDS may refuse a reliable sample; its stream waits
  Time write_retry_ns = 1'000'000;
  // So long at most the reliable samples of a new writer, and what is behind them in their stream, wait for a first
  // reader, of a client that had its session with an agent before this one: that DDS has not found it yet does not mean
  // that there is none, and it repeats what it says of itself every three seconds.
  Time reader_wait_ns = 10'000'000'000;
  uint32_t in_flight_reliable = 16;    // DATA of one reader between DDS and the client
  uint32_t in_flight_best_effort = 4;  // the rest waits, and the oldest gives way
  // The depth of a reader with KEEP_LAST bounds what waits for a client that takes nothing for so long. What comes
  // together waits for the acknowledgments that come with it, up to so many samples and octets.
  Time burst_ns = 20'000'000;
  size_t burst_samples = 256;
  size_t burst_bytes = size_t{256} * 1024;
  // After a client that started anew has made its last entity: what it had before and has not made again goes.
  Time settle_ns = 3'000'000'000;
  Time client_timeout_ns = 30'000'000'000;  // silence after which a client is asked for a sign of life; 0: never
  // To an address that the sender may have forged: what a client that never acknowledged anything gets at most between
  // two messages of its own. Whoever is silent beyond client_timeout_ns gets nothing more until it says something.
  size_t unproven_bytes = size_t{256} * 1024;
  Time probe_period_ns = 1'000'000'000;  // between such questions
  uint32_t probes = 3;                   // unanswered ones after which a client is gone
  // Silence after which a client that answers such questions may be taken over from another place; the others have
  // client_timeout_ns, or takeover_slow_ns where that is 0.
  Time takeover_ns = 5'000'000'000;
  Time takeover_slow_ns = 30'000'000'000;
  Time idle_ns = 2'000'000'000;  // silence after which a client without entities gives way to a new one
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
