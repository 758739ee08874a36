// SPDX-License-Identifier: Apache-2.0
#include "sim/board/board.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "sim/board/losses.h"
#include "sim/board/ros.h"
#include "sim/mps2/world.h"
#include "tide/link_serial.h"

extern char **environ;

namespace tide::sim {
namespace {

// With 16 ns per instruction (62.5 MIPS), a message costs the binary about as much time as it costs the board of the
// PoDS paper. For other programs an instruction takes 32 ns, as in runs in which the emulator has to keep pace with a
// real agent.
constexpr int kInstructionShift = 4, kProgramInstructionShift = 5;

// Structures are copied without conversion, which requires that this machine is little-endian, as the board is.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(world_plan_t) == 48 && sizeof(world_chain_t) == 112);
static_assert(static_cast<int>(Send::kAnswered) == WORLD_SEND_ANSWERED);

// The folder with the two pipes and the plan, which exists while the board runs.
class Meeting {
 public:
  Meeting() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tide-board-").string();
    pattern.append(6, 'X');  // mkdtemp replaces the X
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    for (const char *name : {"up", "down"}) {
      if (mkfifo((folder_ / name).c_str(), 0600) != 0) throw std::runtime_error("no named pipe");
    }
  }
  ~Meeting() {
    for (const int descriptor : {up_, down_}) {
      if (descriptor >= 0) close(descriptor);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Meeting(const Meeting &) = delete;
  Meeting &operator=(const Meeting &) = delete;

  const std::filesystem::path &folder() const { return folder_; }
  // Opens each pipe for reading and writing, because opening it in one direction would wait for a board that may never
  // start.
  void open() {
    up_ = ::open((folder_ / "up").c_str(), O_RDWR | O_CLOEXEC);
    down_ = ::open((folder_ / "down").c_str(), O_RDWR | O_CLOEXEC);
    if (up_ < 0 || down_ < 0) throw std::runtime_error("no named pipe");
  }
  int up() const { return up_; }
  void write(const void *bytes, size_t count) const {
    const auto *place = static_cast<const uint8_t *>(bytes);
    while (count > 0) {
      const ssize_t written = ::write(down_, place, count);
      if (written < 0 && errno != EINTR) throw std::runtime_error("the pipe to the board is broken");
      if (written > 0) place += written, count -= static_cast<size_t>(written);
    }
  }

 private:
  std::filesystem::path folder_;
  int up_ = -1, down_ = -1;
};

class Emulator {
 public:
  Emulator(const Board &board, const std::filesystem::path &folder) {
    const std::string semihosting = "enable=on,target=native,arg=board,arg=" + folder.string();
    std::vector<std::string> words{
        "qemu-system-arm",
        "-M",
        board.machine,
        "-display",
        "none",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-icount",
        "shift=" + std::to_string(board.is_program ? kProgramInstructionShift : kInstructionShift) + ",sleep=off",
        "-semihosting-config",
        semihosting,
        "-kernel",
        board.image};
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string &word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    const int status = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0) throw std::runtime_error("qemu-system-arm could not be started; run `make firmware` first");
  }
  ~Emulator() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Emulator(const Emulator &) = delete;
  Emulator &operator=(const Emulator &) = delete;

  bool has_ended() {
    if (pid_ <= 0) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    note_end(status);
    return true;
  }
  // Returns the exit code of QEMU.
  int wait() {
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) note_end(status);
    return code_;
  }

 private:
  void note_end(int status) {
    pid_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid_ = -1;
  int code_ = -1;
};

class BoardRun {
 public:
  BoardRun(const Plan &plan, const Board &board)
      : plan_(plan),
        is_program_(board.is_program),
        down_(engine_, plan.baud, seed_of(plan, Chance::kDown)),
        host_(engine_, bus_, down_, {plan.agent_least, plan.agent_most, plan.agent_acknowledges},
              seed_of(plan, Chance::kLatency)),
        losses_(plan),
        message_(plan.mtu),
        instances_(chain_count(), std::vector<Instance>(plan.periods)),
        emulator_(board,
                  (std::ofstream(meeting_.folder() / "plan") << board_plan(), meeting_.open(), meeting_.folder())) {
    down_.deliver = [this](const Line::Bytes &frame) { arrived_.push_back(frame); };
    tide_framing_reader_init(&reader_, TIDE_SERIAL_ADDRESS_AGENT);
    tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
    for (size_t chain = 0; chain < chain_count(); chain++) add_node(chain);
  }

