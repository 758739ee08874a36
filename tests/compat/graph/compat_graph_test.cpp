// SPDX-License-Identifier: Apache-2.0
// The graph of ROS 2, which an agent reports to the program.
#include <example_interfaces/srv/add_two_ints.h>
#include <rcl/graph.h>

#include <cstdlib>

#include "../connected.h"

namespace tide::compat::test::graph_test {

enum Kind : uint8_t { kPublisher, kSubscription, kServer, kClient };

struct Entity {
  Kind kind;
  std::string name, type;
};
struct Node {
  std::string space, name;
  std::vector<Entity> entities;
};

// Decodes micro_ros_msgs/Graph.
class Payload {
 public:
  explicit Payload(const std::vector<Node> &nodes) {
    tide_cdr_writer(&cdr_, bytes_.data(), bytes_.size());
    tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(nodes.size()));
    for (const Node &node : nodes) {
      text(node.space);
      text(node.name);
      tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(node.entities.size()));
      for (const Entity &entity : node.entities) {
        tide_cdr_put_u8(&cdr_, entity.kind);
        text(entity.name);
        tide_cdr_put_u32(&cdr_, 1);
        text(entity.type);
      }
    }
  }
  Octets octets() const { return {bytes_.begin(), bytes_.begin() + static_cast<long>(cdr_.position)}; }

 private:
  void text(const std::string &value) { tide_cdr_put_string(&cdr_, value.data(), value.size()); }
  std::array<uint8_t, 4000> bytes_{};
  tide_cdr_t cdr_{};
};

class Graph : public Connected {
 protected:
  void tell(const std::vector<Node> &nodes) {
    ASSERT_TRUE(eventually([&] { return server.offer("rt/ros_to_microros_graph", Payload(nodes).octets()); }));
  }
  size_t publishers(const char *topic) {
    size_t count = 99;
    EXPECT_OK(rcl_count_publishers(&node, topic, &count));
    return count;
  }
  size_t subscriptions(const char *topic) {
    size_t count = 99;
    EXPECT_OK(rcl_count_subscribers(&node, topic, &count));
    return count;
  }
  const std::string type = "std_msgs/msg/Int32";
};

TEST_F(Graph, IsCountedByTopic) {
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kPublisher, "/numbers", type}, {kSubscription, "/numbers", type}, {kServer, "/numbers", "x"}}},
        {"/space", "two", {{kPublisher, "/numbers", type}, {kPublisher, "/numbers2", type}}},
        {"/", "three", {}}});
  ASSERT_TRUE(eventually([&] { return publishers("/numbers") == 2; }));
  EXPECT_EQ(publishers("numbers"), 2u) << "relative to the node's namespace";
  EXPECT_EQ(subscriptions("numbers"), 1u);
  EXPECT_EQ(publishers("numbers2"), 1u);
  EXPECT_EQ(publishers("number"), 0u);
  EXPECT_TRUE(server.qos_of_reader("rt/ros_to_microros_graph").transient_local);
  tell({});
  EXPECT_TRUE(eventually([&] { return publishers("/numbers") == 0; }));
}

TEST_F(Graph, IsCountedByPublisherAndSubscription) {
  rcl_publisher_t publisher = publisher_of(int32_type(), "up");
  rcl_subscription_t subscription = subscription_of(int32_type(), "down");
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kSubscription, "/up", type}, {kSubscription, "/up", type}, {kPublisher, "/down", type}}}});
  size_t count = 0;
  EXPECT_TRUE(
      eventually([&] { return rcl_publisher_get_subscription_count(&publisher, &count) == RCL_RET_OK && count == 2; }));
  EXPECT_OK(rcl_subscription_get_publisher_count(&subscription, &count));
  EXPECT_EQ(count, 1u);
  rcl_publisher_t none{};
  EXPECT_EQ(rcl_publisher_get_subscription_count(&none, &count), RCL_RET_PUBLISHER_INVALID);
}

