// SPDX-License-Identifier: Apache-2.0
// A pool of one lane is the single-threaded executor: the same random programs leave the same traces, byte for byte,
// by rounds of the caller, by a lane that spins until it is stopped, and in a pool of several lanes of which only one
// is spun, with callbacks in groups, which have no effect then.
#include "exec_program.h"

namespace exec_model_test_pool {

using namespace exec_virtual;

bool fits_several_lanes(const Program &program) {
  return program.policy != TIDE_POLICY_BATCH && program.trigger == Trigger::any &&
         std::none_of(program.callbacks.begin(), program.callbacks.end(), [](const Spec &spec) { return spec.always; });
}

struct Groups {
  std::array<tide_queue_entry_t *, 16> storage{};
  tide_group_t exclusive{}, reentrant{};
  explicit Groups(uint64_t seed, size_t callbacks, Real &real) {
    EXPECT_EQ(tide_group_init(&exclusive, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
    EXPECT_EQ(tide_group_init(&reentrant, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
    for (size_t index = 0; index < callbacks; index++) {
      const uint64_t which = (seed >> index) % 3;
      if (which != 0) real.group(index, which == 1 ? &exclusive : &reentrant);
    }
  }
};

TEST(ExecPool, OneLaneRunsAsTheSingleThreadedExecutor) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 2000 : 1);
  size_t bytes = 0, pools = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    const Program program = random_program(seed);
    Real single(program);
    single.run();
    bytes += single.trace.size();
    Real spinning(program);
    spinning.spin();
    ASSERT_EQ(spinning.trace, single.trace) << "a lane that spins; replay with TIDE_SEED=" << seed;
    if (!fits_several_lanes(program)) continue;
    pools++;
    Real one_of_three(program, 3);
    const Groups groups(seed * 0x9E3779B97F4A7C15u, program.callbacks.size(), one_of_three);
    one_of_three.run();
    ASSERT_EQ(one_of_three.trace, single.trace) << "one lane of three; replay with TIDE_SEED=" << seed;
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with TIDE_SEED=" << seed;
  }
  if (last - first >= 2000) {
    EXPECT_GT(bytes, 1000000u) << "the programs do not do enough to prove anything";
    EXPECT_GT(pools, 400u);
  }
}

}  // namespace exec_model_test_pool
