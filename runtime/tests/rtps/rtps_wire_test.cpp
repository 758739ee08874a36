// SPDX-License-Identifier: Apache-2.0
// Messages that Fast DDS sent are decoded, and encoded again into the same bytes; damaged ones never make a decoder
// read beyond them (run it under sanitizers).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>

#include "mutate.h"
#include "seeds.h"
#include "tide/rtps.h"
#include "tide/status.h"
#include "vectors.h"

namespace rtps_wire_test {

using Bytes = std::vector<uint8_t>;
constexpr uint8_t kLoopback[4] = {127, 0, 0, 1};

std::map<std::string, Bytes> recordings() {
  std::ifstream file(TIDE_TEST_DATA "/rtps/fast_dds.txt");
  std::map<std::string, Bytes> messages;
  for (std::string line; std::getline(file, line);)
    if (line[0] != '#') messages[line.substr(0, line.find(' '))] = bytes_from_hex(line.substr(line.find(' ') + 1));
  if (messages.empty()) throw std::runtime_error("no recordings");
  return messages;
}

std::string text_of(tide_rtps_text_t text) { return {text.characters, text.length}; }

struct Repair {
  const char *hex;
  int status;
};
const Repair repairs[] = {
    // GAP 3..4 and 6, big-endian; the same GAP, little-endian; a GAP whose set begins before its start
    {"08000020 000001c7 000001c2 0000000000000003 0000000000000005 00000002 40000000", TIDE_OK},
    {"08012000 000001c7 000001c2 0000000003000000 0000000005000000 02000000 00000040", TIDE_OK},
    {"08012000 000001c7 000001c2 0000000003000000 0000000002000000 02000000 00000040", TIDE_ERROR_MALFORMED},
    // ACKNACK with more than 256 numbers; with number 0; without numbers
    {"06013c00 000001c7 000001c2 0000000001000000 01010000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
     "ffffffff "
     "ffffffff ffffffff 01000000",
     TIDE_ERROR_MALFORMED},
    {"06011c00 000001c7 000001c2 0000000000000000 01000000 00000080 01000000", TIDE_ERROR_MALFORMED},
    {"06011800 000001c7 000001c2 0000000000000000 00000000 01000000", TIDE_OK},
    // HEARTBEAT 5..4 (no sample is available); 5..3; -1..3
    {"07011c00 00000000 000001c2 0000000005000000 0000000004000000 01000000", TIDE_OK},
    {"07011c00 00000000 000001c2 0000000005000000 0000000003000000 01000000", TIDE_ERROR_MALFORMED},
    {"07011c00 00000000 000001c2 ffffffffffffffff 0000000003000000 01000000", TIDE_ERROR_MALFORMED},
    // NACK_FRAG for fragments 2 and 4 of sample 9; HEARTBEAT_FRAG
    {"12012000 000001c7 000001c2 0000000009000000 02000000 03000000 000000a0 01000000", TIDE_OK},
    {"13011800 000001c7 000001c2 0000000009000000 04000000 01000000", TIDE_OK},
};

// Decodes as much of a message as possible, and encodes its submessages of known kinds again.
Bytes recode(const Bytes &bytes) {
  Bytes again(bytes.size() + 64);
  const uint8_t *prefix = nullptr;
  tide_cdr_t out;
  tide_cdr_writer(&out, again.data(), again.size());
  if (tide_rtps_get_header(bytes.data(), bytes.size(), &prefix) != TIDE_OK) return {};
  tide_cdr_put_bytes(&out, bytes.data(), 8);
  tide_cdr_put_bytes(&out, prefix, TIDE_RTPS_PREFIX_BYTES);
  size_t position = TIDE_RTPS_HEADER_BYTES;
  tide_rtps_submessage_t submessage;
  while (tide_rtps_next(bytes.data(), bytes.size(), &position, &submessage) == 1) {
    tide_cdr_t cdr;
    tide_rtps_open(&cdr, &submessage);
    switch (submessage.id) {
      case TIDE_RTPS_INFO_DST:
        if (const uint8_t *destination = tide_cdr_view(&cdr, TIDE_RTPS_PREFIX_BYTES))
          tide_rtps_put_info_dst(&out, destination);
        break;
      case TIDE_RTPS_INFO_TS:
        (void)tide_rtps_get_timestamp(&cdr);
        tide_rtps_put_info_ts(&out, 0);
        if (cdr.status == TIDE_OK)
          memcpy(again.data() + out.position - 8, submessage.body, 8);  // the time is finer than ns
        break;
      case TIDE_RTPS_DATA:
      case TIDE_RTPS_DATA_FRAG: {
        tide_rtps_data_t data;
        tide_rtps_get_data(&cdr, &submessage, &data);
        if (cdr.status != TIDE_OK) break;
        tide_rtps_put_data(&out, &data);
        tide_rtps_participant_data_t participant;
        tide_rtps_endpoint_data_t endpoint;
        (void)tide_rtps_get_participant(data.payload, data.payload_bytes, kLoopback, &participant);
        (void)tide_rtps_get_endpoint(data.payload, data.payload_bytes, true, nullptr, &endpoint);
        break;
      }
      case TIDE_RTPS_ACKNACK:
      case TIDE_RTPS_HEARTBEAT:
      case TIDE_RTPS_HEARTBEAT_FRAG:
      case TIDE_RTPS_NACK_FRAG:
      case TIDE_RTPS_GAP: {
        tide_rtps_repair_t repair;
        tide_rtps_get_repair(&cdr, &submessage, &repair);
        if (cdr.status == TIDE_OK) tide_rtps_put_repair(&out, &repair);
        break;
      }
      default: break;
    }
  }
  again.resize(out.position);
  return again;
}

// The payload of the message's DATA.
tide_rtps_data_t data_of(const Bytes &bytes) {
  size_t position = TIDE_RTPS_HEADER_BYTES;
  tide_rtps_submessage_t submessage;
  while (tide_rtps_next(bytes.data(), bytes.size(), &position, &submessage) == 1) {
    if (submessage.id != TIDE_RTPS_DATA) continue;
    tide_cdr_t cdr;
    tide_rtps_data_t data;
    tide_rtps_open(&cdr, &submessage);
    tide_rtps_get_data(&cdr, &submessage, &data);
    EXPECT_EQ(cdr.status, TIDE_OK);
    return data;
  }
  throw std::runtime_error("no DATA");
}

TEST(Recorded, MessagesAreWrittenAgain) {
  for (const auto &[name, bytes] : recordings()) {
    Bytes expected = bytes;
    if (name == "participant") expected.resize(bytes.size() - 60);  // a submessage of the vendor follows
    EXPECT_EQ(hex_from_bytes(recode(bytes)), hex_from_bytes(expected)) << name;
  }
}

TEST(Recorded, Participant) {
  const Bytes bytes = recordings().at("participant");
  const tide_rtps_data_t data = data_of(bytes);
  EXPECT_EQ(data.writer, TIDE_RTPS_ENTITY_SPDP_WRITER);
  EXPECT_EQ(data.sequence, 1);
  tide_rtps_participant_data_t participant;
  ASSERT_EQ(tide_rtps_get_participant(data.payload, data.payload_bytes, kLoopback, &participant), TIDE_OK);
  EXPECT_EQ(memcmp(participant.guid.prefix, bytes.data() + 8, TIDE_RTPS_PREFIX_BYTES), 0);
  EXPECT_EQ(participant.lease_ns, 20'000'000'000);
  EXPECT_EQ(participant.builtin_endpoints & TIDE_RTPS_BUILTIN_ENDPOINTS, TIDE_RTPS_BUILTIN_ENDPOINTS);
  EXPECT_EQ(participant.discovery.port, TIDE_RTPS_PORT_DISCOVERY(77, 0));
  EXPECT_EQ(participant.data.port, TIDE_RTPS_PORT_DATA(77, 0));
  EXPECT_FALSE(participant.has_domain);
  EXPECT_EQ(text_of(participant.user_data), std::string("enclave=/;", 11));
}

TEST(Recorded, Endpoints) {
  const std::map<std::string, Bytes> messages = recordings();
  tide_rtps_endpoint_data_t endpoint;
  tide_rtps_data_t data = data_of(messages.at("publication"));
  ASSERT_EQ(tide_rtps_get_endpoint(data.payload, data.payload_bytes, true, kLoopback, &endpoint), TIDE_OK);
  EXPECT_EQ(text_of(endpoint.topic), "rt/chat");
  EXPECT_EQ(text_of(endpoint.type), "std_msgs::msg::dds_::String_");
  EXPECT_EQ(text_of(endpoint.type_hash), "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18");
  EXPECT_EQ(endpoint.guid.entity & 0xFFu, TIDE_RTPS_KIND_WRITER);
  EXPECT_TRUE(endpoint.qos.reliable);
  EXPECT_EQ(endpoint.qos.durability, 1);
  EXPECT_EQ(endpoint.qos.deadline_ns, INT64_MAX);
  EXPECT_NE(endpoint.data.port, 0);
  tide_rtps_endpoint_data_t reader;
  data = data_of(messages.at("subscription"));
  ASSERT_EQ(tide_rtps_get_endpoint(data.payload, data.payload_bytes, false, kLoopback, &reader), TIDE_OK);
  EXPECT_EQ(tide_rtps_incompatible(&endpoint.qos, &reader.qos), 0);
  data = data_of(messages.at("request_reader"));
  ASSERT_EQ(tide_rtps_get_endpoint(data.payload, data.payload_bytes, false, kLoopback, &reader), TIDE_OK);
  EXPECT_EQ(text_of(reader.topic), "rq/trigRequest");
  EXPECT_EQ(text_of(reader.type), "std_srvs::srv::dds_::Trigger_Request_");
  data = data_of(messages.at("publication_disposed"));
  EXPECT_EQ(data.status, 3);
  EXPECT_TRUE(data.has_key_hash);
  EXPECT_EQ(data.payload, nullptr);
}

TEST(Written, DiscoveryIsReadAgain) {
  uint8_t bytes[700];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  const tide_guid_t guid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, TIDE_RTPS_ENTITY_PARTICIPANT};
  const tide_rtps_participant_data_t participant{
      guid, TIDE_RTPS_BUILTIN_ENDPOINTS, 1'234'567'891, {{10, 0, 0, 7}, 7412}, {{10, 0, 0, 7}, 7413}, 3,
      true, {"enclave=/;", 10}};
  tide_rtps_put_participant(&cdr, &participant);
  ASSERT_EQ(cdr.status, TIDE_OK);
  tide_rtps_participant_data_t again;
  ASSERT_EQ(tide_rtps_get_participant(bytes, cdr.position, nullptr, &again), TIDE_OK);
  EXPECT_TRUE(tide_guid_equal(&again.guid, &guid));
  EXPECT_EQ(again.lease_ns, participant.lease_ns);
  EXPECT_EQ(again.domain, 3u);
  EXPECT_EQ(again.discovery.port, 7412);
  EXPECT_EQ(again.data.address[3], 7);
  EXPECT_EQ(text_of(again.user_data), "enclave=/;");

  tide_cdr_writer(&cdr, bytes, sizeof bytes);
  tide_rtps_endpoint_data_t endpoint{};
  endpoint.guid = guid;
  endpoint.guid.entity = 0x103;
  endpoint.topic = {"rt/a", 4};
  endpoint.type = {"T", 1};
  endpoint.type_hash = {"RIHS01_0", 8};
  endpoint.qos = {true, 1, 0, false, false, false, 20'000'000, INT64_MAX, 5'000'000'001};
  endpoint.data = {{10, 0, 0, 7}, 9};
  tide_rtps_put_endpoint(&cdr, &endpoint);
  ASSERT_EQ(cdr.status, TIDE_OK);
  tide_rtps_endpoint_data_t back;
  ASSERT_EQ(tide_rtps_get_endpoint(bytes, cdr.position, false, nullptr, &back), TIDE_OK);
  EXPECT_TRUE(tide_guid_equal(&back.guid, &endpoint.guid));
  EXPECT_EQ(text_of(back.topic), "rt/a");
  EXPECT_EQ(text_of(back.type_hash), "RIHS01_0");
  EXPECT_EQ(back.qos.deadline_ns, 20'000'000);
  EXPECT_EQ(back.qos.lifespan_ns, 5'000'000'001);
  EXPECT_EQ(back.data.port, 9);
}

TEST(Lists, ByteOrderLengthAndEnd) {
  struct Case {
    const char *hex;
    int status;
  };
  const Case cases[] = {
      {"00020000 00500010 0102030405060708090a0b0c000001c1 00010000", TIDE_OK},
      {"00030000 50001000 0102030405060708090a0b0c000001c1 01000000", TIDE_OK},
      {"00010000 50001000 0102030405060708090a0b0c000001c1 01000000",
       TIDE_ERROR_MALFORMED},                                                        // header of a plain sample
      {"00030000 50001000 0102030405060708090a0b0c000001c1", TIDE_ERROR_MALFORMED},  // no sentinel
      {"00030000 50001200 0102030405060708090a0b0c000001c1 0000 01000000", TIDE_ERROR_MALFORMED},
      {"00030000 50000c00 0102030405060708090a0b0c 01000000", TIDE_ERROR_MALFORMED},
      {"00030000 50001000 0102030405060708090a0b0c00000103 01000000", TIDE_ERROR_MALFORMED},  // GUID of an endpoint
  };
  for (const Case &each : cases) {
    const Bytes bytes = bytes_from_hex(each.hex);
    tide_rtps_participant_data_t data;
    EXPECT_EQ(tide_rtps_get_participant(bytes.data(), bytes.size(), nullptr, &data), each.status) << each.hex;
    if (each.status != TIDE_OK) continue;
    EXPECT_EQ(data.guid.prefix[11], 12);
    EXPECT_EQ(data.lease_ns, 100'000'000'000);
  }
}

TEST(Written, Timestamps) {
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{999'999'999}, int64_t{1'795'921'459'114'843'465}}) {
    uint8_t bytes[12];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, bytes, sizeof bytes);
    tide_rtps_put_info_ts(&cdr, ns);
    size_t position = 0;
    tide_rtps_submessage_t submessage;
    ASSERT_EQ(tide_rtps_next(bytes, sizeof bytes, &position, &submessage), 1);
    tide_rtps_open(&cdr, &submessage);
    EXPECT_EQ(tide_rtps_get_timestamp(&cdr), ns);
  }
}

TEST(Written, SubmessagesInBothByteOrders) {
  for (const Repair &each : repairs) {
    const Bytes bytes = bytes_from_hex(each.hex);
    size_t position = 0;
    tide_rtps_submessage_t submessage;
    ASSERT_EQ(tide_rtps_next(bytes.data(), bytes.size(), &position, &submessage), 1) << each.hex;
    tide_cdr_t cdr;
    tide_rtps_repair_t repair;
    tide_rtps_open(&cdr, &submessage);
    tide_rtps_get_repair(&cdr, &submessage, &repair);
    EXPECT_EQ(cdr.status, each.status) << each.hex;
    if (submessage.id == TIDE_RTPS_GAP && cdr.status == TIDE_OK) {
      EXPECT_EQ(repair.first, 3);
      EXPECT_EQ(tide_rtps_set_first(&repair.set), 6);
      EXPECT_FALSE(tide_rtps_set_has(&repair.set, 5));
      EXPECT_FALSE(tide_rtps_set_has(&repair.set, 7));
    }
    if ((submessage.flags & TIDE_RTPS_FLAG_LITTLE_ENDIAN) == 0 || cdr.status != TIDE_OK) continue;
    Bytes again(bytes.size());
    tide_cdr_writer(&cdr, again.data(), again.size());
    tide_rtps_put_repair(&cdr, &repair);
    EXPECT_EQ(hex_from_bytes(again), hex_from_bytes(bytes));
  }
}

TEST(Written, FragmentsLieWithinTheirSample) {
  struct Case {
    uint32_t first, sample;
    uint16_t count, size;
    size_t payload;
    int status;
  };
  const Case cases[] = {{3, 25, 1, 10, 5, TIDE_OK},
                        {1, 25, 2, 10, 20, TIDE_OK},
                        {0, 25, 1, 10, 10, TIDE_ERROR_MALFORMED},
                        {4, 25, 1, 10, 5, TIDE_ERROR_MALFORMED},
                        {1, 25, 0, 10, 10, TIDE_ERROR_MALFORMED},
                        {1, 100, 2, 10, 12, TIDE_ERROR_MALFORMED},
                        {0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFF, 0xFFFF, 8, TIDE_ERROR_MALFORMED}};
  for (const Case &each : cases) {
    const Bytes payload(each.payload, 7);
    tide_rtps_data_t data{};
    data.writer = 0x103;
    data.sequence = 1;
    data.first_fragment = each.first;
    data.sample_bytes = each.sample;
    data.fragment_count = each.count;
    data.fragment_bytes = each.size;
    data.payload = payload.data();
    data.payload_bytes = payload.size();
    data.related = {{{1, 2}, 0x204}, 77};
    uint8_t bytes[200];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, bytes, sizeof bytes);
    tide_rtps_put_data(&cdr, &data);
    ASSERT_EQ(cdr.status, TIDE_OK);
    size_t position = 0;
    tide_rtps_submessage_t submessage;
    ASSERT_EQ(tide_rtps_next(bytes, cdr.position, &position, &submessage), 1);
    tide_rtps_data_t back;
    tide_rtps_open(&cdr, &submessage);
    tide_rtps_get_data(&cdr, &submessage, &back);
    EXPECT_EQ(cdr.status, each.status) << each.first;
    if (cdr.status != TIDE_OK) continue;
    EXPECT_EQ(back.payload_bytes, each.payload);
    EXPECT_EQ(back.related.sequence, 77);
    EXPECT_EQ(back.related.guid.entity, 0x204u);
  }
}

