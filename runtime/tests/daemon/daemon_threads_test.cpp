// SPDX-License-Identifier: Apache-2.0
// The daemon between real threads: submitters, lanes that process and release, and a thread for each link that loses
// frames, damages them and is cut now and then. It is also meant to be run under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "daemon_memory.h"
#include "daemon_peer.h"
#include "threads.h"
#include "tide/daemon.h"

namespace daemon_threads_test {

using peer::Bytes;

tide::test::Threads world;  // total of all daemons

constexpr int levels = 3, messages_each = 400, submitters = 3, lanes = 2;

// Two daemons and the line between them. On each side, one thread is the link's context: it takes received frames, puts
// started frames on the line, reports their end, and polls.
struct Side {
  Side(bool use_frames, uint32_t seed) : framed(use_frames), random(seed) {
    tide_daemon_config_t config{};
    memory.give(config,
                {.classes = {{64, 24}, {4096, 4}}, .streams = 6, .slots = 16, .reassemblies = 4, .slot_bytes = 256});
    config.platform = &world.platform;
    config.transmitter.message_bytes = 256;
    config.transmitter.heartbeat_delay_ns = -1;
    config.transmitter.heartbeat_period_ns = 10'000'000;
    config.receiver.context = this;
    config.receiver.on_submessage = [](void *context, const tide_delivery_t *delivery) {
      static_cast<Side *>(context)->delivered(*delivery);
    };
    config.on_activity = [](void *context) { static_cast<Side *>(context)->activities++; };
    config.context = this;
    status = tide_daemon_init(&daemon, &config);
    tide_daemon_set_session(&daemon, 0x81, 0);
  }

  // This needs no lock, because the daemon promises only one call at a time for each stream.
  void delivered(const tide_delivery_t &delivery) {
    uint32_t index;
    std::memcpy(&index, delivery.submessage.body, 4);
    const uint8_t stream = delivery.header.stream;
    if (TIDE_STREAM_IS_RELIABLE(stream)) {
      if (index != next_index[stream]) wrong++;
      next_index[stream] = index + 1;
    } else {
      if (index < next_index[stream]) wrong++;
      next_index[stream] = index + 1;
    }
    if (index % 3 != 0) return;
    tide_receiver_retain(&daemon.receiver, &delivery);
    const std::lock_guard lock(mutex);
    samples.push_back({delivery.memory, delivery.reassembled});
  }

  void release_one() {
    std::pair<void *, bool> sample;
    {
      const std::lock_guard lock(mutex);
      if (samples.empty()) return;
      sample = samples.front();
      samples.pop_front();
    }
    tide_daemon_release(&daemon, sample.first, sample.second);
  }

  static int start(void *context, const tide_frame_parts_t *frame) {
    auto *side = static_cast<Side *>(context);
    const std::lock_guard lock(side->mutex);
    if (!side->open) return TIDE_ERROR_LINK;
    side->started = peer::flatten(*frame);
    side->busy = true;
    return TIDE_OK;
  }

  void attach() {
    {
      const std::lock_guard lock(mutex);
      open = true;
      busy = false;
    }
    const tide_link_t link{this, start, nullptr, nullptr, 0};
    ASSERT_EQ(tide_daemon_attach_link(&daemon, &link, 1), TIDE_OK);
  }

  void cut() {
    {
      const std::lock_guard lock(mutex);
      open = false;
    }
    tide_daemon_detach_link(&daemon);
    for (int turns = 0; turns < 100; ++turns) world.turn();
    attach();
  }

  void hear(const Bytes &bytes) {
    if (framed)
      tide_daemon_on_bytes(&daemon, bytes.data(), bytes.size());
    else
      tide_daemon_on_message(&daemon, bytes.data(), bytes.size());
  }

  Bytes on_line(const Bytes &message) {
    if (!framed) return message;
    Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
    const int length =
        tide_framing_encode(frame.data(), frame.size(), 0, 1, message.data(), message.size(), nullptr, 0);
    frame.resize(static_cast<size_t>(length));
    if (random() % 50 == 0) frame[random() % frame.size()] ^= 2;
    return frame;
  }