TEST_F(Graph, TellsWhetherAServiceIsThere) {
  rcl_client_t client{};
  ASSERT_OK(rclc_client_init_default(&client, &node, ROSIDL_GET_SRV_TYPE_SUPPORT(example_interfaces, srv, AddTwoInts),
                                     "sums"));
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kClient, "/sums", type}, {kServer, "/sum", type}}}});
  bool available = true;
  EXPECT_TRUE(eventually(
      [&] { return rcl_service_server_is_available(&node, &client, &available) == RCL_RET_OK && !available; }));
  tell({{"/", "one", {{kServer, "/sums", type}}}});
  EXPECT_TRUE(eventually(
      [&] { return rcl_service_server_is_available(&node, &client, &available) == RCL_RET_OK && available; }));
}

TEST_F(Graph, ClientsAndServicesAreCounted) {
  size_t clients = 9, services = 9;
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kClient, "/sums", type}, {kServer, "/sums", type}, {kClient, "/sums", type}}}});
  EXPECT_TRUE(eventually([&] { return rcl_count_clients(&node, "sums", &clients) == RCL_RET_OK && clients == 2; }));
  EXPECT_OK(rcl_count_services(&node, "/sums", &services));
  EXPECT_EQ(services, 1u);
}

TEST_F(Graph, APeerIsWaitedFor) {
  bool success = true;
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kPublisher, "/numbers", type}}}});
  EXPECT_OK(rcl_wait_for_publishers(&node, &allocator, "numbers", 1, 0, &success));
  EXPECT_TRUE(success);
  EXPECT_REFUSED(rcl_wait_for_publishers(&node, &allocator, "numbers", 2, 20 * kMillisecond, &success), RCL_RET_TIMEOUT,
                 TIDE_ERROR_TIMEOUT);
  EXPECT_FALSE(success);
  Thread teller([this] {
    tell({{"/", "one", {}}});
    tell({{"/", "one", {{kSubscription, "/numbers", type}, {kSubscription, "/numbers", type}}}});
  });
  EXPECT_OK(rcl_wait_for_subscribers(&node, &allocator, "numbers", 2, -1, &success));
  EXPECT_TRUE(success);
  teller.join();
  EXPECT_EQ(rcl_wait_for_publishers(&node, nullptr, "numbers", 1, 0, &success), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_wait_for_publishers(&node, &allocator, "numbers", 1, 0, nullptr), RCL_RET_INVALID_ARGUMENT);
}

TEST_F(Graph, ChangesTriggerTheGuardCondition) {
  static int calls;
  calls = 0;
  rclc_executor_t executor = executor_of(1);
  auto *changed = const_cast<rcl_guard_condition_t *>(rcl_node_get_graph_guard_condition(&node));
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(rcl_node_get_graph_guard_condition(&node), changed);
  ASSERT_OK(rclc_executor_add_guard_condition(&executor, changed, [] { calls++; }));
  const auto spun = [&](int count) {
    return eventually(
        [&] { return rclc_executor_spin_some(&executor, 5 * kMillisecond) == RCL_RET_OK && calls >= count; });
  };
  EXPECT_TRUE(spun(1)) << "for what came before";
  tell({{"/", "one", {}}});
  EXPECT_TRUE(spun(2));
  EXPECT_OK(rclc_executor_fini(&executor));
}

