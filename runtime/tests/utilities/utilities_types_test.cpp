// SPDX-License-Identifier: Apache-2.0
// micro_ros_utilities on a type with every shape, described by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "micro_ros_utilities/string_utilities.h"
#include "micro_ros_utilities/type_utilities.h"
#include "rcutils/allocator.h"
#include "rosidl_runtime_c/string_functions.h"
#include "seeds.h"
#include "tide/message_memory.h"

namespace utilities_types_test {

struct Inner {
  std::int32_t number;
  rosidl_runtime_c__String text;
};
struct InnerSequence {
  Inner *data;
  std::size_t size, capacity;
};
struct Outer {
  rosidl_runtime_c__String name;
  rosidl_runtime_c__String pair[2];
  rosidl_runtime_c__U16String wide;
  rosidl_runtime_c__double__Sequence numbers;
  rosidl_runtime_c__uint8__Sequence few;
  rosidl_runtime_c__String__Sequence words;
  Inner inner;
  InnerSequence inners;
};

const tide_field_t inner_fields[] = {
    {"number", TIDE_FIELD_I32, TIDE_SHAPE_ONE, offsetof(Inner, number), 0, 0, nullptr},
    {"text", TIDE_FIELD_STRING, TIDE_SHAPE_ONE, offsetof(Inner, text), 0, 0, nullptr},
};
const tide_message_type_t inner_type = {"demo",       "msg",   "Inner", "demo::msg::dds_::Inner_", sizeof(Inner), 0, 2,
                                        inner_fields, nullptr, nullptr};
const tide_field_t outer_fields[] = {
    {"name", TIDE_FIELD_STRING, TIDE_SHAPE_ONE, offsetof(Outer, name), 0, 0, nullptr},
    {"pair", TIDE_FIELD_STRING, TIDE_SHAPE_ARRAY, offsetof(Outer, pair), 2, 6, nullptr},
    {"wide", TIDE_FIELD_WSTRING, TIDE_SHAPE_ONE, offsetof(Outer, wide), 0, 0, nullptr},
    {"numbers", TIDE_FIELD_F64, TIDE_SHAPE_SEQUENCE, offsetof(Outer, numbers), 0, 0, nullptr},
    {"few", TIDE_FIELD_U8, TIDE_SHAPE_SEQUENCE, offsetof(Outer, few), 3, 0, nullptr},
    {"words", TIDE_FIELD_STRING, TIDE_SHAPE_SEQUENCE, offsetof(Outer, words), 0, 0, nullptr},
    {"inner", TIDE_FIELD_MESSAGE, TIDE_SHAPE_ONE, offsetof(Outer, inner), 0, 0, &inner_type},
    {"inners", TIDE_FIELD_MESSAGE, TIDE_SHAPE_SEQUENCE, offsetof(Outer, inners), 0, 0, &inner_type},
};
const tide_message_type_t outer_type = {"demo",       "msg",   "Outer", "demo::msg::dds_::Outer_", sizeof(Outer), 0, 8,
                                        outer_fields, nullptr, nullptr};
const rosidl_message_type_support_t support = {TIDE_TYPESUPPORT_IDENTIFIER, &outer_type,
                                               get_message_typesupport_handle_function};

struct Heap {
  std::size_t blocks = 0, bytes = 0, total = 0, fail_after = SIZE_MAX;
  std::set<const void *> out;

