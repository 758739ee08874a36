// SPDX-License-Identifier: Apache-2.0
// A program for PlatformIO as users have it: the header and the call are those of micro-ROS for PlatformIO.
#include <micro_ros_platformio.h>
#include <rclc/rclc.h>

static rcl_allocator_t allocator;
static rclc_support_t support;

void setup() {
  Serial.begin(115200);
  set_microros_serial_transports(Serial);
  allocator = rcl_get_default_allocator();
  (void)rclc_support_init(&support, 0, nullptr, &allocator);
}

void loop() {}
