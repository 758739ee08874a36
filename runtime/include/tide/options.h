/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime is built with. Everything is on by default; a program that counts its bytes builds the runtime and
 * itself with some of these defined as 0, by the compiler's command line (tide_runtime in firmware/CMakeLists.txt).
 * What each saves: tide footprint --options.
 *
 * Some change the layout of structures. The entry points carry those in their names, so that a program built with
 * others than the runtime does not link. */
#ifndef TIDE_OPTIONS_H
#define TIDE_OPTIONS_H

/* Reliable streams: history, acknowledgments, repairs, samples kept over a reconnection. Without them every publisher
 * and subscription is best effort (TIDE_ERROR_UNSUPPORTED for others), and requests to the agent are repeated until
 * they are answered. */
#ifndef TIDE_RELIABLE_STREAMS
#define TIDE_RELIABLE_STREAMS 1
#endif

/* Messages longer than the link quantum, both ways. Without: TIDE_ERROR_TOO_LARGE, and received ones are dropped and
 * counted. They travel on reliable streams only. */
#ifndef TIDE_FRAGMENTS
#define TIDE_FRAGMENTS TIDE_RELIABLE_STREAMS
#endif

/* Messages longer than any node, written in pieces while they leave: rmw_uros_set_continous_serialization_callbacks.
 * Without: TIDE_ERROR_UNSUPPORTED from its publishers. */
#ifndef TIDE_LONG_MESSAGES
#define TIDE_LONG_MESSAGES TIDE_FRAGMENTS
#endif

/* Keeping less urgent messages off the wire until a reliable one is acknowledged (hold_until_acknowledged,
 * hold_levels): the published PoDS behaviour, off unless it is asked for. Without: TIDE_ERROR_UNSUPPORTED. */
#ifndef TIDE_HOLD
#define TIDE_HOLD TIDE_RELIABLE_STREAMS
#endif

/* Several small reliable messages in one frame, where more wait than the window lets go. Links of datagrams use it; on
 * a serial line each message stays a frame of its own. Without: everywhere. Off on boards unless it is asked for. */
#ifndef TIDE_PACKING
#ifdef __unix__
#define TIDE_PACKING TIDE_RELIABLE_STREAMS
#else
#define TIDE_PACKING 0
#endif
#endif

/* Receive slots that belong to each reader, and questions for what has a slot only. Without: all readers share the
 * slots, and the least urgent frame gives way, whoever reads it. For programs with one reader. */
#ifndef TIDE_RESERVATIONS
#define TIDE_RESERVATIONS 1
#endif

/* Time limits of messages (expires_ns). Without: they are kept until acknowledged. */
#ifndef TIDE_MESSAGE_EXPIRY
#define TIDE_MESSAGE_EXPIRY 1
#endif

/* Samples in other formats than plain DATA; agents send plain DATA, as they are asked to. */
#ifndef TIDE_SAMPLE_SEQUENCES
#define TIDE_SAMPLE_SEQUENCES 1
#endif

/* Taking objects and readers away again, and saying goodbye. Without: TIDE_ERROR_UNSUPPORTED, for programs that run
 * until the power goes. */
#ifndef TIDE_REMOVAL
#define TIDE_REMOVAL 1
#endif

/* Time synchronisation with the agent. */
#ifndef TIDE_TIME_SYNC
#define TIDE_TIME_SYNC 1
#endif

/* Threads that wait until a node is free (tide_daemon_acquire_until, done_event). Without: TIDE_ERROR_UNSUPPORTED, and
 * the event is never set. */
#ifndef TIDE_NODE_WAITERS
#define TIDE_NODE_WAITERS 1
#endif

/* Answering an agent that asks what this client is (GET_INFO): none of the known ones does. */
#ifndef TIDE_AGENT_QUESTIONS
#define TIDE_AGENT_QUESTIONS 1
#endif

/* Requesters and repliers: services. Without: TIDE_ERROR_UNSUPPORTED from tide_session_add_object
 * and from the init of services and clients. */
#ifndef TIDE_SERVICE_OBJECTS
#define TIDE_SERVICE_OBJECTS 1
#endif

/* {node}, {ns} and {namespace} in names of topics and services. Without: TIDE_ERROR_NAME. By default on a
 * desktop. */
