/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__MACROS_H_
#define RCL__MACROS_H_

#define RCL_UNUSED(x) ((void)(x))
#define RCL_WARN_UNUSED /* programs may ignore return codes, as rclc's examples do */

#endif
