// SPDX-License-Identifier: Apache-2.0
// A program with parameters, and clients that use the messages which `tide generate` makes from rcl_interfaces.
#pragma once

#include <rcl_interfaces/msg/parameter_event.h>
#include <rcl_interfaces/srv/describe_parameters.h>
#include <rcl_interfaces/srv/get_parameter_types.h>
#include <rcl_interfaces/srv/get_parameters.h>
#include <rcl_interfaces/srv/list_parameters.h>
#include <rcl_interfaces/srv/set_parameters.h>
#include <rcl_interfaces/srv/set_parameters_atomically.h>
#include <rclc_parameter/rclc_parameter.h>

#include <limits>
#include <map>
#include <memory>
#include <random>

#include "../connected.h"
#include "tide/message_memory.h"
#include "tide/rclc_parameter.h"

namespace tide::compat::test {

template <typename Message, typename Storage> struct Bound {
  explicit Bound(void (*bind)(Message *, Storage *)) { bind(&message, storage.get()); }
  Message message{};
  std::unique_ptr<Storage> storage = std::make_unique<Storage>();
};
#define BOUND(NAME) Bound<NAME, NAME##__Storage>(NAME##__bind)

inline void set_text(rosidl_runtime_c__String &string, const std::string &text) {
  ASSERT_LT(text.size(), string.capacity);
  std::memcpy(string.data, text.c_str(), text.size() + 1);
  string.size = text.size();
}

inline Octets encoded(const tide_message_type_t &type, const void *message) {
  Octets bytes(tide_message_size(&type, message));
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes.data(), bytes.size());
  type.encode(&cdr, message);
  EXPECT_EQ(cdr.status, TIDE_OK);
  return bytes;
}

inline void decode(const tide_message_type_t &type, const Octets &bytes, void *message) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes.data(), bytes.size(), false);
  type.decode(&cdr, message);
  EXPECT_EQ(cdr.status, TIDE_OK) << text_of(cdr.status);
  EXPECT_EQ(cdr.position, bytes.size());
}

struct Wish {
  std::string name;
  uint8_t type;
  double value;
};
inline Wish truth(const std::string &name, bool value) { return {name, RCLC_PARAMETER_BOOL, value ? 1.0 : 0.0}; }
inline Wish whole(const std::string &name, int value) { return {name, RCLC_PARAMETER_INT, static_cast<double>(value)}; }
inline Wish real(const std::string &name, double value) { return {name, RCLC_PARAMETER_DOUBLE, value}; }
inline Wish gone(const std::string &name) { return {name, RCLC_PARAMETER_NOT_SET, 0}; }
inline Wish text(const std::string &name) { return {name, 4, 0}; }

inline void fill(rcl_interfaces__msg__Parameter &parameter, const Wish &wish) {
  set_text(parameter.name, wish.name);
  parameter.value.type = wish.type;
  if (wish.type == RCLC_PARAMETER_BOOL) parameter.value.bool_value = wish.value != 0;
  if (wish.type == RCLC_PARAMETER_INT) parameter.value.integer_value = static_cast<int64_t>(wish.value);
  if (wish.type == RCLC_PARAMETER_DOUBLE) parameter.value.double_value = wish.value;
  if (wish.type == 4) set_text(parameter.value.string_value, "text");
  parameter.value.integer_array_value.size = 2;  // values of other types are skipped
  parameter.value.string_array_value.size = 1;
}

inline std::string shown(const rcl_interfaces__msg__ParameterValue &value) {
  switch (value.type) {
    case RCLC_PARAMETER_BOOL: return value.bool_value ? "true" : "false";
    case RCLC_PARAMETER_INT: return std::to_string(value.integer_value);
    case RCLC_PARAMETER_DOUBLE: return std::to_string(value.double_value);
    default: return "-";
  }
}

