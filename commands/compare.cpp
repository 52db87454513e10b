#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/comparison.hpp"
#include "report/csv.hpp"
#include "report/table.hpp"

namespace stepcast {
namespace {

void compare(const std::string& predicted, const std::string& measured, const std::string& column) {
  const auto points =
      joined(read_csv(read_file(predicted), predicted), read_csv(read_file(measured), measured), column);
  if (points.empty()) {
    throw InputError(fmt::format("{} and {} have no point in common with a number in column \"{}\"",
                                 predicted, measured, column));
  }
  std::vector<double> errors;
  for (const JoinedPoint& point : points) errors.push_back(point.error);
  const ErrorSummary summary = summarized(errors);
  fmt::print(
      "{}{} points: |error| mean {:.2f} %, median {:.2f} %, 90th percentile {:.2f} %, maximum {:.2f} %\n",
      to_string(joined_table(points, column)), summary.count, 100 * summary.mean, 100 * summary.median,
      100 * summary.p90, 100 * summary.maximum);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto* command =
      app.add_subcommand("compare", "Join two results.csv by point: error of each, and its statistics");
  auto predicted = std::make_shared<std::string>(), measured = std::make_shared<std::string>();
  auto column = std::make_shared<std::string>("step_seconds");
  command->add_option("predicted", *predicted, "results.csv")->required();
  command->add_option("measured", *measured, "results.csv")->required();
  command->add_option("--column", *column, "column to compare")->capture_default_str();
  command->callback([=] { compare(*predicted, *measured, *column); });
}

}  // namespace stepcast
