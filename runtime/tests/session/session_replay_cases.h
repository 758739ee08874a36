// SPDX-License-Identifier: Apache-2.0
// All recordings, and the kind of comparison with each.
//
// EXACT     everything that the protocol fixes is equal, octet for octet and in the same order: CREATE_CLIENT, GET_INFO
//           (but its request id), TIMESTAMP, DELETE, every message of every stream by its sequence number: header,
//           submessages, cut into the same fragments. Serial frames are equal with escapes and checksum. Every ACKNACK
//           of the recording is among ours in the same order, and ours are never ahead; every HEARTBEAT is among ours.
//           Exactly the messages flagged by the agent are sent again. Repeats of a message count once, as their
//           number and times may differ. Octets that the stock client leaves undefined (padding, alignment in binary
//           CREATEs) must be zero in ours; its last FRAGMENT may count the padding.
// BATCHED   the stock client packed several submessages into one message, ours are sent one by one: the submessages
//           of each stream are equal, in order; sequence numbers and ACKNACKs of the peer then differ.
// RESTART   EXACT until the agent reports that it does not know the session: then the stock client continues in
//           vain, and ours reconnects.
// UNKNOWN   no session was ever created by the recorded client: the frames are equal, and ours reconnects.
// OUTSIDE   pings without a session: the frames are equal.
// LIVELINESS  as EXACT, but CREATE_CLIENT has a property list in the recording (compared by meaning), and ours
//           answers GET_INFO with INFO where the stock client sends eight zero octets.
// PROBE     hand-written frames of the recording (big-endian bodies, HEARTBEATs without a message) belong to no
//           request of a program; the rest is EXACT.
#pragma once

#include <cstddef>

namespace session_replay {

enum class Mode { exact, batched, restart, unknown, outside, liveliness, probe };

struct Case {
  const char *file;
  Mode mode;
  size_t samples;  // samples that reach the program
};

// All recordings; a missing or unknown file fails the test below.
inline const Case cases[] = {
    {"serial_agent_restart", Mode::restart, 0},
    {"serial_corrupt_agent_to_client", Mode::exact, 0},
    {"serial_create_binary", Mode::exact, 0},
    {"serial_create_xml", Mode::exact, 0},
    {"serial_drop_write_data", Mode::exact, 0},
    {"serial_escape_agent_to_client_best_effort", Mode::exact, 3},
    {"serial_escape_agent_to_client_reliable", Mode::exact, 3},
    {"serial_escape_length_agent_to_client_113", Mode::exact, 3},
    {"serial_escape_length_agent_to_client_114", Mode::exact, 3},
    {"serial_escape_payload", Mode::exact, 0},
    {"serial_escape_payload_best_effort", Mode::exact, 0},
    {"serial_fragment_reliable_3000", Mode::exact, 0},
    {"serial_ping_no_session", Mode::outside, 0},
    {"serial_publish_best_effort", Mode::exact, 0},
    {"serial_publish_reliable", Mode::exact, 0},
    {"serial_raw_chunks", Mode::exact, 0},
    {"serial_request_reply_requester", Mode::exact, 3},
    {"serial_session", Mode::exact, 0},
    {"serial_subscribe_best_effort", Mode::exact, 10},
    {"serial_subscribe_reliable", Mode::exact, 10},
    {"serial_timesync", Mode::exact, 0},
    {"tcp_fragment_reliable_3000", Mode::exact, 0},
    {"tcp_publish_best_effort", Mode::exact, 0},
    {"tcp_publish_reliable", Mode::exact, 0},
    {"tcp_session", Mode::exact, 0},
    {"tcp_subscribe_reliable", Mode::exact, 10},
    {"udp_agent301_create_binary", Mode::exact, 0},
    {"udp_agent301_create_xml", Mode::batched, 0},
    {"udp_agent301_fragment_reliable_3000", Mode::exact, 0},
    {"udp_agent301_publish_best_effort", Mode::exact, 0},
    {"udp_agent301_publish_reliable", Mode::exact, 0},
    {"udp_agent301_session", Mode::exact, 0},
    {"udp_agent301_status_errors", Mode::exact, 0},
    {"udp_agent301_subscribe_best_effort", Mode::exact, 6},
    {"udp_agent301_subscribe_delivery_control", Mode::exact, 35},
    {"udp_agent301_subscribe_reliable", Mode::exact, 6},
    {"udp_agent301_timesync", Mode::exact, 0},
    {"udp_agent_restart", Mode::restart, 0},
    {"udp_batched_alignment", Mode::batched, 0},
    {"udp_create_best_effort", Mode::exact, 0},
    {"udp_create_binary", Mode::exact, 0},
    {"udp_create_reference", Mode::exact, 0},
    {"udp_create_xml", Mode::exact, 0},
    {"udp_create_xml_batched", Mode::batched, 0},
    {"udp_duplicate_write_data", Mode::exact, 0},
    {"udp_fragment_agent_to_client_900", Mode::exact, 2},
    {"udp_fragment_agent_to_client_mtu128_loss", Mode::exact, 2},
    {"udp_fragment_mtu128", Mode::exact, 0},
    {"udp_fragment_reliable_3000", Mode::exact, 0},
    {"udp_hard_liveliness", Mode::liveliness, 0},
    {"udp_loss_acknack", Mode::exact, 0},
    {"udp_loss_acknack_client_to_agent", Mode::exact, 10},
    {"udp_loss_best_effort", Mode::exact, 0},
    {"udp_loss_create_client", Mode::exact, 0},
    {"udp_loss_data_agent_to_client", Mode::exact, 10},
    {"udp_loss_last_write_data", Mode::exact, 0},
    {"udp_loss_status_agent", Mode::exact, 0},
    {"udp_loss_write_data", Mode::exact, 0},
    {"udp_loss_write_data_and_retry", Mode::exact, 0},
    {"udp_ping_and_delete_unknown_session", Mode::unknown, 0},
    {"udp_ping_no_session", Mode::outside, 0},
    {"udp_probe_endianness_agent230", Mode::probe, 0},
    {"udp_probe_endianness_agent301", Mode::probe, 0},
    {"udp_publish_best_effort", Mode::exact, 0},
    {"udp_publish_reliable", Mode::exact, 0},
    {"udp_publish_reliable_with_key", Mode::exact, 0},
    {"udp_reconnect_same_key", Mode::exact, 0},
    {"udp_request_reply_replier", Mode::exact, 3},
    {"udp_request_reply_replier_best_effort", Mode::exact, 3},
    {"udp_request_reply_requester", Mode::exact, 3},
    {"udp_request_reply_requester_best_effort", Mode::exact, 3},
    {"udp_session", Mode::exact, 0},
    {"udp_session_with_key", Mode::exact, 0},
    {"udp_status_errors", Mode::exact, 0},
    {"udp_subscribe_best_effort", Mode::exact, 10},
    {"udp_subscribe_max_samples_3", Mode::exact, 3},
    {"udp_subscribe_reliable", Mode::exact, 10},
    {"udp_timesync", Mode::exact, 0},
};

}  // namespace session_replay
