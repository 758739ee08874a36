// SPDX-License-Identifier: Apache-2.0
// Sends a participant messages that a script of bytes defines, in the name of a participant that it has matched. The
// fuzzer runs this on the scripts that it finds, a test on a bounded number of random scripts.
#pragma once

#include "rtps_boards.h"

inline void exercise_participant(const uint8_t *script, size_t count) {
  using tide::test::kMs;
  using tide::test::RtpsBoard;
  using tide::test::RtpsNetwork;
  using tide::test::RtpsWriter;
  RtpsNetwork network(1);
  RtpsBoard peer{1}, board{2, 2, 4};
  network.boards = {&peer, &board};
  tide_rtps_qos_t qos = tide_rtps_qos_default();
  peer.start(network.now);
  board.start(network.now);
  RtpsWriter &writer = board.writer("rt/x", qos, 3, 4000, network.now);
  board.reader("rt/y", qos, 4000, network.now);
  peer.reader("rt/x", qos, 4000, network.now);
  RtpsWriter &other = peer.writer("rt/y", qos, 3, 4000, network.now);
  network.run(100 * kMs);

  size_t at = 0;
  const auto next = [&]() -> uint8_t { return at < count ? script[at++] : 0; };
  const auto number = [&]() -> int64_t {  // mostly small numbers
    const uint8_t byte = next();
    return byte < 250 ? byte % 12 : (INT64_MAX >> (byte - 250) * 9) - next();
  };
  const auto pick = [&](std::initializer_list<uint32_t> of) { return *(of.begin() + next() % of.size()); };
  while (at < count) {
    uint8_t message[600];
    uint8_t content[256];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, message, sizeof message);
    tide_rtps_put_header(&cdr, peer.config.prefix);
    switch (next() % 8) {
      case 0: network.run((1 + next()) * kMs); continue;
      case 1: board.write(writer, next() * 15u, network.now); continue;
      case 2: peer.write(other, next() * 15u, network.now); continue;
      case 3: {  // arbitrary octets of the script
        const size_t wanted = next(), length = std::min(wanted, count - at);
        tide_cdr_put_bytes(&cdr, script + at, length);
        at += length;
        break;
      }
      case 4:
      case 5: {
        tide_rtps_repair_t repair{};
        repair.id = static_cast<uint8_t>(pick(
            {TIDE_RTPS_ACKNACK, TIDE_RTPS_HEARTBEAT, TIDE_RTPS_GAP, TIDE_RTPS_NACK_FRAG, TIDE_RTPS_HEARTBEAT_FRAG}));
        const bool is_of_peer = repair.id != TIDE_RTPS_ACKNACK && repair.id != TIDE_RTPS_NACK_FRAG;
        const uint32_t user[] = {
            is_of_peer ? other.writer.endpoint.entity : writer.writer.endpoint.entity,
            is_of_peer ? board.readers[0].reader.endpoint.entity : peer.readers[0].reader.endpoint.entity};
        repair.writer =
            pick({user[0], user[0], TIDE_RTPS_ENTITY_PUBLICATIONS_WRITER, TIDE_RTPS_ENTITY_SUBSCRIPTIONS_WRITER});
        repair.reader = repair.writer == user[0] ? user[1] : 0;
        repair.first = number();
        repair.last = number();
        repair.set.base = number();
        for (uint8_t bits = next() % 4; bits > 0; bits--) tide_rtps_set_add(&repair.set, repair.set.base + next());
        repair.count = next();
        repair.final = next() % 2 != 0;
        tide_rtps_put_repair(&cdr, &repair);
        break;
      }
      default: {
        tide_rtps_data_t data{};
        data.writer =
            pick({other.writer.endpoint.entity, other.writer.endpoint.entity, TIDE_RTPS_ENTITY_PUBLICATIONS_WRITER,
                  TIDE_RTPS_ENTITY_SUBSCRIPTIONS_WRITER, TIDE_RTPS_ENTITY_SPDP_WRITER});
        data.sequence = number();
        data.status = static_cast<uint8_t>(next() < 230 ? 0 : 3);
        if (next() % 2 != 0) {
          data.fragment_bytes = static_cast<uint16_t>(1 + next());
          data.sample_bytes = static_cast<uint32_t>(1 + next() * 17);
          data.first_fragment = static_cast<uint32_t>(1 + next() % 16);
          data.fragment_count = static_cast<uint16_t>(1 + next() % 3);
        }
        data.payload = content;
        data.payload_bytes = next();
        data.payload_bytes = std::min(data.payload_bytes, count - at);
        std::copy_n(script + at, data.payload_bytes, content);
        at += data.payload_bytes;
        tide_rtps_put_data(&cdr, &data);
      }
    }
    if (cdr.status != TIDE_OK) continue;
    const std::vector<uint8_t> exact(message, message + cdr.position);  // a sanitizer sees a read beyond it
    tide_participant_receive(&board.participant, exact.data(), exact.size(), peer.config.address, network.now);
  }
  network.run(1000 * kMs);
}
