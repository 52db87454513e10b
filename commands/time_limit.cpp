#include "commands/time_limit.hpp"

#include <fmt/format.h>

#include "commands/simulate_point.hpp"
#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "core/utf8.hpp"
#include "sim/collectives.hpp"

namespace stepcast {
namespace {

constexpr Seconds kDefaultLimit{3600};

/// Of a message to or from a server, and for every other one that is under way. Measured
/// (docs/performance.md): case P of bench/ with 64 to 256 workers, where all meet at the servers and every
/// arrival and departure shares anew.
constexpr double kSecondsAMessage = 20e-6, kSecondsAnother = 50e-9;

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
  const bool fluid = experiment.form == Form::fluid;
  if (experiment.form != Form::message && !fluid) return {};
  const Plan& plan = experiment.plan;
  if (plan.asynchronous) {
    const auto [trainers, servers] = trainers_and_servers(plan);
    const double at_once = trainers * servers, messages = experiment.steps * 2 * at_once;  // there and back
    return {messages, {messages * (kSecondsAMessage + kSecondsAnother * at_once)}};
  }
  const Simulation simulation = simulation_of(experiment, Doubled::none);
  const Topology topology(experiment.platform);
  const Collectives traffic(simulation, topology);
  const double flows = experiment.steps * (fluid ? traffic.fluid_flows_a_step() : traffic.messages_a_step());
  return {flows, {traffic.seconds_of(flows)}};
}

void check_time(const Experiment& largest, const RunOptions& options) {
  const Seconds limit = limit_of(options.time_limit);
  const auto [messages, needed] = detailed(largest);
  if (needed <= limit) return;
  throw LimitError(
      fmt::format("one simulation of {} workers plays {:.3g} messages by simulation.form, some {:.1f} h, "
                  "over the limit of "
                  "{:.3g} h: use form: automatic or fewer workers, or raise --time-limit",
                  largest.plan.workers, messages, needed.value / 3600, limit.value / 3600));
}

}  // namespace stepcast
