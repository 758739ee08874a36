/* SPDX-License-Identifier: Apache-2.0 */
/* The agent on the board, in the order of a session's life: its objects; samples from the program; samples for the
 * program; messages from the session; messages to the session. */
#include <string.h>

#include "tide/invariant.h"
#include "tide/priority.h"
#include "tide/rtps_agent.h"
#include "tide/status.h"

#define NEVER INT64_MAX
#define MS INT64_C(1000000)
#define HEARTBEAT_NS (20 * MS) /* from an unacknowledged frame to its HEARTBEAT; doubled with each try up to 640 ms */
#define HOLD_NS (5000 * MS)    /* how long messages wait for an undiscovered server or client, as in tide's agent */
#define IDENTITY_BYTES 24u     /* before a service's requests and replies: GUID and number of the request */
#define REPLY_HEADER_BYTES 4u  /* before a client's replies: the request that is answered */
#define DATA_HEADER_BYTES (TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + TIDE_XRCE_REQUEST_BYTES)
#define ANSWERS_OF_A_MESSAGE 2u /* largest number of answers to one message */

static int64_t earlier(int64_t left, int64_t right) { return left < right ? left : right; }

/* ---- answers: they travel outside the streams, so no sample delays them ---- */

static void begin_answer(tide_rtps_agent_t *agent, tide_cdr_t *cdr, uint8_t id) {
  TIDE_INVARIANT(agent->answer_count < TIDE_RTPS_AGENT_ANSWERS);
  const size_t place = (agent->first_answer + agent->answer_count) % TIDE_RTPS_AGENT_ANSWERS;
  agent->answers[place].id = id;
  agent->answers[place].session = agent->session;
  tide_cdr_writer(cdr, agent->answers[place].body, sizeof agent->answers[place].body);
}

static void end_answer(tide_rtps_agent_t *agent, const tide_cdr_t *cdr) {
  const size_t place = (agent->first_answer + agent->answer_count++) % TIDE_RTPS_AGENT_ANSWERS;
  TIDE_INVARIANT(cdr->status == TIDE_OK);
  agent->answers[place].length = (uint8_t)cdr->position;
}

static void answer_status(tide_rtps_agent_t *agent, tide_xrce_request_t request, uint8_t status) {
  const tide_xrce_status_body_t body = {.related = request, .status = status};
  tide_cdr_t cdr;
  begin_answer(agent, &cdr, TIDE_XRCE_STATUS);
  tide_xrce_put_status(&cdr, &body);
  end_answer(agent, &cdr);
}

/* ---- objects ---- */

static tide_rtps_agent_node_t *find_node(const tide_rtps_agent_t *agent, uint16_t object) {
  for (size_t i = 0; i < agent->config.node_count; i++)
    if (agent->config.nodes[i].object == object) return &agent->config.nodes[i];
  return NULL;
}

static tide_rtps_output_t *find_output(const tide_rtps_agent_t *agent, uint16_t object) {
  for (size_t i = 0; i < agent->config.output_count; i++)
    if (agent->config.outputs[i].object == object) return &agent->config.outputs[i];
  return NULL;
}

static tide_rtps_input_t *find_input(const tide_rtps_agent_t *agent, uint16_t object) {
  for (size_t i = 0; i < agent->config.input_count; i++)
    if (agent->config.inputs[i].object == object) return &agent->config.inputs[i];
  return NULL;
}

static tide_rtps_agent_topic_t *find_topic(const tide_rtps_agent_t *agent, uint16_t object) {
  for (size_t i = 0; i < (size_t)agent->config.output_count + agent->config.input_count; i++)
    if (agent->config.topics[i].object == object) return &agent->config.topics[i];
  return NULL;
}

static bool copy_text(char *to, size_t capacity, tide_text_t text) {
  if (text.length >= capacity) return false;
  memcpy(to, text.characters, text.length);
  to[text.length] = '\0';
  return true;
}

/* Null: no entry is free, or the texts are too long. */
static tide_rtps_agent_topic_t *make_topic(const tide_rtps_agent_t *agent, uint16_t object, uint16_t parent,
                                           tide_text_t name, tide_text_t type) {
  tide_rtps_agent_topic_t *topic = find_topic(agent, 0);
  if (topic == NULL || !copy_text(topic->name, sizeof topic->name, name) ||
      !copy_text(topic->type, sizeof topic->type, type))
    return NULL;
  topic->object = object;
  topic->parent = parent;
  return topic;
}

static int64_t from_ms(bool given, uint32_t ms) { return given ? ms * MS : INT64_MAX; }

static void describe(const tide_rtps_agent_t *agent, tide_rtps_endpoint_t *endpoint,
                     const tide_rtps_agent_topic_t *topic, const tide_xrce_object_t *object) {
  const tide_rtps_agent_node_t *node = find_node(agent, topic->parent);
  *endpoint = (tide_rtps_endpoint_t){.topic = topic->name, .type = topic->type, .qos = tide_rtps_qos_default()};
  endpoint->node = node == NULL ? NULL : &node->node;
  if (!object->has_qos) return; /* services and clients have none */
  endpoint->qos.reliable = (object->qos_flags & TIDE_XRCE_QOS_RELIABLE) != 0;
  endpoint->qos.durability = (object->qos_flags & TIDE_XRCE_QOS_TRANSIENT_LOCAL) != 0;
  endpoint->qos.deadline_ns = from_ms(object->has_deadline, object->deadline_ms);
  endpoint->qos.lifespan_ns = from_ms(object->has_lifespan, object->lifespan_ms);
}

