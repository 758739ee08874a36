/* SPDX-License-Identifier: Apache-2.0 */
/* A link that uses four functions of the program, as in micro-ROS's custom transports, so that a radio, a CAN tunnel or
 * a vendor's driver can serve as a link. The link has no context of its own: a waiting caller runs it, so the link
 * needs neither threads nor interrupts. The functions are called only from tide_custom_link_open, run and close, so
 * they need not be safe against each other. */
#ifndef TIDE_LINK_CUSTOM_H
#define TIDE_LINK_CUSTOM_H

#include "tide/link_serial.h"
#include "tide/session.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_custom_transport {
  void *context;
  bool framed; /* a stream of bytes: messages travel in serial framing. false: one message a call */
  bool (*open)(void *context);
  bool (*close)(void *context);
  /* Returns the number of bytes taken, at most count; unframed: all or none. */
  size_t (*write)(void *context, const uint8_t *bytes, size_t count, uint8_t *error);
  /* Waits at most timeout_ms for the first byte (0: not at all). Returns the number of bytes read, at most count; 0:
   * none arrived.
   */
  size_t (*read)(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error);
  /* Ends the waiting read, or the next one. Any thread or interrupt may call it, also in a critical section. If it
   * returns false or is null, a read cannot be ended, and waits for at most slice_ms. The result must not change from
   * open to close. */
  bool (*wake)(void *context);
} tide_custom_transport_t;

typedef struct tide_custom_counters {
  uint32_t messages_sent, messages_lost; /* messages lost because the transport did not accept them */
  uint32_t bytes_received;
} tide_custom_counters_t;

typedef struct tide_custom_link {
  tide_custom_transport_t transport;
  tide_session_t *session;
  tide_serial_output_t output;
  uint8_t *input;
  size_t input_bytes;
  const tide_frame_parts_t *outgoing; /* frame that was started but is not yet written */
  uint8_t write_attempts;
  bool open, running;
  bool wakes;        /* a read can be ended, so it waits until there is work */
  uint16_t slice_ms; /* if false: longest wait in read, which delays messages submitted meanwhile; default 1 */
  tide_custom_counters_t counters;
} tide_custom_link_t;

/* Bytes of storage that messages of up to message_bytes bytes need. */
#define TIDE_CUSTOM_LINK_STORAGE_BYTES(message_bytes) (TIDE_FRAMING_WORST_BYTES(message_bytes) + (message_bytes))

/* Open the transport and attach it to the session's daemon. Link and storage stay in use until close.
 * TIDE_ERROR_LINK: the transport does not open. TIDE_ERROR_TOO_LARGE: the storage is too small for the session's mtu.
 */
int tide_custom_link_open(tide_custom_link_t *link, tide_session_t *session, const tide_custom_transport_t *transport,
                          uint8_t *storage, size_t storage_bytes);
void tide_custom_link_close(tide_custom_link_t *link);

/* End the wait of tide_custom_link_run; if none waits, the next call does not wait. Call it when the session needs a
 * poll, or when the loop around tide_custom_link_run is to end. Any context may call it. It has no effect if the
 * transport cannot end a read: the read then ends by itself after slice_ms. */
void tide_custom_link_wake(tide_custom_link_t *link);

/* Send submitted messages, receive, and poll the session. Returns when something was sent or received, after
 * tide_custom_link_wake, or at the deadline (up to a millisecond before it, because the transport's clock counts
 * milliseconds). With a deadline in the past the call does not wait. Call it with such a deadline after publishing,
 * unless another context runs the link. Only one context at a time may call it; a nested call does nothing. The
 * function can serve as tide_pump_t.run. */
void tide_custom_link_run(void *link, int64_t deadline_ns);

TIDE_EXTERN_C_END
#endif
