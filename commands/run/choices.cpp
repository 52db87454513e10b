#include "commands/run/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

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

/// What a group's samples say, one after the other, because all together would fill the memory.
struct Best {
  std::size_t point = 0;             ///< with the highest median
  std::vector<double> rates;         ///< its samples
  std::vector<std::size_t> winners;  ///< by sample: the point with the highest rate
};

Best best_of(const std::vector<std::size_t>& group, const Simulations& all) {
  Best best;
  double highest = 0;
  std::vector<double> most;
  for (const std::size_t point : group) {
    auto rates = predictive_values(all, point, kRate);
    most.resize(rates.size());
    best.winners.resize(rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] <= most[i]) continue;
      most[i] = rates[i];
      best.winners[i] = point;
    }
    if (const double middle = median_of(rates); middle > highest) {
      highest = middle;
      best.point = point;
      best.rates = std::move(rates);
    }
  }
  return best;
}

void set_choice(Row& row, std::size_t point, const Best& best, const Simulations& all) {
  auto ratios = predictive_values(all, point, kRate);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= best.rates[i];
  const auto wins = static_cast<double>(std::ranges::count(best.winners, point));
  const auto interval = forecast_interval(ratios);
  row.set("best_probability", wins / static_cast<double>(ratios.size()));
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
  constexpr double kReaches = 0.999;
  std::map<double, std::vector<const Row*>> groups;  // by workers
  for (const Row& row : results.rows) {
    if (row.number("best_probability")) groups[row.number("workers").value_or(0)].push_back(&row);
  }
  std::vector<std::string> lines;
  for (auto& [workers, group] : groups) {
    const std::size_t all = group.size();
    std::erase_if(group, [](const Row* row) { return *row->number("ratio_to_best_high") < kReaches; });
    std::ranges::stable_sort(group, [](const Row* a, const Row* b) {
      return *a->number("best_probability") > *b->number("best_probability");
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
  const auto at = [&](double p) {
    return worthy[static_cast<std::size_t>(p * static_cast<double>(worthy.size() - 1))];
  };
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
