#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {

/// The time that a change can save at most.
enum class StepPart { communication, computation, host, loading };

/// One change of a scenario that its user can make.
struct Change {
  std::vector<Assignment> values = {};  ///< the first key is the one that is changed
  std::string from = {};                ///< its value before; empty: it is not given
  std::string why = {};                 ///< in words, where the keys do not say it: "CUDA graphs"
  std::string alters = {};              ///< what it changes in the result of the training; empty: nothing
  StepPart part = StepPart::communication;
  double weight = 0;    ///< share of the part that it may save, a guess that only orders the simulations
  bool bought = false;  ///< other hardware
};

/// "strategy.bucket: 100 MiB in place of 25 MiB"
std::string to_string(const Change& change);

/// The changes that a document's strategy, network and platform allow, those first that may save most;
/// without those that could save less than `least` of the step, and without keys that `taken` names.
/// @param document    complete, with its software stack and usual kernels
/// @param experiment  what is built from the document
/// @param row         its simulation
std::vector<Change> possible_changes(const YamlNode& document, const Experiment& experiment, const Row& row,
                                     const std::vector<std::string>& taken, double least);

}  // namespace stepcast
