// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/machine.h"
#include "sim/engine/random.h"
#include "tide/session.h"

namespace tide::sim {

// One direction of a serial line with DMA. A frame is sent at the baud rate (0: in no time), with 10 bits for each
// byte. After its last byte, the sender is notified and the receiver gets the frame. Faults are drawn from the seed for
// each frame.

struct Faults {
  double loss = 0, duplication = 0, corruption = 0, delay = 0;  // probability of each fault, for each frame
  Time delay_maximum = 0;                                       // greatest delay of a delayed frame, which later frames
                                                                // may overtake
  bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || delay > 0; }
};

struct LineCounters {
  uint64_t frames = 0, bytes = 0, lost = 0, duplicated = 0, corrupted = 0, delayed = 0, cut = 0, refused = 0;
};

class Line {
 public:
  using Bytes = std::vector<uint8_t>;

  Line(Engine &engine, uint64_t baud, uint64_t seed) : engine_(engine), baud_(baud), random_(seed) {}

  // on_left is called after the last byte. Send the next frame only after this call.
  void send(Bytes frame, std::function<void()> on_left);
  Time duration(size_t bytes) const;
  void set_faults(const Faults &faults) { faults_ = faults; }
  void set_cut(bool cut) { cut_ = cut; }
  // Called when the last byte of a frame has been sent. If it returns true, the frame is lost, in addition to losses by
  // faults.
  std::function<bool(const Bytes &frame)> refuse;
  std::function<void(const Bytes &frame)> deliver;

  const LineCounters &counters() const { return counters_; }

 private:
  void arrive(Bytes frame);
  void pass(Bytes frame);

  Engine &engine_;
  uint64_t baud_;
  Random random_;
  Faults faults_;
  bool cut_ = false;
  LineCounters counters_;
};

// The client's end of the simulated line: a UART with DMA, or datagrams. Its interrupts preempt the tasks of the core.
// The link also polls the session, as the link's thread on POSIX does.

class Link {
 public:
  struct Costs {
    Time complete = 0;  // cost of a transmit-complete interrupt
    Time receive = 0;   // cost of a reception interrupt
  };

  enum class Kind { kSerial, kDatagrams };

  Link(Machine &machine, tide_session_t &session, Line &up, const Costs &costs, Kind kind = Kind::kSerial)
      : machine_(machine), session_(session), up_(up), costs_(costs), kind_(kind) {}
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;

  void attach();
  // Unplugs the line at this end: the session's link closes, and frames on the line are lost.
  void detach();
  // Call this when a frame or datagram has arrived.
  void receive(const Line::Bytes &frame);
  // Call this when tide_session_poll has work to do now.
  void wake();

  // Called when a frame begins to be sent.
  std::function<void(const tide_frame_parts_t &frame)> on_start;
  // Called when the last byte of the frame has been sent. May be empty.
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
