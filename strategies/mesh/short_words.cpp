#include <algorithm>
#include <utility>

#include "core/fields.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/mesh/spatial_axis.hpp"
#include "strategies/mesh/stages.hpp"

namespace stepcast {
namespace {

/// Options by the keys that every short word has.
MeshOptions read_short_options(const YamlMap& map) {
  MeshOptions options;
  options.group = read_group_options(map);
  options.gradient = options.group.training.element();
  options.recompute = read_recompute(map, options.order);
  return options;
}

/// The plan of a word whose devices share samples or layers. @param where  the key that is wrong if it does
/// not fit
Plan plan_group(const YamlMap& map, const YamlValue& where, const Setting& setting, MeshOptions options) {
  options.group_columns = true;
  return plan_mesh(map, {where, where, where, where}, setting, options);
}

/// Keys of a short word: those of groups of devices, `recompute`, and its own.
Keys short_keys(const Keys& own) {
  return joined_keys({group_keys(), recompute_keys(), own});
}

/// The size of an axis. @param meaning  what has it
Fields<Mesh> axis_size(std::string_view name, const std::string& meaning) {
  return {field(name, &Mesh::tensor, integer(1, kMostDevices), required(meaning + ", an integer >= 1"),
                lasting(meaning))};
}

const Fields<Mesh>& ways() {
  static const Fields<Mesh> fields = axis_size("ways", "devices that share a replica");
  return fields;
}

const Fields<Mesh>& machines() {
  static const Fields<Mesh> fields = axis_size("machines", "machines that share a replica");
  return fields;
}

/// Keys of a short word whose one key of its own is the size of an axis.
template <const Fields<Mesh>& (*size)()>
const Keys& axis_keys() {
  static const Keys keys = short_keys(joined_keys({size().keys(), {part_trace_key()}}));
  return keys;
}

template <const Fields<Mesh>& (*size)(), LayerDivision division>
Plan read_axis(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, axis_keys<size>());
  MeshOptions options = read_short_options(map);
  read_fields(map, size(), options.mesh);
  options.division = division;
  return plan_group(map, map.at(size().keys().front().name), setting, options);
}

const Keys& spatial_keys() {
  static const Keys keys = short_keys(
      joined_keys({{{"split", Allowed({KeyType::integer, KeyType::list}, {}, {}, "a divisor of the workers"),
                     "required", "devices a sample: 4 strips, or [2, 2] along each dimension"}},
                   position_keys(),
                   {part_trace_key()}}));
  return keys;
}

Plan read_spatial(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, spatial_keys());
  MeshOptions options = read_short_options(map);
  const YamlValue split = map.at("split", "devices a sample, such as 4 or [2, 2]");
  read_positions(map, split, setting.model, options);
  return plan_group(map, split, setting, options);
}

const Keys& mixture_keys() {
  static const Keys keys = short_keys(joined_keys({ways().keys(), expert_keys()}));
  return keys;
}

Plan read_mixture_of_experts(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, mixture_keys());
  MeshOptions options = read_short_options(map);
  read_fields(map, ways(), options.mesh);
  options.mesh.expert = std::exchange(options.mesh.tensor, 1);
  read_experts(map, setting.model, options);
  check_groups(setting, options.mesh.expert, map.at("ways"));
  return plan_group(map, map.at(map.has("experts") ? "experts" : "ways"), setting, options);
}

const Keys& zero_keys() {
  static const Keys keys =
      joined_keys({training_keys(),
                   communication_keys(),
                   keys_named(group_keys(), {"bucket", "overlap", "accumulation"}),
                   recompute_keys(),
                   {{"stage", integer(1, 3), "required",
                     "1: optimizer state is partitioned; 2: gradients too; 3: parameters too"}}});
  return keys;
}

Plan read_zero(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, zero_keys());
  MeshOptions options = read_short_options(map);
  const YamlValue stage = map.at("stage", "1, 2 or 3");
  options.shard = static_cast<MemoryOptions::Zero>(stage.integer(1, 3));
  options.shard_ways = setting.workers();
  options.scatters = "with kind: zero";
  return plan_mesh(map, {stage, stage, stage, stage}, setting, options);
}

void read_zero_stage(const YamlValue& value, MeshOptions& options) {
  options.shard = static_cast<MemoryOptions::Zero>(value.integer(0, 2));
  if (options.shard != MemoryOptions::Zero::none) options.scatters = "with zero: " + value.text();
}

const Fields<MeshOptions>& pipeline_fields() {
  using Options = MeshOptions;
  const Form<std::int64_t> count = integer(1, kMostDevices);
  static const Fields<Options> fields{
      part(&Options::mesh,
           field("stages", &Mesh::pipeline, count, required("an integer >= 1"), "stages of layers")),
      part(&Options::group,
           field("micro_batches", &GroupOptions::micro_batches, count, "micro-batches in a step")),
      part(&Options::mesh, field("tensor", &Mesh::tensor, count, "devices that share the layers of a stage")),
      field<Options>({"zero", integer(0, 2), "0", "ZeRO stage over the replicas of a stage"},
                     read_zero_stage)};
  return fields;
}

