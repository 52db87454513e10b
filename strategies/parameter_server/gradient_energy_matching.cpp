#include "strategies/parameter_server/gradient_energy_matching.hpp"

#include <algorithm>

#include "core/fields.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/parameter_server/server_plan.hpp"

namespace stepcast {

Program gradient_energy_matching(Worker& worker, const EnergyMatchingRun& run) {
  const ClientExchange read{Array::none, Array::center};
  ClientState state;
  std::deque<Pending> loads;
  for (int step = 1; step <= run.options.steps; ++step) {
    co_await train_mini_batch(worker, run.batch, loads);
    co_await worker.optimizer_step();
    co_await worker.local(
        add_array(Array::gradients, Array::update, (step - 1) % run.options.period == 0, run.array));  // 1.
    if (step % run.options.period == 0) {
      co_await exchange(worker, run.servers, read, state);          // 2.
      co_await worker.local(run.match);                             // 3. and 4.
      co_await push(worker, run.servers, Array::gradients, state);  // 5.
    }
    co_await share_weights(worker, run.batch);
    worker.end_step();
  }
}

void match_and_continue(Arrays& arrays) {
  const std::span<float> gathered = arrays.of(Array::update), update = arrays.of(Array::gradients);
  EnergyMatching options;
  options.learning_rate = arrays.learning_rate();
  match_energy(options, gathered, arrays.of(Array::center),
               {arrays.of(Array::change), arrays.of(Array::model)}, update);
  std::ranges::copy(arrays.of(Array::center), arrays.of(Array::parameters).begin());
  accumulate(update, arrays.of(Array::parameters));
}

void add_to_center(Arrays& arrays, const Slice& elements, int) {
  accumulate(arrays.of(Array::update, elements), arrays.of(Array::parameters, elements));
}

namespace {

constexpr double kUpdateArraysOfCenter = 3;  // reads two, writes one
constexpr const char *kMatching = "energy matching", *kCenterSum = "center sum";

/// What energy matching adds to the keys of servers.
const Fields<GradientEnergyMatching>& matching_fields() {
  static const Fields<GradientEnergyMatching> fields{
      field("period", &GradientEnergyMatching::period, integer(1, 1'000'000), "mini-batches between updates"),
      field("local_arrays", &GradientEnergyMatching::local_arrays, number(0, 1000),
            "arrays that the worker's arithmetic of an exchange reads and writes")};
  return fields;
}

const Keys& matching_keys() {
  static const Keys keys = joined_keys({server_keys(), matching_fields().keys()});
  return keys;
}

Plan read_gradient_energy_matching(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, matching_keys());
  ServerOptions servers = read_server_options(map, kUpdateArraysOfCenter);
  use_measured_update(setting, kCenterSum, servers);
  refuse_compression(map,
                     "not supported with kind: gradient_energy_matching, which has no error feedback between "
                     "updates");
  if (servers.sub_masters > 0)
    servers.sub_masters_at->refuse("not supported with kind: gradient_energy_matching");
  GradientEnergyMatching options;
  read_fields(map, matching_fields(), options);
  options.steps = setting.steps;

  ServerStrategy strategy;
  strategy.held_arrays = 4;  // velocity, center as it was read before, center as it was read, update
  strategy.updates_a_step = 1.0 / options.period;
  strategy.apply = add_to_center;
  strategy.program =
      [options,
       match = LocalWork{
           kMatching, exchange_arithmetic_seconds(map, setting, servers, {kMatching, options.local_arrays}),
           match_and_continue}](ServerClient client) {
        const auto run = std::make_shared<const EnergyMatchingRun>(
            EnergyMatchingRun{options, match, std::move(client.servers), client.batch, client.array});
        return [run](Worker& worker) { return gradient_energy_matching(worker, *run); };
      };
  Plan plan = server_plan(setting, servers, strategy);
  note_ineffective_server_options(map, servers, false, plan);
  return plan;
}

std::vector<TimedArithmetic> matching_arithmetic(const ArithmeticPlace& place) {
  const Arithmetic read_sum = delivered(Array::gradients, Array::update);
  // Real values, because the sum's signs and sizes decide how the arithmetic branches.
  const Arithmetic read_center_and_sum =
      [read_sum, read_center = delivered(Array::parameters, Array::center)](Arrays& arrays) {
        read_sum(arrays);
        read_center(arrays);
      };
  return {{kMatching, true, read_center_and_sum, match_and_continue},
          {kCenterSum, false, read_sum,
           [whole = place.whole](Arrays& arrays) { add_to_center(arrays, whole, 1); }}};
}

}  // namespace

Strategy gradient_energy_matching_strategy() {
  return {
      .kind = "gradient_energy_matching",
      .what = "asynchronous SGD; a worker scales its update by what the center did meanwhile",
      .source =
          "J. Hermans, G. Louppe, Gradient energy matching for distributed asynchronous gradient descent, "
          "arXiv:1805.08469",
      .plan = read_gradient_energy_matching,
      .keys = matching_keys(),
      .example = "{kind: gradient_energy_matching, server: colocated}",
      .example_model = "small-cnn",
      .timed_arithmetic = matching_arithmetic,
      .server_devices = server_devices,
      .usual_steps = usual_server_steps};
}

}  // namespace stepcast
