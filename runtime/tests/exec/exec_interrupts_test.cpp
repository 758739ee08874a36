// SPDX-License-Identifier: Apache-2.0
// On platforms that block lanes and interrupts separately, interrupts occur while the executor works on its lists. In
// this test, an interrupt that notifies random callbacks occurs at every possible place.
#include <array>
#include <cstdlib>
#include <string>

#include "exec_program.h"

namespace exec_interrupts_test {

using namespace exec_virtual;

constexpr size_t kCallbacks = 6;

struct Listener {
  tide_callback_t callback{};
  uint64_t notified = 0, ran = 0;
};

class Storm {
 public:
  Storm(uint64_t seed, tide_policy_t policy) : dice(seed), bench(policy) {
    bench.machine.split();
    bench.init();
    for (Listener &listener : listeners) {
      listener.callback.kind = TIDE_CALLBACK_GUARD;
      listener.callback.priority = static_cast<tide_priority_t>(dice.between(0, 2));
      listener.callback.context = &listener;
      listener.callback.handle = &bench;
      listener.callback.execute = [](tide_callback_t *callback, void *context) {
        static_cast<Listener *>(context)->ran++;
        const_cast<Bench *>(static_cast<const Bench *>(callback->handle))->machine.execute(3);
      };
      add(listener);
    }
    timer.period_ns = 10;
    timer.callback.priority = 1;
    timer.callback.context = &expiries;
    timer.on_expiry = [](tide_timer_t *expired, int64_t) { ++*static_cast<uint64_t *>(expired->callback.context); };
    EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_OK);
  }

  void run() {
    bench.machine.between = [this] { interrupt(); };
    for (int round = 0; round < 200; round++) {
      interfere();
      (void)tide_executor_round(&bench.executor, bench.machine.now + dice.between(0, 12));
    }
    bench.machine.between = nullptr;
    EXPECT_EQ(tide_timer_cancel(&timer), TIDE_OK);
    while (tide_executor_round(&bench.executor, bench.machine.now) > 0) {}
    for (const Listener &listener : listeners) {
      EXPECT_EQ(listener.ran, listener.notified);
      EXPECT_FALSE(tide_callback_is_ready(&listener.callback));
      total += listener.ran;
    }
    EXPECT_EQ(bench.executor.ready_count, 0u);
    EXPECT_EQ(bench.executor.prompt_count, 0u);
    total_expiries += expiries;
  }

  uint64_t total = 0, total_expiries = 0;

 private:
  void interrupt() {
    if (!dice.chance(30)) return;
    Listener &listener = any();
    listener.notified += listener.callback.executor != nullptr ? 1u : 0u;
    tide_executor_notify(&listener.callback);
  }

  Listener &any() { return listeners[static_cast<size_t>(dice.between(0, kCallbacks - 1))]; }

  void add(Listener &listener) { EXPECT_EQ(tide_executor_add(&bench.executor, &listener.callback), TIDE_OK); }

  // What a thread does besides the rounds; interrupts occur in these actions, too.
  void interfere() {
    Listener &listener = any();
    if (dice.chance(20)) {
      (void)tide_executor_set_priority(&bench.executor, &listener.callback,
                                       static_cast<tide_priority_t>(dice.between(0, 2)));
    }
    if (dice.chance(20)) EXPECT_EQ(tide_timer_reset(&timer), TIDE_OK);
    if (dice.chance(10)) {
      EXPECT_EQ(tide_executor_remove(&bench.executor, &listener.callback), TIDE_OK);
      listener.notified = listener.ran;  // this drops pending notifications
      add(listener);
    }
  }

  Dice dice;
  Bench bench;
  std::array<Listener, kCallbacks> listeners;
  tide_timer_t timer{};
  uint64_t expiries = 0;
};

class Interrupts : public testing::TestWithParam<tide_policy_t> {};
INSTANTIATE_TEST_SUITE_P(Policies, Interrupts,
                         testing::Values(TIDE_POLICY_TIDE, TIDE_POLICY_BATCH, TIDE_POLICY_READYSET));

TEST_P(Interrupts, EveryNotifyIsOneRunWhereverItComes) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 500 : 1);
  uint64_t total = 0, expiries = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    Storm storm(seed, GetParam());
    storm.run();
    total += storm.total;
    expiries += storm.total_expiries;
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
  if (last - first > 1) {
    EXPECT_GT(total, 100 * (last - first)) << "the interrupts do not do enough to prove anything";
    EXPECT_GT(expiries, last - first);
  }
}

TEST(InterruptsOfLanes, ABandOfTwoLanesIsRefused) {
  Bench bench(TIDE_POLICY_TIDE, 4, 2);
  bench.machine.split();
  EXPECT_EQ(tide_executor_init(&bench.executor, &bench.config), TIDE_ERROR_UNSUPPORTED);
}

}  // namespace exec_interrupts_test
