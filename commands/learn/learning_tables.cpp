#include "commands/learn/learning_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.3g}", loss) : "diverged";
}

std::string range_of(const LearnedPoint& point) {
  if (point.seeds < 2 || !std::isfinite(point.lowest_loss)) return "";
  return fmt::format("{} to {}", loss_text(point.lowest_loss), loss_text(point.highest_loss));
}

/// Returns the number that follows "workers=" in the name of a point, and the name without it.
std::optional<std::pair<double, std::string>> workers_of(const std::string& name) {
  static constexpr std::string_view kKey = "workers=";
  const std::size_t at = name.find(kKey);
  if (at == std::string::npos || (at > 0 && name[at - 1] != ' ')) return std::nullopt;
  const std::size_t end = std::min(name.find(", ", at), name.size());
  std::string rest = name.substr(0, at) + name.substr(std::min(end + 2, name.size()));
  if (rest.ends_with(", ")) rest.resize(rest.size() - 2);
  return std::pair{std::stod(name.substr(at + kKey.size(), end - at - kKey.size())), rest};
}

}  // namespace

Table learning_table(const std::vector<LearnedPoint>& points, std::optional<double> target_loss) {
  Table table;
  table.columns = {{"point", "", Align::left, 70},
                   {"mini-batches", "of a worker"},
                   {"time"},
                   {"loss"},
                   {"of all", "seeds"},
                   {"accuracy", "%"},
                   {"samples", "per second"}};
  if (target_loss) {
    const std::string target = fmt::format("loss {:.3g}", *target_loss);
    table.columns.push_back({"samples to", target});
    table.columns.push_back({"time to", target});
  }
  for (const LearnedPoint& one : points) {
    auto& cells = table.rows.emplace_back(std::vector<std::string>{
        one.point, std::to_string(one.mini_batches), human(Seconds{one.seconds}), loss_text(one.loss),
        range_of(one), one.accuracy ? fmt::format("{:.1f}", 100 * *one.accuracy) : "",
        fmt::format("{:.4g}", one.seconds > 0 ? one.samples / one.seconds : 0)});
    if (!target_loss) continue;
    cells.push_back(one.samples_to_target ? fmt::format("{:.0f}", *one.samples_to_target) : "not reached");
    cells.push_back(one.seconds_to_target ? human(Seconds{*one.seconds_to_target}) : "not reached");
  }
  return table;
}

Results learning_per_second(const std::string& scenario, const std::vector<LearnedPoint>& points) {
  Results results{scenario, {}};
  for (const LearnedPoint& one : points) {
    Row& row = results.rows.emplace_back();
    const double rate = one.seconds > 0 ? one.samples / one.seconds : 0;
    const bool learns = one.samples_to_target.value_or(0) > 0;
    row.set("point", one.point);
    if (learns) row.set("learning_per_record", 1 / *one.samples_to_target);
    row.set("records_per_second", rate);
    if (learns) row.set("learning_per_second", rate / *one.samples_to_target);
    if (one.seconds_to_target) row.set("seconds_to_target", *one.seconds_to_target);
    row.set("loss", one.loss);
  }
  return results;
}

