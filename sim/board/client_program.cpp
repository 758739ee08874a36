// SPDX-License-Identifier: Apache-2.0
// What the client's callbacks do, and how they wait where the policy lets them wait.
#include <algorithm>
#include <array>
#include <cstring>

#include "sim/board/client.h"
#include "tide/status.h"

namespace tide::sim {
namespace {

constexpr Time kConfirmLimit = kSecond;  // as the stock library waits

// Of what a reader gets, before the payload.
uint32_t header_bytes(const ChainPlan &plan) {
  if (plan.calls == Calls::kTopics) return 0;
  return plan.calls == Calls::kAsks ? TIDE_REPLY_HEADER_BYTES : TIDE_SAMPLE_IDENTITY_BYTES;
}

}  // namespace

// Counts who is inside of the exclusive group of a chain.
class Client::Inside {
 public:
  Inside(Client &client, const Chain &chain) : group_(chain.plan.group == 0 ? nullptr : client.group_of(chain)) {
    if (group_ != nullptr && group_->inside++ > 0) client.observer_.broken(chain.index, "two of a group overlap");
  }
  ~Inside() {
    if (group_ != nullptr) group_->inside--;
  }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;

 private:
  Group *group_;
};

void Client::sample(Chain &chain) {
  const Inside inside(*this, chain);
  Engine &engine = machine_.engine();
  Task::current()->execute(plan_.dispatch);
  const Time start = engine.now();
  // By its expiry: late in its period it may start in the next one.
  const bool is_event = chain.plan.burst > 0;
  const Time since = chain.timer.callback.ready_ns - first_release_ - chain.plan.phase;
  const auto index = is_event ? chain.begun++ : static_cast<uint32_t>(since / chain.plan.period);
  if (chain.plan.jitter > 0) release(chain, int64_t{index} + 1);
  const bool counted = since >= 0 && index < chain.instances.size();
  if (!counted || stopping_) return;
  Instance &instance = chain.instances[index];
  instance.release = is_event ? chain.events[index] : first_release_ + chain.plan.phase + index * chain.plan.period;
  instance.sample_start = start;
  execute(chain, chain.timer.callback, chain.plan.sample, chain.plan.sample_locks);
  if (chain.plan.shape == Shape::kSampled) {
    instance.sample_end = instance.act_end = engine.now();
    return;
  }
  tell(chain, index);
  instance.published = publish(chain, index);
  if (!instance.published) publish_failures_++;
  instance.sample_end = engine.now();
  observer_.sample_end(chain.index, index);
}

// Sections lie anywhere in it, in their order; what does not fit is shorter.
void Client::execute(Chain &chain, const tide_callback_t &callback, Time duration,
                     const std::vector<unsigned> &sections) {
  Time free = duration;
  for (size_t place = 0; place + 1 < sections.size(); place += 2) free -= Time{sections[place + 1]} * 1000;
  free = std::max<Time>(free, 0);
  Time left = duration;
  for (size_t place = 0; place + 1 < sections.size(); place += 2) {
    const Time before = sections_.chance(0.5) ? 0 : sections_.chance(0.5) ? free : sections_.between(0, free);
    const Time held = std::min(left - before, Time{sections[place + 1]} * 1000);
    Task::current()->execute(before);
    hold(chain, callback, *locks_[sections[place]], held);
    free -= before;
    left -= before + held;
  }
  Task::current()->execute(left);
}

void Client::hold(Chain &chain, const tide_callback_t &callback, Lock &lock, Time duration) {
  const int status = tide_lock_take(&lock.lock, &callback);
  if (status != TIDE_OK) {
    observer_.broken(chain.index, tide_lock_text(status));
    return;
  }
  if (lock.inside++ > 0) observer_.broken(chain.index, "two have a lock");
  if (plan_.lock_ceilings && lock.lock.waits > 0) observer_.broken(chain.index, "a lock was taken on a single core");
  Task::current()->execute(duration);
  lock.inside--;
  tide_lock_give(&lock.lock);
}

void Client::tell(Chain &chain, uint32_t index) {
  void *message = nullptr;
  if (chain.plan.local_depth == 0) return;
  if (tide_local_borrow(&chain.topic, &message) != TIDE_OK) {
    observer_.broken(chain.index, "a loan that was set aside is refused");
    return;
  }
  std::memcpy(message, &index, sizeof index);
  tide_local_publish(&chain.topic, message, sizeof index);
  chain.told++;
}

// In order, each once.
void Client::hear(Chain &chain) {
  const Inside inside(*this, chain);
  Task::current()->execute(plan_.dispatch);
  const void *message = tide_local_take(&chain.heard, nullptr);
  if (message == nullptr) {
    observer_.broken(chain.index, "a callback runs for no message");
    return;
  }
  Task::current()->execute(chain.plan.act / 4);
  uint32_t index = 0;
  std::memcpy(&index, message, sizeof index);
  tide_local_release(message);
  if (int64_t{index} <= chain.last_heard) observer_.broken(chain.index, "a local message comes late or twice");
  chain.last_heard = index;
  chain.runs_of_listener++;
}

void Client::act(Chain &chain) {
  const Inside inside(*this, chain);
  Engine &engine = machine_.engine();
  Task::current()->execute(plan_.dispatch);
  const Time start = engine.now();
  const tide_sample_t *sample = tide_session_peek(&session_, &chain.reader);
  if (sample == nullptr) return;
  // What comes back from the agent has the client's own padding, and that of another board's.
  const bool is_service = chain.plan.calls != Calls::kTopics;
  const uint32_t padding = chain.plan.shape == Shape::kLooped || is_service ? 3 : 0;
  const uint32_t expected = header_bytes(chain.plan) + chain.plan.reply_bytes;
  const bool whole = sample->length >= expected && sample->length <= expected + padding;
  const std::span<const uint8_t> payload(sample->bytes + header_bytes(chain.plan), whole ? chain.plan.reply_bytes : 0);
  const Mark mark = whole ? get_mark(payload, chain.mark) : Mark{UINT16_MAX, UINT32_MAX};
  const uint32_t length = sample->length;
  std::array<uint8_t, TIDE_SAMPLE_IDENTITY_BYTES> identity{};
  if (whole) std::copy_n(sample->bytes, std::min<size_t>(header_bytes(chain.plan), identity.size()), identity.begin());
  if (chain.plan.calls == Calls::kAsks && !(whole && answers_it(chain, *sample, mark.index))) {
    tide_session_take_done(&session_, &chain.reader);
    return;
  }
  // Whoever is not the last of a join keeps its message, which takes no time.
  if (is_last_of_join(chain, mark.index)) execute(chain, chain.subscription, chain.plan.act, chain.plan.act_locks);
  tide_session_take_done(&session_, &chain.reader);
  if (mark.chain != chain.mark || mark.index >= chain.instances.size()) {
    observer_.strange_sample(chain.index, length);
    return;
  }
  Instance &instance = chain.instances[mark.index];
  if (instance.act_end < 0 && instance.act_start < 0) {
    instance.act_start = start;
    // One that serves has ended when its reply has come to whom it serves.
    (chain.plan.calls == Calls::kServes ? instance.sample_end : instance.act_end) = engine.now();
  }
  observer_.act(chain.index, mark.index);
  if (chain.plan.calls != Calls::kServes) return;
  if (write(chain, mark.index, chain.subscription.priority, identity)) {
    observer_.replied(chain.index, mark.index);
  } else {
    publish_failures_++;
  }
}

bool Client::is_last_of_join(const Chain &chain, uint32_t index) {
  const unsigned join = chain.plan.join;
  if (join == 0) return true;
  const auto count =
      std::count_if(chains_.begin(), chains_.end(), [join](const auto &each) { return each->plan.join == join; });
  return ++joined_[{join, index}] == static_cast<size_t>(count);
}

bool Client::publish(Chain &chain, uint32_t index) { return write(chain, index, chain.timer.callback.priority, {}); }

bool Client::write(Chain &chain, uint32_t index, tide_priority_t priority, std::span<const uint8_t> header) {
  const bool reliable = chain.plan.reliable;
  const uint64_t heartbeats_before = heartbeats_;
  Task::current()->execute(plan_.submit);
  put_mark(std::span(chain.payload), {chain.mark, index});
  const bool is_service = chain.plan.calls != Calls::kTopics;
  const uint16_t object = is_service ? chain.service.object.id : chain.request.endpoint.id;
  const auto bytes = static_cast<uint32_t>(header.size() + chain.plan.payload_bytes);
  tide_write_t write;
  int status = TIDE_OK;
  const auto begun = [&] {
    status = tide_session_write_begin(&session_, &write, object, reliable, priority, bytes);
    return status != TIDE_ERROR_FULL;
  };
  if (reliable) {
    if (!begun() && status == TIDE_ERROR_FULL) publish_waits_++;
    if (status == TIDE_ERROR_FULL) wait_until(begun, machine_.engine().now() + kConfirmLimit, false);
  } else {
    begun();
  }
  if (status != TIDE_OK) return false;
  if (chain.plan.calls == Calls::kAsks) chain.service.asked[tide_session_write_request(&write)] = index;
  tide_cdr_put_bytes(&write.cdr, header.data(), header.size());
  tide_cdr_put_bytes(&write.cdr, chain.payload.data(), chain.payload.size());
  const uint8_t stream = write.stream;
  if (tide_session_write_end(&write) != TIDE_OK) return false;
  wait_as_sent(stream, reliable, heartbeats_before);
  return true;
}

// As rcl_take_response: a reply to what is no open request is let go.
bool Client::answers_it(Chain &chain, const tide_sample_t &sample, uint32_t index) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample.bytes, TIDE_REPLY_HEADER_BYTES, false);
  const auto asked = chain.service.asked.extract(tide_xrce_get_request(&cdr).request);
  if (asked.empty()) return false;
  if (asked.mapped() != index) observer_.broken(chain.index, "a reply comes to another request");
  return true;
}

