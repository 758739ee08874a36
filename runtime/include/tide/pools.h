/* SPDX-License-Identifier: Apache-2.0 */
/* The static memory of a program that uses the rclc interface. Nothing is allocated after (or before) main: RAM use is
 * known at link time, and each refusal names the limit that was reached (tide_rclc_last_status).
 *
 * A program that is content with the defaults does nothing. To choose its own sizes it writes, in exactly one C file:
 *
 *   #define TIDE_PUBLISHERS 12
 *   #define TIDE_LARGE_NODE_BYTES 45000
 *   #define TIDE_DEFINE_POOLS
 *   #include <tide/pools.h>
 */
#ifndef TIDE_POOLS_H
#define TIDE_POOLS_H

#include "rcl/rcl.h"
#include "rclc/executor.h"
#include "tide/executor.h"
#include "tide/link_custom.h"
#include "tide/message.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/rclc_local.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Places for the program's objects. A publisher and a subscription take three objects on the agent each, a node one. */
#ifndef TIDE_NODES
#define TIDE_NODES 4
#endif
#ifndef TIDE_PUBLISHERS
#define TIDE_PUBLISHERS 8
#endif
#ifndef TIDE_SUBSCRIPTIONS
#define TIDE_SUBSCRIPTIONS 8
#endif
#ifndef TIDE_TIMERS
#define TIDE_TIMERS 8
#endif
#ifndef TIDE_GUARD_CONDITIONS
#define TIDE_GUARD_CONDITIONS 2
#endif
/* Servers and clients of services: one object on the agent each. A program without pools of its own has two of each. */
#ifndef TIDE_SERVICES
#define TIDE_SERVICES 0
#endif
#ifndef TIDE_CLIENTS
#define TIDE_CLIENTS 0
#endif
/* Requests that a service, or replies that a client, keeps at most until its callback has run: 1 to 255. */
#ifndef TIDE_SERVICE_DEPTH
#define TIDE_SERVICE_DEPTH 8
#endif
/* Requests of one client without an answer, 1 or more; for one more the oldest is forgotten. */
#ifndef TIDE_CLIENT_REQUESTS
#define TIDE_CLIENT_REQUESTS 8
#endif
#if TIDE_SERVICE_DEPTH < 1 || TIDE_SERVICE_DEPTH > 255 || TIDE_CLIENT_REQUESTS < 1
#error "TIDE_SERVICE_DEPTH is 1 to 255, TIDE_CLIENT_REQUESTS 1 or more"
#endif
#ifndef TIDE_EXECUTORS
#define TIDE_EXECUTORS 1
#endif
/* Lanes of one executor at most: see tide_rclc_executor_set_lanes. Each one more costs, for each executor, about 150
 * bytes and two pointers for each handle. */
#ifndef TIDE_EXECUTOR_LANES
#define TIDE_EXECUTOR_LANES 1
#endif
/* Handles of all executors together: one for each timer, subscription, service, client and guard condition that is
 * added. */
#ifndef TIDE_HANDLES
#define TIDE_HANDLES (TIDE_SUBSCRIPTIONS + TIDE_TIMERS + TIDE_GUARD_CONDITIONS + TIDE_SERVICES + TIDE_CLIENTS)
#endif
/* Callback groups: tide_rclc_callback_group_init. Each takes a pointer for every handle. */
#ifndef TIDE_GROUPS
#define TIDE_GROUPS (TIDE_EXECUTOR_LANES > 1 ? 4 : 0)
#endif
/* Longest topic name with namespace, the prefix "rt" and NUL, in bytes; also node names with their namespace, and
 * names of services. */
#ifndef TIDE_NAME_BYTES
#define TIDE_NAME_BYTES 64
#endif
/* Samples a subscription keeps at most; a QoS depth above it is cut to it. With KEEP_LAST the oldest gives way; with
 * KEEP_ALL and reliable none does: the agent waits, and with it what else comes on the stream of that level. */
#ifndef TIDE_SUBSCRIPTION_DEPTH
#define TIDE_SUBSCRIPTION_DEPTH 4
#endif
/* Local delivery (tide/rclc_local.h): topics, subscriptions to them, the largest message, and how many there are: for
 * each publisher as many as there are lanes, for each subscription its depth and one. */