static uint8_t add_output(tide_rtps_agent_t *agent, uint16_t id, tide_rtps_agent_topic_t *topic,
                          const tide_xrce_object_t *object) {
  const tide_rtps_agent_config_t *config = &agent->config;
  tide_rtps_output_t *output = find_output(agent, 0);
  if (topic == NULL || output == NULL) return TIDE_XRCE_STATUS_ERR_RESOURCES;
  const size_t index = (size_t)(output - config->outputs) * config->history;
  const uint32_t slot_bytes = config->sample_bytes + TIDE_RTPS_SLOT_OVERHEAD_BYTES;
  *output = (tide_rtps_output_t){.topic = topic, .requests = config->requests + index};
  tide_rtps_writer_t *writer = &output->writer;
  describe(agent, &writer->endpoint, topic, object);
  writer->slots = config->slots + index;
  writer->memory = config->histories + index * slot_bytes;
  writer->slot_bytes = slot_bytes;
  writer->depth =
      object->has_depth && object->depth > 0 && object->depth < config->history ? object->depth : config->history;
  if (object->kind != TIDE_XRCE_KIND_DATAWRITER) {
    writer->related = config->related + index;
    writer->hold_ns = HOLD_NS;
  }
  if (tide_participant_add_writer(&agent->participant, writer, agent->now_ns) != TIDE_OK)
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  output->object = id;
  return TIDE_XRCE_STATUS_OK;
}

static bool on_sample(void *context, const tide_rtps_sample_t *sample);

static uint8_t add_input(tide_rtps_agent_t *agent, uint16_t id, tide_rtps_agent_topic_t *topic,
                         const tide_xrce_object_t *object) {
  const tide_rtps_agent_config_t *config = &agent->config;
  tide_rtps_input_t *input = find_input(agent, 0);
  if (topic == NULL || input == NULL) return TIDE_XRCE_STATUS_ERR_RESOURCES;
  *input = (tide_rtps_input_t){.topic = topic, .agent = agent};
  tide_rtps_reader_t *reader = &input->reader;
  describe(agent, &reader->endpoint, topic, object);
  reader->endpoint.context = input;
  reader->sample = on_sample;
  reader->memory_bytes = config->sample_bytes + 4u;
  reader->memory = config->assemblies + (size_t)(input - config->inputs) * reader->memory_bytes;
  const bool keeps_last = (object->qos_flags & TIDE_XRCE_QOS_KEEP_LAST) != 0;
  if (object->kind == TIDE_XRCE_KIND_DATAREADER && keeps_last && object->has_depth) input->depth = object->depth;
  if (tide_participant_add_reader(&agent->participant, reader, agent->now_ns) != TIDE_OK)
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  input->object = id;
  return TIDE_XRCE_STATUS_OK;
}

/* Deletes everything with this id; for a service or client, both its writer and its reader. */
static void delete_object(tide_rtps_agent_t *agent, uint16_t id) {
  tide_rtps_output_t *output = find_output(agent, id);
  tide_rtps_input_t *input = find_input(agent, id);
  tide_rtps_agent_node_t *node = find_node(agent, id);
  if (output != NULL) {
    tide_participant_remove(&agent->participant, &output->writer.endpoint, agent->now_ns);
    output->object = 0;
  }
  if (input != NULL) {
    tide_participant_remove(&agent->participant, &input->reader.endpoint, agent->now_ns);
    input->object = 0;
    /* Frames of a reliable stream stay until they are acknowledged, because the stream must have no gaps. */
    for (size_t i = 0; i < agent->config.frame_count; i++)
      if (agent->config.frames[i].input == input) agent->config.frames[i].input = NULL;
  }
  if (node != NULL) {
    tide_participant_remove_node(&agent->participant, &node->node);
    node->object = 0;
  }
  tide_rtps_agent_topic_t *topic;
  while ((topic = find_topic(agent, id)) != NULL) {
    topic->object = 0;
    /* If a topic is deleted before its endpoints, these are deleted, too, because they use its names. */
    for (size_t i = 0; i < agent->config.output_count; i++) {
      const tide_rtps_output_t *each = &agent->config.outputs[i];
      if (each->object != 0 && each->topic == topic) delete_object(agent, each->object);
    }
    for (size_t i = 0; i < agent->config.input_count; i++) {
      const tide_rtps_input_t *each = &agent->config.inputs[i];
      if (each->object != 0 && each->topic == topic) delete_object(agent, each->object);
    }
  }
}

static void forget_client(tide_rtps_agent_t *agent) {
  const tide_rtps_agent_config_t *config = &agent->config;
  for (size_t i = 0; i < config->output_count; i++)
    if (config->outputs[i].object != 0) delete_object(agent, config->outputs[i].object);
  for (size_t i = 0; i < config->input_count; i++)
    if (config->inputs[i].object != 0) delete_object(agent, config->inputs[i].object);
  for (size_t i = 0; i < (size_t)config->output_count + config->input_count; i++) config->topics[i].object = 0;
  for (size_t i = 0; i < config->node_count; i++)
    if (config->nodes[i].object != 0) delete_object(agent, config->nodes[i].object);
  memset(config->frames, 0, config->frame_count * sizeof *config->frames);
  memset(agent->inputs, 0, sizeof agent->inputs);
  memset(agent->streams, 0, sizeof agent->streams);
  agent->session = 0;
}

static void on_event(void *context, const tide_rtps_event_t *event) {
  tide_rtps_agent_t *agent = context;
  for (size_t i = 0; event->kind == TIDE_RTPS_EVENT_UNHEARD && i < agent->config.output_count; i++) {
    tide_rtps_output_t *output = &agent->config.outputs[i];
    if (&output->writer.endpoint == event->local && output->unheard < UINT8_MAX) output->unheard++;
  }
  if (agent->config.event != NULL) agent->config.event(agent->config.context, event);
}

