// SPDX-License-Identifier: Apache-2.0
// Random programs of timers, guards and received frames on the executor in virtual time, against a slow model written
// only from the rules: lists searched from end to end, without heaps and counters. Executor and model must run the same
// callbacks at the same times in the same order.
#include <optional>

#include "exec_program.h"

namespace exec_model_test {

using namespace exec_virtual;

class Model {
 public:
  explicit Model(const Program &the_program) : program(the_program) {
    for (const Spec &spec : program.callbacks) {
      Item item;
      item.spec = spec;
      item.next = spec.phase;
      item.waiting = spec.kind == TIDE_CALLBACK_TIMER;
      item.timer_order = ++order;
      items.push_back(item);
    }
  }

  Outcome run() {
    while (round() && now < program.end) {}
    for (const Item &item : items) {
      outcome.skipped.push_back(item.skipped);
      outcome.pending.push_back(item.pending);
    }
    return outcome;
  }

 private:
  struct Item {
    Spec spec;
    uint32_t pending = 0;
    uint64_t ready_order = 0;  // order in which it became ready, while it is pending
    bool waiting = false;      // a timer that waits for `next`
    bool canceled = false;
    uint64_t timer_order = 0;
    int64_t next = 0;
    int64_t last_call = 0;
    uint32_t skipped = 0;
    int runs = 0;
    bool in_round = false;
    bool in_set = false;  // readyset
  };

  void make_ready(Item &item) {
    if (item.pending++ == 0) item.ready_order = ++order;
    item.in_set = item.in_set || is_added_at_once(item);
  }

  bool is_added_at_once(const Item &item) const {
    return program.policy == TIDE_POLICY_READYSET && item.spec.kind == TIDE_CALLBACK_TIMER;
  }

  void arm(Item &item, int64_t next) {
    item.pending = 0;
    item.in_set = false;
    item.waiting = true;
    item.canceled = false;
    item.next = next;
    item.timer_order = ++order;
  }

  void apply(const Action &action) {
    Item &item = items[action.target];
    switch (action.verb) {
      case Verb::notify: return make_ready(item);
      case Verb::frame: return frames.push_back(action.target);
      case Verb::cancel:
        item.pending = 0;
        item.in_set = false;
        item.waiting = false;
        item.canceled = true;
        return;
      case Verb::reset: return arm(item, now + item.spec.period);
      case Verb::phase: return arm(item, action.value);
      case Verb::period: item.spec.period = action.value; return;
      case Verb::priority:
        item.spec.priority = static_cast<tide_priority_t>(action.value);
        if (item.pending > 0 && !item.in_round) item.ready_order = ++order;
        return;
    }
  }

  void pass_time(int64_t until) {
    while (next_interrupt < program.interrupts.size() && program.interrupts[next_interrupt].first <= until) {
      now = std::max(now, program.interrupts[next_interrupt].first);
      apply(program.interrupts[next_interrupt++].second);
    }
    now = std::max(now, until);
  }

  int64_t next_expiry() const {
    int64_t soonest = TIDE_FOREVER;
    for (const Item &item : items) {
      if (item.waiting) soonest = std::min(soonest, item.next);
    }
    return soonest;
  }

  // Sleeps until the next relevant event.
  void sleep(int64_t limit) {
    int64_t until = std::min(limit, next_expiry());
    if (next_interrupt < program.interrupts.size()) until = std::min(until, program.interrupts[next_interrupt].first);
    pass_time(until);
  }

  void collect() {
    for (;;) {
      Item *due = nullptr;
      for (Item &item : items) {
        if (item.waiting && item.next <= now &&
            (due == nullptr || std::pair(item.next, item.timer_order) < std::pair(due->next, due->timer_order))) {
          due = &item;
        }
      }
      if (due == nullptr) return;
      due->waiting = false;
      make_ready(*due);
    }
  }

  size_t ready() const {
    return static_cast<size_t>(
        std::count_if(items.begin(), items.end(), [](const Item &item) { return item.pending > 0; }));
  }

  Item *head() {
    Item *best = nullptr;
    for (Item &item : items) {
      if (item.pending > 0 && (best == nullptr || item.spec.priority > best->spec.priority ||
                               (item.spec.priority == best->spec.priority && item.ready_order < best->ready_order))) {
        best = &item;
      }
    }
    return best;
  }

