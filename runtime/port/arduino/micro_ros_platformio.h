/* SPDX-License-Identifier: Apache-2.0 */
/* tide for PlatformIO, under the name that programs for micro-ROS include there. The option board_microros_transport
 * becomes a build flag: -DMICRO_ROS_TRANSPORT_ARDUINO_WIFI, ..._WIFI_NINA, ..._ETHERNET,
 * ..._NATIVE_ETHERNET, ..._CUSTOM. Without one of these flags the link is a serial line that the program has already
 * begun. */
#ifndef MICRO_ROS_PLATFORMIO_H
#define MICRO_ROS_PLATFORMIO_H

#if !defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI) && !defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI_NINA) &&           \
    !defined(MICRO_ROS_TRANSPORT_ARDUINO_ETHERNET) && !defined(MICRO_ROS_TRANSPORT_ARDUINO_NATIVE_ETHERNET) && \
    !defined(MICRO_ROS_TRANSPORT_ARDUINO_CUSTOM) && !defined(MICRO_ROS_TRANSPORT_ARDUINO_SERIAL)
#define MICRO_ROS_TRANSPORT_ARDUINO_SERIAL
#endif

#include "micro_ros_arduino.h"

/* Any stream of bytes, like set_microros_stream_transport. */
static inline void set_microros_serial_transports(Stream &stream) { set_microros_stream_transport(stream); }

#endif
