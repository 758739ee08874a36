// SPDX-License-Identifier: Apache-2.0
// RTPS participants in virtual time, on a network that loses, repeats and reorders datagrams by seed.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dice.h"
#include "tide/rtps_participant.h"
#include "tide/status.h"

namespace tide::test {

constexpr int64_t kMs = 1'000'000;

struct RtpsWriter {
  tide_rtps_writer_t writer{};
  std::vector<tide_rtps_slot_t> slots;
  std::vector<uint8_t> memory;
  int64_t written = 0;
  std::vector<size_t> sizes;  // sizes of the written samples
};

struct RtpsReader {
  tide_rtps_reader_t reader{};
  std::vector<uint8_t> memory;
  struct Sample {
    std::vector<uint8_t> bytes;
    int64_t sequence, source_ns;
    tide_guid_t writer;
    tide_rtps_sample_identity_t related;
  };
  std::vector<Sample> received;
  size_t room = SIZE_MAX;  // number of samples that are still accepted; later ones are refused
};

// A participant with its memory, or a simulated participant on another machine. Boards are numbered from 1, which is
// the last octet of their address.
struct RtpsBoard {
  tide_participant_t participant{};
  tide_participant_config_t config{};
  std::vector<tide_rtps_peer_t> peers;
  std::vector<tide_rtps_match_t> matches;
  std::deque<RtpsWriter> writers;
  std::deque<RtpsReader> readers;
  std::vector<tide_rtps_event_t> events;
  std::vector<uint8_t> buffer;
  bool is_on = true;
  tide_participant_t *elsewhere = nullptr;

  explicit RtpsBoard(uint8_t number, size_t peer_count = 4, size_t match_count = 8)
      : peers(peer_count), matches(match_count) {
    const uint8_t prefix[] = {TIDE_RTPS_VENDOR >> 8, TIDE_RTPS_VENDOR & 0xFF, number};
    memcpy(config.prefix, prefix, sizeof prefix);
    const uint8_t address[] = {10, 0, 0, number};
    memcpy(config.address, address, sizeof address);
    config.context = this;
    config.event = [](void *context, const tide_rtps_event_t *event) {
      static_cast<RtpsBoard *>(context)->events.push_back(*event);
    };
  }
  tide_participant_t &own() { return elsewhere == nullptr ? participant : *elsewhere; }
  RtpsBoard(const RtpsBoard &) = delete;
  RtpsBoard &operator=(const RtpsBoard &) = delete;

  void start(int64_t now) {
    config.peers = peers.data();
    config.peer_count = static_cast<uint16_t>(peers.size());
    config.matches = matches.data();
    config.match_count = static_cast<uint16_t>(matches.size());
    if (tide_participant_init(&participant, &config, now) != TIDE_OK) throw std::runtime_error("configuration");
    buffer.resize(participant.config.datagram_bytes);
    writers.clear();
    readers.clear();
    is_on = true;
  }
  RtpsWriter &writer(const char *topic, tide_rtps_qos_t qos, uint32_t depth, size_t bytes, int64_t now,
                     uint8_t level = 0, const tide_rtps_node_t *node = nullptr) {
    RtpsWriter &made = writers.emplace_back();
    made.slots.resize(depth);
    made.memory.resize(depth * (bytes + 4));
    made.writer.endpoint.topic = topic;
    made.writer.endpoint.type = "T";
    made.writer.endpoint.qos = qos;
    made.writer.endpoint.level = level;
    made.writer.endpoint.node = node;
    made.writer.slots = made.slots.data();
    made.writer.memory = made.memory.data();
    made.writer.depth = depth;
    made.writer.slot_bytes = static_cast<uint32_t>(bytes + 4);
    if (tide_participant_add_writer(&participant, &made.writer, now) != TIDE_OK) throw std::runtime_error("writer");
    return made;
  }
  RtpsReader &reader(const char *topic, tide_rtps_qos_t qos, size_t bytes, int64_t now, uint8_t level = 0,
                     const tide_rtps_node_t *node = nullptr) {
    RtpsReader &made = readers.emplace_back();
    made.memory.resize(bytes + 4);
    made.reader.endpoint.topic = topic;
    made.reader.endpoint.type = "T";
    made.reader.endpoint.qos = qos;
    made.reader.endpoint.level = level;
    made.reader.endpoint.node = node;
    made.reader.endpoint.context = &made;
    made.reader.memory = made.memory.data();
    made.reader.memory_bytes = static_cast<uint32_t>(made.memory.size());
    made.reader.sample = [](void *context, const tide_rtps_sample_t *sample) {
      auto *reader = static_cast<RtpsReader *>(context);
      if (reader->room == 0) return false;
      reader->room--;
      reader->received.push_back({{sample->bytes, sample->bytes + sample->length},
                                  sample->identity.sequence,
                                  sample->source_ns,
                                  sample->identity.guid,
                                  sample->related});
      return true;
    };
    if (tide_participant_add_reader(&participant, &made.reader, now) != TIDE_OK) throw std::runtime_error("reader");
    return made;
  }
  // The bytes of a sample follow from its number.
  static std::vector<uint8_t> sample(int64_t number, size_t bytes) {
    std::vector<uint8_t> made(bytes);
    for (size_t i = 0; i < bytes; i++)
      made[i] = static_cast<uint8_t>(i * 7 + static_cast<size_t>(number) * 13 + i / 251);
    return made;
  }
  void write(RtpsWriter &to, size_t bytes, int64_t now) {
    uint8_t *room = tide_participant_write_begin(&participant, &to.writer, bytes);
    if (room == nullptr) throw std::runtime_error("room");
    const std::vector<uint8_t> made = sample(++to.written, bytes);
    to.sizes.push_back(bytes);
    std::copy(made.begin(), made.end(), room);
    tide_participant_write_end(&participant, &to.writer, bytes, nullptr, now);
  }
  size_t count(tide_rtps_event_kind_t kind) const {
    return static_cast<size_t>(
        std::count_if(events.begin(), events.end(), [kind](const auto &event) { return event.kind == kind; }));
  }
};

// Probabilities in percent.
struct RtpsFaults {
  int loss = 0, duplication = 0, reordering = 0;
};

class RtpsNetwork {
 public:
  explicit RtpsNetwork(uint64_t seed) : dice(seed) {}
  Dice dice;
  RtpsFaults faults;
  int64_t now = 1'000'000 * kMs;
  std::vector<RtpsBoard *> boards;
  uint64_t datagrams = 0, bytes = 0;
  std::function<void(const RtpsBoard &, const tide_rtps_datagram_t &)> observe;

