#include "validate/capture/arithmetic_times.hpp"

#include <memory>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

/// Sums the ranks' models as the collective before a filter does.
Arithmetic sum_models(Transport& transport) {
  return [&transport](Arrays& arrays) {
    const std::span<float> model = arrays.of(Array::parameters);
    const auto rounds =
        rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank().value, model.size());
    execute_rounds(transport, rounds, model.data());
  };
}

/// The arithmetic of adding micro-batches: the first is copied, the second added.
TimedArithmetic sum_of_gradients() {
  return {kSumOfGradients, true, {}, [](Arrays& arrays) {
            delivered(Array::gradients, Array::update)(arrays);
            accumulate(arrays.of(Array::gradients), arrays.of(Array::update));
          }};
}

}  // namespace

std::vector<TimedArithmetic> arithmetic_of(const Strategy& strategy, const Slice& whole,
                                           Transport& transport) {
  std::vector<TimedArithmetic> all{sum_of_gradients()};
  if (strategy.timed_arithmetic == nullptr) return all;
  const ArithmeticPlace place{whole, transport.ranks(), sum_models(transport)};
  for (TimedArithmetic& one : strategy.timed_arithmetic(place)) all.push_back(std::move(one));
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

LinkMeasurements time_arithmetic(Transport& transport, Network& network, const std::string& trace,
                                 const std::vector<TimedArithmetic>& all, int repeats,
                                 const std::function<void(const std::string& name)>& progress) {
  LinkMeasurements links;
  for (const TimedArithmetic& one : all) {
    const auto medians =
        gather_on_rank_0(transport, {median_seconds(transport, network, one, repeats, progress)});
    if (medians.empty()) continue;
    double sum = 0;
    for (const std::vector<double>& rank : medians) sum += rank.front();
    LinkMeasurement& measured =
        links.emplace_back(LinkMeasurement{LinkMeasurement::What::arithmetic, one.name});
    measured.network = trace;
    measured.bytes = 4.0 * network.all_parameters().elements;
    measured.seconds = sum / medians.size();
    measured.repeats = repeats;
  }
  return links;
}

std::optional<Seconds> arithmetic_time(const LinkMeasurements& links, const std::string& trace,
                                       const std::string& name) {
  for (const LinkMeasurement& one : links) {
    const bool same = one.network == trace && one.algorithm == name;
    if (one.what == LinkMeasurement::What::arithmetic && same && one.seconds > 0) return Seconds{one.seconds};
  }
  return std::nullopt;
}

}  // namespace stepcast