  bool triggers() {
    switch (program.trigger) {
      case Trigger::any: return ready() > 0;
      case Trigger::all: return ready() == items.size();
      case Trigger::one: return items[program.trigger_handle].pending > 0;
      case Trigger::odd: return odd(ready());
    }
    return false;
  }

  size_t best_frame() {
    size_t best = 0;
    for (size_t index = 1; index < frames.size(); index++) {
      if (items[frames[index]].spec.priority > items[frames[best]].spec.priority) best = index;
    }
    return best;
  }

  void digest(size_t index) {
    make_ready(items[frames[index]]);
    frames.erase(frames.begin() + static_cast<long>(index));
  }

  void start(Item &item) {
    item.in_round = false;
    item.in_set = false;
    if (item.pending == 0 && !item.spec.always) return;
    if (item.pending > 0) {
      item.pending--;
      if (item.spec.kind == TIDE_CALLBACK_TIMER && !item.canceled && !item.waiting) {
        item.next += item.spec.period;
        while (item.next <= now) {
          item.next += item.spec.period;
          item.skipped++;
        }
        item.waiting = true;
        item.timer_order = ++order;
      }
      item.ready_order = ++order;
      item.in_set = item.pending > 0 && is_added_at_once(item);
    }
    ran++;
    const bool timer = item.spec.kind == TIDE_CALLBACK_TIMER;
    outcome.starts.push_back({static_cast<size_t>(&item - items.data()), now, timer ? now - item.last_call : 0});
    item.last_call = now;
    const auto found = program.callbacks[outcome.starts.back().callback].actions.find(++item.runs);
    if (found != program.callbacks[outcome.starts.back().callback].actions.end()) {
      for (const Action &action : found->second) apply(action);
    }
    pass_time(now + item.spec.execution);
    last = item.pending > 0 ? &item : nullptr;
  }

  bool run_closed(std::vector<Item *> round) {
    ran = 0;
    for (Item *item : round) item->in_round = true;
    for (Item *item : round) start(*item);
    return ran > 0;
  }

  static bool more_urgent(const Item *left, const Item *right) { return left->spec.priority > right->spec.priority; }

  // Adds the callbacks that always run to a round: after ready ones of equal priority, and the latest registered first.
  std::vector<Item *> with_always(std::vector<Item *> round) {
    for (size_t index = items.size(); index-- > 0;) {
      if (items[index].spec.always && std::find(round.begin(), round.end(), &items[index]) == round.end()) {
        round.push_back(&items[index]);
      }
    }
    std::stable_sort(round.begin(), round.end(), more_urgent);
    return round;
  }

  bool digest_if_first(bool &digested) {
    const Item *first = head();
    const int32_t level = first == nullptr ? -1 : first->spec.priority;
    if (frames.empty()) return false;
    const int32_t frame = items[frames[best_frame()]].spec.priority;
    if (digested ? frame <= level : frame < level) return false;
    digest(best_frame());
    digested = true;
    return true;
  }

  bool round() {
    if (program.policy == TIDE_POLICY_BATCH) return round_batch();
    if (program.policy == TIDE_POLICY_READYSET) return round_readyset();
    return program.trigger == Trigger::any ? round_any() : round_triggered();
  }

  bool round_any() {
    for (bool digested = false;;) {
      collect();
      if (digest_if_first(digested)) continue;
      // A callback whose last run left it ready goes behind its equals that have become ready since then.
      if (last != nullptr && last->pending > 0) last->ready_order = ++order;
      last = nullptr;
      if (Item *first = head(); first != nullptr) {
        const bool always = std::any_of(items.begin(), items.end(), [](const Item &item) { return item.spec.always; });
        return run_closed(always ? with_always({first}) : std::vector{first});
      }
      if (now >= program.end) return false;
      sleep(program.end);
      digested = false;
    }
  }

  bool round_triggered() {
    for (bool digested = false;;) {
      collect();
      if (digest_if_first(digested)) continue;
      if (triggers() && (ready() > 0 || now >= program.end)) {
        std::vector<Item *> round;
        for (Item &item : items) {
          if (item.pending > 0) round.push_back(&item);
        }
        std::sort(round.begin(), round.end(),
                  [](const Item *left, const Item *right) { return left->ready_order < right->ready_order; });
        if (run_closed(with_always(round))) return true;
      }
      if (!frames.empty()) {
        digest(best_frame());
        digested = true;
      } else if (now >= program.end) {
        return false;
      } else {
        sleep(program.end);
        digested = false;
      }
    }
  }

