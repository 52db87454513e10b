#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/fields.hpp"
#include "strategies/local_sgd/block_plan.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {
namespace {

constexpr const char *kAverage = "average", *kFilter = "filter";

const Fields<BlockValidation>& validation_fields() {
  static const Fields<BlockValidation> fields{
      field("samples", &BlockValidation::samples, number(1), required("a number of samples >= 1"),
            "samples of the validation set; the workers share them"),
      field("every", &BlockValidation::every, number(1), required("a number of samples >= 1"),
            "training samples between two validations"),
      field("compute_factor", &BlockValidation::compute_factor, number(1e-6, 1e6),
            "multiplies the forward times of the layers"),
      field("spread", &BlockValidation::spread, boolean(),
            "`true`: every block takes its share of a validation; `false`: the whole validation runs after "
            "the block that reaches it")};
  return fields;
}

/// What all three strategies have, as written.
struct BlockKeys {
  BlockSetup setup;
  std::optional<BytesPerSecond> filter_bandwidth;
  std::optional<BucketSize> bucket;
};

Form<BlockValidation> validation() {
  Form<BlockValidation> form = mapping<validation_fields>();
  form.allowed = Allowed(KeyType::mapping, {}, {"samples", "every", "compute_factor", "spread"});
  return form;
}

Field<BlockKeys> of_training(const Field<BlockTraining>& one) {
  return part(&BlockKeys::setup, part(&BlockSetup::training, one));
}

const Fields<BlockKeys>& block_fields() {
  static const Fields<BlockKeys> fields{
      of_training(field("mini_batches", &BlockTraining::mini_batches, integer(1, 10'000'000),
                        required("mini-batches of a worker in a block, an integer >= 1"),
                        "mini-batches of a worker in a block")),
      part(&BlockKeys::setup, field("aggregation", &BlockSetup::aggregation, choice(aggregation_words()),
                                    "how the models are averaged")),
      of_training(field("aggregation_overhead", &BlockTraining::aggregation_overhead, duration(),
                        "time of a block that is neither transfer nor filter")),
      field("filter_bandwidth", &BlockKeys::filter_bandwidth, bandwidth(),
            otherwise("that of the trace's update"), "rate at which the filter reads and writes its arrays"),
      of_training(field("imbalance", &BlockTraining::imbalance, number(0, 100),
                        "delay of the slowest of several replicas, as a share of the time of a split")),
      part(&BlockKeys::setup, field("validation", &BlockSetup::validation, validation(), otherwise("none"),
                                    "forward passes over a validation set")),
      of_training(field("load_balancing", &BlockTraining::balanced, boolean(),
                        "whether the master assigns mini-batches by the workers' speed in the previous "
                        "block")),
      details({field("bucket", &BlockKeys::bucket, bucket_size(), otherwise("25 MiB"), kBucketMeaning)}),
      field<BlockKeys>({"workers_per_replica", Allowed(KeyType::integer, {}, {}, "a divisor of the workers"),
                        "1", "devices that train one replica by synchronous SGD"})};
  return fields;
}

/// Keys of all three strategies, followed by the keys of the filter.
Keys block_keys(const Keys& filter) {
  return joined_keys(
      {training_keys(), communication_keys(), compression_keys(), block_fields().keys(), filter});
}

const Keys& model_averaging_keys() {
  static const Keys keys = block_keys({});
  return keys;
}

/// The filter of `bmuf` as written.
struct MomentumFilterKeys {
  std::optional<double> momentum;  ///< empty: `by_workers`
  int blocks_without_momentum = 0;
  double learning_rate = 1;
  BlockFilter::Form form = BlockFilter::Form::classical;
};

const Fields<MomentumFilterKeys>& bmuf_fields() {
  static const Fields<MomentumFilterKeys> fields{
      field("block_momentum", &MomentumFilterKeys::momentum, or_word(number_below(0, 1), "by_workers"),
            required("a number from 0 to below 1, or by_workers"),
            "h of the filter; by_workers: 1 - block_learning_rate / (1.1 x number of replicas)"),
      field("block_momentum_after", &MomentumFilterKeys::blocks_without_momentum, integer(0, 10'000'000),
            "number of blocks at the start in which h is 0"),
      field("block_learning_rate", &MomentumFilterKeys::learning_rate, number(1e-6, 1e6), "z of the filter"),
      field("form", &MomentumFilterKeys::form, choice(block_form_words()), "form of the filter")};
  return fields;
}

const Keys& bmuf_keys() {
  static const Keys keys = block_keys(bmuf_fields().keys());
  return keys;
}

const Fields<BlockFilter>& diloco_fields() {
  static const Fields<BlockFilter> fields{
      field("outer_momentum", &BlockFilter::momentum, number_below(0, 1),
            required("a number from 0 to below 1"), "momentum of the outer optimizer"),
      field("outer_learning_rate", &BlockFilter::learning_rate, number(1e-6, 1e6), required("a number > 0"),
            "learning rate of the outer optimizer")};
  return fields;
}

const Keys& diloco_keys() {
  static const Keys keys = block_keys(diloco_fields().keys());
  return keys;
}

double parameter_bytes(const Model& model) {
  double elements = 0;
  for (const LayerGradients& layer : gradient_arrays(model)) {
    for (const std::int64_t array : layer) elements += array;
  }
  return 4 * elements;
}

int read_replica(const YamlMap& map, int workers) {
  const auto value = map.maybe("workers_per_replica");
  if (!value) return 1;
  const int size = value->integer(1, workers);
  if (workers % size != 0)
    value->refuse(fmt::format("{} workers cannot form replicas of {}; give a divisor", workers, size));
  return size;
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
  memory.gradients =
      memory.gradients + held_arrays(setup) * 4 * trainable_parameters(setting.model) * Bytes{1};
  return memory;
}

/// Notes keys that have no effect with one replica, or with one worker in each replica.
void note_ineffective_options(const YamlMap& map, const BlockSetup& setup, Plan& plan) {
  note_ineffective_compression(map, plan.ineffective_keys);
  if (plan.workers == 1) return;
  const bool inside = setup.workers_per_replica > 1, several = setup.workers_per_replica < plan.workers;
  const auto named = aggregation_words().of(setup.aggregation);
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

BlockKeys read_keys(const YamlMap& map, const Setting& setting, const TrainingOptions& training,
                    const std::optional<BlockFilter>& filter) {
  BlockKeys keys;
  read_fields(map, block_fields(), keys);
  BlockSetup& setup = keys.setup;
  setup.workers_per_replica = read_replica(map, setting.workers());
  if (setup.training.balanced && setup.workers_per_replica > 1)
    map.at("load_balancing").refuse("not supported with workers_per_replica above 1");
  setup.filters = filter.has_value();
  setup.training.filter = filter.value_or(BlockFilter{});
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
  return keys;
}

/// @param filter  none: plain averaging
Plan read_blocks(const YamlMap& map, const Setting& setting, const std::optional<BlockFilter>& filter,
                 int blocks_without_momentum = 0) {
  const TrainingOptions training = read_training_options(map);
  const BlockKeys keys = read_keys(map, setting, training, filter);
  BlockSetup setup = keys.setup;
  setup.training.blocks_without_momentum = blocks_without_momentum;
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), 1);
  setup.batch = batch;

