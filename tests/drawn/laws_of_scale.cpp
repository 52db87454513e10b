#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/random.hpp"
#include "core/text.hpp"
#include "forecast/simulate_point.hpp"
#include "scenarios/experiment/software_stack.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/sweep.hpp"
#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

/// Halves the times and doubles the bandwidths among the keys of a mapping.
void halve_times(YamlNode& mapping, const Keys& keys) {
  for (auto& [name, value] : mapping.entries) {
    const auto key = std::ranges::find(keys, name.text, &Key::name);
    if (key == keys.end()) continue;
    if (key->inside != nullptr && value.kind == YamlNode::Kind::mapping) halve_times(value, key->inside());
    if (value.kind != YamlNode::Kind::scalar) continue;
    const auto seconds = parse_quantity(value.text, Dimension::time);
    const auto rate = parse_quantity(value.text, Dimension::bytes_per_second);
    if (seconds && key->type.starts_with("time")) value.text = fmt::format("{:.17g} s", 0.5 * *seconds);
    if (rate && key->type.starts_with("bandwidth")) value.text = fmt::format("{:.17g} B/s", 2 * *rate);
  }
}

void halve_factor(YamlNode& document, const std::string& path) {
  YamlNode factor;
  factor.kind = YamlNode::Kind::scalar;
  const YamlNode* given = find_path(document, path);
  factor.text = fmt::format("{:.17g}", 0.5 * (given == nullptr ? 1 : YamlValue(*given, path).number(0)));
  assign(document, {path, factor});
}

/// The scenario with all that takes time outside of the network halved.
YamlNode halved(YamlNode scenario, Library& library) {
  apply_software_stack(scenario, library);
  const std::string kind = find_path(scenario, "strategy.kind")->text;
  const auto& kinds = keys_by_strategy();
  const Keys& keys = std::ranges::find(kinds, kind, &KindKeys::kind)->keys;
  halve_factor(scenario, "strategy.compute_factor");
  if (find_path(scenario, "strategy.compression") != nullptr &&
      std::ranges::count(names_of(keys), "compression_factor") > 0)
    halve_factor(scenario, "strategy.compression_factor");
  for (auto& [name, value] : scenario.entries) {
    if (name.text == "strategy") halve_times(value, keys);
    if (name.text == "noise") halve_times(value, noise_keys());
  }
  return scenario;
}

}  // namespace

void check_halved(Trial& trial, Findings& findings) {
  const Experiment half = experiment_of(halved(trial.scenario(), trial.library()), trial.library());
  for (const Form& form : {Form{}, kMessages}) {
    Simulation simulation = trial.simulation(form);
    simulation.plan = &half.plan;
    simulation.noise = half.noise;
    simulation.bandwidths.multiply_all(2);
    simulation.latency_factor = 0.5;
    const Outcome& reference = trial.outcome(form);
    const Outcome outcome = simulated(simulation);
    const bool rough = to_text(reference.result.fidelity) != to_text(outcome.result.fidelity);
    findings.push_back({rough ? "halved, other form" : "halved", 2 * outcome.step, reference.step,
                        difference(2 * outcome.step, reference.step), rough ? kClose : kRounding,
                        "all times halved | as drawn, both" + to_text(form), " |" + to_text(form)});
  }
}

namespace {

/// Whether operations on the network may run at the same time.
bool overlaps(const Plan& plan) {
  std::set<CommunicatorId> busy;
  for (const Collective& collective : plan.collectives) busy.insert(collective.communicator);
  return plan.asynchronous || plan.assigns_work_by_message || plan.load_data || !plan.channels.empty() ||
         busy.size() > 1 ||
         std::ranges::any_of(plan.communicators, [](const Communicator& one) { return one.in_flight > 1; });
}

bool chooses_algorithms(const Plan& plan) {
  return std::ranges::any_of(plan.collectives,
                             [&](const Collective& one) { return has_automatic_algorithm(plan, one); });
}

}  // namespace

// Operations that overlap may honestly be slower with more bandwidth, as R. Graham's jobs with more machines:
// one that is done earlier lets another start earlier, which then takes bandwidth from a third that a worker
// waits for. The algorithm that an estimate calls the fastest may also be slower than the one before, within
// its error.
void check_faster(Trial& trial, Findings& findings) {
  const Plan& plan = trial.experiment().plan;
  Simulation simulation = trial.simulation(kMessages);
  simulation.bandwidths.multiply_all(2);
  const Outcome& reference = trial.outcome(kMessages);
  const double faster = simulated(simulation).step;
  const bool overlap = overlaps(plan), chooses = chooses_algorithms(plan);
  const double slower = std::max(0.0, faster / reference.step - 1);
  findings.push_back({overlap   ? "faster, overlapping"
                      : chooses ? "faster, automatic"
                                : "faster",
                      faster, reference.step, slower,
                      overlap   ? kNoBound
                      : chooses ? kClose
                                : kRounding,
                      "bandwidths doubled | as drawn", to_text(kMessages) + " |" + to_text(kMessages)});
}

namespace {

/// Whether every two nodes of the platform may change places.
bool nodes_are_equal(const Experiment& experiment) {
  const auto* tree = std::get_if<FatTreeShape>(&experiment.platform.network.fabric);
  return tree != nullptr && tree->levels.empty() && experiment.bandwidths.scaled_evenly() &&
         !experiment.noise.per_node;
}

}  // namespace

void check_permuted(Trial& trial, Findings& findings) {
  const Experiment& experiment = trial.experiment();
  const Platform& platform = experiment.platform;
  if (!nodes_are_equal(experiment)) return;
  Plan plan = experiment.plan;
  const auto order = permutation({experiment.seed, Purpose::placement, 1, 0, 0}, platform.nodes);
  for (std::size_t rank = 0; rank < plan.endpoints.size(); ++rank) {
    int& endpoint = plan.endpoints[RankId(rank)];
    if (endpoint >= platform.storage_endpoint()) continue;
    const int node = order[static_cast<std::size_t>(platform.node_of(endpoint))];
    endpoint = endpoint < platform.devices()
                   ? node * platform.devices_per_node + endpoint % platform.devices_per_node
                   : platform.host_endpoint(node);
  }
  Simulation simulation = trial.simulation(kMessages);
  simulation.plan = &plan;
  const Outcome& reference = trial.outcome(kMessages);
  const double other = simulated(simulation).step;
  findings.push_back({"permuted", other, reference.step, difference(other, reference.step), kRounding,
                      "nodes in another order | as drawn", " |" + to_text(kMessages)});
}

}  // namespace stepcast::drawn
