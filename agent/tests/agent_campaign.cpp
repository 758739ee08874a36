// SPDX-License-Identifier: Apache-2.0
// Runs sequences of operations that fail half-way (sequences.h) with the real DDS for as long as is wanted, in several
// processes. Each block of a thousand has a seed of its own, which is told when it fails.
// Usage: agent_campaign [SEQUENCES [SEED [DOMAIN]]] [--jobs COUNT] [--out FILE]
// DOMAIN is that of the first process, the others have the next ones. FILE has what was run so far: with it a campaign
// that was interrupted goes on. It ends with 1 when a process failed.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/limits.h"
#include "dds/fast_dds.h"
#include "sequences.h"
#include "shared_middleware.h"

namespace {

using namespace tide::agent;
using namespace tide::agent::test;

constexpr uint64_t kBlock = 1000;
constexpr uint32_t kOperations = 16;  // at most
constexpr unsigned kOwnEvery = 4096;  // a participant takes as long as some hundred sequences
constexpr size_t kJobsMaximum = 64;
constexpr double kTellEverySeconds = 10;

struct Arguments {
  uint64_t wanted = 1'000'000, first_seed = 1;
  int domain = 92;
  size_t jobs = 1;
  std::string out;
};

// What the processes share.
struct Totals {
  std::atomic<uint64_t> next_seed, begun, done, operations, exchanged, created, refused;
  std::atomic<uint64_t> slowest_ns, waited_ms;
  std::array<std::atomic<uint64_t>, kJobsMaximum> seeds;  // that each runs
};

std::atomic<bool> ending = false;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void raise_to(std::atomic<uint64_t> &maximum, uint64_t value) {
  uint64_t known = maximum.load();
  while (known < value && !maximum.compare_exchange_weak(known, value)) continue;
}

long memory_mb(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return usage.ru_maxrss / 1024;
}

void run_block(Middleware &middleware, int domain, uint64_t seed, uint64_t count, Totals &totals) {
  announce_seed(seed);
  Sequences sequences(middleware, domain);
  Choices choices(seed);
  uint64_t operations = 0, exchanged = 0, created = 0, refused = 0;
  const auto add = [](std::atomic<uint64_t> &total, uint64_t &known, uint64_t now) {
    total += now - known;
    known = now;
  };
  for (uint64_t sequence = 0; sequence < count && !ending; sequence++) {
    const double began = seconds();
    sequences.run(choices, 1 + choices(kOperations));
    raise_to(totals.slowest_ns, static_cast<uint64_t>((seconds() - began) * 1e9));
    totals.done++;
    add(totals.operations, operations, sequences.operations());
    add(totals.exchanged, exchanged, sequences.exchanged());
    add(totals.created, created, sequences.counters().entities_created);
    add(totals.refused, refused, sequences.counters().entities_refused);
  }
  sequences.clear(choices);
  raise_to(totals.waited_ms, static_cast<uint64_t>(sequences.waited_ms()));
}

void work(const Arguments &arguments, size_t job, Totals &totals) {
  const auto real = make_fast_dds({});
  SharedMiddleware middleware(*real, kOwnEvery);
  while (!ending) {
    const uint64_t begun = totals.begun.fetch_add(kBlock);
    if (begun >= arguments.wanted) return;
    const uint64_t seed = totals.next_seed++;
    totals.seeds[job] = seed;
    run_block(middleware, arguments.domain + static_cast<int>(job), seed, std::min(kBlock, arguments.wanted - begun),
              totals);
  }
}

// ---- the process that starts the others ----

void read_on(const Arguments &arguments, Totals &totals) {
  std::ifstream file(arguments.out);
  std::string word;
  uint64_t first = 0, next = 0, done = 0;
  if (!(file >> word >> first >> word >> next >> word >> done)) return;
  if (first != arguments.first_seed) {
    std::fprintf(stderr, "agent_campaign: %s is of a campaign from seed %llu; name another file or that seed\n",
                 arguments.out.c_str(), static_cast<unsigned long long>(first));
    std::exit(2);
  }
  totals.next_seed = next;
  totals.begun = totals.done = done;
}

void write_out(const Arguments &arguments, const Totals &totals) {
  if (arguments.out.empty()) return;
  const std::string draft = arguments.out + ".new";
  {
    std::ofstream file(draft);
    file << "first_seed " << arguments.first_seed << "\nnext_seed " << totals.next_seed << "\nsequences " << totals.done
         << "\n";
  }
  if (std::rename(draft.c_str(), arguments.out.c_str()) != 0) {
    std::fprintf(stderr, "agent_campaign: %s cannot be written: %s\n", arguments.out.c_str(), std::strerror(errno));
  }
}

void tell(const Arguments &arguments, const Totals &totals, uint64_t before, double elapsed_s) {
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu sequences, %.0f a second; since the start %llu operations, %llu entities made, %llu refused; good clients: "
      "%llu samples, none lost, the slowest %llu ms in DDS; slowest sequence %llu ms; next seed %llu\n",
      number(totals.done), static_cast<double>(totals.done - before) / elapsed_s, number(totals.operations),
      number(totals.created), number(totals.refused), number(totals.exchanged), number(totals.waited_ms),
      number(totals.slowest_ns / 1'000'000), number(totals.next_seed));
  std::fflush(stdout);
  write_out(arguments, totals);
}

