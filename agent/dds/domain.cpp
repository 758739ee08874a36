// SPDX-License-Identifier: Apache-2.0
#include "dds/domain.h"

#include <algorithm>

namespace tide::agent {
namespace {

constexpr size_t kSparesMaximum = 4;  // each is a participant, with its threads

}  // namespace

std::shared_ptr<Domain> Domain::make(const MakeOwner &make_owner, size_t gid_bytes, Worker &worker) {
  OwnerPointer owner = make_owner();
  if (owner == nullptr) return nullptr;
  return std::shared_ptr<Domain>(new Domain(make_owner, std::move(owner), gid_bytes, worker));
}

Domain::Domain(MakeOwner make_owner, OwnerPointer owner, size_t gid_bytes, Worker &worker)
    : make_owner_(std::move(make_owner)),
      gid_bytes_(gid_bytes),
      worker_(worker),
      owner_(std::move(owner)),
      graph_(owner_->participant(), gid_bytes, [this](Worker::Clock::time_point time) { publish_at(time); }) {}

void Domain::publish_at(Worker::Clock::time_point time) {
  worker_.add_at(time, [self = weak_from_this()] {
    if (const auto domain = self.lock()) domain->graph_.publish();
  });
}

OwnerPointer Domain::find_owner(const Topic &topic) {
  std::erase_if(spares_, [](const auto &spare) { return spare.expired(); });
  std::vector<OwnerPointer> owners = {owner_};
  for (const auto &spare : spares_) owners.push_back(spare.lock());
  for (const Owner::Fit fit : {Owner::Fit::kThere, Owner::Fit::kFree}) {
    const auto place =
        std::find_if(owners.begin(), owners.end(), [&](const auto &owner) { return owner->find(topic) == fit; });
    if (place != owners.end()) return *place;
  }
  if (spares_.size() >= kSparesMaximum) return nullptr;
  OwnerPointer spare = make_owner_();
  if (spare != nullptr) spares_.push_back(spare);
  return spare;
}

}  // namespace tide::agent
