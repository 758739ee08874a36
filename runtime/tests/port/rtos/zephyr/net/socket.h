/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AF_INET 1
#define AF_INET6 2
#define SOCK_DGRAM 2
#define IPPROTO_UDP 17
#define ZSOCK_POLLIN 1
#define ZSOCK_MSG_DONTWAIT 0x40
#define htons(port) ((uint16_t)(((port) >> 8) | ((port) << 8)))

struct in_addr {
  uint32_t s_addr;
};
struct sockaddr {
  uint16_t sa_family;
};
struct sockaddr_in {
  uint16_t sin_family, sin_port;
  struct in_addr sin_addr;
};
struct in6_addr {
  uint8_t s6_addr[16];
};
struct sockaddr_in6 {
  uint16_t sin6_family, sin6_port;
  struct in6_addr sin6_addr;
  uint8_t sin6_scope_id;
};
struct zsock_pollfd {
  int fd;
  short events, revents;
};
typedef size_t socklen_t;

int zsock_socket(int family, int type, int protocol);
int zsock_close(int socket);
int zsock_connect(int socket, const struct sockaddr *address, socklen_t bytes);
ssize_t zsock_send(int socket, const void *bytes, size_t count, int flags);
ssize_t zsock_recv(int socket, void *place, size_t count, int flags);
int zsock_poll(struct zsock_pollfd *sockets, int count, int timeout_ms);
int zsock_inet_pton(int family, const char *text, void *address);
