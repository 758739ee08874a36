// SPDX-License-Identifier: Apache-2.0
// Lifecycle nodes: every transition of every state, and the answers of the five services.
#include <lifecycle_msgs/msg/transition_event.h>
#include <lifecycle_msgs/srv/change_state.h>
#include <lifecycle_msgs/srv/get_available_states.h>
#include <lifecycle_msgs/srv/get_available_transitions.h>
#include <lifecycle_msgs/srv/get_state.h>
#include <rclc_lifecycle/rclc_lifecycle.h>

#include <memory>
#include <set>

#include "../connected.h"
#include "tide/message_memory.h"
#include "tide/rclc_lifecycle.h"

namespace tide::compat::test::lifecycle_test {

using Texts = std::vector<std::string>;

class Lifecycle : public Spinning {
 protected:
  Lifecycle() : Spinning(5) {}
  void SetUp() override {
    Spinning::SetUp();
    ASSERT_OK(rclc_make_node_a_lifecycle_node(&lifecycle, &node, &machine, &allocator, true));
    context.lifecycle_node = &lifecycle;
    ASSERT_OK(rclc_lifecycle_init_get_state_server(&context, &executor));
    ASSERT_OK(rclc_lifecycle_init_get_available_states_server(&context, &executor));
    ASSERT_OK(rclc_lifecycle_init_change_state_server(&context, &executor));
    calls().clear();
    answer() = RCL_RET_OK;
    ASSERT_OK(rclc_lifecycle_register_on_configure(&lifecycle, [] { return called("configure"); }));
    ASSERT_OK(rclc_lifecycle_register_on_activate(&lifecycle, [] { return called("activate"); }));
    ASSERT_OK(rclc_lifecycle_register_on_deactivate(&lifecycle, [] { return called("deactivate"); }));
    ASSERT_OK(rclc_lifecycle_register_on_cleanup(&lifecycle, [] { return called("cleanup"); }));
  }
  void TearDown() override {
    EXPECT_OK(rclc_lifecycle_node_fini(&lifecycle, &allocator));
    Spinning::TearDown();
  }
  static Texts &calls() {
    static Texts texts;
    return texts;
  }
  static int &answer() {
    static int code;
    return code;
  }
  static int called(const char *name) {
    calls().emplace_back(name);
    return answer();
  }
  std::string state() const { return machine.current_state->label; }
  template <typename Response, typename Storage>
  void call(const std::string &service, const Octets &request, const tide_message_type_t &type,
            void (*bind)(Response *, Storage *), Response &response, Storage &storage) {
    const std::string name = "/node/" + service;
    const size_t before = server.replies(name).size();
    ASSERT_TRUE(eventually([&] { return server.ask(name, request, {}); }));
    ASSERT_TRUE(spin_until([&] { return server.replies(name).size() > before; })) << service;
    const Octets payload = server.replies(name).back().payload;
    bind(&response, &storage);
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, payload.data(), payload.size(), false);
    type.decode(&cdr, &response);
    EXPECT_EQ(cdr.status, TIDE_OK);
    EXPECT_EQ(cdr.position, payload.size());
  }
#define CALL(SERVICE, NAME, REQUEST)                                                                                 \
  lifecycle_msgs__srv__##NAME##_Response response;                                                                   \
  auto storage = std::make_unique<lifecycle_msgs__srv__##NAME##_Response__Storage>();                                \
  call(SERVICE, REQUEST, lifecycle_msgs__srv__##NAME##_Response__type, lifecycle_msgs__srv__##NAME##_Response__bind, \
       response, *storage)

  bool ask_change(uint8_t id, const std::string &label = "") {
    Octets request = {id, 0, 0, 0};
    const Octets text = string_bytes(label);
    request.insert(request.end(), text.begin(), text.end());
    CALL("change_state", ChangeState, request);
    return response.success;
  }
  std::string asked_state() {
    CALL("get_state", GetState, Octets{0});
    EXPECT_EQ(response.current_state.id, machine.current_state->id);
    return response.current_state.label.data;
  }
  Texts asked_states() {
    CALL("get_available_states", GetAvailableStates, Octets{});
    Texts labels;
    for (size_t i = 0; i < response.available_states.size; i++) {
      labels.emplace_back(response.available_states.data[i].label.data);
    }
    return labels;
  }
  Texts asked_transitions(const std::string &service) {
    CALL(service, GetAvailableTransitions, Octets{0});
    Texts labels;
    for (size_t i = 0; i < response.available_transitions.size; i++) {
      const auto &one = response.available_transitions.data[i];
      labels.push_back(std::string(one.start_state.label.data) + " " + one.transition.label.data + " " +
                       one.goal_state.label.data);
    }
    return labels;
  }
  Texts events() {
    Texts labels;
    for (const auto &payload : server.written("rt/node/transition_event")) {
      lifecycle_msgs__msg__TransitionEvent event;
      auto storage = std::make_unique<lifecycle_msgs__msg__TransitionEvent__Storage>();
      lifecycle_msgs__msg__TransitionEvent__bind(&event, storage.get());
      tide_cdr_t cdr;
      tide_cdr_reader(&cdr, payload.data(), payload.size(), false);
      lifecycle_msgs__msg__TransitionEvent__type.decode(&cdr, &event);
      EXPECT_EQ(cdr.status, TIDE_OK);
      labels.push_back(std::string(event.start_state.label.data) + " to " + event.goal_state.label.data);
    }
    return labels;
  }