  Result run() {
    for (;;) {
      world_header_t header{};
      read(&header, sizeof header);
      std::vector<uint8_t> bytes(header.bytes);
      read(bytes.data(), bytes.size());
      engine_.run_until(header.time_ns);
      world_execution_t execution{};
      world_ending_t ending{};
      world_budget_t budget{};
      switch (header.kind) {
        case WORLD_TRANSMIT:
          transmit(bytes, header.time_ns);
          answer();
          break;
        case WORLD_EVENT: answer_with_what_arrived(); break;
        case WORLD_READY: answer(); break;
        case WORLD_BEGIN: first_release_ = header.time_ns; break;
        case WORLD_SAMPLED:
        case WORLD_ACTED:
          std::memcpy(&execution, bytes.data(), std::min(bytes.size(), sizeof execution));
          note_execution(execution, header.kind == WORLD_ACTED);
          break;
        case WORLD_TIMES: execution_times_.emplace_back(bytes.begin(), bytes.end()); break;
        case WORLD_BUDGET:
          std::memcpy(&budget, bytes.data(), std::min(bytes.size(), sizeof budget));
          budgets_.push_back({budget.level, budget.exhaustions, budget.used_ns, budget.low_ns, budget.overrun_ns});
          break;
        case WORLD_END:
          std::memcpy(&ending, bytes.data(), std::min(bytes.size(), sizeof ending));
          return result(ending);
        default: throw std::runtime_error("the board speaks another protocol; rebuild it: make firmware");
      }
    }
  }

  ProgramResult run_program(const std::string &topic, const std::string &echo, size_t samples) {
    ProgramResult result;
    bus_.subscribe("rt/" + topic, [&](const Bus::Payload &payload) {
      result.samples.push_back({engine_.now(), payload});
      if (!echo.empty()) bus_.publish("rt/" + echo, payload);
    });
    for (world_header_t header{}; result.samples.size() < samples && try_to_read(&header, sizeof header);) {
      std::vector<uint8_t> bytes(header.bytes);
      read(bytes.data(), bytes.size());
      engine_.run_until(header.time_ns);
      if (header.kind == WORLD_TRANSMIT) {
        transmit(bytes, header.time_ns);
        answer();
      } else if (header.kind == WORLD_EVENT) {
        answer_with_what_arrived();
      } else {
        throw std::runtime_error("the board has a plan: run it with one");
      }
    }
    result.exit_code = result.samples.size() < samples ? emulator_.wait() : 0;
    return result;
  }

 private:
  struct Instance {
    Time start = -1, end = -1;
  };
  size_t chain_count() const { return plan_.only_first ? 1 : plan_.chains.size(); }

  std::string board_plan() const {
    const uint32_t count = is_program_ ? 0 : static_cast<uint32_t>(chain_count());
    world_plan_t plan{};
    plan.bytes = static_cast<uint32_t>(sizeof plan + count * sizeof(world_chain_t));
    plan.chain_count = count;
    plan.baud = static_cast<uint32_t>(plan_.baud);
    plan.periods = static_cast<uint32_t>(plan_.periods);
    plan.instruction_ns = 1u << kInstructionShift;
    plan.batch = plan_.policy == Policy::kBatch;
    plan.lanes = plan_.lanes > 1 && !plan.batch;
    plan.batch_waits = plan_.batch_waits_for_new_data;
    plan.send = static_cast<uint8_t>(plan_.send);
    plan.heartbeat_delay_ns = plan_.heartbeat_delay;
    plan.budget_ns = plan_.budget;
    plan.budget_period_ns = plan_.budget_period;
    std::string text(reinterpret_cast<const char *>(&plan), sizeof plan);
    for (size_t chain = 0; chain < count; chain++) {
      const ChainPlan &each = plan_.chains[chain];
      world_chain_t one{};
      each.name.copy(one.name, sizeof one.name - 1);
      one.period_ns = each.period;
      one.offset_ns = each.phase;
      one.sample_ns = each.sample;
      one.act_ns = each.act;
      one.payload_bytes = static_cast<uint32_t>(each.payload_bytes);
      one.reply_bytes = static_cast<uint32_t>(each.reply_bytes);
      one.level = static_cast<uint8_t>(each.level);
      one.reliable = each.reliable;
      one.reply_reliable = each.is_reply_reliable();
      one.hold = plan_.hold_until_acknowledged || each.hold;
      text.append(reinterpret_cast<const char *>(&one), sizeof one);
    }
    return text;
  }

