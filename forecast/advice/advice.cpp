#include "forecast/advice/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "models/cost/memory.hpp"
#include "scenarios/experiment/software_stack.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "sim/simgrid/simgrid_flows.hpp"

namespace stepcast {
namespace {

constexpr const char* kRate = "samples_per_second";
constexpr double kLeastGain = 0.01;
constexpr std::size_t kShown = 3;
constexpr std::size_t kFewestDraws = 4;  // for an interval

double rate_of(const Simulations& all, std::size_t draw, std::size_t point) {
  return all.rows[draw][point].number(kRate).value_or(0);
}

/// How many simulations of the point kShare of the draws of all points is worth.
std::size_t simulations_allowed(const std::vector<std::size_t>& points, const Simulations& all,
                                std::size_t largest) {
  constexpr double kShare = 0.15, kFewest = 3, kMost = 24;
  const auto& rows = all.rows.front();
  double work = 0;
  for (const std::size_t point : points)
    work += rows[point].number("devices").value_or(0) / rows[largest].number("devices").value_or(1);
  return static_cast<std::size_t>(std::clamp(kShare * work * all.rows.size(), kFewest, kMost));
}

/// Simulates changes at one point.
class Adviser {
 public:
  Adviser(const Scenario& scenario, std::size_t point, const Simulations& all, Library& library,
          int processes)
      : scenario_(scenario), point_(point), all_(all), library_(library), processes_(processes) {}

  /// Those that may help, the most promising first.
  std::vector<Change> changes() {
    YamlNode document = document_with(scenario_.document, values(0, {}), library_);
    apply_software_stack(document, library_);
    const Experiment experiment = build_experiment(scenario_.document, values(0, {}), library_);
    apply_usual_kernels(document, experiment.model, experiment.device);
    cost_ = simulation_cost(experiment).time;
    std::vector<std::string> taken = scenario_.sweep_keys;
    for (const Assumption& one : scenario_.assumptions) taken.push_back(one.key);
    for (const Measurement& one : scenario_.calibrations) taken.push_back(one.range.key);
    return possible_changes(document, experiment, all_.rows.front()[point_], taken, kLeastGain);
  }

  struct Trial {
    const Change* change = nullptr;
    std::size_t draw = 0;
  };

  /// The row of each trial; empty where a change is refused, has no effect, does not fit or costs too much.
  std::vector<Row> simulated(const std::vector<Trial>& trials) {
    std::vector<Row> rows(trials.size());
    const auto work = [&](std::size_t i) { return to_json_line({}, row_of(trials[i])); };
    run_shared(trials.size(), work, {processes_, simgrid_is_used_up},
               [&](std::size_t i, const TaskResult& result) {
                 if (result.end == TaskResult::End::done)
                   rows[i] = read_json_lines(result.text + "\n", "simulation").rows.at(0);
               });
    return rows;
  }

 private:
  std::vector<Assignment> values(std::size_t draw, const std::vector<Assignment>& changed) const {
    auto all =
        values_of(scenario_, scenario_.points[point_].values, all_.inputs[draw], all_.calibrated[draw]);
    for (const Assignment& one : changed) {
      std::erase_if(all, [&](const Assignment& other) { return other.path == one.path; });
      all.push_back(one);
    }
    return all;
  }

  /// With the memory that was measured, if any was.
  bool fits_here(const Experiment& experiment) const {
    if (all_.memory_factors.empty()) return experiment.plan.fits;
    return fits(experiment.plan.memory, experiment.device, all_.memory_factors[point_] - 1);
  }

  Row row_of(const Trial& trial) {
    constexpr double kMostCost = 4;
    const Experiment experiment =
        build_experiment(scenario_.document, values(trial.draw, trial.change->values), library_);
    const std::string& key = trial.change->values.front().path;
    const bool ineffective = std::ranges::any_of(experiment.plan.ineffective_keys,
                                                 [&](const IneffectiveKey& one) { return one.key == key; });
    const Seconds cost = simulation_cost(experiment).time;
    if (ineffective || !fits_here(experiment) || cost.value > kMostCost * std::max(cost_.value, 1.0))
      return {};
    return simulate_point(experiment);
  }

