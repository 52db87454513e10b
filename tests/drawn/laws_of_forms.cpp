#include <algorithm>

#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

constexpr double kMostSimGridWork = 6000;  ///< of a trial that SimGrid simulates too

/// The difference to kMessages that the results of a form allow, and what they say in a word.
std::pair<double, const char*> claim_of(const SimulationResult& result) {
  const UsedFidelity& fidelity = result.fidelity;
  const bool rough = fidelity.accuracy == Accuracy::rough || result.folding.accuracy == Accuracy::rough;
  if (rough || fidelity.uses_bottleneck_sharing) return {kNoBound, "rough"};
  const bool every_message = fidelity.fidelity == Fidelity::message && !fidelity.sampled;
  if (!every_message || result.folding.accuracy != Accuracy::exact) return {kClose, "close"};
  return {result.folding.folds ? kFoldedExactly : kRounding, "exact"};
}

void compare(Trial& trial, const Form& form, std::string law, double bound, Findings& findings) {
  const Outcome& reference = trial.outcome(kMessages);
  const Outcome& outcome = trial.outcome(form);
  findings.push_back({std::move(law), outcome.step, reference.step, difference(outcome.step, reference.step),
                      bound, result_text(outcome) + " | " + result_text(reference),
                      to_text(form) + " |" + to_text(kMessages)});
}

}  // namespace

void check_forms(Trial& trial, Findings& findings) {
  for (const Fidelity fidelity : {Fidelity::automatic, Fidelity::message}) {
    for (const Folding fold : {Folding::automatic, Folding::always, Folding::never}) {
      const Form form{fidelity, fold};
      if (form == kMessages || (trial.work() >= kLargeWork && fold != Folding::automatic)) continue;
      const auto [bound, word] = claim_of(trial.outcome(form).result);
      compare(trial, form, std::string(fidelity == Fidelity::message ? "messages, " : "automatic, ") + word,
              bound, findings);
    }
  }
  if (trial.experiment().plan.asynchronous) return;  // all their messages are simulated in any form
  compare(trial, {Fidelity::fluid}, "fluid", kNoBound, findings);
  compare(trial, {Fidelity::coupled}, "coupled", kNoBound, findings);
}

namespace {

/// How far apart runs of an asynchronous plan are whose computations differ by about 1e-8, as a share of the
/// step. Workers that do the same arrive at a server at one time; rounding then decides whose message is
/// first, and so who waits.
double spread_of_ties(const Trial& trial, const Form& form, double step) {
  constexpr double kTiny = 1e-8;
  double least = step, most = step;
  for (const int run : {1, 2, 3, 4}) {
    Simulation simulation = trial.simulation(form);
    Noise& noise = simulation.noise;
    if (noise.jitter == Noise::Jitter::none) {
      noise.jitter = Noise::Jitter::lognormal;
      noise.sigma = 0;
      simulation.seed += static_cast<std::uint64_t>(run);
    }
    noise.sigma += run * kTiny;
    const double other = simulated(simulation).step;
    least = std::min(least, other);
    most = std::max(most, other);
  }
  return (most - least) / step;
}

}  // namespace

void check_simgrid(Trial& trial, Findings& findings) {
  if (trial.work() > kMostSimGridWork) return;
  constexpr double kSolvers = 1e-6;  // SimGrid rounds to 1e-12 s
  const Plan& plan = trial.experiment().plan;
  const bool ties = plan.asynchronous || plan.assigns_work_by_message;
  const double spread = ties ? 4 * spread_of_ties(trial, kMessages, trial.outcome(kMessages).step) : 0;
  const std::string name = ties ? "simgrid, ties" : "simgrid";
  Form form = kMessages;
  form.sharing = LinkSharing::simgrid;
  compare(trial, form, name, std::max(spread, kSolvers), findings);
  form = {.sharing = LinkSharing::simgrid};
  const auto [bound, word] = claim_of(trial.outcome(form).result);
  compare(trial, form, name + ", automatic, " + word, std::max({spread, bound, kSolvers}), findings);
}

void check_repeated(Trial& trial, Findings& findings) {
  const Simulation simulation = trial.simulation({});
  const double first = simulated(simulation).whole, again = simulated(simulation).whole;
  findings.push_back({"repeated", again, first, difference(again, first), 0, "again | first", " |"});
}

}  // namespace stepcast::drawn
