// SPDX-License-Identifier: Apache-2.0
// A source of frames: when it is asked, what makes no callback ready, and refusals. exec_model_test.cpp states the
// order.
#include <algorithm>
#include <memory>

#include "exec_rules.h"

namespace exec_rules_test_frames {

using namespace exec_virtual;

// A source of frames: each frame has a priority and, optionally, the callback that it makes ready.
struct Frames {
  struct Frame {
    int32_t priority;
    tide_callback_t *callback;
  };
  std::vector<Frame> waiting;
  std::string order;
  int64_t poll_deadline = TIDE_FOREVER;
  int polls = 0;
  int refuse = 0;

  tide_source_t source() {
    return {this,
            [](void *context, tide_priority_t, tide_priority_t) -> int32_t {
              const auto &frames = static_cast<Frames *>(context)->waiting;
              return frames.empty() ? TIDE_PRIORITY_NONE : best(frames)->priority;
            },
            [](void *context, tide_priority_t, tide_priority_t) {
              auto *self = static_cast<Frames *>(context);
              return self->digest(best(self->waiting) - self->waiting.begin());
            },
            [](void *context) { return static_cast<Frames *>(context)->digest(0); },
            [](void *context) {
              auto *self = static_cast<Frames *>(context);
              self->polls++;
              return self->poll_deadline;
            },
            nullptr,
            nullptr};
  }
  static std::vector<Frame>::const_iterator best(const std::vector<Frame> &frames) {
    return std::max_element(frames.begin(), frames.end(),
                            [](const Frame &left, const Frame &right) { return left.priority < right.priority; });
  }
  int digest(int64_t place) {
    if (refuse != 0) return refuse;
    const Frame frame = waiting[static_cast<size_t>(place)];
    waiting.erase(waiting.begin() + place);
    order += static_cast<char>('0' + frame.priority);
    if (frame.callback == nullptr) return 0;
    tide_executor_notify(frame.callback);
    return 1;
  }
};

struct WithFrames : testing::Test {
  void start(tide_policy_t policy) {
    bench = std::make_unique<Bench>(policy);
    bench->config.source = frames.source();
    bench->init();
    a = std::make_unique<Probe>(*bench, log, 'a', 1, TIDE_CALLBACK_SUBSCRIPTION);
    b = std::make_unique<Probe>(*bench, log, 'b', 2, TIDE_CALLBACK_SUBSCRIPTION);
    c = std::make_unique<Probe>(*bench, log, 'c', 3, TIDE_CALLBACK_SUBSCRIPTION);
  }
  int round(int64_t deadline) { return tide_executor_round(&bench->executor, deadline); }
  Frames frames;
  std::string log;
  std::unique_ptr<Bench> bench;
  std::unique_ptr<Probe> a, b, c;
};

TEST_F(WithFrames, TideGoesOnDigestingWhatMakesNothingReady) {
  start(TIDE_POLICY_TIDE);
  frames.waiting = {{3, nullptr}, {3, nullptr}, {2, nullptr}, {3, &c->callback}, {0, nullptr}};
  a->notify();
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "c");
  EXPECT_EQ(frames.order, "333");
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "ca");
  EXPECT_EQ(frames.order, "3332");
}

TEST_F(WithFrames, FloodOfUselessFramesDoesNotHoldARoundForever) {
  for (const tide_policy_t policy : {TIDE_POLICY_TIDE, TIDE_POLICY_BATCH}) {
    for (const tide_trigger_t trigger : {tide_trigger_any, tide_trigger_all}) {
      start(policy);
      tide_executor_set_trigger(&bench->executor, trigger, nullptr);
      frames.waiting.assign(1000, {1, nullptr});
      EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
      EXPECT_GT(frames.waiting.size(), 800u);
    }
  }
}

TEST_F(WithFrames, SourceThatRefusesIsNotAskedInALoop) {
  for (const tide_policy_t policy : {TIDE_POLICY_TIDE, TIDE_POLICY_BATCH}) {
    start(policy);
    frames.waiting = {{3, &c->callback}};
    frames.refuse = TIDE_ERROR_FULL;
    EXPECT_EQ(round(100), TIDE_ERROR_TIMEOUT);
    a->notify();
    EXPECT_EQ(round(200), 1);
    EXPECT_LE(bench->machine.waits, 3);
    frames.refuse = 0;
    EXPECT_EQ(round(200), 1);
  }
}

TEST_F(WithFrames, PollIsCalledEveryRoundAndAtItsDeadline) {
  start(TIDE_POLICY_TIDE);
  frames.poll_deadline = 40;
  bench->machine.at(60, [&] { frames.poll_deadline = TIDE_FOREVER; });
  a->notify();
  EXPECT_EQ(round(100), 1);
  EXPECT_EQ(frames.polls, 1);
  frames.poll_deadline = 70;
  EXPECT_EQ(round(50), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.polls, 4) << "twice at 0, as the event of the notify was still set, and at 50";
  EXPECT_EQ(round(90), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.polls, 7) << "at 50, 70 and 90";
}

// Counted like the updates of the ReadySet in the paper.
TEST_F(WithFrames, AnUpdateOfTheSetIsAChoiceThatAskedTheSource) {
  start(TIDE_POLICY_TIDE);
  const auto updates = [&] {
    tide_executor_counters_t counters{};
    tide_executor_get_counters(&bench->executor, &counters);
    return counters.set_updates;
  };
  a->notify();
  b->notify();
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(frames.polls, 2);
  EXPECT_EQ(updates(), 2u);
  frames.waiting = {{3, &c->callback}};
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(updates(), 3u) << "a frame, and the callback that it made ready, are one";
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(updates(), 3u) << "it brought nothing";
  bench->machine.at(15, [&] { a->notify(); });
  EXPECT_EQ(round(100), 1);
  EXPECT_EQ(updates(), 4u) << "a wait, with what is asked before and after it";
}

}  // namespace exec_rules_test_frames