  void add_node(size_t chain) {
    const ChainPlan &each = plan_.chains[chain];
    nodes_.push_back(std::make_unique<HostCallback>(engine_, each.host, nullptr, nullptr));
    bus_.subscribe("rt/" + each.name, [this, chain](const Bus::Payload &payload) {
      if (payload.size() < plan_.chains[chain].payload_bytes ||
          (payload[0] | payload[1] << 8) != static_cast<int>(chain)) {
        violations_.push_back("a ROS 2 node received a message that nobody sent");
        return;
      }
      nodes_[chain]->run([this, chain, payload] {
        Bus::Payload reply(plan_.chains[chain].reply_bytes, 0x3B);
        std::copy_n(payload.begin(), kMarkBytes, reply.begin());
        bus_.publish("rt/" + plan_.chains[chain].name + "_reply", reply);
      });
    });
  }

  // Reads from the board. Returns false if the board has ended.
  bool try_to_read(void *place, size_t count) {
    auto *next = static_cast<uint8_t *>(place);
    while (count > 0) {
      pollfd wait{meeting_.up(), POLLIN, 0};
      const int ready = poll(&wait, 1, 100);
      if (ready == 0 && emulator_.has_ended()) return false;
      if (ready <= 0) continue;
      const ssize_t got = ::read(meeting_.up(), next, count);
      if (got < 0 && errno != EINTR) throw std::runtime_error("the pipe from the board is broken");
      if (got > 0) next += got, count -= static_cast<size_t>(got);
    }
    return true;
  }

  void read(void *place, size_t count) {
    if (try_to_read(place, count)) return;
    throw std::runtime_error("the board ended during the run, with " + std::to_string(emulator_.wait()) +
                             " (see sim/workloads/three_chains/mps2)");
  }

  void answer() {
    world_answer_t answer{arrived_.empty() ? engine_.next_time() : engine_.now(), 0, 0};
    meeting_.write(&answer, sizeof answer);
  }

  void answer_with_what_arrived() {
    Line::Bytes frame;
    if (!arrived_.empty()) frame = std::move(arrived_.front()), arrived_.pop_front();
    world_answer_t answer{arrived_.empty() ? engine_.next_time() : engine_.now(), static_cast<uint32_t>(frame.size()),
                          0};
    meeting_.write(&answer, sizeof answer);
    meeting_.write(frame.data(), frame.size());
  }

  void transmit(const std::vector<uint8_t> &bytes, Time time) {
    up_counters_.bytes += bytes.size();
    engine_.at(time + down_.duration(bytes.size()), [this, bytes] {
      for (size_t used = 0; used < bytes.size();) {
        int complete = 0;
        const size_t count = tide_framing_reader_input(&reader_, bytes.data() + used, bytes.size() - used, &complete);
        frame_.insert(frame_.end(), bytes.begin() + static_cast<ptrdiff_t>(used),
                      bytes.begin() + static_cast<ptrdiff_t>(used + count));
        used += count;
        if (complete != 0) frame_has_left();
      }
    });
  }

  void frame_has_left() {
    up_counters_.frames++;
    losses_.begin({message_.data(), reader_.length});
    if (first_release_ >= 0 && losses_.lost(engine_.now() - first_release_)) {
      up_counters_.refused++;
    } else {
      host_.receive(frame_);
    }
    frame_.clear();
    tide_framing_reader_set_buffer(&reader_, message_.data(), message_.size());
  }

