/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the graph share. */
#ifndef TIDE_COMPAT_GRAPH_H
#define TIDE_COMPAT_GRAPH_H

#include "../internal.h"
#include "rcl/graph.h"

/* Kinds of micro_ros_msgs/Entity. */
enum { TIDE_GRAPH_PUBLISHER, TIDE_GRAPH_SUBSCRIPTION, TIDE_GRAPH_SERVER, TIDE_GRAPH_CLIENT };

/* The newest graph, at its first node; cdr reads on until the next call. */
rcl_ret_t tide_graph_look(const rcl_node_t *node, tide_cdr_t *cdr);

#endif
