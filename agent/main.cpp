// SPDX-License-Identifier: Apache-2.0
// tide-agent: joins DDS-XRCE clients (tide, micro-ROS) to ROS 2.
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "core/agent.h"
#include "dds/fast_dds.h"
#include "io/arguments.h"
#include "io/link.h"
#include "io/network.h"
#include "io/serial.h"
#include "tide/port.h"
#include "tide/status.h"
#include "version.h"

namespace {

using namespace tide::agent;

// ---- the command line ----

struct Arguments {
  std::vector<uint16_t> udp, tcp;
  uint16_t discovery = 0;
  std::vector<std::string> serial, allow;
  size_t tcp_per_address = 0;
  std::vector<uint32_t> baud = {115200};  // one value for each line, or one for all lines
  std::string bind = "127.0.0.1";
  std::string references, trace;
  size_t gid_bytes = kGidBytes;
  int domain = -1;
  std::vector<std::string> client_timeout, spaces, remaps;
  double reader_wait_s = 10.0, diagnostics_period_s = 1.0;
  std::string name = "tide_agent";
  int priority = 0, busy_poll_us = TIDE_BUSY_POLL_USUAL_US;
  std::vector<double> heartbeat_delay_ms = {kLineHeartbeatDelay /
                                            1e6};  // one value for each line, or one for all lines
  bool shared_participants = true;
  bool ros_network = false, verbose = false, json_stats = false;
  Limits limits;
};

std::string node_name(const std::string &name) {
  return is_node_name(name)
             ? ""
             : "'" + name + "' is not the name of a ROS 2 node: letters, digits and _, beginning with a letter";
}

std::string instance_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()) + " process " + std::to_string(getpid());
}

// Replaces a word by its value, and names the words if it is none of them. CLI::CheckedTransformer also takes the
// values, and its message shows how it stores them.
CLI::Validator one_of(const std::map<std::string, size_t> &values) {
  std::string words;
  for (const auto &[word, value] : values) words += (words.empty() ? "" : ", ") + word;
  const auto replace = [values, words](std::string &given) {
    const auto found = values.find(given);
    if (found == values.end()) return given + " is not one of " + words;
    given = std::to_string(found->second);
    return std::string{};
  };
  return CLI::Validator(replace, "{" + words + "}");
}

