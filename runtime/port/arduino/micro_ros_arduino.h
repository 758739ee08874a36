/* SPDX-License-Identifier: Apache-2.0 */
/* tide for Arduino sketches, under the name that sketches for micro-ROS include. Call one of set_microros_* in setup(),
 * before rclc_support_init. The texts and objects passed must stay valid. */
#ifndef MICRO_ROS_ARDUINO_H
#define MICRO_ROS_ARDUINO_H

#include <Arduino.h>
#include <rmw_microros/rmw_microros.h>
#include <uxr/client/transport.h>
#if defined(__has_include)
#if __has_include(<Udp.h>)
#include <Udp.h>
#define TIDE_ARDUINO_UDP 1
#endif
#endif

/* The board's first serial line, `Serial`, at 115,200 baud: the agent's side is `tide agent --serial DEVICE`. */
void set_microros_transports(void);
/* Any stream of bytes: Serial1, a USB serial port, a software serial line. The sketch must have called its begin(). */
void set_microros_stream_transport(Stream &stream);
#if TIDE_ARDUINO_UDP
/* Any network with Arduino's UDP: EthernetUDP, WiFiUDP. The network must be up. */
void set_microros_udp_transport(UDP &udp, IPAddress agent, uint16_t agent_port, uint16_t local_port = 9999);
/* 0, defined before this header: without the calls that bring up a network, and so without the headers of its library,
 * which a core may have chosen (NativeEthernet on Teensy 4.1). */
#ifndef TIDE_ARDUINO_NETWORKS
#define TIDE_ARDUINO_NETWORKS 1
#endif
#if TIDE_ARDUINO_NETWORKS
#include "tide_arduino_networks.h"
#endif
#endif

#endif
