#include "platforms/software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "platforms/platform_keys.hpp"

namespace stepcast {
namespace {

/// The oldest and the newest version whose rules are known (strategies/nccl/version_constants.cpp).
constexpr int kOldest = 200, kNewest = 299;

/// The part of a version before the next dot, which it takes off.
std::string_view next_part(std::string_view& version) {
  const std::string_view part = version.substr(0, version.find('.'));
  version.remove_prefix(std::min(version.size(), part.size() + 1));
  return part;
}

int read_version(const YamlValue& value) {
  const std::string text = value.text();
  std::string_view rest = text;
  const auto major = parse_integer(next_part(rest));
  const auto number = parse_integer(next_part(rest));
  if (!major || !number || *major != 2 || *number < kOldest % 100 || *number > kNewest % 100)
    value.expected("a version of NCCL from 2.0 on, in quotes, such as \"2.18\"");
  return 100 * *major + *number;
}

/// Whether connections over sockets have threads of their own: from 2.4.8 on (NVIDIA/nccl pull request 223,
/// and NCCL's documentation of NCCL_SOCKET_NTHREADS). "2.4" alone counts as an earlier one.
bool has_socket_threads(std::string_view version, int nccl) {
  next_part(version);
  next_part(version);
  return nccl > 204 || (nccl == 204 && parse_integer(next_part(version)).value_or(0) >= 8);
}

/// RCCL's rules are NCCL's, with the constants of an Ampere GPU: assumed.
constexpr int kCapabilityOfRccl = 80;

}  // namespace

std::string library_text(const Software& software) {
  const bool rccl = software.library == Software::Library::rccl;
  return fmt::format("{} {}.{}", rccl ? "RCCL" : "NCCL", software.nccl / 100, software.nccl % 100);
}

namespace {

/// `software:` as written.
struct SoftwareKeys {
  std::optional<int> nccl, rccl;
  std::optional<double> compute_capability;
  Software::Transport transport = Software::Transport::verbs;
  Software::Cpu cpu = Software::Cpu::intel;
  std::optional<bool> gpudirect;
  BytesPerSecond staging{0};
  int socket_threads = 1;
  bool peer_to_peer = true;
  std::optional<bool> nvls;
  bool trees = true, one_process = false;
};

void check_software(const YamlMap& map, SoftwareKeys& keys) {
  if (keys.rccl && keys.nccl) map.at("rccl").refuse("only valid without the key nccl");
  if (!keys.rccl) map.at("nccl", "a version in quotes, such as \"2.18\"");
  if (map.has("socket_threads") && keys.transport != Software::Transport::sockets)
    map.at("socket_threads").refuse("only valid with transport: sockets");
}

/// A version of NCCL as 100 x major + minor.
Form<int> version() {
  return {KeyType::text, read_version, [](const auto&) { return "none"; }};
}

const Fields<SoftwareKeys>& software_fields() {
  using Transport = Software::Transport;
  using Cpu = Software::Cpu;
  static const Fields<SoftwareKeys> fields{
      {field("nccl", &SoftwareKeys::nccl, version(), otherwise("required unless `rccl` is given"),
             "version in quotes, from \"2.0\" on; a patch level matters only with `sockets`: \"2.4.8\""),
       field("rccl", &SoftwareKeys::rccl, version(),
             "in place of `nccl`, on AMD's GPUs: RCCL by its version, with NCCL's rules and its constants of "
             "Ampere"),
       field("compute_capability", &SoftwareKeys::compute_capability, number(3, 20),
             otherwise("that of the device"), "CUDA compute capability of the devices, such as 7.0"),
       field(
           "transport", &SoftwareKeys::transport,
           choice<Transport>(
               {{"verbs", Transport::verbs}, {"sockets", Transport::sockets}, {"plugin", Transport::plugin}}),
           "what carries messages between nodes"),
       field("cpu", &SoftwareKeys::cpu,
             choice<Cpu>({{"intel", Cpu::intel}, {"amd", Cpu::amd}, {"other", Cpu::other}}),
             "processor; some of NCCL's constants depend on it"),
       field("gpudirect", &SoftwareKeys::gpudirect, boolean(),
             otherwise("`true` with `verbs` and NICs on PCIe switches"),
             "whether NICs reach the devices' memory; otherwise data is staged in host memory"),
       with_source(field("staging", &SoftwareKeys::staging, bandwidth(),
                         otherwise("3/4 of `device_link` for each NIC"),
                         "rate at which a node stages data in host memory, in each direction; only with "
                         "`gpudirect: false`"),
                   Key::Source::may),
       details({field(
           "socket_threads", &SoftwareKeys::socket_threads, integer(1, 16),
           "host threads of each connection (`NCCL_SOCKET_NTHREADS`); only with `transport: sockets`, from "
           "2.4.8 on")}),
       field("p2p", &SoftwareKeys::peer_to_peer, boolean(),
             "`false`: devices of a node exchange through host memory, also with NVLinks "
             "(`NCCL_P2P_DISABLE=1`)"),
       details({field("nvls", &SoftwareKeys::nvls, boolean(), otherwise("`true` from Hopper and 2.17 on"),
                      "NVLink SHARP: the NVSwitch computes sums"),
                field("trees", &SoftwareKeys::trees, boolean(), "`false`: rings only (`NCCL_ALGO=Ring`)")}),
       field("processes", &SoftwareKeys::one_process,
             choice<bool>({{"one_a_device", false}, {"one_a_node", true}}),
             "whether one process launches the kernels of all devices of a node"),
       source_field<SoftwareKeys>()},
      check_software};
  return fields;
}

int capability_of(const YamlMap& map, const SoftwareKeys& keys, const Device& device) {
  if (keys.rccl && !keys.compute_capability) return kCapabilityOfRccl;
  const double capability = keys.compute_capability.value_or(device.compute_capability);
  if (capability == 0)
    map.value().refuse(fmt::format(
        "compute_capability: missing (the file of the device \"{}\" gives none; give a number such "
        "as 7.0)",
        device.name));
  return static_cast<int>(std::lround(10 * capability));
}

}  // namespace

const Keys& software_keys() {
  return software_fields().keys();
}

Software read_software(const YamlValue& value, const Device& device, bool nic_nearby) {
  SoftwareKeys keys;
  const YamlMap map = read_mapping(value, software_fields(), keys);
  Software software;
  software.library = keys.rccl ? Software::Library::rccl : Software::Library::nccl;
  software.nccl = keys.rccl ? *keys.rccl : *keys.nccl;
  software.compute_capability = capability_of(map, keys, device);
  software.transport = keys.transport;
  software.cpu = keys.cpu;
  software.gpudirect =
      keys.gpudirect.value_or(nic_nearby && software.transport == Software::Transport::verbs);
  if (map.has("staging") && software.gpudirect)
    map.at("staging").refuse("only valid with gpudirect: false, because GPUDirect stages no data");
  software.staging = keys.staging;
  const bool threads = keys.rccl || has_socket_threads(map.at("nccl").text(), software.nccl);
  if (!threads && map.has("socket_threads"))
    map.at("socket_threads").refuse("only valid from NCCL 2.4.8 on; earlier versions have no such threads");
  software.socket_threads = threads ? keys.socket_threads : 0;
  software.peer_to_peer = keys.peer_to_peer;
  software.nvls =
      keys.peer_to_peer && keys.nvls.value_or(software.compute_capability >= 90 && software.nccl >= 217);
  software.trees = keys.trees;
  software.one_process = keys.one_process;
  return software;
}

}  // namespace stepcast
