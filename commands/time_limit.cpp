#include "commands/time_limit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/simulate_point.hpp"
#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "core/utf8.hpp"
#include "sim/collectives.hpp"
#include "sim/step_cost.hpp"

namespace stepcast {
namespace {

constexpr Seconds kDefaultLimit{3600};

/// Of a message to or from a server, and for every other one that is under way. Measured
/// (docs/performance.md): case P of bench/ with 64 to 256 workers, where all meet at the servers and every
/// arrival and departure shares anew by SimGrid; and with 1,024 by FairLinks.
constexpr double kSecondsAMessage = 20e-6, kSecondsAnother = 50e-9, kSecondsASharedMessage = 1.5e-6;

/// Synchronous runs by the rule that cannot take longer than this, with all their patience, are not worked
/// out.
constexpr double kNotLong = 600;

/// Members of training roles, and of the others (servers).
std::pair<double, double> trainers_and_servers(const Plan& plan) {
  double trainers = 0, servers = 0;
  for (const Role& role : plan.roles) (role.training ? trainers : servers) += role.members;
  return {trainers, servers};
}

Seconds limit_of(const std::string& text) {
  if (text.empty()) return kDefaultLimit;
  const auto seconds = parse_quantity(text, Dimension::time);
  if (!seconds || *seconds <= 0)
    throw InputError(
        fmt::format("--time-limit: expected a time such as \"2 h\", got \"{}\"", printable(text)));
  return {*seconds};
}

}  // namespace

Detailed detailed(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const bool cheap = experiment.form == Form::automatic || experiment.form == Form::coupled;
  if (!plan.asynchronous && cheap && std::max(experiment.steps * kLittleAStep, kMuchARun) < kNotLong)
    return {};
  const Simulation simulation = simulation_of(experiment, Doubled::none);
  const Topology topology(experiment.platform);
  const Collectives traffic(simulation, topology);
  if (plan.asynchronous) {
    const auto [trainers, servers] = trainers_and_servers(plan);
    const double at_once = trainers * servers, messages = experiment.steps * 2 * at_once;  // there and back
    const bool shared = traffic.form().shares_links;
    return {messages,
            {messages * (shared ? kSecondsASharedMessage : kSecondsAMessage + kSecondsAnother * at_once)}};
  }
  const StepCost cost = step_cost(traffic.traffic(), traffic.form());
  return {experiment.steps * cost.messages, {experiment.steps * cost.seconds}};
}

void check_time(const Experiment& largest, const RunSize& size, const RunOptions& options) {
  const Seconds limit = limit_of(options.time_limit);
  const auto [messages, one] = detailed(largest);
  const double simulations = size.simulations / static_cast<double>(size.points);
  const double at_once = std::clamp<double>(options.processes, 1, simulations);
  const Seconds needed = simulations / at_once * one;
  if (needed <= limit) return;
  const bool cheap = largest.form == Form::automatic;
  throw LimitError(fmt::format(
      "the largest point ({} workers) is {} simulations of {:.3g} messages or flows each in simulation.form: "
      "{}, some "
      "{:.1f} h with {} at once, over the limit of {:.3g} h: use {}fewer workers or steps, or raise "
      "--time-limit",
      largest.plan.workers, simulations, messages, form_names()[static_cast<std::size_t>(largest.form)],
      needed.value / 3600, at_once, limit.value / 3600, cheap ? "" : "form: automatic, "));
}

}  // namespace stepcast