#ifndef TIDE_NAME_SUBSTITUTIONS
#define TIDE_NAME_SUBSTITUTIONS TIDE_DESKTOP
#endif

/* Objects that are described by XML or by a reference to the agent's own descriptions. Without: TIDE_ERROR_UNSUPPORTED
 * from tide_session_add_object; the rclc interface describes its objects in binary. */
#ifndef TIDE_TEXT_OBJECTS
#define TIDE_TEXT_OBJECTS 1
#endif

/* What callbacks take: hooks around them, times and number of their runs, and tide/measure.h. */
#ifndef TIDE_MEASUREMENT
#define TIDE_MEASUREMENT 1
#endif

/* Executors with more than one lane, groups of callbacks, budgets. */
#ifndef TIDE_LANES
#define TIDE_LANES 1
#endif

/* The batch policy (rclc's way of executing), for comparisons. */
#ifndef TIDE_BATCH
#define TIDE_BATCH 1
#endif

/* The readyset policy (rclcpp's way of executing), for comparisons. */
#ifndef TIDE_READYSET
#define TIDE_READYSET 1
#endif

/* Trigger conditions, and callbacks that run in each round (ALWAYS). */
#ifndef TIDE_TRIGGERS
#define TIDE_TRIGGERS 1
#endif

/* rmw_uros_set_custom_transport. */
#ifndef TIDE_CUSTOM_LINK
#define TIDE_CUSTOM_LINK 1
#endif

/* A system with sockets: rmw_uros_discover_agent. Without: TIDE_ERROR_UNSUPPORTED. */
#ifndef TIDE_SOCKETS
#if defined(__unix__) || defined(__APPLE__)
#define TIDE_SOCKETS 1
#else
#define TIDE_SOCKETS 0
#endif
#endif

/* A desktop: memory that is not used costs nothing, so a program that defines no pools gets large ones
 * (pools_default.c). */
#ifndef TIDE_DESKTOP
#if defined(__unix__) || defined(__APPLE__)
#define TIDE_DESKTOP 1
#else
#define TIDE_DESKTOP 0
#endif
#endif

/* Counts of the nodes of each level and writer, so that taking one costs the same when nodes run short: 512 bytes, for
 * large pools. */
#ifndef TIDE_NODE_COUNTS
#define TIDE_NODE_COUNTS (TIDE_RESERVATIONS && TIDE_DESKTOP)
#endif
#if TIDE_NODE_COUNTS && !TIDE_RESERVATIONS
#error "TIDE_NODE_COUNTS needs TIDE_RESERVATIONS"
#endif

/* A heap: the default allocator of programs (rcutils_get_default_allocator) is malloc's, as on a desktop, Arduino and
 * ESP-IDF. Without, as on other boards unless they are built with 1, that allocator refuses with TIDE_ERROR_NO_HEAP.
 * The runtime itself allocates nothing either way. */
#ifndef TIDE_HEAP
#if TIDE_DESKTOP || defined(ARDUINO) || defined(ESP_PLATFORM)
#define TIDE_HEAP 1
#else
#define TIDE_HEAP 0
#endif
#endif

/* The names of loggers of nodes in a namespace (rcl_node_get_logger_name), one after the other. Only programs that call
 * it have this memory. */
#ifndef TIDE_LOGGER_NAME_BYTES
#define TIDE_LOGGER_NAME_BYTES (TIDE_DESKTOP ? 2048 : 256)
#endif

/* The structures named *_counters_t. Without they stay zero, and a program that loses something cannot tell what. */
#ifndef TIDE_COUNTERS
#define TIDE_COUNTERS 1
#endif
#define TIDE_COUNT(counter, by) ((void)(TIDE_COUNTERS ? ((counter) += (by)) : 0u))

/* Looking at configurations when they are handed over. A program whose configuration is constant and was accepted once
 * can do without. */
#ifndef TIDE_CONFIG_CHECKS
#define TIDE_CONFIG_CHECKS 1
#endif

/* The port's platform is the only one: its clock, critical section and events are called by name, not through pointers,
 * and the platform of a configuration is not looked at: it may be null. Its links never close while they start a
 * frame. */
#ifndef TIDE_STATIC_PLATFORM
#define TIDE_STATIC_PLATFORM 0
#endif