void Client::wait_as_sent(uint8_t stream, bool reliable, uint64_t heartbeats_before) {
  if (plan_.send == Send::kAsynchronous || (plan_.send == Send::kStock && !reliable)) return;
  const Time deadline = machine_.engine().now() + kConfirmLimit;
  const auto idle = [&] { return tide_daemon_is_idle(&session_.daemon, stream); };
  const auto answered = [&] {
    const tide_transmitter_t &transmitter = session_.daemon.transmitter;
    for (const tide_output_stream_t &output : outputs_) {
      if (output.id != stream || output.nodes == 0) continue;
      const bool on_wire = transmitter.current_node != nullptr && transmitter.current_stream == &output;
      return heartbeats_answered_ > heartbeats_before && output.queued == 0 && !on_wire;
    }
    return heartbeats_answered_ > heartbeats_before;
  };
  if (reliable && plan_.send == Send::kAnswered) {
    wait_until(answered, deadline, true);
  } else {
    wait_until(idle, deadline, reliable);
  }
}

bool Client::wait_until(const std::function<bool()> &done, Time deadline, bool digest) {
  tide_event_t event;
  const tide_platform_t *platform = machine_.platform();
  platform->event_init(platform->context, &event);
  waiters_.push_back(&event);
  bool held = false;
  for (;;) {
    while (digest && tide_daemon_most_urgent(&session_.daemon) != TIDE_PRIORITY_NONE)
      process(tide_daemon_process_oldest_of, kAllFrames);
    held = done();
    if (held || stopping_ || machine_.engine().now() >= deadline) break;
    platform->event_wait(platform->context, &event, deadline);
  }
  std::erase(waiters_, &event);
  return held;
}

void Client::wake_waiters() {
  const tide_platform_t *platform = machine_.platform();
  for (tide_event_t *event : std::vector<tide_event_t *>(waiters_)) platform->event_set(platform->context, event);
}

void Client::note_heartbeats_answered(uint64_t count) {
  heartbeats_answered_ = count;
  wake_waiters();
}

}  // namespace tide::sim
