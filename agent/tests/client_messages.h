// SPDX-License-Identifier: Apache-2.0
// A test client that encodes its messages with the project's own codec.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver.h"
#include "sequences.h"
#include "tide/xrce.h"

namespace tide::agent::test {

inline tide_text_t text(std::string_view characters) { return {characters.data(), characters.size()}; }

inline Sample sample_of(Octets payload, uint64_t request = 0) {
  Sample sample;
  sample.payload = std::move(payload);
  sample.request = request;
  return sample;
}

inline std::string topic_xml(const std::string &name, const std::string &type) {
  return "<dds><topic><name>" + name + "</name><dataType>" + type + "</dataType></topic></dds>";
}
inline std::string writer_xml(const std::string &topic) {
  return "<dds><data_writer><topic><name>" + topic + "</name></topic></data_writer></dds>";
}

// Options of an agent that stores its lines for the user in `lines`; `events`: with the lines about clients.
inline Options telling(std::vector<std::string> &lines, bool events = false) {
  Options options;
  options.tells_events = events;
  options.warn = [&lines](const std::string &line) { lines.push_back(line); };
  return options;
}

// A client at one endpoint. It counts its sequence numbers, and finds answers in what the agent has sent.
class TestClient {
 public:
  TestClient(Driver &driver, Endpoint endpoint, uint32_t key, uint8_t session = 0x81, uint16_t vendor_id = 0x010F)
      : vendor(vendor_id), driver_(driver), endpoint_(endpoint), key_(key), session_(session) {}

  uint16_t vendor;

  // Opens the session. Returns the status in the STATUS_AGENT; -1 if there was no answer.
  int connect(uint16_t mtu = 508, std::string_view liveliness_ms = {}) {
    sequences_.clear();
    tide_xrce_create_client_t body{};
    body.version_major = 1;
    body.vendor = vendor;
    body.key = key_;
    body.session = session_;
    body.mtu = mtu;
    const auto put_property = [&](tide_cdr_t *cdr) {
      tide_cdr_put_string(cdr, "uxr_hl", 6);
      tide_cdr_put_string(cdr, liveliness_ms.data(), liveliness_ms.size());
    };
    const Body properties(put_property);
    body.property_count = liveliness_ms.empty() ? 0 : 1;
    body.properties = properties.octets().data();
    body.properties_bytes = properties.octets().size();
    const uint8_t none = session_ < 0x80 ? TIDE_XRCE_SESSION_NONE_WITH_KEY : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
    send(none, 0, 0, TIDE_XRCE_CREATE_CLIENT, 1, Body(tide_xrce_put_create_client, &body).octets());
    const Octets answer = last(TIDE_XRCE_STATUS_AGENT);
    return answer.empty() ? -1 : answer[0];
  }

  // Sends a submessage in the next message of a stream.
  void submit(uint8_t stream, uint8_t id, uint8_t flags, const Octets &body) {
    const uint16_t sequence = stream == 0 ? uint16_t{0} : sequences_[stream]++;
    send(session_, stream, sequence, id, flags, body);
  }

  void submit_in_fragments(const Octets &whole, size_t bytes) {
    for (Bytes rest = whole; !rest.empty();) {
      const Bytes piece = rest.first(std::min(bytes, rest.size()));
      rest = rest.subspan(piece.size());
      submit(0x80, TIDE_XRCE_FRAGMENT, rest.empty() ? 3 : 1, {piece.begin(), piece.end()});
    }
  }

  // Skips sequence numbers, as if this many messages of the stream had been lost.
  void skip(uint8_t stream, uint16_t count) { sequences_[stream] = static_cast<uint16_t>(sequences_[stream] + count); }

  int create(uint16_t object, tide_xrce_object_t description, uint8_t flags = 0, uint8_t stream = 0x80) {
    tide_xrce_create_t body{};
    body.request = {next_request(), object};
    body.object = description;
    body.object.kind = TIDE_XRCE_OBJECT_KIND(object);
    driver_.sent.clear();
    submit(stream, TIDE_XRCE_CREATE, static_cast<uint8_t>(flags | TIDE_XRCE_FLAG_LITTLE_ENDIAN),
           Body(tide_xrce_put_create, &body).octets());
    return status(body.request.request);
  }
  int create_xml(uint16_t object, uint16_t parent, std::string_view xml, uint8_t flags = 0, uint8_t stream = 0x80) {
    tide_xrce_object_t description{};
    description.representation = TIDE_XRCE_BY_XML;
    description.parent = parent;
    description.text = text(xml);
    return create(object, description, flags, stream);
  }
  int remove(uint16_t object) {
    const uint16_t request = next_request();
    driver_.sent.clear();
    submit(object == TIDE_XRCE_OBJECT_CLIENT ? 0 : 0x80, TIDE_XRCE_DELETE, 1, ids(request, object));
    return status(request);
  }

