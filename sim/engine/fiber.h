// SPDX-License-Identifier: Apache-2.0
// A stack of its own that runs until it gives control back. Stacks are kept for the next fiber.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tide::sim {

class Fiber {
 public:
  using Entry = void (*)(void *context);

  Fiber(Entry entry, void *context);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  void resume();               // from outside: run it until it yields or its entry returns
  void yield();                // from inside
  [[noreturn]] void finish();  // from inside, at the end of the entry

 private:
  static void start(unsigned high, unsigned low);
  void enter();  // the first time

  Entry entry_;
  void *context_;
  std::unique_ptr<uint8_t[]> stack_;
  bool entered_ = false;
  std::jmp_buf inside_, outside_;
  // For the address sanitizer, which must know which stack is in use.
  void *fake_inside_ = nullptr, *fake_outside_ = nullptr;
  const void *outside_bottom_ = nullptr;
  size_t outside_size_ = 0;
};

}  // namespace tide::sim
