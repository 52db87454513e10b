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
      {"factor", "number", "1 to 1000", "required", "factor on the time of this worker's work"}};
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
       "factor on the time of a slow worker's work"},
      {"stragglers", "list of mappings", "", "none", "workers (or nodes) that are known to be slow",
       stragglers_keys},
      {"start_spread", "time", ">= 0", "0 s",
       "asynchronous workers start one after the other, at equal intervals over this time; all other workers "
       "start together"},
      {"device_spread", "number", "0 to 1", "0.015 on GPUs where a scenario has no `noise`, else 0",
       "standard deviation of the logarithm of the speeds of equal devices: workers that keep a common pace "
       "keep that of the slowest"}};
  return keys;
}

const Keys& background_keys() {
  static const Keys keys{
      {"links", "text", "", "required",
       "name of a link, with `*` for any text, `?` for any letter and `[...]` for one of several letters"},
      {"share", "number", "0 to 0.99", "required", "share of the bandwidth that other jobs use"}};
  return keys;
}

const Keys& data_keys() {
  static const Keys keys{{"sample_size", "bytes", ">= 1 B", "required", "size of one sample in storage"},
                         {"prefetch", "integer", "0 to 1000", "1",
                          "micro-batches loaded ahead; 0: the worker waits for every load"},
                         {"compute_slowdown", "number", "1 to 100", "1",
                          "factor on the time of compute while the worker's input loads"}};
  return keys;
}

const Keys& memory_keys() {
  static const Keys keys{
      {"framework", "name", "pytorch, tensorflow, lbann", "pytorch",
       "framework whose rule counts activations and error signals"},
      {"optimizer", "name", "sgd, momentum, adagrad, rmsprop, adam, adamw", "that of `kernels`",
       "optimizer whose state is counted; it has no effect on time"},
      {"in_place", "boolean", "", "`true`; `lbann`: `false`",
       "whether activations overwrite their inputs where this is possible"},
      {"free_error_signals", "boolean", "", "false",
       "whether error signals are freed after use; only `lbann`, because the other frameworks always free "
       "them"},
      {"attention", "name", "eager, flash", "that of `kernels`",
       "whether memory holds the scores of attention (`eager`) or not (`flash`); not valid with `lbann`"},
      {"gelu", "name", "fused, eager, eager_erf", "that of `kernels`",
       "whether memory holds what each operator of a GELU saves that is written out; not valid with `lbann`"},
      {"keep_logits", "boolean", "", "true",
       "whether the program holds the input of softmax with cross entropy to the end of the step; only "
       "`pytorch`"},
      {"fp32_logits", "boolean", "", "false",
       "whether the program casts that input to fp32 in mixed precision; only `pytorch`"},
      {"softmax_input", "boolean", "", "false",
       "whether softmax saves its input as well, as PyTorch before 1.11 does; only `pytorch`"},
      {"gradient_as_bucket_view", "boolean", "", "false",
       "whether the buckets of `synchronous` share the gradients' memory; only `pytorch`"},
      {"workspace", "bytes", ">= 0", "by rule; `lbann`: `0 B`", "workspace of the kernel library"}};
  return keys;
}

const Keys& simulation_keys() {
  static const Keys keys{{"steps", "integer", "1 to 100,000", "1",
                          "simulated steps; if there are several, the first does not count, because it waits "
                          "for the first batch"},
                         {"seed", "integer", ">= 0", "1", "seed of all random numbers"},
                         renamed({"fidelity", "name", "automatic, message, fluid, coupled", "automatic",
                                  "how exactly collectives are simulated"},
                                 "form"),
                         {"fold", "name or boolean", "automatic, on, off", "automatic",
                          "whether one simulated program stands for all workers that are equal"},
                         {"sharing", "name", "automatic, max_min, simgrid", "automatic",
                          "solver that shares links among messages: SimGrid's where it is affordable, or the "
                          "one named"}};
  return keys;
}

const Keys& epoch_keys() {
  static const Keys keys{
      {"samples", "integer", ">= 1", "required unless `tokens` is given",
       "samples of the data set; adds the column `epoch_seconds`"},
      {"tokens", "number", "1 to 1e300", "none",
       "in place of `samples`, for a language model: tokens of the data set, such as `15e12`; `epochs` is "
       "then 1 by "
       "default"},
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
      {"compute_slowdown", "number", "1 to 100", "1", "factor on `strategy.compute_slowdown`"},
      {"kernel_start", "number", "1e-3 to 1e3", "1",
       "with `trace: derived`: factor on the fixed time that each kernel takes in addition to its work"},
      {"layer_times", "number", "1e-3 to 1e3", "1",
       "in place of `strategy.compute_factor`, as long as stacks count the host's time"},
      {"host_work", "number", "1e-3 to 1e3", "1",
       "factor on the host's times, `strategy.host_work` and `strategy.host_operation`"}};
  return keys;
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

Key range_key(std::string_view default_value, std::string_view meaning) {
  return {"range", "list", "", default_value, meaning};
}

}  // namespace

