/* SPDX-License-Identifier: Apache-2.0 */
/* A topic on the agent: three objects, as the stock middleware makes them. */
#include <string.h>

#include "internal.h"

static uint32_t milliseconds(rmw_time_t time) {
  uint64_t value = time.sec * 1000u + time.nsec / 1000000u;
  return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static void describe_endpoint(tide_xrce_object_t *endpoint, const rmw_qos_profile_t *qos) {
  endpoint->has_qos = true;
  if (tide_compat_is_reliable(qos)) endpoint->qos_flags |= TIDE_XRCE_QOS_RELIABLE;
  if (qos->history != RMW_QOS_POLICY_HISTORY_KEEP_ALL) endpoint->qos_flags |= TIDE_XRCE_QOS_KEEP_LAST;
  if (qos->durability != RMW_QOS_POLICY_DURABILITY_VOLATILE) endpoint->qos_flags |= TIDE_XRCE_QOS_TRANSIENT_LOCAL;
  endpoint->has_depth = qos->depth > 0 && qos->depth <= UINT16_MAX;
  endpoint->depth = (uint16_t)qos->depth;
  endpoint->deadline_ms = milliseconds(qos->deadline);
  endpoint->has_deadline = endpoint->deadline_ms != 0;
  endpoint->lifespan_ms = milliseconds(qos->lifespan);
  endpoint->has_lifespan = endpoint->lifespan_ms != 0 && endpoint->kind == TIDE_XRCE_KIND_DATAWRITER;
}

static void describe(tide_object_t *object, uint8_t kind, uint16_t parent) {
  memset(object, 0, sizeof *object);
  object->description.kind = kind;
  object->description.representation = TIDE_XRCE_BY_BINARY;
  object->description.parent = parent;
}

int tide_compat_create_object(tide_support_t *support, tide_object_t *object, bool wait) {
  int status = tide_session_add_object(&support->session, object);
  if (status != TIDE_OK || !wait) return status;
  return tide_compat_wait_session(support, object, TIDE_SESSION_READY,
                                  tide_compat_deadline(support->creation_timeout_ms));
}

typedef struct removal {
  tide_object_t *object;
  int status;
} removal_t;

static bool is_removed(tide_support_t *support, void *context) {
  removal_t *removal = context;
  removal->status = tide_session_remove_object(&support->session, removal->object);
  if (removal->status == TIDE_ERROR_NOT_FOUND) removal->status = TIDE_OK;
  return removal->status != TIDE_ERROR_FULL;
}

int tide_compat_delete_object(tide_support_t *support, tide_object_t *object) {
  removal_t removal = {object, TIDE_OK};
  tide_compat_wait(support, is_removed, &removal, tide_compat_deadline(support->destroy_timeout_ms), false);
  return removal.status;
}

int tide_compat_create_topic(tide_support_t *support, tide_topic_t *topic, const tide_node_handle_t *node,
                             const tide_message_type_t *type, const char *name, const rmw_qos_profile_t *qos,
                             bool writer) {
  if (!TIDE_RELIABLE_STREAMS && tide_compat_is_reliable(qos)) return TIDE_ERROR_UNSUPPORTED;
  int status = tide_compat_topic_name(topic->name, name, node);
  if (status != TIDE_OK) return status;
  describe(&topic->topic, TIDE_XRCE_KIND_TOPIC, node->participant.id);
  topic->topic.description.name.characters = topic->name;
  topic->topic.description.name.length = strlen(topic->name);
  topic->topic.description.type.characters = type->dds_name;
  topic->topic.description.type.length = strlen(type->dds_name);
  describe(&topic->group, writer ? TIDE_XRCE_KIND_PUBLISHER : TIDE_XRCE_KIND_SUBSCRIBER, node->participant.id);
  status = tide_compat_create_object(support, &topic->topic, false);
  if (status == TIDE_OK) status = tide_compat_create_object(support, &topic->group, false);
  if (status != TIDE_OK) return status;
  describe(&topic->endpoint, writer ? TIDE_XRCE_KIND_DATAWRITER : TIDE_XRCE_KIND_DATAREADER, topic->group.id);
  topic->endpoint.description.topic = topic->topic.id;
  describe_endpoint(&topic->endpoint.description, qos);
  return tide_compat_create_object(support, &topic->endpoint, true);
}

int tide_compat_delete_topic(tide_support_t *support, tide_topic_t *topic) {
  int status = tide_compat_delete_object(support, &topic->endpoint);
  if (status == TIDE_OK) status = tide_compat_delete_object(support, &topic->group);
  return status == TIDE_OK ? tide_compat_delete_object(support, &topic->topic) : status;
}
