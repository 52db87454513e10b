#pragma once

#include <cmath>
#include <mutex>

#include "core/yaml.hpp"
#include "fake_channels.hpp"
#include "kernels/network/network.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "ranks.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/registry.hpp"
#include "tests/first_endpoints.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

/// A plan of any strategy on ranks in shared memory, from text. The layer times have no influence.
struct PlannedParts {
  LinkTable links{{1e-6}, {1e9}, {{{INFINITY}, {0}, 1}}};
  YamlNode model_text, strategy_text, batch_text, platform_text_;
  Model model;
  Platform platform;
  Device device;
  Plan plan;

  PlannedParts(int workers, const std::string& model_yaml, const std::string& strategy, int batch, int steps)
      : model_text(parse_yaml(model_yaml, "model.yaml")),
        strategy_text(parse_yaml(strategy, "strategy.yaml")),
        batch_text(parse_yaml(std::to_string(batch), "batch.yaml")),
        platform_text_(parse_yaml(platform_text({"test", "test", read_cluster("memory", workers), links}),
                                  "platform.yaml")),
        model(read_model(YamlValue(model_text, ""))),
        platform(read_platform(YamlValue(platform_text_, ""), {})) {
    device.peak = {1e12};
    device.memory_bandwidth = {1e12};
    device.memory = device.usable_memory = {1e12};
    Setting setting{model, device, platform, test::first_endpoints(workers)};
    setting.steps = steps;
    setting.batch_per_worker = YamlValue(batch_text, "batch_per_worker");
    setting.part_trace = [](const PartModel& part) { return even_trace(*part.model); };
    setting.times = [this](std::int64_t) {
      const Trace trace = even_trace(model);
      return layer_times(model, {&trace}, trace.batch);
    };
    const YamlValue options(strategy_text, "strategy");
    plan = strategies().at(options.any_map().at("kind").one_of(strategy_names())).plan(options, setting);
  }
  PlannedParts(const PlannedParts&) = delete;

  static Trace even_trace(const Model& model) {
    Trace trace;
    trace.model = model.name;
    for (const Layer& layer : model.layers)
      trace.layers.push_back({layer.name, {{1e-3}, {}}, {{1e-3}, {}}, {{1e-3}, {}}, {{1e-4}, {}}});
    return trace;
  }
};

/// Element `element` of sample `sample` of a fixed set, the same for every rank.
inline float input_value(std::int64_t sample, std::int64_t element) {
  return std::sin(1 + 3.7 * sample + 1.3 * element);
}
inline float target_value(std::int64_t sample, std::int64_t element) {
  return std::cos(2 + 1.9 * sample + 0.7 * element);
}

/// Writes the samples from `first` on. @param value  of a sample and an element of it
template <class Value>
void fill_samples(Tensor& tensor, std::int64_t first, const Value& value) {
  const std::int64_t row = tensor.elements() / tensor.shape().front();
  std::vector<float> values(tensor.elements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(first + i / row, i % row);
  tensor.write(values);
}

inline Optimizer momentum_optimizer(double rate) {
  return {.learning_rate = rate, .momentum = 0.9};
}

/// A network after some steps.
struct Trained {
  Parameters parameters;
  double loss = 0;
};

/// Trains the whole network on one rank. @param fill  writes the mini-batch of all steps
inline Trained trained_on_one_rank(const Model& model, std::int64_t batch, double rate, int steps,
                                   const std::function<void(Network&)>& fill) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  Network network(*backend, model, {.batch = batch, .optimizer = momentum_optimizer(rate)});
  fill(network);
  for (int step = 0; step < steps; ++step) network.step();
  return {read_parameters(network), network.loss()};
}

/// A collective backend for device memory, in place of a library: it reads the whole buffer when the work
/// before it is done, and writes it when the collective is complete.
inline CollectiveBackend host_collective_backend(Transport& transport, DeviceMemory& memory) {
  return [&transport, &memory](const CollectiveCall& work) {
    std::vector<float> values(work.elements);
    memory.to_host(work.ready, work.memory, values.data(), values.size());
    for (const std::vector<Round>& phase : *work.phases) execute_rounds(transport, phase, values.data());
    memory.to_device(values.data(), work.memory, values.size());
  };
}

/// Runs the plan on ranks that are threads: `body(rank, building, run)` makes the device of the rank and
/// calls run(device). Networks are made one after the other, under the mutex `building`.
/// @param channels    for payloads of devices whose memory the host cannot access; null: payloads travel with
/// messages
/// @param by_backend  collectives on device memory are executed by a backend; false: they are staged through
/// the host
inline void run_parts(const PlannedParts& planned,
                      const std::function<void(int rank, std::mutex& building,
                                               const std::function<RealRun(RankDevice&)>& run)>& body,
                      test::FakeChannels* channels = nullptr, bool by_backend = false) {
  const int ranks = planned.plan.endpoints.size();
  std::vector<RankState> states(ranks);
  std::mutex building;
  run_ranks("memory", ranks, [&](Transport& transport, Transport& message_transport) {
    set_kernel_threads(1);
    ProgressThread thread;
    std::unique_ptr<DevicePayloads> device_payloads;
    PointToPoint messages(message_transport);
    CompletionQueue completions;
    RankCollectives collectives(planned.plan, choices_without_forecast(planned.plan), transport.rank());
    body(transport.rank().value, building, [&](RankDevice& device) {
      RealWorld world{.plan = planned.plan,
                      .transport = transport,
                      .collective_thread = thread,
                      .messages = messages,
                      .device = device,
                      .collectives = collectives,
                      .completions = completions,
                      .state = states[transport.rank().index()]};
      if (channels != nullptr) {
        DeviceMemory& memory = *device.device_memory();
        device_payloads = std::make_unique<DevicePayloads>(memory, transport.rank(), ranks,
                                                           channels->of(transport.rank(), memory));
        messages.on_payload_announced(
            [&](const Message& one) { device_payloads->post_receive(one.payload); });
      }
      world.device_payloads = device_payloads.get();
      if (by_backend) world.collective_backend = host_collective_backend(transport, *device.device_memory());
      const RealRun run = run_program(world, 1);
      if (device_payloads) device_payloads->finish();
      barrier(transport);
      return run;
    });
  });
}

}  // namespace stepcast
