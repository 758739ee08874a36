// SPDX-License-Identifier: Apache-2.0
// A session on a microcontroller: the main program polls it while it creates objects, and the link's interrupt also
// does so wherever interrupts are enabled. The main program must make progress, whatever interrupts it.
#include "session_bench.h"
namespace session_interrupts_test {

using namespace bench;

class Board {
 public:
  explicit Board(uint64_t seed) : bench_(options(seed)) {
    std::mt19937_64 random(seed);
    instructions_ns_ = std::uniform_int_distribution<int64_t>(200, 4000)(random);
    bench_.agent.creation_ns = std::uniform_int_distribution<int64_t>(0, 2 * ms)(random);
    bench_.config.on_work = [](void *context) {
      Board *self = static_cast<Board *>(context);
      self->asked_ = true;
      self->let_in();
    };
    bench_.config.on_state = nullptr;
    bench_.config.context = this;
    bench_.interrupts = [this] { let_in(); };
    pump_ = {[](void *context, int64_t deadline_ns) { static_cast<Board *>(context)->sleep(deadline_ns); }, this};
    bench_.open();
  }

  Agent &agent() { return bench_.agent; }
  bool is_stuck() const { return stuck_; }
  size_t answers_in_the_midst() const { return answers_in_the_midst_; }

  // As in the compatible interface: a topic, a publisher, and a writer with a wait.
  void create(size_t topics) {
    const tide_object_t *participant = bench_.add(TIDE_XRCE_KIND_PARTICIPANT, 0);
    for (size_t i = 0; i < topics && !stuck_; i++) {
      const tide_object_t *topic = bench_.add(TIDE_XRCE_KIND_TOPIC, participant->id);
      const tide_object_t *publisher = bench_.add(TIDE_XRCE_KIND_PUBLISHER, participant->id);
      tide_object_t *writer = bench_.add(TIDE_XRCE_KIND_DATAWRITER, publisher->id, topic->id);
      EXPECT_EQ(tide_session_wait_object(bench_.session(), writer, bench_.clock.now_ns + 10 * s, &pump_), TIDE_OK);
    }
  }

  // The result of an interrupt that occurs when the main program has just begun to poll the session.
  int64_t poll_in_the_midst_of_a_poll() {
    asked_ = true;
    first_told_ns_ = 0;
    (void)tide_session_poll(bench_.session());
    return first_told_ns_;
  }

  // The main program does other work, so only the interrupt polls the session.
  void rest(int64_t duration_ns) {
    const int64_t until_ns = bench_.clock.now_ns + duration_ns;
    while (bench_.clock.now_ns < until_ns && !stuck_) sleep(until_ns);
  }

 private:
  static Options options(uint64_t seed) {
    Options options;
    options.seed = seed;
    options.latency_ns = static_cast<int64_t>(seed * 7919 % 400'000);
    return options;
  }

  void sleep(int64_t deadline_ns) {
    const int64_t next_ns = std::min({bench_.clock.next_ns(), due_ns_, deadline_ns});
    bench_.clock.now_ns = std::max(bench_.clock.now_ns, next_ns);
    let_in();
  }

  // An interrupted context has executed some instructions; events that are due happen before it continues.
  void let_in() {
    if (inside_ || stuck_) return;
    inside_ = true;
    bench_.clock.now_ns += instructions_ns_;
    const bool in_the_midst = bench_.session()->polling;
    for (unsigned polls = 0; !stuck_ && is_due(); polls++) {
      while (bench_.clock.run_next(bench_.clock.now_ns)) asked_ = true;
      answers_in_the_midst_ += in_the_midst && bench_.session()->poll_again;
      asked_ = false;
      due_ns_ = tide_session_poll(bench_.session());
      if (first_told_ns_ == 0) first_told_ns_ = due_ns_;
      bench_.clock.now_ns += instructions_ns_;
      stuck_ = polls > 1000;
    }
    inside_ = false;
  }

  bool is_due() { return asked_ || std::min(bench_.clock.next_ns(), due_ns_) <= bench_.clock.now_ns; }

  Bench bench_;
  tide_pump_t pump_{};
  int64_t instructions_ns_ = 0;
  int64_t due_ns_ = TIDE_FOREVER, first_told_ns_ = 0;
  bool asked_ = false, inside_ = false, stuck_ = false;
  size_t answers_in_the_midst_ = 0;
};

constexpr uint64_t kSeeds = 200;
constexpr size_t kTopics = 6;

TEST(SessionInterrupts, AnAnswerInTheMidstOfAPollLetsThatOneEnd) {
  size_t in_the_midst = 0;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Board board(seed);
    board.create(kTopics);
    ASSERT_FALSE(board.is_stuck()) << "the interrupt keeps the main program from going on";
    EXPECT_EQ(board.agent().objects.size(), 1 + 3 * kTopics);
    in_the_midst += board.answers_in_the_midst();
  }
  EXPECT_GT(in_the_midst, kSeeds / 10) << "the test has not shown what it is for";
}

// If a context leaves a poll to another context, the time of the session's next work must not be lost.
TEST(SessionInterrupts, AfterwardsTheInterruptMovesTheSessionOn) {
  Board board(1);
  board.create(kTopics);
  board.rest(5 * s);
  EXPECT_EQ(board.poll_in_the_midst_of_a_poll(), TIDE_FOREVER);
  board.agent().die();
  board.rest(s);
  board.agent().live();
  board.rest(20 * s);
  EXPECT_TRUE(board.agent().knows_client());
  EXPECT_EQ(board.agent().objects.size(), 1 + 3 * kTopics);
}

}  // namespace session_interrupts_test
