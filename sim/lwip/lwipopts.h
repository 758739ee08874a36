/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP for the MPS2 boards in QEMU: UDP over IPv4 from one context. Most memory is for RTPS: Fast DDS repeats
 * the announcements of all endpoints of a node in one datagram, about 700 bytes each, which is received in fragments.
 */
#pragma once

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_TCP 0
#define IP_FRAG 0
#define IP_REASSEMBLY 1
#define IP_REASS_MAX_PBUFS 11
#define LWIP_IGMP 1
#define LWIP_STATS 0

#define MEM_ALIGNMENT 4
#define MEM_SIZE 20480
#define PBUF_POOL_SIZE 16
#define PBUF_POOL_BUFSIZE 1520
#define MEMP_NUM_UDP_PCB 3
