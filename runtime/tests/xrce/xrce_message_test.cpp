// SPDX-License-Identifier: Apache-2.0
// Cases that the recordings lack: both byte orders, optional members, bounds and deviations.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "recode.h"
#include "vectors.h"

namespace xrce_message_test {

tide_cdr_t reader_of(const Bytes &bytes, bool big_endian = false) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), big_endian);
  return cdr;
}

std::string hex_of(const tide_cdr_t &cdr) { return hex_from_bytes(Bytes(cdr.bytes, cdr.bytes + cdr.position)); }

std::string string_of(tide_text_t text) { return std::string(text.characters, text.length); }

TEST(Header, WithAndWithoutKey) {
  uint8_t bytes[8];
  tide_xrce_header_t header{0x01, 0x80, 0x0203, 0x11223344};
  ASSERT_EQ(tide_xrce_put_header(bytes, &header), 8u);
  EXPECT_EQ(hex_from_bytes(Bytes(bytes, bytes + 8)), "0180030211223344");
  tide_xrce_header_t back{};
  EXPECT_EQ(tide_xrce_get_header(bytes, 8, &back), 8);
  EXPECT_EQ(back.key, 0x11223344u);
  EXPECT_EQ(back.sequence, 0x0203);
  EXPECT_EQ(tide_xrce_get_header(bytes, 7, &back), TIDE_ERROR_MALFORMED);
  bytes[0] = 0x81;
  EXPECT_EQ(tide_xrce_get_header(bytes, 4, &back), 4);
  EXPECT_EQ(back.key, 0u);
  EXPECT_EQ(tide_xrce_get_header(bytes, 3, &back), TIDE_ERROR_MALFORMED);
  EXPECT_EQ(tide_xrce_get_header(nullptr, 0, &back), TIDE_ERROR_MALFORMED);
}

TEST(Submessages, StepFromTheStartOfTheMessage) {
  const Bytes message = bytes_from_hex("81800000 0a010500 0102030405 000000 0c010000 03000000 ffff");
  size_t position = 4;
  tide_xrce_submessage_t submessage{};
  ASSERT_EQ(tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage), 1);
  EXPECT_EQ(submessage.id, TIDE_XRCE_ACKNACK);
  EXPECT_EQ(submessage.body_bytes, 5u);
  ASSERT_EQ(tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage), 1);
  EXPECT_EQ(submessage.id, TIDE_XRCE_RESET);
  EXPECT_EQ(submessage.body_bytes, 0u);
  ASSERT_EQ(tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage), 1);
  EXPECT_EQ(submessage.id, TIDE_XRCE_DELETE);
  EXPECT_EQ(tide_xrce_next_submessage(message.data(), message.size(), &position, &submessage), TIDE_ERROR_MALFORMED);
  EXPECT_EQ(tide_xrce_next_submessage(message.data(), message.size() - 2, &position, &submessage), 0);

  const Bytes beyond = bytes_from_hex("81800000 07010900 0102030405060708");
  position = 4;
  EXPECT_EQ(tide_xrce_next_submessage(beyond.data(), beyond.size(), &position, &submessage), TIDE_ERROR_MALFORMED);
  EXPECT_EQ(position, 4u);
}

TEST(CreateClient, HostileForms) {
  tide_xrce_create_client_t body;
  const struct {
    const char *hex;
    int status;
  } cases[] = {
      {"58524345 0100 010f aaaabbbb 81 00 fc01", TIDE_OK},
      {"58524345 0100 010f aaaabbbb 81 02 fc01", TIDE_ERROR_MALFORMED},
      {"58524345 0100 010f aaaabbbb 81 00 fc", TIDE_ERROR_MALFORMED},
      {"58524345 0100 010f aaaabbbb 81 01 0000 ffffffff 00000000 00000000 fc01", TIDE_ERROR_MALFORMED},
      {"58524345 0100 010f aaaabbbb 81 01 0000 01000000 00000000 00000000 fc01", TIDE_OK},
      {"", TIDE_ERROR_MALFORMED},
  };
  for (const auto &each : cases) {
    const Bytes bytes = bytes_from_hex(each.hex);
    tide_cdr_t cdr = reader_of(bytes);
    tide_xrce_get_create_client(&cdr, &body);
    EXPECT_EQ(cdr.status, each.status) << each.hex;
  }
  const Bytes wrong_cookie = bytes_from_hex("58524346 0100 010f aaaabbbb 81 00 01fc");
  tide_cdr_t cdr = reader_of(wrong_cookie, true);
  tide_xrce_get_create_client(&cdr, &body);
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_FALSE(body.cookie_valid);
  EXPECT_EQ(body.mtu, 508);
}

