// SPDX-License-Identifier: Apache-2.0
// Nodes, entities and executors are created, removed or ended at bad moments: in a callback, while a callback runs on
// another lane, and with pending requests.
#include <future>
#include <stdexcept>

#include "program.h"

namespace tide_rclcpp {
namespace {

class Lifetimes : public Program {};

// A point at which callbacks wait until the test lets them continue.
class Gate {
 public:
  void pass() {
    entered_++;
    (void)eventually([this] { return open_.load(); });
  }
  void open() { open_ = true; }
  [[nodiscard]] int entered() const { return entered_; }

 private:
  std::atomic<int> entered_{0};
  std::atomic<bool> open_{false};
};

// A timer in an executor. Its ticks show that the executor still runs callbacks.
class Ticking {
 public:
  explicit Ticking(Executor &executor) : node_(std::make_shared<rclcpp::Node>("ticking", space())) {
    const auto count = count_;
    timer_ = node_->create_wall_timer(milliseconds(2), [count] { (*count)++; });
    executor.add_node(node_);
  }
  [[nodiscard]] bool goes_on() const {
    return eventually([count = count_, before = count_->load()] { return *count > before + 3; });
  }

 private:
  std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<rclcpp::Node> node_;
  rclcpp::TimerBase::SharedPtr timer_;
};

TEST_F(Lifetimes, ANodeThatEndsWhileItsCallbackRunsOnAnotherLane) {
  for (const bool is_removed : {true, false}) {
    Executor executor(with({"a from 0", "b from 0"}));
    const Ticking ticking(executor);
    const Spinning spinning(executor);
    const auto gate = std::make_shared<Gate>();
    auto node = make_node("ends");
    auto timer = node->create_wall_timer(milliseconds(1), [gate] { gate->pass(); });
    executor.add_node(node);
    ASSERT_TRUE(eventually([&] { return gate->entered() == 1; }));
    if (is_removed) executor.remove_node(node);
    const std::weak_ptr<rclcpp::Node> watched = node;
    const std::weak_ptr<rclcpp::TimerBase> watched_timer = timer;
    timer.reset();
    node.reset();
    EXPECT_TRUE(eventually([&] { return watched.expired(); })) << "a callback that runs keeps no node";
    EXPECT_FALSE(watched_timer.expired()) << "but what it needs itself";
    EXPECT_TRUE(ticking.goes_on());
    gate->open();
    EXPECT_TRUE(eventually([&] { return watched_timer.expired() && gate.use_count() == 1; }));
    EXPECT_TRUE(ticking.goes_on());
    EXPECT_EQ(gate->entered(), 1) << "it starts no more";
  }
}

// Messages arrive for a subscription while it is being destroyed, and an update finds that it no longer exists.
TEST_F(Lifetimes, SubscriptionsThatEndUnderAFloodOfMessages) {
  Executor executor(with({"a from 0", "b from 0"}));
  const Ticking ticking(executor);
  const Spinning spinning(executor);
  const auto node = make_node("flooded");
  executor.add_node(node);
  const auto publisher = node->create_publisher<Message>(space() + "/flood", rclcpp::QoS(10));
  std::atomic<bool> ends{false};
  std::thread flood([&] {
    while (!ends) publisher->publish(message(1));
  });
  std::vector<std::thread> comers;
  for (int comer = 0; comer < 2; comer++) {
    comers.emplace_back([&] {
      for (int round = 0; round < 100; round++) {
        const auto runs = std::make_shared<std::atomic<int>>(0);
        auto subscription =
            node->create_subscription<Message>(space() + "/flood", 10, [runs](Message::ConstSharedPtr) { (*runs)++; });
        EXPECT_TRUE(eventually([&] { return *runs > 0; })) << "in round " << round;
      }
    });
  }
  for (std::thread &one : comers) one.join();
  ends = true;
  flood.join();
  EXPECT_TRUE(ticking.goes_on());
}

TEST_F(Lifetimes, AClientThatGoesWithRequestsUnderWay) {
  Executor executor(with({"a from 0", "b from 0"}));
  const Ticking ticking(executor);
  const auto node = make_node("asked");
  const auto gate = std::make_shared<Gate>();
  const auto group = node->create_callback_group(rclcpp::CallbackGroupType::Reentrant);
  const auto service = node->create_service<Call>(
      space() + "/held",
      [gate](const Call::Request::SharedPtr request, const Call::Response::SharedPtr response) {
        gate->pass();
        response->result.names = request->prefixes;
      },
      rclcpp::ServicesQoS(), group);
  executor.add_node(node);
  const Spinning spinning(executor);
  const auto answers = std::make_shared<std::atomic<int>>(0);
  const auto count = [answers](rclcpp::Client<Call>::SharedFuture) { (*answers)++; };
  const auto asker = make_node("asker");
  executor.add_node(asker);
  auto client = asker->create_client<Call>(space() + "/held");
  ASSERT_TRUE(client->wait_for_service(seconds(20)));
  auto future = client->async_send_request(std::make_shared<Call::Request>()).future;
  (void)client->async_send_request(std::make_shared<Call::Request>(), count);
  ASSERT_TRUE(eventually([&] { return gate->entered() > 0; }));
  const std::weak_ptr<rclcpp::Client<Call>> watched = client;
  client.reset();
  EXPECT_TRUE(eventually([&] { return watched.expired(); }));
  EXPECT_THROW((void)future.get(), std::future_error) << "nobody answers any more";
  gate->open();
  EXPECT_TRUE(eventually([&] { return gate->entered() == 2; }));
  client = asker->create_client<Call>(space() + "/held");
  ASSERT_TRUE(client->wait_for_service(seconds(20)));
  (void)client->async_send_request(std::make_shared<Call::Request>(), count);
  EXPECT_TRUE(eventually([&] { return *answers == 1; })) << "the next client is answered";
  EXPECT_TRUE(ticking.goes_on());
  EXPECT_EQ(*answers, 1);
}

// One lane throws in a callback while another lane is in the same callback.
TEST_F(Lifetimes, AnExceptionWaitsForTheOtherRunOfAReentrantCallback) {
  Executor executor(with({"a from 0", "b from 0"}));
  const auto node = make_node("reentrant");
  const auto group = node->create_callback_group(rclcpp::CallbackGroupType::Reentrant);
  const auto gate = std::make_shared<Gate>();
  std::atomic<int> runs{0};
  const auto timer = node->create_wall_timer(
      milliseconds(1),
      [&] {
        const int run = ++runs;
        if (run == 1) gate->pass();
        if (run == 2) throw std::domain_error("from a second lane");
        if (run == 4) executor.cancel();
      },
      group);
  executor.add_node(node);
  std::atomic<bool> ended{false};
  std::string what;
  std::thread spinner([&] {
    try {
      executor.spin();
    } catch (const std::domain_error &error) {
      what = error.what();
    }
    ended = true;
  });
  ASSERT_TRUE(eventually([&] { return runs == 2; }));
  std::this_thread::sleep_for(milliseconds(20));  // clock: no event shows that no callback begins
  EXPECT_FALSE(ended) << "the first run is not over";
  EXPECT_EQ(runs, 2) << "and no other begins";
  gate->open();
  spinner.join();
  EXPECT_EQ(what, "from a second lane");
  EXPECT_NO_THROW(executor.spin()) << "it can go on";
  EXPECT_GE(runs, 4);
}

TEST_F(Lifetimes, SimulatedTimeThatJumpsBack) {
  const auto clock_node = make_node("clock");
  const auto publisher = clock_node->create_publisher<Message>("/clock", rclcpp::ClockQoS());
  const auto node = std::make_shared<rclcpp::Node>(
      "simulated", space(),
      rclcpp::NodeOptions().append_parameter_override("use_sim_time", true).use_clock_thread(false));
  std::atomic<int> runs{0};
  const auto timer = rclcpp::create_timer(node, node->get_clock(), rclcpp::Duration(seconds(10)), [&] { runs++; });
  Executor executor(with({"a from 0", "b from 0"}));
  executor.add_node(node);
  const Ticking ticking(executor);
  const Spinning spinning(executor);
  ASSERT_TRUE(eventually([&] { return publisher->get_subscription_count() > 0; }));
  const auto set = [&](int second) {
    return eventually([&] {
      publisher->publish(message(second));
      return node->now().nanoseconds() == std::int64_t{second} * 1000000000;
    });
  };
  ASSERT_TRUE(set(100));
  ASSERT_TRUE(eventually([&] { return runs == 1; }));
  ASSERT_TRUE(set(50));
  EXPECT_TRUE(ticking.goes_on());
  ASSERT_TRUE(set(59));
  EXPECT_TRUE(ticking.goes_on());
  EXPECT_EQ(runs, 1) << "a period begins where time jumped to";
  ASSERT_TRUE(set(60));
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  ASSERT_TRUE(set(71));
  EXPECT_TRUE(eventually([&] { return runs == 3; }));
}

TEST_F(Lifetimes, ANodeAddedFromACallbackAndOneRemovedFromItsOwn) {
  for (const bool lanes : {false, true}) {
    Executor executor(lanes ? with({"a from 0", "b from 0"}) : Options{});
    const auto adds = make_node("adds");
    auto added = make_node("added");
    std::atomic<int> runs{0};
    const auto once = added->create_wall_timer(milliseconds(1), [&] {
      if (++runs < 3) return;
      executor.remove_node(added);
    });
    std::atomic<bool> has_added{false};
    const auto timer = adds->create_wall_timer(milliseconds(1), [&] {
      if (!has_added.exchange(true)) executor.add_node(added);
    });
    executor.add_node(adds);
    const Ticking ticking(executor);
    const Spinning spinning(executor);
    EXPECT_TRUE(eventually([&] { return runs == 3; }));
    EXPECT_TRUE(ticking.goes_on());
    EXPECT_EQ(runs, 3) << "nothing of it runs after it was removed";
  }
}

// As rclcpp documents, an executor refuses to spin within one of its callbacks; another executor may spin there.
TEST_F(Lifetimes, SpinsWithinACallback) {
  for (const bool lanes : {false, true}) {
    Executor executor(lanes ? with({"a from 0", "b from 0"}) : Options{});
    const auto outer = make_node("outer"), inner = make_node("inner");
    Executor nested;
    const auto service = inner->create_service<Call>(
        space() + "/nested", [](const Call::Request::SharedPtr request, const Call::Response::SharedPtr response) {
          response->result.names = request->prefixes;
        });
    const auto client = inner->create_client<Call>(space() + "/nested");
    nested.add_node(inner);
    ASSERT_TRUE(client->wait_for_service(seconds(20)));
    std::atomic<int> refused{0}, answered{0};
    const auto timer = outer->create_wall_timer(milliseconds(1), [&] {
      if (answered > 0) return;
      std::promise<void> never;
      const auto future = never.get_future().share();
      const auto refuses = [&](const std::function<void()> &spin) {
        try {
          spin();
        } catch (const std::runtime_error &) {
          refused++;
        }
      };
      refuses([&] { (void)executor.spin_until_future_complete(future, milliseconds(1)); });
      refuses([&] { executor.spin_some(); });
      refuses([&] { executor.spin_once(milliseconds(1)); });
      const auto request = std::make_shared<Call::Request>();
      request->prefixes.emplace_back("here");
      auto answer = client->async_send_request(request).future.share();
      const auto code = nested.spin_until_future_complete(answer, seconds(20));
      answered = code == rclcpp::FutureReturnCode::SUCCESS && answer.get()->result.names == request->prefixes ? 1 : 2;
    });
    executor.add_node(outer);
    const Ticking ticking(executor);
    const Spinning spinning(executor);
    EXPECT_TRUE(eventually([&] { return answered > 0; }));
    EXPECT_EQ(answered, 1);
    EXPECT_EQ(refused, 3);
    EXPECT_TRUE(ticking.goes_on());
  }
}

TEST_F(Lifetimes, AThousandTimersThatComeAndGo) {
  constexpr std::size_t kTimers = 1000;
  Executor executor(with({"a from 0", "b from 0", "c from 4"}, {"some 5: timer * 20ms"}));
  const auto node = make_node("many");
  executor.add_node(node);
  const Spinning spinning(executor);
  std::vector<std::unique_ptr<std::atomic<int>>> runs;
  std::vector<rclcpp::TimerBase::SharedPtr> timers;
  for (std::size_t count = 0; count < kTimers; count++) {
    runs.push_back(std::make_unique<std::atomic<int>>(0));
    timers.push_back(node->create_wall_timer(milliseconds(count % 2 == 0 ? 20 : 30), [&one = *runs.back()] { one++; }));
  }
  const auto all_run = [&](std::size_t step) {
    std::vector<int> before;
    for (const auto &one : runs) before.push_back(*one);
    return eventually([&] {
      for (std::size_t index = 0; index < kTimers; index += step) {
        if (*runs[index] < before[index] + 2) return false;
      }
      return true;
    });
  };
  EXPECT_TRUE(all_run(1));
  for (std::size_t index = 1; index < kTimers; index += 2) timers[index]->cancel();
  EXPECT_TRUE(all_run(2));
  for (std::size_t index = 1; index < kTimers; index += 2) timers[index]->reset();
  EXPECT_TRUE(all_run(1));
  timers.clear();
  const auto next = node->create_wall_timer(seconds(100), [] {});
  EXPECT_TRUE(eventually([&] { return executor.without_chain().size() < kTimers / 4; }))
      << "what has gone is forgotten at the next change";
}

// A lane that has used up its budget ends with the others. If budgets are not permitted here, the lanes run without
// them.
TEST_F(Lifetimes, CancelEndsALaneWhoseBudgetIsUsedUp) {
  for (const char *urgent : {"urgent from 2 budget 2ms 60s fifo 20 low 10 normal if refused",
                             "urgent from 2 deadline 2ms 1s normal if refused"}) {
    Executor executor(with({"rest from 0", urgent}, {"work 2: timer /nobody, timer * 1ms"}));
    const auto node = make_node("budget");
    const auto group = node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive);
    std::atomic<int> runs{0};
    const auto timer = node->create_wall_timer(
        milliseconds(1),
        [&] {
          for (const auto begin = std::chrono::steady_clock::now();
               std::chrono::steady_clock::now() < begin + milliseconds(4);) {}
          runs++;
        },
        group);
    executor.add_node(node);
    const Ticking ticking(executor);
    const Spinning spinning(executor);
    EXPECT_TRUE(eventually([&] { return runs > 0; }));
    EXPECT_TRUE(ticking.goes_on());
  }
}

TEST_F(Lifetimes, AnExecutorThatEndsEndsTheSpinOfAnotherThread) {
  for (int round = 0; round < 20; round++) {
    for (const bool lanes : {false, true}) {
      auto executor = std::make_unique<Executor>(lanes ? with({"a from 0", "b from 0"}) : Options{});
      const auto gate = std::make_shared<Gate>();
      const auto node = make_node("left");
      const auto timer = node->create_wall_timer(milliseconds(1), [gate] { gate->pass(); });
      executor->add_node(node);
      std::thread spinner([spinning = executor.get()] { spinning->spin(); });
      ASSERT_TRUE(eventually([&] { return gate->entered() > 0; }));
      std::thread opens([&] {
        std::this_thread::sleep_for(milliseconds(round % 3));  // clock: the time until the callback may end
        gate->open();
      });
      executor.reset();
      spinner.join();
      opens.join();
    }
  }
}

}  // namespace
}  // namespace tide_rclcpp
