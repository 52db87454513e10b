#include "commands/search/search_trials.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <set>

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

  bool is_complete() const { return static_cast<int>(evaluations_.size()) >= options_.evaluations; }
  std::vector<Evaluation>& evaluations() { return evaluations_; }

 private:
  /// The optimizer's proposals of a round, with at most as many new ones as evaluations are left.
  std::vector<Trial> proposals() {
    const int left = options_.evaluations - static_cast<int>(evaluations_.size());
    std::vector<Trial> trials;
    std::set<std::string> names;
    while (static_cast<int>(names.size()) < left && static_cast<int>(trials.size()) < options_.at_once) {
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

}  // namespace stepcast
