// SPDX-License-Identifier: Apache-2.0
// The executor with nodes of rclcpp and the real middleware: cases not covered by rclcpp's own tests of executors.
#include <stdexcept>

#include "program.h"

namespace tide_rclcpp {
namespace {

class Executors : public Program {};

// Messages for three callbacks wait when the spin begins. The callbacks run in the order of their chains' levels, the
// one without a chain last.
TEST_F(Executors, ChainsGoFirstByTopicAndNode) {
  const auto node = make_node("order");
  Executor executor(
      with({}, {"high 2: subscription " + space() + "/order " + space() + "/high",
                "low 1: subscription * " + space() + "/low", "vain 3: subscription /nobody /nothing, timer /nobody"}));
  std::string order;
  const auto subscribe = [&](const std::string &topic, char letter) {
    return node->create_subscription<Message>(space() + "/" + topic, 10,
                                              [&order, letter](const Message::SharedPtr) { order += letter; });
  };
  const auto none = subscribe("none", '.'), low = subscribe("low", 'l'), high = subscribe("high", 'h');
  std::vector<rclcpp::Publisher<Message>::SharedPtr> publishers;
  for (const char *topic : {"none", "low", "high"}) {
    publishers.push_back(node->create_publisher<Message>(space() + "/" + topic, 10));
    ASSERT_TRUE(eventually([&] { return publishers.back()->get_subscription_count() == 1; }));
  }
  executor.add_node(node);
  executor.spin_all(seconds(1));
  order.clear();
  for (const auto &publisher : publishers) {
    publisher->publish(message(1));
    publisher->publish(message(2));
  }
  for (const auto &publisher : publishers) {  // all messages must arrive before the first callback runs
    ASSERT_TRUE(publisher->wait_for_all_acked(seconds(20)));
  }
  executor.spin_all(seconds(1));
  EXPECT_EQ(order, "hhll..");
  EXPECT_EQ(executor.unmatched(),
            (std::vector<std::string>{"chain vain: subscription /nobody /nothing", "chain vain: timer /nobody"}));
  bool listed = false;
  for (const std::string &line : executor.without_chain()) listed = listed || line.find("/none") != std::string::npos;
  EXPECT_TRUE(listed) << "what is of no chain is listed";
}

TEST_F(Executors, AnUrgentLaneRunsBesideABusyOne) {
  const auto node = make_node("bands");
  Executor executor(with({"rest from 0", "urgent from 2"}, {"brake 2: timer * 5ms"}));
  std::atomic<int> urgent{0};
  std::atomic<bool> seen{false}, busy{false};
  const auto group = node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive);
  const auto brake = node->create_wall_timer(
      milliseconds(5), [&] { urgent++; }, group);
  const auto slow = node->create_wall_timer(milliseconds(1), [&] {
    busy = true;
    if (!seen) seen = eventually([&, before = urgent.load()] { return urgent > before + 3; });
  });
  executor.add_node(node);
  const Spinning spinning(executor);
  EXPECT_TRUE(eventually([&] { return seen.load(); }));
}

TEST_F(Executors, GroupsKeepCallbacksApart) {
  const auto node = make_node("groups");
  Executor executor(with({"a from 0", "b from 0", "c from 0"}));
  const auto exclusive = node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive);
  const auto reentrant = node->create_callback_group(rclcpp::CallbackGroupType::Reentrant);
  std::atomic<int> inside{0}, most{0}, itself{0}, most_itself{0};
  const auto enter = [](std::atomic<int> &here, std::atomic<int> &maximum) {
    const int now = ++here;
    int before = maximum;
    while (before < now && !maximum.compare_exchange_weak(before, now)) {}
    std::this_thread::sleep_for(milliseconds(3));  // clock: the callback's length
    here--;
  };
  std::vector<rclcpp::TimerBase::SharedPtr> timers;
  for (int count = 0; count < 6; count++) {
    timers.push_back(node->create_wall_timer(
        milliseconds(1), [&] { enter(inside, most); }, exclusive));
  }
  timers.push_back(node->create_wall_timer(
      milliseconds(1), [&] { enter(itself, most_itself); }, reentrant));
  executor.add_node(node);
  const Spinning spinning(executor);
  EXPECT_TRUE(eventually([&] { return most_itself > 1; })) << "a reentrant callback overlaps itself";
  EXPECT_EQ(most, 1);
}

