// SPDX-License-Identifier: Apache-2.0
#include "sim/board/client.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/board/losses.h"
#include "tide/framing.h"
#include "tide/status.h"

namespace tide::sim {

namespace {

constexpr uint32_t kClientKey = 0x74696465;
constexpr uint32_t kWriteOverheadBytes = 16 + TIDE_SAMPLE_IDENTITY_BYTES;  // headers of a WRITE_DATA with the identity
                                                                           // of a request, and a margin
constexpr uint16_t kReplenishments = 100;
constexpr Time kSetUpLimit = 120 * kSecond;
constexpr Time kBeforeRelease = 50 * kMillisecond;
constexpr Time kDiscoveryTurn = 10 * kMillisecond;
constexpr Time kSpinTimeout = kSecond;  // longest wait of rclc_executor_spin

uint32_t rounded(uint32_t bytes) { return (bytes + 3u) & ~3u; }

}  // namespace

std::string topic_of(const MessagePlan &message) { return "rt/" + message.name; }

std::string topic_of(const Graph &graph, size_t input) {
  const MessagePlan &message = graph.messages[graph.inputs[input].message];
  return topic_of(message) + (message.inputs.front() == input && graph.callbacks[message.sender].board < 0
                                  ? ""
                                  : "_to" + std::to_string(input));
}

// ---- marks ----

void put_mark(std::span<uint8_t> payload, const Mark &mark) {
  const size_t before = payload.size() >= kMarkBytes ? 2 : 0;  // a short payload does not contain the root
  for (size_t octet = 0; octet < before; octet++) payload[octet] = static_cast<uint8_t>(mark.root >> 8 * octet);
  for (size_t octet = 0; octet < 4 && before + octet < payload.size(); octet++)
    payload[before + octet] = static_cast<uint8_t>(mark.index >> 8 * octet);
}

Mark MarkReader::read(std::span<const uint8_t> payload, size_t padding) {
  if (payload.size() < message_.bytes || payload.size() > message_.bytes + padding) return kNoMark;
  const size_t before = message_.bytes >= kMarkBytes ? 2 : 0, count = std::min<size_t>(message_.bytes - before, 4);
  uint32_t value = 0;
  for (size_t octet = 0; octet < count; octet++) value |= uint32_t{payload[before + octet]} << 8 * octet;
  if (before > 0) return {static_cast<uint16_t>(payload[0] | payload[1] << 8), value};
  // Only multiples of `step` were sent. Tries these in the order of their distance from the expected instance.
  const auto root = static_cast<uint16_t>(*message_.roots.begin());
  const uint64_t span = uint64_t{1} << 8 * count;
  for (uint64_t apart = 0; apart <= span; apart++) {
    for (const int64_t sign : {1, -1}) {
      const int64_t index = next_ + sign * static_cast<int64_t>(apart * message_.step);
      if (index < 0 || static_cast<uint64_t>(index) % span != value) continue;
      next_ = static_cast<uint32_t>(index + static_cast<int64_t>(message_.step));
      return {root, static_cast<uint32_t>(index)};
    }
  }
  return kNoMark;
}

// ---- releases ----

Time lateness(const CallbackPlan &callback, Random &random) {
  const Time jitter = callback.jitter;
  return jitter == 0 || random.chance(0.3) ? 0 : random.chance(0.5) ? jitter : random.between(0, jitter);
}

std::vector<Time> event_times(const CallbackPlan &callback, size_t count, Time first, Random &random) {
  const Time period = callback.period, last = first + static_cast<Time>(count - 1) * period;
  const size_t burst = callback.burst;
  std::vector<Time> times;
  bool whole = false;  // true: all events of this burst come at once, which would rarely happen by chance
  for (Time next = first; times.size() < count;) {
    if (times.size() >= burst) next = std::max(next, times[times.size() - burst] + static_cast<Time>(burst) * period);
    if (next > last) break;
    times.push_back(next);
    if (burst > 1 && times.size() % burst == 1) whole = random.chance(0.3);
    if (whole && times.size() % burst != 0) continue;
    if (random.chance(0.05)) next += random.between(0, 2 * kSecond);
    if (random.chance(burst > 1 ? 0.7 : 0.3)) next += random.between(0, random.chance(0.5) ? period / 8 : 2 * period);
  }
  return times;
}

void execute_sections(const CallbackPlan &callback, Time duration, Random &random,
                      const std::function<void(unsigned lock, Time held)> &hold) {
  const std::vector<unsigned> &sections = callback.locks;
  Time free = duration, left = duration;
  for (size_t place = 0; place + 1 < sections.size(); place += 2) free -= Time{sections[place + 1]} * 1000;
  free = std::max<Time>(free, 0);
  for (size_t place = 0; place + 1 < sections.size(); place += 2) {
    const Time before = random.chance(0.5) ? 0 : random.chance(0.5) ? free : random.between(0, free);
    const Time held = std::min(left - before, Time{sections[place + 1]} * 1000);
    Task::current()->execute(before);
    hold(sections[place], held);
    free -= before;
    left -= before + held;
  }
  Task::current()->execute(left);
  if (callback.sleep > 0) Task::current()->block(Task::current()->core().engine().now() + callback.sleep);
}

// ---- set-up ----

Client::Client(Machine &machine, Line &up, const Plan &plan, const Graph &graph, int board, Observer observer)
    : machine_(machine),
      plan_(plan),
      graph_(graph),
      observer_(std::move(observer)),
      releases_(seed_of(plan, Chance::kReleases)),
      link_(machine, session_, up,
            plan.rtps_mbit > 0 ? Link::Costs{} : Link::Costs{plan.interrupt_complete, plan.interrupt_receive},
            plan.rtps_mbit > 0 ? Link::Kind::kDatagrams : Link::Kind::kSerial),
      sections_(seed_of(plan, Chance::kSections)),
      lock_port_([this](const tide_lane_t &lane) {
        return plan_.lock_ceilings ? tasks_[static_cast<size_t>(&lane - lanes_.data())]->priority() : 0;
      }) {
  for (size_t number = 0; number < graph.callbacks.size(); number++) {
    if (graph.is_on_board(number, board)) add_callback(number);
  }
  configure_session();
  link_.on_left = [this] { wake_waiters(); };
  main_ = std::make_unique<Task>(machine.core(), "main", 200, [this] { run(); });
}

void Client::add_callback(size_t number) {
  auto callback = std::make_unique<Callback>();
  callback->client = this;
  callback->number = number;
  callback->plan = &graph_.callbacks[number];
  for (const size_t sent : callback->plan->messages) {
    auto output = std::make_unique<Output>();
    output->message = &graph_.messages[sent];
    output->number = sent;
    output->topic.name = topic_of(*output->message);
    output->payload.assign(output->message->bytes, output->message->escaped ? TIDE_FRAMING_ESCAPE : 0x2E);
    callback->outputs.push_back(std::move(output));
  }
  for (const size_t taken : callback->plan->inputs) {
    auto input = std::make_unique<InputState>(graph_.messages[graph_.inputs[taken].message], taken);
    input->client = this;
    input->of = callback.get();
    input->topic.name = topic_of(graph_, taken);
    input->samples.resize(plan_.depth);
    callback->inputs.push_back(input.get());
    inputs_.emplace(taken, std::move(input));
  }
  callbacks_.push_back(std::move(callback));
}

void Client::configure_session() {
  uint32_t sent = 0, taken = 0;
  size_t objects = 1;
  for (const auto &callback : callbacks_) {
    objects += 3 * (callback->outputs.size() + callback->inputs.size());
    for (const auto &output : callback->outputs) sent = std::max(sent, output->message->bytes);
    for (const InputState *input : callback->inputs) taken = std::max(taken, input->message.bytes);
  }
  const uint32_t small_bytes = rounded(plan_.small_node_bytes);
  const uint32_t large_bytes = std::max(rounded(sent + kWriteOverheadBytes), small_bytes + 4);
  const uint32_t large = plan_.large_nodes < 0 ? plan_.nodes : static_cast<uint32_t>(plan_.large_nodes);
  nodes_.resize(plan_.nodes + large);
  execution_.resize(nodes_.size());
  pending_.resize(nodes_.size());
  node_storage_.resize(size_t{plan_.nodes} * small_bytes + size_t{large} * large_bytes);
  classes_ = {{node_storage_.data(), small_bytes, static_cast<uint16_t>(plan_.nodes)}};
  if (large > 0)
    classes_.push_back(
        {node_storage_.data() + size_t{plan_.nodes} * small_bytes, large_bytes, static_cast<uint16_t>(large)});
  output_streams_.resize(2 * callbacks_.size() + 3);
  input_streams_.resize(output_streams_.size());
  slots_.resize(plan_.slots);
  slot_storage_.resize(size_t{plan_.slots} * plan_.mtu);
  noted_.resize(plan_.slots);
  reassemblies_.resize(plan_.reassemblies);
  reassembly_storage_.resize(plan_.reassemblies * (rounded(taken) + kWriteOverheadBytes));
  for (size_t index = 0; index < reassemblies_.size(); index++) {
    reassemblies_[index].capacity = rounded(taken) + kWriteOverheadBytes;
    reassemblies_[index].bytes = reassembly_storage_.data() + index * reassemblies_[index].capacity;
  }
  objects_.resize(objects);

  tide_session_config_t config{};
  config.daemon.platform = machine_.platform();
  tide_transmitter_config_t &transmitter = config.daemon.transmitter;
  transmitter.nodes = nodes_.data();
  transmitter.execution_storage = execution_.data();
  transmitter.pending_storage = pending_.data();
  transmitter.node_count = nodes_.size();
  transmitter.classes = classes_.data();
  transmitter.class_count = classes_.size();
  transmitter.streams = output_streams_.data();
  transmitter.stream_count = output_streams_.size();
  transmitter.message_bytes = (plan_.mtu - 4u) & ~3u;
  transmitter.window = static_cast<uint8_t>(plan_.window);
  transmitter.pad_last = true;
  transmitter.pack = plan_.packs;
  transmitter.hold_until_acknowledged = plan_.hold_until_acknowledged;
  for (const auto &callback : callbacks_) {
    const unsigned level = callback->plan->level;
    for (const auto &output : callback->outputs)
      if (output->message->hold) transmitter.hold_levels[level / 32u] |= 1u << level % 32u;
  }
  transmitter.heartbeat_delay_ns = plan_.heartbeat_delay;
  tide_receiver_config_t &receiver = config.daemon.receiver;
  receiver.slots = slots_.data();
  receiver.slot_count = slots_.size();
  receiver.storage = slot_storage_.data();
  receiver.slot_bytes = plan_.mtu;
  receiver.noted_storage = noted_.data();
  receiver.streams = input_streams_.data();
  receiver.stream_count = input_streams_.size();
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

void Client::describe_topic(Topic &topic, bool writer, bool reliable) {
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
  // Reliable readers of the agent keep all messages, so that only the client can drop messages, which it counts.
  endpoint.qos_flags = reliable ? TIDE_XRCE_QOS_RELIABLE : TIDE_XRCE_QOS_KEEP_LAST;
  endpoint.has_depth = true;
  endpoint.depth = static_cast<uint8_t>(writer && plan_.rtps_mbit > 0 ? plan_.rtps_history : plan_.depth);
  tide_session_add_object(&session_, &topic.endpoint);
}

// Finds or creates the service to which the request message belongs. `asks`: the board is the client.
Client::Service *Client::service_of(const MessagePlan &request, bool asks) {
  auto &service = services_[&request];
  if (service != nullptr) return service.get();
  service = std::make_unique<Service>();
  service->name = request.name;
  service->request_topic = "rq/" + service->name + "Request";
  service->reply_topic = "rr/" + service->name + "Reply";
  static constexpr char kRequestType[] = "s::srv::dds_::S_Request_";
  static constexpr char kReplyType[] = "s::srv::dds_::S_Response_";
  tide_xrce_object_t &description = service->object.description;
  description.kind = asks ? TIDE_XRCE_KIND_REQUESTER : TIDE_XRCE_KIND_REPLIER;
  description.representation = TIDE_XRCE_BY_BINARY;
  description.parent = participant_.id;
  description.name = {service->name.c_str(), service->name.size()};
  description.request_type = {kRequestType, sizeof kRequestType - 1};
  description.reply_type = {kReplyType, sizeof kReplyType - 1};
  description.has_request_topic = description.has_reply_topic = true;
  description.request_topic = {service->request_topic.c_str(), service->request_topic.size()};
  description.reply_topic = {service->reply_topic.c_str(), service->reply_topic.size()};
  tide_session_add_object(&session_, &service->object);
  return service.get();
}

void Client::create_objects() {
  participant_.description.kind = TIDE_XRCE_KIND_PARTICIPANT;
  participant_.description.representation = TIDE_XRCE_BY_BINARY;
  participant_.description.has_name = true;
  participant_.description.name = {"chain_client", 12};
  tide_session_add_object(&session_, &participant_);
  for (const auto &callback : callbacks_) {
    for (const auto &output : callback->outputs) {
      const MessagePlan &message = *output->message;
      if (message.carry == Carry::kTopic) describe_topic(output->topic, true, message.reliable);
      if (message.carry == Carry::kRequest) output->service = service_of(message, true);
      if (message.carry == Carry::kReply) output->service = service_of(graph_.messages[message.answers], false);
    }
    for (InputState *input : callback->inputs) {
      const MessagePlan &message = input->message;
      if (message.carry == Carry::kLocal) continue;
      if (message.carry == Carry::kTopic) describe_topic(input->topic, false, graph_.inputs[input->number].reliable);
      if (message.carry == Carry::kRequest) input->service = service_of(message, false);
      if (message.carry == Carry::kReply) input->service = service_of(graph_.messages[message.answers], true);
      tide_reader_t &reader = input->reader;
      reader.object = input->service != nullptr ? input->service->object.id : input->topic.endpoint.id;
      reader.priority = input->callback.priority;
      reader.reliable = graph_.inputs[input->number].reliable;
      reader.samples = input->samples.data();
      const uint32_t depth = input->service != nullptr && plan_.service_depth > 0 ? plan_.service_depth : plan_.depth;
      reader.depth = static_cast<uint8_t>(depth);
      reader.on_sample = on_sample;
      reader.context = input;
      tide_session_add_reader(&session_, &reader);
    }
  }
}

// 0 for batch, which ignores priorities.
tide_priority_t Client::priority_of(const Callback &callback) const {
  const CallbackPlan &plan = *callback.plan;
  return plan_.policy == Policy::kBatch || plan.level == 0 ? 0 : TIDE_PRIORITY(plan.level, plan.position);
}

void Client::set_priorities() {
  for (const auto &callback : callbacks_) {
    tide_callback_t &begins = callback->timer.callback;
    begins.context = callback.get();
    begins.priority = priority_of(*callback);
    callback->timer.period_ns = callback->plan->period;
    callback->timer.on_expiry = [](tide_timer_t *timer, int64_t) {
      auto *self = static_cast<Callback *>(timer->callback.context);
      self->client->begin(*self);
    };
    if (callback->plan->burst > 0) {
      begins.kind = TIDE_CALLBACK_GUARD;
      begins.execute = [](tide_callback_t *, void *context) {
        auto *self = static_cast<Callback *>(context);
        self->client->begin(*self);
      };
    }
    for (InputState *input : callback->inputs) {
      input->callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
      input->callback.priority = priority_of(*callback);
      input->callback.context = input;
      input->callback.execute = [](tide_callback_t *, void *context) {
        auto *self = static_cast<InputState *>(context);
        self->message.carry == Carry::kLocal ? self->client->hear(*self) : self->client->take(*self);
      };
    }
  }
}

// One cooperative lane, or preemptive lanes: one or more for each level. With the policy readyset: lanes that share all
// callbacks.
void Client::choose_lanes() {
  std::vector<unsigned> levels;
  if (plan_.lanes > 1 && plan_.policy == Policy::kTide) {
    std::set<unsigned> bands;
    for (const auto &callback : callbacks_) bands.insert(callback->plan->level);
    for (const unsigned band : bands) levels.insert(levels.end(), plan_.lanes_a_band, band);
  } else if (plan_.policy == Policy::kReadyset) {
    levels.assign(plan_.lanes, 0);
  } else if (plan_.policy == Policy::kTide) {
    levels = plan_.bands;
  }
  lanes_.resize(std::max<size_t>(levels.size(), 1));
  for (size_t index = 0; index < levels.size(); index++) {
    lanes_[index].settings.least_level = static_cast<uint8_t>(levels[index]);
  }
}

void Client::join_group(tide_callback_t &callback, unsigned group) {
  if (group == 0) return;
  while (groups_.size() < group) {
    groups_.push_back(std::make_unique<Group>());
    groups_.back()->waiting.resize(registered_.size());
    tide_group_init(&groups_.back()->group, TIDE_GROUP_EXCLUSIVE, groups_.back()->waiting.data(), registered_.size());
  }
  callback.group = &groups_[group - 1]->group;
}

void Client::add_executor() {
  const size_t places = std::max<size_t>(callbacks_.size() + inputs_.size(), 1);
  registered_.resize(places);
  ready_.resize(places * lanes_.size());
  timers_.resize(places * lanes_.size());
  tide_executor_config_t config{};
  config.platform = machine_.platform();
  config.policy = plan_.policy == Policy::kTide    ? TIDE_POLICY_TIDE
                  : plan_.policy == Policy::kBatch ? TIDE_POLICY_BATCH
                                                   : TIDE_POLICY_READYSET;
  config.callbacks = registered_.data();
  config.ready_storage = ready_.data();
  config.timer_storage = timers_.data();
  config.callback_count = places;
  config.lanes = lanes_.data();
  config.lane_count = lanes_.size();
  config.source = {this,   source_most_urgent, source_process_most_urgent, source_process_oldest, nullptr, nullptr,
                   nullptr};
  config.batch_waits_for_new_data = plan_.batch_waits_for_new_data;
  config.on_start = on_start;
  config.context = this;
  if (tide_executor_init(&executor_, &config) != TIDE_OK) throw std::invalid_argument("the executor refuses the plan");
  for (const auto &callback : callbacks_) {
    join_group(callback->timer.callback, callback->plan->group);
    for (InputState *input : callback->inputs) join_group(input->callback, callback->plan->group);
    if (callback->plan->burst > 0) {
      tide_executor_add(&executor_, &callback->timer.callback);
    } else if (callback->plan->is_root()) {
      tide_executor_add_timer(&executor_, &callback->timer);
    }
  }
  for (const auto &callback : callbacks_) {
    for (InputState *input : callback->inputs)
      if (input->message.carry != Carry::kLocal) tide_executor_add(&executor_, &input->callback);
  }
  set_up_local();
  set_up_locks();
}

void Client::set_up_local() {
  uint32_t messages = 1;
  for (const auto &[number, input] : inputs_)
    messages += input->message.carry == Carry::kLocal ? input->message.depth + 2 : 0;
  local_storage_.resize(TIDE_LOCAL_STORAGE_BYTES(messages, sizeof(Mark)) / sizeof(uint64_t));
  tide_local_pool_init(&pool_, machine_.platform(), local_storage_.data(), messages, sizeof(Mark));
  for (const auto &callback : callbacks_) {
    for (const auto &output : callback->outputs) {
      if (output->message->carry != Carry::kLocal) continue;
      bool fits = tide_local_topic_init(&output->local, &pool_, 1) == TIDE_OK;
      for (const size_t number : output->message->inputs) {
        InputState &input = *inputs_.at(number);
        tide_executor_add(&executor_, &input.callback);
        input.queue.resize(input.message.depth);
        input.heard.callback = &input.callback;
        input.heard.queue = input.queue.data();
        input.heard.depth = static_cast<uint16_t>(input.message.depth);
        fits = fits && tide_local_subscribe(&output->local, &input.heard) == TIDE_OK;
      }
      if (!fits) throw std::invalid_argument("the pool of local messages is too small");
    }
  }
}

void Client::set_up_locks() {
  tide_lock_set_init(&lock_set_, machine_.platform(), lock_port_.port());
  const auto allow = [this](const std::vector<unsigned> &sections, const tide_callback_t &callback) {
    for (size_t place = 0; place + 1 < sections.size(); place += 2) {
      while (locks_.size() <= sections[place]) {
        locks_.push_back(std::make_unique<Lock>());
        tide_lock_init(&locks_.back()->lock, &lock_set_);
      }
      if (tide_lock_allow(&locks_[sections[place]]->lock, &callback) != TIDE_OK)
        throw std::invalid_argument("a lock refuses a callback");
    }
  };
  for (const auto &callback : callbacks_) {
    if (callback->plan->is_root()) allow(callback->plan->locks, callback->timer.callback);
    for (const InputState *input : callback->inputs) allow(callback->plan->locks, input->callback);
  }
}

// Starts the task of each lane with a priority of its own. Below all these priorities, each lane has a low priority for
// the time in which its budget is used up.
void Client::start_lanes() {
  const int low = static_cast<int>(lanes_.size());
  for (size_t index = 0; index < lanes_.size(); index++) {
    tasks_.push_back(std::make_unique<Task>(machine_.core(), "lane", low + 1 + static_cast<int>(index),
                                            [this, index] { tide_executor_spin_lane(&executor_, index); }));
    give_budget(index);
  }
}

// Gives a lane the budget of the first callback with a budget on the lane's level, if there is one.
void Client::give_budget(size_t lane) {
  budgets_.push_back(nullptr);
  for (const auto &callback : callbacks_) {
    if (callback->plan->budget == 0 || callback->plan->level != lanes_[lane].settings.least_level) continue;
    tide_budget_config_t config{};
    config.priority = tasks_[lane]->priority();
    config.low_priority = 1 + static_cast<int>(lane);
    config.budget_ns = callback->plan->budget;
    config.period_ns = callback->plan->budget_period;
    config.maximum_replenishments = kReplenishments;
    budgets_.back() = std::make_unique<Budget>(*tasks_[lane], config);
    return;
  }
}

std::vector<std::pair<unsigned, const tide_budget_t *>> Client::budgets() {
  std::vector<std::pair<unsigned, const tide_budget_t *>> found;
  for (size_t lane = 0; lane < budgets_.size(); lane++) {
    if (budgets_[lane] != nullptr) found.emplace_back(lanes_[lane].settings.least_level, &budgets_[lane]->state());
  }
  return found;
}

int64_t Client::unheard() const {
  int64_t count = 0;
  for (const auto &callback : callbacks_) {
    for (const auto &output : callback->outputs) {
      if (output->message->carry != Carry::kLocal) continue;
      for (const size_t number : output->message->inputs) {
        const InputState &input = *inputs_.at(number);
        count += int64_t{output->told} - input.runs - input.heard.dropped;
      }
    }
  }
  return count;
}

void Client::release_timers() {
  first_release_ = std::max(machine_.engine().now() + kBeforeRelease, plan_.start);
  for (const auto &callback : callbacks_) {
    if (callback->plan->burst > 0) {
      release_events(*callback);
    } else if (callback->plan->is_root()) {
      release(*callback, 0);
    }
  }
}

void Client::release(Callback &callback, int64_t index) {
  const CallbackPlan &plan = *callback.plan;
  tide_timer_set_phase(&callback.timer, first_release_ + plan.phase + index * plan.period + lateness(plan, releases_));
}

void Client::release_events(Callback &callback) {
  const Time first = first_release_ + callback.plan->phase;
  for (const Time time : event_times(*callback.plan, plan_.instances_of(callback.plan->period), first, releases_)) {
    machine_.engine().at(time, [this, &callback, time] {
      machine_.core().interrupt(0, [this, &callback, time] { trigger(callback, time); });
    });
  }
}

// The interrupt of an event. It stores the event, because a guard condition remembers only one trigger and the callback
// must run once for each event.
void Client::trigger(Callback &callback, Time event) {
  callback.events.push_back(event);
  if (plan_.policy != Policy::kBatch) return notice(callback);
  // rclc's executor on rmw_microxrcedds sees an event at the end of a wait, which the event does not end. It is noticed
  // when the next callback starts (on_start), or when a wait without callbacks ends.
  machine_.engine().at(event + kSpinTimeout,
                       [this, &callback] { machine_.core().interrupt(0, [this, &callback] { notice(callback); }); });
}

void Client::notice(Callback &callback) {
  const bool waits = callback.begun < callback.events.size();
  if (waits && !tide_callback_is_ready(&callback.timer.callback)) tide_executor_notify(&callback.timer.callback);
}

void Client::run() {
  if (plan_.begin > 0) Task::current()->execute(plan_.begin);
  set_priorities();
  create_objects();
  machine_.core().interrupt(0, [this] { link_.attach(); });
  tide_session_open(&session_);
  const Time limit = machine_.engine().now() + kSetUpLimit;
  int status = tide_session_wait_state(&session_, TIDE_SESSION_READY, limit, nullptr);
  // Waits for frames that set up the session, because the measured part must begin with an idle line.
  if (status == TIDE_OK) status = tide_session_wait_idle(&session_, 0, limit, nullptr);
  while (status == TIDE_OK && is_discovered && !is_discovered() && machine_.engine().now() < limit)
    Task::current()->block(machine_.engine().now() + kDiscoveryTurn);
  if (status != TIDE_OK || stopping_) return;
  choose_lanes();
  add_executor();
  start_lanes();
  release_timers();
  observer_.event("set up");
}

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
  tide_executor_notify(&static_cast<InputState *>(context)->callback);
}

void Client::on_start(void *context, tide_callback_t *callback, int64_t) {
  Client &self = *static_cast<Client *>(context);
  self.observer_.callback_start(*callback->executor, *callback);
  for (const auto &other : self.callbacks_)
    if (self.plan_.policy == Policy::kBatch && &other->timer.callback != callback) self.notice(*other);
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

// ---- the work of callbacks, and the waits of their publishes (Plan::send) ----

namespace {

constexpr Time kConfirmLimit = kSecond;  // as in the stock library

// Number of bytes that precede the payload in a received message.
uint32_t header_bytes(const MessagePlan &message) {
  if (message.carry == Carry::kTopic) return 0;
  return message.carry == Carry::kReply ? TIDE_REPLY_HEADER_BYTES : TIDE_SAMPLE_IDENTITY_BYTES;
}

}  // namespace

// Exists while a callback runs; checks that only one callback of its exclusive group runs.
class Client::Inside {
 public:
  Inside(Client &client, const Callback &callback)
      : group_(callback.plan->group == 0 ? nullptr : client.groups_[callback.plan->group - 1].get()) {
    if (group_ != nullptr && group_->inside++ > 0) client.observer_.broken(callback.number, "two of a group overlap");
  }
  ~Inside() {
    if (group_ != nullptr) group_->inside--;
  }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;

 private:
  Group *group_;
};

// Runs a callback that a timer or an event has started.
void Client::begin(Callback &callback) {
  const Inside inside(*this, callback);
  const CallbackPlan &plan = *callback.plan;
  Engine &engine = machine_.engine();
  Task::current()->execute(plan_.dispatch);
  const Time start = engine.now();
  // A timer's instance is identified by the expiry, not by the start, because a late callback may start in the next
  // period.
  const bool is_event = plan.burst > 0;
  if (is_event && callback.begun == callback.events.size()) return;  // an earlier run has handled the event
  const Time since = callback.timer.callback.ready_ns - first_release_ - plan.phase;
  const auto index = is_event ? callback.begun++ : static_cast<uint32_t>(since / plan.period);
  // If further events wait, makes the callback ready again, unless an event between the choice of this run and its
  // start has done so.
  const bool is_next = is_event && callback.begun < callback.events.size();
  if (is_next && !tide_callback_is_ready(&callback.timer.callback)) tide_executor_notify(&callback.timer.callback);
  if (plan.jitter > 0) release(callback, int64_t{index} + 1);
  const bool counted = since >= 0 && index < plan_.instances_of(plan.period);
  if (!counted || stopping_) return;
  const Mark mark{static_cast<uint16_t>(plan.root), index};
  observer_.released(mark, is_event ? callback.events[index] : first_release_ + plan.phase + index * plan.period);
  running_++;
  execute(callback, callback.timer.callback);
  send(callback, mark, callback.timer.callback.priority, {});
  running_--;
  observer_.ran(callback.number, SIZE_MAX, mark, start, engine.now());
}

// Runs a callback for a message from the line.
void Client::take(InputState &input) {
  Callback &callback = *input.of;
  const Inside inside(*this, callback);
  Engine &engine = machine_.engine();
  Task::current()->execute(plan_.dispatch);
  const Time start = engine.now();
  const tide_sample_t *sample = tide_session_peek(&session_, &input.reader);
  if (sample == nullptr) return;
  const uint32_t header = header_bytes(input.message);
  const bool has_header = sample->length >= header;
  const std::span<const uint8_t> payload(sample->bytes + (has_header ? header : 0),
                                         has_header ? sample->length - header : 0);
  const Mark mark = has_header ? input.marks.read(payload, header > 0 ? 3 : 0) : kNoMark;  // 3: a board may pad a
                                                                                           // message to a multiple of
                                                                                           // four octets
  std::array<uint8_t, TIDE_SAMPLE_IDENTITY_BYTES> identity{};
  if (has_header) std::copy_n(sample->bytes, std::min<size_t>(header, identity.size()), identity.begin());
  if (input.message.carry == Carry::kReply && !(mark != kNoMark && answers_it(input, *sample, mark))) {
    tide_session_take_done(&session_, &input.reader);
    return;
  }
  // At a join, only the last message of an instance starts the callback; earlier ones take no execution time.
  const bool runs = is_last(callback, mark);
  if (runs) execute(callback, input.callback);
  tide_session_take_done(&session_, &input.reader);
  if (!input.message.roots.contains(mark.root)) {
    observer_.strange_sample(input.number);
    return;
  }
  const bool is_request = input.message.carry == Carry::kRequest;
  observer_.took(input.number, mark);
  if (!runs) return;
  send(callback, mark, input.callback.priority,
       is_request ? std::span<const uint8_t>(identity) : std::span<const uint8_t>());
  observer_.ran(callback.number, input.number, mark, start, engine.now());
}

// Runs a callback for a local message. If all instances of the message come from one root, checks that its messages
// arrive in order and only once.
void Client::hear(InputState &input) {
  Callback &callback = *input.of;
  const Inside inside(*this, callback);
  Engine &engine = machine_.engine();
  Task::current()->execute(plan_.dispatch);
  const Time start = engine.now();
  const void *message = tide_local_take(&input.heard, nullptr);
  if (message == nullptr) {
    observer_.broken(callback.number, "a callback runs without a message");
    return;
  }
  Mark mark;
  std::memcpy(&mark, message, sizeof mark);
  const bool runs = is_last(callback, mark);
  if (runs) execute(callback, input.callback);
  tide_local_release(message);
  if (input.message.roots.size() == 1 && int64_t{mark.index} <= input.last_heard)
    observer_.broken(callback.number, "a local message comes late or twice");
  input.last_heard = mark.index;
  input.runs++;
  if (!runs) return;
  send(callback, mark, input.callback.priority, {});
  observer_.ran(callback.number, input.number, mark, start, engine.now());
}

bool Client::is_last(Callback &callback, const Mark &mark) {
  return !callback.plan->joins || ++callback.joined[mark] == callback.inputs.size();
}

void Client::execute(Callback &callback, const tide_callback_t &runs) {
  execute_sections(*callback.plan, callback.plan->execution, sections_,
                   [&](unsigned lock, Time held) { hold(callback, runs, *locks_[lock], held); });
}

void Client::hold(Callback &callback, const tide_callback_t &runs, Lock &lock, Time duration) {
  const int status = tide_lock_take(&lock.lock, &runs);
  if (status != TIDE_OK) {
    observer_.broken(callback.number, tide_lock_text(status));
    return;
  }
  if (lock.inside++ > 0) observer_.broken(callback.number, "two callbacks hold one lock");
  if (plan_.lock_ceilings && lock.lock.waits > 0)
    observer_.broken(callback.number, "a lock was taken on a single core");
  Task::current()->execute(duration);
  lock.inside--;
  tide_lock_give(&lock.lock);
}

// Sends the messages of a callback at its end. `identity` is that of the request which the callback answers; it is
// empty if the callback answers none.
void Client::send(Callback &callback, const Mark &mark, tide_priority_t priority, std::span<const uint8_t> identity) {
  for (const auto &output : callback.outputs) {
    if (mark.index % output->message->step != 0) continue;
    if (output->message->carry == Carry::kLocal) {
      tell(callback, *output, mark);
      continue;
    }
    const bool accepted = write(*output, mark, priority, identity);
    if (!accepted) publish_failures_++;
    observer_.sent(output->number, mark, accepted);
  }
}

void Client::tell(Callback &callback, Output &output, const Mark &mark) {
  void *message = nullptr;
  if (tide_local_borrow(&output.local, &message) != TIDE_OK) {
    observer_.broken(callback.number, "a reserved loan is refused");
    return;
  }
  std::memcpy(message, &mark, sizeof mark);
  tide_local_publish(&output.local, message, sizeof mark);
  output.told++;
}

bool Client::write(Output &output, const Mark &mark, tide_priority_t priority, std::span<const uint8_t> identity) {
  const bool reliable = output.message->reliable, is_reply = output.message->carry == Carry::kReply;
  const uint64_t heartbeats_before = heartbeats_;
  Task::current()->execute(plan_.submit);
  put_mark(std::span(output.payload), mark);
  const uint16_t object = output.service != nullptr ? output.service->object.id : output.topic.endpoint.id;
  const std::span<const uint8_t> header = is_reply ? identity : std::span<const uint8_t>();
  const auto bytes = static_cast<uint32_t>(header.size() + output.payload.size());
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
  if (output.message->carry == Carry::kRequest) output.service->asked[tide_session_write_request(&write)] = mark;
  tide_cdr_put_bytes(&write.cdr, header.data(), header.size());
  tide_cdr_put_bytes(&write.cdr, output.payload.data(), output.payload.size());
  const uint8_t stream = write.stream;
  if (tide_session_write_end(&write) != TIDE_OK) return false;
  wait_as_sent(stream, reliable, heartbeats_before);
  return true;
}

// Returns true if the reply belongs to an open request; if not, it is dropped, as rcl_take_response does.
bool Client::answers_it(InputState &input, const tide_sample_t &sample, const Mark &mark) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample.bytes, TIDE_REPLY_HEADER_BYTES, false);
  const auto asked = input.service->asked.extract(tide_xrce_get_request(&cdr).request);
  if (asked.empty()) return false;
  if (asked.mapped() != mark) observer_.broken(input.of->number, "a reply belongs to another request");
  return true;
}

void Client::wait_as_sent(uint8_t stream, bool reliable, uint64_t heartbeats_before) {
  if (plan_.send == Send::kAsynchronous || (plan_.send == Send::kStock && !reliable)) return;
  const Time deadline = machine_.engine().now() + kConfirmLimit;
  const auto idle = [&] { return tide_daemon_is_idle(&session_.daemon, stream); };
  const auto answered = [&] {
    const tide_transmitter_t &transmitter = session_.daemon.transmitter;
    for (const tide_output_stream_t &output : output_streams_) {
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
