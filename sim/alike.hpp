#pragma once

#include <vector>

#include "sim/form_rule.hpp"
#include "sim/single_messages.hpp"

namespace stepcast {

/// Whether nothing tells the workers of a role apart: then all do everything at the same dates, and one
/// program may stand for them. Proven by colours: workers, groups, transfers and links that look alike get
/// one; what touches unlike colours gets another, until none is left to part. With flows that share links
/// max-min fairly all of one colour have one rate (the sharing is unique, and the mean over a colour is one
/// too), so they end together. False where jitter parts the workers, or nothing is proven in kMostRounds.
bool workers_alike(const Traffic& traffic, const std::vector<SingleMessages>& singles);

}  // namespace stepcast
