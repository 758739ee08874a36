// SPDX-License-Identifier: Apache-2.0
// One direction of a serial line with DMA: a frame leaves at the baud rate, 10 bits a byte; when its last byte has left
// the sender is told, and the receiver gets the frame. Faults strike whole frames on their way, by seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/random.h"

namespace tide::sim {

struct Faults {
  double loss = 0, duplication = 0, corruption = 0, delay = 0;  // probabilities of a frame
  Time delay_maximum = 0;                                       // a delayed frame may be overtaken
  bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || delay > 0; }
};

struct LineCounters {
  uint64_t frames = 0, bytes = 0, lost = 0, duplicated = 0, corrupted = 0, delayed = 0, cut = 0, refused = 0;
};

class Line {
 public:
  using Bytes = std::vector<uint8_t>;

  Line(Engine &engine, uint64_t baud, uint64_t seed) : engine_(engine), baud_(baud), random_(seed) {}

  // on_left: the last byte has left. One frame at a time.
  void send(Bytes frame, std::function<void()> on_left);
  Time duration(size_t bytes) const;
  void set_faults(const Faults &faults) { faults_ = faults; }
  void set_cut(bool cut) { cut_ = cut; }
  // Also lose this frame. Asked when its last byte leaves.
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

}  // namespace tide::sim