TEST(Bodies, BigEndianAsInTheProbe) {
  tide_cdr_t cdr;
  const Bytes heartbeat = bytes_from_hex("0001000280");
  cdr = reader_of(heartbeat, true);
  tide_xrce_heartbeat_t beat;
  tide_xrce_get_heartbeat(&cdr, &beat);
  EXPECT_EQ(beat.first_unacknowledged, 1);
  EXPECT_EQ(beat.last, 2);
  const Bytes acknack = bytes_from_hex("0005000180");
  cdr = reader_of(acknack, true);
  tide_xrce_acknack_t answer;
  tide_xrce_get_acknack(&cdr, &answer);
  EXPECT_EQ(answer.first_unacknowledged, 5);
  EXPECT_EQ(answer.missing, 1);  // the bitmap does not wrap around
  const Bytes create = bytes_from_hex("000a0011 0103 0000 00000008 00 01 0000 00000000 0007");
  cdr = reader_of(create, true);
  tide_xrce_create_t body;
  tide_xrce_get_create(&cdr, &body);
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(body.request.object, 0x0011);
  EXPECT_EQ(body.object.domain, 7);
}

TEST(Info, WithoutConfiguration) {
  for (const char *hex : {"000afffd0001", "000afffd0001 00 00", "000afffd0001 01 0e 0000"}) {
    const Bytes bytes = bytes_from_hex(hex);
    tide_cdr_t cdr = reader_of(bytes);
    tide_xrce_info_t info;
    tide_xrce_get_info(&cdr, &info);
    EXPECT_EQ(cdr.status, TIDE_OK) << hex;
    EXPECT_EQ(info.implementation_status, 1);
    EXPECT_EQ(info.version_major, 0);
  }
}

TEST(ReadData, FilterAndNoDeliveryControl) {
  uint8_t buffer[64];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_xrce_read_data_t body{};
  body.request = {0x000e, 0x0016};
  body.stream = 0x80;
  body.filter = "x>1";
  body.filter_length = 3;
  tide_xrce_put_read_data(&cdr, &body);
  EXPECT_EQ(hex_of(cdr),
            "000e0016800001000400000078"
            "3e310000");
  const Bytes bytes(buffer, buffer + cdr.position);
  tide_cdr_t in = reader_of(bytes);
  tide_xrce_read_data_t back;
  tide_xrce_get_read_data(&in, &back);
  EXPECT_EQ(in.status, TIDE_OK);
  EXPECT_EQ(std::string(back.filter, back.filter_length), "x>1");
  EXPECT_FALSE(back.has_delivery_control);
}

TEST(Time, BothWays) {
  for (int64_t ns : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1000000000}, int64_t{-1000000001},
                     int64_t{1700000000123456789}, int64_t{999999999}}) {
    const tide_xrce_time_t time = tide_xrce_time_from_ns(ns);
    EXPECT_LT(time.nanoseconds, 1000000000u);
    EXPECT_EQ(tide_xrce_time_to_ns(time), ns);
  }
  EXPECT_EQ(tide_xrce_time_from_ns(-1).seconds, -1);
  EXPECT_EQ(tide_xrce_time_to_ns({1, 4000000000u}), 5000000000);
}

// ---- CREATE ----