void describe(CLI::App &app, Arguments &arguments) {
  app.add_option("--udp", arguments.udp, "Serve UDP on this port (0: any); may be repeated")
      ->check(CLI::Range(0, 65535));
  app.add_option("--tcp", arguments.tcp, "Serve TCP on this port (0: any); may be repeated")
      ->check(CLI::Range(0, 65535));
  app.add_option("--discovery", arguments.discovery,
                 "Port on which boards that search for an agent get the address of this one (group 239.255.0.2; usual "
                 "port: 7400); 0: none")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--serial", arguments.serial, "Serve this tty or pseudo terminal; may be repeated");
  app.add_option("--baud", arguments.baud, "Baud rate of all serial lines; if repeated, of each --serial in order")
      ->capture_default_str();
  app.add_option(
         "--heartbeat-delay", arguments.heartbeat_delay_ms,
         "Milliseconds from a reliable message on a serial line to the HEARTBEAT that requests its "
         "acknowledgment; -1: measure this delay, which makes some HEARTBEATs too early; if repeated, of each --serial "
         "in order")
      ->check(CLI::Range(-1.0, 10'000.0))
      ->capture_default_str();
  app.add_option("--bind", arguments.bind,
                 "Address for UDP and TCP; 0.0.0.0: all networks of this machine, for boards on Wi-Fi or Ethernet; "
                 "with :: also "
                 "by IPv6")
      ->capture_default_str();
  app.add_option("--allow", arguments.allow,
                 "Admit only these clients: an address (192.168.1.7, 192.168.1.0/24, fd00::/8), a serial device, a "
                 "client's key (0A0B0C0D), or KEY@ADDRESS, KEY@DEVICE; may be repeated");
  app.add_option(
         "--domain", arguments.domain,
         "DDS domain of all clients; default: the domain that the client requests, or ROS_DOMAIN_ID if this is 0")
      ->check(CLI::Range(0, kDomainMaximum));
  app.add_option("--references", arguments.references, "XML file of profiles from which clients may create entities")
      ->check(CLI::ExistingFile);
  app.add_flag("--ros-network", arguments.ros_network,
               "Let DDS use all interfaces, not only loopback: for ROS 2 nodes on other machines");
  app.add_option("--graph", arguments.gid_bytes,
                 "Show clients as nodes in the ROS graph of this version of ROS 2; off: do not show them")
      ->transform(one_of({{"jazzy", kGidBytes}, {"humble", kGidBytesOfHumble}, {"off", 0}}))
      ->default_str("jazzy");
  app.add_option(
         "--participants", arguments.shared_participants,
         "Make a DDS participant for each domain, or for each client, which takes more memory and threads and shares "
         "nothing")
      ->transform(one_of({{"domain", 1}, {"client", 0}}))
      ->default_str("domain");
  app.add_option(
         "--namespace", arguments.spaces,
         "Put the names of clients into a namespace (/robot1); WHO=/robot1: only those of one client, WHO as for "
         "--allow; may be repeated. /tf, /tf_static, /rosout, /clock, /diagnostics and /parameter_events keep their "
         "names")
      ->type_name("[WHO=]NAME");
  app.add_option("--remap", arguments.remaps,
                 "Rename a topic, service or action of clients (/scan:=/front/scan); WHO=/scan:=/front/scan: only of "
                 "one client; may be repeated. --namespace does not apply to a remapped name")
      ->type_name("[WHO=]FROM:=TO");
  app.add_option("--client-timeout", arguments.client_timeout,
                 "Seconds of silence after which a client is probed (default: 30; 0: never); "
                 "WHO=SECONDS: only for some clients, WHO as for --allow; may be repeated")
      ->type_name("[WHO=]SECONDS");
  app.add_option(
         "--reader-wait", arguments.reader_wait_s,
         "Longest time in seconds for which, after a restart of the agent, a client's kept reliable messages "
         "wait for DDS to discover a reader of their topic; 0: no wait, so messages sent before the discovery are lost")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--max-clients", arguments.limits.clients, "Largest number of clients; further clients are refused")
      ->capture_default_str();
  app.add_option("--max-tcp-per-address", arguments.tcp_per_address,
                 "Largest number of TCP connections from one address; 0: half of all connections, or all if only this "
                 "machine is served");
  app.add_option("--max-entities", arguments.limits.entities_per_client, "Largest number of entities of one client")
      ->capture_default_str();
  app.add_option("--max-domains", arguments.limits.domains, "Largest number of DDS domains of all clients together")
      ->capture_default_str();
  app.add_option("--max-message", arguments.limits.message_bytes, "Largest message sent, in bytes")
      ->check(CLI::Range(64, 65500))
      ->capture_default_str();
  app.add_option("--max-sample", arguments.limits.sample_bytes,
                 "Largest sample that a client may write in pieces, in bytes")
      ->check(CLI::Range(65536, 1 << 30))
      ->capture_default_str();
  app.add_option("--diagnostics-period", arguments.diagnostics_period_s,
                 "Seconds between two messages on /diagnostics while the topic has a reader; 0: no messages")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option(
         "--name", arguments.name,
         "Name of the agent's node and of its statuses on /diagnostics; give each agent of a domain its own name")
      ->check(node_name)
      ->capture_default_str();
  app.add_option("--priority", arguments.priority, "Priority under SCHED_FIFO; 0: normal scheduling")
      ->check(CLI::Range(0, 99));
  app.add_option(
         "--busy-poll-us", arguments.busy_poll_us,
         "Longest time in microseconds to poll for the next message before sleeping, when messages arrive quickly; "
         "the agent adapts the time up to this limit; 0: always sleep")
      ->check(CLI::Range(0, TIDE_BUSY_POLL_MAXIMUM_US))
      ->capture_default_str();
  app.add_option(
      "--trace", arguments.trace,
      "File for the times at which each message was received, written to DDS, taken from DDS and sent; read by tide "
      "trace export");
  app.add_flag("--verbose", arguments.verbose, "Print each entity that a client creates");
  app.add_flag("--json-stats", arguments.json_stats, "Print counters as one line of JSON at the end and on SIGUSR1");
}

// ---- the process ----

Profiles read_profiles(const std::string &path) {
  Profiles profiles;
  if (path.empty()) return profiles;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!profiles.add(text.str())) throw std::runtime_error(path + ": not well-formed XML");
  return profiles;
}

// Several threads allocate memory for clients. If each thread had its own heap, memory would grow until each heap could
// hold all clients.
void keep_one_heap() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 128 * 1024;  // larger blocks go back to the system when they are freed
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
#endif
}

