/* SPDX-License-Identifier: Apache-2.0 */
/* The node /loop/rtps_peer on the loopback interface, for tests against real ROS 2 without an agent. It sends back each
 * std_msgs/String: from /small/down on /small/up, and from /large/down on /large/up. It serves std_srvs/SetBool as
 * /board/set, and passes each request on to the service /host/set.
 *
 *   rtps_peer --domain N
 *
 * It prints matches, losses and replies as lines of JSON; on SIGTERM it leaves the domain, prints the counters and
 * ends. */
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

#define PARTICIPANTS 32 /* Fast DDS announces itself to this many participants on this interface */
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
static tide_rtps_slot_t reply_slots[DEPTH], request_slots[DEPTH];
static uint8_t replies[DEPTH * SMALL_BYTES], requests[DEPTH * SMALL_BYTES];
static tide_rtps_sample_identity_t answered[DEPTH], asked[DEPTH];
static tide_rtps_reader_t served, replied;
static tide_rtps_writer_t serving = {
    .slots = reply_slots, .memory = replies, .related = answered, .depth = DEPTH, .slot_bytes = SMALL_BYTES};
static tide_rtps_writer_t asking = {
    .slots = request_slots, .memory = requests, .related = asked, .depth = DEPTH, .slot_bytes = SMALL_BYTES};
static tide_rtps_node_t node = {.name = "rtps_peer", .name_space = "/loop"};
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
  static const char *const kinds[] = {"matched", "unmatched", "incompatible", "lost",
                                      "large",   "no_match",  "no_peer",      "unheard"};
  (void)context;
  printf("{\"%s\": \"%s\", \"count\": %" PRId64 "}\n", kinds[event->kind],
         event->local == NULL ? "" : event->local->topic, event->count);
}

static bool on_sample(void *context, const tide_rtps_sample_t *sample) {
  uint8_t *room = tide_participant_write_begin(&participant, context, sample->length);
  require(room != NULL, "a sample is too large");
  memcpy(room, sample->bytes, sample->length);
  tide_participant_write_end(&participant, context, sample->length, NULL, now_ns());
  return true;
}

static bool on_request(void *context, const tide_rtps_sample_t *sample) {
  (void)context;
  const tide_rtps_sample_identity_t request = {sample->related.guid, sample->identity.sequence};
  const tide_rtps_sample_identity_t own = {tide_participant_guid(&participant, &replied.endpoint), 0};
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes, sample->length, sample->big_endian);
  const bool data = tide_cdr_get_bool(&cdr);
  require(cdr.status == TIDE_OK, "a request");
  tide_cdr_writer(&cdr, tide_participant_write_begin(&participant, &serving, 20), 20);
  tide_cdr_put_bool(&cdr, data);
  tide_cdr_put_string(&cdr, "done", 4);
  tide_participant_write_end(&participant, &serving, cdr.position, &request, now_ns());
  *tide_participant_write_begin(&participant, &asking, 1) = data;
  tide_participant_write_end(&participant, &asking, 1, &own, now_ns());
  return true;
}

static bool on_reply(void *context, const tide_rtps_sample_t *sample) {
  (void)context;
  const tide_guid_t own = tide_participant_guid(&participant, &replied.endpoint);
  if (!tide_guid_equal(&sample->related.guid, &own)) return true; /* a reply for another client */
  printf("{\"replied\": %" PRId64 ", \"success\": %u}\n", sample->related.sequence, sample->bytes[0]);
  return true;
}

static void add(tide_rtps_endpoint_t *endpoint, const char *topic, const char *type, const char *type_hash) {
  endpoint->topic = topic;
  endpoint->type = type;
  endpoint->type_hash = type_hash;
  endpoint->node = &node;
  endpoint->qos = tide_rtps_qos_default();
}

/* Binds the port of a participant number that no other process uses, and returns this number. */
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

  require(tide_participant_add_node(&participant, &node, start) == TIDE_OK, "the node");
  static const char string[] = "std_msgs::msg::dds_::String_";
  add(&small_up.endpoint, "rt/small/up", string, STRING_HASH);
  add(&large_up.endpoint, "rt/large/up", string, STRING_HASH);
  add(&small_down.endpoint, "rt/small/down", string, STRING_HASH);
  add(&large_down.endpoint, "rt/large/down", string, STRING_HASH);
  add(&served.endpoint, "rq/board/setRequest", "std_srvs::srv::dds_::SetBool_Request_", NULL);
  add(&serving.endpoint, "rr/board/setReply", "std_srvs::srv::dds_::SetBool_Response_", NULL);
  add(&asking.endpoint, "rq/host/setRequest", "std_srvs::srv::dds_::SetBool_Request_", NULL);
  add(&replied.endpoint, "rr/host/setReply", "std_srvs::srv::dds_::SetBool_Response_", NULL);
  small_up.endpoint.level = small_down.endpoint.level = 1;
  small_down.endpoint.context = &small_up;
  large_down.endpoint.context = &large_up;
  small_down.sample = large_down.sample = on_sample;
  served.sample = on_request;
  replied.sample = on_reply;
  tide_rtps_writer_t *const writers[] = {&small_up, &large_up, &serving, &asking};
  tide_rtps_reader_t *const readers[] = {&small_down, &large_down, &served, &replied};
  size_t added = 0;
  for (; added < 2; added++) {
    require(tide_participant_add_writer(&participant, writers[added], start) == TIDE_OK, "a writer");
    require(tide_participant_add_reader(&participant, readers[added], start) == TIDE_OK, "a reader");
  }
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
      /* If the port has no socket, a later call reports an error. RTPS sends lost data again. */
      (void)!sendto(fd, datagram.bytes, datagram.length, 0, (struct sockaddr *)&to, sizeof to);
    }
    if (has_left) break;
    /* The service and the client are added only when the endpoints of another participant are known, so that they are
     * announced to a participant that is known already. */
    const tide_rtps_proxy_t *known = &peers[0].writers[0];
    for (; added < 4 && peers[0].port != 0 && known->answered && known->next > 1 && known->next >= known->end;
         added++) {
      require(tide_participant_add_writer(&participant, writers[added], now_ns()) == TIDE_OK, "a writer");
      require(tide_participant_add_reader(&participant, readers[added], now_ns()) == TIDE_OK, "a reader");
    }
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