TEST_F(Executors, AnExceptionComesOutOfTheSpinAndItGoesOn) {
  for (const bool lanes : {false, true}) {
    const auto node = make_node("exceptions");
    Executor executor(lanes ? with({"a from 0", "b from 0"}) : Options{});
    int runs = 0;
    const auto timer = node->create_wall_timer(milliseconds(1), [&] {
      if (++runs < 3) throw std::domain_error("from a timer");
      executor.cancel();
    });
    executor.add_node(node);
    EXPECT_THROW(executor.spin(), std::domain_error);
    EXPECT_FALSE(executor.is_spinning());
    EXPECT_EQ(executor.failed_callback(), "timer " + std::string(node->get_fully_qualified_name()) + " 1ms");
    const auto spin_until_it_runs = [&] {  // other callbacks of the node may run first
      for (const int before = runs; runs == before;) executor.spin_once();
    };
    EXPECT_THROW(spin_until_it_runs(), std::domain_error);
    EXPECT_NO_THROW(executor.spin());
    EXPECT_EQ(executor.failed_callback(), "");
    EXPECT_EQ(runs, 3);
  }
}

TEST_F(Executors, IntraProcessMessagesWithTheirChain) {
  const auto node = make_node("intra", true);
  Executor executor(with({}, {"second 2: subscription * " + space() + "/b"}));
  std::vector<const Message *> sent, got;
  std::string order;
  const auto first = node->create_subscription<Message>(space() + "/a", 10, [&](Message::UniquePtr) { order += 'a'; });
  const auto second = node->create_subscription<Message>(space() + "/b", 3, [&](Message::UniquePtr one) {
    order += 'b';
    got.push_back(one.get());
  });
  const auto to_first = node->create_publisher<Message>(space() + "/a", 10);
  const auto to_second = node->create_publisher<Message>(space() + "/b", 10);
  const auto publish = [&](const rclcpp::Publisher<Message>::SharedPtr &publisher) {
    auto one = std::make_unique<Message>();
    if (publisher == to_second) sent.push_back(one.get());
    publisher->publish(std::move(one));
  };
  publish(to_second);  // the executor does not know the node yet
  executor.add_node(node);
  publish(to_first);
  publish(to_second);
  executor.spin_all(seconds(1));
  EXPECT_EQ(order, "bba");
  EXPECT_EQ(got, sent) << "the very same messages";
  for (int count = 0; count < 100; count++) publish(to_second);
  const std::uint64_t before = executor.counters().callbacks_run;
  executor.spin_all(seconds(1));
  EXPECT_EQ(got.size(), 2u + 3u) << "the queue keeps three";
  EXPECT_LE(executor.counters().callbacks_run - before, 6u) << "and nobody runs for what it lost";
}

TEST_F(Executors, MessagesThatCameBetweenTwoExecutorsAreNotForgotten) {
  const auto node = make_node("between", true);
  int runs = 0;
  const auto subscription =
      node->create_subscription<Message>(space() + "/between", 10, [&](Message::UniquePtr) { runs++; });
  const auto publisher = node->create_publisher<Message>(space() + "/between", 10);
  {
    Executor first;
    first.add_node(node);
    publisher->publish(std::make_unique<Message>());
    publisher->publish(std::make_unique<Message>());
  }
  publisher->publish(std::make_unique<Message>());
  Executor second;
  second.add_node(node);
  second.spin_all(seconds(1));
  EXPECT_EQ(runs, 3);
}

TEST_F(Executors, SimulatedTimeByTheClockTopic) {
  const auto clock_node = make_node("clock");
  const auto publisher = clock_node->create_publisher<Message>("/clock", rclcpp::ClockQoS());
  const auto node = std::make_shared<rclcpp::Node>(
      "simulated", space(),
      rclcpp::NodeOptions().append_parameter_override("use_sim_time", true).use_clock_thread(false));
  std::atomic<int> runs{0};
  const auto timer =
      rclcpp::create_timer(node, node->get_clock(), rclcpp::Duration(std::chrono::seconds(10)), [&] { runs++; });
  Executor executor(with({"a from 0", "b from 0"}));
  std::atomic<int> rounds{0};
  const auto witness = node->create_wall_timer(milliseconds(1), [&] { rounds++; });
  executor.add_node(node);
  const Spinning spinning(executor);
  ASSERT_TRUE(eventually([&] { return publisher->get_subscription_count() > 0; }));
  const auto set = [&](int second) {
    return eventually([&] {
      publisher->publish(message(second));
      return node->now().nanoseconds() == std::int64_t{second} * 1000000000;
    });
  };
  const auto looks_again = [&] { return eventually([&, before = rounds.load()] { return rounds > before + 5; }); };
  ASSERT_TRUE(set(100));
  ASSERT_TRUE(eventually([&] { return runs == 1; })) << "the clock began at 0";
  timer->reset();
  runs = 0;
  ASSERT_TRUE(set(109));
  ASSERT_TRUE(looks_again());
  EXPECT_EQ(runs, 0);
  ASSERT_TRUE(set(110));
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
  ASSERT_TRUE(set(135));
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  ASSERT_TRUE(looks_again());
  EXPECT_EQ(runs, 2) << "what passed is skipped";
}