void raise_priority(int priority) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  if (priority == 0) return;
  const sched_param parameters = {priority};
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0) {
    std::cerr << "tide-agent: no permission for real-time priority " << priority << ", continuing without it\n";
  }
}

// Each DDS participant needs several descriptors, and each connection one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Writes the records of a Tracer to a file, in a thread of low priority.
class TraceFile {
 public:
  // Throws std::runtime_error if the file cannot be written. The tracer must outlive this object.
  TraceFile(const std::string &path, Tracer &tracer)
      : path_(path), tracer_(tracer), file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw std::runtime_error(path + ": cannot be written: " + std::strerror(errno));
    thread_ = std::thread([this] { drain_until_end(); });
  }
  ~TraceFile() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ends_.notify_all();
    thread_.join();
    drain();
    if (std::fclose(file_) != 0 && !failed_) std::fprintf(stderr, "%s: not everything was written\n", path_.c_str());
  }

 private:
  // If the disk is full, this is reported once; the rings then fill up and count the dropped records.
  void drain() {
    const auto write = [](void *file, const uint8_t *bytes, size_t count) -> int {
      return std::fwrite(bytes, 1, count, static_cast<std::FILE *>(file)) == count ? TIDE_OK : TIDE_ERROR_FULL;
    };
    if (failed_) return;
    failed_ = !tracer_.drain(write, file_) || std::fflush(file_) != 0;
    if (failed_) std::fprintf(stderr, "%s: can no longer be written: %s\n", path_.c_str(), std::strerror(errno));
  }
  void drain_until_end() {
    const sched_param none{};  // so that this thread does not inherit SCHED_FIFO
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
    std::unique_lock lock(mutex_);
    while (!ended_) {
      (void)ends_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      drain();
      lock.lock();
    }
  }

  std::string path_;
  Tracer &tracer_;
  std::FILE *file_;
  bool failed_ = false;
  std::mutex mutex_;  // guards ended_
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

// ---- options of the agent, of its links and of single clients ----

int domain_of(const std::string &text) {
  int domain = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), domain);
  if (error != std::errc{} || end != text.data() + text.size() || domain < 0 || domain > kDomainMaximum) {
    throw std::runtime_error("ROS_DOMAIN_ID is '" + text + "'; it has to be a number from 0 to 232");
  }
  return domain;
}

// A value that is given only once applies to all serial lines.
template <typename Value> Value of_line(const std::vector<Value> &values, size_t line) {
  return values.size() == 1 ? values.front() : values[line];
}

void require_one_for_each(const std::string &name, size_t given, size_t lines) {
  if (given == 1 || given == lines) return;
  throw std::runtime_error(name + " is given " + std::to_string(given) + " times for " + std::to_string(lines) +
                           " serial lines; give it once, or once for each --serial");
}

