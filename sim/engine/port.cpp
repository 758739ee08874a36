// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/port.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/engine/machine.h"
#include "tide/lock.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

Port *in_use = nullptr;

constexpr Time kWallClockAtStart = 1'700'000'000 * kSecond;  // so that it differs from the monotonic clock
constexpr Time kCustomLinkTurn = 20 * kMillisecond;
constexpr int kHighestRealTimePriority = 99;
constexpr uint16_t kReplenishments = 16;  // for a lane whose settings give no number

}  // namespace

// Functions for the runtime; it may keep pointers to them after the port is destroyed.
struct PortFunctions {
  static Port &port() { return *in_use; }
  static const tide_platform_t &below() { return *port().machine().platform(); }

  static int64_t now_ns(void *) { return below().now_ns(below().context); }
  static int64_t wall_ns(void *) { return kWallClockAtStart + now_ns(nullptr); }
  static uintptr_t enter(void *) { return below().critical_enter(below().context); }
  static void leave(void *, uintptr_t state) {
    below().critical_exit(below().context, state);
    if (port().is_outside() && port().machine().sections_open() == 0) port().section_end();
  }
  static void event_init(void *, tide_event_t *event) { below().event_init(below().context, event); }
  static void event_set(void *, tide_event_t *event) { below().event_set(below().context, event); }
  static int event_wait(void *, tide_event_t *event, int64_t deadline_ns) { return port().wait(event, deadline_ns); }
  static uint64_t ticks(void *) { return static_cast<uint64_t>(now_ns(nullptr)); }

  static const void *current_thread(void *) {
    static const char driver = 0;
    return Task::current() == nullptr ? static_cast<const void *>(&driver) : Task::current();
  }
  // Each thread has its own core, so it is never preempted.
  static int raise(void *, const tide_lane_t *, uintptr_t *before) {
    *before = 0;
    return TIDE_OK;
  }
  static void restore(void *, uintptr_t) {}

  static int open(tide_session_t *session, const tide_link_address_t &address) { return port().open(session, address); }
  static void close(tide_session_t *session) { port().close(session); }
  static void wake(tide_session_t *session);
  static bool has_link(tide_session_t *session) { return port().find(session) != nullptr; }
};

