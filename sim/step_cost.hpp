#pragma once

#include "sim/form_rule.hpp"

namespace stepcast {

/// What the collectives of a step take in a form, each called once.
struct StepCost {
  double messages = 0;  ///< or flows
  double seconds = 0;   ///< of the processor, about
};
StepCost step_cost(const Traffic& traffic, const ChosenForm& form);

/// Messages of all collectives, each called once.
double messages_a_step(const Traffic& traffic);

/// Whether every message, as often as the programs send it, is estimated to take no longer.
bool affordable(const Traffic& traffic, Patience patience);

/// Whether it might, if its messages are cheap ones: for who gives up when they are not.
bool worth_trying(const Traffic& traffic, Patience patience);

/// Of the processor, for so many messages that MaxMinLinks shares out, about.
double own_seconds(double messages);

}  // namespace stepcast
