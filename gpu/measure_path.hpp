#pragma once

#include <functional>
#include <vector>

#include "validate/link_table.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// What messages between the ranks' GPUs take, from sums over all ranks: a ring's sum of S bytes over P ranks
/// is 2 (P - 1) messages of S / P bytes one after the other, whatever carries it. All ranks call it; on rank
/// 0 only there is a result.
/// @param sum  sums so many floats over all ranks, from one GPU's memory to the others'
std::vector<MessageTime> message_times_of(Transport& transport, std::int64_t most_elements,
                                          const std::function<void(std::int64_t elements)>& sum);

/// The same of sums by shared memory, by a ring. @param around  calls what sums the first so many floats of
/// `here`, with what comes before and after it
using AroundSum = std::function<void(std::size_t elements, const std::function<void()>& sum)>;
std::vector<MessageTime> ring_times(Transport& transport, float* here, std::int64_t most_elements,
                                    const AroundSum& around);

}  // namespace stepcast