  // The ready item that the readyset policy takes: the first by kind, then by registration.
  Item *first_of_set() {
    Item *first = nullptr;
    for (Item &item : items) {
      if (item.in_set && (first == nullptr || item.spec.kind < first->spec.kind)) first = &item;
    }
    return first;
  }

  void poll() {
    for (size_t left = 64; left > 0 && !frames.empty(); left--) digest(0);
    for (Item &item : items) item.in_set = item.pending > 0;
  }

  bool round_readyset() {
    for (;;) {
      collect();
      if (first_of_set() == nullptr) poll();
      if (Item *first = first_of_set(); first != nullptr) {
        start(*first);
        return true;
      }
      if (now >= program.end) return false;
      sleep(program.end);
    }
  }

  bool is_prompt() const {
    return std::any_of(items.begin(), items.end(), [](const Item &item) {
      return item.pending > 0 && (item.spec.kind == TIDE_CALLBACK_TIMER || item.spec.kind == TIDE_CALLBACK_GUARD);
    });
  }

  bool round_batch() {
    int64_t limit = program.waits_for_new_data ? std::min(program.end, now + program.spin_timeout) : program.end;
    for (;;) {
      collect();
      const bool fresh = !frames.empty();
      if (fresh) {
        digest(0);
        collect();
      }
      const bool over = now >= limit || (ready() > 0 && (!program.waits_for_new_data || fresh || is_prompt()));
      if (over && triggers()) {
        std::vector<Item *> round;
        for (Item &item : items) {
          if (item.pending > 0 || item.spec.always) round.push_back(&item);
        }
        if (run_closed(round)) return true;
      }
      if (now >= program.end) return false;
      if (now >= limit) limit = std::min(program.end, now + program.spin_timeout);
      if (!fresh) sleep(limit);
    }
  }

  const Program &program;
  std::vector<Item> items;
  std::vector<size_t> frames;
  size_t next_interrupt = 0;
  uint64_t order = 0;
  Item *last = nullptr;  // the callback that has run, if it is still pending
  int64_t now = 0;
  int ran = 0;
  Outcome outcome;
};

TEST(ExecModel, RandomProgramsRunAsTheRulesSay) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 20000 : 1);
  size_t starts = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    const Program program = random_program(seed);
    const Outcome expected = Model(program).run();
    Real real(program);
    const Outcome actual = seed % 2 == 0 ? real.split().run() : real.run();
    starts += actual.starts.size();
    ASSERT_EQ(actual, expected) << "replay with TIDE_SEED=" << seed << "\npolicy " << program.policy << " trigger "
                                << static_cast<int>(program.trigger) << "\nactual   " << text(actual) << "\nexpected "
                                << text(expected);
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
  if (last - first >= 20000) EXPECT_GT(starts, 1000000u) << "the programs do not do enough to prove anything";
}

bool fits_several_lanes(const Program &program) {
  return program.policy != TIDE_POLICY_BATCH && program.trigger == Trigger::any &&
         std::none_of(program.callbacks.begin(), program.callbacks.end(), [](const Spec &spec) { return spec.always; });
}

std::string before(int64_t end, Outcome outcome) {
  std::erase_if(outcome.starts, [end](const Start &start) { return start.time >= end; });
  return text(outcome);
}

// A lane that spins until it is stopped, and one lane of three with callbacks in groups, which have no effect then.
TEST(ExecModel, ALaneOfAPoolRunsAsTheRulesSay) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 2000 : 1);
  size_t pools = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    const Program program = random_program(seed);
    const std::string expected = before(program.end, Model(program).run());
    ASSERT_EQ(before(program.end, Real(program).spin()), expected) << "replay with TIDE_SEED=" << seed;
    if (!fits_several_lanes(program)) continue;
    pools++;
    std::array<tide_queue_entry_t *, 16> storage{};
    tide_group_t exclusive{}, reentrant{};
    ASSERT_EQ(tide_group_init(&exclusive, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
    ASSERT_EQ(tide_group_init(&reentrant, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
    Real one_of_three(program, 3);
    for (size_t index = 0; index < program.callbacks.size(); index++) {
      one_of_three.group(index, std::array<tide_group_t *, 3>{nullptr, &exclusive, &reentrant}[(seed + index) % 3]);
    }
    ASSERT_EQ(before(program.end, one_of_three.run()), expected) << "replay with TIDE_SEED=" << seed;
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
  if (last - first >= 2000) EXPECT_GT(pools, 400u);
}

}  // namespace exec_model_test
