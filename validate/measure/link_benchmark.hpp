#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "kernels/network/network.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"
#include "validate/measure/link_measurement.hpp"

namespace stepcast {

/// Extent of the link benchmarks.
struct LinkBenchmarkOptions {
  double budget = 0.05;      ///< time for one message size of one benchmark, over all rounds, about [s]
  double max_seconds = 0.3;  ///< sizes grow until one repeat takes longer [s]
  double max_bytes = 128e6;  ///< sizes grow up to this [B]
  int group = 0;             ///< number of consecutive ranks behind one switch; 0: all ranks
  double pause = 0;          ///< before each all-reduce [s]
  int rounds = 1;            ///< rounds over all benchmarks, because the speed of a shared machine changes
  bool table_only = false;   ///< only what a LinkTable is fitted to
  bool one_way = false;      ///< with `table_only`: also what measured_one_way needs
  std::vector<LibraryAllReduce> compared = {};  ///< libraries whose all-reduces are measured too
  /// Called before each benchmark with its name; may be empty.
  std::function<void(const std::string&)> on_progress;
};

/// Measures the links between the ranks; all ranks call it. Rank 0 gets the medians, with quartiles:
///
/// half_round_trip    half of a round trip between ranks 0 and 1, while the other ranks are idle
/// pairs              the same between ranks 2 i and 2 i + 1 of all pairs at once: contention of pairs
/// shift_replace      every rank sends to the next rank of its group and receives from the previous one, at
///                    once: a round of a ring
/// shift_add          the same with the received values added: a round of a ring reduce-scatter
/// all_reduce         all-reduces by each algorithm and by each library of `compared`
LinkMeasurements measure_links(Transport& transport, const LinkBenchmarkOptions& options);

/// One of them.
LinkMeasurement link_measurement(LinkMeasurement::What what, const std::string& algorithm, double bytes,
                                 const Repeats& repeats);

/// Measures how much ranks of one machine slow each other down. All ranks call it; rank 0 gets:
///
/// memory_alone       rank 0 adds two arrays of 64 MB into a third (12 bytes an element); the others wait
/// memory_together    all ranks do so at once
/// compute_alone      training steps of `network` on all ranks at once, without communication
/// all_reduce_alone   an all-reduce without computation
/// compute_beside     training steps while the progress thread executes that all-reduce
/// message_host       CPU time of pipeline messages during a step, by message size
/// hand_over          time from the program to the progress thread, and back
LinkMeasurements measure_contention(Transport& transport, PollingPolicy& polling, Network& network,
                                    double budget);

/// Factor by which computation is slower while a collective runs. Let C be the time of the computation alone,
/// A that of the collective alone, and T that of both begun at once (A < C). The computation then had T - A
/// seconds at full speed and A seconds at 1 / slowdown, so slowdown = A / (A - (T - C)). If nothing overlaps
/// (T >= C + A), the result is the largest value that a scenario accepts.
double compute_slowdown(double compute, double collective, double together);

/// Factor by which a worker's computation is slower while a read or an update is sent between it and a
/// server, computed from the compute slowdown during an all-reduce. In a ring all-reduce each core copies all
/// bytes twice: when it sends and when it receives. A message between programs takes about as long or less:
/// its sender also copies the bytes twice, into a message buffer and into the transport, but its receiver
/// copies them once. A worker sends one message and receives one, so it loses 3/4 of the time that it would
/// lose during an all-reduce.
double message_slowdown(double compute_slowdown);

/// Measures how fast the ranks load their input, all at once, from files in `folder`; all ranks call it. Rows
/// (rank 0 only): `what` = storage, `bytes` of each rank, `seconds`, the mean time of a load after a
/// computation, on the slowest rank.
/// @param compute  a rank's computation, or its sleep
LinkMeasurements measure_storage(Transport& transport, PollingPolicy& polling,
                                 const std::filesystem::path& folder, const std::function<void()>& compute);

/// Measures how much longer a computation takes if a load begins with it, because interrupts and copies of a
/// read take the rank's core; all ranks call it. One row (rank 0 only): `what` = compute_beside_load,
/// `bytes`, `seconds`, the mean over the ranks, `off_core_seconds`, the part of it in which no thread of the
/// rank had the core, and `stolen_seconds`, the core-seconds of this machine that a hypervisor took for the
/// loads of all ranks. No row if no load of a mebibyte fits into a computation.
/// @param storage  rows of measure_storage
LinkMeasurements measure_compute_beside_load(Transport& transport, PollingPolicy& polling,
                                             const std::filesystem::path& folder,
                                             const std::function<void()>& compute,
                                             const LinkMeasurements& storage);

/// A disk that several ranks read at once: a load takes latency + ranks x bytes / bandwidth.
struct MeasuredStorage {
  BytesPerSecond bandwidth;  ///< of all ranks that share the disk
  Seconds latency;
};

/// The storage of rows of measure_storage; none without such rows.
/// @param sharing  ranks that the platform puts on one disk
std::optional<MeasuredStorage> measured_storage(const LinkMeasurements& links, int sharing);

/// Factor on compute while input loads, `data.compute_slowdown`, from these rows; 1 without a row
/// `compute_beside_load`. Of a load that takes L seconds beside a longer computation, compute loses the time
/// x: the factor is L / (L - x).
double load_slowdown(const LinkMeasurements& links);

}  // namespace stepcast
