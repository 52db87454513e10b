#pragma once

#include "validate/carry.hpp"
#include "validate/communication_thread.hpp"
#include "validate/parcels.hpp"
#include "validate/rank_run.hpp"
#include "validate/real_mail.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// Why an experiment with `learning` is not learned for real, as a line; empty where it is.
/// @throws InputError for data and checkpoints that are not what they should be
std::string why_not_learned(const Experiment& experiment);

/// What all learning runs share.
struct LearningWorld {
  const RankRun& run;
  Backend& backend;
  CommunicationThread& thread;
  RealMail& mail;
  Completions& completions;
  int& runs;                                     ///< number of the last run
  std::function<Carry(const Plan&)> carry = {};  ///< RealPlace::carry
  Parcels* parcels = nullptr;                    ///< RealPlace::parcels, opened for these plans
};

/// Trains every point that has `learning` for real, one after the other; rank 0 writes what its parameters
/// know of held-out data to `learning.jsonl` (loss and accuracy against mini-batches and seconds), and at the
/// end a checkpoint for each point.
void learn_all(const LearningWorld& world, const Validation& validation, Library& library);

}  // namespace stepcast