  void run_link() {
    attach();
    int64_t next_poll = 0;
    int handled = 0;
    while (!stop) {
      Bytes heard, sent;
      bool did_send = false;
      {
        const std::lock_guard lock(mutex);
        if (!inbox.empty()) {
          heard = std::move(inbox.front());
          inbox.pop_front();
        }
        if (busy) {
          sent = std::move(started);
          busy = false;
          did_send = true;
        }
      }
      if (!heard.empty()) hear(heard);
      if (did_send) {
        if (++handled % 400 == 0) {
          cut();  // frames on the wire are lost with the line, without a report
        } else {
          if (random() % 20 != 0) other->receive(on_line(sent));
          tide_daemon_on_transmit_complete(&daemon);
        }
      }
      if (heard.empty() && !did_send && world.now_ns() < next_poll) {
        world.turn();
      } else {
        next_poll = tide_daemon_poll(&daemon);
      }
    }
  }

  void receive(Bytes bytes) {
    const std::lock_guard lock(mutex);
    inbox.push_back(std::move(bytes));
  }

  void run_submitter(uint8_t level) {
    std::mt19937 own(level);
    uint32_t best_effort = 0;
    for (uint32_t index = 0; index < messages_each;) {
      const bool reliable = own() % 4 != 0;
      const uint32_t bytes = reliable && own() % 40 == 0 ? 1000 + static_cast<uint32_t>(own() % 2000) : 20;
      tide_node_t *node;
      if (tide_daemon_acquire(&daemon, bytes, TIDE_PRIORITY(level, 0), &node) != TIDE_OK) {
        world.turn();
        continue;
      }
      if (own() % 50 == 0) {
        tide_daemon_abandon(&daemon, node);
        continue;
      }
      tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, 1, static_cast<uint16_t>(bytes - 4));
      std::memset(node->bytes + 4, level, bytes - 4);
      const uint32_t number = reliable ? index++ : best_effort++;
      std::memcpy(node->bytes + 4, &number, 4);
      node->length = bytes;
      const uint8_t stream = reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
      if (tide_daemon_submit(&daemon, node, stream) != TIDE_OK) wrong++;
    }
  }

  void run_lane() {
    while (!stop) {
      if (tide_daemon_most_urgent(&daemon) == TIDE_PRIORITY_NONE) {
        release_one();
        world.turn();
      } else {
        tide_daemon_process_most_urgent(&daemon);
      }
      if (samples_waiting() > 4) release_one();
    }
  }

  // True if everything is acknowledged and nothing is on its way to the line.
  bool is_at_rest() {
    const std::lock_guard lock(world.critical);
    return tide_daemon_is_idle(&daemon, 0) && !daemon.transmitter.busy;
  }

  size_t samples_waiting() {
    const std::lock_guard lock(mutex);
    return samples.size();
  }

  const bool framed;
  std::mt19937 random;
  Side *other = nullptr;
  tide_daemon_t daemon{};
  int status = TIDE_ERROR_STATE;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, activities{0};
  uint32_t next_index[256] = {};

  std::mutex mutex;  // lock of the line and of the list of samples
  bool open = false, busy = false;
  Bytes started;
  std::deque<Bytes> inbox;
  std::deque<std::pair<void *, bool>> samples;

  DaemonMemory memory;
};

class daemon_threads : public testing::TestWithParam<bool> {};

