#include "forecast/posterior.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "forecast/draws/alternatives.hpp"
#include "forecast/draws/weighted_draws.hpp"
#include "report/statistics/cholesky.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

constexpr double kPartSpread = 0.1;  // of a part of a step, for whose error there is no term
constexpr double kLeastPart = 0.01;  // of the step; differences of parts that are smaller say nothing

// Beyond those of single points.
constexpr std::size_t kAlternativeStream = 1'000'000, kDetailStream = 2'000'000;
constexpr std::size_t kLevelStream = 1;

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

/// What the errors of points have in common.
struct ErrorGroups {
  Alternatives alternatives;
  std::vector<std::optional<std::size_t>> fed_in;  ///< by point: the point that its error is relative to
  std::vector<bool> levels;                        ///< by point: on other devices than that point
  bool learns_level = false;                       ///< a measurement has a level
};

/// Of the points that are fed in, that with most devices which the point also has, or else the first.
std::optional<std::size_t> fed_in_for(std::size_t point, const std::vector<std::size_t>& fed_in,
                                      const std::vector<Row>& rows) {
  std::optional<std::size_t> best;
  const auto devices = [&](std::size_t of) { return rows[of].number("devices").value_or(0); };
  for (const std::size_t one : fed_in) {
    if (devices(one) <= devices(point) && (!best || devices(one) > devices(*best))) best = one;
  }
  return best || fed_in.empty() ? best : fed_in.front();
}

ErrorGroups groups_of(const Scenario& scenario, const std::vector<Row>& rows) {
  ErrorGroups groups;
  groups.alternatives = alternatives_of(scenario);
  std::vector<std::size_t> fed_in;
  for (std::size_t point = 0; point < scenario.points.size(); ++point) {
    if (is_fed_in(scenario, point)) fed_in.push_back(point);
  }
  for (std::size_t point = 0; point < scenario.points.size(); ++point) {
    const auto& base = groups.fed_in.emplace_back(fed_in_for(point, fed_in, rows));
    groups.levels.push_back(!base || rows[point].number("devices") != rows[*base].number("devices"));
  }
  groups.learns_level = std::ranges::any_of(scenario.measurements, [&](const Measurement& one) {
    return is_of_step(one) && groups.levels[point_of(scenario, one)];
  });
  return groups;
}

/// What one point has in common with others (Alternatives).
struct AlternativeNumbers {
  std::size_t layout = 0, detail = 0, place = 0;
};

AlternativeNumbers numbers_of(const Alternatives& all, std::size_t point) {
  return {all.layouts[point], all.details[point], all.places[point]};
}

/// The error of one point before anything was measured.
struct PriorError {
  std::size_t point = 0;
  bool none = false;       ///< it is fed in, or no step
  bool has_level = false;  ///< that measurements say something about
  AlternativeNumbers numbers = {};
  std::optional<AlternativeNumbers> of_fed_in = {};  ///< of the point that is fed in
  double own = 0;            ///< standard deviation of what points of one place have in common
  std::vector<double> term;  ///< by sample
};

std::vector<double> samples_of(const PriorError& error, const MeasuredConstants& constants) {
  std::vector<double> samples = error.term;
  const double level = error.has_level ? constants.level : 0;
  const auto of_alternative = [&](unsigned k, const AlternativeNumbers& numbers) {
    return constants.alternative * normal_sample(k, kAlternativeStream + numbers.layout) +
           constants.detail * normal_sample(k, kDetailStream + numbers.detail);
  };
  for (unsigned k = 0; k < samples.size() && !error.none; ++k) {
    const double fed_in = error.of_fed_in ? of_alternative(k, *error.of_fed_in) : 0;
    samples[k] += level * normal_sample(k, kLevelStream) + of_alternative(k, error.numbers) - fed_in +
                  error.own * normal_sample(k, kLevelStream + 1 + error.numbers.place);
  }
  return samples;
}

double covariance(const PriorError& a, const PriorError& b, const MeasuredConstants& constants) {
  double value = covariance(a.term, b.term);
  if (a.none || b.none) return value;
  if (a.has_level && b.has_level) value += constants.level * constants.level;
  const auto square = [](double x) { return x * x; };
  const auto common = [&](const std::optional<AlternativeNumbers>& x,
                          const std::optional<AlternativeNumbers>& y) {
    if (!x || !y) return 0.0;
    return square(x->layout == y->layout ? constants.alternative : 0) +
           square(x->detail == y->detail ? constants.detail : 0);
  };
  value += common(a.numbers, b.numbers) - common(a.numbers, b.of_fed_in) - common(a.of_fed_in, b.numbers) +
           common(a.of_fed_in, b.of_fed_in);
  return a.numbers.place == b.numbers.place ? value + a.own * b.own : value;
}

