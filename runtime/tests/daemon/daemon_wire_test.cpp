// SPDX-License-Identifier: Apache-2.0
// Start of transmissions on a machine where any code outside the runtime's critical section may be preempted by
// interrupts and more urgent threads, to any depth. The wire must never be idle while a frame could be sent, because
// the context that would start that frame may not run for a long time.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "daemon_memory.h"
#include "daemon_peer.h"
#include "tide/daemon.h"

namespace daemon_wire_test {

using peer::Bytes;

constexpr int levels = 4;

Bytes acknack(uint8_t stream, uint16_t first, uint16_t missing) {
  Bytes body(5);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, body.data(), body.size());
  const tide_xrce_acknack_t fields{first, missing, stream};
  tide_xrce_put_acknack(&cdr, &fields);
  return peer::message(0, 0, {peer::submessage(TIDE_XRCE_ACKNACK, body)});
}

class Machine {
 public:
  // eager: how many of ten frames have already been sent when start returns, or are refused by the hardware.
  explicit Machine(uint32_t seed, unsigned eager) : random_(seed), eager_(eager) {
    platform_ = {this,
                 [](void *self) { return static_cast<Machine *>(self)->now_ns_++; },
                 nullptr,
                 enter,
                 leave,
                 nullptr,
                 nullptr,
                 [](void *, tide_event_t *event) { event->state = 0; },
                 [](void *, tide_event_t *event) { event->state = 1; },
                 [](void *, tide_event_t *, int64_t) { return 0; }};
    tide_daemon_config_t config{};
    memory_.give(config, {.classes = {{32, 16}}, .streams = 2 * levels, .slots = 4, .slot_bytes = 64});
    config.platform = &platform_;
    config.transmitter.message_bytes = 64;
    config.transmitter.heartbeat_delay_ns = -1;
    config.receiver.context = this;
    config.receiver.on_submessage = [](void *, const tide_delivery_t *) {};
    config.on_activity = [](void *self) { static_cast<Machine *>(self)->told(); };
    config.on_done = [](void *self, tide_node_t *, tide_node_outcome_t) { static_cast<Machine *>(self)->node_done(); };
    config.context = this;
    EXPECT_EQ(tide_daemon_init(&daemon, &config), TIDE_OK);
    tide_daemon_set_session(&daemon, 0x81, 0);
    if (!open_) attach(); /* from here on, any event may happen anywhere */
  }

  void run(unsigned steps) {
    for (unsigned step = 0; step < steps && trouble.empty(); step++) act();
  }

  // All preempted contexts have continued, so the remaining frames are sent, one in each interrupt.
  void drain() {
    for (int turn = 0; turn < 10'000 && trouble.empty() && (busy_ || is_work_waiting()); turn++) {
      if (!open_) attach();
      if (busy_) transmitted();
    }
    EXPECT_FALSE(is_work_waiting());
  }

