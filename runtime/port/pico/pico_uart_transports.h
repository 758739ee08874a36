/* SPDX-License-Identifier: Apache-2.0 */
/* The board's standard input and output as a link, over USB or UART, as enabled in the program's CMake:
 *
 *   rmw_uros_set_custom_transport(true, NULL, pico_serial_transport_open, pico_serial_transport_close,
 *                                 pico_serial_transport_write, pico_serial_transport_read);
 *
 * Only one core and one context call the runtime. The program must not print meanwhile. */
#ifndef TIDE_PICO_UART_TRANSPORTS_H
#define TIDE_PICO_UART_TRANSPORTS_H

#include <rmw_microros/custom_transport.h>

TIDE_EXTERN_C_BEGIN

bool pico_serial_transport_open(struct uxrCustomTransport *transport);
bool pico_serial_transport_close(struct uxrCustomTransport *transport);
size_t pico_serial_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                                   uint8_t *error);
size_t pico_serial_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                                  uint8_t *error);

TIDE_EXTERN_C_END
#endif