/* The first node brings the participant up. The object's name is "/robot/driver", or "driver" for the namespace "/". */
static uint8_t add_node(tide_rtps_agent_t *agent, uint16_t id, const tide_xrce_object_t *object) {
  const uint32_t domain = (uint32_t)object->domain;
  tide_rtps_agent_node_t *node = find_node(agent, 0);
  if (node == NULL) return TIDE_XRCE_STATUS_ERR_RESOURCES;
  if (agent->is_up && !agent->is_leaving && domain != agent->domain) return TIDE_XRCE_STATUS_ERR_MISMATCH;
  if (!agent->is_up || agent->is_leaving) {
    tide_participant_config_t config = {.domain = domain,
                                        .event = on_event,
                                        .context = agent,
                                        .peers = agent->config.peers,
                                        .peer_count = agent->config.peer_count,
                                        .matches = agent->config.matches,
                                        .match_count = agent->config.match_count};
    agent->is_up = false;
    if (!agent->config.start(agent->config.context, domain, &config) ||
        tide_participant_init(&agent->participant, &config, agent->now_ns) != TIDE_OK)
      return TIDE_XRCE_STATUS_ERR_DDS;
    agent->is_up = true;
    agent->is_leaving = false;
    agent->domain = domain;
  }
  size_t space = object->name.length;
  while (space > 0 && object->name.characters[space - 1] != '/') space--;
  /* the namespace without its last slash, unless it is "/" */
  const tide_text_t name_space = {space > 1 ? object->name.characters : "/", space > 1 ? space - 1 : 1};
  const tide_text_t name = {object->name.characters + space, object->name.length - space};
  if (name_space.length + 1 + name.length >= sizeof node->text) return TIDE_XRCE_STATUS_ERR_RESOURCES;
  (void)copy_text(node->text, sizeof node->text, name_space);
  (void)copy_text(node->text + name_space.length + 1, sizeof node->text - name_space.length - 1, name);
  node->node = (tide_rtps_node_t){.name = node->text + name_space.length + 1, .name_space = node->text};
  if (tide_participant_add_node(&agent->participant, &node->node, agent->now_ns) != TIDE_OK)
    return TIDE_XRCE_STATUS_ERR_RESOURCES;
  node->object = id;
  return TIDE_XRCE_STATUS_OK;
}

static bool is_known(const tide_rtps_agent_t *agent, uint16_t id) {
  return find_node(agent, id) != NULL || find_topic(agent, id) != NULL || find_output(agent, id) != NULL ||
         find_input(agent, id) != NULL;
}

static uint8_t create(tide_rtps_agent_t *agent, uint16_t id, const tide_xrce_object_t *object) {
  if (object->representation != TIDE_XRCE_BY_BINARY || id == 0) return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  if (is_known(agent, id)) return TIDE_XRCE_STATUS_OK; /* a repeated request */
  if (object->kind == TIDE_XRCE_KIND_PARTICIPANT) return add_node(agent, id, object);
  if (!agent->is_up || agent->is_leaving) return TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  uint8_t status = TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE;
  switch (object->kind) {
    case TIDE_XRCE_KIND_PUBLISHER: /* need no object of their own: their endpoints hold everything */
    case TIDE_XRCE_KIND_SUBSCRIBER: return TIDE_XRCE_STATUS_OK;
    case TIDE_XRCE_KIND_TOPIC:
      return make_topic(agent, id, object->parent, object->name, object->type) == NULL ? TIDE_XRCE_STATUS_ERR_RESOURCES
                                                                                       : TIDE_XRCE_STATUS_OK;
    case TIDE_XRCE_KIND_DATAWRITER:
      if (find_topic(agent, object->topic) != NULL)
        status = add_output(agent, id, find_topic(agent, object->topic), object);
      return status;
    case TIDE_XRCE_KIND_DATAREADER:
      if (find_topic(agent, object->topic) != NULL)
        status = add_input(agent, id, find_topic(agent, object->topic), object);
      return status;
    case TIDE_XRCE_KIND_REQUESTER:
    case TIDE_XRCE_KIND_REPLIER: {
      tide_rtps_agent_topic_t *request =
          make_topic(agent, id, object->parent, object->request_topic, object->request_type);
      tide_rtps_agent_topic_t *reply = make_topic(agent, id, object->parent, object->reply_topic, object->reply_type);
      const bool asks = object->kind == TIDE_XRCE_KIND_REQUESTER;
      status = add_output(agent, id, asks ? request : reply, object);
      if (status == TIDE_XRCE_STATUS_OK) status = add_input(agent, id, asks ? reply : request, object);
      if (status != TIDE_XRCE_STATUS_OK) delete_object(agent, id);
      return status;
    }
    default: return TIDE_XRCE_STATUS_ERR_INVALID_DATA;
  }
}

static void on_create(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  tide_xrce_create_t body;
  tide_xrce_get_create(cdr, &body);
  if (cdr->status != TIDE_OK) return;
  answer_status(agent, body.request, create(agent, body.request.object, &body.object));
}

static void on_delete(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  const tide_xrce_request_t request = tide_xrce_get_request(cdr);
  if (cdr->status != TIDE_OK) return;
  answer_status(agent, request, TIDE_XRCE_STATUS_OK);
  if (request.object != TIDE_XRCE_OBJECT_CLIENT) {
    delete_object(agent, request.object);
  } else { /* its objects end with the participant */
    tide_rtps_agent_close(agent, agent->now_ns);
  }
}

static void on_read_data(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  tide_xrce_read_data_t body;
  tide_xrce_get_read_data(cdr, &body);
  tide_rtps_input_t *input = find_input(agent, body.request.object);
  if (cdr->status != TIDE_OK || body.request.object == 0) return;
  answer_status(agent, body.request, input == NULL ? TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE : TIDE_XRCE_STATUS_OK);
  if (input == NULL) return;
  const bool stops = body.has_delivery_control && body.max_samples == 0;
  input->request = stops ? 0 : body.request.request;
  input->stream = body.stream;
  input->reader.endpoint.level = TIDE_STREAM_LEVEL(body.stream);
  if (!stops) tide_participant_resume(&agent->participant, &input->reader, agent->now_ns);
}

/* ---- samples from the program ---- */

/* The session has acknowledged the sample, or the writer has sent it, so only this event tells that it is lost. */
static void tell_too_large(const tide_rtps_agent_t *agent, const tide_rtps_endpoint_t *local, tide_guid_t remote,
                           size_t length) {
  const tide_rtps_event_t event = {
      .kind = TIDE_RTPS_EVENT_TOO_LARGE, .local = local, .remote = remote, .count = (int64_t)length};
  if (agent->config.event != NULL) agent->config.event(agent->config.context, &event);
}

