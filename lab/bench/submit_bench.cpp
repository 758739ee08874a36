// SPDX-License-Identifier: Apache-2.0
// Cost of a publish and a submit in instructions, with many handles: run one case under an instruction counter.
//
//   valgrind --tool=callgrind --toggle-collect=measured_calls build/release/bin/submit_bench WHAT HANDLES
//
// WHAT   publish_best_effort, publish_reliable: rcl_publish of 100 B, by the publishers in turn, on eight levels.
//        The agent's core is in another thread, and its DDS accepts everything without any work. The link is in memory
// and sends from its own context, like a UART with DMA. udp_best_effort, udp_reliable: the same over UDP, where the
// publish itself passes the datagram to the system. Work within the system is not counted.
//        submit_best_effort, submit_reliable: the daemon alone, acquire and submit, while HANDLES messages wait.
//
// Prints the number of calls and checks that each message arrived or was accepted.
#include <poll.h>
#include <rcl/rcl.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/string.h>

#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/agent.h"
#include "io/network.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"

// Neither inlined nor cloned: callgrind collects inside it.
#ifdef __clang__
#define TIDE_IN_ONE_PIECE __attribute__((noinline))
#else
#define TIDE_IN_ONE_PIECE __attribute__((noipa))
#endif
extern "C" uint64_t measured_calls(bool (*call)(void *context, size_t index), void *context, size_t count);
extern "C" TIDE_IN_ONE_PIECE uint64_t measured_calls(bool (*call)(void *context, size_t index), void *context,
                                                     size_t count) {
  uint64_t good = 0;
  for (size_t index = 0; index < count; index++) good += call(context, index) ? 1u : 0u;
  return good;
}

namespace {

using namespace tide::agent;

constexpr size_t kBytes = 100, kHandlesMaximum = 1000, kLevels = 8, kBurst = 8, kBursts = 50;

[[noreturn]] void fail(const std::string &what) {
  std::fprintf(stderr, "submit_bench: %s: %s\n", what.c_str(), tide_status_text(tide_rclc_last_status()));
  std::exit(EXIT_FAILURE);
}
void require(bool good, const std::string &what) {
  if (!good) fail(what);
}

// ---- an agent whose DDS does nothing ----

struct NullSource : Source {
  bool take(Sample &) override { return false; }
};
struct NullWriter : Writer {
  bool write(Bytes, bool) override { return true; }
  bool has_reader() const override { return true; }
  bool is_acknowledged() override { return true; }
};
struct NullParticipant : Participant {
  bool check_topic(const Topic &) override { return true; }
  std::unique_ptr<Writer> create_writer(const Topic &, const Qos &) override { return std::make_unique<NullWriter>(); }
  std::unique_ptr<Source> create_reader(const Topic &, const Qos &, Wake) override {
    return std::make_unique<NullSource>();
  }
  std::unique_ptr<Requester> create_requester(const Service &, const Qos &, Wake) override { return nullptr; }
  std::unique_ptr<Replier> create_replier(const Service &, const Qos &, Wake) override { return nullptr; }
};
struct NullMiddleware : Middleware {
  std::unique_ptr<Participant> create_participant(int, const std::string &) override {
    return std::make_unique<NullParticipant>();
  }
};

// A pipe of messages in memory: one end writes, the other reads.
class Pipe {
 public:
  void give(std::vector<uint8_t> message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_one();
  }
  // Takes the oldest message; an empty one if none came in this time.
  std::vector<uint8_t> take(int timeout_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return !messages_.empty(); });
    if (messages_.empty()) return {};
    std::vector<uint8_t> message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<uint8_t>> messages_;
};

Pipe uplink, downlink;

rmw_ret_t use_pipes() {
  return rmw_uros_set_custom_transport(
      false, nullptr, [](uxrCustomTransport *) { return true; }, [](uxrCustomTransport *) { return true; },
      [](uxrCustomTransport *, const uint8_t *bytes, size_t count, uint8_t *) {
        uplink.give({bytes, bytes + count});
        return count;
      },
      [](uxrCustomTransport *, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *) {
        const std::vector<uint8_t> message = downlink.take(timeout_ms);
        std::copy_n(message.begin(), std::min(count, message.size()), bytes);
        return std::min(count, message.size());
      });
}

class AgentThread {
 public:
  explicit AgentThread(bool udp) : udp_(udp), thread_([this] { run(); }) {}
  ~AgentThread() {
    stop_ = true;
    thread_.join();
  }
  AgentThread(const AgentThread &) = delete;
  AgentThread &operator=(const AgentThread &) = delete;
  bool is_udp() const { return udp_; }
  std::string port() const { return std::to_string(link_.port()); }
  uint64_t samples() const { return samples_; }

