/* SPDX-License-Identifier: Apache-2.0 */
/* Names of lwIP that the component uses. */
#pragma once

#include "lwip/sockets.h"

struct addrinfo {
  int ai_flags, ai_family, ai_socktype, ai_protocol;
  uint32_t ai_addrlen;
  struct sockaddr *ai_addr;
  char *ai_canonname;
  struct addrinfo *ai_next;
};
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);
void freeaddrinfo(struct addrinfo *found);
