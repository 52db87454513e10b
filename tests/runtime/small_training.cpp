#include "small_training.hpp"

#include <cmath>
#include <filesystem>
#include <mutex>

#include "core/yaml.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "ranks.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
namespace {

const LinkTable kLinks{{1e-6}, {1e9}, {{{INFINITY}, {0}, 1}}};
constexpr std::size_t kLoss = 3;

LayerTimes free_times(const Model& model) {
  LayerTimes times;
  times.median.assign(model.layers.size(), {});
  times.kind = "captured";
  return times;
}

Trace free_trace(const PartModel& part) {
  Trace trace;
  for (const Layer& layer : part.model->layers)
    trace.layers.push_back({layer.name, {{0}, {}}, {{0}, {}}, {{0}, {}}, {{0}, {}}});
  return trace;
}

/// The networks of a rank: one for each micro-batch where the plan is one stage of a mesh.
ChunkNetworks networks_of(Backend& backend, const Model& model, const Plan& plan,
                          const Optimizer& optimizer) {
  const NetworkOptions options{.batch = kBatch, .optimizer = optimizer};
  if (plan.partition.form == ModelPartition::Form::stages)
    return std::move(pipeline_stage_networks(backend, model, plan.partition, {}, options).chunks.front());
  ChunkNetworks whole;
  whole.of_micro_batch.push_back(std::make_unique<Network>(backend, model, options));
  return whole;
}

std::vector<std::pair<std::size_t, std::size_t>> arrays_of(const Model& model) {
  std::vector<std::pair<std::size_t, std::size_t>> arrays;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (std::size_t k = 0; k < model.layers[layer].parameters.size(); ++k) arrays.emplace_back(layer, k);
  }
  return arrays;
}

}  // namespace

Model small_model() {
  const YamlNode node = parse_yaml(R"(
name: test
source: test
input: [6]
layers:
  - {name: fc1, kind: dense, units: 16}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)",
                                   "test.yaml");
  return read_model(YamlValue(node, ""));
}

Platform platform_for(int ranks) {
  const YamlNode node =
      parse_yaml(platform_text({"test", "test", read_cluster("memory", ranks), kLinks}), "p.yaml");
  return read_platform(YamlValue(node, ""), {});
}

void fill_data(Network& network, std::int64_t first) {
  const std::size_t batch = network.input().shape().front();
  std::vector<float> inputs, targets;
  for (std::size_t i = 0; i < batch; ++i) {
    const double sample = static_cast<double>(first) + static_cast<double>(i);
    for (int k = 0; k < 6; ++k) inputs.push_back(std::sin(1 + 3.7 * sample + 1.3 * k));
    targets.push_back(static_cast<int>(sample) % 4);
  }
  network.input().write(inputs);
  network.kernel(kLoss).targets()->write(targets);
}

