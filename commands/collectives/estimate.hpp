#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/nccl/collective_time.hpp"
#include "validate/measure/benchmark_readers.hpp"

namespace stepcast {

/// A platform of a file with some values replaced (`platform.nodes` is the path "nodes").
Platform platform_with(Library& library, const std::string& name, const std::vector<Assignment>& values);

/// The communicator of the first `ranks` devices, `per_node` on each node.
/// @param per_node  0: all devices of a node, or all ranks if they fit a node
/// @throws InputError that names the option
NcclRanks first_devices(const Platform& platform, int ranks, int per_node);

/// What a user says about a collective; the rest comes from a table.
struct AskedCollective {
  std::string name = {};
  int ranks = 0, per_node = 0;  ///< 0: not said
};

/// A table of nccl-tests and the communicator that it was measured on.
struct MeasuredCollective {
  std::string file;
  NcclTests tests;
  NcclOperation operation = NcclOperation::all_reduce;
  int ranks = 0;
  int per_node = 0;  ///< 0: all devices of a node, or all ranks if they fit a node
};

/// Reads what a table says about its communicator: its header, its list of ranks, or busbw / algbw.
/// @throws InputError if neither the table nor the user says it, or they contradict each other
MeasuredCollective measured_collective(NcclTests tests, const std::string& file,
                                       const AskedCollective& asked);

/// One size of a collective.
struct CollectiveRow {
  Bytes size;
  NcclTime estimate;
  std::optional<Seconds> measured;

  double log_error() const;  ///< ln(estimate / measured), or 0 without a measurement
};

std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const std::vector<Bytes>& sizes);
std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const NcclTests& measured);

/// Sizes from 1 MiB on, or below.
enum class SizeRange { below, from };
constexpr Bytes kLargeSize{1 << 20};

/// The geometric mean of how far estimates are off, as a share: exp(mean |ln(estimate / measured)|) - 1. 0.1
/// is 10 %. No value without measured rows of that range.
std::optional<double> mean_error(const std::vector<CollectiveRow>& rows, SizeRange range);
/// exp(mean ln(estimate / measured)) - 1: negative if estimates are too short.
std::optional<double> bias(const std::vector<CollectiveRow>& rows, SizeRange range);

/// A measured table of validate/data/nccl_tests.yaml, and what the model says of it.
struct MeasuredTable {
  /// The use of the table: `fit`: constants were fitted on it; `test`: it only judges; `set_aside`: the
  /// thread reports a fault, or a plugin replaces NCCL's choices, so that it judges nothing.
  enum class Use { fit, test, set_aside };

  std::string name, machine, nccl, source;
  Use use{};
  int ranks = 0;
  std::vector<CollectiveRow> rows;
};

/// Reads all tables, and computes their rows.
/// @throws InputError
std::vector<MeasuredTable> measured_tables();

/// A line for each table and the means, for `stepcast collectives --measured-tables`.
std::string to_text(const std::vector<MeasuredTable>& tables);

}  // namespace stepcast