TEST(Qos, OfferedAgainstRequested) {
  const tide_rtps_qos_t plain{true, 0, 0, false, false, false, INT64_MAX, INT64_MAX, INT64_MAX};
  tide_rtps_qos_t offered = plain, requested = plain;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), 0);
  offered.reliable = false;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), TIDE_RTPS_POLICY_RELIABILITY);
  EXPECT_EQ(tide_rtps_incompatible(&requested, &offered), 0);
  offered = plain;
  requested.durability = 1;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), TIDE_RTPS_POLICY_DURABILITY);
  EXPECT_EQ(tide_rtps_incompatible(&requested, &offered), 0);
  requested = plain;
  requested.deadline_ns = 5;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), TIDE_RTPS_POLICY_DEADLINE);
  requested = plain;
  requested.lease_ns = 5;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), TIDE_RTPS_POLICY_LIVELINESS);
  requested = plain;
  requested.lacks_xcdr1 = true;
  EXPECT_EQ(tide_rtps_incompatible(&offered, &requested), TIDE_RTPS_POLICY_REPRESENTATION);
}

// The recordings, a fragment, and submessages that no recording has.
std::vector<Bytes> all_messages() {
  std::vector<Bytes> messages;
  for (const auto &[name, bytes] : recordings()) messages.push_back(bytes);
  std::vector<std::string> bodies = {
      "16012c00 00001c00 00000000 00000103 0000000001000000 02000000 0100 0800 14000000 "
      "0102030405060708 0100 0000 0000 0000"};
  for (const Repair &each : repairs) bodies.emplace_back(each.hex);
  for (const std::string &body : bodies)
    messages.push_back(bytes_from_hex("52545053 0203 7464 0102030405060708090a0b0c" + body));
  return messages;
}

// Vectors of exactly the message's size, so that sanitizers see each read beyond it.
TEST(Hostile, EveryCutAndEveryBit) {
  for (const Bytes &bytes : all_messages()) {
    for (size_t length = 0; length < bytes.size(); length++)
      recode(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)));
    for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
      Bytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      recode(damaged);
    }
  }
}

TEST(Hostile, DamagedInSeveralPlaces) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  std::mt19937_64 random(seed);
  const std::vector<Bytes> messages = all_messages();
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = messages[random() % messages.size()];
    mutate(&bytes, messages[random() % messages.size()], random);
    bytes.shrink_to_fit();
    recode(bytes);
  }
}

}  // namespace rtps_wire_test
