/* SPDX-License-Identifier: Apache-2.0 */
/* A board whose images are longer than its pool, for tests with real ROS 2.
 *
 *   image_peer (--udp PORT | --serial DEVICE (921,600 baud)) --bytes N
 *
 * Until SIGTERM, it publishes images of N octets; the first four octets are the image's number. It prints a line of
 * JSON when an image is half written, and one with the code of each rcl_publish. */
#include <rclc/sleep.h>
#include <std_msgs/msg/u_int8_multi_array.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_MTU_BYTES 512
#define TIDE_SMALL_NODES 8
#define TIDE_SMALL_NODE_BYTES 128
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 1532 /* 4,088 bytes in all */
#include "peer.h"

#define PIECE_BYTES 1000u
#define COUNT_BYTES 4

static int64_t bytes = 300000;
static uint32_t image_bytes, number;

static void add_size(uint32_t *topic_length) { *topic_length += image_bytes; }

static void write_image(ucdrBuffer *buffer) {
  uint8_t piece[PIECE_BYTES];
  buffer->iterator -= COUNT_BYTES; /* keeps the count of an empty array out of the message */
  ucdr_serialize_uint32_t(buffer, image_bytes);
  for (uint32_t at = 0; at < image_bytes; at += PIECE_BYTES) {
    const uint32_t count = image_bytes - at < PIECE_BYTES ? image_bytes - at : PIECE_BYTES;
    memset(piece, (uint8_t)(number + at / PIECE_BYTES), sizeof piece);
    if (at == 0u) memcpy(piece, &number, sizeof number);
    if (at <= image_bytes / 2 && image_bytes / 2 < at + PIECE_BYTES) {
      printf("{\"half\": %" PRIu32 "}\n", number);
      fflush(stdout);
    }
    ucdr_serialize_array_uint8_t(buffer, piece, count);
  }
}

int main(int count, char **words) {
  end_by_signal();
  const peer_option_t own[] = {{.name = "bytes", .number = &bytes}, {0}};
  node_name = "camera";
  connect_board(count, words, own, "", 0);
  image_bytes = (uint32_t)bytes;
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  require(rclc_publisher_init_default(&publisher, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, UInt8MultiArray),
                                      "image"),
          "the publisher");
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&publisher), add_size, write_image);
  static std_msgs__msg__UInt8MultiArray image;
  for (; !interrupted; number++) {
    const rcl_ret_t code = rcl_publish(&publisher, &image, NULL);
    printf("{\"published\": %" PRIu32 ", \"code\": %d}\n", number, (int)code);
    fflush(stdout);
    rclc_sleep_ms(code == RCL_RET_OK ? 1 : 50);
  }
  require(rcl_publisher_fini(&publisher, &node), "ending the publisher");
  require(rcl_node_fini(&node), "ending the node");
  require(rclc_support_fini(&support), "ending the support");
  return 0;
}
