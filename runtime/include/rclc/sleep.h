/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__SLEEP_H_
#define RCLC__SLEEP_H_

#ifdef __cplusplus
extern "C" {
#endif

void rclc_sleep_ms(unsigned int ms);

#ifdef __cplusplus
}
#endif
#endif
