#include "commands/collectives/estimate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "core/error.hpp"

namespace stepcast {
namespace {

std::optional<double> mean_of(const std::vector<CollectiveRow>& rows, SizeRange range, bool absolute) {
  double sum = 0;
  int count = 0;
  for (const CollectiveRow& row : rows) {
    if (!row.measured || (row.size >= kLargeSize) != (range == SizeRange::from)) continue;
    sum += absolute ? std::abs(row.log_error()) : row.log_error();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count) - 1;
}

}  // namespace

Platform platform_with(Library& library, const std::string& name, const std::vector<Assignment>& values) {
  const YamlNode node = command_line_name(name);
  YamlNode tree = library.tree(YamlValue(node, "platform"), "platforms");
  for (const Assignment& one : values) assign(tree, one);
  return read_platform(YamlValue(tree, ""));
}

NcclRanks first_devices(const Platform& platform, int ranks, int per_node) {
  const int all = platform.devices_per_node;
  if (per_node == 0) per_node = std::min(ranks, all);
  if (per_node > all)
    throw InputError(fmt::format("--gpus-per-node: expected at most {}, the devices of a node of {}, got {}",
                                 all, platform.name, per_node));
  if (ranks % per_node != 0)
    throw InputError(
        fmt::format("--gpus: expected a multiple of the {} devices of each node, got {}", per_node, ranks));
  NcclRanks group;
  group.nodes = ranks / per_node;
  if (group.nodes > platform.max_nodes)
    throw InputError(fmt::format("--gpus: {} devices, {} a node, are {} nodes; {} has at most {}", ranks,
                                 per_node, group.nodes, platform.name, platform.max_nodes));
  group.devices.resize(static_cast<std::size_t>(per_node));
  std::iota(group.devices.begin(), group.devices.end(), 0);
  return group;
}

double CollectiveRow::log_error() const {
  return measured ? std::log(estimate.time / *measured) : 0;
}

std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const std::vector<Bytes>& sizes) {
  const NcclChannels channels = nccl_channels(platform, group);
  std::vector<CollectiveRow> rows;
  for (const Bytes size : sizes)
    rows.push_back({size, nccl_time(platform.software, channels, operation, size), {}});
  return rows;
}

std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const NcclTests& measured) {
  std::vector<Bytes> sizes;
  for (const NcclTestsRow& row : measured.rows) sizes.push_back(row.size);
  std::vector<CollectiveRow> rows = collective_rows(platform, group, operation, sizes);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].measured = measured.rows[i].time();
  return rows;
}

std::optional<double> mean_error(const std::vector<CollectiveRow>& rows, SizeRange range) {
  return mean_of(rows, range, true);
}

std::optional<double> bias(const std::vector<CollectiveRow>& rows, SizeRange range) {
  return mean_of(rows, range, false);
}

}  // namespace stepcast
