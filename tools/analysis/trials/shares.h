// SPDX-License-Identifier: Apache-2.0
// Ways to divide a sum at random, uniformly among all ways to do so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tide::analysis {

// The numbers of all generators: 64 random bits from a counter (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double unit();  // at least 0, below 1

 private:
  uint64_t state_;
};

// Bini and Buttazzo 2005: any part may be as large as the sum.
std::vector<double> uunifast(Random &random, size_t parts, double sum);

// Griffin, Bate and Davis 2020 (Dirichlet-Rescale): no part above its own limit. A point of the simplex that violates
// limits lies in a smaller simplex, the one of what exceeds them, and is scaled up from there to the whole one.
//
// Scaled again and again without care, as first published, the points are not uniform: what came from a cut-off simplex
// fills only a part of the whole one (its authors have withdrawn it for that). Here the box that the present point is
// uniform in is carried along, and when it no longer covers the limits a new point is drawn; so what is returned is
// uniform. Where that keeps failing (dozens of parts near half of their limits), points are scaled regardless.
// The limits must have at least the sum; a limit of 0 gives 0.
std::vector<double> dirichlet_rescale(Random &random, double sum, const std::vector<double> &limits);

}  // namespace tide::analysis
