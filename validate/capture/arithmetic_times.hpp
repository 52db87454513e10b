#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/network/network.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/program/worker.hpp"
#include "validate/measure/link_measurement.hpp"

namespace stepcast {

/// Name of the arithmetic that all kinds have: the sum of two micro-batches.
constexpr auto kSumOfGradients = "sum of gradients";

/// The sum of two micro-batches, and what the strategy names (Strategy::timed_arithmetic). The block filter,
/// the elastic moves and energy matching compute in double precision, so they take longer than the optimizer
/// takes for as many arrays.
/// @param whole  all elements of the model
std::vector<TimedArithmetic> arithmetic_of(const Strategy& strategy, const Slice& whole,
                                           Transport& transport);

/// Times the arithmetic on all ranks at once. Each repetition begins with a training step if the rank trains.
/// @param progress  called before each repetition with the name of the arithmetic
/// @return on rank 0, measurements `arithmetic` with the name of the arithmetic as their algorithm: the means
/// of the ranks' medians
LinkMeasurements time_arithmetic(Transport& transport, Network& network, const std::string& trace,
                                 const std::vector<TimedArithmetic>& all, int repeats,
                                 const std::function<void(const std::string& name)>& progress);

/// The time of an arithmetic in measured links; none if it was not measured.
std::optional<Seconds> arithmetic_time(const LinkMeasurements& links, const std::string& trace,
                                       const std::string& name);

}  // namespace stepcast
