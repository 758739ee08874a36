// SPDX-License-Identifier: Apache-2.0
// A context is what gets us to a new stack; from then on control passes by setjmp, as swapcontext asks the kernel for
// the mask of signals each time, which takes longer than all the rest of a switch.
#undef _FORTIFY_SOURCE  // it takes a jump to another stack for an error
#include "sim/engine/fiber.h"

#include <ucontext.h>

#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tide::sim {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

std::vector<std::unique_ptr<uint8_t[]>> &spare_stacks() {
  thread_local std::vector<std::unique_ptr<uint8_t[]>> stacks;
  return stacks;
}

std::unique_ptr<uint8_t[]> take_stack() {
  auto &spare = spare_stacks();
  if (spare.empty()) return std::unique_ptr<uint8_t[]>(new uint8_t[kStackBytes]);
  std::unique_ptr<uint8_t[]> stack = std::move(spare.back());
  spare.pop_back();
  return stack;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
#define START_SWITCH(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define FINISH_SWITCH(save, bottom, size) __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define START_SWITCH(save, bottom, size) ((void)0)
#define FINISH_SWITCH(save, bottom, size) ((void)0)
#endif

Fiber::Fiber(Entry entry, void *context) : entry_(entry), context_(context), stack_(take_stack()) {}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_.get(), kStackBytes);
#endif
  spare_stacks().push_back(std::move(stack_));
}

void Fiber::start(unsigned high, unsigned low) {
  auto *fiber = reinterpret_cast<Fiber *>(static_cast<uintptr_t>(high) << 32 | low);
  FINISH_SWITCH(nullptr, &fiber->outside_bottom_, &fiber->outside_size_);
  fiber->entry_(fiber->context_);
  fiber->finish();
}

void Fiber::enter() {
  // Not on this stack: nobody returns from here, so AddressSanitizer would keep its memory poisoned.
  thread_local ucontext_t inside;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack_.get();
  inside.uc_stack.ss_size = kStackBytes;
  inside.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside, reinterpret_cast<void (*)()>(start), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self & 0xFFFFFFFFu));
  entered_ = true;
  setcontext(&inside);
}

void Fiber::resume() {
  START_SWITCH(&fake_outside_, stack_.get(), kStackBytes);
  if (_setjmp(outside_) == 0) {
    if (!entered_) enter();
    _longjmp(inside_, 1);
  }
  FINISH_SWITCH(fake_outside_, nullptr, nullptr);
}

void Fiber::yield() {
  START_SWITCH(&fake_inside_, outside_bottom_, outside_size_);
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
  FINISH_SWITCH(fake_inside_, &outside_bottom_, &outside_size_);
}

void Fiber::finish() {
  START_SWITCH(nullptr, outside_bottom_, outside_size_);
  _longjmp(outside_, 1);
}

}  // namespace tide::sim