namespace {

const tide_platform_t kPlatform{.context = nullptr,
                                .now_ns = PortFunctions::now_ns,
                                .wall_ns = PortFunctions::wall_ns,
                                .critical_enter = PortFunctions::enter,
                                .critical_exit = PortFunctions::leave,
                                .lanes_enter = nullptr,
                                .lanes_exit = nullptr,
                                .event_init = PortFunctions::event_init,
                                .event_set = PortFunctions::event_set,
                                .event_wait = PortFunctions::event_wait};
const tide_measure_clock_t kClock{PortFunctions::ticks, nullptr, UINT64_MAX, 1'000'000'000, false};
const tide_lock_port_t kLocks{.context = nullptr,
                              .current = PortFunctions::current_thread,
                              .raise = PortFunctions::raise,
                              .restore = PortFunctions::restore,
                              .may_wait = true};

}  // namespace

// ---- threads ----

struct Thread::State {
  State(Port &its_port, size_t core, int priority, std::function<void()> run)
      : port(its_port), body(std::move(run)), task(port.machine().core(core), "thread", priority, [this, core] {
          body();
          port.busy_[core] = false;
        }) {}
  Port &port;
  std::function<void()> body;
  Task task;
};

Thread::Thread(std::function<void()> body, int priority) {
  Port &port = *Port::current();
  const auto free = std::find(port.busy_.begin() + 1, port.busy_.end(), false);
  if (free == port.busy_.end()) throw std::runtime_error("the simulated machine has no core left for a thread");
  *free = true;
  state_ = std::make_shared<State>(port, static_cast<size_t>(free - port.busy_.begin()), priority, std::move(body));
}

Thread::~Thread() {
  if (joinable()) std::terminate();
}

Task &Thread::task() { return state_->task; }

void Thread::join() {
  constexpr Time kStep = 10'000;
  while (!state_->task.is_finished()) state_->port.pause(kStep);
  Port &port = state_->port;
  port.ended_.push_back(std::move(state_));
}

// ---- a custom link, run by a thread as on POSIX ----

struct Port::Custom {
  Custom(tide_session_t *session, const tide_custom_transport_t *transport)
      : storage(TIDE_CUSTOM_LINK_STORAGE_BYTES(size_t{session->config.mtu})) {
    status = tide_custom_link_open(&link, session, transport, storage.data(), storage.size());
    if (status == TIDE_OK) thread = Thread([this] { run(); });
  }
  ~Custom() {
    if (thread.joinable()) {
      stop = true;
      tide_custom_link_wake(&link);
      thread.join();
    }
    tide_custom_link_close(&link);
  }
  void run() {
    while (!stop) tide_custom_link_run(&link, link.wakes ? kForever : PortFunctions::now_ns(nullptr) + kCustomLinkTurn);
  }
  std::vector<uint8_t> storage;
  tide_custom_link_t link{};
  int status = TIDE_OK;
  bool stop = false;
  Thread thread;
};

void PortFunctions::wake(tide_session_t *session) {
  Port::Opened *opened = port().find(session);
  if (opened == nullptr) return;
  if (opened->custom) {
    tide_custom_link_wake(&opened->custom->link);
  } else {
    opened->link->wake();
  }
}

// ---- the port ----

Port::Port(Machine &machine, Open open)
    : machine_(machine), open_(std::move(open)), busy_(machine.core_count(), false) {
  in_use = this;
}

Port::~Port() {
  links_.clear();
  machine_.on_section_end = nullptr;
  in_use = nullptr;
}

Port *Port::current() { return in_use; }

void Port::hesitate(uint64_t seed, uint64_t one_in, Time most) {
  random_ = Random(seed);
  one_in_ = one_in;
  most_ = most;
  machine_.on_section_end = [this] { section_end(); };
}

void Port::section_end() {
  if (one_in_ == 0 || random_.below(one_in_) != 0) return;
  const Time duration = random_.between(1, most_);
  hesitated += duration;
  pause(duration);
}

void Port::pause(Time duration) {
  if (!is_outside()) {
    Task::current()->execute(duration);
    return;
  }
  const Time end = machine_.engine().now() + duration;
  while (machine_.engine().now() < end) advance(end);
}

// Runs the next event if it is not later than `until`; otherwise advances the time to `until`.
void Port::advance(Time until) {
  Engine &engine = machine_.engine();
  if (engine.step(engine.now())) return;
  if (std::min(until, engine.next_time()) > limit) throw std::runtime_error("the program waits without end");
  engine.step(until);
}

int Port::wait(tide_event_t *event, Time deadline) {
  if (!is_outside()) return PortFunctions::below().event_wait(PortFunctions::below().context, event, deadline);
  Engine &engine = machine_.engine();
  while (event->state == 0 && engine.now() < deadline) advance(deadline);
  return std::exchange(event->state, 0) != 0 ? 1 : 0;
}

Port::Opened *Port::find(const tide_session_t *session) {
  const auto found =
      std::find_if(links_.begin(), links_.end(), [&](const Opened &opened) { return opened.session == session; });
  return found == links_.end() ? nullptr : &*found;
}

int Port::open(tide_session_t *session, const tide_link_address_t &address) {
  if (find(session) != nullptr) return TIDE_ERROR_EXISTS;
  if (address.kind == TIDE_LINK_CUSTOM) {
    auto custom = std::make_unique<Custom>(session, address.custom);
    if (custom->status != TIDE_OK) return custom->status;
    links_.push_back({session, nullptr, std::move(custom)});
    return TIDE_OK;
  }
  Link *link = open_(*session, address);
  if (link == nullptr) return TIDE_ERROR_LINK;
  links_.push_back({session, link, nullptr});
  link->attach();
  return TIDE_OK;
}

void Port::close(tide_session_t *session) {
  Opened *opened = find(session);
  if (opened == nullptr) return;
  const Opened ended = std::move(*opened);
  links_.erase(links_.begin() + (opened - links_.data()));
  if (ended.link != nullptr) ended.link->detach();
}

// ---- lanes ----

namespace {

bool is_fixed(const tide_lane_settings_t &lane) {
  return lane.scheduling == TIDE_SCHEDULING_FIFO || lane.scheduling == TIDE_SCHEDULING_ROUND_ROBIN ||
         lane.scheduling == TIDE_SCHEDULING_SPORADIC;
}

int check_lane(const tide_lane_settings_t &lane, size_t cores) {
  if (is_fixed(lane) && (lane.priority < 1 || lane.priority > kHighestRealTimePriority)) return TIDE_ERROR_ARGUMENT;
  if (lane.processor > cores) return TIDE_ERROR_ARGUMENT;
  const bool refused = lane.scheduling == TIDE_SCHEDULING_DEADLINE && !lane.may_run_normally;
  return refused ? TIDE_ERROR_UNSUPPORTED : TIDE_OK;
}

tide_budget_config_t budget_of(const tide_lane_settings_t &lane) {
  tide_budget_config_t config{};
  config.priority = lane.priority;
  config.low_priority = lane.low_priority;
  config.budget_ns = lane.runtime_ns;
  config.period_ns = lane.period_ns;
  config.maximum_replenishments = lane.maximum_replenishments == 0 ? kReplenishments : lane.maximum_replenishments;
  return config;
}

int run_lanes(std::span<tide_lane_t> lanes, const std::function<void(size_t index)> &run, size_t *refused) {
  for (tide_lane_t &lane : lanes) {
    const int status = check_lane(lane.settings, Port::current()->machine().core_count());
    if (status == TIDE_OK) continue;
    if (refused != nullptr) *refused = static_cast<size_t>(&lane - lanes.data());
    return status;
  }
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<Budget>> budgets;
  for (size_t index = 0; index < lanes.size(); index++) {
    const tide_lane_settings_t &lane = lanes[index].settings;
    threads.emplace_back([&run, index] { run(index); }, is_fixed(lane) ? lane.priority : Thread::kNormalPriority);
    if (lane.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    budgets.push_back(std::make_unique<Budget>(threads.back().task(), budget_of(lane)));
  }
  for (Thread &thread : threads) thread.join();
  return TIDE_OK;
}

}  // namespace

}  // namespace tide::sim

using tide::sim::Port;
using tide::sim::PortFunctions;

const tide_platform_t *tide_port_platform(void) { return &tide::sim::kPlatform; }
bool tide_port_in_interrupt(void) { return Port::current()->in_interrupt; }
const tide_measure_clock_t *tide_port_measure_clock(void) { return &tide::sim::kClock; }
const tide_lock_port_t *tide_port_locks(void) { return &tide::sim::kLocks; }
int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  return PortFunctions::open(session, *address);
}
void tide_port_close_link(tide_session_t *session) { PortFunctions::close(session); }
void tide_port_wake_link(tide_session_t *session) { PortFunctions::wake(session); }
int tide_port_discover_agent(uint16_t, int, char *, uint16_t *) { return TIDE_ERROR_LINK; }
void tide_port_serve_link(tide_session_t *) {}
const tide_pump_t *tide_port_pump(tide_session_t *) { return nullptr; }

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  return tide::sim::run_lanes(
      {lanes, count}, [=](size_t index) { run(context, index); }, refused);
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  *counters = {};
  counters->opens = 1;
  return PortFunctions::has_link(session) ? TIDE_OK : TIDE_ERROR_NOT_FOUND;
}
