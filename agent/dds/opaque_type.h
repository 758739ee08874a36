// SPDX-License-Identifier: Apache-2.0
// A DDS type whose samples are octets that somebody else has serialised.
#pragma once

#include <fastdds/dds/topic/TopicDataType.hpp>
#include <string>
#include <vector>

#include "core/middleware.h"

namespace tide::agent {

struct OutgoingSample {
  Bytes payload;
  bool big_endian;
};

struct IncomingSample {
  std::vector<uint8_t> payload;
  bool big_endian;
};

class OpaqueType : public eprosima::fastdds::dds::TopicDataType {
 public:
  explicit OpaqueType(const std::string &name);

  bool serialize(void *data, eprosima::fastrtps::rtps::SerializedPayload_t *payload) override;
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t *payload, void *data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override;
  void *createData() override;
  void deleteData(void *data) override;
  bool getKey(void *data, eprosima::fastrtps::rtps::InstanceHandle_t *handle, bool force_md5) override;
};

}  // namespace tide::agent
