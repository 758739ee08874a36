// SPDX-License-Identifier: Apache-2.0
// What the agent's core needs of DDS, in plain types: payloads are opaque CDR without encapsulation header. The caller
// owns the objects that it creates; destroying one removes it from DDS. Only Wake is called from other threads, and it
// may still be called while its object is being destroyed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tide::agent {

using Bytes = std::span<const uint8_t>;
using Wake = std::function<void()>;

struct Qos {
  bool reliable = true;
  bool transient_local = false;
  bool keep_all = false;
  uint32_t depth = 1;
  uint32_t deadline_ms = 0;  // 0: none
  uint32_t lifespan_ms = 0;  // 0: none
  bool operator==(const Qos &) const = default;
};

struct Topic {
  std::string name;  // in DDS: rt/chatter
  std::string type;  // std_msgs::msg::dds_::String_
  bool operator==(const Topic &) const = default;
};

struct Service {
  Topic request, reply;
  bool operator==(const Service &) const = default;
};

// GUID of the asker (16 octets), sequence number (high i32, low u32, little-endian): as encoded in XRCE.
using SampleIdentity = std::array<uint8_t, 24>;

struct Sample {
  std::vector<uint8_t> payload;
  bool big_endian = false;
  SampleIdentity identity{};  // of a replier: the request and its asker
  uint64_t request = 0;       // of a requester: what Requester::send returned for the answered request
  uint32_t skipped = 0;       // samples that DDS dropped before this one
};

// An object that DDS may take a while to create. Until then only its state may be asked for. It may be destroyed at any
// time.
class Made {
 public:
  enum class State { kMade, kUnderWay, kRefused };

  virtual ~Made() = default;
  virtual State state() const { return State::kMade; }
  // Calls wake once, from any thread, when the object is no longer under way; at once if it is not.
  virtual void await(Wake wake) { wake(); }
};

class Source : public Made {
 public:
  // The oldest sample in DDS; false: there is none.
  virtual bool take(Sample &sample) = 0;
};

class Writer : public Made {
 public:
  virtual bool write(Bytes payload, bool big_endian) = 0;
  // A reader has been discovered. A sample written before reaches nobody, unless the writer is transient local.
  virtual bool has_reader() const = 0;
  // The reliable readers that were discovered have received all samples. A reader that has not discovered this writer
  // acknowledges nothing and loses samples beyond the writer's depth.
  virtual bool is_acknowledged() = 0;
};

class Requester : public Source {
 public:
  // Whether a server has discovered both endpoints of this, so that it would receive a request and its reply would
  // arrive.
  virtual bool is_served() = 0;
  // Returns the request's number; unset: DDS refuses it for now.
  virtual std::optional<uint64_t> send(Bytes payload, bool big_endian) = 0;
};

class Replier : public Source {
 public:
  // Whether the asker would receive a reply.
  virtual bool reaches(const SampleIdentity &request) = 0;
  // False: DDS refuses it for now.
  virtual bool send(const SampleIdentity &request, Bytes payload, bool big_endian) = 0;
};

// When DDS refuses, creation returns null or an object that ends up refused. wake: there is new data, or is_served and
// reaches may have changed; from any thread.
class Participant : public Made {
 public:
  // False when the topic exists with another type.
  virtual bool check_topic(const Topic &topic) = 0;
  virtual std::unique_ptr<Writer> create_writer(const Topic &topic, const Qos &qos) = 0;
  virtual std::unique_ptr<Source> create_reader(const Topic &topic, const Qos &qos, Wake wake) = 0;
  virtual std::unique_ptr<Requester> create_requester(const Service &service, const Qos &qos, Wake wake) = 0;
  virtual std::unique_ptr<Replier> create_replier(const Service &service, const Qos &qos, Wake wake) = 0;
};

class Middleware {
 public:
  virtual ~Middleware() = default;
  virtual std::unique_ptr<Participant> create_participant(int domain, const std::string &name) = 0;
  // Sends waiting samples. From the first call on, what the calling thread writes may wait until the next call; always
  // the same thread.
  virtual void flush() {}
};

}  // namespace tide::agent
