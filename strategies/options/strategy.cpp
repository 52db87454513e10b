#include "strategies/options/strategy.hpp"

#include <algorithm>

#include "core/fields.hpp"
#include "models/cost/memory_options.hpp"
#include "models/layer_times/compression_times.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

void scale(std::vector<LayerSeconds>& layers, double factor) {
  for (LayerSeconds& layer : layers) {
    layer = {layer.forward * factor, layer.backward * factor, layer.update * factor};
  }
}

/// What every strategy may have, as written.
struct TrainingKeys {
  double compute_factor = 1;
  Seconds step_overhead;
  bool mixed = false;
  int threads = 1;
  double serial_share = 0;
  double compute_slowdown = 1;
};

void check_training(const YamlMap& map, TrainingKeys&) {
  if (map.has("serial_share") && !map.has("threads"))
    map.at("serial_share").refuse("only valid with threads");
}

const Fields<TrainingKeys>& training_fields() {
  static const Fields<TrainingKeys> fields{
      {field<TrainingKeys>({"kind", Allowed(KeyType::name, {}, {}, "stepcast show strategies lists them"),
                            "required", "the strategy"}),
       checked<TrainingKeys>("like", text({KeyType::name, KeyType::path}), otherwise("none"),
                             "software stack, whose values hold for keys that the scenario does not give"),
       field("compute_factor", &TrainingKeys::compute_factor, number(1e-6, 1e6),
             "multiplies all layer times"),
       checked<TrainingKeys>("network_rate", bandwidth(), otherwise("none"),
                             "most that the threads of a host move between a NIC and its memory, where a "
                             "library uses sockets"),
       checked<TrainingKeys>("connection_rate", bandwidth(), otherwise("none"),
                             "most that one connection of two hosts moves; a host has one to each other"),
       field("step_overhead", &TrainingKeys::step_overhead, duration(),
             "time of a step outside the layers, such as input work"),
       checked<TrainingKeys>("host_operation", duration(),
                             otherwise("PyTorch's 35 us; 0 s with `like` and `compute_factor`"),
                             "with `trace: derived`: time in which the host issues one operator of the "
                             "framework to a GPU"),
       field("precision", &TrainingKeys::mixed, choice<bool>({{"f32", false}, {"mixed", true}}),
             "mixed: gradients and activations have 2 bytes in messages and in memory"),
       field("threads", &TrainingKeys::threads, integer(1, 4096),
             "threads of a device, for a trace of one thread"),
       field("serial_share", &TrainingKeys::serial_share, number(0, 1),
             "share of the work that is not divided among the threads"),
       field("compute_slowdown", &TrainingKeys::compute_slowdown, number(1, 100),
             "factor on the time of compute during a collective"),
       checked<TrainingKeys>("compression", choice(compression_words()), otherwise("none"),
                             "compression of gradients; most strategies accept only none")},
      check_training};
  return fields;
}

/// Factor on the times of one thread where `threads` share the work and a part of it is serial.
/// Source: G. Amdahl, "Validity of the single processor approach to achieving large scale computing
/// capabilities", AFIPS 1967.
double threads_factor(const TrainingKeys& keys) {
  return keys.serial_share + (1 - keys.serial_share) / keys.threads;
}

}  // namespace

const Keys& training_keys() {
  return training_fields().keys();
}

TrainingOptions read_training_options(const YamlMap& map) {
  TrainingKeys keys;
  read_fields(map, training_fields(), keys);
  TrainingOptions options;
  options.compute_factor = keys.compute_factor * threads_factor(keys);
  options.step_overhead = keys.step_overhead;
  options.mixed = keys.mixed;
  options.compute_slowdown = keys.compute_slowdown;
  return options;
}

TimedWorkload make_workload(const Model& model, LayerTimes times, double compute_factor) {
  Workload workload;
  for (const Layer& layer : model.layers) workload.layer_names.push_back(layer.name);
  workload.statistics.resize(model.layers.size());
  scale(times.median, compute_factor);
  for (auto& sample : times.samples) scale(sample, compute_factor);
  workload.median = std::move(times.median);
  workload.samples = std::move(times.samples);
  workload.host = std::move(times.host);
  workload.sample_ranks = times.ranks;
  workload.update_arrays = times.update_arrays;
  return {std::move(workload), {std::move(times.kind), std::move(times.flags)}};
}

