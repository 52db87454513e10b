#include "forecast/posterior.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "core/error.hpp"
#include "core/text.hpp"
#include "report/statistics/cholesky.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

constexpr double kPartSpread = 0.1;  // of a part of a step, for whose error there is no term
constexpr double kLeastPart = 0.01;  // of the step; differences of parts that are smaller say nothing

double normal_quantile(double u) {
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * u);
}

double normal_share(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

constexpr std::size_t kLevelStream = 1, kAlternativeStream = 64;

bool is_fed_in(const Scenario& scenario, std::size_t point) {
  return std::ranges::any_of(scenario.calibrations, [&](const Measurement& target) {
    return target.over.empty() && sets_all(scenario.points[point], target.point);
  });
}

bool is_of_step(const Measurement& one) {
  return relation_to_step(one.column) != StepRelation::none;
}

double repeatability(const Measurement& one) {
  const double spread = one.spread > 0 ? one.spread : kRepeatability;
  return is_of_step(one) ? spread : std::hypot(spread, kPartSpread);
}

std::size_t point_of(const Scenario& scenario, const Measurement& one) {
  return matching_point(scenario, one.point).value();
}

double covariance(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - mean_a) * (b[k] - mean_b);
  return sum / a.size();
}

/// The keys that differ between points with equally many workers, such as those of a layout.
std::set<std::string> keys_of_alternatives(const Scenario& scenario) {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by number of workers and key
  std::set<std::string> keys;
  for (const Point& point : scenario.points) {
    const auto found = std::ranges::find(point.values, "workers", &Assignment::path);
    const std::string workers = found == point.values.end() ? "" : found->value.text;
    for (const Assignment& one : point.values) {
      const std::string text = point_name({one});
      if (first.emplace(std::pair(workers, one.path), text).first->second != text) keys.insert(one.path);
    }
  }
  return keys;
}

}  // namespace

std::vector<std::size_t> alternatives_of(const Scenario& scenario) {
  const std::set<std::string> keys = keys_of_alternatives(scenario);
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> all;
  for (const Point& point : scenario.points) {
    std::set<std::string> values;
    for (const Assignment& one : point.values) {
      if (keys.contains(one.path)) values.insert(point_name({one}));
    }
    all.push_back(numbers.emplace(fmt::format("{}", fmt::join(values, ", ")), numbers.size()).first->second);
  }
  return all;
}

namespace {

/// The error of one point before anything was measured.
struct PriorError {
  std::size_t point = 0, alternative = 0;
  bool fed_in = false;
  std::vector<double> term;  ///< by sample
};

std::vector<double> samples_of(const PriorError& error, const MeasuredConstants& constants) {
  std::vector<double> samples = error.term;
  for (unsigned k = 0; k < samples.size() && !error.fed_in; ++k)
    samples[k] += constants.level * normal_sample(k, kLevelStream) +
                  constants.alternative * normal_sample(k, kAlternativeStream + error.alternative) +
                  constants.own * normal_sample(k, kLevelStream + 1 + error.point);
  return samples;
}

double covariance(const PriorError& a, const PriorError& b, const MeasuredConstants& constants) {
  double value = covariance(a.term, b.term);
  if (a.fed_in || b.fed_in) return value;
  value += constants.level * constants.level;
  if (a.alternative == b.alternative) value += constants.alternative * constants.alternative;
  return a.point == b.point ? value + constants.own * constants.own : value;
}

/// The prior errors at the points of measurements; without a term, and for parts of a step, they are 0.
std::vector<PriorError> errors_of_measurements(const Scenario& scenario, const std::vector<Row>& rows,
                                               Library& library, bool has_term) {
  std::vector<std::size_t> points;
  for (const Measurement& one : scenario.measurements) points.push_back(point_of(scenario, one));
  std::vector<std::vector<double>> terms(points.size(), std::vector<double>(kDiscrepancySamples));
  if (has_term) terms = grown_errors(scenario, points, rows, library);
  const auto alternatives = alternatives_of(scenario);
  std::vector<PriorError> errors;
  for (std::size_t i = 0; i < points.size(); ++i) {
    errors.push_back(
        {points[i], alternatives[points[i]], is_fed_in(scenario, points[i]), std::move(terms[i])});
    if (has_term && is_of_step(scenario.measurements[i])) continue;
    errors.back().term.assign(kDiscrepancySamples, 0);
    errors.back().fed_in = true;
  }
  return errors;
}

ErrorModel model_of(const Scenario& scenario, const std::vector<PriorError>& errors,
                    const MeasuredConstants& constants) {
  const std::size_t count = errors.size();
  ErrorModel model;
  std::vector<std::vector<double>> matrix(count, std::vector<double>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const double spread = repeatability(scenario.measurements[i]);
    for (std::size_t j = 0; j < count; ++j) matrix[i][j] = covariance(errors[i], errors[j], constants);
    matrix[i][i] += spread * spread;
    model.mean.push_back(mean(errors[i].term));
    model.samples.push_back(samples_of(errors[i], constants));
    for (unsigned k = 0; k < kDiscrepancySamples; ++k)
      model.samples[i][k] += spread * normal_sample(k, scenario.points.size() + 2 + i);
  }
  model.factor = cholesky(std::move(matrix));
  return model;
}

}  // namespace

