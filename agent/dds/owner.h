// SPDX-License-Identifier: Apache-2.0
// A DDS participant with its topics, which all who use one share. Fast DDS knows one topic of a name for each
// participant, and one type for each topic. Used by one thread.
#pragma once

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <map>
#include <memory>
#include <string>

#include "core/middleware.h"
#include "dds/contacts.h"
#include "dds/reaper.h"

namespace tide::agent {

class Owner {
 public:
  // contacts: of its transport.
  Owner(eprosima::fastdds::dds::DomainParticipant *participant, std::shared_ptr<Contacts> contacts, Reaper &reaper);
  ~Owner();
  Owner(const Owner &) = delete;
  Owner &operator=(const Owner &) = delete;

  eprosima::fastdds::dds::DomainParticipant *participant() const { return participant_; }
  eprosima::fastdds::dds::Publisher *publisher() const { return publisher_; }
  eprosima::fastdds::dds::Subscriber *subscriber() const { return subscriber_; }

  Contacts &contacts() const { return *contacts_; }

  enum class Fit { kThere, kFree, kOtherType };
  Fit find(const Topic &topic) const;
  // Null: it is there with another type, or DDS refuses.
  eprosima::fastdds::dds::Topic *acquire(const Topic &topic);
  void release(const Topic &topic);
  bool is_idle() const { return topics_.empty(); }

 private:
  struct Shared {
    eprosima::fastdds::dds::Topic *topic;
    std::string type;
    size_t users;
  };
  eprosima::fastdds::dds::DomainParticipant *participant_;
  std::shared_ptr<Contacts> contacts_;
  Reaper &reaper_;
  eprosima::fastdds::dds::Publisher *publisher_;
  eprosima::fastdds::dds::Subscriber *subscriber_;
  std::map<std::string, Shared> topics_;
  std::map<std::string, size_t> types_;
};

}  // namespace tide::agent
