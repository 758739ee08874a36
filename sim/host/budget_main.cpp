// SPDX-License-Identifier: Apache-2.0
// tide-budget-sim: the pings and pongs of the budget-based executor in virtual time; exact.
#include <cstdio>
#include <cstring>
#include <exception>

#include "sim/host/budget_pong.h"

int main(int count, char **words) {
  plan_t plan;
  if (count == 2 && std::strcmp(words[1], "--help") == 0) {
    plan_help("tide-budget-sim");
    return 0;
  }
  if (const char *wrong = plan_read(&plan, count - 1, words + 1); wrong != nullptr) {
    std::fprintf(stderr, "tide-budget-sim: %s\n", wrong);
    return 2;
  }
  try {
    plan_print(&plan, "sim", tide::sim::play_pong(plan).data());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tide-budget-sim: %s\n", error.what());
    return 1;
  }
  return 0;
}
