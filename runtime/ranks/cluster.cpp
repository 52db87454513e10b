#include "runtime/ranks/cluster.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/process.hpp"
#include "core/text.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

namespace {

constexpr int kMaxSlots = 64;

/// True for the address of one interface.
bool is_address(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 && address.s_addr != INADDR_ANY;
}

/// A name that ssh cannot take for an option, nor a shell for anything but a word.
bool is_host_name(const std::string& text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c < 128 && std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_';
         });
}

/// One word of a line, with its place in the file for error messages.
struct Word {
  std::string text, place;
};

std::vector<Word> words_of(const std::string& line, const std::string& file, int number) {
  std::vector<Word> words;
  const std::string text = line.substr(0, line.find('#'));
  for (std::size_t at = text.find_first_not_of(" \t\r"); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
    words.push_back({text.substr(at, end - at), fmt::format("{}:{}:{}", file, number, at + 1)});
    at = text.find_first_not_of(" \t\r", end);
  }
  return words;
}

[[noreturn]] void refuse(const Word& word, const std::string& what) {
  throw InputError(fmt::format("{}: expected {}, got \"{}\"", word.place, what, word.text));
}

Host host_of_words(const std::vector<Word>& words) {
  Host host{words.front().text};
  if (!is_host_name(host.name)) refuse(words.front(), "a host name of letters, digits, '.', '_' and '-'");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const std::string value = text.substr(std::min(text.find('='), text.size() - 1) + 1);
    if (text.starts_with("slots=")) {
      const auto slots = parse_integer(value);
      if (!slots || *slots < 1 || *slots > kMaxSlots) refuse(words[i], "slots=1 to slots=64");
      host.slots = *slots;
    } else if (text.starts_with("address=")) {
      if (!is_address(value)) refuse(words[i], "address=IPV4, the address of one interface");
      host.address = value;
    } else {
      refuse(words[i], "slots=N or address=IPV4");
    }
  }
  return host;
}

}  // namespace

std::vector<Host> read_hosts(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<Host> hosts;
  int number = 0, ranks = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<Word> words = words_of(line, file.string(), ++number);
    if (words.empty()) continue;
    hosts.push_back(host_of_words(words));
    ranks += hosts.back().slots;
    if (ranks > kMaxSlots) refuse(words.front(), "at most 64 slots in all, those of this host included");
  }
  if (hosts.empty())
    throw InputError(fmt::format("{}:1:1: expected a host, got an empty file", file.string()));
  return hosts;
}

BindAddress read_bind_address(const std::string& text) {
  BindAddress bind{text.substr(0, text.find(':'))};
  const bool has_port = bind.address.size() < text.size();
  const auto port = has_port ? parse_integer(text.substr(bind.address.size() + 1)) : 0;
  if (!is_address(bind.address) || !port || *port < (has_port ? 1 : 0) || *port > 65535)
    throw InputError(fmt::format(
        "--bind: expected ADDRESS or ADDRESS:PORT with the IPv4 address of one interface, got \"{}\"", text));
  bind.port = *port;
  return bind;
}

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
             : fmt::format("{} over {}", name, transport_names()[ordinal(transport)]);
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
