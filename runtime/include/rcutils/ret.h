/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCUTILS__RET_H_
#define RCUTILS__RET_H_

typedef int rcutils_ret_t;
#define RCUTILS_RET_OK 0
#define RCUTILS_RET_ERROR 2
#define RCUTILS_RET_BAD_ALLOC 10
#define RCUTILS_RET_INVALID_ARGUMENT 11

#endif