#ifndef TIDE_LOCAL_TOPICS
#define TIDE_LOCAL_TOPICS 0
#endif
#ifndef TIDE_LOCAL_SUBSCRIPTIONS
#define TIDE_LOCAL_SUBSCRIPTIONS TIDE_LOCAL_TOPICS
#endif
#ifndef TIDE_LOCAL_MESSAGE_BYTES
#define TIDE_LOCAL_MESSAGE_BYTES 256
#endif
#ifndef TIDE_LOCAL_MESSAGES
#define TIDE_LOCAL_MESSAGES \
  (TIDE_LOCAL_TOPICS * TIDE_EXECUTOR_LANES + TIDE_LOCAL_SUBSCRIPTIONS * (TIDE_SUBSCRIPTION_DEPTH + 1))
#endif
/* Messages on their way out: small ones and large ones. A node holds one serialised message and 8 bytes more; the
 * largest message that can be published is the larger of the two sizes less 8. */
#ifndef TIDE_SMALL_NODES
#define TIDE_SMALL_NODES 12
#endif
#ifndef TIDE_SMALL_NODE_BYTES
#define TIDE_SMALL_NODE_BYTES 256
#endif
#ifndef TIDE_LARGE_NODES
#define TIDE_LARGE_NODES 4
#endif
#ifndef TIDE_LARGE_NODE_BYTES
#define TIDE_LARGE_NODE_BYTES 2048
#endif
/* Largest message of the link in bytes. The link quantum is this less 4: longer messages leave in fragments, and a
 * more urgent one waits for one fragment at most. */
#ifndef TIDE_MTU_BYTES
#define TIDE_MTU_BYTES 512
#endif
/* Received messages that are held before their callback runs, and one that is arriving. Each subscription, service and
 * client has as many of them to itself as its depth says, so that no other one's backlog takes them: with the sum of all
 * depths and two more nobody gets less. With fewer all get the same number, with fewer than there are of them none.
 * What gave way: account.dropped in the tide_reader_t of the subscription, account.reserved what it has. */
#ifndef TIDE_SLOTS
#define TIDE_SLOTS 16
#endif
/* Fragmented messages that can be received at the same time, and how long each may be. */
#ifndef TIDE_REASSEMBLIES
#define TIDE_REASSEMBLIES 2
#endif
#ifndef TIDE_REASSEMBLY_BYTES
#define TIDE_REASSEMBLY_BYTES 2048
#endif
/* Streams each way: one for each pair of chain level and reliability in use. */
#ifndef TIDE_STREAMS
#define TIDE_STREAMS 8
#endif
/* Reliable messages in flight a stream, 1 to 16. */
#ifndef TIDE_WINDOW
#define TIDE_WINDOW 16
#endif
/* 1: rmw_uros_set_custom_transport works, at the cost of two frames of memory. */
#ifndef TIDE_CUSTOM_TRANSPORT
#define TIDE_CUSTOM_TRANSPORT 1
#endif
/* How long rclc_support_init waits for an agent, in ms. */
#ifndef TIDE_CONNECT_TIMEOUT_MS
#define TIDE_CONNECT_TIMEOUT_MS 10000
#endif

/* ---- what follows is the runtime's own ---- */

#define TIDE_OBJECT_COUNT (TIDE_NODES + 3 * TIDE_PUBLISHERS + 3 * TIDE_SUBSCRIPTIONS + TIDE_SERVICES + TIDE_CLIENTS)
#define TIDE_SERVICE_NAME_BYTES (TIDE_NAME_BYTES + 8) /* "Request" */
#define TIDE_NODE_COUNT (TIDE_SMALL_NODES + TIDE_LARGE_NODES)

struct tide_service_type; /* tide/message_memory.h */

typedef struct tide_node_handle {
  struct tide_support *support; /* null: free */
  char *full_name, *namespace_; /* tide_pools.name_bytes each */
  char *name;                   /* the last part of full_name */
  tide_object_t participant;
} tide_node_handle_t;

/* A topic of the ROS 2 graph and its two objects, common to publishers and subscriptions. */
typedef struct tide_topic {
  char *name; /* tide_pools.name_bytes, as on the wire: "rt/..." */
  tide_object_t topic, group, endpoint;
} tide_topic_t;

typedef struct tide_group_handle {
  bool in_use;
  tide_group_t group;
} tide_group_handle_t;

