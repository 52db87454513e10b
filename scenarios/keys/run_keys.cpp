#include <fmt/format.h>

#include "models/cost/kernel_choice.hpp"
#include "models/network/layer.hpp"
#include "platforms/platform_keys.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {

const std::vector<KindKeys>& keys_by_strategy() {
  static const std::vector<KindKeys> all = [] {
    std::vector<KindKeys> kinds;
    for (const Strategy& strategy : strategies()) kinds.push_back({strategy.kind, strategy.keys});
    return kinds;
  }();
  return all;
}

const Keys& run_keys() {
  static const Keys keys{
      {"model", "name, path or mapping", "", "required",
       "network: a name in `models/`, a path that ends in `.yaml`, or a network written in place",
       model_keys},
      {"trace", "name, path or list of texts", "", "required",
       "layer times: names in `models/traces/`, paths that end in `.yaml`, or `derived`"},
      {"kernels", "mapping", "", "see its keys",
       "kernels of `trace: derived`; a transformer on tensor cores has bf16 (or else f16), flash attention, "
       "AdamW and `strategy.precision: mixed` unless one of `kernels`, `strategy.precision`, `strategy.like` "
       "and `strategy.compression` is given",
       kernel_choice_keys},
      {"passes", "list of mappings", "", "each pass once", "how often a step runs each pass", passes_keys},
      {"platform", "name, path or mapping", "", "required",
       "cluster: a name in `platforms/`, a path, or a platform written in place", platform_keys},
      {"workers", "integer", "1 to 1e7", "required",
       "devices that train, at most `nodes` x devices per node; usually given by the sweep"},
      {"batch_per_worker", "integer", "1 to 1e9", "the trace's batch",
       "samples of one worker (or replica) in a step"},
      {"global_batch", "integer", "1 to 1e9", "none",
       "samples of all workers in a step, in place of `batch_per_worker`"},
      {"strategy", "mapping", "", "required", "training strategy", nullptr, keys_by_strategy},
      {"noise", "mapping", "", "no noise", "jitter and stragglers", noise_keys},
      {"placement", "name", "packed, spread, random", "packed", "devices that the workers get"},
      {"background", "list of mappings", "", "none", "bandwidth that other jobs use", background_keys},
      {"data", "mapping", "", "input costs nothing", "data loading", data_keys},
      {"memory", "mapping", "", "see its keys", "rules for counting memory", memory_keys},
      {"simulation", "mapping", "", "see its keys", "steps, seed, fidelity of collectives", simulation_keys},
      {"epoch", "mapping", "", "none", "size of the data set", epoch_keys},
      {"faults", "mapping", "", "none", "failures, checkpoints and slow workers over a whole training",
       faults_keys},
      {"campaign", "mapping", "", "none", "a hyper-parameter search on a whole cluster", campaign_keys},
      {"learning", "mapping", "", "none", "what `learn` and `validate` train", learning_keys},
      {"compression_times", "name or path", "", "cpu",
       "times of the compression kernels: a name in `models/compression/` or a path"},
      {"factors", "mapping", "", "all 1",
       "factors on the platform and on host work, whose values the default ranges draw", factors_keys}};
  return keys;
}

namespace {

constexpr auto kPoint = "mapping of values";

}  // namespace

const Keys& whole_scenario_keys() {
  static const Keys keys{
      {"name", "text", "", "required",
       "name of the scenario and of its results folder: small letters, digits, `-`, `_`"},
      {"description", "text", "", "empty", "printed by `show scenario`"},
      {"defaults", "path", "", "none", "another scenario, whose keys hold if this file does not give them"},
      {"sweep", "sweep", "", "none", "values that vary from point to point"},
      {"set", kPoint, "", "none", "values that hold for every point"},
      {"assumed", "list of mappings", "", "none", "ranges of inputs that are not known", assumed_keys},
      {"calibrate", "list of mappings", "", "none", "measurements with a `key` that is fitted to them",
       measured_keys},
      {"measured", "list of mappings", "", "none", "measurements from which forecasts learn", measured_keys},
      {"published", "list of mappings", "", "none", "published figures to compare with", published_keys},
      {"uncertainty", "name, boolean or mapping of values", "default, none, off", "default",
       "what intervals cover in addition to `assumed`: everything, nothing, or a class for each kind of "
       "input"}};
  return keys;
}

const Keys& scenario_keys() {
  static const Keys keys = joined_keys({whole_scenario_keys(), run_keys()});
  return keys;
}

}  // namespace stepcast
