// SPDX-License-Identifier: Apache-2.0
// tide-pauses: the command. One thread per processor reads the clock periodically; prints a line of JSON at the end.
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

constexpr char kHelp[] =
    R"(tide-pauses: detects when the processors of this machine pause.

A thread on each processor, with the highest priority, wakes every 0.25 ms. A wake-up that is more than 0.25 ms late is a
pause: a virtual machine's host has given the processor to another guest, or the kernel or firmware has held it. Prints
{"event": "watching"}, and at SIGTERM, SIGINT or the end of standard input a line of JSON with the start and end of every
pause. Pauses shorter than 0.5 ms may be missed. Each thread takes about 1 % of its processor; 8 % were measured in a
virtual machine in which each timer goes through the host. The line has the time taken (own_ns, in ns).

Where the system permits it (/dev/cpu_dma_latency), processors do not sleep meanwhile, because waking a sleeping
processor delays all threads.

  --priority N    SCHED_FIFO priority (99), or the highest that the user's limit permits. If none is permitted, the
                  program ends with status 1
)";

constexpr int64_t kStep_ns = 250'000, kLeast_ns = 250'000;
constexpr size_t kMost = 65'536;

struct Pause {
  int64_t from_ns, until_ns;
};

struct Processor {
  int number = 0;
  size_t count = 0;
  uint64_t left_out = 0, looks = 0;
  int64_t own_ns = 0;  // processor time of the thread
  std::unique_ptr<Pause[]> pauses;
  std::thread thread;
};

std::atomic<bool> stopped{false};

int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void sleep_until(int64_t at_ns) {
  const timespec time{static_cast<time_t>(at_ns / 1'000'000'000), static_cast<long>(at_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {}
}

void watch(Processor &own) {
  int64_t wanted_ns = now_ns() + kStep_ns;
  while (!stopped.load(std::memory_order_relaxed)) {
    sleep_until(wanted_ns);
    const int64_t woken_ns = now_ns();
    ++own.looks;
    if (woken_ns - wanted_ns >= kLeast_ns) {
      if (own.count < kMost) {
        own.pauses[own.count++] = {wanted_ns, woken_ns};
      } else {
        ++own.left_out;
      }
    }
    wanted_ns = woken_ns + kStep_ns;
  }
  own.own_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void require(int result, const char *what) {
  if (result != 0) throw std::system_error(result, std::generic_category(), what);
}

// The highest permitted priority, up to the wanted one: a user's limit is often less than 99.
int permitted(int wanted) {
  rlimit limit{};
  sched_param parameters{};
  parameters.sched_priority = wanted;
  const int policy = sched_getscheduler(0);
  sched_param before{};
  sched_getparam(0, &before);
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) == 0) {
    sched_setscheduler(0, policy, &before);
    return wanted;
  }
  const bool is_known = getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur > 0;
  return is_known && limit.rlim_cur < static_cast<rlim_t>(wanted) ? static_cast<int>(limit.rlim_cur) : wanted;
}

void start(Processor &own, int priority) {
  own.pauses = std::make_unique<Pause[]>(kMost);  // touched here, not by the thread that must be punctual
  own.thread = std::thread([&own] { watch(own); });
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<size_t>(own.number), &only);
  sched_param parameters{};
  parameters.sched_priority = priority;
  try {
    require(pthread_setaffinity_np(own.thread.native_handle(), sizeof only, &only), "a processor cannot be chosen");
    require(pthread_setschedparam(own.thread.native_handle(), SCHED_FIFO, &parameters), "no real-time priority");
  } catch (...) {
    stopped = true;
    own.thread.join();
    throw;
  }
}

// Asks that processors stay awake until the returned descriptor is closed. -1: they may sleep.
int keep_awake() {
  const int file = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
  const int32_t none = 0;
  if (file >= 0 && write(file, &none, sizeof none) == sizeof none) return file;
  if (file >= 0) close(file);
  return -1;
}

void print(const std::vector<Processor> &every, bool awake) {
  std::printf(R"({"event": "pauses", "step_ns": %lld, "least_ns": %lld, "awake": %s, "processors": [)",
              static_cast<long long>(kStep_ns), static_cast<long long>(kLeast_ns), awake ? "true" : "false");
  const char *comma = "";
  for (const Processor &one : every) {
    std::printf(R"(%s{"number": %d, "looks": %llu, "own_ns": %lld, "left_out": %llu, "pauses": [)", comma, one.number,
                static_cast<unsigned long long>(one.looks), static_cast<long long>(one.own_ns),
                static_cast<unsigned long long>(one.left_out));
    for (size_t place = 0; place < one.count; ++place) {
      std::printf("%s[%lld, %lld]", place == 0 ? "" : ", ", static_cast<long long>(one.pauses[place].from_ns),
                  static_cast<long long>(one.pauses[place].until_ns));
    }
    std::printf("]}");
    comma = ", ";
  }
  std::printf("]}\n");
}

int parse_priority(int count, char **words) {
  const option table[] = {
      {"priority", required_argument, nullptr, 'p'}, {"help", no_argument, nullptr, 'h'}, {nullptr, 0, nullptr, 0}};
  int priority = 99, found = 0;
  while ((found = getopt_long(count, words, "", table, nullptr)) != -1) {
    if (found == 'h') {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (found != 'p') std::exit(2);
    char *end = nullptr;
    const long value = std::strtol(optarg, &end, 10);
    if (end == optarg || *end != '\0' || value < 1 || value > 99) {
      std::fprintf(stderr, "tide-pauses: --priority does not take %s; give 1 to 99\n", optarg);
      std::exit(2);
    }
    priority = static_cast<int>(value);
  }
  if (optind < count) {
    std::fprintf(stderr, "tide-pauses: unknown word %s; see tide-pauses --help\n", words[optind]);
    std::exit(2);
  }
  return priority;
}

void wait_for_end(int signals) {
  pollfd looked_at[2] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (true) {
    if (poll(looked_at, 2, -1) < 0) continue;
    if (looked_at[0].revents != 0) return;
    char passed_over[256];
    if (looked_at[1].revents != 0 && read(STDIN_FILENO, passed_over, sizeof passed_over) <= 0) return;
  }
}

}  // namespace

int main(int count, char **words) try {
  const int priority = permitted(parse_priority(count, words));
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const int signals = signalfd(-1, &ends, SFD_CLOEXEC);
  if (signals < 0) throw std::system_error(errno, std::generic_category(), "signals cannot be awaited");
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "the processors are not known");
  }
  const int awake = keep_awake();
  std::vector<Processor> every;
  every.reserve(static_cast<size_t>(CPU_COUNT(&allowed)));  // the threads point into it
  for (size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    every.emplace_back().number = static_cast<int>(number);
    try {
      start(every.back(), priority);
    } catch (...) {
      stopped = true;
      for (Processor &one : every) {
        if (one.thread.joinable()) one.thread.join();
      }
      throw;
    }
  }
  mlockall(MCL_CURRENT);
  std::printf("{\"event\": \"watching\"}\n");
  std::fflush(stdout);
  wait_for_end(signals);
  stopped = true;
  for (Processor &one : every) one.thread.join();
  print(every, awake >= 0);
  return std::fflush(stdout) == 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "tide-pauses: %s\n", error.what());
  return 1;
}
