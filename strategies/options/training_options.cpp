#include "strategies/options/training_options.hpp"

#include <algorithm>
#include <cctype>

#include "models/cost/activation_memory.hpp"

namespace stepcast {
namespace {

/// Factor on the times of one thread where `threads` share the work and a part of it is serial.
/// Source: G. Amdahl, "Validity of the single processor approach to achieving large scale computing
/// capabilities", AFIPS 1967.
double threads_factor(const YamlMap& map) {
  const auto threads = map.maybe("threads"), serial = map.maybe("serial_share");
  const double undivided = serial ? serial->number(0, 1) : 0;
  if (serial && !threads) serial->refuse("only valid with threads");
  return undivided + (1 - undivided) / (threads ? static_cast<double>(threads->integer(1, 4096)) : 1);
}

void scale(std::vector<LayerSeconds>& layers, double factor) {
  for (LayerSeconds& layer : layers) {
    layer = {layer.forward * factor, layer.backward * factor, layer.update * factor};
  }
}

}  // namespace

const Keys& training_keys() {
  static const Keys keys{
      {"kind", "name", "stepcast show strategies lists them", "required", "the strategy"},
      {"like", "name or path", "", "none", "software stack whose values hold where the scenario gives none"},
      {"compute_factor", "number", "1e-6 to 1e6", "1", "multiplies all layer times"},
      {"step_overhead", "time", ">= 0", "0 s", "time of a step outside the layers, such as input work"},
      {"precision", "name", "f32, mixed", "f32",
       "mixed: gradients and activations have 2 bytes in messages and in memory"},
      {"threads", "integer", "1 to 4096", "1", "threads of a device, for a trace of one thread"},
      {"serial_share", "number", "0 to 1", "0", "share of the work that threads do not divide"},
      {"compute_slowdown", "number", "1 to 100", "1", "factor on compute while a collective runs beside it"},
      {"compression", "name", "none, one_bit, fp16, top_k", "none",
       "compression of gradients; most strategies accept only none"}};
  return keys;
}

TrainingOptions read_training_options(const YamlMap& map) {
  TrainingOptions options;
  if (const auto stack = map.maybe("like")) stack->text();  // the scenario's reader has set its values
  if (const auto factor = map.maybe("compute_factor")) options.compute_factor = factor->number(1e-6, 1e6);
  options.compute_factor *= threads_factor(map);
  if (const auto overhead = map.maybe("step_overhead")) options.step_overhead = overhead->seconds();
  if (const auto precision = map.maybe("precision")) options.mixed = precision->one_of({"f32", "mixed"}) == 1;
  if (const auto value = map.maybe("compute_slowdown")) options.compute_slowdown = value->number(1, 100);
  return options;
}

Key bucket_key() {
  return {"bucket", "bytes or name", ">= 1 B, tensor, model", "25 MiB", "gradients that one all-reduce sums"};
}

Bytes read_bucket(const YamlMap& map, Bytes otherwise) {
  const auto value = map.maybe("bucket");
  if (!value) return otherwise;
  const std::string& text = value->node().text;
  if (text == "tensor") return {0};
  if (text == "model") return kWholeModel;
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])))
    value->expected("a size such as \"4 MiB\", tensor or model");
  return value->bytes(1);
}

TimedWorkload make_workload(const Model& model, LayerTimes times, double compute_factor) {
  Workload workload;
  for (const Layer& layer : model.layers) workload.layer_names.push_back(layer.name);
  workload.statistics.resize(model.layers.size());
  scale(times.median, compute_factor);
  for (auto& sample : times.samples) scale(sample, compute_factor);
  workload.median = std::move(times.median);
  workload.samples = std::move(times.samples);
  workload.sample_ranks = times.ranks;
  workload.update_arrays = times.update_arrays;
  return {std::move(workload), {std::move(times.kind), std::move(times.flags)}};
}

Seconds array_work(const Workload& workload, double arrays) {
  return array_work(workload, {0, workload.layers()}, arrays);
}

Seconds array_work(const Workload& workload, LayerRange layers, double arrays) {
  double update = 0;
  for (int i = layers.first; i < layers.last; ++i)
    update += workload.median[static_cast<std::size_t>(i)].update;
  return {update * arrays / workload.update_arrays};
}

void swap_to_host(const Model& model, const ActivationOffload& swap, Workload& workload) {
  std::vector<double> copy;  // seconds
  for (const double elements : copied_elements(model, swap.memory)) {
    const Bytes size = static_cast<double>(swap.memory.batch) * elements * swap.element;
    copy.push_back((size / swap.bandwidth).value);
  }
  const auto lengthen = [&](std::vector<LayerSeconds>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].forward = std::max(layers[i].forward, copy[i]);
      layers[i].backward = std::max(layers[i].backward, copy[i]);
    }
  };
  lengthen(workload.median);
  for (auto& sample : workload.samples) lengthen(sample);
}

void finish_plan(const Setting& setting, const TrainingOptions& training, const StepFacts& step, Plan& plan) {
  plan.trace_kind = step.times.kind;
  plan.flags = step.times.flags;
  plan.no_arithmetic = step.no_arithmetic;
  plan.compute_slowdown = training.compute_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.batch_per_worker = step.batch_per_worker;
  plan.samples_a_step = step.samples_a_step;
  plan.memory = step.memory;
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
}

MemoryOptions memory_options(const Setting& setting, const TrainingOptions& training, std::int64_t batch) {
  MemoryOptions memory = setting.memory;
  memory.batch = batch;
  memory.bucket_copies = false;
  if (training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  return memory;
}

bool has_dropout(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::dropout; });
}

Bytes batch_norm_statistics(const Layer& layer) {
  if (layer.kind != LayerKind::batch_norm) return {};
  return {2.0 * 4 * static_cast<double>(layer.output.front())};
}

}  // namespace stepcast
