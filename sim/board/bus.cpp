// SPDX-License-Identifier: Apache-2.0
#include "sim/board/bus.h"

#include <algorithm>
#include <utility>

namespace tide::sim {

class BusReader : public agent::Source {
 public:
  BusReader(Bus &bus, std::string topic, const agent::Qos &qos, agent::Wake wake)
      : bus_(bus), topic_(std::move(topic)), qos_(qos), wake_(std::move(wake)) {
    bus_.readers_[topic_].push_back(this);
  }
  ~BusReader() override { std::erase(bus_.readers_[topic_], this); }
  void offer(const Bus::Payload &payload) {
    waiting_.push_back(payload);
    if (!qos_.keep_all && waiting_.size() > qos_.depth) {
      waiting_.pop_front();
      skipped_++;
    }
    wake_();
  }
  bool take(agent::Sample &sample) override {
    if (waiting_.empty()) return false;
    sample = {};
    sample.payload = std::move(waiting_.front());
    sample.skipped = std::exchange(skipped_, 0u);
    waiting_.pop_front();
    return true;
  }

 private:
  Bus &bus_;
  std::string topic_;
  agent::Qos qos_;
  agent::Wake wake_;
  std::deque<Bus::Payload> waiting_;
  uint32_t skipped_ = 0;
};

class BusWriter : public agent::Writer {
 public:
  BusWriter(Bus &bus, std::string topic) : bus_(bus), topic_(std::move(topic)) {}
  bool has_reader() const override { return true; }
  bool is_acknowledged() override { return true; }
  bool write(agent::Bytes payload, bool) override {
    bus_.publish(topic_, {payload.begin(), payload.end()});
    return true;
  }

 private:
  Bus &bus_;
  std::string topic_;
};

class BusParticipant : public agent::Participant {
 public:
  explicit BusParticipant(Bus &bus) : bus_(bus) {}
  bool check_topic(const agent::Topic &) override { return true; }
  std::unique_ptr<agent::Writer> create_writer(const agent::Topic &topic, const agent::Qos &) override {
    return std::make_unique<BusWriter>(bus_, topic.name);
  }
  std::unique_ptr<agent::Source> create_reader(const agent::Topic &topic, const agent::Qos &qos,
                                               agent::Wake wake) override {
    return std::make_unique<BusReader>(bus_, topic.name, qos, std::move(wake));
  }
  std::unique_ptr<agent::Requester> create_requester(const agent::Service &service, const agent::Qos &,
                                                     agent::Wake wake) override {
    return bus_.services.create_requester(service, std::move(wake));
  }
  std::unique_ptr<agent::Replier> create_replier(const agent::Service &service, const agent::Qos &,
                                                 agent::Wake wake) override {
    return bus_.services.create_replier(service, std::move(wake));
  }

 private:
  Bus &bus_;
};

std::unique_ptr<agent::Participant> Bus::create_participant(int, const std::string &) {
  return std::make_unique<BusParticipant>(*this);
}

void Bus::subscribe(const std::string &topic, Receive receive) { subscriptions_[topic].push_back(std::move(receive)); }

size_t Bus::publish(const std::string &topic, const Payload &payload) {
  for (const Receive &receive : subscriptions_[topic]) receive(payload);
  const auto &readers = readers_[topic];
  for (BusReader *reader : readers) reader->offer(payload);
  return readers.size();
}

HostExecutor::HostExecutor(Engine &engine, unsigned lanes, uint64_t seed)
    : engine_(engine), free_lanes_(lanes), random_(seed), order_(static_cast<Order>(random_.below(3))) {}

void HostExecutor::add(const void *callback, Time execution, bool alone, std::function<void()> body) {
  ready_.push_back({callback, execution, alone, std::move(body)});
  begin();
}

void HostExecutor::begin() {
  while (free_lanes_ > 0) {
    std::vector<size_t> able;
    for (size_t place = 0; place < ready_.size(); place++) {
      if (may_run(ready_[place])) able.push_back(place);
    }
    if (able.empty()) return;
    const size_t chosen = order_ == Order::kOldest   ? able.front()
                          : order_ == Order::kNewest ? able.back()
                                                     : able[random_.below(able.size())];
    const auto oldest = std::find_if(ready_.begin(), ready_.end(), [this, chosen](const Ready &one) {
      return one.callback == ready_[chosen].callback;
    });
    const auto place = static_cast<size_t>(oldest - ready_.begin());
    free_lanes_--;
    const void *const alone = oldest->alone ? oldest->callback : nullptr;
    if (alone != nullptr) running_.insert(alone);
    engine_.after(ready_[place].execution, [this, alone, body = std::move(ready_[place].body)] {
      free_lanes_++;
      if (alone != nullptr) running_.erase(alone);
      body();
      begin();
    });
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

void HostCallback::receive(const Bus::Payload &payload) {
  if (executor_ != nullptr) {
    const void *const callback = server_ == nullptr ? this : server_;
    executor_->add(callback, execution_, server_ != nullptr, [this, payload] { body_(payload); });
    return;
  }
  free_at_ = std::max(free_at_, engine_.now()) + execution_;
  engine_.at(free_at_, [this, payload] { body_(payload); });
}

}  // namespace tide::sim
