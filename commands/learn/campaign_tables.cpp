#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "commands/learn/learned_campaign.hpp"
#include "forecast/simulate_point.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr double kHour = 3600;  // [s]

/// Whether a figure is better than another one: a smaller loss or a larger accuracy.
bool is_better(const LearnedCampaign& campaign, double one, double other) {
  return campaign.objective == "loss" ? one < other : one > other;
}

/// The best figures so far, by the time [s] at which they are known.
std::vector<std::pair<double, double>> best_so_far(const LearnedCampaign& campaign) {
  std::vector<std::pair<double, double>> known;
  for (const CampaignTrial& one : campaign.trials) {
    if (std::isfinite(one.merit)) known.emplace_back(one.end, one.figure);
  }
  std::ranges::stable_sort(known, {}, [](const auto& one) { return one.first; });
  for (std::size_t i = 1; i < known.size(); ++i) {
    if (!is_better(campaign, known[i].second, known[i - 1].second)) known[i].second = known[i - 1].second;
  }
  return known;
}

/// The first time at which the best figure is known, and this figure.
std::pair<double, double> first_best(const LearnedCampaign& campaign) {
  const auto known = best_so_far(campaign);
  const double best = known.back().second;
  return *std::ranges::find(known, best, [](const auto& one) { return one.second; });
}

/// Names of campaigns without "campaign." and "optimizer.", in which their keys agree.
std::string short_campaign_name(std::string name) {
  for (const std::string prefix : {"campaign.", "optimizer."}) {
    for (std::size_t at = name.find(prefix); at != std::string::npos; at = name.find(prefix))
      name.erase(at, prefix.size());
  }
  return name;
}

/// The name of a point without its value of `campaign.groups`.
std::string without_groups(const std::string& name) {
  const std::size_t at = name.find("campaign.groups=");
  if (at == std::string::npos) return name;
  const std::size_t end = std::min(name.find(", ", at), name.size());
  std::string rest = name.substr(0, at) + name.substr(std::min(end + 2, name.size()));
  if (rest.ends_with(", ")) rest.resize(rest.size() - 2);
  return rest;
}

/// Campaigns of equal point, which differ by seed, in the order of the first ones.
template <class One, class Name>
std::vector<std::pair<std::string, std::vector<const One*>>> by_point(const std::vector<One>& all,
                                                                      const Name& name_of) {
  std::vector<std::pair<std::string, std::vector<const One*>>> points;
  for (const One& one : all) {
    const std::string name = name_of(one);
    const auto found = std::ranges::find(points, name, [](const auto& point) { return point.first; });
    if (found == points.end())
      points.push_back({name, {&one}});
    else
      found->second.push_back(&one);
  }
  return points;
}

std::vector<std::pair<std::string, std::vector<const Row*>>> rows_by_point(const Results& results) {
  return by_point(results.rows, [](const Row& row) { return row.text("point"); });
}

double median(const std::vector<const Row*>& rows, const char* column) {
  std::vector<double> values;
  for (const Row* row : rows) values.push_back(row->number(column).value_or(0));
  return median_of(values);
}

/// The best figures of several seeds at one time; nothing before each has one.
std::optional<std::vector<double>> figures_at(
    double seconds, const std::vector<const LearnedCampaign*>& seeds,
    const std::vector<std::vector<std::pair<double, double>>>& known) {
  std::vector<double> figures;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto later =
        std::ranges::upper_bound(known[i], seconds, {}, [](const auto& one) { return one.first; });
    if (later == known[i].begin()) return std::nullopt;
    figures.push_back(std::prev(later)->second);
  }
  return figures;
}

Curve best_curve(const std::string& name, const std::vector<const LearnedCampaign*>& seeds) {
  Curve curve{.name = short_campaign_name(name)};
  std::vector<std::vector<std::pair<double, double>>> known;
  std::vector<double> times;
  for (const LearnedCampaign* seed : seeds) {
    known.push_back(best_so_far(*seed));
    for (const auto& entry : known.back()) times.push_back(entry.first);
  }
  std::ranges::sort(times);
  for (const double seconds : times) {
    const auto figures = figures_at(seconds, seeds, known);
    if (!figures) continue;
    curve.measured.emplace_back(seconds / kHour, median_of(*figures));
    const auto [low, high] = std::ranges::minmax(*figures);
    curve.band.push_back({seconds / kHour, low, high});
  }
  return curve;
}

}  // namespace

