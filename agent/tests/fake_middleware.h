// SPDX-License-Identifier: Apache-2.0
// A fake of DDS: the test provides the samples, and can inspect what is written.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/middleware.h"

namespace tide::agent::test {

struct Written {
  std::string topic;
  std::vector<uint8_t> payload;
  bool big_endian = false;
  SampleIdentity identity{};
  uint64_t number = 0;  // at a requester: number of the request
};

class FakeMiddleware;

// A creation under way, which the test ends.
struct FakeMaking {
  Made::State state = Made::State::kMade;
  Wake wake;
};

// The reading side of a reader, a requester (its replies) or a replier (its requests).
struct FakeSource {
  Topic topic;
  Qos qos;
  Wake wake;
  std::deque<Sample> waiting;
  uint64_t taken = 0;
  void offer(Sample sample) {
    waiting.push_back(std::move(sample));
    const size_t room = std::max<size_t>(qos.depth, 256);  // as in dds/domain.cpp
    if (!qos.keep_all && waiting.size() > room) waiting.pop_front();
    wake();
  }
  bool take(Sample &sample) {
    if (waiting.empty()) return false;
    sample = std::move(waiting.front());
    waiting.pop_front();
    taken++;
    return true;
  }
};

class FakeMiddleware : public Middleware {
 public:
  std::unique_ptr<Participant> create_participant(int domain, const std::string &name) override;

  // The most recently created source that still exists; null if there is none.
  FakeSource *newest_source() { return sources.empty() ? nullptr : sources.back(); }
  void remove(FakeSource *source) { std::erase(sources, source); }

  std::vector<FakeSource *> sources;
  std::vector<Written> written;
  std::vector<const Topic *> written_topics;  // topics of all existing writers
  std::vector<int> domains;
  int participants = 0, writers = 0;
  uint64_t requests = 0;
  // Ends all creations under way.
  void finish(Made::State state) {
    for (const auto &one : std::exchange(making, {})) {
      one->state = state;
      if (one->wake) one->wake();
    }
  }

  bool later = false;  // true: the creation of participants and writers ends only when finish is called
  std::vector<std::shared_ptr<FakeMaking>> making;
  bool refuse = false;                   // true: every creation is refused
  bool wake_and_refuse = false;          // true: readers, requesters and repliers report an event and are then refused
  bool full = false;                     // true: writers accept no samples
  bool unread = false;                   // true: writers have no reader
  bool unacknowledged = false;           // true: discovered readers do not know their writers
  bool served = true;                    // true: requesters have found a server
  std::set<SampleIdentity> unreachable;  // requests whose clients DDS has not discovered
  std::function<void(const Written &)> on_written;
  std::function<void()> on_source;  // called when a source was created

  void write(Written sample) {
    written.push_back(std::move(sample));
    if (on_written) on_written(written.back());
  }
};

template <typename Base> class FakeReading : public Base {
 public:
  FakeReading(FakeMiddleware &middleware, Topic topic, const Qos &qos, Wake wake)
      : middleware_(middleware), source_{std::move(topic), qos, std::move(wake), {}, 0} {
    middleware_.sources.push_back(&source_);
    if (middleware_.on_source) middleware_.on_source();
  }
  ~FakeReading() override { middleware_.remove(&source_); }
  bool take(Sample &sample) override { return source_.take(sample); }

 protected:
  FakeMiddleware &middleware_;
  FakeSource source_;
};

template <typename Base> class FakeMade : public Base {
 public:
  explicit FakeMade(FakeMiddleware &middleware) : middleware_(middleware) {
    if (!middleware.later) return;
    making_->state = Made::State::kUnderWay;
    middleware.making.push_back(making_);
  }
  Made::State state() const override { return making_->state; }
  void await(Wake wake) override { making_->wake = std::move(wake); }

 protected:
  FakeMiddleware &middleware_;

 private:
  std::shared_ptr<FakeMaking> making_ = std::make_shared<FakeMaking>();
};

class FakeWriter : public FakeMade<Writer> {
 public:
  FakeWriter(FakeMiddleware &middleware, Topic topic) : FakeMade(middleware), topic_(std::move(topic)) {
    middleware_.writers++;
    middleware_.written_topics.push_back(&topic_);
  }
  ~FakeWriter() override {
    middleware_.writers--;
    std::erase(middleware_.written_topics, &topic_);
  }
  bool has_reader() const override { return !middleware_.unread; }
  bool is_acknowledged() override { return !middleware_.unacknowledged; }
  bool write(Bytes payload, bool big_endian) override {
    if (middleware_.full) return false;
    middleware_.write({topic_.name, {payload.begin(), payload.end()}, big_endian, {}});
    return true;
  }

