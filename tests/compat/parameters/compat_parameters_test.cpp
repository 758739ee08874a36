// SPDX-License-Identifier: Apache-2.0
// Parameters: how a program uses them, and the answers of the six services.
#include "parameters.h"
#include "tide/pools.h"

extern "C" rcl_ret_t first_edition_start(rclc_executor_t *executor, rclc_parameter_server_t *server);
extern "C" int first_edition_count(rclc_parameter_server_t *server);
extern "C" int first_edition_calls;

namespace tide::compat::test::parameters_test {

TEST_F(Parameters, HaveValuesOfTheirTypes) {
  start();
  add_three();
  bool on = true;
  double gain = 1;
  EXPECT_OK(rclc_parameter_get_bool(&parameters, "on", &on));
  EXPECT_OK(rclc_parameter_get_double(&parameters, "gain", &gain));
  EXPECT_FALSE(on);
  EXPECT_EQ(gain, 0.0);
  EXPECT_EQ(count_value(), 0);
  EXPECT_OK(rclc_parameter_set_int(&parameters, "count", std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(count_value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(rclc_parameter_set_int(&parameters, "gain", 1), RCLC_PARAMETER_TYPE_MISMATCH);
  EXPECT_EQ(rclc_parameter_set_int(&parameters, "other", 1), RCL_RET_ERROR);
  EXPECT_EQ(rclc_parameter_get_bool(&parameters, "gain", &on), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_parameter_get_bool(&parameters, "other", &on), RCL_RET_ERROR);
  EXPECT_EQ(rclc_parameter_get_bool(nullptr, "on", &on), RCL_RET_INVALID_ARGUMENT);
  EXPECT_EQ(rclc_parameter_get_bool(&parameters, "on", nullptr), RCL_RET_INVALID_ARGUMENT);
}

TEST_F(Parameters, AreLimitedAndTheErrorSaysByWhat) {
  start({true, 3, false, false});
  EXPECT_REFUSED(rclc_add_parameter(&parameters, std::string(50, 'x').c_str(), RCLC_PARAMETER_BOOL), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_NAMES);
  EXPECT_OK(rclc_add_parameter(&parameters, std::string(49, 'x').c_str(), RCLC_PARAMETER_BOOL));
  EXPECT_REFUSED(rclc_add_parameter(&parameters, std::string(49, 'x').c_str(), RCLC_PARAMETER_BOOL), RCL_RET_ERROR,
                 TIDE_ERROR_EXISTS);
  EXPECT_OK(rclc_add_parameter(&parameters, "b", RCLC_PARAMETER_BOOL));
  EXPECT_OK(rclc_add_parameter(&parameters, "c", RCLC_PARAMETER_BOOL));
  EXPECT_REFUSED(rclc_add_parameter(&parameters, "d", RCLC_PARAMETER_BOOL), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_PARAMETERS);
  EXPECT_OK(rclc_delete_parameter(&parameters, "b"));
  EXPECT_OK(rclc_add_parameter(&parameters, "d", RCLC_PARAMETER_BOOL));
  rclc_parameter_server_t other{};
  EXPECT_REFUSED(rclc_parameter_server_init_default(&other, &node), RCL_RET_BAD_ALLOC, TIDE_ERROR_CAPACITY_PARAMETERS);
  EXPECT_EQ(rclc_parameter_server_fini(&other, &node), RCL_RET_INVALID_ARGUMENT);
}

TEST_F(Parameters, PlacesAreFreeAfterFiniAndAfterTheSupport) {
  for (int round = 0; round < 3; round++) {
    start({true, 6, false, false});
    add_three();
    EXPECT_EQ(get({"count"}), Texts{"0"});
    if (round == 1) {
      ASSERT_OK(rclc_executor_fini(&executor));
      ASSERT_OK(rclc_support_fini(&support));
      connect();
      ASSERT_OK(rclc_executor_init(&executor, &support.context, RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES, &allocator));
    } else {
      ASSERT_OK(rclc_parameter_server_fini(&parameters, &node));
      EXPECT_EQ(rclc_parameter_server_fini(&parameters, &node), RCL_RET_INVALID_ARGUMENT);
    }
  }
}

TEST_F(Parameters, AreReadByClients) {
  start();
  add_three();
  ASSERT_OK(rclc_parameter_set_double(&parameters, "gain", -0.25));
  EXPECT_EQ(get({"gain", "other", "on", "gain"}), (Texts{"-0.250000", "-", "false", "-0.250000"}));
  EXPECT_EQ(get({}), Texts{});
  auto response = BOUND(rcl_interfaces__srv__GetParameterTypes_Response);
  decode(rcl_interfaces__srv__GetParameterTypes_Response__type,
         call("get_parameter_types", names_request({"gain", "other", "on", "count"})), &response.message);
  ASSERT_EQ(response.message.types.size, 4u);
  EXPECT_EQ(Octets(response.message.types.data, response.message.types.data + 4), (Octets{3, 0, 1, 2}));
}

TEST_F(Parameters, MoreNamesThanPlacesAreAnsweredByNone) {
  start();
  add_three();
  for (const size_t count : {14u, 15u}) {
    auto response = BOUND(rcl_interfaces__srv__GetParameterTypes_Response);
    decode(rcl_interfaces__srv__GetParameterTypes_Response__type,
           call("get_parameter_types", names_request(Texts(count, "on"))), &response.message);
    EXPECT_EQ(response.message.types.size, count == 14 ? count : 0u);
  }
  EXPECT_EQ(set(std::vector<Wish>(15, whole("count", 1))), Texts(14, "no Too many parameters at once"));
  EXPECT_EQ(count_value(), 0);
}

TEST_F(Parameters, AreListedByPrefixAndDepth) {
  start({true, 6, false, false});
  for (const char *name : {"a", "b.c", "b.c.d", "b.e.f", "bc"}) {
    ASSERT_OK(rclc_add_parameter(&parameters, name, RCLC_PARAMETER_BOOL));
  }
  EXPECT_EQ(list({}, 0), (std::pair{Texts{"a", "b.c", "b.c.d", "b.e.f", "bc"}, Texts{"b", "b.c", "b.e"}}));
  EXPECT_EQ(list({}, 1), (std::pair{Texts{"a", "bc"}, Texts{}}));
  EXPECT_EQ(list({}, 2), (std::pair{Texts{"a", "b.c", "bc"}, Texts{"b"}}));
  EXPECT_EQ(list({"b"}, 0).first, (Texts{"b.c", "b.c.d", "b.e.f"}));
  EXPECT_EQ(list({"b"}, 1).first, (Texts{"b.c"}));
  EXPECT_EQ(list({"a", "b.e"}, 0).first, (Texts{"a", "b.e.f"}));
  EXPECT_EQ(list({"none"}, 0).first, Texts{});
}

TEST_F(Parameters, AreChangedByClientsOneByOne) {
  start();
  add_three();
  ASSERT_OK(rclc_set_parameter_read_only(&parameters, "gain", true));
  EXPECT_EQ(
      set({whole("count", -7), whole("on", 1), real("gain", 1), real("other", 1), text("count"), truth("on", true)}),
      (Texts{"yes ", "no Type mismatch", "no Read only parameter", "no Parameter not found", "no Type not supported",
             "yes "}));
  EXPECT_EQ(count_value(), -7);
  EXPECT_EQ(asked, (Texts{"count: 0 to -7", "on: false to true"}));
  refused["count"] = true;
  EXPECT_EQ(set({whole("count", 1)}), Texts{"no Rejected by server"});
  EXPECT_EQ(rclc_parameter_set_int(&parameters, "count", 2), RCLC_PARAMETER_MODIFICATION_REJECTED);
  EXPECT_EQ(count_value(), -7);
}

TEST_F(Parameters, ReadOnlyAndRangesBindClientsOnly) {
  start();
  add_three();
  ASSERT_OK(rclc_add_parameter_constraint_integer(&parameters, "count", -10, 121, 2));
  ASSERT_OK(rclc_add_parameter_constraint_double(&parameters, "gain", -1.0, 1.0, 0.1));
  EXPECT_EQ(rclc_add_parameter_constraint_double(&parameters, "count", 0, 1, 0), RCL_RET_ERROR);
  EXPECT_EQ(set({whole("count", -10), whole("count", 120), whole("count", 121), real("gain", 0.3), real("gain", 1.0)}),
            Texts(5, "yes "));
  EXPECT_EQ(set({whole("count", -11), whole("count", 1), whole("count", 122), real("gain", 0.35), real("gain", 1.1),
                 real("gain", std::numeric_limits<double>::quiet_NaN())}),
            Texts(6, "no Out of range"));
  EXPECT_OK(rclc_parameter_set_int(&parameters, "count", 1));
  ASSERT_OK(rclc_set_parameter_read_only(&parameters, "count", true));
  EXPECT_OK(rclc_parameter_set_int(&parameters, "count", 1000));
  EXPECT_EQ(set({gone("count")}), Texts{"no Read only parameter"});
}

TEST_F(Parameters, UndeclaredOnesAreMadeAndDeletedByClients) {
  start({true, 2, true, false});
  ASSERT_OK(rclc_add_parameter(&parameters, "on", RCLC_PARAMETER_BOOL));
  refused["bad"] = true;
  EXPECT_EQ(set({whole("bad", 1), whole("new", 5), whole("more", 6), gone("more"), text("text")}),
            (Texts{"no Rejected by server", "yes New parameter added", "no Parameter server is full",
                   "no Parameter not found", "no Type not supported"}));
  EXPECT_EQ(set({whole(std::string(50, 'n'), 5)}), Texts{"no Name too long"});
  int64_t value = 0;
  EXPECT_OK(rclc_parameter_get_int(&parameters, "new", &value));
  EXPECT_EQ(value, 5);
  refused["new"] = true;
  EXPECT_EQ(set({gone("new")}), Texts{"no Rejected by server"});
  refused.clear();
  EXPECT_EQ(set({gone("new"), whole("more", 6)}), (Texts{"yes ", "yes New parameter added"}));
  EXPECT_EQ(asked.back(), "more: none to 6");
  EXPECT_TRUE(eventually([&] { return events().size() == 4; }));
  EXPECT_EQ(events(), (Texts{"new on false", "new new 5", "deleted new 5", "new more 6"}));
}

TEST_F(Parameters, SeveralChangeTogetherOrNotAtAll) {
  start({true, 4, true, false});
  add_three();
  EXPECT_EQ(set_atomically({whole("count", 1), truth("on", true), real("extra", 2)}), "yes ");
  EXPECT_EQ(get({"count", "on", "extra"}), (Texts{"1", "true", "2.000000"}));
  asked.clear();
  EXPECT_EQ(set_atomically({whole("count", 2), real("other", 0)}), "no Parameter server is full");
  EXPECT_EQ(set_atomically({whole("count", 2), whole("gain", 0)}), "no Type mismatch");
  EXPECT_TRUE(asked.empty()) << "the program is asked when all else is right";
  refused["gain"] = true;
  EXPECT_EQ(set_atomically({whole("count", 2), gone("extra"), real("gain", 1)}), "no Rejected by server");
  EXPECT_EQ(asked, (Texts{"count: 1 to 2", "extra: 2.000000 to none", "gain: 0.000000 to 1.000000", "count: 2 to 1",
                          "extra: none to 2.000000"}));
  EXPECT_EQ(get({"count", "extra", "gain"}), (Texts{"1", "2.000000", "0.000000"}));
}

TEST_F(Parameters, AreDescribed) {
  start();
  add_three();
  ASSERT_OK(rclc_add_parameter_description(&parameters, "count", "How many", "even"));
  ASSERT_OK(rclc_add_parameter_constraint_integer(&parameters, "count", -4, 4, 2));
  ASSERT_OK(rclc_add_parameter_constraint_double(&parameters, "gain", -1.5, 2.5, 0.5));
  ASSERT_OK(rclc_set_parameter_read_only(&parameters, "gain", true));
  EXPECT_EQ(rclc_add_parameter_description(&parameters, "count", std::string(50, 'x').c_str(), ""), RCL_RET_ERROR);
  EXPECT_EQ(rclc_add_parameter_description(&parameters, "other", "", ""), RCL_RET_ERROR);
  auto response = BOUND(rcl_interfaces__srv__DescribeParameters_Response);
  decode(rcl_interfaces__srv__DescribeParameters_Response__type,
         call("describe_parameters", names_request({"count", "unknown", "gain"})), &response.message);
  ASSERT_EQ(response.message.descriptors.size, 3u);
  const auto *descriptors = response.message.descriptors.data;
  EXPECT_STREQ(descriptors[0].name.data, "count");
  EXPECT_EQ(descriptors[0].type, RCLC_PARAMETER_INT);
  EXPECT_STREQ(descriptors[0].description.data, "How many");
  EXPECT_STREQ(descriptors[0].additional_constraints.data, "even");
  EXPECT_FALSE(descriptors[0].read_only);
  ASSERT_EQ(descriptors[0].integer_range.size, 1u);
  EXPECT_EQ(descriptors[0].integer_range.data[0].from_value, -4);
  EXPECT_EQ(descriptors[0].integer_range.data[0].to_value, 4);
  EXPECT_EQ(descriptors[0].integer_range.data[0].step, 2u);
  EXPECT_EQ(descriptors[0].floating_point_range.size, 0u);
  EXPECT_STREQ(descriptors[1].name.data, "unknown");
  EXPECT_EQ(descriptors[1].type, RCLC_PARAMETER_NOT_SET);
  EXPECT_TRUE(descriptors[2].read_only);
  ASSERT_EQ(descriptors[2].floating_point_range.size, 1u);
  EXPECT_EQ(descriptors[2].floating_point_range.data[0].from_value, -1.5);
  EXPECT_EQ(descriptors[2].floating_point_range.data[0].step, 0.5);
}

// Data that is too long for a node is refused. For an additional parameter, the call that adds it reports the refusal.
// In all other cases the client gets an answer without values, and the error callback and spin_some report the refusal
// to the program.
TEST_F(Parameters, AnswersThatFitNoNodeSayNo) {
  start({true, 6, true, false});
  const auto name = [](int place) { return std::string(46, static_cast<char>('a' + place)) + ".x"; };
  int added = 0;
  while (added < 6 && rclc_add_parameter(&parameters, name(added).c_str(), RCLC_PARAMETER_INT) == RCL_RET_OK) added++;
  ASSERT_LT(added, 6) << "the list fits";
  EXPECT_REFUSED(rclc_add_parameter(&parameters, name(added).c_str(), RCLC_PARAMETER_INT), RCL_RET_ERROR,
                 TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(list({}, 0).first.size(), static_cast<size_t>(added));
  const std::string text(TIDE_PARAMETER_TEXT_BYTES - 1, 'd');
  Texts names;
  for (int place = 0; place < added; place++) {
    names.push_back(name(place));
    EXPECT_OK(rclc_add_parameter_description(&parameters, names.back().c_str(), text.c_str(), text.c_str()));
  }
  static int reported;
  reported = 0;
  rmw_uros_set_error_handling_callback([](const rmw_uros_error_entity_type_t, const rmw_uros_error_source_t,
                                          const rmw_uros_error_context_t, const char *, const int) { reported++; });
  int refused_spins = 0;
  ASSERT_TRUE(server.ask("/node/describe_parameters", names_request(names), {}));
  EXPECT_TRUE(eventually([&] {
    refused_spins += rclc_executor_spin_some(&executor, 5 * kMillisecond) != RCL_RET_OK;
    return !server.replies("/node/describe_parameters").empty();
  }));
  EXPECT_EQ(refused_spins, 1);
  EXPECT_EQ(reported, 1);
  auto response = BOUND(rcl_interfaces__srv__DescribeParameters_Response);
  decode(rcl_interfaces__srv__DescribeParameters_Response__type,
         server.replies("/node/describe_parameters").back().payload, &response.message);
  EXPECT_EQ(response.message.descriptors.size, 0u);
  rmw_uros_set_error_handling_callback(nullptr);
  tide_parameter_counters_t counters{};
  EXPECT_OK(tide_rclc_parameter_server_get_counters(&parameters, &counters));
  EXPECT_EQ(counters.answers_lost, 1u);
  EXPECT_EQ(get({names[0]}), Texts{"0"}) << "a short answer still comes";
}

TEST_F(Parameters, LowMemoryModeHasNoDescriptions) {
  start({false, 4, false, true});
  add_three();
  EXPECT_EQ(rclc_add_parameter_description(&parameters, "count", "x", ""), RCLC_PARAMETER_UNSUPORTED_ON_LOW_MEM);
  ASSERT_OK(rclc_add_parameter_constraint_integer(&parameters, "count", 0, 4, 0));
  EXPECT_EQ(set({whole("count", 3), whole("count", 5)}), (Texts{"yes ", "no Out of range"}));
  EXPECT_EQ(get({"count"}), Texts{"3"});
  EXPECT_FALSE(server.heard("parameter_events"));
}

TEST_F(Parameters, AMalformedRequestChangesNothingAndIsCounted) {
  start();
  add_three();
  auto request = BOUND(rcl_interfaces__srv__SetParameters_Request);
  fill(request.message.parameters.data[request.message.parameters.size++], whole("count", 5));
  fill(request.message.parameters.data[request.message.parameters.size++], truth("on", true));
  const Octets whole_bytes = encoded(rcl_interfaces__srv__SetParameters_Request__type, &request.message);
  uint32_t lost = 0;
  for (size_t cut = 1; cut < whole_bytes.size(); cut += 7) {
    Octets bytes(whole_bytes.begin(), whole_bytes.end() - static_cast<long>(cut));
    ASSERT_TRUE(eventually([&] { return server.ask("/node/set_parameters", bytes, {}); }));
    tide_parameter_counters_t counters{};
    lost++;
    ASSERT_TRUE(spin_until([&] {
      EXPECT_OK(tide_rclc_parameter_server_get_counters(&parameters, &counters));
      return counters.requests_lost == lost;
    })) << "cut by "
        << cut;
  }
  EXPECT_EQ(count_value(), 0);
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(set({whole("count", 5)}), Texts{"yes "});
}

TEST_F(Parameters, EventsTellWhatTheProgramChanges) {
  start();
  ASSERT_OK(rclc_add_parameter(&parameters, "count", RCLC_PARAMETER_INT));
  ASSERT_OK(rclc_parameter_set_int(&parameters, "count", 3));
  ASSERT_OK(rclc_delete_parameter(&parameters, "count"));
  EXPECT_TRUE(eventually([&] { return events().size() == 3; }));
  EXPECT_EQ(events(), (Texts{"new count 0", "changed count 3", "deleted count 3"}));
}

TEST_F(Parameters, ProgramsOfTheFirstEditionRun) {
  first_edition_calls = 0;
  ASSERT_OK(rclc_parameter_server_init_default(&parameters, &node));
  ASSERT_OK(first_edition_start(&executor, &parameters));
  ASSERT_OK(rclc_add_parameter(&parameters, "count", RCLC_PARAMETER_INT));
  EXPECT_EQ(set({whole("count", 5)}), Texts{"yes "});
  EXPECT_EQ(first_edition_calls, 1);
  EXPECT_EQ(first_edition_count(&parameters), 5);
  EXPECT_EQ(set({gone("count")}), Texts{"no Rejected by server"});
}

// Stands for the flash of the board, in which a program stores values.
struct Flash {
  std::map<std::string, int64_t> values;
  std::vector<std::string> saved;
  tide_parameter_store_t store() { return {load, save, this}; }
  static bool load(void *context, const char *name, ParameterValue *value) {
    auto *self = static_cast<Flash *>(context);
    const auto found = self->values.find(name);
    if (found == self->values.end()) return false;
    EXPECT_EQ(value->type, RCLC_PARAMETER_INT);
    value->integer_value = found->second;
    return true;
  }
  static void save(void *context, const char *name, const ParameterValue *value) {
    static_cast<Flash *>(context)->saved.push_back(std::string(name) + " " +
                                                   (value == nullptr ? "gone" : shown(*value)));
  }
};

TEST_F(Parameters, ValuesSurviveARestart) {
  start();
  ASSERT_OK(rclc_add_parameter(&parameters, "count", RCLC_PARAMETER_INT));
  ASSERT_OK(rclc_add_parameter(&parameters, "other", RCLC_PARAMETER_INT));
  ASSERT_OK(rclc_add_parameter_constraint_integer(&parameters, "other", 0, 5, 0));
  ASSERT_OK(rclc_parameter_set_int(&parameters, "count", 1));
  Flash flash;
  flash.values = {{"count", 42}, {"other", 9}};
  const tide_parameter_store_t store = flash.store();
  EXPECT_EQ(tide_rclc_parameter_server_restore(&parameters, &store), RCLC_PARAMETER_MODIFICATION_REJECTED)
      << "the range has changed since";
  EXPECT_EQ(count_value(), 42);
  EXPECT_TRUE(flash.saved.empty()) << "what was loaded is not saved again";
  EXPECT_EQ(set({whole("count", 43)}), Texts{"yes "});
  ASSERT_OK(rclc_parameter_set_int(&parameters, "other", 2));
  EXPECT_EQ(set({gone("other")}), Texts{"yes "});
  EXPECT_EQ(flash.saved, (Texts{"count 43", "other 2", "other gone"}));
}

TEST_F(Parameters, RandomRequestsLeaveWhatAModelSays) {
  start({true, 4, true, false});
  const auto seed = static_cast<unsigned>(World::current().random.next());
  std::mt19937 random(seed);
  std::map<std::string, int> model;
  const Texts names = {"a", "b", "c", "d", "e", "f"};
  for (int round = 0; round < 40; round++) {
    std::vector<Wish> wishes;
    Texts expected;
    for (size_t i = 1 + random() % 5; i > 0; i--) {
      const std::string &name = names[random() % names.size()];
      const int value = static_cast<int>(random() % 100);
      const bool known = model.count(name) != 0;
      if (random() % 3 == 0) {
        wishes.push_back(gone(name));
        expected.push_back(known ? "yes " : "no Parameter not found");
        model.erase(name);
      } else {
        wishes.push_back(whole(name, value));
        const bool fits = known || model.size() < 4;
        expected.push_back(known ? "yes " : fits ? "yes New parameter added" : "no Parameter server is full");
        if (fits) model[name] = value;
      }
    }
    ASSERT_EQ(set(wishes), expected) << "round " << round;
    Texts values;
    for (const auto &name : names) values.push_back(model.count(name) != 0 ? std::to_string(model[name]) : "-");
    ASSERT_EQ(get(names), values) << "round " << round;
    ASSERT_EQ(list({}, 0).first.size(), model.size());
  }
}

}  // namespace tide::compat::test::parameters_test
