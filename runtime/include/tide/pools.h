/* SPDX-License-Identifier: Apache-2.0 */
/* The static memory of a program that uses the rclc interface. Nothing is allocated, neither before nor after main is
 * entered, so RAM use is known at link time. Each refusal names the limit that was reached (tide_rclc_last_status).
 *
 * A program that defines nothing gets the defaults. To choose other sizes, write in exactly one C file:
 *
 *   #define TIDE_PUBLISHERS 12
 *   #define TIDE_LARGE_NODE_BYTES 45000
 *   #define TIDE_DEFINE_POOLS
 *   #include <tide/pools.h>
 */
#ifndef TIDE_POOLS_H
#define TIDE_POOLS_H

#include "tide/pool_handles.h"

/* Maximum numbers of the program's objects. On the agent a publisher or a subscription takes three objects, a node
 * takes one. */
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
/* Servers and clients of services: one object on the agent each. A program without pools of its own has two services
 * and two clients; on a desktop it has eight of each. */
#ifndef TIDE_SERVICES
#define TIDE_SERVICES 0
#endif
#ifndef TIDE_CLIENTS
#define TIDE_CLIENTS 0
#endif
/* Queue depth, 1 to 255: requests that a service, or replies that a client, keeps until its callback has run. */
#ifndef TIDE_SERVICE_DEPTH
#define TIDE_SERVICE_DEPTH 8
#endif
/* Unanswered requests of one client, 1 or more; a further request makes the client forget the oldest. */
#ifndef TIDE_CLIENT_REQUESTS
#define TIDE_CLIENT_REQUESTS 8
#endif
#if TIDE_SERVICE_DEPTH < 1 || TIDE_SERVICE_DEPTH > 255 || TIDE_CLIENT_REQUESTS < 1
#error "TIDE_SERVICE_DEPTH is 1 to 255, TIDE_CLIENT_REQUESTS 1 or more"
#endif
/* Servers and clients of actions; their services and topics come on top of the numbers above. */
#ifndef TIDE_ACTION_SERVERS
#define TIDE_ACTION_SERVERS 0
#endif
#ifndef TIDE_ACTION_CLIENTS
#define TIDE_ACTION_CLIENTS 0
#endif
/* Goals of all action servers and clients together: each takes the number given when it is added to its executor. */
#ifndef TIDE_ACTION_GOALS
#define TIDE_ACTION_GOALS (4 * (TIDE_ACTION_SERVERS + TIDE_ACTION_CLIENTS))
#endif
/* Results that servers keep for late or repeated requests, and the maximum size of a serialised result. */
#ifndef TIDE_ACTION_RESULTS
#define TIDE_ACTION_RESULTS (4 * TIDE_ACTION_SERVERS)
#endif
#ifndef TIDE_ACTION_RESULT_BYTES
#define TIDE_ACTION_RESULT_BYTES 256
#endif
/* Parameter servers (rclc_parameter), each with six services and a publisher on top of the numbers above. The next
 * numbers are those of all their parameters together (at most 254), and the sizes of a name and of a description in
 * bytes, including NUL. 0 bytes: no descriptions. */
#ifndef TIDE_PARAMETER_SERVERS
#define TIDE_PARAMETER_SERVERS 0
#endif
#ifndef TIDE_PARAMETERS
#define TIDE_PARAMETERS (4 * TIDE_PARAMETER_SERVERS)
#endif
#ifndef TIDE_PARAMETER_NAME_BYTES
#define TIDE_PARAMETER_NAME_BYTES 50
#endif
#ifndef TIDE_PARAMETER_TEXT_BYTES
#define TIDE_PARAMETER_TEXT_BYTES 50
#endif
#if TIDE_PARAMETERS > 254
#error "TIDE_PARAMETERS is at most 254"
#endif
/* Lifecycle nodes (rclc_lifecycle), each with five services and a publisher on top of the numbers above. */
#ifndef TIDE_LIFECYCLE_NODES
#define TIDE_LIFECYCLE_NODES 0
#endif
/* The ROS 2 graph (rcl/graph.h): size of the largest message that describes it; 0: no graph. It takes a subscription
 * and a guard condition on top of the numbers above; messages longer than TIDE_MTU_BYTES also need
 * TIDE_REASSEMBLY_BYTES. */
#ifndef TIDE_GRAPH_BYTES
#define TIDE_GRAPH_BYTES 0
#endif
#ifndef TIDE_EXECUTORS
#define TIDE_EXECUTORS 1
#endif
/* Largest number of lanes of one executor: see tide_rclc_executor_set_lanes. Each further lane costs every executor
 * about 200 bytes and two pointers for each handle. */
#ifndef TIDE_EXECUTOR_LANES
#define TIDE_EXECUTOR_LANES 1
#endif
/* Handles of all executors together: one for each timer, subscription, service, client, guard condition, and server or
 * client of an action that is added. */
