// SPDX-License-Identifier: Apache-2.0
#include "dds/fast_dds.h"

#include <fastrtps/attributes/LibrarySettingsAttributes.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>
#include <unistd.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/limits.h"
#include "dds/domain.h"
#include "dds/endpoints.h"
#include "dds/transport.h"
#include "dds/worker.h"

namespace tide::agent {
namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

// ---- log ----

class PlainConsumer : public dds::LogConsumer {
 public:
  void Consume(const dds::Log::Entry &entry) override {
    std::ostringstream line;
    line << entry.timestamp << (entry.kind == dds::Log::Kind::Error ? " error, " : " warning, ")
         << entry.context.category << ": " << entry.message << '\n';
    std::cerr << line.str();  // in one write, because other threads write to it, too
  }
};

// Sends messages of Fast DDS to standard error: in colours to a terminal, as plain lines to a file or pipe.
void log_to_standard_error(bool verbose) {
  dds::Log::ClearConsumers();
  if (isatty(STDERR_FILENO) != 0) {
    auto consumer = std::make_unique<dds::StdoutErrConsumer>();
    consumer->stderr_threshold(dds::Log::Kind::Info);
    dds::Log::RegisterConsumer(std::move(consumer));
  } else {
    dds::Log::RegisterConsumer(std::make_unique<PlainConsumer>());
  }
  dds::Log::SetVerbosity(verbose ? dds::Log::Kind::Warning : dds::Log::Kind::Error);
}

// ---- shared domains ----

// The DDS domains that clients share. A domain is kept for a while after its last client has left, so that the peers of
// a returning client are already discovered. Only the worker's thread uses this object, which must outlive the worker.
class SharedDomains {
 public:
  using Make = std::function<std::shared_ptr<Domain>(int domain)>;  // returns null if DDS refuses

  SharedDomains(Make make, Worker &worker) : make_(std::move(make)), worker_(worker) {}

  std::shared_ptr<Domain> enter(int domain) {
    const auto place = entries_.find(domain);
    if (place != entries_.end()) return place->second.domain;
    std::shared_ptr<Domain> made = make_(domain);
    if (made != nullptr) entries_[domain].domain = made;
    return made;
  }

  void left(int domain) {
    const auto place = entries_.find(domain);
    if (place == entries_.end()) return;
    place->second.left = Worker::Clock::now();
    if (entries_.size() > kDomainsThatStay) {
      release(domain);
    } else {
      worker_.add_at(place->second.left + kStay, [this, domain] { release(domain); });
    }
  }

 private:
  static constexpr std::chrono::seconds kStay{10};
  static constexpr size_t kDomainsThatStay = 4;

  struct Entry {
    std::shared_ptr<Domain> domain;
    Worker::Clock::time_point left{};
  };

  void release(int domain) {
    const auto place = entries_.find(domain);
    if (place == entries_.end() || place->second.domain.use_count() > 1) return;
    const bool stays = entries_.size() <= kDomainsThatStay;
    if (!stays || Worker::Clock::now() - place->second.left >= kStay) entries_.erase(place);
  }

