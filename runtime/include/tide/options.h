/* SPDX-License-Identifier: Apache-2.0 */
/* Build options of the runtime. A program short of memory builds the runtime and itself with another profile, set by
 * definitions on the compiler's command line (see tide_runtime in runtime/port/cortex_m/CMakeLists.txt); `tide
 * footprint system.toml` prints the definitions that a description needs.
 *
 *   TIDE_PROFILE=0               full (the default): everything
 *   TIDE_RELIABLE_STREAMS=0      with any profile: best effort only
 *   TIDE_PROFILE=1               lean: for programs that run until power-off, with a configuration that needs no checks
 *   TIDE_PROFILE=2               bare: lean, called from one context only
 *
 * A program built with other options than the runtime does not link, because the entry points carry the options in
 * their names. */
#ifndef TIDE_OPTIONS_H
#define TIDE_OPTIONS_H

/* Lean leaves out: messages longer than a frame, lanes and groups, receive slots reserved for each reader
 * (TIDE_FRAGMENTS, TIDE_LANES and TIDE_RESERVATIONS add them again); time limits of messages, time synchronisation,
 * removal of objects and readers, the batch and readyset policies, triggers, KEEP_LAST of best-effort publishers,
 * custom links, measurement and traces, counters, checks of configurations, answers to an agent's GET_INFO. Functions
 * that need any of this return TIDE_ERROR_UNSUPPORTED. A lean runtime calls the functions of the port's platform
 * directly, so the platform in a configuration may be null. A link must not be closed while it starts a frame.
 *
 * Bare also leaves out critical sections: interrupts only set events. Received bytes are handled when the executor
 * chooses its next callback. The price: while a callback runs, no frame starts and acknowledgments wait. Bare needs a
 * port that supports it (Cortex-M). */
#ifndef TIDE_PROFILE
#define TIDE_PROFILE 0
#endif
#if TIDE_PROFILE > 0
#define TIDE_LEAN 1
#else
#define TIDE_LEAN 0
#endif
#if TIDE_PROFILE > 1
#define TIDE_SINGLE_CONTEXT 1
#else
#define TIDE_SINGLE_CONTEXT 0
#endif

/* Reliable streams: history, acknowledgments, retransmissions, samples kept over a reconnection. Without them
 * publishers and subscriptions are best effort, creating a reliable one returns TIDE_ERROR_UNSUPPORTED, and requests to
 * the agent are repeated until they are answered. */
#ifndef TIDE_RELIABLE_STREAMS
#define TIDE_RELIABLE_STREAMS 1
#endif

/* Messages longer than a frame, sent and received, on reliable streams only. Without this option, sending such a
 * message returns TIDE_ERROR_TOO_LARGE, and received ones are dropped and counted. */
#ifndef TIDE_FRAGMENTS
#if TIDE_RELIABLE_STREAMS && !TIDE_LEAN
#define TIDE_FRAGMENTS 1
#else
#define TIDE_FRAGMENTS 0
#endif
#endif

/* Receive slots reserved for each reader, and retransmissions requested only for frames that will find a slot. Without
 * this option, which suits programs with one reader, all readers share the slots, and when they are full, the least
 * urgent frame of any reader is evicted. */
#ifndef TIDE_RESERVATIONS
#if TIDE_LEAN
#define TIDE_RESERVATIONS 0
#else
#define TIDE_RESERVATIONS 1
#endif
#endif

/* Executors with more than one lane, groups of callbacks, budgets. */
#ifndef TIDE_LANES
#if TIDE_LEAN
#define TIDE_LANES 0
#else
#define TIDE_LANES 1
#endif
#endif

/* ---- the system ---- */

/* A desktop, where unused memory costs nothing. A program that defines no pools gets large ones (pools_default.c), and
 * the transmitter counts the nodes of each level and writer (512 bytes) instead of searching them. */
#ifndef TIDE_DESKTOP
#if defined(__unix__) || defined(__APPLE__)
#define TIDE_DESKTOP 1
#else
#define TIDE_DESKTOP 0
#endif
#endif

/* A system with sockets. Without sockets, rmw_uros_discover_agent fails with TIDE_ERROR_UNSUPPORTED. */
#ifndef TIDE_SOCKETS
#define TIDE_SOCKETS TIDE_DESKTOP
#endif

/* A heap (by default on a desktop, Arduino and ESP-IDF): the default allocator of programs
 * (rcutils_get_default_allocator) is malloc. Without a heap this allocator refuses with TIDE_ERROR_NO_HEAP. The runtime
 * itself allocates nothing either way. */
