// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tide/cdr.h"
#include "tide/message.h"
#include "tide/status.h"
#include "vectors.h"

namespace cdr_cursor_test {

using Bytes = std::vector<uint8_t>;

Bytes written(const tide_cdr_t &cdr) { return Bytes(cdr.bytes, cdr.bytes + cdr.position); }

TEST(Cdr, LittleEndianLayout) {
  uint8_t buffer[64];
  std::memset(buffer, 0xEE, sizeof buffer);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_cdr_put_u8(&cdr, 1);
  tide_cdr_put_u64(&cdr, 0x1122334455667788u);
  tide_cdr_put_bool(&cdr, true);
  tide_cdr_put_u16(&cdr, 0xABCD);
  tide_cdr_put_u32(&cdr, 0xDEADBEEF);
  tide_cdr_put_string(&cdr, "hi", 2);
  tide_cdr_put_f32(&cdr, 1.0F);
  ASSERT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(hex_from_bytes(written(cdr)),
            "0100000000000000"
            "8877665544332211"
            "0100cdab"
            "efbeadde"
            "0300000068690000"
            "0000803f");
}

TEST(Cdr, BigEndianLayout) {
  uint8_t buffer[64];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  cdr.big_endian = true;
  tide_cdr_put_u16(&cdr, 0xABCD);
  tide_cdr_put_u32(&cdr, 0xDEADBEEF);
  tide_cdr_put_f64(&cdr, -2.0);
  const uint16_t elements[] = {1, 2};
  tide_cdr_put_array(&cdr, elements, 2, 2);
  ASSERT_EQ(cdr.status, TIDE_OK);
  EXPECT_EQ(hex_from_bytes(written(cdr)), "abcd0000deadbeefc00000000000000000010002");
}

TEST(Cdr, WideStringTakesFourOctetsACharacter) {
  uint8_t buffer[32];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  const uint16_t text[] = {'a', 0x20AC};
  tide_cdr_put_wstring(&cdr, text, 2);
  EXPECT_EQ(hex_from_bytes(written(cdr)), "0200000061000000ac200000");

  uint16_t back[2] = {};
  tide_cdr_t reader;
  tide_cdr_reader(&reader, buffer, cdr.position, false);
  EXPECT_EQ(tide_cdr_get_wstring(&reader, back, 2), 2u);
  EXPECT_EQ(back[1], 0x20AC);
  tide_cdr_reader(&reader, buffer, cdr.position, false);
  EXPECT_EQ(tide_cdr_get_wstring(&reader, back, 1), 0u);
  EXPECT_EQ(reader.status, TIDE_ERROR_CAPACITY_MESSAGE);
  buffer[6] = 1;  // a character beyond 16 bits
  tide_cdr_reader(&reader, buffer, cdr.position, false);
  EXPECT_EQ(tide_cdr_get_wstring(&reader, back, 2), 0u);
  EXPECT_EQ(reader.status, TIDE_ERROR_MALFORMED);
}

TEST(Cdr, AlignmentCountsFromTheOrigin) {
  uint8_t buffer[32];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_cdr_put_u8(&cdr, 9);
  tide_cdr_set_origin(&cdr);
  tide_cdr_put_u32(&cdr, 1);
  EXPECT_EQ(cdr.position, 5u);
  tide_cdr_put_u8(&cdr, 2);
  tide_cdr_align(&cdr, 8);
  EXPECT_EQ(cdr.position, 9u);
  EXPECT_EQ(hex_from_bytes(written(cdr)), "090100000002000000");
}

TEST(Cdr, NothingIsNotAligned) {
  uint8_t buffer[16];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_cdr_put_u32(&cdr, 0);
  tide_cdr_put_array(&cdr, nullptr, 0, 8);
  EXPECT_EQ(cdr.position, 4u);
  tide_cdr_reader(&cdr, buffer, 4, false);
  EXPECT_EQ(tide_cdr_get_count(&cdr, 8), 0u);
  tide_cdr_get_array(&cdr, nullptr, 0, 8);
  EXPECT_EQ(cdr.position, 4u);
  EXPECT_EQ(cdr.status, TIDE_OK);
}

TEST(Cdr, FirstErrorStays) {
  uint8_t buffer[4] = {};
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, buffer, sizeof buffer);
  tide_cdr_put_u8(&cdr, 1);
  tide_cdr_put_u32(&cdr, 2);
  EXPECT_EQ(cdr.status, TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(cdr.position, 1u);
  tide_cdr_put_u8(&cdr, 3);  // would fit
  EXPECT_EQ(cdr.position, 1u);
  EXPECT_EQ(buffer[1], 0);

  tide_cdr_reader(&cdr, buffer, 3, false);
  EXPECT_EQ(tide_cdr_get_u32(&cdr), 0u);
  EXPECT_EQ(cdr.status, TIDE_ERROR_MALFORMED);
  EXPECT_EQ(tide_cdr_get_u8(&cdr), 0u);
}

TEST(Cdr, WritersAndReadersAreNotMixedUp) {
  const uint8_t constant[4] = {1, 2, 3, 4};
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, constant, 4, false);
  tide_cdr_put_u8(&cdr, 9);
  EXPECT_EQ(cdr.status, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(constant[0], 1);
  uint8_t buffer[4] = {};
  tide_cdr_writer(&cdr, buffer, 4);
  EXPECT_EQ(tide_cdr_get_u8(&cdr), 0);
  EXPECT_EQ(cdr.status, TIDE_ERROR_ARGUMENT);
  tide_cdr_reader(&cdr, nullptr, 4, false);
  EXPECT_EQ(tide_cdr_remaining(&cdr), 0u);
  EXPECT_NE(tide_cdr_view(&cdr, 0), nullptr);
  tide_cdr_writer(&cdr, nullptr, 4);
  tide_cdr_put_u8(&cdr, 1);
  EXPECT_EQ(cdr.status, TIDE_ERROR_TOO_LARGE);
  tide_cdr_writer(&cdr, buffer, 4);
  tide_cdr_put_array(&cdr, constant, 1, 3);
  EXPECT_EQ(cdr.status, TIDE_ERROR_ARGUMENT);
}

TEST(Cdr, Strings) {
  struct Case {
    const char *hex;
    int status;
    const char *text;
  };
  const Case cases[] = {
      {"0300000068690000", TIDE_OK, "hi"},
      {"00000000", TIDE_OK, ""},
      {"0100000000", TIDE_OK, ""},
      {"020000006869", TIDE_ERROR_MALFORMED, nullptr},
      {"0400000068690000", TIDE_OK, "hi"},
      {"0500000068690000", TIDE_ERROR_MALFORMED, nullptr},
      {"ffffffff68690000", TIDE_ERROR_MALFORMED, nullptr},
      {"000000", TIDE_ERROR_MALFORMED, nullptr},
      {"01000000", TIDE_ERROR_MALFORMED, nullptr},
  };
  for (const Case &each : cases) {
    const Bytes bytes = bytes_from_hex(each.hex);
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
    size_t length = 99;
    const char *text = tide_cdr_get_string(&cdr, &length);
    EXPECT_EQ(cdr.status, each.status) << each.hex;
    if (each.text == nullptr) {
      EXPECT_EQ(text, nullptr) << each.hex;
      EXPECT_EQ(length, 0u) << each.hex;
    } else {
      ASSERT_NE(text, nullptr) << each.hex;
      EXPECT_STREQ(text, each.text) << each.hex;
    }
  }
}

TEST(Cdr, HostileCounts) {
  const Bytes bytes = bytes_from_hex("0300000001000000 02000000");
  for (size_t element_bytes : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
    const uint32_t count = tide_cdr_get_count(&cdr, element_bytes);
    EXPECT_EQ(count, element_bytes <= 2 ? 3u : 0u);
    EXPECT_EQ(cdr.status, element_bytes <= 2 ? TIDE_OK : TIDE_ERROR_MALFORMED);
  }
  uint64_t elements[1];
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  tide_cdr_get_array(&cdr, elements, SIZE_MAX / 4, 8);  // the product wraps around
  EXPECT_EQ(cdr.status, TIDE_ERROR_MALFORMED);
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  EXPECT_EQ(tide_cdr_view(&cdr, SIZE_MAX), nullptr);
  tide_cdr_measure(&cdr);
  tide_cdr_put_u8(&cdr, 1);
  tide_cdr_put_bytes(&cdr, nullptr, SIZE_MAX);
  EXPECT_EQ(cdr.status, TIDE_ERROR_TOO_LARGE);
}

TEST(Cdr, BooleansAboveOneAreRefused) {
  const uint8_t bytes[] = {0, 1, 2};
  bool values[3] = {};
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes, 3, false);
  EXPECT_FALSE(tide_cdr_get_bool(&cdr));
  EXPECT_TRUE(tide_cdr_get_bool(&cdr));
  EXPECT_EQ(cdr.status, TIDE_OK);
  (void)tide_cdr_get_bool(&cdr);
  EXPECT_EQ(cdr.status, TIDE_ERROR_MALFORMED);
  tide_cdr_reader(&cdr, bytes, 3, false);
  tide_cdr_get_bools(&cdr, values, 2);
  EXPECT_EQ(cdr.status, TIDE_OK);
  EXPECT_TRUE(values[1]);
  tide_cdr_reader(&cdr, bytes, 3, false);
  tide_cdr_get_bools(&cdr, values, 3);
  EXPECT_EQ(cdr.status, TIDE_ERROR_MALFORMED);
}

