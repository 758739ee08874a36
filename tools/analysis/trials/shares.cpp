// SPDX-License-Identifier: Apache-2.0
#include "analysis/trials/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tide::analysis {
namespace {

constexpr int kMostPoints = 20'000;  // until uniformity gives way to an answer
constexpr int kMostRescales = 200;   // of one point, whose digits do not last for ever

class Rescale {
 public:
  Rescale(double sum, const std::vector<double> &limits) : sum_(sum), limits_(limits), box_(limits.size()) {}

  // Scales the point until it keeps to the limits; false: it must be drawn anew.
  bool settle(std::vector<double> &point, bool uniformly) {
    std::fill(box_.begin(), box_.end(), sum_);
    for (int round = 0; round < kMostRescales; ++round) {
      if (within(point)) return true;
      double exceeded = 0;  // the violated limits
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
  std::vector<double> box_;  // the point is uniform in the simplex below these
};

// A part that may only be nothing takes no part.
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
  // What the parts leave of their limits is uniform, too, if they are; the smaller of the two sums violates less.
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

}  // namespace tide::analysis