 private:
  static constexpr Endpoint kPipe = 1;

  static Options options() {
    Options options;
    options.limits.entities_per_client = 4 * kHandlesMaximum;
    return options;
  }
  void run() {
    while (!stop_) {
      const Time deadline = agent_.poll(monotonic_ns());
      agent_.take_ready(ready_);
      for (const Endpoint endpoint : ready_) write(endpoint);
      samples_ = agent_.counters().samples_to_dds;
      if (udp_) {
        wait_for_datagrams(deadline);
      } else if (const std::vector<uint8_t> message = uplink.take(1); !message.empty()) {
        agent_.input(kPipe, {message.data(), message.size()}, monotonic_ns());
      }
    }
  }
  void write(Endpoint endpoint) {
    if (udp_) return link_.write(endpoint, monotonic_ns());
    tide_frame_parts_t frame;
    while (agent_.next(endpoint, monotonic_ns(), frame)) {
      std::vector<uint8_t> message(frame.head_bytes + frame.body_bytes + frame.tail_bytes);
      copy_frame(frame, message.data());
      downlink.give(std::move(message));
      agent_.sent(endpoint, monotonic_ns());
    }
  }
  void wait_for_datagrams(Time deadline) {
    if (link_.flush(monotonic_ns())) return;
    poller_.wait(std::min(deadline, monotonic_ns() + 10'000'000), events_);
    for (const Poller::Event &event : events_) link_.event(event, monotonic_ns());
    link_.turn(monotonic_ns());
  }

  const bool udp_;
  NullMiddleware middleware_;
  Agent agent_{middleware_, options()};
  Poller poller_;
  UdpLink link_{0, agent_, poller_, "127.0.0.1", 0};
  std::vector<Endpoint> ready_;
  std::vector<Poller::Event> events_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> samples_ = 0;
  std::thread thread_;
};

// ---- rcl_publish ----

struct Program {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rclc_support_t support{};
  rcl_node_t node = rcl_get_zero_initialized_node();
  std::vector<rcl_publisher_t> publishers;
  std_msgs__msg__String message{};
  std::vector<char> text = std::vector<char>(kBytes, 'x');
  size_t next = 0;

  Program(const AgentThread &agent, size_t handles, bool reliable) : publishers(handles) {
    require(agent.is_udp() || use_pipes() == RMW_RET_OK, "transport");  // before the options, which refer to it
    require(rcl_init_options_init(&options, allocator) == RCL_RET_OK, "options");
    rmw_init_options_t *rmw = rcl_init_options_get_rmw_init_options(&options);
    if (agent.is_udp()) {
      require(rmw_uros_options_set_udp_address("127.0.0.1", agent.port().c_str(), rmw) == RCL_RET_OK, "address");
    }
    require(rclc_support_init_with_options(&support, 0, nullptr, &options, &allocator) == RCL_RET_OK, "connecting");
    require(rclc_node_init_default(&node, "submit_bench", "", &support) == RCL_RET_OK, "creating the node");
    const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
    for (size_t index = 0; index < handles; index++) {
      rcl_publisher_t *publisher = &publishers[index];
      const std::string topic = "t" + std::to_string(index);
      const rcl_ret_t made = reliable ? rclc_publisher_init_default(publisher, &node, type, topic.c_str())
                                      : rclc_publisher_init_best_effort(publisher, &node, type, topic.c_str());
      require(made == RCL_RET_OK, "creating publisher " + topic);
      const auto level = static_cast<tide_priority_t>(1 + index % kLevels);
      require(tide_rclc_publisher_set_priority(publisher, TIDE_PRIORITY(level, 0)) == RCL_RET_OK, "priority");
    }
    message.data = {text.data(), kBytes - 5, text.size()};
  }
  ~Program() { (void)rclc_support_fini(&support); }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;
};

bool publish_next(void *context, size_t) {
  auto &program = *static_cast<Program *>(context);
  const rcl_publisher_t *publisher = &program.publishers[program.next++ % program.publishers.size()];
  return rcl_publish(publisher, &program.message, nullptr) == RCL_RET_OK;
}

uint64_t publish(size_t handles, bool reliable, bool udp) {
  AgentThread agent(udp);
  Program program(agent, handles, reliable);
  tide_session_t *session = tide_rclc_support_session(&program.support);
  uint64_t good = 0;
  for (size_t burst = 0; burst < kBursts; burst++) {
    good += measured_calls(publish_next, &program, kBurst);
    const int64_t limit_ns = monotonic_ns() + 10'000'000'000;
    require(tide_session_wait_idle(session, 0, limit_ns, nullptr) == TIDE_OK, "the agent does not acknowledge");
  }
  const Time limit_ns = monotonic_ns() + 10'000'000'000;
  while (agent.samples() < good && monotonic_ns() < limit_ns) std::this_thread::yield();
  require(agent.samples() == good, "messages were lost");
  return good;
}