typedef struct tide_local_topic_handle {
  bool open;                                        /* has ends, or messages that are still read */
  bool plain;                                       /* messages of fixed size, delivered in place */
  uint16_t users;                                   /* its ends */
  uint16_t shared_publishers, shared_subscriptions; /* of reach BOTH */
  char *name;                                       /* tide_pools.name_bytes */
  const tide_message_type_t *type;
  tide_local_topic_t topic;
} tide_local_topic_handle_t;

typedef struct tide_local_end {
  tide_local_topic_handle_t *topic; /* null: free */
  tide_local_subscription_t subscription;
} tide_local_end_t;

struct tide_local_functions; /* null where there is no local delivery, so that it is not linked */

typedef struct tide_publisher_handle {
  struct tide_support *support; /* null: free */
  const tide_message_type_t *type;
  tide_topic_t topic;
  tide_priority_t priority;
  bool reliable;
  int32_t wait_ms; /* for a free node */
  const struct tide_local_functions *local;
  tide_local_topic_handle_t *local_topic;
  tide_reach_t reach;
} tide_publisher_handle_t;

typedef struct tide_subscription_handle {
  struct tide_support *support; /* null: free */
  const tide_message_type_t *type;
  tide_topic_t topic;
  tide_reader_t reader;
  tide_callback_t callback;
  rclc_executor_handle_t *handle; /* null: in no executor */
  uint32_t decode_errors;
  const struct tide_local_functions *local;
  tide_local_end_t *local_end;
  tide_reach_t reach;
} tide_subscription_handle_t;

/* What services and clients have in common: a replier or requester, what comes to it, its callback. */
typedef struct tide_service_end {
  struct tide_support *support; /* null: free */
  const struct tide_service_type *type;
  char *request_topic, *reply_topic; /* tide_pools.service_name_bytes, as on the wire: "rq/...Request", "rr/...Reply" */
  tide_object_t object;
  tide_reader_t reader;
  tide_callback_t callback;       /* its priority is also that of what is sent */
  rclc_executor_handle_t *handle; /* null: in no executor */
  uint32_t decode_errors;
} tide_service_end_t;

typedef struct tide_service_handle {
  tide_service_end_t end;      /* first member */
  void *response;              /* the program's, sent when its callback returns */
  rmw_request_id_t request_id; /* of the request that is served, or whose response waits */
  bool deferred;               /* the program sends it */
  bool response_waits;         /* for a free node */
  uint32_t responses_lost;
} tide_service_handle_t;

typedef struct tide_asked {
  int64_t sequence_number; /* 0: free */
  uint16_t request;        /* id on the wire */
} tide_asked_t;

typedef struct tide_client_handle {
  tide_service_end_t end;  /* first member */
  tide_asked_t *asked;     /* tide_pools.client_request_count places */
  int64_t sequence_number; /* last one given */
  uint32_t forgotten, unexpected;
} tide_client_handle_t;

typedef struct tide_timer_handle {
  struct tide_support *support; /* null: free */
  tide_timer_t timer;
  rcl_timer_callback_t callback;
  rcl_timer_t *program;           /* the program's structure, passed to its callback */
  rclc_executor_handle_t *handle; /* null: in no executor */
} tide_timer_handle_t;

typedef struct tide_guard_handle {
  struct tide_support *support; /* null: free */
  tide_callback_t callback;
  rclc_executor_handle_t *handle;
  bool triggered_early; /* before it was added to an executor */
} tide_guard_handle_t;

typedef struct tide_executor_handle {
  struct tide_support *support; /* null: free */
  tide_executor_t core;
  tide_lane_t *lanes; /* tide_pools.lane_count places */
  uint8_t number;     /* of its frames: tide_reader_t.owner */
  bool has_threads;   /* of its own, by tide_rclc_executor_set_lanes */
  size_t refused_lane;
  rclc_executor_t *program;
  rclc_executor_trigger_t trigger;
  void *trigger_object;
  size_t first; /* its places in the shared arrays */
  size_t count;
  int64_t next_period_ns;
} tide_executor_handle_t;

/* A caller that sleeps until something happens, on its own stack. */
typedef struct tide_waiter {
  tide_event_t event;
  struct tide_waiter *next;
} tide_waiter_t;

