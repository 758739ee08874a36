// SPDX-License-Identifier: Apache-2.0
// A ring keeps accepted records in order, and drops and counts records without room.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "tide/status.h"
#include "tide/trace.h"

namespace trace_ring_test {

using Bytes = std::vector<uint8_t>;

uint64_t number(const Bytes &bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t index = count; index-- > 0;) value = value << 8 | bytes[at + index];
  return value;
}

struct Ring : testing::Test {
  std::array<tide_trace_record_t, 64> records{};
  tide_trace_instances_t instances{};
  tide_trace_ring_t ring{};
  std::vector<Bytes> blocks;

  void SetUp() override { ASSERT_EQ(tide_trace_init(&ring, records.data(), 64, &instances, 3, 7), TIDE_OK); }
  bool put(uint32_t instance) {
    return tide_trace_put(&ring, TIDE_TRACE_START, TIDE_PRIORITY(5, 2), instance, 9, -1000 - int64_t{instance});
  }
  static int take(void *context, const uint8_t *bytes, size_t count) {
    static_cast<Ring *>(context)->blocks.emplace_back(bytes, bytes + count);
    return TIDE_OK;
  }
  int drain(uint32_t most = UINT32_MAX) { return tide_trace_drain(&ring, most, take, this); }
};

TEST_F(Ring, RefusesACountThatIsNoPowerOfTwo) {
  for (const uint32_t count : {0u, 1u, 3u, 63u})
    EXPECT_EQ(tide_trace_init(&ring, records.data(), count, &instances, 0, 0), TIDE_ERROR_ARGUMENT) << count;
  EXPECT_EQ(tide_trace_init(&ring, nullptr, 2, &instances, 0, 0), TIDE_ERROR_ARGUMENT);
}

TEST_F(Ring, DropsAndCountsWhatComesWhenItIsFull) {
  for (uint32_t instance = 0; instance < 64; instance++) EXPECT_TRUE(put(instance));
  EXPECT_FALSE(put(64));
  EXPECT_FALSE(put(65));
  EXPECT_EQ(ring.dropped, 2u);
  EXPECT_EQ(drain(), 64);
  uint32_t expected = 0;
  for (const Bytes &block : blocks)
    for (size_t at = TIDE_TRACE_BLOCK_HEADER_BYTES; at < block.size(); at += 16)
      EXPECT_EQ(number(block, at + 8, 4), expected++);
  EXPECT_EQ(expected, 64u);
  EXPECT_EQ(number(blocks.front(), 12, 4), 2u);
}

TEST_F(Ring, ALevelThatIsLeftOutPassesAndTheBlocksStayNumbered) {
  const auto put_level = [this](unsigned level, uint32_t instance) {
    return tide_trace_put(&ring, TIDE_TRACE_END, TIDE_PRIORITY(level, 1), instance, 0, 5);
  };
  for (uint32_t instance = 0; instance < 30; instance++) ASSERT_TRUE(put_level(instance % 3 == 0 ? 4 : 0, instance));
  Bytes block(TIDE_TRACE_BLOCK_BYTES);
  uint32_t passed = 0;
  const size_t bytes = tide_trace_next_block(&ring, 0, block.data(), block.size(), &passed);
  EXPECT_EQ(passed, 30u);
  ASSERT_EQ(bytes, TIDE_TRACE_BLOCK_HEADER_BYTES + 10u * 16u);
  EXPECT_EQ(number(block, 6, 2), 10u);
  for (uint32_t index = 0; index < 10; index++) {
    EXPECT_EQ(number(block, TIDE_TRACE_BLOCK_HEADER_BYTES + index * 16 + 8, 4), 3 * index);
  }
  tide_trace_pass(&ring, bytes, passed);
  for (uint32_t instance = 0; instance < 5; instance++) ASSERT_TRUE(put_level(0, instance));
  EXPECT_EQ(tide_trace_next_block(&ring, 0, block.data(), block.size(), &passed), 0u);
  EXPECT_EQ(passed, 5u);
  tide_trace_pass(&ring, 0, passed);
  ASSERT_TRUE(put_level(4, 99));
  ASSERT_GT(tide_trace_next_block(&ring, 0, block.data(), block.size(), &passed), 0u);
  EXPECT_EQ(number(block, 16, 4), 1u) << "what has nothing is no block";
}

