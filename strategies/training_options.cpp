#include "strategies/training_options.hpp"

#include <cctype>

namespace stepcast {
namespace {

AllReduceChoice read_all_reduce(const YamlMap& map) {
  AllReduceChoice choice;
  if (const auto value = map.maybe("all_reduce"))
    choice.algorithm = static_cast<Algorithm>(value->one_of(algorithm_names()));
  if (const auto value = map.maybe("channels")) choice.channels = static_cast<int>(value->integer(1, 64));
  if (const auto value = map.maybe("inside_node"))
    choice.local = static_cast<LocalPart>(value->one_of(local_part_names()));
  if (const auto value = map.maybe("between_nodes")) {
    choice.network = static_cast<NetworkPart>(value->one_of(network_part_names()));
  }
  if (const auto value = map.maybe("tree_piece")) choice.tree_piece = value->bytes(1);
  return choice;
}

/// What threads leave of one thread's time, if a share of the work is not divided.
/// Source: G. Amdahl, "Validity of the single processor approach to achieving large scale computing
/// capabilities", AFIPS 1967.
double threads_factor(const YamlMap& map) {
  const auto threads = map.maybe("threads"), serial = map.maybe("serial_share");
  const double undivided = serial ? serial->number(0, 1) : 0;
  if (serial && !threads) serial->refuse("belongs to threads");
  return undivided + (1 - undivided) / (threads ? static_cast<double>(threads->integer(1, 4096)) : 1);
}

void scale(std::vector<LayerSeconds>& layers, double factor) {
  for (LayerSeconds& layer : layers) {
    layer = {layer.forward * factor, layer.backward * factor, layer.update * factor};
  }
}

}  // namespace

const std::vector<std::string>& training_keys() {
  static const std::vector<std::string> keys{"kind",    "compute_factor", "step_overhead",    "precision",
                                             "threads", "serial_share",   "compute_slowdown", "compression"};
  return keys;
}

TrainingOptions read_training_options(const YamlMap& map) {
  TrainingOptions options;
  if (const auto factor = map.maybe("compute_factor")) options.compute_factor = factor->number(1e-6, 1e6);
  options.compute_factor *= threads_factor(map);
  if (const auto overhead = map.maybe("step_overhead")) options.step_overhead = overhead->seconds();
  if (const auto precision = map.maybe("precision")) options.mixed = precision->one_of({"f32", "mixed"}) == 1;
  if (const auto value = map.maybe("compute_slowdown")) options.compute_slowdown = value->number(1, 100);
  return options;
}

const std::vector<std::string>& communication_keys() {
  static const std::vector<std::string> keys{"all_reduce", "channels", "inside_node", "between_nodes",
                                             "tree_piece", "streams",  "in_flight"};
  return keys;
}

CommunicationOptions read_communication(const YamlMap& map) {
  CommunicationOptions options;
  options.all_reduce = read_all_reduce(map);
  if (const auto value = map.maybe("streams")) options.streams = static_cast<int>(value->integer(1, 1024));
  options.in_flight = options.streams;
  if (const auto value = map.maybe("in_flight"))
    options.in_flight = static_cast<int>(value->integer(1, 1024));
  return options;
}

void apply(const CommunicationOptions& options, Communicator& communicator) {
  communicator.all_reduce = options.all_reduce;
  communicator.streams = options.streams;
  communicator.in_flight = options.in_flight;
  communicator.as_asked = true;
}

Bytes read_bucket(const YamlValue& value) {
  if (value.node().text == "tensor") return {0};
  if (value.node().text == "model") return {1e300};
  const bool word =
      !value.node().text.empty() && std::isalpha(static_cast<unsigned char>(value.node().text[0]));
  if (word) value.expected("a size such as \"4 MiB\", tensor or model");
  return value.bytes(1);
}

std::vector<std::string> joined_keys(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Workload make_workload(const Model& model, LayerTimes times, double compute_factor, Plan& plan) {
  Workload workload;
  for (const Layer& layer : model.layers) workload.layer_names.push_back(layer.name);
  workload.statistics.resize(model.layers.size());
  scale(times.median, compute_factor);
  for (auto& sample : times.samples) scale(sample, compute_factor);
  workload.median = std::move(times.median);
  workload.samples = std::move(times.samples);
  workload.sample_ranks = times.ranks;
  plan.trace_kind = times.kind;
  plan.flags = std::move(times.flags);
  return workload;
}

Seconds array_work(const Workload& workload, double arrays) {
  double update = 0;
  for (const LayerSeconds& layer : workload.median) update += layer.update;
  return {update * arrays / kUpdateArrays};
}

}  // namespace stepcast
