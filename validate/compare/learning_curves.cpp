#include "validate/compare/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

double number(const Row& row, const char* column) {
  return row.number(column).value_or(0);
}

/// The rows of each point, with the points in the order of their first rows.
std::vector<std::vector<const Row*>> by_point(const Results& learning) {
  std::vector<std::vector<const Row*>> points;
  for (const Row& row : learning.rows) {
    const auto same = std::ranges::find_if(
        points, [&](const auto& rows) { return rows.front()->text("point") == row.text("point"); });
    if (same == points.end()) {
      points.push_back({&row});
    } else {
      same->push_back(&row);
    }
  }
  return points;
}

std::vector<std::string> parts_of(const std::string& point) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < point.size();) {
    const std::size_t end = std::min(point.find(", ", begin), point.size());
    parts.push_back(point.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// Returns "mini_batches=4" for "strategy.mini_batches=4", and "zero" for "strategy.kind=zero".
std::string plain(const std::string& part) {
  static constexpr std::string_view kKind = "strategy.kind=";
  if (part.starts_with(kKind)) return part.substr(kKind.size());
  const std::size_t dot = part.rfind('.', part.find('='));
  return dot == std::string::npos ? part : part.substr(dot + 1);
}

/// The points' names without the parts that all of them share; the whole name if nothing is left.
std::vector<std::string> short_names(const std::vector<std::vector<const Row*>>& points) {
  std::map<std::string, std::size_t> used;
  for (const auto& rows : points) {
    for (const std::string& part : parts_of(rows.front()->text("point"))) ++used[part];
  }
  std::vector<std::string> names;
  for (const auto& rows : points) {
    std::string& name = names.emplace_back();
    for (const std::string& part : parts_of(rows.front()->text("point"))) {
      if (used[part] < points.size()) name += (name.empty() ? "" : ", ") + plain(part);
    }
    if (name.empty()) name = rows.front()->text("point");
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

std::vector<LearnedPoint> learned_points(const Results& learning) {
  const auto points = by_point(learning);
  const auto loss = [](const Row* row) { return number(*row, "loss"); };
  double common = 0;
  for (const auto& rows : points) common = std::max(common, loss(*std::ranges::min_element(rows, {}, loss)));
  const auto names = short_names(points);
  std::vector<LearnedPoint> all;
  for (const auto& rows : points) {
    const Row& last = *rows.back();
    const auto first_at_common =
        std::ranges::find_if(rows, [&](const Row* row) { return loss(row) <= common; });
    all.push_back({names[all.size()], static_cast<std::int64_t>(number(last, "step")),
                   number(last, "seconds"), loss(&last), last.number("accuracy"), common,
                   number(**first_at_common, "seconds")});
  }
  return all;
}

CurvePlot loss_curves(const Results& learning) {
  CurvePlot plot;
  plot.title = learning.scenario + ": loss on held-out data";
  const auto points = by_point(learning);
  const auto names = short_names(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& rows = points[i];
    Curve& curve = plot.curves.emplace_back();
    curve.name = names[i];
    for (const Row* row : rows) {
      curve.measured.emplace_back(number(*row, "seconds"), number(*row, "loss"));
      if (const auto seconds = row->number("predicted_seconds"))
        curve.forecast.emplace_back(*seconds, number(*row, "loss"));
    }
  }
  return plot;
}

std::vector<std::string> learning_lines(const Results& learning) {
  std::vector<std::string> lines;
  for (const auto& rows : by_point(learning)) {
    const Row &first = *rows.front(), &last = *rows.back();
    std::string line = fmt::format("{}: loss {:.3g} to {:.3g}", first.text("point"), number(first, "loss"),
                                   number(last, "loss"));
    if (const auto accuracy = last.number("accuracy"))
      line += fmt::format(", accuracy {:.1f} %", 100 * *accuracy);
    line += fmt::format(" after {} mini-batches of a worker in {}", number(last, "step"),
                        human(Seconds{number(last, "seconds")}));
    if (const auto seconds = last.number("predicted_seconds"))
      line += fmt::format(" (forecast {})", human(Seconds{*seconds}));
    lines.push_back(line);
  }
  return lines;
}

}  // namespace stepcast
