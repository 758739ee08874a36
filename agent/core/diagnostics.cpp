// SPDX-License-Identifier: Apache-2.0
#include "core/diagnostics.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "tide/platform.h"
#include "tide/status.h"

namespace tide::agent {

// ---- notices ----

namespace {

constexpr Time kPeriod = 10'000'000'000;

}  // namespace

void Notices::tell(const char *cause, const std::string &who, Time now) {
  if (!sink_) return;
  const auto [place, first] = told_.try_emplace(cause);
  if (!first) {
    place->second.more++;
    place->second.last = who;
    return;
  }
  place->second.since_ns = now;
  sink_(who + ": " + cause);
}

void Notices::event(const std::string &line, Time now) {
  if (!sink_) return;
  if (lines_.empty()) lines_since_ns_ = now;
  if (lines_.contains(line)) return;
  if (lines_.size() >= kEventLines) {
    more_lines_++;
    return;
  }
  lines_.insert(line);
  sink_(line);
}

Time Notices::poll(Time now) {
  Time next = TIDE_FOREVER;
  if (!lines_.empty() && now >= lines_since_ns_ + kPeriod) {
    if (more_lines_ != 0) {
      sink_(std::to_string(more_lines_) + " lines more in " + std::to_string((now - lines_since_ns_) / kSecond) +
            " s about clients that connected, left or were refused something");
    }
    lines_.clear();
    more_lines_ = 0;
  }
  if (!lines_.empty()) next = lines_since_ns_ + kPeriod;
  for (auto place = told_.begin(); place != told_.end();) {
    Told &told = place->second;
    if (now < told.since_ns + kPeriod) {
      next = std::min(next, told.since_ns + kPeriod);
      ++place;
    } else if (told.more == 0) {
      place = told_.erase(place);
    } else {
      sink_(std::to_string(told.more) + " times more in " + std::to_string((now - told.since_ns) / kSecond) +
            " s, the last for " + told.last + ": " + place->first);
      told = {0, {}, now};
      next = std::min(next, now + kPeriod);
      ++place;
    }
  }
  return next;
}

// ---- /diagnostics ----

void DiagnosticArray::put_count(size_t position, uint32_t count) {
  for (unsigned octet = 0; octet < 4; octet++) bytes_[position + octet] = static_cast<uint8_t>(count >> 8 * octet);
}

void DiagnosticArray::begin(int64_t wall_clock_ns) {
  tide_cdr_writer(&cdr_, bytes_.data(), bytes_.size());
  tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(wall_clock_ns / kSecond));
  tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(wall_clock_ns % kSecond));
  put("");  // frame_id
  tide_cdr_align(&cdr_, sizeof(uint32_t));
  count_at_ = cdr_.position;
  tide_cdr_put_u32(&cdr_, 0);
  count_ = 0;
}

void DiagnosticArray::status(Level level, std::string_view name, std::string_view message, std::string_view hardware) {
  status_at_ = cdr_.position;
  tide_cdr_put_u8(&cdr_, static_cast<uint8_t>(level));
  put(name);
  put(message);
  put(hardware);
  tide_cdr_align(&cdr_, sizeof(uint32_t));
  values_at_ = cdr_.position;
  tide_cdr_put_u32(&cdr_, 0);
  values_ = 0;
}

void DiagnosticArray::value(std::string_view key, uint64_t value) {
  std::array<char, 24> text;
  const char *end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  this->value(key, std::string_view(text.data(), static_cast<size_t>(end - text.data())));
}

void DiagnosticArray::value(std::string_view key, std::string_view value) {
  put(key);
  put(value);
  values_++;
}

bool DiagnosticArray::end_status() {
  if (cdr_.status != TIDE_OK) {
    cdr_.status = TIDE_OK;
    cdr_.position = status_at_;
    return false;
  }
  put_count(values_at_, values_);
  count_++;
  return true;
}

Bytes DiagnosticArray::end() {
  put_count(count_at_, count_);
  return {bytes_.data(), cdr_.position};
}