  Make make_;
  Worker &worker_;
  std::map<int, Entry> entries_;
};

// ---- a client's participant ----

// The topics in use by one node, each with its only type. Only the agent's thread uses this object.
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

// Holds the topics that an entity uses until the entity is destroyed.
class Uses {
 public:
  explicit Uses(std::shared_ptr<Names> names) : names_(std::move(names)) {}
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
  std::shared_ptr<Names> names_;
  std::vector<Topic> topics_;
};

template <typename Base> class LaterEntity : public Base {
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

struct Cell {  // used only by the worker
  NodePointer node;
};

// A client's participant: a node of a shared domain, or of a domain for this client alone. The worker creates and
// deletes its entities.
class SharedNode : public Participant {
 public:
  // `enter` is called by the worker to join the domain; it returns null if DDS refuses.
  SharedNode(Worker &worker, Outbox &outbox, std::function<NodePointer()> enter)
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
    return make<LaterWriter, Writer>({topic},
                                     [topic, qos](const NodePointer &node) { return make_writer(node, topic, qos); });
  }
  std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) override {
    if (is_graph(topic)) {
      return make<LaterReader, Source>(
          {topic}, [worker = &worker_, wake](const NodePointer &node) { return make_watch(node, *worker, wake); });
    }
    return make<LaterReader, Source>(
        {topic}, [topic, qos, wake](const NodePointer &node) { return make_reader(node, topic, qos, wake); });
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
  struct Entrance {  // its destruction removes the node as soon as all readers and writers of the node are deleted
    explicit Entrance(std::shared_ptr<Cell> whose) : cell(std::move(whose)) {}
    ~Entrance() { cell->node = nullptr; }
    Entrance(const Entrance &) = delete;
    Entrance &operator=(const Entrance &) = delete;
    std::shared_ptr<Cell> cell;
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
  std::shared_ptr<Cell> cell_;
  std::shared_ptr<Names> names_;
  Later<Entrance> later_;
};

// ---- Fast DDS ----

constexpr const char *kSharedName = "tide-agent";
// Period of announcements. A new ROS 2 node often misses the answer to its first announcement, because it cannot
// receive yet. It then discovers no peer until the next announcement, by default three seconds later. With one
// participant for each client, announcements at this rate would be too much traffic, so there the default applies.
constexpr int32_t kAnnouncementMilliseconds = 500;
constexpr uint32_t kFirstAnnouncementMilliseconds = 20;  // short, because the first announcement is not sent
                                                         // (Contacts::open)

dds::DomainParticipantQos participant_qos(const DdsOptions &options, const std::string &name, Outbox &outbox,
                                          const std::shared_ptr<Contacts> &contacts) {
  dds::DomainParticipantQos qos = dds::PARTICIPANT_QOS_DEFAULT;
  qos.name(name.c_str());
  // Without shared memory, even on one machine, because the segments of different versions of Fast DDS are
  // incompatible.
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(make_transport(options.loopback_only, outbox, contacts));
  auto &builtin = qos.wire_protocol().builtin;
  builtin.readerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  builtin.writerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  rtps::Locator_t peer;  // without a port, so that the ports of a machine's first participants are tried
  rtps::IPLocator::setIPv4(peer, "127.0.0.1");
  builtin.initialPeersList.push_back(peer);
  builtin.discovery_config.initial_announcements.period = {0, kFirstAnnouncementMilliseconds * 1'000'000u};
  if (options.shared_participants)
    builtin.discovery_config.leaseDuration_announcementperiod = {0, kAnnouncementMilliseconds * 1'000'000u};
  if (!options.loopback_only) {
    rtps::Locator_t group;
    rtps::IPLocator::setIPv4(group, "239.255.0.1");
    builtin.initialPeersList.push_back(group);
  }
  const std::string enclave = "enclave=/;";  // the mark of ROS 2 participants
  qos.user_data().data_vec({enclave.begin(), enclave.end()});
  return qos;
}

class FastDds : public Middleware {
 public:
  explicit FastDds(const DdsOptions &options) : options_(options) {
    log_to_standard_error(options.verbose);
    // Fast DDS 2.9 passes samples directly to readers of the same process without keeping these readers alive, so it
    // may write to a reader that another thread is deleting. This cannot happen if samples are sent over the transport.
    eprosima::fastrtps::LibrarySettingsAttributes settings;
    settings.intraprocess_delivery = eprosima::fastrtps::INTRAPROCESS_OFF;
    eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
  }

  std::unique_ptr<Participant> create_participant(int domain, const std::string &name) override {
    return std::make_unique<SharedNode>(worker_, outbox_, [this, domain, name]() -> NodePointer {
      const bool shares = options_.shared_participants;
      std::shared_ptr<Domain> entered = shares ? domains_.enter(domain) : make_domain(domain, name);
      if (entered == nullptr) return nullptr;
      return std::make_shared<Node>(std::move(entered), name, [this, domain, shares] {
        if (shares) domains_.left(domain);
      });
    });
  }

  void flush() override { outbox_.flush(); }

 private:
  std::shared_ptr<Domain> make_domain(int domain, const std::string &name) {
    return Domain::make([this, domain, name] { return make_owner(domain, name); }, options_.gid_bytes, worker_);
  }

  OwnerPointer make_owner(int domain, const std::string &name) {
    // A number above the maximum must be refused here, because Fast DDS would end the process. Participants that are
    // being deleted still have their numbers.
    const std::optional<int> number = reaper_.take_number(participants_maximum(domain));
    if (!number) return nullptr;
    const auto contacts = std::make_shared<Contacts>();
    dds::DomainParticipantQos qos = participant_qos(options_, name, outbox_, contacts);
    qos.wire_protocol().participant_id = *number;
    dds::DomainParticipant *participant = dds::DomainParticipantFactory::get_instance()->create_participant(
        static_cast<uint32_t>(domain), qos, nullptr, dds::StatusMask::none());
    if (participant == nullptr) {
      reaper_.give_back(*number);
      return nullptr;
    }
    contacts->open();
    return std::make_shared<Owner>(participant, contacts, reaper_);
  }

  DdsOptions options_;
  Outbox outbox_;
  Reaper reaper_;
  SharedDomains domains_{[this](int domain) { return make_domain(domain, kSharedName); }, worker_};
  Worker worker_;  // declared last, so that it ends first
};

}  // namespace

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options) { return std::make_unique<FastDds>(options); }

}  // namespace tide::agent
