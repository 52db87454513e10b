#include "scenarios/experiment/run_keys.hpp"

#include <fmt/format.h>

#include "core/fields.hpp"
#include "models/cost/kernel_choice.hpp"
#include "models/network/layer.hpp"
#include "models/work/model_flops.hpp"
#include "platforms/platform_keys.hpp"
#include "scenarios/experiment/noise_and_data.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// `true` and `false` are words too, because programs that write YAML turn `off` into `false`.
Form<Folding> folding() {
  Form<Folding> form = choice<Folding>({{"automatic", Folding::automatic},
                                        {"on", Folding::always},
                                        {"off", Folding::never},
                                        {"true", Folding::always},
                                        {"false", Folding::never}});
  form.allowed = Allowed({KeyType::name, KeyType::boolean}, {}, {"automatic", "on", "off"});
  return form;
}

const Fields<SimulationOptions>& simulation_fields() {
  static const Fields<SimulationOptions> fields{details(
      {field(
           "steps", &SimulationOptions::steps, integer(1, 100'000),
           otherwise("1; with jitter 20; with servers 100, or ten exchanges"),
           "simulated steps; if there are several, the first does not count, because it waits for the first "
           "batch"),
       field("seed", &SimulationOptions::seed, integer(0), "seed of all random numbers"),
       renamed(field("fidelity", &SimulationOptions::fidelity, choice(fidelity_words()),
                     "how exactly collectives are simulated"),
               "form"),
       field("fold", &SimulationOptions::fold, folding(),
             "whether one simulated program stands for all workers that are equal"),
       field(
           "sharing", &SimulationOptions::sharing, choice(link_sharing_words()),
           "solver that shares links among messages: SimGrid's where it is affordable, or the one named")})};
  return fields;
}

struct Epoch {
  std::optional<std::int64_t> samples;
  std::optional<double> tokens, epochs;
};

const Fields<Epoch>& epoch_fields() {
  static const Fields<Epoch> fields{
      field("samples", &Epoch::samples, integer(1), otherwise("required unless `tokens` is given"),
            "samples of the data set; adds the column `epoch_seconds`"),
      field("tokens", &Epoch::tokens, number(1),
            "in place of `samples`, for a language model: tokens of the data set, such as `15e12`; `epochs` "
            "is then 1 by default"),
      field("epochs", &Epoch::epochs, number(1e-6),
            "passes over the data set; adds `training_hours` and, if the platform has a price, `cost_usd`")};
  return fields;
}

}  // namespace

DataSetSize read_epoch(const YamlValue& value, const Model& model) {
  Epoch epoch;
  const YamlMap map = read_mapping(value, epoch_fields(), epoch);
  if (epoch.tokens && epoch.samples) map.at("tokens").refuse("only valid without the key samples");
  if (!epoch.tokens) {
    map.at("samples", "an integer >= 1");
    return {static_cast<double>(*epoch.samples), epoch.epochs.value_or(0)};
  }
  const std::int64_t of_sample = tokens_of_sample(model);
  if (of_sample == 0) map.at("tokens").refuse("only valid for a language model; give samples");
  return {*epoch.tokens / of_sample, epoch.epochs.value_or(1)};
}

namespace {

const Fields<Factors>& factor_fields() {
  const Form<double> factor = number(1e-3, 1e3);
  static const Fields<Factors> fields{
      field("inside_server_bandwidth", &Factors::inside_server_bandwidth, factor,
            "factor on all links inside a server"),
      field("between_servers_bandwidth", &Factors::between_servers_bandwidth, factor,
            "factor on the bandwidth of a NIC"),
      field("message_overhead", &Factors::message_overhead, factor,
            "factor on the overheads of the platform's messages"),
      field("compute_slowdown", &Factors::compute_slowdown, number(1, 100),
            "factor on `strategy.compute_slowdown`"),
      field("kernel_start", &Factors::kernel_start, factor,
            "with `trace: derived`: factor on the fixed time that each kernel takes in addition to its work"),
      field("layer_times", &Factors::layer_times, factor,
            "in place of `strategy.compute_factor`, as long as stacks count the host's time"),
      field("memory_bound_kernels", &Factors::memory_bound_kernels, factor,
            "with `trace: derived`: factor on the times of passes over arrays: norms, activations, updates"),
      field("flash_attention", &Factors::flash_attention, factor,
            "with `trace: derived`: factor on the times of flash kernels"),
      field("fp8_products", &Factors::fp8_products, factor,
            "with `trace: derived`: factor on the times of products in fp8"),
      field("host_work", &Factors::host_work, factor,
            "factor on the host's times, `strategy.host_work`, `host_turn` and `host_operation`")};
  return fields;
}

}  // namespace

