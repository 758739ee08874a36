// SPDX-License-Identifier: Apache-2.0
// The port of programs that use rclc: a simulated board, one at a time, in virtual time.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/link.h"
#include "sim/engine/platform.h"

namespace tide::sim {

// While it lives, tide_port_* mean this board.
class Port {
 public:
  Port(Machine &machine, Line &up, Line &down);
  ~Port();
  Port(const Port &) = delete;
  Port &operator=(const Port &) = delete;

  static Port *current();
  Machine &machine() { return machine_; }
  void open(tide_session_t *session);
  void close();
  void wake();

 private:
  Machine &machine_;
  Line &up_, &down_;
  std::vector<std::unique_ptr<SerialLink>> links_;  // the last is in use; events of others may come yet
  bool open_ = false;
};

}  // namespace tide::sim
