// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE  // fortified longjmp reports a jump to another stack as an error
#include "sim/engine/engine.h"

#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define START_SWITCH(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define FINISH_SWITCH(save, bottom, size) __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define START_SWITCH(save, bottom, size) ((void)0)
#define FINISH_SWITCH(save, bottom, size) ((void)0)
#endif

namespace tide::sim {
namespace {

// If more switches than this occur at one instant, some code polls instead of waiting, which is an error.
constexpr unsigned kSwitchesWithoutTime = 1'000'000;

thread_local Task *current_task = nullptr;

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

// ---- fibers ----

// A fiber has its own stack and runs until it yields. Stacks are reused for later fibers. A ucontext serves only to
// enter the stack for the first time. Later switches use setjmp, because swapcontext makes a system call for the signal
// mask, which takes longer than the rest of a switch.
class Fiber {
 public:
  using Entry = void (*)(void *context);

  Fiber(Entry entry, void *context) : entry_(entry), context_(context), stack_(take_stack()) {}

  ~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack_.get(), kStackBytes);
#endif
    spare_stacks().push_back(std::move(stack_));
  }

  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  // Called from outside of the fiber: runs it until it yields or its entry function returns.
  void resume() {
    START_SWITCH(&fake_outside_, stack_.get(), kStackBytes);
    if (_setjmp(outside_) == 0) {
      if (!entered_) enter();
      _longjmp(inside_, 1);
    }
    FINISH_SWITCH(fake_outside_, nullptr, nullptr);
  }

  // Called from inside the fiber: lets resume return.
  void yield() {
    START_SWITCH(&fake_inside_, outside_bottom_, outside_size_);
    if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
    FINISH_SWITCH(fake_inside_, &outside_bottom_, &outside_size_);
  }

  // Called from inside, at the end of the entry function.
  [[noreturn]] void finish() {
    START_SWITCH(nullptr, outside_bottom_, outside_size_);
    _longjmp(outside_, 1);
  }

 private:
  static void start(unsigned high, unsigned low) {
    auto *fiber = reinterpret_cast<Fiber *>(static_cast<uintptr_t>(high) << 32 | low);
    FINISH_SWITCH(nullptr, &fiber->outside_bottom_, &fiber->outside_size_);
    fiber->entry_(fiber->context_);
    fiber->finish();
  }

