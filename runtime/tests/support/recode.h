// SPDX-License-Identifier: Apache-2.0
// Takes an XRCE message apart with our decoder and puts it together again with our encoder. Used on recorded traffic,
// for which the result has to be the same bytes, and by the fuzzers, for which it must not crash.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tide/cdr.h"
#include "tide/status.h"
#include "tide/xrce.h"

using Bytes = std::vector<uint8_t>;

struct Recoded {
  int status = TIDE_OK;  // the first error
  Bytes bytes;
  std::vector<tide_xrce_submessage_t> submessages;  // these are views into the input
  std::vector<bool> padding;                        // by byte: alignment, where stock clients leave random values
};

// The body of one submessage, decoded from one cursor and encoded into the other.
inline void recode_body(uint8_t id, tide_cdr_t *in, tide_cdr_t *out) {
  auto rest = [&] {
    const size_t count = tide_cdr_remaining(in);
    tide_cdr_put_bytes(out, tide_cdr_view(in, count), count);
  };
  switch (id) {
    case TIDE_XRCE_CREATE_CLIENT: {
      tide_xrce_create_client_t body;
      tide_xrce_get_create_client(in, &body);
      if (in->status == TIDE_OK && !body.cookie_valid) in->status = TIDE_ERROR_MALFORMED;
      return tide_xrce_put_create_client(out, &body);
    }
    case TIDE_XRCE_CREATE: {
      tide_xrce_create_t body;
      tide_xrce_get_create(in, &body);
      if (in->status == TIDE_OK) tide_xrce_put_create(out, &body);
      return;
    }
    case TIDE_XRCE_GET_INFO: {
      tide_xrce_get_info_body_t body;
      tide_xrce_get_get_info(in, &body);
      return tide_xrce_put_get_info(out, &body);
    }
    case TIDE_XRCE_DELETE: return tide_xrce_put_request(out, tide_xrce_get_request(in));
    case TIDE_XRCE_STATUS_AGENT: {
      tide_xrce_status_agent_t body;
      tide_xrce_get_status_agent(in, &body);
      if (in->status == TIDE_OK && !body.cookie_valid) in->status = TIDE_ERROR_MALFORMED;
      return tide_xrce_put_status_agent(out, &body);
    }
    case TIDE_XRCE_STATUS: {
      tide_xrce_status_body_t body;
      tide_xrce_get_status(in, &body);
      return tide_xrce_put_status(out, &body);
    }
    case TIDE_XRCE_INFO: {
      tide_xrce_info_t body;
      tide_xrce_get_info(in, &body);
      return tide_xrce_put_info(out, &body);
    }
    case TIDE_XRCE_READ_DATA: {
      tide_xrce_read_data_t body;
      tide_xrce_get_read_data(in, &body);
      return tide_xrce_put_read_data(out, &body);
    }
    case TIDE_XRCE_WRITE_DATA:
    case TIDE_XRCE_DATA: tide_xrce_put_request(out, tide_xrce_get_request(in)); return rest();
    case TIDE_XRCE_ACKNACK: {
      tide_xrce_acknack_t body;
      tide_xrce_get_acknack(in, &body);
      return tide_xrce_put_acknack(out, &body);
    }
    case TIDE_XRCE_HEARTBEAT: {
      tide_xrce_heartbeat_t body;
      tide_xrce_get_heartbeat(in, &body);
      return tide_xrce_put_heartbeat(out, &body);
    }
    case TIDE_XRCE_TIMESTAMP: return tide_xrce_put_timestamp(out, tide_xrce_get_timestamp(in));
    case TIDE_XRCE_TIMESTAMP_REPLY: {
      tide_xrce_timestamp_reply_t body;
      tide_xrce_get_timestamp_reply(in, &body);
      return tide_xrce_put_timestamp_reply(out, &body);
    }
    case TIDE_XRCE_RESET:
    case TIDE_XRCE_FRAGMENT: return rest();
    default: in->status = TIDE_ERROR_MALFORMED;
  }
}