  // Number of allocated texts, without the records that the runtime allocates for them.
  std::size_t texts() const {
    return static_cast<std::size_t>(std::count_if(out.begin(), out.end(), tide_message_is_allocated));
  }
};

void *heap_allocate(std::size_t size, void *state) {
  auto *heap = static_cast<Heap *>(state);
  if (heap->fail_after-- == 0) return nullptr;
  ++heap->blocks;
  heap->bytes += size;
  ++heap->total;
  return const_cast<void *>(*heap->out.insert(std::malloc(size)).first);
}
void heap_deallocate(void *pointer, void *state) {
  auto *heap = static_cast<Heap *>(state);
  if (pointer != nullptr) {
    --heap->blocks;
    EXPECT_EQ(heap->out.erase(pointer), 1u) << "given back what was not out";
  }
  std::free(pointer);
}
void *heap_reallocate(void *pointer, std::size_t size, void *) { return std::realloc(pointer, size); }
void *heap_zero_allocate(std::size_t count, std::size_t size, void *) { return std::calloc(count, size); }

rcutils_allocator_t allocator_of(Heap &heap) {
  return {heap_allocate, heap_deallocate, heap_reallocate, heap_zero_allocate, &heap};
}

void check_capacities(const Outer &message) {
  EXPECT_EQ(message.name.capacity, 9u);
  EXPECT_EQ(message.pair[1].capacity, 7u);
  EXPECT_EQ(message.wide.capacity, 20u);
  EXPECT_EQ(message.numbers.capacity, 4u);
  EXPECT_EQ(message.few.capacity, 3u);
  EXPECT_EQ(message.words.capacity, 4u);
  EXPECT_EQ(message.words.data[3].capacity, 20u);
  EXPECT_EQ(message.inner.text.capacity, 11u);
  EXPECT_EQ(message.inners.capacity, 5u);
  EXPECT_EQ(message.inners.data[4].text.capacity, 13u);
  EXPECT_EQ(message.inners.data[4].number, 0);
  EXPECT_EQ(message.inners.size, 0u);
  EXPECT_STREQ(message.name.data, "");
}

const micro_ros_utilities_memory_rule_t rules[] = {{"name", 9}, {"inner.text", 11}, {"inners.text", 13}, {"nam", 1}};

micro_ros_utilities_memory_conf_t conf_of(const rcutils_allocator_t *allocator) {
  micro_ros_utilities_memory_conf_t conf{};
  conf.max_basic_type_sequence_capacity = 4;
  conf.rules = rules;
  conf.n_rules = 4;
  conf.allocator = allocator;
  return conf;
}

TEST(TypeUtilities, AllocatesWhatItAnnouncesAndReleasesIt) {
  Heap heap;
  const auto allocator = allocator_of(heap);
  const auto conf = conf_of(&allocator);
  Outer message;
  std::memset(&message, 0xa5, sizeof message);
  ASSERT_TRUE(micro_ros_utilities_create_message_memory(&support, &message, conf));
  check_capacities(message);
  EXPECT_EQ(heap.bytes, micro_ros_utilities_get_dynamic_size(&support, conf));
  EXPECT_TRUE(micro_ros_utilities_destroy_message_memory(&support, &message, conf));
  EXPECT_EQ(heap.blocks, 0u);
  EXPECT_EQ(message.name.data, nullptr);
}

TEST(TypeUtilities, EveryFailingAllocationLeavesNothingBehind) {
  Heap counting;
  auto allocator = allocator_of(counting);
  Outer message{};
  ASSERT_TRUE(micro_ros_utilities_create_message_memory(&support, &message, conf_of(&allocator)));
  micro_ros_utilities_destroy_message_memory(&support, &message, conf_of(&allocator));
  for (std::size_t failing = 0; failing < counting.total; ++failing) {
    Heap heap;
    heap.fail_after = failing;
    allocator = allocator_of(heap);
    EXPECT_FALSE(micro_ros_utilities_create_message_memory(&support, &message, conf_of(&allocator)));
    EXPECT_EQ(heap.blocks, 0u) << failing;
  }
}

TEST(TypeUtilities, StaticMemoryFitsAtEveryAlignmentAndStaysInside) {
  const auto conf = conf_of(nullptr);
  const std::size_t size = micro_ros_utilities_get_static_size(&support, conf);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<std::uint8_t> memory(size + offset + 16, 0xee);
    Outer message;
    std::memset(&message, 0xa5, sizeof message);
    ASSERT_TRUE(micro_ros_utilities_create_static_message_memory(&support, &message, conf, &memory[offset], size));
    check_capacities(message);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message.numbers.data) % alignof(double), 0u);
    for (std::size_t i = 0; i < message.inners.capacity; ++i)
      std::memset(message.inners.data[i].text.data, 'x', message.inners.data[i].text.capacity);
    std::memset(message.numbers.data, 1, message.numbers.capacity * sizeof(double));
    EXPECT_STREQ(message.name.data, "");
    EXPECT_EQ(message.words.data[0].data[0], '\0');
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(memory[offset + size + i], 0xee);
    for (std::size_t i = 0; i < offset; ++i) EXPECT_EQ(memory[i], 0xee);
    EXPECT_FALSE(micro_ros_utilities_create_static_message_memory(&support, &message, conf, &memory[offset], size - 8));
  }
}

TEST(TypeUtilities, BadArgumentsAndHugeCapacities) {
  auto conf = conf_of(nullptr);
  Outer message{};
  std::uint8_t byte = 0;
  EXPECT_FALSE(micro_ros_utilities_create_message_memory(nullptr, &message, conf));
  EXPECT_FALSE(micro_ros_utilities_create_message_memory(&support, nullptr, conf));
  EXPECT_FALSE(micro_ros_utilities_create_static_message_memory(&support, &message, conf, nullptr, 1));
  EXPECT_EQ(micro_ros_utilities_get_static_size(nullptr, conf), 0u);
  conf.max_basic_type_sequence_capacity = SIZE_MAX / 2;
  EXPECT_EQ(micro_ros_utilities_get_dynamic_size(&support, conf), SIZE_MAX);
  EXPECT_FALSE(micro_ros_utilities_create_static_message_memory(&support, &message, conf, &byte, 1));
}

class DefaultAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    auto allocator = allocator_of(heap);
    ASSERT_TRUE(rcutils_set_default_allocator(&allocator));
  }
  Heap heap;
};

TEST_F(DefaultAllocator, TypeInfoNamesEveryMember) {
  rosidl_runtime_c__String info = micro_ros_utilities_type_info(&support);
  EXPECT_STREQ(info.data,
               "demo/msg/Outer {string name; string<=6[2] pair; wstring wide; float64[] numbers; uint8[<=3] few; "
               "string[] words; demo/msg/Inner inner; demo/msg/Inner[] inners}");
  EXPECT_EQ(info.size, std::strlen(info.data));
  micro_ros_string_utilities_destroy(&info);
  EXPECT_EQ(heap.texts(), 0u);
}

