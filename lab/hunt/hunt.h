// SPDX-License-Identifier: Apache-2.0
// Random systems against bounds: nothing that is observed may be later than a safe bound says.
//
// A quarry is one analysis with the family of systems that it is tried on and the forms of its bound (plain, tight). A
// system whose deadlines a form guarantees is played out under random releases, executions and budgets, then by a climb
// that changes one thing at a time and keeps what brings a chain nearer to its bound. Everything follows from the seed
// of the system, so a failure is replayed by hunting that one seed.
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

// A bound for each chain; empty: the form guarantees nothing for this system.
using Bounds = std::vector<std::optional<time_ns>>;

struct Form {
  std::string name;
  std::function<Bounds(const Executor &executor)> bounds;
};

struct Quarry {
  std::string name;
  // budgets: lanes may have some.
  std::function<Executor(RandomSystem &random, uint64_t seed, bool budgets)> draw;
  std::vector<Form> forms;
};

// Every safe analysis of the registry, those for one thread, published ones among them unless they are known to be
// exceeded, and the family of repeated blocking.
std::vector<Quarry> quarries();
// The bound of a safe analysis as the tool reports it.
Options tight_options();

// What plays a system out.
struct Observer {
  std::string name;
  Schedule (*run)(const Executor &executor, const Scenario &scenario);
  bool budgets = true;  // knows lanes with budgets
  // Systems are drawn in small numbers, so that events coincide; in an observer that lets a lane choose before it has
  // seen all events of an instant, times are so many times as long, and the bound is that of callbacks which are longer
  // by what that can cost: one unit (docs/analysis/README.md).
  time_ns factor = 1;
  time_ns unseen_ns = 0;
};
Observer exact_observer();

struct Failure {
  uint64_t seed = 0;
  int schedule = 0;
  size_t chain = 0;
  std::string form;
  time_ns bound_ns = 0;
  time_ns observed_ns = 0;
  std::string system;  // the chains and what they did, for people
};

// Of bounds over the worst that was observed of the same chain.
class Ratios {
 public:
  void add(double ratio);
  void add(const Ratios &other);
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  double least() const { return least_; }
  // Place p counts ratios above p steps, up to p + 1.
  const std::vector<uint64_t> &histogram() const { return histogram_; }

  static constexpr double kStep = 0.02;
  static constexpr size_t kSteps = 250;  // the last one holds all that is larger

 private:
  uint64_t count_ = 0;
  double sum_ = 0;
  double least_ = 0;
  std::vector<uint64_t> histogram_ = std::vector<uint64_t>(kSteps, 0);
};

struct Tally {
  uint64_t systems = 0;
  uint64_t accepted = 0;      // with at least one form that guarantees something
  uint64_t observations = 0;  // worst response of a chain in a schedule, held against a form
  uint64_t exceeded = 0;
  Ratios ratios;
  std::optional<Failure> first;
  void add(const Tally &other);
};

struct Campaign {
  uint64_t first = 1;
  uint64_t count = 1000;  // seeds from `first` on
  int schedules = 8;      // drawn at random for each system
  int climbs = 0;         // changes that are tried after them
  bool stop_at_first = false;
};

Tally hunt(const Quarry &quarry, const Observer &observer, const Campaign &campaign);

}  // namespace tide::analysis
