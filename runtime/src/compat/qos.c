/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#define NO_TIME \
  { 0, 0 }

const rmw_qos_profile_t rmw_qos_profile_default = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,         10,      RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    RMW_QOS_POLICY_DURABILITY_VOLATILE,       NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, NO_TIME, false};
const rmw_qos_profile_t rmw_qos_profile_services_default = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,         10,      RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    RMW_QOS_POLICY_DURABILITY_VOLATILE,       NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, NO_TIME, false};
const rmw_qos_profile_t rmw_qos_profile_sensor_data = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,         5,       RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT,
    RMW_QOS_POLICY_DURABILITY_VOLATILE,       NO_TIME, NO_TIME,
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, NO_TIME, false};

bool tide_compat_is_reliable(const rmw_qos_profile_t *qos) {
  return qos->reliability != RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
}
