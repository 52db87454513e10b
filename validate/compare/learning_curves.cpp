#include "validate/compare/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"
#include "runtime/learning/evaluated_loss.hpp"

namespace stepcast {
namespace {

using Evaluations = std::vector<EvaluatedLoss>;

Evaluations evaluations_of(const Results& learning) {
  return stepcast::evaluations_of(learning, "learning.jsonl");
}

/// The evaluations of each training (a point with one seed), in the order of their first rows.
std::vector<Evaluations> by_run(const Results& learning) {
  std::vector<Evaluations> runs;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> index;
  for (EvaluatedLoss& one : evaluations_of(learning)) {
    const auto [found, added] = index.try_emplace({one.point, one.seed}, runs.size());
    if (added) runs.emplace_back();
    runs[found->second].push_back(std::move(one));
  }
  return runs;
}

/// The names of the points in the order of their first rows.
std::vector<std::string> point_names(const std::vector<Evaluations>& runs) {
  std::vector<std::string> names;
  for (const Evaluations& one : runs) {
    const std::string& name = one.front().point;
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
  for (const Row& row : predicted.rows) seconds[row.text("point")] = row.number("step_seconds").value_or(0);
  Results joined{learning.scenario, {}};
  for (EvaluatedLoss& one : evaluations_of(learning)) {
    const auto found = seconds.find(one.point);
    const double steps = one.step / std::max<double>(1.0, one.mini_batches_a_step);
    if (found != seconds.end()) one.predicted_seconds = steps * found->second;
    joined.rows.push_back(to_row(one));
  }
  return joined;
}

double common_loss(const Results& learning) {
  double common = 0;
  for (const Evaluations& run : by_run(learning)) {
    double lowest = HUGE_VAL;
    for (const EvaluatedLoss& one : run) lowest = std::min(lowest, one.loss);
    common = std::max(common, lowest);
  }
  return common;
}

std::vector<LearnedRun> learned_runs(const Results& learning, std::optional<double> target_loss) {
  std::vector<LearnedRun> runs;
  for (const Evaluations& evaluations : by_run(learning)) {
    const EvaluatedLoss& last = evaluations.back();
    LearnedRun& run = runs.emplace_back();
    run.point = last.point;
    run.seed = last.seed;
    run.mini_batches = last.step;
    run.seconds = last.seconds;
    run.samples = last.samples;
    run.loss = last.loss;
    run.accuracy = last.accuracy;
    run.loss_low_energy = last.loss_low_energy;
    if (!target_loss) continue;
    const auto reached =
        std::ranges::find_if(evaluations, [&](const EvaluatedLoss& one) { return one.loss <= *target_loss; });
    if (reached == evaluations.end()) continue;
    run.seconds_to_target = reached->seconds;
    run.samples_to_target = reached->samples;
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
Curve curve_of(const std::vector<const Evaluations*>& runs) {
  Curve curve;
  for (std::size_t i = 0; i < runs.front()->size(); ++i) {
    std::vector<double> seconds, predicted, losses;
    for (const Evaluations* run : runs) {
      if (i >= run->size()) continue;
      seconds.push_back((*run)[i].seconds);
      losses.push_back((*run)[i].loss);
      if (const auto& forecast = (*run)[i].predicted_seconds) predicted.push_back(*forecast);
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
  const auto points = point_names(runs);
  const auto names = short_names(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<const Evaluations*> own;
    for (const Evaluations& run : runs) {
      if (run.front().point == points[i]) own.push_back(&run);
    }
    plot.curves.push_back(curve_of(own));
    plot.curves.back().name = names[i];
  }
  return plot;
}

namespace {

/// "3.2 s (forecast 3.1 s)"
std::string times_of(const EvaluatedLoss& one) {
  std::string text = human(Seconds{one.seconds});
  if (one.predicted_seconds) text += fmt::format(" (forecast {})", human(Seconds{*one.predicted_seconds}));
  return text;
}

}  // namespace

std::vector<std::string> learning_lines(const Results& learning) {
  std::vector<std::string> lines;
  const double target = common_loss(learning);
  for (const Evaluations& run : by_run(learning)) {
    const EvaluatedLoss &first = run.front(), &last = run.back();
    std::string line = fmt::format("{}: loss {:.3g} to {:.3g}", first.point, first.loss, last.loss);
    if (last.accuracy) line += fmt::format(", accuracy {:.1f} %", 100 * *last.accuracy);
    line += fmt::format(" after {} mini-batches of a worker in {}", last.step, times_of(last));
    const auto reached =
        std::ranges::find_if(run, [&](const EvaluatedLoss& one) { return one.loss <= target; });
    if (reached != run.end()) line += fmt::format("; loss {:.3g} after {}", target, times_of(*reached));
    lines.push_back(line);
  }
  return lines;
}

}  // namespace stepcast
