/* SPDX-License-Identifier: Apache-2.0 */
/* A custom link in four functions: here by UDP sockets of this machine, on a board by anything that transfers bytes.
 * Publishes a counter once a second on "custom_counter". This is plain micro-ROS and uses nothing specific to tide. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(call)                                                   \
  do {                                                                \
    rcl_ret_t result = (call);                                        \
    if (result != RCL_RET_OK) {                                       \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

typedef struct line {
  const char *address;
  uint16_t port;
  int socket;
} line_t;

static line_t *line_of(struct uxrCustomTransport *transport) { return transport->args; }

static bool line_open(struct uxrCustomTransport *transport) {
  line_t *line = line_of(transport);
  struct sockaddr_in agent = {.sin_family = AF_INET, .sin_port = htons(line->port)};
  if (inet_pton(AF_INET, line->address, &agent.sin_addr) != 1) return false;
  line->socket = socket(AF_INET, SOCK_DGRAM, 0);
  return line->socket >= 0 && connect(line->socket, (struct sockaddr *)&agent, sizeof agent) == 0;
}

static bool line_close(struct uxrCustomTransport *transport) { return close(line_of(transport)->socket) == 0; }

/* Writes all bytes or none: one call is one datagram. */
static size_t line_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  const ssize_t sent = send(line_of(transport)->socket, bytes, count, 0);
  *error = sent < 0;
  return sent < 0 ? 0u : (size_t)sent;
}

/* Sleeps while it waits: on a kernel, the thread that calls this has the highest priority. */
static size_t line_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                        uint8_t *error) {
  *error = 0u;
  struct pollfd readable = {.fd = line_of(transport)->socket, .events = POLLIN};
  if (poll(&readable, 1, timeout_ms) <= 0) return 0u;
  const ssize_t got = recv(readable.fd, bytes, count, 0);
  return got < 0 ? 0u : (size_t)got; /* without a receiver: returns 0, as a silent line does */
}

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 message;

static void on_timer(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  if (rcl_publish(&publisher, &message, NULL) == RCL_RET_OK) printf("sent: %d\n", (int)message.data);
  fflush(stdout);
  message.data++;
}

int main(int count, char **words) {
  static line_t line = {.address = "127.0.0.1", .port = 8888};
  if (count > 1) line.address = words[1];
  if (count > 2) line.port = (uint16_t)strtoul(words[2], NULL, 10);
  /* false: each write is a message. For a stream of bytes, such as a UART, pass true; the bytes are then framed. */
  CHECK(rmw_uros_set_custom_transport(false, &line, line_open, line_close, line_write, line_read));

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));
  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "custom_transport", "", &support));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  CHECK(rclc_publisher_init_default(&publisher, &node, type, "custom_counter"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), on_timer));
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_spin(&executor));
  return EXIT_SUCCESS;
}
