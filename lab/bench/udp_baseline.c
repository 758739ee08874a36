/* SPDX-License-Identifier: Apache-2.0 */
/* Performance of this machine's UDP over loopback without any protocol: two processes, one system call per datagram.
 * Throughput and round trip of the runtime are given relative to it, so that figures of different machines, busy or
 * idle, can be compared.
 *
 *   udp_baseline rate BYTES SECONDS        a line of JSON: datagrams sent and received a second
 *   udp_baseline round_trip BYTES COUNT    a line of JSON: round trips in nanoseconds
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAXIMUM 65000
#define ROUND_TRIPS_MAXIMUM 100000
#define SILENCE_US 200000

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
  const int buffer_bytes = 8 << 20;
  const struct timeval silence = {.tv_usec = SILENCE_US};
  socklen_t length = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (descriptor < 0 || bind(descriptor, (struct sockaddr *)address, sizeof *address) != 0 ||
      getsockname(descriptor, (struct sockaddr *)address, &length) != 0) {
    fail("socket");
  }
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0) {
    (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  }
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  return descriptor;
}

static void join(int descriptor, const struct sockaddr_in *peer) {
  if (connect(descriptor, (const struct sockaddr *)peer, sizeof *peer) != 0) fail("connect");
}

/* Counts until no datagram has arrived for a while, and reports the count in a last datagram. */
static void count_datagrams(int descriptor) {
  uint64_t count = 0;
  while (recv(descriptor, bytes, sizeof bytes, 0) >= 0) count++;
  if (send(descriptor, &count, sizeof count, 0) < 0) fail("send");
}

static void echo_datagrams(int descriptor) {
  for (ssize_t length; (length = recv(descriptor, bytes, sizeof bytes, 0)) >= 0;) {
    if (send(descriptor, bytes, (size_t)length, 0) < 0) fail("send");
  }
}

static void print_rate(int descriptor, size_t length, double seconds) {
  const int64_t start_ns = now_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
  const struct timeval patience = {.tv_sec = 10};
  uint64_t sent = 0, received = 0;
  int64_t time_ns = start_ns;
  while (time_ns < end_ns) {
    for (int burst = 0; burst < 64; burst++) sent += send(descriptor, bytes, length, 0) == (ssize_t)length;
    time_ns = now_ns();
  }
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (recv(descriptor, &received, sizeof received, 0) != (ssize_t)sizeof received) fail("no count came back");
  const double elapsed_s = (double)(time_ns - start_ns) / 1e9;
  printf("{\"sent_per_s\": %.0f, \"received_per_s\": %.0f}\n", (double)sent / elapsed_s, (double)received / elapsed_s);
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
  printf("{\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 "}\n", round_trips_ns[count / 2],
         round_trips_ns[count * 99 / 100], round_trips_ns[count - 1]);
}

int main(int count, char **arguments) {
  const size_t length = count == 4 ? strtoul(arguments[2], NULL, 10) : 0u;
  const double amount = count == 4 ? strtod(arguments[3], NULL) : 0.0;
  const int rate = count == 4 && strcmp(arguments[1], "rate") == 0;
  const int known = rate || (count == 4 && strcmp(arguments[1], "round_trip") == 0);
  if (!known || length < 1u || length > BYTES_MAXIMUM || amount <= 0.0 || (!rate && amount > ROUND_TRIPS_MAXIMUM)) {
    fprintf(stderr, "usage: udp_baseline rate BYTES SECONDS | round_trip BYTES COUNT (at most %d)\n",
            ROUND_TRIPS_MAXIMUM);
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
    if (rate) count_datagrams(far);
    if (!rate) echo_datagrams(far);
    _exit(0);
  }
  (void)close(far);
  if (rate) print_rate(near, length, amount);
  if (!rate) print_round_trips(near, length, amount < 1.0 ? 1u : (size_t)amount);
  (void)waitpid(child, NULL, 0);
  return EXIT_SUCCESS;
}
