#include "validate/compare/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

double number(const Row& row, const char* column) {
  return row.number(column).value_or(0);
}

/// Loss of an evaluation, infinite where it is no number: the training has diverged.
double loss_of(const Row& row) {
  const double loss = row.number("loss").value_or(HUGE_VAL);
  return std::isnan(loss) ? HUGE_VAL : loss;
}

std::int64_t seed_of(const Row& row) {
  return static_cast<std::int64_t>(number(row, "seed"));
}

/// The rows of each training (a point with one seed), in the order of their first rows.
std::vector<std::vector<const Row*>> by_run(const Results& learning) {
  std::vector<std::vector<const Row*>> runs;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> index;
  for (const Row& row : learning.rows) {
    const auto [found, added] = index.try_emplace({row.text("point"), seed_of(row)}, runs.size());
    if (added) runs.emplace_back();
    runs[found->second].push_back(&row);
  }
  return runs;
}

/// The names of the points in the order of their first rows.
std::vector<std::string> point_names(const Results& learning) {
  std::vector<std::string> names;
  for (const Row& row : learning.rows) {
    const std::string name = row.text("point");
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// The values of a point's name; commas inside mappings and lists do not separate values.
std::vector<std::string> parts_of(const std::string& point) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < point.size(); ++i) {
    depth += (point[i] == '{' || point[i] == '[') - (point[i] == '}' || point[i] == ']');
    if (depth > 0 || point.compare(i, 2, ", ") != 0) {
      parts.back() += point[i];
      continue;
    }
    parts.emplace_back();
    ++i;  // the space
  }
  return parts;
}

/// Returns "mini_batches=4" for "strategy.mini_batches=4", "zero" for "strategy.kind=zero", and "zero, stage:
/// 1" for "strategy={kind: zero, stage: 1}".
std::string plain(const std::string& part) {
  static constexpr std::string_view kKind = "strategy.kind=", kMapping = "strategy={kind: ";
  if (part.starts_with(kKind)) return part.substr(kKind.size());
  if (part.starts_with(kMapping)) return part.substr(kMapping.size(), part.size() - kMapping.size() - 1);
  const std::size_t dot = part.rfind('.', part.find('='));
  return dot == std::string::npos ? part : part.substr(dot + 1);
}

/// The points' names without the parts that all of them share; the whole name if nothing is left.
std::vector<std::string> short_names(const std::vector<std::string>& points) {
  std::map<std::string, std::size_t> used;
  for (const std::string& point : points) {
    for (const std::string& part : parts_of(point)) ++used[part];
  }
  std::vector<std::string> names;
  for (const std::string& point : points) {
    std::string& name = names.emplace_back();
    for (const std::string& part : parts_of(point)) {
      if (used[part] < points.size()) name += (name.empty() ? "" : ", ") + plain(part);
    }
    if (name.empty()) name = point;
  }
  return names;
}

}  // namespace

Results with_forecast(const Results& learning, const Results& predicted) {
  std::map<std::string, double> seconds;
  for (const Row& row : predicted.rows) seconds[row.text("point")] = number(row, "step_seconds");
  Results joined = learning;
  for (Row& row : joined.rows) {
    const double steps = number(row, "step") / std::max(1.0, number(row, "mini_batches_a_step"));
    const auto found = seconds.find(row.text("point"));
    if (found != seconds.end()) row.set("predicted_seconds", steps * found->second);
  }
  return joined;
}

double common_loss(const Results& learning) {
  double common = 0;
  for (const auto& rows : by_run(learning)) {
    double lowest = HUGE_VAL;
    for (const Row* row : rows) lowest = std::min(lowest, loss_of(*row));
    common = std::max(common, lowest);
  }
  return common;
}

std::vector<LearnedRun> learned_runs(const Results& learning, std::optional<double> target_loss) {
  std::vector<LearnedRun> runs;
  for (const auto& rows : by_run(learning)) {
    const Row& last = *rows.back();
    LearnedRun& run = runs.emplace_back();
    run.point = last.text("point");
    run.seed = seed_of(last);
    run.mini_batches = static_cast<std::int64_t>(number(last, "step"));
    run.seconds = number(last, "seconds");
    run.samples = number(last, "samples");
    run.loss = loss_of(last);
    run.accuracy = last.number("accuracy");
    run.loss_low_energy = last.number("loss_low_energy");
    if (!target_loss) continue;
    const auto reached =
        std::ranges::find_if(rows, [&](const Row* row) { return loss_of(*row) <= *target_loss; });
    if (reached == rows.end()) continue;
    run.seconds_to_target = number(**reached, "seconds");
    run.samples_to_target = number(**reached, "samples");
  }
  return runs;
}

