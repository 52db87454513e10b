#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// What ranks measured of their links, memory, storage or arithmetic: a line of links.jsonl.
struct LinkMeasurement {
  /// See measure_links, measure_contention, measure_storage, measure_compute_beside_load,
  /// time_program_messages and time_arithmetic.
  enum class What {
    half_round_trip,
    pairs,
    shift_replace,
    shift_add,
    all_reduce,
    memory_alone,
    memory_together,
    message_host,
    compute_alone,
    all_reduce_alone,
    compute_beside,
    hand_over,
    program_message,
    storage,
    compute_beside_load,
    arithmetic,
  };

  What what{};
  std::string algorithm = {};  ///< of an all-reduce; of an arithmetic its name
  std::string network = {};    ///< arithmetic: the name of the network's trace
  double bytes = 0;
  double seconds = 0;
  std::optional<double> low = {}, high = {};  ///< quartiles [s]
  std::int64_t repeats = 0;
  std::optional<double> cpu_seconds = {};       ///< of rank 0
  std::optional<double> off_core_seconds = {};  ///< compute_beside_load
  std::optional<double> stolen_seconds = {};    ///< compute_beside_load
  bool in_step = false;                         ///< all_reduce: inside training steps
  int ranks = 0;                                ///< that took part; 0: the line does not say
};
using LinkMeasurements = std::vector<LinkMeasurement>;

const std::string& to_string(LinkMeasurement::What what);

/// The first measurement of a kind, or null.
const LinkMeasurement* first_of(const LinkMeasurements& links, LinkMeasurement::What what);

/// @throws InputError with the line of a missing or bad column
LinkMeasurements read_link_measurements(std::string_view text, const std::string& file);
LinkMeasurements read_link_measurements(const std::filesystem::path& file);

Row to_row(const LinkMeasurement& one);
Results to_results(const LinkMeasurements& links);
std::string to_json_line(const LinkMeasurement& one);

}  // namespace stepcast
