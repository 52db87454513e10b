// A strategy of one's own, forecast with stepcast's libraries (docs/how-to/use-as-a-library.md): synchronous
// SGD whose workers apply the gradients of the step before. The sum of gradients runs during the next step.
// Source: Y. Li et al., Pipe-SGD, NeurIPS 2018, algorithm 1 with K = 2.
#include <fmt/format.h>

#include <cstdlib>

#include "core/error.hpp"
#include "forecast/forecast.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/registry.hpp"

namespace {

using namespace stepcast;

Program pipe_sgd(Worker& worker, CollectiveId sum, int steps) {
  Pending before;
  for (int step = 0; step < steps; ++step) {
    co_await worker.forward();
    co_await worker.backward();
    if (step > 0) co_await worker.finished(std::move(before));
    before = worker.start_collective(sum);
    co_await worker.optimizer_step();
    worker.end_step();
  }
  co_await worker.finished(std::move(before));
}

const Keys& pipe_sgd_keys() {
  static const Keys keys = joined_keys({training_keys(), communication_keys()});
  return keys;
}

Plan pipe_sgd_plan(const YamlValue& options, const Setting& setting) {
  const YamlMap map = read_map(options, pipe_sgd_keys());
  const TrainingOptions training = read_training_options(map);
  const auto batch = samples_per_replica(setting, setting.workers(), 1);
  auto [workload, source] = make_workload(setting.model, setting.times(batch), training.compute_factor);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), kWholeModel);

  Synchronous synchronous;
  synchronous.steps = setting.steps;
  Plan plan = synchronous_plan(setting.platform, setting.devices, std::move(workload), synchronous,
                               read_communication(map));
  const CollectiveId sum = plan.workloads.front().buckets.front().sum;
  plan.roles.front().program = [sum, steps = setting.steps](Worker& worker) {
    return pipe_sgd(worker, sum, steps);
  };
  plan.simulated_only = "pipe_sgd keeps no second copy of the gradients";
  finish_plan(setting, training,
              {std::move(source), batch, static_cast<double>(batch) * setting.workers(),
               training_memory(setting.model, memory_options(setting, training, batch)), ""},
              plan);
  return plan;
}

Strategy pipe_sgd_strategy() {
  return {"pipe_sgd",      "synchronous SGD with the gradients of the step before",
          "NeurIPS 2018",  pipe_sgd_plan,
          pipe_sgd_keys(), "{kind: pipe_sgd}",
          "resnet50"};
}

void forecast_file(const char* file) {
  const Scenario scenario = read_scenario(file, {});
  ForecastOptions options;
  options.draws = 1;
  options.what_if = false;
  options.journal = "simulations.jsonl";  // a second call continues from it
  for (std::size_t i = 0; i < scenario.points.size(); ++i) options.points.push_back(i);
  Library library;
  const Simulations all = forecast(scenario, library, options);
  for (const std::size_t point : options.points) {
    fmt::print("{:60} {:8.2f} ms\n", scenario.points[point].name,
               1e3 * over_draws(all, point, "step_seconds").front());
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("STEPCAST_DATA", STEPCAST_DATA_FOLDER, 0);  // models, platforms and traces that scenarios name
  try {
    add_strategy(pipe_sgd_strategy());
    forecast_file(argc > 1 ? argv[1] : "own-strategy.yaml");
  } catch (const std::exception& error) {
    fmt::print(stderr, "own-strategy: {}\n", error.what());
    return 2;
  }
}