typedef struct tide_support {
  tide_session_t session;
  rmw_init_options_t options;
  tide_send_t send;
  int32_t creation_timeout_ms, destroy_timeout_ms;
  tide_waiter_t *waiters; /* any number of threads may publish and wait for a free place */
  bool digesting;         /* somebody who waits for an answer hands received frames on: one at a time */
  bool digest_refused;    /* somebody else wanted to meanwhile */
  bool in_use;
  bool custom;                                           /* the link is the program's own functions */
  void (*retry_responses)(struct tide_support *support); /* null as long as no response has waited for a node */
} tide_support_t;

typedef struct tide_pools {
  tide_support_t *support;
  tide_node_handle_t *nodes;
  tide_publisher_handle_t *publishers;
  tide_subscription_handle_t *subscriptions;
  tide_timer_handle_t *timers;
  tide_guard_handle_t *guards;
  tide_executor_handle_t *executors;
  tide_lane_t *lanes; /* lane_count for each executor */
  rclc_executor_handle_t *handles;
  tide_callback_t **callbacks;
  tide_queue_entry_t **ready_storage, **timer_storage;
  tide_object_t **objects;
  tide_node_t *data_nodes;
  tide_queue_entry_t **execution_storage, **pending_storage, **noted_storage;
  const tide_size_class_t *classes;
  tide_output_stream_t *output_streams;
  tide_input_stream_t *input_streams;
  tide_slot_t *slots;
  uint8_t *slot_storage;
  tide_reassembly_t *reassemblies;
  uint8_t *reassembly_storage;
  uint32_t reassembly_bytes;
  char *node_names, *publisher_names, *subscription_names;
  tide_sample_t *samples;
  tide_group_handle_t *groups;
  tide_queue_entry_t **group_storage; /* handle_count for each group */
  tide_local_topic_handle_t *local_topics;
  tide_local_end_t *local_ends;
  tide_local_message_t **local_queues; /* subscription_depth for each end */
  char *local_names;
  tide_local_pool_t *local_pool; /* set up when it is first needed */
  void *local_storage;
  uint32_t local_message_count, local_message_bytes;
  tide_service_handle_t *services;
  tide_client_handle_t *clients;
  char *service_names;            /* two for each service, then two for each client */
  tide_sample_t *service_samples; /* service_depth for each */
  tide_asked_t *asked;            /* client_request_count for each client */
  uint8_t *custom_storage;        /* null: no custom transport */
  uint32_t custom_bytes;
  uint32_t connect_timeout_ms;
  uint16_t node_count, publisher_count, subscription_count, timer_count, guard_count, executor_count, lane_count,
      handle_count, group_count, local_topic_count, local_end_count;
  uint16_t object_count, data_node_count, class_count, stream_count, slot_count, reassembly_count, mtu_bytes;
  uint16_t name_bytes, service_name_bytes;
  uint16_t service_count, client_count, client_request_count;
  uint8_t subscription_depth, service_depth;
  uint8_t window;
} tide_pools_t;

extern const tide_pools_t tide_pools;

#ifdef TIDE_DEFINE_POOLS
#define TIDE_PLACES(count) ((count) > 0 ? (count) : 1)
static struct {
  tide_support_t support;
  tide_node_handle_t nodes[TIDE_PLACES(TIDE_NODES)];
  tide_publisher_handle_t publishers[TIDE_PLACES(TIDE_PUBLISHERS)];
  tide_subscription_handle_t subscriptions[TIDE_PLACES(TIDE_SUBSCRIPTIONS)];
  tide_timer_handle_t timers[TIDE_PLACES(TIDE_TIMERS)];
  tide_guard_handle_t guards[TIDE_PLACES(TIDE_GUARD_CONDITIONS)];
  tide_executor_handle_t executors[TIDE_PLACES(TIDE_EXECUTORS)];
  tide_lane_t lanes[TIDE_PLACES(TIDE_EXECUTORS * TIDE_EXECUTOR_LANES)];
  rclc_executor_handle_t handles[TIDE_PLACES(TIDE_HANDLES)];
  tide_callback_t *callbacks[TIDE_PLACES(TIDE_HANDLES)];
  tide_queue_entry_t *ready[TIDE_PLACES(TIDE_HANDLES * TIDE_EXECUTOR_LANES)],
      *timer[TIDE_PLACES(TIDE_HANDLES * TIDE_EXECUTOR_LANES)];
  tide_object_t *objects[TIDE_PLACES(TIDE_OBJECT_COUNT)];
  tide_node_t data_nodes[TIDE_PLACES(TIDE_NODE_COUNT)];
  tide_queue_entry_t *execution[TIDE_PLACES(TIDE_NODE_COUNT)], *pending[TIDE_PLACES(TIDE_NODE_COUNT)],
      *noted[TIDE_PLACES(TIDE_SLOTS)];
  tide_output_stream_t output_streams[TIDE_PLACES(TIDE_STREAMS)];
  tide_input_stream_t input_streams[TIDE_PLACES(TIDE_STREAMS)];
  tide_slot_t slots[TIDE_PLACES(TIDE_SLOTS)];
  tide_reassembly_t reassemblies[TIDE_PLACES(TIDE_REASSEMBLIES)];
  char node_names[TIDE_PLACES(TIDE_NODES)][2][TIDE_NAME_BYTES];
  char publisher_names[TIDE_PLACES(TIDE_PUBLISHERS)][TIDE_NAME_BYTES];
  char subscription_names[TIDE_PLACES(TIDE_SUBSCRIPTIONS)][TIDE_NAME_BYTES];
  tide_sample_t samples[TIDE_PLACES(TIDE_SUBSCRIPTIONS * TIDE_SUBSCRIPTION_DEPTH)];
  uint8_t custom[TIDE_PLACES(TIDE_CUSTOM_TRANSPORT * TIDE_CUSTOM_LINK_STORAGE_BYTES(TIDE_MTU_BYTES))];
} tide_pool_memory;

