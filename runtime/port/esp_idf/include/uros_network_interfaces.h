/* SPDX-License-Identifier: Apache-2.0 */
/* The board's network, as chosen in Kconfig. Call it before opening the session. */
#ifndef TIDE_ESP_IDF_UROS_NETWORK_INTERFACES_H
#define TIDE_ESP_IDF_UROS_NETWORK_INTERFACES_H

#include "esp_err.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Waits until the board has an address. Must be called once, from a task. */
esp_err_t uros_network_interface_initialize(void);

TIDE_EXTERN_C_END
#endif
