/* SPDX-License-Identifier: Apache-2.0 */
/* tide for PlatformIO, under the name that programs for micro-ROS include there. The serial line is begun already; the
 * network of set_microros_udp_transport (micro_ros_arduino.h), too. */
#ifndef MICRO_ROS_PLATFORMIO_H
#define MICRO_ROS_PLATFORMIO_H

#include "micro_ros_arduino.h"

/* Any stream of bytes, as set_microros_stream_transport. */
static inline void set_microros_serial_transports(Stream &stream) { set_microros_stream_transport(stream); }

#endif
