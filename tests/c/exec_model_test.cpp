// SPDX-License-Identifier: Apache-2.0
// Random programs of timers, guards and received frames on the executor in virtual time, against a slow model that is
// written from the rules alone: lists searched from end to end, no heaps, no counts kept. Both must run the same
// callbacks at the same times in the same order.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "exec_virtual.hpp"

namespace {

enum class Verb { notify, frame, cancel, reset, phase, period, priority };

struct Action {
  Verb verb;
  size_t target;
  int64_t value;
};

struct Spec {
  tide_callback_kind_t kind;
  tide_priority_t priority;
  int64_t execution;
  int64_t period;
  int64_t phase;
  tide_overrun_t overrun;
  bool always;
  std::map<int, std::vector<Action>> actions;  // by number of the run
};

enum class Trigger { any, all, one, odd };

struct Program {
  tide_policy_t policy;
  Trigger trigger;
  size_t trigger_handle;
  bool waits_for_new_data;
  int64_t spin_timeout;
  int64_t end;
  std::vector<Spec> callbacks;
  std::vector<std::pair<int64_t, Action>> interrupts;
};

struct Start {
  size_t callback;
  int64_t time;
  int64_t since;  // last call, of timers
  bool operator==(const Start &) const = default;
};

struct Outcome {
  std::vector<Start> starts;
  std::vector<uint32_t> skipped, pending;
  bool operator==(const Outcome &) const = default;
};

std::string text(const Outcome &outcome) {
  std::ostringstream out;
  for (const Start &start : outcome.starts) {
    out << start.callback << "@" << start.time << "(" << start.since << ") ";
  }
  return out.str();
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine;
};

bool takes_frames(tide_callback_kind_t kind) {
  return kind == TIDE_CALLBACK_SUBSCRIPTION || kind == TIDE_CALLBACK_SERVICE || kind == TIDE_CALLBACK_CLIENT;
}

Action random_action(Dice &dice, const std::vector<Spec> &callbacks, int64_t end) {
  const auto target = static_cast<size_t>(dice.between(0, static_cast<int64_t>(callbacks.size()) - 1));
  const tide_callback_kind_t kind = callbacks[target].kind;
  if (dice.chance(10)) {
    return {Verb::priority, target, dice.between(0, 12)};
  }
  if (kind != TIDE_CALLBACK_TIMER) {
    return {takes_frames(kind) && dice.chance(70) ? Verb::frame : Verb::notify, target, 0};
  }
  switch (dice.between(0, 4)) {
    case 0:
      return {Verb::cancel, target, 0};
    case 1:
      return {Verb::phase, target, dice.between(0, end)};
    case 2:
      return {Verb::period, target, dice.between(1, 200)};
    case 3:
      return {Verb::notify, target, 0};
    default:
      return {Verb::reset, target, 0};
  }
}

Program random_program(uint64_t seed) {
  Dice dice(seed);
  Program program{};
  program.policy = dice.chance(60) ? TIDE_POLICY_TIDE : TIDE_POLICY_BATCH;
  program.trigger = dice.chance(60) ? Trigger::any : static_cast<Trigger>(dice.between(1, 3));
  program.waits_for_new_data = dice.chance(50);
  program.spin_timeout = dice.between(20, 300);
  program.end = dice.between(500, 4000);
  const int64_t count = dice.between(1, 10);
  const bool ties = dice.chance(50);
  const bool always = dice.chance(30);
  for (int64_t index = 0; index < count; index++) {
    Spec spec{};
    spec.kind = dice.chance(40) ? TIDE_CALLBACK_TIMER : static_cast<tide_callback_kind_t>(dice.between(1, 4));
    spec.priority = static_cast<tide_priority_t>(ties ? dice.between(0, 3) : index * 7 % 11);
    spec.execution = dice.chance(30) ? 0 : dice.between(1, 40);
    spec.period = dice.between(5, 200);
    spec.phase = dice.between(0, 200);
    spec.overrun = dice.chance(50) ? TIDE_OVERRUN_SKIP : TIDE_OVERRUN_CATCH_UP;
    spec.always = always && spec.kind != TIDE_CALLBACK_TIMER && dice.chance(30);
    program.callbacks.push_back(spec);
  }
  program.trigger_handle = static_cast<size_t>(dice.between(0, count - 1));
  for (Spec &spec : program.callbacks) {
    for (int64_t many = dice.between(0, 4); many > 0; many--) {
      spec.actions[static_cast<int>(dice.between(1, 20))].push_back(
          random_action(dice, program.callbacks, program.end));
    }
  }
  for (int64_t many = dice.between(0, 60); many > 0; many--) {
    program.interrupts.emplace_back(dice.between(1, program.end), random_action(dice, program.callbacks, program.end));
  }
  std::stable_sort(program.interrupts.begin(), program.interrupts.end(),
                   [](const auto &left, const auto &right) { return left.first < right.first; });
  return program;
}

bool odd(size_t ready) { return ready % 2 == 1; }

// ---- the shipped executor ----

bool odd_trigger(tide_callback_t *const *callbacks, size_t count, void *) {
  return odd(static_cast<size_t>(std::count_if(callbacks, callbacks + count, tide_callback_is_ready)));
}

class Real {
 public:
  explicit Real(const Program &the_program) : program(the_program), bench(program.policy) {}

