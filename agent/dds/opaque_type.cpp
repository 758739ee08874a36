// SPDX-License-Identifier: Apache-2.0
#include "dds/opaque_type.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tide::agent {
namespace {

using eprosima::fastrtps::rtps::SerializedPayload_t;

constexpr size_t kEncapsulationBytes = 4;
constexpr uint32_t kLargestSampleBytes = 65536;  // of XRCE, where nothing longer is written; DDS takes more as it comes

}  // namespace

OpaqueType::OpaqueType(const std::string &name) {
  setName(name.c_str());
  m_typeSize = kLargestSampleBytes;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool OpaqueType::serialize(void *data, SerializedPayload_t *payload) {
  const auto *sample = static_cast<const OutgoingSample *>(data);
  const size_t length = sample->payload.size() + kEncapsulationBytes;
  if (payload->max_size < length) return false;
  const std::array<uint8_t, kEncapsulationBytes> header = {0, static_cast<uint8_t>(sample->big_endian ? 0 : 1), 0, 0};
  std::memcpy(payload->data, header.data(), header.size());
  if (!sample->payload.empty())
    std::memcpy(payload->data + header.size(), sample->payload.data(), sample->payload.size());
  payload->encapsulation = sample->big_endian ? CDR_BE : CDR_LE;
  payload->length = static_cast<uint32_t>(length);
  return true;
}

bool OpaqueType::deserialize(SerializedPayload_t *payload, void *data) {
  if (payload->length < kEncapsulationBytes) return false;
  auto *sample = static_cast<IncomingSample *>(data);
  sample->big_endian = (payload->data[1] & 1u) == 0;
  sample->payload.assign(payload->data + kEncapsulationBytes, payload->data + payload->length);
  return true;
}

std::function<uint32_t()> OpaqueType::getSerializedSizeProvider(void *data) {
  const auto *sample = static_cast<const OutgoingSample *>(data);
  return [sample] { return static_cast<uint32_t>(sample->payload.size() + kEncapsulationBytes); };
}

void *OpaqueType::createData() { return new IncomingSample{}; }
void OpaqueType::deleteData(void *data) { delete static_cast<IncomingSample *>(data); }
bool OpaqueType::getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) { return false; }

}  // namespace tide::agent
