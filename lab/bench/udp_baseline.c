/* SPDX-License-Identifier: Apache-2.0 */
/* Performance of this machine's UDP over loopback without any protocol: two processes, one system call per datagram.
 * Round trips of the runtime are given relative to it, so that figures of different machines, busy or idle, can be
 * compared.
 *
 *   udp_baseline BYTES COUNT    a line of JSON: the median in nanoseconds
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAXIMUM 65000
#define ROUND_TRIPS_MAXIMUM 100000
#define SILENCE_S 1

static uint8_t bytes[BYTES_MAXIMUM];
static int64_t round_trips_ns[ROUND_TRIPS_MAXIMUM];

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what) {
  perror(what);
  exit(EXIT_FAILURE);
}

static int open_socket(struct sockaddr_in *address) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  const struct timeval silence = {.tv_sec = SILENCE_S};
  socklen_t length = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (descriptor < 0 || bind(descriptor, (struct sockaddr *)address, sizeof *address) != 0 ||
      getsockname(descriptor, (struct sockaddr *)address, &length) != 0) {
    fail("socket");
  }
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  return descriptor;
}

static void join(int descriptor, const struct sockaddr_in *peer) {
  if (connect(descriptor, (const struct sockaddr *)peer, sizeof *peer) != 0) fail("connect");
}

static void echo_datagrams(int descriptor) {
  for (ssize_t length; (length = recv(descriptor, bytes, sizeof bytes, 0)) >= 0;) {
    if (send(descriptor, bytes, (size_t)length, 0) < 0) fail("send");
  }
}

static int ascending(const void *left, const void *right) {
  const int64_t difference = *(const int64_t *)left - *(const int64_t *)right;
  return difference < 0 ? -1 : difference > 0;
}

static void print_round_trips(int descriptor, size_t length, size_t count) {
  for (size_t index = 0; index < count; index++) {
    const int64_t start_ns = now_ns();
    if (send(descriptor, bytes, length, 0) < 0 || recv(descriptor, bytes, sizeof bytes, 0) < 0) fail("round trip");
    round_trips_ns[index] = now_ns() - start_ns;
  }
  qsort(round_trips_ns, count, sizeof *round_trips_ns, ascending);
  printf("{\"p50_ns\": %" PRId64 "}\n", round_trips_ns[count / 2]);
}

int main(int count, char **arguments) {
  const size_t length = count == 3 ? strtoul(arguments[1], NULL, 10) : 0u;
  const size_t times = count == 3 ? strtoul(arguments[2], NULL, 10) : 0u;
  if (length < 1u || length > BYTES_MAXIMUM || times < 1u || times > ROUND_TRIPS_MAXIMUM) {
    fprintf(stderr, "usage: udp_baseline BYTES COUNT (at most %d)\n", ROUND_TRIPS_MAXIMUM);
    return 2;
  }
  struct sockaddr_in near_address, far_address;
  const int near = open_socket(&near_address), far = open_socket(&far_address);
  join(near, &far_address);
  join(far, &near_address);
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(near);
    echo_datagrams(far);
    _exit(0);
  }
  (void)close(far);
  print_round_trips(near, length, times);
  (void)waitpid(child, NULL, 0);
  return EXIT_SUCCESS;
}
