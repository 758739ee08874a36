// SPDX-License-Identifier: Apache-2.0
// A resting session (tide_session_poll_received) omits no work of the whole poll, for any history: random histories of
// a program, an agent and a wire, also with interrupts.
#include "seeds.h"
#include "session_bench.h"
namespace session_rest_test {

using namespace bench;

struct Event {
  int64_t wait_ns;  // time since the preceding event
  unsigned kind, what, size;
};

using History = std::vector<Event>;

constexpr unsigned kKinds = 23;
constexpr size_t kObjects = 24, kSubscriptions = 8;

Options options_of(std::mt19937_64 &random) {
  Options options;
  options.seed = random();
  options.small_nodes = 2 + random() % 8;
  options.large_nodes = 1 + random() % 2;
  options.slots = 3 + random() % 10;
  options.latency_ns = static_cast<int64_t>(random() % (20 * ms));
  options.object_stream = random() % 4 == 0 ? 0x01 : 0;
  return options;
}

History history_of(std::mt19937_64 &random) {
  History history(10 + random() % 50);
  for (Event &event : history) {
    const int64_t scale_ns = std::array<int64_t, 4>{0, ms, 20 * ms, s}[random() % 4];
    event.wait_ns = scale_ns == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(scale_ns));
    event.kind = static_cast<unsigned>(random() % kKinds);
    event.what = static_cast<unsigned>(random());
    event.size = static_cast<unsigned>(random() % 4 == 0 ? random() % 1800 : random() % 60);
  }
  return history;
}

// Runs a history on a bench of its own. The effect of an event depends only on the history and the state of the bench.
class Play {
 public:
  Play(const Options &options, Polls polls) : bench(options) {
    bench.polls = polls;
    bench.open();
    base_ = bench.add_program(1, 1);
    writers_ = base_.writers;
    readers_ = base_.readers;
  }

  void run(const History &history) {
    for (const Event &event : history) {
      bench.run(event.wait_ns);
      act(event);
    }
    bench.run(3 * s);
  }

  Bench bench;

 private:
  static std::string text_of(unsigned size) { return std::string(size, 'x'); }
  tide_session_t *session() { return bench.session(); }

  void act(const Event &event) {
    const unsigned what = event.what;
    switch (event.kind) {
      case 0:
      case 1:
      case 2:
      case 3: return write(event, event.kind != 3);
      case 4: return add(what);
      case 5: return remove(what);
      case 6: return subscribe(what);
      case 7: return remove_reader(what);
      case 8: return set_priority(what);
      case 9:
      case 10:
        if (!readers_.empty()) bench.agent.publish(readers_[what % readers_.size()]->id, text_of(event.size));
        return;
      case 11: (void)tide_session_ping(session()); return;
      case 12: (void)tide_session_synchronise(session()); return;
      case 13:
        while (!subscriptions_.empty() && bench.take(&subscriptions_[what % subscriptions_.size()]->reader) != "-") {}
        return;
      case 14: return come_and_go(event);
      default: return act_elsewhere(event.kind, what);
    }
  }

  void act_elsewhere(unsigned kind, unsigned what) {
    Agent &agent = bench.agent;
    switch (kind) {
      case 15:
        if (agent.knows_client()) agent.ask_client(static_cast<uint16_t>(10 + what % 100));
        return;
      case 16:
        if (agent.knows_client()) agent.send_control(agent.client.session, TIDE_XRCE_RESET, {});
        return;
      case 17:
        if (agent.running) {
          agent.die();
        } else {
          agent.live();
        }
        return;
      case 18:
        agent.mute_info = what % 4 == 0;
        agent.mute_acknacks = what % 3 == 0;
        return;
      case 19: agent.creation_ns = std::array<int64_t, 4>{0, ms, 300 * ms, 2500 * ms}[what % 4]; return;
      case 20:
        bench.loss_to_agent = what % 3 == 0 ? 0.3 : 0;
        bench.loss_to_client = what % 5 == 0 ? 0.3 : 0;
        bench.cut = what % 7 == 0;
        return;
      case 21:
        if (what % 3 != 0) {
          bench.executor_runs = !bench.executor_runs;
          bench.execute();  // now, and not only at the session's next poll
        } else if (session()->wanted) {
          tide_session_close(session());
        } else {
          tide_session_open(session());
        }
        return;
      default:
        agent.refuse_object.clear();
        if (what % 2 == 0) agent.refuse_object[static_cast<uint16_t>(what % 16 << 4 | (5 + what % 2))] = 0x82;
        return;
    }
  }

