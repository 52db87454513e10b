#include "forecast/discrepancy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/random.hpp"

namespace stepcast {
namespace {

std::vector<double> read_numbers(const YamlValue& value, std::size_t count) {
  std::vector<double> numbers;
  for (const YamlValue& one : value.list()) numbers.push_back(one.number(-10, 10));
  if (numbers.size() != count) value.expected("as many numbers as probabilities has");
  if (!std::is_sorted(numbers.begin(), numbers.end())) value.expected("ascending numbers");
  return numbers;
}

}  // namespace

Discrepancy read_discrepancy(const YamlValue& value) {
  const YamlMap map = value.map({"source", "figures", "probabilities", "quantiles", "measured"});
  Discrepancy term;
  for (const YamlValue& one : map.at("probabilities").list()) term.probabilities.push_back(one.number(0, 1));
  const std::size_t count = term.probabilities.size();
  if (count < 2 || !std::is_sorted(term.probabilities.begin(), term.probabilities.end()))
    map.at("probabilities").expected("two or more ascending numbers");
  term.quantiles = read_numbers(map.at("quantiles"), count);
  if (const auto given = map.maybe("measured")) {
    const YamlMap measured =
        given->map({"level", "own", "alternative", "detail", "doubling", "walk", "misfit"});
    const auto constant = [&](const char* name) { return measured.at(name).number(0, 10); };
    term.measured = {constant("level"),    constant("own"),  constant("alternative"), constant("detail"),
                     constant("doubling"), constant("walk"), constant("misfit")};
  }
  return term;
}

Discrepancy shipped_discrepancy(Library& library) {
  const YamlNode name = command_line_name("discrepancy");
  return read_discrepancy(YamlValue(library.tree(YamlValue(name, "discrepancy"), "models/measured"), ""));
}

Spread spread_of(const Experiment& experiment) {
  const Platform& platform = experiment.platform;
  const Plan& plan = experiment.plan;
  std::map<int, int> devices;  // by node
  for (const int endpoint : plan.endpoints) {
    if (endpoint < platform.devices()) ++devices[endpoint / platform.devices_per_node];
  }
  Spread spread;
  spread.servers = std::max<int>(1, devices.size());
  for (const auto& [node, count] : devices)
    spread.devices_of_server = std::max(spread.devices_of_server, count);
  return spread;
}

namespace {

/// The quantile at `u`, linear between the probabilities and constant beyond the first and the last.
double quantile_at(const std::vector<double>& probabilities, const std::vector<double>& quantiles, double u) {
  const auto above = std::upper_bound(probabilities.begin(), probabilities.end(), u);
  if (above == probabilities.begin()) return quantiles.front();
  if (above == probabilities.end()) return quantiles.back();
  const std::size_t i = above - probabilities.begin();
  const double share = (u - probabilities[i - 1]) / (probabilities[i] - probabilities[i - 1]);
  return quantiles[i - 1] + share * (quantiles[i] - quantiles[i - 1]);
}

/// The binary digits of `index` behind the point, in reverse order: van der Corput's sequence.
double radical_inverse(unsigned index) {
  double value = 0, place = 0.5;
  for (; index > 0; index /= 2, place /= 2) value += place * (index % 2);
  return value;
}

/// What the quantiles at u_k and at v_k are multiplied by.
struct TermScales {
  double first = 0, second = 0;
};

// tools/tables/discrepancy.py and measured_points.py have the same rules.
std::vector<double> scaled_errors(const Discrepancy& term, const TermScales& scales) {
  std::vector<double> errors;
  for (unsigned k = 0; k < kDiscrepancySamples; ++k) {
    const double u = (k + 0.5) / kDiscrepancySamples;
    const double v = radical_inverse(k) + 0.5 / kDiscrepancySamples;
    errors.push_back(scales.first * quantile_at(term.probabilities, term.quantiles, u) +
                     scales.second * quantile_at(term.probabilities, term.quantiles, v));
  }
  return errors;
}

}  // namespace

std::vector<double> log_errors(const Discrepancy& term, const Spread& spread) {
  const double between = spread.servers > 1 ? 0.7 + std::log2(spread.servers) / 10 : 0;
  return scaled_errors(term, {std::log2(spread.devices_of_server) / 3, between});
}

namespace {

/// The number of devices of a point, and the samples of the term there.
struct PointErrors {
  int devices = 0;
  std::vector<double> errors;
};

Experiment middle_experiment(const Scenario& scenario, const std::vector<Assignment>& values,
                             Library& library) {
  return build_experiment(scenario.document, middle_values(scenario, {"", values}), library);
}

/// The errors at a point that sets these values.
using ErrorsAt = std::function<PointErrors(const std::vector<Assignment>& values)>;

/// The calibrated point with most devices, at most `devices`; the first one if all have more.
const PointErrors& nearest(const std::vector<PointErrors>& calibrated, int devices) {
  const PointErrors* best = nullptr;
  for (const PointErrors& one : calibrated) {
    if (one.devices <= devices && (best == nullptr || one.devices > best->devices)) best = &one;
  }
  return best != nullptr ? *best : calibrated.front();
}

/// The errors at the points, relative to those of the figures that are fed in.
std::vector<std::vector<double>> relative_errors(const Scenario& scenario,
                                                 const std::vector<std::size_t>& points,
                                                 const ErrorsAt& errors_at) {
  std::vector<PointErrors> calibrated;
  for (const Measurement& target : scenario.calibrations) calibrated.push_back(errors_at(target.point));
  std::vector<std::vector<double>> all;
  for (const std::size_t point : points) {
    auto [devices, errors] = errors_at(scenario.points[point].values);
    if (!calibrated.empty()) {
      const auto& taken_off = nearest(calibrated, devices).errors;
      for (std::size_t k = 0; k < errors.size(); ++k) errors[k] -= taken_off[k];
    }
    all.push_back(std::move(errors));
  }
  return all;
}

}  // namespace

std::vector<std::vector<double>> term_errors(const Scenario& scenario, const std::vector<std::size_t>& points,
                                             Library& library) {
  const Discrepancy term = shipped_discrepancy(library);
  return relative_errors(scenario, points, [&](const std::vector<Assignment>& values) -> PointErrors {
    const Experiment experiment = middle_experiment(scenario, values, library);
    return {experiment.plan.devices, log_errors(term, spread_of(experiment))};
  });
}

// measured_points.py has the same. Streams of one product alone are correlated: their sums have too little
// spread.
double uniform_sample(unsigned k, std::size_t stream) {
  static_assert(kDiscrepancySamples == 256);
  for (std::uint64_t key = mixed_hash(stream, 0); key != 0; key >>= 16) {  // each round is a permutation
    k = (k * (key % 256 | 1) + key / 256) % 256;
    k ^= k >> 4;
  }
  return (k + 0.5) / kDiscrepancySamples;
}

namespace {

constexpr std::size_t kWalkStream = 112;

/// Adds a random walk over the doublings of the devices.
/// @param knots  log2(devices) at which its stretches end, besides the last
void add_walk(const Discrepancy& term, double doublings, const std::set<double>& knots, double scale,
              std::vector<double>& errors) {
  double begin = 0;
  std::size_t stretch = 0;
  for (auto knot = knots.begin(); begin < doublings; ++stretch) {
    const double end = knot == knots.end() ? doublings : std::min(doublings, *knot++);
    for (unsigned k = 0; k < errors.size(); ++k)
      errors[k] += scale * std::sqrt(end - begin) *
                   quantile_at(term.probabilities, term.quantiles, uniform_sample(k, kWalkStream + stretch));
    begin = end;
  }
}

}  // namespace

std::vector<std::vector<double>> grown_errors(const Scenario& scenario,
                                              const std::vector<std::size_t>& points,
                                              const std::vector<Row>& rows, Library& library,
                                              const MeasuredConstants& constants) {
  const Discrepancy term = shipped_discrepancy(library);
  const auto devices_at = [&](const std::vector<Assignment>& values) {
    const auto point = matching_point(scenario, values);
    const Row row = point ? rows[*point] : Row{};
    return row.number("devices").value_or(0) > 0 ? static_cast<int>(*row.number("devices"))
                                                 : middle_experiment(scenario, values, library).plan.devices;
  };
  std::set<double> knots;
  for (const auto* list : {&scenario.measurements, &scenario.calibrations}) {
    for (const Measurement& one : *list) {
      if (relation_to_step(one.column) != StepRelation::none) knots.insert(std::log2(devices_at(one.point)));
    }
  }
  return relative_errors(scenario, points, [&](const std::vector<Assignment>& values) -> PointErrors {
    const int devices = devices_at(values);
    const double doublings = std::log2(devices);
    auto errors = scaled_errors(term, {constants.doubling * doublings});
    add_walk(term, doublings, knots, constants.walk, errors);
    return {devices, std::move(errors)};
  });
}

void add_discrepancy(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                     Simulations& all) {
  auto errors = term_errors(scenario, points, library);
  all.log_errors.assign(scenario.points.size(), {});
  for (std::size_t i = 0; i < points.size(); ++i) all.log_errors[points[i]] = std::move(errors[i]);
}

StepRelation relation_to_step(const std::string& column) {
  static constexpr std::array kTimes{"step_seconds",
                                     "step_seconds_mean",
                                     "step_seconds_p10",
                                     "step_seconds_p90",
                                     "epoch_seconds",
                                     "training_hours",
                                     "training_hours_with_faults",
                                     "training_hours_with_faults_p10",
                                     "training_hours_with_faults_p90",
                                     "cost_usd",
                                     "energy_kwh",
                                     "makespan_hours",
                                     "sweep_minutes",
                                     "block_seconds"};
  if (std::ranges::find(kTimes, column) != kTimes.end()) return StepRelation::time;
  static constexpr std::array kRates{"samples_per_second",
                                     "tokens_per_second",
                                     "tokens_per_second_per_device",
                                     "model_flops_per_device",
                                     "mfu",
                                     "mfu_palm",
                                     "points_per_hour",
                                     "updates_per_second"};
  if (std::ranges::find(kRates, column) != kRates.end()) return StepRelation::rate;
  return column == "speedup" || column == "efficiency" ? StepRelation::ratio_of_rates : StepRelation::none;
}

bool is_part_of_step(const std::string& column) {
  static constexpr std::array kParts{"compute_seconds",       "host_seconds",
                                     "waiting_seconds",       "data_loading_seconds",
                                     "communication_seconds", "exposed_communication_seconds"};
  return std::ranges::find(kParts, column) != kParts.end();
}

namespace {

enum class Samples { all, median };
constexpr double kMedianError = 0;

/// Errors at a point in one draw: the samples of the term, or its median alone, and what measurements shift
/// them by. They make no step shorter than its own computation, and let no point scale better than ideally
/// from the point at which its speed-up starts.
std::vector<double> bounded_errors(const Simulations& all, std::size_t draw, std::size_t point,
                                   Samples samples) {
  const std::vector<Row>& rows = all.rows[draw];
  std::vector<double> errors =
      samples == Samples::all ? all.log_errors[point] : std::vector<double>{kMedianError};
  for (double& one : errors) one += all.shifts.empty() ? 0 : all.shifts[draw][point];
  const auto step = rows[point].number("step_seconds"), compute = rows[point].number("compute_seconds");
  if (step && compute && *step > 0 && *compute > 0) {
    const double least = std::min(0.0, std::log(*compute / *step));
    for (double& one : errors) one = std::max(one, least);
  }
  const auto base = all.scaling_base.find(point);
  const auto efficiency = rows[point].number("efficiency");
  if (base == all.scaling_base.end() || base->second == point || !efficiency || *efficiency <= 0)
    return errors;
  const auto of_base = bounded_errors(all, draw, base->second, samples);
  const double ideal = std::min(0.0, std::log(*efficiency));
  for (std::size_t k = 0; k < errors.size(); ++k) errors[k] = std::max(errors[k], of_base[k] + ideal);
  return errors;
}

/// The logarithm of the factor on a column in one draw, by sample; empty if the column does not depend
/// on the time of a step.
std::vector<double> log_factors(const Simulations& all, std::size_t draw, std::size_t point,
                                const std::string& column, Samples samples) {
  const StepRelation relation = relation_to_step(column);
  if (relation == StepRelation::none || all.log_errors.empty()) return {};
  std::vector<double> factors = bounded_errors(all, draw, point, samples);
  if (relation != StepRelation::time) {
    for (double& one : factors) one = -one;
  }
  if (relation == StepRelation::ratio_of_rates) {
    const auto base = all.scaling_base.find(point);
    if (base == all.scaling_base.end()) return {};
    const auto errors = bounded_errors(all, draw, base->second, samples);
    for (std::size_t k = 0; k < factors.size(); ++k) factors[k] += errors[k];
  }
  return factors;
}

}  // namespace

bool has_discrepancy(const Simulations& all, std::size_t point, const std::string& column) {
  return std::ranges::any_of(log_factors(all, 0, point, column, Samples::all),
                             [](double one) { return one != 0; });
}

namespace {

std::vector<double> values_with_errors(const Simulations& all, std::size_t point, const std::string& column,
                                       Samples samples) {
  if (all.log_errors.empty() || relation_to_step(column) == StepRelation::none)
    return over_draws(all, point, column);
  std::vector<double> values;
  for (std::size_t draw = 0; draw < all.rows.size(); ++draw) {
    const auto value = all.rows[draw][point].number(column);
    if (!value) continue;
    for (const double factor : log_factors(all, draw, point, column, samples))
      values.push_back(*value * std::exp(factor));
  }
  return values;
}

}  // namespace

std::vector<double> predictive_values(const Simulations& all, std::size_t point, const std::string& column) {
  return values_with_errors(all, point, column, Samples::all);
}

std::vector<double> central_values(const Simulations& all, std::size_t point, const std::string& column) {
  return values_with_errors(all, point, column, Samples::median);
}

}  // namespace stepcast