const Keys& range_keys() {
  static const Keys keys{{"from", "integer", "0 to 1e9", "required", "first value; at least 1 with `times`"},
                         {"to", "integer", "0 to 1e9", "required", "the values end here"},
                         {"times", "integer", "2 to 1e6", "none", "factor from one value to the next"},
                         {"step", "integer", "1 to 1e9", "none", "difference from one value to the next"}};
  return keys;
}

const Keys& assumed_keys() {
  static const Keys keys{
      {"key", "text", "", "required", "path of the input"},
      range_key("required without `choices`",
                "`[low, high]`, the lower first, of one kind: `[0 s, 5 ms]`; above 0 for `log-uniform`"),
      {"choices", "list of values", "", "none",
       "in place of `range`: equally likely values, such as `[true, false]`"},
      {"law", "name", "uniform, log-uniform", "uniform", "distribution of the draws"},
      {"why", "text", "", "required", "reason for the range"}};
  return keys;
}

const Keys& calibrate_keys() {
  static const Keys keys{
      {"key", "text", "", "required", "path of the input that is fitted"},
      range_key("required", "`[low, high]` of the fit"),
      {"point", kPoint, "", "required",
       "the point that the figure belongs to; it need not be a point of the sweep"},
      {"over", kPoint, "", "none",
       "a second point: `value` is then the ratio of both points, for example a published speed-up"},
      {"column", "text", "", "required",
       "a column of `results.csv` that is computed from one point alone, so not `speedup` or `efficiency`"},
      {"value", "value", "", "required",
       "the figure, a number with or without unit; a plain number is in the column's unit"},
      {"source", "text", "", "required", "origin of the figure"}};
  return keys;
}

const Keys& measured_keys() {
  static const Keys keys{
      {"point", kPoint, "", "required",
       "the point that was measured; it is added to the sweep if that has no such point"},
      {"column", "text", "", "required",
       "a column of `results.csv` that is computed from one point alone, so not `speedup` or `efficiency`"},
      {"value", "value", "", "required",
       "the measurement, a number with or without unit; a plain number is in the column's unit"},
      {"spread", "number", "0 to 1", "0.005", "standard deviation of the value, relative to it"},
      {"source", "text", "", "none", "origin of the measurement"}};
  return keys;
}

const Keys& published_keys() {
  static const Keys keys{
      {"point", kPoint, "", "required", "the first point of the sweep that has all of these values"},
      {"over", kPoint, "", "none; required for `trend`", "a second point: the figure is the ratio of both"},
      {"column", "text", "", "required", "a column of `results.csv` with numbers"},
      {"kind", "name", "predicted, fitted, bound, trend", "required", "how the figure is compared"},
      {"relation", "name", "at_most, at_least, less_than, more_than", "required for `bound` and `trend`",
       "a bound is `at_most` or `at_least`; a trend is `less_than` or `more_than` the point `over`"},
      {"value", "value", "", "required, except for `trend`",
       "a number in the column's own unit (`172` of `sweep_minutes`) or with a unit (`172 min`); a ratio has "
       "no unit"},
      {"tolerance", "number", "0 to 10", "none",
       "allowed deviation of a bound or a fitted figure, and of a predicted figure without interval"},
      {"source", "text", "", "required", "origin of the figure"},
      {"counted", "boolean", "", "true",
       "`false`: another entry states the same figure in another column, so that this one is not counted"},
      {"tuned", "text", "", "none",
       "what was changed after the first result had been seen; without this key, the forecast is blind"}};
  return keys;
}

const Keys& whole_scenario_keys() {
  static const Keys keys{
      {"name", "text", "", "required",
       "name of the scenario and of its results folder: small letters, digits, `-`, `_`"},
      {"description", "text", "", "empty", "printed by `show scenario`"},
      {"defaults", "path", "", "none", "another scenario, whose keys hold if this file does not give them"},
      {"sweep", "sweep", "", "none", "values that vary from point to point"},
      {"set", kPoint, "", "none", "values that hold for every point"},
      {"assumed", "list of mappings", "", "none", "ranges of inputs that are not known", assumed_keys},
      {"calibrate", "list of mappings", "", "none", "inputs that are fitted to a published figure",
       calibrate_keys},
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