  rcl_lifecycle_state_machine_t machine = rcl_lifecycle_get_zero_initialized_state_machine();
  rclc_lifecycle_node_t lifecycle;  // not initialised, as in real programs
  rclc_lifecycle_service_context_t context{};
};

TEST_F(Lifecycle, GoesThroughItsStatesAsAClientAsks) {
  EXPECT_EQ(asked_state(), "unconfigured");
  EXPECT_TRUE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_CONFIGURE));
  EXPECT_EQ(asked_state(), "inactive");
  EXPECT_TRUE(ask_change(0, "activate"));
  EXPECT_EQ(asked_state(), "active");
  EXPECT_FALSE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_CLEANUP));
  EXPECT_FALSE(ask_change(0, "cleanup"));
  EXPECT_FALSE(ask_change(255));
  EXPECT_TRUE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_DEACTIVATE));
  EXPECT_TRUE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_CLEANUP));
  EXPECT_EQ(calls(), (Texts{"configure", "activate", "deactivate", "cleanup"}));
  EXPECT_TRUE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_UNCONFIGURED_SHUTDOWN));
  EXPECT_EQ(asked_state(), "finalized");
  EXPECT_TRUE(eventually([&] { return events().size() == 10; }));
  EXPECT_EQ(events(), (Texts{"unconfigured to configuring", "configuring to inactive", "inactive to activating",
                             "activating to active", "active to deactivating", "deactivating to inactive",
                             "inactive to cleaningup", "cleaningup to unconfigured", "unconfigured to shuttingdown",
                             "shuttingdown to finalized"}));
}

// Requests every transition that a primary state does not offer, also those by which the node itself ends a callback.
TEST_F(Lifecycle, WhatAStateDoesNotOfferIsRefusedAndChangesNothing) {
  for (const char *next : {"configure", "activate", "shutdown", ""}) {
    const std::string before = asked_state();
    std::set<unsigned> offered;
    for (unsigned i = 0; i < machine.current_state->valid_transition_size; i++)
      offered.insert(machine.current_state->valid_transitions[i].id);
    for (unsigned id = 1; id < 100; id++) {
      if (!offered.contains(id)) EXPECT_FALSE(ask_change(static_cast<uint8_t>(id))) << id << " of " << before;
    }
    EXPECT_FALSE(ask_change(0, "transition_success"));
    EXPECT_EQ(asked_state(), before);
    if (*next != '\0') {
      EXPECT_TRUE(ask_change(0, next));
    }
  }
  EXPECT_EQ(calls(), (Texts{"configure", "activate"}));
}

TEST_F(Lifecycle, EachStateHasAShutdownCallbackOfItsOwn) {
  constexpr unsigned kFirst = lifecycle_msgs__msg__Transition__TRANSITION_UNCONFIGURED_SHUTDOWN;
  ASSERT_OK(rclc_lifecycle_register_callback(&lifecycle, kFirst, [] { return called("unconfigured"); }));
  ASSERT_OK(rclc_lifecycle_register_callback(&lifecycle, kFirst + 1, [] { return called("inactive"); }));
  ASSERT_OK(rclc_lifecycle_register_callback(&lifecycle, kFirst + 2, [] { return called("active"); }));
  for (unsigned i = 0; i < 3; i++) EXPECT_OK(rclc_lifecycle_execute_callback(&lifecycle, kFirst + i));
  EXPECT_EQ(calls(), (Texts{"unconfigured", "inactive", "active"}));
  calls().clear();
  EXPECT_TRUE(ask_change(0, "configure"));
  EXPECT_TRUE(ask_change(0, "activate"));
  EXPECT_TRUE(ask_change(0, "shutdown"));
  EXPECT_EQ(calls(), (Texts{"configure", "activate", "active"}));
  EXPECT_EQ(state(), "finalized");
}

