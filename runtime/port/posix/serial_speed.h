/* SPDX-License-Identifier: Apache-2.0 */
/* Baud rates that this system supports, for client and agent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

static const struct tide_serial_speed {
  uint32_t baud;
  speed_t speed;
} tide_serial_speeds[] = {{1200u, B1200},       {2400u, B2400},       {4800u, B4800},       {9600u, B9600},
                          {19200u, B19200},     {38400u, B38400},     {57600u, B57600},     {115200u, B115200},
                          {230400u, B230400},   {460800u, B460800},   {500000u, B500000},   {576000u, B576000},
                          {921600u, B921600},   {1000000u, B1000000}, {1152000u, B1152000}, {1500000u, B1500000},
                          {2000000u, B2000000}, {2500000u, B2500000}, {3000000u, B3000000}, {3500000u, B3500000},
                          {4000000u, B4000000}};

/* False: this system lacks the speed, and the mode stays as it is. */
static inline bool tide_serial_set_speed(struct termios *mode, uint32_t baud) {
  for (size_t index = 0; index < sizeof tide_serial_speeds / sizeof tide_serial_speeds[0]; index++) {
    if (tide_serial_speeds[index].baud == baud) return cfsetspeed(mode, tide_serial_speeds[index].speed) == 0;
  }
  return false;
}