  Outcome run() {
    set_up();
    for (const auto &[time, action] : program.interrupts) {
      bench.machine.at(time, [this, action] { apply(action); });
    }
    while (tide_executor_round(&bench.executor, program.end) > 0 && bench.machine.now < program.end) {
    }
    for (auto &timer : objects) {
      outcome.skipped.push_back(timer->skipped);
      outcome.pending.push_back(timer->callback.pending);
    }
    return outcome;
  }

 private:
  void set_up() {
    bench.config.batch_waits_for_new_data = program.waits_for_new_data;
    bench.config.spin_timeout_ns = program.spin_timeout;
    bench.config.source = {
        this,
        [](void *context, tide_priority_t, tide_priority_t) { return static_cast<Real *>(context)->most_urgent(); },
        [](void *context, tide_priority_t, tide_priority_t) { return static_cast<Real *>(context)->process(true); },
        [](void *context) { return static_cast<Real *>(context)->process(false); }, nullptr};
    bench.init();
    for (size_t index = 0; index < program.callbacks.size(); index++) {
      add(index, program.callbacks[index]);
    }
    constexpr std::array triggers{tide_trigger_any, tide_trigger_all, tide_trigger_one, odd_trigger};
    tide_executor_set_trigger(&bench.executor, triggers[static_cast<size_t>(program.trigger)],
                              objects[program.trigger_handle].get());
  }

  void add(size_t index, const Spec &spec) {
    objects.push_back(std::make_unique<tide_timer_t>());
    tide_timer_t *timer = objects.back().get();
    timer->callback.priority = spec.priority;
    timer->callback.context = this;
    timer->callback.handle = timer;
    if (spec.kind == TIDE_CALLBACK_TIMER) {
      timer->period_ns = spec.period;
      timer->overrun = spec.overrun;
      timer->on_expiry = [](tide_timer_t *expired, int64_t since) {
        static_cast<Real *>(expired->callback.context)->started(&expired->callback, since);
      };
      EXPECT_EQ(tide_executor_add_timer(&bench.executor, timer), TIDE_OK);
      EXPECT_EQ(tide_timer_set_phase(timer, spec.phase), TIDE_OK);
    } else {
      timer->callback.kind = spec.kind;
      timer->callback.always = spec.always;
      timer->callback.execute = [](tide_callback_t *callback, void *context) {
        static_cast<Real *>(context)->started(callback, 0);
      };
      EXPECT_EQ(tide_executor_add(&bench.executor, &timer->callback), TIDE_OK);
    }
    EXPECT_EQ(timer->callback.index, index);
  }

  void started(tide_callback_t *callback, int64_t since) {
    EXPECT_EQ(bench.machine.depth, 0) << "a callback runs within the critical section";
    EXPECT_EQ(tide_executor_round(&bench.executor, 0), TIDE_ERROR_STATE);
    const Spec &spec = program.callbacks[callback->index];
    outcome.starts.push_back({callback->index, bench.machine.now, since});
    const auto found = spec.actions.find(++runs[callback->index]);
    if (found != spec.actions.end()) {
      for (const Action &action : found->second) {
        apply(action);
      }
    }
    bench.machine.execute(spec.execution);
  }