Arithmetic delivered(Array from, Array to) {
  return [from, to](Arrays& arrays) { std::ranges::copy(arrays.of(from), arrays.of(to).begin()); };
}

Seconds array_work(const Workload& workload, double arrays) {
  return array_work(workload, {0, workload.layers()}, arrays);
}

Seconds array_work(const Workload& workload, LayerRange layers, double arrays) {
  double update = 0;
  for (int i = layers.first; i < layers.last; ++i) update += workload.median[i].update;
  return {update * arrays / workload.update_arrays};
}

void swap_to_host(const Model& model, const ActivationOffload& swap, Workload& workload) {
  std::vector<double> copy;  // seconds
  for (const double elements : copied_elements(model, swap.memory)) {
    const Bytes size = swap.memory.batch * elements * swap.element;
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
  plan.compute_slowdown = setting.measured.compute_slowdown.value_or(training.compute_slowdown);
  plan.load_slowdown = setting.load_slowdown;
  plan.load_data = setting.sample_size.value > 0;
  plan.steps = setting.steps;
  plan.batch_per_worker = step.batch_per_worker;
  plan.samples_of_pass = step.batch_per_worker / step.micro_batches;
  plan.samples_a_step = step.samples_a_step;
  plan.compresses = step.compresses;
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
  return has_layers(model, LayerKind::dropout);
}

Bytes batch_norm_statistics(const Layer& layer) {
  if (layer.kind != LayerKind::batch_norm) return {};
  return {2.0 * 4 * layer.output.front()};
}

namespace {

constexpr auto kLoneRanks = "where each rank counts as a node";

/// Collectives of the plan on communicators that follow the scenario's options.
struct Usage {
  int collectives = 0;
  bool all_reduces = false;
  bool rings = false;  ///< reduce-scatters and all-gathers, which are rings
  bool rings_over_nodes_of_several = false;
  bool nodes_of_several = false, several_nodes = false;
};

Usage usage_of(const Plan& plan) {
  Usage usage;
  for (const Collective& one : plan.collectives) {
    const Communicator& ranks = communicator_of(plan, one);
    if (!ranks.user_specified || ranks.size == 1 || one.buffer.size.value <= 0) continue;
    ++usage.collectives;
    if (one.kind == Collective::Kind::reduce_scatter || one.kind == Collective::Kind::all_gather) {
      usage.rings = true;
      usage.rings_over_nodes_of_several = usage.rings_over_nodes_of_several || ranks.ranks_per_node > 1;
    }
    if (one.kind != Collective::Kind::all_reduce) continue;
    usage.all_reduces = true;
    usage.nodes_of_several = usage.nodes_of_several || ranks.ranks_per_node > 1;
    usage.several_nodes = usage.several_nodes || ranks.size > ranks.ranks_per_node;
  }
  return usage;
}

Algorithm algorithm_of(const YamlMap& map) {
  const auto named = map.maybe("all_reduce");
  return named ? algorithm_words().read(*named) : Algorithm::automatic;
}

/// Notes keys that belong to another algorithm than the one that runs.
void note_algorithm(const YamlMap& map, const Usage& usage, IneffectiveKeys& found) {
  const Algorithm algorithm = algorithm_of(map);
  const std::string with = "with all_reduce: " + algorithm_words().of(algorithm);
  const bool any = algorithm == Algorithm::automatic;
  const bool ring = any || algorithm == Algorithm::ring || algorithm == Algorithm::aluminum;
  if (!ring && !usage.rings) note_ineffective(map, {"channels"}, with, found);
  if (!(ring && usage.nodes_of_several) && !usage.rings_over_nodes_of_several)
    note_ineffective(map, {"channels"}, kLoneRanks, found);
  if (!any && algorithm != Algorithm::double_tree) note_ineffective(map, {"tree_piece"}, with, found);
  if (algorithm != Algorithm::hierarchical)
    return note_ineffective(map, {"inside_node", "between_nodes"}, with, found);
  if (!usage.nodes_of_several) note_ineffective(map, {"inside_node"}, kLoneRanks, found);
  if (!usage.several_nodes) note_ineffective(map, {"between_nodes"}, "inside one node", found);
}

/// Notes `streams` and `in_flight` where they limit nothing. `in_flight` is by default the number of streams,
/// and a stream never runs two collectives at once.
void note_streams(const YamlMap& map, const Usage& usage, bool at_once, IneffectiveKeys& found) {
  if (!at_once || usage.collectives == 1)
    return note_ineffective(map, {"streams", "in_flight"}, "where collectives run one after the other",
                            found);
  const auto value = map.maybe("streams"), limit = map.maybe("in_flight");
  const std::int64_t streams = value ? value->integer(1) : 1;
  if (limit && limit->integer(1) > streams)
    note_ineffective(map, {"in_flight"}, "above streams: " + std::to_string(streams), found);
  if (limit && limit->integer(1) == 1 && streams > 1)
    note_ineffective(map, {"streams"}, "with in_flight: 1", found);
}

const Fields<AllReduceChoice>& all_reduce_fields() {
  static const Fields<AllReduceChoice> fields{details(
      {field("all_reduce", &AllReduceChoice::algorithm, choice(algorithm_words()),
             "algorithm that sums gradients; automatic takes the fastest for each buffer size, mpi and "
             "aluminum follow the rules of these libraries"),
       field("channels", &AllReduceChoice::channels, integer(1, 64), "rings that share each buffer"),
       field("inside_node", &AllReduceChoice::local, choice(local_part_words()),
             "hierarchical: algorithm inside a node"),
       field("between_nodes", &AllReduceChoice::network, choice(network_part_words()),
             "hierarchical: algorithm between nodes"),
       field("tree_piece", &AllReduceChoice::tree_piece, bytes(1),
             "double_tree: size of the pieces in its pipeline")})};
  return fields;
}

const Fields<CommunicationOptions>& communication_fields() {
  using Options = CommunicationOptions;
  static const Fields<Options> fields{
      {part(&Options::all_reduce, all_reduce_fields()),
       details({field("streams", &Options::streams, integer(1, 1024),
                      "streams; the collectives of one stream run one after the other"),
                field("in_flight", &Options::in_flight, integer(1, 1024), otherwise("streams"),
                      "collectives that run at the same time")})},
      [](const YamlMap& map, Options& options) {
        if (!map.has("in_flight")) options.in_flight = options.streams;
      }};
  return fields;
}

}  // namespace

const Keys& communication_keys() {
  return communication_fields().keys();
}

CommunicationOptions read_communication(const YamlMap& map) {
  CommunicationOptions options;
  read_fields(map, communication_fields(), options);
  return options;
}

void apply(const CommunicationOptions& options, Communicator& communicator) {
  communicator.all_reduce = options.all_reduce;
  communicator.streams = options.streams;
  communicator.in_flight = options.in_flight;
  communicator.user_specified = true;
}

void note_ineffective_communication(const YamlMap& map, const std::string& instead, bool at_once,
                                    Plan& plan) {
  if (plan.devices == 1) return;
  const Usage usage = usage_of(plan);
  if (usage.collectives == 0) {
    return note_ineffective(map, names_of(communication_keys()),
                            instead.empty() ? "where no gradients are summed between workers" : instead,
                            plan.ineffective_keys);
  }
  if (!usage.all_reduces) {
    note_ineffective(map, {"all_reduce", "inside_node", "between_nodes", "tree_piece"}, instead,
                     plan.ineffective_keys);
    if (!usage.rings) note_ineffective(map, {"channels"}, instead, plan.ineffective_keys);
    if (!usage.rings_over_nodes_of_several)
      note_ineffective(map, {"channels"}, kLoneRanks, plan.ineffective_keys);
  } else {
    note_algorithm(map, usage, plan.ineffective_keys);
  }
  note_streams(map, usage, at_once, plan.ineffective_keys);
}

}  // namespace stepcast
