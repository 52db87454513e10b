#pragma once

#include <functional>
#include <vector>

#include "runtime/transport/transport.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

/// Times of messages between the ranks' GPUs, from all-reduces: a ring all-reduce of S bytes over P ranks is
/// a sequence of 2 (P - 1) messages of S / P bytes. All ranks call this; only rank 0 gets a result.
/// @param sum  all-reduces this number of floats over all ranks, in memory of the GPUs
std::vector<MessageTime> message_times_of(Transport& transport, std::int64_t max_elements,
                                          const std::function<void(std::int64_t elements)>& sum);

/// Calls a function that all-reduces `elements` floats in the host's memory, with the copies before and after
/// it.
using AroundSum = std::function<void(std::size_t elements, const std::function<void()>& sum)>;
/// Times of messages of a ring all-reduce through shared memory.
/// @param host_values  the host's memory that is all-reduced
std::vector<MessageTime> ring_times(Transport& transport, float* host_values, std::int64_t max_elements,
                                    const AroundSum& around);

}  // namespace stepcast
