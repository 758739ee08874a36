// SPDX-License-Identifier: Apache-2.0
// One entity of a client: how it was described, and what its kind has in DDS and on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "core/definition.h"
#include "core/domains.h"
#include "core/middleware.h"
#include "core/signals.h"
#include "core/waiting.h"

namespace tide::agent {

// What the client asked for by its last READ_DATA.
struct Reading {
  bool active = false;
  tide_xrce_request_t request{};
  uint8_t stream = 0;
  bool unlimited = false;
  uint16_t remaining = 0;
  Time ends_ns = 0;
  uint32_t bytes_per_second = 0;
  Time pace_ns = 0;
  Time next_ns = 0;
};

// A sample that has left DDS and is in no node yet.
struct Fetched {
  Sample sample;
  Time since_ns = 0;      // when it was taken from DDS
  bool repeated = false;  // the client had it under way when its session ended: it is never dropped
};

// From DDS to the client.
struct Delivery {
  std::shared_ptr<Signal> signal;  // that there may be something; never null
  Reading reading{};
  bool has_data = false;
  std::deque<Fetched> waiting{};  // the oldest first
  size_t waiting_bytes = 0;
  uint32_t in_flight = 0;
  uint64_t last_turn = 0;   // of all readers' samples, the number of its last one
  uint32_t generation = 0;  // of readings: nodes of older ones no longer count
};

// Of each kind of entity; dds is never null.
struct ParticipantPart {
  Domains::Use domain;
  std::unique_ptr<Participant> dds;
};
struct DescribedPart {};  // topic, publisher, subscriber: DDS has nothing of its own for them
struct WriterPart {
  std::unique_ptr<Writer> dds;
  Time reader_deadline_ns = 0;  // until then samples wait for readers that know this writer; 0: they do not
  bool has_written = false;     // to such readers, a first sample for them to acknowledge
  Time refused_since_ns = 0;    // DDS takes nothing of this writer; 0: it does
};
struct ReaderPart {
  std::unique_ptr<Source> dds;
  Delivery delivery;
};
// Of the requests of one entity that were replied to.
struct Replies {
  uint64_t count = 0;
  Time last_ns = 0, greatest_ns = 0;
  void add(Time time_ns) {
    count++;
    last_ns = time_ns;
    greatest_ns = std::max(greatest_ns, time_ns);
  }
};
struct Asked {
  uint16_t request = 0;  // id of the client
  Time at_ns = 0;
};
// Of a service: the requests of all clients that waited for its server, and which it has been given since since_ns.
struct Release {
  size_t count = 0;
  Time since_ns = 0;
};
struct RequesterPart {
  std::unique_ptr<Requester> dds;
  Delivery delivery;
  std::shared_ptr<Release> release;
  std::map<uint64_t, Asked> requests{};  // by the number that was sent
  Replies replies{};
  WaitingMessages waiting{};
};
struct ReplierPart {
  std::unique_ptr<Replier> dds;
  Delivery delivery;
  std::map<SampleIdentity, Time> taken{};  // requests that have no reply yet, and when DDS gave them
  Replies replies{};
  WaitingMessages waiting{};
};

struct Entity {
  Definition definition;
  bool former = false;  // of the program that its client was before it started anew, and not made again yet
  std::variant<DescribedPart, ParticipantPart, WriterPart, ReaderPart, RequesterPart, ReplierPart> part;

  template <class Part>
  Part *as() {
    return std::get_if<Part>(&part);
  }
  template <class Part>
  const Part *as() const {
    return std::get_if<Part>(&part);
  }
  Made *made() const;      // what DDS makes of it; null: nothing
  Source *source() const;  // null, as delivery: the client reads nothing of it
  const Delivery *delivery() const { return const_cast<Entity *>(this)->delivery(); }
  Delivery *delivery();        // of readers, requesters and repliers
  WaitingMessages *waiting();  // of requesters and repliers; null: nothing waits for ROS 2 there
};

}  // namespace tide::agent
