// SPDX-License-Identifier: Apache-2.0
// Random histories of add, remove, notify, priorities, cancel, exceptions and spins. A single thread must behave
// exactly like a model of a few lines. With lanes and other threads, no run may be lost, be repeated, or overlap
// another one of its group. TIDE_SEED replays one history, TIDE_HISTORIES sets their number.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine_probe.h"

namespace tide_rcl {
namespace tide_rcl_random_test {

std::optional<unsigned> number_of(const char *name) {
  const char *text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

struct Thrown : std::runtime_error {
  explicit Thrown(int who) : std::runtime_error("thrown by a callback"), number(who) {}
  int number;
};

class History {
 public:
  explicit History(unsigned seed) : random_(seed), engine_(options()) {
    for (int count = 0; count < 3; count++) {
      groups_.push_back(std::make_shared<Group>(count == 0 ? TIDE_GROUP_REENTRANT : TIDE_GROUP_EXCLUSIVE));
    }
  }

  void play() {
    for (int step = 0; step < 80 && !::testing::Test::HasFailure(); step++) {
      actions_left_ = 40;
      below(3) == 0 ? spin() : change();
    }
    actions_left_ = 0;
    cancelled_ = false;
    engine_.spin_all(std::chrono::seconds(0));
    EXPECT_EQ(total_pending(), 0u) << "something was left behind";
  }

 private:
  struct Known {
    std::shared_ptr<Probe> probe;
    int number = 0;
    tide_priority_t priority = 0;
    std::size_t pending = 0;
    std::int64_t stamp = 0;
    bool added = false;
  };

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  // One lane, several lanes of one band, or several bands: a single thread must behave the same with each of them.
  EngineOptions options() {
    switch (below(3)) {
      case 0:
        return {};
      case 1:
        return lanes_of({0, 0});
      default:
        bands_ = {3, 2, 0};
        return lanes_of({3, 0, 2, 3});
    }
  }

  // Returns the least level of the band that serves this entity.
  int band_of(const Known &known) const {
    for (const int least : bands_)
      if (TIDE_PRIORITY_LEVEL(known.priority) >= least) return least;
    return 0;
  }

  // Chooses as a thread does, in the first band with a ready entity: an entity that ran last and is still pending goes
  // behind its equals.
  Known *choose() {
    const Known *first = most_urgent();
    if (first == nullptr) return nullptr;
    const int band = band_of(*first);
    if (const auto last = again_.find(band); last != again_.end()) {
      Known &known = *last->second;
      if (known.pending > 0 && band_of(known) == band) known.stamp = next_stamp_++;
      again_.erase(last);
    }
    return most_urgent();
  }

  Known *most_urgent() {
    Known *best = nullptr;
    for (auto &known : known_) {
      if (known->pending == 0) continue;
      const bool better = best == nullptr || known->priority > best->priority ||
                          (known->priority == best->priority && known->stamp < best->stamp);
      best = better ? known.get() : best;
    }
    return best;
  }

  std::size_t total_pending() const {
    std::size_t total = 0;
    for (const auto &known : known_) total += known->pending;
    return total;
  }

  void ran(Known &known) {
    ASSERT_EQ(choose(), &known) << "callback " << known.number << " ran";
    ASSERT_FALSE(cancelled_) << "callback " << known.number << " ran after a cancel";
    runs_++;
    known.pending--;
    known.stamp = next_stamp_++;
    const int band = band_of(known);
    while (actions_left_ > 0 && below(2) == 0) change();
    if (known.pending > 0) again_[band] = &known;
    if (actions_left_ > 0 && below(8) == 0) {
      cancelled_ = true;
      engine_.cancel();
    }
    if (actions_left_ > 0 && below(8) == 0) {
      cancelled_ = true;
      thrown_ = thrown_.has_value() ? thrown_ : known.number;
      throw Thrown(known.number);
    }
  }

  void add_new() {
    known_.push_back(std::make_unique<Known>());
    Known *known = known_.back().get();
    known->number = static_cast<int>(known_.size());
    known->probe = probe([this, known] { ran(*known); });
    add(*known);
  }

  void add(Known &known) {
    known.priority = TIDE_PRIORITY(below(5), below(2));
    const unsigned group = below(5);
    engine_.add(known.probe, known.priority, group < groups_.size() ? groups_[group] : nullptr);
    known.added = true;
  }

  void change() {
    actions_left_--;
    if (known_.empty() || (known_.size() < 90 && below(6) == 0)) {
      add_new();
      return;
    }
    Known &known = *known_[below(static_cast<unsigned>(known_.size()))];
    switch (below(8)) {
      case 0:
        EXPECT_EQ(engine_.remove(known.probe), known.added);
        if (known.added) again_.clear();
        known.added = false;
        known.pending = 0;
        break;
      case 1:
        if (!known.added) add(known);
        break;
      case 2:
        if (known.added) {
          known.priority = TIDE_PRIORITY(below(5), below(2));
          engine_.set_priority(*known.probe, known.priority);
          known.stamp = next_stamp_++;
        }
        break;
      default:
        notify(known, 1 + below(3));
    }
  }

  void notify(Known &known, std::size_t times) {
    known.probe->notify(times);
    if (!known.added) return;
    if (known.pending == 0) known.stamp = next_stamp_++;
    known.pending += times;
  }

  void spin() {
    cancelled_ = false;
    thrown_.reset();
    runs_ = 0;
    const std::size_t ready = total_pending();
    const unsigned kind = below(3);
    try {
      if (kind == 0) engine_.spin_once(std::chrono::seconds(0));
      if (kind == 1) engine_.spin_some();
      if (kind == 2) engine_.spin_all(std::chrono::seconds(0));
      EXPECT_FALSE(thrown_.has_value()) << "an exception was lost";
    } catch (const Thrown &thrown) {
      EXPECT_EQ(thrown_, thrown.number);
    }
    EXPECT_FALSE(engine_.is_spinning());
    if (cancelled_) return;
    if (kind == 0) {
      EXPECT_EQ(runs_, ready > 0 ? 1u : 0u);
    } else if (kind == 1) {
      EXPECT_TRUE(runs_ == ready || (runs_ < ready && total_pending() == 0)) << runs_ << " of " << ready;
    } else {
      EXPECT_EQ(total_pending(), 0u);
    }
  }

  std::mt19937 random_;
  std::vector<int> bands_ = {0};  // the least levels of the bands, the most urgent first
  Engine engine_;
  std::vector<std::shared_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Known>> known_;
  std::map<int, Known *> again_;  // by band: the entity that ran last there and was still pending
  std::int64_t next_stamp_ = 0;
  std::size_t runs_ = 0;
  bool cancelled_ = false;
  std::optional<int> thrown_;
  int actions_left_ = 0;
};

TEST(Histories, AreAsTheModelSays) {
  const std::optional<unsigned> only = number_of("TIDE_SEED");
  const unsigned first = only.value_or(1);
  const unsigned count = only.has_value() ? 1 : number_of("TIDE_HISTORIES").value_or(3000);
  for (unsigned seed = first; seed < first + count; seed++) {
    SCOPED_TRACE("replay with TIDE_SEED=" + std::to_string(seed));
    History(seed).play();
    if (HasFailure()) return;
  }
}

// One of the entities in the histories with threads.
struct Shared {
  std::shared_ptr<Probe> probe;
  std::atomic<std::uint64_t> notified{0}, ran{0};
  bool removed = true;          // set by the thread that adds and removes entities
  std::atomic<bool> out{true};  // true if also no run of it is active
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

  // Every notify of an entity that is never removed is counted.
  void notify(unsigned seed) {
    std::mt19937 random(seed);
    for (int count = 0; count < 2000; count++) {
      Shared &shared = *shared_[random() % shared_.size()];
      shared.notified++;
      shared.probe->notify();
    }
  }

  // The second half of the entities is added and removed repeatedly.
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
      default:
        engine_.cancel();
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
  const std::optional<unsigned> only = number_of("TIDE_SEED");
  const unsigned first = only.value_or(1);
  const unsigned count = only.has_value() ? 1 : number_of("TIDE_CROWDS").value_or(20);
  for (unsigned seed = first; seed < first + count; seed++) {
    SCOPED_TRACE("replay with TIDE_SEED=" + std::to_string(seed));
    Crowd(seed).play();
    if (HasFailure()) return;
  }
}

}  // namespace tide_rcl_random_test
}  // namespace tide_rcl
