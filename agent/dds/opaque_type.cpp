// SPDX-License-Identifier: Apache-2.0
#include "dds/opaque_type.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tide::agent {
namespace {

using eprosima::fastrtps::rtps::SerializedPayload_t;

// RTPS fills a sample up to a multiple of four octets. The last two bits of the encapsulation's options say how many
// of its octets are not the sample's (DDS-XTypes 1.3, 7.6.3.1.2), so that it comes out as long as it went in. Readers
// that do not look there get what they always got; writers that say nothing have 0 there.
constexpr size_t kEncapsulationBytes = 4, kAlignment = 4;
constexpr uint8_t kPaddingMask = 0x03;
constexpr uint32_t kLargestSampleBytes = 65536;  // of XRCE, where nothing longer is written; DDS takes more as it comes

size_t padding_of(size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

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
  const size_t bytes = sample->payload.size(), padding = padding_of(bytes);
  const size_t length = kEncapsulationBytes + bytes + padding;
  if (payload->max_size < length) return false;
  const std::array<uint8_t, kEncapsulationBytes> header = {0, static_cast<uint8_t>(sample->big_endian ? 0 : 1), 0,
                                                           static_cast<uint8_t>(padding)};
  std::memcpy(payload->data, header.data(), header.size());
  if (bytes != 0) std::memcpy(payload->data + header.size(), sample->payload.data(), bytes);
  if (padding != 0) std::memset(payload->data + header.size() + bytes, 0, padding);
  payload->encapsulation = sample->big_endian ? CDR_BE : CDR_LE;
  payload->length = static_cast<uint32_t>(length);
  return true;
}

bool OpaqueType::deserialize(SerializedPayload_t *payload, void *data) {
  if (payload->length < kEncapsulationBytes) return false;
  auto *sample = static_cast<IncomingSample *>(data);
  sample->big_endian = (payload->data[1] & 1u) == 0;
  const size_t bytes = payload->length - kEncapsulationBytes;
  const size_t padding = payload->data[3] & kPaddingMask;
  const uint8_t *first = payload->data + kEncapsulationBytes;
  sample->payload.assign(first, first + bytes - std::min(bytes, padding));
  return true;
}

std::function<uint32_t()> OpaqueType::getSerializedSizeProvider(void *data) {
  const auto *sample = static_cast<const OutgoingSample *>(data);
  const size_t bytes = sample->payload.size();
  return [bytes] { return static_cast<uint32_t>(kEncapsulationBytes + bytes + padding_of(bytes)); };
}

void *OpaqueType::createData() { return new IncomingSample{}; }
void OpaqueType::deleteData(void *data) { delete static_cast<IncomingSample *>(data); }
bool OpaqueType::getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) { return false; }

}  // namespace tide::agent