// Any sequence of values is read back unchanged, in both byte orders and from any origin. Measuring agrees with
// writing. With a buffer that is too short by any number of bytes, writing fails without exceeding the buffer.
struct Step {
  int kind;
  uint64_t value;
  Bytes bytes;
  size_t element_bytes;
};

std::vector<Step> random_steps(std::mt19937_64 &random) {
  std::vector<Step> steps(random() % 20);
  for (Step &step : steps) {
    step = {static_cast<int>(random() % 9), random(), {}, size_t{1} << random() % 4};
    step.bytes.resize(random() % 9 * step.element_bytes);
    for (uint8_t &byte : step.bytes) byte = static_cast<uint8_t>(random());
  }
  return steps;
}

void put(tide_cdr_t *cdr, const Step &step) {
  const char *text = reinterpret_cast<const char *>(step.bytes.data());
  switch (step.kind) {
    case 0: return tide_cdr_put_u8(cdr, static_cast<uint8_t>(step.value));
    case 1: return tide_cdr_put_u16(cdr, static_cast<uint16_t>(step.value));
    case 2: return tide_cdr_put_u32(cdr, static_cast<uint32_t>(step.value));
    case 3: return tide_cdr_put_u64(cdr, step.value);
    case 4: return tide_cdr_put_bool(cdr, step.value % 2 != 0);
    case 5: return tide_cdr_put_f64(cdr, static_cast<double>(step.value));
    case 6: return tide_cdr_put_string(cdr, text, step.bytes.size());
    case 7:
      return tide_cdr_put_array(cdr, step.bytes.data(), step.bytes.size() / step.element_bytes, step.element_bytes);
    default: return tide_cdr_put_bytes(cdr, step.bytes.data(), step.bytes.size());
  }
}

