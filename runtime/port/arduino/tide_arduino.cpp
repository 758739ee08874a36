/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and transports of an Arduino core. */
#define TIDE_ARDUINO_NETWORKS 0 /* only sketches bring up a network */
#include "bare.h"
#include "micro_ros_arduino.h"

extern "C" {

uint32_t tide_bare_clock_us(void) { return (uint32_t)micros(); }

void tide_bare_idle(uint32_t) { yield(); }

#if defined(__arm__)
uintptr_t tide_bare_mask(void) {
  uint32_t state;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(state) : : "memory");
  return state;
}

void tide_bare_unmask(uintptr_t state) { __asm volatile("msr primask, %0" : : "r"((uint32_t)state) : "memory"); }
#else
/* On other cores the runtime cannot find out whether interrupts are masked, so it masks none, and the sketch's own
 * interrupts must not call the runtime. */
uintptr_t tide_bare_mask(void) { return 0; }
void tide_bare_unmask(uintptr_t state) { (void)state; }
#endif

/* ---- streams of bytes ---- */

static Stream &stream_of(struct uxrCustomTransport *transport) { return *static_cast<Stream *>(transport->args); }

static bool stream_open(struct uxrCustomTransport *transport) {
  (void)transport;
  return true;
}

static bool stream_close(struct uxrCustomTransport *transport) {
  stream_of(transport).flush();
  return true;
}

static size_t stream_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  const size_t sent = stream_of(transport).write(bytes, count);
  *error = sent == count ? 0 : 1;
  return sent;
}

static size_t stream_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                          uint8_t *error) {
  Stream &stream = stream_of(transport);
  const uint32_t start_ms = (uint32_t)millis();
  *error = 0;
  while (stream.available() <= 0 && (uint32_t)millis() - start_ms < (uint32_t)timeout_ms) yield();
  size_t taken = 0;
  while (taken < count && stream.available() > 0) {
    const int octet = stream.read();
    if (octet < 0) break;
    bytes[taken++] = (uint8_t)octet;
  }
  return taken;
}
}

void set_microros_stream_transport(Stream &stream) {
  (void)rmw_uros_set_custom_transport(true, &stream, stream_open, stream_close, stream_write, stream_read);
}

void set_microros_transports(void) {
  Serial.begin(115200);
  set_microros_stream_transport(Serial);
}

/* ---- datagrams ---- */

#if TIDE_ARDUINO_UDP
extern "C" {
static struct {
  UDP *udp;
  IPAddress agent;
  uint16_t agent_port, local_port;
} datagrams;

static bool udp_open(struct uxrCustomTransport *transport) {
  (void)transport;
  return datagrams.udp->begin(datagrams.local_port) != 0;
}

static bool udp_close(struct uxrCustomTransport *transport) {
  (void)transport;
  datagrams.udp->stop();
  return true;
}

static size_t udp_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  UDP &udp = *datagrams.udp;
  const bool whole = udp.beginPacket(datagrams.agent, datagrams.agent_port) != 0 && udp.write(bytes, count) == count &&
                     udp.endPacket() != 0;
  *error = whole ? 0 : 1;
  return whole ? count : 0;
}

static size_t udp_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                       uint8_t *error) {
  (void)transport;
  UDP &udp = *datagrams.udp;
  const uint32_t start_ms = (uint32_t)millis();
  *error = 0;
  int size = udp.parsePacket();
  while (size <= 0 && (uint32_t)millis() - start_ms < (uint32_t)timeout_ms) {
    yield();
    size = udp.parsePacket();
  }
  if (size <= 0) return 0;
  const int taken = udp.read(bytes, count);
  return taken > 0 ? (size_t)taken : 0;
}
}

void set_microros_udp_transport(UDP &udp, IPAddress agent, uint16_t agent_port, uint16_t local_port) {
  datagrams.udp = &udp;
  datagrams.agent = agent;
  datagrams.agent_port = agent_port;
  datagrams.local_port = local_port;
  (void)rmw_uros_set_custom_transport(false, &datagrams, udp_open, udp_close, udp_write, udp_read);
}
#endif
