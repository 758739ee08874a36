// SPDX-License-Identifier: Apache-2.0
// The memory of a daemon, in the amount chosen by a test.
#pragma once

#include <cstdint>
#include <vector>

#include "tide/daemon.h"

class DaemonMemory {
 public:
  struct Class {
    uint32_t node_bytes;
    size_t nodes;
  };
  struct Sizes {
    std::vector<Class> classes;  // classes without nodes are left out
    size_t streams, slots = 0, reassemblies = 0, slot_bytes = 512, reassembly_bytes = 4096;
  };

  // Sets the memory in the configuration, and its sizes.
  void give(tide_daemon_config_t &config, const Sizes &sizes) {
    give(config.transmitter, sizes);
    give(config.receiver, sizes);
  }
  const std::vector<tide_slot_t> &slots() const { return slots_; }
  std::vector<tide_node_t> &nodes() { return nodes_; }
  std::vector<tide_output_stream_t> &output_streams() { return output_streams_; }
  const std::vector<tide_output_stream_t> &output_streams() const { return output_streams_; }

  void give(tide_transmitter_config_t &out, const Sizes &sizes) {
    size_t count = 0, bytes = 0, first = 0;
    for (const Class &one : sizes.classes) {
      count += one.nodes;
      bytes += one.nodes * one.node_bytes;
    }
    bytes_.resize(bytes);
    classes_.clear();
    for (const Class &one : sizes.classes) {
      if (one.nodes == 0) continue;
      classes_.push_back({bytes_.data() + first, one.node_bytes, static_cast<uint16_t>(one.nodes)});
      first += one.nodes * one.node_bytes;
    }
    nodes_.resize(count);
    execution_.resize(count);
    pending_.resize(count);
    output_streams_.resize(sizes.streams);
    out.nodes = nodes_.data();
    out.execution_storage = execution_.data();
    out.pending_storage = pending_.data();
    out.node_count = count;
    out.classes = classes_.data();
    out.class_count = classes_.size();
    out.streams = output_streams_.data();
    out.stream_count = output_streams_.size();
  }

  void give(tide_receiver_config_t &in, const Sizes &sizes) {
    slots_.resize(sizes.slots);
    slot_bytes_.resize(sizes.slots * sizes.slot_bytes);
    noted_.resize(sizes.slots);
    input_streams_.resize(sizes.streams);
    reassemblies_.resize(sizes.reassemblies);
    reassembly_bytes_.resize(sizes.reassemblies * sizes.reassembly_bytes);
    for (size_t index = 0; index < sizes.reassemblies; index++) {
      reassemblies_[index].bytes = reassembly_bytes_.data() + index * sizes.reassembly_bytes;
      reassemblies_[index].capacity = static_cast<uint32_t>(sizes.reassembly_bytes);
    }
    in.slots = slots_.data();
    in.slot_count = slots_.size();
    in.storage = slot_bytes_.data();
    in.slot_bytes = static_cast<uint32_t>(sizes.slot_bytes);
    in.noted_storage = noted_.data();
    in.streams = input_streams_.data();
    in.stream_count = input_streams_.size();
    in.reassemblies = reassemblies_.data();
    in.reassembly_count = reassemblies_.size();
  }

 private:
  std::vector<uint8_t> bytes_, slot_bytes_, reassembly_bytes_;
  std::vector<tide_size_class_t> classes_;
  std::vector<tide_node_t> nodes_;
  std::vector<tide_queue_entry_t *> execution_, pending_, noted_;
  std::vector<tide_output_stream_t> output_streams_;
  std::vector<tide_input_stream_t> input_streams_;
  std::vector<tide_slot_t> slots_;
  std::vector<tide_reassembly_t> reassemblies_;
};