  void apply(const Action &action) {
    tide_timer_t *timer = objects[action.target].get();
    switch (action.verb) {
      case Verb::notify:
        return tide_executor_notify(&timer->callback);
      case Verb::frame:
        frames.push_back(action.target);
        return tide_executor_wake(&bench.executor);
      case Verb::cancel:
        return static_cast<void>(tide_timer_cancel(timer));
      case Verb::reset:
        return static_cast<void>(tide_timer_reset(timer));
      case Verb::phase:
        return static_cast<void>(tide_timer_set_phase(timer, action.value));
      case Verb::period:
        return static_cast<void>(tide_timer_set_period(timer, action.value));
      case Verb::priority:
        return static_cast<void>(
            tide_executor_set_priority(&bench.executor, &timer->callback, static_cast<tide_priority_t>(action.value)));
    }
  }

  std::vector<size_t>::iterator best() {
    return std::max_element(frames.begin(), frames.end(), [this](size_t left, size_t right) {
      return objects[left]->callback.priority < objects[right]->callback.priority;
    });
  }

  int32_t most_urgent() { return frames.empty() ? TIDE_PRIORITY_NONE : objects[*best()]->callback.priority; }

  int process(bool most_urgent_first) {
    const auto frame = most_urgent_first ? best() : frames.begin();
    tide_executor_notify(&objects[*frame]->callback);
    frames.erase(frame);
    return 1;
  }

