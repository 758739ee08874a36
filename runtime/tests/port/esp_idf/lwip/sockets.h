/* SPDX-License-Identifier: Apache-2.0 */
/* Names of lwIP that the component uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/types.h>

#define AF_UNSPEC 0
#define AF_INET 2
#define SOCK_DGRAM 2
#define IPPROTO_UDP 17
#define MSG_DONTWAIT 0x08
#define htons(port) __builtin_bswap16(port)
struct sockaddr {
  uint8_t sa_len, sa_family;
  char sa_data[14];
};
struct in_addr {
  uint32_t s_addr;
};
struct sockaddr_in {
  uint8_t sin_len, sin_family;
  uint16_t sin_port;
  struct in_addr sin_addr;
  char sin_zero[8];
};
typedef uint32_t socklen_t;
struct sockaddr_storage {
  uint8_t s2_len, ss_family;
  char s2_data1[2];
  uint32_t s2_data2[6];
};
int socket(int family, int type, int protocol);
int connect(int file, const struct sockaddr *address, socklen_t bytes);
int close(int file);
ssize_t send(int file, const void *bytes, size_t count, int flags);
ssize_t recv(int file, void *place, size_t count, int flags);