  // Called by the first resume.
  void enter() {
    // Not on this stack: this function never returns, so the memory of its variables would stay poisoned for
    // AddressSanitizer.
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

  Entry entry_;
  void *context_;
  std::unique_ptr<uint8_t[]> stack_;
  bool entered_ = false;
  std::jmp_buf inside_, outside_;
  // For AddressSanitizer, which must know the current stack.
  void *fake_inside_ = nullptr, *fake_outside_ = nullptr;
  const void *outside_bottom_ = nullptr;
  size_t outside_size_ = 0;
};

// ---- events ----

Engine::Engine() = default;
Engine::~Engine() = default;

bool Engine::later(const Event &left, const Event &right) {
  return left.time != right.time ? left.time > right.time : left.sequence > right.sequence;
}

void Engine::at(Time time, Action action) {
  queue_.push_back({std::max(time, now_), sequence_++, std::move(action)});
  std::push_heap(queue_.begin(), queue_.end(), later);
}

Core &Engine::add_core() {
  const size_t index = cores_.size();
  dirty_.resize(index / 64 + 1);
  Core &core = *cores_.emplace_back(std::make_unique<Core>(*this, index));
  core.mark();
  return core;
}

size_t Engine::next_dirty(size_t from) const {
  for (size_t word = from / 64; word < dirty_.size(); word++) {
    const uint64_t bits = dirty_[word] & (word == from / 64 ? ~uint64_t{0} << from % 64 : ~uint64_t{0});
    if (bits != 0) return word * 64 + static_cast<size_t>(std::countr_zero(bits));
  }
  return cores_.size();
}

void Engine::settle() {
  unsigned switches = 0;
  for (bool ran = true; ran;) {
    ran = false;
    for (size_t one = next_dirty(0); one < cores_.size(); one = next_dirty(one + 1)) ran = cores_[one]->settle() || ran;
    if (++switches > kSwitchesWithoutTime) throw std::runtime_error("the simulated program never waits");
  }
}

bool Engine::step(Time limit) {
  stepping_ = true;
  const bool stepped = step_within(limit);
  stepping_ = false;
  return stepped;
}

bool Engine::step_within(Time limit) {
  settle();
  if (queue_.empty() || queue_.front().time > limit) {
    now_ = std::max(now_, limit);
    return false;
  }
  std::pop_heap(queue_.begin(), queue_.end(), later);
  const Event event = std::move(queue_.back());
  queue_.pop_back();
  now_ = event.time;
  events_++;
  event.action();
  settle();
  if (on_step) on_step();
  return true;
}

// ---- cores ----

Task *Core::most_urgent() const {
  Task *best = nullptr;
  for (Task *task : tasks_) {
    if (task->state_ != Task::State::kReady) continue;
    const bool better = best == nullptr || task->priority_ > best->priority_ ||
                        (task->priority_ == best->priority_ && task->ready_order_ < best->ready_order_);
    if (better) best = task;
  }
  return best;
}

void Core::put_down() {
  Task *const stopped = burning_ ? running_ : nullptr;
  if (stopped != nullptr) stopped->remaining_ -= engine_.now() - started_;
  burning_ = false;
  generation_++;
  running_ = nullptr;
  if (stopped != nullptr && stopped->observer_ != nullptr) stopped->observer_->on_stop();
}

void Core::pick_up(Task &task) {
  running_ = &task;
  started_ = engine_.now();
  burning_ = true;
  const uint64_t generation = ++generation_;
  engine_.at(started_ + task.remaining_, [this, generation] {
    if (generation == generation_) mark();
  });
  if (task.observer_ != nullptr) task.observer_->on_run();
}

void Core::interrupt(Time cost, Engine::Action handler) {
  interrupts_.push_back({cost, std::move(handler)});
  mark();
}

bool Core::take_interrupt() {
  if (interrupts_.empty()) return false;
  put_down();
  const Interrupt interrupt = std::move(interrupts_.front());
  interrupts_.pop_front();
  if (interrupt.cost > 0) {
    interrupted_until_ = engine_.now() + interrupt.cost;
    engine_.at(interrupted_until_, [this] { mark(); });
  }
  interrupt.handler();
  return true;
}

bool Core::settle() {
  if (engine_.now() < interrupted_until_) {
    unmark();
    return false;
  }
  if (take_interrupt()) return true;
  Task *task = most_urgent();
  if (burning_ && (task != running_ || running_->remaining_ == engine_.now() - started_)) put_down();
  if (task == nullptr || burning_) {
    unmark();
    return false;
  }
  if (task->remaining_ > 0) {
    pick_up(*task);
    unmark();
    return false;
  }
  Task *const outer = current_task;
  current_task = task;
  task->fiber_->resume();
  current_task = outer;
  return true;
}

// ---- tasks ----

Task::Task(Core &core, std::string name, int priority, std::function<void()> body)
    : core_(core),
      name_(std::move(name)),
      priority_(priority),
      body_(std::move(body)),
      ready_order_(core.order_++),
      fiber_(std::make_unique<Fiber>(entry, this)) {
  core_.tasks_.push_back(this);
  core_.mark();
}

Task::~Task() {
  if (core_.running_ == this) core_.put_down();
  std::erase(core_.tasks_, this);
}

Task *Task::current() { return current_task; }

void Task::entry(void *context) {
  auto *task = static_cast<Task *>(context);
  task->body_();
  task->state_ = State::kFinished;
  if (task->observer_ != nullptr) task->observer_->on_block();
}

void Task::leave() { fiber_->yield(); }

void Task::execute(Time duration) {
  if (duration <= 0) return;
  remaining_ = duration;
  core_.mark();
  leave();
  remaining_ = 0;
}

void Task::give_way() {
  if (core_.most_urgent() == this && core_.interrupts_.empty()) return;
  core_.mark();
  leave();
}

bool Task::block(Time deadline) {
  woken_ = false;
  state_ = State::kBlocked;
  if (observer_ != nullptr) observer_->on_block();
  const uint64_t wait = ++wait_;
  if (deadline != kForever) {
    core_.engine_.at(deadline, [this, wait] {
      if (wait_ != wait || state_ != State::kBlocked) return;
      become_ready();
    });
  }
  leave();
  ++wait_;
  return woken_;
}

void Task::wake() {
  if (state_ != State::kBlocked) return;
  woken_ = true;
  become_ready();
}

void Task::become_ready() {
  state_ = State::kReady;
  ready_order_ = core_.order_++;
  core_.mark();
  if (observer_ != nullptr) observer_->on_ready();
}

void Task::set_priority(int priority) {
  if (priority == priority_) return;
  priority_ = priority;
  ready_order_ = core_.order_++;
  core_.mark();
}

}  // namespace tide::sim
