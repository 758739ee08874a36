// SPDX-License-Identifier: Apache-2.0
// How entities come about: one at a time for a client, since DDS may take a while to make one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/context.h"
#include "core/entities.h"
#include "core/names.h"

namespace tide::agent {

class Creation {
 public:
  Creation(Context &context, Entities &entities, uint32_t key) : context_(context), entities_(entities), key_(key) {}

  // From here on; null: names are what the client says. Outlives this.
  void set_names(const Renaming *names) { names_ = names; }
  // Returns a TIDE_XRCE_STATUS_*; unset: DDS makes it, ask again by finish. fault: what is wrong with it, for a
  // message; with the entity's names.
  std::optional<uint8_t> begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream, std::string &fault);
  // What has been made, or has not.
  uint8_t finish(std::string &fault);
  // DDS has not made it yet: its stream stands still, and so do other creations of this client.
  bool is_under_way() const;
  bool is_begun() const { return pending_ != nullptr; }
  // The stream of what is begun.
  uint8_t stream() const { return pending_->stream; }
  bool is_of(uint8_t stream, tide_xrce_request_t request) const;
  void forget() { pending_.reset(); }
  // An entity is removed: what is made may have lost its parent.
  void removes(uint16_t object);

 private:
  struct Pending {
    uint8_t stream = 0;
    tide_xrce_request_t request{};
    Entity entity{};
    bool orphaned = false;           // its parent was deleted meanwhile
    std::shared_ptr<Signal> signal;  // that it is made
  };

  std::optional<uint8_t> try_begin(const tide_xrce_create_t &body, uint8_t flags, uint8_t stream,
                                   Definition &definition, std::string &fault);
  std::string rename(Definition &definition) const;
  uint8_t try_finish(std::string &fault);
  uint8_t instantiate(uint16_t object, Definition &definition, Entity &entity, std::string &fault);
  std::shared_ptr<Release> release_of(int domain, const std::string &topic);
  uint8_t make_participant(Definition &definition, Entity &entity, std::string &fault);
  Wake wake_of(std::shared_ptr<Signal> &signal, uint16_t object);

  Context &context_;
  Entities &entities_;
  uint32_t key_;  // of the client
  const Renaming *names_ = nullptr;
  std::unique_ptr<Pending> pending_;
};

}  // namespace tide::agent