TEST_P(daemon_threads, nothing_reliable_is_lost_between_threads) {
  auto a = std::make_unique<Side>(GetParam(), 1), b = std::make_unique<Side>(GetParam(), 2);
  ASSERT_EQ(a->status, TIDE_OK);
  ASSERT_EQ(b->status, TIDE_OK);
  a->other = b.get();
  b->other = a.get();
  std::vector<std::thread> submitting, running;
  for (Side *side : {a.get(), b.get()}) {
    running.emplace_back([side] { side->run_link(); });
    for (int i = 0; i < lanes; ++i) running.emplace_back([side] { side->run_lane(); });
    for (uint8_t level = 0; level < submitters; ++level)
      submitting.emplace_back([side, level] { side->run_submitter(level); });
  }
  for (auto &thread : submitting) thread.join();
  EXPECT_TRUE(world.turns_until([&] { return a->is_at_rest() && b->is_at_rest(); }));
  for (Side *side : {a.get(), b.get()}) side->stop = true;
  for (auto &thread : running) thread.join();
  for (Side *side : {a.get(), b.get()}) {
    while (tide_daemon_most_urgent(&side->daemon) != TIDE_PRIORITY_NONE) tide_daemon_process_most_urgent(&side->daemon);
    while (!side->samples.empty()) side->release_one();
    EXPECT_EQ(side->wrong, 0);
    EXPECT_GT(side->activities, 0);
    EXPECT_EQ(side->daemon.transmitter.nodes_in_use, 0);
    for (uint8_t level = 0; level < levels; ++level)
      EXPECT_EQ(side->next_index[TIDE_STREAM_RELIABLE(level)], uint32_t{messages_each}) << "level " << int{level};
    EXPECT_GT(side->daemon.transmitter.counters.retransmissions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(links, daemon_threads, testing::Values(false, true),
                         [](const auto &each) { return each.param ? "bytes" : "messages"; });

// In start, a link may complete a message, or find that it is down.
struct Eager {
  peer::Bytes sent;
  tide_daemon_t *daemon = nullptr;
  int starts = 0;
  bool detach = false;
};

TEST(daemon_wire, completion_and_detachment_within_start) {
  Side side(false, 1);
  Eager eager;
  eager.daemon = &side.daemon;
  const tide_link_t link{&eager,
                         [](void *context, const tide_frame_parts_t *frame) -> int {
                           auto &self = *static_cast<Eager *>(context);
                           const Bytes before = peer::flatten(*frame);
                           if (++self.starts > 20) return TIDE_ERROR_LINK;
                           if (self.detach)
                             tide_daemon_detach_link(self.daemon);
                           else
                             tide_daemon_on_transmit_complete(self.daemon);
                           EXPECT_EQ(peer::flatten(*frame), before);
                           self.sent.push_back(before.at(8));
                           return TIDE_OK;
                         },
                         nullptr, nullptr, 0};
  auto submit = [&](uint8_t mark) {
    tide_node_t *node;
    ASSERT_EQ(tide_daemon_acquire(&side.daemon, 8, 0, &node), TIDE_OK);
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, 1, 4);
    std::memset(node->bytes + 4, mark, 4);
    node->length = 8;
    ASSERT_EQ(tide_daemon_submit(&side.daemon, node, TIDE_STREAM_BEST_EFFORT(0)), TIDE_OK);
  };
  submit(1);
  submit(2);
  EXPECT_EQ(tide_daemon_attach_link(&side.daemon, &link, 0), TIDE_OK);
  EXPECT_EQ(tide_daemon_attach_link(&side.daemon, &link, 0), TIDE_ERROR_STATE);
  submit(3);
  EXPECT_EQ(eager.sent, (Bytes{1, 2, 3}));
  eager.detach = true;
  submit(4);
  submit(5);
  EXPECT_EQ(eager.sent, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(side.daemon.transmitter.nodes_in_use, 2);
  eager.detach = false;
  EXPECT_EQ(tide_daemon_attach_link(&side.daemon, &link, 0), TIDE_OK);
  EXPECT_EQ(eager.sent, (Bytes{1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(side.daemon.transmitter.nodes_in_use, 0);
  // if a link cannot start a frame, the frame is lost and the next one follows
  eager.starts = 20;
  submit(6);
  submit(7);
  EXPECT_EQ(side.daemon.transmitter.nodes_in_use, 0);
}

TEST(daemon_wire, a_message_that_is_too_long_is_counted) {
  Side side(false, 1);
  tide_daemon_on_message(&side.daemon, Bytes(5000).data(), 5000);
  EXPECT_EQ(side.daemon.receiver.counters.malformed, 1u);
}

TEST(daemon_wire, a_full_pool_takes_back_what_has_expired) {
  Side side(false, 1);
  tide_node_t *node;
  for (int i = 0; i < 28; ++i) {
    ASSERT_EQ(tide_daemon_acquire(&side.daemon, 8, 0, &node), TIDE_OK);
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, 1, 4);
    node->length = 8;
    node->expires_ns = i == 5 ? 1 : TIDE_FOREVER;
    ASSERT_EQ(tide_daemon_submit(&side.daemon, node, TIDE_STREAM_RELIABLE(0)), TIDE_OK);
  }
  EXPECT_EQ(tide_daemon_acquire(&side.daemon, 8, 0, &node), TIDE_OK);
  EXPECT_EQ(side.daemon.transmitter.counters.expired, 1u);
  tide_node_t *none;
  EXPECT_EQ(tide_daemon_acquire(&side.daemon, 8, 0, &none), TIDE_ERROR_FULL);
  tide_daemon_abandon(&side.daemon, node);
}

}  // namespace daemon_threads_test
