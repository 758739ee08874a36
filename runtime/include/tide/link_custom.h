/* SPDX-License-Identifier: Apache-2.0 */
/* A link over four functions of the program, as micro-ROS's custom transports have them: whatever moves bytes (a radio,
 * a CAN tunnel, a vendor's driver) becomes a link. It has no context of its own: whoever waits runs it, so it works
 * without threads and without interrupts. All functions are called from tide_custom_link_open, run and close only, so
 * they need not be safe against each other. */
#ifndef TIDE_LINK_CUSTOM_H
#define TIDE_LINK_CUSTOM_H

#include "tide/link_serial.h"
#include "tide/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_custom_transport {
  void *context;
  bool framed; /* a stream of bytes: messages travel in serial framing. false: one message a call */
  bool (*open)(void *context);
  bool (*close)(void *context);
  /* Returns the bytes taken, at most count; unframed: all or none. */
  size_t (*write)(void *context, const uint8_t *bytes, size_t count, uint8_t *error);
  /* Waits at most timeout_ms for the first byte (0: not at all). Returns the bytes read, at most count; 0: none came.
   */
  size_t (*read)(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error);
  /* Ends the read that waits, or the next one. From any thread or interrupt, in a critical section, too. False, or
   * null: it cannot, and reads wait for a slice each. It says the same from open to close. */
  bool (*wake)(void *context);
} tide_custom_transport_t;

typedef struct tide_custom_counters {
  uint32_t messages_sent, messages_lost; /* lost: the transport did not take them */
  uint32_t bytes_received;
} tide_custom_counters_t;

typedef struct tide_custom_link {
  tide_custom_transport_t transport;
  tide_session_t *session;
  tide_serial_output_t output;
  uint8_t *input;
  size_t input_bytes;
  const tide_frame_parts_t *outgoing; /* started, not yet written */
  uint8_t write_attempts;
  bool open, running;
  bool wakes;        /* a read can be ended, so it waits until something is to be done */
  uint16_t slice_ms; /* else the longest wait in read: bounds how long a message submitted meanwhile waits; default 1 */
  tide_custom_counters_t counters;
} tide_custom_link_t;

/* Storage for messages of up to that many bytes. */
#define TIDE_CUSTOM_LINK_STORAGE_BYTES(message_bytes) (TIDE_FRAMING_WORST_BYTES(message_bytes) + (message_bytes))

/* Open the transport and attach it to the session's daemon. Link and storage stay in use until close.
 * TIDE_ERROR_LINK: the transport does not open. TIDE_ERROR_TOO_LARGE: the storage is too small for the session's mtu.
 */
int tide_custom_link_open(tide_custom_link_t *link, tide_session_t *session, const tide_custom_transport_t *transport,
                          uint8_t *storage, size_t storage_bytes);
void tide_custom_link_close(tide_custom_link_t *link);

/* End the wait of a run, or of the next one: the session wants to be polled, or the run is to stop. From any context.
 * Without effect where a read cannot be ended: it ends by itself after a slice. */
void tide_custom_link_wake(tide_custom_link_t *link);

/* Send what was submitted, receive, let the session's time pass. Returns at the deadline (up to a millisecond before
 * it, as the transport's clock is no finer), or earlier when something was sent or received, or it was woken. A
 * deadline in the past: do what can be done without waiting; so call it after publishing where nobody else does. From
 * one context at a time; a call from within itself does nothing. Has the signature of tide_pump_t.run. */
void tide_custom_link_run(void *link, int64_t deadline_ns);

#ifdef __cplusplus
}
#endif
#endif
