#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platforms/discovery/discovered.hpp"

namespace stepcast {
namespace {

constexpr int kMostNvlinks = 18;  // of a GPU; Hopper and Blackwell have this many
constexpr std::size_t kMostDevices = 256;

struct Matrix {
  std::vector<std::string> names;               // GPUs and NICs
  std::vector<std::vector<std::string>> paths;  // [from][to]
  std::vector<std::string> numa;                // of each device; empty: not printed

  bool is_gpu(std::size_t device) const { return names[device].starts_with("GPU"); }
};

/// The words of a line without the escape sequences by which newer versions underline the header. A text that
/// was pasted has lost the first character of "\e[4m" and "\e[0m".
std::vector<std::string> words_of(const std::string& line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      while (i + 1 < line.size() && line[i] != 'm') ++i;
    } else {
      plain += line[i];
    }
  }
  for (const std::string_view rest : {"[4m", "[0m"}) {
    const std::size_t at = plain.find(rest);
    if (at != std::string::npos) plain.erase(at, rest.size());
  }
  return split_words(plain);
}

/// The devices that the header names, up to "CPU Affinity".
std::vector<std::string> header_devices(const std::vector<std::string>& words) {
  return {words.begin(), std::ranges::find(words, "CPU")};
}

/// Number of NVLinks that a cell names; 0: another path.
int nvlinks(const std::string& path) {
  int count = 0;
  if (path.starts_with("NV")) std::from_chars(path.data() + 2, path.data() + path.size(), count);
  return count;
}

bool is_path(const std::string& word) {
  static const std::vector<std::string> known{"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return nvlinks(word) > 0 || std::ranges::count(known, word) > 0;
}

bool on_one_switch(const std::string& path) {
  return path == "PIX" || path == "PXB";
}
bool on_other_sockets(const std::string& path) {
  return path == "SYS" || path == "SOC";
}

void read_row(Matrix& matrix, const std::vector<std::string>& words, const std::string& place) {
  const std::size_t devices = matrix.names.size(), row = matrix.paths.size();
  if (row >= devices || words.front() != matrix.names[row])
    throw InputError(fmt::format("{}: expected the row of {}, got \"{}\"", place,
                                 row < devices ? matrix.names[row] : "nothing more",
                                 printable(words.front())));
  if (words.size() < devices + 1)
    throw InputError(
        fmt::format("{}: {}: expected {} cells, got {}", place, words.front(), devices, words.size() - 1));
  std::vector<std::string> paths(words.begin() + 1, words.begin() + 1 + devices);
  for (std::size_t i = 0; i < devices; ++i) {
    if (is_path(paths[i]) && (paths[i] == "X") == (i == row)) continue;
    throw InputError(fmt::format("{}: {}: expected {}, got \"{}\" in the column of {}", place, words.front(),
                                 i == row ? "X" : "NV#, PIX, PXB, PHB, NODE or SYS", printable(paths[i]),
                                 matrix.names[i]));
  }
  matrix.paths.push_back(std::move(paths));
  // Behind the cells: CPU affinity, NUMA affinity, and in new versions the NUMA domain of the GPU.
  matrix.numa.push_back(words.size() > devices + 2 ? words[devices + 2] : "");
}

Matrix read_matrix(const std::string& text, const std::string& file) {
  Matrix matrix;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) {
      if (!matrix.paths.empty()) break;
      continue;
    }
    if (matrix.names.empty()) {
      if (words.front() != "GPU0") continue;  // a prompt or a log line before the table
      matrix.names = header_devices(words);
      if (matrix.names.size() > kMostDevices)
        throw InputError(fmt::format("{}:{}: expected at most {} devices, got {}", file, number, kMostDevices,
                                     matrix.names.size()));
    } else {
      read_row(matrix, words, fmt::format("{}:{}", file, number));
      if (matrix.paths.size() == matrix.names.size()) return matrix;
    }
  }
  if (matrix.names.empty())
    throw InputError(file + ":1: expected the table of nvidia-smi topo -m, whose header begins with GPU0");
  throw InputError(
      fmt::format("{}:{}: expected {} rows, got {}", file, number, matrix.names.size(), matrix.paths.size()));
}

