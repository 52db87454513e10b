#include <algorithm>

#include "core/random.hpp"
#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

constexpr double kMostSimGridWork = 6000;  ///< of a trial that SimGrid simulates too

/// The difference to kMessages that the results of a form allow, and what they say in a word.
std::pair<double, const char*> claim_of(const SimulationResult& result) {
  const UsedFidelity& fidelity = result.fidelity;
  const bool rough = fidelity.accuracy == Accuracy::rough || result.folding.accuracy == Accuracy::rough;
  if (rough) return {kNoBound, "rough"};
  if (fidelity.uses_bottleneck_sharing) return {kClose, "shared"};
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

/// The simulation with every worker and every link slower by a share of at most 1e-6 of its own. Otherwise
/// messages of equal workers arrive at a server at one time; rounding then decides which is first, and so who
/// waits.
Simulation without_ties(Simulation simulation) {
  constexpr double kTiny = 1e-6;
  const auto factor = [&](std::size_t of, std::uint32_t what) {
    return 1 + kTiny * uniform({1, Purpose::data, static_cast<std::uint32_t>(of), what, 0});
  };
  for (std::size_t rank = 0; rank < simulation.plan->endpoints.size(); ++rank)
    simulation.noise.stragglers.try_emplace(static_cast<std::uint32_t>(rank), 1).first->second *=
        factor(rank, 0);
  for (int link = 0; link < simulation.bandwidths.size(); ++link)
    simulation.bandwidths.multiply(link, 1 / factor(static_cast<std::size_t>(link), 1));
  return simulation;
}

}  // namespace

void check_simgrid(Trial& trial, Findings& findings) {
  if (trial.work() > kMostSimGridWork) return;
  constexpr double kSolvers = 1e-6;  // SimGrid rounds to 1e-12 s
  const Plan& plan = trial.experiment().plan;
  Form form = kMessages;
  form.sharing = LinkSharing::simgrid;
  if (plan.asynchronous || plan.assigns_work_by_message) {
    const double reference = simulated(without_ties(trial.simulation(kMessages))).step;
    const double step = simulated(without_ties(trial.simulation(form))).step;
    // Replicas that wait for work have read all parameters through one link, and so are ready at one time.
    const bool ties = plan.assigns_work_by_message;
    findings.push_back({ties ? "simgrid, assigned work" : "simgrid, asynchronous", step, reference,
                        difference(step, reference), ties ? kNoBound : kSolvers,
                        "both with workers and links apart by 1e-6",
                        to_text(form) + " |" + to_text(kMessages)});
    return;
  }
  compare(trial, form, "simgrid", kSolvers, findings);
  form = {.sharing = LinkSharing::simgrid};
  const auto [bound, word] = claim_of(trial.outcome(form).result);
  compare(trial, form, std::string("simgrid, automatic, ") + word, std::max(bound, kSolvers), findings);
}

void check_repeated(Trial& trial, Findings& findings) {
  const Simulation simulation = trial.simulation({});
  const double first = simulated(simulation).whole, again = simulated(simulation).whole;
  findings.push_back({"repeated", again, first, difference(again, first), 0, "again | first", " |"});
}

}  // namespace stepcast::drawn
