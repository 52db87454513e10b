#pragma once

#include <cmath>
#include <mutex>

#include "core/yaml.hpp"
#include "fake_links.hpp"
#include "kernels/network.hpp"
#include "kernels/processor.hpp"
#include "ranks.hpp"
#include "strategies/communicator.hpp"
#include "strategies/strategy.hpp"
#include "validate/platform_text.hpp"
#include "validate/run_program.hpp"

namespace stepcast {

/// A plan of any strategy on ranks in shared memory, from text. Layer times are of no account.
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
        platform(read_platform(YamlValue(platform_text_, ""))) {
    device.peak = {1e12};
    device.memory_bandwidth = {1e12};
    device.memory = device.usable_memory = {1e12};
    Setting setting{model, device, platform, first_ranks(workers)};
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

/// Element `element` of sample `sample` of a fixed set: the same whoever trains on it.
inline float input_value(std::int64_t sample, std::int64_t element) {
  return static_cast<float>(
      std::sin(1 + 3.7 * static_cast<double>(sample) + 1.3 * static_cast<double>(element)));
}
inline float target_value(std::int64_t sample, std::int64_t element) {
  return static_cast<float>(
      std::cos(2 + 1.9 * static_cast<double>(sample) + 0.7 * static_cast<double>(element)));
}

/// Stands for a library that moves what lies in a device's memory: all of it is read when the work before it
/// is done, and written when it is through.
inline Carry carried_by_host(Transport& transport, DeviceMemory& memory) {
  return [&transport, &memory](const CarriedWork& work) {
    std::vector<float> values(static_cast<std::size_t>(work.elements));
    memory.to_host(work.ready, work.memory, values.data(), values.size());
    for (const std::vector<Round>& phase : *work.phases) play(transport, phase, values.data());
    memory.to_device(values.data(), work.memory, values.size());
  };
}

/// Runs the plan on ranks that are threads: `body(world)` builds what the rank computes with and calls
/// run_program. Networks are built one after the other (`building`).
/// @param links    of devices whose memory the host cannot touch; null: messages go by mail
/// @param carried  collectives on memory of a device are carried there and from there, as by a library; else
///                 through the host
inline void run_parts(const PlannedParts& planned,
                      const std::function<void(int rank, std::mutex& building,
                                               const std::function<RealRun(RankDevice&)>& run)>& body,
                      test::FakeLinks* links = nullptr, bool carried = false) {
  const int ranks = static_cast<int>(planned.plan.endpoints.size());
  std::vector<RankState> states(static_cast<std::size_t>(ranks));
  std::mutex building;
  run_ranks("memory", ranks, [&](Transport& transport, Transport& mail_transport) {
    set_kernel_threads(1);
    CommunicationThread thread;
    std::unique_ptr<Parcels> parcels;
    RealMail mail(mail_transport);
    Completions completions;
    RealCollectives collectives(planned.plan, planned.links, transport.rank());
    body(transport.rank(), building, [&](RankDevice& device) {
      RealWorld world{
          planned.plan, transport,   thread,      mail,
          device,       collectives, completions, states[static_cast<std::size_t>(transport.rank())]};
      if (links != nullptr) {
        DeviceMemory& memory = *device.device_memory();
        parcels =
            std::make_unique<Parcels>(memory, transport.rank(), ranks, links->of(transport.rank(), memory));
        mail.tell_parcels([&](const Message& one) { parcels->expect(one.parcel); });
      }
      world.parcels = parcels.get();
      if (carried) world.carry = carried_by_host(transport, *device.device_memory());
      const RealRun run = run_program(world, 1);
      if (parcels) parcels->finish();
      barrier(transport);
      return run;
    });
  });
}

}  // namespace stepcast
