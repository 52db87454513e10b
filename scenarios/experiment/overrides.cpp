#include "scenarios/experiment/overrides.hpp"

#include <fmt/format.h>

#include "scenarios/reader/library.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Devices of the servers of a mapping `strategy:`; 0 for a strategy that the reader will refuse.
int server_devices_of(const YamlMap& map) {
  const auto options = map.maybe("strategy");
  if (!options || !options->is(YamlNode::Kind::mapping)) return 0;
  const auto kind = options->any_map().maybe("kind");
  const Strategy* strategy = kind ? find_strategy(kind->node().text) : nullptr;
  return strategy == nullptr || strategy->server_devices == nullptr ? 0 : strategy->server_devices(*options);
}

}  // namespace

std::vector<Assignment> file_values(const Overrides& overrides) {
  std::vector<Assignment> values;
  const auto set = [&values](const char* path, const std::optional<std::string>& name) {
    if (name) values.push_back({path, command_line_name(*name)});
  };
  if (overrides.platform) values.push_back({"platform", *overrides.platform});
  set("trace", overrides.trace);
  set("compression_times", overrides.compression_times);
  set("strategy.part_trace", overrides.part_trace);
  return values;
}

void apply_training(const Overrides& overrides, LearningOptions& learning) {
  learning.seed += overrides.more_seed;
  if (is_generated(learning.data.kind)) learning.data.seed += overrides.more_seed;
  if (overrides.mini_batches) learning.mini_batches = learning.evaluate_every = *overrides.mini_batches;
}

int workers_of_ranks(const YamlMap& map, int ranks) {
  if (const auto workers = map.maybe("workers")) {
    const std::int64_t wanted = workers->integer(1);
    if (wanted > ranks) workers->refuse(fmt::format("{} workers are more than --ranks {}", wanted, ranks));
    return wanted;
  }
  const int left = ranks - server_devices_of(map);
  if (left < 1)
    map.at("strategy")
        .refuse(fmt::format("its servers take all of --ranks {}; give more ranks, at least one for a worker",
                            ranks));
  return left;
}

}  // namespace stepcast