static void lose_too_large(tide_rtps_agent_t *agent, const tide_rtps_output_t *output, size_t length) {
  agent->counters.too_large++;
  tell_too_large(agent, &output->writer.endpoint, (tide_guid_t){0}, length);
}

/* The identity before a service's reply says which request it answers, and is no part of the sample. */
static void end_sample(tide_rtps_agent_t *agent, tide_rtps_output_t *output, uint8_t *room, size_t length,
                       uint8_t stream, uint16_t request) {
  tide_rtps_writer_t *writer = &output->writer;
  tide_rtps_sample_identity_t related = {0};
  const bool is_reply = TIDE_XRCE_OBJECT_KIND(output->object) == TIDE_XRCE_KIND_REPLIER;
  if (is_reply) {
    if (length < IDENTITY_BYTES) {
      agent->counters.malformed++;
      return;
    }
    memcpy(related.guid.prefix, room, TIDE_RTPS_PREFIX_BYTES);
    related.guid.entity = (uint32_t)room[12] << 24 | (uint32_t)room[13] << 16 | (uint32_t)room[14] << 8 | room[15];
    tide_cdr_t cdr;
    tide_cdr_reader(&cdr, room + 16, 8, false);
    const uint64_t high = tide_cdr_get_u32(&cdr);
    related.sequence = (int64_t)(high << 32 | tide_cdr_get_u32(&cdr));
    length -= IDENTITY_BYTES;
    memmove(room, room + IDENTITY_BYTES, length);
  } else if (writer->related != NULL) {
    if (length > agent->config.sample_bytes) {
      lose_too_large(agent, output, length);
      return;
    }
    const tide_rtps_input_t *replies = find_input(agent, output->object);
    related.guid = tide_participant_guid(&agent->participant, &replies->reader.endpoint);
  }
  writer->endpoint.level = TIDE_STREAM_LEVEL(stream);
  const int64_t number = tide_participant_write_end(&agent->participant, writer, length, &related, agent->now_ns);
  output->requests[number % writer->depth] = request;
}

static uint8_t *begin_sample(tide_rtps_agent_t *agent, tide_rtps_output_t *output, size_t length) {
  uint8_t *room = tide_participant_write_begin(&agent->participant, &output->writer, length);
  if (room == NULL) lose_too_large(agent, output, length);
  output->room = NULL; /* gives up a sample whose fragments arrive on another stream */
  return room;
}

static void on_write_data(tide_rtps_agent_t *agent, const tide_xrce_submessage_t *submessage, uint8_t stream) {
  if (submessage->body_bytes < TIDE_XRCE_REQUEST_BYTES) {
    agent->counters.malformed++;
    return;
  }
  const tide_xrce_request_t request = tide_xrce_read_request(submessage->body);
  tide_rtps_output_t *output = request.object == 0 ? NULL : find_output(agent, request.object);
  const size_t length = submessage->body_bytes - TIDE_XRCE_REQUEST_BYTES;
  if (output == NULL) return; /* its writer was deleted: ignored, as by any agent */
  uint8_t *room = begin_sample(agent, output, length);
  if (room == NULL) return;
  memcpy(room, submessage->body + TIDE_XRCE_REQUEST_BYTES, length);
  end_sample(agent, output, room, length, stream, request.request);
}

/* A fragmented sample is assembled in its slot of the history. The first fragment begins with the header of its
 * WRITE_DATA. The fragments of a sample that is too long are skipped up to the last one. */
