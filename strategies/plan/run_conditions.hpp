#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/words.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Noise of a run: differences between equal workers.
struct Noise {
  enum class Jitter { none, trace, lognormal, layers };

  Jitter jitter = Jitter::none;  ///< trace: every worker replays one measured step in each step; lognormal: a
                                 ///< factor for each step on all work of a worker
  double sigma = 0;              ///< lognormal: standard deviation of the logarithm; the mean factor is 1
  bool per_node = false;         ///< all workers of a node draw the same noise
  double straggler_share = 0;    ///< share of the workers (or nodes) that are slow in every step
  double straggler_factor = 1;   ///< factor on their times
  std::map<std::uint32_t, double> stragglers =
      {};                   ///< factor of each worker (or node) that is known to be slow
  double start_spread = 0;  ///< interval over which asynchronous workers start, evenly [s]
  /// Standard deviation of the logarithm of the speeds of equal devices; the same in every step.
  double device_spread = 0;
  /// Standard deviation of the logarithm of a worker's work in a step, because its samples differ from
  /// others' (`data.imbalance`); the mean is 1.
  double imbalance = 0;

  bool has_stragglers() const { return straggler_share > 0 || !stragglers.empty(); }
  bool is_none() const { return jitter == Jitter::none && !has_stragglers() && imbalance == 0; }
};

/// The level of detail at which a collective is simulated (docs/explanation/simulation.md): every message; a
/// flow for each edge of a phase; or one flow over all the links that a phase occupies.
enum class Fidelity { automatic, message, fluid, coupled };
const Words<Fidelity>& fidelity_words();

/// The solver of max-min sharing of links: stepcast's own, or SimGrid's, which is its reference.
enum class LinkSharing { automatic, max_min, simgrid };
const Words<LinkSharing>& link_sharing_words();

/// Use of one program for all equal workers of a role. automatic: where that is exact, or where separate
/// programs would take too long (docs/explanation/simulation.md).
enum class Folding { automatic, always, never };

/// Noise of one worker in one step.
struct Draw {
  int sample = -1;         ///< index of the measured step that the worker replays; -1: the medians
  double factor = 1;       ///< on all work of the step except communication
  double layer_sigma = 0;  ///< sigma of a factor for every layer and pass; 0: none
  RandomKey key;           ///< random key of these factors

  double layer_factor(int layer, Work pass) const;  ///< factor of mean 1
};

/// Sets `factors[i]` to `draw.layer_factor(layers[i], pass)`, to the bit and at less cost.
/// @param layers  at most kNormalBlock
void layer_factors(const Draw& draw, Work pass, std::span<const int> layers, std::span<double> factors);

/// Measured steps that workers replay.
struct MeasuredSteps {
  std::size_t count = 0;
  int ranks = 1;  ///< ranks measured together; all steps of the first, then equally many of the second, ...
};

/// Draws the noise of one worker in one step. The result depends on the arguments only.
Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          const MeasuredSteps& measured);

/// Start time of a rank's program [s]. Asynchronous workers start one after the other over
/// Noise::start_spread; all other ranks start at 0.
double start_seconds(const Plan& plan, const Noise& noise, RankId rank);

/// Step time of asynchronous workers: number of workers / sum of their rates. A rate counts from the end of
/// the worker's first step until one worker has ended all its steps.
/// @param ends  ends of each program's steps, ascending [s]; empty: the program does not train
/// @throws std::invalid_argument if no program has ended a step
double own_pace_step_seconds(const std::vector<std::vector<double>>& ends);

/// Step time of asynchronous workers that share out the work of a step (Plan::common_steps). A step ends when
/// the first worker learns of its end; a worker without work in a step learns of it with its next work. It
/// counts from the end of the first step, if there are several.
/// @param ends  ends of each program's steps, ascending [s]; empty: the program does not train
/// @throws std::invalid_argument if no program has ended a step
double common_step_seconds(const std::vector<std::vector<double>>& ends);

/// The one of the two that counts for an asynchronous plan.
double asynchronous_step_seconds(const Plan& plan, const std::vector<std::vector<double>>& ends);

}  // namespace stepcast
