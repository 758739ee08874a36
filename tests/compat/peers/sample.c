/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include <sensor_msgs/msg/image.h>
#include <sensor_msgs/msg/imu.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 6
#define STRING_VARIATION 97 /* number of lengths: 0 to 96 characters follow the index */
#define COVARIANCES 9
#define FRAME_BYTES 16

static char letter_of(uint32_t index, size_t position) { return (char)('a' + (index + position) % 26u); }
static uint8_t pixel_of(uint32_t index, size_t position) { return (uint8_t)(index * 31u + position * 7u); }
static double value_of(uint32_t index, int member) { return (double)index + member * 0.125; }

/* ---- std_msgs/String ---- */

static std_msgs__msg__String string_out, string_in;
static std_msgs__msg__String__Storage string_out_memory, string_in_memory;

static void string_bind(void) {
  std_msgs__msg__String__bind(&string_out, &string_out_memory);
  std_msgs__msg__String__bind(&string_in, &string_in_memory);
}

static size_t string_length(uint32_t index) { return DIGITS + index % STRING_VARIATION; }

static void string_fill(uint32_t index) {
  snprintf(string_out.data.data, string_out.data.capacity, "%0*u", DIGITS, (unsigned)index);
  const size_t length = string_length(index);
  for (size_t i = DIGITS; i < length; i++) string_out.data.data[i] = letter_of(index, i);
  string_out.data.data[length] = '\0';
  string_out.data.size = length;
}

static int64_t string_check(void) {
  const uint32_t index = (uint32_t)strtoul(string_in.data.data, NULL, 10);
  if (string_in.data.size != string_length(index)) return -1;
  for (size_t i = DIGITS; i < string_in.data.size; i++) {
    if (string_in.data.data[i] != letter_of(index, i)) return -1;
  }
  return index;
}

/* ---- sensor_msgs/Imu ---- */

static sensor_msgs__msg__Imu imu_out, imu_in;
static sensor_msgs__msg__Imu__Storage imu_out_memory, imu_in_memory;

static void imu_bind(void) {
  sensor_msgs__msg__Imu__bind(&imu_out, &imu_out_memory);
  sensor_msgs__msg__Imu__bind(&imu_in, &imu_in_memory);
}

static void imu_set(sensor_msgs__msg__Imu *imu, uint32_t index) {
  imu->header.stamp.sec = (int32_t)index;
  imu->header.stamp.nanosec = index % 1000u;
  imu->orientation.x = value_of(index, 0);
  imu->orientation.y = value_of(index, 1);
  imu->orientation.z = value_of(index, 2);
  imu->orientation.w = value_of(index, 3);
  imu->angular_velocity.x = value_of(index, 4);
  imu->angular_velocity.y = value_of(index, 5);
  imu->angular_velocity.z = value_of(index, 6);
  imu->linear_acceleration.x = value_of(index, 7);
  imu->linear_acceleration.y = value_of(index, 8);
  imu->linear_acceleration.z = value_of(index, 9);
  for (int i = 0; i < COVARIANCES; i++) {
    imu->orientation_covariance[i] = value_of(index, 10 + i);
    imu->angular_velocity_covariance[i] = value_of(index, 20 + i);
    imu->linear_acceleration_covariance[i] = value_of(index, 30 + i);
  }
}

static void imu_fill(uint32_t index) {
  imu_set(&imu_out, index);
  const int length = snprintf(imu_out.header.frame_id.data, imu_out.header.frame_id.capacity, "imu%u", index % 10u);
  imu_out.header.frame_id.size = (size_t)length;
}

static int64_t imu_check(void) {
  static sensor_msgs__msg__Imu expected;
  const uint32_t index = (uint32_t)imu_in.header.stamp.sec;
  char frame[FRAME_BYTES];
  expected.header.frame_id.data = frame;
  expected.header.frame_id.capacity = sizeof frame;
  expected.header.frame_id.size = (size_t)snprintf(frame, sizeof frame, "imu%u", index % 10u);
  imu_set(&expected, index);
  return sensor_msgs__msg__Imu__are_equal(&expected, &imu_in) ? (int64_t)index : -1;
}

/* ---- sensor_msgs/Image ---- */

static sensor_msgs__msg__Image image_out, image_in;
static sensor_msgs__msg__Image__Storage image_out_memory, image_in_memory;

static void image_bind(void) {
  sensor_msgs__msg__Image__bind(&image_out, &image_out_memory);
  sensor_msgs__msg__Image__bind(&image_in, &image_in_memory);
  image_out.height = image_out.width = image_out.step = SAMPLE_IMAGE_SIDE;
  image_out.data.size = SAMPLE_IMAGE_SIDE * SAMPLE_IMAGE_SIDE;
  image_out.encoding.size = (size_t)snprintf(image_out.encoding.data, image_out.encoding.capacity, "mono8");
}

static void image_fill(uint32_t index) {
  image_out.header.stamp.sec = (int32_t)index;
  for (size_t i = 0; i < image_out.data.size; i++) image_out.data.data[i] = pixel_of(index, i);
}

static int64_t image_check(void) {
  const uint32_t index = (uint32_t)image_in.header.stamp.sec;
  if (image_in.height != SAMPLE_IMAGE_SIDE || image_in.width != SAMPLE_IMAGE_SIDE ||
      image_in.data.size != SAMPLE_IMAGE_SIDE * SAMPLE_IMAGE_SIDE || strcmp(image_in.encoding.data, "mono8") != 0) {
    return -1;
  }
  for (size_t i = 0; i < image_in.data.size; i++) {
    if (image_in.data.data[i] != pixel_of(index, i)) return -1;
  }
  return index;
}

static const rosidl_message_type_support_t *string_type(void) {
  return ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
}
static const rosidl_message_type_support_t *imu_type(void) {
  return ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, Imu);
}
static const rosidl_message_type_support_t *image_type(void) {
  return ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, Image);
}

const sample_kind_t sample_kinds[SAMPLE_KINDS] = {
    {"string", 1, &string_out, &string_in, string_type, string_bind, string_fill, string_check},
    {"imu", 2, &imu_out, &imu_in, imu_type, imu_bind, imu_fill, imu_check},
    {"image", 0, &image_out, &image_in, image_type, image_bind, image_fill, image_check},
};
