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

const Keys& background_keys() {
  static const Keys keys{
      {"links", "text", "", "required",
       "name of a link, with `*` for any text, `?` for any letter and `[...]` for one of several letters"},
      {"share", "number", "0 to 0.99", "required", "share of the bandwidth that other jobs use"}};
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