TEST_F(Graph, WithoutAWordOfTheAgentTheFirstQuestionEnds) {
  size_t count = 0;
  ASSERT_EQ(rmw_uros_set_context_entity_creation_session_timeout(rcl_context_get_rmw_context(&support.context), 100),
            RMW_RET_OK);
  EXPECT_REFUSED(rcl_count_publishers(&node, "numbers", &count), RCL_RET_TIMEOUT, TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(rcl_count_publishers(&node, "no name", &count), RCL_RET_TOPIC_NAME_INVALID);
  EXPECT_EQ(rcl_count_publishers(nullptr, "numbers", &count), RCL_RET_NODE_INVALID);
  EXPECT_EQ(rcl_count_publishers(&node, nullptr, &count), RCL_RET_INVALID_ARGUMENT);
}

TEST_F(Graph, TheFirstQuestionWaitsForTheGraph) {
  Thread teller([this] { tell({{"/", "one", {{kPublisher, "/numbers", type}}}}); });
  EXPECT_EQ(publishers("numbers"), 1u);
  teller.join();
}

TEST_F(Graph, OneThatIsTooLargeIsReportedAndAMalformedOneIsNoReasonToFail) {
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kPublisher, "/numbers", type}}}});
  ASSERT_TRUE(eventually([&] { return publishers("numbers") == 1; }));
  size_t count = 0;
  tell(std::vector<Node>(30, {"/some/name/space", "with a long name", {}}));
  EXPECT_TRUE(eventually([&] { return rcl_count_publishers(&node, "numbers", &count) == RCL_RET_ERROR; }));
  EXPECT_REFUSED(rcl_count_publishers(&node, "numbers", &count), RCL_RET_ERROR, TIDE_ERROR_TOO_LARGE);
  tell({{"/", "one", {{kPublisher, "/numbers", type}}}});
  EXPECT_TRUE(eventually([&] { return rcl_count_publishers(&node, "numbers", &count) == RCL_RET_OK && count == 1; }));
  ASSERT_TRUE(server.offer("rt/ros_to_microros_graph", {255, 255, 255, 255}));
  EXPECT_TRUE(eventually([&] { return rcl_count_publishers(&node, "numbers", &count) == RCL_RET_ERROR; }));
}

// Counts the memory that is still allocated, which shows whether every name was freed.
struct Heap {
  static int blocks;
  static int refuse_after;
  static void *allocate(size_t bytes, void *) { return zero_allocate(bytes, 1, nullptr); }
  static void *zero_allocate(size_t count, size_t bytes, void *) {
    if (refuse_after-- == 0) return nullptr;
    blocks++;
    return std::calloc(count, bytes);
  }
  static void deallocate(void *block, void *) {
    blocks--;
    std::free(block);
  }
  static rcl_allocator_t allocator() {
    rcl_allocator_t made = rcl_get_default_allocator();
    made.allocate = allocate;
    made.zero_allocate = zero_allocate;
    made.deallocate = deallocate;
    return made;
  }
};
int Heap::blocks = 0;
int Heap::refuse_after = -1;

std::vector<std::string> shown(rcl_names_and_types_t &found) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < found.names.size; i++) {
    std::string line = found.names.data[i];
    for (size_t j = 0; j < found.types[i].size; j++) line += std::string(" ") + found.types[i].data[j];
    lines.push_back(line);
  }
  EXPECT_OK(rcl_names_and_types_fini(&found));
  return lines;
}

