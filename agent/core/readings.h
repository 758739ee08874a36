// SPDX-License-Identifier: Apache-2.0
// What a client's readers, requesters and repliers have for it: fetched from DDS when its streams have room, the most
// urgent stream first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/context.h"
#include "core/entities.h"
#include "core/output.h"
#include "core/services.h"
#include "tide/platform.h"

namespace tide::agent {

class Readings {
 public:
  Readings(Context &context, Counters &counters, Entities &entities, Services &services)
      : context_(context), counters_(counters), entities_(entities), services_(services) {}

  // By a READ_DATA. Returns a TIDE_XRCE_STATUS_*; unset: the data is the answer.
  std::optional<uint8_t> begin(const tide_xrce_read_data_t &body, Time now);
  // An entity has been made.
  void adds(Delivery &delivery) { delivery.generation = ++generation_; }
  // An entity is removed.
  void removes(uint16_t object, Entity &entity);
  // Data has come for it, or may have.
  void wake(Entity &entity, Time now);
  // A reader of the client has been asked for.
  bool is_active() const { return !readers_.empty(); }
  // Delivers what is possible.
  void serve(Output &output, Time now);
  Time next_ns() const { return is_active() ? next_ns_ : TIDE_FOREVER; }  // when serve has something to do
  // Before the output of this session ends: what reliable streams carried to readers and requesters and was not
  // acknowledged is kept for the next one. Requests end with the session: no server is to work twice.
  void keep(Output &output);
  // Output begins anew: what was under way does not come back.
  void forget_nodes();
  // All readers wait to be asked again.
  void end_all();
  // A node has come back from the output.
  void node_done(void *owner);
  // Of the reader whose message a node of the output carries; 0: it carries none.
  static uint16_t object_of(void *owner);

 private:
  void rank();
  void check() const;
  void serve_entity(Entity &entity, uint16_t object, Output &output, Time now);
  void tell_too_large(const Entity &entity, size_t bytes, Time now);
  bool fetch(Entity &entity, Time now);
  void drain(Entity &entity, Time now);
  void drop_old(Entity &entity, Time now);
  int deliver(Entity &entity, uint16_t object, Output &output, Time now);

  Context &context_;
  Counters &counters_;
  Entities &entities_;
  Services &services_;
  std::vector<uint16_t> readers_;  // active ones, most urgent stream first
  uint64_t turns_ = 0;             // samples that were given to the output
  bool behind_ = false;            // a reader waits for its stream: look at each chance
  uint32_t generation_ = 0;
  size_t data_nodes_ = 0;
  uint64_t replies_kept_ = 0;  // their numbers, from the top
  Time next_ns_ = 0;
};

}  // namespace tide::agent
