/* SPDX-License-Identifier: Apache-2.0 */
/* Lets an rclc program reach ROS 2 without an agent on a host. The options get the board's own address instead of an
 * agent's address; nothing else in the program changes:
 *
 *   tide_rclc_options_set_rtps(rmw_options, "192.168.1.20");
 *
 * The program provides the memory, in one C file:
 *
 *   #define TIDE_RTPS_WRITERS 3
 *   #define TIDE_DEFINE_RTPS
 *   #include <tide/rclc_rtps.h>
 *
 * See tide/rtps_agent.h for how it works and what is not supported. On POSIX the link's thread owns the sockets; with
 * lwIP its context owns lwIP (runtime/port/lwip). On other systems, connect tide/rtps_agent.h to the network by a
 * custom transport, after the example of those two ports. */
#ifndef TIDE_RCLC_RTPS_H
#define TIDE_RCLC_RTPS_H

#include <rmw/init_options.h>
#include <rmw/ret_types.h>

#include "tide/rtps_agent.h"

TIDE_EXTERN_C_BEGIN

/* address: the IPv4 address of the interface by which this board is reached. With a loopback address, only participants
 * of this machine are found, at their ports; with any other address, participants are also found by multicast.
 * RMW_RET_INVALID_ARGUMENT: not an address. The domain is that of rcl_init_options_set_domain_id; 255 means
 * ROS_DOMAIN_ID on POSIX, and 0 elsewhere. Only one support of a process may use this at a time. */
rmw_ret_t tide_rclc_options_set_rtps(rmw_init_options_t *options, const char *address);
/* The agent, for reading its counters and those of its participant. The link's thread writes them. */
const tide_rtps_agent_t *tide_rclc_rtps_agent(void);

extern const tide_rtps_agent_config_t tide_rtps_memory;

#ifdef TIDE_DEFINE_RTPS
/* Writers: one for each publisher, service and client. */
#ifndef TIDE_RTPS_WRITERS
#define TIDE_RTPS_WRITERS 4
#endif
/* Readers: one for each subscription, service and client. */
#ifndef TIDE_RTPS_READERS
#define TIDE_RTPS_READERS 4
#endif
#ifndef TIDE_RTPS_NODES
#define TIDE_RTPS_NODES 1
#endif
/* Largest number of remote participants. When the table is full, a new participant replaces one without a matching
 * topic. */
#ifndef TIDE_RTPS_PEERS
#define TIDE_RTPS_PEERS 8
#endif
/* Largest number of matches: pairs of a local and a remote endpoint. */
#ifndef TIDE_RTPS_MATCHES
#define TIDE_RTPS_MATCHES (2 * (TIDE_RTPS_WRITERS + TIDE_RTPS_READERS))
#endif
/* Depth of each writer's history, and size of the largest sample in bytes (at most 65,000). */
#ifndef TIDE_RTPS_HISTORY
#define TIDE_RTPS_HISTORY 4
#endif
#ifndef TIDE_RTPS_SAMPLE_BYTES
#define TIDE_RTPS_SAMPLE_BYTES 512
#endif
/* Messages on their way to the executor: one for each reader, and further ones for bursts; at most TIDE_WINDOW. */
#ifndef TIDE_RTPS_FRAMES
#define TIDE_RTPS_FRAMES (TIDE_RTPS_READERS + 4 < 16 ? TIDE_RTPS_READERS + 4 : 16)
#endif
/* Called on the link's thread for each event of the participant (tide/rtps_participant.h): matches, lost samples,
 * samples that are too large, full tables. Without it, POSIX prints full tables, incompatible QoS and the first sample
 * of each endpoint that is too large on stderr; elsewhere they are only counted. */
#ifdef TIDE_RTPS_EVENT
void TIDE_RTPS_EVENT(void *context, const tide_rtps_event_t *event);
#else
#define TIDE_RTPS_EVENT NULL
#endif
/* Returns the DSCP (0 to 63) of the datagrams of a level above 0, for example 46 for levels above 100, else 0. By the
 * DSCP switches, Wi-Fi and network stacks with several queues serve urgent datagrams first. Without it every datagram
 * has DSCP 0, as discovery always has. POSIX has a socket, with a buffer of its own, for each of the first three DSCPs
 * other than 0; further ones are sent with DSCP 0. */
