/* SPDX-License-Identifier: Apache-2.0 */
/* Finds agents on this network: sends a query to all and takes the first answer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tide/port.h"
#include "tide/status.h"
#include "tide/xrce.h"

#define MESSAGE_BYTES 512
#define HOPS 1

static bool ask_on(int descriptor, struct in_addr interface, const struct sockaddr_in *group) {
  uint8_t question[TIDE_XRCE_DISCOVERY_QUESTION_BYTES];
  const size_t count = tide_xrce_put_discovery_question(question);
  if (setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface) != 0) return false;
  return sendto(descriptor, question, count, 0, (const struct sockaddr *)group, sizeof *group) == (ssize_t)count;
}

/* Sends the query on each network and on this machine. */
static int ask(int descriptor, uint16_t port) {
  struct sockaddr_in group;
  memset(&group, 0, sizeof group);
  group.sin_family = AF_INET;
  group.sin_port = htons(port);
  (void)inet_pton(AF_INET, TIDE_XRCE_DISCOVERY_GROUP, &group.sin_addr);
  struct ifaddrs *interfaces = NULL;
  if (getifaddrs(&interfaces) != 0) return TIDE_ERROR_LINK;
  bool asked = false;
  for (const struct ifaddrs *one = interfaces; one != NULL; one = one->ifa_next) {
    if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET) continue;
    const struct sockaddr_in *address = (const struct sockaddr_in *)(const void *)one->ifa_addr;
    asked = ask_on(descriptor, address->sin_addr, &group) || asked;
  }
  freeifaddrs(interfaces);
  return asked ? TIDE_OK : TIDE_ERROR_LINK;
}

/* An agent that serves every interface may name none. Then the answer's source address is used. */
static void describe(tide_xrce_locator_t *locator, const struct sockaddr_in *from, char *host, uint16_t *port) {
  static const uint8_t any[4] = {0, 0, 0, 0};
  if (memcmp(locator->address, any, sizeof any) == 0) memcpy(locator->address, &from->sin_addr, sizeof any);
  (void)snprintf(host, TIDE_HOST_BYTES, "%u.%u.%u.%u", locator->address[0], locator->address[1], locator->address[2],
                 locator->address[3]);
  *port = locator->port;
}

static bool answered(int descriptor, char *host, uint16_t *port) {
  uint8_t message[MESSAGE_BYTES];
  struct sockaddr_in from;
  socklen_t from_bytes = sizeof from;
  const ssize_t count =
      recvfrom(descriptor, message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&from, &from_bytes);
  tide_xrce_locator_t locator;
  if (count <= 0 || tide_xrce_get_discovery_answer(message, (size_t)count, &locator) != TIDE_OK) return false;
  describe(&locator, &from, host, port);
  return true;
}

static int listen_until(int descriptor, int64_t deadline_ns, char *host, uint16_t *port) {
  for (;;) {
    const int64_t left_ns = deadline_ns - tide_platform_now_ns(tide_port_platform());
    if (left_ns <= 0) return TIDE_ERROR_TIMEOUT;
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    if (poll(&wait, 1, (int)(left_ns / 1000000) + 1) > 0 && answered(descriptor, host, port)) return TIDE_OK;
  }
}

int tide_port_discover_agent(uint16_t group_port, int timeout_ms, char *host, uint16_t *port) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return TIDE_ERROR_LINK;
  const int hops = HOPS;
  (void)setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
  const int64_t deadline_ns = tide_platform_now_ns(tide_port_platform()) + (int64_t)timeout_ms * 1000000;
  int status = ask(descriptor, group_port);
  if (status == TIDE_OK) status = listen_until(descriptor, deadline_ns, host, port);
  (void)close(descriptor);
  return status;
}
