// SPDX-License-Identifier: Apache-2.0
// Which domains DDS has UDP ports for, and which of them clients use. A participant's ports follow from its domain and
// its number in the process (RTPS 2.3, 9.6.1): 7400 + 250 * domain + 11 + 2 * number. Fast DDS ends the process when
// that exceeds 65535.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace tide::agent {

constexpr int kDomainMaximum = 232;

// How many DDS participants a process may have after it makes one in this domain; 0: no such domain. The numbers of a
// few more are kept free, as Fast DDS counts on where another process has taken a port.
constexpr size_t participants_maximum(int domain) {
  constexpr int kPortMaximum = 65535, kFirstPort = 7411, kOfDomain = 250, kOfParticipant = 2, kReserved = 16;
  if (domain < 0 || domain > kDomainMaximum) return 0;
  return static_cast<size_t>((kPortMaximum - kFirstPort - kOfDomain * domain) / kOfParticipant + 1 - kReserved);
}

// Each domain costs threads, sockets and megabytes, whoever asked for it.
class Domains {
 public:
  // Held as long as the domain is used; copies share it.
  using Use = std::shared_ptr<const int>;

  // Null: as many others are used already.
  Use enter(int domain, size_t limit) {
    std::erase_if(used_, [](const auto &entry) { return entry.second.expired(); });
    std::weak_ptr<const int> &known = used_[domain];
    Use use = known.lock();
    if (use != nullptr) return use;
    if (used_.size() > limit) {
      used_.erase(domain);
      return nullptr;
    }
    use = std::make_shared<const int>(domain);
    known = use;
    return use;
  }

 private:
  std::map<int, std::weak_ptr<const int>> used_;
};

}  // namespace tide::agent