#ifndef TIDE_HANDLES
#define TIDE_HANDLES                                                                                       \
  (TIDE_SUBSCRIPTIONS + TIDE_TIMERS + TIDE_GUARD_CONDITIONS + TIDE_SERVICES + 6 * TIDE_PARAMETER_SERVERS + \
   5 * TIDE_LIFECYCLE_NODES + TIDE_CLIENTS + TIDE_ACTIONS_ALL)
#endif
/* Callback groups: tide_rclc_callback_group_init. Each takes a pointer for every handle. */
#ifndef TIDE_GROUPS
#define TIDE_GROUPS (TIDE_EXECUTOR_LANES > 1 ? 4 : 0)
#endif
/* Longest topic name in bytes, with namespace, the prefix "rt" and NUL; also limits node names with their namespace,
 * and names of services. */
#ifndef TIDE_NAME_BYTES
#define TIDE_NAME_BYTES 64
#endif
/* Largest number of samples that a subscription queues. With a larger QoS depth further samples wait in receive slots
 * as long as they delay no other reader (not in the lean profile). With KEEP_LAST the oldest sample is dropped for a
 * new one once it has waited for 20 ms. With KEEP_ALL and a reliable subscription no sample is dropped: the agent
 * waits, and so do all messages on the stream of that level. */
#ifndef TIDE_SUBSCRIPTION_DEPTH
#define TIDE_SUBSCRIPTION_DEPTH 4
#endif
/* Local delivery (tide/rclc_local.h): topics, subscriptions to them, the largest message, and the number of messages. A
 * publisher needs as many messages as there are lanes, a subscription needs its depth plus one. */
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
/* Nodes for outgoing messages, small and large ones. A node holds one serialised message and 8 more bytes; the largest
 * message that can be published is the larger of the two sizes less 8. */
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
/* Largest message of the link in bytes. The largest frame's payload is 4 bytes smaller. Longer messages leave in
 * fragments, and a more urgent message waits for at most one fragment. */
#ifndef TIDE_MTU_BYTES
#define TIDE_MTU_BYTES 512
#endif
/* Slots for received messages that wait for their callback, including one for the arriving frame. Each subscription,
 * service and client reserves as many slots as its depth, and no other reader's backlog can take them. The sum of all
 * depths plus two suffices. With fewer slots all readers reserve the same number; with fewer slots than readers none is
 * reserved. In the subscription's tide_reader_t, account.reserved is the number granted and account.dropped counts
 * dropped frames. */
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
/* Streams in each direction: one for each pair of a level and a reliability that the program uses, whether to send or
 * to receive. Level 0 is always in use: a stock agent answers on its reliable stream, and a build without reliable
 * streams sends requests on its best-effort stream. The pools add the stream of requests. */
#ifndef TIDE_STREAMS
#define TIDE_STREAMS 8
#endif
/* Reliable messages in flight per stream, 1 to 16. */
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

/* Derived from the numbers above. */
#define TIDE_ACTIONS_ALL (TIDE_ACTION_SERVERS + TIDE_ACTION_CLIENTS)
#define TIDE_PUBLISHERS_ALL (TIDE_PUBLISHERS + 2 * TIDE_ACTION_SERVERS + TIDE_PARAMETER_SERVERS + TIDE_LIFECYCLE_NODES)
#define TIDE_SUBSCRIPTIONS_ALL (TIDE_SUBSCRIPTIONS + TIDE_ACTION_CLIENTS + (TIDE_GRAPH_BYTES > 0))
#define TIDE_SERVICES_ALL \
  (TIDE_SERVICES + 3 * TIDE_ACTION_SERVERS + 6 * TIDE_PARAMETER_SERVERS + 5 * TIDE_LIFECYCLE_NODES)
#define TIDE_CLIENTS_ALL (TIDE_CLIENTS + 3 * TIDE_ACTION_CLIENTS)
#define TIDE_GUARD_CONDITIONS_ALL (TIDE_GUARD_CONDITIONS + (TIDE_GRAPH_BYTES > 0))
#define TIDE_OBJECT_COUNT \
  (TIDE_NODES + 3 * TIDE_PUBLISHERS_ALL + 3 * TIDE_SUBSCRIPTIONS_ALL + TIDE_SERVICES_ALL + TIDE_CLIENTS_ALL)
#define TIDE_SERVICE_NAME_BYTES (TIDE_NAME_BYTES + 8) /* room for the suffix "Request" */
#define TIDE_NODE_COUNT (TIDE_SMALL_NODES + TIDE_LARGE_NODES)
#define TIDE_STREAMS_ALL (TIDE_STREAMS + TIDE_RELIABLE_STREAMS)

#ifdef TIDE_DEFINE_POOLS
#include "tide/pool_storage.h"
#endif

#endif