TEST_F(Lifecycle, ACallbackThatRefusesLeadsBackAndTheClientHearsOfIt) {
  answer() = RCL_RET_ERROR;
  EXPECT_FALSE(ask_change(lifecycle_msgs__msg__Transition__TRANSITION_CONFIGURE));
  EXPECT_EQ(state(), "unconfigured");
  EXPECT_OK(rclc_lifecycle_change_state(&lifecycle, lifecycle_msgs__msg__Transition__TRANSITION_CONFIGURE, true));
  EXPECT_EQ(state(), "unconfigured");
  answer() = RCL_RET_OK;
  EXPECT_OK(rclc_lifecycle_change_state(&lifecycle, lifecycle_msgs__msg__Transition__TRANSITION_CONFIGURE, false));
  EXPECT_EQ(state(), "inactive");
  EXPECT_EQ(rclc_lifecycle_change_state(&lifecycle, lifecycle_msgs__msg__Transition__TRANSITION_CONFIGURE, false),
            RCL_RET_ERROR);
  answer() = RCL_RET_ERROR;
  EXPECT_OK(rclc_lifecycle_change_state(&lifecycle, lifecycle_msgs__msg__Transition__TRANSITION_ACTIVATE, false));
  EXPECT_EQ(state(), "inactive");
  EXPECT_TRUE(eventually([&] { return events().size() == 4; }));
}

TEST_F(Lifecycle, ListsStatesAndTransitions) {
  EXPECT_EQ(asked_states(), (Texts{"unknown", "unconfigured", "inactive", "active", "finalized", "configuring",
                                   "cleaningup", "shuttingdown", "activating", "deactivating", "errorprocessing"}));
  EXPECT_FALSE(server.heard("get_available_transitionsRequest"));
  ASSERT_OK(tide_rclc_lifecycle_init_get_available_transitions_server(&context, &executor));
  ASSERT_OK(tide_rclc_lifecycle_init_get_transition_graph_server(&context, &executor));
  EXPECT_EQ(asked_transitions("get_available_transitions"),
            (Texts{"unconfigured configure configuring", "unconfigured shutdown shuttingdown"}));
  const Texts graph = asked_transitions("get_transition_graph");
  EXPECT_EQ(graph.size(), 25u);
  EXPECT_EQ(std::set<std::string>(graph.begin(), graph.end()).size(), 25u);
}

// The valid transitions of each state must be those transitions of the whole map that start in this state.
TEST_F(Lifecycle, TheMapIsConsistent) {
  const auto &map = machine.transition_map;
  std::set<unsigned> ids;
  for (unsigned i = 0; i < map.transitions_size; i++) {
    const auto *transition = &map.transitions[i];
    EXPECT_TRUE(ids.insert(transition->id).second) << transition->id;
    EXPECT_EQ(rcl_lifecycle_get_transition_by_id(transition->start, static_cast<uint8_t>(transition->id)), transition);
    EXPECT_EQ(rcl_lifecycle_get_transition_by_label(transition->start, transition->label), transition);
  }
  unsigned count = 0;
  for (unsigned i = 0; i < map.states_size; i++) {
    count += map.states[i].valid_transition_size;
    for (unsigned j = 0; j < map.states[i].valid_transition_size; j++) {
      EXPECT_EQ(map.states[i].valid_transitions[j].start, &map.states[i]);
    }
  }
  EXPECT_EQ(count, map.transitions_size);
}

TEST_F(Lifecycle, RefusesWhatIsNotThere) {
  rcl_lifecycle_state_machine_t other = rcl_lifecycle_get_zero_initialized_state_machine();
  EXPECT_EQ(rcl_lifecycle_state_machine_is_initialized(&other), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rcl_lifecycle_trigger_transition_by_id(&other, 1, true), RCL_RET_INVALID_ARGUMENT);
  EXPECT_REFUSED(rcl_lifecycle_trigger_transition_by_id(&machine, 3, true), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_NOT_FOUND);
  EXPECT_REFUSED(rcl_lifecycle_trigger_transition_by_label(&machine, "activate", true), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_NOT_FOUND);
  rclc_lifecycle_node_t second;
  EXPECT_REFUSED(rclc_make_node_a_lifecycle_node(&second, &node, &other, &allocator, true), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_PUBLISHERS);
  EXPECT_OK(rclc_make_node_a_lifecycle_node(&second, &node, &other, &allocator, false));
  EXPECT_OK(rclc_lifecycle_change_state(&second, 1, true));
  EXPECT_STREQ(other.current_state->label, "inactive");
  EXPECT_OK(rclc_lifecycle_node_fini(&second, &allocator));
  EXPECT_EQ(rclc_lifecycle_register_callback(&lifecycle, 10, [] { return 0; }), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_lifecycle_register_callback(&lifecycle, 1, nullptr), RCL_RET_INVALID_ARGUMENT);
}

}  // namespace tide::compat::test::lifecycle_test
