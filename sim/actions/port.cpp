// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/port.h"

#include "tide/port.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

Port *in_use = nullptr;

const tide_platform_t &below() { return *in_use->machine().platform(); }
int64_t now_ns(void *) { return below().now_ns(below().context); }
uintptr_t enter(void *) { return below().critical_enter(below().context); }
void leave(void *, uintptr_t state) { below().critical_exit(below().context, state); }
void event_init(void *, tide_event_t *event) { below().event_init(below().context, event); }
void event_set(void *, tide_event_t *event) { below().event_set(below().context, event); }
int event_wait(void *, tide_event_t *event, int64_t deadline_ns) {
  return below().event_wait(below().context, event, deadline_ns);
}
uint64_t ticks(void *) { return static_cast<uint64_t>(now_ns(nullptr)); }

// The runtime keeps the pointers, beyond the life of a board.
const tide_platform_t kPlatform{.context = nullptr,
                                .now_ns = now_ns,
                                .wall_ns = now_ns,
                                .critical_enter = enter,
                                .critical_exit = leave,
                                .lanes_enter = nullptr,
                                .lanes_exit = nullptr,
                                .event_init = event_init,
                                .event_set = event_set,
                                .event_wait = event_wait};
const tide_measure_clock_t kClock{ticks, nullptr, UINT64_MAX, 1'000'000'000, false};

}  // namespace

Port::Port(Machine &machine, Line &up, Line &down) : machine_(machine), up_(up), down_(down) {
  in_use = this;
  down_.deliver = [this](const Line::Bytes &frame) {
    if (open_) links_.back()->receive(frame);
  };
}

Port::~Port() { in_use = nullptr; }

Port *Port::current() { return in_use; }

void Port::open(tide_session_t *session) {
  links_.push_back(std::make_unique<SerialLink>(machine_, *session, up_, SerialLink::Costs{}));
  open_ = true;
  links_.back()->attach();
}

void Port::close() {
  if (open_) links_.back()->detach();
  open_ = false;
}

void Port::wake() {
  if (open_) links_.back()->wake();
}

}  // namespace tide::sim

using tide::sim::Port;

const tide_platform_t *tide_port_platform(void) { return &tide::sim::kPlatform; }
bool tide_port_in_interrupt(void) { return false; }
const tide_measure_clock_t *tide_port_measure_clock(void) { return &tide::sim::kClock; }
int tide_port_open_link(tide_session_t *session, const tide_link_address_t *) {
  Port::current()->open(session);
  return TIDE_OK;
}
void tide_port_close_link(tide_session_t *) { Port::current()->close(); }
void tide_port_wake_link(tide_session_t *) { Port::current()->wake(); }
int tide_port_discover_agent(uint16_t, int, char *, uint16_t *) { return TIDE_ERROR_LINK; }
void tide_port_serve_link(tide_session_t *) {}
const tide_pump_t *tide_port_pump(tide_session_t *) { return nullptr; }
int tide_port_run_lanes(tide_lane_t *, size_t, void (*)(void *context, size_t index), void *, size_t *) {
  return TIDE_ERROR_UNSUPPORTED;
}
int tide_port_link_counters(tide_session_t *, tide_link_counters_t *) { return TIDE_ERROR_NOT_FOUND; }
