#pragma once

#include <string>
#include <vector>

#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// A range that applies to a scenario without being written in it.
struct DefaultRange {
  std::string kind;          ///< "link_between_servers"
  std::string source_class;  ///< measured, published, data_sheet or assumed
  Assumption range;
};

/// The ranges of models/measured/input-ranges.yaml that apply to a scenario: those that neither `assumed:`
/// nor `calibrate:` replaces, that `uncertainty:` does not turn off, and whose input matters. Links and
/// messages matter with several devices; those between servers with several servers, and
/// those inside a server with one, because the NICs are slower. The slowdown of compute
/// and the spread of steps must not be set or swept by the scenario. The start of kernels matters with
/// `trace: derived` and no factor on its times, host work where the scenario or its stack gives
/// some.
/// @param largest  the experiment with the most workers
/// @throws InputError for an unknown kind or class in `uncertainty:`
std::vector<DefaultRange> default_ranges(const Scenario& scenario, const Experiment& largest,
                                         Library& library);

/// The experiment with the most workers, with the assumptions in the middle of their ranges. Points that
/// cannot be built are left out.
Experiment largest_experiment(const Scenario& scenario, Library& library);

/// The scenario with its default ranges appended to its assumptions.
Scenario with_default_ranges(Scenario scenario, const Experiment& largest, Library& library);

}  // namespace stepcast
