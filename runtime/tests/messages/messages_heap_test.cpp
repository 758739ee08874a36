// SPDX-License-Identifier: Apache-2.0
// Strings and sequences that get memory from the default allocator and return it.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rosidl_runtime_c/primitives_sequence_functions.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"
#include "seeds.h"
#include "tide/message_memory.h"
#include "tide/status.h"

namespace messages_heap_test {

// Counts allocated blocks, and refuses to allocate on request. The runtime's record entries are also counted, but are
// never returned, so tests check blocks.
class Heap {
 public:
  Heap() {
    const tide_message_allocator_t own{allocate, deallocate, this};
    tide_message_set_allocator(&own);
  }
  ~Heap() {
    const tide_message_allocator_t standard{[](std::size_t bytes, void *) { return std::malloc(bytes); },
                                            [](void *block, void *) { std::free(block); }, nullptr};
    tide_message_set_allocator(&standard);
  }
  Heap(const Heap &) = delete;
  Heap &operator=(const Heap &) = delete;

  bool gave(const void *block) {
    const std::lock_guard<std::mutex> hold(mutex_);
    return out_.count(block) > 0;
  }
  std::size_t released() {
    const std::lock_guard<std::mutex> hold(mutex_);
    return released_;
  }
  std::size_t given() {
    const std::lock_guard<std::mutex> hold(mutex_);
    return given_;
  }
  bool refuses = false;
  std::size_t refuses_behind = SIZE_MAX;  // number of further allocations

 private:
  static void *allocate(std::size_t bytes, void *state) {
    Heap *heap = static_cast<Heap *>(state);
    if (heap->refuses || heap->given_ >= heap->refuses_behind) return nullptr;
    void *block = std::malloc(bytes);
    std::memset(block, 0xa5, bytes);
    const std::lock_guard<std::mutex> hold(heap->mutex_);
    heap->out_[block] = bytes;
    ++heap->given_;
    return block;
  }
  static void deallocate(void *block, void *state) {
    Heap *heap = static_cast<Heap *>(state);
    {
      const std::lock_guard<std::mutex> hold(heap->mutex_);
      EXPECT_EQ(heap->out_.erase(block), 1u) << "given back what was not out";
      ++heap->released_;
    }
    std::free(block);
  }

  std::mutex mutex_;
  std::map<const void *, std::size_t> out_;
  std::size_t given_ = 0, released_ = 0;
};

TEST(MessageHeap, AStringWithoutMemoryGetsWhatItsTextNeeds) {
  Heap heap;
  rosidl_runtime_c__String string;
  ASSERT_TRUE(rosidl_runtime_c__String__init(&string));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&string, "abc"));
  EXPECT_STREQ(string.data, "abc");
  EXPECT_EQ(string.size, 3u);
  EXPECT_EQ(string.capacity, 4u);
  EXPECT_TRUE(heap.gave(string.data));
  const char *before = string.data;
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&string, "ab"));
  EXPECT_EQ(string.data, before) << "text that fits stays where it is";
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&string, "a text that is longer"));
  EXPECT_STREQ(string.data, "a text that is longer");
  EXPECT_EQ(heap.released(), 1u) << "the shorter memory went back";
  rosidl_runtime_c__String__fini(&string);
  EXPECT_EQ(string.data, nullptr);
  EXPECT_EQ(heap.released(), 2u);
  rosidl_runtime_c__String__fini(&string);
  EXPECT_EQ(heap.released(), 2u);
}

TEST(MessageHeap, ACountThatNoMemoryHoldsIsRefused) {
  Heap heap;
  rosidl_runtime_c__double__Sequence numbers;
  EXPECT_FALSE(rosidl_runtime_c__double__Sequence__init(&numbers, SIZE_MAX / 4));
  EXPECT_FALSE(rosidl_runtime_c__double__Sequence__init(nullptr, 3));
  heap.refuses = true;
  EXPECT_FALSE(rosidl_runtime_c__double__Sequence__init(&numbers, 3));
  EXPECT_EQ(numbers.size, 0u);
  heap.refuses = false;
  rosidl_runtime_c__String string{};
  EXPECT_FALSE(rosidl_runtime_c__String__assignn(&string, "a", SIZE_MAX));
  EXPECT_EQ(heap.given(), 0u);
}

