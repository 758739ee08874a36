/* SPDX-License-Identifier: Apache-2.0 */
/* A program of Cyclone DDS that talks to rtps_peer as nodes with rmw_cyclonedds do: cyclone_host DOMAIN COUNT. It sends
 * COUNT strings and expects each back, calls /board/set COUNT times, and serves /host/set, to which the board passes
 * each request on. It ends when everything has arrived. */
#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ros.h"

#define CLIENT UINT64_C(0x0123456789ABCDEF)

static dds_entity_t participant;

static dds_entity_t require(dds_return_t result, const char *what) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(-result));
  exit(EXIT_FAILURE);
}

static void check(bool condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(EXIT_FAILURE);
}

static dds_entity_t endpoint(bool writes, const dds_topic_descriptor_t *type, const char *name) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  const dds_entity_t topic = require(dds_create_topic(participant, type, name, NULL, NULL), name);
  const dds_return_t made =
      writes ? dds_create_writer(participant, topic, qos, NULL) : dds_create_reader(participant, topic, qos, NULL);
  dds_delete_qos(qos);
  return require(made, name);
}

static void await_match(dds_entity_t one, bool writes) {
  for (uint32_t count = 0; count == 0; dds_sleepfor(DDS_MSECS(10))) {
    dds_publication_matched_status_t publication = {0};
    dds_subscription_matched_status_t subscription = {0};
    require(writes ? dds_get_publication_matched_status(one, &publication)
                   : dds_get_subscription_matched_status(one, &subscription),
            "matches");
    count = publication.current_count + subscription.current_count;
  }
}

/* Returns a sample, which is never given back; null: there is none. */
static void *take(dds_entity_t reader) {
  void *sample = NULL;
  dds_sample_info_t info;
  return require(dds_take(reader, &sample, &info, 1, 1), "taking") == 1 && info.valid_data ? sample : NULL;
}

static void *await(dds_entity_t reader) {
  void *sample;
  while ((sample = take(reader)) == NULL) dds_sleepfor(DDS_MSECS(2));
  return sample;
}

int main(int count, char **words) {
  check(count == 3, "cyclone_host DOMAIN COUNT");
  const int wanted = atoi(words[2]);
  participant = require(dds_create_participant((dds_domainid_t)atoi(words[1]), NULL, NULL), "participant");
  const dds_entity_t down = endpoint(true, &std_msgs_msg_dds__String__desc, "rt/small/down");
  const dds_entity_t up = endpoint(false, &std_msgs_msg_dds__String__desc, "rt/small/up");
  const dds_entity_t asking = endpoint(true, &std_srvs_srv_dds__SetBool_Request__desc, "rq/board/setRequest");
  const dds_entity_t replied = endpoint(false, &std_srvs_srv_dds__SetBool_Response__desc, "rr/board/setReply");
  const dds_entity_t served = endpoint(false, &std_srvs_srv_dds__SetBool_Request__desc, "rq/host/setRequest");
  const dds_entity_t serving = endpoint(true, &std_srvs_srv_dds__SetBool_Response__desc, "rr/host/setReply");
  await_match(down, true);
  await_match(up, false);
  await_match(asking, true);
  await_match(replied, false);
  await_match(served, false);
  await_match(serving, true);
  /* The board may know the writer earlier than the reader, and its answers are lost until then. */
  const std_msgs_msg_dds__String_ probe = {.data = "probe"};
  for (void *back = NULL; back == NULL; back = take(up)) {
    require(dds_write(down, &probe), "publishing");
    dds_sleepfor(DDS_MSECS(20));
  }
  for (int number = 0; number < wanted; number++) {
    char text[32];
    snprintf(text, sizeof text, "%0*d", number % 16 + 1, number);
    const std_msgs_msg_dds__String_ sent = {.data = text};
    require(dds_write(down, &sent), "publishing");
    const std_msgs_msg_dds__String_ *back = await(up);
    while (strcmp(back->data, probe.data) == 0) back = await(up);
    check(strcmp(back->data, text) == 0, back->data);
  }
  for (int number = 1; number <= wanted; number++) {
    const std_srvs_srv_dds__SetBool_Request_ request = {CLIENT, number, number % 3 == 0};
    require(dds_write(asking, &request), "asking");
    const std_srvs_srv_dds__SetBool_Response_ *reply = await(replied);
    check(reply->client == CLIENT && reply->number == number, "the reply's request");
    check(reply->success == request.data && strcmp(reply->message, "done") == 0, "the reply");
    const std_srvs_srv_dds__SetBool_Request_ *passed_on = await(served);
    check(passed_on->data == request.data, "what the board asks");
    const std_srvs_srv_dds__SetBool_Response_ stranger = {CLIENT, passed_on->number, !passed_on->data, ""};
    const std_srvs_srv_dds__SetBool_Response_ own = {passed_on->client, passed_on->number, passed_on->data, ""};
    require(dds_write(serving, &stranger), "replying to another client");
    require(dds_write(serving, &own), "replying");
  }
  require(dds_wait_for_acks(serving, DDS_SECS(10)), "the last reply");
  require(dds_delete(participant), "the end");
  return EXIT_SUCCESS;
}
