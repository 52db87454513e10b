#include "commands/run/best_alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "forecast/discrepancy.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

constexpr const char* kRate = "samples_per_second";

/// The points of each group of alternatives.
std::vector<std::vector<std::size_t>> alternatives(const Scenario& scenario,
                                                   const std::vector<std::size_t>& points,
                                                   const Simulations& all) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const std::size_t point : points) {
    const Row& row = all.rows.front()[point];
    if (!row.number(kRate) || row.text("fits") == "false") continue;
    std::string name = row.text("workers");
    for (const Assignment& one : scenario.points[point].values) {
      if (one.path == "model" || one.path.starts_with("model.")) name += " " + point_name({one});
    }
    groups[name].push_back(point);
  }
  std::vector<std::vector<std::size_t>> several;
  for (auto& [name, group] : groups) {
    if (group.size() > 1) several.push_back(std::move(group));
  }
  return several;
}

/// What a group's samples say, one point after the other, because all together would fill the memory.
struct Best {
  std::vector<double> rates;  ///< by sample: of the point with the highest median
  std::vector<double> most;   ///< by sample: the highest rate of the group
  std::vector<double> ties;   ///< by sample: how many points have it
};

bool is_highest(double rate, double most) {
  constexpr double kRounding = 1e-9;
  return rate >= most * (1 - kRounding);
}

Best best_of(const std::vector<std::size_t>& group, const Simulations& all) {
  Best best;
  double highest = 0;
  for (const std::size_t point : group) {
    auto rates = predictive_values(all, point, kRate);
    best.most.resize(rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i) best.most[i] = std::max(best.most[i], rates[i]);
    const double middle = median_of(rates);
    if (middle <= highest) continue;
    highest = middle;
    best.rates = std::move(rates);
  }
  best.ties.resize(best.most.size());
  for (const std::size_t point : group) {
    const auto rates = predictive_values(all, point, kRate);
    for (std::size_t i = 0; i < rates.size(); ++i) best.ties[i] += is_highest(rates[i], best.most[i]) ? 1 : 0;
  }
  return best;
}

void set_choice(Row& row, std::size_t point, const Best& best, const Simulations& all) {
  auto ratios = predictive_values(all, point, kRate);
  double wins = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (is_highest(ratios[i], best.most[i])) wins += 1 / best.ties[i];
    ratios[i] /= best.rates[i];
  }
  const auto interval = forecast_interval(ratios);
  row.set("best_probability", wins / ratios.size());
  row.set("ratio_to_best", interval.median);
  row.set("ratio_to_best_low", interval.low);
  row.set("ratio_to_best_high", interval.high);
}

}  // namespace

void add_choices(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all,
                 Results& results) {
  if (all.rows.size() < 2) return;
  std::map<std::size_t, std::size_t> row_of;
  for (std::size_t i = 0; i < points.size(); ++i) row_of[points[i]] = i;
  for (const auto& group : alternatives(scenario, points, all)) {
    const Best best = best_of(group, all);
    for (const std::size_t point : group) set_choice(results.rows[row_of.at(point)], point, best, all);
  }
}

std::vector<std::string> equal_choices(const Results& results) {
  constexpr std::size_t kMostNames = 8;
  constexpr double kEnough = 0.9;
  std::map<double, std::vector<const Row*>> groups;  // by workers
  for (const Row& row : results.rows) {
    if (row.number("best_probability")) groups[row.number("workers").value_or(0)].push_back(&row);
  }
  std::vector<std::string> lines;
  for (auto& [workers, group] : groups) {
    const std::size_t all = group.size();
    std::ranges::stable_sort(group, [](const Row* a, const Row* b) {
      return *a->number("best_probability") > *b->number("best_probability");
    });
    double sum = 0;
    std::erase_if(group, [&](const Row* row) {
      const bool enough = sum >= kEnough;
      sum += *row->number("best_probability");
      return enough;
    });
    std::string names;
    for (std::size_t i = 0; i < std::min(group.size(), kMostNames); ++i)
      names += fmt::format("{}{} ({:.0f} %)", i == 0 ? "" : "; ", group[i]->text("point"),
                           100 * *group[i]->number("best_probability"));
    if (group.size() > kMostNames) names += fmt::format("; and {} more", group.size() - kMostNames);
    lines.push_back(group.size() == 1
                        ? fmt::format("best of {}: {}", all, names)
                        : fmt::format("cannot be told apart, {} of {}: {}", group.size(), all, names));
  }
  return lines;
}

std::optional<WorthyWorkers> worthy_workers(const Scenario& scenario, const std::vector<std::size_t>& points,
                                            const Simulations& all, double factor) {
  const bool alone =
      std::ranges::all_of(scenario.sweep_keys, [](const auto& key) { return key == "workers"; });
  if (!alone || points.size() < 3 || all.rows.size() < 2) return std::nullopt;
  std::map<double, std::vector<double>> rates;  // by workers
  for (const std::size_t point : points)
    rates[*all.rows.front()[point].number("workers")] = predictive_values(all, point, kRate);
  if (rates.size() < 3) return std::nullopt;
  const double largest = rates.rbegin()->first;
  std::vector<double> worthy(rates.begin()->second.size(), largest);
  for (auto more = std::next(rates.rbegin()); more != rates.rend(); ++more) {
    const auto next = std::prev(more);
    const double doublings = std::log2(next->first / more->first);
    for (std::size_t i = 0; i < worthy.size(); ++i) {
      if (std::pow(next->second[i] / more->second[i], 1 / doublings) < factor) worthy[i] = more->first;
    }
  }
  std::ranges::sort(worthy);
  const auto at = [&](double p) { return worthy[static_cast<std::size_t>(p * (worthy.size() - 1))]; };
  return WorthyWorkers{at(0.05), at(0.5), at(0.95), largest};
}

std::string to_string(const WorthyWorkers& workers, double factor) {
  if (workers.low == workers.largest)
    return fmt::format(
        "A further doubling gives {:g} times or more up to {} workers, the most of this sweep.", factor,
        workers.largest);
  return fmt::format("A further doubling gives less than {:g} times beyond {} workers [{} .. {}{}].", factor,
                     workers.median, workers.low, workers.high,
                     workers.high == workers.largest ? ", the most of this sweep" : "");
}

}  // namespace stepcast