TEST_F(DefaultAllocator, StringsGrowAndRelease) {
  rosidl_runtime_c__String string = micro_ros_string_utilities_init("tide");
  EXPECT_STREQ(micro_ros_string_utilities_get_c_str(string), "tide");
  string = micro_ros_string_utilities_append(string, " and ebb");
  EXPECT_STREQ(string.data, "tide and ebb");
  string = micro_ros_string_utilities_remove_tail_chars(string, 4);
  EXPECT_STREQ(string.data, "tide and");
  EXPECT_EQ(micro_ros_string_utilities_remove_tail_chars(string, 9).size, 8u);
  char *same = string.data;
  string = micro_ros_string_utilities_set(string, "short");
  EXPECT_EQ(string.data, same);
  EXPECT_STREQ(string.data, "short");
  EXPECT_EQ(heap.texts(), 1u);
  micro_ros_string_utilities_destroy(&string);
  EXPECT_EQ(heap.texts(), 0u);
  EXPECT_EQ(string.data, nullptr);
}

// A string in the storage of a message from X__create. tests/conformance/memory.c mixes the other kinds of strings.
TEST_F(DefaultAllocator, AStringWithinAnAllocatedMessageMayGrow) {
  char *block = static_cast<char *>(tide_message_allocate(32));
  rosidl_runtime_c__String part{block + 16, 0, 16};
  micro_ros_string_utilities_destroy(&part);
  part = {block + 16, 0, 16};
  part = micro_ros_string_utilities_set(part, "longer than its sixteen");
  EXPECT_STREQ(part.data, "longer than its sixteen");
  micro_ros_string_utilities_destroy(&part);
  EXPECT_TRUE(tide_message_release(block)) << "the message still has it";
  EXPECT_EQ(heap.texts(), 0u);
}

TEST_F(DefaultAllocator, MessagesThatGrewAreReleasedAsAWhole) {
  micro_ros_utilities_memory_conf_t conf{};
  Outer message{};
  ASSERT_TRUE(micro_ros_utilities_create_message_memory(&support, &message, conf));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&message.name, "a text that is longer than the twenty of the default"));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&message.inners.data[4].text, "the same of an element beyond the size"));
  EXPECT_TRUE(micro_ros_utilities_destroy_message_memory(&support, &message, conf));
  EXPECT_EQ(message.inners.data, nullptr);
  EXPECT_EQ(heap.texts(), 0u);
}

TEST_F(DefaultAllocator, TextThatFillsTheCallersOwnMemoryStaysThere) {
  char memory[4] = "..!";
  rosidl_runtime_c__String own{memory, 0, 3};
  rosidl_runtime_c__String set = micro_ros_string_utilities_set(own, "RGB");
  EXPECT_EQ(set.data, memory);
  EXPECT_EQ(set.size, 3u);
  EXPECT_EQ(std::string(memory, 4), std::string("RGB\0", 4)) << "nothing behind the capacity is written";
  set = micro_ros_string_utilities_append(micro_ros_string_utilities_set(own, "r"), "gb");
  EXPECT_EQ(set.data, memory);
  EXPECT_EQ(std::string(set.data, set.size), "rgb");
  EXPECT_EQ(heap.texts(), 0u);
}

TEST_F(DefaultAllocator, StringsSurviveAFailingAllocator) {
  char memory[4] = "abc";
  rosidl_runtime_c__String own{memory, 3, sizeof memory};
  heap.fail_after = 0;
  EXPECT_EQ(micro_ros_string_utilities_set(own, "abcdef").size, 3u);
  heap.fail_after = 0;
  EXPECT_EQ(micro_ros_string_utilities_init("x").data, nullptr);
  EXPECT_STREQ(micro_ros_string_utilities_set(own, "xy").data, "xy");
  EXPECT_EQ(heap.texts(), 0u);
}

// Random edits, compared with std::string.
TEST_F(DefaultAllocator, RandomEdits) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  std::mt19937 random(seed);
  rosidl_runtime_c__String string = micro_ros_string_utilities_init("");
  std::string model;
  for (int i = 0; i < 500; ++i) {
    const std::string part(random() % 20, static_cast<char>('a' + random() % 26));
    if (i % 50 == 49) {
      model = std::string(string.capacity, 'x');
      string = micro_ros_string_utilities_set(string, model.c_str());
    } else if (random() % 3 != 0) {
      string = micro_ros_string_utilities_append(string, part.c_str());
      model += part;
    } else if (const std::size_t n = random() % 40; n <= model.size()) {
      string = micro_ros_string_utilities_remove_tail_chars(string, n);
      model.resize(model.size() - n);
    }
    ASSERT_STREQ(micro_ros_string_utilities_get_c_str(string), model.c_str());
    ASSERT_EQ(string.size, model.size());
  }
  micro_ros_string_utilities_destroy(&string);
  EXPECT_EQ(heap.texts(), 0u);
}

}  // namespace utilities_types_test
