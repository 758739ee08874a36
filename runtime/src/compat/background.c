/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

bool tide_compat_has_room_locked(const tide_support_t *support, uint32_t promised) {
  const uint32_t used = support->session.daemon.transmitter.nodes_in_use;
  return 2u * (used + promised) < tide_pools.data_node_count;
}

int tide_compat_send_now(const tide_publisher_handle_t *publisher, const void *message) {
  tide_write_t write;
  const uint32_t bytes = (uint32_t)tide_message_size(publisher->type, message);
  const int status = tide_session_write_begin(&publisher->support->session, &write, publisher->topic.endpoint.id,
                                              publisher->reliable, publisher->priority, bytes);
  if (status != TIDE_OK) return status;
  publisher->type->encode(&write.cdr, message);
  return tide_session_write_end(&write);
}
