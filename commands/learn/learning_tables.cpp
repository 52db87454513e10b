#include "commands/learn/learning_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

std::string range_of(const LearnedPoint& point) {
  return point.seeds < 2 ? "" : fmt::format("{:.3g} to {:.3g}", point.lowest_loss, point.highest_loss);
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

Table learning_table(const std::vector<LearnedPoint>& points, double target_loss) {
  Table table;
  const std::string target = fmt::format("loss {:.3g}", target_loss);
  table.columns = {{"point", "", Align::left, 70},
                   {"mini-batches", "of a worker"},
                   {"time"},
                   {"loss"},
                   {"of all", "seeds"},
                   {"accuracy", "%"},
                   {"samples to", target},
                   {"samples", "per second"},
                   {"time to", target}};
  for (const LearnedPoint& one : points) {
    table.rows.push_back(
        {one.point, std::to_string(one.mini_batches), human(Seconds{one.seconds}),
         fmt::format("{:.3g}", one.loss), range_of(one),
         one.accuracy ? fmt::format("{:.1f}", 100 * *one.accuracy) : "",
         one.samples_to_target ? fmt::format("{:.0f}", *one.samples_to_target) : "not reached",
         fmt::format("{:.4g}", one.seconds > 0 ? one.samples / one.seconds : 0),
         one.seconds_to_target ? human(Seconds{*one.seconds_to_target}) : "not reached"});
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
                              double target_loss) {
  CurvePlot plot{.title = fmt::format("{}: time to loss {:.3g}", scenario, target_loss),
                 .quantity = "seconds of the simulated cluster",
                 .time = "workers"};
  std::map<std::string, Curve> curves;
  for (const LearnedPoint& point : points) {
    const auto workers = workers_of(point.point);
    if (!workers || !point.seconds_to_target) continue;
    curves[workers->second].measured.emplace_back(workers->first, *point.seconds_to_target);
  }
  for (auto& [name, curve] : curves) {
    std::ranges::sort(curve.measured);
    curve.name = name.empty() ? scenario : name;
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

}  // namespace stepcast