bool measures_steps(const Scenario& scenario) {
  return std::ranges::any_of(scenario.measurements, is_of_step);
}

std::set<std::size_t> measured_points(const Scenario& scenario) {
  std::set<std::size_t> points;
  for (const Measurement& one : scenario.measurements) points.insert(point_of(scenario, one));
  return points;
}

std::set<std::size_t> fed_in_points(const Scenario& scenario) {
  const std::set<std::size_t> measured = measured_points(scenario);
  std::set<std::size_t> points;
  for (const Measurement& one : scenario.calibrations) {
    const auto point = matching_point(scenario, one.point);
    if (point && !measured.contains(*point)) points.insert(*point);
  }
  return points;
}

double normal_sample(unsigned k, std::size_t stream) {
  const auto mixed = (k * (2 * stream + 77) + 29 * stream) % kDiscrepancySamples;
  return normal_quantile((mixed + 0.5) / kDiscrepancySamples);
}

ErrorModel error_model(const Scenario& scenario, const std::vector<Row>& rows, Library& library,
                       bool has_discrepancy) {
  const MeasuredConstants constants = shipped_discrepancy(library).measured;
  return model_of(scenario, errors_of_measurements(scenario, rows, library, has_discrepancy), constants);
}

double forecast_of(const Scenario& scenario, const Measurement& measurement, const Row& results) {
  const double value = results.number(measurement.column).value_or(0);
  if (value > 0 || is_part_of_step(measurement.column)) return value;
  throw InputError(fmt::format("{}: measured: results of {} have no number above 0 in the column \"{}\"{}",
                               place_of(scenario, measurement.point), point_name(measurement.point),
                               printable(measurement.column),
                               word_advice(measurement.column, number_columns(results))));
}

std::vector<double> residuals(const Scenario& scenario, const std::vector<Row>& rows) {
  std::vector<double> all;
  for (const Measurement& one : scenario.measurements) {
    const Row& row = rows[point_of(scenario, one)];
    const double value = forecast_of(scenario, one, row);
    const double sign = relation_to_step(one.column) == StepRelation::rate ? -1 : 1;
    const double least = is_part_of_step(one.column) ? kLeastPart * *row.number("step_seconds") : 0;
    all.push_back(sign * std::log((one.value + least) / (value + least)));
  }
  return all;
}

double log_likelihood(const ErrorModel& model, const std::vector<double>& residuals) {
  std::vector<double> differences = residuals;
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= model.mean[i];
  const auto whitened = forward_solved(model.factor, std::move(differences));
  return -0.5 * std::inner_product(whitened.begin(), whitened.end(), whitened.begin(), 0.0);
}

std::vector<double> weights_of(const std::vector<double>& logs, double power) {
  const double most = std::ranges::max(logs);
  std::vector<double> weights;
  for (const double one : logs) weights.push_back(std::exp(power * (one - most)));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& one : weights) one /= sum;
  return weights;
}

double effective_draws(const std::vector<double>& weights) {
  return 1 / std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
}

std::vector<std::size_t> resampled(const std::vector<double>& weights, std::size_t count) {
  std::vector<std::size_t> chosen;
  double below = 0;
  std::size_t draw = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = (i + 0.5) / count;
    while (draw + 1 < weights.size() && below + weights[draw] < at) below += weights[draw++];
    chosen.push_back(draw);
  }
  return chosen;
}

Proposal proposal_around(const std::vector<std::vector<double>>& inputs, const std::vector<double>& logs) {
  constexpr double kWider = 1.5, kNarrowest = 0.03;
  double power = 1;
  while (effective_draws(weights_of(logs, power)) < logs.size() / 4.0) power *= 0.8;
  const auto weights = weights_of(logs, power);
  const std::size_t count = inputs.front().size();
  Proposal proposal{std::vector<double>(count), std::vector<double>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (std::size_t draw = 0; draw < inputs.size(); ++draw)
      proposal.mean[i] += weights[draw] * inputs[draw][i];
    for (std::size_t draw = 0; draw < inputs.size(); ++draw)
      square += weights[draw] * std::pow(inputs[draw][i] - proposal.mean[i], 2);
    proposal.deviation[i] = std::max(kNarrowest, kWider * std::sqrt(square));
  }
  return proposal;
}

