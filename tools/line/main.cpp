// SPDX-License-Identifier: Apache-2.0
// tide-line: the command. Parses options, prints the terminals, runs the cable until a signal and prints a report.
#include <getopt.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "cable.h"

namespace {

using tide::line::Settings;

constexpr char kHelp[] =
    R"(tide-line: two pseudo terminals joined as a serial cable with a baud rate.

Prints the terminals of the two ends as {"a": PATH, "b": PATH}, and forwards bytes until SIGTERM or SIGINT. Then, and at
each SIGUSR1, it prints its counters as a line of JSON. SIGUSR2 unplugs the cable, or plugs it in again. Two signals in
quick succession may count as one; the counter "unplugged" shows the state (0 or 1).

  tide-line --baud 115200 --link-a robot.tty --link-b host.tty
  tide-line --frame-loss 0.01 --seed 7
  tide-line --cut-after 5 --cut-for 2

  --baud N             bits per second (115200); a byte takes 10 bits (8N1); both directions are independent
  --link-a PATH        symbolic link to the terminal of an end; removed when the program ends
  --link-b PATH
  --queue N            bytes that a sender's driver buffers before it blocks (4096)
  --trigger N          largest number of bytes that are delivered together, as from a UART's FIFO, never beyond the end
                       of a frame (8); 1: each byte at its own time, which takes several times the processor time
  --priority N         SCHED_FIFO priority, if permitted (80); 0: normal scheduling
  --exit-on-eof        end when standard input ends
  --log FILE           file to which the times of the first 100,000 frames in each direction are written at the end, one
                       line of JSON for each frame

Faults, all drawn from --seed N (1). With the suffix -a-to-b or -b-to-a an option applies to one direction only:
  --byte-loss P        probability that a byte is lost
  --bit-flip P         probability that one bit of a byte is flipped
  --frame-loss P       probability that everything from a flag (0x7E) to the next flag is lost
  --first-loss P       probability that the first transmission of a reliable XRCE message of 64 bytes or more is cut off;
                       repetitions pass; messages sent within 200 ms share one draw
  --noise P            probability of a random byte before a flag
  --max-delay SECONDS  longest additional delay of a frame; frames stay in order
  --cut-after SECONDS  time after which the cable is cut
  --cut-for SECONDS    duration of the cut (for ever)
)";

enum class Fault { kByteLoss, kBitFlip, kFrameLoss, kFirstLoss, kNoise, kMaxDelay, kCutAfter, kCutFor };
struct FaultName {
  const char *name;
  Fault fault;
};
constexpr std::array<FaultName, 8> kFaults{{{"byte-loss", Fault::kByteLoss},
                                            {"bit-flip", Fault::kBitFlip},
                                            {"frame-loss", Fault::kFrameLoss},
                                            {"first-loss", Fault::kFirstLoss},
                                            {"noise", Fault::kNoise},
                                            {"max-delay", Fault::kMaxDelay},
                                            {"cut-after", Fault::kCutAfter},
                                            {"cut-for", Fault::kCutFor}}};

struct Options {
  Settings a_to_b, b_to_a;
  std::string link_a, link_b, log;
  double cut_for_s[2] = {INFINITY, INFINITY};
  int priority = 80;
  bool exit_on_eof = false;
};

[[noreturn]] void refuse(const std::string &why) {
  std::fprintf(stderr, "tide-line: %s; see tide-line --help\n", why.c_str());
  std::exit(2);
}

double number(const char *name, const char *text, double least, double most) {
  char *end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most)) {
    refuse(std::string(name) + " does not take " + text);
  }
  return value;
}

uint64_t integer(const char *name, const char *text, uint64_t least, uint64_t most) {
  char *end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || *text == '-' || value < least || value > most) {
    refuse(std::string(name) + " does not take " + text);
  }
  return value;
}

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

void apply(Fault fault, const char *name, const char *text, Settings &settings, double &cut_for_s) {
  constexpr double kYear_s = 3.2e7;
  const bool probability = fault < Fault::kMaxDelay;
  const double value = number(name, text, 0, probability ? 1 : kYear_s);
  switch (fault) {
    case Fault::kByteLoss: settings.faults.byte_loss = value; break;
    case Fault::kBitFlip: settings.faults.bit_flip = value; break;
    case Fault::kFrameLoss: settings.faults.frame_loss = value; break;
    case Fault::kFirstLoss: settings.faults.first_loss = value; break;
    case Fault::kNoise: settings.faults.noise = value; break;
    case Fault::kMaxDelay: settings.faults.max_delay_ns = nanoseconds(value); break;
    case Fault::kCutAfter:
      settings.cut_from_ns = nanoseconds(value);
      break;  // relative to the start, which is added later
    case Fault::kCutFor: cut_for_s = value; break;
  }
}

