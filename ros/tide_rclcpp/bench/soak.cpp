// SPDX-License-Identifier: Apache-2.0
// Nodes are created and removed while the executor spins: each receives messages of one publisher, reliably over the
// middleware, uses a timer, calls a service of the host, answers its own client, and is removed. Ends with status 1 if
// a message is lost, an answer is not taken, or a node is kept alive; if the process has more than two file
// descriptors more than after the first fifth of the time; or if allocated memory grows steadily. Fast DDS keeps the
// state of every endpoint that it has ever matched in a pool that doubles its size. The criterion for steady growth is
// therefore the median of the growths in ten parts of the time; the growth over the whole time has a separate, wide
// limit. Usage: soak MINUTES [EXECUTOR]
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "executors.h"
#include "rcl_interfaces/srv/list_parameters.hpp"
#include "rosgraph_msgs/msg/clock.hpp"

namespace {

using Call = rcl_interfaces::srv::ListParameters;
using Message = rosgraph_msgs::msg::Clock;
using Clock = std::chrono::steady_clock;
constexpr int kMessages = 20;
constexpr int kCalls = 3;
constexpr int kParts = 10;                  // the run is divided into this many parts
constexpr double kGrowthOfPartMb = 0.1;     // limit of the median growth in a part
constexpr double kGrowthMb = 16;            // limit of the growth after the first fifth
constexpr double kGrowthOfGuestMb = 0.002;  // added to kGrowthMb for each guest: pools of Fast DDS may just have
                                            // doubled

// Memory that the program has allocated and not freed. Freed memory that the allocator retains does not count.
double allocated_mb() {
  const auto told = mallinfo2();
  return static_cast<double>(told.uordblks + told.hblkhd) / 1e6;
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

int descriptors() {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) count++;
  if (folder != nullptr) (void)closedir(folder);
  return count;
}

template <typename Condition> bool within(std::chrono::seconds limit, Condition &&holds) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

int unanswered = 0;

// Calls the parameter service of another node, then removes the client. Returns false if an answer arrived but its
// callback did not run. A call to which no answer arrives was lost below the executor, as also happens with rclcpp's
// own executors; such calls are counted.
bool call(rclcpp::Node &caller, const std::string &called, const rclcpp::CallbackGroup::SharedPtr &group) {
  const auto client = caller.create_client<Call>("/" + called + "/list_parameters", rclcpp::ServicesQoS(), group);
  if (!client->wait_for_service(std::chrono::seconds(30))) return false;
  const auto answers = std::make_shared<std::atomic<int>>(0);  // shared: an answer may arrive after the return
  for (int count = 0; count < kCalls; count++) {
    client->async_send_request(std::make_shared<Call::Request>(),
                               [answers](rclcpp::Client<Call>::SharedFuture) { (*answers)++; });
  }
  const bool good = within(std::chrono::seconds(30), [&] { return *answers == kCalls; });
  if (good) return true;
  Call::Response response;
  rmw_request_id_t id;
  const bool there = client->take_response(response, id);
  std::printf("%s calls %s: %d of %d answers, %s\n", caller.get_name(), called.c_str(), answers->load(), kCalls,
              there ? "and one that nobody took" : "and no other has come");
  unanswered += there ? 0 : 1;
  return !there;
}

// Returns false if a message was lost or an object was kept alive.
bool visit(rclcpp::Executor &executor, rclcpp::Node &host, int number) {
  const std::string topic = "/soak/topic_" + std::to_string(number % 8);
  auto guest = std::make_shared<rclcpp::Node>("guest_" + std::to_string(number % 64),
                                              rclcpp::NodeOptions().use_intra_process_comms(number % 2 == 0));
  std::atomic<int> came{0}, ticks{0};
  auto group = guest->create_callback_group(number % 3 == 0 ? rclcpp::CallbackGroupType::Reentrant
                                                            : rclcpp::CallbackGroupType::MutuallyExclusive);
  rclcpp::SubscriptionOptions options;
  options.callback_group = group;
  auto subscription = guest->create_subscription<Message>(
      topic, rclcpp::QoS(kMessages).reliable(), [&](Message::ConstSharedPtr) { came++; }, options);
  auto timer = guest->create_wall_timer(
      std::chrono::milliseconds(1 + number % 4), [&] { ticks++; }, group);
  auto publisher = host.create_publisher<Message>(topic, rclcpp::QoS(kMessages).reliable());
  executor.add_node(guest);
  bool good = within(std::chrono::seconds(30), [&] { return publisher->get_subscription_count() == 1; });
  for (int count = 0; count < kMessages; count++) publisher->publish(Message());
  good = good && within(std::chrono::seconds(30), [&] { return came == kMessages && ticks > 1; });
  if (!good) std::printf("guest %d: %d of %d messages, %d ticks\n", number, came.load(), kMessages, ticks.load());
  good = call(*guest, host.get_name(), group) && good;
  good = call(host, guest->get_name(), nullptr) && good;
  if (number % 5 != 0) executor.remove_node(guest);
  const std::weak_ptr<rclcpp::Node> watched = guest;
  const std::weak_ptr<rclcpp::TimerBase> ticking = timer;
  subscription.reset();
  timer.reset();
  group.reset();
  guest.reset();
  const bool gone = within(std::chrono::seconds(30), [&] { return watched.expired() && ticking.expired(); });
  if (!gone) std::printf("guest %d is kept alive\n", number);
  return good && gone;
}

// The median of the growths from part to part. The first part is left out, because it includes the start.
double middle_growth(const std::vector<double> &least_mb) {
  std::vector<double> growths_mb;
  for (std::size_t part = 2; part < least_mb.size(); part++) growths_mb.push_back(least_mb[part] - least_mb[part - 1]);
  if (growths_mb.empty()) return 0;
  std::sort(growths_mb.begin(), growths_mb.end());
  return growths_mb[growths_mb.size() / 2];
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "Usage: soak MINUTES [EXECUTOR]\n");
    return 2;
  }
  rclcpp::init(argc, argv);
  const std::chrono::duration<double> length(std::atof(argv[1]) * 60);
  const auto host = std::make_shared<rclcpp::Node>("host");
  const auto executor = make_executor(argc > 2 ? argv[2] : "tide", 2);
  executor->add_node(host);
  std::thread spinner([&] { executor->spin(); });
  const auto begin = Clock::now();
  std::vector<double> least_mb;  // by part: the least memory, read between two guests
  double resident_begin_mb = 0;
  int files = 0, guests = 0, bad = 0;
  for (; Clock::now() - begin < length; guests++) {
    bad += visit(*executor, *host, guests) ? 0 : 1;
    const auto part = static_cast<std::size_t>(kParts * ((Clock::now() - begin) / length));
    if (least_mb.size() <= part) {
      std::printf("after %d guests: %.1f MB resident, %.2f MB allocated at least in the part before\n", guests + 1,
                  resident_mb(), least_mb.empty() ? 0 : least_mb.back());
      std::fflush(stdout);
      least_mb.resize(part + 1, allocated_mb());
    }
    least_mb.back() = std::min(least_mb.back(), allocated_mb());
    if (files == 0 && part >= kParts / 5) {
      resident_begin_mb = resident_mb();
      files = descriptors();
    }
  }
  executor->cancel();
  spinner.join();
  const double resident_end_mb = resident_mb(), growth_mb = middle_growth(least_mb);
  const int files_end = descriptors();
  std::printf(
      "after %d guests: %.1f MB resident, %d descriptors; %d guests lost something, %d calls without an answer\n",
      guests, resident_end_mb, files_end, bad, unanswered);
  std::printf("growth of what is allocated, the middle of %d parts of the time: %.3f MB\n", kParts, growth_mb);
  rclcpp::shutdown();
  const bool is_counted = allocated_mb() > 0;  // false with the allocator of a sanitizer, which does not report it
  const bool steady = !is_counted || (growth_mb < kGrowthOfPartMb &&
                                      resident_end_mb < resident_begin_mb + kGrowthMb + kGrowthOfGuestMb * guests);
  return bad == 0 && steady && files_end <= files + 2 ? 0 : 1;
}
