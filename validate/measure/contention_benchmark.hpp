#pragma once

#include "kernels/network/network.hpp"
#include "runtime/transport/thread_scheduling.hpp"
#include "validate/measure/link_benchmark.hpp"

namespace stepcast {

/// Measures how much ranks of one machine slow each other down. All ranks call it. The rows have the columns
/// of measure_links:
///
/// memory_alone       rank 0 adds two arrays of 64 MB into a third (12 bytes an element); the others wait
/// memory_together    all ranks do so at once
/// compute_alone      training steps of `network` on all ranks at once, without communication
/// all_reduce_alone   an all-reduce without computation
/// compute_beside     training steps while the progress thread executes that all-reduce
/// message_host       CPU time of pipeline messages beside a step, by message size
/// hand_over          time from the program to the progress thread, and back
std::vector<Row> measure_contention(Transport& transport, PollingPolicy& polling, Network& network,
                                    double budget);

/// Factor by which computation is slower while a collective runs. Let C be the time of the computation alone,
/// A that of the collective alone, and T that of both begun at once (A < C). The computation then had T - A
/// seconds at full speed and A seconds at 1 / slowdown, so slowdown = A / (A - (T - C)). If nothing overlaps
/// (T >= C + A), the result is the largest value that a scenario accepts.
double compute_slowdown(double compute, double collective, double together);

/// Factor by which a worker's computation is slower while a read or an update between it and a server
/// travels, from the compute slowdown beside an all-reduce. In a ring all-reduce each core copies all bytes
/// twice: as it sends and as it receives. Messages between programs take about as long, or less than
/// that: their sender copies them twice too, into a message buffer and into the transport, but their
/// receiver once. A worker sends one message and receives one, so it loses 3/4 of what it would lose beside
/// an all-reduce.
double message_slowdown(double compute_slowdown);

}  // namespace stepcast
