/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UXR__CLIENT__TRANSPORT_H_
#define UXR__CLIENT__TRANSPORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uxr/client/util/time.h"

struct uxrCustomTransport;

typedef bool (*open_custom_func)(struct uxrCustomTransport *transport);
typedef bool (*close_custom_func)(struct uxrCustomTransport *transport);
/* Returns the bytes written, at most count. */
typedef size_t (*write_custom_func)(struct uxrCustomTransport *transport, const uint8_t *buffer, size_t count,
                                    uint8_t *error_code);
/* Waits at most timeout_ms for the first byte; returns the bytes read, at most count. */
typedef size_t (*read_custom_func)(struct uxrCustomTransport *transport, uint8_t *buffer, size_t count, int timeout_ms,
                                   uint8_t *error_code);

/* Makes the waiting read, or the next one, return the bytes received so far. Any thread or interrupt may call it. */
typedef void (*wake_custom_func)(struct uxrCustomTransport *transport);

/* The functions of the program that move bytes; args is the program's. open may set wake (an extension of tide): a read
 * then waits until there is work. Without wake, a read waits for a millisecond at a time. */
typedef struct uxrCustomTransport {
  bool framing;
  void *args;
  open_custom_func open;
  close_custom_func close;
  write_custom_func write;
  read_custom_func read;
  wake_custom_func wake;
} uxrCustomTransport;

#endif
