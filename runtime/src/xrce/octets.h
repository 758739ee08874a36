/* SPDX-License-Identifier: Apache-2.0 */
/* What travels as octets, whatever the byte order of the body: ids with the high octet first, version and vendor. */
#ifndef TIDE_SRC_XRCE_OCTETS_H
#define TIDE_SRC_XRCE_OCTETS_H

#include "tide/cdr.h"
#include "tide/status.h"

static inline void tide_octets_put_u16(tide_cdr_t *cdr, uint16_t value) {
  const uint8_t octets[2] = {(uint8_t)(value >> 8), (uint8_t)value};
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

static inline uint16_t tide_octets_get_u16(tide_cdr_t *cdr) {
  uint8_t octets[2] = {0, 0};
  tide_cdr_get_bytes(cdr, octets, sizeof octets);
  return (uint16_t)(octets[0] << 8 | octets[1]);
}

static inline void tide_octets_malformed(tide_cdr_t *cdr) {
  if (cdr->status == TIDE_OK) cdr->status = TIDE_ERROR_MALFORMED;
}

#endif
