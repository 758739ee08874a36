/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UXR__CLIENT__PROFILE__TRANSPORT__CUSTOM__CUSTOM_TRANSPORT_H_
#define UXR__CLIENT__PROFILE__TRANSPORT__CUSTOM__CUSTOM_TRANSPORT_H_

#include "uxr/client/transport.h"

#endif
