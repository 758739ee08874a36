// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tide/link_serial.h"
#include "tide/status.h"

namespace link_output_test {

std::vector<uint8_t> random_bytes(std::mt19937_64 &random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (auto &byte : bytes) byte = random() % 3 == 0 ? 0x7E : random() % 3 == 0 ? 0x7D : static_cast<uint8_t>(random());
  return bytes;
}

tide_frame_parts_t parts_of(const std::vector<uint8_t> &head, const std::vector<uint8_t> &body,
                            const std::vector<uint8_t> &tail) {
  tide_frame_parts_t parts{};
  parts.head = head.data();
  parts.head_bytes = head.size();
  parts.body = body.data();
  parts.body_bytes = body.size();
  parts.tail = tail.data();
  parts.tail_bytes = tail.size();
  return parts;
}

TEST(SerialOutput, FramesThreePartsAsOneMessage) {
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto head = random_bytes(random, random() % 48), body = random_bytes(random, random() % 300),
               tail = random_bytes(random, random() % 4);
    std::vector<uint8_t> message = head;
    message.insert(message.end(), body.begin(), body.end());
    message.insert(message.end(), tail.begin(), tail.end());
    std::vector<uint8_t> expected(TIDE_FRAMING_WORST_BYTES(message.size()));
    const int length =
        tide_framing_encode(expected.data(), expected.size(), 1, 0, message.data(), message.size(), message.data(), 0);
    ASSERT_GT(length, 0);
    expected.resize(static_cast<size_t>(length));

    std::vector<uint8_t> storage(TIDE_FRAMING_WORST_BYTES(message.size()) + random() % 3);  // just enough
    tide_serial_output_t output;
    tide_serial_output_init(&output, storage.data(), storage.size(), 115200, 1, 0);
    const tide_frame_parts_t parts = parts_of(head, body, tail);
    ASSERT_EQ(tide_serial_output_load(&output, &parts), TIDE_OK);
    const uint8_t *bytes = nullptr;
    const size_t rest = tide_serial_output_rest(&output, &bytes);
    ASSERT_EQ(std::vector<uint8_t>(bytes, bytes + rest), expected);
  }
}

TEST(SerialOutput, IsOneFrameAtATimeAndRefusesWhatDoesNotFit) {
  std::vector<uint8_t> storage(TIDE_FRAMING_WORST_BYTES(20));
  tide_serial_output_t output;
  tide_serial_output_init(&output, storage.data(), storage.size(), 115200, 1, 0);
  const std::vector<uint8_t> head(8, 0x7E), body(12, 0x7E), large(100, 0x7E), tail(7, 0), none;
  const tide_frame_parts_t fits = parts_of(head, body, none), with_tail = parts_of(head, body, tail),
                           too_large = parts_of(head, large, none);
  EXPECT_EQ(tide_serial_output_load(&output, &too_large), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(tide_serial_output_load(&output, &with_tail), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(tide_serial_output_complete_ns(&output), 0);
  EXPECT_EQ(tide_serial_output_load(&output, &fits), TIDE_OK);
  EXPECT_EQ(tide_serial_output_complete_ns(&output), INT64_MAX);
  EXPECT_EQ(tide_serial_output_load(&output, &fits), TIDE_ERROR_STATE);
  tide_serial_output_wrote(&output, output.length - 1, 0);
  EXPECT_EQ(tide_serial_output_load(&output, &fits), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_serial_output_complete_ns(&output), INT64_MAX);
  tide_serial_output_wrote(&output, 1, 0);
  EXPECT_NEAR(static_cast<double>(tide_serial_output_complete_ns(&output)),
              static_cast<double>(tide_serial_duration_ns(output.length, 115200)), 1);
  tide_serial_output_reset(&output);
  EXPECT_EQ(tide_serial_output_load(&output, &fits), TIDE_OK);
}

TEST(SerialOutput, CompletesWhenTheLastBitHasLeft) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const uint32_t baud = std::vector<uint32_t>{300, 9600, 115200, 1'000'000, 4'000'000}[random() % 5];
    std::vector<uint8_t> storage(TIDE_FRAMING_WORST_BYTES(600));
    tide_serial_output_t output;
    tide_serial_output_init(&output, storage.data(), storage.size(), baud, 1, 0);
    int64_t now_ns = 1'000'000'000;
    long double free_ns = 0;
    int64_t pieces = 0;
    for (int message = 0; message < 20; message++) {
      const auto body = random_bytes(random, 1 + random() % 600);
      const tide_frame_parts_t parts = parts_of({}, body, {});
      ASSERT_EQ(tide_serial_output_load(&output, &parts), TIDE_OK);
      const uint8_t *bytes = nullptr;
      while (const size_t rest = tide_serial_output_rest(&output, &bytes)) {
        const size_t count = random() % 2 == 0 ? rest : 1 + random() % rest;
        tide_serial_output_wrote(&output, count, now_ns);
        free_ns = std::max(free_ns, static_cast<long double>(now_ns)) + static_cast<long double>(count) * 1e10L / baud;
        pieces++;
        now_ns += static_cast<int64_t>(random() % 30'000'000);
      }
      const int64_t complete_ns = tide_serial_output_complete_ns(&output);
      ASSERT_GE(static_cast<long double>(complete_ns), free_ns - 1e-3L);
      ASSERT_LE(static_cast<long double>(complete_ns), free_ns + static_cast<long double>(pieces) + 1);
    }
  }
}

TEST(SerialOutput, DurationsDoNotOverflow) {
  EXPECT_EQ(tide_serial_duration_ns(0, 115200), 0);
  EXPECT_EQ(tide_serial_duration_ns(1, 115200), 86'806);
  EXPECT_EQ(tide_serial_duration_ns(119, 115200), 10'329'862);
  EXPECT_EQ(tide_serial_duration_ns(1u << 30, 115200), 93'206'755'555'556);
  EXPECT_EQ(tide_serial_duration_ns(1000, 0), 0);
}

}  // namespace link_output_test
