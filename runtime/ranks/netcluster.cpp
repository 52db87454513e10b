#include "runtime/ranks/netcluster.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/error.hpp"
#include "core/os/child_process.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

FinishedChild netcluster(std::vector<std::string> words, const std::filesystem::path& folder) {
  words.insert(words.begin(), (data_folder() / "tools" / "netcluster").string());
  return run_child(words, folder);
}

}  // namespace

ClusterGuard::ClusterGuard(const Cluster& cluster, std::filesystem::path folder)
    : folder_(std::move(folder)) {
  if (cluster.kind != Cluster::Kind::netcluster) return;
  std::vector<std::string> words{"up",       std::to_string(cluster.ranks), "--rate", rate_text(cluster.rate),
                                 "--packet", std::to_string(cluster.packet)};
  if (cluster.racks == 2) {
    words.insert(words.end(), {"--racks", "2", "--uplink", rate_text(cluster.uplink)});
  }
  const FinishedChild child = netcluster(words, folder_);
  if (!child.started)
    throw InputError(
        "--cluster: tools/netcluster could not be started: it or bash is missing; reinstall stepcast");
  if (child.status == 0) {
    up_ = true;
    return;
  }
  std::string reason = child.errors.substr(0, child.errors.find('\n'));
  throw InputError(fmt::format("--cluster: {}", reason.empty() ? "tools/netcluster failed" : reason));
}

ClusterGuard::~ClusterGuard() {
  if (!up_) return;
  try {
    netcluster({"down"}, folder_);
  } catch (
      const std::exception&) {  // the ranks' results count more; `tools/netcluster down` removes what is left
  }
}

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& text) {
  throw InputError(fmt::format("--cluster: expected {}, got \"{}\"", what, text));
}

double rate_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  const double scale = unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
  const double rate = number * scale;
  if (error != std::errc() || !(rate >= 1e6 && rate <= 1e11)) refuse("a rate such as 100mbit or 1gbit", text);
  return rate;
}

int packet_of(const std::string& text) {
  int bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes < 4096 || bytes > 65536) {
    refuse("packet=BYTES, 4096 to 65536", "packet=" + text);
  }
  return bytes;
}

void read_option(const std::string& option, Cluster& cluster) {
  const std::string value = option.substr(option.find('=') + 1);
  if (option.starts_with("racks=")) {
    if (value != "1" && value != "2") refuse("racks=1 or racks=2", option);
    cluster.racks = value == "2" ? 2 : 1;
  } else if (option.starts_with("uplink=")) {
    cluster.uplink = rate_of(value);
  } else if (option.starts_with("packet=")) {
    cluster.packet = packet_of(value);
  } else {
    refuse("packet=BYTES, racks=2 or uplink=RATE", option);
  }
}

void check(const Cluster& cluster) {
  if (cluster.ranks > 16) throw InputError("--ranks: a netcluster has at most 16 nodes");
  if (cluster.racks == 1) return;
  if (cluster.uplink == 0) refuse("uplink=RATE with two racks", cluster.name);
  if (cluster.ranks % 2 != 0) throw InputError("--ranks: two racks need an even number");
}

}  // namespace

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names{"own", "mpi"};
  return names;
}

std::string Cluster::label() const {
  return transport == TransportKind::own
             ? name
             : fmt::format("{} over {}", name, transport_names()[static_cast<std::size_t>(transport)]);
}

Cluster read_cluster(const std::string& text, int ranks, const std::string& transport) {
  const auto known = std::ranges::find(transport_names(), transport);
  if (known == transport_names().end())
    throw InputError(fmt::format("--transport: expected own or mpi, got \"{}\"", transport));
  Cluster cluster;
  cluster.name = text;
  cluster.ranks = ranks;
  cluster.transport = static_cast<TransportKind>(known - transport_names().begin());
  if (text == "memory") return cluster;
  if (text == "loopback") {
    cluster.kind = Cluster::Kind::loopback;
    return cluster;
  }
  if (text == "hosts") {
    cluster.kind = Cluster::Kind::hosts;
    return cluster;
  }
  const std::string prefix = "netcluster:";
  if (!text.starts_with(prefix)) refuse("memory, loopback or netcluster:RATE", text);
  cluster.kind = Cluster::Kind::netcluster;
  std::istringstream parts(text.substr(prefix.size()));
  std::string part;
  std::getline(parts, part, ',');
  cluster.rate = rate_of(part);
  while (std::getline(parts, part, ',')) read_option(part, cluster);
  check(cluster);
  return cluster;
}

std::string host_of(const Cluster& cluster, int rank) {
  if (cluster.kind == Cluster::Kind::netcluster) return fmt::format("10.87.0.{}", rank + 1);
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string rate_text(double bits_per_second) {
  return fmt::format("{:.0f}kbit", bits_per_second / 1e3);
}

}  // namespace stepcast
