// SPDX-License-Identifier: Apache-2.0
#ifndef TIDE_AGENT_VERSION_H
#define TIDE_AGENT_VERSION_H

// Name, version and, if there is one, the commit of the build; version.cmake writes it.
extern const char kVersion[];

#endif