TEST(MessageHeap, ResizingKeepsTheTextAsFarAsItGoes) {
  Heap heap;
  rosidl_runtime_c__String string{};
  EXPECT_TRUE(rosidl_runtime_c__String__resize(&string, 3));
  EXPECT_EQ(std::string(string.data, string.size), std::string(3, '\0'));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&string, "abc"));
  EXPECT_TRUE(rosidl_runtime_c__String__resize(&string, 6));
  EXPECT_EQ(std::string(string.data, string.size + 1), std::string("abc\0\0\0\0", 7));
  EXPECT_TRUE(rosidl_runtime_c__String__resize(&string, 2));
  EXPECT_EQ(std::string(string.data, 3), std::string("ab\0", 3));
  EXPECT_TRUE(rosidl_runtime_c__String__resize(&string, 4));
  EXPECT_EQ(std::string(string.data, 5), std::string("ab\0\0\0", 5)) << "what was there before does not come back";
  EXPECT_FALSE(rosidl_runtime_c__String__resize(&string, SIZE_MAX));
  EXPECT_FALSE(rosidl_runtime_c__String__resize(nullptr, 1));
  rosidl_runtime_c__String__fini(&string);

  std::array<char, 4> memory{"xyz"};
  rosidl_runtime_c__String callers{memory.data(), 3, memory.size()};
  EXPECT_FALSE(rosidl_runtime_c__String__resize(&callers, 4));
  EXPECT_STREQ(callers.data, "xyz");
  rosidl_runtime_c__String literal{const_cast<char *>("fixed"), 5, 0};
  EXPECT_TRUE(rosidl_runtime_c__String__resize(&literal, 2));
  EXPECT_STREQ(literal.data, "fi");
  rosidl_runtime_c__String__fini(&literal);
}

TEST(MessageHeap, WideStringsHaveTheirLengthTheirBytesAndTheirSize) {
  Heap heap;
  const std::uint16_t text[] = {0x6c34, 'b', 0};
  EXPECT_EQ(rosidl_runtime_c__U16String__len(text), 2u);
  EXPECT_EQ(rosidl_runtime_c__U16String__len(nullptr), 0u);
  rosidl_runtime_c__U16String string{};
  const char *bytes = reinterpret_cast<const char *>(text);
  EXPECT_FALSE(rosidl_runtime_c__U16String__assignn_from_char(&string, bytes, 3));
  EXPECT_FALSE(rosidl_runtime_c__U16String__assignn_from_char(&string, nullptr, 2));
  EXPECT_TRUE(rosidl_runtime_c__U16String__assignn_from_char(&string, bytes, 4));
  ASSERT_EQ(string.size, 2u);
  EXPECT_EQ(std::memcmp(string.data, text, sizeof text), 0);
  EXPECT_TRUE(rosidl_runtime_c__U16String__resize(&string, 3));
  EXPECT_EQ(string.data[0], 0x6c34);
  EXPECT_EQ(string.data[2], 0);
  EXPECT_EQ(string.data[3], 0);
  rosidl_runtime_c__U16String__fini(&string);
}

TEST(MessageHeap, SequencesOwnTheirElements) {
  Heap heap;
  rosidl_runtime_c__String__Sequence names, more{};
  ASSERT_TRUE(rosidl_runtime_c__String__Sequence__init(&names, 2));
  EXPECT_EQ(names.data[1].data, nullptr);
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&names.data[0], "left"));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&names.data[1], "right"));
  EXPECT_TRUE(rosidl_runtime_c__String__Sequence__copy(&names, &more));
  EXPECT_TRUE(rosidl_runtime_c__String__Sequence__are_equal(&names, &more));
  names.size = 1;  // elements beyond the size are released as well
  rosidl_runtime_c__String__Sequence__fini(&names);
  EXPECT_EQ(heap.released(), 3u);
  rosidl_runtime_c__String__Sequence longer;
  ASSERT_TRUE(rosidl_runtime_c__String__Sequence__init(&longer, 5));
  EXPECT_TRUE(rosidl_runtime_c__String__Sequence__copy(&longer, &more)) << "two elements were too few";
  EXPECT_EQ(more.size, 5u);
  EXPECT_EQ(heap.released(), 6u) << "the two texts and their sequence";
  rosidl_runtime_c__String__Sequence__fini(&more);
  rosidl_runtime_c__String__Sequence__fini(&longer);
  EXPECT_EQ(heap.released(), 8u);
}

TEST(MessageHeap, ElementsInMemoryOfTheCallerGiveBackTheirText) {
  Heap heap;
  std::array<char, 8> memory{"kept"};
  rosidl_runtime_c__String elements[] = {{nullptr, 0, 0}, {memory.data(), 4, memory.size()}};
  rosidl_runtime_c__String__Sequence names{elements, 2, 2};
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&elements[0], "allocated"));
  rosidl_runtime_c__String__Sequence__fini(&names);
  EXPECT_EQ(heap.released(), 1u);
  EXPECT_EQ(elements[0].data, nullptr);
  EXPECT_EQ(elements[1].data, memory.data()) << "this one was the caller's";
}