#ifndef TIDE_HEAP
#if TIDE_DESKTOP || defined(ARDUINO) || defined(ESP_PLATFORM)
#define TIDE_HEAP 1
#else
#define TIDE_HEAP 0
#endif
#endif

/* Substitution of {node}, {ns} and {namespace} in names of topics and services. Without this option such a name is an
 * error, TIDE_ERROR_NAME. */
#ifndef TIDE_NAME_SUBSTITUTIONS
#define TIDE_NAME_SUBSTITUTIONS TIDE_DESKTOP
#endif

/* Puts several small reliable messages into one frame while more messages wait than the window allows. Datagram links
 * use it; on a serial line each message stays a separate frame. */
#ifndef TIDE_PACKING
#ifdef __unix__
#define TIDE_PACKING TIDE_RELIABLE_STREAMS
#else
#define TIDE_PACKING 0
#endif
#endif

/* The member patience_ns of an executor's configuration, which lets lanes of one band wake each other less often. This
 * is useful where waking a thread is expensive. */
#if defined(__linux__) || defined(__APPLE__)
#define TIDE_PATIENCE 1
#else
#define TIDE_PATIENCE 0
#endif

/* Records of events of each instance (tide/trace.h). Off: the image contains no code for it. */
#ifndef TIDE_TRACE
#define TIDE_TRACE 0
#endif
#if TIDE_TRACE && TIDE_LEAN
#error "TIDE_TRACE needs what a lean runtime leaves out"
#endif
#if TIDE_FRAGMENTS && !TIDE_RELIABLE_STREAMS
#error "TIDE_FRAGMENTS needs TIDE_RELIABLE_STREAMS"
#endif

/* ---- numbers ---- */

/* Largest number of control submessages that wait for the wire, 3 to 255. */
#ifndef TIDE_CONTROL_PLACES
#define TIDE_CONTROL_PLACES 6
#endif

/* Bytes for the logger names of nodes in a namespace (rcl_node_get_logger_name), stored one after the other. Only
 * programs that call this function use the memory. */
#ifndef TIDE_LOGGER_NAME_BYTES
#define TIDE_LOGGER_NAME_BYTES (TIDE_DESKTOP ? 2048 : 256)
#endif

/* ---- derived options ---- */

/* Messages longer than any node, written in pieces while they are sent
 * (rmw_uros_set_continous_serialization_callbacks).
 */
#define TIDE_LONG_MESSAGES (TIDE_FRAGMENTS && !TIDE_LEAN)
#define TIDE_NODE_COUNTS (TIDE_RESERVATIONS && TIDE_DESKTOP)
/* Clock, critical section and events are functions of fixed names instead of pointers, and session and daemon call each
 * other without pointers. */
#ifndef TIDE_STATIC_PLATFORM
#define TIDE_STATIC_PLATFORM TIDE_LEAN
#endif
#define TIDE_COUNT(counter, by) ((void)(TIDE_LEAN ? 0u : ((counter) += (by))))

#if TIDE_LEAN || !TIDE_RELIABLE_STREAMS || TIDE_CONTROL_PLACES != 6
#define TIDE_WITH_OPTIONS__(name, p, r, f, s, c) name##_with_##p##r##f##s##_##c
#define TIDE_WITH_OPTIONS_(name, p, r, f, s, c) TIDE_WITH_OPTIONS__(name, p, r, f, s, c)
#define TIDE_WITH_OPTIONS(name) \
  TIDE_WITH_OPTIONS_(name, TIDE_LEAN, TIDE_RELIABLE_STREAMS, TIDE_FRAGMENTS, TIDE_RESERVATIONS, TIDE_CONTROL_PLACES)
#define tide_session_init TIDE_WITH_OPTIONS(tide_session_init)
#define tide_daemon_init TIDE_WITH_OPTIONS(tide_daemon_init)
#define tide_transmitter_init TIDE_WITH_OPTIONS(tide_transmitter_init)
#define tide_receiver_init TIDE_WITH_OPTIONS(tide_receiver_init)
#define tide_pools TIDE_WITH_OPTIONS(tide_pools)
#endif
#if TIDE_TRACE
#define tide_executor_init tide_executor_init_with_trace
#define tide_daemon_attach_link tide_daemon_attach_link_with_trace
#define tide_transmitter_submit tide_transmitter_submit_with_trace
#define tide_budget_init tide_budget_init_with_trace
#endif

#endif