/* The messages themselves, apart from what the runtime needs to handle them. */
static struct {
  uint64_t small_nodes[TIDE_PLACES((TIDE_SMALL_NODES * TIDE_SMALL_NODE_BYTES + 7) / 8)];
  uint64_t large_nodes[TIDE_PLACES((TIDE_LARGE_NODES * TIDE_LARGE_NODE_BYTES + 7) / 8)];
  uint64_t slot_bytes[(TIDE_SLOTS * TIDE_MTU_BYTES + 7) / 8];
  uint64_t reassembly_bytes[TIDE_PLACES((TIDE_REASSEMBLIES * TIDE_REASSEMBLY_BYTES + 7) / 8)];
} tide_message_memory;

/* Nothing where there is none of it. */
#if TIDE_GROUPS > 0
static struct {
  tide_group_handle_t groups[TIDE_GROUPS];
  tide_queue_entry_t *waiting[TIDE_GROUPS * TIDE_HANDLES];
} tide_group_memory;
#endif
#if TIDE_SERVICES + TIDE_CLIENTS > 0
static struct {
  tide_service_handle_t services[TIDE_PLACES(TIDE_SERVICES)];
  tide_client_handle_t clients[TIDE_PLACES(TIDE_CLIENTS)];
  char names[TIDE_SERVICES + TIDE_CLIENTS][2][TIDE_SERVICE_NAME_BYTES];
  tide_sample_t samples[(TIDE_SERVICES + TIDE_CLIENTS) * TIDE_SERVICE_DEPTH];
  tide_asked_t asked[TIDE_PLACES(TIDE_CLIENTS * TIDE_CLIENT_REQUESTS)];
} tide_service_memory;
#endif
#if TIDE_LOCAL_TOPICS > 0
static struct {
  tide_local_topic_handle_t topics[TIDE_LOCAL_TOPICS];
  tide_local_end_t ends[TIDE_PLACES(TIDE_LOCAL_SUBSCRIPTIONS)];
  tide_local_message_t *queues[TIDE_PLACES(TIDE_LOCAL_SUBSCRIPTIONS * TIDE_SUBSCRIPTION_DEPTH)];
  char names[TIDE_LOCAL_TOPICS][TIDE_NAME_BYTES];
  tide_local_pool_t pool;
  uint64_t messages[TIDE_PLACES(TIDE_LOCAL_STORAGE_BYTES(TIDE_LOCAL_MESSAGES, TIDE_LOCAL_MESSAGE_BYTES) / 8)];
} tide_local_memory;
#endif

static const tide_size_class_t tide_pool_classes[2] = {
    {(uint8_t *)tide_message_memory.small_nodes, TIDE_SMALL_NODE_BYTES, TIDE_SMALL_NODES},
    {(uint8_t *)tide_message_memory.large_nodes, TIDE_LARGE_NODE_BYTES, TIDE_LARGE_NODES}};

