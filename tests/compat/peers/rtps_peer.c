/* SPDX-License-Identifier: Apache-2.0 */
/* A participant on the loopback interface, for tests against real ROS 2 without an agent. It sends every
 * std_msgs/String that it receives on /small/down and /large/down back, on /small/up and /large/up.
 *
 *   rtps_peer --domain N
 *
 * Matches and losses are printed as lines of JSON; SIGTERM says goodbye, prints the counters and ends the program. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tide/rtps_participant.h"
#include "tide/status.h"

#define PARTICIPANTS 32 /* to which Fast DDS announces itself on this interface */
#define DEPTH 64
#define SMALL_BYTES 1000
#define LARGE_BYTES 200000
#define LARGE_DEPTH 4
#define STRING_HASH "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"

static const uint8_t loopback[1][4] = {{127, 0, 0, 1}};
static tide_participant_t participant;
static tide_rtps_peer_t peers[8];
static tide_rtps_match_t matches[16];
static tide_rtps_slot_t slots[DEPTH], large_slots[LARGE_DEPTH];
static uint8_t histories[DEPTH * SMALL_BYTES], large_histories[LARGE_DEPTH * LARGE_BYTES];
static uint8_t assembled[SMALL_BYTES], large_assembled[LARGE_BYTES];
static tide_rtps_writer_t small_up = {.slots = slots, .memory = histories, .depth = DEPTH, .slot_bytes = SMALL_BYTES};
static tide_rtps_writer_t large_up = {
    .slots = large_slots, .memory = large_histories, .depth = LARGE_DEPTH, .slot_bytes = LARGE_BYTES};
static tide_rtps_reader_t small_down = {.memory = assembled, .memory_bytes = sizeof assembled};
static tide_rtps_reader_t large_down = {.memory = large_assembled, .memory_bytes = sizeof large_assembled};
static volatile sig_atomic_t is_ending;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void require(bool condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(EXIT_FAILURE);
}

static void on_end(int signal) { is_ending = signal; }

static void on_event(void *context, const tide_rtps_event_t *event) {
  static const char *const kinds[] = {"matched", "unmatched", "incompatible", "lost", "large", "no_match", "no_peer"};
  (void)context;
  printf("{\"%s\": \"%s\", \"count\": %" PRId64 "}\n", kinds[event->kind],
         event->local == NULL ? "" : event->local->topic, event->count);
}

static void on_sample(void *context, const tide_rtps_sample_t *sample) {
  uint8_t *room = tide_participant_write_begin(&participant, context, sample->length);
  require(room != NULL, "a sample is too large");
  memcpy(room, sample->bytes, sample->length);
  tide_participant_write_end(&participant, context, sample->length, now_ns());
}

static void add(tide_rtps_endpoint_t *endpoint, const char *topic) {
  endpoint->topic = topic;
  endpoint->type = "std_msgs::msg::dds_::String_";
  endpoint->type_hash = STRING_HASH;
  endpoint->qos = tide_rtps_qos_default();
}

/* Binds the port of a participant that no other process has, and returns its number. */
static uint16_t bind_free(int socket_fd, uint32_t domain) {
  for (uint16_t number = PARTICIPANTS - 1; number > 0; number--) {
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)TIDE_RTPS_PORT_DISCOVERY(domain, number)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(socket_fd, (struct sockaddr *)&own, sizeof own) == 0) return number;
    require(errno == EADDRINUSE, "bind");
  }
  require(false, "no port is free");
  return 0;
}

