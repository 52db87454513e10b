#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// What makes equal workers differ.
struct Noise {
  enum class Jitter { none, trace, lognormal, layers };

  Jitter jitter = Jitter::none;  ///< trace: every worker and step replays one measured step; lognormal: a
                                 ///< factor a step on all that a worker does
  double sigma = 0;              ///< lognormal: of the logarithm; the mean factor is 1
  bool per_node = false;         ///< all workers of a node draw alike
  double straggler_share = 0;    ///< of the workers (or nodes) that are slow in every step
  double straggler_factor = 1;   ///< by which they are slower
  double start_spread = 0;       ///< over which workers without a common pace start, evenly [s]
};

const std::vector<std::string>& jitter_names();  ///< in the order of Noise::Jitter

/// How a collective is simulated (docs/simulation.md): every message; a flow for each edge of a phase; or one
/// flow over all the links that a phase occupies.
enum class Form { automatic, message, fluid, coupled };
const std::vector<std::string>& form_names();  ///< in the order of Form

/// Whether one program stands for all equal workers of a role; automatic: where that is exact or the rest
/// would take too long (docs/simulation.md).
enum class Folding { automatic, always, never };

}  // namespace stepcast
