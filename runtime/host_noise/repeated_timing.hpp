#pragma once

#include <functional>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Measures how far apart the ranks' cores are. The host of a virtual machine moves its cores several times a
/// second. At times the cores of two ranks share a third-level cache (a cache line goes there and back in
/// 0.05 us), at other times they do not (0.32 us), and gradient all-reduces then take up to four times as
/// long. A measurement and a forecast made from it are comparable only while the latency is the same. All
/// ranks call each function at once and get the same result.
class CoreToCoreLatency {
 public:
  explicit CoreToCoreLatency(Transport& transport) : transport_(transport) {}

  /// Time of a float that goes round all ranks [s]: the minimum over some dozen round trips, so that
  /// interruptions do not count.
  double round_trip();

  /// Sets the baseline to the median latency over the next `seconds`.
  void set_baseline(double seconds);

  /// True if the latency is within a factor of 1.5 of the baseline.
  bool is_at_baseline();
  bool is_at_baseline(double round_trip) const;

  /// Waits until the latency is at the baseline, 5 s at most. All calls together wait 60 s at most in vain.
  /// @return false if the latency did not reach the baseline in time
  bool wait();

 private:
  Transport& transport_;
  double baseline_ = 0;
  double wait_budget_ = 60;  ///< seconds that later calls of `wait` may still wait in vain
};

/// Durations of repeated calls of one function, which all ranks call at once [s].
struct Repeats {
  std::vector<double> seconds;  ///< on the slowest rank; filled on rank 0 only
  /// Share of the machine's CPU time that its host gave to others meanwhile; 1 if the host moved the cores.
  std::vector<double> stolen;
  double cpu_seconds = 0;  ///< CPU time of this rank's threads in one call, mean
};

/// Repeats `call` in batches of equal length between barriers, for about `budget` seconds in all. Rank 0
/// decides how often, so that all ranks do the same. A batch during which the host gave this machine's cores
/// to others, or moved them, is repeated; at most three times as many batches as planned are made.
/// @param pause  seconds of silence before each batch, which then has one call, because communication comes
///               between passes of computation; 0: none
Repeats time_repeated(Transport& transport, double budget, const std::function<void()>& call,
                      double pause = 0);

/// Calls several functions in turn, once each per round, for about `budget` seconds in all. Repeat i of all
/// of them was made within a moment, so that differences between them are known better than each duration.
std::vector<Repeats> time_interleaved(Transport& transport, double budget,
                                      const std::vector<std::function<void()>>& functions);

/// Median over the repeats of the time that `more` took beyond `less` [s].
double median_difference(const Repeats& more, const Repeats& less);

/// Durations of the repeats that the host disturbed little; if there are fewer than three, those of the three
/// least disturbed repeats.
std::vector<double> undisturbed_seconds(const Repeats& repeats);

/// Measures how fast the ranks' cores are now. Virtual cores of a shared host switch between two speeds a
/// third apart, each core on its own and several times a second, depending on what other virtual machines run
/// on the same physical cores; neither /proc/stat nor a comparison of wall time and CPU time shows it. One
/// probe says little about the run before or after it, but the mean of many probes says what share of a
/// period was slow.
class CoreSpeedProbe {
 public:
  /// @param probe  executes this rank's probe, a fixed amount of work, and returns its duration [s]
  CoreSpeedProbe(Transport& transport, std::function<double()> probe);

  /// Runs the probe on all ranks at once.
  /// @return the duration on the slowest rank, for which the others wait; the same on all ranks [s]
  double probe();

  /// Sets the reference to the mean of all probes so far, without interrupted ones.
  void set_reference();
  /// Mean duration of a probe while the captures were taken [s]; 0 before set_reference.
  double reference_seconds() const { return reference_; }

 private:
  Transport& transport_;
  std::function<double()> probe_;
  std::vector<double> seconds_;
  double reference_ = 0;
};

/// Mean of the probes that take at most 1.5 times `usual`, as they do at a core's slower speed. A longer
/// probe was interrupted and says nothing about speed (the threads of two ranks on one core take twice as
/// long). Returns 1.5 times `usual` if no probe is left.
double mean_of_probes(const std::vector<double>& seconds, double usual);

/// How far the clock of this rank (`now`) is ahead of that of rank 0 [s], give or take half of the shortest
/// round trip; 0 on rank 0. All ranks call it at once. Clocks of different machines drift apart by some 10 us
/// a second, so it is measured anew for each run.
double clock_offset_to_rank_0(Transport& transport);

}  // namespace stepcast
