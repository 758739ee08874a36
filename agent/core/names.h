// SPDX-License-Identifier: Apache-2.0
// Which names a client may bring into DDS. Tools of ROS 2 decode the names of everything they see, so a bad one of a
// single client breaks them all: rclpy raises UnicodeDecodeError for octets that are not UTF-8.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>

namespace tide::agent {

// What is wrong with the name of a topic as DDS has it, or an empty text. With a prefix of ROS 2 (rt/, rq/, rr/, rs/,
// rp/, ra/) the rest has to be the full name of a topic there: letters, digits, _ and /, no empty part, no part that
// starts with a digit. Without one it is a topic of plain DDS: printable ASCII without spaces. Names by which DDS and
// ROS 2 describe themselves are refused.
std::string topic_fault(std::string_view name);
// The same for the name of a type: printable ASCII without spaces.
std::string type_fault(std::string_view name);
// The same for the name of a participant: printable ASCII.
std::string participant_fault(std::string_view name);
// Whether a participant's name is that of a ROS 2 node: node, or /namespace/node.
bool is_node_name(std::string_view name);

// For messages: what is not printable ASCII becomes \xNN, and a long text is cut.
std::string quoted(std::string_view text);

// What one client's names become in ROS 2, so that one image serves many robots. Names as ROS 2 has them: /cmd_vel.
struct Renaming {
  std::string space;                          // /robot1, before every name that no rule names; empty: none
  std::map<std::string, std::string> remaps;  // of topics, services and actions, whole names

  // Of a topic in DDS (rt/cmd_vel, rq/sumRequest, rr/sumReply). Others, and in a namespace those that all robots share
  // (/tf, /tf_static, /rosout, /clock, /diagnostics, /parameter_events), stay what they are.
  std::string topic(const std::string &name) const;
  std::string node(const std::string &name) const;
  // FROM:=TO, both /with/words. What is wrong with it; empty: it is added.
  std::string add(const std::string &remap);
  // Of a namespace: as add.
  std::string set_space(const std::string &name);
  auto operator<=>(const Renaming &) const = default;
};

}  // namespace tide::agent