  // Creates a participant, a topic, a publisher, the writer 0x0015, a subscriber and the reader 0x0016.
  void create_all() {
    EXPECT_EQ(create_xml(0x0011, 0, kParticipant), 0);
    EXPECT_EQ(create_xml(0x0012, 0x0011, topic_xml("t", "T")), 0);
    EXPECT_EQ(create_xml(0x0013, 0x0011, ""), 0);
    EXPECT_EQ(create_xml(0x0015, 0x0013, writer_xml("t")), 0);
    EXPECT_EQ(create_xml(0x0014, 0x0011, ""), 0);
    EXPECT_EQ(create_xml(0x0016, 0x0014, kReader), 0);
  }
  static constexpr const char *kParticipant = "<dds><participant><rtps><name>p</name></rtps></participant></dds>";
  static constexpr const char *kRequester = "<dds><requester service_name='s' request_type='Q' reply_type='R'/></dds>";
  static constexpr const char *kReplier = "<dds><replier service_name='s' request_type='Q' reply_type='R'/></dds>";
  static constexpr const char *kReader =
      "<dds><data_reader><topic><name>t</name><historyQos><kind>KEEP_ALL</kind></historyQos></topic></data_reader></"
      "dds>";

  void read(uint16_t object, uint8_t stream, uint16_t samples = 0xFFFF, uint16_t seconds = 0,
            uint16_t bytes_a_second = 0, uint16_t pace_ms = 0, uint8_t asks_on = 0x80) {
    tide_xrce_read_data_t body{};
    body.request = {next_request(), object};
    body.stream = stream;
    body.has_delivery_control = true;
    body.max_samples = samples;
    body.max_elapsed_time_s = seconds;
    body.max_bytes_per_second = bytes_a_second;
    body.min_pace_period_ms = pace_ms;
    submit(asks_on, TIDE_XRCE_READ_DATA, 1, Body(tide_xrce_put_read_data, &body).octets());
  }

  void write(uint16_t object, const Octets &payload, uint8_t stream = 0x80, uint8_t flags = 1) {
    Octets body = ids(next_request(), object);
    body.insert(body.end(), payload.begin(), payload.end());
    submit(stream, TIDE_XRCE_WRITE_DATA, flags, body);
  }

  // Acknowledges all messages that were received on this stream.
  void acknowledge(uint8_t stream) {
    uint16_t next = 0;
    for (const Sent &message : driver_.sent) {
      if (message.endpoint == endpoint_ && message.bytes[1] == stream) {
        next = static_cast<uint16_t>((message.bytes[2] | message.bytes[3] << 8) + 1);
      }
    }
    Octets body(5);
    body[0] = static_cast<uint8_t>(next);
    body[1] = static_cast<uint8_t>(next >> 8);
    body[4] = stream;
    submit(0, TIDE_XRCE_ACKNACK, 1, body);
  }

  // Body of the last submessage with this id for this endpoint; empty if there is none.
  Octets last(uint8_t id) const {
    Octets body;
    for (const Octets &candidate : all(id)) body = candidate;
    return body;
  }
  // Bodies of all submessages with this id for this endpoint.
  std::vector<Octets> all(uint8_t id) const {
    std::vector<Octets> bodies;
    const std::ptrdiff_t header = session_ < 0x80 ? 8 : 4;
    for (const Sent &message : driver_.sent) {
      if (message.endpoint != endpoint_ || message.bytes.size() < static_cast<size_t>(header) + 4) continue;
      if (message.bytes[static_cast<size_t>(header)] != id) continue;
      bodies.emplace_back(message.bytes.begin() + header + 4, message.bytes.end());
    }
    return bodies;
  }
  // The result in the last STATUS for this request; -1 if there is none.
  int status(uint16_t request) const {
    int result = -1;
    for (const Octets &body : all(TIDE_XRCE_STATUS)) {
      if ((body[0] << 8 | body[1]) == request) result = body[4];
    }
    return result;
  }

  static Octets ids(uint16_t request, uint16_t object) {
    return {static_cast<uint8_t>(request >> 8), static_cast<uint8_t>(request), static_cast<uint8_t>(object >> 8),
            static_cast<uint8_t>(object)};
  }
  uint16_t next_request() { return request_++; }

  void send(uint8_t session, uint8_t stream, uint16_t sequence, uint8_t id, uint8_t flags, const Octets &body) {
    Octets message(TIDE_XRCE_HEADER_MAXIMUM_BYTES);
    const tide_xrce_header_t header = {session, stream, sequence, key_};
    message.resize(tide_xrce_put_header(message.data(), &header));
    uint8_t submessage[4];
    tide_xrce_put_submessage_header(submessage, id, flags, static_cast<uint16_t>(body.size()));
    message.insert(message.end(), submessage, submessage + sizeof submessage);
    message.insert(message.end(), body.begin(), body.end());
    driver_.input(endpoint_, message);
  }

 private:
  Driver &driver_;
  Endpoint endpoint_;
  uint32_t key_;
  uint8_t session_;
  uint16_t request_ = 10;
  std::map<uint8_t, uint16_t> sequences_;
};

// Default options except for one limit.
template <typename Value> Options limited(Value Limits::*limit, std::type_identity_t<Value> value) {
  Options options;
  options.limits.*limit = value;
  return options;
}

// A client of tide, which numbers its sessions.
class TideClient : public TestClient {
 public:
  TideClient(Driver &driver, Endpoint endpoint, uint32_t key, uint8_t session = 0x81)
      : TestClient(driver, endpoint, key, session, TIDE_XRCE_VENDOR) {}
};

// A client that is connected and has all its entities.
class ReadyClient : public TestClient {
 public:
  ReadyClient(Driver &driver, Endpoint endpoint, uint32_t key, uint8_t session = 0x81, uint16_t vendor_id = 0x010F)
      : TestClient(driver, endpoint, key, session, vendor_id) {
    EXPECT_EQ(connect(), 0);
    create_all();
  }
};

}  // namespace tide::agent::test