  // Polls all boards, then advances the clock to the next event; returns after `duration_ns`.
  void run(int64_t duration_ns, const std::function<bool()> &until = nullptr) {
    const int64_t end = now + duration_ns;
    while (true) {
      int64_t next = end;
      for (RtpsBoard *board : boards) next = std::min(next, poll(*board));
      if (until && until()) return;
      if (!travelling_.empty()) next = std::min(next, travelling_.begin()->first);
      if (next >= end) break;
      now = std::max(now, next);
      while (!travelling_.empty() && travelling_.begin()->first <= now) {
        const Packet packet = std::move(travelling_.begin()->second);
        travelling_.erase(travelling_.begin());
        arrive(packet);
      }
    }
    now = end;
  }

 private:
  struct Packet {
    uint8_t from;
    tide_rtps_locator_t to;
    std::vector<uint8_t> bytes;
  };
  std::multimap<int64_t, Packet> travelling_;

  int64_t poll(RtpsBoard &board) {
    tide_rtps_datagram_t datagram{};
    datagram.bytes = board.buffer.data();
    if (!board.is_on) return INT64_MAX;
    for (int sent = 0; tide_participant_poll(&board.own(), now, &datagram); sent++) {
      if (sent > 100'000) throw std::runtime_error("it sends without end");
      if (datagram.length <= TIDE_RTPS_HEADER_BYTES || datagram.length > board.buffer.size())
        throw std::runtime_error("length of a datagram");
      datagrams++;
      bytes += datagram.length;
      if (observe) observe(board, datagram);
      send({board.config.address[3], datagram.to, {datagram.bytes, datagram.bytes + datagram.length}});
    }
    return datagram.deadline_ns;
  }
  void send(const Packet &packet) {
    const int copies = dice.chance(faults.loss) ? 0 : dice.chance(faults.duplication) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
      const int64_t delay = dice.chance(faults.reordering) ? dice.between(1, 50) * kMs : dice.between(100, 200) * 1000;
      travelling_.emplace(now + delay, packet);
    }
  }
  void arrive(const Packet &packet) {
    const bool is_multicast = packet.to.address[0] == 239;
    for (RtpsBoard *board : boards) {
      const tide_participant_config_t &config = board->own().config;
      const bool is_for_it = is_multicast
                                 ? packet.to.port == TIDE_RTPS_PORT_MULTICAST(config.domain)
                                 : memcmp(packet.to.address, config.address, 4) == 0 &&
                                       packet.to.port == TIDE_RTPS_PORT_DISCOVERY(config.domain, config.participant);
      if (!board->is_on || !is_for_it) continue;
      const uint8_t from[] = {10, 0, 0, packet.from};
      const std::vector<uint8_t> exact(packet.bytes);  // a sanitizer sees a read beyond it
      tide_participant_receive(&board->own(), exact.data(), exact.size(), from, now);
    }
  }
};

}  // namespace tide::test
