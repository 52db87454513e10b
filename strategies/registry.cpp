#include "strategies/registry.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/text.hpp"
#include "strategies/data_parallel/search.hpp"
#include "strategies/local_sgd/block_plan.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/parameter_server/elastic_averaging.hpp"
#include "strategies/parameter_server/gradient_energy_matching.hpp"
#include "strategies/parameter_server/parameter_server.hpp"
#include "strategies/replay/replay.hpp"
#include "strategies/sandblaster/sandblaster.hpp"

namespace stepcast {

namespace {

std::vector<Strategy> all_strategies() {
  return {
      synchronous_over_mesh(),
      zero_strategy(),
      spatial_strategy(),
      filter_parallel_strategy(),
      tensor_strategy(),
      pipeline_strategy(),
      mixture_of_experts_strategy(),
      model_parallel_strategy(),
      model_averaging_strategy(),
      bmuf_strategy(),
      diloco_strategy(),
      parameter_server_strategy(),
      elastic_averaging_strategy(),
      gradient_energy_matching_strategy(),
      sandblaster_strategy(),
      search_strategy(),
      replay_strategy(),
  };
}

/// Tells "did you mean" its other names.
void add_names(const Strategy& strategy) {
  for (const std::string& name : strategy.other_names) add_other_name(name, strategy.kind);
}

std::vector<Strategy>& table() {
  static std::vector<Strategy> rows = [] {
    std::vector<Strategy> all = all_strategies();
    std::ranges::for_each(all, add_names);
    return all;
  }();
  return rows;
}

}  // namespace

const std::vector<Strategy>& strategies() {
  return table();
}

void add_strategy(Strategy strategy) {
  if (find_strategy(strategy.kind) != nullptr)
    throw std::invalid_argument("there is already a strategy " + strategy.kind);
  add_names(strategy);
  table().push_back(std::move(strategy));
}

const Strategy* find_strategy(std::string_view kind) {
  const auto found = std::ranges::find(strategies(), kind, &Strategy::kind);
  return found == strategies().end() ? nullptr : &*found;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) names.push_back(strategy.kind);
  return names;
}

}  // namespace stepcast
