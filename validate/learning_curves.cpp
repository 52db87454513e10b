#include "validate/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/human.hpp"

namespace stepcast {
namespace {

double number(const Row& row, const char* column) {
  return row.number(column).value_or(0);
}

/// Rows of each point, in the order in which points come first.
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

CurvePlot loss_curves(const Results& learning) {
  CurvePlot plot;
  plot.title = learning.scenario + ": loss on held-out data";
  for (const auto& rows : by_point(learning)) {
    Curve& curve = plot.curves.emplace_back();
    curve.name = rows.front()->text("point");
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
