// SPDX-License-Identifier: Apache-2.0
#include "dds/owner.h"

#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "dds/opaque_type.h"

namespace tide::agent {

namespace dds = eprosima::fastdds::dds;

Owner::Owner(dds::DomainParticipant *participant, std::shared_ptr<Contacts> contacts, Reaper &reaper)
    : participant_(participant), contacts_(std::move(contacts)), reaper_(reaper) {
  publisher_ = participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  subscriber_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
}

Owner::~Owner() { reaper_.bury(participant_); }

Owner::Fit Owner::find(const Topic &topic) const {
  const auto place = topics_.find(topic.name);
  if (place == topics_.end()) return Fit::kFree;
  return place->second.type == topic.type ? Fit::kThere : Fit::kOtherType;
}

dds::Topic *Owner::acquire(const Topic &topic) {
  const auto place = topics_.find(topic.name);
  if (place != topics_.end()) {
    if (place->second.type != topic.type) return nullptr;
    place->second.users++;
    return place->second.topic;
  }
  if (!types_.contains(topic.type)) dds::TypeSupport(new OpaqueType(topic.type)).register_type(participant_);
  dds::Topic *made = participant_->create_topic(topic.name, topic.type, dds::TOPIC_QOS_DEFAULT);
  if (made == nullptr) {
    if (!types_.contains(topic.type)) participant_->unregister_type(topic.type);
    return nullptr;
  }
  types_[topic.type]++;
  topics_[topic.name] = {made, topic.type, 1};
  return made;
}

void Owner::release(const Topic &topic) {
  const auto place = topics_.find(topic.name);
  if (place == topics_.end() || --place->second.users != 0) return;
  participant_->delete_topic(place->second.topic);
  topics_.erase(place);
  if (--types_[topic.type] != 0) return;
  types_.erase(topic.type);
  participant_->unregister_type(topic.type);
}

}  // namespace tide::agent