namespace {

/// The median of a quantity in which a missing value counts as infinite; nothing if the median is infinite.
template <class Quantity>
std::optional<double> median_reached(const std::vector<const LearnedRun*>& runs, const Quantity& quantity) {
  std::vector<double> values;
  for (const LearnedRun* run : runs) values.push_back(quantity(*run).value_or(HUGE_VAL));
  const double middle = median_of(values);
  return std::isfinite(middle) ? std::optional(middle) : std::nullopt;
}

LearnedPoint point_of(const std::vector<const LearnedRun*>& runs) {
  const auto middle = [&](const auto& value) {
    return median_reached(runs, [&](const LearnedRun& run) { return std::optional(value(run)); }).value_or(0);
  };
  const auto loss = [](const LearnedRun* run) { return run->loss; };
  LearnedPoint point;
  point.seeds = runs.size();
  point.mini_batches = runs.front()->mini_batches;
  point.seconds = middle([](const LearnedRun& run) { return run.seconds; });
  point.samples = middle([](const LearnedRun& run) { return run.samples; });
  point.loss =
      median_reached(runs, [](const LearnedRun& run) { return std::optional(run.loss); }).value_or(HUGE_VAL);
  point.lowest_loss = loss(*std::ranges::min_element(runs, {}, loss));
  point.highest_loss = loss(*std::ranges::max_element(runs, {}, loss));
  point.accuracy = median_reached(runs, [](const LearnedRun& run) { return run.accuracy; });
  point.seconds_to_target = median_reached(runs, [](const LearnedRun& run) { return run.seconds_to_target; });
  point.samples_to_target = median_reached(runs, [](const LearnedRun& run) { return run.samples_to_target; });
  return point;
}

}  // namespace

std::vector<LearnedPoint> learned_points(const std::vector<LearnedRun>& runs) {
  std::vector<std::string> names;
  for (const LearnedRun& run : runs) {
    if (std::ranges::find(names, run.point) == names.end()) names.push_back(run.point);
  }
  const std::vector<std::string> shown = short_names(names);
  std::vector<LearnedPoint> points;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<const LearnedRun*> own;
    for (const LearnedRun& run : runs) {
      if (run.point == names[i]) own.push_back(&run);
    }
    points.push_back(point_of(own));
    points.back().point = shown[i];
  }
  return points;
}

namespace {

/// The median curve of trainings that were evaluated equally often, and the range of their losses.
Curve curve_of(const std::vector<std::vector<const Row*>>& runs) {
  Curve curve;
  for (std::size_t i = 0; i < runs.front().size(); ++i) {
    std::vector<double> seconds, predicted, losses;
    for (const auto& rows : runs) {
      if (i >= rows.size()) continue;
      seconds.push_back(number(*rows[i], "seconds"));
      losses.push_back(loss_of(*rows[i]));
      if (const auto forecast = rows[i]->number("predicted_seconds")) predicted.push_back(*forecast);
    }
    const double time = median_of(seconds), loss = median_of(losses);
    if (!std::isfinite(loss)) break;  // diverged
    curve.measured.emplace_back(time, loss);
    if (!predicted.empty()) curve.forecast.emplace_back(median_of(predicted), loss);
    const auto [least, most] = std::ranges::minmax(losses);
    if (runs.size() > 1 && std::isfinite(most)) curve.band.push_back({time, least, most});
  }
  return curve;
}

}  // namespace

CurvePlot loss_curves(const Results& learning) {
  CurvePlot plot;
  plot.title = learning.scenario + ": loss on held-out data";
  const auto runs = by_run(learning);
  const auto points = point_names(learning);
  const auto names = short_names(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::vector<const Row*>> own;
    for (const auto& rows : runs) {
      if (rows.front()->text("point") == points[i]) own.push_back(rows);
    }
    plot.curves.push_back(curve_of(own));
    plot.curves.back().name = names[i];
  }
  return plot;
}

namespace {

/// "3.2 s (forecast 3.1 s)"
std::string times_of(const Row& row) {
  std::string text = human(Seconds{number(row, "seconds")});
  if (const auto seconds = row.number("predicted_seconds"))
    text += fmt::format(" (forecast {})", human(Seconds{*seconds}));
  return text;
}

}  // namespace

std::vector<std::string> learning_lines(const Results& learning) {
  std::vector<std::string> lines;
  const double target = common_loss(learning);
  for (const auto& rows : by_run(learning)) {
    const Row &first = *rows.front(), &last = *rows.back();
    std::string line =
        fmt::format("{}: loss {:.3g} to {:.3g}", first.text("point"), loss_of(first), loss_of(last));
    if (const auto accuracy = last.number("accuracy"))
      line += fmt::format(", accuracy {:.1f} %", 100 * *accuracy);
    line += fmt::format(" after {} mini-batches of a worker in {}", number(last, "step"), times_of(last));
    const auto reached = std::ranges::find_if(rows, [&](const Row* row) { return loss_of(*row) <= target; });
    if (reached != rows.end()) line += fmt::format("; loss {:.3g} after {}", target, times_of(**reached));
    lines.push_back(line);
  }
  return lines;
}

}  // namespace stepcast