 private:
  Topic topic_;
};

class FakeRequester : public FakeReading<Requester> {
 public:
  FakeRequester(FakeMiddleware &middleware, const Service &service, const Qos &qos, Wake wake)
      : FakeReading(middleware, service.reply, qos, std::move(wake)), topic_(service.request) {}
  bool is_served() override { return middleware_.served; }
  std::optional<uint64_t> send(Bytes payload, bool big_endian) override {
    if (middleware_.full) return std::nullopt;
    middleware_.write({topic_.name, {payload.begin(), payload.end()}, big_endian, {}, ++middleware_.requests});
    return middleware_.requests;
  }

 private:
  Topic topic_;
};

class FakeReplier : public FakeReading<Replier> {
 public:
  FakeReplier(FakeMiddleware &middleware, const Service &service, const Qos &qos, Wake wake)
      : FakeReading(middleware, service.request, qos, std::move(wake)), topic_(service.reply) {}
  bool reaches(const SampleIdentity &request) override { return !middleware_.unreachable.contains(request); }
  bool send(const SampleIdentity &request, Bytes payload, bool big_endian) override {
    if (middleware_.full) return false;
    middleware_.write({topic_.name, {payload.begin(), payload.end()}, big_endian, request});
    return true;
  }

 private:
  Topic topic_;
};

class FakeParticipant : public FakeMade<Participant> {
 public:
  explicit FakeParticipant(FakeMiddleware &middleware) : FakeMade(middleware) { middleware_.participants++; }
  ~FakeParticipant() override { middleware_.participants--; }
  bool check_topic(const Topic &topic) override {
    for (const FakeSource *source : middleware_.sources) {
      if (source->topic.name == topic.name && source->topic.type != topic.type) return false;
    }
    const auto conflicts = [&](const Topic *other) { return other->name == topic.name && other->type != topic.type; };
    return std::none_of(middleware_.written_topics.begin(), middleware_.written_topics.end(), conflicts);
  }
  std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &) override {
    if (middleware_.refuse) return nullptr;
    return std::make_unique<FakeWriter>(middleware_, topic);
  }
  std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
    if (refuses(wake)) return nullptr;
    return std::make_unique<FakeReading<Source>>(middleware_, topic, qos, std::move(wake));
  }
  std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) override {
    if (refuses(wake)) return nullptr;
    return std::make_unique<FakeRequester>(middleware_, service, qos, std::move(wake));
  }
  std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) override {
    if (refuses(wake)) return nullptr;
    return std::make_unique<FakeReplier>(middleware_, service, qos, std::move(wake));
  }

 private:
  // Reports an event before the refusal, as DDS does if it matches one half of a service and refuses the other.
  bool refuses(const Wake &wake) const {
    if (middleware_.wake_and_refuse) wake();
    return middleware_.refuse || middleware_.wake_and_refuse;
  }
};

inline std::unique_ptr<Participant> FakeMiddleware::create_participant(int domain, const std::string &) {
  if (refuse) return nullptr;
  domains.push_back(domain);
  return std::make_unique<FakeParticipant>(*this);
}

}  // namespace tide::agent::test
