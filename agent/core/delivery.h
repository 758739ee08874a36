// SPDX-License-Identifier: Apache-2.0
// Data between one client's streams and DDS. Services passes requests and replies to DDS as soon as ROS 2 can receive
// them. Readings fetches samples from DDS when the client's streams have room.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/entities.h"
#include "core/streams.h"
#include "tide/platform.h"

namespace tide::agent {

class Services {
 public:
  Services(Context &context, Counters &counters, Entities &entities)
      : context_(context), counters_(counters), entities_(entities) {}

  // Sends a request of the client (through a requester) or a reply (through a replier) to DDS, or lets it wait. Returns
  // false if the message is malformed.
  bool write(Entity &entity, uint16_t request, Bytes payload, bool big_endian, Time now);
  // Sends the entity's waiting messages. Call this when DDS may have discovered the endpoints that can receive them.
  void flush(Entity &entity, Time now);
  // Handles the timers of all entities.
  void poll(Time now);
  // True once after messages were dropped; the agent then informs the client (Delivery::lost).
  bool take_lost() { return std::exchange(has_lost_, false); }
  Time next_ns() const { return next_ns_; }  // when to call poll
  // Call this when a sample of the entity was taken from DDS. If it was a reply, one more waiting request may be sent
  // to the server.
  void took(Entity &entity, Time now);
  // Call this when the client was restarted: drops all waiting messages, and forgets the requests that have no reply
  // yet.
  void forget();

 private:
  bool send(Entity &entity, const WaitingMessage &message, Time now);
  void lose(Entity &entity, size_t count, Time now);

  Context &context_;
  Counters &counters_;
  Entities &entities_;
  Time next_ns_ = TIDE_FOREVER;
  bool has_lost_ = false;
};

class Readings {
 public:
  Readings(Context &context, Counters &counters, Entities &entities, Services &services)
      : context_(context), counters_(counters), entities_(entities), services_(services) {}

  // Begins a READ_DATA. Returns a TIDE_XRCE_STATUS_*; unset if the data itself is the answer.
  std::optional<uint8_t> begin(const tide_xrce_read_data_t &body, Time now);
  // Call adds when an entity was created, removes when it is about to be removed, and wake when it may have new data.
  void adds(Delivery &delivery) { delivery.generation = ++generation_; }
  void removes(uint16_t object, Entity &entity);
  void wake(Entity &entity, Time now);
  // True if the client has an active READ_DATA.
  bool is_active() const { return !readers_.empty(); }
  // Delivers as many messages as possible.
  void serve(Output &output, Time now);
  Time next_ns() const { return is_active() ? next_ns_ : TIDE_FOREVER; }  // when to call serve
  // Call this before the session's output ends. Keeps the unacknowledged samples and replies of reliable streams for
  // the next session. Requests to servers on the client are not kept, so that none is executed twice.
  void keep(Output &output);
  // Call this when the output restarts, because it does not return its nodes then.
  void forget_nodes();
  // Call this when the session ends: ends all its READ_DATA requests.
  void end_all();
  // Call this when the output has returned a node.
  void node_done(void *owner);
  // Object id of the reader whose message the node with this owner carries; 0 if it carries none.
  static uint16_t object_of(void *owner);

 private:
  void rank();
  void check() const;
  void serve_entity(Entity &entity, uint16_t object, Output &output, Time now);
  bool fetch(Entity &entity, Time now);
  void drain(Entity &entity, Time now);
  void report_losses(Delivery &delivery, Output &output, Time now);
  void tell_too_large(Entity &entity, size_t bytes, bool is_reliable, Time now);
  int deliver(Entity &entity, uint16_t object, Output &output, Time now);

  Context &context_;
  Counters &counters_;
  Entities &entities_;
  Services &services_;
  std::vector<uint16_t> readers_;  // object ids of active readers, the most urgent streams first
  uint64_t turns_ = 0;             // number of samples passed to the output
  bool behind_ = false;  // a reader waits for Output::is_clear; nothing signals this change, so each serve tries again
  uint32_t generation_ = 0;
  size_t data_nodes_ = 0;
  uint64_t replies_kept_ = 0;  // number of kept replies; each gets its own request number, downwards from the highest
  Time next_ns_ = 0;
};

}  // namespace tide::agent