  void write(const Event &event, bool reliable) {
    if (writers_.empty()) return;
    const auto level = static_cast<uint8_t>(event.what / 16 % 4);
    (void)bench.write(writers_[event.what % writers_.size()]->id, text_of(event.size), reliable,
                      TIDE_PRIORITY(level, 0));
  }

  void add(unsigned what) {
    if (session()->objects_used >= kObjects) return;
    if (what % 2 == 0) {
      writers_.push_back(bench.add(TIDE_XRCE_KIND_DATAWRITER, base_.publisher->id, base_.topic->id));
    } else {
      readers_.push_back(bench.add(TIDE_XRCE_KIND_DATAREADER, base_.subscriber->id, base_.topic->id));
    }
  }

  void remove(unsigned what) {
    std::vector<tide_object_t *> &objects = what % 2 == 0 ? writers_ : readers_;
    if (objects.empty()) return;
    const auto one = objects.begin() + static_cast<long>(what / 2 % objects.size());
    if (tide_session_remove_object(session(), *one) == TIDE_OK) objects.erase(one);
  }

  // A writer that is deleted before its creation is answered leaves the samples that it has written.
  void come_and_go(const Event &event) {
    if (session()->objects_used >= kObjects) return;
    tide_object_t *writer = bench.add(TIDE_XRCE_KIND_DATAWRITER, base_.publisher->id, base_.topic->id);
    (void)bench.write(writer->id, text_of(event.size), true, 0);
    if (tide_session_remove_object(session(), writer) != TIDE_OK) writers_.push_back(writer);
  }

  void subscribe(unsigned what) {
    if (readers_.empty() || subscriptions_.size() >= kSubscriptions) return;
    const auto level = static_cast<uint8_t>(what / 8 % 3);
    subscriptions_.push_back(
        bench.subscribe(readers_[what % readers_.size()]->id, what / 32 % 2 == 0, TIDE_PRIORITY(level, 0), 4));
  }

  void remove_reader(unsigned what) {
    if (subscriptions_.empty()) return;
    const auto one = subscriptions_.begin() + static_cast<long>(what % subscriptions_.size());
    (void)tide_session_remove_reader(session(), &(*one)->reader);
    subscriptions_.erase(one);
  }

  void set_priority(unsigned what) {
    if (subscriptions_.empty()) return;
    (void)tide_session_set_reader_priority(session(), &subscriptions_[what % subscriptions_.size()]->reader,
                                           TIDE_PRIORITY(what / 8 % 3, 0));
  }

  Bench::Writers base_{};
  std::vector<tide_object_t *> writers_, readers_;
  std::vector<Bench::Subscription *> subscriptions_;
};

constexpr unsigned kHistories = 2000, kInterrupted = 500;

// One session always gets the whole poll, another only when it does not rest: the wire must show no difference.
TEST(SessionRest, ASessionThatRestsSendsWhatItWouldHaveSent) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  uint64_t rested = 0;
  for (unsigned number = 0; number < kHistories && !HasFailure(); ++number) {
    SCOPED_TRACE("history " + std::to_string(number));
    std::mt19937_64 random(seed + uint64_t{number} * 1'000'003);
    const Options options = options_of(random);
    const History history = history_of(random);
    Play whole(options, Polls::kWhole), resting(options, Polls::kReceived);
    whole.run(history);
    resting.run(history);
    EXPECT_EQ(whole.bench.sent_ns, resting.bench.sent_ns);
    EXPECT_EQ(whole.bench.sent, resting.bench.sent);
    EXPECT_EQ(whole.bench.states, resting.bench.states);
    EXPECT_EQ(whole.bench.agent.samples, resting.bench.agent.samples);
    rested += resting.bench.sent.size();
  }
  EXPECT_GT(rested, kHistories) << "the histories are empty";
}

// If interrupts poll wherever the program enables them, the poll that follows finds no work.
TEST(SessionRest, APollInTheMidstOfAnythingHasNothingToAdd) {
  const unsigned seed = tide::test::seed_of_run();
  SCOPED_TRACE(tide::test::replay_of(seed));
  uint64_t interrupts = 0;
  for (unsigned number = 0; number < kInterrupted && !HasFailure(); ++number) {
    SCOPED_TRACE("history " + std::to_string(number));
    std::mt19937_64 random(seed + uint64_t{number} * 1'000'003);
    const Options options = options_of(random);
    const History history = history_of(random);
    Play play(options, Polls::kBoth);
    bool inside = false;
    play.bench.interrupts = [&] {
      if (inside || random() % 8 != 0) return;
      inside = true;
      ++interrupts;
      (void)play.bench.poll();
      inside = false;
    };
    play.run(history);
    play.bench.interrupts = nullptr;
  }
  EXPECT_GT(interrupts, kInterrupted) << "nothing came in between";
}

}  // namespace session_rest_test