Options options_of(const Arguments &arguments, const Waker &waker) {
  Options options;
  options.limits = arguments.limits;
  options.limits.reader_wait_ns = static_cast<Time>(arguments.reader_wait_s * 1e9);
  options.profiles = read_profiles(arguments.references);
  if (arguments.domain >= 0) options.domain = arguments.domain;
  const char *domain = std::getenv("ROS_DOMAIN_ID");
  if (domain != nullptr && *domain != '\0') options.default_domain = domain_of(domain);
  options.wake = [&waker] { waker.wake(); };
  options.diagnostics.period_ns = static_cast<Time>(arguments.diagnostics_period_s * 1e9);
  options.diagnostics.name = arguments.name;
  options.diagnostics.instance = instance_name();
  const size_t lines_from = arguments.udp.size() + arguments.tcp.size();  // number of the first serial link (see
                                                                          // open_links)
  options.heartbeat_delay_ns = [lines_from, &arguments](Endpoint endpoint) {
    const size_t link = endpoint >> kLinkShift;
    if (link < lines_from || link >= lines_from + arguments.serial.size()) return Time{-1};
    const double delay_ms = of_line(arguments.heartbeat_delay_ms, link - lines_from);
    return delay_ms < 0 ? Time{-1} : static_cast<Time>(delay_ms * 1e6);
  };
  if (arguments.verbose) options.log = [](const std::string &line) { std::cerr << line << '\n'; };
  options.tells_events = true;
  options.warn = [](const std::string &line) { std::cerr << "tide-agent: " << line << '\n'; };
  return options;
}

void print_statistics(const Agent &agent, const Loop &loop) {
  const Counters counters = agent.counters();
  const auto sum_of = [&loop](uint64_t LinkCounters::*counter) {
    uint64_t sum = 0;
    for (const auto &link : loop.links()) sum += link->counters().*counter;
    return sum;
  };
  std::cout << "{\"clients\": " << agent.client_count() << ", \"entities\": " << agent.entity_count()
            << ", \"requesters_unserved\": " << agent.unserved_requesters();
#define TIDE_AGENT_COUNTER(name) std::cout << ", \"" #name "\": " << counters.name;
  TIDE_AGENT_COUNTERS(TIDE_AGENT_COUNTER)
#undef TIDE_AGENT_COUNTER
  std::cout << ", \"checksum_errors\": " << sum_of(&LinkCounters::checksum_errors)
            << ", \"send_dropped\": " << sum_of(&LinkCounters::send_dropped)
            << ", \"receive_dropped\": " << sum_of(&LinkCounters::receive_dropped)
            << ", \"reopened\": " << sum_of(&LinkCounters::reopened)
            << ", \"connections_refused\": " << sum_of(&LinkCounters::connections_refused)
            << ", \"connections_timed_out\": " << sum_of(&LinkCounters::connections_timed_out)
            << ", \"busy_poll_us\": " << loop.busy_poll().limit_ns / 1000
            << ", \"busy_poll_hits\": " << loop.busy_poll().hits
            << ", \"busy_poll_misses\": " << loop.busy_poll().misses
            << ", \"busy_polled_ns\": " << loop.busy_poll().polled_ns << "}" << std::endl;
}

// Splits "WHO=VALUE" or "VALUE" into the rule for clients (unset: all clients) and the value. The = of a remap's ":="
// is no separator.
std::pair<std::optional<Who>, std::string> who_and_value(const std::string &option, const std::string &text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || (at != 0 && text[at - 1] == ':')) return {std::nullopt, text};
  return {Who::parse(option, text.substr(0, at)), text.substr(at + 1)};
}

// Throws if the rule is about a device that the agent does not serve, so that it would apply to nobody.
void require_served(const std::string &option, const Who &who, const std::vector<std::string> &served) {
  if (who.device().empty() || std::find(served.begin(), served.end(), who.device()) != served.end()) return;
  throw std::runtime_error(option + " " + who.device() + ": no --serial serves this device; add --serial " +
                           who.device());
}

