// SPDX-License-Identifier: Apache-2.0
// A DDS subscriber, independent of agents, that counts messages on /throughput. It is a plain Fast DDS program in a
// process of its own, so that a message is counted only if a robot's node would have received it.
//
//   end_to_end_subscriber best_effort|reliable udp|default
//
// With `udp`, DDS uses only UDP on loopback, as between machines or between different versions of Fast DDS. With
// `default`, Fast DDS chooses the transport, which is shared memory between processes of the same version.
// ROS_DOMAIN_ID names the domain. On its standard input it accepts "version", "matched", "count" and "clear", and
// answers each with one line of JSON. Messages contain a number (see end_to_end_client.c), by which copies, messages
// out of order and damaged messages are detected.
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <fastrtps/config.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <iostream>
#include <mutex>
#include <string>

namespace tide::bench {
namespace {

namespace dds = eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

constexpr uint32_t kBytesMaximum = 2048, kEncapsulationBytes = 4, kLengthBytes = 4, kNumberCharacters = 8;
constexpr int kOkay = 0;

struct Text {
  uint32_t bytes = 0;  // size of the serialised message
  char number[kNumberCharacters + 1] = {};
};

// Reads a std_msgs/String up to the end of its number.
class TextType : public dds::TopicDataType {
 public:
  TextType() {
    setName("std_msgs::msg::dds_::String_");
    m_typeSize = kBytesMaximum;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *, SerializedPayload_t *) override { return false; }
  bool deserialize(SerializedPayload_t *payload, void *data) override {
    auto *text = static_cast<Text *>(data);
    if (payload->length < kEncapsulationBytes + kLengthBytes + kNumberCharacters) return false;
    text->bytes = payload->length - kEncapsulationBytes;
    std::memcpy(text->number, payload->data + kEncapsulationBytes + kLengthBytes, kNumberCharacters);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *) override {
    return [] { return kBytesMaximum; };
  }
  void *createData() override { return new Text; }
  void deleteData(void *data) override { delete static_cast<Text *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};

class Counter : public dds::DataReaderListener {
 public:
  void on_data_available(dds::DataReader *reader) override {
    const std::lock_guard lock(mutex_);
    dds::SampleInfo info;
    while (reader->take_next_sample(&text_, &info)() == kOkay) {
      if (info.valid_data) count();
    }
  }
  void on_subscription_matched(dds::DataReader *, const dds::SubscriptionMatchedStatus &status) override {
    matched_ = status.current_count;
  }

  int matched() const { return matched_; }
  void print() {
    const std::lock_guard lock(mutex_);
    std::printf("{\"received\": %llu, \"disordered\": %llu, \"damaged\": %llu, \"span_ns\": %lld}\n",
                static_cast<unsigned long long>(received_), static_cast<unsigned long long>(disordered_),
                static_cast<unsigned long long>(damaged_), static_cast<long long>((last_ - first_).count()));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    received_ = disordered_ = damaged_ = next_ = 0;
    first_ = last_ = {};
  }

 private:
  void count() {
    char *end = nullptr;
    const unsigned long long number = std::strtoull(text_.number, &end, 16);
    if (end != text_.number + kNumberCharacters) {
      damaged_++;
    } else if (number < next_) {
      disordered_++;  // out of order, or a copy
    } else {
      next_ = number + 1;
      last_ = std::chrono::steady_clock::now().time_since_epoch();
      if (received_++ == 0) first_ = last_;
    }
  }

  std::mutex mutex_;
  std::atomic<int> matched_ = 0;
  Text text_;
  unsigned long long received_ = 0, disordered_ = 0, damaged_ = 0, next_ = 0;
  std::chrono::nanoseconds first_{}, last_{};
};

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "end_to_end_subscriber: %s\n", what);
  std::exit(EXIT_FAILURE);
}

int run(int count, char **arguments) {
  if (count != 3) fail("usage: end_to_end_subscriber best_effort|reliable udp|default");
  const char *number = std::getenv("ROS_DOMAIN_ID");
  dds::DomainParticipantQos participant_qos = dds::PARTICIPANT_QOS_DEFAULT;
  if (std::string(arguments[2]) == "udp") {
    participant_qos.transport().use_builtin_transports = false;
    auto loopback = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    loopback->interfaceWhiteList = {"127.0.0.1"};
    participant_qos.transport().user_transports.push_back(loopback);
  }
  auto *participant = dds::DomainParticipantFactory::get_instance()->create_participant(
      number == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(number, nullptr, 10)), participant_qos);
  if (participant == nullptr) fail("no participant");
  dds::TypeSupport type(new TextType);
  type.register_type(participant);
  dds::Topic *topic = participant->create_topic("rt/throughput", type.get_type_name(), dds::TOPIC_QOS_DEFAULT);
  dds::Subscriber *subscriber = participant->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
  dds::DataReaderQos qos = dds::DATAREADER_QOS_DEFAULT;
  const bool reliable = std::string(arguments[1]) == "reliable";
  qos.reliability().kind = reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  qos.history().depth = 1000;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  Counter counter;
  dds::DataReader *reader =
      topic == nullptr || subscriber == nullptr ? nullptr : subscriber->create_datareader(topic, qos, &counter);
  if (reader == nullptr) fail("no reader");
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "clear") counter.clear();
    if (line == "version") {
      std::printf("{\"version\": \"%s\"}\n", FASTRTPS_VERSION_STR);
    } else if (line == "matched") {
      std::printf("{\"matched\": %d}\n", counter.matched());
    } else {
      counter.print();
    }
    std::fflush(stdout);
  }
  reader->set_listener(nullptr);
  participant->delete_contained_entities();
  dds::DomainParticipantFactory::get_instance()->delete_participant(participant);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace tide::bench

int main(int count, char **arguments) { return tide::bench::run(count, arguments); }
