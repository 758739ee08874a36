// SPDX-License-Identifier: Apache-2.0
// Random systems against bounds: no observed response may exceed a safe bound.
//
// A quarry (target of the hunt) is one analysis, with a family of systems to test and the forms of its bound (plain,
// tight). If a form has bounds for a system, the system is run with random releases, execution times and budgets. Then
// a climb changes one value of a schedule at a time, and keeps changes that bring a chain nearer to its bound. The seed
// of a system determines all of this, so a failure is replayed by a hunt on this one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/random_system.h"
#include "analysis/threads.h"
#include "analysis/trials.h"

namespace tide::analysis {

// A bound for each chain. The vector is empty if the form guarantees nothing for this system.
using Bounds = std::vector<std::optional<time_ns>>;

struct Form {
  std::string name;
  std::function<Bounds(const Executor &executor)> bounds;
};

struct Quarry {
  std::string name;
  std::function<Executor(RandomSystem &random, uint64_t seed)> draw;
  std::vector<Form> forms;
};

// All safe analyses of the registry; the analyses for one thread, including published ones that are not known to be
// exceeded; and systems in which a chain is blocked repeatedly.
std::vector<Quarry> quarries();
// The options with which the tool computes the bounds of safe analyses.
Options tight_options();

struct Failure {
  uint64_t seed = 0;
  int schedule = 0;
  size_t chain = 0;
  std::string form;
  time_ns bound_ns = 0;
  time_ns observed_ns = 0;
  std::string system;  // readable description of the chains and their schedule
};

// Ratios of bounds to the longest observed response of the same chain.
class Ratios {
 public:
  void add(double ratio);
  void add(const Ratios &other);
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  double least() const { return least_; }
  // Element p counts the ratios above p * kStep, up to (p + 1) * kStep.
  const std::vector<uint64_t> &histogram() const { return histogram_; }

  static constexpr double kStep = 0.02;
  static constexpr size_t kSteps = 250;  // the last element also counts all larger ratios

 private:
  uint64_t count_ = 0;
  double sum_ = 0;
  double least_ = 0;
  std::vector<uint64_t> histogram_ = std::vector<uint64_t>(kSteps, 0);
};

struct Tally {
  uint64_t systems = 0;
  uint64_t accepted = 0;      // number of systems in which a form has a bound for a chain
  uint64_t observations = 0;  // comparisons of a chain's longest response in a schedule with the bound of a form
  uint64_t exceeded = 0;
  Ratios ratios;
  std::optional<Failure> first;
  void add(const Tally &other);
};

struct Campaign {
  uint64_t first = 1;
  uint64_t count = 1000;  // number of seeds, from `first` on
  int schedules = 8;      // number of random schedules for each system
  int climbs = 0;         // number of changes tried after these
  bool stop_at_first = false;
};

Tally hunt(const Quarry &quarry, const Campaign &campaign);

}  // namespace tide::analysis
