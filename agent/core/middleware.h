// SPDX-License-Identifier: Apache-2.0
// The core's interface to DDS. Payloads are opaque CDR without encapsulation header. The caller owns the objects that
// it creates; destroying an object removes it from DDS. Of all functions here, only a Wake is called from other
// threads, possibly even while its object is being destroyed.
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

constexpr uint32_t kDepthMaximum = 512;  // of a history, whatever depth a client requests

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
  std::string name;  // name in DDS, for example rt/chatter
  std::string type;  // type in DDS, for example std_msgs::msg::dds_::String_
  bool operator==(const Topic &) const = default;
};

struct Service {
  Topic request, reply;
  bool operator==(const Service &) const = default;
};

// As encoded in XRCE: GUID of the client (16 octets), and sequence number (high i32, low u32, little-endian).
using SampleIdentity = std::array<uint8_t, 24>;

struct Sample {
  std::vector<uint8_t> payload;
  bool big_endian = false;
  SampleIdentity identity{};  // at a replier: identifies the request and its client
  uint64_t request = 0;       // at a requester: the number that Requester::send returned for the answered request
  uint32_t skipped = 0;       // samples that DDS dropped before this one
};

// An object whose creation in DDS may take a while. Until the creation has ended, only its state may be queried. The
// object may be destroyed at any time.
class Made {
 public:
  enum class State { kMade, kUnderWay, kRefused };

  virtual ~Made() = default;
  virtual State state() const { return State::kMade; }
  // Calls `wake` once, from any thread, when the creation has ended; immediately if it has ended already.
  virtual void await(Wake wake) { wake(); }  // NOLINT(performance-unnecessary-value-param): others keep it
};

class Source : public Made {
 public:
  // Takes the oldest sample from DDS; returns false if there is none.
  virtual bool take(Sample &sample) = 0;
};

class Writer : public Made {
 public:
  virtual bool write(Bytes payload, bool big_endian) = 0;
  // True if a reader has been discovered. Samples written earlier reach no reader, unless the writer is transient
  // local.
  virtual bool has_reader() const = 0;
  // True if all discovered reliable readers have acknowledged all samples. A reader that has not discovered this writer
  // acknowledges nothing, and loses samples beyond the writer's depth.
  virtual bool is_acknowledged() = 0;
};

class Requester : public Source {
 public:
  // True if a server has discovered both endpoints of this requester: it would receive a request, and its reply would
  // arrive.
  virtual bool is_served() = 0;
  // Returns the number of the request; unset if DDS refuses it for now.
  virtual std::optional<uint64_t> send(Bytes payload, bool big_endian) = 0;
};

class Replier : public Source {
 public:
  // True if the client of this request would receive a reply.
  virtual bool reaches(const SampleIdentity &request) = 0;
  // Sends a reply. Returns false if DDS refuses it for now.
  virtual bool send(const SampleIdentity &request, Bytes payload, bool big_endian) = 0;
};

// If DDS refuses, a creation returns null, or an object whose state becomes refused. `wake` is called from any thread
// when there is new data, or when is_served or reaches may have changed.
class Participant : public Made {
 public:
  // Returns false if the topic exists with another type.
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
  // Sends waiting samples. After the first call, samples that the calling thread writes may wait until the next call,
  // so this must always be called from the same thread.
  virtual void flush() {}
};

}  // namespace tide::agent
