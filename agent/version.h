// SPDX-License-Identifier: Apache-2.0
#ifndef TIDE_AGENT_VERSION_H
#define TIDE_AGENT_VERSION_H

// Name, version, and the commit of the build where there was one; version.cmake writes it.
extern const char kVersion[];

#endif