CurvePlot time_to_target_plot(const std::string& scenario, const std::vector<LearnedPoint>& points,
                              double target_loss, const std::vector<LearnedPoint>& forecast) {
  CurvePlot plot{.title = fmt::format("{}: time to loss {:.3g}", scenario, target_loss),
                 .quantity = "seconds of the simulated cluster",
                 .time = "workers"};
  std::map<std::string, Curve> curves;
  const auto add = [&](const std::vector<LearnedPoint>& of, auto values) {
    for (const LearnedPoint& point : of) {
      const auto workers = workers_of(point.point);
      if (!workers || !point.seconds_to_target) continue;
      (curves[workers->second].*values).emplace_back(workers->first, *point.seconds_to_target);
    }
  };
  add(points, &Curve::measured);
  add(forecast, &Curve::forecast);
  for (auto& [name, curve] : curves) {
    std::ranges::sort(curve.measured);
    std::ranges::sort(curve.forecast);
    curve.name = name.empty() ? scenario : name;
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

namespace {

/// The name of the one point that sets all of these values.
const std::string& point_with(const Scenario& scenario, const std::vector<Assignment>& values) {
  const auto sets = [](const Point& point, const Assignment& one) {
    return std::ranges::any_of(
        point.values, [&](const Assignment& other) { return point_name({other}) == point_name({one}); });
  };
  std::vector<const Point*> found;
  for (const Point& point : scenario.points) {
    if (std::ranges::all_of(values, [&](const Assignment& one) { return sets(point, one); }))
      found.push_back(&point);
  }
  if (found.size() == 1) return found.front()->name;
  const std::string place = place_of(scenario, values);
  if (found.empty())
    throw InputError(
        fmt::format("{}: learning.trends: the sweep has no point with {}", place, point_name(values)));
  throw InputError(fmt::format(
      "{}: learning.trends: the sweep has {} points with {}: \"{}\", \"{}\"{}; give more values", place,
      found.size(), point_name(values), found[0]->name, found[1]->name, found.size() > 2 ? ", ..." : ""));
}

double quantity_of(const LearnedRun& run, const std::string& quantity) {
  if (quantity == "accuracy") return run.accuracy.value_or(0);
  if (quantity == "loss_low_energy") return run.loss_low_energy.value_or(HUGE_VAL);
  if (quantity == "seconds") return run.seconds;
  if (quantity == "seconds_to_target") return run.seconds_to_target.value_or(HUGE_VAL);
  if (quantity == "samples_to_target") return run.samples_to_target.value_or(HUGE_VAL);
  return run.loss;
}

/// The quantity of a point's trainings by seed.
std::map<std::int64_t, double> by_seed(const std::vector<LearnedRun>& runs, const std::string& point,
                                       const std::string& quantity) {
  std::map<std::int64_t, double> values;
  for (const LearnedRun& run : runs) {
    if (run.point == point) values[run.seed] = quantity_of(run, quantity);
  }
  return values;
}

/// The values of a point as the table shows them: keys without the mappings that they are in.
std::string short_name(const std::vector<Assignment>& values) {
  std::vector<Assignment> shortened = values;
  for (Assignment& value : shortened) value.path = value.path.substr(value.path.rfind('.') + 1);
  return point_name(shortened);
}

std::string relation_text(const LearningTrend& trend) {
  if (trend.relation == LearningTrend::Relation::equal)
    return fmt::format("within {:.3g} % of", 100 * trend.within);
  if (trend.relation == LearningTrend::Relation::at_most)
    return fmt::format("at most {:.3g} % above", 100 * trend.within);
  return trend.relation == LearningTrend::Relation::less_than ? "less than" : "more than";
}

bool holds(const LearningTrend& trend, double value, double over) {
  if (trend.relation == LearningTrend::Relation::equal)
    return std::abs(value - over) <= trend.within * std::abs(over);
  if (trend.relation == LearningTrend::Relation::at_most)
    return value - over <= trend.within * std::abs(over);
  return trend.relation == LearningTrend::Relation::less_than ? value < over : value > over;
}

std::string shown(double value, const std::string& quantity) {
  if (quantity == "loss") return loss_text(value);
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "never";
}

}  // namespace

void check_trends(const Scenario& scenario, const std::vector<LearningTrend>& trends) {
  for (const LearningTrend& trend : trends) {
    for (const auto& values : {trend.point, trend.over}) point_with(scenario, values);
  }
}

std::string TrendResult::verdict() const {
  if (share() >= 0.9) return "yes";
  return share() <= 0.1 ? "no" : "open";
}

std::vector<TrendResult> trend_results(const Scenario& scenario, const std::vector<LearningTrend>& trends,
                                       const std::vector<LearnedRun>& runs) {
  std::vector<TrendResult> results;
  for (const LearningTrend& trend : trends) {
    TrendResult& result = results.emplace_back();
    const std::string &point = point_with(scenario, trend.point), &over = point_with(scenario, trend.over);
    result.point = short_name(trend.point);
    result.over = short_name(trend.over);
    result.quantity = trend.quantity;
    result.relation = relation_text(trend);
    result.source = trend.source;
    const auto of_point = by_seed(runs, point, trend.quantity), of_over = by_seed(runs, over, trend.quantity);
    std::vector<double> first, second;
    for (const auto& [seed, value] : of_point) {
      const auto other = of_over.find(seed);
      if (other == of_over.end()) continue;
      first.push_back(value);
      second.push_back(other->second);
      result.holds += holds(trend, value, other->second) ? 1 : 0;
    }
    result.seeds = first.size();
    if (first.empty()) continue;
    result.median_point = median_of(first);
    result.median_over = median_of(second);
  }
  return results;
}

Results to_results(const std::string& scenario, const std::vector<TrendResult>& trends) {
  Results results{scenario, {}};
  for (const TrendResult& trend : trends) {
    Row& row = results.rows.emplace_back();
    row.set("point", trend.point);
    row.set("quantity", trend.quantity);
    row.set("relation", trend.relation);
    row.set("over", trend.over);
    row.set("median_point", trend.median_point);
    row.set("median_over", trend.median_over);
    row.set("seeds", static_cast<std::int64_t>(trend.seeds));
    row.set("holds_in", static_cast<std::int64_t>(trend.holds));
    row.set("verdict", trend.verdict());
    row.set("source", trend.source);
  }
  return results;
}

Table trend_table(const std::vector<TrendResult>& trends) {
  Table table;
  table.columns = {{"claim", "", Align::left, 120}, {"medians"}, {"holds in", "seeds"}, {"verdict"}};
  for (const TrendResult& trend : trends) {
    table.rows.push_back(
        {fmt::format("{} of {} is {} that of {}", trend.quantity, trend.point, trend.relation, trend.over),
         fmt::format("{}, {}", shown(trend.median_point, trend.quantity),
                     shown(trend.median_over, trend.quantity)),
         fmt::format("{} of {}", trend.holds, trend.seeds), trend.verdict()});
  }
  return table;
}

}  // namespace stepcast
