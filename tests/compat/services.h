// SPDX-License-Identifier: Apache-2.0
// A connected program for tests of services, and the ROS 2 side, which the test simulates.
#pragma once

#include <example_interfaces/srv/add_two_ints.h>
#include <test_interfaces/srv/blob.h>

#include "connected.h"
#include "tide/rclc_service.h"

namespace tide::compat::test {

using Request = example_interfaces__srv__AddTwoInts_Request;
using Response = example_interfaces__srv__AddTwoInts_Response;

inline const rosidl_service_type_support_t *add_type() {
  return ROSIDL_GET_SRV_TYPE_SUPPORT(example_interfaces, srv, AddTwoInts);
}
inline const rosidl_service_type_support_t *blob_type() {
  return ROSIDL_GET_SRV_TYPE_SUPPORT(test_interfaces, srv, Blob);
}

inline Octets words_bytes(std::initializer_list<int64_t> words) {
  Octets bytes;
  for (const int64_t word : words) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<uint8_t>(static_cast<uint64_t>(word) >> shift));
    }
  }
  return bytes;
}
inline int64_t word_of(const Octets &bytes) {
  int64_t word = 0;
  EXPECT_EQ(bytes.size(), sizeof word);
  std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
  return word;
}

// The identity of a client's request. It differs in every octet of the GUID, and its number has more than 32 bits.
inline agent::SampleIdentity identity_of(uint8_t asker, uint32_t number) {
  agent::SampleIdentity identity;
  for (size_t octet = 0; octet < 16; octet++) identity[octet] = static_cast<uint8_t>(asker + 16 * octet);
  for (size_t octet = 0; octet < 4; octet++) {
    identity[16 + octet] = octet == 0 ? 3 : 0;
    identity[20 + octet] = static_cast<uint8_t>(number >> (8 * octet));
  }
  return identity;
}

class Services : public Spinning {
 protected:
  explicit Services(size_t handles = 6) : Spinning(handles) {}
  bool ask(const char *service, int64_t a, int64_t b, const agent::SampleIdentity &identity) {
    return eventually([&] { return server.ask(service, words_bytes({a, b}), identity); });
  }
  // Waits until the request has reached the program's slots.
  void bring(const char *service, int64_t a, int64_t b, const agent::SampleIdentity &identity) {
    bring(service, words_bytes({a, b}), identity);
  }
  void bring(const std::string &service, const Octets &request, const agent::SampleIdentity &identity) {
    Connected::bring([&] { return server.ask(service, request, identity); });
  }
  tide_service_counters_t counters_of(const rcl_service_t &service) {
    tide_service_counters_t counters{};
    EXPECT_OK(tide_rclc_service_get_counters(&service, &counters));
    return counters;
  }
  tide_client_counters_t counters_of(const rcl_client_t &client) {
    tide_client_counters_t counters{};
    EXPECT_OK(tide_rclc_client_get_counters(&client, &counters));
    return counters;
  }
};

inline void add(const void *request, void *response) {
  const auto *numbers = static_cast<const Request *>(request);
  static_cast<Response *>(response)->sum = numbers->a + numbers->b;
}

}  // namespace tide::compat::test
