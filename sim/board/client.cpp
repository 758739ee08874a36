// SPDX-License-Identifier: Apache-2.0
#include "sim/board/client.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/board/losses.h"
#include "tide/status.h"

namespace tide::sim {

namespace {

constexpr uint32_t kClientKey = 0x74696465;
constexpr uint32_t kWriteOverheadBytes = 16 + TIDE_SAMPLE_IDENTITY_BYTES;  // headers of a WRITE_DATA, and a little
constexpr uint16_t kReplenishments = 100;
constexpr Time kSetUpLimit = 120 * kSecond;
constexpr Time kBeforeRelease = 50 * kMillisecond;

uint32_t rounded(uint32_t bytes) { return (bytes + 3u) & ~3u; }

}  // namespace

void put_mark(uint8_t *bytes, const Mark &mark) {
  for (unsigned octet = 0; octet < 2; octet++) bytes[octet] = static_cast<uint8_t>(mark.chain >> 8 * octet);
  for (unsigned octet = 0; octet < 4; octet++) bytes[2 + octet] = static_cast<uint8_t>(mark.index >> 8 * octet);
}

Mark get_mark(const uint8_t *bytes) {
  Mark mark;
  mark.chain = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  for (unsigned octet = 0; octet < 4; octet++) mark.index |= uint32_t{bytes[2 + octet]} << 8 * octet;
  return mark;
}

void put_mark(std::span<uint8_t> payload, const Mark &mark) {
  if (payload.size() >= kMarkBytes) {
    put_mark(payload.data(), mark);
  } else {
    payload[0] = static_cast<uint8_t>(mark.index);
  }
}

Mark get_mark(std::span<const uint8_t> payload, uint16_t chain) {
  return payload.size() >= kMarkBytes ? get_mark(payload.data()) : Mark{chain, payload[0]};
}

// ---- set-up ----

Client::Client(Machine &machine, Line &up, const Plan &plan, Observer observer)
    : machine_(machine),
      plan_(plan),
      observer_(std::move(observer)),
      releases_(seed_of(plan, Chance::kReleases)),
      link_(machine, session_, up, {plan.interrupt_complete, plan.interrupt_receive}),
      sections_(seed_of(plan, Chance::kSections)),
      lock_port_([this](const tide_lane_t &lane) {
        return plan_.lock_ceilings ? tasks_[static_cast<size_t>(&lane - lanes_.data())]->priority() : 0;
      }) {
  const size_t count = plan.only_first ? 1 : plan.chains.size();
  for (size_t index = 0; index < count; index++) {
    auto chain = std::make_unique<Chain>();
    chain->client = this;
    chain->index = index;
    chain->plan = plan.chains[index];
    chain->mark = static_cast<uint16_t>(chain->plan.mark > 0 ? chain->plan.mark - 1 : index);
    chain->request.name = "rt/" + chain->plan.name;
    chain->reply.name = chain->request.name + (chain->plan.shape == Shape::kLooped ? "" : "_reply");
    chain->samples.resize(depth_of(chain->plan));
    chain->instances.resize(plan.instances_of(chain->plan));
    chain->payload.assign(chain->plan.payload_bytes, 0x2E);
    chains_.push_back(std::move(chain));
  }
  configure_session();
  link_.on_left = [this] { wake_waiters(); };
  main_ = std::make_unique<Task>(machine.core(), "main", 200, [this] { run(); });
}

void Client::configure_session() {
  uint32_t payload = 0, reply = 0;
  for (const auto &chain : chains_) {
    payload = std::max(payload, chain->plan.payload_bytes);
    reply = std::max(reply, chain->plan.reply_bytes);
  }
  const uint32_t small_bytes = rounded(plan_.small_node_bytes);
  const uint32_t large_bytes = std::max(rounded(payload + kWriteOverheadBytes), small_bytes + 4);
  const uint32_t large = plan_.large_nodes < 0 ? plan_.nodes : static_cast<uint32_t>(plan_.large_nodes);
  nodes_.resize(plan_.nodes + large);
  execution_.resize(nodes_.size());
  pending_.resize(nodes_.size());
  node_storage_.resize(size_t{plan_.nodes} * small_bytes + size_t{large} * large_bytes);
  classes_ = {{node_storage_.data(), small_bytes, static_cast<uint16_t>(plan_.nodes)}};
  if (large > 0)
    classes_.push_back(
        {node_storage_.data() + size_t{plan_.nodes} * small_bytes, large_bytes, static_cast<uint16_t>(large)});
  outputs_.resize(2 * chains_.size() + 2);
  inputs_.resize(outputs_.size());
  slots_.resize(plan_.slots);
  slot_storage_.resize(size_t{plan_.slots} * plan_.mtu);
  noted_.resize(plan_.slots);
  reassemblies_.resize(plan_.reassemblies);
  reassembly_storage_.resize(plan_.reassemblies * (rounded(reply) + kWriteOverheadBytes));
  for (size_t index = 0; index < reassemblies_.size(); index++) {
    reassemblies_[index].capacity = rounded(reply) + kWriteOverheadBytes;
    reassemblies_[index].bytes = reassembly_storage_.data() + index * reassemblies_[index].capacity;
  }
  objects_.resize(1 + 6 * chains_.size());

  tide_session_config_t config{};
  config.daemon.platform = machine_.platform();
  tide_transmitter_config_t &transmitter = config.daemon.transmitter;
  transmitter.nodes = nodes_.data();
  transmitter.execution_storage = execution_.data();
  transmitter.pending_storage = pending_.data();
  transmitter.node_count = nodes_.size();
  transmitter.classes = classes_.data();
  transmitter.class_count = classes_.size();
  transmitter.streams = outputs_.data();
  transmitter.stream_count = outputs_.size();
  transmitter.message_bytes = (plan_.mtu - 4u) & ~3u;
  transmitter.window = static_cast<uint8_t>(plan_.window);
  transmitter.pad_last = true;
  transmitter.pack = plan_.packs;
  transmitter.hold_until_acknowledged = plan_.hold_until_acknowledged;
  for (const ChainPlan &chain : plan_.chains) {
    if (chain.hold) transmitter.hold_levels[chain.level / 32u] |= 1u << chain.level % 32u;
  }
  transmitter.heartbeat_delay_ns = plan_.heartbeat_delay;
  tide_receiver_config_t &receiver = config.daemon.receiver;
  receiver.slots = slots_.data();
  receiver.slot_count = slots_.size();
  receiver.storage = slot_storage_.data();
  receiver.slot_bytes = plan_.mtu;
  receiver.noted_storage = noted_.data();
  receiver.streams = inputs_.data();
  receiver.stream_count = inputs_.size();
  receiver.window = static_cast<uint8_t>(plan_.window);
  receiver.reassemblies = reassemblies_.data();
  receiver.reassembly_count = reassemblies_.size();
  config.daemon.on_activity = on_activity;
  config.daemon.on_done = on_done;
  config.daemon.context = this;
  config.key = kClientKey;
  config.session = 0x81;
  config.objects = objects_.data();
  config.object_count = objects_.size();
  config.mtu = static_cast<uint16_t>(plan_.mtu);
  config.on_state = on_state;
  config.on_work = on_work;
  config.context = this;
  const int status = tide_session_init(&session_, &config);
  if (status != TIDE_OK)
    throw std::invalid_argument(std::string("the session refuses the plan: ") + tide_status_text(status));
}

// Each of those who ask one server has a request of its own that waits.
uint8_t Client::depth_of(const ChainPlan &chain) const {
  size_t askers = 0;
  for (const ChainPlan &other : plan_.chains)
    askers +=
        chain.calls == Calls::kServes && other.calls == Calls::kServes && other.service_name() == chain.service_name();
  return static_cast<uint8_t>(std::min<size_t>(std::max<size_t>(plan_.depth, askers), 255));
}

void Client::describe_topic(Topic &topic, bool writer, bool reliable, uint8_t depth) {
  tide_xrce_object_t &name = topic.topic.description;
  name.kind = TIDE_XRCE_KIND_TOPIC;
  name.name = {topic.name.c_str(), topic.name.size()};
  static constexpr char kType[] = "std_msgs::msg::dds_::String_";
  name.type = {kType, sizeof kType - 1};
  topic.group.description.kind = writer ? TIDE_XRCE_KIND_PUBLISHER : TIDE_XRCE_KIND_SUBSCRIBER;
  for (tide_object_t *object : {&topic.topic, &topic.group}) {
    object->description.representation = TIDE_XRCE_BY_BINARY;
    object->description.parent = participant_.id;
    tide_session_add_object(&session_, object);
  }
  tide_xrce_object_t &endpoint = topic.endpoint.description;
  endpoint.kind = writer ? TIDE_XRCE_KIND_DATAWRITER : TIDE_XRCE_KIND_DATAREADER;
  endpoint.representation = TIDE_XRCE_BY_BINARY;
  endpoint.parent = topic.group.id;
  endpoint.topic = topic.topic.id;
  endpoint.has_qos = true;
  // Reliable readers keep all, so that every loss is the client's own and counted there.
  endpoint.qos_flags = reliable ? TIDE_XRCE_QOS_RELIABLE : TIDE_XRCE_QOS_KEEP_LAST;
  endpoint.has_depth = true;
  endpoint.depth = depth;
  tide_session_add_object(&session_, &topic.endpoint);
}

void Client::describe_service(Chain &chain) {
  Service &service = chain.service;
  service.name = chain.plan.service_name();
  service.request_topic = "rq/" + service.name + "Request";
  service.reply_topic = "rr/" + service.name + "Reply";
  static constexpr char kRequestType[] = "s::srv::dds_::S_Request_";
  static constexpr char kReplyType[] = "s::srv::dds_::S_Response_";
  tide_xrce_object_t &description = service.object.description;
  description.kind = chain.plan.calls == Calls::kAsks ? TIDE_XRCE_KIND_REQUESTER : TIDE_XRCE_KIND_REPLIER;
  description.representation = TIDE_XRCE_BY_BINARY;
  description.parent = participant_.id;
  description.name = {service.name.c_str(), service.name.size()};
  description.request_type = {kRequestType, sizeof kRequestType - 1};
  description.reply_type = {kReplyType, sizeof kReplyType - 1};
  description.has_request_topic = description.has_reply_topic = true;
  description.request_topic = {service.request_topic.c_str(), service.request_topic.size()};
  description.reply_topic = {service.reply_topic.c_str(), service.reply_topic.size()};
  tide_session_add_object(&session_, &service.object);
}

void Client::create_objects() {
  participant_.description.kind = TIDE_XRCE_KIND_PARTICIPANT;
  participant_.description.representation = TIDE_XRCE_BY_BINARY;
  participant_.description.has_name = true;
  participant_.description.name = {"chain_client", 12};
  tide_session_add_object(&session_, &participant_);
  for (const auto &chain : chains_) {
    if (chain->plan.calls == Calls::kTopics) {
      describe_topic(chain->request, true, chain->plan.reliable, depth_of(chain->plan));
      if (!chain->plan.acts()) continue;
      describe_topic(chain->reply, false, chain->plan.is_reply_reliable(), depth_of(chain->plan));
      chain->reader.object = chain->reply.endpoint.id;
    } else {
      describe_service(*chain);
      chain->reader.object = chain->service.object.id;
    }
    chain->reader.priority = chain->subscription.priority;
    chain->reader.reliable = chain->plan.is_reply_reliable();
    chain->reader.samples = chain->samples.data();
    chain->reader.depth = depth_of(chain->plan);
    chain->reader.on_sample = on_sample;
    chain->reader.context = chain.get();
    tide_session_add_reader(&session_, &chain->reader);
  }
}

// The baseline knows nothing of priorities.
void Client::name_chain(Chain &chain) {
  chain.timer.callback.context = &chain;
  chain.timer.period_ns = chain.plan.period;
  chain.timer.on_expiry = [](tide_timer_t *timer, int64_t) {
    auto *self = static_cast<Chain *>(timer->callback.context);
    self->client->sample(*self);
  };
  if (chain.plan.burst > 0) {
    chain.timer.callback.kind = TIDE_CALLBACK_GUARD;
    chain.timer.callback.execute = [](tide_callback_t *, void *context) {
      auto *self = static_cast<Chain *>(context);
      self->client->sample(*self);
    };
  }
  chain.subscription.kind = TIDE_CALLBACK_SUBSCRIPTION;
  chain.subscription.context = &chain;
  chain.subscription.execute = [](tide_callback_t *, void *context) {
    auto *self = static_cast<Chain *>(context);
    self->client->act(*self);
  };
  tide_chain_t priorities;
  if (plan_.policy == Policy::kBatch || chain.plan.level == 0) return;
  tide_chain_init(&priorities, chain.plan.name.c_str(), static_cast<uint8_t>(chain.plan.level), chain.plan.period,
                  chain.plan.period);
  tide_chain_add(&priorities, &chain.timer.callback);
  tide_chain_add_remote(&priorities);
  tide_chain_add(&priorities, &chain.subscription);
}

// One lane: the cooperative form. More: preemptive, lanes for each level; or lanes that share the set.
void Client::choose_lanes() {
  std::vector<unsigned> levels;
  if (plan_.lanes > 1 && plan_.policy == Policy::kTide) {
    for (const auto &chain : chains_) {
      if (chain->plan.shape != Shape::kHosted) levels.push_back(chain->plan.level);
    }
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    const std::vector<unsigned> bands = levels;
    for (unsigned more = 1; more < plan_.lanes_a_band; more++) levels.insert(levels.end(), bands.begin(), bands.end());
    std::sort(levels.begin(), levels.end());
  } else if (plan_.policy == Policy::kReadyset) {
    levels.assign(plan_.lanes, 0);
  }
  lanes_.resize(std::max<size_t>(levels.size(), 1));
  for (size_t index = 0; index < levels.size(); index++) {
    lanes_[index].settings.least_level = static_cast<uint8_t>(levels[index]);
  }
}

Client::Group *Client::group_of(const Chain &chain) { return groups_[chain.plan.group - 1].get(); }

void Client::set_up_groups() {
  for (const auto &chain : chains_) {
    if (chain->plan.group == 0) continue;
    while (groups_.size() < chain->plan.group) {
      groups_.push_back(std::make_unique<Group>());
      groups_.back()->waiting.resize(3 * chains_.size());
      tide_group_init(&groups_.back()->group, TIDE_GROUP_EXCLUSIVE, groups_.back()->waiting.data(), 3 * chains_.size());
    }
    chain->timer.callback.group = &group_of(*chain)->group;
    chain->subscription.group = &group_of(*chain)->group;
    chain->listener.group = &group_of(*chain)->group;
  }
}

// A callback of this process for what a chain samples, as urgent as the timer.
void Client::set_up_local() {
  uint32_t messages = 1;
  for (const auto &chain : chains_) messages += chain->plan.local_depth == 0 ? 0 : chain->plan.local_depth + 2;
  local_storage_.resize(TIDE_LOCAL_STORAGE_BYTES(messages, sizeof(uint32_t)) / sizeof(uint64_t));
  tide_local_pool_init(&pool_, machine_.platform(), local_storage_.data(), messages, sizeof(uint32_t));
  for (const auto &chain : chains_) {
    if (chain->plan.local_depth == 0) continue;
    chain->listener.kind = TIDE_CALLBACK_SUBSCRIPTION;
    chain->listener.priority = chain->timer.callback.priority;
    chain->listener.context = chain.get();
    chain->listener.execute = [](tide_callback_t *, void *context) {
      auto *self = static_cast<Chain *>(context);
      self->client->hear(*self);
    };
    chain->queue.resize(chain->plan.local_depth);
    chain->heard.callback = &chain->listener;
    chain->heard.queue = chain->queue.data();
    chain->heard.depth = static_cast<uint16_t>(chain->plan.local_depth);
    tide_executor_add(&executor_, &chain->listener);
    const bool fits = tide_local_topic_init(&chain->topic, &pool_, 1) == TIDE_OK &&
                      tide_local_subscribe(&chain->topic, &chain->heard) == TIDE_OK;
    if (!fits) throw std::invalid_argument("the pool of local messages is too small");
  }
}

void Client::add_executor() {
  const size_t places = 3 * chains_.size();
  callbacks_.resize(places);
  ready_.resize(places * lanes_.size());
  timers_.resize(places * lanes_.size());
  tide_executor_config_t config{};
  config.platform = machine_.platform();
  config.policy = plan_.policy == Policy::kTide    ? TIDE_POLICY_TIDE
                  : plan_.policy == Policy::kBatch ? TIDE_POLICY_BATCH
                                                   : TIDE_POLICY_READYSET;
  config.callbacks = callbacks_.data();
  config.ready_storage = ready_.data();
  config.timer_storage = timers_.data();
  config.callback_count = places;
  config.lanes = lanes_.data();
  config.lane_count = lanes_.size();
  config.source = {this, source_most_urgent, source_process_most_urgent, source_process_oldest, nullptr, nullptr};
  config.batch_waits_for_new_data = plan_.batch_waits_for_new_data;
  config.on_start = on_start;
  config.context = this;
  if (tide_executor_init(&executor_, &config) != TIDE_OK) throw std::invalid_argument("the executor refuses the plan");
  set_up_groups();
  for (const auto &chain : chains_) {
    if (chain->plan.burst > 0) {
      tide_executor_add(&executor_, &chain->timer.callback);
      continue;
    }
    tide_executor_add_timer(&executor_, &chain->timer);
    if (chain->plan.begins_on_host()) tide_timer_cancel(&chain->timer);
  }
  for (const auto &chain : chains_) tide_executor_add(&executor_, &chain->subscription);
  set_up_local();
  set_up_locks();
}

void Client::set_up_locks() {
  tide_lock_set_init(&lock_set_, machine_.platform(), lock_port_.port());
  for (const auto &chain : chains_) {
    allow(chain->plan.sample_locks, chain->timer.callback);
    allow(chain->plan.act_locks, chain->subscription);
  }
}

void Client::allow(const std::vector<unsigned> &sections, const tide_callback_t &callback) {
  for (size_t place = 0; place + 1 < sections.size(); place += 2) {
    while (locks_.size() <= sections[place]) {
      locks_.push_back(std::make_unique<Lock>());
      tide_lock_init(&locks_.back()->lock, &lock_set_);
    }
    if (tide_lock_allow(&locks_[sections[place]]->lock, &callback) != TIDE_OK)
      throw std::invalid_argument("a lock refuses a callback");
  }
}

// Above the low priorities of all.
void Client::start_lanes() {
  const int low = static_cast<int>(lanes_.size());
  for (size_t index = 0; index < lanes_.size(); index++) {
    tasks_.push_back(std::make_unique<Task>(machine_.core(), "lane", low + 1 + static_cast<int>(index),
                                            [this, index] { tide_executor_spin_lane(&executor_, index); }));
    give_budget(index);
  }
}

// The first chain of its level says.
void Client::give_budget(size_t lane) {
  budgets_.push_back(nullptr);
  for (const auto &chain : chains_) {
    if (chain->plan.budget == 0 || chain->plan.level != lanes_[lane].settings.least_level) continue;
    tide_budget_config_t config{};
    config.priority = tasks_[lane]->priority();
    config.low_priority = 1 + static_cast<int>(lane);
    config.budget_ns = chain->plan.budget;
    config.period_ns = chain->plan.budget_period;
    config.maximum_replenishments = kReplenishments;
    budgets_.back() = std::make_unique<Budget>(*tasks_[lane], config);
    return;
  }
}

const tide_budget_t *Client::budget(unsigned level) {
  for (size_t lane = 0; lane < budgets_.size(); lane++) {
    if (budgets_[lane] != nullptr && lanes_[lane].settings.least_level == level) return &budgets_[lane]->state();
  }
  return nullptr;
}

void Client::release_timers() {
  first_release_ = std::max(machine_.engine().now() + kBeforeRelease, plan_.start);
  for (const auto &chain : chains_) {
    if (chain->plan.burst > 0) {
      release_events(*chain);
    } else if (!chain->plan.begins_on_host()) {
      release(*chain, 0);
    }
  }
}

// Late by what is drawn: nothing, all of the jitter, or in between.
void Client::release(Chain &chain, int64_t index) {
  const Time jitter = chain.plan.jitter;
  const Time late = jitter == 0 || releases_.chance(0.3) ? 0
                    : releases_.chance(0.5)              ? jitter
                                                         : releases_.between(0, jitter);
  tide_timer_set_phase(&chain.timer, first_release_ + chain.plan.phase + index * chain.plan.period + late);
}

// Mostly as close as they may come, now and then not for a while; none after the last release that a timer would have.
void Client::release_events(Chain &chain) {
  const Time period = chain.plan.period;
  const size_t burst = chain.plan.burst;
  const Time first = first_release_ + chain.plan.phase;
  const Time last = first + static_cast<Time>(chain.instances.size() - 1) * period;
  std::vector<Time> times;
  for (Time next = first; times.size() < chain.instances.size();) {
    if (times.size() >= burst) next = std::max(next, times[times.size() - burst] + static_cast<Time>(burst) * period);
    if (next > last) break;
    times.push_back(next);
    if (releases_.chance(0.05)) next += releases_.between(0, 2 * kSecond);
    if (releases_.chance(burst > 1 ? 0.7 : 0.3))
      next += releases_.between(0, releases_.chance(0.5) ? period / 8 : 2 * period);
  }
  for (const Time time : times) {
    machine_.engine().at(
        time, [this, &chain, time] { machine_.core().interrupt(0, [this, &chain, time] { trigger(chain, time); }); });
  }
}

// As rcl_trigger_guard_condition: events that come before the callback has begun are one.
void Client::trigger(Chain &chain, Time event) {
  if (tide_callback_is_ready(&chain.timer.callback)) return;
  chain.events.push_back(event);
  tide_executor_notify(&chain.timer.callback);
}

void Client::run() {
  if (plan_.begin > 0) Task::current()->execute(plan_.begin);
  for (const auto &chain : chains_) name_chain(*chain);
  create_objects();
  machine_.core().interrupt(0, [this] { link_.attach(); });
  tide_session_open(&session_);
  const Time limit = machine_.engine().now() + kSetUpLimit;
  int status = tide_session_wait_state(&session_, TIDE_SESSION_READY, limit, nullptr);
  // Frames that were asked for by then may still be on the line: the measured part begins in silence.
  if (status == TIDE_OK) status = tide_session_wait_idle(&session_, 0, limit, nullptr);
  if (status != TIDE_OK || stopping_) return;
  choose_lanes();
  add_executor();
  start_lanes();
  release_timers();
  observer_.event("set up");
}

void Client::note_release(size_t chain, uint32_t index, Time release) {
  Instance &instance = chains_[chain]->instances[index];
  instance.release = instance.sample_start = instance.sample_end = release;
}

void Client::note_end(size_t chain, uint32_t index, Time end) { chains_[chain]->instances[index].act_end = end; }

void Client::stop() {
  stopping_ = true;
  wake_waiters();
  if (executor_.count > 0) tide_executor_stop(&executor_);
}

bool Client::is_stopped() const {
  return main_->is_finished() &&
         std::all_of(tasks_.begin(), tasks_.end(), [](const auto &task) { return task->is_finished(); });
}

// ---- between session and executor ----

int Client::process(int (*digest)(tide_daemon_t *daemon, const tide_frame_share_t *share),
                    const tide_frame_share_t &share) {
  Task::current()->execute(plan_.process);
  return digest(&session_.daemon, &share);
}

void Client::on_activity(void *context) {
  auto *client = static_cast<Client *>(context);
  if (client->executor_.count > 0) tide_executor_wake_for_frames(&client->executor_);
  client->wake_waiters();
}

void Client::on_done(void *context, tide_node_t *, tide_node_outcome_t) {
  static_cast<Client *>(context)->wake_waiters();
}

void Client::on_work(void *context) { static_cast<Client *>(context)->link_.wake(); }

void Client::on_state(void *context, tide_session_state_t state) {
  static constexpr const char *kNames[] = {"idle", "connecting", "creating", "ready", "refused", "closing"};
  static_cast<Client *>(context)->observer_.event(kNames[state]);
}

void Client::on_sample(void *context, tide_reader_t *) {
  tide_executor_notify(&static_cast<Chain *>(context)->subscription);
}

void Client::on_start(void *context, tide_callback_t *callback, int64_t) {
  static_cast<Client *>(context)->observer_.callback_start(*callback->executor, *callback);
}

int32_t Client::source_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  const tide_frame_share_t share{least, most, 0};
  return tide_daemon_most_urgent_of(&static_cast<Client *>(context)->session_.daemon, &share);
}

int Client::source_process_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  return static_cast<Client *>(context)->process(tide_daemon_process_most_urgent_of, {least, most, 0});
}

int Client::source_process_oldest(void *context) {
  return static_cast<Client *>(context)->process(tide_daemon_process_oldest_of, kAllFrames);
}

// ---- what callbacks do, and how they wait where the policy lets them wait ----

// What the client's callbacks do, and how they wait where the policy lets them wait.

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
