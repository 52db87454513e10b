#include <fmt/format.h>

#include <numeric>

#include "strategies/arithmetic/lbfgs.hpp"
#include "strategies/compression.hpp"
#include "strategies/sandblaster.hpp"
#include "strategies/server_places.hpp"
#include "strategies/server_tree.hpp"

namespace stepcast {
namespace {

constexpr double kVectorArrays = 3;  // an axpy reads two and writes one; a dot product reads two

int whole(const YamlMap& map, const char* key, int otherwise) {
  const auto value = map.maybe(key);
  return value ? static_cast<int>(value->integer(1, 1'000'000'000)) : otherwise;
}

Sandblaster read_run(const YamlMap& map, const Setting& setting) {
  Sandblaster run;
  run.batches = setting.steps;
  run.board.replicas = setting.workers();
  run.board.tasks = static_cast<int>(map.at("tasks", "portions of a batch").integer(1, 10'000'000));
  run.board.send_every = whole(map, "send_every", 1);
  if (const auto value = map.maybe("backup_tasks")) run.board.backup_tasks = value->boolean();
  run.vector_operations = lbfgs_operations(whole(map, "history", 10));
  run.portion.prefetch = setting.prefetch;
  return run;
}

void add_roles(Plan& plan, const std::shared_ptr<const Sandblaster>& run, int servers) {
  for (int replica = 0; replica < run->board.replicas; ++replica) {
    plan.roles.push_back({"replica", replica, 1, 0, true,
                          [run](Worker& worker) { return sandblaster_replica(worker, *run); }});
  }
  const auto add = [&](const char* name, auto program) {
    const int rank = static_cast<int>(plan.roles.size());
    plan.roles.push_back(
        {name, rank, 1, -1, false, [run, program](Worker& worker) { return program(worker, *run); }});
  };
  for (int i = 0; i < servers; ++i) add("server", sandblaster_server);
  add("coordinator", sandblaster_coordinator);
}

double sum(const Records& records, const char* name) {
  const auto found = records.find(name);
  return found == records.end() ? 0 : std::accumulate(found->second.begin(), found->second.end(), 0.0);
}

Figures figures_of(const Sandblaster& run, const Records& records, double seconds) {
  const double vectors = sum(records, "vector_phase"), all = vectors + sum(records, "batch_phase");
  const double computed = static_cast<double>(run.batches) * run.board.tasks;
  return {{"tasks_per_second", run.board.tasks / seconds},
          {"updates_per_second", 1 / seconds},
          {"wasted_tasks_share", sum(records, "wasted") / computed},
          {"vector_share", all > 0 ? vectors / all : 0}};
}

}  // namespace

Plan read_sandblaster(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys({training_keys(),
                                             {"shards", "server", "messages", "exchanged", "arrays", "tasks",
                                              "send_every", "backup_tasks", "history"}}));
  const ServerOptions options = read_server_options(map, kVectorArrays);
  refuse_compression(map, "the history of L-BFGS asks for whole gradients");
  check_shards(setting, options);
  const Exchanged exchanged = exchanged_of(setting, options);
  Sandblaster run = read_run(map, setting);
  Plan plan;
  plan.batch_per_worker = samples_per_replica(setting, setting.workers(), 1);
  Workload workload = make_workload(setting.model, setting.times(plan.batch_per_worker),
                                    options.training.compute_factor, plan);
  workload.input = static_cast<double>(plan.batch_per_worker) * setting.sample_size;
  run.portion.overhead = options.training.step_overhead;
  const Seconds array = array_seconds(setting, options, workload, plan.trace_kind, exchanged);
  run.vector_work = {"vector", server_work(options, array, kVectorArrays), {}};
  run.add = {"add", server_work(options, array, 3), {}};
  run.coordinator = setting.workers() + options.shards;
  for (int i = 0; i < options.shards; ++i)
    run.servers.shards.push_back(share_of(exchanged, options, i, setting.workers() + i));
  plan.workloads.push_back(std::move(workload));
  plan.endpoints = setting.devices;
  for (const int place : server_places(setting, options.place, options.shards + 1, *options.place_at))
    plan.endpoints.push_back(place);
  const auto shared = std::make_shared<const Sandblaster>(std::move(run));
  add_roles(plan, shared, options.shards);
  plan.asynchronous = true;
  plan.no_arithmetic = "kind: sandblaster (its L-BFGS)";
  plan.workers = setting.workers();
  plan.devices = plan.workers + devices_of_servers(setting.platform, options.place, options.shards + 1);
  plan.load_data = setting.sample_size.value > 0;
  plan.compute_slowdown = options.training.compute_slowdown;
  plan.samples_a_step = static_cast<double>(plan.batch_per_worker) * shared->board.tasks;
  MemoryOptions memory = setting.memory;
  memory.batch = plan.batch_per_worker;
  if (options.training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  plan.memory = training_memory(setting.model, memory);
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
  note_idle_server_options(map, options, false, plan);
  plan.figures = [shared](const Records& records, double seconds) {
    return figures_of(*shared, records, seconds);
  };
  return plan;
}

}  // namespace stepcast