const tide_pools_t tide_pools = {
    .support = &tide_pool_memory.support,
    .nodes = tide_pool_memory.nodes,
    .publishers = tide_pool_memory.publishers,
    .subscriptions = tide_pool_memory.subscriptions,
    .timers = tide_pool_memory.timers,
    .guards = tide_pool_memory.guards,
    .executors = tide_pool_memory.executors,
    .lanes = tide_pool_memory.lanes,
    .handles = tide_pool_memory.handles,
    .callbacks = tide_pool_memory.callbacks,
    .ready_storage = tide_pool_memory.ready,
    .timer_storage = tide_pool_memory.timer,
    .objects = tide_pool_memory.objects,
    .data_nodes = tide_pool_memory.data_nodes,
    .execution_storage = tide_pool_memory.execution,
    .pending_storage = tide_pool_memory.pending,
    .noted_storage = tide_pool_memory.noted,
    .classes = tide_pool_classes,
    .output_streams = tide_pool_memory.output_streams,
    .input_streams = tide_pool_memory.input_streams,
    .slots = tide_pool_memory.slots,
    .slot_storage = (uint8_t *)tide_message_memory.slot_bytes,
    .reassemblies = tide_pool_memory.reassemblies,
    .reassembly_storage = (uint8_t *)tide_message_memory.reassembly_bytes,
    .reassembly_bytes = TIDE_REASSEMBLY_BYTES,
    .node_names = &tide_pool_memory.node_names[0][0][0],
    .publisher_names = &tide_pool_memory.publisher_names[0][0],
    .subscription_names = &tide_pool_memory.subscription_names[0][0],
    .samples = tide_pool_memory.samples,
#if TIDE_GROUPS > 0
    .groups = tide_group_memory.groups,
    .group_storage = tide_group_memory.waiting,
    .group_count = TIDE_GROUPS,
#endif
#if TIDE_SERVICES + TIDE_CLIENTS > 0
    .services = tide_service_memory.services,
    .clients = tide_service_memory.clients,
    .service_names = &tide_service_memory.names[0][0][0],
    .service_samples = tide_service_memory.samples,
    .asked = tide_service_memory.asked,
    .service_count = TIDE_SERVICES,
    .client_count = TIDE_CLIENTS,
    .client_request_count = TIDE_CLIENT_REQUESTS,
    .service_name_bytes = TIDE_SERVICE_NAME_BYTES,
    .service_depth = TIDE_SERVICE_DEPTH,
#endif
#if TIDE_LOCAL_TOPICS > 0
    .local_topics = tide_local_memory.topics,
    .local_ends = tide_local_memory.ends,
    .local_queues = tide_local_memory.queues,
    .local_names = &tide_local_memory.names[0][0],
    .local_pool = &tide_local_memory.pool,
    .local_storage = tide_local_memory.messages,
    .local_message_count = TIDE_LOCAL_MESSAGES,
    .local_message_bytes = TIDE_LOCAL_MESSAGE_BYTES,
    .local_topic_count = TIDE_LOCAL_TOPICS,
    .local_end_count = TIDE_LOCAL_SUBSCRIPTIONS,
#endif
    .custom_storage = TIDE_CUSTOM_TRANSPORT ? tide_pool_memory.custom : NULL,
    .custom_bytes = sizeof tide_pool_memory.custom,
    .connect_timeout_ms = TIDE_CONNECT_TIMEOUT_MS,
    .node_count = TIDE_NODES,
    .publisher_count = TIDE_PUBLISHERS,
    .subscription_count = TIDE_SUBSCRIPTIONS,
    .timer_count = TIDE_TIMERS,
    .guard_count = TIDE_GUARD_CONDITIONS,
    .executor_count = TIDE_EXECUTORS,
    .lane_count = TIDE_EXECUTOR_LANES,
    .handle_count = TIDE_HANDLES,
    .object_count = TIDE_OBJECT_COUNT,
    .data_node_count = TIDE_NODE_COUNT,
    .class_count = 2,
    .stream_count = TIDE_STREAMS,
    .slot_count = TIDE_SLOTS,
    .reassembly_count = TIDE_REASSEMBLIES,
    .mtu_bytes = TIDE_MTU_BYTES,
    .name_bytes = TIDE_NAME_BYTES,
    .subscription_depth = TIDE_SUBSCRIPTION_DEPTH,
    .window = TIDE_WINDOW,
};
#endif

#ifdef __cplusplus
}
#endif
#endif
