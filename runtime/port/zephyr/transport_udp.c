/* SPDX-License-Identifier: Apache-2.0 */
/* UDP by Zephyr's sockets, over IPv4, or over IPv6 with CONFIG_NET_IPV6. The network must be up before the session is
 * opened. */
#include <errno.h>
#include <microros_transports.h>
#include <string.h>
#include <zephyr/kernel.h>
#include <zephyr/net/socket.h>

zephyr_transport_params_t default_params = {.ip = CONFIG_TIDE_AGENT_ADDRESS, .port = CONFIG_TIDE_AGENT_PORT};

static int udp_socket = -1;

bool zephyr_transport_open(struct uxrCustomTransport *transport) {
  const zephyr_transport_params_t *parameters = transport->args;
  struct sockaddr_in agent4 = {.sin_family = AF_INET, .sin_port = htons(parameters->port)};
  struct sockaddr_in6 agent6 = {.sin6_family = AF_INET6, .sin6_port = htons(parameters->port)};
  const bool is_6 = strchr(parameters->ip, ':') != NULL;
  const struct sockaddr *agent = is_6 ? (struct sockaddr *)&agent6 : (struct sockaddr *)&agent4;
  const int family = is_6 ? AF_INET6 : AF_INET;
  if (zsock_inet_pton(family, parameters->ip, is_6 ? (void *)&agent6.sin6_addr : &agent4.sin_addr) != 1) return false;
  udp_socket = zsock_socket(family, SOCK_DGRAM, IPPROTO_UDP);
  if (udp_socket < 0) return false;
  if (zsock_connect(udp_socket, agent, is_6 ? sizeof agent6 : sizeof agent4) == 0) return true;
  (void)zephyr_transport_close(transport);
  return false;
}

bool zephyr_transport_close(struct uxrCustomTransport *transport) {
  ARG_UNUSED(transport);
  if (udp_socket >= 0) (void)zsock_close(udp_socket);
  udp_socket = -1;
  return true;
}

size_t zephyr_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                              uint8_t *error) {
  ARG_UNUSED(transport);
  const ssize_t sent = zsock_send(udp_socket, bytes, count, 0);
  *error = sent < 0 ? 1u : 0u;
  return sent < 0 ? 0u : (size_t)sent;
}

size_t zephyr_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error) {
  ARG_UNUSED(transport);
  struct zsock_pollfd wait = {.fd = udp_socket, .events = ZSOCK_POLLIN};
  *error = 0;
  if (zsock_poll(&wait, 1, timeout_ms) <= 0) return 0u;
  const ssize_t got = zsock_recv(udp_socket, bytes, count, ZSOCK_MSG_DONTWAIT);
  if (got < 0) { /* no agent listens at the port: the link stays up, but do not spin */
    *error = 1;
    k_msleep(1);
  }
  return got < 0 ? 0u : (size_t)got;
}
