#pragma once

#include <memory>
#include <vector>

#include "sim/form_rule.hpp"

namespace stepcast {

/// A message that each member of a role sends by itself, or a load of its input: edges between ranks of the
/// plan (or the storage), which wait for nobody else.
struct SingleMessages {
  std::shared_ptr<const Schedule> schedule;
  Placement placement;
  std::vector<int> ranks;  ///< of the plan, one each of the placement; -1: the storage
};

/// Whether nothing tells the workers of a role apart: then all do everything at the same dates, and one
/// program may stand for them. Proven by colours: workers, groups, transfers and links that look alike get
/// one; what touches unlike colours gets another, until none is left to part. With flows that share links
/// max-min fairly all of one colour have one rate (the sharing is unique, and the mean over a colour is one
/// too), so they end together. False where jitter parts the workers, or nothing is proven in kMostRounds.
bool workers_alike(const Traffic& traffic, const std::vector<SingleMessages>& singles);

}  // namespace stepcast
