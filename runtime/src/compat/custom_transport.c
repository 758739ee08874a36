/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own functions as a link: in a context of the port where it has one for such links, else run by whoever
 * waits. */
#include "rmw_microros/custom_transport.h"
#include "internal.h"
#include "tide/link_custom.h"

/* The executor's sleep is cut into pieces of this length, in which bytes may arrive. */
#define POLL_NS 1000000

static uxrCustomTransport transport;
static tide_custom_link_t custom_link;
static tide_pump_t pump = {tide_custom_link_run, &custom_link};

rmw_ret_t rmw_uros_set_custom_transport(bool framing, void *args, open_custom_func open_cb, close_custom_func close_cb,
                                        write_custom_func write_cb, read_custom_func read_cb) {
  if (open_cb == NULL || close_cb == NULL || write_cb == NULL || read_cb == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  transport.framing = framing;
  transport.args = args;
  transport.open = open_cb;
  transport.close = close_cb;
  transport.write = write_cb;
  transport.read = read_cb;
  transport.wake = NULL;
  return RMW_RET_OK;
}

bool tide_compat_has_custom_transport(void) { return TIDE_CUSTOM_LINK && transport.open != NULL; }

static bool open_transport(void *context) { return transport.open(context); }

static bool close_transport(void *context) { return transport.close(context); }

static size_t write_transport(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
  return transport.write(context, bytes, count, error);
}

static size_t read_transport(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error) {
  return transport.read(context, bytes, count, timeout_ms, error);
}

static bool wake_transport(void *context) {
  if (transport.wake == NULL) return false;
  transport.wake(context);
  return true;
}

const tide_custom_transport_t *tide_compat_custom_functions(void) {
  static tide_custom_transport_t functions = {&transport,      false,          open_transport, close_transport,
                                              write_transport, read_transport, wake_transport};
  if (!TIDE_CUSTOM_LINK || !tide_compat_has_custom_transport()) return NULL;
  functions.framed = transport.framing;
  return &functions;
}

int tide_compat_open_custom(tide_support_t *support) {
  if (!TIDE_CUSTOM_LINK) return TIDE_ERROR_UNSUPPORTED;
  if (!tide_compat_has_custom_transport()) return TIDE_ERROR_LINK;
  if (tide_pools.custom_storage == NULL) return TIDE_ERROR_UNSUPPORTED;
  tide_custom_transport_t functions = *tide_compat_custom_functions();
  functions.wake = NULL; /* whoever waits runs the link: there is nobody else to end its read */
  int status = tide_custom_link_open(&custom_link, &support->session, &functions, tide_pools.custom_storage,
                                     tide_pools.custom_bytes);
  support->custom = status == TIDE_OK;
  return status;
}

void tide_compat_close_custom(tide_support_t *support) {
  if (TIDE_CUSTOM_LINK && support->custom) tide_custom_link_close(&custom_link);
  support->custom = false;
}

const tide_pump_t *tide_compat_pump(tide_support_t *support) {
  return TIDE_CUSTOM_LINK && support->custom ? &pump : tide_port_pump(&support->session);
}

int64_t tide_compat_poll(void *context) {
  tide_support_t *support = context;
  if (TIDE_SINGLE_CONTEXT) tide_port_serve_link(&support->session);
  if (!TIDE_CUSTOM_LINK || !support->custom)
    return tide_port_pump(&support->session) == NULL ? TIDE_FOREVER : tide_session_poll(&support->session);
  const tide_platform_t *platform = tide_port_platform();
  int64_t now_ns = tide_platform_now_ns(platform);
  tide_custom_link_run(&custom_link, now_ns);
  return now_ns + POLL_NS;
}
