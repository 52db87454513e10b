#include "tests/drawn/trial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forecast/simulate_point.hpp"
#include "scenarios/reader/read_figures.hpp"
#include "sim/collectives/collective_schedules.hpp"

namespace stepcast::drawn {
namespace {

constexpr double kWorkOfPass = 0.2;  ///< of one layer of one worker, in messages

/// Calls of programs that exchange messages whose content counts are not known before the run.
double unknown_messages(const Experiment& experiment) {
  double trainers = 0, servers = 0;
  for (const Role& role : experiment.plan.roles) (role.training ? trainers : servers) += role.members;
  const double tasks = experiment.plan.assigns_work_by_message ? 4 : 1;
  return 4 * tasks * trainers * std::max(servers, 1.0);
}

double estimated_work(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const Simulation simulation = simulation_of(experiment);
  const Topology topology(experiment.platform);
  const CollectiveSchedules schedules(simulation, topology);
  const CollectiveLoad load = schedules.load();
  const auto calls = calls_per_step(plan);
  double messages = calls ? calls->messages : unknown_messages(experiment);
  for (const CollectiveLoad::One& one : load.collectives)
    messages +=
        (calls ? calls->collectives[one.id.index()] : 1) * message_count(*one.schedule) * load.groups(one);
  double passes = 0;
  for (const Role& role : plan.roles) {
    if (role.workload >= 0) passes += 3.0 * role.members * plan.workloads[role.workload].layers();
  }
  return experiment.steps * (messages + kWorkOfPass * passes);
}

const char* fold_text(Folding fold) {
  return fold == Folding::always ? "on" : fold == Folding::never ? "off" : "automatic";
}

}  // namespace

std::string to_text(const Form& form) {
  std::string text;
  if (form.fidelity != Fidelity::automatic)
    text += " --set simulation.fidelity=" + fidelity_words().of(form.fidelity);
  if (form.fold != Folding::automatic) text += fmt::format(" --set simulation.fold={}", fold_text(form.fold));
  if (form.sharing != LinkSharing::automatic)
    text += " --set simulation.sharing=" + link_sharing_words().of(form.sharing);
  return text;
}

Experiment experiment_of(const YamlNode& scenario, Library& library) {
  YamlNode document = scenario;
  std::vector<Assignment> set;
  if (const YamlNode* given = document.find("set")) set = read_point(YamlValue(*given, "set"));
  std::erase_if(document.entries, [](const auto& entry) {
    return entry.first.text == "set" || entry.first.text == "name" || entry.first.text == "uncertainty";
  });
  return build_experiment(std::move(document), std::move(set), library);
}

Outcome simulated(const Simulation& simulation) {
  Outcome outcome{.result = simulate(simulation)};
  const auto& steps = outcome.result.steps;
  const auto first = steps.begin() + (steps.size() > 1 ? 1 : 0);
  for (auto step = first; step != steps.end(); ++step) outcome.step += step->seconds / (steps.end() - first);
  outcome.whole = outcome.result.seconds;
  return outcome;
}

Trial::Trial(YamlNode scenario)
    : scenario_(std::move(scenario)),
      experiment_(experiment_of(scenario_, library_)),
      work_(estimated_work(experiment_)) {}

Simulation Trial::simulation(const Form& form) const {
  Simulation simulation = simulation_of(experiment_);
  simulation.fidelity = form.fidelity;
  simulation.fold = form.fold;
  simulation.link_sharing = form.sharing;
  return simulation;
}

const Outcome& Trial::outcome(const Form& form) {
  const auto known = outcomes_.find(form);
  if (known != outcomes_.end()) return known->second;
  return outcomes_.emplace(form, simulated(simulation(form))).first->second;
}

}  // namespace stepcast::drawn
