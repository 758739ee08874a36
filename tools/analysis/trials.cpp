// SPDX-License-Identifier: Apache-2.0
#include "analysis/trials.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>

namespace tide::analysis {

// ---- shares ----

namespace {

constexpr int kMostPoints = 20'000;  // points drawn before points are scaled regardless of uniformity
constexpr int kMostRescales = 200;   // scalings of one point; more would lose its precision

class Rescale {
 public:
  Rescale(double sum, const std::vector<double> &limits) : sum_(sum), limits_(limits), box_(limits.size()) {}

  // Scales the point until it satisfies the limits; returns false if a new point must be drawn.
  bool settle(std::vector<double> &point, bool uniformly) {
    std::fill(box_.begin(), box_.end(), sum_);
    for (int round = 0; round < kMostRescales; ++round) {
      if (within(point)) return true;
      double exceeded = 0;  // sum of the violated limits
      for (size_t part = 0; part < point.size(); ++part) {
        if (point[part] > limits_[part]) exceeded += limits_[part];
      }
      if (exceeded >= sum_) return false;
      scale(point, sum_ / (sum_ - exceeded));
      if (uniformly && !covered()) return false;
    }
    return false;
  }

 private:
  bool within(const std::vector<double> &point) const {
    for (size_t part = 0; part < point.size(); ++part) {
      if (point[part] > limits_[part]) return false;
    }
    return true;
  }

  bool covered() const {
    for (size_t part = 0; part < box_.size(); ++part) {
      if (box_[part] < std::min(limits_[part], sum_)) return false;
    }
    return true;
  }

  void scale(std::vector<double> &point, double factor) {
    for (size_t part = 0; part < point.size(); ++part) {
      const double limit = limits_[part];
      if (point[part] > limit) {
        point[part] = (point[part] - limit) * factor;
        box_[part] = (box_[part] - limit) * factor;
      } else {
        point[part] *= factor;
        box_[part] = std::min(box_[part], limit) * factor;
      }
    }
  }

  double sum_;
  const std::vector<double> &limits_;
  std::vector<double> box_;  // the point is uniform in that part of the simplex that keeps to these limits
};

// A point that is uniform in the whole simplex of the parts whose limit is not 0.
std::vector<double> flat_dirichlet(Random &random, double sum, const std::vector<double> &limits) {
  const auto parts =
      static_cast<size_t>(std::count_if(limits.begin(), limits.end(), [](double limit) { return limit > 0; }));
  const std::vector<double> shares = uunifast(random, parts, sum);
  std::vector<double> point;
  size_t next = 0;
  for (const double limit : limits) point.push_back(limit > 0 ? shares[next++] : 0.0);
  return point;
}

}  // namespace

uint64_t Random::bits() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

double Random::unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

std::vector<double> uunifast(Random &random, size_t parts, double sum) {
  std::vector<double> shares;
  shares.reserve(parts);
  for (size_t left = parts; left > 1; --left) {
    const double rest = sum * std::pow(random.unit(), 1.0 / static_cast<double>(left - 1));
    shares.push_back(sum - rest);
    sum = rest;
  }
  shares.push_back(sum);
  return shares;
}

std::vector<double> dirichlet_rescale(Random &random, double sum, const std::vector<double> &limits) {
  const double room = std::accumulate(limits.begin(), limits.end(), 0.0);
  if (sum >= room) return limits;
  // If the parts are distributed uniformly, so are their distances from the limits. Of the parts and these distances,
  // those with the smaller sum are drawn, because they violate limits less often.
  const bool mirrored = room - sum < sum;
  const double drawn_sum = mirrored ? room - sum : sum;
  Rescale rescale(drawn_sum, limits);
  for (int number = 0;; ++number) {
    std::vector<double> point = flat_dirichlet(random, drawn_sum, limits);
    if (!rescale.settle(point, number < kMostPoints)) continue;
    if (mirrored) {
      for (size_t part = 0; part < point.size(); ++part) point[part] = std::max(0.0, limits[part] - point[part]);
    }
    return point;
  }
}

// ---- chain sets ----

namespace {

time_ns period_of(const Recipe &recipe, Random &random) {
  const auto low = static_cast<double>(recipe.shortest_period_ns);
  const auto high = static_cast<double>(recipe.longest_period_ns);
  const double place = random.unit();
  const double period =
      recipe.periods == PeriodLaw::uniform ? low + place * (high - low) : low * std::pow(high / low, place);
  return std::llround(period);
}

std::vector<double> utilisations_of(const Recipe &recipe, Random &random) {
  if (recipe.shares == ShareLaw::uunifast) return uunifast(random, recipe.chains, recipe.utilisation);
  const double least = recipe.utilisation / static_cast<double>(recipe.chains);
  const std::vector<double> most(recipe.chains, std::max(recipe.most_utilisation, least));
  return dirichlet_rescale(random, recipe.utilisation, most);
}

// The sum is rounded only once. If each execution time were rounded, those of a chain that executes for its whole
// period could add up to more than the period.
std::vector<time_ns> executions_of(const Recipe &recipe, Random &random, double total_ns) {
  std::vector<time_ns> executions_ns;
  const auto count = static_cast<time_ns>(recipe.callbacks);
  time_ns left_ns = std::max(count, static_cast<time_ns>(std::llround(total_ns)));
  double sum_ns = 0;
  time_ns taken_ns = 0;
  for (const double part_ns : uunifast(random, recipe.callbacks, total_ns)) {
    sum_ns += part_ns;
    const time_ns behind = count - static_cast<time_ns>(executions_ns.size()) - 1;  // callbacks that follow; each needs
                                                                                    // at least 1 ns
    const time_ns wanted_ns = behind == 0 ? left_ns : std::llround(sum_ns) - taken_ns;
    executions_ns.push_back(std::clamp<time_ns>(wanted_ns, 1, left_ns - behind));
    left_ns -= executions_ns.back();
    taken_ns += executions_ns.back();
  }
  return executions_ns;
}

// Indexes of the chains, the most important first.
std::vector<size_t> importance(const Recipe &recipe, Random &random, const std::vector<time_ns> &periods_ns) {
  std::vector<size_t> order(periods_ns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (recipe.priorities == PriorityLaw::rate_monotonic) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t left, size_t right) { return periods_ns[left] < periods_ns[right]; });
    return order;
  }
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.bits() % left]);
  return order;
}

}  // namespace

