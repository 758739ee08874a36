/* SPDX-License-Identifier: Apache-2.0 */
/* C linkage for the declarations between the two macros, when a C++ program includes them. */
#ifndef TIDE_BASE_EXTERN_C_H
#define TIDE_BASE_EXTERN_C_H

#ifdef __cplusplus
#define TIDE_EXTERN_C_BEGIN extern "C" {
#define TIDE_EXTERN_C_END }
#else
#define TIDE_EXTERN_C_BEGIN
#define TIDE_EXTERN_C_END
#endif

#endif
