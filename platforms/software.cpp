#include "platforms/software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  return static_cast<int>(100 * *major + *number);
}

/// Whether connections over sockets have threads of their own: from 2.4.8 on (NVIDIA/nccl pull request 223,
/// and NCCL's documentation of NCCL_SOCKET_NTHREADS). "2.4" alone counts as an earlier one.
bool has_socket_threads(std::string_view version, int nccl) {
  next_part(version);
  next_part(version);
  return nccl > 204 || (nccl == 204 && parse_integer(next_part(version)).value_or(0) >= 8);
}

void read_socket_threads(const YamlMap& map, Software& software) {
  const bool rccl = software.library == Software::Library::rccl;
  const bool has = rccl || has_socket_threads(map.at("nccl").text(), software.nccl);
  software.socket_threads = has ? 1 : 0;
  const auto given = map.maybe("socket_threads");
  if (!given) return;
  if (software.transport != Software::Transport::sockets) given->refuse("only valid with transport: sockets");
  if (!has) given->refuse("only valid from NCCL 2.4.8 on; earlier versions have no such threads");
  software.socket_threads = static_cast<int>(given->integer(1, 16));
}

struct Generation {
  std::string_view begin;  ///< of the device's name
  int compute_capability;
};

/// CUDA's compute capabilities (developer.nvidia.com/cuda-gpus).
constexpr std::array kGenerations{
    Generation{"k20", 35},      Generation{"k40", 35},         Generation{"k80", 37},
    Generation{"m40", 52},      Generation{"m60", 52},         Generation{"p40", 61},
    Generation{"p100", 60},     Generation{"gtx-10", 61},      Generation{"v100", 70},
    Generation{"t4", 75},       Generation{"rtx-20", 75},      Generation{"a100", 80},
    Generation{"a10", 86},      Generation{"a30", 80},         Generation{"a40", 86},
    Generation{"rtx-30", 86},   Generation{"l4", 89},          Generation{"rtx-406", 89},
    Generation{"rtx-407", 89},  Generation{"rtx-408", 89},     Generation{"rtx-409", 89},
    Generation{"h100", 90},     Generation{"h200", 90},        Generation{"gh200", 90},
    Generation{"b200", 100},    Generation{"gb200", 100},      Generation{"b300", 103},
    Generation{"gb300", 103},   Generation{"rtx-505", 120},    Generation{"rtx-506", 120},
    Generation{"rtx-507", 120}, Generation{"rtx-508", 120},    Generation{"rtx-509", 120},
    Generation{"rtx-a", 86},    Generation{"rtx-6000-ada", 89}};

/// RCCL's rules are NCCL's, with the constants of an Ampere GPU: assumed.
constexpr int kCapabilityOfRccl = 80;

int read_compute_capability(const YamlMap& map, const std::string& device) {
  if (map.has("rccl") && !map.has("compute_capability")) return kCapabilityOfRccl;
  if (const auto given = map.maybe("compute_capability"))
    return static_cast<int>(10 * given->number(3, 20) + 0.5);
  const auto known = compute_capability_of(device);
  if (!known)
    map.value().refuse(
        fmt::format("compute_capability: missing (the CUDA compute capability of \"{}\" is not known; give a "
                    "number such as 7.0)",
                    device));
  return *known;
}

bool flag(const YamlMap& map, std::string_view key, bool otherwise) {
  const auto given = map.maybe(key);
  return given ? given->boolean() : otherwise;
}

}  // namespace

std::optional<int> compute_capability_of(std::string_view device) {
  if (const auto slash = device.rfind('/'); slash != std::string_view::npos) device.remove_prefix(slash + 1);
  for (const Generation& one : kGenerations) {
    if (device.starts_with(one.begin)) return one.compute_capability;
  }
  return std::nullopt;
}

bool has_peer_access(std::string_view device) {
  if (const auto slash = device.rfind('/'); slash != std::string_view::npos) device.remove_prefix(slash + 1);
  // GeForce RTX 2060 to 5090; RTX 4000 to 8000 are professional cards.
  return !(device.starts_with("rtx-") && device.size() >= 8 && device[6] >= '5' && device[6] <= '9' &&
           device[7] == '0');
}

std::string library_text(const Software& software) {
  const bool rccl = software.library == Software::Library::rccl;
  return fmt::format("{} {}.{}", rccl ? "RCCL" : "NCCL", software.nccl / 100, software.nccl % 100);
}

Software read_software(const YamlValue& value, const std::string& device, bool nic_nearby) {
  const YamlMap map = read_map(value, software_keys());
  Software software;
  const auto rccl = map.maybe("rccl");
  if (rccl && map.has("nccl")) rccl->refuse("only valid without the key nccl");
  software.library = rccl ? Software::Library::rccl : Software::Library::nccl;
  software.nccl = read_version(rccl ? *rccl : map.at("nccl", "a version in quotes, such as \"2.18\""));
  software.compute_capability = read_compute_capability(map, device);
  if (const auto transport = map.maybe("transport"))
    software.transport = static_cast<Software::Transport>(transport->one_of({"verbs", "sockets", "plugin"}));
  if (const auto cpu = map.maybe("cpu"))
    software.cpu = static_cast<Software::Cpu>(cpu->one_of({"intel", "amd", "other"}));
  software.gpudirect = flag(map, "gpudirect", nic_nearby && software.transport == Software::Transport::verbs);
  if (const auto staging = map.maybe("staging")) {
    if (software.gpudirect)
      staging->refuse("only valid with gpudirect: false, because GPUDirect stages no data");
    software.staging = (staging->is(YamlNode::Kind::mapping)
                            ? read_map(*staging, sourced_keys()).at("value", "a rate such as \"5 GB/s\"")
                            : *staging)
                           .bytes_per_second();
  }
  read_socket_threads(map, software);
  software.nvls = flag(map, "nvls", software.compute_capability >= 90 && software.nccl >= 217);
  software.trees = flag(map, "trees", true);
  if (const auto processes = map.maybe("processes"))
    software.one_process = processes->one_of({"one_a_device", "one_a_node"}) == 1;
  return software;
}

}  // namespace stepcast