Executor generate(const Recipe &recipe, uint64_t seed) {
  Random random(seed);
  const std::vector<double> utilisations = utilisations_of(recipe, random);
  std::vector<Chain> chains;
  std::vector<time_ns> periods_ns;
  for (const double utilisation : utilisations) {
    const time_ns period_ns = period_of(recipe, random);
    const auto executions_ns = executions_of(recipe, random, utilisation * static_cast<double>(period_ns));
    chains.push_back(make_chain(executions_ns, period_ns, recipe.deadline_periods * period_ns, 0));
    periods_ns.push_back(period_ns);
  }
  auto priority = static_cast<int64_t>(chains.size());
  for (const size_t index : importance(recipe, random, periods_ns)) chains[index].priority = priority--;
  return {"", Policy::priority, std::vector<Lane>(recipe.lanes), std::move(chains)};
}

// ---- schedules ----

namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// A callback of a chain, with a FIFO queue of waiting instances. An instance waits at only one callback at a time, so
// each queue can be a linked list through the instances.
struct Station {
  size_t chain = 0;
  size_t callback = 0;
  time_ns execution_ns = 0;
  int group = kReentrant;
  bool timer = false;  // first callback of a chain with a timer: it never overlaps itself
  bool last = false;   // the last callback of its chain
  int running = 0;
  size_t head = kNone;
  size_t tail = kNone;
};

struct Instance {
  size_t number = 0;  // index in the chain
  size_t next = kNone;
};

struct Running {
  size_t station = kNone;
  size_t instance = 0;
  time_ns left_ns = 0;
};

