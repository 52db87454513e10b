#include "commands/search/search_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

constexpr int kMaxRepeats =
    200;  // rounds without a new setting: then the finite space is considered exhausted

class Trials {
 public:
  Trials(OptionSearch& optimizer, const TrialOptions& options, std::map<std::string, Row> known,
         const Simulate& simulate)
      : optimizer_(optimizer), options_(options), known_(std::move(known)), simulate_(simulate) {}

  /// Runs one round. @return true if it has a new evaluation
  bool round() {
    const auto trials = proposals();
    std::map<std::string, Values> unknown;
    for (const Trial& trial : trials) {
      const std::string name = options_.name(trial.values);
      if (known_.count(name) == 0) unknown[name] = trial.values;
    }
    if (!unknown.empty()) known_.merge(simulate_(unknown));
    const std::size_t before = evaluations_.size();
    for (const Trial& trial : trials) report(trial);
    return evaluations_.size() > before;
  }

  bool is_complete() const { return std::ssize(evaluations_) >= options_.evaluations; }
  std::vector<Evaluation>& evaluations() { return evaluations_; }

 private:
  /// The optimizer's proposals of a round, with at most as many new ones as evaluations are left.
  std::vector<Trial> proposals() {
    const int left = options_.evaluations - evaluations_.size();
    std::vector<Trial> trials;
    std::set<std::string> names;
    while (std::ssize(names) < left && std::ssize(trials) < options_.at_once) {
      const auto trial = optimizer_.ask();
      if (!trial) break;
      trials.push_back(*trial);
      const std::string name = options_.name(trial->values);
      if (seen_.count(name) == 0) names.insert(name);
    }
    return trials;
  }

  /// Tells the optimizer the result of a trial.
  void report(const Trial& trial) {
    const std::string name = options_.name(trial.values);
    const Row& row = known_.at(name);
    optimizer_.tell(trial, merit(row, options_));
    if (seen_.insert(name).second) evaluations_.push_back({name, trial.values, row});
  }

  OptionSearch& optimizer_;
  const TrialOptions& options_;
  std::map<std::string, Row> known_;
  const Simulate& simulate_;
  std::set<std::string> seen_;
  std::vector<Evaluation> evaluations_;
};

}  // namespace

double merit(const Row& row, const TrialOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto value = row.number(options.column);
  const auto* fits = std::get_if<bool>(&row.at("fits"));
  if (!value || !std::isfinite(*value) || (fits != nullptr && !*fits)) return kNone;
  return options.smallest ? -*value : *value;
}

std::vector<Evaluation> run_trials(OptionSearch& optimizer, const TrialOptions& options,
                                   std::map<std::string, Row> known, const Simulate& simulate,
                                   const std::function<void(const std::vector<Evaluation>&)>& done) {
  Trials trials(optimizer, options, std::move(known), simulate);
  for (int repeats = 0; !trials.is_complete() && repeats < kMaxRepeats; ++repeats) {
    if (!trials.round()) continue;
    repeats = 0;
    done(trials.evaluations());
  }
  return std::move(trials.evaluations());
}

namespace {

/// The indices of the evaluations by decreasing merit. Evaluations without a merit come last, in their order.
std::vector<std::size_t> ranked(const std::vector<Evaluation>& evaluations, const TrialOptions& options) {
  std::vector<std::size_t> order(evaluations.size());
  std::vector<double> merits;
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    const double value = merit(evaluations[i].row, options);
    merits.push_back(std::isnan(value) ? -std::numeric_limits<double>::infinity() : value);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return merits[a] > merits[b]; });
  return order;
}

std::string outcome_of(const Row& row, const TrialOptions& options) {
  if (const std::string why = row.text("failed"); !why.empty()) return "refused";
  const auto value = row.number(options.column);
  const std::string text = value ? fmt::format("{:.6g}", *value) : "nothing";
  return std::isnan(merit(row, options)) && value ? text + ", does not fit" : text;
}

[[noreturn]] void refuse_column(const Row& row, const TrialOptions& options) {
  throw InputError(fmt::format("{}: expected a column with numbers, got \"{}\"{}",
                               options.smallest ? "--minimise" : "--maximise", options.column,
                               word_advice(options.column, number_columns(row))));
}

