// SPDX-License-Identifier: Apache-2.0
#include "core/answers.h"

#include "core/submessage.h"
#include "tide/status.h"

namespace tide::agent {

size_t answer_get_info(const tide_xrce_submessage_t &question, bool known, std::span<uint8_t> answer) {
  tide_cdr_t cdr = reader_of(question);
  tide_xrce_get_info_body_t body;
  tide_xrce_get_get_info(&cdr, &body);
  if (cdr.status != TIDE_OK) return 0;
  const tide_xrce_info_t info = {.related = body.request,
                                 .status = TIDE_XRCE_STATUS_OK,
                                 .implementation_status = known ? uint8_t{1} : uint8_t{0},
                                 .vendor = kVendor,
                                 .version_major = kVersionMajor,
                                 .version_minor = kVersionMinor};
  tide_cdr_t writer;
  tide_cdr_writer(&writer, answer.data(), answer.size());
  tide_xrce_put_info(&writer, &info);
  return writer.status == TIDE_OK ? writer.position : 0;
}

size_t answer_timestamp(const tide_xrce_submessage_t &question, const std::function<int64_t()> &wall_clock_ns,
                        std::span<uint8_t> answer) {
  tide_cdr_t cdr = reader_of(question);
  tide_xrce_timestamp_reply_t reply{};
  reply.receive = tide_xrce_time_from_ns(wall_clock_ns());
  reply.originate = tide_xrce_get_timestamp(&cdr);
  if (cdr.status != TIDE_OK) return 0;
  reply.transmit = tide_xrce_time_from_ns(wall_clock_ns());
  tide_cdr_t writer;
  tide_cdr_writer(&writer, answer.data(), answer.size());
  tide_xrce_put_timestamp_reply(&writer, &reply);
  return writer.status == TIDE_OK ? writer.position : 0;
}

}  // namespace tide::agent