TEST(Create, LayoutsOfOptionalMembers) {
  uint8_t buffer[128];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_xrce_create_t body{};
  body.request = {10, 0x0016};
  body.object.kind = TIDE_XRCE_KIND_DATAREADER;
  body.object.representation = TIDE_XRCE_BY_BINARY;
  body.object.topic = 0x0012;
  body.object.parent = 0x0014;
  body.object.has_qos = body.object.has_deadline = true;
  body.object.qos_flags = TIDE_XRCE_QOS_KEEP_LAST;
  body.object.deadline_ms = 1000;
  tide_xrce_put_create(&cdr, &body);
  EXPECT_EQ(hex_of(cdr),
            "000a00160603000010000000"
            "0012010002000001e803000000000000"
            "0014");
}

TEST(Create, RefusesWhatItCannotName) {
  uint8_t buffer[64];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_xrce_create_t body{};
  body.object.representation = TIDE_XRCE_BY_XML;
  body.object.kind = 9;
  tide_xrce_put_create(&cdr, &body);
  EXPECT_EQ(cdr.status, TIDE_ERROR_ARGUMENT);
  for (const char *hex : {"000a0011 0902 0000 01000000 00 00 0011", "000a0011 0104 0000 01000000 00 00 0011",
                          "000a0011 0303 0000 ffffffff 00 00 0011", "000a0011 0303 0000 01000000 00 00 0011",
                          "000a0012 0203 0000 0a000000 01000000 00 00 00 00 0000 0011", "000a0011 0302"}) {
    const Bytes bytes = bytes_from_hex(hex);
    tide_cdr_t in = reader_of(bytes);
    tide_xrce_get_create(&in, &body);
    EXPECT_EQ(in.status, TIDE_ERROR_MALFORMED) << hex;
    EXPECT_EQ(body.request.request, 10) << "the request can still be answered";
  }
}

TEST(Create, SkipsWhatItDoesNotUse) {
  tide_xrce_create_t body{};
  const struct {
    const char *hex;
    const char *name;
  } cases[] = {
      // a participant with a reference to a domain and a name
      {"000a0011 0103 0000 12000000 01000000 02000000 6400 01 00 02000000 6e00 0300", "n"},
      // a publisher with a name and partitions
      {"000a0013 0303 0000 15000000 01000000 02000000 6e00 01 01 01000000 02000000 7000"
       "0011",
       "n"},
      // a writer with user data and an ownership strength
      {"000a0015 0503 0000 18000000 0012 01 00 0000 00 00 00 01 0000 01000000 aa 01 0000 05000000 0013", ""},
  };
  for (const auto &each : cases) {
    Bytes bytes = bytes_from_hex(each.hex);
    bytes[8] = static_cast<uint8_t>(bytes.size() - 12 - 2);
    tide_cdr_t in = reader_of(bytes);
    tide_xrce_get_create(&in, &body);
    EXPECT_EQ(in.status, TIDE_OK) << each.hex;
    EXPECT_EQ(tide_cdr_remaining(&in), 0u) << each.hex;
    EXPECT_EQ(string_of(body.object.name), each.name) << each.hex;
  }
  EXPECT_EQ(body.object.parent, 0x0013);
}

struct RandomObject {
  std::vector<std::string> texts;
  tide_xrce_create_t body{};

  explicit RandomObject(std::mt19937_64 &random) {
    texts.reserve(8);
    auto text = [&] {
      texts.emplace_back(random() % 12, static_cast<char>('a' + random() % 26));
      return tide_text_t{texts.back().data(), texts.back().size()};
    };
    auto flag = [&] { return random() % 2 != 0; };
    tide_xrce_object_t &object = body.object;
    body.request = {static_cast<uint16_t>(random()), static_cast<uint16_t>(random())};
    object.kind = static_cast<uint8_t>(1 + random() % 8);
    object.representation = static_cast<uint8_t>(1 + random() % 3);
    if (object.kind == TIDE_XRCE_KIND_PARTICIPANT) {
      object.domain = static_cast<int16_t>(random());
    } else {
      object.parent = static_cast<uint16_t>(random());
    }
    if (object.representation != TIDE_XRCE_BY_BINARY) {
      object.text = text();
      return;
    }
    if (object.kind == TIDE_XRCE_KIND_DATAWRITER || object.kind == TIDE_XRCE_KIND_DATAREADER) {
      object.topic = static_cast<uint16_t>(random());
      object.has_qos = flag();
      if (!object.has_qos) return;
      object.qos_flags = static_cast<uint16_t>(random());
      object.has_depth = flag();
      if (object.has_depth) object.depth = static_cast<uint16_t>(random());
      object.has_deadline = flag();
      if (object.has_deadline) object.deadline_ms = static_cast<uint32_t>(random());
      object.has_lifespan = flag();
      if (object.has_lifespan) object.lifespan_ms = static_cast<uint32_t>(random());
      return;
    }
    if (object.kind == TIDE_XRCE_KIND_REQUESTER || object.kind == TIDE_XRCE_KIND_REPLIER) {
      object.name = text();
      object.request_type = text();
      object.reply_type = text();
      object.has_request_topic = flag();
      if (object.has_request_topic) object.request_topic = text();
      object.has_reply_topic = flag();
      if (object.has_reply_topic) object.reply_topic = text();
      return;
    }
    object.has_name = object.kind != TIDE_XRCE_KIND_TOPIC && flag();
    if (object.has_name || object.kind == TIDE_XRCE_KIND_TOPIC) object.name = text();
    if (object.kind == TIDE_XRCE_KIND_TOPIC) object.type = text();
  }
};

