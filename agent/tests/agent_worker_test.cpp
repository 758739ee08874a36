// SPDX-License-Identifier: Apache-2.0
// The worker, the thread that creates and deletes DDS objects.
#include "dds/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace tide::agent::test::agent_worker_test {

using Lane = Worker::Lane;

// Holds the worker until it is released.
struct Gate {
  explicit Gate(Worker &worker) {
    worker.add(std::make_shared<Lane>(), [opened = promise.get_future().share()] { opened.wait(); });
  }
  ~Gate() { promise.set_value(); }
  std::promise<void> promise;
};

TEST(Worker, TakesLanesInTurnsAndKeepsTheOrderOfEach) {
  std::vector<std::pair<int, int>> done;
  {
    Worker worker;
    const auto many = std::make_shared<Lane>(), few = std::make_shared<Lane>();
    const Gate gate(worker);
    for (int job = 0; job < 100; job++) worker.add(many, [&done, job] { done.emplace_back(0, job); });
    for (int job = 0; job < 2; job++) worker.add(few, [&done, job] { done.emplace_back(1, job); });
  }
  ASSERT_EQ(done.size(), 102u) << "the end waits for all";
  EXPECT_EQ(done[1], std::make_pair(1, 0)) << "waits for one job of the other lane";
  EXPECT_EQ(done[3], std::make_pair(1, 1));
  EXPECT_TRUE(std::is_sorted(done.begin() + 4, done.end()));
}

TEST(Worker, DoesWhatIsDueBeforeTheNextJob) {
  std::promise<void> done;
  Worker worker;
  const auto start = Worker::Clock::now();
  worker.add_at(start + std::chrono::hours(1), [] { FAIL(); });
  worker.add_at(start + std::chrono::milliseconds(20), [&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_GE(Worker::Clock::now() - start, std::chrono::milliseconds(20));
}

struct Counted {
  explicit Counted(std::atomic<int> &count) : count_(count) { count_++; }
  ~Counted() { count_--; }
  std::atomic<int> &count_;
};

struct Hands {
  Outbox outbox;
  Worker worker;
  std::shared_ptr<Lane> lane = std::make_shared<Lane>();
  Made::State result(Later<Counted> &later) {
    std::promise<void> made;
    later.await([&made] { made.set_value(); });
    made.get_future().wait();
    return later.state();
  }
};

TEST(Later, IsMadeRefusedOrFailsWithoutHarm) {
  std::atomic<int> count = 0;
  {
    Hands hands;
    Later<Counted> made(hands.worker, hands.outbox, hands.lane, [&] { return std::make_unique<Counted>(count); });
    Later<Counted> refused(hands.worker, hands.outbox, hands.lane, [] { return nullptr; });
    Later<Counted> failed(hands.worker, hands.outbox, hands.lane,
                          []() -> std::unique_ptr<Counted> { throw std::runtime_error("no"); });
    EXPECT_EQ(hands.result(made), Made::State::kMade);
    EXPECT_EQ(hands.result(refused), Made::State::kRefused);
    EXPECT_EQ(hands.result(failed), Made::State::kRefused);
    EXPECT_EQ(count, 1);
    bool told = false;
    made.await([&] { told = true; });
    EXPECT_TRUE(told) << "at once, as it is made";
  }
  EXPECT_EQ(count, 0) << "deleted by the worker";
}

TEST(Later, ThatIsGivenUpIsNeverMade) {
  std::atomic<int> count = 0, made = 0;
  {
    Hands hands;
    const Gate gate(hands.worker);
    Later<Counted> later(hands.worker, hands.outbox, hands.lane, [&] {
      made++;
      return std::make_unique<Counted>(count);
    });
    EXPECT_EQ(later.state(), Made::State::kUnderWay);
  }
  EXPECT_EQ(made, 0);
  EXPECT_EQ(count, 0);
}

}  // namespace tide::agent::test::agent_worker_test
