/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of the objects that a program creates by the rclc interface: a structure for each object, and the
 * table of all pools. Programs do not use it directly; tide/pools.h defines the storage. */
#ifndef TIDE_POOL_HANDLES_H
#define TIDE_POOL_HANDLES_H

#include "rcl/rcl.h"
#include "rclc/executor.h"
#include "tide/executor.h"
#include "tide/link_custom.h"
#include "tide/message.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/rclc_local.h"

TIDE_EXTERN_C_BEGIN

struct tide_service_type; /* tide/message_memory.h */

typedef struct tide_node_handle {
  struct tide_support *support; /* null: free */
  char *full_name, *namespace_; /* tide_pools.name_bytes each */
  char *name;                   /* the last part of full_name */
  tide_object_t participant;
} tide_node_handle_t;

/* A topic of the ROS 2 graph and the three objects on the agent that a publisher or subscription of it needs. */
typedef struct tide_topic {
  char *name; /* tide_pools.name_bytes, as on the wire: "rt/..." */
  tide_object_t topic, group, endpoint;
} tide_topic_t;

typedef struct tide_group_handle {
  bool in_use;
  tide_group_t group;
} tide_group_handle_t;

typedef struct tide_local_topic_handle {
  bool open;                                        /* has publishers or subscriptions, or messages still being read */
  bool plain;                                       /* messages of fixed size, delivered in place */
  uint16_t users;                                   /* number of its publishers and subscriptions */
  uint16_t shared_publishers, shared_subscriptions; /* how many of them have reach BOTH */
  char *name;                                       /* tide_pools.name_bytes */
  const tide_message_type_t *type;
  tide_local_topic_t topic;
} tide_local_topic_handle_t;

typedef struct tide_local_end {
  tide_local_topic_handle_t *topic; /* null: free */
  tide_local_subscription_t subscription;
} tide_local_end_t;

struct tide_local_functions; /* null without local delivery, so that it is not linked */

struct tide_continuous; /* null if no sample is written in pieces, so that this is not linked */

typedef struct tide_publisher_handle {
  struct tide_support *support; /* null: free */
  const tide_message_type_t *type;
  tide_topic_t topic;
  tide_writer_t writer;
  int32_t wait_ms; /* longest wait for a free node */
  const struct tide_local_functions *local;
  tide_local_topic_handle_t *local_topic;
  tide_reach_t reach;
  bool is_large;                            /* the publisher's last sample did not fit the smallest node */
  const struct tide_continuous *continuous; /* null: its samples are written in one piece */
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

/* Common part of services and clients: a replier or requester, its received messages, its callback. */
typedef struct tide_service_end {
  struct tide_support *support; /* null: free */
  const struct tide_service_type *type;
  char *request_topic, *reply_topic; /* tide_pools.service_name_bytes, as on the wire: "rq/...Request", "rr/...Reply" */
  tide_object_t object;
  tide_reader_t reader;
  tide_callback_t callback;       /* its priority is also that of sent messages */
  rclc_executor_handle_t *handle; /* null: in no executor */
  uint32_t decode_errors;
  uint32_t told;   /* of reader.undelivered, for how many the program's error callback was called */
  int32_t wait_ms; /* longest wait for a free node */
} tide_service_end_t;

typedef struct tide_service_handle {
  tide_service_end_t end;         /* first member */
  void *response;                 /* the program's response, sent when its callback returns */
  rmw_request_id_t request_id;    /* id of the request being served, or of the request whose response waits */
  bool deferred;                  /* the program sends the response itself */
  bool response_waits;            /* the response waits for a free node */
  void (*refuse)(void *response); /* for the runtime's own services: turns a response that is too large for the pool
                                     into a refusal */
  uint32_t responses_lost;
} tide_service_handle_t;

typedef struct tide_asked {
  int64_t sequence_number; /* 0: free */
  uint16_t request;        /* id on the wire */
} tide_asked_t;

typedef struct tide_client_handle {
  tide_service_end_t end;  /* first member */
  tide_asked_t *asked;     /* array of tide_pools.client_request_count */
  int64_t sequence_number; /* number of the last request */
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
  bool triggered_early; /* triggered before it was added to an executor */
} tide_guard_handle_t;

struct tide_executor_handle;
/* For an executor with logical execution time (LET), which takes all inputs first: begin is its trigger, end is called
 * after each round. */
typedef struct tide_rounds {
  tide_trigger_t begin;
  void (*end)(struct tide_executor_handle *executor);
} tide_rounds_t;

typedef struct tide_executor_handle {
  struct tide_support *support; /* null: free */
  tide_executor_t core;
  tide_lane_t *lanes; /* array of tide_pools.lane_count */
  uint8_t number;     /* this executor's number; readers whose frames it processes have it as tide_reader_t.owner */
  bool has_threads;   /* has its own threads, by tide_rclc_executor_set_lanes */
  size_t refused_lane;
  rclc_executor_trigger_t trigger;
  void *trigger_object;
  size_t first; /* index of the executor's first element in the shared arrays */
  size_t count;
  int64_t next_period_ns;
  const tide_rounds_t *rounds; /* null: each callback takes its input and sends its output itself */
  tide_node_t *kept;           /* messages to send when its round ends, the most urgent first */
  bool unread;                 /* since the last spin_some a message was dropped that did not fit its memory */
} tide_executor_handle_t;

/* A caller that sleeps until the session changes; memory: the caller's stack. */
typedef struct tide_waiter {
  tide_event_t event;
  struct tide_waiter *next;
} tide_waiter_t;

typedef struct tide_support {
  tide_session_t session;
  rmw_init_options_t options;
  tide_send_t send;
  int32_t creation_timeout_ms, destroy_timeout_ms;
  tide_waiter_t *waiters; /* any number of threads may publish and wait for a free node */
  bool digesting;         /* a caller that waits for an answer is processing received frames; only one caller at a time
                           * does */
  bool digest_refused;    /* another caller was refused while `digesting` was set */
  bool in_use;
  bool custom;                                           /* the link is the program's own functions */
  void (*retry_responses)(struct tide_support *support); /* null as long as no response has waited for a node */
  int (*keep)(struct tide_support *support, tide_write_t *write); /* replaces tide_session_write_end; may be null */
} tide_support_t;

typedef struct tide_pools {
  tide_support_t *support;
  tide_node_handle_t *nodes;
  tide_publisher_handle_t *publishers;
  tide_subscription_handle_t *subscriptions;
  tide_timer_handle_t *timers;
  tide_guard_handle_t *guards;
  tide_executor_handle_t *executors;
  tide_lane_t *lanes; /* lane_count elements for each executor */
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
  tide_queue_entry_t **group_storage; /* handle_count elements for each group */
  tide_local_topic_handle_t *local_topics;
  tide_local_end_t *local_ends;
  tide_local_message_t **local_queues; /* subscription_depth elements for each subscription */
  char *local_names;
  tide_local_pool_t *local_pool; /* set up at the first use of local delivery */
  void *local_storage;
  uint32_t local_message_count, local_message_bytes;
  tide_service_handle_t *services;
  tide_client_handle_t *clients;
  char *service_names;                     /* two names for each service, then two for each client */
  tide_sample_t *service_samples;          /* service_depth elements for each service and client */
  tide_asked_t *asked;                     /* client_request_count elements for each client */
  const struct tide_action_pools *actions; /* tide/pool_actions.h; null: none */
  uint8_t *custom_storage;                 /* null: no custom transport */
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

TIDE_EXTERN_C_END
#endif