  const Scenario& scenario_;
  std::size_t point_;
  const Simulations& all_;
  Library& library_;
  int processes_;
  Seconds cost_;  ///< of the unchanged point
};

/// Keeps of each key the change that helps most, and of all the three best.
void keep_best(std::vector<Advice>& all) {
  std::ranges::stable_sort(all, [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
  std::vector<Advice> best;
  for (Advice& one : all) {
    const std::string& key = one.change.values.front().path;
    const auto same = [&](const Advice& other) { return other.change.values.front().path == key; };
    if (best.size() < kShown && std::ranges::none_of(best, same)) best.push_back(std::move(one));
  }
  all = std::move(best);
}

/// The gains of the best in `draws` further draws, with that in the first.
void add_intervals(std::vector<Advice>& helpful, std::size_t draws, std::size_t point, const Simulations& all,
                   Adviser& adviser) {
  std::vector<Adviser::Trial> trials;
  for (const Advice& one : helpful) {
    for (std::size_t draw = 1; draw <= draws; ++draw) trials.push_back({&one.change, draw});
  }
  const auto rows = adviser.simulated(trials);
  for (std::size_t i = 0; i < helpful.size(); ++i) {
    std::vector<double> gains{helpful[i].gain};
    for (std::size_t k = 0; k < draws; ++k) {
      if (const auto rate = rows[i * draws + k].number(kRate))
        gains.push_back(*rate / rate_of(all, k + 1, point) - 1);
    }
    if (gains.size() == draws + 1) helpful[i].interval = forecast_interval(gains);
  }
}

std::string percent(double gain) {
  return fmt::format("{:+.0f} %", 100 * gain);
}

/// What the change does to the samples of a step, if anything.
std::string batch_text(const Advice& advice) {
  const auto before = advice.before.number("global_batch"), after = advice.after.number("global_batch");
  if (!before || !after || *before == *after) return "";
  return fmt::format(
      "{} samples a step in place of {}: the learning rate has to follow, and the result may differ", *after,
      *before);
}

std::string price_text(const Advice& advice) {
  const auto before = advice.before.number("cost_usd"), after = advice.after.number("cost_usd");
  if (!before || !after) return "";
  if (advice.change.bought)
    return fmt::format("worth it up to {:.2f} times the price of a device-hour", 1 + advice.gain);
  return fmt::format("{:.4g} in place of {:.4g} dollars", *after, *before);
}

/// What the change does to the result of the training; empty: nothing.
std::string alters(const Advice& advice) {
  const std::string batch = batch_text(advice);
  const std::string& other = advice.change.alters;
  return other + (other.empty() || batch.empty() ? "" : "; ") + batch;
}

std::string line_of(const Advice& advice) {
  std::string line = "  " + percent(advice.gain);
  if (advice.interval)
    line += fmt::format(" [{:.0f} .. {:.0f}]", 100 * advice.interval->low, 100 * advice.interval->high);
  line += "  " + to_string(advice.change);
  if (const std::string what = alters(advice); !what.empty()) line += "; changes the training: " + what;
  if (const std::string price = price_text(advice); !price.empty()) line += "; " + price;
  return line;
}

}  // namespace

std::optional<std::size_t> largest_point(const std::vector<std::size_t>& points, const Simulations& all) {
  std::optional<std::size_t> best;
  const auto size = [&](std::size_t point) {
    return std::pair(all.rows.front()[point].number("workers").value_or(0), rate_of(all, 0, point));
  };
  for (const std::size_t point : points) {
    const Row& row = all.rows.front()[point];
    if (row.text("fits") == "false" || !row.number(kRate)) continue;
    if (!best || size(point) > size(*best)) best = point;
  }
  return best;
}

std::optional<AdvisedPoint> advised(const Scenario& scenario, const std::vector<std::size_t>& points,
                                    const Simulations& all, Library& library, int processes) {
  const auto point = largest_point(points, all);
  if (!point) return std::nullopt;
  AdvisedPoint found{*point, {}, {}};
  Adviser adviser(scenario, *point, all, library, processes);
  std::vector<Change> changes = adviser.changes();
  const std::size_t allowed = simulations_allowed(points, all, *point);
  if (changes.size() > allowed) changes.resize(allowed);
  std::vector<Adviser::Trial> trials;
  for (const Change& one : changes) trials.push_back({&one, 0});
  const auto rows = adviser.simulated(trials);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto rate = rows[i].number(kRate);
    if (!rate) continue;
    found.tried.push_back(
        fmt::format("{}: {}", changes[i].values.front().path, changes[i].values.front().value.text));
    const double gain = *rate / rate_of(all, 0, *point) - 1;
    if (gain >= kLeastGain)
      found.helpful.push_back({changes[i], gain, {}, all.rows.front()[*point], rows[i]});
  }
  keep_best(found.helpful);
  if (found.helpful.empty()) return found;
  const std::size_t draws = std::min((allowed - changes.size()) / found.helpful.size(), all.rows.size() - 1);
  if (draws >= kFewestDraws) add_intervals(found.helpful, draws, *point, all, adviser);
  return found;
}

std::vector<std::string> advice_lines(const Scenario& scenario, const AdvisedPoint& advised) {
  const std::string& at = scenario.points[advised.point].name;
  if (advised.helpful.empty()) return {};
  std::vector<std::string> lines{
      fmt::format("What helps at {}, each alone, in samples/s of the simulation:", at)};
  for (const Advice& one : advised.helpful) lines.push_back(line_of(one));
  return lines;
}

Results advice_results(const Scenario& scenario, const AdvisedPoint& advised) {
  Results results{scenario.name, {}};
  for (const Advice& one : advised.helpful) {
    Row row;
    row.set("point", scenario.points[advised.point].name);
    row.set("change", to_string(one.change));
    row.set("gain", one.gain);
    if (one.interval) {
      row.set("gain_low", one.interval->low);
      row.set("gain_high", one.interval->high);
    }
    row.set("changes_training", alters(one));
    row.set("other_hardware", one.change.bought);
    results.rows.push_back(std::move(row));
  }
  return results;
}

std::string advice_sentence(const Scenario& scenario, const AdvisedPoint& advised) {
  const std::string& at = scenario.points[advised.point].name;
  if (!advised.helpful.empty()) {
    const auto free = [](const Advice& one) { return !one.change.bought && alters(one).empty(); };
    const auto found = std::ranges::find_if(advised.helpful, free);
    const Advice& first = found != advised.helpful.end() ? *found : advised.helpful.front();
    return fmt::format("Change first: {}, {} samples/s{}.", to_string(first.change), percent(first.gain),
                       first.change.bought ? " (other hardware)"
                                           : (alters(first).empty() ? "" : ", which changes the training"));
  }
  if (advised.tried.empty())
    return fmt::format("Nothing that a scenario can change would save 1 % of the step at {}.", at);
  return fmt::format("Nothing of what was tried saves 1 % of the step at {}: {}.", at,
                     fmt::join(advised.tried, ", "));
}

}  // namespace stepcast
