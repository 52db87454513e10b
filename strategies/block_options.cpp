#include <fmt/format.h>

#include <optional>

#include "strategies/block.hpp"
#include "strategies/buckets.hpp"

namespace stepcast {
namespace {

const std::vector<std::string> kBlockKeys{"mini_batches",     "aggregation", "aggregation_overhead",
                                          "filter_bandwidth", "imbalance",   "validation",
                                          "load_balancing",   "bucket",      "workers_per_replica"};

BlockValidation read_validation(const YamlValue& value) {
  const YamlMap map = value.map({"samples", "every", "compute_factor", "spread"});
  BlockValidation validation;
  validation.samples = map.at("samples", "a number of samples >= 1").number(1);
  validation.every = map.at("every", "a number of samples >= 1").number(1);
  if (const auto factor = map.maybe("compute_factor")) validation.compute_factor = factor->number(1e-6, 1e6);
  if (const auto spread = map.maybe("spread")) validation.spread = spread->boolean();
  return validation;
}

double parameter_bytes(const Model& model) {
  double elements = 0;
  for (const LayerGradients& layer : gradient_arrays(model)) {
    for (const std::int64_t array : layer) elements += static_cast<double>(array);
  }
  return 4 * elements;
}

int read_replica(const YamlMap& map, int workers) {
  const auto value = map.maybe("workers_per_replica");
  if (!value) return 1;
  const int size = static_cast<int>(value->integer(1, workers));
  if (workers % size != 0)
    value->refuse(fmt::format("{} workers cannot be cut into replicas of {}", workers, size));
  return size;
}

void read_training(const YamlMap& map, BlockSetup& setup) {
  BlockTraining& training = setup.training;
  training.mini_batches = static_cast<int>(
      map.at("mini_batches", "mini-batches of a worker in a block, an integer >= 1").integer(1, 10'000'000));
  if (const auto how = map.maybe("aggregation"))
    setup.aggregation = static_cast<Aggregation>(how->one_of(aggregation_names()));
  if (const auto time = map.maybe("aggregation_overhead")) training.aggregation_overhead = time->seconds();
  if (const auto share = map.maybe("imbalance")) training.imbalance = share->number(0, 100);
  if (const auto yes = map.maybe("load_balancing")) {
    training.balanced = yes->boolean();
    if (training.balanced && setup.workers_per_replica > 1)
      yes->refuse("the master balances single workers; leave workers_per_replica at 1");
  }
  if (const auto validation = map.maybe("validation")) setup.validation = read_validation(*validation);
}

/// Arrays of all parameters that the fullest device keeps beside training: W and D of the filter (W alone,
/// where updates are compressed and only averaged), and what is owed to the next block.
double held_arrays(const BlockSetup& setup) {
  const Compression kind = setup.compression.kind;
  const int filter = setup.filters ? 2 : kind == Compression::none ? 0 : 1;
  const int owed = kind == Compression::one_bit || kind == Compression::top_k ? 1 : 0;
  return static_cast<double>(filter + owed) / setup.workers_per_replica;
}

/// What one replica, or a worker alone in its replica, has no use for.
void note_idle_options(const YamlMap& map, const BlockSetup& setup, Plan& plan) {
  note_idle_compression(map, plan.idle_keys);
  if (plan.workers == 1) return;
  const bool inside = setup.workers_per_replica > 1, several = setup.workers_per_replica < plan.workers;
  const auto named = aggregation_names()[static_cast<std::size_t>(setup.aggregation)];
  const bool top_k = setup.compression.kind == Compression::top_k;
  note_idle_communication(map, top_k ? "with compression: top_k" : "with aggregation: " + named, inside,
                          plan);
  if (!inside) note_idle(map, {"bucket", "compute_slowdown"}, "with workers_per_replica: 1", plan.idle_keys);
  if (!several) {
    note_idle(map, {"aggregation", "aggregation_overhead", "filter_bandwidth", "imbalance", "load_balancing"},
              "with one replica", plan.idle_keys);
    return;
  }
  if (setup.training.filter.momentum == 0 && setup.training.filter.learning_rate == 1)
    note_idle(map, {"filter_bandwidth"}, "where models are only averaged", plan.idle_keys);
  if (setup.training.mini_batches == 1)
    note_idle(map, {"load_balancing"}, "with mini_batches: 1", plan.idle_keys);
}

Plan read_block(const YamlMap& map, const Setting& setting, const std::optional<BlockFilter>& filter) {
  const TrainingOptions common = read_training_options(map);
  BlockSetup setup;
  setup.workers_per_replica = read_replica(map, setting.workers());
  setup.filters = filter.has_value();
  setup.training.filter = filter.value_or(BlockFilter{});
  read_training(map, setup);
  setup.training.blocks = setting.steps;
  setup.training.prefetch = setting.prefetch;
  setup.training.step_overhead = common.step_overhead;
  setup.communication = read_communication(map);
  setup.compression = read_compression_options(map, setting);
  const bool compressed = setup.compression.kind != Compression::none;
  if (compressed && setup.aggregation != Aggregation::all_reduce)
    map.at("compression")
        .refuse(
            "on its way through a master an update would be restored and quantized again at every hop; "
            "choose aggregation: all_reduce");
  setup.parameters = {parameter_bytes(setting.model)};
  setup.epoch_samples = setting.epoch_samples;
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), 1);
  setup.batch = static_cast<double>(batch);