  void note_execution(const world_execution_t &execution, bool acted) {
    if (execution.chain >= instances_.size() || execution.index >= plan_.periods) {
      violations_.push_back("the board ran an instance that does not exist");
      return;
    }
    Instance &instance = instances_[execution.chain][execution.index];
    if (acted && instance.end < 0) instance.end = execution.end_ns;
    if (!acted) instance.start = execution.start_ns;
  }

  Result result(const world_ending_t &ending) {
    Result result;
    const int code = emulator_.wait();
    if (code != 0) violations_.push_back("the board ended with " + std::to_string(code));
    if (ending.strangers > 0) violations_.push_back("the board received a message that no node sent");
    for (size_t chain = 0; chain < chain_count(); chain++) {
      const ChainPlan &plan = plan_.chains[chain];
      ChainResult each{plan.name, plan.level, plan.deadline > 0 ? plan.deadline : plan.period, {}, 0, -1};
      Time release = first_release_ + plan.phase;
      for (const Instance &instance : instances_[chain]) {
        const Time begin = plan_.latency_from == LatencyFrom::kStart ? instance.start : release;
        if (instance.start >= 0 && instance.end >= 0) {
          each.latencies.push_back(instance.end - begin);
          each.worst_response = std::max(each.worst_response, instance.end - release);
        }
        if (instance.start >= 0 && instance.end < 0) each.lost++;
        release += plan.period;
      }
      result.chains.push_back(std::move(each));
    }
    result.violations = violations_;
    result.execution_times = execution_times_;
    result.budgets = budgets_;
    result.simulated = engine_.now();
    result.events = engine_.event_count();
    result.publish_failures = ending.publish_failures;
    result.up = up_counters_;
    result.down = down_.counters();
    result.masked_maximum = ending.masked_maximum;
    result.stack_bytes = ending.stack_bytes;
    return result;
  }

  const Plan &plan_;
  const bool is_program_;
  Engine engine_;
  Bus bus_;
  Line down_;
  AgentHost host_;
  FirstLosses losses_;
  std::vector<std::unique_ptr<HostCallback>> nodes_;
  std::deque<Line::Bytes> arrived_;
  tide_framing_reader_t reader_{};
  std::vector<uint8_t> message_, frame_;  // the frame that is being sent, without and with its framing
  LineCounters up_counters_;
  Time first_release_ = -1;
  std::vector<std::vector<Instance>> instances_;
  std::vector<std::string> violations_, execution_times_;
  std::vector<LaneBudget> budgets_;
  Meeting meeting_;
  Emulator emulator_;
};

void require_image(const Board &board) {
  if (!std::filesystem::exists(board.image))
    throw std::invalid_argument(board.image + " is missing; run `make firmware`");
}

}  // namespace

Result run_board(const Plan &plan, const Board &board) {
  if (plan.chains.empty()) throw std::invalid_argument("a plan needs a chain");
  for (const ChainPlan &chain : plan.chains) {
    if (chain.name.size() >= WORLD_NAME_BYTES)
      throw std::invalid_argument("the name of a board's chain has at most 63 characters: " + chain.name);
    if (chain.payload_bytes < kMarkBytes || chain.reply_bytes < kMarkBytes)
      throw std::invalid_argument("messages of a board's chain have at least 6 bytes");
  }
  if (!plan.callbacks.empty() || !plan.boards.empty() || plan.return_most > 0)
    throw std::invalid_argument("a board's chains are round trips (`chain`), whose answers return at once");
  if (plan.policy == Policy::kReadyset) throw std::invalid_argument("a board's executor is tide or batch");
  if (plan.budget > 0 && plan.policy != Policy::kTide)
    throw std::invalid_argument("the batch executor has no lane to give a budget to");
  if (plan.cuts > 0 || plan.restarts > 0 || plan.up.any() || plan.down.any())
    throw std::invalid_argument("a board's line has no faults but first losses (success_percent)");
  require_image(board);
  return BoardRun(plan, board).run();
}

ProgramResult run_program(const Plan &plan, const Board &board, const std::string &topic, const std::string &echo,
                          size_t samples) {
  require_image(board);
  return BoardRun(plan, {board.image, board.machine, true}).run_program(topic, echo, samples);
}

}  // namespace tide::sim