const Keys& pipeline_keys() {
  static const Keys keys = [] {
    Keys all = short_keys(joined_keys({pipeline_fields().keys(), {part_trace_key()}, stage_keys()}));
    // The reader accepts this key of other strategies to say which key to use.
    std::ranges::find(all, "accumulation", &Key::name)->meaning = "not valid: give micro_batches";
    return all;
  }();
  return keys;
}

Plan read_pipeline(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, pipeline_keys());
  MeshOptions options = read_short_options(map);
  read_fields(map, pipeline_fields(), options);
  read_stages(map, "micro_batches", options);
  if (map.has("accumulation"))
    map.at("accumulation").refuse("not valid with kind: pipeline; give micro_batches");
  const YamlValue stages = map.at("stages");
  options.shard_ways = std::max(1, setting.workers() / options.mesh.pipeline / options.mesh.tensor);
  const YamlValue tensor = map.has("tensor") ? map.at("tensor") : stages;
  return plan_mesh(map, {stages, stages, tensor, stages}, setting, options);
}

}  // namespace

Strategy spatial_strategy() {
  return {
      .kind = "spatial",
      .what =
          "height and width of each sample are partitioned over the devices of a group, with halo exchanges",
      .source =
          "N. Dryden et al., Improving strong-scaling of CNN training by exploiting finer-grained "
          "parallelism, IPDPS 2019",
      .plan = read_spatial,
      .keys = spatial_keys(),
      .example = "{kind: spatial, split: [2, 2]}",
      .example_model = "small-mesh"};
}

Strategy zero_strategy() {
  return {
      .kind = "zero",
      .what =
          "data-parallel SGD; the workers partition optimizer state, gradients or parameters (stages 1 to 3)",
      .source =
          "S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, SC "
          "2020",
      .plan = read_zero,
      .keys = zero_keys(),
      .example = "{kind: zero, stage: 2}",
      .example_model = "small-cnn",
      .other_names = {"fsdp"}};
}

Strategy filter_parallel_strategy() {
  return {
      .kind = "filter_parallel",
      .what = "filters of each layer are partitioned over the devices of a group",
      .source =
          "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997; "
          "N. Dryden et al., Channel and filter parallelism for large-scale CNN training, SC 2019",
      .plan = read_axis<ways, LayerDivision::filters>,
      .keys = axis_keys<ways>(),
      .example = "{kind: filter_parallel, ways: 2}",
      .example_model = "small-cnn"};
}

Strategy tensor_strategy() {
  return {.kind = "tensor",
          .what = "transformer blocks are partitioned over the devices of a group, by heads and hidden units",
          .source =
              "M. Shoeybi et al., Megatron-LM: training multi-billion parameter language models using model "
              "parallelism, arXiv:1909.08053",
          .plan = read_axis<ways, LayerDivision::blocks>,
          .keys = axis_keys<ways>(),
          .example = "{kind: tensor, ways: 2}",
          .example_model = "small-transformer",
          .other_names = {"megatron"}};
}

Strategy mixture_of_experts_strategy() {
  return {.kind = "mixture_of_experts",
          .what = "data parallelism with experts that are partitioned over the devices of a group",
          .source =
              "D. Lepikhin et al., GShard: scaling giant models with conditional computation and automatic "
              "sharding, ICLR 2021",
          .plan = read_mixture_of_experts,
          .keys = mixture_keys(),
          .example = "{kind: mixture_of_experts, ways: 2, experts: 4}",
          .example_model = "small-transformer",
          .other_names = {"moe"}};
}

Strategy model_parallel_strategy() {
  return {.kind = "model_parallel",
          .what = "a network is partitioned over machines (DistBelief)",
          .source = "J. Dean et al., Large scale distributed deep networks, NIPS 2012",
          .plan = read_axis<machines, LayerDivision::machines>,
          .keys = axis_keys<machines>(),
          .example = "{kind: model_parallel, machines: 2}",
          .example_model = "small-cnn"};
}

Strategy pipeline_strategy() {
  return {
      .kind = "pipeline",
      .what = "stages of layers, with data and tensor parallelism inside each stage",
      .source =
          "Y. Huang et al., GPipe, NeurIPS 2019; D. Narayanan et al., PipeDream, SOSP 2019; D. Narayanan et "
          "al., Efficient large-scale language model training on GPU clusters using Megatron-LM, SC 2021",
      .plan = read_pipeline,
      .keys = pipeline_keys(),
      .example = "{kind: pipeline, stages: 2, micro_batches: 2}",
      .example_model = "small-transformer",
      .other_names = {"gpipe"},
      .exchanges_every_step = false};
}

}  // namespace stepcast