  auto [workload, source] = make_workload(setting.model, setting.times(batch), training.compute_factor);
  const BucketSize bucket = keys.bucket.value_or(setup.workers_per_replica > 1 ? BucketSize{} : kWholeModel);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), bucket);
  workload.input = setup.batch * setting.sample_size;
  setup.array_seconds = array_work(workload, 1);
  if (keys.filter_bandwidth) {
    setup.array_seconds = setup.parameters / *keys.filter_bandwidth;
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
  MomentumFilterKeys keys;
  read_fields(map, bmuf_fields(), keys);
  BlockFilter filter{.learning_rate = keys.learning_rate, .form = keys.form};
  filter.momentum = keys.momentum
                        ? *keys.momentum
                        : momentum_by_replicas(setting.workers() / read_replica(map, setting.workers()),
                                               filter.learning_rate);
  return read_blocks(map, setting, filter, keys.blocks_without_momentum);
}

Plan read_diloco(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, diloco_keys());
  BlockFilter filter{.form = BlockFilter::Form::nesterov};
  read_fields(map, diloco_fields(), filter);
  return read_blocks(map, setting, filter);
}

std::vector<TimedArithmetic> averaging_arithmetic(const ArithmeticPlace& place) {
  return {{kAverage, true, place.sum_models, average_arithmetic(place.ranks)}};
}

std::vector<TimedArithmetic> filtering_arithmetic(const ArithmeticPlace& place) {
  const BlockFilter filter{.momentum = 0.5, .learning_rate = 1, .form = BlockFilter::Form::nesterov};
  return {{kFilter, true, place.sum_models, filter_arithmetic(filter, place.ranks)}};
}

}  // namespace

// The workers of all three exchange after a block only.

Strategy model_averaging_strategy() {
  return {.kind = "model_averaging",
          .what = "blocks of local SGD, then the mean of all models",
          .source =
              "R. McDonald, K. Hall, G. Mann, Distributed training strategies for the structured perceptron, "
              "NAACL 2010",
          .plan = read_model_averaging,
          .keys = model_averaging_keys(),
          .example = "{kind: model_averaging, mini_batches: 20}",
          .example_model = "small-cnn",
          .other_names = {"local_sgd"},
          .timed_arithmetic = averaging_arithmetic,
          .exchanges_every_step = false,
          .continues_without_failed = true};
}

Strategy bmuf_strategy() {
  return {.kind = "bmuf",
          .what = "blocks of local SGD, then block momentum on the mean of all models (Chen and Huo)",
          .source =
              "K. Chen, Q. Huo, Scalable training of deep learning machines by incremental block training "
              "with intra-block parallel optimization and blockwise model-update filtering, ICASSP 2016",
          .plan = read_bmuf,
          .keys = bmuf_keys(),
          .example = "{kind: bmuf, mini_batches: 20, block_momentum: 0.9}",
          .example_model = "small-cnn",
          .timed_arithmetic = filtering_arithmetic,
          .exchanges_every_step = false,
          .continues_without_failed = true};
}

Strategy diloco_strategy() {
  return {.kind = "diloco",
          .what = "blocks of local SGD, then Nesterov momentum on the mean of all models, for distant sites",
          .source =
              "A. Douillard et al., DiLoCo: distributed low-communication training of language models, "
              "arXiv:2311.08105",
          .plan = read_diloco,
          .keys = diloco_keys(),
          .example = "{kind: diloco, mini_batches: 20, outer_momentum: 0.9, outer_learning_rate: 0.7}",
          .example_model = "small-cnn",
          .timed_arithmetic = filtering_arithmetic,
          .exchanges_every_step = false,
          .continues_without_failed = true};
}

}  // namespace stepcast
