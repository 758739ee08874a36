// SPDX-License-Identifier: Apache-2.0
// The client's end of the simulated line: a UART with DMA, or datagrams, whose interrupts preempt the core's tasks. Its
// context also moves the session on, as the link's thread does on POSIX.
#pragma once

#include <functional>
#include <vector>

#include "sim/engine/line.h"
#include "sim/engine/platform.h"
#include "tide/session.h"

namespace tide::sim {

class Link {
 public:
  struct Costs {
    Time complete = 0;  // of a transmit-complete interrupt
    Time receive = 0;   // of a reception interrupt
  };

  enum class Kind { kSerial, kDatagrams };

  Link(Machine &machine, tide_session_t &session, Line &up, const Costs &costs, Kind kind = Kind::kSerial)
      : machine_(machine), session_(session), up_(up), costs_(costs), kind_(kind) {}
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  void attach();
  // The line is unplugged at this end: what is on it is lost and sent again later.
  void detach();
  // A frame or datagram came over the line.
  void receive(const Line::Bytes &frame);
  // tide_session_poll has something to do now.
  void wake();

  // A frame begins to leave.
  std::function<void(const tide_frame_parts_t &frame)> on_start;
  // Its last byte has left. May be empty.
  std::function<void()> on_left;

 private:
  static int start(void *context, const tide_frame_parts_t *frame);
  void poll();
  void schedule(Time time);

  Machine &machine_;
  tide_session_t &session_;
  Line &up_;
  Costs costs_;
  Kind kind_;
  bool attached_ = false;
  unsigned attachment_ = 0;
  Time next_poll_ = kForever;
  bool wake_due_ = false;
};

}  // namespace tide::sim
