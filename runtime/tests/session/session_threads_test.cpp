// SPDX-License-Identifier: Apache-2.0
// Real threads: several writers, an executor and the link's thread on one session, while the agent ends and restarts.
// It is mainly for ThreadSanitizer; without it, the test still checks that nothing is lost or out of order.
#include <atomic>
#include <mutex>
#include <thread>

#include "session_bench.h"
#include "threads.h"

namespace session_threads_test {

using namespace bench;

class Threads {
 public:
  Threads() : agent(clock_, [this](const Bytes &bytes) { answer(bytes); }) {
    tide_session_config_t config{};
    config.daemon.platform = &world.platform;
    memory_.give(config.daemon, {.classes = {{256, 40}}, .streams = 8, .slots = 16});
    tide_transmitter_config_t &out = config.daemon.transmitter;
    out.message_bytes = 508;
    out.pad_last = true;
    out.heartbeat_delay_ns = -1;
    config.key = 7;
    config.session = 0x81;
    config.mtu = 512;
    config.objects = objects_;
    config.object_count = std::size(objects_);
    config.silence_limit_ns = 100 * ms;
    config.connect_period_ns = 100 * ms;
    config.context = this;
    EXPECT_EQ(tide_session_init(&session, &config), TIDE_OK);
    const tide_link_t link = {this, start, nullptr, nullptr, 0};
    EXPECT_EQ(tide_daemon_attach_link(&session.daemon, &link, 0), TIDE_OK);
    link_ = std::thread([this] { run_link(); });
  }
  ~Threads() {
    stop_ = true;
    link_.join();
  }

  // Runs a function in the link's thread, which also runs the agent.
  void with_agent(const std::function<void()> &action) {
    std::atomic<bool> done = false;
    {
      std::lock_guard lock(wire_mutex_);
      actions_.push_back([&] {
        action();
        done = true;
      });
    }
    world.turns_until([&] { return done.load(); });
  }

 private:
  Clock clock_;

 public:
  tide::test::Threads world;
  Agent agent;
  tide_session_t session{};

 private:
  static int start(void *context, const tide_frame_parts_t *frame) {
    Threads *self = static_cast<Threads *>(context);
    Bytes bytes(frame->head, frame->head + frame->head_bytes);
    bytes.insert(bytes.end(), frame->body, frame->body + frame->body_bytes);
    bytes.insert(bytes.end(), frame->tail, frame->tail + frame->tail_bytes);
    std::lock_guard lock(self->wire_mutex_);
    self->wire_.push_back(std::move(bytes));
    return TIDE_OK;
  }
  void answer(const Bytes &bytes) { answers_.push_back(bytes); }

  void run_link() {
    while (!stop_) {
      std::deque<Bytes> arrived;
      std::deque<std::function<void()>> actions;
      {
        const std::lock_guard lock(wire_mutex_);
        arrived.swap(wire_);
        actions.swap(actions_);
      }
      if (arrived.empty() && actions.empty()) world.turn();
      clock_.now_ns = world.now_ns();
      for (auto &action : actions) action();
      for (const Bytes &bytes : arrived) {
        tide_daemon_on_transmit_complete(&session.daemon);
        agent.receive(bytes);
      }
      while (clock_.run_next(world.now_ns())) {
      }
      while (!answers_.empty()) {
        const Bytes bytes = answers_.front();
        answers_.pop_front();
        tide_daemon_on_message(&session.daemon, bytes.data(), bytes.size());
      }
      tide_session_poll(&session);
    }
  }

  std::mutex wire_mutex_;
  std::deque<Bytes> wire_, answers_;
  std::deque<std::function<void()>> actions_;
  std::atomic<bool> stop_ = false;
  std::thread link_;
  DaemonMemory memory_;
  tide_object_t *objects_[8]{};
};

TEST(SessionThreads, WritersLinkAndExecutorWhileTheAgentComesAndGoes) {
  constexpr int writers = 3, samples = 200;
  Threads t;
  tide_object_t objects[3 + writers]{};
  const uint8_t kinds[] = {1, 2, 3, 5, 5, 5};
  const uint16_t parents[] = {0, 0x11, 0x11, 0x13, 0x13, 0x13};
  tide_session_open(&t.session);
  for (size_t i = 0; i < std::size(objects); ++i) {
    objects[i].description.kind = kinds[i];
    objects[i].description.representation = TIDE_XRCE_BY_XML;
    objects[i].description.parent = parents[i];
    ASSERT_EQ(tide_session_add_object(&t.session, &objects[i]), TIDE_OK);
  }
  ASSERT_EQ(tide_session_wait_object(&t.session, &objects[5], t.world.now_ns() + 20 * s, nullptr), TIDE_OK);
  std::atomic<bool> done = false;
  std::thread executor([&] {
    while (!done) {
      while (tide_daemon_process_most_urgent(&t.session.daemon) > 0) {
      }
      t.world.turn();
    }
  });
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      for (int i = 0; i < samples;) {
        tide_write_t write;
        const tide_priority_t priority = TIDE_PRIORITY(w, 0);
        if (tide_session_write_begin(&t.session, &write, objects[3 + w].id, true, priority, 4) == TIDE_OK) {
          tide_cdr_put_u32(&write.cdr, static_cast<uint32_t>(i));
          ASSERT_EQ(tide_session_write_end(&write), TIDE_OK);
          ++i;
        }
        for (int turns = 0; turns < 20; ++turns) t.world.turn();
      }
    });
  // The agent ends while samples are sent, and restarts when the session has noticed.
  const auto samples_of_agent = [&] {
    size_t count = 0;
    t.with_agent([&] { count = t.agent.samples.size(); });
    return count;
  };
  t.world.turns_until([&] { return samples_of_agent() > writers * samples / 4; });
  t.with_agent([&] { t.agent.die(); });
  const auto is_ready = [&] {
    const std::lock_guard lock(t.world.critical);
    return t.session.state == TIDE_SESSION_READY;
  };
  t.world.turns_until([&] { return !is_ready(); });
  t.with_agent([&] { t.agent.live(); });
  for (std::thread &thread : threads) thread.join();
  t.world.turns_until([&] { return is_ready() && tide_session_is_idle(&t.session, 0); });
  done = true;
  executor.join();
  t.with_agent([&] {
    EXPECT_EQ(t.agent.writes_to_unknown, 0u);
    EXPECT_GE(t.agent.create_clients, 2u);
    for (int w = 0; w < writers; ++w) {
      std::vector<uint32_t> got;
      for (const auto &[id, text] : t.agent.samples) {
        uint32_t value;
        std::memcpy(&value, text.data(), 4);
        if (id == objects[3 + w].id && std::find(got.begin(), got.end(), value) == got.end()) got.push_back(value);
      }
      ASSERT_EQ(got.size(), static_cast<size_t>(samples));
      for (uint32_t i = 0; i < samples; ++i) EXPECT_EQ(got[i], i);
    }
  });
}

}  // namespace session_threads_test