#ifdef TIDE_RTPS_DSCP
uint8_t TIDE_RTPS_DSCP(uint8_t level);
#else
#define TIDE_RTPS_DSCP NULL
#endif
#ifndef TIDE_MTU_BYTES /* as in tide/pools.h */
#define TIDE_MTU_BYTES 512
#endif
#if TIDE_RTPS_FRAMES < TIDE_RTPS_READERS || TIDE_RTPS_FRAMES > 16 || TIDE_RTPS_SAMPLE_BYTES > 65000
#error "TIDE_RTPS_FRAMES is at least TIDE_RTPS_READERS and at most 16, TIDE_RTPS_SAMPLE_BYTES at most 65,000"
#endif

static struct {
  tide_rtps_peer_t peers[TIDE_RTPS_PEERS];
  tide_rtps_match_t matches[TIDE_RTPS_MATCHES];
  tide_rtps_agent_node_t nodes[TIDE_RTPS_NODES];
  tide_rtps_agent_topic_t topics[TIDE_RTPS_WRITERS + TIDE_RTPS_READERS];
  tide_rtps_output_t outputs[TIDE_RTPS_WRITERS];
  tide_rtps_input_t inputs[TIDE_RTPS_READERS];
  tide_rtps_slot_t slots[TIDE_RTPS_WRITERS * TIDE_RTPS_HISTORY];
  tide_rtps_sample_identity_t related[TIDE_RTPS_WRITERS * TIDE_RTPS_HISTORY];
  uint16_t requests[TIDE_RTPS_WRITERS * TIDE_RTPS_HISTORY];
  uint8_t histories[TIDE_RTPS_WRITERS * TIDE_RTPS_HISTORY * (TIDE_RTPS_SAMPLE_BYTES + TIDE_RTPS_SLOT_OVERHEAD_BYTES)];
  uint8_t assemblies[TIDE_RTPS_READERS * (TIDE_RTPS_SAMPLE_BYTES + 4)];
  tide_rtps_frame_t frames[TIDE_RTPS_FRAMES];
  uint8_t frame_memory[TIDE_RTPS_FRAMES * TIDE_MTU_BYTES];
} tide_rtps_storage;

const tide_rtps_agent_config_t tide_rtps_memory = {.start = NULL,
                                                   .event = TIDE_RTPS_EVENT,
                                                   .dscp = TIDE_RTPS_DSCP,
                                                   .context = NULL,
                                                   .peers = tide_rtps_storage.peers,
                                                   .matches = tide_rtps_storage.matches,
                                                   .nodes = tide_rtps_storage.nodes,
                                                   .topics = tide_rtps_storage.topics,
                                                   .outputs = tide_rtps_storage.outputs,
                                                   .inputs = tide_rtps_storage.inputs,
                                                   .slots = tide_rtps_storage.slots,
                                                   .related = tide_rtps_storage.related,
                                                   .requests = tide_rtps_storage.requests,
                                                   .histories = tide_rtps_storage.histories,
                                                   .assemblies = tide_rtps_storage.assemblies,
                                                   .frames = tide_rtps_storage.frames,
                                                   .frame_memory = tide_rtps_storage.frame_memory,
                                                   .peer_count = TIDE_RTPS_PEERS,
                                                   .match_count = TIDE_RTPS_MATCHES,
                                                   .node_count = TIDE_RTPS_NODES,
                                                   .output_count = TIDE_RTPS_WRITERS,
                                                   .input_count = TIDE_RTPS_READERS,
                                                   .frame_count = TIDE_RTPS_FRAMES,
                                                   .history = TIDE_RTPS_HISTORY,
                                                   .frame_bytes = TIDE_MTU_BYTES,
                                                   .sample_bytes = TIDE_RTPS_SAMPLE_BYTES};
#endif

TIDE_EXTERN_C_END
#endif