/// Numbers the groups of devices that `joined` joins, directly or through others, in order of appearance.
template <class Joined>
std::vector<int> groups_of(std::size_t devices, const Joined& joined) {
  std::vector<int> group(devices, -1);
  int groups = 0;
  for (std::size_t first = 0; first < devices; ++first) {
    if (group[first] >= 0) continue;
    std::vector<std::size_t> open{first};
    group[first] = groups++;
    while (!open.empty()) {
      const std::size_t from = open.back();
      open.pop_back();
      for (std::size_t to = 0; to < devices; ++to) {
        if (group[to] >= 0 || !(joined(from, to) || joined(to, from))) continue;
        group[to] = group[first];
        open.push_back(to);
      }
    }
  }
  return group;
}

/// The socket of each device. GPUs of one NUMA domain share a socket; where not all GPUs have a NUMA domain,
/// devices share one if their path is not SYS.
std::vector<int> sockets_of(const Matrix& matrix) {
  const auto gpu_without = [&](std::size_t i) {
    return matrix.is_gpu(i) && (matrix.numa[i].empty() || matrix.numa[i] == "N/A");
  };
  bool numa = true;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) numa = numa && !gpu_without(i);
  return groups_of(matrix.names.size(), [&](std::size_t a, std::size_t b) {
    if (numa && matrix.is_gpu(a) && matrix.is_gpu(b)) return matrix.numa[a] == matrix.numa[b];
    return nvlinks(matrix.paths[a][b]) == 0 && !on_other_sockets(matrix.paths[a][b]);
  });
}

/// True if the NVLinks of all pairs lead to NVSwitches.
bool has_nvswitch(const Matrix& matrix, int gpus) {
  const int all = gpus > 1 ? nvlinks(matrix.paths[0][1]) : 0;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a != b && nvlinks(matrix.paths[a][b]) != all) return false;
    }
  }
  return all * (gpus - 1) > kMostNvlinks;
}

void add_nvlinks(const Matrix& matrix, DiscoveredServer& server) {
  const int gpus = server.gpus.size();
  if (has_nvswitch(matrix, gpus)) {
    server.nvlinks_to_switch = nvlinks(matrix.paths[0][1]);
    return;
  }
  for (int a = 0; a < gpus; ++a) {
    for (int b = a + 1; b < gpus; ++b) {
      const int count = nvlinks(matrix.paths[a][b]);
      if (count > 0) server.nvlinks.push_back({a, b, count});
    }
  }
}

/// True if a NIC is a further function of a NIC before it: PIX joins them, and no GPU is on that switch.
bool is_further_function(const Matrix& matrix, std::size_t nic) {
  bool further = false;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    if (i == nic || matrix.paths[nic][i] != "PIX") continue;
    if (matrix.is_gpu(i)) return false;
    further = further || i < nic;
  }
  return further;
}

}  // namespace

DiscoveredServer read_nvidia_topology(const std::string& text, const std::string& file) {
  const Matrix matrix = read_matrix(text, file);
  const std::vector<int> sockets = sockets_of(matrix);
  const std::vector<int> switches = groups_of(
      matrix.names.size(), [&](std::size_t a, std::size_t b) { return on_one_switch(matrix.paths[a][b]); });
  std::map<int, int> members;
  for (const int one : switches) ++members[one];

  DiscoveredServer server;
  server.found_by = "nvidia-smi topo -m";
  std::map<int, int> switch_number, socket_number;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    // Domains without a GPU, such as that of a NIC for storage, count as the first.
    if (matrix.is_gpu(i)) socket_number.try_emplace(sockets[i], socket_number.size());
    const auto known = socket_number.find(sockets[i]);
    const int socket = known == socket_number.end() ? 0 : known->second;
    int pcie_switch = -1;
    if (members[switches[i]] > 1)
      pcie_switch = switch_number.try_emplace(switches[i], switch_number.size()).first->second;
    if (!matrix.is_gpu(i) && is_further_function(matrix, i)) {
      server.doubts.push_back(
          matrix.names[i] +
          " shares its PCIe bridge with a NIC and no GPU: it counts as a function of that NIC.");
      continue;
    }
    (matrix.is_gpu(i) ? server.gpus : server.nics).push_back({matrix.names[i], socket, pcie_switch});
  }
  server.sockets = socket_number.size();
  add_nvlinks(matrix, server);
  server.doubts.push_back("nvidia-smi numbers NUMA domains, of which a socket may have several.");
  return server;
}

}  // namespace stepcast