// ---- the daemon alone ----

struct Daemon {
  static constexpr size_t kNodes = kHandlesMaximum + kBurst, kNodeBytes = 128, kStreams = 2 * kLevels + 2;
  static constexpr uint16_t kSlotBytes = 512;
  std::vector<tide_node_t> nodes{kNodes};
  std::vector<tide_queue_entry_t *> execution{kNodes}, pending{kNodes};
  std::vector<uint8_t> storage = std::vector<uint8_t>(kNodes * kNodeBytes);
  tide_size_class_t sizes{};
  std::vector<tide_output_stream_t> output{kStreams};
  std::array<tide_slot_t, 2> slots{};
  std::vector<uint8_t> slot_bytes = std::vector<uint8_t>(2 * kSlotBytes);
  std::array<tide_queue_entry_t *, 2> noted{};
  std::vector<tide_input_stream_t> input{kStreams};
  tide_daemon_t core{};
  bool reliable;

  explicit Daemon(bool is_reliable) : reliable(is_reliable) {
    sizes = {storage.data(), kNodeBytes, kNodes};
    tide_daemon_config_t config{};
    config.platform = tide_port_platform();
    config.transmitter.nodes = nodes.data();
    config.transmitter.execution_storage = execution.data();
    config.transmitter.pending_storage = pending.data();
    config.transmitter.node_count = kNodes;
    config.transmitter.classes = &sizes;
    config.transmitter.class_count = 1;
    config.transmitter.streams = output.data();
    config.transmitter.stream_count = kStreams;
    config.transmitter.message_bytes = 508;
    config.transmitter.heartbeat_delay_ns = -1;
    config.receiver.slots = slots.data();
    config.receiver.slot_count = slots.size();
    config.receiver.storage = slot_bytes.data();
    config.receiver.slot_bytes = kSlotBytes;
    config.receiver.noted_storage = noted.data();
    config.receiver.streams = input.data();
    config.receiver.stream_count = kStreams;
    config.receiver.on_submessage = [](void *, const tide_delivery_t *) {};
    require(tide_daemon_init(&core, &config) == TIDE_OK, "the daemon's configuration");
  }
};

// As in the session, without the copy of the payload. Without a link everything waits.
bool submit_next(void *context, size_t index) {
  auto &daemon = *static_cast<Daemon *>(context);
  const auto level = static_cast<uint8_t>(1 + index % kLevels);
  tide_node_t *node = nullptr;
  if (tide_daemon_acquire(&daemon.core, 8 + kBytes, TIDE_PRIORITY(level, 0), &node) != TIDE_OK) return false;
  tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, TIDE_XRCE_FLAG_LITTLE_ENDIAN, 4 + kBytes);
  node->length = 8 + kBytes;
  const uint8_t stream = daemon.reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  return tide_daemon_submit(&daemon.core, node, stream) == TIDE_OK;
}

uint64_t submit(size_t handles, bool reliable) {
  Daemon daemon(reliable);
  uint64_t good = 0;
  for (size_t burst = 0; burst < kBursts; burst++) {
    tide_daemon_reset(&daemon.core, false);
    for (size_t index = 0; index < handles; index++) require(submit_next(&daemon, index), "filling the pool");
    good += measured_calls(submit_next, &daemon, kBurst);
  }
  return good;
}

}  // namespace

int main(int count, char **arguments) {
  const std::string_view what = count == 3 ? arguments[1] : "";
  const std::string_view number = count == 3 ? arguments[2] : "";
  size_t handles = 0;
  (void)std::from_chars(number.data(), number.data() + number.size(), handles);
  const bool udp = what == "udp_best_effort" || what == "udp_reliable";
  const bool publishes = udp || what == "publish_best_effort" || what == "publish_reliable";
  const bool submits = what == "submit_best_effort" || what == "submit_reliable";
  if ((!publishes && !submits) || handles < 1 || handles > kHandlesMaximum) {
    std::fprintf(stderr,
                 "usage: submit_bench publish_best_effort|publish_reliable|udp_best_effort|udp_reliable|"
                 "submit_best_effort|submit_reliable HANDLES (at most 1000)\n");
    return 2;
  }
  const bool reliable = what.ends_with("_reliable");
  const uint64_t calls = publishes ? publish(handles, reliable, udp) : submit(handles, reliable);
  std::printf("%llu calls\n", static_cast<unsigned long long>(calls));
  return calls == kBurst * kBursts ? EXIT_SUCCESS : EXIT_FAILURE;
}
