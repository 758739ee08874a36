// SPDX-License-Identifier: Apache-2.0
// Runs sequences of operations that fail half-way (sequences.h) with the real DDS for as long as is wanted. Each block
// of a thousand has a seed of its own, which is told when it fails.
// Usage: agent_campaign [SEQUENCES [SEED [DOMAIN]]]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "dds/fast_dds.h"
#include "sequences.h"
#include "shared_middleware.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() { return "new_delete_type_mismatch=0:abort_on_error=1:handle_abort=0"; }
#endif

namespace {

using namespace tide::agent;
using namespace tide::agent::test;

constexpr uint64_t kBlock = 1000;
constexpr uint32_t kOperations = 16;  // at most
constexpr unsigned kOwnEvery = 4096;  // a participant takes as long as some hundred sequences

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

long memory_kb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Of the good clients when nobody else is there, samples a second.
double rate_alone(Middleware &middleware, int domain) {
  Sequences sequences(middleware, domain);
  const double start = seconds();
  while (seconds() - start < 2) sequences.exchange();
  return static_cast<double>(sequences.exchanged()) / (seconds() - start);
}

}  // namespace

int main(int count, char **arguments) {
  const auto argument = [&](int place, uint64_t otherwise) {
    return count > place ? std::strtoull(arguments[place], nullptr, 10) : otherwise;
  };
  const uint64_t wanted = argument(1, 1'000'000), first_seed = argument(2, 1);
  const auto domain = static_cast<int>(argument(3, 92));
  const auto real = make_fast_dds({});
  SharedMiddleware middleware(*real, kOwnEvery);
  std::printf("good clients alone: %.0f samples/s\n", rate_alone(middleware, domain));
  const double start = seconds();
  double told = start, slowest = 0;
  int waited_ms = 0;
  uint64_t done = 0, operations = 0, exchanged = 0, created = 0, refused = 0;
  for (uint64_t seed = first_seed; done < wanted; seed++) {
    announce_seed(seed);
    Sequences sequences(middleware, domain);
    Choices choices(seed);
    for (uint64_t sequence = 0; sequence < kBlock && done < wanted; sequence++, done++) {
      const double began = seconds();
      sequences.run(choices, 1 + choices(kOperations));
      slowest = std::max(slowest, seconds() - began);
    }
    sequences.clear(choices);
    operations += sequences.operations();
    exchanged += sequences.exchanged();
    waited_ms = std::max(waited_ms, sequences.waited_ms());
    created += sequences.counters().entities_created;
    refused += sequences.counters().entities_refused;
    if (seconds() - told < 10 && done < wanted) continue;
    told = seconds();
    std::printf(
        "%llu sequences, %llu operations, %.0f sequences/s; %llu entities made, %llu refused; good clients: "
        "%llu samples, none lost, %.0f/s, the slowest %d ms in DDS; slowest sequence %.0f ms; %ld MB; next seed %llu\n",
        static_cast<unsigned long long>(done), static_cast<unsigned long long>(operations),
        static_cast<double>(done) / (told - start), static_cast<unsigned long long>(created),
        static_cast<unsigned long long>(refused), static_cast<unsigned long long>(exchanged),
        static_cast<double>(exchanged) / (told - start), waited_ms, slowest * 1e3, memory_kb() / 1024,
        static_cast<unsigned long long>(seed + 1));
    std::fflush(stdout);
  }
  return 0;
}