  const Program &program;
  exec_virtual::Bench bench;
  std::vector<std::unique_ptr<tide_timer_t>> objects;
  std::vector<size_t> frames;
  std::map<size_t, int> runs;
  Outcome outcome;
};

// ---- the model ----

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
    while (round() && now < program.end) {
    }
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
    uint64_t ready_order = 0;  // when it was put in line, while pending
    bool waiting = false;      // a timer that waits for `next`
    bool canceled = false;
    uint64_t timer_order = 0;
    int64_t next = 0;
    int64_t last_call = 0;
    uint32_t skipped = 0;
    int runs = 0;
    bool in_round = false;
  };

  void make_ready(Item &item) {
    if (item.pending++ == 0) {
      item.ready_order = ++order;
    }
  }

  void arm(Item &item, int64_t next) {
    item.pending = 0;
    item.waiting = true;
    item.canceled = false;
    item.next = next;
    item.timer_order = ++order;
  }

  void apply(const Action &action) {
    Item &item = items[action.target];
    switch (action.verb) {
      case Verb::notify:
        return make_ready(item);
      case Verb::frame:
        return frames.push_back(action.target);
      case Verb::cancel:
        item.pending = 0;
        item.waiting = false;
        item.canceled = true;
        return;
      case Verb::reset:
        return arm(item, now + item.spec.period);
      case Verb::phase:
        return arm(item, action.value);
      case Verb::period:
        item.spec.period = action.value;
        return;
      case Verb::priority:
        item.spec.priority = static_cast<tide_priority_t>(action.value);
        if (item.pending > 0 && !item.in_round) {
          item.ready_order = ++order;
        }
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
      if (item.waiting) {
        soonest = std::min(soonest, item.next);
      }
    }
    return soonest;
  }

  // Sleeps until the next thing that could matter.
  void sleep(int64_t limit) {
    int64_t until = std::min(limit, next_expiry());
    if (next_interrupt < program.interrupts.size()) {
      until = std::min(until, program.interrupts[next_interrupt].first);
    }
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
      if (due == nullptr) {
        return;
      }
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
      case Trigger::any:
        return ready() > 0;
      case Trigger::all:
        return ready() == items.size();
      case Trigger::one:
        return items[program.trigger_handle].pending > 0;
      case Trigger::odd:
        return odd(ready());
    }
    return false;
  }

  size_t best_frame() {
    size_t best = 0;
    for (size_t index = 1; index < frames.size(); index++) {
      if (items[frames[index]].spec.priority > items[frames[best]].spec.priority) {
        best = index;
      }
    }
    return best;
  }

  void digest(size_t index) {
    make_ready(items[frames[index]]);
    frames.erase(frames.begin() + static_cast<long>(index));
  }

  void start(Item &item) {
    item.in_round = false;
    if (item.pending == 0 && !item.spec.always) {
      return;
    }
    if (item.pending > 0) {
      item.pending--;
      if (item.spec.kind == TIDE_CALLBACK_TIMER && !item.canceled && !item.waiting) {
        item.next += item.spec.period;
        while (item.spec.overrun == TIDE_OVERRUN_SKIP && item.next <= now) {
          item.next += item.spec.period;
          item.skipped++;
        }
        item.waiting = true;
        item.timer_order = ++order;
      }
      item.ready_order = ++order;
    }
    ran++;
    const bool timer = item.spec.kind == TIDE_CALLBACK_TIMER;
    outcome.starts.push_back({static_cast<size_t>(&item - items.data()), now, timer ? now - item.last_call : 0});
    item.last_call = now;
    const auto found = program.callbacks[outcome.starts.back().callback].actions.find(++item.runs);
    if (found != program.callbacks[outcome.starts.back().callback].actions.end()) {
      for (const Action &action : found->second) {
        apply(action);
      }
    }
    pass_time(now + item.spec.execution);
  }

  bool run_closed(std::vector<Item *> round) {
    ran = 0;
    for (Item *item : round) {
      item->in_round = true;
    }
    for (Item *item : round) {
      start(*item);
    }
    return ran > 0;
  }

  static bool more_urgent(const Item *left, const Item *right) { return left->spec.priority > right->spec.priority; }

  // The ready ones in their order, then the always ones behind their equals, latest registered first.
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
    if (frames.empty()) {
      return false;
    }
    const int32_t frame = items[frames[best_frame()]].spec.priority;
    if (digested ? frame <= level : frame < level) {
      return false;
    }
    digest(best_frame());
    digested = true;
    return true;
  }

  bool round() {
    if (program.policy == TIDE_POLICY_BATCH) {
      return round_batch();
    }
    return program.trigger == Trigger::any ? round_any() : round_triggered();
  }

  bool round_any() {
    for (bool digested = false;;) {
      collect();
      if (digest_if_first(digested)) {
        continue;
      }
      if (Item *first = head(); first != nullptr) {
        const bool always = std::any_of(items.begin(), items.end(), [](const Item &item) { return item.spec.always; });
        return run_closed(always ? with_always({first}) : std::vector{first});
      }
      if (now >= program.end) {
        return false;
      }
      sleep(program.end);
      digested = false;
    }
  }

  bool round_triggered() {
    for (bool digested = false;;) {
      collect();
      if (digest_if_first(digested)) {
        continue;
      }
      if (triggers() && (ready() > 0 || now >= program.end)) {
        std::vector<Item *> round;
        for (Item &item : items) {
          if (item.pending > 0) {
            round.push_back(&item);
          }
        }
        std::sort(round.begin(), round.end(),
                  [](const Item *left, const Item *right) { return left->ready_order < right->ready_order; });
        if (run_closed(with_always(round))) {
          return true;
        }
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
          if (item.pending > 0 || item.spec.always) {
            round.push_back(&item);
          }
        }
        if (run_closed(round)) {
          return true;
        }
      }
      if (now >= program.end) {
        return false;
      }
      if (now >= limit) {
        limit = std::min(program.end, now + program.spin_timeout);
      }
      if (!fresh) {
        sleep(limit);
      }
    }
  }

  const Program &program;
  std::vector<Item> items;
  std::vector<size_t> frames;
  size_t next_interrupt = 0;
  uint64_t order = 0;
  int64_t now = 0;
  int ran = 0;
  Outcome outcome;
};

uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

TEST(ExecModel, RandomProgramsRunAsTheRulesSay) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 20000 : 1);
  size_t starts = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    const Program program = random_program(seed);
    const Outcome expected = Model(program).run();
    const Outcome actual = Real(program).run();
    starts += actual.starts.size();
    ASSERT_EQ(actual, expected) << "replay with TIDE_SEED=" << seed << "\npolicy " << program.policy << " trigger "
                                << static_cast<int>(program.trigger) << "\nactual   " << text(actual) << "\nexpected "
                                << text(expected);
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
  if (last - first >= 20000) {
    EXPECT_GT(starts, 1000000u) << "the programs do not do enough to prove anything";
  }
}

}  // namespace