static void on_fragment(tide_rtps_agent_t *agent, const tide_xrce_submessage_t *submessage, uint8_t stream) {
  const uint8_t *bytes = submessage->body;
  size_t length = submessage->body_bytes;
  tide_rtps_output_t *output = NULL;
  for (size_t i = 0; i < agent->config.output_count; i++) {
    tide_rtps_output_t *one = &agent->config.outputs[i];
    if (one->object != 0 && one->room != NULL && one->stream == stream) output = one;
  }
  if (output == NULL) {
    if (length < DATA_HEADER_BYTES || bytes[0] != TIDE_XRCE_WRITE_DATA) {
      agent->counters.unsupported++;
      return;
    }
    const tide_xrce_request_t request = tide_xrce_read_request(bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
    output = request.object == 0 ? NULL : find_output(agent, request.object);
    if (output == NULL) return;
    output->room = begin_sample(agent, output, output->writer.slot_bytes - 4u);
    output->filled = 0;
    output->stream = stream;
    output->request = request.request;
    bytes += DATA_HEADER_BYTES;
    length -= DATA_HEADER_BYTES;
  }
  const size_t capacity = output->writer.slot_bytes - 4u;
  const bool has_fitted = output->filled <= capacity, fits = has_fitted && length <= capacity - output->filled;
  if (fits) memcpy(output->room + output->filled, bytes, length);
  if (has_fitted && !fits) lose_too_large(agent, output, output->filled + length);
  output->filled = fits ? output->filled + length : SIZE_MAX;
  if ((submessage->flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0) return;
  uint8_t *room = output->room;
  output->room = NULL;
  if (fits) end_sample(agent, output, room, output->filled, stream, output->request);
}

/* ---- samples for the program ---- */

static tide_rtps_agent_stream_t *stream_of(tide_rtps_agent_t *agent, uint8_t id) {
  tide_rtps_agent_stream_t *found = NULL;
  for (size_t i = 0; i < TIDE_RTPS_AGENT_STREAMS; i++) {
    if (agent->streams[i].id == id) return &agent->streams[i];
    if (agent->streams[i].id == 0) found = &agent->streams[i];
  }
  if (found != NULL) *found = (tide_rtps_agent_stream_t){.id = id, .heartbeat_ns = NEVER};
  return found;
}

/* Each reader has one frame of its own, so that a reader whose callback does not run cannot take all frames. */
static bool may_take_frames(const tide_rtps_agent_t *agent, const tide_rtps_input_t *input, size_t wanted) {
  size_t available = 0, owed = 0;
  for (size_t i = 0; i < agent->config.frame_count; i++) available += agent->config.frames[i].bytes == 0;
  for (size_t i = 0; i < agent->config.input_count; i++) {
    const tide_rtps_input_t *other = &agent->config.inputs[i];
    owed += other->object != 0 && other != input && other->frames == 0;
  }
  if (input->frames == 0 && wanted == 1) owed = 0;
  return available >= owed + wanted;
}

static size_t header_bytes(const tide_rtps_agent_t *agent) { return tide_xrce_header_bytes(agent->session); }

static size_t put_header(const tide_rtps_agent_t *agent, uint8_t *bytes, uint8_t stream, uint16_t sequence) {
  const tide_xrce_header_t header = {
      .session = agent->session, .stream = stream, .sequence = sequence, .key = agent->key};
  return tide_xrce_put_header(bytes, &header);
}

static uint8_t *memory_of(const tide_rtps_agent_t *agent, const tide_rtps_frame_t *frame) {
  return agent->config.frame_memory + (size_t)(frame - agent->config.frames) * agent->config.frame_bytes;
}

/* The earliest frame after `frame` that holds a sample of this input and that the session has not read. */
static tide_rtps_frame_t *unread_after(const tide_rtps_agent_t *agent, const tide_rtps_input_t *input,
                                       const tide_rtps_frame_t *frame) {
  tide_rtps_frame_t *found = NULL;
  for (size_t i = 0; i < agent->config.frame_count; i++) {
    tide_rtps_frame_t *one = &agent->config.frames[i];
    if (one->bytes == 0 || one->input != input || one->is_sent || one->stream != input->stream) continue;
    if (frame != NULL && tide_sequence_distance(one->sequence, frame->sequence) <= 0) continue;
    if (found == NULL || tide_sequence_distance(one->sequence, found->sequence) < 0) found = one;
  }
  return found;
}

/* While the session reads nothing, a KEEP_LAST subscription keeps its newest samples: it loses the oldest one, and the
 * others move forward by one frame. Returns the last frame, whose sample can now be replaced. Null: no sample waits, or
 * samples in fragments do, or a reliable writer can keep the new sample because fewer than the depth wait. */
static tide_rtps_frame_t *drop_oldest(const tide_rtps_agent_t *agent, const tide_rtps_input_t *input, size_t header) {
  size_t count = 0;
  for (const tide_rtps_frame_t *one = NULL; (one = unread_after(agent, input, one)) != NULL; count++) {
    if (memory_of(agent, one)[header] == TIDE_XRCE_FRAGMENT) return NULL;
  }
  if (input->depth == 0 || count < (TIDE_STREAM_IS_RELIABLE(input->stream) ? input->depth : 1u)) return NULL;
  tide_rtps_frame_t *last = unread_after(agent, input, NULL);
  for (tide_rtps_frame_t *next; (next = unread_after(agent, input, last)) != NULL; last = next) {
    memcpy(memory_of(agent, last) + header, memory_of(agent, next) + header, next->bytes - header);
    last->bytes = next->bytes;
  }
  return last;
}

static uint8_t *take_frame(tide_rtps_agent_t *agent, tide_rtps_input_t *input, tide_rtps_agent_stream_t *stream,
                           size_t bytes, size_t *position) {
  size_t i = 0;
  while (agent->config.frames[i].bytes != 0) i++;
  TIDE_INVARIANT(i < agent->config.frame_count && bytes <= agent->config.frame_bytes);
  agent->config.frames[i] =
      (tide_rtps_frame_t){.bytes = (uint16_t)bytes, .sequence = stream->next++, .stream = stream->id, .input = input};
  input->frames++;
  uint8_t *memory = memory_of(agent, &agent->config.frames[i]);
  *position = put_header(agent, memory, stream->id, agent->config.frames[i].sequence);
  return memory;
}

/* The prefix is the header of DATA, its request, and what precedes the samples of services and clients. */
static size_t put_prefix(uint8_t *prefix, const tide_rtps_input_t *input, const tide_rtps_sample_t *sample,
                         uint16_t request) {
  const uint8_t kind = TIDE_XRCE_OBJECT_KIND(input->object);
  size_t length = DATA_HEADER_BYTES;
  tide_xrce_write_request(prefix + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES,
                          (tide_xrce_request_t){input->request, input->object});
  if (kind == TIDE_XRCE_KIND_REQUESTER) {
    tide_xrce_write_request(prefix + length, (tide_xrce_request_t){request, input->object});
    length += REPLY_HEADER_BYTES;
  } else if (kind == TIDE_XRCE_KIND_REPLIER) {
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, prefix + length, IDENTITY_BYTES);
    tide_rtps_put_guid(&cdr, &sample->related.guid);
    tide_cdr_put_u32(&cdr, (uint32_t)((uint64_t)sample->identity.sequence >> 32));
    tide_cdr_put_u32(&cdr, (uint32_t)sample->identity.sequence);
    length += IDENTITY_BYTES;
  }
  const size_t body = length - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + sample->length;
  tide_xrce_put_submessage_header(prefix, TIDE_XRCE_DATA, sample->big_endian ? 0 : TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  (uint16_t)body);
  return length;
}

/* Copies from the prefix and the sample, as if they were one. */
static void copy_part(uint8_t *to, const uint8_t *prefix, size_t prefix_bytes, const uint8_t *sample, size_t from,
                      size_t count) {
  if (from < prefix_bytes) {
    const size_t some = prefix_bytes - from < count ? prefix_bytes - from : count;
    memcpy(to, prefix + from, some);
    to += some;
    from += some;
    count -= some;
  }
  if (count > 0) memcpy(to, sample + (from - prefix_bytes), count);
}

/* Finds the request that a reply answers. False: the request is another client's, or no longer in the history. */
static bool find_request(tide_rtps_agent_t *agent, const tide_rtps_input_t *input, const tide_rtps_sample_t *sample,
                         uint16_t *request) {
  const tide_guid_t own = tide_participant_guid(&agent->participant, &input->reader.endpoint);
  if (!tide_guid_equal(&sample->related.guid, &own)) return false;
  const tide_rtps_output_t *output = find_output(agent, input->object);
  const int64_t number = sample->related.sequence;
  if (output == NULL || number < output->writer.first || number > output->writer.last) {
    agent->counters.unknown++;
    return false;
  }
  *request = output->requests[number % output->writer.depth];
  return true;
}

static bool on_sample(void *context, const tide_rtps_sample_t *sample) {
  tide_rtps_input_t *input = context;
  tide_rtps_agent_t *agent = input->agent;
  uint16_t request = 0;
  if (TIDE_XRCE_OBJECT_KIND(input->object) == TIDE_XRCE_KIND_REQUESTER && !find_request(agent, input, sample, &request))
    return true;
  uint8_t prefix[DATA_HEADER_BYTES + IDENTITY_BYTES];
  const size_t prefix_bytes = put_prefix(prefix, input, sample, request);
  const size_t total = prefix_bytes + sample->length, header = header_bytes(agent);
  const size_t fragment = agent->config.frame_bytes - header - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  const bool is_whole = header + total <= agent->config.frame_bytes;
  const size_t count = is_whole ? 1 : (total - 1) / fragment + 1;
  const bool is_reliable = TIDE_STREAM_IS_RELIABLE(input->stream);
  tide_rtps_agent_stream_t *stream = input->request == 0 ? NULL : stream_of(agent, input->stream);
  if (count > agent->config.frame_count || (!is_whole && !is_reliable)) {
    agent->counters.dropped++;
    tell_too_large(agent, &input->reader.endpoint, sample->identity.guid, sample->length);
    return true;
  }
  const bool has_frames = stream != NULL && may_take_frames(agent, input, count);
  tide_rtps_frame_t *last = stream == NULL || has_frames || !is_whole ? NULL : drop_oldest(agent, input, header);
  if (last != NULL) {
    agent->counters.dropped++;
    last->bytes = (uint16_t)(header + total);
    copy_part(memory_of(agent, last) + header, prefix, prefix_bytes, sample->bytes, 0, total);
    return true;
  }
  if (!has_frames) {
    input->is_refused = true;
    agent->counters.refused += is_reliable;
    agent->counters.dropped += !is_reliable;
    return false;
  }
  size_t position;
  if (is_whole) {
    uint8_t *frame = take_frame(agent, input, stream, header + total, &position);
    copy_part(frame + position, prefix, prefix_bytes, sample->bytes, 0, total);
    return true;
  }
  for (size_t from = 0; from < total; from += fragment) {
    const size_t part = total - from < fragment ? total - from : fragment;
    uint8_t *frame = take_frame(agent, input, stream, header + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + part, &position);
    const uint8_t flags = TIDE_XRCE_FLAG_LITTLE_ENDIAN | (from + part == total ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0);
    tide_xrce_put_submessage_header(frame + position, TIDE_XRCE_FRAGMENT, flags, (uint16_t)part);
    copy_part(frame + position + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, prefix, prefix_bytes, sample->bytes, from, part);
  }
  return true;
}

static void free_frame(tide_rtps_agent_t *agent, tide_rtps_frame_t *frame) {
  tide_rtps_input_t *input = frame->input;
  frame->bytes = 0;
  if (input != NULL) input->frames--;
  for (size_t i = 0; i < agent->config.input_count; i++) {
    tide_rtps_input_t *one = &agent->config.inputs[i];
    if (one->object == 0 || !one->is_refused) continue;
    one->is_refused = false;
    tide_participant_resume(&agent->participant, &one->reader, agent->now_ns);
  }
}

static void on_acknack(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  tide_xrce_acknack_t body;
  tide_xrce_get_acknack(cdr, &body);
  if (cdr->status != TIDE_OK || body.stream == 0) return;
  bool is_waiting = false;
  for (size_t i = 0; i < agent->config.frame_count; i++) {
    tide_rtps_frame_t *frame = &agent->config.frames[i];
    if (frame->bytes == 0 || frame->stream != body.stream) continue;
    const int16_t ahead = tide_sequence_distance(frame->sequence, body.first_unacknowledged);
    if (ahead < 0) {
      free_frame(agent, frame);
      continue;
    }
    is_waiting |= frame->is_sent;
    if (frame->is_sent && ahead < 16 && (body.missing >> ahead & 1) != 0) {
      frame->is_sent = false;
      agent->counters.resent++;
    }
  }
  tide_rtps_agent_stream_t *stream = stream_of(agent, body.stream);
  if (stream == NULL) return;
  if (stream->acknowledged != body.first_unacknowledged) stream->tries = 0;
  stream->acknowledged = body.first_unacknowledged;
  stream->heartbeat_ns = is_waiting ? agent->now_ns + (HEARTBEAT_NS << stream->tries) : NEVER;
}

/* ---- messages from the session ---- */

static tide_input_stream_t *input_stream(tide_rtps_agent_t *agent, uint8_t id) {
  tide_input_stream_t *found = NULL;
  for (size_t i = 0; i < TIDE_RTPS_AGENT_STREAMS; i++) {
    if (agent->inputs[i].id == id) return &agent->inputs[i];
    if (agent->inputs[i].id == 0) found = &agent->inputs[i];
  }
  if (found != NULL) tide_input_stream_init(found, id, TIDE_STREAM_WINDOW_MAXIMUM);
  return found;
}

static void on_create_client(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  tide_xrce_create_client_t body;
  tide_xrce_get_create_client(cdr, &body);
  if (cdr->status != TIDE_OK || !body.cookie_valid) return;
  const bool fits = body.mtu + 4u >= agent->config.frame_bytes;
  forget_client(agent);
  agent->session = body.session;
  agent->key = body.key;
  const tide_xrce_status_agent_t answer = {.status = fits ? TIDE_XRCE_STATUS_OK : TIDE_XRCE_STATUS_ERR_RESOURCES,
                                           .version_major = 1,
                                           .vendor = TIDE_XRCE_VENDOR,
                                           .cookie_valid = true};
  begin_answer(agent, cdr, TIDE_XRCE_STATUS_AGENT);
  tide_xrce_put_status_agent(cdr, &answer);
  end_answer(agent, cdr);
}

static void on_get_info(tide_rtps_agent_t *agent, tide_cdr_t *cdr, uint8_t session) {
  tide_xrce_get_info_body_t body;
  tide_xrce_get_get_info(cdr, &body);
  if (cdr->status != TIDE_OK) return;
  const bool is_session = agent->session != 0 && session == agent->session;
  const tide_xrce_info_t answer = {
      .related = body.request, .implementation_status = is_session, .vendor = TIDE_XRCE_VENDOR, .version_major = 1};
  begin_answer(agent, cdr, TIDE_XRCE_INFO);
  agent->answers[(agent->first_answer + agent->answer_count) % TIDE_RTPS_AGENT_ANSWERS].session = session;
  tide_xrce_put_info(cdr, &answer);
  end_answer(agent, cdr);
}

static void on_timestamp(tide_rtps_agent_t *agent, tide_cdr_t *cdr) {
  tide_xrce_timestamp_reply_t reply;
  reply.originate = tide_xrce_get_timestamp(cdr);
  reply.receive = reply.transmit = tide_xrce_time_from_ns(agent->now_ns + agent->wall_ns);
  if (cdr->status != TIDE_OK || agent->wall_ns == 0) return;
  begin_answer(agent, cdr, TIDE_XRCE_TIMESTAMP_REPLY);
  tide_xrce_put_timestamp_reply(cdr, &reply);
  end_answer(agent, cdr);
}

static void on_submessage(tide_rtps_agent_t *agent, const tide_xrce_header_t *header,
                          const tide_xrce_submessage_t *submessage) {
  tide_cdr_t cdr;
  tide_xrce_heartbeat_t heartbeat;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0);
  if (submessage->id == TIDE_XRCE_CREATE_CLIENT) {
    on_create_client(agent, &cdr);
  } else if (submessage->id == TIDE_XRCE_GET_INFO) {
    on_get_info(agent, &cdr, header->session);
  } else if (agent->session == 0 || header->session != agent->session) {
    return; /* the message belongs to an earlier session */
  } else {
    switch (submessage->id) {
      case TIDE_XRCE_CREATE: on_create(agent, &cdr); break;
      case TIDE_XRCE_DELETE: on_delete(agent, &cdr); break;
      case TIDE_XRCE_READ_DATA: on_read_data(agent, &cdr); break;
      case TIDE_XRCE_WRITE_DATA: on_write_data(agent, submessage, header->stream); break;
      case TIDE_XRCE_FRAGMENT: on_fragment(agent, submessage, header->stream); break;
      case TIDE_XRCE_ACKNACK: on_acknack(agent, &cdr); break;
      case TIDE_XRCE_HEARTBEAT:
        tide_xrce_get_heartbeat(&cdr, &heartbeat);
        if (cdr.status == TIDE_OK && heartbeat.stream != 0 && input_stream(agent, heartbeat.stream) != NULL) {
          (void)tide_input_stream_heartbeat(input_stream(agent, heartbeat.stream), heartbeat.first_unacknowledged,
                                            heartbeat.last);
        }
        break;
      case TIDE_XRCE_TIMESTAMP: on_timestamp(agent, &cdr); break;
      default: agent->counters.unsupported++; break;
    }
  }
  agent->counters.malformed += cdr.status != TIDE_OK;
}

