#include "validate/compare/times_to_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "report/text/display_text.hpp"

namespace stepcast {

Results times_to_loss(const std::string& scenario, double target_loss,
                      const std::vector<LearnedRun>& predicted, const std::vector<LearnedRun>& measured) {
  Results results{scenario, {}};
  for (const LearnedRun& real : measured) {
    const auto same = [&](const LearnedRun& one) { return one.point == real.point && one.seed == real.seed; };
    const auto forecast = std::ranges::find_if(predicted, same);
    if (forecast == predicted.end()) continue;
    Row& row = results.rows.emplace_back();
    row.set("point", real.point);
    row.set("seed", real.seed);
    row.set("target_loss", target_loss);
    for (const auto& [name, run] : {std::pair("predicted", &*forecast), std::pair("measured", &real)}) {
      const std::string prefix = name;
      if (run->seconds_to_target) row.set(prefix + "_seconds", *run->seconds_to_target);
      if (run->samples_to_target) row.set(prefix + "_samples", *run->samples_to_target);
      row.set(prefix + "_loss", run->loss);
    }
  }
  return results;
}

Table times_to_loss_table(double target_loss, const std::vector<LearnedPoint>& predicted,
                          const std::vector<LearnedPoint>& measured) {
  Table table;
  const std::string target = fmt::format("to loss {:.3g}", target_loss);
  table.columns = {{"point", "", Align::left, 60},
                   {"time " + target, "forecast"},
                   {"", "measured"},
                   {"error", "%"},
                   {"samples", "forecast"},
                   {"", "measured"}};
  const auto time = [](std::optional<double> seconds) {
    return seconds ? human(Seconds{*seconds}) : "not reached";
  };
  const auto count = [](std::optional<double> samples) {
    return samples ? fmt::format("{:.0f}", *samples) : "not reached";
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const LearnedPoint &forecast = predicted[i], &real = measured[i];
    const bool both = forecast.seconds_to_target && real.seconds_to_target;
    const double ratio = both ? *forecast.seconds_to_target / *real.seconds_to_target : 1;
    table.rows.push_back({real.point, time(forecast.seconds_to_target), time(real.seconds_to_target),
                          both ? fmt::format("{:+.1f}", 100 * (ratio - 1)) : "",
                          count(forecast.samples_to_target), count(real.samples_to_target)});
  }
  return table;
}

}  // namespace stepcast
