#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "runtime/ranks/cluster.hpp"
#include "strategies/collectives/schedule.hpp"
#include "validate/measure/link_benchmark.hpp"
#include "validate/measure/link_measurement.hpp"

namespace stepcast {

/// Measured time of one message of a given size.
struct MessageTime {
  Bytes size;
  Seconds time;
};

/// Cost of messages over one link, as platform files state it: time = latency + overhead + size /
/// (bandwidth_factor x bandwidth), with overhead and factor by size.
struct LinkTable {
  Seconds latency;
  BytesPerSecond bandwidth;
  std::vector<MessageCost> costs;  ///< by rising size; the last row has no upper limit
  /// Factor, 1 to 2, by which the bytes of a message are faster if its ranks do not send and receive at the
  /// same time: a core that copies in one direction only has twice the time for it.
  double one_way = 1;
  /// Times of messages between programs, which are copied and handed over once more; empty: not measured.
  std::vector<MessageTime> program_times = {};
};

/// Fits a table to measured times.
///
/// - The latency is the time of the smallest size. The bandwidth is the highest that any size reaches beyond
///   the latency.
/// - At a measured size, the table gives the measured time. A message that is measured as faster than a
///   smaller one gets the time of the smaller one.
/// - Between two measured sizes, the table interpolates linearly. Where this line would begin below the
///   latency or would be steeper than the bandwidth allows, the line keeps only its upper end.
/// - Beyond the largest measured size, the time grows in proportion to the size.
///
/// @throws std::invalid_argument for fewer than two different sizes, or a time that is not positive
LinkTable fitted_link_table(std::vector<MessageTime> times);

/// Time of one message.
Seconds message_time(const LinkTable& table, Bytes size);

/// Time of a schedule that has the network to itself. Each rank has its own link in each direction, and all
/// ranks begin each round together.
Seconds schedule_time(const Schedule& schedule, const LinkTable& links, Bytes buffer);

/// Message times from what measure_links measured. With one switch, it measures ring all-reduces: an
/// all-reduce of S bytes over P ranks sends 2 (P - 1) messages of S / P bytes one after the other. In shared
/// memory, the rate of an all-reduce inside a training step (`in_step`) holds up to messages of S bytes. With
/// two racks, it measures rounds of a ring inside the racks; a message takes the mean of a round that adds
/// and a round that replaces.
std::vector<MessageTime> message_times(const LinkMeasurements& links, const Cluster& cluster);

/// LinkTable::one_way of ranks of one machine, from `half_round_trip` of measure_links and the
/// messages of ring all-reduces, in which every rank sends and receives at once: the median over the sizes
/// that both have. 1 if none has, or if ranks are on several machines, whose links work in both directions at
/// once.
double measured_one_way(const LinkMeasurements& links, const Cluster& cluster, const LinkTable& table);

/// The times of `program_message`, as time_program_messages measures them.
std::vector<MessageTime> program_times(const LinkMeasurements& links);

/// The table that is fitted to what measure_links measured, with its `one_way` and `program_times`.
LinkTable measured_link_table(const LinkMeasurements& links, const Cluster& cluster);

/// Measured and predicted all-reduce times of one buffer size.
struct AllReduceTime {
  double bytes = 0;
  std::string algorithm;                     ///< the fastest of stepcast's algorithms
  double measured = 0, predicted = 0;        ///< [s]
  std::map<std::string, double> by_library;  ///< measured time of each library [s]
};

/// For each size, the fastest of stepcast's algorithms, its time by the link table, and the libraries' times.
std::vector<AllReduceTime> all_reduce_times(const LinkMeasurements& links, const LinkTable& table, int ranks);

/// The slow-down of ranks of one machine by each other, from what measure_contention measured.
struct Contention {
  double memory_alone = 0, memory_together = 0;  ///< memory bandwidth of a rank [B/s]
  double compute_slowdown = 1;
  double hand_over = 0;  ///< from the program to the progress thread, and back [s]
};

Contention contention_of(const LinkMeasurements& links);

/// A platform with measured links.
struct MeasuredPlatform {
  std::string name;
  std::string source;  ///< who measured it, on what, and how
  Cluster cluster;
  LinkTable links;
  std::string device = "cpu-core";  ///< name in models/devices
  std::optional<MeasuredStorage> storage = {};
};

/// Text of a platform file with one device for each rank. On one machine all ranks are devices of one node.
/// In a netcluster each rank is a node, behind one switch, or in two racks whose uplink has its configured
/// share of the measured bandwidth.
std::string platform_text(const MeasuredPlatform& platform);

/// A platform of the cluster for experiments before anything is measured: with storage, and with any device
/// for which layer times can be derived.
YamlNode placeholder_platform(const Cluster& cluster);

}  // namespace stepcast
