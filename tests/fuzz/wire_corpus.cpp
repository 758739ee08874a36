// SPDX-License-Identifier: Apache-2.0
// Writes every recorded unit of traffic into a folder, as the first inputs of wire_fuzz.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "vectors.h"

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  std::set<std::vector<uint8_t>> units;
  for (const std::string &file : all_vector_files())
    for (const Record &record : load_vectors(file)) units.insert(record.bytes);
  std::filesystem::create_directories(arguments[1]);
  size_t number = 0;
  for (const std::vector<uint8_t> &unit : units) {
    std::ofstream out(std::filesystem::path(arguments[1]) / ("recorded_" + std::to_string(number++)), std::ios::binary);
    out.write(reinterpret_cast<const char *>(unit.data()), static_cast<std::streamsize>(unit.size()));
  }
  std::printf("%zu inputs in %s\n", number, arguments[1]);
  return 0;
}
