/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <Arduino.h>

class UDP : public Stream {
 public:
  virtual uint8_t begin(uint16_t port) = 0;
  virtual void stop() = 0;
  virtual int beginPacket(IPAddress address, uint16_t port) = 0;
  virtual int endPacket() = 0;
  virtual int parsePacket() = 0;
  virtual int read(uint8_t *bytes, size_t count) = 0;
  using Stream::read;
};
