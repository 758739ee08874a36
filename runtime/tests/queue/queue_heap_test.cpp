// SPDX-License-Identifier: Apache-2.0
// The heap against a model that is a sorted list: every operation, by seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <vector>

#include "tide/queue.h"
#include "tide/status.h"

namespace queue_heap_test {

struct Model {
  std::list<tide_queue_entry_t *> sorted;  // sorted by key, and equal keys in order of arrival

  void push(tide_queue_entry_t *entry, int64_t key) {
    auto place = std::find_if(sorted.begin(), sorted.end(), [&](auto *other) { return other->key > key; });
    sorted.insert(place, entry);
  }
};

TEST(queue, agrees_with_a_sorted_list) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const size_t capacity = 1 + random() % 40;
    const int64_t keys = 1 + random() % 20;
    std::vector<tide_queue_entry_t *> storage(capacity);
    std::vector<tide_queue_entry_t> entries(capacity + 3);
    tide_queue_t queue;
    tide_queue_init(&queue, storage.data(), capacity);
    queue.next_order = 0xFFFFFFF0u;  // the numbers of arrival wrap around during the test
    Model model;
    for (int step = 0; step < 400; ++step) {
      tide_queue_entry_t *entry = &entries[random() % entries.size()];
      switch (random() % 4) {
        case 0:
        case 1: {
          const int64_t key = static_cast<int64_t>(random() % keys) - keys / 2;
          const bool queued = tide_queue_contains(entry);
          const int status = tide_queue_push(&queue, entry, key);
          if (queued) {
            ASSERT_EQ(status, TIDE_ERROR_STATE);
          } else if (model.sorted.size() == capacity) {
            ASSERT_EQ(status, TIDE_ERROR_FULL);
          } else {
            ASSERT_EQ(status, TIDE_OK);
            model.push(entry, key);
          }
          break;
        }
        case 2:
          tide_queue_remove(&queue, entry);
          model.sorted.remove(entry);
          break;
        default: {
          tide_queue_entry_t *expected = model.sorted.empty() ? nullptr : model.sorted.front();
          ASSERT_EQ(tide_queue_pop(&queue), expected);
          if (expected) model.sorted.pop_front();
        }
      }
      ASSERT_EQ(queue.count, model.sorted.size());
      ASSERT_EQ(tide_queue_head(&queue), model.sorted.empty() ? nullptr : model.sorted.front());
      ASSERT_EQ(tide_queue_second_key(&queue),
                model.sorted.size() < 2 ? INT64_MAX : (*std::next(model.sorted.begin()))->key);
      for (size_t i = 0; i < queue.count; ++i) ASSERT_EQ(storage[i]->place, i + 1);
      for (auto &each : entries) {
        const bool modelled = std::find(model.sorted.begin(), model.sorted.end(), &each) != model.sorted.end();
        ASSERT_EQ(tide_queue_contains(&each), modelled);
      }
    }
  }
}

TEST(queue, extreme_keys) {
  tide_queue_entry_t *storage[3];
  tide_queue_entry_t low{}, middle{}, high{};
  tide_queue_t queue;
  tide_queue_init(&queue, storage, 3);
  ASSERT_EQ(tide_queue_push(&queue, &high, INT64_MAX), TIDE_OK);
  ASSERT_EQ(tide_queue_push(&queue, &low, INT64_MIN), TIDE_OK);
  ASSERT_EQ(tide_queue_push(&queue, &middle, 0), TIDE_OK);
  EXPECT_EQ(tide_queue_pop(&queue), &low);
  EXPECT_EQ(tide_queue_pop(&queue), &middle);
  EXPECT_EQ(tide_queue_pop(&queue), &high);
  EXPECT_EQ(tide_queue_pop(&queue), nullptr);
}

// Two defects: a key changes, or the memory is reused, while an entry is queued.
TEST(QueueDeathTest, AKeyThatChangesInTheQueueIsNoticed) {
  tide_queue_entry_t *storage[4];
  tide_queue_entry_t entries[4]{};
  tide_queue_t queue;
  tide_queue_init(&queue, storage, 4);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tide_queue_push(&queue, &entries[i], i), TIDE_OK);
  entries[0].key = 5;
  EXPECT_DEATH((void)tide_queue_push(&queue, &entries[3], 4), "broken invariant: is_heap");
  entries[0].key = 0;
  entries[2].place = 2;
  EXPECT_DEATH(tide_queue_remove(&queue, &entries[2]), "broken invariant: .*entries\\[index\\] == entry");
}

}  // namespace queue_heap_test