void expect_same(tide_cdr_t *cdr, const Step &step) {
  Bytes bytes(step.bytes.size());
  size_t length = 0;
  switch (step.kind) {
    case 0: EXPECT_EQ(tide_cdr_get_u8(cdr), static_cast<uint8_t>(step.value)); return;
    case 1: EXPECT_EQ(tide_cdr_get_u16(cdr), static_cast<uint16_t>(step.value)); return;
    case 2: EXPECT_EQ(tide_cdr_get_u32(cdr), static_cast<uint32_t>(step.value)); return;
    case 3: EXPECT_EQ(tide_cdr_get_u64(cdr), step.value); return;
    case 4: EXPECT_EQ(tide_cdr_get_bool(cdr), step.value % 2 != 0); return;
    case 5: EXPECT_EQ(tide_cdr_get_f64(cdr), static_cast<double>(step.value)); return;
    case 6: {
      const char *text = tide_cdr_get_string(cdr, &length);
      ASSERT_NE(text, nullptr);
      EXPECT_EQ(Bytes(text, text + length), step.bytes);
      return;
    }
    case 7: tide_cdr_get_array(cdr, bytes.data(), bytes.size() / step.element_bytes, step.element_bytes); break;
    default: tide_cdr_get_bytes(cdr, bytes.data(), bytes.size()); break;
  }
  EXPECT_EQ(bytes, step.bytes);
}

TEST(CdrProperty, RoundTrip) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<Step> steps = random_steps(random);
    const size_t origin = random() % 8;
    const bool big_endian = random() % 2 != 0;
    Bytes buffer(4096);

    tide_cdr_t writer, measure, reader;
    tide_cdr_writer(&writer, buffer.data(), buffer.size());
    tide_cdr_measure(&measure);
    for (tide_cdr_t *cdr : {&writer, &measure}) {
      cdr->big_endian = big_endian;
      cdr->position = origin;
      tide_cdr_set_origin(cdr);
      for (const Step &step : steps) put(cdr, step);
      ASSERT_EQ(cdr->status, TIDE_OK);
    }
    EXPECT_EQ(measure.position, writer.position);

    tide_cdr_reader(&reader, buffer.data(), writer.position, big_endian);
    reader.position = origin;
    tide_cdr_set_origin(&reader);
    for (const Step &step : steps) expect_same(&reader, step);
    EXPECT_EQ(reader.status, TIDE_OK);
    EXPECT_EQ(tide_cdr_remaining(&reader), 0u);

    if (writer.position == origin) continue;
    Bytes small(origin + random() % (writer.position - origin));  // too short; the sanitizer watches its end
    tide_cdr_writer(&writer, small.data(), small.size());
    writer.big_endian = big_endian;
    writer.position = origin;
    tide_cdr_set_origin(&writer);
    for (const Step &step : steps) put(&writer, step);
    EXPECT_EQ(writer.status, TIDE_ERROR_TOO_LARGE);
  }
}

// The message below is {uint8 a; double b}.
struct Pair {
  uint8_t a;
  double b;
};
void encode_pair(tide_cdr_t *cdr, const void *message) {
  const Pair *pair = static_cast<const Pair *>(message);
  tide_cdr_put_u8(cdr, pair->a);
  tide_cdr_put_f64(cdr, pair->b);
}
void encode_refusing(tide_cdr_t *cdr, const void *) { cdr->status = TIDE_ERROR_TOO_LARGE; }

TEST(Message, SizeComesFromEncoding) {
  tide_message_type_t type{};
  type.encode = encode_pair;
  const Pair pair{1, 2.0};
  EXPECT_EQ(tide_message_size(&type, &pair), 16u);
  type.encode = encode_refusing;
  EXPECT_EQ(tide_message_size(&type, &pair), 0u);
}

}  // namespace cdr_cursor_test
