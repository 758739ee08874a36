// SPDX-License-Identifier: Apache-2.0
// The body of a submessage, read in the byte order that its flags name.
#pragma once

#include "tide/xrce.h"

namespace tide::agent {

inline bool is_big_endian(const tide_xrce_submessage_t &submessage) {
  return (submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
}

inline tide_cdr_t reader_of(const tide_xrce_submessage_t &submessage) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body, submessage.body_bytes, is_big_endian(submessage));
  return cdr;
}

}  // namespace tide::agent
