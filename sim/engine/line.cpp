// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/line.h"

#include <utility>

namespace tide::sim {

Time Line::duration(size_t bytes) const {
  if (baud_ == 0) return 0;
  return static_cast<Time>((bytes * 10u * static_cast<uint64_t>(kSecond) + baud_ - 1) / baud_);
}

void Line::send(Bytes frame, std::function<void()> on_left) {
  counters_.frames++;
  counters_.bytes += frame.size();
  const Time left = duration(frame.size());
  engine_.after(left, [this, frame = std::move(frame), on_left = std::move(on_left)]() mutable {
    arrive(std::move(frame));
    on_left();
  });
}

void Line::arrive(Bytes frame) {
  if (cut_) {
    counters_.cut++;
  } else if (refuse && refuse(frame)) {
    counters_.refused++;
  } else if (random_.chance(faults_.loss)) {
    counters_.lost++;
  } else {
    if (random_.chance(faults_.duplication)) {
      counters_.duplicated++;
      pass(frame);
    }
    pass(std::move(frame));
  }
}

void Line::pass(Bytes frame) {
  if (random_.chance(faults_.corruption)) {
    counters_.corrupted++;
    for (uint64_t count = 1 + random_.below(3); count > 0; count--) {
      frame[random_.below(frame.size())] ^= static_cast<uint8_t>(1u << random_.below(8));
    }
  }
  if (!random_.chance(faults_.delay)) {
    deliver(frame);
    return;
  }
  counters_.delayed++;
  engine_.after(random_.between(0, faults_.delay_maximum), [this, frame = std::move(frame)] { deliver(frame); });
}

}  // namespace tide::sim