TEST(MessageHeap, BorrowedTextIsNotReleased) {
  Heap heap;
  rosidl_runtime_c__String string{};
  ASSERT_TRUE(rosidl_runtime_c__String__assign(&string, "text"));
  rosidl_runtime_c__String borrower{string.data, string.size, 0};
  rosidl_runtime_c__String__fini(&borrower);
  EXPECT_EQ(borrower.data, nullptr);
  EXPECT_EQ(heap.released(), 0u);
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&string, "more"));
  rosidl_runtime_c__String__fini(&string);
}

TEST(MessageHeap, ABlockThatCannotBeRememberedGoesBack) {
  Heap heap;
  std::vector<void *> blocks;
  for (void *block = &heap; block != nullptr;) {  // until no entry is free in the region of a block
    heap.refuses_behind = heap.given() + 1;
    block = tide_message_allocate(8);
    if (block != nullptr) blocks.push_back(block);
  }
  EXPECT_EQ(heap.released(), 1u);
  for (void *block : blocks) EXPECT_TRUE(tide_message_release(block));
}

// The memory of a string may be a part of a block, as in messages made by X__create.
TEST(MessageHeap, TextMayLeaveItsPartOfAnAllocatedBlock) {
  Heap heap;
  char *block = static_cast<char *>(tide_message_allocate(32));
  rosidl_runtime_c__String first{block + 8, 0, 8}, last{block + 24, 0, 8}, behind{block + 32, 0, 8};
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&first, "longer than 8"));
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&last, "seven.."));
  EXPECT_EQ(last.data, block + 24) << "text that fits stays";
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&last, "longer than 8"));
  EXPECT_FALSE(rosidl_runtime_c__String__assign(&behind, "longer than 8"));
  EXPECT_STREQ(first.data, "longer than 8");
  EXPECT_STREQ(last.data, "longer than 8");
  EXPECT_EQ(heap.released(), 0u);
  rosidl_runtime_c__String__fini(&first);
  rosidl_runtime_c__String__fini(&last);
  EXPECT_EQ(heap.released(), 2u);
  rosidl_runtime_c__String part{block + 16, 0, 8};
  rosidl_runtime_c__String__fini(&part);
  EXPECT_EQ(heap.released(), 2u) << "a part is not released";
  EXPECT_TRUE(tide_message_release(block));
  part = {block + 16, 0, 8};
  EXPECT_FALSE(rosidl_runtime_c__String__assign(&part, "longer than 8")) << "the block is gone";
}

TEST(MessageHeap, ElementsInPartOfAnAllocatedBlockGiveBackTheirText) {
  Heap heap;
  auto *elements = static_cast<rosidl_runtime_c__String *>(tide_message_allocate(3 * sizeof(rosidl_runtime_c__String)));
  rosidl_runtime_c__String__Sequence names{elements + 1, 2, 2};
  EXPECT_TRUE(rosidl_runtime_c__String__assign(&names.data[1], "beyond the size"));
  names.size = 1;
  rosidl_runtime_c__String__Sequence__fini(&names);
  EXPECT_EQ(heap.released(), 1u);
  EXPECT_TRUE(tide_message_release(elements));
}

// Programs written for the stock client release some memory themselves. The runtime drops its record of such memory
// when the address is used again.
TEST(MessageHeap, AProgramMayReleaseTextByItself) {
  for (int round = 0; round < 100; ++round) {
    rosidl_runtime_c__String string{};
    ASSERT_TRUE(rosidl_runtime_c__String__assign(&string, "text"));
    if (round % 2 == 0) {
      std::free(string.data);
    } else {
      rosidl_runtime_c__String__fini(&string);
    }
  }
}

// Memory that the program released may lie within a later block, or around one, without belonging to that block.
TEST(MessageHeap, WhatAProgramReleasedIsForgottenWhenItsMemoryComesAgain) {
  alignas(16) static std::array<char, 4096> arena;
  static std::size_t next, released;
  const tide_message_allocator_t of_arena{
      [](std::size_t bytes, void *) -> void * { return &arena[std::exchange(next, next + (bytes + 15) / 16 * 16)]; },
      [](void *, void *) { ++released; }, nullptr};
  next = released = 0;
  const Heap standard_at_the_end;
  tide_message_set_allocator(&of_arena);
  char *text[5];
  for (char *&one : text) one = static_cast<char *>(tide_message_allocate(32));  // blocks with entries in between
  for (char *one : text) ASSERT_TRUE(tide_message_release(one));
  released = 0;
  const std::size_t start = next;
  for (char *&one : text) one = static_cast<char *>(tide_message_allocate(32));
  next = start + 16;  // the program has released them all
  char *block = static_cast<char *>(tide_message_allocate(64));
  ASSERT_LT(text[0], block);
  ASSERT_LT(block, text[1]);
  EXPECT_FALSE(tide_message_is_in_allocated(text[0]));
  for (char *one : {text[1], text[2]}) {
    EXPECT_FALSE(tide_message_is_allocated(one));
    rosidl_runtime_c__String part{one, 0, 8};
    rosidl_runtime_c__String__fini(&part);
  }
  EXPECT_EQ(released, 0u);
  EXPECT_TRUE(tide_message_is_allocated(text[3])) << "nothing lies there yet";
  EXPECT_TRUE(tide_message_release(block));
}

