/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCUTILS__TYPES__RCUTILS_RET_H_
#define RCUTILS__TYPES__RCUTILS_RET_H_

#include "rcutils/ret.h"

#endif