/* Every daemon is a session's: the halves of the daemon call it, and the daemon the session, by name. */
#ifndef TIDE_STATIC_SESSION
#define TIDE_STATIC_SESSION TIDE_STATIC_PLATFORM
#endif

/* The runtime is called from one context only; interrupts just set events, and the bytes that came are handled when the
 * executor chooses its next callback. Without critical sections the code is smaller by a twentieth. The price: while a
 * callback runs the next frame does not start and acknowledgments wait. Needs TIDE_STATIC_PLATFORM and a port that
 * knows it (Cortex-M). */
#ifndef TIDE_SINGLE_CONTEXT
#define TIDE_SINGLE_CONTEXT 0
#endif

/* Lanes of one band that need not wake each other (patience_ns of an executor). Usual where there is an operating
 * system with processes: waking a thread is dear there. Without, an executor has no patience_ns. */
#if defined(__linux__) || defined(__APPLE__)
#define TIDE_PATIENCE_USUAL 1
#else
#define TIDE_PATIENCE_USUAL 0
#endif
#ifndef TIDE_PATIENCE
#define TIDE_PATIENCE TIDE_PATIENCE_USUAL
#endif

/* Records of what happens to each instance (tide/trace.h). Off: nothing of it is in the image. */
#ifndef TIDE_TRACE
#define TIDE_TRACE 0
#endif

#if TIDE_TRACE && !TIDE_MEASUREMENT
#error "TIDE_TRACE needs TIDE_MEASUREMENT"
#endif
#if TIDE_FRAGMENTS && !TIDE_RELIABLE_STREAMS
#error "TIDE_FRAGMENTS needs TIDE_RELIABLE_STREAMS"
#endif
#if TIDE_LONG_MESSAGES && !TIDE_FRAGMENTS
#error "TIDE_LONG_MESSAGES needs TIDE_FRAGMENTS"
#endif
#if TIDE_SINGLE_CONTEXT && !TIDE_STATIC_PLATFORM
#error "TIDE_SINGLE_CONTEXT needs TIDE_STATIC_PLATFORM"
#endif

/* Options that change the layout of a structure. */
#if !TIDE_RELIABLE_STREAMS || !TIDE_FRAGMENTS || !TIDE_LONG_MESSAGES || !TIDE_TIME_SYNC || defined(TIDE_CONTROL_PLACES)
#define TIDE_WITH_OPTIONS__(name, r, f, l, t, c) name##_with_##r##f##l##t##_##c
#define TIDE_WITH_OPTIONS_(name, r, f, l, t, c) TIDE_WITH_OPTIONS__(name, r, f, l, t, c)
#ifndef TIDE_CONTROL_PLACES
#define TIDE_CONTROL_PLACES 6
#endif
#define TIDE_WITH_OPTIONS(name)                                                                       \
  TIDE_WITH_OPTIONS_(name, TIDE_RELIABLE_STREAMS, TIDE_FRAGMENTS, TIDE_LONG_MESSAGES, TIDE_TIME_SYNC, \
                     TIDE_CONTROL_PLACES)
#define tide_session_init TIDE_WITH_OPTIONS(tide_session_init)
#define tide_daemon_init TIDE_WITH_OPTIONS(tide_daemon_init)
#define tide_transmitter_init TIDE_WITH_OPTIONS(tide_transmitter_init)
#define tide_receiver_init TIDE_WITH_OPTIONS(tide_receiver_init)
#define tide_pools TIDE_WITH_OPTIONS(tide_pools)
#endif

#if TIDE_PATIENCE != TIDE_PATIENCE_USUAL && TIDE_TRACE
#define tide_executor_init tide_executor_init_with_trace_and_other_patience
#elif TIDE_PATIENCE != TIDE_PATIENCE_USUAL
#define tide_executor_init tide_executor_init_with_other_patience
#elif TIDE_TRACE
#define tide_executor_init tide_executor_init_with_trace
#endif
#if TIDE_TRACE
#define tide_daemon_attach_link tide_daemon_attach_link_with_trace
#define tide_transmitter_submit tide_transmitter_submit_with_trace
#define tide_budget_init tide_budget_init_with_trace
#endif

#endif