Time seconds_of(const std::string &text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc{} && end == text.data() + text.size() && seconds >= 0 && seconds <= 1e9) {
    return static_cast<Time>(seconds * 1e9);
  }
  throw std::runtime_error("--client-timeout: '" + text + "' is not a number of seconds");
}

// Options that may apply only to some clients. If several values apply to a client, the first one with a WHO applies,
// or else the one without a WHO. Remaps of all matching rules are combined.
class ClientOptions {
 public:
  explicit ClientOptions(const Arguments &arguments) : served_(arguments.serial) {
    std::set<std::string> given;
    for (const std::string &text : arguments.client_timeout) {
      const auto [who, value] = who_and_value("--client-timeout", text);
      if (who) require_served("--client-timeout", *who, served_);
      if (!given.insert(text.substr(0, text.size() - value.size())).second) {
        throw std::runtime_error("--client-timeout " + text + ": another one is given for the same clients");
      }
      timeouts_.push_back({who, seconds_of(value)});
    }
    std::stable_partition(timeouts_.begin(), timeouts_.end(), [](const auto &rule) { return rule.first.has_value(); });
    for (const std::string &text : arguments.spaces) add("--namespace", text, &Renaming::set_space);
    for (const std::string &text : arguments.remaps) add("--remap", text, &Renaming::add);
  }

  Time timeout_ns(const Peer &peer, uint32_t key, Time usual_ns) const {
    for (const auto &[who, timeout_ns] : timeouts_) {
      if (!who || who->names(peer, key)) return timeout_ns;
    }
    return usual_ns;
  }

  // The renaming for this client; null if nothing is renamed. Equal rules give the same pointer for every session; it
  // is valid as long as this object exists.
  const Renaming *names(const Peer &peer, uint32_t key) {
    if (rules_.empty()) return nullptr;
    Renaming names;
    for (const bool for_all : {false, true}) {
      for (const Rule &rule : rules_) {
        if (rule.who.has_value() == for_all || (rule.who && !rule.who->names(peer, key))) continue;
        if (names.space.empty()) names.space = rule.names.space;
        names.remaps.insert(rule.names.remaps.begin(), rule.names.remaps.end());
      }
    }
    return &*made_.insert(std::move(names)).first;
  }

 private:
  struct Rule {
    std::string whose;       // the text of who
    std::optional<Who> who;  // unset: all clients
    Renaming names;
  };
  void add(const std::string &option, const std::string &text, std::string (Renaming::*set)(const std::string &)) {
    auto [who, value] = who_and_value(option, text);
    if (who) require_served(option, *who, served_);
    const std::string whose = text.substr(0, text.size() - value.size());
    auto rule = std::find_if(rules_.begin(), rules_.end(), [&whose](const Rule &one) { return one.whose == whose; });
    if (rule == rules_.end()) rule = rules_.insert(rule, Rule{whose, std::move(who), {}});
    const std::string fault = (rule->names.*set)(value);
    if (!fault.empty()) throw std::runtime_error(option + " " + text + ": " + fault);
  }

  const std::vector<std::string> &served_;  // serial devices
  std::vector<std::pair<std::optional<Who>, Time>> timeouts_;
  std::vector<Rule> rules_;
  std::set<Renaming> made_;  // one for each combination of rules that applies to a client
};

bool is_own_machine(const std::string &bind) {
  const std::optional<Address> address = parse_address(bind);
  const std::optional<uint32_t> ipv4 = address ? ipv4_of(*address) : std::nullopt;
  return ipv4 ? *ipv4 >> 24 == 127 : address && text_of(*address) == "::1";
}

