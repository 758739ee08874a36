// SPDX-License-Identifier: Apache-2.0
#include "core/entity.h"

namespace tide::agent {

Made *Entity::made() const {
  return std::visit(
      [](const auto &its) -> Made * {
        if constexpr (requires { its.dds; }) return its.dds.get();
        return nullptr;
      },
      part);
}

Source *Entity::source() const {
  return std::visit(
      [](const auto &its) -> Source * {
        if constexpr (requires { its.delivery; }) return its.dds.get();
        return nullptr;
      },
      part);
}

Delivery *Entity::delivery() {
  return std::visit(
      [](auto &its) -> Delivery * {
        if constexpr (requires { its.delivery; }) return &its.delivery;
        return nullptr;
      },
      part);
}

WaitingMessages *Entity::waiting() {
  return std::visit(
      [](auto &its) -> WaitingMessages * {
        if constexpr (requires { its.waiting; }) return &its.waiting;
        return nullptr;
      },
      part);
}

}  // namespace tide::agent
