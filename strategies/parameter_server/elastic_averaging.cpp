#include "strategies/parameter_server/elastic_averaging.hpp"

#include "core/fields.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/parameter_server/server_plan.hpp"

namespace stepcast {

Program elastic_averaging(Worker& worker, const ElasticRun& run) {
  const ClientExchange both{Array::parameters, Array::center};
  ClientState state;
  std::deque<Pending> loads;
  for (int step = 1; step <= run.options.steps; ++step) {
    co_await train_mini_batch(worker, run.batch, loads);
    co_await worker.optimizer_step();  // 1.
    if (step % run.options.period == 0) {
      co_await exchange(worker, run.servers, both, state);  // 2.
      co_await worker.local(run.pull);                      // 3.
    }
    co_await share_weights(worker, run.batch);
    worker.end_step();
  }
}

Arithmetic elastic_pull(double a) {
  return [a](Arrays& arrays) { elastic_move(a, arrays.of(Array::center), arrays.of(Array::parameters)); };
}

std::function<void(Arrays&, const Slice&, int)> elastic_center_move(double a) {
  return [a](Arrays& arrays, const Slice& elements, int) {
    elastic_move(a, arrays.of(Array::update, elements), arrays.of(Array::parameters, elements));
  };
}

namespace {

constexpr double kCenterArrays = 3;  // reads x and y, writes y
constexpr const char *kElasticPull = "elastic pull", *kCenterMove = "center move";

/// What elastic averaging adds to the keys of servers.
const Fields<ElasticAveraging>& elastic_fields() {
  static const Fields<ElasticAveraging> fields{
      details({field("period", &ElasticAveraging::period, integer(1, 1'000'000),
                     "tau: mini-batches between exchanges")}),
      field("elastic_force", &ElasticAveraging::elastic_force, number(0, 1),
            "a: share of the distance to the center in one move"),
      field("local_arrays", &ElasticAveraging::local_arrays, number(0, 1000),
            "arrays that the worker's arithmetic of an exchange reads and writes")};
  return fields;
}

const Keys& elastic_keys() {
  static const Keys keys = joined_keys({server_keys(), elastic_fields().keys()});
  return keys;
}

Plan read_elastic_averaging(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, elastic_keys());
  ServerOptions servers = read_server_options(map, kCenterArrays);
  use_measured_update(setting, kCenterMove, servers);
  refuse_compression(map,
                     "not supported with kind: elastic_averaging, which sends parameters, not gradients");
  ElasticAveraging options;
  read_fields(map, elastic_fields(), options);
  options.steps = setting.steps;

  ServerStrategy strategy;
  strategy.answer_first = true;
  strategy.held_arrays = 1;  // y as the worker read it
  strategy.updates_a_step = 1.0 / options.period;
  strategy.apply = elastic_center_move(options.elastic_force);
  strategy.pull = {kElasticPull,
                   exchange_arithmetic_seconds(map, setting, servers, {kElasticPull, options.local_arrays}),
                   elastic_pull(options.elastic_force)};
  strategy.program = [options, pull = strategy.pull](ServerClient client) {
    const auto run = std::make_shared<const ElasticRun>(
        ElasticRun{options, pull, std::move(client.servers), client.batch});
    return [run](Worker& worker) { return elastic_averaging(worker, *run); };
  };
  Plan plan = server_plan(setting, servers, strategy);
  note_ineffective_server_options(map, servers, false, plan);
  return plan;
}

std::vector<TimedArithmetic> elastic_arithmetic(const ArithmeticPlace& place) {
  constexpr double kForce = 0.5;  // any takes the same time
  return {{kElasticPull, true, delivered(Array::parameters, Array::center), elastic_pull(kForce)},
          {kCenterMove, false, delivered(Array::parameters, Array::update),
           [move = elastic_center_move(kForce), whole = place.whole](Arrays& arrays) {
             move(arrays, whole, 1);
           }}};
}

}  // namespace

Strategy elastic_averaging_strategy() {
  return {.kind = "elastic_averaging",
          .what = "elastic averaging SGD: workers and a center move towards each other's parameters",
          .source = "S. Zhang, A. Choromanska, Y. LeCun, Deep learning with elastic averaging SGD, NIPS 2015",
          .plan = read_elastic_averaging,
          .keys = elastic_keys(),
          .example = "{kind: elastic_averaging, server: colocated}",
          .example_model = "small-cnn",
          .other_names = {"easgd"},
          .timed_arithmetic = elastic_arithmetic,
          .server_devices = server_devices,
          .usual_steps = usual_server_steps};
}

}  // namespace stepcast