TEST_F(Executors, ServicesAndClients) {
  const auto node = make_node("calls");
  Executor executor(with({"a from 0", "b from 0"}));
  const auto service = node->create_service<Call>(
      space() + "/call", [](const Call::Request::SharedPtr request, const Call::Response::SharedPtr response) {
        response->result.names = request->prefixes;
      });
  const auto group = node->create_callback_group(rclcpp::CallbackGroupType::Reentrant);
  const auto client = node->create_client<Call>(space() + "/call", rclcpp::ServicesQoS(), group);
  executor.add_node(node);
  ASSERT_TRUE(client->wait_for_service(seconds(20)));
  for (int count = 0; count < 10; count++) {
    const auto request = std::make_shared<Call::Request>();
    request->prefixes.push_back(std::to_string(count));
    auto future = client->async_send_request(request);
    ASSERT_EQ(executor.spin_until_future_complete(future, seconds(20)), rclcpp::FutureReturnCode::SUCCESS);
    EXPECT_EQ(future.get()->result.names, request->prefixes);
  }
}

TEST_F(Executors, NodesComeAndGoWhileItSpins) {
  Executor executor(with({"a from 0", "b from 0", "c from 4"}, {"some 5: timer * 1ms"}));
  const Spinning spinning(executor);
  for (int round = 0; round < 20; round++) {
    const auto runs = std::make_shared<std::atomic<int>>(0);  // counts runs when they begin
    auto node = make_node("guest");
    executor.add_node(node);
    auto timer = node->create_wall_timer(milliseconds(round % 2 + 1), [runs] { (*runs)++; });
    ASSERT_TRUE(eventually([&] { return *runs > 1; }));
    if (round % 3 == 0) executor.remove_node(node);
    if (round % 3 == 1) timer.reset();
    const std::weak_ptr<rclcpp::Node> watched = node;
    timer.reset();
    node.reset();
    ASSERT_TRUE(eventually([&] { return watched.expired(); })) << "the executor keeps no node";
  }
}

// If several threads add a node at the same time, none of them uses a list of groups that is older than one that
// another thread has seen.
TEST_F(Executors, NodesAddedAtTheSameTimeAllStay) {
  Executor executor;
  std::vector<std::shared_ptr<rclcpp::Node>> nodes;
  for (const char *name : {"a", "b", "c", "d"}) nodes.push_back(make_node(name));
  executor.add_node(nodes[0]);
  const std::size_t callbacks = executor.without_chain().size();
  executor.remove_node(nodes[0]);
  ASSERT_GT(callbacks, 0u);
  for (int round = 0; round < 300; round++) {
    std::vector<std::thread> adding;
    for (const auto &node : nodes) adding.emplace_back([&executor, &node] { executor.add_node(node); });
    for (std::thread &one : adding) one.join();
    ASSERT_EQ(executor.without_chain().size(), nodes.size() * callbacks) << "in round " << round;
    for (const auto &node : nodes) executor.remove_node(node);
  }
}

TEST_F(Executors, WaitablesGetTheirPriorityByThemselves) {
  class Bell : public rclcpp::Waitable {
   public:
    explicit Bell(std::function<void()> function) : function_(std::move(function)) {}
    void ring() { on_ready_(1, 7); }
    std::shared_ptr<void> take_data() override { return nullptr; }
    std::shared_ptr<void> take_data_by_entity_id(std::size_t part) override {
      EXPECT_EQ(part, 7u);
      return nullptr;
    }
    void execute(const std::shared_ptr<void> &) override { function_(); }
    void set_on_ready_callback(std::function<void(std::size_t, int)> callback) override { on_ready_ = callback; }
    void clear_on_ready_callback() override {
      on_ready_ = [](std::size_t, int) {};
    }

   private:
    std::function<void()> function_;
    std::function<void(std::size_t, int)> on_ready_ = [](std::size_t, int) {};
  };
  const auto node = make_node("bells");
  std::string order;
  const auto first = std::make_shared<Bell>([&] { order += '1'; });
  const auto second = std::make_shared<Bell>([&] { order += '2'; });
  for (const auto &bell : {first, second}) node->get_node_waitables_interface()->add_waitable(bell, nullptr);
  Executor executor;
  EXPECT_THROW(executor.set_priority(*second, 3), std::invalid_argument);
  executor.add_node(node);
  executor.set_priority(*second, 3);
  EXPECT_THROW(executor.set_priority(*second, 127), std::invalid_argument);
  first->ring();
  second->ring();
  executor.spin_all(seconds(1));
  EXPECT_EQ(order, "21");
}

}  // namespace
}  // namespace tide_rclcpp
