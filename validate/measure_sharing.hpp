#pragma once

#include "kernels/network.hpp"
#include "validate/leisure.hpp"
#include "validate/measure_links.hpp"

namespace stepcast {

/// What ranks of one machine take from each other; all ranks call it. Rows as of measure_links:
///
/// memory_alone       rank 0 adds two arrays of 64 MB into a third (12 bytes an element), the others wait
/// memory_together    all ranks do
/// compute_alone      training steps of `network`, all ranks at once, nothing else
/// compute_beside     the same while the communication thread sums a buffer again and again
/// all_reduce_alone   that sum without compute
std::vector<Row> measure_sharing(Transport& transport, Leisure& leisure, Network& network, double budget);

/// By how much compute is slower while a collective runs: with C and A the seconds of compute and of the
/// collective alone and T those of both begun together (A < C), compute got T - A seconds at full speed and A
/// seconds at 1 / slowdown, so slowdown = A / (A - (T - C)); where nothing overlaps (T >= C + A) the greatest
/// that a scenario takes.
double compute_slowdown(double compute, double collective, double together);

}  // namespace stepcast