// Applies the option and returns true if it is a fault.
bool take_fault(const std::string &name, const char *text, Options &options) {
  for (const FaultName &known : kFaults) {
    const std::string base = known.name;
    const bool both = name == base;
    if (both || name == base + "-a-to-b") {
      apply(known.fault, name.c_str(), text, options.a_to_b, options.cut_for_s[0]);
    }
    if (both || name == base + "-b-to-a") {
      apply(known.fault, name.c_str(), text, options.b_to_a, options.cut_for_s[1]);
    }
    if (name.starts_with(base)) return true;
  }
  return false;
}

void take(const std::string &name, const char *text, Options &options) {
  const auto both = [&](auto member, auto value) {
    options.a_to_b.*member = static_cast<std::remove_reference_t<decltype(options.a_to_b.*member)>>(value);
    options.b_to_a.*member = options.a_to_b.*member;
  };
  const char *label = name.c_str();
  if (name == "baud") both(&Settings::baud, integer(label, text, 50, 100'000'000));
  if (name == "queue") both(&Settings::queue_bytes, integer(label, text, 1, 1u << 24));
  if (name == "trigger") both(&Settings::trigger_bytes, integer(label, text, 1, 1u << 16));
  if (name == "seed") both(&Settings::seed, integer(label, text, 0, UINT64_MAX));
  if (name == "priority") options.priority = static_cast<int>(integer(label, text, 0, 99));
  if (name == "link-a") options.link_a = text;
  if (name == "link-b") options.link_b = text;
  if (name == "log") options.log = text;
  if (name == "exit-on-eof") options.exit_on_eof = true;
  if (name == "help") {
    std::fputs(kHelp, stdout);
    std::exit(0);
  }
}

void place_cut(Settings &settings, double cut_for_s, int64_t start_ns) {
  if (settings.cut_from_ns == tide::line::kForever) return;
  settings.cut_from_ns += start_ns;
  if (std::isfinite(cut_for_s)) settings.cut_until_ns = settings.cut_from_ns + nanoseconds(cut_for_s);
}

Options parse(int count, char **words) {
  Options options;
  std::vector<std::string> names;
  for (const FaultName &fault : kFaults) {
    for (const char *suffix : {"", "-a-to-b", "-b-to-a"}) names.push_back(fault.name + std::string(suffix));
  }
  for (const char *plain : {"baud", "queue", "trigger", "seed", "priority", "link-a", "link-b", "log"}) {
    names.push_back(plain);
  }
  std::vector<option> table;
  table.reserve(names.size() + 3);
  for (const std::string &name : names) table.push_back({name.c_str(), required_argument, nullptr, 0});
  table.push_back({"exit-on-eof", no_argument, nullptr, 0});
  table.push_back({"help", no_argument, nullptr, 0});
  table.push_back({nullptr, 0, nullptr, 0});
  int index = 0;
  while (true) {
    const int found = getopt_long(count, words, "", table.data(), &index);
    if (found == -1) break;
    if (found != 0) std::exit(2);
    const std::string name = table[static_cast<size_t>(index)].name;
    if (!take_fault(name, optarg, options)) take(name, optarg, options);
  }
  if (optind < count) refuse(std::string("unknown word ") + words[optind]);
  const int64_t start_ns = tide::line::now_ns();
  place_cut(options.a_to_b, options.cut_for_s[0], start_ns);
  place_cut(options.b_to_a, options.cut_for_s[1], start_ns);
  options.b_to_a.seed = ~options.b_to_a.seed;  // so that the directions draw independent faults
  return options;
}

// Makes timing as exact as this machine allows; every step may be refused.
void become_punctual(int priority) {
  prctl(PR_SET_TIMERSLACK, 1ul);
  if (priority == 0) return;
  sched_param parameters{};
  parameters.sched_priority = priority;
  sched_setscheduler(0, SCHED_FIFO, &parameters);
  mlockall(MCL_CURRENT | MCL_FUTURE);
}

tide::line::Cable::Requests requests;

void on_signal(int signal) {
  if (signal == SIGUSR1) {
    requests.report = 1;
  } else if (signal == SIGUSR2) {
    requests.toggle_cut = 1;
  } else {
    requests.stop = 1;
  }
}

// Signals come only while the cable sleeps, so none is missed between a check of the requests and the sleep.
// Returns the signal mask for that sleep.
sigset_t catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaction(signal, &action, nullptr);
    sigaddset(&caught, signal);
  }
  std::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &caught, &before);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigdelset(&before, signal);
  return before;
}

}  // namespace

int main(int count, char **words) try {
  const Options options = parse(count, words);
  const sigset_t sleeping = catch_signals();
  tide::line::Cable cable(options.a_to_b, options.b_to_a);
  cable.a().open(options.link_a);
  cable.b().open(options.link_b);
  if (!options.log.empty()) cable.keep_log(100'000);
  become_punctual(options.priority);
  std::printf("{\"a\": \"%s\", \"b\": \"%s\"}\n", cable.a().path().c_str(), cable.b().path().c_str());
  std::fflush(stdout);
  cable.run(requests, sleeping, options.exit_on_eof ? STDIN_FILENO : -1);
  std::puts(cable.report().c_str());
  if (!options.log.empty()) cable.write_log(options.log);
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "tide-line: %s\n", error.what());
  return 1;
}