/// Throws InputError with the reason why no evaluation has a value: all settings were refused, the column
/// does not exist, or no setting fits into memory.
[[noreturn]] void refuse_all(const std::vector<Evaluation>& evaluations, const TrialOptions& options) {
  for (const Evaluation& one : evaluations) {
    if (!one.row.text("failed").empty()) continue;
    if (one.row.number(options.column)) {
      throw InputError(
          fmt::format("none of the {} evaluated settings fits into a device's memory", evaluations.size()));
    }
    refuse_column(one.row, options);
  }
  throw InputError(evaluations.empty() ? "no setting was evaluated" : evaluations.front().row.text("failed"));
}

/// The value of a key in a setting; empty if the setting's kind of strategy does not have the key.
std::string text_of(const SearchKey& key, const std::vector<Assignment>& setting) {
  const auto found = std::ranges::find(setting, key.parameter.name, &Assignment::path);
  return found == setting.end() ? "" : found->value.text;
}

}  // namespace

void check_column(const Row& as_written, const SearchedScenario& searched, const TrialOptions& options) {
  const bool may_come = std::ranges::any_of(searched.keys, [](const SearchKey& key) {
    return key.parameter.kind == Parameter::Kind::choice;  // compression, for example, has columns of its own
  });
  if (may_come || !as_written.text("failed").empty() || as_written.number(options.column)) return;
  refuse_column(as_written, options);
}

std::string search_csv(const SearchedScenario& searched, const std::vector<Evaluation>& evaluations) {
  Results results{searched.scenario.name, {}};
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    Row row;
    row.set("evaluation", static_cast<std::int64_t>(i + 1));
    row.set("point", evaluations[i].name);
    const auto values = search_values(searched.keys, evaluations[i].values);
    for (const SearchKey& key : searched.keys) row.set(key.parameter.name, text_of(key, values));
    for (const auto& [column, cell] : evaluations[i].row.cells) {
      if (std::holds_alternative<std::monostate>(row.at(column))) row.set(column, cell);
    }
    results.rows.push_back(std::move(row));
  }
  return to_csv(results);
}

std::map<std::string, Row> read_search_csv(const std::filesystem::path& file,
                                           const SearchedScenario& searched) {
  std::map<std::string, Row> rows;
  for (Row& row : read_csv(read_file(file), file.string()).rows) {
    const std::string name = row.text("point");
    std::erase_if(row.cells, [&](const auto& cell) {
      const auto& column = cell.first;
      const bool key = std::any_of(searched.keys.begin(), searched.keys.end(), [&](const SearchKey& one) {
        return one.parameter.name == column && column.find('.') != std::string::npos;
      });
      return key || column == "scenario" || column == "evaluation" || column == "point";
    });
    rows[name] = std::move(row);
  }
  return rows;
}

Table search_table(const SearchedScenario& searched, const std::vector<Evaluation>& evaluations,
                   const TrialOptions& options, std::size_t rows) {
  Table table;
  table.columns.push_back({"evaluation"});
  for (const SearchKey& key : searched.keys) {
    const bool words = key.parameter.kind == Parameter::Kind::choice;
    table.columns.push_back({key.parameter.name, "", words ? Align::left : Align::right});
  }
  table.columns.push_back({options.column});
  for (const std::size_t i : ranked(evaluations, options)) {
    if (table.rows.size() == rows) break;
    std::vector<std::string> cells{std::to_string(i + 1)};
    const auto values = search_values(searched.keys, evaluations[i].values);
    for (const SearchKey& key : searched.keys) cells.push_back(text_of(key, values));
    cells.push_back(outcome_of(evaluations[i].row, options));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

const Evaluation& best_of(const std::vector<Evaluation>& evaluations, const TrialOptions& options) {
  const auto order = ranked(evaluations, options);
  if (order.empty() || std::isnan(merit(evaluations[order.front()].row, options)))
    refuse_all(evaluations, options);
  return evaluations[order.front()];
}

}  // namespace stepcast
