/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__TYPES_H_
#define RMW__TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Headers that the stock header includes, and on which programs rely. */
#include "rcutils/error_handling.h"
#include "rcutils/logging.h"
#include "rcutils/types/string_array.h"
#include "rmw/ret_types.h"

TIDE_EXTERN_C_BEGIN

typedef enum rmw_qos_reliability_policy_e {
  RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT,
  RMW_QOS_POLICY_RELIABILITY_RELIABLE,
  RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT,
  RMW_QOS_POLICY_RELIABILITY_UNKNOWN,
  RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE /* treated as reliable, because the agent knows no peers when it creates an
                                               object */
} rmw_qos_reliability_policy_t;

typedef enum rmw_qos_history_policy_e {
  RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT,
  RMW_QOS_POLICY_HISTORY_KEEP_LAST,
  RMW_QOS_POLICY_HISTORY_KEEP_ALL,
  RMW_QOS_POLICY_HISTORY_UNKNOWN
} rmw_qos_history_policy_t;

typedef enum rmw_qos_durability_policy_e {
  RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT,
  RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL,
  RMW_QOS_POLICY_DURABILITY_VOLATILE,
  RMW_QOS_POLICY_DURABILITY_UNKNOWN,
  RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE
} rmw_qos_durability_policy_t;

typedef enum rmw_qos_liveliness_policy_e {
  RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT = 0,
  RMW_QOS_POLICY_LIVELINESS_AUTOMATIC = 1,
  RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC = 3,
  RMW_QOS_POLICY_LIVELINESS_UNKNOWN = 4,
  RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE = 5
} rmw_qos_liveliness_policy_t;

typedef struct rmw_time_s {
  uint64_t sec;
  uint64_t nsec;
} rmw_time_t;

/* Durations that mean "no limit" in a QoS profile. */
#define RMW_DURATION_INFINITE \
  { 9223372036LL, 854775807LL }
#define RMW_DURATION_UNSPECIFIED \
  { 0LL, 0LL }
#define RMW_QOS_DEADLINE_DEFAULT RMW_DURATION_UNSPECIFIED
#define RMW_QOS_LIFESPAN_DEFAULT RMW_DURATION_UNSPECIFIED
#define RMW_QOS_LIVELINESS_LEASE_DURATION_DEFAULT RMW_DURATION_UNSPECIFIED
#define RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT 0

/* Reliability, durability, history, depth, deadline and lifespan reach the agent; liveliness does not. */
typedef struct rmw_qos_profile_s {
  rmw_qos_history_policy_t history;
  size_t depth;
  rmw_qos_reliability_policy_t reliability;
  rmw_qos_durability_policy_t durability;
  rmw_time_t deadline;
  rmw_time_t lifespan;
  rmw_qos_liveliness_policy_t liveliness;
  rmw_time_t liveliness_lease_duration;
  bool avoid_ros_namespace_conventions;
} rmw_qos_profile_t;

extern const rmw_qos_profile_t rmw_qos_profile_default;
extern const rmw_qos_profile_t rmw_qos_profile_sensor_data;
extern const rmw_qos_profile_t rmw_qos_profile_services_default;
extern const rmw_qos_profile_t rmw_qos_profile_parameters;
extern const rmw_qos_profile_t rmw_qos_profile_parameter_events;
extern const rmw_qos_profile_t rmw_qos_profile_rosout_default;
extern const rmw_qos_profile_t rmw_qos_profile_system_default;
extern const rmw_qos_profile_t rmw_qos_profile_best_available;
extern const rmw_qos_profile_t rmw_qos_profile_unknown;

typedef struct rmw_publisher_allocation_s {
  void *data;
} rmw_publisher_allocation_t;

typedef struct rmw_subscription_allocation_s {
  void *data;
} rmw_subscription_allocation_t;

/* Identity of a request and its client: the sample identity of DDS. A server returns it with the response. */
typedef struct rmw_request_id_s {
  int8_t writer_guid[16];
  int64_t sequence_number;
} rmw_request_id_t;

typedef struct rmw_service_info_s {
  int64_t source_timestamp;   /* 0: not known */
  int64_t received_timestamp; /* monotonic ns */
  rmw_request_id_t request_id;
} rmw_service_info_t;

typedef struct rmw_message_info_s {
  int64_t source_timestamp;
  int64_t received_timestamp;
  bool from_intra_process;
} rmw_message_info_t;

/* How the agent is reached; filled in by the rmw_uros_options_* and tide_rclc_options_* calls. Strings are kept by
 * pointer, except UDP host and port, which are copied. */
typedef struct rmw_init_options_s {
  uint8_t link;      /* tide_link_kind_t */
  bool link_is_free; /* no link was chosen: when the link is opened, use a custom transport if one is set, else UDP */
  const char *device;
  uint32_t baud;
  char host[40];
  uint16_t port;
  uint16_t mtu_bytes; /* 0: TIDE_MTU_BYTES of the pools */
  int thread_priority;
  uint32_t client_key; /* 0: derived from the platform */
  size_t domain_id;
} rmw_init_options_t;

typedef struct rmw_context_s {
  void *impl;
} rmw_context_t;

typedef struct rmw_publisher_s {
  void *impl;
} rmw_publisher_t;

typedef struct rmw_subscription_s {
  void *impl;
} rmw_subscription_t;

typedef struct rmw_service_s {
  void *impl;
} rmw_service_t;

typedef struct rmw_client_s {
  void *impl;
} rmw_client_t;

typedef struct rmw_node_s {
  void *impl;
} rmw_node_t;

TIDE_EXTERN_C_END
#endif
