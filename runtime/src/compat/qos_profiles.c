/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that few programs name. */
#include "rmw/qos_profiles.h"

#define NO_TIME \
  { 0, 0 }
#define RELIABLE(depth)                                                                                               \
  {                                                                                                                   \
    RMW_QOS_POLICY_HISTORY_KEEP_LAST, depth, RMW_QOS_POLICY_RELIABILITY_RELIABLE, RMW_QOS_POLICY_DURABILITY_VOLATILE, \
        NO_TIME, NO_TIME, RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, NO_TIME, false                                    \
  }

const rmw_qos_profile_t rmw_qos_profile_parameters = RELIABLE(1000);
const rmw_qos_profile_t rmw_qos_profile_parameter_events = RELIABLE(1000);
const rmw_qos_profile_t rmw_qos_profile_rosout_default = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,          1000,    RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL, NO_TIME, {10, 0},
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT,  NO_TIME, false};
const rmw_qos_profile_t rmw_qos_profile_system_default = {
    RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT,    0,       RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT,
    RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT, NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, NO_TIME, false};
const rmw_qos_profile_t rmw_qos_profile_best_available = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,         10,      RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE,
    RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE, NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE, NO_TIME, false};
const rmw_qos_profile_t rmw_qos_profile_unknown = {
    RMW_QOS_POLICY_HISTORY_UNKNOWN,    0,       RMW_QOS_POLICY_RELIABILITY_UNKNOWN,
    RMW_QOS_POLICY_DURABILITY_UNKNOWN, NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_UNKNOWN, NO_TIME, false};
