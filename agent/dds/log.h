// SPDX-License-Identifier: Apache-2.0
#ifndef TIDE_AGENT_DDS_LOG_H_
#define TIDE_AGENT_DDS_LOG_H_

namespace tide::agent {

/// What Fast DDS has to say goes to standard error: in colours to a terminal, in plain lines to a file or pipe.
/// verbose: warnings too, not only errors.
void log_to_standard_error(bool verbose);

}  // namespace tide::agent

#endif
