// SPDX-License-Identifier: Apache-2.0
#include "sim/board/bus_services.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace tide::sim {
namespace {

constexpr uint8_t kIdentity = 0x5A;  // of every asker; what tells requests apart is the number behind it
constexpr size_t kNumberPlace = 16;

std::string name_of(const agent::Service &service) {
  constexpr size_t kPrefixBytes = 3, kSuffixBytes = 7;  // rq/ and Request
  const std::string &topic = service.request.name;
  return topic.substr(kPrefixBytes, topic.size() - kPrefixBytes - kSuffixBytes);
}

agent::SampleIdentity identity_of(uint64_t number) {
  agent::SampleIdentity identity;
  identity.fill(kIdentity);
  for (size_t octet = 0; octet < 8; octet++) identity[kNumberPlace + octet] = static_cast<uint8_t>(number >> 8 * octet);
  return identity;
}

// 0: none of ours.
uint64_t number_of(const agent::SampleIdentity &identity) {
  uint64_t number = 0;
  for (size_t octet = 8; octet-- > 0;) number = number << 8 | identity[kNumberPlace + octet];
  return identity == identity_of(number) ? number : 0;
}

}  // namespace

class BusRequester : public agent::Requester {
 public:
  BusRequester(Services &services, std::string service, agent::Wake wake)
      : services_(services), service_(std::move(service)), wake_(std::move(wake)) {
    services_.entry(service_).requesters.push_back(this);
  }
  ~BusRequester() override { std::erase(services_.entry(service_).requesters, this); }
  bool is_served() override { return services_.is_served(service_); }
  std::optional<uint64_t> send(agent::Bytes payload, bool) override {
    const uint64_t number = ++sent_;
    const std::weak_ptr<BusRequester *> alive = alive_;
    services_.ask(service_, {payload.begin(), payload.end()}, [alive, number](const Services::Payload &reply) {
      if (const auto self = alive.lock()) (*self)->offer(number, reply);
    });
    return number;
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  void wake() { wake_(); }

 private:
  void offer(uint64_t number, const Services::Payload &reply) {
    agent::Sample sample;
    sample.payload = reply;
    sample.request = number;
    waiting_.push_back(std::move(sample));
    wake_();
  }

  Services &services_;
  std::string service_;
  agent::Wake wake_;
  uint64_t sent_ = 0;
  std::deque<agent::Sample> waiting_;
  std::shared_ptr<BusRequester *> alive_ = std::make_shared<BusRequester *>(this);  // for replies that come later
};

class BusReplier : public agent::Replier {
 public:
  BusReplier(Services &services, std::string service, agent::Wake wake)
      : services_(services), service_(std::move(service)), wake_(std::move(wake)) {
    services_.entry(service_).replier = this;
    for (BusRequester *requester : services_.entry(service_).requesters) requester->wake();
  }
  ~BusReplier() override {
    if (services_.entry(service_).replier == this) services_.entry(service_).replier = nullptr;
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  bool reaches(const agent::SampleIdentity &) override { return true; }
  bool send(const agent::SampleIdentity &request, agent::Bytes payload, bool) override {
    services_.answer(service_, number_of(request), {payload.begin(), payload.end()});
    return true;
  }
  void offer(uint64_t number, const Services::Payload &request) {
    agent::Sample sample;
    sample.payload = request;
    sample.identity = identity_of(number);
    waiting_.push_back(std::move(sample));
    wake_();
  }

 private:
  Services &services_;
  std::string service_;
  agent::Wake wake_;
  std::deque<agent::Sample> waiting_;
};

std::unique_ptr<agent::Requester> Services::create_requester(const agent::Service &service, agent::Wake wake) {
  return std::make_unique<BusRequester>(*this, name_of(service), std::move(wake));
}

std::unique_ptr<agent::Replier> Services::create_replier(const agent::Service &service, agent::Wake wake) {
  return std::make_unique<BusReplier>(*this, name_of(service), std::move(wake));
}

void Services::ask(const std::string &service, const Payload &request, Take reply) {
  Entry &of = entry(service);
  const uint64_t number = ++last_;
  asked_.emplace(number, std::move(reply));
  for (const Take &take : of.requests) take(request);
  if (of.serve) {
    of.serve(request, [this, service, number](const Payload &answered) { answer(service, number, answered); });
    return;
  }
  // A server that is gone by then loses it.
  const auto deliver = [this, service, number, request] {
    if (BusReplier *replier = entry(service).replier) replier->offer(number, request);
  };
  of.to_server ? of.to_server(deliver) : deliver();
}

// Each request is answered once; a reply to what nobody has asked, or was answered, reaches nobody.
void Services::answer(const std::string &service, uint64_t number, const Payload &reply) {
  auto asked = asked_.extract(number);
  if (asked.empty()) {
    unasked_replies_++;
    return;
  }
  Entry &of = entry(service);
  for (const Take &take : of.replies) take(reply);
  const auto deliver = [take = std::move(asked.mapped()), reply] { take(reply); };
  of.to_asker ? of.to_asker(deliver) : deliver();
}

}  // namespace tide::sim