Factors read_factors(const YamlValue& value) {
  Factors factors;
  read_mapping(value, factor_fields(), factors);
  return factors;
}

namespace {

const std::vector<KindKeys>& keys_by_strategy() {
  static const std::vector<KindKeys> all = [] {
    std::vector<KindKeys> kinds;
    for (const Strategy& strategy : strategies()) kinds.push_back({strategy.kind, strategy.keys});
    return kinds;
  }();
  return all;
}

/// A key that is read by hand, because it needs what other keys say: a device, the platform, the plan or, as
/// the strategy, all of them. `factors` is read first, because it changes the document.
Field<RunKeys> by_hand(Key key) {
  return {std::move(key)};
}

const Fields<RunKeys>& run_fields() {
  static const Fields<RunKeys> fields{
      by_hand({"model", Allowed({KeyType::name, KeyType::path, KeyType::mapping}), "required",
               "network: a name in `models/`, a path that ends in `.yaml`, or a network written in place",
               model_keys}),
      by_hand({"trace", Allowed({KeyType::name, KeyType::path, KeyType::texts}), "required",
               "layer times: names in `models/traces/`, paths that end in `.yaml`, or `derived`"}),
      by_hand({"kernels", KeyType::mapping, "see its keys",
               "kernels of `trace: derived`; a transformer on tensor cores has bf16 (or else f16), flash "
               "attention, AdamW, `strategy.precision: mixed` and, on whole replicas, autocast "
               "unless one of `kernels.precision`, `strategy.precision: f32` and `strategy.compression` is "
               "given",
               kernel_choice_keys}),
      checked<RunKeys>("year", integer(kFirstYear, kLastYear), otherwise("none"),
                       "what libraries had then: kernels of `trace: derived`; NCCL of a `platform` by name"),
      by_hand(
          {"passes", KeyType::mappings, "each pass once", "how often a step runs each pass", passes_keys}),
      by_hand({"platform", Allowed({KeyType::name, KeyType::path, KeyType::mapping}), "required",
               "cluster: a name in `platforms/`, a path, or a platform written in place", platform_keys}),
      by_hand({"workers", integer(1, 10'000'000), "required",
               "devices that train, at most `nodes` x devices per node; usually given by the sweep"}),
      by_hand({"batch_per_worker", integer(1, 1'000'000'000), "the trace's batch",
               "samples of one worker (or replica) in a step"}),
      by_hand({"global_batch", integer(1, 1'000'000'000), "none",
               "samples of all workers in a step, in place of `batch_per_worker`"}),
      by_hand({"strategy", KeyType::mapping, "required", "training strategy", nullptr, keys_by_strategy}),
      field("noise", &RunKeys::noise, mapping<noise_fields>(), otherwise("no noise"),
            "jitter and stragglers"),
      field("placement", &RunKeys::placement, choice(placement_words()), "devices that the workers get"),
      by_hand({"background", KeyType::mappings, "none", "bandwidth that other jobs use", background_keys}),
      by_hand({"data", KeyType::mapping, "input costs nothing", "data loading", data_keys}),
      by_hand({"memory", KeyType::mapping, "see its keys", "rules for counting memory", memory_keys}),
      field("simulation", &RunKeys::simulation, mapping<simulation_fields>(),
            "steps, seed, fidelity of collectives"),
      by_hand({"epoch", KeyType::mapping, "none", "size of the data set", keys_inside<epoch_fields>}),
      by_hand({"faults", KeyType::mapping, "none",
               "failures, checkpoints and slow workers over a whole training", faults_keys}),
      by_hand({"campaign", KeyType::mapping, "none", "a hyper-parameter search on a whole cluster",
               campaign_keys}),
      field<RunKeys>(
          {"learning", KeyType::mapping, "none", "what `learn` and `validate` train", learning_keys},
          [](const YamlValue& value, RunKeys& keys) { keys.learning = read_learning(value); }),
      by_hand({"compression_times", Allowed({KeyType::name, KeyType::path}), "cpu",
               "times of the compression kernels: a name in `models/compression/` or a path"}),
      by_hand({"factors", KeyType::mapping, "all 1",
               "factors on the platform and on host work, whose values the default ranges draw",
               keys_inside<factor_fields>})};
  return fields;
}

}  // namespace

const Keys& run_keys() {
  return run_fields().keys();
}

RunKeys read_run_keys(const YamlMap& map) {
  RunKeys keys;
  read_fields(map, run_fields(), keys);
  return keys;
}

}  // namespace stepcast
