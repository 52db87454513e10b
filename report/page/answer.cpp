#include "report/page/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr double kLeastEfficiency = 0.5;  // half of the devices' work is lost below it
constexpr double kGoodEfficiency = 0.8;

double value(const Row& row, const char* column) {
  return row.number(column).value_or(0);
}

bool fits(const Row& row) {
  return row.text("fits") != "false";
}

/// The rows of the series with the highest throughput, by workers.
struct Best {
  std::string name;
  std::vector<const Row*> rows;
};

Best best_series(const Results& results, const std::vector<std::string>& sweep) {
  const auto columns = series_columns(results, sweep);
  std::map<std::string, std::vector<const Row*>> all;
  for (const Row& row : results.rows) {
    if (fits(row)) all[series_name(results, row, columns)].push_back(&row);
  }
  Best best;
  const auto fewer = [](const Row* a, const Row* b) { return value(*a, "workers") < value(*b, "workers"); };
  double highest = -1;
  for (auto& [name, rows] : all) {
    std::ranges::stable_sort(rows, fewer);
    if (value(*rows.back(), "samples_per_second") <= highest) continue;
    highest = value(*rows.back(), "samples_per_second");
    best = {all.size() > 1 ? name : "", rows};
  }
  return best;
}

/// The column bottleneck is such as "communication (57 %); twice the bandwidth: +40 %": its two halves.
std::pair<std::string, std::string> bottleneck_of(const Row& row) {
  const std::string text = row.text("bottleneck");
  const auto end = text.find("; ");
  return {text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 2)};
}

/// "communication is 57 % of a step".
std::string main_part(const Row& row) {
  const std::string part = bottleneck_of(row).first;
  const auto open = part.find(" (");
  if (open == std::string::npos) return "";
  return fmt::format("{} is {} of a step", part.substr(0, open),
                     part.substr(open + 2, part.size() - open - 3));
}

std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

std::string efficiency_at(const Row& row) {
  return fmt::format("the efficiency is {} at {} workers", percent(value(row, "efficiency")),
                     row.text("workers"));
}

/// " (100 % at 4, below 80 % from 16 on)": the row that the efficiency compares with, and where it is lost.
std::string efficiency_range(const std::vector<const Row*>& rows) {
  const auto low =
      std::ranges::find_if(rows, [](const Row* row) { return value(*row, "efficiency") < kGoodEfficiency; });
  const std::string from =
      low == rows.end() ? "" : fmt::format(", below 80 % from {} on", (*low)->text("workers"));
  return fmt::format(" (100 % at {}{})", rows.front()->text("workers"), from);
}

/// A sentence about the points that need more memory than a device has.
std::string left_out(const Results& results) {
  const auto count = std::ranges::count_if(results.rows, [](const Row& row) { return !fits(row); });
  if (count == 0) return "";
  return fmt::format(" {} of {} points do not fit into memory and do not count here.", count,
                     results.rows.size());
}

/// Names the change that helps this row most.
std::string change_of(const Row& row) {
  const std::string gain = bottleneck_of(row).second;
  if (gain.empty())
    return "What to change first is not known: simulate with doubled resources (without --results-only).";
  const auto colon = gain.rfind(": ");
  const std::string share = gain.substr(colon + 2);
  if (share.starts_with("-") || share.starts_with("+0 "))
    return fmt::format("At {} workers no single resource would shorten the step.", row.text("workers"));
  return fmt::format("Change first: {} would make steps at {} workers {} faster.", gain.substr(0, colon),
                     row.text("workers"), share.substr(share.starts_with("+") ? 1 : 0));
}

}  // namespace

Answer answer_of(const Results& results, const std::vector<std::string>& sweep) {
  if (results.rows.empty()) return {"No point has results.", ""};
  const Best best = best_series(results, sweep);
  if (best.rows.empty()) {
    const std::string why = results.rows.front().text("why_not");
    return {"No point of this sweep fits into the memory of its devices.",
            why.empty() ? "" : fmt::format("{}: {}.", results.rows.front().text("point"), why)};
  }
  const std::string rest = left_out(results);
  const Row& last = *best.rows.back();
  const std::string of = best.name.empty() ? "" : fmt::format(" ({})", best.name);
  if (best.rows.size() == 1 || !last.number("efficiency"))
    return {fmt::format("At {} workers{} a step takes {}; {}.{}", last.text("workers"), of,
                        human(Seconds{value(last, "step_seconds")}), main_part(last), rest),
            change_of(last)};
  const auto peak = std::ranges::max_element(
      best.rows, {}, [](const Row* row) { return value(*row, "samples_per_second"); });
  auto end = best.rows.begin();
  for (auto at = best.rows.begin(); at <= peak; ++at) {
    if (value(**at, "efficiency") >= kLeastEfficiency) end = at;
  }
  if (end + 1 == best.rows.end())
    return {fmt::format("Scaling{} does not end within this sweep: {}{}, and {}.{}", of, efficiency_at(last),
                        efficiency_range(best.rows), main_part(last), rest),
            change_of(last)};
  const Row& next = **(end + 1);
  const std::string there =
      end == peak ? "throughput is highest there"
                  : fmt::format("the efficiency is {} there", percent(value(**end, "efficiency")));
  return {fmt::format("Scaling{} ends at {} workers: {}, and {} at {}{}, where {}.{}", of,
                      (*end)->text("workers"), there,
                      (end == peak ? "the efficiency is " : "") + percent(value(next, "efficiency")),
                      next.text("workers"), efficiency_range(best.rows), main_part(next), rest),
          change_of(next)};
}

}  // namespace stepcast
