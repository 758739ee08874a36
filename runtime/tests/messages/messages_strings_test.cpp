// SPDX-License-Identifier: Apache-2.0
// Strings and sequences of rosidl_runtime_c in memory of the caller.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "rosidl_runtime_c/primitives_sequence_functions.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"
#include "seeds.h"
#include "tide/message_memory.h"
#include "tide/status.h"

namespace messages_strings_test {

rosidl_runtime_c__String over(char *data, std::size_t capacity) { return {data, 0, capacity}; }

TEST(Strings, TextEndsAtItsFirstNulOnTheWire) {
  std::array<char, 12> memory{"hello"};
  for (const std::size_t size : {std::size_t{6}, memory.size()}) {
    std::array<std::uint8_t, 32> bytes{};
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, bytes.data(), bytes.size());
    const rosidl_runtime_c__String counted{memory.data(), size, memory.size()};
    tide_message_put_strings(&cdr, &counted, 1, 5);
    EXPECT_EQ(cdr.status, TIDE_OK) << "a NUL is within no bound";
    EXPECT_EQ(cdr.position, 10u);
    EXPECT_EQ(bytes[0], 6u);
    EXPECT_EQ(std::memcmp(bytes.data() + 4, "hello", 6), 0);
  }
}

TEST(Strings, NullPointersAreRefused) {
  std::array<char, 4> memory{};
  rosidl_runtime_c__String string = over(memory.data(), memory.size());
  EXPECT_FALSE(rosidl_runtime_c__String__init(nullptr));
  EXPECT_FALSE(rosidl_runtime_c__String__assign(&string, nullptr));
  EXPECT_FALSE(rosidl_runtime_c__String__assignn(nullptr, "a", 1));
  EXPECT_FALSE(rosidl_runtime_c__String__copy(nullptr, &string));
  EXPECT_FALSE(rosidl_runtime_c__String__are_equal(&string, nullptr));
  EXPECT_FALSE(rosidl_runtime_c__U16String__init(nullptr));
  EXPECT_FALSE(rosidl_runtime_c__int32__Sequence__init(nullptr, 0));
  rosidl_runtime_c__String__fini(nullptr);
}

TEST(Strings, WideStringsCountCharacters) {
  std::array<uint16_t, 3> memory{};
  rosidl_runtime_c__U16String string{memory.data(), 0, memory.size()};
  const uint16_t two[] = {0x6c34, 'b', 0}, three[] = {'a', 'b', 'c', 0};
  EXPECT_TRUE(rosidl_runtime_c__U16String__assign(&string, two));
  EXPECT_EQ(string.size, 2u);
  EXPECT_EQ(memory[2], 0);
  EXPECT_FALSE(rosidl_runtime_c__U16String__assign(&string, three));
  EXPECT_EQ(memory[0], 0x6c34);
}

TEST(Sequences, CopyAndEqualityStayWithinCapacity) {
  std::array<int32_t, 3> first{1, 2, 3}, second{};
  rosidl_runtime_c__int32__Sequence a{first.data(), 3, 3}, b{second.data(), 0, 3};
  EXPECT_FALSE(rosidl_runtime_c__int32__Sequence__are_equal(&a, &b));
  EXPECT_TRUE(rosidl_runtime_c__int32__Sequence__copy(&a, &b));
  EXPECT_TRUE(rosidl_runtime_c__int32__Sequence__are_equal(&a, &b));
  b.data[2] = 4;
  EXPECT_FALSE(rosidl_runtime_c__int32__Sequence__are_equal(&a, &b));
  b.capacity = 2;
  EXPECT_FALSE(rosidl_runtime_c__int32__Sequence__copy(&a, &b));
  EXPECT_TRUE(rosidl_runtime_c__int32__Sequence__init(&b, 0));
  EXPECT_EQ(b.data, nullptr);
}

TEST(Sequences, StringSequencesCopyIntoTheStringsThatAreThere) {
  std::array<char, 4> memory_a{}, memory_b{};
  rosidl_runtime_c__String a[] = {{const_cast<char *>("one"), 3, 0}, {const_cast<char *>("three"), 5, 0}};
  rosidl_runtime_c__String b[] = {over(memory_a.data(), 4), over(memory_b.data(), 4)};
  rosidl_runtime_c__String__Sequence from{a, 2, 2}, to{b, 0, 2};
  EXPECT_FALSE(rosidl_runtime_c__String__Sequence__copy(&from, &to));
  EXPECT_EQ(to.size, 1u);
  from.size = 1;
  EXPECT_TRUE(rosidl_runtime_c__String__Sequence__copy(&from, &to));
  EXPECT_TRUE(rosidl_runtime_c__String__Sequence__are_equal(&from, &to));
}

// Random texts in random capacities: a text that fits is read back; a longer one is refused and leaves an empty string.
TEST(Strings, RandomTextsThroughCdr) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 12, 'a');
    for (char &c : text) c = static_cast<char>('a' + random() % 26);
    const std::uint32_t bound = static_cast<std::uint32_t>(random() % 12);
    std::array<std::uint8_t, 32> bytes{};
    tide_cdr_t cdr;
    rosidl_runtime_c__String from{text.data(), text.size(), 0};
    tide_cdr_writer(&cdr, bytes.data(), bytes.size());
    tide_message_put_strings(&cdr, &from, 1, bound);
    if (bound != 0 && text.size() > bound) {
      ASSERT_EQ(cdr.status, TIDE_ERROR_TOO_LARGE);
      tide_cdr_writer(&cdr, bytes.data(), bytes.size());
      tide_message_put_strings(&cdr, &from, 1, 0);
    }
    const std::size_t length = cdr.position, capacity = random() % 12;
    std::string memory(capacity + 1, '#');
    rosidl_runtime_c__String to = over(memory.data(), capacity);
    tide_cdr_reader(&cdr, bytes.data(), length, false);
    tide_message_get_strings(&cdr, &to, 1, bound);
    ASSERT_EQ(memory[capacity], '#');
    if (bound != 0 && text.size() > bound) {
      ASSERT_EQ(cdr.status, TIDE_ERROR_MALFORMED);
    } else if (text.size() >= capacity && !text.empty()) {
      ASSERT_EQ(cdr.status, TIDE_ERROR_CAPACITY_MESSAGE);
    } else {
      ASSERT_EQ(cdr.status, TIDE_OK);
      ASSERT_EQ(std::string(to.data, to.size), text);
      continue;
    }
    ASSERT_EQ(to.size, 0u);
  }
}

}  // namespace messages_strings_test
