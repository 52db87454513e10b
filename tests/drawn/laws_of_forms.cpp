#include <algorithm>

#include "core/random.hpp"
#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

constexpr double kSolvers = 1e-9;          ///< between the solvers of link sharing
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
      const Form form{fidelity, fold, LinkSharing::max_min};
      if (form == kMessages || (trial.work() >= kLargeWork && fold != Folding::automatic)) continue;
      const auto [bound, word] = claim_of(trial.outcome(form).result);
      compare(trial, form, std::string(fidelity == Fidelity::message ? "messages, " : "automatic, ") + word,
              bound, findings);
    }
  }
  if (trial.experiment().plan.asynchronous) return;  // all their messages are simulated in any form
  compare(trial, {.fidelity = Fidelity::fluid, .sharing = LinkSharing::max_min}, "fluid", kNoBound, findings);
  compare(trial, {.fidelity = Fidelity::coupled, .sharing = LinkSharing::max_min}, "coupled", kNoBound,
          findings);
}

namespace {

/// The simulation with every worker and every link slower by a share of its own, of at most `by`.
Simulation apart(Simulation simulation, std::uint64_t seed, double by) {
  const auto factor = [&](std::size_t of, std::uint32_t what) {
    return 1 + by * uniform({seed, Purpose::data, static_cast<std::uint32_t>(of), what, 0});
  };
  simulation.noise.per_node = false;
  for (std::size_t rank = 0; rank < simulation.plan->endpoints.size(); ++rank)
    simulation.noise.stragglers.try_emplace(rank, 1).first->second *= factor(rank, 0);
  for (int link = 0; link < simulation.bandwidths.size(); ++link)
    simulation.bandwidths.multiply(link, 1 / factor(link, 1));
  return simulation;
}

/// How much the step changes where all times and rates change by a part in 1e11. The solvers take dates and
/// rates for equal that are closer than that, and messages that wait for each other can make it large.
double effect_of_rounding(const Simulation& simulation, double step) {
  constexpr double kRounded = 1e-11;
  double most = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    most = std::max(most, difference(simulated(apart(simulation, seed, kRounded)).step, step));
  return most;
}

/// Where the solvers differ by more than rounding usually makes, and rounding alone makes as much in one of
/// them, the law is another.
void allow_for_rounding(Finding& finding, const Simulation& simulation) {
  constexpr double kLarger = 10;
  if (!finding.broken()) return;
  const double effect = effect_of_rounding(simulation, finding.reference);
  if (finding.difference > kLarger * effect) return;
  finding.law = "simgrid, where rounding matters";
  finding.bound = kLarger * effect;
}

/// Compares runs in which nothing is at one time: otherwise messages of equal workers arrive at a server at
/// one time, and rounding decides which is first, and so who waits. What is left of ties is tried away.
/// Replicas of Sandblaster that wait for work have always read the parameters through one link, and so are
/// ready at one time.
Finding without_ties(const Trial& trial, const Form& form) {
  constexpr int kTries = 4;
  constexpr double kApart = 1e-4;
  const bool sandblaster = trial.experiment().strategy == "sandblaster";
  const bool hosts = trial.experiment().device.host_operation.value > 0;  // equally fast, so that ties stay
  const bool ties = sandblaster || hosts;
  Finding finding{.law = sandblaster ? "simgrid, sandblaster"
                         : hosts     ? "simgrid, asynchronous hosts"
                                     : "simgrid, asynchronous",
                  .difference = 1,
                  .bound = kSolvers};
  for (std::uint64_t seed = 1; seed <= kTries && finding.broken(); ++seed) {
    const Simulation simulation = apart(trial.simulation(kMessages), seed, kApart);
    const double step = simulated(apart(trial.simulation(form), seed, kApart)).step;
    const double reference = simulated(simulation).step;
    if (difference(step, reference) > finding.difference) continue;
    finding.value = step;
    finding.reference = reference;
    finding.difference = difference(step, reference);
    allow_for_rounding(finding, simulation);
  }
  if (ties) finding.bound = kNoBound;
  finding.forms = "both with workers and links apart by 1e-4";
  finding.command = to_text(form) + " |" + to_text(kMessages);
  return finding;
}

/// The sharing that stepcast chooses is one of the two, as its results say.
void check_chosen_sharing(Trial& trial, Findings& findings) {
  const Outcome& chosen = trial.outcome({});
  const bool simgrid = chosen.result.link_sharing.find("SimGrid") != std::string::npos;
  const Form form{.sharing = simgrid ? LinkSharing::simgrid : LinkSharing::max_min};
  const double step = trial.outcome(form).step;
  findings.push_back({"chosen sharing", chosen.step, step, difference(chosen.step, step), kRounding,
                      result_text(chosen) + " | " + result_text(trial.outcome(form)), " |" + to_text(form)});
}

/// Whether rings share a buffer, collectives run side by side, or ranks are not placed in order of nodes.
bool shares_otherwise(const Trial& trial) {
  const YamlNode* strategy = trial.scenario().find("strategy");
  const YamlNode* placement = trial.scenario().find("placement");
  return strategy->find("channels") != nullptr || strategy->find("streams") != nullptr ||
         (placement != nullptr && placement->text != "packed");
}

}  // namespace

void check_simgrid(Trial& trial, Findings& findings) {
  if (trial.work() > kMostSimGridWork) return;
  check_chosen_sharing(trial, findings);
  const Plan& plan = trial.experiment().plan;
  Form form = kMessages;
  form.sharing = LinkSharing::simgrid;
  if (plan.asynchronous || plan.assigns_work_by_message) return findings.push_back(without_ties(trial, form));
  compare(trial, form, shares_otherwise(trial) ? "simgrid, channels, streams, placements" : "simgrid",
          kSolvers, findings);
  allow_for_rounding(findings.back(), trial.simulation(kMessages));
  form = {.sharing = LinkSharing::simgrid};
  const auto [bound, word] = claim_of(trial.outcome(form).result);
  compare(trial, form, std::string("simgrid, automatic, ") + word, std::max(bound, kSolvers), findings);
  allow_for_rounding(findings.back(), trial.simulation(kMessages));
}

void check_repeated(Trial& trial, Findings& findings) {
  const Simulation simulation = trial.simulation({});
  const double first = simulated(simulation).whole, again = simulated(simulation).whole;
  findings.push_back({"repeated", again, first, difference(again, first), 0, "again | first", " |"});
}

}  // namespace stepcast::drawn