void expect_equal(const tide_xrce_object_t &a, const tide_xrce_object_t &b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.representation, b.representation);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.domain, b.domain);
  EXPECT_EQ(a.has_name, b.has_name);
  EXPECT_EQ(a.topic, b.topic);
  EXPECT_EQ(a.has_qos, b.has_qos);
  EXPECT_EQ(a.qos_flags, b.qos_flags);
  EXPECT_EQ(a.has_depth, b.has_depth);
  EXPECT_EQ(a.depth, b.depth);
  EXPECT_EQ(a.has_deadline, b.has_deadline);
  EXPECT_EQ(a.deadline_ms, b.deadline_ms);
  EXPECT_EQ(a.has_lifespan, b.has_lifespan);
  EXPECT_EQ(a.lifespan_ms, b.lifespan_ms);
  EXPECT_EQ(a.has_request_topic, b.has_request_topic);
  EXPECT_EQ(a.has_reply_topic, b.has_reply_topic);
  for (auto member : {&tide_xrce_object_t::text, &tide_xrce_object_t::name, &tide_xrce_object_t::type,
                      &tide_xrce_object_t::request_type, &tide_xrce_object_t::reply_type,
                      &tide_xrce_object_t::request_topic, &tide_xrce_object_t::reply_topic})
    EXPECT_EQ(string_of(a.*member), string_of(b.*member));
}

TEST(CreateProperty, RoundTripFromAnyPosition) {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const RandomObject object(random);
    const bool big_endian = random() % 2 != 0;
    const size_t start = random() % 8;
    Bytes buffer(400);
    tide_cdr_t out, measure;
    tide_cdr_writer(&out, buffer.data(), buffer.size());
    tide_cdr_measure(&measure);
    for (tide_cdr_t *cdr : {&out, &measure}) {
      cdr->big_endian = big_endian;
      cdr->position = start;
      tide_cdr_set_origin(cdr);
      tide_xrce_put_create(cdr, &object.body);
      EXPECT_EQ(cdr->status, TIDE_OK);
      EXPECT_EQ(cdr->origin, start);
    }
    EXPECT_EQ(out.position, measure.position);
    const Bytes bytes(buffer.begin() + static_cast<ptrdiff_t>(start),
                      buffer.begin() + static_cast<ptrdiff_t>(out.position));

    tide_cdr_t in = reader_of(bytes, big_endian);
    tide_xrce_create_t back;
    tide_xrce_get_create(&in, &back);
    EXPECT_EQ(in.status, TIDE_OK);
    EXPECT_EQ(tide_cdr_remaining(&in), 0u);
    EXPECT_EQ(back.request.request, object.body.request.request);
    EXPECT_EQ(back.request.object, object.body.request.object);
    expect_equal(back.object, object.body.object);

    Bytes small(random() % bytes.size());
    tide_cdr_writer(&out, small.data(), small.size());
    tide_xrce_put_create(&out, &object.body);
    EXPECT_EQ(out.status, TIDE_ERROR_TOO_LARGE);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace xrce_message_test
