/* SPDX-License-Identifier: Apache-2.0 */
#include "tx_api.h"