class Parameters : public Spinning {
 protected:
  explicit Parameters(size_t handles = RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES) : Spinning(handles) {}
  void start(rclc_parameter_options_t wanted = {true, 4, false, false}) {
    ASSERT_OK(rclc_parameter_server_init_with_option(&parameters, &node, &wanted));
    ASSERT_OK(rclc_executor_add_parameter_server_with_context(&executor, &parameters, on_change, this));
  }
  void add_three() {
    ASSERT_OK(rclc_add_parameter(&parameters, "on", RCLC_PARAMETER_BOOL));
    ASSERT_OK(rclc_add_parameter(&parameters, "count", RCLC_PARAMETER_INT));
    ASSERT_OK(rclc_add_parameter(&parameters, "gain", RCLC_PARAMETER_DOUBLE));
  }
  static bool on_change(const Parameter *before, const Parameter *after, void *context) {
    auto *self = static_cast<Parameters *>(context);
    const Parameter *named = before != nullptr ? before : after;
    self->asked.push_back(std::string(named->name.data, named->name.size) + ": " +
                          (before == nullptr ? "none" : shown(before->value)) + " to " +
                          (after == nullptr ? "none" : shown(after->value)));
    EXPECT_EQ(rclc_parameter_set_bool(&self->parameters, "on", true), RCLC_PARAMETER_DISABLED_ON_CALLBACK);
    EXPECT_EQ(rclc_delete_parameter(&self->parameters, "on"), RCLC_PARAMETER_DISABLED_ON_CALLBACK);
    return self->refused.count(named->name.data) == 0;
  }
  Octets call(const std::string &service, const Octets &request) {
    const std::string name = "/node/" + service;
    const size_t before = server.replies(name).size();
    agent::SampleIdentity identity{};
    identity[20] = static_cast<uint8_t>(++number);
    EXPECT_TRUE(eventually([&] { return server.ask(name, request, identity); }));
    EXPECT_TRUE(spin_until([&] { return server.replies(name).size() > before; })) << service;
    const auto replies = server.replies(name);
    EXPECT_EQ(replies.back().identity, identity);
    return replies.back().payload;
  }
  bool spin_until(const std::function<bool()> &condition) {
    return eventually([&] {
      if (!spun_elsewhere) {
        EXPECT_OK(rclc_executor_spin_some(&executor, 5 * kMillisecond));
      }
      return condition();
    });
  }
  Octets names_request(const std::vector<std::string> &names) {
    auto request = BOUND(rcl_interfaces__srv__GetParameters_Request);
    for (const auto &name : names) set_text(request.message.names.data[request.message.names.size++], name);
    return encoded(rcl_interfaces__srv__GetParameters_Request__type, &request.message);
  }
  std::vector<std::string> get(const std::vector<std::string> &names) {
    auto response = BOUND(rcl_interfaces__srv__GetParameters_Response);
    decode(rcl_interfaces__srv__GetParameters_Response__type, call("get_parameters", names_request(names)),
           &response.message);
    std::vector<std::string> values;
    for (size_t i = 0; i < response.message.values.size; i++) values.push_back(shown(response.message.values.data[i]));
    return values;
  }
  std::vector<std::string> set(const std::vector<Wish> &wishes) {
    auto request = BOUND(rcl_interfaces__srv__SetParameters_Request);
    for (const auto &wish : wishes) fill(request.message.parameters.data[request.message.parameters.size++], wish);
    auto response = BOUND(rcl_interfaces__srv__SetParameters_Response);
    decode(rcl_interfaces__srv__SetParameters_Response__type,
           call("set_parameters", encoded(rcl_interfaces__srv__SetParameters_Request__type, &request.message)),
           &response.message);
    std::vector<std::string> results;
    for (size_t i = 0; i < response.message.results.size; i++) {
      const auto &result = response.message.results.data[i];
      results.push_back((result.successful ? "yes " : "no ") + std::string(result.reason.data, result.reason.size));
    }
    return results;
  }
  std::string set_atomically(const std::vector<Wish> &wishes) {
    auto request = BOUND(rcl_interfaces__srv__SetParametersAtomically_Request);
    for (const auto &wish : wishes) fill(request.message.parameters.data[request.message.parameters.size++], wish);
    auto response = BOUND(rcl_interfaces__srv__SetParametersAtomically_Response);
    decode(rcl_interfaces__srv__SetParametersAtomically_Response__type,
           call("set_parameters_atomically",
                encoded(rcl_interfaces__srv__SetParametersAtomically_Request__type, &request.message)),
           &response.message);
    return (response.message.result.successful ? "yes " : "no ") + std::string(response.message.result.reason.data);
  }
  std::pair<std::vector<std::string>, std::vector<std::string>> list(const std::vector<std::string> &prefixes,
                                                                     uint64_t depth) {
    auto request = BOUND(rcl_interfaces__srv__ListParameters_Request);
    for (const auto &prefix : prefixes) {
      set_text(request.message.prefixes.data[request.message.prefixes.size++], prefix);
    }
    request.message.depth = depth;
    auto response = BOUND(rcl_interfaces__srv__ListParameters_Response);
    decode(rcl_interfaces__srv__ListParameters_Response__type,
           call("list_parameters", encoded(rcl_interfaces__srv__ListParameters_Request__type, &request.message)),
           &response.message);
    const auto texts = [](const rosidl_runtime_c__String__Sequence &sequence) {
      std::vector<std::string> all;
      for (size_t i = 0; i < sequence.size; i++) all.emplace_back(sequence.data[i].data, sequence.data[i].size);
      return all;
    };
    return {texts(response.message.result.names), texts(response.message.result.prefixes)};
  }
  // A line for each event that was published so far.
  std::vector<std::string> events() {
    std::vector<std::string> lines;
    for (const auto &written : server.written("rt/parameter_events")) {
      auto event = BOUND(rcl_interfaces__msg__ParameterEvent);
      decode(rcl_interfaces__msg__ParameterEvent__type, written, &event.message);
      EXPECT_STREQ(event.message.node.data, "/node");
      const std::pair<const char *, rcl_interfaces__msg__Parameter__Sequence *> parts[] = {
          {"new ", &event.message.new_parameters},
          {"changed ", &event.message.changed_parameters},
          {"deleted ", &event.message.deleted_parameters}};
      for (const auto &[word, part] : parts) {
        for (size_t i = 0; i < part->size; i++) {
          lines.push_back(word + std::string(part->data[i].name.data) + " " + shown(part->data[i].value));
        }
      }
    }
    return lines;
  }
  int64_t count_value() {
    int64_t value = -1;
    EXPECT_OK(rclc_parameter_get_int(&parameters, "count", &value));
    return value;
  }

  rclc_parameter_server_t parameters{};
  std::vector<std::string> asked;
  std::map<std::string, bool> refused;
  uint8_t number = 0;
  bool spun_elsewhere = false;  // true if a thread of the test spins
};
using Texts = std::vector<std::string>;

}  // namespace tide::compat::test
