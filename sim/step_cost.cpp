#include "sim/step_cost.hpp"

#include <algorithm>

#include "sim/calls.hpp"

namespace stepcast {
namespace {

// Of a message, and for every rank: rings of 64 to 1,024 workers on one switch (docs/performance.md).
constexpr double kSecondsAMessage = 3e-6, kSecondsARank = 10e-9;
// Shared out by MaxMinLinks: 0.5 to 15 us, three of four at most 5 (docs/performance.md).
constexpr double kSecondsAnOwnMessage = 4e-6, kLeastSecondsAnOwnMessage = 1e-6;

/// In the form fluid one for every edge of a segment of a phase, in the form coupled one for all of them.
double flows_a_step(const Traffic& traffic, const ChosenForm& form) {
  double flows = 0;
  for (const Traffic::One& one : traffic.collectives) {
    for (const Phase& phase : one.schedule->phases) {
      const auto edges = static_cast<double>(phase.edges->size()) * traffic.groups(one);
      flows += std::min(form.segments, phase.rounds) * (form.form == Form::fluid ? edges : 1);
    }
  }
  return flows;
}

bool takes_at_most(const Traffic& traffic, Patience patience, double seconds_a_message) {
  const auto calls = calls_a_step(*traffic.simulation.plan);
  if (!calls) return false;
  double messages = calls->messages;
  for (const Traffic::One& one : traffic.collectives)
    messages += calls->collectives[one.number] * message_count(*one.schedule) * traffic.groups(one);
  const double step = messages * seconds_a_message;
  return step <= kLittleAStep || (patience == Patience::much && calls->steps * step <= kMuchARun);
}

}  // namespace

double messages_a_step(const Traffic& traffic) {
  double messages = 0;
  for (const Traffic::One& one : traffic.collectives)
    messages += message_count(*one.schedule) * traffic.groups(one);
  return messages;
}

double own_seconds(double messages) {
  return messages * kSecondsAnOwnMessage;
}

bool affordable(const Traffic& traffic, Patience patience) {
  return takes_at_most(traffic, patience, kSecondsAnOwnMessage);
}

bool worth_trying(const Traffic& traffic, Patience patience) {
  return takes_at_most(traffic, patience,
                       patience == Patience::much ? kLeastSecondsAnOwnMessage : kSecondsAnOwnMessage);
}

StepCost step_cost(const Traffic& traffic, const ChosenForm& form) {
  if (!form.seconds.empty()) return {};
  const double count = form.form == Form::message ? messages_a_step(traffic) : flows_a_step(traffic, form);
  if (form.sharing == SimNetwork::Sharing::own) return {count, own_seconds(count)};
  const auto others = static_cast<double>(traffic.simulation.plan->endpoints.size());
  return {count, count * (kSecondsAMessage + (form.form == Form::coupled ? 0 : kSecondsARank * others))};
}

}  // namespace stepcast