std::vector<float> parameters_of(Network& network) {
  std::vector<float> all;
  for (const auto& [layer, k] : arrays_of(network.model())) {
    const auto one = network.kernel(layer).read_parameter(k);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void set_parameters(Network& network, const std::vector<float>& values) {
  auto from = values.begin();
  for (const auto& [layer, k] : arrays_of(network.model())) {
    const auto elements = network.model().layers[layer].parameters[k].elements();
    network.kernel(layer).write_parameter(k, {from, from + elements});
    from += elements;
  }
}

Plan plan_of(const std::string& text, int workers, int servers, int steps, std::int64_t batch) {
  const Model model = small_model();
  const Platform platform = platform_for(workers + servers);
  const Device device;
  const YamlNode options = parse_yaml(text, "strategy.yaml"),
                 samples = parse_yaml(std::to_string(batch), "batch.yaml");
  Setting setting{model, device, platform, {}};
  for (int worker = 0; worker < workers; ++worker) setting.devices.push_back(worker);
  setting.steps = steps;
  setting.times = [&model](std::int64_t) { return free_times(model); };
  setting.part_trace = free_trace;
  setting.compression = setting.host_compression = [](Compression) { return CompressionTimes{{}, 8, ""}; };
  setting.trace_batch = kBatch;
  setting.batch_per_worker.emplace(samples, "batch_per_worker");
  const YamlValue value(options, "strategy");
  const std::size_t kind = value.any_map().at("kind").one_of(strategy_names());
  return strategies()[kind].plan(value, setting);
}

std::vector<std::vector<float>> trained(const Plan& plan, const Optimizer& optimizer,
                                        const TrainedOptions& options) {
  set_kernel_threads(1);
  const Model model = small_model();
  const int ranks = plan.endpoints.size();
  std::vector<std::vector<float>> results(ranks);
  std::vector<RankState> states(ranks);
  std::mutex building;
  run_ranks("memory", ranks, [&](Transport& transport, Transport& message_transport) {
    const auto rank = transport.rank().index();
    const auto backend = options.make();
    std::unique_lock lock(building);
    PipelineStageNetworks networks;
    networks.chunks.push_back(networks_of(*backend, model, plan, optimizer));
    lock.unlock();
    Network& network = networks.chunks.front().first();
    DeviceLearning learning;
    learning.rate.base = optimizer.learning_rate;
    learning.summed = plan.summed_gradients;
    learning.place = transport.rank().value;
    learning.compresses = true;
    learning.owned = reduce_scattered_slices(plan, transport.rank(), ParameterLayout(network));
    std::int64_t next = 0;
    const auto fill_next = [&](Network& one) {
      const std::int64_t number = options.again > 0 ? next++ % options.again : next++;
      if (plan.chooses_mini_batches) return fill_data(one, number * kBatch);
      fill_data(one, (number * plan.workers + transport.rank().value) * kBatch);
    };
    learning.next_batch = [&] { fill_next(network); };
    learning.next_step = [&] {
      for (const auto& one : networks.chunks.front().of_micro_batch) fill_next(*one);
    };
    learning.choose_mini_batch = [&next](std::int64_t number) { next = number; };
    const bool is_stage = plan.partition.form == ModelPartition::Form::stages;
    const auto device =
        is_stage ? pipeline_stage_device(networks, plan.partition, 0,
                                         owned_slices(plan, transport.rank(), networks, 0), learning)
                 : replica_device(network, learning);
    ProgressThread thread;
    std::unique_ptr<DevicePayloads> device_payloads;
    if (options.channels != nullptr) {
      DeviceMemory& memory = *device->device_memory();
      device_payloads = std::make_unique<DevicePayloads>(memory, transport.rank(), ranks,
                                                         options.channels->of(transport.rank(), memory));
    }
    PointToPoint messages(message_transport);
    messages.on_payload_announced([&](const Message& one) { device_payloads->post_receive(one.payload); });
    CompletionQueue completions;
    RankCollectives collectives(plan, options.choices.value_or(choices_without_forecast(plan)),
                                transport.rank());
    RealWorld world{.plan = plan,
                    .transport = transport,
                    .collective_thread = thread,
                    .messages = messages,
                    .device = *device,
                    .collectives = collectives,
                    .completions = completions,
                    .state = states[rank]};
    std::unique_ptr<InputLoader> input;
    if (plan.load_data)
      input = std::make_unique<InputLoader>(std::filesystem::temp_directory_path(), std::int64_t{1} << 20);
    world.input = input.get();
    if (options.library)
      world.library = {"mpi", Algorithm::mpi, [&](std::span<float> sum, const std::vector<RankId>& group) {
                         if (std::ssize(group) != ranks) throw std::logic_error("a group");
                         options.library(transport, sum.data(), sum.size());
                       }};
    world.device_payloads = device_payloads.get();
    if (options.on_step_end)
      world.on_step_end = [&](double seconds) { options.on_step_end(transport.rank(), seconds); };
    run_program(world, 1);
    if (device_payloads) device_payloads->finish();
    results[rank] = parameters_of(network);
    barrier(transport);
  });
  return results;
}

std::vector<float> trained_alone(std::int64_t batch, int steps, const Optimizer& optimizer) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  Network network(*backend, small_model(), {.batch = batch, .optimizer = optimizer});
  for (int step = 0; step < steps; ++step) {
    fill_data(network, step * batch);
    network.step();
  }
  return parameters_of(network);
}

}  // namespace stepcast
