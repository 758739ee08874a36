// SPDX-License-Identifier: Apache-2.0
// One participant of the real DDS for all clients of a domain, as making one takes milliseconds; now and then a client
// gets one of its own.
#pragma once

#include <map>
#include <memory>
#include <semaphore>

#include "core/middleware.h"
#include "sequences.h"

namespace tide::agent::test {

// Whether it was made in the end.
inline bool settled(Made &made) {
  const auto done = std::make_shared<std::binary_semaphore>(0);
  made.await([done] { done->release(); });
  done->acquire();
  return made.state() == Made::State::kMade;
}

class SharedMiddleware : public Middleware {
 public:
  // own_every: so often a client gets a participant of its own; 0: never.
  SharedMiddleware(Middleware &real, unsigned own_every) : real_(real), own_every_(own_every) {}

  std::unique_ptr<Participant> create_participant(int domain, const std::string &name) override {
    const bool is_good = name == kGoodName;  // those two find each other at once
    if (!is_good) count_++;
    if (!is_good && own_every_ != 0 && count_ % own_every_ == 0) return real_.create_participant(domain, name);
    std::shared_ptr<Participant> &shared = shared_[domain];
    if (shared == nullptr) shared = real_.create_participant(domain, name);
    if (shared == nullptr || !settled(*shared)) return nullptr;
    return std::make_unique<Share>(shared);
  }

  void flush() override { real_.flush(); }

 private:
  class Share : public Participant {
   public:
    explicit Share(std::shared_ptr<Participant> real) : real_(std::move(real)) {}
    bool check_topic(const Topic &topic) override { return real_->check_topic(topic); }
    std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &qos) override {
      return real_->create_writer(topic, qos);
    }
    std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
      return real_->create_reader(topic, qos, std::move(wake));
    }
    std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) override {
      return real_->create_requester(service, qos, std::move(wake));
    }
    std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) override {
      return real_->create_replier(service, qos, std::move(wake));
    }

   private:
    std::shared_ptr<Participant> real_;
  };

  Middleware &real_;
  unsigned own_every_, count_ = 0;
  std::map<int, std::shared_ptr<Participant>> shared_;
};

}  // namespace tide::agent::test
