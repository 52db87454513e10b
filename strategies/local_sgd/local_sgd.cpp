#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "strategies/local_sgd/block_plan.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {
namespace {

constexpr const char *kAverage = "average", *kFilter = "filter";

const Keys& validation_keys() {
  static const Keys keys{
      {"samples", "number", ">= 1", "required", "samples of the validation set; the workers share them"},
      {"every", "number", ">= 1", "required", "training samples between two validations"},
      {"compute_factor", "number", "1e-6 to 1e6", "1", "multiplies the forward times of the layers"},
      {"spread", "boolean", "", "true",
       "`true`: every block takes its share of a validation; `false`: the whole validation runs after the "
       "block that reaches it"}};
  return keys;
}

/// Keys of all three strategies, followed by the keys of the filter.
Keys block_keys(const Keys& filter) {
  return joined_keys(
      {training_keys(),
       communication_keys(),
       compression_keys(),
       {{"mini_batches", "integer", "1 to 1e7", "required", "mini-batches of a worker in a block"},
        {"aggregation", "name", "tree, flat, all_reduce", "tree", "how the models are averaged"},
        {"aggregation_overhead", "time", ">= 0", "0 s",
         "time of a block that is neither transfer nor filter"},
        {"filter_bandwidth", "bandwidth", "> 0", "that of the trace's update",
         "rate at which the filter reads and writes its arrays"},
        {"imbalance", "number", "0 to 100", "0",
         "delay of the slowest of several replicas, as a share of the time of a split"},
        {"validation", "mapping", "samples, every, compute_factor, spread", "none",
         "forward passes over a validation set", validation_keys},
        {"load_balancing", "boolean", "", "false",
         "whether the master assigns mini-batches by the workers' speed in the previous block"},
        bucket_key(),
        {"workers_per_replica", "integer", "a divisor of the workers", "1",
         "devices that train one replica by synchronous SGD"}},
       filter});
}

const Keys& model_averaging_keys() {
  static const Keys keys = block_keys({});
  return keys;
}

const Keys& bmuf_keys() {
  static const Keys keys = block_keys(
      {{"block_momentum", "number or name", "0 to below 1, by_workers", "required",
        "h of the filter; by_workers: 1 - block_learning_rate / (1.1 x number of replicas)"},
       {"block_momentum_after", "integer", "0 to 1e7", "0", "number of blocks at the start in which h is 0"},
       {"block_learning_rate", "number", "1e-6 to 1e6", "1", "z of the filter"},
       {"form", "name", "classical, nesterov", "classical", "form of the filter"}});
  return keys;
}

const Keys& diloco_keys() {
  static const Keys keys = block_keys(
      {{"outer_momentum", "number", "0 to below 1", "required", "momentum of the outer optimizer"},
       {"outer_learning_rate", "number", "1e-6 to 1e6", "required", "learning rate of the outer optimizer"}});
  return keys;
}

BlockValidation read_validation(const YamlValue& value) {
  const YamlMap map = read_map(value, validation_keys());
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
    value->refuse(fmt::format("{} workers cannot form replicas of {}; give a divisor", workers, size));
  return size;
}

void read_training(const YamlMap& map, BlockSetup& setup) {
  BlockTraining& training = setup.training;
  training.mini_batches = static_cast<int>(
      map.at("mini_batches", "mini-batches of a worker in a block, an integer >= 1").integer(1, 10'000'000));
  if (const auto how = map.maybe("aggregation"))
    setup.aggregation = static_cast<Aggregation>(how->one_of(aggregation_names()));
  if (const auto blocks = map.maybe("block_momentum_after"))
    training.blocks_without_momentum = static_cast<int>(blocks->integer(0, 10'000'000));
  if (const auto time = map.maybe("aggregation_overhead")) training.aggregation_overhead = time->seconds();
  if (const auto share = map.maybe("imbalance")) training.imbalance = share->number(0, 100);
  if (const auto yes = map.maybe("load_balancing")) {
    training.balanced = yes->boolean();
    if (training.balanced && setup.workers_per_replica > 1)
      yes->refuse("not supported with workers_per_replica above 1");
  }
  if (const auto validation = map.maybe("validation")) setup.validation = read_validation(*validation);
}

/// Arrays of all parameters that the fullest device keeps in addition to training: W and D of the filter
/// (only W where compressed updates are averaged without a filter), and the quantization error of the last
/// update.
double held_arrays(const BlockSetup& setup) {
  const Compression kind = setup.compression.kind;
  const int filter = setup.filters ? 2 : kind == Compression::none ? 0 : 1;
  const int error = kind == Compression::one_bit || kind == Compression::top_k ? 1 : 0;
  return static_cast<double>(filter + error) / setup.workers_per_replica;
}

Memory memory_of(const Setting& setting, const TrainingOptions& training, std::int64_t batch,
                 const BlockSetup& setup) {
  Memory memory = training_memory(setting.model, memory_options(setting, training, batch));
  memory.gradients = memory.gradients + held_arrays(setup) * 4 *
                                            static_cast<double>(trainable_parameters(setting.model)) *
                                            Bytes{1};
  return memory;
}

/// Notes keys that have no effect with one replica, or with one worker in each replica.
void note_ineffective_options(const YamlMap& map, const BlockSetup& setup, Plan& plan) {
  note_ineffective_compression(map, plan.ineffective_keys);
  if (plan.workers == 1) return;
  const bool inside = setup.workers_per_replica > 1, several = setup.workers_per_replica < plan.workers;
  const auto named = aggregation_names()[static_cast<std::size_t>(setup.aggregation)];
  const bool top_k = setup.compression.kind == Compression::top_k;
  note_ineffective_communication(map, top_k ? "with compression: top_k" : "with aggregation: " + named,
                                 inside, plan);
  if (!inside)
    note_ineffective(map, {"bucket", "compute_slowdown"}, "with workers_per_replica: 1",
                     plan.ineffective_keys);
  if (!several) {
    note_ineffective(
        map, {"aggregation", "aggregation_overhead", "filter_bandwidth", "imbalance", "load_balancing"},
        "with one replica", plan.ineffective_keys);
    return;
  }
  if (setup.training.mini_batches == 1)
    note_ineffective(map, {"load_balancing"}, "with mini_batches: 1", plan.ineffective_keys);
}

BlockSetup read_setup(const YamlMap& map, const Setting& setting, const TrainingOptions& training,
                      const std::optional<BlockFilter>& filter) {
  BlockSetup setup;
  setup.workers_per_replica = read_replica(map, setting.workers());
  setup.filters = filter.has_value();
  setup.training.filter = filter.value_or(BlockFilter{});
  read_training(map, setup);
  setup.training.blocks = setting.steps;
  setup.training.prefetch = setting.prefetch;
  setup.training.step_overhead = training.step_overhead;
  setup.communication = read_communication(map);
  setup.compression = read_compression_options(map, setting);
  if (setup.compression.kind != Compression::none && setup.aggregation != Aggregation::all_reduce)
    map.at("compression")
        .refuse(
            "only valid with aggregation: all_reduce; through a master, an update would be restored and "
            "quantized again at every hop");
  setup.parameters = {parameter_bytes(setting.model)};
  setup.epoch_samples = setting.epoch_samples;
  return setup;
}

/// @param filter  none: plain averaging
Plan read_blocks(const YamlMap& map, const Setting& setting, const std::optional<BlockFilter>& filter) {
  const TrainingOptions training = read_training_options(map);
  BlockSetup setup = read_setup(map, setting, training, filter);
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), 1);
  setup.batch = static_cast<double>(batch);

  auto [workload, source] = make_workload(setting.model, setting.times(batch), training.compute_factor);
  const Bytes bucket = read_bucket(map, setup.workers_per_replica > 1 ? kDefaultBucket : kWholeModel);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), bucket);
  workload.input = setup.batch * setting.sample_size;
  setup.array_seconds = array_work(workload, 1);
  if (const auto rate = map.maybe("filter_bandwidth")) {
    setup.array_seconds = setup.parameters / rate->bytes_per_second();
  } else if (const auto time = setting.measured_time(filter ? kFilter : kAverage)) {
    setup.array_seconds = {time->value / (filter ? kFilterArrays : kAverageArrays)};
  }

  Plan plan = block_plan(setting.platform, setting.devices, std::move(workload), setup);
  finish_plan(setting, training,
              {std::move(source), batch, plan.samples_a_step, memory_of(setting, training, batch, setup),
               training.mixed ? "precision: mixed" : "", 1, setup.compression.kind != Compression::none},
              plan);
  if (!setup.compression.flag.empty()) plan.flags.push_back(setup.compression.flag);
  if (setup.compression.kind != Compression::none)
    plan.simulated_only = "compressed updates are simulated only";
  note_ineffective_options(map, setup, plan);
  return plan;
}