namespace {

constexpr Time kRetry = 10 * kSecond;
constexpr Time kLostShown = 30 * kSecond;
constexpr size_t kLostMaximum = 16;
constexpr size_t kLinksShown = 32;
constexpr const char *kTopic = "rt/diagnostics";
constexpr const char *kType = "diagnostic_msgs::msg::dds_::DiagnosticArray_";

std::string name_of_key(uint32_t key) {
  std::array<char, 9> text;
  std::snprintf(text.data(), text.size(), "%08X", key);
  return text.data();
}

constexpr size_t kMostServices = 6;  // most services in the status of one client

// Extracts the service's name from rq/NAMERequest, its name in DDS.
std::string name_of_service(const std::string &topic) {
  constexpr size_t kPrefixBytes = 3, kSuffixBytes = 7;
  const bool fits = topic.starts_with("rq/") && topic.ends_with("Request");
  return fits ? "/" + topic.substr(kPrefixBytes, topic.size() - kPrefixBytes - kSuffixBytes) : topic;
}

std::string times_of(const ServiceVitals &service) {
  const auto us = [](Time time_ns) { return std::to_string(time_ns / 1000) + " us"; };
  return std::to_string(service.replies) + " replies, last " + us(service.last_ns) + ", greatest " +
         us(service.greatest_ns);
}

std::string seconds_of(Time duration) { return std::to_string(duration / kSecond) + " s"; }

Level worst(std::initializer_list<Level> levels) { return std::max(levels); }

// Builds a text about counts of the last ten periods, for example "3 messages lost, 1 request refused lately".
class Sentence {
 public:
  void add(uint64_t count, const char *what) {
    if (count == 0) return;
    text_ += (text_.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  }
  void add(const char *what) { text_ += (text_.empty() ? "" : ", ") + std::string(what); }
  std::string or_else(const std::string &fine) const { return text_.empty() ? fine : text_ + " lately"; }

 private:
  std::string text_;
};

// Number of clients and entities that the agent refused.
uint64_t turned_away(const Counters &counters) {
  return counters.clients_refused + counters.not_allowed + counters.takeovers_refused + counters.entities_refused;
}

uint64_t dropped(const LinkVitals &link) { return link.send_dropped + link.receive_dropped; }

}  // namespace

Level Diagnostics::ClientAlarms::level(const ClientVitals &vitals) const {
  if (vitals.silent) return Level::kError;
  return worst({lost.level(), refused.level(), limited.level(), queue.level()});
}

Level Diagnostics::LinkAlarms::level() const { return worst({damaged.level(), dropped.level(), refused.level()}); }

Diagnostics::Diagnostics(Middleware &middleware, const DiagnosticsOptions &options, int domain, Notices &notices,
                         std::function<int64_t()> wall_clock_ns)
    : middleware_(middleware),
      options_(options),
      domain_(domain),
      notices_(notices),
      wall_clock_ns_(std::move(wall_clock_ns)),
      next_ns_(options.period_ns == 0 ? TIDE_FOREVER : 0),
      array_(options.period_ns == 0 ? nullptr : std::make_unique<DiagnosticArray>()) {}

void Diagnostics::lost(uint32_t key, const std::string &place, Time now) {
  if (options_.period_ns == 0) return;
  lost_.push_back({key, place, now});
  if (lost_.size() > kLostMaximum) lost_.pop_front();
}

void Diagnostics::update(const AgentVitals &vitals, Time now) {
  update_alarms(vitals, now);
  if (!is_ready(now) || !writer_->has_reader()) return;
  choose(vitals.clients);
  array_->begin(wall_clock_ns_());
  tell_agent(vitals);
  for (size_t number = 0; number < std::min(links_.size(), kLinksShown); number++) tell_link(number);
  for (const Lost &lost : lost_) tell_lost(lost, now);
  for (const size_t index : chosen_) {
    if (!tell_client(vitals.clients[index])) break;
  }
  writer_->write(array_->end(), false);
}

bool Diagnostics::is_ready(Time now) {
  if (writer_ == nullptr && now < retry_ns_) return false;
  if (writer_ == nullptr) {
    participant_ = middleware_.create_participant(domain_, options_.name);
    if (participant_ != nullptr) writer_ = participant_->create_writer({kTopic, kType}, Qos{});
  }
  if (writer_ == nullptr || participant_->state() == Made::State::kRefused ||
      writer_->state() == Made::State::kRefused) {
    writer_.reset();
    participant_.reset();
    retry_ns_ = now + kRetry;
    notices_.tell("DDS refuses the writer of /diagnostics; trying again", options_.name, now);
    return false;
  }
  return participant_->state() == Made::State::kMade && writer_->state() == Made::State::kMade;
}

void Diagnostics::update_alarms(const AgentVitals &vitals, Time now) {
  round_++;
  for (const ClientVitals &client : vitals.clients) {
    ClientAlarms &alarms = alarms_[client.key];
    alarms.round = round_;
    alarms.lost.update(client.lost_from + client.lost_to);
    alarms.refused.update(client.refused);
    alarms.limited.update(client.limited);
    alarms.queue.update(client.queued, client.queue);
  }
  std::erase_if(alarms_, [this](const auto &entry) { return entry.second.round != round_; });
  std::erase_if(lost_, [&](const Lost &lost) { return now - lost.at_ns >= kLostShown || alarms_.contains(lost.key); });
  turned_away_.update(turned_away(vitals.counters));
  given_up_.update(vitals.counters.clients_lost);
  if (options_.links) options_.links(links_);
  link_alarms_.resize(links_.size());
  for (size_t number = 0; number < links_.size(); number++) {
    const LinkVitals &link = links_[number];
    link_alarms_[number].damaged.update(link.checksum_errors);
    link_alarms_[number].dropped.update(dropped(link));
    link_alarms_[number].refused.update(link.connections_refused + link.reopened);
  }
}

// Chooses the clients for the next array: unhealthy clients first, then healthy ones. If not all clients of a group
// fit, they take turns.
void Diagnostics::choose(const std::vector<ClientVitals> &clients) {
  unwell_.clear();
  well_.clear();
  chosen_.clear();
  for (size_t index = 0; index < clients.size(); index++) {
    const ClientVitals &client = clients[index];
    (alarms_.at(client.key).level(client) == Level::kOk ? well_ : unwell_).push_back(index);
  }
  for (const std::vector<size_t> *group : {&unwell_, &well_}) {
    const size_t room = std::min(options_.clients - chosen_.size(), group->size());
    const size_t from = room < group->size() ? turn_ % group->size() : 0;
    for (size_t n = 0; n < room; n++) chosen_.push_back((*group)[(from + n) % group->size()]);
    if (room < group->size() && room > 0) turn_ += room;
  }
}

void Diagnostics::tell_agent(const AgentVitals &vitals) {
  const Level level = std::min(worst({turned_away_.level(), given_up_.level()}), Level::kWarning);
  Sentence sentence;
  sentence.add(turned_away_.recent(), "requests or clients turned away");
  sentence.add(given_up_.recent(), "clients given up");
  const size_t all = vitals.clients.size();
  array_->status(level, options_.name, sentence.or_else(std::to_string(all) + " clients"), options_.instance);
  array_->value("clients", all);
  array_->value("clients not well", unwell_.size());
  array_->value("clients in this array", chosen_.size());
  array_->value("most clients", vitals.limits.clients);
  array_->value("period ms", static_cast<uint64_t>(options_.period_ns / 1'000'000));
#define TIDE_AGENT_COUNTER(counter) array_->value(#counter, vitals.counters.counter);
  TIDE_AGENT_COUNTERS(TIDE_AGENT_COUNTER)
#undef TIDE_AGENT_COUNTER
  array_->end_status();
}

void Diagnostics::tell_link(size_t number) {
  const LinkVitals &link = links_[number];
  const LinkAlarms &alarms = link_alarms_[number];
  Sentence sentence;
  sentence.add(alarms.damaged.recent(), "damaged frames");
  sentence.add(alarms.dropped.recent(), "frames dropped");
  sentence.add(alarms.refused.recent(), "times opened again or refused");
  array_->status(alarms.level(), named("link " + link.name), sentence.or_else("serving"), link.name);
  array_->value("bits per second", link.bits_per_second);
  array_->value("frames in", link.frames_in);
  array_->value("bytes in", link.bytes_in);
  array_->value("frames out", link.frames_out);
  array_->value("bytes out", link.bytes_out);
  array_->value("checksum errors", link.checksum_errors);
  array_->value("frames dropped, in", link.receive_dropped);
  array_->value("frames dropped, out", link.send_dropped);
  array_->value("times opened again", link.reopened);
  array_->value("connections refused", link.connections_refused);
  array_->value("connections timed out", link.connections_timed_out);
  array_->end_status();
}

bool Diagnostics::tell_client(const ClientVitals &vitals) {
  const ClientAlarms &alarms = alarms_.at(vitals.key);
  Sentence sentence;
  sentence.add(alarms.lost.recent(), "messages lost");
  sentence.add(alarms.refused.recent(), "requests refused");
  sentence.add(alarms.limited.recent(), "times at a limit");
  if (alarms.queue.level() != Level::kOk) sentence.add("queue nearly full");
  const std::string message =
      vitals.silent ? "silent for " + seconds_of(vitals.silence_ns) : sentence.or_else("connected");
  array_->status(alarms.level(vitals), named("client " + name_of_key(vitals.key)), message, vitals.place);
  array_->value("connected", vitals.silent ? "silent" : "yes");
  array_->value("silence ms", static_cast<uint64_t>(std::max<Time>(vitals.silence_ns, 0) / 1'000'000));
  array_->value("entities", vitals.entities);
  array_->value("messages lost, from it", vitals.lost_from);
  array_->value("messages lost, to it", vitals.lost_to);
  array_->value("messages sent again", vitals.repeated);
  array_->value("requests refused", vitals.refused);
  array_->value("limits reached", vitals.limited);
  array_->value("queue in use", vitals.queued);
  array_->value("queue places", vitals.queue);
  array_->value("messages in", vitals.messages_in);
  array_->value("bytes in", vitals.bytes_in);
  array_->value("messages out", vitals.messages_out);
  array_->value("bytes out", vitals.bytes_out);
  for (size_t n = 0; n < std::min(vitals.services.size(), kMostServices); n++) {
    const ServiceVitals &service = vitals.services[n];
    array_->value((service.serves ? "serves " : "asks ") + name_of_service(service.name), times_of(service));
  }
  return array_->end_status();
}

void Diagnostics::tell_lost(const Lost &lost, Time now) {
  array_->status(Level::kError, named("client " + name_of_key(lost.key)),
                 "gone for " + seconds_of(now - lost.at_ns) + ": it is silent", lost.place);
  array_->value("connected", "no");
  array_->end_status();
}

}  // namespace tide::agent