  // A caller that waits until a message is sent is notified, whichever context completed the message. Returns false if
  // the message was not sent at once.
  bool submit_is_told_of() {
    if (!open_) attach();
    tide_daemon_reset(&daemon, false);
    daemon.changed = false;
    tide_node_t *node = nullptr;
    EXPECT_EQ(tide_daemon_acquire(&daemon, 12, TIDE_PRIORITY(0, 0), &node), TIDE_OK);
    if (node == nullptr) return false;
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, 1, 8);
    node->length = 12;
    const unsigned before = activities;
    EXPECT_EQ(tide_daemon_submit(&daemon, node, TIDE_STREAM_BEST_EFFORT(0)), TIDE_OK);
    EXPECT_FALSE(daemon.changed);
    return activities > before;
  }

  tide_daemon_t daemon{};
  std::string trouble;
  unsigned starts = 0, preemptions = 0, overtaken = 0, activities = 0;

 private:
  static uintptr_t enter(void *context) { return static_cast<uintptr_t>(static_cast<Machine *>(context)->sections_++); }
  static void leave(void *context, uintptr_t state) {
    auto *self = static_cast<Machine *>(context);
    self->sections_ = static_cast<int>(state);
    self->preempt();
  }

  void told() {
    activities++;
    if (sections_ > 0) trouble = "told of an activity within the critical section";
  }

  bool chance(unsigned per_hundred) { return random_() % 100 < per_hundred; }

  bool is_work_waiting() const {
    const tide_transmitter_t &t = daemon.transmitter;
    bool answer_due = false;
    for (const tide_output_stream_t &stream : memory_.output_streams())
      answer_due = answer_due || (stream.id != 0 && (stream.acknack_due || stream.heartbeat_due));
    return t.execution_buffer.count > 0 || t.control_count > 0 || answer_due;
  }

  // Outside of the critical section any event may happen, and may take long.
  void preempt() {
    if (sections_ > 0 || !trouble.empty()) return;
    if (open_ && !busy_ && !eager_now_ && is_work_waiting()) trouble = "the wire is idle although a frame could go";
    if (depth_ >= 5 || !chance(30)) return;
    depth_++;
    preemptions++;
    act();
    depth_--;
  }

  // The link has a single context, which does not preempt itself.
  void act() {
    const auto choice = random_() % 8;
    const bool of_link = choice == 3 || choice >= 5;
    if (of_link && in_link_) return;
    in_link_ = in_link_ || of_link;
    act(choice);
    if (of_link) in_link_ = false;
  }

  void act(unsigned long choice) {
    switch (choice) {
      case 0:
      case 1:
      case 2: return submit(static_cast<uint8_t>(random_() % levels));
      case 3: return hear();
      case 4: (void)tide_daemon_process_most_urgent(&daemon); return;
      case 5: (void)tide_daemon_poll(&daemon); return;
      case 6:
        if (chance(10)) return open_ ? detach() : attach();
        [[fallthrough]];
      default:
        if (busy_) transmitted();
    }
  }

  void submit(uint8_t level) {
    tide_node_t *node = nullptr;
    if (tide_daemon_acquire(&daemon, 12, TIDE_PRIORITY(level, 0), &node) != TIDE_OK) return;
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, 1, 8);
    node->length = 12;
    if (chance(20)) node->expires_ns = now_ns_ + static_cast<int64_t>(random_() % 2000);
    (void)tide_daemon_submit(&daemon, node, chance(50) ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level));
  }

  void hear() {
    const auto level = static_cast<uint8_t>(random_() % levels);
    const uint8_t stream = TIDE_STREAM_RELIABLE(level);
    Bytes bytes = peer::message(stream, static_cast<uint16_t>(random_() % 4), {peer::submessage(0x09, Bytes(8))});
    for (const tide_output_stream_t &each : memory_.output_streams()) {
      if (each.id != stream || !chance(60)) continue;
      bytes = acknack(stream, chance(80) ? each.next_to_send : each.first_unacknowledged, chance(30) ? 1 : 0);
    }
    tide_daemon_on_message(&daemon, bytes.data(), bytes.size());
  }

  // A program may submit messages from here, too.
  void node_done() {
    if (depth_ < 5 && chance(10)) submit(static_cast<uint8_t>(random_() % levels));
  }

  void attach() {
    open_ = true;
    const tide_link_t link{
        this, [](void *self, const tide_frame_parts_t *frame) { return static_cast<Machine *>(self)->start(*frame); },
        nullptr, nullptr, 0};
    EXPECT_EQ(tide_daemon_attach_link(&daemon, &link, 0), TIDE_OK);
  }

  void detach() {
    open_ = busy_ = false;
    tide_daemon_detach_link(&daemon);
  }

  void transmitted() {
    busy_ = false;
    tide_daemon_on_transmit_complete(&daemon);
  }

  int start(const tide_frame_parts_t &frame) {
    starts++;
    if (busy_) trouble = "started on a busy wire";
    if (!open_) trouble = "started on a line that was taken away";
    preempt(); /* other contexts run while the message is prepared for the hardware */
    const tide_transmitter_t &t = daemon.transmitter;
    const auto *urgent = reinterpret_cast<const tide_node_t *>(tide_queue_head(&t.execution_buffer));
    const bool is_data = frame.body_bytes > 0;
    if (is_data && urgent != nullptr && TIDE_STREAM_LEVEL(urgent->stream) > TIDE_PRIORITY_LEVEL(frame.priority))
      overtaken++;
    if (chance(eager_ * 10)) {
      if (chance(30)) return TIDE_ERROR_LINK;
      tide_daemon_on_transmit_complete(&daemon);
      return TIDE_OK;
    }
    busy_ = true;
    preempt(); /* other contexts run before start returns */
    return TIDE_OK;
  }

  std::mt19937 random_;
  const unsigned eager_;
  const bool eager_now_ = eager_ > 0; /* the next caller finds the wire free, so the wire may be idle for a moment */
  int sections_ = 0, depth_ = 0;
  bool open_ = false, busy_ = false, in_link_ = false;
  int64_t now_ns_ = 1;
  tide_platform_t platform_{};
  DaemonMemory memory_;
};

TEST(daemon_wire, is_never_idle_because_somebody_is_preempted) {
  unsigned preemptions = 0, starts = 0;
  for (uint32_t seed = 1; seed <= 300; seed++) {
    Machine machine(seed, 0);
    machine.run(400);
    machine.drain();
    ASSERT_EQ(machine.trouble, "") << "seed " << seed;
    ASSERT_EQ(machine.overtaken, 0u) << "seed " << seed;
    preemptions += machine.preemptions;
    starts += machine.starts;
  }
  EXPECT_GT(preemptions, 10'000u);
  EXPECT_GT(starts, 10'000u);
}

TEST(daemon_wire, survives_links_that_refuse_or_are_done_at_once) {
  unsigned told = 0;
  for (uint32_t seed = 1; seed <= 300; seed++) {
    Machine machine(seed, 1 + seed % 10);
    machine.run(400);
    machine.drain();
    if (seed % 10 == 9) told += machine.submit_is_told_of() ? 1 : 0;
    ASSERT_EQ(machine.trouble, "") << "seed " << seed;
  }
  EXPECT_GT(told, 20u);  // of 30; the others were preempted by a context that closed the line
}

}  // namespace daemon_wire_test
