#pragma once

#include <string>
#include <vector>

#include "commands/collectives/estimate.hpp"

namespace stepcast {

/// A measured table of validate/data/nccl_tests/tables.yaml, and what the model says of it.
struct MeasuredTable {
  /// The use of the table: `fit`: constants were fitted on it; `test`: it only judges; `set_aside`: the
  /// thread reports a fault, or a plugin replaces NCCL's choices, so that it judges nothing.
  enum class Use { fit, test, set_aside };

  std::string name, machine, nccl, source;
  Use use{};
  int ranks = 0;
  std::vector<CollectiveRow> rows;
};

/// Reads the list and all its tables, and computes their rows.
/// @throws InputError
std::vector<MeasuredTable> measured_tables();

/// A line for each table and the means, for `stepcast collectives --measured-tables`.
std::string to_text(const std::vector<MeasuredTable>& tables);

}  // namespace stepcast