TEST_F(Ring, ABlockIsNoLongerThanItsRoom) {
  for (uint32_t instance = 0; instance < 40; instance++) ASSERT_TRUE(put(instance));
  Bytes block(TIDE_TRACE_BLOCK_BYTES + 16, 0xEE);
  for (size_t room = 0; room <= block.size(); room++) {
    std::fill(block.begin(), block.end(), uint8_t{0xEE});
    uint32_t passed = 77;
    const size_t bytes = tide_trace_next_block(&ring, TIDE_TRACE_ALL_LEVELS, block.data(), room, &passed);
    EXPECT_LE(bytes, room);
    EXPECT_EQ(passed, room < 40 ? 0u : std::min<size_t>((room - 24) / 16, TIDE_TRACE_BLOCK_RECORDS)) << room;
    EXPECT_EQ(bytes, passed == 0 ? 0u : 24 + 16 * size_t{passed});
    for (size_t at = room; at < block.size(); at++) ASSERT_EQ(block[at], 0xEE) << room;
  }
}

TEST_F(Ring, WritesTheFormatOfTheDocument) {
  put(0x01020304);
  ASSERT_EQ(drain(), 1);
  const Bytes &block = blocks.at(0);
  ASSERT_EQ(block.size(), 40u);
  EXPECT_EQ(Bytes(block.begin(), block.begin() + 12), (Bytes{'T', 'D', 'T', 'R', 1, 16, 1, 0, 3, 0, 7, 0}));
  EXPECT_EQ(static_cast<int64_t>(number(block, 24, 8)), -1000 - 0x01020304);
  EXPECT_EQ(Bytes(block.begin() + 32, block.end()), (Bytes{4, 3, 2, 1, 2, 5, TIDE_TRACE_START, 9}));
}

TEST_F(Ring, KeepsABlockThatTheSinkRefuses) {
  put(1);
  const auto refuse = [](void *, const uint8_t *, size_t) -> int { return TIDE_ERROR_FULL; };
  EXPECT_EQ(tide_trace_drain(&ring, 1, refuse, nullptr), TIDE_ERROR_FULL);
  EXPECT_EQ(drain(), 1);
  EXPECT_EQ(number(blocks.at(0), 16, 4), 0u);
}

TEST_F(Ring, WritesNoMoreBlocksThanItMay) {
  for (uint32_t instance = 0; instance < 64; instance++) put(instance);
  EXPECT_EQ(drain(2), 2 * static_cast<int>(TIDE_TRACE_BLOCK_RECORDS));
}

TEST_F(Ring, LosesNothingBetweenTwoThreadsThatItDoesNotCount) {
  constexpr uint32_t count = 200000;
  std::thread producer([this] {
    for (uint32_t instance = 0; instance < count; instance++) put(instance);
    __atomic_store_n(&instances.of_level[0], 1u, __ATOMIC_RELEASE);
  });
  while (__atomic_load_n(&instances.of_level[0], __ATOMIC_ACQUIRE) == 0u) ASSERT_GE(drain(), 0);
  producer.join();
  drain();
  int64_t last = -1;
  uint32_t came = 0;
  for (const Bytes &block : blocks) {
    for (size_t at = TIDE_TRACE_BLOCK_HEADER_BYTES; at < block.size(); at += 16, came++) {
      const auto instance = static_cast<int64_t>(number(block, at + 8, 4));
      EXPECT_GT(instance, last);
      EXPECT_EQ(static_cast<int64_t>(number(block, at, 8)), -1000 - instance);
      last = instance;
    }
  }
  EXPECT_EQ(came + ring.dropped, count);
}

}  // namespace trace_ring_test