TcpLimits tcp_limits(const Arguments &arguments) {
  constexpr size_t kForNewcomers = 16;
  TcpLimits limits;
  limits.connections = arguments.limits.clients + kForNewcomers;
  const bool own_machine = is_own_machine(arguments.bind);
  limits.per_address = own_machine ? limits.connections : std::max<size_t>(limits.connections / 2, 1);
  if (arguments.tcp_per_address != 0) limits.per_address = arguments.tcp_per_address;
  return limits;
}

AccessList access_list(const Arguments &arguments) {
  AccessList list;
  for (const std::string &rule : arguments.allow) list.add(rule);
  for (const Who &who : list.rules()) require_served("--allow", who, arguments.serial);
  return list;
}

void open_links(const Arguments &arguments, const AccessList &access, Agent &agent, Poller &poller, Loop &loop) {
  const auto number = [&loop] { return static_cast<uint8_t>(loop.links().size()); };
  for (const uint16_t port : arguments.udp) {
    loop.add(std::make_unique<UdpLink>(number(), agent, poller, arguments.bind, port));
  }
  for (const uint16_t port : arguments.tcp) {
    loop.add(std::make_unique<TcpLink>(number(), agent, poller, arguments.bind, port, tcp_limits(arguments)));
  }
  for (size_t line = 0; line < arguments.serial.size(); line++) {
    const uint32_t baud = of_line(arguments.baud, line);
    auto link = std::make_unique<SerialLink>(number(), agent, poller, arguments.serial[line], baud);
    link->on_first_open([](const SerialLink &opened) { std::cout << "ready " << opened.describe() << std::endl; });
    loop.add(std::move(link));
  }
  if (arguments.discovery == 0) return;
  const auto &served = static_cast<const UdpLink &>(*loop.links().front());  // main opens the UDP link first
  loop.add(std::make_unique<DiscoveryLink>(number(), agent, poller, arguments.bind, arguments.discovery, served.port(),
                                           access));
}

// Prints the "ready" line about the open links, for users and for scripts that wait for it.
void print_ready(const Arguments &arguments, const Loop &loop) {
  std::string open;
  for (const auto &link : loop.links()) {
    if (link->is_open()) open += " " + link->describe();
  }
  if (open.empty()) return;
  const bool network = !arguments.udp.empty() || !arguments.tcp.empty();
  const bool here = is_own_machine(arguments.bind);
  const std::string all = arguments.bind.find(':') == std::string::npos ? "0.0.0.0" : "::";
  if (network && here) open += " (this machine only; --bind " + all + " for boards on the network)";
  if (network && !here && !arguments.ros_network)
    open += " (ROS 2 of this machine only; --ros-network for other machines)";
  std::cout << "ready" << open << std::endl;
}

void run(const Arguments &arguments) {
  require_one_for_each("--baud", arguments.baud.size(), arguments.serial.size());
  require_one_for_each("--heartbeat-delay", arguments.heartbeat_delay_ms.size(), arguments.serial.size());
  keep_one_heap();
  const int signals = open_signals();
  raise_priority(arguments.priority);
  raise_descriptor_limit();
  const Waker waker;
  Poller poller;
  const auto middleware = make_fast_dds({.loopback_only = !arguments.ros_network,
                                         .verbose = arguments.verbose,
                                         .shared_participants = arguments.shared_participants,
                                         .gid_bytes = arguments.gid_bytes});
  const AccessList access = access_list(arguments);
  ClientOptions clients(arguments);
  Tracer tracer(0);
  std::optional<TraceFile> file;
  if (!arguments.trace.empty()) file.emplace(arguments.trace, tracer);
  Loop *running = nullptr;
  Options options = options_of(arguments, waker);
  const auto link_of = [&running](Endpoint endpoint) -> const Link & {
    return *running->links()[endpoint >> kLinkShift];
  };
  if (file) options.tracer = &tracer;
  options.host_of = [link_of](Endpoint endpoint) { return link_of(endpoint).host_of(endpoint); };
  options.client_timeout_ns = [link_of, &clients, usual_ns = options.limits.client_timeout_ns](Endpoint endpoint,
                                                                                               uint32_t key) {
    return clients.timeout_ns(link_of(endpoint).peer(endpoint), key, usual_ns);
  };
  options.names = [link_of, &clients](Endpoint endpoint, uint32_t key) {
    return clients.names(link_of(endpoint).peer(endpoint), key);
  };
  options.may_be_forged = [link_of](Endpoint endpoint) { return link_of(endpoint).may_be_forged(); };
  options.name_of = [link_of](Endpoint endpoint) { return link_of(endpoint).name_of(endpoint); };
  options.diagnostics.links = [&running](std::vector<LinkVitals> &links) {
    links.clear();
    for (const auto &link : running->links()) links.push_back(link->vitals());
  };
  if (!arguments.allow.empty()) {
    options.allows = [link_of, &access](Endpoint endpoint, std::optional<uint32_t> key) {
      return access.allows(link_of(endpoint).peer(endpoint), key);
    };
  }
  Agent agent(*middleware, std::move(options));
  Loop loop(agent, poller, waker, signals, [&] { print_statistics(agent, *running); });
  running = &loop;
  loop.set_busy_poll(arguments.busy_poll_us * Time{1000});
  open_links(arguments, access, agent, poller, loop);
  print_ready(arguments, loop);
  loop.run();
  if (arguments.json_stats) print_statistics(agent, loop);
}

