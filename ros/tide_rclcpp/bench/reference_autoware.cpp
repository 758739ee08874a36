// SPDX-License-Identifier: Apache-2.0
// The public Autoware reference system of the real-time working group on a chosen executor. Nodes, their work and the
// printed figures are those of the system: this program gives them an executor, and sets priorities for ours, the hot
// path from the lidars to the collision estimator first, then the behaviour planner.
//   tide: chains on lanes that all take everything. tide-bands: two lanes, one for the hot path and the planner with
//   SCHED_FIFO where it is permitted, one for the rest. prioritized: one SingleThreadedExecutor each for front, rear,
//   fusion, planner and the rest, with the priorities and processors that the system's documentation gives them.
//   All others: executors.h.
// LIMIT is the number up to which each node searches for primes. The system's default is 4096; its documentation says
// about 10 ms. Usage: reference_autoware EXECUTOR SECONDS THREADS LIMIT
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "autoware_reference_system/autoware_system_builder.hpp"
#include "autoware_reference_system/system/timing/default.hpp"
#include "executors.h"
#include "reference_system/system/type/rclcpp_system.hpp"

namespace {

std::uint64_t limit_of_all = 4096;

// The system's periods, and one limit for all nodes, which is not known before the program starts.
struct Timing : nodes::timing::Default {
  struct Limit {
    operator std::uint64_t() const { return limit_of_all; }  // NOLINT: it stands for a number
  };
  static constexpr Limit POINTS_TRANSFORMER_FRONT{}, POINTS_TRANSFORMER_REAR{}, VOXEL_GRID_DOWNSAMPLER{},
      POINT_CLOUD_MAP_LOADER{}, RAY_GROUND_FILTER{}, EUCLIDEAN_CLUSTER_DETECTOR{}, EUCLIDEAN_INTERSECTION{},
      OBJECT_COLLISION_ESTIMATOR{}, MPC_CONTROLLER{}, PARKING_PLANNER{}, LANE_PLANNER{}, POINT_CLOUD_FUSION{},
      NDT_LOCALIZER{}, VEHICLE_INTERFACE{}, LANELET_2_GLOBAL_PLANNER{}, LANELET_2_MAP_LOADER{}, BEHAVIOR_PLANNER{};
};

using Nodes = std::vector<std::shared_ptr<rclcpp::Node>>;

tide_rclcpp::Options options_of(const std::string &executor) {
  tide_rclcpp::Options options;
  for (const char *chain :
       {"front 3: timer /FrontLidarDriver, subscription /PointsTransformerFront /FrontLidarDriver,"
        " subscription /PointCloudFusion /PointsTransformerFront, subscription /RayGroundFilter /PointCloudFusion,"
        " subscription /EuclideanClusterDetector /RayGroundFilter,"
        " subscription /ObjectCollisionEstimator /EuclideanClusterDetector",
        "rear 3: timer /RearLidarDriver, subscription /PointsTransformerRear /RearLidarDriver,"
        " subscription /PointCloudFusion /PointsTransformerRear",
        "planner 2: timer /BehaviorPlanner"}) {
    options.chains.push_back(tide_rclcpp::parse_chain(chain));
  }
  if (executor == "tide-bands") {
    options.lanes.push_back(tide_rclcpp::parse_lane("rest from 0"));
    options.lanes.push_back(tide_rclcpp::parse_lane("urgent from 2 fifo 60 normal if refused"));
  }
  return options;
}

void spin_one(const std::string &name, int seconds, int threads, const Nodes &nodes) {
  const bool bands = name == "tide-bands";
  const auto executor = make_executor(bands ? "tide" : name, bands ? 1 : threads, options_of(name));
  for (const auto &node : nodes) executor->add_node(node);
  if (const auto tide = std::dynamic_pointer_cast<tide_rclcpp::Executor>(executor)) {
    for (const std::string &line : tide->unmatched()) throw std::runtime_error(line + ": the system has it no more");
  }
  std::thread end([&] { end_after(seconds, *executor); });
  executor->spin();
  end.join();
}

struct Place {
  int priority;                 // SCHED_RR; 0: none
  std::vector<int> processors;  // as far as this machine has them; empty: any
};

void take_place(const Place &place) {
  if (place.priority == 0) return;
  const sched_param urgency{place.priority};
  if (sched_setscheduler(0, SCHED_RR, &urgency) != 0) std::fprintf(stderr, "no permission for SCHED_RR\n");
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const int processor : place.processors) CPU_SET(static_cast<std::size_t>(processor), &processors);
  (void)sched_setaffinity(0, sizeof processors, &processors);
}

void spin_prioritized(int seconds, const Nodes &nodes) {
  const std::map<std::string, Place> places = {
      {"front", {1, {1, 2, 3}}}, {"rear", {1, {1, 2, 3}}}, {"fusion", {1, {1, 2, 3}}},
      {"planner", {30, {0}}},    {"rest", {0, {}}},
  };
  const std::map<std::string, std::string> place_of = {
      {"FrontLidarDriver", "front"},          {"PointsTransformerFront", "front"},    {"RearLidarDriver", "rear"},
      {"PointsTransformerRear", "rear"},      {"PointCloudFusion", "fusion"},         {"RayGroundFilter", "fusion"},
      {"EuclideanClusterDetector", "fusion"}, {"ObjectCollisionEstimator", "fusion"}, {"BehaviorPlanner", "planner"},
  };
  std::map<std::string, rclcpp::executors::SingleThreadedExecutor> executors;
  for (const auto &node : nodes) {
    const auto found = place_of.find(node->get_name());
    executors[found == place_of.end() ? "rest" : found->second].add_node(node);
  }
  std::vector<std::thread> threads;
  threads.reserve(executors.size());
  for (auto &[name, executor] : executors) {
    threads.emplace_back([&place = places.at(name), &running = executor] {
      take_place(place);
      running.spin();
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  for (auto &[name, executor] : executors) executor.cancel();
  for (std::thread &thread : threads) thread.join();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "Usage: reference_autoware EXECUTOR SECONDS THREADS LIMIT\n");
    return 2;
  }
  const std::string executor = argv[1];
  const int seconds = static_cast<int>(std::strtol(argv[2], nullptr, 10));
  limit_of_all = std::strtoull(argv[4], nullptr, 10);
  rclcpp::init(argc, argv);
  std::cout << "work of a node: " << get_crunch_time_in_ms(limit_of_all) << " ms" << std::endl;
  {
    const Nodes nodes = create_autoware_nodes<RclcppSystem, Timing>();
    if (executor == "prioritized") {
      spin_prioritized(seconds, nodes);
    } else {
      spin_one(executor, seconds, static_cast<int>(std::strtol(argv[3], nullptr, 10)), nodes);
    }
  }
  rclcpp::shutdown();
  return 0;
}