bool tide_rtps_agent_write(tide_rtps_agent_t *agent, const uint8_t *bytes, size_t length, int64_t now_ns,
                           int64_t wall_ns) {
  tide_xrce_header_t header;
  tide_xrce_submessage_t submessage;
  if (agent->answer_count + ANSWERS_OF_A_MESSAGE > TIDE_RTPS_AGENT_ANSWERS) return false;
  agent->now_ns = now_ns;
  agent->wall_ns = agent->participant.wall_ns = wall_ns;
  const int start = tide_xrce_get_header(bytes, length, &header);
  if (start < 0) {
    agent->counters.malformed++;
    return true;
  }
  tide_input_stream_t *stream = NULL;
  if (header.stream != TIDE_XRCE_STREAM_NONE) {
    if (agent->session == 0 || header.session != agent->session) return true;
    stream = input_stream(agent, header.stream);
    if (stream == NULL) { /* the message is never acknowledged, so the program notices */
      agent->counters.unsupported++;
      return true;
    }
    const tide_stream_verdict_t verdict = tide_input_stream_arrive(stream, header.sequence);
    if (verdict == TIDE_STREAM_HOLD) tide_input_stream_forget(stream, header.sequence);
    if (verdict != TIDE_STREAM_DELIVER) return true;
    (void)tide_input_stream_advance(stream);
  }
  size_t position = (size_t)start;
  int status = 1;
  while (agent->answer_count < TIDE_RTPS_AGENT_ANSWERS &&
         (status = tide_xrce_next_submessage(bytes, length, &position, &submessage)) == 1)
    on_submessage(agent, &header, &submessage);
  agent->counters.malformed += status < 0;
  return true;
}

