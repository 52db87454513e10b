#pragma once

#include <functional>
#include <vector>

#include "validate/transport.hpp"

namespace stepcast {

/// How long each of several repeats of the same thing took, every rank doing it at once [s].
struct Repeats {
  std::vector<double> seconds;  ///< of the slowest rank; filled on rank 0 only
  std::vector<double>
      stolen;  ///< share of the machine's cores that its host took away meanwhile; 1: it moved them
  double cpu_seconds = 0;  ///< of this rank, all its threads: mean
};

/// Repeats `once` in batches of equal length between barriers, for about `budget` seconds in all; rank 0
/// decides how often, so that all do the same. A batch during which the host gave this machine's cores to
/// others, or moved them, is made again, up to three times as many.
/// @param pause  seconds of silence before each repeat, then one a batch, as communication comes between
/// passes of
///               compute; 0: none
Repeats repeated(Transport& transport, double budget, const std::function<void()>& once, double pause = 0);

/// Several things in turn, once each, for about `budget` seconds in all: repeat i of all of them was made
/// within a moment, so that what one takes more than another is known better than either.
std::vector<Repeats> repeated_in_turn(Transport& transport, double budget,
                                      const std::vector<std::function<void()>>& things);

/// The median over the repeats of what `more` took beyond `less`.
double median_difference(const Repeats& more, const Repeats& less);

/// What the repeats took that the host disturbed little; where there are fewer than three, the least
/// disturbed.
std::vector<double> undisturbed(const Repeats& repeats);

/// The value of rank 0.
double shared_value(Transport& transport, double value);

/// The greatest of all ranks' values; the same on all.
double greatest_value(Transport& transport, double own);

}  // namespace stepcast
