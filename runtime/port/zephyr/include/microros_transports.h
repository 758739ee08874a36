/* SPDX-License-Identifier: Apache-2.0 */
/* The transport chosen in Kconfig, under the names that micro-ROS programs for Zephyr use:
 *
 *   rmw_uros_set_custom_transport(MICRO_ROS_FRAMING_REQUIRED, &default_params, zephyr_transport_open,
 *                                 zephyr_transport_close, zephyr_transport_write, zephyr_transport_read);
 *
 * With CONFIG_TIDE_LINK_UART_ASYNC nothing has to be set: the runtime drives the line itself. */
#ifndef TIDE_ZEPHYR_MICROROS_TRANSPORTS_H
#define TIDE_ZEPHYR_MICROROS_TRANSPORTS_H

#include <rmw_microros/custom_transport.h>

TIDE_EXTERN_C_BEGIN

#ifdef CONFIG_TIDE_LINK_UDP
#define MICRO_ROS_FRAMING_REQUIRED false
typedef struct zephyr_transport_params {
  const char *ip; /* IPv4 or IPv6 address of the agent; must outlive the session */
  uint16_t port;
} zephyr_transport_params_t;
#else
#define MICRO_ROS_FRAMING_REQUIRED true
struct device;
typedef struct zephyr_transport_params {
  const struct device *uart_dev; /* a UART with interrupts, or USB CDC ACM once the host has opened it */
} zephyr_transport_params_t;
#endif

extern zephyr_transport_params_t default_params; /* set from Kconfig and the chosen devicetree node tide,uart */

bool zephyr_transport_open(struct uxrCustomTransport *transport);
bool zephyr_transport_close(struct uxrCustomTransport *transport);
size_t zephyr_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error);
size_t zephyr_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error);

TIDE_EXTERN_C_END
#endif
