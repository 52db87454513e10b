#pragma once

#include "campaigns/faults.hpp"

namespace stepcast {

/// Inputs of the formulas below. Symbols: delta = time to write a checkpoint, M = mean time between failures
/// of the whole system (that of a node / nodes), R = repair + restart, T_s = training, tau = interval.
struct CheckpointProblem {
  Seconds write;  ///< delta
  Seconds mtbf;   ///< M
};

/// Reads delta and M from the faults.
CheckpointProblem checkpoint_problem(const Faults& faults);

/// Young's interval, sqrt(2 delta M). Source: J. W. Young, "A first order approximation to the optimum
/// checkpoint interval", Communications of the ACM 17(9) (1974) 530-531.
Seconds young_interval(const CheckpointProblem& problem);

/// Daly's interval: sqrt(2 delta M) (1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9) - delta for delta < 2M,
/// else M. Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
/// dumps", Future Generation Computer Systems 22 (2006) 303-312, doi:10.1016/j.future.2004.11.016.
Seconds daly_interval(const CheckpointProblem& problem);

/// The interval with the least mean total time over `draws` draws; fewer draws if they contain more than
/// 20,000 failures. Total times are computed on a grid of ratio 2^(1/4), with the same failures at every
/// interval. A parabola in the logarithm of the interval is fitted to those within a factor of 2 of the best
/// interval; its vertex is the result. Returns `training` if nodes never fail.
Seconds best_interval(Faults faults, int draws);

}  // namespace stepcast
