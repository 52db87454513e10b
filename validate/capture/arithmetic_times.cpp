#include "validate/capture/arithmetic_times.hpp"

#include <algorithm>
#include <memory>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/local_sgd/block_training.hpp"
#include "strategies/parameter_server/elastic_averaging.hpp"
#include "strategies/parameter_server/gradient_energy_matching.hpp"

namespace stepcast {
namespace {

/// Copies an array as a receive from another rank would write it.
Arithmetic delivered(Array from, Array to) {
  return [from, to](Arrays& arrays) { std::ranges::copy(arrays.of(from), arrays.of(to).begin()); };
}

/// Sums the ranks' models as the collective before a filter does.
Arithmetic sum_models(Transport& transport) {
  return [&transport](Arrays& arrays) {
    const std::span<float> model = arrays.of(Array::parameters);
    const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank().value,
                                  static_cast<std::int64_t>(model.size()));
    execute_rounds(transport, rounds, model.data());
  };
}

/// A rank's part of its server's arithmetic.
Arithmetic on_whole(std::function<void(Arrays&, const Slice&, int)> apply, const Slice& whole) {
  return [apply = std::move(apply), whole](Arrays& arrays) { apply(arrays, whole, 1); };
}

/// The arithmetic of adding micro-batches: the first is copied, the second added.
TimedArithmetic sum_of_gradients() {
  return {kSumOfGradients, true, {}, [](Arrays& arrays) {
            delivered(Array::gradients, Array::update)(arrays);
            accumulate(arrays.of(Array::gradients), arrays.of(Array::update));
          }};
}

}  // namespace

std::vector<TimedArithmetic> arithmetic_of(const std::string& kind, const Slice& whole,
                                           Transport& transport) {
  std::vector<TimedArithmetic> all{sum_of_gradients()};
  const int ranks = transport.ranks();
  const Arithmetic read_center = delivered(Array::parameters, Array::center);
  if (kind == "model_averaging")
    all.push_back({"average", true, sum_models(transport), average_arithmetic(ranks)});
  if (kind == "bmuf" || kind == "diloco") {
    const BlockFilter filter{.momentum = 0.5, .learning_rate = 1, .form = BlockFilter::Form::nesterov};
    all.push_back({"filter", true, sum_models(transport), filter_arithmetic(filter, ranks)});
  }
  if (kind == "elastic_averaging") {
    all.push_back({"elastic pull", true, read_center, elastic_pull(0.5)});
    all.push_back({"center move", false, delivered(Array::parameters, Array::update),
                   on_whole(elastic_center_move(0.5), whole)});
  }
  if (kind == "gradient_energy_matching") {
    // Real values, because the sum's signs and sizes decide how the arithmetic branches.
    const Arithmetic read_center_and_sum = [read_center](Arrays& arrays) {
      delivered(Array::gradients, Array::update)(arrays);
      read_center(arrays);
    };
    all.push_back({"energy matching", true, read_center_and_sum, match_and_continue});
    all.push_back(
        {"center sum", false, delivered(Array::gradients, Array::update), on_whole(add_to_center, whole)});
  }
  if (kind == "parameter_server") {
    const auto descend = [](Arrays& arrays, const Slice& elements, int summed) {
      arrays.descend(Array::update, elements, summed);
    };
    all.push_back(
        {"server update", false, delivered(Array::gradients, Array::update), on_whole(descend, whole)});
  }
  return all;
}

namespace {

/// Median of the times of one arithmetic on this rank [s]. A first repetition is not counted.
double median_seconds(Transport& transport, Network& network, const TimedArithmetic& one, int repeats,
                      const std::function<void(const std::string&)>& progress) {
  const std::unique_ptr<RankDevice> device = replica_device(network);
  device->begin();
  std::vector<double> seconds;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    progress(one.name);
    if (one.trains) network.step();
    if (one.before) device->calculate(one.before);
    barrier(transport);
    const Instant begin = now();
    device->calculate(one.run);
    if (repeat > 0) seconds.push_back(now().wall - begin.wall);
  }
  return median_of(seconds);
}

}  // namespace

std::vector<Row> time_arithmetic(Transport& transport, Network& network, const std::string& trace,
                                 const std::vector<TimedArithmetic>& all, int repeats,
                                 const std::function<void(const std::string& name)>& progress) {
  std::vector<Row> rows;
  for (const TimedArithmetic& one : all) {
    const auto medians =
        gather_on_rank_0(transport, {median_seconds(transport, network, one, repeats, progress)});
    if (medians.empty()) continue;
    double sum = 0;
    for (const std::vector<double>& rank : medians) sum += rank.front();
    Row row;
    row.set("what", std::string("arithmetic"));
    row.set("algorithm", one.name);
    row.set("network", trace);
    row.set("bytes", 4.0 * static_cast<double>(network.all_parameters().elements));
    row.set("seconds", sum / static_cast<double>(medians.size()));
    row.set("repeats", std::int64_t{repeats});
    rows.push_back(row);
  }
  return rows;
}

std::optional<Seconds> arithmetic_time(const Results& links, const std::string& trace,
                                       const std::string& name) {
  for (const Row& row : links.rows) {
    if (row.text("what") == "arithmetic" && row.text("network") == trace && row.text("algorithm") == name)
      return Seconds{*row.number("seconds")};
  }
  return std::nullopt;
}

}  // namespace stepcast