// Positions of the alignment octets in a binary block of CREATE. They are found by a separate traversal, which thus
// also checks the layout in the runtime. The block starts at body[12].
inline std::vector<bool> binary_padding(const uint8_t *body, size_t body_bytes, bool big_endian) {
  std::vector<bool> padding(body_bytes, false);
  if (body_bytes < 12 || body[5] != TIDE_XRCE_BY_BINARY) return padding;
  size_t at = 0;
  auto octet = [&](size_t i) -> uint32_t { return 12 + i < body_bytes ? body[12 + i] : 0u; };
  auto align = [&](size_t to) {
    for (; at % to != 0; ++at)
      if (12 + at < body_bytes) padding[12 + at] = true;
  };
  auto text = [&] {
    align(4);
    uint32_t count = 0;
    for (size_t i = 0; i < 4; ++i) count |= octet(at + (big_endian ? 3 - i : i)) << 8 * i;
    at += 4 + size_t{count};
  };
  auto flag = [&] { return octet(at++) != 0; };
  switch (body[4]) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      if (flag()) text();
      if (flag()) text();
      break;
    case TIDE_XRCE_KIND_TOPIC:
      text();
      if (flag()) text();
      if (flag()) text();
      break;
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER:
      at = 2;
      if (!flag()) break;
      align(2);
      at += 2;
      if (flag()) {
        align(2);
        at += 2;
      }
      for (int i = 0; i < 2; ++i)
        if (flag()) {
          align(4);
          at += 4;
        }
      break;
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER:
      for (int i = 0; i < 3; ++i) text();
      for (int i = 0; i < 2; ++i)
        if (flag()) text();
      break;
    default: break;
  }
  return padding;
}

// pad_last: pads the last submessage, as the stock client does in the messages of a stream.
inline Recoded recode_message(const uint8_t *message, size_t length, bool pad_last) {
  Recoded result;
  tide_xrce_header_t header;
  const int header_bytes = tide_xrce_get_header(message, length, &header);
  if (header_bytes < 0) {
    result.status = header_bytes;
    return result;
  }
  result.bytes.resize(8);
  result.bytes.resize(tide_xrce_put_header(result.bytes.data(), &header));
  size_t position = static_cast<size_t>(header_bytes);
  auto align = [&] {
    while (result.bytes.size() % 4 != 0) result.bytes.push_back(0);
    result.padding.resize(result.bytes.size(), true);
  };
  result.padding.resize(result.bytes.size(), false);
  tide_xrce_submessage_t sub;
  int step;
  while ((step = tide_xrce_next_submessage(message, length, &position, &sub)) == 1) {
    align();
    const bool big_endian = (sub.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
    Bytes body(sub.body_bytes + 64);
    tide_cdr_t in, out;
    tide_cdr_reader(&in, sub.body, sub.body_bytes, big_endian);
    tide_cdr_writer(&out, body.data(), body.size());
    out.big_endian = big_endian;
    recode_body(sub.id, &in, &out);
    if (in.status != TIDE_OK || out.status != TIDE_OK) {
      result.status = in.status != TIDE_OK ? in.status : out.status;
      return result;
    }
    body.resize(out.position);
    const uint16_t announced = sub.id == TIDE_XRCE_CREATE_CLIENT ? 16 : static_cast<uint16_t>(body.size());
    uint8_t start[4];
    tide_xrce_put_submessage_header(start, sub.id, sub.flags, announced);
    result.bytes.insert(result.bytes.end(), start, start + 4);
    result.padding.resize(result.bytes.size(), false);
    if (sub.id == TIDE_XRCE_CREATE) {
      const std::vector<bool> padding = binary_padding(sub.body, sub.body_bytes, big_endian);
      result.padding.insert(result.padding.end(), padding.begin(), padding.end());
    }
    result.bytes.insert(result.bytes.end(), body.begin(), body.end());
    result.padding.resize(result.bytes.size(), false);
    result.submessages.push_back(sub);
  }
  if (step < 0) result.status = step;
  if (pad_last) align();
  return result;
}
