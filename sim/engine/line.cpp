// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/line.h"

#include <algorithm>
#include <utility>

#include "tide/link_serial.h"
#include "tide/status.h"

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

// ---- the client's end ----

void Link::attach() {
  attached_ = true;
  attachment_++;
  const tide_link_t link = {this, start, nullptr, nullptr, kind_ == Kind::kSerial ? TIDE_SERIAL_HEARTBEAT_FLOOR_NS : 0};
  tide_daemon_attach_link(&session_.daemon, &link, TIDE_SERIAL_ADDRESS_CLIENT);
  poll();
}

void Link::detach() {
  attached_ = false;
  attachment_++;
  tide_daemon_detach_link(&session_.daemon);
}

int Link::start(void *context, const tide_frame_parts_t *frame) {
  auto &link = *static_cast<Link *>(context);
  if (link.on_start) link.on_start(*frame);
  std::vector<uint8_t> rest(frame->body, frame->body + frame->body_bytes);
  rest.insert(rest.end(), frame->tail, frame->tail + frame->tail_bytes);
  Line::Bytes bytes;
  if (link.kind_ == Kind::kDatagrams) {
    bytes.assign(frame->head, frame->head + frame->head_bytes);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
  } else {
    bytes.resize(TIDE_FRAMING_WORST_BYTES(frame->head_bytes + rest.size()));
    const int length =
        tide_framing_encode(bytes.data(), bytes.size(), TIDE_SERIAL_ADDRESS_CLIENT, TIDE_SERIAL_ADDRESS_AGENT,
                            frame->head, frame->head_bytes, rest.data(), rest.size());
    if (length < 0) return length;
    bytes.resize(static_cast<size_t>(length));
  }
  link.up_.send(std::move(bytes), [&link, attachment = link.attachment_] {
    link.machine_.core().interrupt(link.costs_.complete, [&link, attachment] {
      if (attachment != link.attachment_) return;
      tide_daemon_on_transmit_complete(&link.session_.daemon);
      link.poll();
      if (link.on_left) link.on_left();
    });
  });
  return TIDE_OK;
}

void Link::receive(const Line::Bytes &frame) {
  if (!attached_) return;
  machine_.core().interrupt(costs_.receive, [this, frame] {
    if (!attached_) return;
    if (kind_ == Kind::kSerial) {
      tide_daemon_on_bytes(&session_.daemon, frame.data(), frame.size());
    } else if (frame.size() <= session_.config.mtu) {
      tide_daemon_on_message(&session_.daemon, frame.data(), frame.size());
    }
    poll();
  });
}

void Link::poll() {
  const int64_t next_ns = tide_session_poll(&session_);
  if (next_ns != TIDE_FOREVER) schedule(std::max(next_ns, machine_.engine().now() + 1));
}

void Link::schedule(Time time) {
  if (time >= next_poll_) return;
  next_poll_ = time;
  machine_.engine().at(time, [this, time] {
    if (next_poll_ != time) return;  // meanwhile another poll has set a new time
    machine_.core().interrupt(0, [this] {
      next_poll_ = kForever;
      poll();
    });
  });
}

void Link::wake() {
  if (wake_due_) return;
  wake_due_ = true;
  machine_.core().interrupt(0, [this] {
    wake_due_ = false;
    poll();
  });
}

}  // namespace tide::sim