int main(int count, char **arguments) {
  static uint8_t bytes[65536], datagram_bytes[TIDE_RTPS_DATAGRAM_BYTES];
  require(count == 3 && strcmp(arguments[1], "--domain") == 0, "usage: rtps_peer --domain N");
  const uint32_t domain = (uint32_t)strtoul(arguments[2], NULL, 10);
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  require(fd >= 0, "socket");
  tide_participant_config_t config = {.domain = domain, .no_multicast = true, .known = loopback, .known_count = 1};
  config.known_participants = PARTICIPANTS;
  config.participant = bind_free(fd, domain);
  const int64_t start = now_ns();
  const uint64_t prefix[2] = {TIDE_RTPS_VENDOR >> 8 | (TIDE_RTPS_VENDOR & 0xFFu) << 8 | (uint64_t)getpid() << 16,
                              (uint64_t)start / 1000};
  memcpy(config.prefix, prefix, sizeof config.prefix);
  memcpy(config.address, loopback[0], sizeof config.address);
  config.peers = peers;
  config.peer_count = sizeof peers / sizeof peers[0];
  config.matches = matches;
  config.match_count = sizeof matches / sizeof matches[0];
  config.event = on_event;
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct sigaction action = {.sa_handler = on_end};
  sigaction(SIGTERM, &action, NULL);
  require(tide_participant_init(&participant, &config, start) == TIDE_OK, "configuration");
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  participant.wall_ns = wall.tv_sec * INT64_C(1000000000) + wall.tv_nsec - start;

  add(&small_up.endpoint, "rt/small/up");
  add(&large_up.endpoint, "rt/large/up");
  add(&small_down.endpoint, "rt/small/down");
  add(&large_down.endpoint, "rt/large/down");
  small_up.endpoint.level = small_down.endpoint.level = 1;
  small_down.endpoint.context = &small_up;
  large_down.endpoint.context = &large_up;
  small_down.sample = large_down.sample = on_sample;
  require(tide_participant_add_writer(&participant, &small_up, start) == TIDE_OK &&
              tide_participant_add_writer(&participant, &large_up, start) == TIDE_OK &&
              tide_participant_add_reader(&participant, &small_down, start) == TIDE_OK &&
              tide_participant_add_reader(&participant, &large_down, start) == TIDE_OK,
          "endpoints");
  printf("{\"ready\": %u}\n", config.participant);

  for (bool has_left = false;;) {
    tide_rtps_datagram_t datagram = {.bytes = datagram_bytes};
    if (is_ending && !has_left) {
      has_left = true;
      tide_participant_leave(&participant, now_ns());
    }
    while (tide_participant_poll(&participant, now_ns(), &datagram)) {
      struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(datagram.to.port)};
      memcpy(&to.sin_addr, datagram.to.address, sizeof to.sin_addr);
      /* A port without a socket is reported by the next call; what is lost is sent again. */
      (void)!sendto(fd, datagram.bytes, datagram.length, 0, (struct sockaddr *)&to, sizeof to);
    }
    if (has_left) break;
    const int64_t wait_ns = datagram.deadline_ns - now_ns();
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, wait_ns > 0 ? (int)(wait_ns / 1000000 < 1000 ? wait_ns / 1000000 + 1 : 1000) : 0) <= 0)
      continue;
    struct sockaddr_in from;
    socklen_t from_bytes = sizeof from;
    const ssize_t length = recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &from_bytes);
    if (length < 0) continue;
    uint8_t address[4];
    memcpy(address, &from.sin_addr, sizeof address);
    tide_participant_receive(&participant, bytes, (size_t)length, address, now_ns());
  }
  const tide_rtps_counters_t *counters = &participant.counters;
  printf("{\"end\": {\"malformed\": %" PRIu32 ", \"lost\": %" PRIu32 ", \"ahead\": %" PRIu32
         ", \"duplicates\": %" PRIu32 ", \"resent\": %" PRIu32 ", \"unsupported\": %" PRIu32
         ", \"overwritten\": %" PRIu32 ", \"restarted\": %" PRIu32 "}}\n",
         counters->malformed, counters->lost, counters->ahead, counters->duplicates, counters->resent,
         counters->unsupported, counters->overwritten, counters->restarted);
  return EXIT_SUCCESS;
}
