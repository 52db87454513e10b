#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "report/results/results.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Measures how fast the ranks read their input, all at once, from files in `folder`; all ranks call it. Rows
/// (rank 0 only): `what` = storage, `bytes` of each rank, `seconds` on the slowest rank, for a block and for
/// several megabytes.
/// @param budget  time for one size, about [s]
std::vector<Row> measure_storage(Transport& transport, const std::filesystem::path& folder, double budget);

/// A disk that several ranks read at once: a read takes latency + ranks x bytes / bandwidth.
struct MeasuredStorage {
  BytesPerSecond bandwidth;  ///< of all ranks that share the disk
  Seconds latency;
};

/// The storage of rows of measure_storage; none without such rows.
/// @param sharing  ranks that the platform puts on one disk
std::optional<MeasuredStorage> measured_storage(const Results& results, int sharing);

}  // namespace stepcast
