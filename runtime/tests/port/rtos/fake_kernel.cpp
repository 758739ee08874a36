// SPDX-License-Identifier: Apache-2.0
#include "fake_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csetjmp>

FakeKernel *fake;

namespace {
int64_t time_of_all = 1'000'000'000;  // because the clocks of ports never go back, not even between tests
thread_local std::jmp_buf end_of_body;
}  // namespace

FakeKernel::FakeKernel() : now_ns(time_of_all) {
  fake = this;
  tasks.push_back(std::make_unique<Task>());
  current = turn_ = tasks.front().get();
  idle_.ended = true;
}

FakeKernel::~FakeKernel() {
  time_of_all = now_ns + 1'000'000'000;
  for (size_t index = 1; index < tasks.size(); index++) {
    EXPECT_TRUE(tasks[index]->ended) << tasks[index]->name << " is still there";
    if (tasks[index]->thread.joinable()) tasks[index]->thread.join();
  }
}

void FakeKernel::step() {
  if (!in_interrupt && steps++ == interrupt_at_step) pending_ = true;
  if (!pending_ || masked > 0 || in_interrupt) return;
  pending_ = false;
  take(interrupt);
}

void FakeKernel::take(const std::function<void()> &handler) {
  const bool outer = in_interrupt;
  in_interrupt = true;
  handler();
  in_interrupt = outer;
  if (!outer) choose();
}

void FakeKernel::fire() {
  while (!at.empty() && at.begin()->first <= now_ns) take(at.extract(at.begin()).mapped());
  if (alarm_ns <= now_ns) {
    alarm_ns = INT64_MAX;
    alarms++;
    take(alarm);
  }
  for (const auto &task : tasks)
    if (!task->ended && task->until_ns <= now_ns) wake(*task);
}

void FakeKernel::work(int64_t duration_ns) {
  Task &self = *current;
  const int64_t end_ns = self.used_ns + duration_ns;
  while (self.used_ns < end_ns) {
    int64_t next_ns = std::min(alarm_ns, now_ns + end_ns - self.used_ns);
    if (!at.empty()) next_ns = std::min(next_ns, at.begin()->first);
    for (const auto &task : tasks) next_ns = std::min(next_ns, task->until_ns);
    next_ns = std::max(next_ns, now_ns);
    self.used_ns += next_ns - now_ns;
    now_ns = next_ns;
    fire();
    choose();
  }
}

FakeKernel::Task &FakeKernel::create(std::function<void()> body, int priority) {
  Task &task = *tasks.emplace_back(std::make_unique<Task>());
  task.body = std::move(body);
  task.priority = priority;
  task.ready = false;
  task.thread = std::thread([this, &task] {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return turn_ == &task; });
    }
    if (setjmp(end_of_body) == 0) task.body();
    task.ended = true;
    task.ready = false;
    if (task.joiner != nullptr) wake(*task.joiner);
    pass_on(best_in_time());
  });
  return task;
}

void FakeKernel::wake(Task &task) {
  task.ready = true;
  task.until_ns = INT64_MAX;
}

FakeKernel::Task *FakeKernel::best() {
  Task *found = nullptr;
  for (const auto &task : tasks) {
    if (!task->ready || task->ended) continue;
    const bool keeps = found != nullptr && task->priority == found->priority && task.get() == current;
    if (found == nullptr || task->priority > found->priority || keeps) found = task.get();
  }
  return found;
}

void FakeKernel::choose() {
  if (masked > 0 || in_interrupt || current->ended) return;
  if (alarm_ns <= now_ns) fire();
  Task *next = best();
  if (locked > 0 || next == nullptr || next == current) return;
  switch_to(*current, *next);
}

void FakeKernel::block(int64_t until_ns) {
  Task &self = *current;
  EXPECT_EQ(masked + locked, 0u) << "sleeps in a section";
  self.ready = false;
  self.until_ns = until_ns;
  Task &next = best_in_time();
  if (&next != &self) {
    switch_to(self, next);
  } else if (current != &self) {
    Task &before = *current;
    current = &self;
    if (on_switch) on_switch(before);
  }
  choose();
}

FakeKernel::Task &FakeKernel::best_in_time() {
  for (Task *found = best();; found = best()) {
    if (found != nullptr) return *found;
    if (current != &idle_) {
      Task &before = *current;
      current = &idle_;
      if (on_switch) on_switch(before);
    }
    int64_t next_ns = alarm_ns;
    if (!at.empty()) next_ns = std::min(next_ns, at.begin()->first);
    for (const auto &task : tasks) next_ns = std::min(next_ns, task->until_ns);
    if (next_ns == INT64_MAX) {
      ADD_FAILURE() << "nothing will ever end this sleep";
      std::abort();
    }
    now_ns = std::max(now_ns, next_ns);
    fire();
  }
}

void FakeKernel::switch_to(Task &self, Task &next) {
  pass_on(next);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == &self; });
}

void FakeKernel::pass_on(Task &next) {
  Task &before = *current;
  current = &next;
  if (on_switch) on_switch(before);
  const std::lock_guard<std::mutex> lock(mutex_);
  turn_ = &next;
  changed_.notify_all();
}

void FakeKernel::join(Task &task) {
  task.joiner = current;
  while (!task.ended) block(INT64_MAX);
}

void FakeKernel::end_task() { std::longjmp(end_of_body, 1); }

FakeKernel::Task &FakeKernel::named(const std::string &name) {
  for (const auto &task : tasks)
    if (task->name == name && !task->ended) return *task;
  ADD_FAILURE() << "there is no task " << name;
  return *tasks.front();
}
