// SPDX-License-Identifier: Apache-2.0
// Random chain sets for studies of schedulability; a seed gives the same set on every machine of one C library.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

enum class PeriodLaw { uniform, log_uniform };
enum class PriorityLaw { rate_monotonic, random };

struct Recipe {
  std::size_t chains = 5;
  std::size_t callbacks = 10;  // of each chain
  std::size_t lanes = 4;
  double utilisation = 1.0;  // of the whole set; one core is 1
  time_ns shortest_period_ns = 50'000'000;
  time_ns longest_period_ns = 1'000'000'000;
  PeriodLaw periods = PeriodLaw::uniform;
  PriorityLaw priorities = PriorityLaw::rate_monotonic;
  time_ns deadline_periods = 1;  // a deadline in periods
};

// The numbers of the generator: 64 random bits from a counter (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  double unit();  // at least 0, below 1

 private:
  std::uint64_t state_;
};

// Splits a sum into parts, uniformly among all ways to do so (Bini and Buttazzo's UUniFast).
std::vector<double> uunifast(Random &random, std::size_t parts, double sum);

Executor generate(const Recipe &recipe, std::uint64_t seed);

}  // namespace tide::analysis