double read_momentum(const YamlValue& value) {
  return value.number(0, 0.999999);
}

Plan read_model_averaging(const YamlValue& value, const Setting& setting) {
  return read_blocks(read_map(value, model_averaging_keys()), setting, std::nullopt);
}

/// Chen and Huo, ICASSP 2016, section 3.3: C = z / (N (1 - h)) is "slightly larger than 1". Their momenta for
/// 16, 32 and 64 GPUs, 0.94, 0.97 and 0.986, are those of C = 1.1, as rounded. One replica is not filtered.
double momentum_by_replicas(int replicas, double learning_rate) {
  constexpr double kContribution = 1.1;
  return replicas == 1 ? 0 : std::max(0.0, 1 - learning_rate / (kContribution * replicas));
}

Plan read_bmuf(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, bmuf_keys());
  BlockFilter filter;
  const YamlValue momentum = map.at("block_momentum", "a number from 0 to below 1, or by_workers");
  if (const auto rate = map.maybe("block_learning_rate")) filter.learning_rate = rate->number(1e-6, 1e6);
  filter.momentum = momentum.text() == "by_workers"
                        ? momentum_by_replicas(setting.workers() / read_replica(map, setting.workers()),
                                               filter.learning_rate)
                        : read_momentum(momentum);
  if (const auto form = map.maybe("form"))
    filter.form = static_cast<BlockFilter::Form>(form->one_of(block_form_names()));
  return read_blocks(map, setting, filter);
}

