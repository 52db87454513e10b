#include "report/results/results_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

/// The unit or format in which a column of results is printed.
enum class Show {
  as_is,
  seconds,           ///< in the unit of the step time
  whole_seconds,     ///< in s, whatever the unit of the step time
  seconds_as_hours,  ///< in h
  minutes,
  hours,
  dollars,
  energy,
  bytes,
  samples_rate,
  tokens_rate,
  work_rate,
  rate,
  ratio,
  percent,
  yes_no
};

struct ShownColumn {
  std::string column;
  std::string header;
  Show show;
};

/// The columns of the table that every run prints.
const std::vector<ShownColumn>& default_columns() {
  static const std::vector<ShownColumn> shown{
      {"workers", "workers", Show::as_is},
      {"step_seconds", "step", Show::seconds},
      {"compute_seconds", "compute", Show::seconds},
      {"exposed_communication_seconds", "exposed communication", Show::seconds},
      {"host_seconds", "wait for host", Show::seconds},
      {"waiting_seconds", "wait for slowest", Show::seconds},
      {"data_loading_seconds", "wait for data", Show::seconds},
      {"unmodelled_seconds", "not modelled", Show::seconds},
      {"samples_per_second", "throughput", Show::samples_rate},
      {"tokens_per_second", "throughput", Show::tokens_rate},
      {"tokens_per_second_per_device", "a device", Show::tokens_rate},
      {"model_flops_per_device", "a device", Show::work_rate},
      {"mfu", "MFU", Show::percent},
      {"speedup", "speed-up", Show::ratio},
      {"efficiency", "efficiency", Show::percent},
      {"best_probability", "best with", Show::percent},
      {"ratio_to_best", "of the best", Show::percent},
      {"memory_bytes", "memory", Show::bytes},
      {"fits", "fits", Show::yes_no},
      {"training_hours", "training", Show::hours},
      {"cost_usd", "cost", Show::dollars},
      {"energy_kwh", "energy", Show::energy},
      {"training_hours_with_faults", "training with faults", Show::hours},
      {"useful_share", "of it useful", Show::percent},
      {"best_checkpoint_interval_seconds", "best interval", Show::whole_seconds},
      {"young_checkpoint_interval_seconds", "Young", Show::whole_seconds},
      {"daly_checkpoint_interval_seconds", "Daly", Show::whole_seconds},
      {"makespan_hours", "campaign", Show::hours},
      {"device_utilization", "devices busy", Show::percent},
      {"idle_optimizer_share", "wait for optimizer", Show::percent},
      {"idle_fold_share", "wait for fold", Show::percent},
      {"idle_generation_share", "wait for generation", Show::percent},
      {"idle_tail_share", "nothing left", Show::percent},
      {"bottleneck", "bottleneck", Show::as_is},
  };
  return shown;
}

/// The columns of the second table, which only some strategies and trainings with faults have.
const std::vector<ShownColumn>& own_columns() {
  static const std::vector<ShownColumn> shown{
      {"updates_per_second", "updates", Show::rate},
      {"tasks_per_second", "tasks", Show::rate},
      {"wasted_tasks_share", "tasks wasted", Show::percent},
      {"vector_share", "vector arithmetic", Show::percent},
      {"master_seconds", "master an update", Show::seconds},
      {"knee_workers", "knee workers", Show::ratio},
      {"server_utilization", "server busy", Show::percent},
      {"sub_master_utilization", "sub-masters busy", Show::percent},
      {"staleness_mean", "staleness mean", Show::ratio},
      {"staleness_p95", "staleness 95 %", Show::ratio},
      {"staleness_max", "staleness most", Show::ratio},
      {"staleness_lead", "ahead most", Show::ratio},
      {"dropped_share", "updates dropped", Show::percent},
      {"overhead", "overhead of a block", Show::percent},
      {"sweep_optimize_minutes", "sweep: optimize", Show::minutes},
      {"sweep_aggregate_minutes", "sweep: aggregate", Show::minutes},
      {"sweep_validate_minutes", "sweep: validate", Show::minutes},
      {"sweep_minutes", "sweep", Show::minutes},
      {"gradient_bytes", "gradient sent", Show::bytes},
      {"quantize_seconds", "quantize", Show::seconds},
      {"restore_seconds", "restore", Show::seconds},
      {"halo_seconds", "wait for halos", Show::seconds},
      {"exchange_seconds", "wait for exchanges", Show::seconds},
      {"statistics_seconds", "wait for statistics", Show::seconds},
      {"idle_share", "devices idle", Show::percent},
      {"jitter_seconds", "longer by jitter", Show::seconds},
      {"straggler_seconds", "longer by stragglers", Show::seconds},
      {"campaign_devices", "devices", Show::as_is},
      {"points_per_hour", "points an hour", Show::ratio},
      {"optimizer_utilization", "optimizers busy", Show::percent},
      {"idle_driver_share", "master and optimizers", Show::percent},
      {"lost_to_checkpoints_seconds", "lost to checkpoints", Show::seconds_as_hours},
      {"lost_to_rework_seconds", "lost to rework", Show::seconds_as_hours},
      {"lost_to_restart_seconds", "lost to restart", Show::seconds_as_hours},
      {"lost_to_missing_workers_seconds", "lost to missing workers", Show::seconds_as_hours},
      {"lost_to_slow_workers_seconds", "lost to slow workers", Show::seconds_as_hours},
      {"lost_to_links_seconds", "lost to failed links", Show::seconds_as_hours},
      {"lost_to_stragglers_seconds", "lost to stragglers", Show::seconds_as_hours},
      {"lost_to_jitter_seconds", "lost to jitter", Show::seconds_as_hours},
  };
  return shown;
}