Results campaign_results(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns) {
  double best = first_best(campaigns.front()).second;
  for (const LearnedCampaign& one : campaigns) {
    const double found = first_best(one).second;
    if (is_better(one, found, best)) best = found;
  }
  Results results{scenario, {}};
  for (const LearnedCampaign& one : campaigns) {
    Row& row = results.rows.emplace_back();
    const auto [seconds, figure] = first_best(one);
    row.set("point", one.point);
    row.set("seed", one.seed);
    row.set("points", static_cast<std::int64_t>(one.trials.size()));
    row.set("best_" + one.objective, figure);
    row.set("regret", std::abs(figure - best));
    row.set("hours_to_best", seconds / kHour);
    set_campaign_columns(row, one.times, one.trials.size());
  }
  return results;
}

Results campaign_points(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns) {
  Results results{scenario, {}};
  for (const LearnedCampaign& campaign : campaigns) {
    for (std::size_t number = 0; number < campaign.trials.size(); ++number) {
      const CampaignTrial& one = campaign.trials[number];
      Row& row = results.rows.emplace_back();
      row.set("point", campaign.point);
      row.set("seed", campaign.seed);
      row.set("number", static_cast<std::int64_t>(number + 1));
      row.set("group", std::int64_t{one.proposal.group});
      row.set("optimizer", std::int64_t{one.proposal.optimizer});
      for (const Assignment& value : search_values(campaign.keys, one.trial.values))
        row.set(value.path, value.value.text);
      row.set("asked_hours", one.proposal.asked / kHour);
      row.set("start_hours", one.proposal.start / kHour);
      row.set("end_hours", one.end / kHour);
      if (std::isfinite(one.merit)) row.set(campaign.objective, one.figure);
    }
  }
  return results;
}

Table campaign_table(const Results& results, const std::string& objective) {
  Table table;
  table.columns = {{"campaign", "", Align::left, 70},
                   {"best", objective},
                   {"regret"},
                   {"time to best"},
                   {"time of all points"},
                   {"devices"},
                   {"utilization", "%"},
                   {"idle: proposal", "%"},
                   {"folds", "%"},
                   {"generation", "%"},
                   {"tail", "%"},
                   {"driver", "%"}};
  for (const auto& [name, rows] : rows_by_point(results)) {
    const auto percent = [&of_point = rows](const char* column) {
      return fmt::format("{:.3g}", 100 * median(of_point, column));
    };
    table.rows.push_back(
        {short_campaign_name(name), fmt::format("{:.3g}", median(rows, ("best_" + objective).c_str())),
         fmt::format("{:.2g}", median(rows, "regret")), human(Seconds{kHour * median(rows, "hours_to_best")}),
         human(Seconds{kHour * median(rows, "makespan_hours")}),
         fmt::format("{:.0f}", median(rows, "campaign_devices")), percent("device_utilization"),
         percent("idle_optimizer_share"), percent("idle_fold_share"), percent("idle_generation_share"),
         percent("idle_tail_share"), percent("idle_driver_share")});
  }
  return table;
}

CurvePlot best_against_hours(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns) {
  CurvePlot plot{.title = scenario + ": best point so far",
                 .quantity = "best " + campaigns.front().objective,
                 .time = "simulated hours"};
  for (const auto& [name, seeds] : by_point(campaigns, [](const LearnedCampaign& one) { return one.point; }))
    plot.curves.push_back(best_curve(name, seeds));
  return plot;
}

CurvePlot regret_against_utilization(const Results& results) {
  CurvePlot plot{.title = results.scenario + ": regret against utilization",
                 .quantity = "regret",
                 .time = "utilization of the devices"};
  std::map<std::string, Curve> curves;
  for (const auto& [name, rows] : rows_by_point(results)) {
    Curve& curve = curves[short_campaign_name(without_groups(name))];
    curve.measured.emplace_back(median(rows, "device_utilization"), median(rows, "regret"));
  }
  for (auto& [name, curve] : curves) {
    std::ranges::sort(curve.measured);
    curve.name = name.empty() ? results.scenario : name;
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

}  // namespace stepcast
