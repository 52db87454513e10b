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

/// Of a message, and for every other one that is under way. Measured (docs/performance.md): rings of 64 to
/// 1,024 workers on one switch, where messages hardly meet; and case P of bench/ with 64 to 256 workers,
/// where all meet at the servers and every arrival and departure shares anew.
struct Cost {
  double message, other;  ///< [s]
};
constexpr Cost kOfCollectives{3e-6, 10e-9}, kOfServers{20e-6, 50e-9};

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

double detailed_messages(const Experiment& experiment) {
  if (experiment.form != Form::message) return 0;
  const Plan& plan = experiment.plan;
  if (plan.asynchronous) {
    const auto [trainers, servers] = trainers_and_servers(plan);
    return experiment.steps * 2 * trainers * servers;  // to every server and back
  }
  const Simulation simulation = simulation_of(experiment, Doubled::none);
  const Topology topology(experiment.platform);
  return experiment.steps * Collectives(simulation, topology).messages_a_step();
}

Seconds detailed_time(const Experiment& experiment) {
  const double messages = detailed_messages(experiment);
  const auto [trainers, servers] = trainers_and_servers(experiment.plan);
  const bool asynchronous = experiment.plan.asynchronous;
  const double at_once = asynchronous ? trainers * servers : trainers;
  const Cost& cost = asynchronous ? kOfServers : kOfCollectives;
  return {messages * (cost.message + cost.other * at_once)};
}

void check_time(const Experiment& largest, const RunOptions& options) {
  const Seconds limit = limit_of(options.time_limit);
  const Seconds needed = detailed_time(largest);
  if (needed <= limit) return;
  throw LimitError(
      fmt::format("one simulation of {} workers plays {:.3g} messages by simulation.form, some {:.1f} h, "
                  "over the limit of "
                  "{:.3g} h: use form: automatic or fewer workers, or raise --time-limit",
                  largest.plan.workers, detailed_messages(largest), needed.value / 3600, limit.value / 3600));
}

}  // namespace stepcast
