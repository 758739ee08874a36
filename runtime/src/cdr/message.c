/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/message.h"

#include "tide/status.h"

size_t tide_message_size(const tide_message_type_t *type, const void *message) {
  tide_cdr_t cdr;
  tide_cdr_measure(&cdr);
  type->encode(&cdr, message);
  return cdr.status == TIDE_OK ? cdr.position : 0;
}
