// SPDX-License-Identifier: Apache-2.0
// Chains give priorities to callbacks.
#include <algorithm>

#include "exec_rules.h"

namespace exec_rules_test_chains {

using namespace exec_virtual;

TEST(ExecChain, LaterIsMoreUrgentAndSharedCallbacksKeepTheHighest) {
  tide_chain_t urgent{}, lazy{};
  ASSERT_EQ(tide_chain_init(&urgent, "urgent", 5, 100, 100), TIDE_OK);
  ASSERT_EQ(tide_chain_init(&lazy, "lazy", 4, 100, 100), TIDE_OK);
  tide_callback_t timer{}, end{}, shared{};
  EXPECT_EQ(tide_chain_add(&urgent, &timer), 0);
  EXPECT_EQ(tide_chain_add_remote(&urgent), 1);
  EXPECT_EQ(tide_chain_add(&urgent, &end), 2);
  EXPECT_EQ(tide_chain_add(&lazy, &shared), 0);
  EXPECT_EQ(tide_chain_add(&lazy, &timer), 1);
  EXPECT_EQ(timer.priority, TIDE_PRIORITY(5, 0));
  EXPECT_EQ(end.priority, TIDE_PRIORITY(5, 2));
  EXPECT_EQ(shared.priority, TIDE_PRIORITY(4, 0));
  EXPECT_EQ(tide_chain_add(&urgent, &shared), 3);
  EXPECT_EQ(shared.priority, TIDE_PRIORITY(5, 3));
}

TEST(ExecChain, EveryCallbackOfAMoreUrgentChainIsAboveTheOthers) {
  std::vector<tide_priority_t> all;
  for (uint8_t level = 1; level <= TIDE_LEVEL_MAXIMUM; level++) {
    tide_chain_t chain{};
    ASSERT_EQ(tide_chain_init(&chain, "", level, 0, 0), TIDE_OK);
    for (int position = 0; position < 256; position++) {
      tide_callback_t callback{};
      ASSERT_EQ(tide_chain_add(&chain, &callback), position);
      all.push_back(callback.priority);
    }
    EXPECT_EQ(tide_chain_add_remote(&chain), TIDE_ERROR_FULL);
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(ExecChain, ReadyCallbackMovesWhenAChainIsAssigned) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe first(bench, log, 'a', 0), second(bench, log, 'b', 1);
  first.notify();
  second.notify();
  tide_chain_t chain{};
  ASSERT_EQ(tide_chain_init(&chain, "late", 1, 0, 0), TIDE_OK);
  EXPECT_EQ(tide_chain_add(&chain, &first.callback), 0);
  rounds_until(bench, 10);
  EXPECT_EQ(log, "ab");
}

TEST(ExecChain, BadArgumentsAreRefused) {
  tide_chain_t chain{};
  tide_callback_t callback{};
  EXPECT_EQ(tide_chain_add(&chain, &callback), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_add_remote(&chain), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(nullptr, "", 1, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", 0, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", TIDE_LEVEL_MAXIMUM + 1, 0, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_chain_init(&chain, "", 1, -1, 0), TIDE_ERROR_ARGUMENT);
}

TEST(ExecDeathTest, ACallbackThatIsCountedTwiceIsNoticed) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe first(bench, log, 'a', 0), second(bench, log, 'b', 1);
  first.notify();
  bench.executor.ready_count = 2;
  EXPECT_DEATH((void)tide_executor_remove(&bench.executor, &first.callback), "broken invariant: .*counts_hold");
  bench.executor.ready_count = 0;
  EXPECT_DEATH((void)tide_executor_remove(&bench.executor, &first.callback), "broken invariant: .*ready_count > 0u");
}

}  // namespace exec_rules_test_chains
