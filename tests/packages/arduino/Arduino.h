/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the names of an Arduino core that the library and its examples use, for compiling without one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HIGH 1
#define LOW 0
#define OUTPUT 1
#define LED_BUILTIN 13
#define A0 14

extern "C" {
unsigned long micros(void);
unsigned long millis(void);
void delay(unsigned long ms);
void yield(void);
void pinMode(int pin, int mode);
void digitalWrite(int pin, int value);
int digitalRead(int pin);
int analogRead(int pin);
}

class Print {
 public:
  virtual size_t write(const uint8_t *bytes, size_t count) = 0;
  virtual void flush() {}
};

class Stream : public Print {
 public:
  virtual int available() = 0;
  virtual int read() = 0;
};

class HardwareSerial : public Stream {
 public:
  void begin(unsigned long baud);
  size_t write(const uint8_t *bytes, size_t count) override;
  int available() override;
  int read() override;
};
extern HardwareSerial Serial;

class IPAddress {
 public:
  IPAddress() = default;
  IPAddress(uint8_t a, uint8_t b, uint8_t c, uint8_t d) : octets_{a, b, c, d} {}
  bool fromString(const char *text);

 private:
  uint8_t octets_[4] = {};
};

void setup();
void loop();
