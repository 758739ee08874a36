// SPDX-License-Identifier: Apache-2.0
// Random histories of add, remove, notify, priorities, cancel, exceptions and spins, with lanes and other threads: no
// run may be lost, be repeated, or overlap another one of its group. TIDE_SEED is the first seed, TIDE_SEEDS their
// number.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "dice.h"
#include "engine_probe.h"

namespace tide_rcl {
namespace tide_rcl_random_test {

// One of the entities.
struct Shared {
  std::shared_ptr<Probe> probe;
  std::atomic<std::uint64_t> notified{0}, ran{0};
  bool removed = true;          // written by the thread that adds and removes
  std::atomic<bool> out{true};  // true if it is removed and no run continues
  std::atomic<int> inside{0};
};

class Crowd {
 public:
  explicit Crowd(unsigned seed) : random_(seed), engine_(seed % 2 == 0 ? lanes_of({0, 0, 3}) : lanes_of({0, 2})) {
    group_ = std::make_shared<Group>(TIDE_GROUP_EXCLUSIVE);
    for (int index = 0; index < 12; index++) make(index);
  }

  void play() {
    std::thread spinner([this] { spin(); });
    std::thread notifiers[2];
    for (unsigned index = 0; index < 2; index++) {
      notifiers[index] = std::thread([this, seed = random_()] { notify(seed); });
    }
    for (int step = 0; step < 300; step++) change();
    for (std::thread &notifier : notifiers) notifier.join();
    EXPECT_TRUE(eventually([this] { return is_done(); })) << "lost: " << left();
    over_ = true;
    (void)eventually([this] {
      engine_.cancel();
      return left_.load();
    });
    spinner.join();
    EXPECT_EQ(overlaps_, 0);
    EXPECT_EQ(after_removal_, 0);
  }

 private:
  void make(int index) {
    shared_.push_back(std::make_unique<Shared>());
    Shared *shared = shared_.back().get();
    const bool exclusive = index < 5;
    shared->probe = probe([this, shared, exclusive] { ran(*shared, exclusive); });
    add(*shared, exclusive);
  }

  void add(Shared &shared, bool exclusive) {
    shared.out = false;
    shared.removed = false;
    engine_.add(shared.probe, TIDE_PRIORITY(random_() % 5, 0), exclusive ? group_ : nullptr);
  }

  void ran(Shared &shared, bool exclusive) {
    if (shared.out) after_removal_++;
    if (shared.inside++ > 0) overlaps_++;
    if (exclusive && in_group_++ > 0) overlaps_++;
    std::this_thread::yield();
    if (exclusive) in_group_--;
    shared.inside--;
    if (++shared.ran % 97 == 0) throw std::runtime_error("now and then");
  }

  void spin() {
    while (!over_) {
      try {
        engine_.spin();
      } catch (const std::runtime_error &) {
        thrown_++;
      }
    }
    left_ = true;
  }

  // Notifies random entities. Notifications of those that are never removed are counted.
  void notify(unsigned seed) {
    std::mt19937 random(seed);
    for (int count = 0; count < 2000; count++) {
      Shared &shared = *shared_[random() % shared_.size()];
      shared.notified++;
      shared.probe->notify();
    }
  }

  // Adds and removes the entities of the second half repeatedly.
  void change() {
    Shared &shared = *shared_[shared_.size() / 2 + random_() % (shared_.size() / 2)];
    switch (random_() % 4) {
      case 0:
        if (shared.removed) break;
        (void)engine_.remove(shared.probe);
        shared.removed = true;
        // A run that was already chosen may not have reached the callback yet; the engine keeps the entity until that
        // run has ended.
        shared.out = eventually([&] { return shared.probe.use_count() == 1; });
        break;
      case 1:
        if (shared.removed) add(shared, false);
        break;
      case 2:
        if (!shared.removed) engine_.set_priority(*shared.probe, TIDE_PRIORITY(random_() % 5, 0));
        break;
      default: engine_.cancel();
    }
  }

  bool is_done() const { return left() == 0; }
  std::uint64_t left() const {
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < shared_.size() / 2; index++) {
      total += shared_[index]->notified - shared_[index]->ran;
    }
    return total;
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Shared>> shared_;
  std::shared_ptr<Group> group_;
  std::atomic<bool> over_{false}, left_{false};
  std::atomic<int> overlaps_{0}, after_removal_{0}, thrown_{0}, in_group_{0};
  Engine engine_;
};

TEST(Histories, OfManyThreadsLoseNothing) {
  const uint64_t first = tide::test::environment("TIDE_SEED", 1);
  const uint64_t last = first + tide::test::environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 20 : 1);
  for (uint64_t seed = first; seed < last; seed++) {
    SCOPED_TRACE("replay with TIDE_SEED=" + std::to_string(seed));
    Crowd(static_cast<unsigned>(seed)).play();
    if (HasFailure()) return;
  }
}

}  // namespace tide_rcl_random_test
}  // namespace tide_rcl