  Plan source;  // of the times
  Workload workload = make_workload(setting.model, setting.times(batch), common.compute_factor, source);
  Bytes bucket{setup.workers_per_replica > 1 ? 26214400 : 1e300};
  if (const auto size = map.maybe("bucket")) bucket = read_bucket(*size);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), common.element(), bucket);
  workload.input = setup.batch * setting.sample_size;
  setup.array_seconds = array_work(workload, 1);
  if (const auto rate = map.maybe("filter_bandwidth"))
    setup.array_seconds = setup.parameters / rate->bytes_per_second();

  const double held = held_arrays(setup);
  const std::string doubt = setup.compression.flag;
  Plan plan = block_plan(setting.platform, setting.devices, std::move(workload), setup);
  plan.trace_kind = source.trace_kind;
  plan.flags = source.flags;
  if (!doubt.empty()) plan.flags.push_back(doubt);
  if (common.mixed) plan.no_arithmetic = "precision: mixed";
  if (compressed) plan.simulated_only = "compressed updates are simulated only";
  plan.compute_slowdown = common.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.batch_per_worker = batch;
  MemoryOptions memory = setting.memory;
  memory.batch = batch;
  if (common.mixed) memory.precision = MemoryOptions::Precision::mixed;
  plan.memory = training_memory(setting.model, memory);
  plan.memory.gradients =
      plan.memory.gradients + held * 4 * static_cast<double>(trainable_parameters(setting.model)) * Bytes{1};
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
  note_idle_options(map, setup, plan);
  return plan;
}

YamlMap block_map(const YamlValue& value, const std::vector<std::string>& own) {
  return value.map(joined_keys({training_keys(), communication_keys(), compression_keys(), kBlockKeys, own}));
}

double read_momentum(const YamlValue& value) {
  return value.number(0, 0.999999);
}

}  // namespace

Plan read_model_averaging(const YamlValue& value, const Setting& setting) {
  return read_block(block_map(value, {}), setting, std::nullopt);
}

Plan read_bmuf(const YamlValue& value, const Setting& setting) {
  const YamlMap map = block_map(value, {"block_momentum", "block_learning_rate", "form"});
  BlockFilter filter;
  filter.momentum = read_momentum(map.at("block_momentum", "a number from 0 to below 1"));
  if (const auto rate = map.maybe("block_learning_rate")) filter.learning_rate = rate->number(1e-6, 1e6);
  if (const auto form = map.maybe("form"))
    filter.form = static_cast<BlockFilter::Form>(form->one_of(block_form_names()));
  return read_block(map, setting, filter);
}

Plan read_diloco(const YamlValue& value, const Setting& setting) {
  const YamlMap map = block_map(value, {"outer_momentum", "outer_learning_rate"});
  BlockFilter filter;
  filter.form = BlockFilter::Form::nesterov;
  filter.momentum = read_momentum(map.at("outer_momentum", "a number from 0 to below 1"));
  filter.learning_rate = map.at("outer_learning_rate", "a number > 0").number(1e-6, 1e6);
  return read_block(map, setting, filter);
}

}  // namespace stepcast