constexpr int kWidest = 26;            // [characters] of a text cell
constexpr int kWidestBottleneck = 56;  // [characters] of the last column, which has the longest text

/// The columns that are printed with their interval. More would make the table too wide; results.csv has all
/// of them.
constexpr std::array<std::string_view, 2> kWithInterval{"step_seconds", "ratio_to_best"};

struct ColumnScale {
  std::string unit;
  double factor = 1;  ///< SI value divided by the shown value
  int decimals = 0;
};

/// The number of decimals that shows four significant digits of `typical`, at most three.
int decimals_for(double typical) {
  return typical > 0 ? std::clamp<int>(3 - std::floor(std::log10(typical)), 0, 3) : 1;
}

ColumnScale time_scale(double typical) {
  const ColumnScale scale = typical >= 1                      ? ColumnScale{"s", 1}
                            : typical >= 1e-3 || typical == 0 ? ColumnScale{"ms", 1e-3}
                                                              : ColumnScale{"us", 1e-6};
  return {scale.unit, scale.factor, decimals_for(typical / scale.factor)};
}

ColumnScale memory_scale(double typical) {
  return typical >= 1e8 ? ColumnScale{"GB", 1e9, 2}
                        : ColumnScale{"MB", 1e6, 1};  // the units of the column why_not
}

std::vector<double> numbers(const Results& results, const std::string& column) {
  std::vector<double> values;
  for (const Row& row : results.rows) {
    if (const auto value = row.number(column)) values.push_back(*value);
  }
  return values;
}

/// The unit of a column. The median decides, so that a single unusual row does not change the unit; all times
/// have the unit of the step time.
ColumnScale scale_of(const Results& results, const ShownColumn& shown) {
  const auto times = numbers(results, "step_seconds");
  const auto values = shown.show == Show::seconds && !times.empty() ? times : numbers(results, shown.column);
  const double typical = values.empty() ? 0 : median_of(values);
  const double least = values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  switch (shown.show) {
    case Show::seconds:
      return time_scale(typical);
    case Show::whole_seconds:
      return {"s", 1, decimals_for(typical)};
    case Show::seconds_as_hours:
      return {"h", 3600, decimals_for(typical / 3600)};
    case Show::minutes:
      return {"min", 1, decimals_for(typical)};
    case Show::hours:
      return {"h", 1, decimals_for(typical)};
    case Show::energy:
      return {"kWh", 1, typical < 100 ? 2 : 0};
    case Show::dollars:
      return {"$", 1, typical < 100 ? 2 : 0};
    case Show::bytes:
      return memory_scale(typical);
    case Show::samples_rate:
      return {"samples/s", 1, least < 1 ? 3 : least < 100 ? 1 : 0};
    case Show::tokens_rate:
      return {"tokens/s", 1, least < 100 ? 1 : 0};
    case Show::work_rate:
      return {"Tflop/s", 1e12, decimals_for(typical / 1e12)};
    case Show::rate:
      return {"1/s", 1, least > 0 && least < 0.1 ? 5 : decimals_for(least)};
    case Show::ratio:
      return {"", 1, typical < 50 ? 2 : 1};
    case Show::percent:
      return {"%", 0.01, 1};
    case Show::as_is:
    case Show::yes_no:
      break;
  }
  return {};
}

