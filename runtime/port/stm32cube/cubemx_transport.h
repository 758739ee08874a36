/* SPDX-License-Identifier: Apache-2.0 */
/* A UART of STM32Cube's HAL by DMA, under the names that micro-ROS programs use:
 *
 *   rmw_uros_set_custom_transport(true, &huart3, cubemx_transport_open, cubemx_transport_close, cubemx_transport_write,
 *                                 cubemx_transport_read);
 *
 * Settings in CubeMX: asynchronous, 8N1, DMA in both directions (for reception circular, with a data width of one
 * byte), and the UART's global interrupt on. With a data cache, this port invalidates the ring's lines and cleans
 * transmit buffers. Families F4, F7, G4, H7; one UART. With FreeRTOS (built with TIDE_CUBE_FREERTOS=1) a wait sleeps,
 * without it the runtime busy-waits. */
#ifndef TIDE_STM32CUBE_CUBEMX_TRANSPORT_H
#define TIDE_STM32CUBE_CUBEMX_TRANSPORT_H

#include <rmw_microros/custom_transport.h>

TIDE_EXTERN_C_BEGIN

bool cubemx_transport_open(struct uxrCustomTransport *transport);
bool cubemx_transport_close(struct uxrCustomTransport *transport);
size_t cubemx_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error);
size_t cubemx_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error);

TIDE_EXTERN_C_END
#endif