TEST_F(Graph, HasNamesAndTypes) {
  using Texts = std::vector<std::string>;
  Heap::blocks = 0;
  Heap::refuse_after = -1;
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kPublisher, "/a", "A"}, {kSubscription, "/b", "B"}, {kServer, "/s", "S"}}},
        {"/space", "two", {{kPublisher, "/a", "A"}, {kSubscription, "/a", "A"}, {kClient, "/t", "T"}}}});
  ASSERT_TRUE(eventually([&] { return publishers("/a") == 2; }));
  rcl_allocator_t heap = Heap::allocator();
  rcl_names_and_types_t found = rcl_get_zero_initialized_names_and_types();
  EXPECT_OK(rcl_get_topic_names_and_types(&node, &heap, false, &found));
  EXPECT_EQ(shown(found), (Texts{"/a A", "/b B"}));
  EXPECT_OK(rcl_get_service_names_and_types(&node, &heap, &found));
  EXPECT_EQ(shown(found), (Texts{"/s S", "/t T"}));
  EXPECT_OK(rcl_get_publisher_names_and_types_by_node(&node, &heap, false, "two", "/space", &found));
  EXPECT_EQ(shown(found), (Texts{"/a A"}));
  EXPECT_OK(rcl_get_subscriber_names_and_types_by_node(&node, &heap, false, "one", "", &found));
  EXPECT_EQ(shown(found), (Texts{"/b B"}));
  EXPECT_OK(rcl_get_client_names_and_types_by_node(&node, &heap, "one", "/", &found));
  EXPECT_EQ(shown(found), Texts{});
  rcutils_string_array_t names = rcutils_get_zero_initialized_string_array(), spaces = names;
  EXPECT_OK(rcl_get_node_names(&node, heap, &names, &spaces));
  ASSERT_EQ(names.size, 2u);
  EXPECT_STREQ(names.data[1], "two");
  EXPECT_STREQ(spaces.data[1], "/space");
  EXPECT_EQ(rcutils_string_array_fini(&names), RCUTILS_RET_OK);
  EXPECT_EQ(rcutils_string_array_fini(&spaces), RCUTILS_RET_OK);
  rcl_topic_endpoint_info_array_t infos = rcl_get_zero_initialized_topic_endpoint_info_array();
  EXPECT_OK(rcl_get_publishers_info_by_topic(&node, &heap, "/a", false, &infos));
  ASSERT_EQ(infos.size, 2u);
  EXPECT_STREQ(infos.info_array[1].node_name, "two");
  EXPECT_STREQ(infos.info_array[1].topic_type, "A");
  EXPECT_EQ(infos.info_array[0].endpoint_type, RMW_ENDPOINT_PUBLISHER);
  EXPECT_OK(rcl_topic_endpoint_info_array_fini(&infos, &heap));
  EXPECT_OK(rcl_get_subscriptions_info_by_topic(&node, &heap, "/none", false, &infos));
  EXPECT_EQ(infos.size, 0u);
  EXPECT_EQ(Heap::blocks, 0);
}

TEST_F(Graph, LeavesNothingBehindWhenTheHeapIsUsedUp) {
  Heap::blocks = 0;
  ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
  tell({{"/", "one", {{kPublisher, "/a", "A"}, {kSubscription, "/b", "B"}}}});
  ASSERT_TRUE(eventually([&] { return publishers("/a") == 1; }));
  rcl_allocator_t heap = Heap::allocator();
  for (int after = 0; after < 8; after++) {
    rcl_names_and_types_t found = rcl_get_zero_initialized_names_and_types();
    Heap::refuse_after = after;
    const rcl_ret_t result = rcl_get_topic_names_and_types(&node, &heap, false, &found);
    if (result == RCL_RET_OK) {
      EXPECT_OK(rcl_names_and_types_fini(&found));
    } else {
      EXPECT_EQ(result, RCL_RET_BAD_ALLOC);
    }
    EXPECT_EQ(result == RCL_RET_OK, after == 8 || Heap::refuse_after >= 0) << after;
    rcutils_string_array_t names{}, spaces{};
    Heap::refuse_after = after;
    if (rcl_get_node_names(&node, heap, &names, &spaces) == RCL_RET_OK) {
      EXPECT_EQ(rcutils_string_array_fini(&names), RCUTILS_RET_OK);
      EXPECT_EQ(rcutils_string_array_fini(&spaces), RCUTILS_RET_OK);
    }
    rcl_topic_endpoint_info_array_t infos{};
    Heap::refuse_after = after;
    if (rcl_get_publishers_info_by_topic(&node, &heap, "/a", false, &infos) == RCL_RET_OK) {
      EXPECT_OK(rcl_topic_endpoint_info_array_fini(&infos, &heap));
    }
    EXPECT_EQ(Heap::blocks, 0) << after;
  }
  Heap::refuse_after = -1;
}

TEST_F(Graph, IsAskedForAgainByTheNextSupport) {
  for (int round = 0; round < 2; round++) {
    ASSERT_NE(rcl_node_get_graph_guard_condition(&node), nullptr);
    tell({{"/", "one", {{kPublisher, "/numbers", type}}}});
    ASSERT_TRUE(eventually([&] { return publishers("numbers") == 1; })) << round;
    ASSERT_OK(rclc_support_fini(&support));
    connect();
  }
}

}  // namespace tide::compat::test::graph_test