/* ---- messages to the session ---- */

static size_t put_control(const tide_rtps_agent_t *agent, uint8_t *bytes, uint8_t session, uint8_t id,
                          const uint8_t *body, size_t length) {
  const tide_xrce_header_t header = {.session = session, .key = agent->key};
  const size_t start = tide_xrce_put_header(bytes, &header);
  tide_xrce_put_submessage_header(bytes + start, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN, (uint16_t)length);
  memcpy(bytes + start + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, body, length);
  return start + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + length;
}

static size_t read_answer(tide_rtps_agent_t *agent, uint8_t *bytes) {
  if (agent->answer_count == 0) return 0;
  const size_t place = agent->first_answer;
  agent->first_answer = (uint8_t)((place + 1) % TIDE_RTPS_AGENT_ANSWERS);
  agent->answer_count--;
  return put_control(agent, bytes, agent->answers[place].session, agent->answers[place].id, agent->answers[place].body,
                     agent->answers[place].length);
}

static size_t read_acknowledgment(tide_rtps_agent_t *agent, uint8_t *bytes) {
  for (size_t i = 0; i < TIDE_RTPS_AGENT_STREAMS; i++) {
    tide_input_stream_t *stream = &agent->inputs[i];
    if (stream->id == 0 || !stream->acknowledge) continue;
    stream->acknowledge = false;
    uint8_t body[8];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, body, sizeof body);
    const tide_xrce_acknack_t acknack = {
        .first_unacknowledged = stream->next, .missing = tide_input_stream_missing(stream), .stream = stream->id};
    tide_xrce_put_acknack(&cdr, &acknack);
    return put_control(agent, bytes, agent->session, TIDE_XRCE_ACKNACK, body, cdr.position);
  }
  return 0;
}