class Machine {
 public:
  Machine(const Executor &executor, const Scenario &scenario)
      : executor_(executor),
        scenario_(scenario),
        lanes_(executor.lanes().size()),
        slots_(executor.lanes().size(), 0),
        held_(executor.groups().size(), 0),
        released_(executor.chains().size(), 0) {
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
      const Chain &entry = executor.chains()[chain];
      first_station_.push_back(stations_.size());
      first_instance_.push_back(instances_.size());
      for (size_t callback = 0; callback < entry.callbacks.size(); ++callback) {
        const Callback &one = entry.callbacks[callback];
        stations_.push_back({chain, callback, one.execution_ns, one.group, entry.timer && callback == 0,
                             callback + 1 == entry.callbacks.size()});
      }
      for (size_t number = 0; number < scenario.releases[chain].size(); ++number) instances_.push_back({number});
      schedule_.response_ns.emplace_back(scenario.releases[chain].size(), kNeverNs);
    }
    if (executor.policy() == Policy::priority) {
      arrange_by_priority();
    } else {
      arrange_by_registration();
    }
    place_.resize(stations_.size());
    for (size_t place = 0; place < order_.size(); ++place) place_[order_[place]] = place;
  }

  Schedule run() {
    for (time_ns now_ns = 0; now_ns < kNeverNs;) {
      release(now_ns);
      dispatch(now_ns);
      const time_ns next_ns = next_event(now_ns);
      advance(now_ns, next_ns);
      now_ns = next_ns;
    }
    return std::move(schedule_);
  }

 private:
  // Sorts callbacks by the importance of their chains and, within a chain, later callbacks first. If callbacks have
  // their own priorities, sorts by these.
  void arrange_by_priority() {
    if (executor_.own_priorities()) {
      arrange_by_registration();
      const auto priority = [this](size_t station) {
        return executor_.chains()[stations_[station].chain].callbacks[stations_[station].callback].priority;
      };
      std::stable_sort(order_.begin(), order_.end(),
                       [&priority](size_t left, size_t right) { return priority(left) > priority(right); });
      return;
    }
    for (const size_t chain : executor_.order()) {
      const size_t count = executor_.chains()[chain].callbacks.size();
      for (size_t callback = count; callback-- > 0;) order_.push_back(first_station_[chain] + callback);
    }
  }

  // Sorts timers first, then by order of registration.
  void arrange_by_registration() {
    std::vector<size_t> chains = scenario_.registration;
    for (size_t chain = chains.size(); chain < executor_.chains().size(); ++chain) chains.push_back(chain);
    for (const bool timers : {true, false}) {
      for (const size_t chain : chains) {
        for (size_t callback = 0; callback < executor_.chains()[chain].callbacks.size(); ++callback) {
          const size_t station = first_station_[chain] + callback;
          if (stations_[station].timer == timers) order_.push_back(station);
        }
      }
    }
  }

  void wait_at(size_t station, size_t instance) {
    Station &at = stations_[station];
    instances_[instance].next = kNone;
    (at.head == kNone ? at.head : instances_[at.tail].next) = instance;
    at.tail = instance;
    ++waiting_;
    if (executor_.policy() == Policy::fifo) queue_.push_back(station);
  }

  // A live timer enters the ready set at once, ahead of all callbacks that are not timers.
  void admit_timer(size_t station) {
    const bool live = executor_.policy() == Policy::ready_set && stations_[station].timer;
    if (!live || stations_[station].head == kNone || std::count(ready_.begin(), ready_.end(), station) != 0) return;
    ready_.push_back(station);
    std::sort(ready_.begin(), ready_.end(), [this](size_t left, size_t right) { return place_[left] < place_[right]; });
  }

  void release(time_ns now_ns) {
    for (size_t chain = 0; chain < scenario_.releases.size(); ++chain) {
      const auto &releases = scenario_.releases[chain];
      while (released_[chain] < releases.size() && releases[released_[chain]].at_ns <= now_ns) {
        wait_at(first_station_[chain], first_instance_[chain] + released_[chain]++);
        admit_timer(first_station_[chain]);
      }
    }
  }

  // Returns whether the lane is supplied now, and the time until which this holds.
  std::pair<bool, time_ns> edge(size_t lane, time_ns now_ns) {
    if (lane >= scenario_.lanes.size() || scenario_.lanes[lane].empty()) return {true, kNeverNs};
    const Slots &slots = scenario_.lanes[lane];
    size_t &slot = slots_[lane];  // now_ns never decreases, so earlier slots are not needed again
    while (slot < slots.size() && slots[slot].second <= now_ns) ++slot;
    if (slot == slots.size()) return {false, kNeverNs};
    if (now_ns < slots[slot].first) return {false, slots[slot].first};
    return {true, slots[slot].second};
  }

  bool eligible(size_t station) const {
    const Station &at = stations_[station];
    if (at.head == kNone || (at.timer && at.running != 0)) return false;
    return at.group == kReentrant || held_[static_cast<size_t>(at.group)] == 0;
  }

  // The first eligible callback of the cached set. If there is none, the set is refilled once.
  size_t take_of_ready_set() {
    for (const bool fresh : {false, true}) {
      if (fresh) {
        ready_.clear();
        for (const size_t station : order_) {
          if (stations_[station].head != kNone) ready_.push_back(station);
        }
      }
      for (auto station = ready_.begin(); station != ready_.end(); ++station) {
        if (!eligible(*station)) continue;
        const size_t taken = *station;
        ready_.erase(station);
        return taken;
      }
    }
    return kNone;
  }

  size_t take_most_important() const {
    for (const size_t station : order_) {
      if (eligible(station)) return station;
    }
    return kNone;
  }

  size_t take_first_ready() {
    const auto first = std::find_if(queue_.begin(), queue_.end(), [this](size_t station) { return eligible(station); });
    if (first == queue_.end()) return kNone;
    const size_t taken = *first;
    queue_.erase(first);
    return taken;
  }

  size_t take() {
    if (executor_.policy() == Policy::fifo) return take_first_ready();
    return executor_.policy() == Policy::priority ? take_most_important() : take_of_ready_set();
  }

  // On one lane, the next callback cannot start before this one ends, even if it is ready.
  bool publishes_first() const {
    return scenario_.publishes_first && executor_.policy() == Policy::fifo && lanes_.size() == 1;
  }

  void dispatch(time_ns now_ns) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (waiting_ == 0) return;
      if (lanes_[lane].station != kNone || !edge(lane, now_ns).first) continue;
      const size_t station = take();
      if (station == kNone) return;
      Station &at = stations_[station];
      const size_t instance = at.head;
      at.head = instances_[instance].next;
      --waiting_;
      admit_timer(station);
      const Release &release = scenario_.releases[at.chain][instances_[instance].number];
      const bool worst = release.execution_ns.empty();
      lanes_[lane] = {station, instance, worst ? at.execution_ns : release.execution_ns[at.callback]};
      hold(at, 1);
      if (!at.last && publishes_first()) wait_at(station + 1, instance);
    }
  }

  void hold(Station &station, int change) {
    station.running += change;
    if (station.group != kReentrant) held_[static_cast<size_t>(station.group)] += change;
  }

  time_ns next_event(time_ns now_ns) {
    time_ns next_ns = kNeverNs;
    for (size_t chain = 0; chain < scenario_.releases.size(); ++chain) {
      const auto &releases = scenario_.releases[chain];
      if (released_[chain] < releases.size()) next_ns = std::min(next_ns, releases[released_[chain]].at_ns);
    }
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      const bool busy = lanes_[lane].station != kNone;
      if (!busy && waiting_ == 0) continue;
      const auto [on, until_ns] = edge(lane, now_ns);
      next_ns = std::min(next_ns, until_ns);
      if (on && busy) next_ns = std::min(next_ns, now_ns + lanes_[lane].left_ns);
    }
    return next_ns;
  }

  void advance(time_ns now_ns, time_ns next_ns) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      Running &running = lanes_[lane];
      if (running.station == kNone || !edge(lane, now_ns).first) continue;
      running.left_ns -= next_ns - now_ns;
      if (running.left_ns <= 0) complete(running, next_ns);
    }
  }

  void complete(Running &running, time_ns now_ns) {
    Station &at = stations_[running.station];
    hold(at, -1);
    if (at.last) {
      const size_t number = instances_[running.instance].number;
      schedule_.response_ns[at.chain][number] = now_ns - scenario_.releases[at.chain][number].at_ns;
    } else if (!publishes_first()) {
      wait_at(running.station + 1, running.instance);
    }
    running.station = kNone;
  }

  const Executor &executor_;
  const Scenario &scenario_;
  std::vector<Station> stations_;  // chain by chain, in order
  std::vector<size_t> first_station_, first_instance_;
  std::vector<Instance> instances_;
  std::vector<size_t> order_;  // indexes of stations, in the executor's order
  std::vector<size_t> place_;  // position of each station in that order
  std::vector<size_t> ready_;  // the default executor's cached set
  std::deque<size_t> queue_;   // with Policy::fifo: a station for each waiting instance, in order of arrival
  size_t waiting_ = 0;
  std::vector<Running> lanes_;
  std::vector<size_t> slots_;     // current or next supply slot of each lane
  std::vector<int> held_;         // by group: number of its members that run
  std::vector<size_t> released_;  // number of released instances of each chain
  Schedule schedule_;
};

}  // namespace

time_ns Schedule::worst_ns(size_t chain) const {
  time_ns worst_ns = 0;
  for (const time_ns one_ns : response_ns[chain]) worst_ns = std::max(worst_ns, one_ns);
  return worst_ns;
}

Schedule run_schedule(const Executor &executor, const Scenario &scenario) { return Machine(executor, scenario).run(); }

}  // namespace tide::analysis
