#include <fmt/format.h>

#include "models/cost/kernel_choice.hpp"
#include "models/network/network_keys.hpp"
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

const Keys& passes_keys() {
  static const Keys keys = [] {
    Keys rows{{"layers", "text", "", "required",
               "name of a layer, with `*` for any text; a name that no layer matches is an error"}};
    for (const char* pass : {"forward", "backward_data", "backward_weights", "update"})
      rows.push_back(
          {pass, "number", "0 to 1e6", "1", "how often a step runs this pass; it need not be whole"});
    return rows;
  }();
  return keys;
}

const Keys& stragglers_keys() {
  static const Keys keys{
      {"worker", "integer", "0 to 1048575", "this or `node`", "rank of a slow worker"},
      {"node", "integer", "0 to 1048575", "this or `worker`", "slow node; only with `per: node`"},
      {"factor", "number", "1 to 1000", "required", "its work takes this many times as long"}};
  return keys;
}

const Keys& noise_keys() {
  static const Keys keys{
      {"jitter", "name", "none, trace, lognormal, layers", "none", "variation from step to step"},
      {"sigma", "number", "0 to 10", "required for `lognormal` and `layers`",
       "standard deviation of the logarithm of the factor"},
      {"per", "name", "worker, node", "worker", "`node`: all workers of a node draw the same values"},
      {"straggler_share", "number", "0 to 1", "0",
       "probability that a worker (or node) is slow in every step"},
      {"straggler_factor", "number", "1 to 1000", "required with a share above 0",
       "slow workers take this many times as long"},
      {"stragglers", "list of mappings", "", "none", "workers (or nodes) that are known to be slow",
       stragglers_keys},
      {"start_spread", "time", ">= 0", "0 s",
       "asynchronous workers start one after the other, evenly over this time; others start together"}};
  return keys;
}

const Keys& background_keys() {
  static const Keys keys{
      {"links", "text", "", "required",
       "name of a link, with `*` for any text, `?` for any letter and `[...]` for one of several letters"},
      {"share", "number", "0 to 0.99", "required", "share of the bandwidth that others use"}};
  return keys;
}

const Keys& data_keys() {
  static const Keys keys{{"sample_size", "bytes", ">= 1 B", "required", "size of one sample in storage"},
                         {"prefetch", "integer", "0 to 1000", "1",
                          "micro-batches loaded ahead; 0: the worker waits for every load"}};
  return keys;
}

const Keys& memory_keys() {
  static const Keys keys{
      {"framework", "name", "pytorch, tensorflow, lbann", "pytorch",
       "whose rule counts activations and error signals"},
      {"optimizer", "name", "sgd, momentum, adagrad, rmsprop, adam", "that of `kernels`",
       "optimizer whose state is counted; it has no effect on time"},
      {"in_place", "boolean", "", "`true`; `lbann`: `false`",
       "activations overwrite their inputs where this is possible"},
      {"free_error_signals", "boolean", "", "false",
       "error signals are freed after use; only `lbann` (the others always free them)"},
      {"attention", "name", "eager, flash", "that of `kernels`",
       "whether the scores are held; not with `lbann`"},
      {"gradient_as_bucket_view", "boolean", "", "false",
       "whether the buckets of `synchronous` share the gradients' memory; only `pytorch`"},
      {"workspace", "bytes", ">= 0", "by rule; `lbann`: `0 B`", "workspace of the kernel library"}};
  return keys;
}

const Keys& simulation_keys() {
  static const Keys keys{
      {"steps", "integer", "1 to 100,000", "1",
       "simulated steps; with several, the first does not count, as it waits for the first batch"},
      {"seed", "integer", ">= 0", "1", "seed of all random numbers"},
      renamed({"fidelity", "name", "automatic, message, fluid, coupled", "automatic",
               "how exactly collectives are simulated"},
              "form"),
      {"fold", "name or boolean", "automatic, on, off", "automatic",
       "whether one program stands for all equal workers"},
      {"sharing", "name", "max_min, simgrid", "max_min",
       "the solver that shares links among messages: the simulator's own, or SimGrid's, which is its "
       "reference and slower"}};
  return keys;
}

const Keys& epoch_keys() {
  static const Keys keys{
      {"samples", "integer", ">= 1", "required", "samples of the data set; adds the column `epoch_seconds`"},
      {"epochs", "number", "1e-6 to 1e300", "none",
       "passes over the data set; adds `training_hours` and, if the platform has a price, `cost_usd`"}};
  return keys;
}

const Keys& factors_keys() {
  static const Keys keys{
      {"inside_server_bandwidth", "number", "1e-3 to 1e3", "1", "factor on all links inside a server"},
      {"between_servers_bandwidth", "number", "1e-3 to 1e3", "1", "factor on the bandwidth of a NIC"},
      {"message_overhead", "number", "1e-3 to 1e3", "1",
       "factor on the overheads of the platform's messages"},
      {"compute_slowdown", "number", "1 to 100", "1", "factor on `strategy.compute_slowdown`"}};
  return keys;
}

const Keys& run_keys() {
  static const Keys keys{
      {"model", "name, path or mapping", "", "required",
       "network: a name in `models/`, a path that ends in `.yaml`, or a network written in place",
       model_keys},
      {"trace", "name, path or list of texts", "", "required",
       "layer times: names in `models/traces/`, paths that end in `.yaml`, or `derived`"},
      {"kernels", "mapping", "", "see its keys", "kernels of `trace: derived`", kernel_choice_keys},
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
      {"factors", "mapping", "", "all 1", "factors on the platform, which default ranges draw",
       factors_keys}};
  return keys;
}

}  // namespace stepcast