static size_t read_heartbeat(tide_rtps_agent_t *agent, uint8_t *bytes, int64_t *deadline_ns) {
  for (size_t i = 0; i < TIDE_RTPS_AGENT_STREAMS; i++) {
    tide_rtps_agent_stream_t *stream = &agent->streams[i];
    if (stream->id == 0 || stream->heartbeat_ns == NEVER) continue;
    if (stream->heartbeat_ns > agent->now_ns) {
      *deadline_ns = earlier(*deadline_ns, stream->heartbeat_ns);
      continue;
    }
    if (stream->tries < 5) stream->tries++;
    stream->heartbeat_ns = agent->now_ns + (HEARTBEAT_NS << stream->tries);
    uint8_t body[8];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, body, sizeof body);
    const tide_xrce_heartbeat_t heartbeat = {
        .first_unacknowledged = stream->acknowledged, .last = (uint16_t)(stream->next - 1u), .stream = stream->id};
    tide_xrce_put_heartbeat(&cdr, &heartbeat);
    return put_control(agent, bytes, agent->session, TIDE_XRCE_HEARTBEAT, body, cdr.position);
  }
  return 0;
}

/* Tells the session of dropped requests or replies: a STATUS for the READ_DATA of the service or client. */
static size_t read_unheard(tide_rtps_agent_t *agent, uint8_t *bytes) {
  for (size_t i = 0; i < agent->config.output_count; i++) {
    tide_rtps_output_t *output = &agent->config.outputs[i];
    const tide_rtps_input_t *input = output->object == 0 ? NULL : find_input(agent, output->object);
    if (output->unheard == 0 || input == NULL || input->request == 0) continue;
    const tide_xrce_status_body_t status = {.related = {.request = input->request, .object = output->object},
                                            .status = TIDE_XRCE_STATUS_ERR_DDS,
                                            .implementation_status = output->unheard};
    uint8_t body[8];
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, body, sizeof body);
    tide_xrce_put_status(&cdr, &status);
    output->unheard = 0;
    return put_control(agent, bytes, agent->session, TIDE_XRCE_STATUS, body, cdr.position);
  }
  return 0;
}

static bool is_before(const tide_rtps_frame_t *left, const tide_rtps_frame_t *right) {
  if (left->stream == right->stream) return tide_sequence_distance(left->sequence, right->sequence) < 0;
  return TIDE_STREAM_LEVEL(left->stream) > TIDE_STREAM_LEVEL(right->stream);
}

static size_t read_frame(tide_rtps_agent_t *agent, uint8_t *bytes) {
  tide_rtps_frame_t *chosen = NULL;
  for (size_t i = 0; i < agent->config.frame_count; i++) {
    tide_rtps_frame_t *frame = &agent->config.frames[i];
    if (frame->bytes != 0 && !frame->is_sent && (chosen == NULL || is_before(frame, chosen))) chosen = frame;
  }
  if (chosen == NULL) return 0;
  const size_t length = chosen->bytes;
  memcpy(bytes, memory_of(agent, chosen), length);
  if (!TIDE_STREAM_IS_RELIABLE(chosen->stream)) {
    free_frame(agent, chosen);
    return length;
  }
  tide_rtps_agent_stream_t *stream = stream_of(agent, chosen->stream);
  chosen->is_sent = true;
  if (stream->heartbeat_ns == NEVER) stream->heartbeat_ns = agent->now_ns + HEARTBEAT_NS;
  return length;
}

size_t tide_rtps_agent_read(tide_rtps_agent_t *agent, uint8_t *bytes, int64_t now_ns, int64_t *deadline_ns) {
  agent->now_ns = now_ns;
  *deadline_ns = NEVER;
  size_t length = read_answer(agent, bytes);
  if (length == 0 && agent->session != 0) {
    length = read_acknowledgment(agent, bytes);
    if (length == 0) length = read_unheard(agent, bytes);
    if (length == 0) length = read_frame(agent, bytes);
    if (length == 0) length = read_heartbeat(agent, bytes, deadline_ns);
  }
  return length;
}

void tide_rtps_agent_init(tide_rtps_agent_t *agent, const tide_rtps_agent_config_t *config) {
  *agent = (tide_rtps_agent_t){.config = *config};
  memset(config->nodes, 0, config->node_count * sizeof *config->nodes);
  memset(config->topics, 0, ((size_t)config->output_count + config->input_count) * sizeof *config->topics);
  memset(config->outputs, 0, config->output_count * sizeof *config->outputs);
  memset(config->inputs, 0, config->input_count * sizeof *config->inputs);
  memset(config->frames, 0, config->frame_count * sizeof *config->frames);
}

void tide_rtps_agent_close(tide_rtps_agent_t *agent, int64_t now_ns) {
  if (!agent->is_up || agent->is_leaving) return;
  agent->is_leaving = true;
  tide_participant_leave(&agent->participant, now_ns);
}
