#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostGpus = 256;

/// Reads the row of GPU `row` in the table of link types: "GPU1  XGMI  0".
void read_links(const std::vector<std::string>& words, std::size_t gpus, const std::string& place,
                DiscoveredServer& server) {
  const std::size_t row = server.gpus.size();
  if (words.front() != fmt::format("GPU{}", row) || words.size() != gpus + 1)
    throw InputError(fmt::format("{}: expected GPU{} and {} cells", place, row, gpus));
  for (std::size_t to = 0; to < gpus; ++to) {
    const std::string& cell = words[to + 1];
    if (to == row ? cell != "0" : cell != "XGMI" && cell != "PCIE")
      throw InputError(fmt::format("{}: GPU{}: expected {}, got \"{}\"", place, row,
                                   to == row ? "0" : "XGMI or PCIE", printable(cell)));
    if (to > row && cell == "XGMI")
      server.nvlinks.push_back({static_cast<int>(row), static_cast<int>(to), 1});
  }
  server.gpus.push_back({words.front()});
}

/// Reads "GPU[3] : (Topology) Numa Node: 1".
void read_numa(const std::string& line, const std::string& place, DiscoveredServer& server) {
  const std::size_t close = line.find(']'), colon = line.rfind(':');
  const auto gpu = parse_integer(line.substr(4, close == std::string::npos ? 0 : close - 4));
  const auto domain =
      parse_integer(line.substr(std::min(line.size(), line.find_first_not_of(' ', colon + 1))));
  if (!gpu || *gpu < 0 || *gpu >= std::ssize(server.gpus) || !domain || *domain < -1 || *domain > 1023)
    throw InputError(place + ": expected the NUMA node of a GPU of the table of link types");
  const int socket = std::max<int>(0, *domain);
  server.gpus[*gpu].socket = socket;
  server.sockets = std::max(server.sockets, socket + 1);
}

}  // namespace

DiscoveredServer read_rocm_topology(const std::string& text, const std::string& file) {
  DiscoveredServer server;
  server.found_by = "rocm-smi --showtopo";
  std::istringstream lines(text);
  int number = 0;
  bool links = false;
  std::size_t gpus = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string place = fmt::format("{}:{}", file, number);
    const std::vector<std::string> words = split_words(line);
    if (line.starts_with("==")) {
      links = line.find("Link Type between two GPUs") != std::string::npos;
    } else if (links && gpus == 0 && !words.empty()) {
      gpus = words.size();
      if (words.front() != "GPU0" || gpus > kMostGpus)
        throw InputError(
            fmt::format("{}: expected a header of at most {} GPUs from GPU0 on", place, kMostGpus));
    } else if (links && !words.empty() && server.gpus.size() < gpus) {
      read_links(words, gpus, place, server);
    } else if (line.starts_with("GPU[") && line.find("Numa Node:") != std::string::npos) {
      read_numa(line, place, server);
    }
  }
  if (gpus == 0 || server.gpus.size() != gpus)
    throw InputError(file + ":1: expected the output of rocm-smi --showtopo with its table of link types");
  server.doubts.push_back("rocm-smi prints no number of xGMI links: one joins each pair. It names no NICs.");
  return server;
}

}  // namespace stepcast
