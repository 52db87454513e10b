#pragma once

#include <vector>

namespace stepcast {

/// Assigns `total` mini-batches so that all workers end at about the same time: in proportion to their speed,
/// rounded by largest remainders, at least one for each worker.
///
/// @param seconds  time of each worker for a mini-batch; > 0
/// @param total    at least the number of workers
/// @throws std::invalid_argument
std::vector<int> balanced_shares(const std::vector<double>& seconds, int total);

}  // namespace stepcast