// Whether it failed.
bool told_of_end(const Arguments &arguments, uint64_t seed, size_t job, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
  std::fprintf(
      stderr, "agent_campaign: process %zu ended by %s %d; this replays it: agent_campaign %llu %llu %d --jobs 1\n",
      job, WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
      static_cast<unsigned long long>(kBlock), static_cast<unsigned long long>(seed), arguments.domain);
  return true;
}

int lead(const Arguments &arguments, std::vector<pid_t> &processes, const Totals &totals) {
  const double start = seconds();
  const uint64_t before = totals.done;
  double told = start;
  bool failed = false, passed_on = false;
  for (size_t left = processes.size(); left != 0;) {
    if (ending && !passed_on) {
      for (const pid_t process : processes) {
        if (process != 0) kill(process, SIGTERM);
      }
      passed_on = true;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      const auto place = std::find(processes.begin(), processes.end(), ended);
      const auto job = static_cast<size_t>(place - processes.begin());
      *place = 0;
      left--;
      if (told_of_end(arguments, totals.seeds[job], job, status)) failed = ending = true;
      continue;
    }
    usleep(20'000);  // clock: a pace, of looks at its processes
    if (seconds() - told < kTellEverySeconds) continue;
    told = seconds();
    tell(arguments, totals, before, told - start);
  }
  tell(arguments, totals, before, seconds() - start);
  std::printf("at most %ld MB in a process\n", memory_mb(RUSAGE_CHILDREN));
  return failed ? 1 : 0;
}

bool read_arguments(int count, char **words, Arguments &arguments) {
  int position = 0;
  for (int place = 1; place < count; place++) {
    const std::string_view word = words[place];
    const bool is_option = word.starts_with("--");
    if (is_option && ++place == count) return false;
    const uint64_t value = std::strtoull(words[place], nullptr, 10);
    if (word == "--out") {
      arguments.out = words[place];
    } else if (word == "--jobs") {
      arguments.jobs = value;
    } else if (is_option || ++position > 3) {
      return false;
    } else if (position == 3) {
      arguments.domain = static_cast<int>(value);
    } else {
      (position == 1 ? arguments.wanted : arguments.first_seed) = value;
    }
  }
  const int last = arguments.domain + static_cast<int>(std::min(arguments.jobs, kJobsMaximum)) - 1;
  return arguments.jobs >= 1 && arguments.jobs <= kJobsMaximum && arguments.domain >= 0 && last <= kDomainMaximum;
}

}  // namespace

int main(int count, char **words) {
  Arguments arguments;
  if (!read_arguments(count, words, arguments)) {
    std::fprintf(stderr, "usage: agent_campaign [SEQUENCES [SEED [DOMAIN]]] [--jobs 1..%zu] [--out FILE]\n",
                 kJobsMaximum);
    return 2;
  }
  void *const memory = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("agent_campaign");
    return 2;
  }
  Totals &totals = *new (memory) Totals{};
  totals.next_seed = arguments.first_seed;
  if (!arguments.out.empty()) read_on(arguments, totals);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { ending = true; });
  std::vector<pid_t> processes;
  for (size_t job = 0; job < arguments.jobs; job++) {
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      work(arguments, job, totals);
      return 0;
    }
    if (process < 0) {
      std::perror("agent_campaign");
      ending = true;
      break;
    }
    processes.push_back(process);
  }
  return lead(arguments, processes, totals);
}
