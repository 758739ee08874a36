// SPDX-License-Identifier: Apache-2.0
#pragma once

// Name, version and, if there is one, the commit of the build; version.cmake writes it.
extern const char kVersion[];