std::string cell_of(const Cell& cell, const Row& row, const ShownColumn& shown, const ColumnScale& scale) {
  if (shown.show == Show::as_is) return to_text(cell);
  if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "yes" : "no";
  const auto value = row.number(shown.column);
  if (!value) return to_text(cell);
  const auto text = [&](double x) { return fixed(x / scale.factor, scale.decimals); };
  const auto low = row.number(shown.column + "_low");
  const auto high = row.number(shown.column + "_high");
  return low && high && std::ranges::find(kWithInterval, shown.column) != kWithInterval.end()
             ? fmt::format("{} [{} .. {}]", text(*value), text(*low), text(*high))
             : text(*value);
}

/// The header of a key: "all reduce" for "strategy.all_reduce".
std::string header_of(std::string key) {
  key.erase(0, key.rfind('.') + 1);
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

bool has_any(const Results& results, const ShownColumn& shown) {
  const auto values = numbers(results, shown.column);
  return std::any_of(values.begin(), values.end(), [](double value) { return value != 0; });
}

/// Shortens the cells of the last column where they are too wide, so that they still differ.
void tell_apart(Table& table, std::size_t width) {
  std::vector<std::string> cells;
  for (const auto& row : table.rows) cells.push_back(row.back());
  cells = told_apart(std::move(cells), width);
  for (std::size_t i = 0; i < cells.size(); ++i) table.rows[i].back() = std::move(cells[i]);
}

/// Parts of a step that many runs do not have.
bool is_optional_part(const std::string& column) {
  return column == "host_seconds" || column == "waiting_seconds" || column == "data_loading_seconds" ||
         column == "unmodelled_seconds";
}

void append_column(Table& table, const Results& results, const ShownColumn& shown) {
  bool empty = true;
  bool numeric = true;
  for (const Row& row : results.rows) {
    const Cell cell = at(results, row, shown.column);
    empty = empty && std::holds_alternative<std::monostate>(cell);
    numeric = numeric && !std::holds_alternative<std::string>(cell);
  }
  if (empty) return;
  const ColumnScale scale = scale_of(results, shown);
  table.columns.push_back({shown.header, scale.unit, numeric ? Align::right : Align::left,
                           shown.column == "bottleneck" ? kWidestBottleneck : kWidest});
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    const Row& row = results.rows[i];
    table.rows[i].push_back(cell_of(at(results, row, shown.column), row, shown, scale));
  }
  if (!numeric) tell_apart(table, table.columns.back().widest);
}

/// The header of a key whose last word is not unique: "device link bandwidth" for
/// "platform.node.device_link.bandwidth", if another key ends in "bandwidth" too.
std::string header_among(const std::vector<std::string>& keys, const std::string& key) {
  const auto same_header = [&](const std::string& other) { return header_of(other) == header_of(key); };
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos || std::ranges::count_if(keys, same_header) < 2) return header_of(key);
  return header_of(key.substr(0, dot)) + " " + header_of(key);
}

Table begun_table(const Results& results, const std::vector<std::string>& leading) {
  Table table;
  table.rows.resize(results.rows.size());
  for (const auto& column : leading) {
    const auto same = [&](const Row& row) { return row.text(column) == results.rows.front().text(column); };
    if (results.rows.size() > 1 && std::ranges::all_of(results.rows, same)) continue;
    append_column(table, results, {column, header_among(leading, column), Show::as_is});
  }
  return table;
}

}  // namespace

Table results_table(const Results& results, const std::vector<std::string>& leading) {
  Table table = begun_table(results, leading);
  const bool tokens = !numbers(results, "tokens_per_second").empty();
  for (const ShownColumn& shown : default_columns()) {
    if (shown.column == "samples_per_second" && tokens) continue;
    if (is_optional_part(shown.column) && !has_any(results, shown)) continue;
    if (std::find(leading.begin(), leading.end(), shown.column) == leading.end())
      append_column(table, results, shown);
  }
  return table;
}

std::string interval_note(const Results& results, bool has_model_error) {
  if (numbers(results, "step_seconds_low").empty()) return "";
  return std::string("step: median [5 % .. 95 %] over the ranges of the assumptions") +
         (has_model_error
              ? " and the errors that the model is known to make; 90 % of measured steps should lie in it"
              : "; the model's own error is not in it");
}

Table own_columns_table(const Results& results, const std::vector<std::string>& leading) {
  Table table = begun_table(results, leading);
  append_column(table, results, default_columns().front());
  const std::size_t common = table.columns.size();
  for (const ShownColumn& shown : own_columns()) {
    if (has_any(results, shown)) append_column(table, results, shown);
  }
  return table.columns.size() > common ? table : Table{};
}

}  // namespace stepcast