// The option that is followed by another one instead of its value, which CLI11 would take for the value; empty if none.
std::string without_value(const CLI::App &app, int argc, char **argv) {
  for (int place = 1; place + 1 < argc; place++) {
    const CLI::Option *option = app.get_option_no_throw(argv[place]);
    if (option != nullptr && option->get_items_expected_min() > 0 &&
        app.get_option_no_throw(argv[place + 1]) != nullptr) {
      return argv[place];
    }
  }
  return {};
}

// A line that names the command or option that was probably meant; empty if none is close.
std::string advice(const CLI::App &app, int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const std::string ours = stock_command_in_our_words(words); !ours.empty()) {
    return "this is the stock agent's command line; here it is: " + ours;
  }
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string &word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.empty() || name.front() != '-' || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = option_meant(word, known);
    return "there is no option " + name + (meant.empty() ? "; see tide-agent --help" : "; did you mean " + meant + "?");
  }
  return {};
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app{
      "Joins DDS-XRCE clients (tide, micro-ROS) to ROS 2.\n\n"
      "  tide-agent --udp 8888\n  tide-agent --serial /dev/ttyUSB0 --baud 115200\n",
      "tide-agent"};
  Arguments arguments;
  describe(app, arguments);
  app.set_version_flag("-V,--version", kVersion, "Print the version and the commit of the build");
  try {
    if (const std::string name = without_value(app, argc, argv); !name.empty()) {
      throw CLI::ArgumentMismatch(name + ": a value is missing");
    }
    app.parse(argc, argv);
  } catch (const CLI::Success &asked) {  // thrown for --help and --version
    return app.exit(asked);
  } catch (const CLI::ParseError &error) {
    const std::string instead = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)
                                    ? advice(app, argc, argv)
                                    : std::string{};
    std::string what = error.what();
    if (what.ends_with(" missing")) what = what.substr(0, what.find(':')) + ": its value is missing";  // without types
    std::cerr << "tide-agent: " << (instead.empty() ? what + "; see tide-agent --help" : instead) << '\n';
    return 2;
  }
  if (arguments.udp.empty() && arguments.tcp.empty() && arguments.serial.empty()) {
    std::cerr << "tide-agent: nothing to serve; give --udp, --tcp or --serial\n";
    return 2;
  }
  if (arguments.discovery != 0 && arguments.udp.empty()) {
    std::cerr << "tide-agent: --discovery announces the port of --udp, so it needs --udp\n";
    return 2;
  }
  try {
    run(arguments);
  } catch (const std::exception &error) {
    std::cerr << "tide-agent: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
