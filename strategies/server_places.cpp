#include "strategies/server_places.hpp"

#include <fmt/format.h>

#include <set>

namespace stepcast {
namespace {

std::vector<int> free_devices(const Setting& setting) {
  const std::set<int> taken(setting.devices.begin(), setting.devices.end());
  std::vector<int> free;
  for (int device = 0; device < setting.platform.devices(); ++device) {
    if (taken.count(device) == 0) free.push_back(device);
  }
  return free;
}

std::vector<int> free_hosts(const Setting& setting) {
  std::set<int> taken;
  for (const int device : setting.devices) taken.insert(setting.platform.node_of(device));
  std::vector<int> free;
  for (int node = 0; node < setting.platform.nodes; ++node) {
    if (taken.count(node) == 0) free.push_back(setting.platform.host_endpoint(node));
  }
  return free;
}

std::vector<int> hosts_of_workers(const Setting& setting, int servers) {
  std::vector<int> hosts;
  for (int i = 0; i < servers; ++i) {
    const auto worker =
        static_cast<std::size_t>(i) * setting.devices.size() / static_cast<std::size_t>(servers);
    hosts.push_back(setting.platform.host_endpoint(setting.platform.node_of(setting.devices[worker])));
  }
  return hosts;
}

}  // namespace

void check_shards(const Setting& setting, const ServerOptions& options) {
  if (options.place != ServerOptions::Place::colocated || options.shards <= setting.workers()) return;
  options.shards_at->refuse(fmt::format("{} shards on the hosts of {} workers: give each at most one",
                                        options.shards, setting.workers()));
}

std::vector<int> server_places(const Setting& setting, ServerOptions::Place place, int servers,
                               const YamlValue& at) {
  if (place == ServerOptions::Place::colocated) return hosts_of_workers(setting, servers);
  const bool device = place == ServerOptions::Place::own_device;
  std::vector<int> free = device ? free_devices(setting) : free_hosts(setting);
  if (static_cast<int>(free.size()) < servers) {
    at.refuse(
        fmt::format("{} servers with a {} of their own beside {} workers, but {} of platform {} {} free; "
                    "set platform.nodes, or server: colocated",
                    servers, device ? "device" : "node", setting.workers(), free.size(),
                    setting.platform.name, free.size() == 1 ? "is" : "are"));
  }
  free.resize(static_cast<std::size_t>(servers));
  return free;
}

int devices_of_servers(const Platform& platform, ServerOptions::Place place, int servers) {
  if (place == ServerOptions::Place::own_device) return servers;
  return place == ServerOptions::Place::own_host ? servers * platform.devices_per_node : 0;
}

}  // namespace stepcast