Plan read_diloco(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, diloco_keys());
  BlockFilter filter;
  filter.form = BlockFilter::Form::nesterov;
  filter.momentum = read_momentum(map.at("outer_momentum", "a number from 0 to below 1"));
  filter.learning_rate = map.at("outer_learning_rate", "a number > 0").number(1e-6, 1e6);
  return read_blocks(map, setting, filter);
}

std::vector<TimedArithmetic> averaging_arithmetic(const ArithmeticPlace& place) {
  return {{kAverage, true, place.sum_models, average_arithmetic(place.ranks)}};
}

std::vector<TimedArithmetic> filtering_arithmetic(const ArithmeticPlace& place) {
  const BlockFilter filter{.momentum = 0.5, .learning_rate = 1, .form = BlockFilter::Form::nesterov};
  return {{kFilter, true, place.sum_models, filter_arithmetic(filter, place.ranks)}};
}

/// What the strategies of blocks have in common: their workers exchange after a block only.
Strategy with_blocks(Strategy strategy) {
  strategy.exchanges_every_step = false;
  strategy.continues_without_failed = true;
  return strategy;
}

}  // namespace

Strategy model_averaging_strategy() {
  return with_blocks(
      {"model_averaging",
       "blocks of local SGD, then the mean of all models",
       "R. McDonald, K. Hall, G. Mann, Distributed training strategies for the structured perceptron, NAACL "
       "2010",
       read_model_averaging,
       model_averaging_keys(),
       "{kind: model_averaging, mini_batches: 20}",
       "small-cnn",
       {"local_sgd"},
       averaging_arithmetic});
}

Strategy bmuf_strategy() {
  return with_blocks(
      {"bmuf",
       "blocks of local SGD, then block momentum on the mean of all models (Chen and Huo)",
       "K. Chen, Q. Huo, Scalable training of deep learning machines by incremental block training with "
       "intra-block parallel optimization and blockwise model-update filtering, ICASSP 2016",
       read_bmuf,
       bmuf_keys(),
       "{kind: bmuf, mini_batches: 20, block_momentum: 0.9}",
       "small-cnn",
       {},
       filtering_arithmetic});
}

Strategy diloco_strategy() {
  return with_blocks(
      {"diloco",
       "blocks of local SGD, then Nesterov momentum on the mean of all models, for distant sites",
       "A. Douillard et al., DiLoCo: distributed low-communication training of language models, "
       "arXiv:2311.08105",
       read_diloco,
       diloco_keys(),
       "{kind: diloco, mini_batches: 20, outer_momentum: 0.9, outer_learning_rate: 0.7}",
       "small-cnn",
       {},
       filtering_arithmetic});
}

}  // namespace stepcast
