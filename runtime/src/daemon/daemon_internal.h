/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the two halves to their daemon (daemon.c): called through the pointers of their configurations, or
 * directly with TIDE_STATIC_PLATFORM. */
#pragma once

#include "tide/daemon.h"

void tide_daemon_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome);
void tide_daemon_on_control(void *context, const tide_delivery_t *delivery);
void tide_daemon_on_acknowledge(void *context, uint8_t stream, uint16_t first, uint16_t missing);