TEST(MessageHeap, BlocksGoBackToTheAllocatorThatGaveThem) {
  rosidl_runtime_c__String first{}, second{};
  {
    Heap heap;
    ASSERT_TRUE(rosidl_runtime_c__String__assign(&first, "first"));
    const tide_message_allocator_t none{};
    tide_message_set_allocator(&none);
    EXPECT_FALSE(rosidl_runtime_c__String__assign(&second, "second"));
    rosidl_runtime_c__String__fini(&first);
    EXPECT_EQ(heap.released(), 1u);
  }
  ASSERT_TRUE(rosidl_runtime_c__String__assign(&second, "second"));
  rosidl_runtime_c__String__fini(&second);
}

// Strings without memory, in memory of the caller, and literals.
TEST(MessageHeap, RandomUseAgainstAModel) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  std::mt19937 random(seed);
  Heap heap;
  std::array<std::array<char, 16>, 8> memory{};
  std::array<rosidl_runtime_c__String, 8> strings{};
  std::array<std::string, 8> model;
  std::array<bool, 8> is_callers{};
  for (int step = 0; step < 20000; ++step) {
    const std::size_t at = random() % strings.size(), from = random() % strings.size();
    rosidl_runtime_c__String &string = strings[at];
    const std::string text(random() % 40, static_cast<char>('a' + random() % 26));
    const auto fits = [&](const std::string &whole) {
      return (whole.empty() && string.capacity == 0) || whole.size() < string.capacity ||
             (!is_callers[at] && !heap.refuses);
    };
    heap.refuses = random() % 8 == 0;
    switch (random() % 4) {
      case 0: {
        const bool fitted = fits(text);
        ASSERT_EQ(rosidl_runtime_c__String__assignn(&string, text.data(), text.size()), fitted);
        if (fitted) model[at] = text;
        break;
      }
      case 1: {
        const bool fitted = fits(model[from]);
        ASSERT_EQ(rosidl_runtime_c__String__copy(&strings[from], &string), fitted);
        if (fitted) model[at] = model[from];
        break;
      }
      case 2:
        rosidl_runtime_c__String__fini(&string);
        is_callers[at] = false;
        model[at].clear();
        break;
      default:
        if (string.data != nullptr) break;
        is_callers[at] = random() % 2 == 0;
        model[at] = is_callers[at] ? "" : "fixed";
        if (is_callers[at]) string = {memory[at].data(), 0, memory[at].size()};
        if (!is_callers[at]) string = {const_cast<char *>("fixed"), 5, 0};
    }
    ASSERT_EQ(model[at], string.data == nullptr ? std::string() : std::string(string.data, string.size));
    ASSERT_EQ(is_callers[at], string.data == memory[at].data());
    ASSERT_EQ(rosidl_runtime_c__String__are_equal(&string, &strings[from]), model[at] == model[from]);
  }
  for (rosidl_runtime_c__String &string : strings) rosidl_runtime_c__String__fini(&string);
  heap.refuses = false;
}

TEST(MessageHeap, ThreadsAllocateAndReleaseAtOnce) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      std::array<rosidl_runtime_c__String, 32> strings{};
      for (int round = 0; round < 2000; ++round) {
        rosidl_runtime_c__String &string = strings[static_cast<std::size_t>(round * 7 + number) % strings.size()];
        if (string.data != nullptr) rosidl_runtime_c__String__fini(&string);
        const std::string text = std::to_string(number) + std::string(static_cast<std::size_t>(round) % 50, 'x');
        ASSERT_TRUE(rosidl_runtime_c__String__assign(&string, text.c_str()));
        ASSERT_EQ(text, string.data);
      }
      for (rosidl_runtime_c__String &string : strings) rosidl_runtime_c__String__fini(&string);
    });
  }
  for (std::thread &thread : threads) thread.join();
}

}  // namespace messages_heap_test