std::vector<double> proposed(const Proposal& proposal, const std::vector<double>& cube) {
  std::vector<double> inputs;
  for (std::size_t i = 0; i < cube.size(); ++i) {
    const double centre = proposal.mean[i], deviation = proposal.deviation[i];
    const double low = normal_share(-centre / deviation), high = normal_share((1 - centre) / deviation);
    const double value = centre + deviation * normal_quantile(low + cube[i] * (high - low));
    inputs.push_back(std::clamp(value, 0.0, std::nextafter(1.0, 0.0)));
  }
  return inputs;
}

double log_density(const Proposal& proposal, const std::vector<double>& inputs) {
  double sum = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double centre = proposal.mean[i], deviation = proposal.deviation[i];
    const double inside = normal_share((1 - centre) / deviation) - normal_share(-centre / deviation);
    const double x = (inputs[i] - centre) / deviation;
    sum += -0.5 * x * x - std::log(deviation * inside);
  }
  return sum;
}

namespace {

/// Of the draws from `first` on.
std::vector<double> log_likelihoods(const Scenario& scenario, const ErrorModel& model, const Simulations& all,
                                    std::size_t first, const DrawFunctions& of_draws) {
  std::vector<double> logs;
  for (std::size_t draw = first; draw < all.inputs.size(); ++draw)
    logs.push_back(log_likelihood(model, residuals(scenario, all.rows[draw])) + of_draws.others(draw));
  return logs;
}

std::vector<double> weighted_mean(const Simulations& all, std::size_t first,
                                  const std::vector<double>& weights) {
  std::vector<double> mean(all.inputs.front().size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (std::size_t draw = 0; draw < weights.size(); ++draw)
      mean[i] += weights[draw] * all.inputs[first + draw][i];
  }
  return mean;
}

}  // namespace

std::vector<std::size_t> learned_draws(const Scenario& scenario, const ErrorModel& model,
                                       const std::vector<std::vector<double>>& cubes, Simulations& all,
                                       const DrawFunctions& of_draws) {
  const std::size_t draws = all.inputs.size();
  of_draws.simulate();
  auto logs = log_likelihoods(scenario, model, all, 0, of_draws);
  all.second_round = effective_draws(weights_of(logs)) < draws / 2.0;
  const std::size_t first = all.second_round ? draws : 0;
  if (all.second_round) {
    const Proposal proposal = proposal_around(all.inputs, logs);
    for (const auto& cube : cubes) all.inputs.push_back(proposed(proposal, cube));
    of_draws.simulate();
    logs = log_likelihoods(scenario, model, all, first, of_draws);
    for (std::size_t i = 0; i < logs.size(); ++i) logs[i] -= log_density(proposal, all.inputs[first + i]);
  }
  const auto weights = weights_of(logs);
  all.effective_draws = effective_draws(weights);
  all.inputs.push_back(weighted_mean(all, first, weights));
  of_draws.simulate();
  std::vector<std::size_t> chosen{all.inputs.size() - 1};
  for (const std::size_t one : resampled(weights, draws - 1)) chosen.push_back(first + one);
  return chosen;
}

void learn_errors(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                  Simulations& all) {
  const MeasuredConstants constants = shipped_discrepancy(library).measured;
  const auto measured = errors_of_measurements(scenario, all.rows.front(), library, true);
  const ErrorModel model = model_of(scenario, measured, constants);
  std::vector<std::vector<double>> missed;
  for (const auto& rows : all.rows) missed.push_back(residuals(scenario, rows));
  all.shifts.assign(all.rows.size(), std::vector<double>(scenario.points.size()));
  all.log_errors.assign(scenario.points.size(), {});
  auto terms = grown_errors(scenario, points, all.rows.front(), library);
  const auto alternatives = alternatives_of(scenario);
  for (std::size_t at = 0; at < points.size(); ++at) {
    const std::size_t point = points[at];
    const PriorError prior{point, alternatives[point], is_fed_in(scenario, point), std::move(terms[at])};
    std::vector<double> covariances;
    for (const PriorError& one : measured) covariances.push_back(covariance(prior, one, constants));
    const auto gain = solved(model.factor, covariances);
    auto& errors = all.log_errors[point] = samples_of(prior, constants);
    for (std::size_t i = 0; i < gain.size(); ++i) {
      for (std::size_t k = 0; k < errors.size(); ++k) errors[k] -= gain[i] * model.samples[i][k];
    }
    for (std::size_t draw = 0; draw < missed.size(); ++draw)
      all.shifts[draw][point] = std::inner_product(gain.begin(), gain.end(), missed[draw].begin(), 0.0);
  }
}

}  // namespace stepcast
