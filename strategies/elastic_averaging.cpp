#include "strategies/elastic_averaging.hpp"

#include <algorithm>

#include "strategies/arithmetic/downpour.hpp"
#include "strategies/arithmetic/elastic.hpp"
#include "strategies/arithmetic/energy_matching.hpp"
#include "strategies/compression.hpp"
#include "strategies/server_plan.hpp"

namespace stepcast {
namespace {

constexpr double kPullArrays = 3;  // reads two, writes one
/// Whole arrays that the numpy operations of NNLO's class GEM read and write (nnlo/train/optimizer.py):
/// update 3 + 2, moment 2 + 3, center's moment 3 + 2, energies 4 + 2 + 4 + 8, scaled update 3, own
/// parameters 3.
constexpr double kMatchArrays = 39;

/// Arithmetic of the worker on its own device.
LocalWork local_work(const YamlMap& map, const Setting& setting, const ServerOptions& servers,
                     const char* name, double arrays, Arithmetic run) {
  if (const auto value = map.maybe("local_arrays")) arrays = value->number(0, 1000);
  Plan unused;
  const std::int64_t batch = samples_of_worker(setting, servers);
  const Workload workload =
      make_workload(setting.model, setting.times(batch), servers.training.compute_factor, unused);
  return {name, array_work(workload, arrays), std::move(run)};
}

int read_period(const YamlMap& map) {
  const auto value = map.maybe("period");
  return value ? static_cast<int>(value->integer(1, 1'000'000)) : 1;
}

template <class Options>
std::function<std::function<Program(Worker&)>(ServerClient)> programs(Program (*run)(Worker&, const Options&),
                                                                      const Options& like) {
  return [run, like](ServerClient client) {
    Options mine = like;
    mine.servers = std::move(client.servers);
    mine.batch = client.batch;
    return [run, options = std::make_shared<const Options>(std::move(mine))](Worker& worker) {
      return run(worker, *options);
    };
  };
}

void gather_gradients(Arrays& arrays) {
  accumulate(arrays.of(Array::gradients), arrays.of(Array::update));
}

void add_update(Arrays& arrays, const Slice& elements, int) {
  accumulate(arrays.of(Array::update, elements), arrays.of(Array::parameters, elements));
}

/// Mini-batches with the worker's own steps; every `period` of them an exchange with the servers.
template <class Options>
Program with_exchanges(Worker& worker, const Options& options,
                       Part (*talk)(Worker&, const Options&, ClientState&), void (*each)(Arrays&)) {
  ClientState state;
  std::deque<Pending> loads;
  for (int step = 1; step <= options.steps; ++step) {
    co_await train_mini_batch(worker, options.batch, loads);
    co_await worker.optimizer_step();
    worker.calculate(each);
    if (step % options.period == 0) co_await talk(worker, options, state);
    co_await share_weights(worker, options.batch);
    worker.end_step();
  }
}

Part elastic_exchange(Worker& worker, const ElasticAveraging& options, ClientState& state) {
  co_await exchange(worker, options.servers, Array::parameters, state);
  co_await worker.local(options.pull);
}

Part matching_exchange(Worker& worker, const GradientEnergyMatching& options, ClientState& state) {
  co_await fetch(worker, options.servers, state);
  co_await worker.local(options.match);
  co_await push(worker, options.servers, state);
}

}  // namespace

Arithmetic elastic_pull_arithmetic(double force) {
  return [force](Arrays& arrays) {
    elastic_move(force, arrays.of(Array::center), arrays.of(Array::parameters));
  };
}

Arithmetic energy_matching_arithmetic(const EnergyMatching& options) {
  return [options](Arrays& arrays) {
    const std::span<float> gathered = arrays.of(Array::update), update = arrays.of(Array::gradients);
    EnergyMatching now = options;
    now.learning_rate = arrays.learning_rate();
    match_energy(now, gathered, arrays.of(Array::center), {arrays.of(Array::change), arrays.of(Array::model)},
                 update);
    std::ranges::fill(gathered, 0.0F);
    std::ranges::copy(arrays.of(Array::center), arrays.of(Array::parameters).begin());
    accumulate(update, arrays.of(Array::parameters));
  };
}

Program elastic_averaging(Worker& worker, const ElasticAveraging& options) {
  return with_exchanges(worker, options, elastic_exchange, nullptr);
}

Program gradient_energy_matching(Worker& worker, const GradientEnergyMatching& options) {
  return with_exchanges(worker, options, matching_exchange, gather_gradients);
}

Plan read_elastic_averaging(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys({server_keys(), {"period", "elastic_force", "local_arrays"}}));
  const ServerOptions servers = read_server_options(map, kPullArrays);
  refuse_compression(map, "parameters travel, and what is owed of a gradient cannot be paid with them");
  ElasticAveraging run;
  run.steps = setting.steps;
  run.period = read_period(map);
  if (const auto force = map.maybe("elastic_force")) run.elastic_force = force->number(0, 1);
  run.pull = local_work(map, setting, servers, "elastic pull", kPullArrays,
                        elastic_pull_arithmetic(run.elastic_force));
  ServerStrategy strategy;
  strategy.answer_first = true;
  strategy.held_arrays = 1;  // the center as it was read
  strategy.updates_a_step = 1.0 / run.period;
  strategy.apply = [force = run.elastic_force](Arrays& arrays, const Slice& elements, int) {
    elastic_move(force, arrays.of(Array::update, elements), arrays.of(Array::parameters, elements));
  };
  strategy.pull = elastic_pull_arithmetic(run.elastic_force);
  strategy.program = programs(elastic_averaging, run);
  Plan plan = server_plan(setting, servers, strategy);
  note_idle_server_options(map, servers, false, plan);
  return plan;
}

Plan read_gradient_energy_matching(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys({server_keys(), {"period", "local_arrays"}}));
  const ServerOptions servers = read_server_options(map, kPullArrays);  // w -= update
  refuse_compression(map, "each update depends on what the center did meanwhile, so none can be paid later");
  if (servers.sub_masters > 0)
    servers.sub_masters_at->refuse("NNLO's sub-masters do not pass on such updates");
  GradientEnergyMatching run;
  run.steps = setting.steps;
  run.period = read_period(map);
  run.match =
      local_work(map, setting, servers, "energy matching", kMatchArrays, energy_matching_arithmetic({}));
  ServerStrategy strategy;
  strategy.held_arrays = 4;  // moment, center's moment, the center as it was read, update
  strategy.updates_a_step = 1.0 / run.period;
  strategy.apply = add_update;
  strategy.program = programs(gradient_energy_matching, run);
  Plan plan = server_plan(setting, servers, strategy);
  note_idle_server_options(map, servers, false, plan);
  return plan;
}

}  // namespace stepcast
