// SPDX-License-Identifier: Apache-2.0
#include "dds/shared_node.h"

#include <utility>
#include <vector>

#include "dds/endpoints.h"
#include "dds/later.h"
#include "dds/services.h"
#include "dds/watch.h"

namespace tide::agent {
namespace {

constexpr std::chrono::seconds kStay{10};
constexpr size_t kDomainsThatStay = 4;

// The topics of one node, each with one type as long as it is in use. Of the agent's thread.
class Names {
 public:
  bool allows(const Topic &topic) const {
    const auto place = types_.find(topic.name);
    return place == types_.end() || place->second.first == topic.type;
  }
  void use(const Topic &topic) { types_.try_emplace(topic.name, topic.type, 0).first->second.second++; }
  void release(const Topic &topic) {
    const auto place = types_.find(topic.name);
    if (--place->second.second == 0) types_.erase(place);
  }

 private:
  std::map<std::string, std::pair<std::string, size_t>> types_;
};
using NamesPointer = std::shared_ptr<Names>;

class Uses {
 public:
  explicit Uses(NamesPointer names) : names_(std::move(names)) {}
  ~Uses() {
    for (const Topic &topic : topics_) names_->release(topic);
  }
  Uses(Uses &&) = default;
  Uses &operator=(Uses &&) = delete;

  bool add(const Topic &topic) {
    if (!names_->allows(topic)) return false;
    names_->use(topic);
    topics_.push_back(topic);
    return true;
  }

 private:
  NamesPointer names_;
  std::vector<Topic> topics_;
};

template <typename Base>
class LaterEntity : public Base {
 public:
  LaterEntity(Uses uses, Worker &worker, Outbox &outbox, std::shared_ptr<Worker::Lane> lane,
              typename Later<Base>::Make make)
      : uses_(std::move(uses)), later_(worker, outbox, std::move(lane), std::move(make)) {}

  Made::State state() const override { return later_.state(); }
  void await(Wake wake) override { later_.await(std::move(wake)); }

 protected:
  Uses uses_;
  Later<Base> later_;
};

class LaterWriter : public LaterEntity<Writer> {
 public:
  using LaterEntity::LaterEntity;
  bool write(Bytes payload, bool big_endian) override { return later_->write(payload, big_endian); }
  bool has_reader() const override { return later_->has_reader(); }
  bool is_acknowledged() override { return later_->is_acknowledged(); }
};

class LaterReader : public LaterEntity<Source> {
 public:
  using LaterEntity::LaterEntity;
  bool take(Sample &sample) override { return later_->take(sample); }
};

class LaterRequester : public LaterEntity<Requester> {
 public:
  using LaterEntity::LaterEntity;
  bool take(Sample &sample) override { return later_->take(sample); }
  bool is_served() override { return later_->is_served(); }
  std::optional<uint64_t> send(Bytes payload, bool big_endian) override { return later_->send(payload, big_endian); }
};

class LaterReplier : public LaterEntity<Replier> {
 public:
  using LaterEntity::LaterEntity;
  bool take(Sample &sample) override { return later_->take(sample); }
  bool reaches(const SampleIdentity &request) override { return later_->reaches(request); }
  bool send(const SampleIdentity &request, Bytes payload, bool big_endian) override {
    return later_->send(request, payload, big_endian);
  }
};

struct Cell {  // what the worker has made of the node
  NodePointer node;
};
using CellPointer = std::shared_ptr<Cell>;

class SharedNode : public Participant {
 public:
  SharedNode(Worker &worker, Outbox &outbox, EnterDomain enter)
      : worker_(worker),
        outbox_(outbox),
        lane_(std::make_shared<Worker::Lane>()),
        cell_(std::make_shared<Cell>()),
        names_(std::make_shared<Names>()),
        later_(worker, outbox, lane_, [cell = cell_, enter = std::move(enter)]() -> std::unique_ptr<Entrance> {
          cell->node = enter();
          return cell->node == nullptr ? nullptr : std::make_unique<Entrance>(cell);
        }) {}

  State state() const override { return later_.state(); }
  void await(Wake wake) override { later_.await(std::move(wake)); }

  bool check_topic(const Topic &topic) override { return names_->allows(topic); }
  std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &qos) override {
    return make<LaterWriter, Writer>(
        {topic}, [topic, qos](const NodePointer &node) { return DdsWriter::make(node, topic, qos); });
  }
  std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
    if (is_graph(topic)) {
      return make<LaterReader, Source>(
          {topic}, [worker = &worker_, wake](const NodePointer &node) { return make_watch(node, *worker, wake); });
    }
    return make<LaterReader, Source>({topic}, [topic, qos, wake](const NodePointer &node) {
      return DdsReader::make(node, topic, qos, [wake](eprosima::fastdds::dds::DataReader &) { wake(); });
    });
  }
  std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) override {
    return make<LaterRequester, Requester>(
        {service.request, service.reply},
        [service, qos, wake](const NodePointer &node) { return make_requester(node, service, qos, wake); });
  }
  std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) override {
    return make<LaterReplier, Replier>({service.request, service.reply}, [service, qos, wake](const NodePointer &node) {
      return make_replier(node, service, qos, wake);
    });
  }

 private:
  struct Entrance {  // its end is the node's, once its readers and writers have gone
    explicit Entrance(CellPointer whose) : cell(std::move(whose)) {}
    ~Entrance() { cell->node = nullptr; }
    Entrance(const Entrance &) = delete;
    Entrance &operator=(const Entrance &) = delete;
    CellPointer cell;
  };

  template <typename Handle, typename Base, typename Make>
  std::unique_ptr<Base> make(const std::vector<Topic> &topics, Make how) {
    Uses uses(names_);
    for (const Topic &topic : topics) {
      if (!uses.add(topic)) return nullptr;
    }
    return std::make_unique<Handle>(std::move(uses), worker_, outbox_, lane_,
                                    [cell = cell_, how = std::move(how)]() -> std::unique_ptr<Base> {
                                      return cell->node == nullptr ? nullptr : how(cell->node);
                                    });
  }

  Worker &worker_;
  Outbox &outbox_;
  std::shared_ptr<Worker::Lane> lane_;
  CellPointer cell_;
  NamesPointer names_;
  Later<Entrance> later_;
};

}  // namespace

std::shared_ptr<Domain> SharedDomains::enter(int domain) {
  const auto place = entries_.find(domain);
  if (place != entries_.end()) return place->second.domain;
  std::shared_ptr<Domain> made = make_(domain);
  if (made != nullptr) entries_[domain].domain = made;
  return made;
}

void SharedDomains::left(int domain) {
  const auto place = entries_.find(domain);
  if (place == entries_.end()) return;
  place->second.left = Worker::Clock::now();
  if (entries_.size() > kDomainsThatStay) {
    release(domain);
  } else {
    worker_.add_at(place->second.left + kStay, [this, domain] { release(domain); });
  }
}

void SharedDomains::release(int domain) {
  const auto place = entries_.find(domain);
  if (place == entries_.end() || place->second.domain.use_count() > 1) return;
  const bool stays = entries_.size() <= kDomainsThatStay;
  if (!stays || Worker::Clock::now() - place->second.left >= kStay) entries_.erase(place);
}

std::unique_ptr<Participant> make_shared_node(Worker &worker, Outbox &outbox, EnterDomain enter) {
  return std::make_unique<SharedNode>(worker, outbox, std::move(enter));
}

}  // namespace tide::agent
