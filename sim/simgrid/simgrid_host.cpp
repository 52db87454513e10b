#include "sim/simgrid/simgrid_host.hpp"

#include <fmt/format.h>

namespace stepcast {
namespace {

/// SimGrid wants a speed of every host. stepcast knows none of CPUs, and none of devices that have no file.
constexpr double kUnknownSpeed = 1e9;

}  // namespace

SimGridHost simgrid_host(const Platform& platform, const Topology& topology, int endpoint) {
  SimGridHost host{topology.endpoint_name(endpoint), kUnknownSpeed, {}, {}, {}};
  const Storage& storage = platform.storage;
  const bool is_storage = endpoint == platform.storage_endpoint();
  if (endpoint < platform.devices()) {
    if (platform.device_peak.value > 0) host.flops_per_second = platform.device_peak.value;
    host.properties.emplace_back("device", platform.device_name);
    if (platform.device_memory.value > 0)
      host.properties.emplace_back("memory_bytes", fmt::format("{:.0f}", platform.device_memory.value));
    if (platform.price_per_device_hour > 0)
      host.properties.emplace_back("dollars_per_hour", fmt::format("{}", platform.price_per_device_hour));
  } else if (storage.kind == (is_storage ? Storage::Kind::shared : Storage::Kind::local)) {
    host.disk = is_storage ? "storage.disk" : fmt::format("node{}.disk", platform.node_of(endpoint));
    host.disk_bandwidth = storage.bandwidth;
  }
  return host;
}

int simgrid_host_count(const Platform& platform) {
  return platform.endpoints() - (platform.storage.kind == Storage::Kind::none ? 1 : 0);
}

}  // namespace stepcast