/// The constants at a misfit.
MeasuredConstants constants_at(double misfit, Library& library) {
  MeasuredConstants constants = shipped_discrepancy(library).measured;
  const double factor = 1 + misfit / constants.misfit;
  for (double* one : {&constants.own, &constants.doubling, &constants.walk}) *one *= factor;
  return constants;
}

/// The prior errors at these points.
std::vector<PriorError> prior_errors(const Scenario& scenario, const std::vector<std::size_t>& points,
                                     const std::vector<Row>& rows, Library& library,
                                     const MeasuredConstants& constants) {
  const ErrorGroups groups = groups_of(scenario, rows);
  auto terms = groups.learns_level ? grown_errors(scenario, points, rows, library, constants)
                                   : term_errors(scenario, points, library);
  std::vector<PriorError> errors;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t point = points[i];
    const auto base = groups.fed_in[point];
    const auto numbers = numbers_of(groups.alternatives, point);
    const auto of_fed_in = base ? std::optional(numbers_of(groups.alternatives, *base)) : std::nullopt;
    errors.push_back({.point = point,
                      .none = is_fed_in(scenario, point),
                      .has_level = groups.learns_level && groups.levels[point],
                      .numbers = numbers,
                      .of_fed_in = of_fed_in,
                      .own = of_fed_in && of_fed_in->place == numbers.place ? 0 : constants.own,
                      .term = std::move(terms[i])});
  }
  return errors;
}

/// The prior errors at the points of measurements; without a term, and for parts of a step, they are 0.
std::vector<PriorError> errors_of_measurements(const Scenario& scenario, const std::vector<Row>& rows,
                                               Library& library, bool has_term,
                                               const MeasuredConstants& constants) {
  std::vector<std::size_t> points;
  for (const Measurement& one : scenario.measurements) points.push_back(point_of(scenario, one));
  std::vector<PriorError> errors(points.size());
  if (has_term) errors = prior_errors(scenario, points, rows, library, constants);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (has_term && is_of_step(scenario.measurements[i])) continue;
    errors[i] = {.point = points[i], .none = true, .term = std::vector<double>(kDiscrepancySamples)};
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

double layout_variance(const Scenario& scenario, std::size_t a, std::size_t b, Library& library) {
  const Alternatives all = alternatives_of(scenario);
  const MeasuredConstants constants = shipped_discrepancy(library).measured;
  const double layouts = all.layouts[a] == all.layouts[b] ? 0 : 2 * std::pow(constants.alternative, 2);
  return layouts + (all.details[a] == all.details[b] ? 0 : 2 * std::pow(constants.detail, 2));
}

double normal_sample(unsigned k, std::size_t stream) {
  return normal_quantile(uniform_sample(k, stream));
}

double misfit_of(const Scenario& scenario, const std::vector<Row>& rows) {
  constexpr double kTypical = 0.03;
  const ErrorGroups groups = groups_of(scenario, rows);
  const auto missed = residuals(scenario, rows);
  std::vector<double> squares;
  for (std::size_t i = 0; i < missed.size(); ++i) {
    const std::size_t point = point_of(scenario, scenario.measurements[i]);
    if (is_of_step(scenario.measurements[i]) && groups.fed_in[point] && groups.levels[point])
      squares.push_back(missed[i] * missed[i]);
  }
  return squares.empty() ? kTypical : std::sqrt(mean(squares));
}

ErrorModel error_model(const Scenario& scenario, const std::vector<Row>& rows, Library& library,
                       bool has_discrepancy, double misfit) {
  const MeasuredConstants constants = constants_at(misfit, library);
  return model_of(scenario, errors_of_measurements(scenario, rows, library, has_discrepancy, constants),
                  constants);
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
  const double misfit = all.misfit ? *all.misfit : misfit_of(scenario, all.rows.front());
  const MeasuredConstants constants = constants_at(misfit, library);
  const auto measured = errors_of_measurements(scenario, all.rows.front(), library, true, constants);
  const ErrorModel model = model_of(scenario, measured, constants);
  std::vector<std::vector<double>> missed;
  for (const auto& rows : all.rows) missed.push_back(residuals(scenario, rows));
  all.shifts.assign(all.rows.size(), std::vector<double>(scenario.points.size()));
  all.log_errors.assign(scenario.points.size(), {});
  for (const PriorError& prior : prior_errors(scenario, points, all.rows.front(), library, constants)) {
    const std::size_t point = prior.point;
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
