/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__INIT_OPTIONS_H_
#define RMW__INIT_OPTIONS_H_

#include "rmw/types.h"

#endif
